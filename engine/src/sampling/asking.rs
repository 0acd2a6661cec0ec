//! Tokens that are checked one by one, in place of a mask: by the grammar, by monitors, or by both.
//!
//! ```text
//!   row ─ draw ─► token ─ allowed? ─┬─ yes ─► the token, and a weight
//!             ▲                     └─ no ── not this one again ─┐
//!             └──────────────────────────────────────────────────┘ after PATIENCE of them: masks
//! ```
//!
//! [`lexiform_law::asked`] draws; this module supplies the answers. A draft is verified by drawing once at
//! each of its positions. The grammar already knows its states there, so a query costs one step per token. A
//! monitor is advanced along the path that is drawn; it is a program of the caller, so its queries run on
//! another thread ([`inquiry`](super::inquiry)).

use crate::error::{EngineError, MonitorProblem};
use crate::grammar::left::Left;
use crate::grammar::masks::Finder;
use crate::request::Watched;
use crate::request::watched::monitor_error;
use crate::sequence::Sequence;
use crate::speculation::row::DraftRow;
use crate::{Grammar, State};
use lexiform_law::draft::{Node, NodeId};
use lexiform_law::monitor::sample::Rounds;
use lexiform_law::monitor::{Failure, MonitorState, ProductState};
use lexiform_law::verify::{Verified, down};
use lexiform_law::{Allowed, Ask, Row, RowError, Seeded, Walk};

/// The number of consecutive refused tokens after which masks are used. A mask that was computed before is
/// cheaper than a few steps, a new one costs some hundreds.
const PATIENCE: usize = 32;

/// The constraints that can be queried at the positions of a pass's rows.
pub(super) struct Asking {
    /// The grammar, if it is queried.
    grammar: Option<Grammar>,
    /// The state after the text and after each draft, and the number of tokens left there, if they are
    /// counted.
    places: Vec<(Option<State>, Left)>,
    monitors: Option<Monitors>,
    width: usize,
    /// The number of tokens drawn before this position.
    drawn: usize,
    at: usize,
    refused: usize,
    rounds: Rounds,
    steered: Option<(usize, bool)>,
    failure: Option<EngineError>,
}

/// The monitors of a request, at the current position of the walk.
struct Monitors {
    watched: Vec<Watched>,
    joint: ProductState,
}

impl Monitors {
    /// Returns the failure of one of them as an error with its name.
    fn error(&self, failure: Failure) -> EngineError {
        let problem = MonitorProblem::Failed(failure.0);
        monitor_error(&self.watched, None, self.joint.last_refusal(), problem)
    }
}

impl Asking {
    /// Returns the queries for this sequence, over rows of `width` tokens.
    pub(super) fn of(sequence: &Sequence, width: usize) -> Self {
        let drafts = sequence.draft.drafts.iter().enumerate();
        let after = drafts.map(|(node, draft)| (draft.state, sequence.left_after(Some(node))));
        Asking {
            grammar: sequence
                .request
                .constraints
                .grammar
                .clone()
                .filter(|_| sequence.is_asked()),
            places: [(sequence.grammar.state, sequence.left_after(None))]
                .into_iter()
                .chain(after)
                .collect(),
            monitors: None,
            width,
            drawn: 0,
            at: 0,
            refused: 0,
            rounds: Rounds::default(),
            steered: None,
            failure: None,
        }
    }

    /// Adds monitors that have read the text.
    pub(super) fn with(mut self, watched: &[Watched], joint: ProductState) -> Self {
        self.monitors = Some(Monitors {
            watched: watched.to_vec(),
            joint,
        });
        self
    }

    /// Draws down a tree of drafts.
    pub(super) fn draw<'m, R: Row<f64>>(
        &mut self,
        nodes: &[Node<State, DraftRow>],
        mut rows: impl FnMut(Option<NodeId>) -> Result<Option<(R, Allowed<'m>)>, RowError>,
        walk: &mut Walk,
        chooser: &mut Seeded,
    ) -> Result<Verified, RowError> {
        let mut drawn = 0;
        down(nodes, |node| {
            let Some((row, allowed)) = rows(node)? else {
                return Ok(None);
            };
            if let (Some(node), Some(monitors)) = (node, &mut self.monitors)
                && let Err(failure) = monitors.joint.advance(nodes[node].token)
            {
                self.failure = Some(monitors.error(failure));
            }
            (self.at, self.refused, self.drawn) = (node.map_or(0, |node| node + 1), 0, drawn);
            self.rounds = Rounds::default();
            drawn += 1;
            let known = self.known(allowed);
            let allowed = known.as_deref().map_or(allowed, Allowed::Words);
            Ok(Some(walk.next_asked(&row, allowed, self, chooser)))
        })
    }

