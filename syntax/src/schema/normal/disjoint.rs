//! Tests whether two schemas can share a value; if not, `oneOf` needs no complements.
//!
//! The test is sound but not complete: it reports "disjoint" only if the intersection is empty for a reason
//! that is found a few levels down, such as two constants for one required key. If it finds no reason, the
//! complement is taken, which is also exact, only larger.

use crate::schema::forms::{Array, GoalId, Literal, Normal, Object, Way};
use crate::schema::node::{KeyMap, Keyword, Kind, NodeId};
use crate::schema::shape::{ObjectShape, Shape};

use super::algebra::{Algebra, NESTED};
use super::search::TooMany;

/// How deep into arrays and objects a reason is searched for.
const REASON_DEPTH: u32 = 3;

/// The most schemas examined that apply to the same value.
const MOST_PARTS: usize = 16;

/// The number of steps of a search for a value.
const STEPS: usize = 200;

/// The result of a search for a value.
enum FoundReason {
    Value,
    /// The search was given up.
    Nothing,
}

impl Algebra<'_> {
    /// Returns `true` if no value satisfies both schemas, as far as this can be decided quickly.
    pub(super) fn are_disjoint(&mut self, left: NodeId, right: NodeId) -> bool {
        let key = (left.min(right), left.max(right));
        if let Some(&known) = self.disjoint.get(&key) {
            return known;
        }
        if self.differ_in_kind(left, right) {
            return true;
        }
        // A recursive query gets the cautious answer.
        self.disjoint.insert(key, false);
        let disjoint = self.have_surely_no_value(vec![Literal::yes(left), Literal::yes(right)], REASON_DEPTH);
        self.disjoint.insert(key, disjoint);
        disjoint
    }

    /// Returns `true` if a required key of a shape can have no value, for an obvious reason.
    pub(super) fn is_hopeless(&mut self, shape: &Shape, name: &str) -> bool {
        let Shape::Object(shape) = shape else { return false };
        let Some(literals) = shape.required_value(name) else {
            return false;
        };
        self.have_surely_no_value(literals, 1)
    }

    /// Returns `true` if no object of a shape satisfies a schema, for an obvious reason: a required key whose
    /// values exclude each other, or one that must be absent.
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
        let clashes = |algebra: &mut Self, name: &str, node: NodeId| {
            let mut literals = shape.said_of(name);
            if literals.is_empty() {
                return false;
            }
            literals.push(Literal::yes(node));
            algebra.have_surely_no_value(literals, 1)
        };
        if map.named.len() < shape.required.len() {
            let mut named = map.named.iter();
            return named.any(|(name, node)| shape.required.contains(&**name) && clashes(self, name, *node));
        }
        let mut required = shape.required.iter();
        required.any(|name| map.index.get(name).is_some_and(|&node| clashes(self, name, node)))
    }

    fn is_surely_empty(&mut self, goal: GoalId, depth: u32) -> bool {
        let literals = self.goals.literals(goal).clone();
        match self.seen_to_be_empty(&literals, depth) {
            Some(empty) => empty,
            None => self.has_empty_form(goal, depth),
        }
    }

    /// Returns `true` if a conjunction certainly has no value. The literals need not become a goal if a
    /// glance is enough: there are as many such lists as pairs of alternatives.
    fn have_surely_no_value(&mut self, literals: Vec<Literal>, depth: u32) -> bool {
        if let Some(empty) = self.seen_to_be_empty(&literals, depth) {
            return empty;
        }
        let goal = self.goals.intern(literals);
        self.has_empty_form(goal, depth)
    }

    fn seen_to_be_empty(&mut self, literals: &[Literal], depth: u32) -> Option<bool> {
        if literals.is_empty() || depth == 0 {
            return Some(false);
        }
        let seen = self.is_empty_at_a_glance(literals);
        match seen {
            None if depth > 1 && self.lack_a_required_value(literals) => Some(true),
            seen => seen,
        }
    }

    /// Returns `true` if a goal has no conjunction with a value. Of the thousands of conjunctions of two
    /// unions, mostly the first one has a value, so the normal form is only computed if a short search does
    /// not decide.
    fn has_empty_form(&mut self, goal: GoalId, depth: u32) -> bool {
        if self.depth >= NESTED {
            return false;
        }
        let key = (goal, depth);
        if let Some(&known) = self.empty.get(&key) {
            return known;
        }
        self.depth += 1;
        let found = match self.normals.contains_key(&goal) {
            true => None,
            false => self.finds_no_value(goal, depth),
        };
        let empty = match found {
            Some(empty) => empty,
            None => {
                let normal = self.normal(goal);
                self.is_form_empty(&normal, goal, depth)
            }
        };
        self.depth -= 1;
        self.empty.insert(key, empty);
        empty
    }

    fn is_form_empty(&mut self, normal: &Normal, goal: GoalId, depth: u32) -> bool {
        // The part that was left out might be the one that has a value.
        !self.truncated.contains(&goal)
            && !self.uncertain.contains(&goal)
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

    /// Returns `true` if a short search finds no value, or `None` if the search does not finish.
    fn finds_no_value(&mut self, goal: GoalId, depth: u32) -> Option<bool> {
        let outer = std::mem::take(&mut self.dropped);
        let mut kinds = self.kinds_of_goal(goal);
        let found = kinds.find_map(|kind| self.find_of_kind(goal, kind, depth));
        let dropped = std::mem::replace(&mut self.dropped, outer);
        match found {
            Some(FoundReason::Value) => Some(false),
            Some(FoundReason::Nothing) => None,
            None => Some(!dropped && !self.uncertain.contains(&goal)),
        }
    }

    /// Returns the result of a short search for values of a kind, or `None` if there certainly are none.
    fn find_of_kind(&mut self, goal: GoalId, kind: Kind, depth: u32) -> Option<FoundReason> {
        let mut search = self.short_search(goal, kind, STEPS);
        let found = loop {
            match self.next_shape(&mut search) {
                Ok(Some(shape)) if self.is_shape_empty(&shape, goal, depth) => {}
                Ok(Some(_)) => break Some(FoundReason::Value),
                Ok(None) => break None,
                Err(TooMany) => break Some(FoundReason::Nothing),
            }
        };
        self.end(search);
        found
    }

    fn is_shape_empty(&mut self, shape: &Shape, goal: GoalId, depth: u32) -> bool {
        match shape {
            Shape::Constant | Shape::Number(_) | Shape::String(_) => false,
            Shape::Array(shape) => {
                let arrays = self.finish_array(shape, goal);
                arrays.iter().all(|array| self.is_array_empty(array, depth - 1))
            }
            Shape::Object(shape) => {
                let object = self.finish_object(shape);
                object.is_none_or(|object| self.is_object_empty(&object, depth - 1))
            }
        }
    }

    fn is_array_empty(&mut self, array: &Array, depth: u32) -> bool {
        let least = usize::try_from(array.min).unwrap_or(usize::MAX);
        let additional =
            (least > array.prefix.len() && array.distinct.is_empty()).then_some(&array.additional);
        let mut needed = array.prefix.iter().take(least).chain(additional);
        needed.any(|ways| self.are_ways_empty(ways, depth))
    }

    fn is_object_empty(&mut self, object: &Object, depth: u32) -> bool {
        let mut needed = object.properties.iter().filter(|property| property.required);
        needed.any(|property| self.are_ways_empty(&property.ways, depth))
    }

    fn are_ways_empty(&mut self, ways: &[Way], depth: u32) -> bool {
        ways.iter().all(|way| self.is_surely_empty(way.goal, depth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::options::Options;
    use crate::schema::resolve::read;
    use lexiform_automata::limits::Limits;

    /// Returns the algebra of two schemas, and the two.
    fn pair<'l>(left: &str, right: &str, limits: &'l Limits) -> (Algebra<'l>, NodeId, NodeId) {
        let named = r##""named": {"required": ["k"], "properties": {"k": {"const": "named"}}}"##;
        let text = format!(r##"{{"$defs": {{{named}}}, "anyOf": [{left}, {right}]}}"##);
        let parsed = read(&text, &Options::default(), limits).expect("the test's schemas are well formed");
        let (root, parsed) = (parsed.0.root, parsed.0);
        let algebra = Algebra::new(parsed, limits);
        let keywords = algebra.tree.node(root).keywords.clone();
        let found = keywords.iter().find_map(|(_, keyword)| match keyword {
            Keyword::AnyOf(list) => Some((list[0], list[1])),
            _ => None,
        });
        let (left, right) = found.expect("there are two");
        (algebra, left, right)
    }

    const A: &str = r#"{"type": "object", "required": ["k"], "properties": {"k": {"const": "a"}, "x": {"type": "string"}}}"#;

    /// Pairs of schemas, and whether they are recognised as disjoint.
    const PAIRS: [(&str, &str, bool); 14] = [
        (A, r#"{"properties": {"k": {"enum": ["b", "c"]}}}"#, true),
        (A, r#"{"properties": {"k": {"enum": ["b", "a"]}}}"#, false),
        (A, r#"{"properties": {"x": {"type": "integer"}}}"#, false),
        (
            A,
            r#"{"required": ["x"], "properties": {"x": {"type": "integer"}}}"#,
            true,
        ),
        (A, r##"{"$ref": "#/$defs/named"}"##, true),
        (
            A,
            r##"{"allOf": [{"$ref": "#/$defs/named"}, {"minProperties": 1}]}"##,
            true,
        ),
        (
            A,
            r##"{"anyOf": [{"$ref": "#/$defs/named"}, {"properties": {"k": false}}]}"##,
            true,
        ),
        (
            A,
            r##"{"anyOf": [{"$ref": "#/$defs/named"}, {"maxProperties": 1}]}"##,
            false,
        ),
        (
            A,
            r#"{"properties": {"x": true}, "additionalProperties": false}"#,
            true,
        ),
        (
            A,
            r#"{"properties": {"k": true}, "additionalProperties": false}"#,
            false,
        ),
        (
            A,
            r#"{"patternProperties": {"^k": true}, "additionalProperties": false}"#,
            false,
        ),
        (A, r#"{"properties": {"k": false}}"#, true),
        (
            r#"{"properties": {"k": {"const": 1}}, "required": ["k"]}"#,
            A,
            true,
        ),
        // If neither has a type, every value that is not an object is in both.
        (
            r#"{"properties": {"k": {"const": 1}}, "required": ["k"]}"#,
            r#"{"properties": {"k": {"const": 2}}, "required": ["k"]}"#,
            false,
        ),
    ];

    #[test]
    fn schemas_are_disjoint_where_a_required_key_tells_them_apart() {
        let limits = &Limits::default();
        for (left, right, expected) in PAIRS {
            let (mut algebra, one, other) = pair(left, right, limits);
            assert_eq!(algebra.are_disjoint(one, other), expected, "{left} and {right}");
        }
    }

    #[test]
    fn a_short_search_finds_what_the_normal_form_says() {
        let limits = &Limits::default();
        for (left, right, expected) in PAIRS {
            let (mut algebra, one, other) = pair(left, right, limits);
            let goal = algebra.goals.intern(vec![Literal::yes(one), Literal::yes(other)]);
            let found = algebra.finds_no_value(goal, REASON_DEPTH);
            assert_eq!(found, Some(expected), "{left} and {right}");
            let (mut algebra, ..) = pair(left, right, limits);
            let goal = algebra.goals.intern(vec![Literal::yes(one), Literal::yes(other)]);
            let normal = algebra.normal(goal);
            assert_eq!(
                algebra.is_form_empty(&normal, goal, REASON_DEPTH),
                expected,
                "{left} and {right}"
            );
        }
    }

    #[test]
    fn a_search_of_many_steps_is_given_up() {
        let ways: Vec<String> = (0..300)
            .map(|at| format!(r#"{{"required": ["a{at}"]}}"#))
            .collect();
        let right = format!(
            r#"{{"propertyNames": {{"const": "z"}}, "anyOf": [{}]}}"#,
            ways.join(", ")
        );
        let limits = &Limits::default();
        let (mut algebra, one, other) = pair(A, &right, limits);
        let goal = algebra.goals.intern(vec![Literal::yes(one), Literal::yes(other)]);
        assert_eq!(algebra.finds_no_value(goal, REASON_DEPTH), None);
        assert!(algebra.are_disjoint(one, other), "the normal form is empty");
    }
}
