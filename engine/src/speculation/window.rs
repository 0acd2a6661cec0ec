//! The window of a sequence's guesses among its drafts.
//!
//! Guesses are fed as the last of the drafts, and share drafts with the same tokens. So the end of a branch
//! of the window is found by its tokens, even if some drafts were not fed.

use crate::config::Lookahead;
use crate::request::Request;
use crate::speculation::draft::{Draft, Source, child};
use lexiform_law::draft::{JacobiWindow, NodeId, Text};

/// The most columns of a window, and the most tokens of its phrases. Larger windows do not fit a pass, and
/// each pass copies the window.
pub(crate) const MOST_COLUMNS: usize = 256;
pub(crate) const MOST_LENGTH: usize = 64;

/// Creates the window of a new request; `None` if it guesses nothing.
pub(crate) fn begin(how: Option<Lookahead>, request: &Request) -> Option<JacobiWindow> {
    let is_wanted = request.speculation.learned && request.speculation.max_draft > 0;
    let Lookahead { columns, length } = how.filter(|_| is_wanted)?;
    let text = Text {
        prompt: &request.prompt.tokens,
        answer: &[],
    };
    JacobiWindow::new(columns, length, text)
}

/// Replaces guesses by forced text.
pub(crate) fn know_forced(window: &mut JacobiWindow, drafts: &[Draft]) {
    // Forced text is drafted first, one token below the other.
    let forced = drafts.iter().take_while(|draft| draft.source == Source::Forced);
    let forced: Vec<u32> = forced.map(|draft| draft.token).collect();
    window.know(&forced);
}

/// Returns the draft at the end of a branch below the text, if all of the branch was fed.
pub(crate) fn end_of(drafts: &[Draft], branch: &[u32]) -> Option<NodeId> {
    let down = |node: Option<NodeId>, &token: &u32| Some(Some(child(drafts, node, token)?));
    branch.iter().try_fold(None, down)?
}
