//! Turns drawn tokens into text: the sequence advances, the client receives them, and the answer ends when it
//! should.

use crate::error::EngineError;
use crate::grammar::masks::Bounds;
use crate::metrics::stats::Stats;
use crate::model::logits::Row;
use crate::request::driver::{Look, Ranked};
use crate::request::{Event, Finish, Origin};
use crate::sampling::observed::{self, Turn};
use crate::sampling::{self, Drawing, Found, Own, draw, guesses};
use crate::sequence::steering::Narrowing;
use crate::sequence::{Phase, Sequence};
use crate::speculation::draft::{Draft, Source};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_law::draft::NodeId;
use lexiform_law::verify::Next;
use lexiform_law::{Drawn, Step};
use std::sync::Arc;
use std::time::Duration;

/// The maximum number of consecutive draws from known rows; the rest is done after the next pass.
const MAX_REPLAYED: usize = 4096;

/// The length up to which every position of a draft is counted.
const COUNTED_PLACES: usize = 32;

/// The result of a pass for a sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// The number of tokens drafted.
    pub(crate) drafted: usize,
    /// The drafts confirmed, from the first after the text down.
    pub(crate) accepted: Vec<NodeId>,
    /// The number of tokens drawn.
    pub(crate) drawn: usize,
    /// The time since the pass that brought the previous tokens. Attempts that may fail have none.
    pub(crate) gap: Option<Duration>,
    /// The abandoned text, if the attempt failed and the sequence returned to its prompt.
    pub(crate) left: Option<Arc<Vec<u32>>>,
}

impl Written {
    /// Adds the result to the statistics of the engine.
    pub(crate) fn count(&self, stats: &mut Stats) {
        stats.drafts += u64::from(self.drafted > 0);
        stats.drafted += self.drafted as u64;
        stats.accepted += self.accepted.len() as u64;
        stats.generated += self.drawn as u64;
        let places = self.accepted.len().min(COUNTED_PLACES);
        if stats.accepted_at.len() < places {
            stats.accepted_at.resize(places, 0);
        }
        for place in &mut stats.accepted_at[..places] {
            *place += 1;
        }
    }
}

/// Writes the results of rows into sequences.
pub(crate) struct Writer<'a> {
    pub(crate) vocabulary: &'a Vocabulary,
    /// The turn of the sequences whose rows are learned from.
    pub(crate) turn: Turn,
}

