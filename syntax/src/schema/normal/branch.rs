//! A branch of an expansion: the shape so far, the open demands, and the open choices.
//!
//! Whichever choice is made first, its results are inserted at the position of the choice: the maps of an
//! object's keys are kept in the order in which they occur when the schema is read from the top, with
//! references and the chosen branches read in place.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::schema::forms::Literal;
use crate::schema::node::{Kind, NodeId};
use crate::schema::shape::{Demand, Listed, ObjectStep, Shape, Step};

use super::discriminate::Decision;

/// The known constraints on the values of a goal after one sequence of choices, with the demands and choices
/// that are still open.
#[derive(Clone)]
pub(super) struct Branch {
    pub(super) shape: Shape,
    pub(super) todo: VecDeque<Todo>,
    /// The open choices, in the order of the source.
    pub(super) choices: Vec<Choice>,
    pub(super) seen: Listed<Literal>,
    /// The keys whose cases have been distinguished.
    pub(super) decided: Vec<Rc<str>>,
    /// The number of open decisions when they were last examined and no key was found that decides more of
    /// them.
    pub(super) looked_at: usize,
    pub(super) here: Place,
}

/// A position in the source: among the maps of an object so far, and among the choices.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) map: usize,
    pub(super) choice: usize,
}

/// An open demand.
#[derive(Clone)]
pub(super) enum Todo {
    Step(Step),
    Choice(Choice),
}

/// A choice between ways, one of which must be taken.
#[derive(Clone)]
pub(super) struct Choice {
    /// Shared by the branches that have not made the choice yet, of which there may be thousands.
    pub(super) ways: Rc<[Vec<Step>]>,
    /// The schema of which this choice is the denial. If the branch already rules that schema out, there is
    /// nothing to choose.
    pub(super) denied: Option<NodeId>,
    /// `true` if it is read after everything else.
    pub(super) last: bool,
    /// The number of maps before the maps of the choice.
    pub(super) map: usize,
}

impl Choice {
    pub(super) fn of(ways: Vec<Vec<Step>>, last: bool) -> Choice {
        Choice {
            ways: ways.into(),
            denied: None,
            last,
            map: 0,
        }
    }
}

impl Branch {
    /// Returns a branch of which nothing is known except that these steps must be met.
    pub(super) fn new(kind: Kind, steps: impl IntoIterator<Item = Step>) -> Branch {
        let mut branch = Branch {
            shape: Shape::new(kind),
            todo: VecDeque::new(),
            choices: Vec::new(),
            seen: Listed::default(),
            decided: Vec::new(),
            looked_at: 0,
            here: Place::default(),
        };
        branch.go(steps);
        branch
    }

    /// Appends `open` to the open demands. There may be a hundred thousand of them, so the longer list is not
    /// moved.
    pub(super) fn put_before(&mut self, mut open: VecDeque<Todo>) {
        if self.todo.len() >= open.len() {
            return self.todo.extend(open);
        }
        while let Some(last) = self.todo.pop_back() {
            open.push_front(last);
        }
        self.todo = open;
    }

    /// Adds steps to the open demands.
    pub(super) fn go(&mut self, steps: impl IntoIterator<Item = Step>) {
        self.todo.extend(steps.into_iter().map(Todo::Step));
    }

    /// Returns `true` if all demands of a way are already met.
    fn meets(&self, way: &[Step]) -> bool {
        way.iter().all(|step| match step {
            Step::Literal(literal) => self.seen.contains(literal),
            Step::Object(step) => matches!(&self.shape, Shape::Object(shape) if shape.meets(step)),
            Step::Array(step) => matches!(&self.shape, Shape::Array(shape) if shape.meets(step)),
            _ => false,
        })
    }

    /// Adds an open demand; returns `false` if nothing can meet it.
    pub(super) fn demand(&mut self, demand: Demand) -> bool {
        self.demand_of(demand, None)
    }

    /// Adds an open demand that may be the denial of a schema; returns `false` if nothing can meet it.
    pub(super) fn demand_of(&mut self, demand: Demand, denied: Option<NodeId>) -> bool {
        match demand {
            Demand::Never => return false,
            Demand::All(steps) => self.go(steps),
            Demand::Any(ways) => self.todo.push_back(Todo::Choice(Choice {
                denied,
                ..Choice::of(ways, true)
            })),
        }
        true
    }

    /// Postpones a choice, and records its position.
    pub(super) fn leave_open(&mut self, mut choice: Choice) {
        if choice.last {
            choice.map = self.maps();
            return self.choices.push(choice);
        }
        choice.map = self.here.map;
        self.choices.insert(self.here.choice, choice);
        self.here.choice += 1;
    }

    /// Returns the number of maps.
    pub(super) fn maps(&self) -> usize {
        match &self.shape {
            Shape::Object(shape) => shape.maps.len(),
            _ => 0,
        }
    }

    /// Adds a demand at the current position; returns `false` if the shape has no values left.
    pub(super) fn add(&mut self, step: Step) -> bool {
        let (Shape::Object(shape), Step::Object(ObjectStep::Keys(map))) = (&mut self.shape, &step) else {
            return self.shape.add(step);
        };
        shape.maps.insert(self.here.map, map.clone());
        self.here.map += 1;
        for later in &mut self.choices[self.here.choice..] {
            later.map += 1;
        }
        true
    }

    /// Returns the implications and conditions among the choices.
    pub(super) fn decisions(&self) -> impl Iterator<Item = Decision> {
        self.choices
            .iter()
            .filter_map(|choice| Decision::of(&choice.ways))
    }

    /// Takes the choice with the fewest ways, and continues reading at its position. Choices of which one way
    /// is already met are dropped.
    pub(super) fn take_choice(&mut self) -> Option<Choice> {
        let mut choices = std::mem::take(&mut self.choices);
        choices.retain(|choice| !choice.ways.iter().any(|way| self.meets(way)));
        self.choices = choices;
        let (at, _) = self
            .choices
            .iter()
            .enumerate()
            .min_by_key(|(_, choice)| choice.ways.len())?;
        let choice = self.choices.remove(at);
        let map = choice.map;
        self.here = Place { map, choice: at };
        Some(choice)
    }
}
