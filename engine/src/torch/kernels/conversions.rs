//! Conversions of feeds, asks and errors between the engine and the kernels.

use crate::model::Feed;
use crate::model::flight::Ask;
use lexiform_kernels::launcher::LaunchError;
use lexiform_kernels::{asks, inputs};
use tch::TchError;

/// Converts the error of a launcher to an error of a pass.
pub(super) fn failed(error: LaunchError) -> TchError {
    TchError::Io(std::io::Error::other(error))
}

impl<'a> From<&Feed<'a>> for inputs::Feed<'a> {
    fn from(feed: &Feed<'a>) -> Self {
        inputs::Feed {
            tokens: feed.tokens,
            start: feed.start,
            table: feed.table,
            rows: feed.rows,
            parents: feed.parents,
        }
    }
}

impl<'a> From<&Ask<'a>> for asks::Ask<'a> {
    fn from(ask: &Ask<'a>) -> Self {
        asks::Ask {
            row: ask.row,
            allowed: ask.allowed,
            warper: ask.warper,
            history: ask.history,
            seeded: ask.seeded,
            place: ask.place,
        }
    }
}
