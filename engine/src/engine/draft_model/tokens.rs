//! Drafts of a small model whose rows are over the tokens of the main one: because both have the
//! [same](super::same) tokens, or because the rows were [mapped](super::intersection) to them.
//!
//! The small model draws from its own rows, inside the same mask and warping as the main model. The random
//! numbers depend on how the request verifies drafts ([`Verification`]):
//!
//! * by the residual rule and by k-seq: with separate numbers, and the row is kept with the token until it
//!   is verified. From then on the token *must* be verified, whatever it is: dropping it because it ends the
//!   text, or because its grammar is slow to answer what follows, would make such tokens rarer than under
//!   the law. So it remains as the last token of the draft, with nothing after it.
//! * by drawing once: with the very numbers that the main model's draws will use, so that where the two
//!   models agree about a row, they draw the same token even at a high temperature.
//!
//! Several candidates at a position form a comb: each pass continues after the first of them, whatever it
//! is, and the others are used if it is rejected.
//!
//! ```text
//!   text ─┬─ a ─┬─ d ─┬─ g       rows of the draft model: after the text, a and ad
//!         ├─ b  ├─ e  ├─ h
//!         └─ c  └─ f  └─ i
//! ```

use crate::config::{Drafting, EngineConfig};
use crate::engine::grammar_task::GrammarTasks;
use crate::error::EngineError;
use crate::grammar::masks::Bounds;
use crate::model::logits::{Logits, Row};
use crate::request::Verification;
use crate::sampling::Columns;
use crate::sampling::crew;
use crate::sequence::Sequence;
use crate::speculation::draft::{Draft, Source, path};
use crate::speculation::policy::svip;
use crate::speculation::row::DraftRow;
use lexiform::vocab::Vocabulary;
use lexiform_law::draft::{NodeId, Proposal};
use lexiform_law::{Allowed, Distribution, Part, Place, Purpose, Row as _, Seeded};
use std::sync::Arc;
use std::time::Duration;

/// The tokens that were drawn for a sequence.
struct Drawn {
    index: usize,
    /// The draft that they are below; `None` for the text.
    below: Option<NodeId>,
    /// The tokens, which are siblings; empty if only the mask after the existing drafts is requested.
    candidates: Vec<Draft>,
    /// `true` if nothing is to be drafted after them, because the row was unsure.
    is_last: bool,
}

/// A sequence that drafts, the position at which it does, and what is allowed there.
struct Active {
    index: usize,
    tip: Option<NodeId>,
    bounds: Option<Bounds>,
}

/// The grammar's answer about tokens that were drawn.
struct Extended {
    drafts: Vec<Draft>,
    /// The position at which the draft continues, and what is allowed there; `None` if it does not continue.
    next: Option<(Option<NodeId>, Option<Bounds>)>,
}

/// A small model that reads the texts of sequences, and whose rows are over the tokens of the main one.
pub(super) trait TokenModel {
    /// A text to be read, as plain data.
    type Passage;

    /// Reserves room for the text of a sequence with its drafts up to one of them; returns `false` if that
    /// cannot be read.
    fn prepare(&mut self, sequence: &mut Sequence, tip: Option<NodeId>) -> bool;

    /// Returns that text, once it is prepared.
    fn passage(&self, sequence: &Sequence, tip: Option<NodeId>) -> Self::Passage;

    /// Reads the new tokens of each text; returns, for each text that was read to its end, the index of its
    /// row.
    fn forward(&mut self, passages: &[Self::Passage]) -> Result<(Logits, Vec<Option<usize>>), EngineError>;
}

/// Draws drafts from the rows of a [`TokenModel`].
pub(super) struct TokenDrafter {
    pub(super) columns: Columns,
    pub(super) vocabulary: Arc<Vocabulary>,
    draw_threads: usize,
    /// `true` if drafts end where the model is unsure.
    is_svip: bool,
}

impl TokenDrafter {
    /// Returns a drafter for rows of `width` columns.
    pub(super) fn new(vocabulary: Arc<Vocabulary>, width: usize, config: &EngineConfig) -> Self {
        TokenDrafter {
            columns: Columns::new(&vocabulary, width),
            draw_threads: config.draw_threads,
            is_svip: config.drafting == Drafting::Svip,
            vocabulary,
        }
    }

    /// Returns the columns out of `width` that are not tokens.
    pub(super) fn left_out(&self, width: usize) -> Vec<usize> {
        self.columns.left_out(width)
    }

