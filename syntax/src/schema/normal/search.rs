//! The search for the conjunctions of a goal, one after the other. A caller that only needs to know whether
//! there is a value stops at the first.
//!
//! A branch contains everything that is known and all remaining choices, of which there may be thousands; for
//! each choice that was made, the other ways wait on the stack. So branches are weighed: fuel pays for
//! examining a large one, and if the waiting branches become too heavy, the ways that would be followed last
//! are dropped. A note says so, as for everything that is left out.
//!
//! The search is depth-first: with thousands of dependent keys, unweighed branches took a gigabyte.

use std::collections::VecDeque;

use crate::schema::forms::GoalId;
use crate::schema::node::Kind;
use crate::schema::shape::{Shape, Step};

use super::algebra::Algebra;
use super::branch::Branch;

/// The most conjunctions in the union of one goal, and the most steps to find them.
const MOST_SHAPES: usize = 1_000;
const MOST_STEPS: usize = 30_000;

/// The most conjunctions if nothing is denied: alternatives that are only listed cost little each.
const MOST_LISTED: usize = 2_600;

/// The most values of an `enum` by itself, which are not combined with anything: 1 MB of small objects.
const MOST_VALUES: usize = 25_000;

/// The weight of a branch that is examined and copied for one unit of fuel.
const WEIGHT_OF_FUEL: usize = 256;

/// The greatest total weight of the waiting branches, and of the conjunctions that were found: some 20 MB.
const MOST_WEIGHT: usize = 1 << 19;

/// The weight of an empty branch.
const BRANCH_WEIGHT: usize = size_of::<Branch>().div_ceil(WEIGHT_BYTES);

/// The approximate number of bytes of one unit of weight.
const WEIGHT_BYTES: usize = 40;

/// The number of maps up to which looking up a name has no significant cost.
const FEW_MAPS: usize = 64;

/// The way in which denials of schemas are expanded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Denials {
    /// Into all their ways.
    All,
    /// Into the one way that fits best, so that fewer values are allowed than the goal says.
    One,
}

/// The branches of a goal, for one kind of value, that have not been followed to their ends yet.
pub(super) struct Search {
    goal: GoalId,
    kind: Kind,
    denials: Denials,
    stack: VecDeque<Branch>,
    /// The total weight of the branches on the stack.
    waiting: usize,
    /// `true` if branches were dropped because the stack became too heavy.
    cut: bool,
    /// The number of conjunctions that were found, the maximum, and their weight.
    found: usize,
    most: usize,
    found_weight: usize,
    /// The fuel that must be left for the search to continue with all ways.
    enough: usize,
    /// `true` if a denial was expanded into fewer than all its ways.
    pub(super) narrowed: bool,
    /// The bytes that are reserved for the waiting branches and the conjunctions that were found.
    reserved: usize,
}

/// The error that there are more conjunctions than the maximum.
pub(super) struct TooMany;

impl Algebra<'_> {
    /// Appends all conjunctions to a list; returns `false` if there are too many, in which case the list
    /// contains the first ones.
    pub(super) fn find_all(&mut self, search: &mut Search, shapes: &mut Vec<Shape>) -> bool {
        loop {
            match self.next_shape(search) {
                Ok(Some(shape)) => shapes.push(shape),
                Ok(None) => return true,
                Err(TooMany) => return false,
            }
        }
    }

    /// Returns a search for the first conjunctions of a goal that gives up after this number of steps.
    pub(super) fn short_search(&self, goal: GoalId, kind: Kind, steps: usize) -> Search {
        Search {
            enough: self.fuel.saturating_sub(steps),
            ..self.search(goal, kind, Denials::All)
        }
    }

    /// Returns a search that has not begun.
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

    /// Reserves bytes for what a search currently holds, and for a branch that it examines.
    fn make_room(&mut self, search: &mut Search, branch: usize) -> bool {
        let needed = (search.waiting + search.found_weight + 2 * branch) * WEIGHT_BYTES;
        if needed <= search.reserved {
            return true;
        }
        let node = self.first_node(search.goal);
        // In portions, so that not every branch reserves.
        let more = (needed - search.reserved).max(search.reserved / 8).max(1 << 12);
        if !self.reserve(more, node) {
            return false;
        }
        search.reserved += more;
        true
    }

    /// Releases what a search holds.
    pub(super) fn end(&mut self, search: Search) {
        self.release(search.reserved);
    }

    /// Returns the next conjunction, or `None` if there are no more.
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
                    // Each name is looked up in all maps of keys later.
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
    /// Returns the weight of a branch: the cost of a copy of it, and of examining all its choices.
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

    /// Returns the weight of a waiting branch, which is not zero even if little is known about it.
    fn waiting_weight(&self) -> usize {
        self.weight() + BRANCH_WEIGHT
    }
}

impl Search {
    fn is_full(&self) -> bool {
        self.found >= self.most || self.found_weight > MOST_WEIGHT
    }

    /// Pushes a branch for each of the ways; the first one is followed next.
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

    /// Pushes a branch on the stack. If the stack becomes too heavy, the lowest branches, which would be
    /// followed last, are dropped.
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