impl Writer<'_> {
    /// Draws along the sequence's drafts and appends the drawn tokens.
    pub(crate) fn write(
        &self,
        sequence: &mut Sequence,
        found: Found<'_>,
        masks: Option<&[Bounds]>,
    ) -> Written {
        if sequence.is_masked() && masks.is_none() {
            sequence.fail(EngineError::Panicked("without a mask".to_string()));
            return Written::default();
        }
        let first = sequence.generated().len();
        let is_attempt = !sequence.draw.walk.is_certain();
        let drawing = match draw(sequence, found, masks) {
            Ok(drawing) => drawing,
            Err(error) => {
                sequence.fail(error);
                return Written::default();
            }
        };
        if let (true, Found::Rows(rows)) = (is_attempt, found) {
            note(sequence, first, rows, masks.unwrap_or_default(), &drawing);
        }
        self.note_steering(sequence, (found, masks), (first, &drawing));
        let drawn = !drawing.verified.drawn.is_empty();
        let gap = drawn.then(|| sequence.report.moments.drawn()).flatten();
        Written {
            gap: gap.filter(|_| !is_attempt),
            ..self.take(sequence, drawing)
        }
    }

    /// Records where the remaining token budget narrowed the choice of the drawn tokens.
    fn note_steering(
        &self,
        sequence: &mut Sequence,
        (found, masks): (Found<'_>, Option<&[Bounds]>),
        (first, drawing): (usize, &Drawing),
    ) {
        let drawn = &drawing.verified.drawn;
        for (number, row) in rows_of(&drawing.verified.path).take(drawn.len()).enumerate() {
            let Some(bounds) = masks
                .map(|masks| &masks[row])
                .filter(|bounds| bounds.is_steered())
            else {
                continue;
            };
            let is_diverted = match found {
                Found::Rows(rows) => bounds.is_diverted(rows[row].logits),
                // Where a mask is narrowed, rows are not drawn from before they are inspected.
                Found::Drawn { .. } => false,
            };
            let narrowing = match is_diverted {
                _ if bounds.is_preamble => Narrowing::Preamble,
                _ if bounds.mask.iter().all(|token| self.vocabulary.is_eos(token)) => Narrowing::Ended,
                true => Narrowing::Diverted,
                false => Narrowing::Aside,
            };
            sequence.draw.steering.note(first + number, narrowing);
        }
        if let Some((number, is_preamble)) = drawing.steered {
            let is_end = drawn
                .get(number)
                .is_some_and(|drawn| self.vocabulary.is_eos(drawn.token));
            // A token was drawn and refused in its place.
            let narrowing = match (is_preamble, is_end) {
                (true, _) => Narrowing::Preamble,
                (false, true) => Narrowing::Ended,
                (false, false) => Narrowing::Diverted,
            };
            sequence.draw.steering.note(first + number, narrowing);
        }
    }

    /// Draws like [`write`](Self::write); if an attempt fails, begins the next one, and continues from rows
    /// that earlier attempts left as far as they are known.
    pub(crate) fn write_on(
        &self,
        sequence: &mut Sequence,
        found: Found<'_>,
        masks: Option<&[Bounds]>,
    ) -> Written {
        match &sequence.phase {
            Phase::Ranking(look) => {
                let look = look.clone();
                self.rank(sequence, &look, found, masks);
                return Written::default();
            }
            Phase::Weighing { .. } => {
                self.weigh(sequence, found, masks);
                return Written::default();
            }
            Phase::Waiting | Phase::Reading | Phase::Drawing | Phase::Scoring { .. } => (),
        }
        let drafted = sequence.draft.drafts.len();
        let (first, guess) = (sequence.generated().len(), sequence.guess());
        let before = observed::before(sequence, self.turn).filter(|_| sequence.phase == Phase::Drawing);
        let written = Written {
            drafted,
            ..self.write(sequence, found, masks)
        };
        match &mut sequence.phase {
            Phase::Scoring { given } => {
                given.drain(..written.drawn);
                // A pass may have had no room for the others.
                sequence.grammar.is_due |= !given.is_empty();
            }
            _ if written.drawn > 0 => self.learn(sequence, &written.accepted, guess, (first, masks)),
            _ => (),
        }
        if let Some(before) = before {
            let left = written.left.as_ref().map(|left| left.as_slice());
            observed::teach(sequence, &before, (found, masks), (&written.accepted, left));
            guesses::take(sequence, (found, masks), &written.accepted);
        }
        sequence.draft.drafts.clear();
        if written.left.is_some() {
            sequence.restart();
            self.replay(sequence);
        }
        written
    }

    /// Ranks the requested tokens after a sequence.
    fn rank(&self, sequence: &mut Sequence, look: &Look, found: Found<'_>, masks: Option<&[Bounds]>) {
        let Found::Rows([row, ..]) = found else {
            return sequence.fail(EngineError::Panicked("without a row".to_string()));
        };
        let bounds = masks.and_then(<[Bounds]>::first);
        match sampling::rank(sequence, look, row, bounds) {
            Ok(ranked) => sequence.draw.ranked = ranked,
            Err(error) => sequence.fail(error),
        }
    }

    /// Weighs the options that were fed after a sequence.
    fn weigh(&self, sequence: &mut Sequence, found: Found<'_>, masks: Option<&[Bounds]>) {
        let Found::Rows(rows) = found else {
            return sequence.fail(EngineError::Panicked("without rows".to_string()));
        };
        match sampling::weigh(sequence, rows, masks) {
            Ok(weighed) => sequence.draw.weighed = weighed,
            Err(error) => sequence.fail(error),
        }
        sequence.draft.drafts.clear();
    }

    /// Continues with a token that was found by ranking a sequence of the same text.
    ///
    /// # Errors
    /// Fails if the sequence is in the middle of an attempt of the global law, or has ended.
    pub(crate) fn take_ranked(&self, sequence: &mut Sequence, ranked: &Ranked) -> Result<(), EngineError> {
        let drawn = &ranked.drawn;
        let place = sequence.generated().len();
        let step = match sequence.report.closed {
            true => None,
            false => sequence.draw.walk.take(drawn.clone()),
        };
        let Some(step) = step else {
            return Err(EngineError::NoSuchPlace {
                place,
                tokens: place,
                told: place,
            });
        };
        if let Some(is_preamble) = ranked.narrowed {
            let is_last = place + 1 >= sequence.request.limits.max_tokens;
            let narrowing = match step {
                _ if is_preamble => Narrowing::Preamble,
                Step::End(_) if is_last => Narrowing::Ended,
                _ => Narrowing::Aside,
            };
            sequence.draw.steering.note(place, narrowing);
        }
        let own = Own {
            logprob: sequence
                .request
                .reporting
                .logprobs
                .map(|_| drawn.log_probability as f32),
            ..Own::default()
        };
        self.append(sequence, drawn, own, None, matches!(step, Step::End(_)));
        Ok(())
    }

    /// Records the fate of drafts; if there were none, whether a guess at the token with this number was
    /// right. A token that would never be drafted is ignored: an end, or one that the grammar does not allow.
    fn learn(
        &self,
        sequence: &mut Sequence,
        accepted: &[NodeId],
        guess: Option<u32>,
        (number, masks): (usize, Option<&[Bounds]>),
    ) {
        sequence.draft.record.drew(1 + accepted.len());
        sequence.draft.record.verified(&sequence.draft.drafts, accepted);
        if let Some(store) = &sequence.draft.store {
            store.judge(&sequence.draft.drafts, accepted);
        }
        let is_draft = |&token: &u32| {
            let is_allowed = masks.is_none_or(|masks| masks[0].mask.contains(token));
            is_allowed && !self.vocabulary.is_eos(token)
        };
        let drawn = sequence.generated().get(number).copied();
        if let Some((guess, drawn)) = guess.filter(is_draft).zip(drawn) {
            sequence.draft.record.guessed(guess == drawn);
        }
    }

    fn replay(&self, sequence: &mut Sequence) {
        for _ in 0..MAX_REPLAYED {
            let position = sequence.generated().len();
            let Some(known) = sequence.draw.replay.at(position).cloned() else {
                return;
            };
            let rows = [Row::from(&known.row[..])];
            let masks = [known.bounds];
            if self
                .write(sequence, Found::Rows(&rows), Some(&masks))
                .left
                .is_some()
            {
                sequence.restart();
            } else if let Some(next) = sequence.draw.replay.at(position + 1) {
                // The same token as before leads to the same state.
                (sequence.grammar.state, sequence.grammar.read) =
                    (Some(next.state), sequence.text.tokens.len());
            }
            if sequence.report.closed || sequence.has_unread() {
                return;
            }
        }
    }

    fn take(&self, sequence: &mut Sequence, drawing: Drawing) -> Written {
        let Drawing { verified, own, .. } = drawing;
        let drawn = verified.drawn.len();
        sequence.draft.drafted += sequence.draft.drafts.len();
        sequence.draft.accepted += verified.accepted();
        let is_prediction = |draft: &&Draft| draft.source == Source::Predicted;
        sequence.draft.predictions += sequence.draft.drafts.iter().filter(is_prediction).count();
        let accepted = verified.path.iter().map(|&node| &sequence.draft.drafts[node]);
        sequence.draft.accepted_predictions += accepted.filter(is_prediction).count();
        let written = |left| Written {
            drafted: 0,
            accepted: verified.path.clone(),
            drawn,
            gap: None,
            left,
        };
        match &verified.next {
            Next::Restart => {
                self.keep(sequence, &verified.drawn, own);
                return written(Some(sequence.text.tokens.clone()));
            }
            Next::Stuck(_) if sampling::filter_locally(sequence) => {
                return written(Some(sequence.text.tokens.clone()));
            }
            Next::Stuck(error) => {
                let error = sampling::stuck(error, sequence);
                sequence.fail(error);
                return written(None);
            }
            Next::Open | Next::Ended => (),
        }
        let accepted = verified
            .path
            .iter()
            .map(|&node| sequence.draft.drafts[node].clone());
        let drafts: Vec<Draft> = accepted.collect();
        for (number, (drawn, own)) in verified.drawn.iter().zip(own).enumerate() {
            let last = number + 1 == verified.drawn.len();
            let draft = drafts.get(number).cloned();
            self.append(sequence, drawn, own, draft, last && verified.next == Next::Ended);
            if sequence.report.closed {
                break;
            }
        }
        written(None)
    }

    /// Appends the remaining tokens of a pass in which the text was rewound.
    fn keep(&self, sequence: &mut Sequence, drawn: &[Drawn], own: Vec<Own>) {
        let kept = (sequence.draw.walk.position() as usize).saturating_sub(sequence.generated().len());
        for (drawn, own) in drawn.iter().zip(own).take(kept) {
            self.append(sequence, drawn, own, None, false);
        }
    }

    /// Appends a drawn token to the sequence, and its event to the report.
    fn append(&self, sequence: &mut Sequence, drawn: &Drawn, own: Own, draft: Option<Draft>, ended: bool) {
        let token = drawn.token;
        sequence.push(token);
        if ended {
            return sequence.finish(Finish::Stop);
        }
        sequence.grammar.is_due = true;
        // A token that was not drafted is read by the grammar on another thread, and so is one whose grammar
        // was too slow.
        if let Some(draft) = draft.as_ref().filter(|draft| !draft.is_last) {
            (sequence.grammar.state, sequence.grammar.read) = (draft.state, sequence.text.tokens.len());
        }
        let origin = draft.map_or(Origin::Sampled, |draft| draft.source.origin());
        sequence.report.push(Event::Token {
            token,
            bytes: self.told(sequence),
            logprob: own.logprob,
            log_mass: drawn.log_mass as f32,
            log_share: sampling::log_share(sequence, drawn) as f32,
            top: own.top,
            candidates: own.candidates,
            origin,
        });
    }

    /// Returns the bytes of the answer's last token that the client does not have already.
    fn told(&self, sequence: &Sequence) -> Vec<u8> {
        let Some((&token, before)) = sequence.generated().split_last() else {
            return Vec::new();
        };
        let bytes = match self.vocabulary.kind(token) {
            TokenKind::Text | TokenKind::Mark => self.vocabulary.bytes(token),
            _ => &[],
        };
        let hidden = sequence.request.unspelled(before, self.vocabulary);
        bytes.get(hidden..).unwrap_or_default().to_vec()
    }
}

