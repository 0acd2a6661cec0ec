//! The ways in which a part may meet demands on how many parts satisfy something.
//!
//! "Some item is a string" is not a demand on any one item. Each item then has two ways: to satisfy its other
//! constraints, or to satisfy them and be a string, which meets the demand. The text determines which way an
//! item takes.
//!
//! ```text
//!   items: A    contains: B           way 1: A          meets nothing
//!                                     way 2: A and B    meets the demand
//!   with maxContains                  way 1: A and not B
//! ```

use crate::schema::forms::{Literal, Way};
use crate::schema::node::Keyword;
use crate::schema::normal::Algebra;

/// A demand that a part may meet.
pub(super) struct Wish {
    pub(super) bit: usize,
    /// The schema that the part must satisfy to meet the demand; `None` if every such part meets it.
    pub(super) literal: Option<Literal>,
    /// `true` if each part must be known either to meet the demand or not to, because there is an upper
    /// bound.
    pub(super) exact: bool,
}

impl Algebra<'_> {
    /// Returns the ways of a part that has to satisfy `base`.
    pub(super) fn ways(&mut self, base: &[Literal], wishes: &[Wish]) -> Vec<Way> {
        if base.iter().any(|literal| self.is_never(*literal)) {
            return Vec::new();
        }
        if let ([only], []) = (base, wishes)
            && only.sign
        {
            // Nearly every part has a single schema and no wishes.
            let goal = self.goals.alone(only.node);
            return vec![Way { goal, meets: 0 }];
        }
        let (mut always, mut open) = (0, Vec::new());
        for wish in wishes {
            match wish.literal {
                None => always |= 1 << wish.bit,
                Some(literal) if base.contains(&literal) || self.is_anything(literal) => {
                    always |= 1 << wish.bit
                }
                Some(literal) if base.contains(&literal.denied()) || self.is_never(literal) => {}
                Some(literal) => open.push((wish, literal)),
            }
        }
        let mut ways = Vec::with_capacity(1 << open.len());
        for chosen in 0u32..1 << open.len() {
            let (mut literals, mut meets) = (base.to_vec(), always);
            for (at, (wish, literal)) in open.iter().enumerate() {
                if chosen >> at & 1 == 1 {
                    literals.push(*literal);
                    meets |= 1 << wish.bit;
                } else if wish.exact {
                    literals.push(literal.denied());
                }
            }
            if !contradicts(&literals) {
                let goal = self.goals.intern(literals);
                ways.push(Way { goal, meets });
            }
        }
        ways
    }

    /// Returns `true` if a literal is the schema `false`, or the denial of the schema `true`.
    pub(crate) fn is_never(&self, literal: Literal) -> bool {
        let keywords = &self.tree.node(literal.node).keywords[..];
        if literal.sign {
            matches!(keywords, [(_, Keyword::Never)])
        } else {
            keywords.is_empty()
        }
    }

    fn is_anything(&self, literal: Literal) -> bool {
        self.is_never(literal.denied())
    }
}

fn contradicts(literals: &[Literal]) -> bool {
    literals
        .iter()
        .any(|literal| literals.contains(&literal.denied()))
}
