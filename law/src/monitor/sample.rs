//! Samples tokens under a constraint, whatever its coverage.
//!
//! [`verify`] judges a drafted tree without a mask: at each node it draws the token that would be drawn
//! without drafts, by checking single tokens, and descends if that token was drafted. With the row perturbed
//! once, the first allowed token in descending order is the draw, so where the model is right a constraint is
//! checked for two tokens a position, however many there are; and a drafted token that the constraint forbids
//! is never taken, because it is not drawn.

use super::{Coverage, Failure, MonitorState};
use crate::draft::{Node, NodeId};
use crate::law::{Allowed, Ask, Chooser, Row, Sampler, Step, Walk, Weight};
use crate::verify::{Verified, down};

/// A state that is checked for single tokens, and its first failure.
struct Asked<'s> {
    state: &'s mut dyn MonitorState,
    left: Option<usize>,
    width: usize,
    rounds: Rounds,
    failure: Option<Failure>,
}

impl Ask for Asked<'_> {
    fn allows(&mut self, token: u32) -> bool {
        if self.failure.is_some() {
            return false;
        }
        let answer = self.state.allows(token, self.left);
        answer.unwrap_or_else(|failure| {
            self.failure = Some(failure);
            false
        })
    }

    /// After a failure nothing can be drawn, and no further token needs a check.
    fn narrow(&mut self) -> Option<Vec<u32>> {
        if self.failure.is_some() {
            return Some(Vec::new());
        }
        let mut words = Allowed::All.to_words(self.width).into_owned();
        self.state.narrow_known(&mut words).then_some(words)
    }

    fn ahead(&mut self) -> usize {
        self.rounds.next_size(self.state.together())
    }

    fn prepare(&mut self, tokens: &[u32]) {
        if let Err(failure) = self.state.prepare(tokens) {
            self.failure.get_or_insert(failure);
        }
    }
}

/// The most tokens that a host is asked about at once.
const MOST_TOGETHER: usize = 64;

/// The rounds of questions for one token, of which each is about twice as many tokens as the last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds(u32);

impl Rounds {
    /// Returns how many tokens to ask about in the next round, if it is `first` in the first one.
    pub fn next_size(&mut self, first: usize) -> usize {
        if first <= 1 {
            return first;
        }
        let size = first.checked_shl(self.0).unwrap_or(MOST_TOGETHER);
        self.0 += 1;
        size.min(MOST_TOGETHER.max(first))
    }
}

/// Takes the next step of a walk under a constraint: a masked draw if its mask is exact, or else a draw by
/// checking single tokens ([`Walk::next_asked`]). `left` is how many tokens may come, the end token included.
/// The state does not change; the caller advances it by the token that it takes.
///
/// # Errors
/// The constraint has no answer; the walk must not be used any further.
pub fn step<W, R, C>(
    walk: &mut Walk<W>,
    row: &R,
    state: &mut dyn MonitorState,
    left: Option<usize>,
    chooser: &mut C,
) -> Result<Step<W>, Failure>
where
    W: Weight,
    R: Row<W>,
    C: Chooser<W> + ?Sized,
{
    let mut words = Allowed::All.to_words(row.len()).into_owned();
    let coverage = state.narrow(&mut words, left)?;
    let allowed = Allowed::Words(&words);
    if coverage == Coverage::Exact {
        return Ok(walk.next(row, allowed, chooser));
    }
    let mut asked = Asked {
        state,
        left: left.map(|left| left.saturating_sub(1)),
        width: row.len(),
        rounds: Rounds::default(),
        failure: None,
    };
    let step = walk.next_asked(row, allowed, &mut asked, chooser);
    asked.failure.map_or(Ok(step), Err)
}

/// Walks down a drafted tree under a constraint. `state` is the constraint's state after the text and does
/// not change. `rows` returns the row after the text (for `None`) and after each node of the path, until
/// there is none. Every token has the law that it has without drafts, and with the same chooser it is the
/// same token.
///
/// # Errors
/// The constraint has no answer, or `rows` has an error.
pub fn verify<W, R, S, Q, C, E>(
    draft: &[Node<S, Q>],
    mut rows: impl FnMut(Option<NodeId>) -> Result<Option<R>, E>,
    state: &dyn MonitorState,
    left: Option<usize>,
    (walk, chooser): (&mut Walk<W>, &mut C),
) -> Result<Verified<W>, E>
where
    W: Weight,
    R: Row<W>,
    C: Chooser<W> + ?Sized,
    E: From<Failure>,
{
    let (mut state, mut left) = (state.fork(), left);
    down(draft, |node| {
        let Some(row) = rows(node)? else {
            return Ok(None);
        };
        if let Some(node) = node {
            state.advance(draft[node].token)?;
            left = left.map(|left| left.saturating_sub(1));
        }
        Ok(Some(step(walk, &row, &mut *state, left, chooser)?))
    })
}