    /// Returns the index of the first drawn token that the remaining token budget has steered, and whether
    /// the limit of the preamble did.
    ///
    /// # Errors
    /// Fails if a grammar or monitor had no answer; the drawn tokens are then meaningless.
    pub(super) fn finish(&mut self) -> Result<Option<(usize, bool)>, EngineError> {
        self.failure.take().map_or(Ok(self.steered), Err)
    }

    /// Returns `true` if the grammar is queried.
    pub(super) fn asks_grammar(&self) -> bool {
        self.grammar.is_some()
    }

    /// Returns the number of the monitor that refused last.
    pub(super) fn refused_by(&self) -> Option<usize> {
        self.monitors.as_ref()?.joint.last_refusal()
    }

    /// Returns `true` if a token is allowed here.
    fn may_come(&mut self, token: u32) -> Result<bool, EngineError> {
        let (state, left) = self.places[self.at];
        let after = |left: Option<usize>| left.map(|left| left.saturating_sub(1));
        if let Some(grammar) = &self.grammar {
            let next = state.map(|state| grammar.try_step(state, token)).transpose()?;
            let Some(next) = next.flatten() else {
                return Ok(false);
            };
            let here = state.map(|state| left.at(grammar, state)).transpose()?.flatten();
            if after(here).is_some_and(|left| !grammar.completes_within(next, left)) {
                self.steered.get_or_insert((self.drawn, left.is_preamble()));
                return Ok(false);
            }
        }
        match &mut self.monitors {
            Some(monitors) => {
                let answer = monitors.joint.allows(token, after(left.answer));
                answer.map_err(|failure| monitors.error(failure))
            }
            None => Ok(true),
        }
    }

    /// Returns the part of a mask that monitors are known to allow at most, if they know without being
    /// asked.
    fn known(&mut self, allowed: Allowed<'_>) -> Option<Vec<u32>> {
        let monitors = self.monitors.as_mut()?;
        let mut words = allowed.to_words(self.width).into_owned();
        monitors.joint.narrow_known(&mut words).then_some(words)
    }

    /// Announces tokens to the monitors, except for those that the grammar refuses.
    fn announce(&mut self, tokens: &[u32]) -> Result<(), EngineError> {
        let (state, _) = self.places[self.at];
        let mut left = Vec::with_capacity(tokens.len());
        for &token in tokens {
            let next = match (&self.grammar, state) {
                (Some(grammar), Some(state)) => grammar.try_step(state, token)?.is_some(),
                _ => true,
            };
            if next {
                left.push(token);
            }
        }
        match &mut self.monitors {
            Some(monitors) => {
                let announced = monitors.joint.prepare(&left);
                announced.map_err(|failure| monitors.error(failure))
            }
            None => Ok(()),
        }
    }

    /// Returns a mask of the tokens that are allowed here, as far as masks determine that.
    fn mask(&mut self) -> Result<Vec<u32>, EngineError> {
        let (state, left) = self.places[self.at];
        let mut words = match (&self.grammar, state) {
            (Some(grammar), Some(state)) => {
                let bounds = Finder::default().bounds(grammar, state, (left, false))?;
                bounds.mask.words().to_vec()
            }
            _ => Allowed::All.to_words(self.width).into_owned(),
        };
        if let Some(monitors) = &mut self.monitors {
            let narrowed = monitors.joint.narrow(&mut words, left.answer);
            narrowed.map_err(|failure| monitors.error(failure))?;
        }
        Ok(words)
    }
}

impl Ask for Asking {
    fn allows(&mut self, token: u32) -> bool {
        if self.failure.is_some() {
            return false;
        }
        let answer = self.may_come(token);
        self.refused += 1;
        answer.unwrap_or_else(|error| {
            self.failure = Some(error);
            false
        })
    }

    fn narrow(&mut self) -> Option<Vec<u32>> {
        let mask = match (&self.failure, self.refused == PATIENCE) {
            // Nothing can be drawn, so no query is needed.
            (Some(_), _) => return Some(Vec::new()),
            (None, false) if self.refused == 1 => return self.known(Allowed::All),
            (None, false) => return None,
            (None, true) => self.mask(),
        };
        Some(mask.unwrap_or_else(|error| {
            self.failure = Some(error);
            Vec::new()
        }))
    }
    fn ahead(&mut self) -> usize {
        match &self.monitors {
            Some(monitors) => self.rounds.next_size(monitors.joint.together()),
            None => 1,
        }
    }

    fn prepare(&mut self, tokens: &[u32]) {
        if self.failure.is_none() {
            self.failure = self.announce(tokens).err();
        }
    }
}
