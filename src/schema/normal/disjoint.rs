//! Whether two schemas can share a value: what lets `oneOf` go without complements.
//!
//! The test is sound, not complete: it says "disjoint" only where the intersection is empty for a reason that is found a
//! few levels down, such as two constants for one required key. Where it does not find one, the complement is
//! taken, which is exact as well, only larger.

use crate::schema::goal::{GoalId, Literal};
use crate::schema::node::{KeyMap, Keyword, NodeId};

use super::array::Array;
use super::expand::Shape;
use super::object::{Object, ObjectShape};
use super::way::Way;
use super::{Algebra, Normal};

/// How deep into arrays and objects a reason is looked for.
const DEPTH: u32 = 3;

/// How many schemas are looked at that apply to the same value.
const MOST_PARTS: usize = 16;

/// How deep normal forms may be asked for while another is being made.
const NESTED: u32 = 24;

impl Algebra<'_> {
    /// Whether no value satisfies both schemas, as far as can be told quickly.
    pub(super) fn are_disjoint(&mut self, left: NodeId, right: NodeId) -> bool {
        let key = (left.min(right), left.max(right));
        if let Some(&known) = self.disjoint.get(&key) {
            return known;
        }
        if self.differ_in_kind(left, right) {
            return true;
        }
        // Asked for again from within itself, the answer is the cautious one.
        self.disjoint.insert(key, false);
        let goal = self.goals.intern(vec![Literal::yes(left), Literal::yes(right)]);
        let disjoint = self.is_surely_empty(goal, DEPTH);
        self.disjoint.insert(key, disjoint);
        disjoint
    }

    /// The normal form of a goal that is needed while another is being made; `None` where that is nested too deep or only a
    /// part of it was made.
    pub(super) fn nested_normal(&mut self, goal: GoalId) -> Option<std::rc::Rc<Normal>> {
        if self.depth >= NESTED {
            return None;
        }
        self.depth += 1;
        let normal = self.normal(goal);
        self.depth -= 1;
        // What was left out of it might be just what is asked for.
        (!self.truncated.contains(&goal)).then_some(normal)
    }

    /// Whether a required key of a shape can have no value, for a reason that is seen at once.
    pub(super) fn is_hopeless(&mut self, shape: &Shape, name: &str) -> bool {
        let Shape::Object(shape) = shape else { return false };
        let Some(literals) = shape.required_value(name) else {
            return false;
        };
        let goal = self.goals.intern(literals);
        self.is_surely_empty(goal, 1)
    }

    /// Whether no object of a shape satisfies a schema, for a reason that is seen at once: a required key whose values
    /// exclude each other, or one that must be absent.
    pub(super) fn rules_out(&mut self, shape: &ObjectShape, node: NodeId) -> bool {
        let mut open = vec![node];
        let mut at = 0;
        while at < open.len().min(MOST_PARTS) {
            let keywords = self.tree.node(open[at]).keywords.clone();
            for (_, keyword) in keywords.iter() {
                match keyword {
                    Keyword::Ref(reference) => open.push(self.tree.target(*reference)),
                    Keyword::AllOf(list) => open.extend(list),
                    Keyword::Required(names) if names.iter().any(|name| shape.absent.contains(name)) => {
                        return true;
                    }
                    Keyword::Properties(map) if self.values_clash(shape, map) => return true,
                    _ => {}
                }
            }
            at += 1;
        }
        false
    }

    fn values_clash(&mut self, shape: &ObjectShape, map: &KeyMap) -> bool {
        for name in &shape.required {
            let Some(&node) = map.index.get(name) else {
                continue;
            };
            let mut literals = shape.required_value(name).unwrap_or_default();
            if literals.is_empty() {
                continue;
            }
            literals.push(Literal::yes(node));
            let goal = self.goals.intern(literals);
            if self.is_surely_empty(goal, 1) {
                return true;
            }
        }
        false
    }

    fn is_surely_empty(&mut self, goal: GoalId, depth: u32) -> bool {
        let literals = self.goals.literals(goal).clone();
        if literals.is_empty() || depth == 0 {
            return false;
        }
        if let Some(empty) = self.is_empty_at_a_glance(&literals) {
            return empty;
        }
        let Some(normal) = self.nested_normal(goal) else {
            return false;
        };
        !self.uncertain.contains(&goal)
            && !normal.has_scalars()
            && normal
                .arrays
                .iter()
                .all(|array| self.is_array_empty(array, depth - 1))
            && normal
                .objects
                .iter()
                .all(|object| self.is_object_empty(object, depth - 1))
    }

    fn is_array_empty(&mut self, array: &Array, depth: u32) -> bool {
        let least = usize::try_from(array.min).unwrap_or(usize::MAX);
        let rest = (least > array.prefix.len() && array.distinct.is_empty()).then_some(&array.rest);
        let mut needed = array.prefix.iter().take(least).chain(rest);
        needed.any(|ways| self.are_ways_empty(ways, depth))
    }

    fn is_object_empty(&mut self, object: &Object, depth: u32) -> bool {
        let mut needed = object.members.iter().filter(|member| member.required);
        needed.any(|member| self.are_ways_empty(&member.ways, depth))
    }

    fn are_ways_empty(&mut self, ways: &[Way], depth: u32) -> bool {
        ways.iter().all(|way| self.is_surely_empty(way.goal, depth))
    }
}