/// Returns the rows that were drawn from: that of the text, and those of the accepted drafts.
fn rows_of(path: &[NodeId]) -> impl Iterator<Item = usize> {
    std::iter::once(0).chain(path.iter().map(|node| node + 1))
}

/// Records the rows of an attempt for the next one; after a failed attempt, also those of the drafts where it
/// failed, following the first child at each step.
fn note(sequence: &mut Sequence, first: usize, rows: &[Row<'_>], masks: &[Bounds], drawing: &Drawing) {
    let drawn = &drawing.verified.drawn;
    let states = sequence.draft.drafts.iter().map(|draft| draft.state);
    let states: Vec<_> = std::iter::once(sequence.grammar.state).chain(states).collect();
    // A failed attempt has seen one row more than it drew tokens.
    for (number, row) in rows_of(&drawing.verified.path).take(drawn.len() + 1).enumerate() {
        let Some(state) = states[row] else { return };
        sequence
            .draw
            .replay
            .note_row(first + number, rows[row].logits, (state, &masks[row]));
        if let Some(drawn) = drawn.get(number) {
            sequence.draw.replay.note_token(first + number, drawn.token);
        }
    }
    if drawing.verified.next != Next::Restart {
        return;
    }
    let (mut last, mut place) = (drawing.verified.path.last().copied(), first + drawn.len());
    while let Some((node, draft)) = below(&sequence.draft.drafts, last) {
        let Some(state) = draft.state.filter(|_| !draft.is_last) else {
            return;
        };
        sequence.draw.replay.note_token(place, draft.token);
        (last, place) = (Some(node), place + 1);
        let known = (state, &masks[node + 1]);
        sequence.draw.replay.note_row(place, rows[node + 1].logits, known);
    }
}

/// Returns the first draft after a node, or after the text.
fn below(drafts: &[Draft], node: Option<NodeId>) -> Option<(NodeId, &Draft)> {
    let after = node.map_or(0, |node| node + 1);
    let mut nodes = drafts.iter().enumerate().skip(after);
    nodes.find(|(_, draft)| draft.parent == node)
}
