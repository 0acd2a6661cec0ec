//! Expansion: converts a goal and a kind of value to a union of conjunctions.
//!
//! A branch contains the shape so far, the open demands, and the open choices. Demands are met first; a
//! branch that contradicts itself is dropped at once; then the choice with the fewest ways is made, and each
//! way becomes a branch.

use crate::schema::forms::{GoalId, Literal};
use crate::schema::node::{Keyword, Keywords, Kind, NodeId};
use crate::schema::shape::{Demand, ObjectShape, ObjectStep, Shape, Step};

use super::algebra::{Algebra, LeftOut};
use super::branch::{Branch, Choice, Place, Todo};
use super::discriminate::{Decided, Decision};
use super::search::Denials;

/// The number of choices that are checked for being decided for one unit of fuel.
const DECISIONS_OF_FUEL: usize = 16;

/// The number of schemas of the items of an array for one unit of fuel.
const SAID_OF_FUEL: usize = 64;

impl Algebra<'_> {
    /// Returns the conjunctions whose union is the goal, for one kind of value. If there are too many, it
    /// returns only some of them: fewer values are allowed then, and a note says what is left out.
    pub(super) fn expand(&mut self, goal: GoalId, kind: Kind) -> Vec<Shape> {
        let mut shapes = Vec::new();
        let mut all = self.search(goal, kind, Denials::All);
        let complete = self.find_all(&mut all, &mut shapes);
        self.end(all);
        if complete {
            return shapes;
        }
        // With one way for each denial there are never too many, because the first ones that are found are
        // enough.
        shapes.clear();
        let mut some = self.search(goal, kind, Denials::One);
        if !self.find_all(&mut some, &mut shapes) {
            let kept = shapes.len();
            self.truncate(goal, LeftOut::Alternatives { kept });
        }
        if some.narrowed {
            self.truncate(goal, LeftOut::Denials);
        }
        self.end(some);
        shapes
    }

    /// Returns the branch that meets a denial in the way that keeps most of the values that people mean.
    pub(super) fn best_way(
        &mut self,
        branch: &Branch,
        choice: Choice,
        goal: GoalId,
        kind: Kind,
    ) -> Option<Branch> {
        let mut ways: Vec<&Vec<Step>> = choice.ways.iter().collect();
        ways.sort_by_key(|way| self.way_cost(branch, way));
        ways.into_iter().find_map(|way| {
            let mut next = branch.clone();
            next.go(way.iter().cloned());
            self.settle(&mut next, goal, kind).then_some(next)
        })
    }

    /// Returns the cost of a way of a denial. The best ways give a different value to a key that is required
    /// anyway, as for a discriminator, or leave out a key that no schema mentions.
    fn way_cost(&self, branch: &Branch, way: &[Step]) -> u8 {
        let Shape::Object(shape) = &branch.shape else {
            return 0;
        };
        let listed = |node: NodeId| {
            let mut keywords = self.tree.node(node).keywords.iter();
            keywords.any(|(_, keyword)| matches!(keyword, Keyword::Values(_) | Keyword::Text(_)))
        };
        match way {
            [
                Step::Object(ObjectStep::Require(name)),
                Step::Object(ObjectStep::Value(_, literal)),
            ] => {
                let there = shape.required.contains(name);
                match (there, listed(literal.node)) {
                    (true, true) => 0,
                    (true, false) => 2,
                    (false, _) => 5,
                }
            }
            [Step::Object(ObjectStep::Absent(name))] => {
                let named = shape.maps.iter().any(|map| map.index.contains_key(name));
                if named { 3 } else { 1 }
            }
            _ => 4,
        }
    }

    /// Meets all demands that leave no choice; returns `false` if they contradict one another.
    pub(super) fn settle(&mut self, branch: &mut Branch, goal: GoalId, kind: Kind) -> bool {
        while let Some(step) = branch.todo.pop_front() {
            if !self.burn(1, goal) {
                return false;
            }
            let step = match step {
                Todo::Step(step) => step,
                Todo::Choice(choice) => {
                    branch.leave_open(choice);
                    continue;
                }
            };
            let Step::Literal(literal) = step else {
                if let (Shape::Array(shape), Step::Array(step)) = (&branch.shape, &step)
                    && !self.burn(shape.said_with(step) / SAID_OF_FUEL, goal)
                {
                    return false;
                }
                let value_of = step.value_of();
                if !branch.add(step) || value_of.is_some_and(|name| self.is_hopeless(&branch.shape, &name)) {
                    return false;
                }
                continue;
            };
            if branch.seen.contains(&literal) {
                continue;
            }
            if branch.seen.contains(&Literal::new(literal.node, !literal.sign)) {
                return false;
            }
            branch.seen.add(literal);
            if !self.settle_literal(branch, literal, kind) {
                return false;
            }
        }
        true
    }

    fn settle_literal(&mut self, branch: &mut Branch, literal: Literal, kind: Kind) -> bool {
        if !self.may_be(literal.node, kind) {
            return !literal.sign;
        }
        let keywords = self.tree.node(literal.node).keywords.clone();
        if !literal.sign {
            let mut ways = Vec::new();
            for (name, keyword) in keywords.iter() {
                ways.extend(self.deny(literal.node, name, keyword, kind).ways());
            }
            return branch.demand_of(Demand::any(ways), Some(literal.node));
        }
        // The results of the keywords come before what was open: the order of the source is the order of the
        // keys.
        let open = std::mem::take(&mut branch.todo);
        let fits = self.settle_keywords(branch, literal.node, &keywords, kind);
        branch.put_before(open);
        fits
    }

    /// Meets the demands of an affirmed schema, and leaves its choices open.
    fn settle_keywords(
        &mut self,
        branch: &mut Branch,
        node: NodeId,
        keywords: &Keywords,
        kind: Kind,
    ) -> bool {
        if let Some(child) = self.unevaluated(node, kind) {
            // The cases already include all the keywords.
            let demand = self.affirm_unevaluated(node, child, kind);
            return branch.demand(demand);
        }
        let mut choices = Vec::new();
        for (name, keyword) in keywords.iter() {
            match self.affirm(node, name, keyword, kind) {
                Demand::Any(ways) => choices.push(Choice::of(ways, keyword.is_condition())),
                demand => {
                    if !branch.demand(demand) {
                        return false;
                    }
                }
            }
        }
        branch.todo.extend(choices.into_iter().map(Todo::Choice));
        true
    }

    /// Drops denials of schemas that the branch excludes anyway: the discriminator of a `oneOf` is enough.
    pub(super) fn drop_ruled_out(&mut self, branch: &mut Branch) {
        let Shape::Object(shape) = &branch.shape else {
            return;
        };
        let mut choices = std::mem::take(&mut branch.choices);
        choices.retain(|choice| !choice.denied.is_some_and(|node| self.rules_out(shape, node)));
        branch.choices = choices;
    }

    /// Drops implications that the known cases of keys satisfy, and the ways of other implications and
    /// conditions that these cases make impossible.
    pub(super) fn drop_decided(&mut self, branch: &mut Branch, goal: GoalId) {
        // Choices that were open before stay open until the case of another key is known.
        if branch.decided.is_empty() || branch.decisions().count() <= branch.looked_at {
            return;
        }
        let Shape::Object(shape) = &branch.shape else {
            return;
        };
        if !self.burn(branch.choices.len() / DECISIONS_OF_FUEL, goal) {
            return;
        }
        branch.choices.retain_mut(|choice| self.is_open(shape, choice));
    }

    /// Drops the impossible ways of a choice, and returns `true` if the choice stays open.
    fn is_open(&mut self, shape: &ObjectShape, choice: &mut Choice) -> bool {
        match Decision::of(&choice.ways) {
            None => return true,
            Some(Decision::Implication(then)) => match self.decide(shape, then) {
                Decided::Open => {}
                Decided::Holds => return false,
                Decided::Impossible => choice.ways = choice.ways[..1].into(),
            },
            Some(Decision::Condition(asked)) => match self.decide(shape, asked) {
                Decided::Open => {}
                // The schema still determines the order of its keys.
                Decided::Holds => choice.ways = choice.ways[..1].into(),
                Decided::Impossible => choice.ways = [choice.ways[1][1..].to_vec()].into(),
            },
        }
        choice.ways.iter().all(|way| !way.is_empty())
    }

    /// Returns a choice between the cases of a key that decides several implications and conditions.
    pub(super) fn take_cases(&mut self, branch: &mut Branch) -> Option<Choice> {
        if branch.decisions().count() <= branch.looked_at {
            return None;
        }
        let open: Vec<Decision> = branch.decisions().collect();
        let Some((key, ways)) = self.discriminate(&open, &branch.decided) else {
            branch.looked_at = open.len();
            return None;
        };
        branch.looked_at = 0;
        branch.decided.push(key);
        branch.here = Place {
            map: branch.maps(),
            choice: branch.choices.len(),
        };
        Some(Choice {
            ways,
            ..Choice::of(Vec::new(), true)
        })
    }

    /// Evaluates what can be evaluated now; returns `false` if no value is left.
    pub(super) fn finish_shape(&mut self, shape: &mut Shape, goal: GoalId) -> bool {
        match shape {
            Shape::Constant | Shape::Array(_) | Shape::Object(_) => true,
            Shape::Number(shape) => shape.finish(),
            Shape::String(shape) => self.finish_string(shape, goal),
        }
    }
}
