//! From rows of logits to tokens: the request's law, applied to what the model computed.
//!
//! ```text
//!   rows of the pass ─ holes out ─ warp ─► p ─┐
//!   masks along the draft ────────────────────┼─► verify::tree ─► tokens, each with what it was drawn from
//!   Seeded(seed), place (attempt, position) ──┘
//! ```
//!
//! A draw depends only on the seed and on its place, not on the number of passes before it: batching,
//! preemption, chunked prompts and drafts that are verified by drawing once do not change the text. Drafts
//! that are verified by the residual rule do not change its law.
//!
//! # Why the same seed can give another text on another device
//!
//! Between a CPU and a GPU, and on a GPU between passes of different sizes, the last digits of logits differ.
//! The law is the same to within those digits, and the text differs if a draw falls between them: of 54
//! answers, two differed in bf16 and none in f32. All of them are valid.

pub(crate) mod asking;
mod candidates;
pub(crate) mod crew;
mod given;
mod guesses;
pub(crate) mod inquiry;
mod lessons;
pub(crate) mod observed;
mod options;
pub(crate) mod write;

use crate::State;
use crate::error::EngineError;
use crate::grammar::masks::Bounds;
use crate::model::logits::{Logits, Row as Read};
use crate::request::driver::{Latest, Look, Ranked, Weight};
use crate::request::{Candidates, LogprobsOf, law};
use crate::sequence::past::Past;
use crate::sequence::{Phase, Sequence};
use crate::speculation::draft::Draft;
use crate::speculation::draft::path;
use crate::speculation::row::DraftRow;
use asking::Asking;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_law::draft;
use lexiform_law::draft::{Node, NodeId};
use lexiform_law::verify::{Verified, down, tree};
use lexiform_law::{Allowed, Distribution, Drawn, LawError, LawTag, Part, Portion, Row, RowError, Seeded};
use std::convert::Infallible;
use std::sync::PoisonError;

/// Tokens with their probabilities, the likeliest first.
pub(crate) type Likely = Vec<(u32, f32)>;

/// The result of a pass for a sequence.
#[derive(Clone, Copy)]
pub(crate) enum Found<'a> {
    /// A row after the text, and one after each draft.
    Rows(&'a [Read<'a>]),
    /// The rows were drawn from where they are.
    Drawn {
        /// The token drawn from each row; `None` where nothing is drawn.
        drawn: &'a [Option<Drawn>],
        /// The likeliest tokens of the first rows, as far as stores learn from them.
        likely: &'a [Likely],
    },
}

/// The tokens that a sequence drew from the rows of a pass.
pub(crate) struct Drawing {
    pub(crate) verified: Verified,
    /// The model's own view of each drawn token.
    pub(crate) own: Vec<Own>,
    /// The index of the first drawn token for which a token was refused because of the remaining token
    /// budget, if tokens are queried one by one, and whether the limit of the preamble refused it. Masks
    /// report this themselves.
    pub(crate) steered: Option<(usize, bool)>,
}

/// The model's own view of a token, before warping and mask.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Own {
    pub(crate) logprob: Option<f32>,
    pub(crate) top: Vec<(u32, f32)>,
    pub(crate) candidates: Option<Candidates>,
}

/// The columns of a row that are tokens.
pub(crate) struct Columns {
    /// The size of the vocabulary; rows may be longer.
    width: usize,
    holes: Vec<usize>,
}

impl Columns {
    pub(crate) fn new(vocabulary: &Vocabulary, model_width: usize) -> Self {
        let width = vocabulary.len().min(model_width);
        let is_hole = |&token: &usize| vocabulary.kind(token as u32) == TokenKind::Unused;
        Columns {
            width,
            holes: (0..width).filter(is_hole).collect(),
        }
    }

    /// Ensures that holes cannot be drawn.
    pub(crate) fn clean(&self, row: &mut [f32]) {
        for &hole in &self.holes {
            row[hole] = f32::NEG_INFINITY;
        }
    }

