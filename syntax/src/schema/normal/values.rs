//! Finds schemas that list their values: `enum` and `const`, through references.

use std::rc::Rc;

use crate::schema::forms::Literal;
use crate::schema::node::{Keyword, Values};

use super::algebra::Algebra;

/// The most references that are followed to a list of values.
const REFERENCES: usize = 8;

impl Algebra<'_> {
    /// Returns the list of values that a schema has or leads to.
    pub(crate) fn list_of(&self, literal: Literal) -> Option<Rc<Values>> {
        let mut node = literal.node;
        for _ in 0..REFERENCES {
            let keywords = &self.tree.node(node).keywords;
            let listed = keywords.iter().find_map(|(_, keyword)| match keyword {
                Keyword::Values(values) => Some(values.clone()),
                _ => None,
            });
            if listed.is_some() || !literal.sign {
                return listed.filter(|_| literal.sign);
            }
            let [(_, Keyword::Ref(reference))] = keywords[..] else {
                return None;
            };
            node = self.tree.target(reference);
        }
        None
    }

    /// Returns `true` if a schema is a list of values, with nothing beside it except their types.
    pub(super) fn lists_values(&self, literal: Literal) -> bool {
        let plain = |keyword: &Keyword| {
            matches!(
                keyword,
                Keyword::Values(_) | Keyword::Type { .. } | Keyword::Ref(_)
            )
        };
        let keywords = &self.tree.node(literal.node).keywords;
        keywords.iter().all(|(_, keyword)| plain(keyword)) && self.list_of(literal).is_some()
    }
}
