//! A branch of an expansion: the shape so far, demands still to be met, and choices still to be made.
//!
//! Whichever choice is made first, what it brings is put where the choice stands: the maps of an object's
//! keys are kept in the order in which they are met when the schema is read from the top, references and the
//! chosen branches in place.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::schema::forms::Literal;
use crate::schema::node::{Kind, NodeId};
use crate::schema::shape::{Demand, Listed, ObjectStep, Shape, Step};

use super::discriminate::Decision;

/// What is known of the values of a goal on one way through its choices, and what is still to be met and
/// chosen.
#[derive(Clone)]
pub(super) struct Branch {
    pub(super) shape: Shape,
    pub(super) todo: VecDeque<Todo>,
    /// In the order of the source.
    pub(super) choices: Vec<Choice>,
    pub(super) seen: Listed<Literal>,
    /// The keys of which the cases were told apart.
    pub(super) decided: Vec<Rc<str>>,
    /// How many decisions were open when they were looked at last, and no key was found that decides more of
    /// them.
    pub(super) looked_at: usize,
    pub(super) here: Place,
}

/// Where the source is read: among the maps that an object has so far, and among the choices.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) map: usize,
    pub(super) choice: usize,
}

/// What is still to be met.
#[derive(Clone)]
pub(super) enum Todo {
    Step(Step),
    Choice(Choice),
}

/// Ways of which one must be gone.
#[derive(Clone)]
pub(super) struct Choice {
    /// Shared by the branches that have not made the choice yet, of which there may be thousands.
    pub(super) ways: Rc<[Vec<Step>]>,
    /// The schema whose denial it is. Where what is known by now rules that schema out, there is nothing to
    /// choose.
    pub(super) denied: Option<NodeId>,
    /// Whether it is read last of all.
    pub(super) last: bool,
    /// How many maps come before those of the choice.
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
    /// A branch of which nothing is known but that these steps are to be met.
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

    /// Appends what was open to what is. There may be a hundred thousand of them, so the longer list stays
    /// where it is.
    pub(super) fn put_before(&mut self, mut open: VecDeque<Todo>) {
        if self.todo.len() >= open.len() {
            return self.todo.extend(open);
        }
        while let Some(last) = self.todo.pop_back() {
            open.push_front(last);
        }
        self.todo = open;
    }

    /// Leaves steps to be met.
    pub(super) fn go(&mut self, steps: impl IntoIterator<Item = Step>) {
        self.todo.extend(steps.into_iter().map(Todo::Step));
    }

    /// Whether all demands of a way are met already.
    fn meets(&self, way: &[Step]) -> bool {
        way.iter().all(|step| match step {
            Step::Literal(literal) => self.seen.contains(literal),
            Step::Object(step) => matches!(&self.shape, Shape::Object(shape) if shape.meets(step)),
            Step::Array(step) => matches!(&self.shape, Shape::Array(shape) if shape.meets(step)),
            _ => false,
        })
    }

    /// Leaves a demand to be met; false where nothing meets it.
    pub(super) fn demand(&mut self, demand: Demand) -> bool {
        self.demand_of(demand, None)
    }

    /// The same of a demand that is the denial of a schema.
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

    /// Puts a choice off, and remembers where it stands.
    pub(super) fn leave_open(&mut self, mut choice: Choice) {
        if choice.last {
            choice.map = self.maps();
            return self.choices.push(choice);
        }
        choice.map = self.here.map;
        self.choices.insert(self.here.choice, choice);
        self.here.choice += 1;
    }

    /// How many maps there are.
    pub(super) fn maps(&self) -> usize {
        match &self.shape {
            Shape::Object(shape) => shape.maps.len(),
            _ => 0,
        }
    }

    /// Adds a demand at the place that is read; false where the shape has no value any more.
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

    /// The implications and conditions among the choices.
    pub(super) fn decisions(&self) -> impl Iterator<Item = Decision> {
        self.choices
            .iter()
            .filter_map(|choice| Decision::of(&choice.ways))
    }

    /// The choice with the fewest ways, and what is read next is what it brings. Choices of which one way is
    /// met already are none.
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