    /// Returns the part of a row over the vocabulary. A measure covers all columns, so it is kept only if
    /// these are all.
    pub(crate) fn of<'r>(&self, logits: &'r Logits, index: usize) -> Read<'r> {
        let row = logits.row(index);
        let is_whole = row.len().div_ceil(32) == self.width.div_ceil(32);
        Read {
            logits: &row[..self.width],
            measured: logits.measure(index).filter(|_| is_whole),
        }
    }

    /// Returns the columns that are not tokens.
    pub(crate) fn left_out(&self, model_width: usize) -> Vec<usize> {
        self.holes
            .iter()
            .copied()
            .chain(self.width..model_width)
            .collect()
    }
}

/// Returns `true` if a draw for this sequence depends only on the row, the tokens before it, its scale, the
/// mask, filters by rank and its place, and nothing else of the row is requested: then the row can stay where
/// it was computed.
pub(crate) fn can_stay(sequence: &Sequence) -> bool {
    let asks_nothing = match (
        sequence.request.reporting.logprobs,
        sequence.request.reporting.logprobs_of,
    ) {
        (None, _) => true,
        // The reported probability of the token is the model's own.
        (Some(0), LogprobsOf::Model) => sequence.draw.warper.is_identity(),
        _ => false,
    };
    let is_sampled = |draft: &Draft| draft.proposal.is_sampled();
    asks_nothing
        && sequence.request.sampling.contrast.is_none()
        && sequence.request.reporting.candidates.is_none()
        && !law::wants_entropy(&sequence.request)
        && sequence.phase == Phase::Drawing
        && sequence.draw.warper.by_rank().is_some()
        && sequence.draw.walk.is_certain()
        && sequence.draw.walk.tag() != LawTag::Lossy
        && !sequence.is_asked()
        && !sequence.is_watched()
        && !sequence.draft.drafts.iter().any(is_sampled)
}

/// Draws down the tree of the sequence's drafts, or walks down it along drawn tokens. Rows are clean: one for
/// the text and one for each draft; `masks` likewise, if there is a grammar.
pub(crate) fn draw(
    sequence: &mut Sequence,
    found: Found<'_>,
    masks: Option<&[Bounds]>,
) -> Result<Drawing, EngineError> {
    match found {
        Found::Rows(rows) => draw_from(sequence, rows, masks),
        Found::Drawn { drawn, .. } => Ok(walk_along(sequence, drawn)),
    }
}

/// Walks down the tree of the sequence's drafts along the tokens that were drawn after each of them.
fn walk_along(sequence: &mut Sequence, drawn: &[Option<Drawn>]) -> Drawing {
    let nodes: Vec<Node<State, DraftRow>> = sequence.draft.drafts.iter().map(node).collect();
    let (walk, drafts) = (&mut sequence.draw.walk, &sequence.draft.drafts);
    let step = |node: Option<NodeId>| {
        if node.is_some_and(|node| drafts[node].is_last) {
            return Ok(None);
        }
        let drawn = drawn[node.map_or(0, |node| node + 1)].clone();
        Ok::<_, Infallible>(drawn.and_then(|drawn| walk.take(drawn)))
    };
    let Ok(verified) = down(&nodes, step);
    let own = |drawn: &Drawn| Own {
        logprob: sequence
            .request
            .reporting
            .logprobs
            .map(|_| drawn.log_probability as f32),
        ..Own::default()
    };
    Drawing {
        own: verified.drawn.iter().map(own).collect(),
        verified,
        steered: None,
    }
}