    /// Extends the drafts of these sequences after the [tip](DraftState::tip) of each, by one position per
    /// pass. A sequence whose mask does not arrive within the grace period drafts no further. Returns the
    /// number of passes that this took.
    pub(super) fn propose(
        &self,
        model: &mut impl TokenModel,
        sequences: &mut [&mut Sequence],
        grammar_tasks: &GrammarTasks,
        grace: Duration,
    ) -> Result<usize, EngineError> {
        let mut rounds = 0;
        let mut first = Vec::new();
        for (index, sequence) in sequences.iter_mut().enumerate() {
            let below = sequence.draft.tip;
            if may_go_on(sequence, below) && model.prepare(sequence, below) {
                first.push(Drawn {
                    index,
                    below,
                    candidates: Vec::new(),
                    is_last: false,
                });
            }
        }
        let mut active = read(&self.vocabulary, sequences, &first, grammar_tasks, grace);
        while !active.is_empty() {
            let passages = active
                .iter()
                .map(|active| model.passage(sequences[active.index], active.tip));
            let (logits, rows) = model.forward(&passages.collect::<Vec<_>>())?;
            let drawn = self.draw(sequences, &active, logits, rows);
            active = read(&self.vocabulary, sequences, &drawn, grammar_tasks, grace);
            rounds += 1;
            active.retain(|active| {
                let is_last = drawn
                    .iter()
                    .any(|drawn| drawn.index == active.index && drawn.is_last);
                let sequence = &mut *sequences[active.index];
                !is_last && may_go_on(sequence, active.tip) && model.prepare(sequence, active.tip)
            });
        }
        Ok(rounds)
    }

    /// Draws the next drafts of each of these sequences that has a row, on several threads if there is much
    /// to draw from.
    fn draw(
        &self,
        sequences: &mut [&mut Sequence],
        active: &[Active],
        mut logits: Logits,
        rows: Vec<Option<usize>>,
    ) -> Vec<Drawn> {
        for row in logits.rows_mut() {
            self.columns.clean(row);
        }
        let threads = crew::threads(self.draw_threads, logits.numbers());
        let mut rows = active.iter().zip(rows).peekable();
        let mut tasks = Vec::new();
        for (index, sequence) in sequences.iter_mut().enumerate() {
            let Some((active, row)) = rows.next_if(|(active, _)| active.index == index) else {
                continue;
            };
            let row = row.map(|row| self.columns.of(&logits, row));
            tasks.extend(row.map(|row| (sequence, row, active)));
        }
        let is_svip = self.is_svip;
        let drawn = crew::each(tasks, threads, |(sequence, row, active)| {
            let allowed = match (&active.bounds, &sequence.request.constraints.grammar) {
                (Some(bounds), _) => Allowed::Words(bounds.mask.words()),
                (None, None) => Allowed::All,
                (None, Some(_)) => return None,
            };
            draw(sequence, row, (allowed, active), is_svip)
        });
        drawn.into_iter().flatten().collect()
    }
}

/// Returns `true` if there is room for more drafts after one, and anything may follow it.
pub(super) fn may_go_on(sequence: &Sequence, tip: Option<NodeId>) -> bool {
    beside(sequence) > 0 && !tip.is_some_and(|tip| sequence.draft.drafts[tip].is_last)
}

/// Returns the tokens of a draft and of its ancestors.
pub(super) fn drafted(sequence: &Sequence, tip: Option<NodeId>) -> Vec<u32> {
    let path = path(&sequence.draft.drafts, tip).into_iter();
    path.map(|node| sequence.draft.drafts[node].token).collect()
}

/// Returns the number of siblings to draft at the next position: as many as the request sets, as far as
/// there is room.
fn beside(sequence: &Sequence) -> usize {
    let room = sequence.room().min(sequence.draft.reach);
    let candidates = sequence.request.speculation.candidates.max(1);
    candidates.min(room.saturating_sub(sequence.draft.drafts.len()))
}

/// Drafts the drawn tokens that pay to feed; returns the sequences that continue, with what is allowed next.
/// Without a token this requests only the mask. Sampled tokens are always drafted; see the module.
fn read(
    vocabulary: &Arc<Vocabulary>,
    sequences: &mut [&mut Sequence],
    drawn: &[Drawn],
    grammar_tasks: &GrammarTasks,
    grace: Duration,
) -> Vec<Active> {
    let work = |drawn: &Drawn| {
        let (mut outlook, vocabulary) = (grammar_tasks.outlook(sequences[drawn.index]), vocabulary.clone());
        let (below, candidates) = (drawn.below, drawn.candidates.clone());
        let work = move || {
            let first = outlook.drafts.len();
            let (goes_on, tip) = match candidates.is_empty() {
                true => (true, below),
                false => (outlook.extend(candidates, &vocabulary)?, Some(first)),
            };
            let next = match goes_on {
                true => Some((tip, outlook.bounds(tip.map_or(0, |tip| tip + 1))?)),
                false => None,
            };
            let drafts = outlook.drafts.split_off(first);
            Ok(Extended { drafts, next })
        };
        (sequences[drawn.index].request.limits.owner.clone(), work)
    };
    // Without a grammar nothing can take long.
    let has_grammar = |drawn: &&Drawn| sequences[drawn.index].request.constraints.grammar.is_some();
    let (slow, quick): (Vec<&Drawn>, Vec<&Drawn>) = drawn.iter().partition(has_grammar);
    let mut found: Vec<_> = quick.iter().map(|drawn| work(drawn).1().ok()).collect();
    found.extend(grammar_tasks.together(slow.iter().map(|drawn| work(drawn)).collect(), grace));
    let mut going = Vec::new();
    for (drawn, found) in quick.into_iter().chain(slow).zip(found) {
        let sequence = &mut *sequences[drawn.index];
        let Some(Extended { drafts, next }) = found else {
            sequence.cool_down();
            let is_sampled = |draft: &&Draft| draft.proposal.is_sampled();
            sequence
                .draft
                .drafts
                .extend(drawn.candidates.iter().filter(is_sampled).cloned());
            continue;
        };
        sequence.draft.drafts.extend(drafts);
        going.extend(next.map(|(tip, bounds)| Active {
            index: drawn.index,
            tip,
            bounds,
        }));
    }
    // Feeds and rows are in the order of the sequences.
    going.sort_by_key(|active| active.index);
    going
}

