//! Walks down a drafted tree, one chosen token at a time.

use super::{k_seq, residual};
use crate::draft::{Node, NodeId, Proposal};
use crate::law::{
    Allowed, Chooser, Drawn, LawError, Part, Place, Row, Rule, Sampler, Step, TypicalAcceptance, Weight,
};
use std::sync::Arc;

/// The state of the sequence after the tokens of a verified draft.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// More tokens follow.
    Open,
    /// The sequence is complete and accepted.
    Ended,
    /// The attempt failed: the answer is dropped, including these tokens.
    Restart,
    /// There will be no sample.
    Stuck(LawError),
}

/// The outcome of verifying a draft.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified<W = f64> {
    /// The tokens to append, in order: the accepted ones and the one drawn after them, if there was one.
    pub drawn: Vec<Drawn<W>>,
    /// The nodes of the accepted tokens, each a child of the one before it.
    pub path: Vec<NodeId>,
    /// The state of the sequence after these tokens.
    pub next: Next,
}

impl<W> Verified<W> {
    /// Returns how many of the tokens were drafted.
    pub fn accepted(&self) -> usize {
        self.path.len()
    }
}

/// Chooses tokens down a drafted tree, each by the rule for the children of its node (see
/// [`verify`](super)); with an empty draft this is plain decoding. Parents come before their children.
///
/// `rows(node)` is the row and the mask after a node, or after the text for `None`. It is called only for
/// the nodes of the path. If it returns no row, the walk ends and the text is open: a drafter that has to
/// stop after a sampled token still offers that one, but the row after it need not be computed.
pub fn tree<'m, W, R, Q, S, E>(
    draft: &[Node<S, Q>],
    mut rows: impl FnMut(Option<NodeId>) -> Result<Option<(R, Allowed<'m>)>, E>,
    sampler: &mut impl Sampler<W>,
    chooser: &mut (impl Chooser<W> + ?Sized),
) -> Result<Verified<W>, E>
where
    W: Weight,
    R: Row<W>,
    Q: Row<W>,
{
    let step = |node| {
        let Some((row, allowed)) = rows(node)? else {
            return Ok(None);
        };
        let siblings = Siblings {
            nodes: children(draft, node).map(|(_, node)| node).collect(),
            allowed,
        };
        Ok(Some(sampler.next_by(&row, allowed, &siblings, chooser)))
    };
    down(draft, step)
}

/// Walks down a drafted tree by the step of the sampler at each node, from the text to the first node at
/// which the token chosen is no child, or after which the sequence ends.
///
/// `step(node)` is the step after a node, or after the text for `None`; it is called only for the nodes of
/// the path, in order. If it returns `None`, the walk ends and the text is open. [`tree`] calls this with
/// steps from rows; call it directly if tokens were drawn elsewhere
/// ([`Walk::take`](crate::law::Walk::take)).
///
/// # Errors
/// The first error that `step` returns.
pub fn down<W, S, Q, E>(
    draft: &[Node<S, Q>],
    mut step: impl FnMut(Option<NodeId>) -> Result<Option<Step<W>>, E>,
) -> Result<Verified<W>, E> {
    let mut verified = Verified {
        drawn: Vec::new(),
        path: Vec::new(),
        next: Next::Open,
    };
    let mut at = None;
    while verified.next == Next::Open {
        let Some(step) = step(at)? else {
            break;
        };
        let drawn = match step {
            Step::Token(drawn) => drawn,
            Step::End(drawn) => {
                verified.next = Next::Ended;
                drawn
            }
            Step::Restart => {
                verified.next = Next::Restart;
                break;
            }
            Step::Stuck(why) => {
                verified.next = Next::Stuck(why);
                break;
            }
        };
        let token = drawn.token;
        verified.drawn.push(drawn);
        // A token that the residual rule draws instead of its trials is none of them, so this is right for
        // all rules.
        let Some(child) = child(draft, at, token) else {
            break;
        };
        verified.path.push(child);
        at = Some(child);
    }
    Ok(verified)
}

/// Returns the children of a node in order of offering. They come after it, so a walk down ends whatever the
/// parents are.
fn children<S, Q>(
    draft: &[Node<S, Q>],
    parent: Option<NodeId>,
) -> impl Iterator<Item = (NodeId, &Node<S, Q>)> {
    let after = parent.map_or(0, |parent| parent + 1);
    draft
        .iter()
        .enumerate()
        .skip(after)
        .filter(move |(_, node)| node.parent == parent)
}

/// Returns the child of a node with this token. There may be several: tokens that were drawn independently of
/// each other may be the same, and a draft model may draw a token that another drafter has offered. Of these
/// the last one that has children is the one below which the draft goes on.
fn child<S, Q>(draft: &[Node<S, Q>], parent: Option<NodeId>, token: u32) -> Option<NodeId> {
    let same = children(draft, parent).filter(|(_, node)| node.token == token);
    let same = same.map(|(child, _)| child);
    same.max_by_key(|&child| children(draft, Some(child)).next().is_some())
}

