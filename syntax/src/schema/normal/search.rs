//! The search for the conjunctions of a goal, one after the other: who only asks whether there is a value
//! stops at the first.
//!
//! A branch holds what is known and all choices that are left, which may be thousands, and for each choice
//! that was made the other ways wait. So branches are weighed: fuel pays for looking at a large one, and if
//! those that wait become too heavy, the ways that would be followed last are given up. What is left out is
//! noted like all that is left out.
//!
//! The search is depth first, and a branch holds all remaining choices: with thousands of dependent keys,
//! unweighed branches took a gigabyte.

use std::collections::VecDeque;

use crate::schema::forms::GoalId;
use crate::schema::node::Kind;
use crate::schema::shape::{Shape, Step};

use super::algebra::Algebra;
use super::branch::Branch;

/// The most conjunctions that one goal may be a union of, and the steps in which they are found.
const MOST_SHAPES: usize = 1_000;
const MOST_STEPS: usize = 30_000;

/// The same where nothing is denied: alternatives that are only listed cost little each.
const MOST_LISTED: usize = 2_600;

/// The same of an `enum` by itself, whose values are not combined with anything: 1 MB of small objects.
const MOST_VALUES: usize = 25_000;

/// The weight of a branch that is looked at and copied for one unit of fuel.
const WEIGHT_OF_FUEL: usize = 256;

/// The most that the branches which wait may weigh together, and those that were found: some 20 MB.
const MOST_WEIGHT: usize = 1 << 19;

/// What an empty branch weighs.
const BRANCH_WEIGHT: usize = size_of::<Branch>().div_ceil(WEIGHT_BYTES);

/// About the bytes of what weighs one.
const WEIGHT_BYTES: usize = 40;

/// The number of maps in which looking a name up costs nothing that counts.
const FEW_MAPS: usize = 64;

/// How the denials of schemas are expanded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Denials {
    /// Into all their ways.
    All,
    /// Into the one way that fits best, so that less is allowed than the goal asks for.
    One,
}

/// The branches of a goal, for one kind of value, that were not followed to their ends yet.
pub(super) struct Search {
    goal: GoalId,
    kind: Kind,
    denials: Denials,
    stack: VecDeque<Branch>,
    /// How much the branches on the stack weigh together.
    waiting: usize,
    /// Whether branches were dropped because too much waited.
    cut: bool,
    /// How many conjunctions were found, how many may be, and what they weigh.
    found: usize,
    most: usize,
    found_weight: usize,
    /// The fuel that must be left for all ways to be wanted.
    enough: usize,
    /// Whether a denial was expanded into less than all its ways.
    pub(super) narrowed: bool,
    /// The bytes that are reserved for the branches that wait and the conjunctions that were found.
    reserved: usize,
}

/// There are more conjunctions than are wanted.
pub(super) struct TooMany;