/// Returns what is reported about each drawn token; the walk was at `position` before the first of them.
fn about(
    sequence: &Sequence,
    verified: &Verified,
    (rows, masks): (&[Read<'_>], Option<&[Bounds]>),
    position: u32,
) -> Result<Vec<Own>, EngineError> {
    let drafted = |node: Option<NodeId>| -> Vec<u32> {
        let path = path(&sequence.draft.drafts, node).into_iter();
        path.map(|node| sequence.draft.drafts[node].token).collect()
    };
    let mut own = Vec::with_capacity(verified.drawn.len());
    for (number, drawn) in verified.drawn.iter().enumerate() {
        let node = number.checked_sub(1).map(|before| verified.path[before]);
        let index = node.map_or(0, |node| node + 1);
        let row = rows[index].logits;
        let bounds = masks.map(|masks| &masks[index]);
        own.push(self::own(sequence, drawn, row)?);
        let allowed = bounds.map_or(Allowed::All, |bounds| Allowed::Words(bounds.mask.words()));
        let ceiling = || sequence.draw.walk.ceiling_at(position + number as u32);
        if let (LogprobsOf::Allowed, Some(count @ 1..)) = (
            sequence.request.reporting.logprobs_of,
            sequence.request.reporting.logprobs,
        ) {
            let drawn_from = warped(sequence, row, (drafted(node), allowed))?;
            own[number].top = top(&drawn_from.part_under(allowed, ceiling()), count);
        }
        if let Some(count) = sequence.request.reporting.candidates {
            let drawn_from = warped(sequence, row, (drafted(node), allowed))?;
            let found = candidates::of(row, &drawn_from.part_under(allowed, ceiling()), bounds, count);
            let mut found = found.map_err(not_a_law)?;
            if number == 0 && sequence.phase == Phase::Drawing {
                found.drafted = candidates::drafted(&sequence.draft.drafts, &verified.path);
            }
            own[number].candidates = Some(found);
        }
    }
    Ok(own)
}

fn draw_from(
    sequence: &mut Sequence,
    rows: &[Read<'_>],
    masks: Option<&[Bounds]>,
) -> Result<Drawing, EngineError> {
    let inquired = sequence.draw.watch.take();
    let width = rows.first().map_or(0, |row| row.logits.len());
    let mut asking = sequence.is_asked().then(|| Asking::of(sequence, width));
    let drafted = |node: Option<NodeId>| -> Vec<u32> {
        let path = path(&sequence.draft.drafts, node).into_iter();
        path.map(|node| sequence.draft.drafts[node].token).collect()
    };
    let (prompt, sparing) = (
        sequence.request.prompt.tokens.len(),
        sequence.draw.sparing.as_deref(),
    );
    let past = Past::new(&sequence.text.tokens, prompt, sparing);
    let warper = &sequence.draw.warper;
    let nodes: Vec<Node<State, DraftRow>> = sequence.draft.drafts.iter().map(node).collect();
    let row = |node: Option<NodeId>| {
        if node.is_some_and(|node| sequence.draft.drafts[node].is_last) {
            return Ok(None);
        }
        let index = node.map_or(0, |node| node + 1);
        let allowed = masks.map_or(Allowed::All, |masks| Allowed::Words(masks[index].mask.words()));
        let counted = past.counted(drafted(node), allowed);
        let Read { logits, measured } = rows[index];
        let row = warper.row_of(logits, measured, past.history(&counted))?;
        Ok(Some((row, allowed)))
    };
    let mut chooser = Seeded::new(sequence.request.sampling.seed, sequence.stream());
    let position = sequence.draw.walk.position();
    let walk = &mut sequence.draw.walk;
    let (verified, steered) = match (inquired, &sequence.phase) {
        (Some(inquired), _) => {
            *walk = inquired.walk;
            if let Some(score) = inquired.score {
                sequence.draw.tilt = score;
            }
            (Ok(inquired.verified), inquired.steered)
        }
        (None, Phase::Scoring { .. }) => (given::along(&nodes, row, walk, &mut chooser), None),
        (None, _) => match &mut asking {
            Some(asking) => {
                let verified = asking.draw(&nodes, row, walk, &mut chooser);
                (verified, asking.finish()?)
            }
            None => {
                if !walk.is_certain() {
                    let lessons =
                        lessons::of(&sequence.draft.drafts, sequence.request.speculation.verification);
                    walk.harvest(&lessons, row).map_err(not_a_law)?;
                }
                (tree(&nodes, row, walk, &mut chooser), None)
            }
        },
    };
    let verified = verified.map_err(not_a_law)?;
    sequence.draw.latest = latest(sequence, &verified, rows, masks)?;
    let own = about(sequence, &verified, (rows, masks), position)?;
    Ok(Drawing {
        verified,
        own,
        steered,
    })
}

/// Returns the last of the drawn tokens, with the entropy of the distribution that it was drawn from, if the
/// request needs it.
fn latest(
    sequence: &Sequence,
    verified: &Verified,
    rows: &[Read<'_>],
    masks: Option<&[Bounds]>,
) -> Result<Option<Latest>, EngineError> {
    let Some(drawn) = verified
        .drawn
        .last()
        .filter(|_| law::wants_entropy(&sequence.request))
    else {
        return Ok(None);
    };
    // Such a request drafts nothing, so there is one row.
    let allowed = masks.map_or(Allowed::All, |masks| Allowed::Words(masks[0].mask.words()));
    let row = warped(sequence, rows[0].logits, (Vec::new(), allowed))?;
    let shares = row
        .part(allowed)
        .shares()
        .into_iter()
        .filter(|&share| share > 0.0);
    Ok(Some(Latest {
        token: drawn.token,
        entropy: shares.map(|share| -share * share.ln()).sum(),
    }))
}

/// Returns the requested tokens after the sequence: the likeliest ones, the likeliest first, and those that
/// are named.
pub(crate) fn rank(
    sequence: &Sequence,
    look: &Look,
    row: &Read<'_>,
    bounds: Option<&Bounds>,
) -> Result<Vec<Ranked>, EngineError> {
    let allowed = bounds.map_or(Allowed::All, |bounds| Allowed::Words(bounds.mask.words()));
    let past = sequence.past();
    let counted = past.counted(Vec::new(), allowed);
    let warper = &sequence.draw.warper;
    let warped = warper.row_of(row.logits, row.measured, past.history(&counted));
    let warped = warped.map_err(not_a_law)?;
    let part = warped.part(allowed);
    let (mass, log_mass, log_kept) = (part.mass(), part.log_mass(), part.log_kept());
    let mut wanted = part.top(look.count);
    let named = look.also.iter().map(|&token| (token, part.share(token).ln()));
    let is_new = |named: &(u32, f64)| !wanted.iter().any(|likely| likely.0 == named.0);
    let named: Vec<(u32, f64)> = named.filter(is_new).collect();
    wanted.extend(named);
    let possible = wanted.into_iter().filter(|(_, log_share)| log_share.is_finite());
    let ranked = possible.map(|(token, log_share)| Ranked {
        drawn: Drawn {
            token,
            mass,
            log_mass,
            log_probability: log_share + log_kept,
            log_kept,
        },
        ends: sequence.draw.walk.ends().contains(&token),
        narrowed: bounds
            .filter(|bounds| bounds.is_steered())
            .map(|bounds| bounds.is_preamble),
    });
    let ranked: Vec<Ranked> = ranked.collect();
    match ranked.is_empty() {
        true => Err(dead_end(sequence)),
        false => Ok(ranked),
    }
}

/// Weighs the options that were fed after the sequence: for each row, what may follow it.
pub(crate) fn weigh(
    sequence: &Sequence,
    rows: &[Read<'_>],
    masks: Option<&[Bounds]>,
) -> Result<Vec<Weight>, EngineError> {
    options::weigh(sequence, rows, masks).map_err(not_a_law)
}

/// Returns a draft as a node of a tree.
fn node(draft: &Draft) -> Node<State, DraftRow> {
    Node {
        token: draft.token,
        parent: draft.parent,
        origin: draft::Origin::Model,
        proposal: draft.proposal.clone(),
        chance: None,
        state: draft.state,
    }
}

/// Returns the log of a token's probability among the allowed tokens.
pub(crate) fn log_share(sequence: &Sequence, drawn: &Drawn) -> f64 {
    // Greedy decoding is a filter that keeps one token; its law is reported as at temperature 1.
    let of = match sequence.draw.warper.is_greedy() {
        true => drawn.log_mass,
        false => drawn.log_kept,
    };
    drawn.log_probability - of
}

/// Returns the row that a token is drawn from after these drafts; for a greedy sequence that of temperature
/// 1, without filters.
fn warped<'r>(
    sequence: &'r Sequence,
    row: &'r [f32],
    (draft, allowed): (Vec<u32>, Allowed<'_>),
) -> Result<Distribution<'r>, EngineError> {
    let past = sequence.past();
    let counted = past.counted(draft, allowed);
    let row = sequence
        .draw
        .warper
        .row(row, past.history(&counted))
        .map_err(not_a_law)?;
    Ok(match sequence.draw.warper.is_greedy() {
        true => row.uncut(),
        false => row,
    })
}

/// Returns the most likely of the tokens that may be drawn.
fn top(part: &Portion<'_>, count: u8) -> Vec<(u32, f32)> {
    let top = part.top(usize::from(count)).into_iter();
    top.map(|(token, logprob)| (token, logprob as f32)).collect()
}

fn own(sequence: &Sequence, drawn: &Drawn, row: &[f32]) -> Result<Own, EngineError> {
    let Some(wanted) = sequence.request.reporting.logprobs else {
        return Ok(Own::default());
    };
    let count = match sequence.request.reporting.logprobs_of {
        LogprobsOf::Model => wanted,
        LogprobsOf::Allowed => 0,
    };
    if count == 0 && sequence.draw.warper.is_identity() {
        return Ok(Own {
            logprob: Some(drawn.log_probability as f32),
            ..Own::default()
        });
    }
    let row = Distribution::new(row).map_err(not_a_law)?;
    let top = row
        .top(usize::from(count))
        .into_iter()
        .map(|(token, logprob)| (token, logprob as f32));
    Ok(Own {
        logprob: Some(row.log_probability(drawn.token) as f32),
        top: top.collect(),
        ..Own::default()
    })
}

pub(crate) fn not_a_law(error: RowError) -> EngineError {
    EngineError::Model(error.to_string())
}

/// Returns the error for a text after which no allowed token has any probability.
fn dead_end(sequence: &Sequence) -> EngineError {
    match sequence.draw.warper.cuts_before_mask() {
        true => EngineError::FilteredOut {
            filters: sequence.draw.warper.filters(),
        },
        false => EngineError::DeadEnd {
            generated: sequence.generated().len(),
        },
    }
}

/// Returns `true` if the text is given up, and another one begun, where filters that cut before the mask
/// leave nothing to draw: the request has a way out of attempts that fail. Until the text is whole, none of
/// it may be reported.
pub(crate) fn may_begin_anew(sequence: &Sequence) -> bool {
    sequence.draw.warper.cuts_before_mask() && law::has_fallback(&sequence.request)
}

/// Draws locally, with filters that cut after the mask, in place of a law whose filters have left nothing to
/// draw, if the request has a way out of attempts that fail. Returns `false` if it has none.
pub(crate) fn filter_locally(sequence: &mut Sequence) -> bool {
    if !may_begin_anew(sequence) {
        return false;
    }
    let draw = &mut sequence.draw;
    draw.warper = draw.warper.clone().after_mask();
    draw.walk.filter_locally();
    true
}

/// Returns the error for a sequence that will produce no sample.
pub(crate) fn stuck(error: &LawError, sequence: &Sequence) -> EngineError {
    let is_filtered = sequence.draw.warper.cuts_before_mask();
    let is_particle = law::proposal(&sequence.request).is_some();
    let attempts = match error {
        _ if is_filtered && sequence.draw.walk.is_hopeless() => return dead_end(sequence),
        LawError::Exhausted { attempts } if sequence.draw.trie.is_none() => {
            return EngineError::ErrorsExhausted {
                errors: *attempts as usize,
            };
        }
        LawError::Exhausted { attempts } => *attempts,
        _ if sequence.draw.trie.is_none() || is_particle => return dead_end(sequence),
        _ => sequence.draw.walk.failed_attempts(),
    };
    let bound = sequence.draw.trie.as_ref().and_then(|trie| {
        let trie = trie.lock().unwrap_or_else(PoisonError::into_inner);
        trie.bound(&[])
    });
    EngineError::AttemptsExhausted {
        attempts: attempts as usize,
        bound: bound.unwrap_or(1.0),
    }
}
