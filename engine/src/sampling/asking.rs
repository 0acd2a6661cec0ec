//! Tokens that are asked about one by one, in place of a mask: of the grammar, of monitors, or of both.
//!
//! ```text
//!   row ─ draw ─► token ─ allowed? ─┬─ yes ─► the token, and a weight
//!             ▲                     └─ no ── not this one again ─┐
//! └──────────────────────────────────────────────────┘ after PATIENCE of them masks say what is left
//! ```
//!
//! The drawing is [`lexiform_law::asked`]; here are the answers. A draft is verified by drawing once at each
//! of its places. The grammar knows its states there already, so asking it costs one step a token. A monitor
//! is led along the path that is drawn; it is a program of the caller, so what asks it runs on another thread
//! ([`inquiry`](super::inquiry)).

use crate::error::{EngineError, MonitorProblem};
use crate::grammar::masks::Finder;
use crate::request::Watched;
use crate::sequence::Sequence;
use crate::speculation::draft::path;
use crate::{Grammar, State};
use lexiform_law::draft::{Node, NodeId};
use lexiform_law::monitor::{Failure, MonitorState, ProductState};
use lexiform_law::verify::{Verified, down};
use lexiform_law::{Allowed, Ask, Row, RowError, Seeded, Walk};

/// After so many tokens in a row that are not allowed, masks are looked at. A mask that was met before is
/// cheaper than a few steps, one that was not costs some hundreds.
const PATIENCE: usize = 32;

/// What can be asked at the places that a pass has rows of.
pub(super) struct Asking {
    /// The grammar, where it is asked.
    grammar: Option<Grammar>,
    /// The state after the text and after each draft, and the tokens left there, if they are counted.
    places: Vec<(Option<State>, Option<usize>)>,
    monitors: Option<Monitors>,
    width: usize,
    /// The tokens drawn before this place.
    drawn: usize,
    at: usize,
    refused: usize,
    steered: Option<usize>,
    failure: Option<EngineError>,
}

/// The monitors of a request, at the place where the walk is.
struct Monitors {
    watched: Vec<Watched>,
    joint: ProductState,
}

impl Monitors {
    /// The failure of one of them, by its name.
    fn error(&self, failure: Failure) -> EngineError {
        monitor_error(
            &self.watched,
            self.joint.last_refusal(),
            MonitorProblem::Failed(failure.0),
        )
    }
}

/// What a request is told of one of its monitors.
pub(crate) fn monitor_error(
    watched: &[Watched],
    number: Option<usize>,
    problem: MonitorProblem,
) -> EngineError {
    let name = number.and_then(|number| watched.get(number));
    EngineError::Monitor {
        monitor: name.map_or_else(String::new, |watched| watched.name.to_string()),
        problem,
    }
}

impl Asking {
    /// What can be asked about this sequence, over rows of so many tokens.
    pub(super) fn of(sequence: &Sequence, width: usize) -> Self {
        let budget = |node: Option<NodeId>| {
            let ahead = path(&sequence.draft.drafts, node).len();
            Some(sequence.budget()?.saturating_sub(ahead))
        };
        let drafts = sequence.draft.drafts.iter().enumerate();
        let after = drafts.map(|(node, draft)| (draft.state, budget(Some(node))));
        Asking {
            grammar: sequence
                .request
                .constraints
                .grammar
                .clone()
                .filter(|_| sequence.is_asked()),
            places: [(sequence.grammar.state, budget(None))]
                .into_iter()
                .chain(after)
                .collect(),
            monitors: None,
            width,
            drawn: 0,
            at: 0,
            refused: 0,
            steered: None,
            failure: None,
        }
    }

    /// The same, with monitors that have read the text.
    pub(super) fn with(mut self, watched: &[Watched], joint: ProductState) -> Self {
        self.monitors = Some(Monitors {
            watched: watched.to_vec(),
            joint,
        });
        self
    }

    /// Draws down a drafted tree.
    pub(super) fn draw<'m, R: Row<f64>>(
        &mut self,
        nodes: &[Node<State>],
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
            drawn += 1;
            Ok(Some(walk.next_asked(&row, allowed, self, chooser)))
        })
    }

    /// The first drawn token that the tokens left have steered.
    ///
    /// # Errors
    /// Somebody had no answer; what was drawn means nothing then.
    pub(super) fn finish(&mut self) -> Result<Option<usize>, EngineError> {
        self.failure.take().map_or(Ok(self.steered), Err)
    }

    /// The number of the monitor that said no last.
    pub(super) fn refused_by(&self) -> Option<usize> {
        self.monitors.as_ref()?.joint.last_refusal()
    }

    /// Whether a token may come here.
    fn may_come(&mut self, token: u32) -> Result<bool, EngineError> {
        let (state, left) = self.places[self.at];
        let left = left.map(|left| left.saturating_sub(1));
        if let Some(grammar) = &self.grammar {
            let next = state.map(|state| grammar.try_step(state, token)).transpose()?;
            let Some(next) = next.flatten() else {
                return Ok(false);
            };
            if left.is_some_and(|left| !grammar.completes_within(next, left)) {
                self.steered.get_or_insert(self.drawn);
                return Ok(false);
            }
        }
        match &mut self.monitors {
            Some(monitors) => {
                let answer = monitors.joint.allows(token, left);
                answer.map_err(|failure| monitors.error(failure))
            }
            None => Ok(true),
        }
    }

    /// A mask of the tokens that may come here, as far as masks know.
    fn mask(&mut self) -> Result<Vec<u32>, EngineError> {
        let (state, left) = self.places[self.at];
        let mut words = match (&self.grammar, state) {
            (Some(grammar), Some(state)) => {
                let bounds = Finder::default().bounds(grammar, state, left)?;
                bounds.mask.words().to_vec()
            }
            _ => Allowed::All.to_words(self.width).into_owned(),
        };
        if let Some(monitors) = &mut self.monitors {
            let narrowed = monitors.joint.narrow(&mut words, left);
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
            // Nothing can be drawn, and nobody needs to be asked about it.
            (Some(_), _) => return Some(Vec::new()),
            (None, false) => return None,
            (None, true) => self.mask(),
        };
        Some(mask.unwrap_or_else(|error| {
            self.failure = Some(error);
            Vec::new()
        }))
    }
}
