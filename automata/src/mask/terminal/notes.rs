//! What those who walk a terminal keep about it, as long as the terminal lives.

use super::k_equivalence::Walked;
use crate::mask::skip::closed::Kept;

/// The notes of one terminal; all of it is found again if it is missing.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) closed: Kept,
    pub(crate) walked: Walked,
}