/// Draws the next drafts: with the numbers of the main model's draws, or with separate ones.
fn draw(
    sequence: &Sequence,
    row: Row<'_>,
    (allowed, active): (Allowed<'_>, &Active),
    is_svip: bool,
) -> Option<Drawn> {
    let drafted = drafted(sequence, active.tip);
    let place = sequence.draw.walk.place_after(drafted.len() as u32);
    let past = sequence.past();
    let counted = past.counted(drafted, allowed);
    let warper = &sequence.draw.warper;
    let row = warper
        .row_of(row.logits, row.measured, past.history(&counted))
        .ok()?;
    let is_last = is_svip && svip::ends_after(row.part(allowed).shares());
    let drawn = candidates(sequence, row, (allowed, active.tip), place);
    let draft = |(token, proposal)| Draft {
        parent: active.tip,
        token,
        source: Source::Model,
        state: None,
        proposal,
        is_last: true,
    };
    (!drawn.is_empty()).then(|| Drawn {
        index: active.index,
        below: active.tip,
        candidates: drawn.into_iter().map(draft).collect(),
        is_last,
    })
}

/// Draws the sibling candidates, in the order in which they are tried. How many are drawn depends only on
/// the room: a rule that judges them together uses their number.
fn candidates(
    sequence: &Sequence,
    row: Distribution<'_>,
    (allowed, tip): (Allowed<'_>, Option<NodeId>),
    place: Place,
) -> Vec<(u32, Proposal<DraftRow>)> {
    let count = beside(sequence);
    let mut chooser = Seeded::new(sequence.request.sampling.seed, sequence.stream());
    // A later pass that drafts for this position again uses other numbers. A token that is drafted again
    // because it was never verified stays the same.
    let pass =
        (sequence.draft.drafted as u32).wrapping_mul(sequence.request.speculation.candidates.max(1) as u32);
    let number = |candidate: usize| {
        place
            .to(Purpose::Draft)
            .round(pass.wrapping_add(candidate as u32))
    };
    match sequence.verification() {
        Verification::DrawOnce => {
            let first = row.part(allowed).draw(place, &mut chooser);
            let likely = row.part(allowed).top(if count > 1 { count } else { 0 });
            let likely = likely.into_iter().map(|(token, _)| token);
            let others = likely.filter(|&token| Some(token) != first);
            let all = first.into_iter().chain(others).take(count);
            all.map(|token| (token, Proposal::Point)).collect()
        }
        Verification::KSeq => {
            let drawn: Vec<u32> = {
                let part = row.part(allowed);
                let draw = |candidate| part.draw(number(candidate), &mut chooser);
                (0..count).filter_map(draw).collect()
            };
            let row = Arc::new(DraftRow::Model(row.into_owned()));
            let independent = |token| (token, Proposal::Independent(row.clone()));
            drawn.into_iter().map(independent).collect()
        }
        Verification::Residual => {
            // What was drawn there from a store is a sibling, too.
            let beside = sequence.draft.drafts.iter();
            let beside = beside.filter(|draft| draft.parent == tip && draft.proposal.is_sampled());
            let beside: Vec<u32> = beside.map(|draft| draft.token).collect();
            let mut drawn = Vec::with_capacity(count);
            for candidate in 0..count {
                let before = [&beside[..], &drawn[..]].concat();
                let left = (!before.is_empty()).then(|| allowed.without(&before, row.len()));
                let part = row.part(left.as_deref().map_or(allowed, Allowed::Words));
                let Some(token) = part.draw(number(candidate), &mut chooser) else {
                    break;
                };
                drawn.push(token);
            }
            let row = Arc::new(DraftRow::Model(row.into_owned()));
            let sampled = |token| (token, Proposal::Sampled(row.clone()));
            drawn.into_iter().map(sampled).collect()
        }
    }
}
