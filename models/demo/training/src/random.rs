//! A small seeded generator of random numbers, so that a seed names the same text on every machine.

/// SplitMix64: one addition and three mixes a number, good enough for choosing words.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// A generator whose whole future follows from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d,
        }
    }

    /// The next 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `bound`, which must not be zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `items`, which must not be empty.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Brings `items` into random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }

    /// `count` different positions out of `len`, in random order.
    pub(crate) fn positions(&mut self, len: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..len).collect();
        self.shuffle(&mut all);
        all.truncate(count);
        all
    }
}

/// Spreads the bits of `value`; equal inputs give equal outputs everywhere.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_names_a_sequence() {
        let draw = |seed| (0..8).map(|_| Random::new(seed).bits()).collect::<Vec<_>>();
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn ranges_are_kept() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            assert!((3..=9).contains(&random.between(3, 9)));
        }
        let mut positions = random.positions(10, 10);
        positions.sort_unstable();
        assert_eq!(positions, (0..10).collect::<Vec<_>>());
    }
}
