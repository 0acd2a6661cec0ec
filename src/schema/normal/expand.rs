//! Expansion: a goal and a kind of value to the union of conjunctions that it is.
//!
//! A branch holds the shape so far, demands still to be met, and choices still to be made. Demands are met first; a branch
//! that contradicts itself is dropped at once; then the choice with the fewest ways is made, and each way is a branch.
//!
//! Whichever choice is made first, what it brings is put where the choice stands: the maps of an object's keys are kept in
//! the order in which they are met when the schema is read from the top, references and the chosen branches in place.

mod search;

use std::collections::VecDeque;
use std::rc::Rc;

use crate::schema::goal::{GoalId, Literal};
use crate::schema::node::{Keyword, Keywords, Kind, NodeId};

use super::array::ArrayShape;
use super::discriminate::{Decided, Decision};
use super::listed::Listed;
use super::number::NumberShape;
use super::object::ObjectShape;
use super::step::{ObjectStep, Step};
use super::string::StringShape;
use super::{Algebra, LeftOut};

pub(super) use search::TooMany;

/// So many choices are looked at for one unit of fuel, whether they are decided.
const DECISIONS_OF_FUEL: usize = 16;

/// About the bytes of a way of a choice, of one step, while it is put together.
const WAY_BYTES: usize = 512;

/// So many schemas are said of the items of an array for one unit of fuel.
const SAID_OF_FUEL: usize = 64;

/// What a branch says about values of its kind.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    /// `null`, `true` or `false`: there is nothing to say.
    Constant,
    Number(NumberShape),
    String(StringShape),
    Array(ArrayShape),
    Object(ObjectShape),
}

/// What a demand amounts to, for one kind of value.
pub(super) enum Demand {
    /// No value satisfies it.
    Never,
    /// All of these.
    All(Vec<Step>),
    /// All of one of these.
    Any(Vec<Vec<Step>>),
}

impl Demand {
    pub(super) fn nothing() -> Demand {
        Demand::All(Vec::new())
    }

    pub(super) fn one(step: Step) -> Demand {
        Demand::All(vec![step])
    }

    /// The ways to meet it.
    pub(super) fn ways(self) -> Vec<Vec<Step>> {
        match self {
            Demand::Never => Vec::new(),
            Demand::All(steps) => vec![steps],
            Demand::Any(ways) => ways,
        }
    }

    /// Both of two.
    pub(super) fn and(self, other: Demand) -> Demand {
        let (left, right) = (self.ways(), other.ways());
        let pairs = left
            .iter()
            .flat_map(|one| right.iter().map(|other| [&one[..], other].concat()));
        Demand::any(pairs.collect())
    }

    /// A choice, simplified where it is none.
    pub(super) fn any(mut ways: Vec<Vec<Step>>) -> Demand {
        match ways.len() {
            0 => Demand::Never,
            1 => Demand::All(ways.remove(0)),
            _ => Demand::Any(ways),
        }
    }
}

#[derive(Clone)]
struct Branch {
    shape: Shape,
    todo: VecDeque<Todo>,
    /// In the order of the source.
    choices: Vec<Choice>,
    seen: Listed<Literal>,
    /// The keys of which the cases were told apart.
    decided: Vec<Rc<str>>,
    /// How many decisions were open when they were looked at last, and no key was found that decides more of them.
    looked_at: usize,
    here: Place,
}

/// Where the source is read: among the maps that an object has so far, and among the choices.
#[derive(Clone, Copy, Default)]
struct Place {
    map: usize,
    choice: usize,
}

#[derive(Clone)]
enum Todo {
    Step(Step),
    Choice(Choice),
}

/// Ways of which one must be gone.
#[derive(Clone)]
struct Choice {
    /// Shared by the branches that have not made the choice yet, of which there may be thousands.
    ways: Rc<[Vec<Step>]>,
    /// The schema whose denial it is. Where what is known by now rules that schema out, there is nothing to choose.
    denied: Option<NodeId>,
    /// Whether it is read last of all.
    last: bool,
    /// How many maps come before those of the choice.
    map: usize,
}

impl Choice {
    fn of(ways: Vec<Vec<Step>>, last: bool) -> Choice {
        Choice {
            ways: ways.into(),
            denied: None,
            last,
            map: 0,
        }
    }
}

/// How the denials of schemas are expanded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Denials {
    /// Into all their ways.
    All,
    /// Into the one way that fits best, so that less is allowed than the goal asks for.
    One,
}

