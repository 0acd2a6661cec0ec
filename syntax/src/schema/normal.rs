//! Stage 3: converts goals to normal forms. This is the algebra of the compiler.
//!
//! A normal form gives, for each JSON type, the values that a goal allows, as a union of *shapes*. A shape is
//! a plain conjunction: an interval with a step, a regular set of strings with a length, an array or object
//! whose parts are goals again. Everything else (`anyOf`, `oneOf`, `not`, `if`, dependencies, references) has
//! been eliminated.
//!
//! ```text
//!   goal ──expand──► shapes ──finish──► normal form ──► goals of its parts ──► … until no goal is new
//!          (per kind of value)                                                        │
//!                                         productive: which goals have a value     ◄──┘
//! ```
//!
//! Expansion is by kind of value, so a union of an object and a string costs nothing for strings. All loops
//! are over lists and consume fuel, so no schema can make them run long or deep.
//!
//! # Why the algebra tests before it branches
//!
//! `kinds` decides which kinds of value a schema may have, and `glance` whether two lists share a value,
//! without computing a normal form. Before these tests were added, six of seven expansions found nothing, and
//! every pair of alternatives was multiplied out only to find two different constants. Before a normal form
//! is computed to test for emptiness, `disjoint` examines its first conjunctions.

mod affirm;
mod algebra;
mod branch;
mod deny;
mod discriminate;
mod disjoint;
mod expand;
mod explain;
mod glance;
mod kinds;
mod rivals;
mod search;
mod unevaluated;
mod values;

pub(crate) use algebra::{Algebra, NODE_BYTES, Pairs};
pub(crate) use explain::{TOO_MANY_WAYS, explain, nothing_left};

use std::rc::Rc;

use foldhash::HashSet;
use rustc_hash::FxHashMap;

use lexiform_automata::error::{CompileError, Problem, ProblemKind};
use lexiform_automata::limits::Limits;

use super::forms::{GoalId, Literal, Normal, NormalForms, StringShape, closing};
use super::node::{Keyword, Types, Whole};
use super::options::Options;
use super::parse::Parsed;

use algebra::{LeftOut, NESTED};

/// The message for a `properties` whose objects are closed.
const CLOSED: &str = "keys that are not listed are never written, although the schema says nothing of them";

/// Computes the normal forms of everything that is reachable from the root of a source.
pub(crate) fn normalise(
    parsed: Parsed,
    options: &Options,
    limits: &Limits,
) -> Result<NormalForms, CompileError> {
    let root = parsed.root;
    let mut algebra = Algebra::new(parsed, limits);
    algebra.additional_properties = options.additional_properties;
    let root_goal = algebra.goals.intern(vec![Literal::yes(root)]);
    let reached = algebra.reach(root_goal);
    if !algebra.problems.is_empty() {
        let mut problems = algebra.problems.into_list();
        problems.sort_by(|a, b| a.place.cmp(&b.place));
        return Err(CompileError { problems });
    }
    Ok(algebra.into_forms(root_goal, &reached))
}

