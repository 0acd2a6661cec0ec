//! Whether a conjunction has no value, where that takes no normal form to see.
//!
//! The schemas that tell the alternatives of a union apart are mostly a `const`, an `enum` or a `type`, and there are as many
//! pairs of them as pairs of alternatives. What they have in common is found by comparing what they list.
//!
//! ```text
//!   {"const": "a"}  {"enum": ["b", "c"]}      no value: sure
//!   {"const": "a"}  {"type": "string"}        "a":      sure
//!   {"const": "a"}  {"pattern": "^b"}         not seen at a glance
//! ```

use std::rc::Rc;

use crate::schema::decimal::Decimal;
use crate::schema::goal::Literal;
use crate::schema::node::{Keyword, Kind, Kinds, Values};

use super::Algebra;

/// What the schemas of a conjunction list.
#[derive(Default)]
struct Lists {
    wanted: Vec<Rc<Values>>,
    unwanted: Vec<Rc<Values>>,
}

/// How many references are followed from one schema.
const REFERENCES: usize = 8;

impl Algebra<'_> {
    /// Whether the literals have no value in common; `None` where more than `type`, `enum` and `const` has to be looked at.
    pub(super) fn is_empty_at_a_glance(&mut self, literals: &[Literal]) -> Option<bool> {
        let kinds = self.common_kinds(literals);
        if kinds.is_empty() {
            return Some(true);
        }
        let mut lists = Lists::default();
        for &literal in literals {
            self.list(literal, &mut lists)?;
        }
        lists.is_empty(kinds)
    }

    /// Adds what a literal lists; `None` where it says anything else that is not a matter of kinds.
    fn list(&self, literal: Literal, lists: &mut Lists) -> Option<()> {
        let mut node = literal.node;
        for _ in 0..REFERENCES {
            let keywords = &self.tree.node(node).keywords[..];
            if let [(_, Keyword::Ref(reference))] = keywords {
                node = self.tree.target(*reference);
                continue;
            }
            if !literal.sign {
                let [(_, Keyword::Values(values))] = keywords else {
                    return None;
                };
                lists.unwanted.push(values.clone());
                return Some(());
            }
            for (_, keyword) in keywords {
                match keyword {
                    Keyword::Values(values) => lists.wanted.push(values.clone()),
                    // The kinds know of it, unless it divides the numbers.
                    Keyword::Type { types, .. } if types.has(Kind::Number) || !types.has_integers() => {}
                    _ => return None,
                }
            }
            return Some(());
        }
        None
    }
}

impl Lists {
    /// Whether no value of these kinds is wanted by all and unwanted by none.
    fn is_empty(&self, kinds: Kinds) -> Option<bool> {
        let Some((first, others)) = self.wanted.split_first() else {
            // Lists are finite, and these kinds of value are not.
            let endless = [Kind::Number, Kind::String, Kind::Array, Kind::Object];
            return endless.into_iter().any(|kind| kinds.has(kind)).then_some(false);
        };
        let structured = |kind, list: &[_]| kinds.has(kind) && !list.is_empty();
        if structured(Kind::Array, &first.arrays) || structured(Kind::Object, &first.objects) {
            return None;
        }
        let stays = |of: &dyn Fn(&Values) -> bool| {
            others.iter().all(|values| of(values)) && !self.unwanted.iter().any(|values| of(values))
        };
        let has = |values: &Values, kind| match kind {
            Kind::Null => values.null,
            Kind::False => values.no,
            _ => values.yes,
        };
        let constant = [Kind::Null, Kind::False, Kind::True]
            .into_iter()
            .any(|kind| kinds.has(kind) && has(first, kind) && stays(&|values| has(values, kind)));
        let string = |text: &Rc<str>| stays(&|values| values.strings.contains(text));
        let number = |number: &Decimal| stays(&|values| values.numbers.contains(number));
        let some = constant
            || kinds.has(Kind::String) && first.strings.iter().any(string)
            || kinds.has(Kind::Number) && first.numbers.iter().any(number);
        Some(!some)
    }
}
