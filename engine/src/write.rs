//! Drawn tokens become text: the sequence moves on, the client hears of it, and the answer ends when it should.

use crate::State;
use crate::error::EngineError;
use crate::masks::Bounds;
use crate::model::Row;
use crate::request::{Event, Finish, OnBudget, Origin};
use crate::sample::{self, Drawing, Own, draw, only_the_end_is_left};
use crate::sequence::Sequence;
use lexiform::law::Drawn;
use lexiform::verify::Next;
use lexiform::vocab::{TokenKind, Vocabulary};
use std::time::Duration;

/// Draws from known rows in one go; what is left then is done after the next pass.
const MAX_REPLAYED: usize = 4096;

/// What became of a pass's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Drafts confirmed.
    pub(crate) accepted: usize,
    /// Tokens drawn.
    pub(crate) drawn: usize,
    /// The time since the pass that brought the tokens before these. Attempts that may fail bring none.
    pub(crate) gap: Option<Duration>,
    /// The attempt failed; the sequence must go back to its prompt.
    pub(crate) restart: bool,
}

/// Writes what the rows say.
pub(crate) struct Writer<'a> {
    pub(crate) vocabulary: &'a Vocabulary,
}

impl Writer<'_> {
    /// Draws along the sequence's drafts and appends what was drawn.
    pub(crate) fn write(
        &self,
        sequence: &mut Sequence,
        rows: &[Row<'_>],
        masks: Option<&[Bounds]>,
    ) -> Written {
        if sequence.request.grammar.is_some() && masks.is_none() {
            sequence.fail(EngineError::Panicked("while computing a mask".to_string()));
            return Written::default();
        }
        let first = sequence.generated().len();
        let is_attempt = !sequence.walk.is_certain();
        let drawing = match draw(sequence, rows, masks) {
            Ok(drawing) => drawing,
            Err(error) => {
                sequence.fail(error);
                return Written::default();
            }
        };
        if is_attempt {
            note(sequence, first, rows, &drawing);
        }
        let used = masks
            .unwrap_or_default()
            .iter()
            .take(drawing.verified.drawn.len());
        if let Some(number) = used.clone().position(|bounds| bounds.steered) {
            sequence.steer(first + number);
        }
        let drawn = !drawing.verified.drawn.is_empty();
        let gap = drawn.then(|| sequence.moments.drawn()).flatten();
        Written {
            gap: gap.filter(|_| !is_attempt),
            ..self.take(sequence, drawing)
        }
    }

    /// Goes on from rows that an earlier attempt left, as far as they are known.
    pub(crate) fn replay(&self, sequence: &mut Sequence) {
        for _ in 0..MAX_REPLAYED {
            let (Some(grammar), Some(state)) = (&sequence.request.grammar, sequence.state) else {
                return;
            };
            let position = sequence.generated().len();
            let Some(row) = sequence.replay.row(position).map(<[f32]>::to_vec) else {
                return;
            };
            let bounds = sequence.bounds(grammar, state, 0);
            if self
                .write(sequence, &[Row::from(&row[..])], Some(&[bounds]))
                .restart
            {
                sequence.restart();
            }
            if sequence.closed {
                return;
            }
        }
    }

    fn take(&self, sequence: &mut Sequence, drawing: Drawing) -> Written {
        let Drawing { verified, own } = drawing;
        let drawn = verified.drawn.len();
        sequence.drafted += sequence.drafts.len();
        sequence.accepted += verified.accepted;
        let written = |restart| Written {
            accepted: verified.accepted,
            drawn,
            gap: None,
            restart,
        };
        match &verified.next {
            Next::Restart => return written(true),
            Next::Stuck(error) => {
                let error = sample::stuck(error, sequence);
                sequence.fail(error);
                return written(false);
            }
            Next::Open | Next::Ended => (),
        }
        let origins: Vec<Origin> = sequence.drafts[..verified.accepted]
            .iter()
            .map(|draft| draft.origin)
            .collect();
        for (number, (drawn, own)) in verified.drawn.iter().zip(own).enumerate() {
            let last = number + 1 == verified.drawn.len();
            let origin = origins.get(number).copied().unwrap_or(Origin::Sampled);
            self.append(sequence, drawn, own, origin, last && verified.next == Next::Ended);
            if sequence.closed {
                break;
            }
        }
        written(false)
    }

    /// Makes a drawn token part of the sequence and tells the client.
    fn append(&self, sequence: &mut Sequence, drawn: &Drawn, own: Own, origin: Origin, ended: bool) {
        let token = drawn.token;
        sequence.tokens.push(token);
        if let (Some(grammar), Some(state)) = (&sequence.request.grammar, sequence.state) {
            sequence.state = grammar.step(state, token);
            if sequence.state.is_none() {
                let message = format!("token {token} is in the mask, but the grammar does not step over it");
                return sequence.fail(EngineError::Model(message));
            }
        }
        if ended {
            return sequence.finish(Finish::Stop);
        }
        sequence.report(Event::Token {
            token,
            bytes: self.text(token),
            logprob: own.logprob,
            log_mass: drawn.log_mass as f32,
            log_share: sample::log_share(sequence, drawn) as f32,
            top: own.top,
            origin,
        });
        self.end(sequence);
    }

    /// Ends the answer where nothing but its end is left, or no token for it.
    fn end(&self, sequence: &mut Sequence) {
        if sequence.ends_early()
            && let Some(state) = sequence.state
            && only_the_end_is_left(sequence, state, 0)
        {
            if is_cut_short(sequence, state) {
                sequence.steer(sequence.generated().len());
            }
            sequence.finish(Finish::Stop);
        } else if sequence.remaining() == 0 {
            match sequence.request.on_budget {
                OnBudget::Complete | OnBudget::Cut => sequence.finish(Finish::Length),
                OnBudget::Fail => sequence.fail(EngineError::OutOfTokens {
                    max_tokens: sequence.request.max_tokens,
                }),
            }
        }
    }

    fn text(&self, token: u32) -> Vec<u8> {
        match self.vocabulary.kind(token) {
            TokenKind::Text | TokenKind::Mark => self.vocabulary.bytes(token).to_vec(),
            _ => Vec::new(),
        }
    }
}

/// Whether the text would go on if there were more tokens for it.
fn is_cut_short(sequence: &Sequence, state: State) -> bool {
    let grammar = sequence.request.grammar.as_ref();
    grammar.is_some_and(|grammar| sequence.bounds(grammar, state, 0).steered)
}

/// Keeps the rows of an attempt for the next one.
fn note(sequence: &mut Sequence, first: usize, rows: &[Row<'_>], drawing: &Drawing) {
    let drawn = &drawing.verified.drawn;
    // A failed attempt has seen one row more than it drew tokens.
    for (number, row) in rows.iter().enumerate().take(drawn.len() + 1) {
        sequence.replay.note_row(first + number, row.logits);
        if let Some(drawn) = drawn.get(number) {
            sequence.replay.note_token(first + number, drawn.token);
        }
    }
}