/// The rule for the children of a node: the residual rule for those that were sampled, and one draw for the
/// others.
struct Siblings<'d, 'm, S, Q> {
    nodes: Vec<&'d Node<S, Q>>,
    allowed: Allowed<'m>,
}

impl<S, Q> Siblings<'_, '_, S, Q> {
    /// Returns the tokens that were sampled, each with its row and whether it was drawn independently of its
    /// siblings.
    fn sampled(&self) -> impl Iterator<Item = (u32, &Arc<Q>, bool)> {
        self.nodes.iter().filter_map(|node| match &node.proposal {
            Proposal::Point => None,
            Proposal::Sampled(row) => Some((node.token, row, false)),
            Proposal::Independent(row) => Some((node.token, row, true)),
        })
    }

    /// Returns the row that all sampled tokens were drawn from independently of each other, if there are
    /// several and all were drawn so.
    fn common_row(&self) -> Option<&Q> {
        let (_, first, _) = self.sampled().next()?;
        let is_like = |(_, row, is_independent)| is_independent && Arc::ptr_eq(first, row);
        (self.sampled().count() > 1 && self.sampled().all(is_like)).then_some(&**first)
    }
}

impl<W, S, Q> Rule<W> for Siblings<'_, '_, S, Q>
where
    W: Weight,
    Q: Row<W>,
{
    fn choose<P, C>(&self, part: &P, place: Place, chooser: &mut C) -> Option<u32>
    where
        P: Part<W>,
        C: Chooser<W> + ?Sized,
    {
        let tokens: Vec<u32> = self.sampled().map(|(token, ..)| token).collect();
        if let Some(row) = self.common_row() {
            let judged = k_seq(part, &row.part(self.allowed), &tokens, place, chooser);
            return judged.map(|judged| judged.token);
        }
        let masks: Vec<Vec<u32>> = (0..)
            .zip(self.sampled())
            .map(|(before, (_, row, is_independent))| {
                // A token drawn independently of its siblings is drawn from the whole row.
                let before = if is_independent { 0 } else { before };
                self.allowed.without(&tokens[..before], row.len())
            })
            .collect();
        let trials = self
            .sampled()
            .zip(&masks)
            .map(|((token, row, _), mask)| (token, row.part(Allowed::Words(mask))));
        residual(part, trials, place, chooser).map(|judged| judged.token)
    }

    /// Returns the first child that is typical, however it was chosen; draws if none is.
    fn choose_lossy<P, C>(
        &self,
        part: &P,
        accepts: TypicalAcceptance,
        place: Place,
        chooser: &mut C,
    ) -> Option<u32>
    where
        P: Part<W>,
        C: Chooser<W> + ?Sized,
    {
        let drafted = self.nodes.iter().map(|node| node.token);
        let accepted = accepts.first(part, drafted);
        accepted.or_else(|| part.draw(place, chooser))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::Origin;
    use crate::law::Drawn;

    fn node(parent: Option<NodeId>, token: u32) -> Node<(), ()> {
        Node {
            token,
            parent,
            origin: Origin::Model,
            proposal: Proposal::Point,
            chance: None,
            state: None,
        }
    }

    /// Returns the path down a draft along these tokens.
    fn path(draft: &[Node<(), ()>], tokens: &[u32]) -> Vec<NodeId> {
        let mut tokens = tokens.iter();
        let step = |_: Option<NodeId>| {
            let drawn = tokens.next().map(|&token| Drawn {
                token,
                mass: 1.0,
                log_mass: 0.0,
                log_probability: 0.0,
                log_kept: 0.0,
            });
            Ok::<_, std::convert::Infallible>(drawn.map(Step::Token))
        };
        let Ok(verified) = down(draft, step);
        verified.path
    }

    /// Guards against a path that ends at a token which is drafted twice, while the draft goes on below the
    /// other of the two.
    #[test]
    fn of_equal_siblings_the_path_goes_on_below_the_one_that_does() {
        let first = [node(None, 5), node(None, 5), node(Some(0), 6)];
        assert_eq!(path(&first, &[5, 6]), [0, 2]);
        let last = [node(None, 5), node(None, 5), node(Some(1), 6)];
        assert_eq!(path(&last, &[5, 6]), [1, 2]);
        let both = [node(None, 5), node(Some(0), 7), node(None, 5), node(Some(2), 6)];
        assert_eq!(path(&both, &[5, 6]), [2, 3], "the later drafter went on");
        assert_eq!(path(&both, &[5, 7]), [2]);
        assert_eq!(path(&[node(None, 5), node(None, 5)], &[5, 6]).len(), 1);
    }
}