impl Algebra<'_> {
    /// Puts all conjunctions into a list; false where they are more than are wanted, of which the first are
    /// found.
    pub(super) fn find_all(&mut self, search: &mut Search, shapes: &mut Vec<Shape>) -> bool {
        loop {
            match self.next_shape(search) {
                Ok(Some(shape)) => shapes.push(shape),
                Ok(None) => return true,
                Err(TooMany) => return false,
            }
        }
    }

    /// A search for the first conjunctions of a goal that gives up after this number of steps.
    pub(super) fn short_search(&self, goal: GoalId, kind: Kind, steps: usize) -> Search {
        Search {
            enough: self.fuel.saturating_sub(steps),
            ..self.search(goal, kind, Denials::All)
        }
    }

    /// A search that has not begun.
    pub(super) fn search(&self, goal: GoalId, kind: Kind, denials: Denials) -> Search {
        let literals = self.goals.literals(goal);
        let todo = literals.iter().map(|&literal| Step::Literal(literal));
        let first = Branch::new(kind, todo);
        Search {
            goal,
            kind,
            denials,
            waiting: first.waiting_weight(),
            stack: VecDeque::from([first]),
            cut: false,
            found: 0,
            found_weight: 0,
            most: match literals[..] {
                [only] if self.lists_values(only) => MOST_VALUES,
                _ => MOST_LISTED,
            },
            enough: self.fuel.saturating_sub(MOST_STEPS),
            narrowed: false,
            reserved: 0,
        }
    }

    /// Reserves bytes for what a search holds by now, and for a branch that it looks at.
    fn make_room(&mut self, search: &mut Search, branch: usize) -> bool {
        let needed = (search.waiting + search.found_weight + 2 * branch) * WEIGHT_BYTES;
        if needed <= search.reserved {
            return true;
        }
        let node = self.first_node(search.goal);
        // In portions, so that not every branch asks.
        let more = (needed - search.reserved).max(search.reserved / 8).max(1 << 12);
        if !self.reserve(more, node) {
            return false;
        }
        search.reserved += more;
        true
    }

    /// Gives back what a search held.
    pub(super) fn end(&mut self, search: Search) {
        self.release(search.reserved);
    }

    /// The next conjunction; `None` where there is no more.
    pub(super) fn next_shape(&mut self, search: &mut Search) -> Result<Option<Shape>, TooMany> {
        let (goal, kind) = (search.goal, search.kind);
        while let Some(mut branch) = search.pop() {
            let all = search.denials == Denials::All;
            if search.is_full() || all && (search.cut || self.fuel < search.enough) {
                return Err(TooMany);
            }
            let fits = self.settle(&mut branch, goal, kind);
            let weight = branch.weight();
            if !fits || !self.burn(weight / WEIGHT_OF_FUEL, goal) || !self.make_room(search, weight) {
                continue;
            }
            self.drop_ruled_out(&mut branch);
            self.drop_decided(&mut branch, goal);
            if branch.choices.iter().any(|choice| choice.denied.is_some()) {
                search.most = MOST_SHAPES;
            }
            let Some(choice) = self.take_cases(&mut branch).or_else(|| branch.take_choice()) else {
                if self.finish_shape(&mut branch.shape, goal) {
                    search.found += 1;
                    // Each name is looked for in all maps of keys then.
                    search.found_weight += branch.weight() * (1 + branch.maps() / FEW_MAPS);
                    return Ok(Some(branch.shape));
                }
                continue;
            };
            if !all && choice.denied.is_some() {
                search.narrowed |= choice.ways.len() > 1;
                if let Some(next) = self.best_way(&branch, choice, goal, kind) {
                    search.push(next);
                }
                continue;
            }
            search.fork(branch, &choice.ways);
        }
        if search.cut { Err(TooMany) } else { Ok(None) }
    }
}

impl Branch {
    /// How much there is of it: what a copy of it takes, and a look at all its choices.
    fn weight(&self) -> usize {
        let said = match &self.shape {
            Shape::Object(shape) => {
                let keys = shape.required.len() + shape.absent.len() + shape.values.len();
                keys + shape.some.len() + shape.names.len()
            }
            Shape::Array(shape) => shape.said(),
            Shape::Number(shape) => {
                let only = shape.only.as_ref().map_or(0, Vec::len);
                only + shape.except.len() + shape.not_steps.len()
            }
            Shape::String(shape) => shape.except.len() + shape.texts.len(),
            Shape::Constant => 0,
        };
        self.choices.len() + self.todo.len() + self.seen.len() + self.maps() + said
    }

    /// What a branch weighs that waits: one about which little is known is something, too.
    fn waiting_weight(&self) -> usize {
        self.weight() + BRANCH_WEIGHT
    }
}

impl Search {
    fn is_full(&self) -> bool {
        self.found >= self.most || self.found_weight > MOST_WEIGHT
    }

    /// A branch for each of the ways, of which the first is followed next.
    fn fork(&mut self, mut branch: Branch, ways: &[Vec<Step>]) {
        let Some((first, others)) = ways.split_first() else {
            return;
        };
        let room = others.len().min(MOST_WEIGHT / branch.waiting_weight());
        self.cut |= room < others.len();
        for way in others[..room].iter().rev() {
            let mut next = branch.clone();
            next.go(way.iter().cloned());
            self.push(next);
        }
        branch.go(first.iter().cloned());
        self.push(branch);
    }

    /// Puts a branch on the stack. Where too much waits, those below are dropped, which would be followed
    /// last.
    fn push(&mut self, branch: Branch) {
        self.waiting += branch.waiting_weight();
        self.stack.push_back(branch);
        while self.waiting > MOST_WEIGHT && self.stack.len() > 1 {
            self.cut = true;
            let dropped = self.stack.pop_front();
            self.waiting -= dropped.map_or(0, |branch| branch.waiting_weight());
        }
    }

    fn pop(&mut self) -> Option<Branch> {
        let branch = self.stack.pop_back()?;
        self.waiting -= branch.waiting_weight();
        Some(branch)
    }
}