impl Algebra<'_> {
    /// The conjunctions whose union is the goal, for one kind of value. Where they are too many, only some of them: less
    /// is allowed then, which is noted with what is left out.
    pub(super) fn expand(&mut self, goal: GoalId, kind: Kind) -> Vec<Shape> {
        let mut shapes = Vec::new();
        let mut all = self.search(goal, kind, Denials::All);
        let complete = self.find_all(&mut all, &mut shapes);
        self.end(all);
        if complete {
            return shapes;
        }
        // With one way for each denial they are never too many, because those that are found first are enough.
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

    /// The branch behind the way of a denial that leaves most of the values that people mean.
    fn best_way(&mut self, branch: &Branch, choice: Choice, goal: GoalId, kind: Kind) -> Option<Branch> {
        let mut ways: Vec<&Vec<Step>> = choice.ways.iter().collect();
        ways.sort_by_key(|way| self.way_cost(branch, way));
        ways.into_iter().find_map(|way| {
            let mut next = branch.clone();
            next.go(way.iter().cloned());
            self.settle(&mut next, goal, kind).then_some(next)
        })
    }

    /// How much a way of a denial costs: it is best if the value of a key that is there anyway differs, as that of a
    /// discriminator does, or if a key is absent of which nothing is said.
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

    /// Meets all demands that leave no choice; false where they contradict one another.
    fn settle(&mut self, branch: &mut Branch, goal: GoalId, kind: Kind) -> bool {
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
        // What the keywords bring comes before what was open: the order of the source is the order of the keys.
        let open = std::mem::take(&mut branch.todo);
        let fits = self.settle_keywords(branch, literal.node, &keywords, kind);
        branch.put_before(open);
        fits
    }

    /// Meets what an affirmed schema asks, and leaves what is to be met then.
    fn settle_keywords(
        &mut self,
        branch: &mut Branch,
        node: NodeId,
        keywords: &Keywords,
        kind: Kind,
    ) -> bool {
        if let Some(child) = self.unevaluated(node, kind) {
            // The cases say all that the keywords say.
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

    /// What a keyword asks of values of a kind, where it holds.
    pub(super) fn affirm(
        &mut self,
        node: NodeId,
        name: &'static str,
        keyword: &Keyword,
        kind: Kind,
    ) -> Demand {
        let literal = |node: NodeId| Step::Literal(Literal::yes(node));
        match keyword {
            Keyword::Never => Demand::Never,
            Keyword::Ref(reference) => Demand::one(literal(self.tree.target(*reference))),
            Keyword::AllOf(list) => Demand::All(list.iter().copied().map(literal).collect()),
            Keyword::AnyOf(list) | Keyword::OneOf(list) if !self.fits(list.len() * WAY_BYTES, node) => {
                Demand::Never
            }
            Keyword::AnyOf(list) => {
                let able = list.iter().filter(|&&node| self.may_be(node, kind));
                Demand::any(able.map(|&node| vec![literal(node)]).collect())
            }
            Keyword::OneOf(list) => self.exactly_one(list, kind),
            Keyword::Not(child) => Demand::one(Step::Literal(Literal::new(*child, false))),
            Keyword::If {
                then: None,
                otherwise: None,
                ..
            } => Demand::nothing(),
            Keyword::If {
                condition,
                then,
                otherwise,
            } => {
                let way = |sign: bool, next: &Option<NodeId>| {
                    let first = Step::Literal(Literal::new(*condition, sign));
                    std::iter::once(first).chain(next.map(literal)).collect()
                };
                Demand::any(vec![way(true, then), way(false, otherwise)])
            }
            Keyword::Type { types, whole } => super::number::type_demand(*types, *whole, kind),
            Keyword::Values(values) => super::values::among(values, kind),
            Keyword::Minimum { .. } | Keyword::Maximum { .. } | Keyword::MultipleOf(_) => {
                only(kind, Kind::Number, || super::number::affirm(keyword))
            }
            Keyword::MinLength(_) | Keyword::MaxLength(_) | Keyword::Text(_) | Keyword::AnyText(_) => {
                only(kind, Kind::String, || super::string::affirm(keyword))
            }
            Keyword::Items { .. }
            | Keyword::MinItems(_)
            | Keyword::MaxItems(_)
            | Keyword::Contains { .. }
            | Keyword::UniqueItems => only(kind, Kind::Array, || super::array::affirm(node, name, keyword)),
            // Asked of the node as a whole, because it speaks about what the other keywords do not.
            Keyword::UnevaluatedItems(_) | Keyword::UnevaluatedProperties(_) => Demand::nothing(),
            _ => only(kind, Kind::Object, || super::object::affirm(keyword)),
        }
    }

    /// Exactly one schema of a list holds. Those that exclude one another anyway need not be denied.
    fn exactly_one(&mut self, list: &[NodeId], kind: Kind) -> Demand {
        let able = list.iter().copied().filter(|&node| self.may_be(node, kind));
        let list: Vec<NodeId> = able.collect();
        let rivals = self.rivals(&list, kind);
        let ways = list.iter().zip(rivals).map(|(&node, rivals)| {
            let denied = rivals.into_iter().map(|other| Literal::new(list[other], false));
            std::iter::once(Literal::yes(node))
                .chain(denied)
                .map(Step::Literal)
                .collect()
        });
        Demand::any(ways.collect())
    }

    /// Drops denials of schemas that the branch excludes anyway: the discriminator of a `oneOf` is enough.
    fn drop_ruled_out(&mut self, branch: &mut Branch) {
        let Shape::Object(shape) = &branch.shape else {
            return;
        };
        let mut choices = std::mem::take(&mut branch.choices);
        choices.retain(|choice| !choice.denied.is_some_and(|node| self.rules_out(shape, node)));
        branch.choices = choices;
    }

    /// Drops implications that hold by what is known of the keys whose cases were told apart, and the ways of others, and of
    /// conditions, that cannot be gone.
    fn drop_decided(&mut self, branch: &mut Branch, goal: GoalId) {
        // What was open before is open still, until the case of another key is known.
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

    /// Whether a choice is left where it stands, after the ways were dropped that cannot be gone.
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
                // It says in which order its keys come.
                Decided::Holds => choice.ways = choice.ways[..1].into(),
                Decided::Impossible => choice.ways = [choice.ways[1][1..].to_vec()].into(),
            },
        }
        choice.ways.iter().all(|way| !way.is_empty())
    }

    /// A choice between the cases of a key that decides about several implications and conditions.
    fn take_cases(&mut self, branch: &mut Branch) -> Option<Choice> {
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

    /// Evaluates what can be evaluated now; false where nothing is left.
    fn finish_shape(&mut self, shape: &mut Shape, goal: GoalId) -> bool {
        match shape {
            Shape::Constant | Shape::Array(_) | Shape::Object(_) => true,
            Shape::Number(shape) => shape.finish(),
            Shape::String(shape) => self.finish_string(shape, goal),
        }
    }
}

/// Demands of keywords for one kind say nothing about the others.
pub(super) fn only(kind: Kind, wanted: Kind, demand: impl FnOnce() -> Demand) -> Demand {
    if kind == wanted {
        demand()
    } else {
        Demand::nothing()
    }
}

impl Branch {
    fn new(kind: Kind, steps: impl IntoIterator<Item = Step>) -> Branch {
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

    /// Puts what was open behind what is. There may be a hundred thousand of them, so the longer list stays where it is.
    fn put_before(&mut self, mut open: VecDeque<Todo>) {
        if self.todo.len() >= open.len() {
            return self.todo.extend(open);
        }
        while let Some(last) = self.todo.pop_back() {
            open.push_front(last);
        }
        self.todo = open;
    }

    fn go(&mut self, steps: impl IntoIterator<Item = Step>) {
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

    fn demand(&mut self, demand: Demand) -> bool {
        self.demand_of(demand, None)
    }

    fn demand_of(&mut self, demand: Demand, denied: Option<NodeId>) -> bool {
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
    fn leave_open(&mut self, mut choice: Choice) {
        if choice.last {
            choice.map = self.maps();
            return self.choices.push(choice);
        }
        choice.map = self.here.map;
        self.choices.insert(self.here.choice, choice);
        self.here.choice += 1;
    }

    /// How many maps there are.
    fn maps(&self) -> usize {
        match &self.shape {
            Shape::Object(shape) => shape.maps.len(),
            _ => 0,
        }
    }

    /// Adds a demand at the place that is read; false where the shape has no value any more.
    fn add(&mut self, step: Step) -> bool {
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
    fn decisions(&self) -> impl Iterator<Item = Decision> {
        self.choices
            .iter()
            .filter_map(|choice| Decision::of(&choice.ways))
    }

    /// The choice with the fewest ways, and what is read next is what it brings. Choices of which one way is met already
    /// are none.
    fn take_choice(&mut self) -> Option<Choice> {
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

impl Shape {
    fn new(kind: Kind) -> Shape {
        match kind {
            Kind::Null | Kind::False | Kind::True => Shape::Constant,
            Kind::Number => Shape::Number(NumberShape::default()),
            Kind::String => Shape::String(StringShape::default()),
            Kind::Array => Shape::Array(ArrayShape::default()),
            Kind::Object => Shape::Object(ObjectShape::default()),
        }
    }

    /// Adds a demand; false where the shape has no value any more.
    fn add(&mut self, step: Step) -> bool {
        match (self, step) {
            (Shape::Number(shape), Step::Number(step)) => shape.add(step),
            (Shape::String(shape), Step::String(step)) => shape.add(step),
            (Shape::Array(shape), Step::Array(step)) => shape.add(step),
            (Shape::Object(shape), Step::Object(step)) => shape.add(step),
            // A demand on another kind of value says nothing about this one.
            _ => true,
        }
    }
}
