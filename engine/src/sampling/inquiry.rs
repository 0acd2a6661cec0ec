//! Drawing for a sequence with monitors outside the decode thread: a monitor may be slow, or panic.
//!
//! An inquiry holds all data that the draw depends on, and is run once by a thread of the pool. The drawn
//! tokens are written when the sequence is next in a pass, which is the same pass if the monitors are quick.

use super::asking::Asking;
use super::{node, not_a_law};
use crate::State;
use crate::error::{EngineError, MonitorProblem};
use crate::grammar::masks::Bounds;
use crate::grammar::reply::Inquired;
use crate::model::logits::Row as Read;
use crate::request::watched::{Turn, monitor_error, product};
use crate::request::{Tilt, Watched};
use crate::sequence::Sequence;
use crate::sequence::past::{Past, Sparing};
use crate::speculation::draft::{Draft, path};
use crate::speculation::row::DraftRow;
use lexiform_law::draft::{Node, NodeId};
use lexiform_law::monitor::{MonitorState, Product, ProductState};
use lexiform_law::verify::{Next, Verified, tree};
use lexiform_law::{Allowed, Seeded, Walk, Warper};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A draw for one sequence.
pub(crate) struct Inquiry {
    rows: Vec<Vec<f32>>,
    masks: Option<Vec<Bounds>>,
    warper: Warper,
    sparing: Option<Arc<Sparing>>,
    walk: Walk,
    chooser: Seeded,
    tokens: Arc<Vec<u32>>,
    prompt: usize,
    drafts: Vec<Draft>,
    asking: Asking,
    watched: Vec<Watched>,
    tilt: Option<Tilt>,
    turn: Turn,
    product: Product,
    /// The monitors' joint state, and the number of answer tokens that it has read.
    joint: Option<(ProductState, usize)>,
}

impl Inquiry {
    /// Returns the inquiry of this sequence for these rows: one for the text and one for each draft.
    pub(crate) fn of(sequence: &mut Sequence, rows: &[Read<'_>], masks: Option<&[Bounds]>) -> Self {
        let turn = sequence.draw.watch.begin();
        let width = rows.first().map_or(0, |row| row.logits.len());
        Inquiry {
            rows: rows.iter().map(|row| row.logits.to_vec()).collect(),
            masks: masks.map(<[Bounds]>::to_vec),
            warper: sequence.draw.warper.clone(),
            sparing: sequence.draw.sparing.clone(),
            walk: sequence.draw.walk.fork(),
            chooser: Seeded::new(sequence.request.sampling.seed, sequence.stream()),
            tokens: sequence.text.tokens.clone(),
            prompt: sequence.request.prompt.tokens.len(),
            drafts: sequence.draft.drafts.clone(),
            asking: Asking::of(sequence, width),
            watched: sequence.request.constraints.monitors.clone(),
            tilt: sequence.request.constraints.tilt.clone(),
            turn: turn.clone(),
            product: product(&sequence.request.constraints.monitors, &turn),
            joint: sequence.draw.watch.take_joint(),
        }
    }

    /// Runs the inquiry, and returns the tokens drawn.
    ///
    /// # Errors
    /// Fails if a monitor has no answer, or allows nothing of what the others allow, or if a row is not a
    /// distribution.
    pub(crate) fn run(self) -> Result<Inquired, EngineError> {
        let past = Past::new(&self.tokens, self.prompt, self.sparing.as_deref());
        let answer = &self.tokens[self.prompt..];
        let (mut joint, read) = self.joint.unwrap_or_else(|| (self.product.begin(), 0));
        for &token in answer.get(read..).unwrap_or_default() {
            if let Err(failure) = joint.advance(token) {
                let problem = MonitorProblem::Failed(failure.0);
                return Err(monitor_error(&self.watched, None, joint.last_refusal(), problem));
            }
        }
        let mut asking = self.asking.with(&self.watched, joint.clone());
        let drafted = |node: Option<NodeId>| -> Vec<u32> {
            let path = path(&self.drafts, node).into_iter();
            path.map(|node| self.drafts[node].token).collect()
        };
        let row = |node: Option<NodeId>| {
            if node.is_some_and(|node| self.drafts[node].is_last) {
                return Ok(None);
            }
            let index = node.map_or(0, |node| node + 1);
            let masks = self.masks.as_ref();
            let allowed = masks.map_or(Allowed::All, |masks| Allowed::Words(masks[index].mask.words()));
            let counted = past.counted(drafted(node), allowed);
            let row = self
                .warper
                .row_of(&self.rows[index], None, past.history(&counted))?;
            Ok(Some((row, allowed)))
        };
        let nodes: Vec<Node<State, DraftRow>> = self.drafts.iter().map(node).collect();
        let (mut walk, mut chooser) = (self.walk, self.chooser);
        let verified = match self.watched.is_empty() && !asking.asks_grammar() {
            true => tree(&nodes, row, &mut walk, &mut chooser),
            false => asking.draw(&nodes, row, &mut walk, &mut chooser),
        };
        let verified = verified.map_err(not_a_law)?;
        let steered = asking.finish()?;
        if let (Next::Stuck(_), Some(number)) = (&verified.next, asking.refused_by()) {
            let generated = answer.len() + verified.drawn.len();
            let problem = MonitorProblem::Refused { generated };
            return Err(monitor_error(&self.watched, None, Some(number), problem));
        }
        let score = match &self.tilt {
            Some(tilt) => score(tilt, answer, &verified, &self.turn, &self.watched)?,
            None => None,
        };
        let path = verified
            .path
            .iter()
            .map(|&node| self.drafts[node].token)
            .collect();
        Ok(Inquired {
            walk,
            verified,
            score,
            path,
            steered,
            joint: Some(joint),
            read: answer.len(),
        })
    }
}

/// Returns the score of an answer with the tokens that were drawn, if it is to be scored.
///
/// # Errors
/// Fails if there is no answer, or if the text must not come.
fn score(
    tilt: &Tilt,
    answer: &[u32],
    verified: &Verified,
    turn: &Turn,
    watched: &[Watched],
) -> Result<Option<f64>, EngineError> {
    let is_whole = matches!(verified.next, Next::Ended);
    if !is_whole && !tilt.prefixes {
        return Ok(None);
    }
    let drawn = verified.drawn.iter().map(|drawn| drawn.token);
    let mut text: Vec<u32> = answer.iter().copied().chain(drawn).collect();
    if is_whole {
        text.pop();
    }
    turn.store(watched.len(), Ordering::Relaxed);
    let problem = match tilt.of(&text, is_whole) {
        Ok(f64::NEG_INFINITY) => MonitorProblem::Refused {
            generated: text.len(),
        },
        Ok(score) => return Ok(Some(score)),
        Err(failure) => MonitorProblem::Failed(failure.0),
    };
    Err(monitor_error(watched, Some(tilt), Some(watched.len()), problem))
}
