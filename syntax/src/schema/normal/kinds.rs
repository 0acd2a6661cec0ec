//! Determines which kinds of value a schema may have, at a glance.
//!
//! Most schemas have a `type`. An expansion for a kind that is not among theirs ends before it begins, and an
//! alternative of another kind is skipped: a union of objects and strings costs nothing for strings.
//!
//! The answer is an upper bound. It is derived from `type`, `enum`, `const` and the schemas that apply in
//! place, and each schema is examined once; a recursive query gets all kinds.

use crate::schema::forms::{GoalId, Literal};
use crate::schema::node::{Keyword, Kind, Kinds, NodeId, Types, Values};

use super::algebra::Algebra;

/// The deepest nesting of schemas that apply in place.
const KIND_DEPTH: u32 = 32;

impl Algebra<'_> {
    /// Returns the kinds that values of a goal may have, in their order.
    pub(crate) fn kinds_of_goal(&mut self, goal: GoalId) -> impl Iterator<Item = Kind> + use<> {
        let literals = self.goals.literals(goal).clone();
        let kinds = self.common_kinds(&literals);
        Kind::ALL.into_iter().filter(move |&kind| kinds.has(kind))
    }

    /// Returns the kinds that values of all these literals may have.
    pub(super) fn common_kinds(&mut self, literals: &[Literal]) -> Kinds {
        literals.iter().fold(Kinds::ALL, |kinds, &literal| {
            kinds.and(self.kinds_of(literal, KIND_DEPTH))
        })
    }

    /// Returns `true` if a schema may have values of a kind.
    pub(super) fn may_be(&mut self, node: NodeId, kind: Kind) -> bool {
        self.kinds_of_node(node, KIND_DEPTH).has(kind)
    }

    /// Returns `true` if two schemas have no kind in common.
    pub(super) fn differ_in_kind(&mut self, left: NodeId, right: NodeId) -> bool {
        let left = self.kinds_of_node(left, KIND_DEPTH);
        left.and(self.kinds_of_node(right, KIND_DEPTH)).is_empty()
    }

    fn kinds_of(&mut self, literal: Literal, depth: u32) -> Kinds {
        if literal.sign {
            return self.kinds_of_node(literal.node, depth);
        }
        // A denial excludes the kinds of which all values are allowed.
        match self.tree.node(literal.node).keywords[..] {
            [] => Kinds::NONE,
            [(_, Keyword::Type { types, .. })] => all_of(types).others(),
            _ => Kinds::ALL,
        }
    }

    fn kinds_of_node(&mut self, node: NodeId, depth: u32) -> Kinds {
        if let Some(&Some(known)) = self.kinds.get(node.index()) {
            return known;
        }
        if depth == 0 {
            return Kinds::ALL;
        }
        if self.kinds.len() <= node.index() {
            self.kinds.resize(self.tree.nodes.len(), None);
        }
        self.kinds[node.index()] = Some(Kinds::ALL);
        let keywords = self.tree.node(node).keywords.clone();
        let kinds = keywords.iter().fold(Kinds::ALL, |kinds, (_, keyword)| {
            kinds.and(self.kinds_of_keyword(keyword, depth - 1))
        });
        self.kinds[node.index()] = Some(kinds);
        kinds
    }

    fn kinds_of_keyword(&mut self, keyword: &Keyword, depth: u32) -> Kinds {
        match keyword {
            Keyword::Never => Kinds::NONE,
            Keyword::Type { types, .. } => some_of(*types),
            Keyword::Values(values) => kinds_of_values(values),
            Keyword::Ref(reference) => self.kinds_of_node(self.tree.target(*reference), depth),
            Keyword::AllOf(list) => list.iter().fold(Kinds::ALL, |kinds, &node| {
                kinds.and(self.kinds_of_node(node, depth))
            }),
            Keyword::AnyOf(list) | Keyword::OneOf(list) => list.iter().fold(Kinds::NONE, |kinds, &node| {
                kinds.or(self.kinds_of_node(node, depth))
            }),
            Keyword::Not(node) => self.kinds_of(Literal::new(*node, false), depth),
            _ => Kinds::ALL,
        }
    }
}

/// Returns the kinds of which some values have these types: integers are numbers.
fn some_of(types: Types) -> Kinds {
    let there = |kind: &Kind| types.has(*kind) || *kind == Kind::Number && types.has_integers();
    Kind::ALL.into_iter().filter(there).collect()
}

/// Returns the kinds of which all values have these types.
fn all_of(types: Types) -> Kinds {
    Kind::ALL.into_iter().filter(|&kind| types.has(kind)).collect()
}

fn kinds_of_values(values: &Values) -> Kinds {
    let there = [
        (Kind::Null, values.null),
        (Kind::False, values.no),
        (Kind::True, values.yes),
        (Kind::Number, !values.numbers.is_empty()),
        (Kind::String, !values.strings.is_empty()),
        (Kind::Array, !values.arrays.is_empty()),
        (Kind::Object, !values.objects.is_empty()),
    ];
    there
        .into_iter()
        .filter(|(_, there)| *there)
        .map(|(kind, _)| kind)
        .collect()
}
