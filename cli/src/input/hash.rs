//! SHA-256 sums.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Returns the sum of these bytes.
pub(crate) fn sum(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Returns the sum of these bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    in_hex(&sum(bytes))
}

fn in_hex(sum: &[u8]) -> String {
    sum.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