impl Algebra<'_> {
    /// Returns all goals that are reachable from a goal, itself first, after computing the normal form of
    /// each.
    fn reach(&mut self, root: GoalId) -> Vec<GoalId> {
        let mut seen = HashSet::from_iter([root]);
        let mut order = vec![root];
        let mut next = 0;
        while let Some(&goal) = order.get(next) {
            if self.limits.cancel.is_asked() {
                break;
            }
            let normal = self.normal(goal);
            for part in normal.parts() {
                if seen.insert(part) {
                    order.push(part);
                }
            }
            next += 1;
        }
        order
    }

    fn into_forms(mut self, root: GoalId, reached: &[GoalId]) -> NormalForms {
        let empty = Rc::new(Normal::default());
        let mut known = std::mem::take(&mut self.normals);
        let mut normals: Vec<Rc<Normal>> = (0..self.goals.len())
            .map(|index| {
                known
                    .remove(&GoalId(index as u32))
                    .unwrap_or_else(|| empty.clone())
            })
            .collect();
        let closed = closing::close(&mut normals, reached, &self.limits.cancel);
        for &list in closed.by.iter().flat_map(|closing| closing.lists.iter()) {
            let pointer = self.tree.keyword_pointer(list, "properties");
            let note = Problem::at_pointer(ProblemKind::Closed, pointer, CLOSED);
            self.notes.add(note);
        }
        NormalForms {
            tree: self.tree,
            texts: self.texts,
            goals: self.goals,
            normals,
            productive: closed.productive,
            root,
            notes: self.notes.into_list(),
            truncated: !self.truncated.is_empty(),
            _held: self.held,
        }
    }

    /// Returns the normal form of a goal.
    pub(crate) fn normal(&mut self, goal: GoalId) -> Rc<Normal> {
        if let Some(known) = self.normals.get(&goal) {
            return known.clone();
        }
        let only_type = self.only_type(goal);
        if let Some(known) = only_type.and_then(|only| self.of_type.get(&only)) {
            let known = known.clone();
            self.normals.insert(goal, known.clone());
            return known;
        }
        let outer = std::mem::take(&mut self.dropped);
        let mut normal = Normal::default();
        let mut objects = FxHashMap::default();
        for kind in self.kinds_of_goal(goal) {
            for shape in self.expand(goal, kind) {
                if !self.burn(0, goal) {
                    break;
                }
                self.add_shape(&mut normal, &mut objects, kind, shape, goal);
            }
        }
        if std::mem::replace(&mut self.dropped, outer) {
            self.truncate(goal, LeftOut::Wishes);
        }
        if normal.strings.iter().any(StringShape::is_any) {
            normal.strings.retain(StringShape::is_any);
        }
        self.reserve(normal.bytes_of_scalars(), self.first_node(goal));
        let normal = Rc::new(normal);
        self.normals.insert(goal, normal.clone());
        if let Some(only) = only_type {
            self.of_type.insert(only, normal.clone());
        }
        normal
    }

    /// Returns the normal form of a goal that is needed while another one is computed, or `None` if the
    /// nesting is too deep or only a part of the form was computed.
    pub(crate) fn nested_normal(&mut self, goal: GoalId) -> Option<Rc<Normal>> {
        if self.depth >= NESTED {
            return None;
        }
        self.depth += 1;
        let normal = self.normal(goal);
        self.depth -= 1;
        // The part that was left out might be the one that is needed.
        (!self.truncated.contains(&goal)).then_some(normal)
    }

    /// Returns the types of a goal that has only the keyword `type`: all such schemas with the same types
    /// share a form.
    fn only_type(&self, goal: GoalId) -> Option<(Types, Whole)> {
        let [literal] = self.goals.literals(goal)[..] else {
            return None;
        };
        match self.tree.node(literal.node).keywords[..] {
            [(_, Keyword::Type { types, whole })] if literal.sign => Some((types, whole)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::resolve::read;

    #[test]
    fn schemas_that_say_the_same_type_alone_share_a_form() {
        let text = r#"{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {
            "a": {"type": "integer"}, "b": {"title": "B", "type": "integer"}, "c": {"type": "integer", "minimum": 0},
            "d": {"type": ["integer", "null"]}, "e": {"not": {"type": "integer"}},
            "f": {"$id": "old", "$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}}}"#;
        let limits = Limits::default();
        let (parsed, _) = read(text, &Options::default(), &limits).expect("the test's schema is well formed");
        let forms = normalise(parsed, &Options::default(), &limits).expect("it is small");
        let root = &forms.normals[forms.root.index()];
        let of = |name: &str| {
            let property = root.objects[0]
                .properties
                .iter()
                .find(|property| &*property.name == name);
            &forms.normals[property.expect("it has this key").ways[0].goal.index()]
        };
        assert!(Rc::ptr_eq(of("a"), of("b")));
        for other in ["c", "d", "e", "f"] {
            assert!(!Rc::ptr_eq(of("a"), of(other)), "{other}");
        }
        assert_eq!(
            (of("a").numbers[0].plain, of("f").numbers[0].plain),
            (None, Some(true))
        );
        assert_eq!(of("e").numbers.len(), 1, "numbers that are none of them");
    }
}
