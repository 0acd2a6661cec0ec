//! The search for the conjunctions of a goal, one after the other: who only asks whether there is a value stops at the first.

use crate::schema::goal::GoalId;
use crate::schema::node::Kind;

use super::{Branch, Denials, Shape};
use crate::schema::normal::Algebra;
use crate::schema::normal::step::Step;

/// The most conjunctions that one goal may be a union of, and the steps in which they are found.
const MOST_SHAPES: usize = 1_000;
const MOST_STEPS: usize = 30_000;

/// The same where nothing is denied: alternatives that are only listed cost little each.
const MOST_LISTED: usize = 2_600;

/// The same of an `enum` by itself, whose values are not combined with anything: 1 MB of small objects.
const MOST_VALUES: usize = 25_000;

/// The branches of a goal, for one kind of value, that were not followed to their ends yet.
pub(in crate::schema::normal) struct Search {
    goal: GoalId,
    kind: Kind,
    denials: Denials,
    stack: Vec<Branch>,
    /// How many conjunctions were found, and how many may be.
    found: usize,
    most: usize,
    /// The fuel that must be left for all ways to be wanted.
    enough: usize,
    /// Whether a denial was expanded into less than all its ways.
    pub(super) narrowed: bool,
}

/// There are more conjunctions than are wanted.
pub(in crate::schema::normal) struct TooMany;

impl Algebra<'_> {
    /// Puts all conjunctions into a list; false where they are more than are wanted, of which the first are found.
    pub(super) fn find_all(&mut self, search: &mut Search, shapes: &mut Vec<Shape>) -> bool {
        loop {
            match self.next_shape(search) {
                Ok(Some(shape)) => shapes.push(shape),
                Ok(None) => return true,
                Err(TooMany) => return false,
            }
        }
    }

    /// A search for the first conjunctions of a goal that gives up after so many steps.
    pub(in crate::schema::normal) fn short_search(&self, goal: GoalId, kind: Kind, steps: usize) -> Search {
        Search {
            enough: self.fuel.saturating_sub(steps),
            ..self.search(goal, kind, Denials::All)
        }
    }

    /// A search that has not begun.
    pub(super) fn search(&self, goal: GoalId, kind: Kind, denials: Denials) -> Search {
        let literals = self.goals.literals(goal);
        let todo = literals.iter().map(|&literal| Step::Literal(literal));
        Search {
            goal,
            kind,
            denials,
            stack: vec![Branch::new(kind, todo)],
            found: 0,
            most: match literals[..] {
                [only] if self.lists_values(only) => MOST_VALUES,
                _ => MOST_LISTED,
            },
            enough: self.fuel.saturating_sub(MOST_STEPS),
            narrowed: false,
        }
    }

    /// The next conjunction; `None` where there is no more.
    pub(in crate::schema::normal) fn next_shape(
        &mut self,
        search: &mut Search,
    ) -> Result<Option<Shape>, TooMany> {
        let (goal, kind) = (search.goal, search.kind);
        while let Some(mut branch) = search.stack.pop() {
            let spent = self.fuel < search.enough && search.denials == Denials::All;
            if search.found >= search.most || spent {
                return Err(TooMany);
            }
            if !self.settle(&mut branch, goal, kind) {
                continue;
            }
            self.drop_ruled_out(&mut branch);
            self.drop_decided(&mut branch);
            if branch.choices.iter().any(|choice| choice.denied.is_some()) {
                search.most = MOST_SHAPES;
            }
            let Some(choice) = self.take_cases(&mut branch).or_else(|| branch.take_choice()) else {
                if self.finish_shape(&mut branch.shape, goal) {
                    search.found += 1;
                    return Ok(Some(branch.shape));
                }
                continue;
            };
            if search.denials == Denials::One && choice.denied.is_some() {
                search.narrowed |= choice.ways.len() > 1;
                search.stack.extend(self.best_way(&branch, choice, goal, kind));
                continue;
            }
            let Some((first, others)) = choice.ways.split_first() else {
                continue;
            };
            for way in others.iter().rev() {
                let mut next = branch.clone();
                next.go(way.iter().cloned());
                search.stack.push(next);
            }
            branch.go(first.iter().cloned());
            search.stack.push(branch);
        }
        Ok(None)
    }
}
