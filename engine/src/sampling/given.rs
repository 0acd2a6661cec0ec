//! Tokens that are given instead of drawn, and counted as if they had been drawn.
//!
//! Each has a row and a mask like any token of a draft, so that the same is reported about it (its
//! probability, the mass of the allowed tokens) as if the law had drawn it. Nothing is random.

use crate::State;
use crate::speculation::row::DraftRow;
use lexiform_law::draft::{Node, NodeId};
use lexiform_law::verify::{Next, Verified};
use lexiform_law::{Allowed, Chooser, Part, Place, Row, RowError, Rule, Sampler, Seeded, Step, Walk};

/// A choice that is already made.
struct Given(u32);

impl Rule<f64> for Given {
    fn choose<P, C>(&self, _: &P, _: Place, _: &mut C) -> Option<u32>
    where
        P: Part<f64>,
        C: Chooser<f64> + ?Sized,
    {
        Some(self.0)
    }
}

/// Walks along given tokens, and counts each as if it had been drawn.
pub(crate) fn along<'m, R: Row<f64>>(
    nodes: &[Node<State, DraftRow>],
    mut rows: impl FnMut(Option<NodeId>) -> Result<Option<(R, Allowed<'m>)>, RowError>,
    walk: &mut Walk,
    chooser: &mut Seeded,
) -> Result<Verified, RowError> {
    let mut verified = Verified {
        drawn: Vec::new(),
        path: Vec::new(),
        next: Next::Open,
    };
    for (number, node) in nodes.iter().enumerate() {
        let Some((row, allowed)) = rows(number.checked_sub(1))? else {
            break;
        };
        match walk.next_by(&row, allowed, &Given(node.token), chooser) {
            Step::Token(drawn) => verified.drawn.push(drawn),
            Step::End(drawn) => {
                verified.drawn.push(drawn);
                verified.next = Next::Ended;
            }
            Step::Restart => verified.next = Next::Restart,
            Step::Stuck(why) => verified.next = Next::Stuck(why),
        }
        if verified.next != Next::Open {
            break;
        }
        verified.path.push(number);
    }
    Ok(verified)
}
