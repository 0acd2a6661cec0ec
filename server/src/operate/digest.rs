//! SHA-256 in hexadecimal digits.

use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of these bytes, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
