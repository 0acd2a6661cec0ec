//! Philox 4×32 with ten rounds: a counter-based generator (Salmon, Moraes, Dror, Shaw, 2011).
//!
//! A counter-based generator is a function from (key, counter) to random bits that keeps no state between
//! calls, so a draw depends on its place alone.

const MULTIPLIERS: (u32, u32) = (0xD251_1F53, 0xCD9E_8D57);
const KEY_STEPS: (u32, u32) = (0x9E37_79B9, 0xBB67_AE85);
const ROUNDS: usize = 10;

/// Returns four random words for this counter under this key.
pub(super) fn philox(mut counter: [u32; 4], key: u64) -> [u32; 4] {
    let (mut low, mut high) = (key as u32, (key >> 32) as u32);
    for _ in 0..ROUNDS {
        let first = u64::from(MULTIPLIERS.0) * u64::from(counter[0]);
        let second = u64::from(MULTIPLIERS.1) * u64::from(counter[2]);
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ low,
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ high,
            first as u32,
        ];
        low = low.wrapping_add(KEY_STEPS.0);
        high = high.wrapping_add(KEY_STEPS.1);
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_vectors() {
        assert_eq!(
            philox([0; 4], 0),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox([!0; 4], !0),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
    }
}
