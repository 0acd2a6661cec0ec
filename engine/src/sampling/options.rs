//! Options that were fed after a text: the probabilities, in each row, of the tokens that follow there.
//!
//! The probabilities are those of the law that would draw: the row is warped with the history of its path,
//! and shares are relative to what the grammar and the filters leave.

use crate::grammar::masks::Bounds;
use crate::model::logits::Row as Read;
use crate::request::driver::{Of, Weight, log_sum};
use crate::request::options::Options;
use crate::sequence::{Phase, Sequence};
use crate::speculation::draft::path;
use lexiform_law::{Allowed, Distribution, Part as _, Portion, Row as _, RowError};

/// Weighs what may follow the text and each node that was fed: the nodes of the options, and the end if an
/// option ends there.
///
/// # Errors
/// Fails if a row is not a distribution.
pub(super) fn weigh(
    sequence: &Sequence,
    rows: &[Read<'_>],
    masks: Option<&[Bounds]>,
) -> Result<Vec<Weight>, RowError> {
    let Some(options) = sequence.request.task.options() else {
        return Ok(Vec::new());
    };
    let past = sequence.past();
    let mut weights = Vec::new();
    for (number, node) in fed(sequence, options).into_iter().enumerate() {
        let above = path(&sequence.draft.drafts, number.checked_sub(1)).into_iter();
        let draft: Vec<u32> = above.map(|draft| sequence.draft.drafts[draft].token).collect();
        let allowed = masks.map_or(Allowed::All, |masks| Allowed::Words(masks[number].mask.words()));
        let counted = past.counted(draft, allowed);
        let Read { logits, measured } = rows[number];
        let warper = &sequence.draw.warper;
        let mut row = warper.row_of(logits, measured, past.history(&counted))?;
        if sequence.draw.warper.is_greedy() {
            // Greedy decoding is a filter that keeps one token; its law is reported as at temperature 1.
            row = row.uncut();
        }
        let place = RowAt {
            row: &row,
            part: row.part(allowed),
            allowed,
        };
        let child = |child| place.weight(Of::Node(child), &[options.token(child)]);
        weights.extend(options.children(node).map(child));
        if sequence.request.reporting.weigh_end && options.is_end(node) {
            weights.push(place.weight(Of::End(node), sequence.draw.walk.ends()));
        }
    }
    Ok(weights)
}

/// Returns the nodes whose rows are present: the one where the text is, and those of the drafts. A pass may
/// have had no room for some.
fn fed(sequence: &Sequence, options: &Options) -> Vec<usize> {
    let Phase::Weighing { root, .. } = sequence.phase else {
        return Vec::new();
    };
    let mut nodes = vec![root];
    for draft in &sequence.draft.drafts {
        let parent = nodes[draft.parent.map_or(0, |parent| parent + 1)];
        // Every draft is a node of the options.
        let node = options.child(parent, draft.token).unwrap_or(root);
        nodes.push(node);
    }
    nodes
}

/// A row, and the part of it that may be drawn from.
struct RowAt<'r> {
    row: &'r Distribution<'r>,
    part: Portion<'r>,
    allowed: Allowed<'r>,
}

impl RowAt<'_> {
    /// Returns the weight of the event that one of these tokens comes next.
    fn weight(&self, of: Of, tokens: &[u32]) -> Weight {
        let share = |token: &u32| match self.part.share(*token) > 0.0 {
            true => self.row.log_probability(*token) - self.part.log_kept(),
            false => f64::NEG_INFINITY,
        };
        Weight {
            of,
            log_probability: log_sum(tokens.iter().map(|token| self.row.log_probability(*token))),
            log_share: log_sum(tokens.iter().map(share)),
            is_allowed: tokens.iter().any(|token| self.allowed.contains(*token)),
        }
    }
}
