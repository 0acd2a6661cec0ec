//! Stage 3: goals to normal forms, the algebra of the compiler.
//!
//! A normal form says, for each JSON type, which values a goal allows, as a union of *shapes*. A shape is a plain
//! conjunction: an interval with a step, a regular set of strings with a length, an array or object whose parts are goals
//! again. Everything else (`anyOf`, `oneOf`, `not`, `if`, dependencies, references) is gone.
//!
//! ```text
//!   goal ──expand──► branches ──finish──► shapes ──► goals of their parts ──► … until no goal is new
//!          (per kind of value)                                                       │
//!                                               empty: which goals have no value  ◄──┘
//! ```
//!
//! Expansion is by kind of value, so a union of an object and a string costs the string nothing. All loops are over
//! lists and take fuel, so no schema can make them run long or deep.

mod array;
mod clash;
mod discriminate;
mod disjoint;
mod empty;
mod expand;
mod glance;
mod keys;
mod kinds;
mod listed;
mod negate;
mod number;
mod object;
mod repeated;
mod rivals;
mod step;
mod string;
mod unevaluated;
mod unique;
mod values;
mod way;

pub(crate) use array::Array;
pub(crate) use clash::explain;
pub(crate) use number::{Bound, NumberShape};
pub(crate) use object::{Member, Object, RestClass};
pub(crate) use string::StringShape;
pub(crate) use way::Way;

use std::fmt;
use std::rc::Rc;

use foldhash::{HashSet, HashSetExt};
use rustc_hash::FxHashMap;

use crate::error::{CompileError, Place, Problem, ProblemKind};
use crate::limits::{Account, Limits};

use super::decimal::Decimal;
use super::findings::Findings;
use super::goal::{GoalId, Goals, Literal};
use super::node::{Keyword, Kind, Kinds, Node, NodeId, Tree, Types, Values, Whole};
use super::parse::Parsed;
use super::text::{TextSet, Texts};

use discriminate::Cases;
use expand::Shape;

/// What a goal allows, by kind of value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Normal {
    pub(crate) null: bool,
    pub(crate) no: bool,
    pub(crate) yes: bool,
    pub(crate) numbers: Vec<NumberShape>,
    pub(crate) strings: Vec<StringShape>,
    pub(crate) arrays: Vec<Array>,
    pub(crate) objects: Vec<Object>,
}

/// What is left out of a goal that is too large a union.
#[derive(Clone, Copy)]
enum LeftOut {
    /// Ways of denying a part, but for one of each.
    Denials,
    /// Alternatives, beyond the first so many.
    Alternatives { kept: usize },
    /// Objects that must have too many keys that are not named.
    Wishes,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftOut::Denials => f.write_str(
                "its parts combine in too many ways; an object that must not match a schema breaks it in one property only",
            ),
            LeftOut::Alternatives { kept } => write!(
                f,
                "its parts combine in too many ways; only the first {kept} are kept"
            ),
            LeftOut::Wishes => write!(
                f,
                "objects that need more than {} keys without a name in the schema are left out",
                way::MOST_WISHES
            ),
        }
    }
}

/// The normal forms of every goal that the root reaches.
pub(crate) struct NormalForms {
    pub(crate) tree: Tree,
    pub(crate) texts: Texts,
    pub(crate) goals: Goals,
    pub(crate) normals: Vec<Rc<Normal>>,
    /// Whether a goal has a value at all, as far as the algebra can tell.
    pub(crate) productive: Vec<bool>,
    pub(crate) root: GoalId,
    /// Findings that do not stop the compile.
    pub(crate) notes: Vec<Problem>,
    /// Whether parts were left out because there were too many, so that emptiness proves nothing.
    pub(crate) truncated: bool,
    /// The bytes of all this.
    _held: Account,
}

/// About the bytes of a schema that the algebra makes, with a keyword.
const NODE_BYTES: usize = 512;

/// An array of a goal is compared with so many others to find out that it is another.
const COMPARED: usize = 1_000;

/// The same for an object, among those that have as many members with the same goals: they differ in names alone.
const COMPARED_OBJECTS: usize = 64;

/// The state of the algebra.
pub(crate) struct Algebra<'l> {
    pub(super) limits: &'l Limits,
    pub(super) tree: Tree,
    pub(super) texts: Texts,
    pub(super) goals: Goals,
    normals: FxHashMap<GoalId, Rc<Normal>>,
    /// The normal forms of schemas that say nothing but a type: most of a schema is made of such.
    of_type: FxHashMap<(Types, Whole), Rc<Normal>>,
    /// The kinds of value that each schema may allow, where that was asked.
    kinds: Vec<Option<Kinds>>,
    /// Pairs of schemas of which it is known whether they can share a value.
    disjoint: FxHashMap<(NodeId, NodeId), bool>,
    /// Whether schemas, where they hold, may speak of keys or items, as far as it was asked.
    speaking: FxHashMap<(NodeId, Kind), bool>,
    /// Goals of which it is known whether they have surely no value, so many levels down.
    empty: FxHashMap<(GoalId, u32), bool>,
    /// A schema that allows everything, once one was needed.
    anything: Option<NodeId>,
    /// For lists of patterns for keys, the pairs that may match one key; `None` where they are many.
    together: FxHashMap<Vec<TextSet>, Option<Rc<keys::Pairs>>>,
    /// The cases of keys that were told apart, by the key and the lists of its values.
    cases: FxHashMap<(Rc<str>, Vec<NodeId>), Cases>,
    /// Unions that were made of schemas of the source.
    unions: FxHashMap<Vec<NodeId>, NodeId>,
    /// How deep tests for emptiness are nested at the moment.
    depth: u32,
    /// Goals of which only some conjunctions were made, because all would have been too many.
    truncated: HashSet<GoalId>,
    /// Goals that may have values beyond their normal forms, because a format is known in part.
    uncertain: HashSet<GoalId>,
    /// Whether a conjunction of the goal at hand was left out.
    dropped: bool,
    fuel: usize,
    /// The bytes of what is made here.
    held: Account,
    reported: HashSet<(NodeId, &'static str)>,
    problems: Findings,
    notes: Findings,
}

/// Brings everything that the root of a source reaches into normal form.
pub(crate) fn normalise(parsed: Parsed, limits: &Limits) -> Result<NormalForms, CompileError> {
    let root = parsed.root;
    let mut algebra = Algebra::new(parsed, limits);
    let root_goal = algebra.goals.intern(vec![Literal::yes(root)]);
    let reached = algebra.reach(root_goal);
    if !algebra.problems.is_empty() {
        let mut problems = algebra.problems.into_list();
        problems.sort_by(|a, b| a.place.cmp(&b.place));
        return Err(CompileError { problems });
    }
    Ok(algebra.into_forms(root_goal, &reached))
}

impl<'l> Algebra<'l> {
    fn new(parsed: Parsed, limits: &'l Limits) -> Algebra<'l> {
        Algebra {
            limits,
            tree: parsed.tree,
            texts: parsed.texts,
            goals: Goals::new(limits.cancel.account()),
            normals: FxHashMap::default(),
            of_type: FxHashMap::default(),
            kinds: Vec::new(),
            disjoint: FxHashMap::default(),
            speaking: FxHashMap::default(),
            empty: FxHashMap::default(),
            anything: None,
            together: FxHashMap::default(),
            cases: FxHashMap::default(),
            unions: FxHashMap::default(),
            depth: 0,
            truncated: HashSet::new(),
            uncertain: HashSet::new(),
            dropped: false,
            fuel: limits.fuel,
            held: parsed.held,
            reported: HashSet::new(),
            problems: Findings::new(limits.cancel.account()),
            notes: Findings::new(limits.cancel.account()),
        }
    }
}

impl Algebra<'_> {
    /// All goals that a goal reaches, itself first, each brought into normal form.
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

    fn into_forms(self, root: GoalId, reached: &[GoalId]) -> NormalForms {
        let empty = Rc::new(Normal::default());
        let normals: Vec<Rc<Normal>> = (0..self.goals.len())
            .map(|index| self.normals.get(&GoalId(index as u32)).unwrap_or(&empty).clone())
            .collect();
        let productive = empty::productive(&normals, reached, &self.limits.cancel);
        NormalForms {
            tree: self.tree,
            texts: self.texts,
            goals: self.goals,
            normals,
            productive,
            root,
            notes: self.notes.into_list(),
            truncated: !self.truncated.is_empty(),
            _held: self.held,
        }
    }

    /// The normal form of a goal.
    pub(super) fn normal(&mut self, goal: GoalId) -> Rc<Normal> {
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

    /// The types of a schema that says nothing else: what it allows is no matter of which schema it is.
    fn only_type(&self, goal: GoalId) -> Option<(Types, Whole)> {
        let [literal] = self.goals.literals(goal)[..] else {
            return None;
        };
        match self.tree.node(literal.node).keywords[..] {
            [(_, Keyword::Type { types, whole })] if literal.sign => Some((types, whole)),
            _ => None,
        }
    }

    /// Adds what a shape amounts to; `objects` has the places of the objects by their sketches.
    fn add_shape(
        &mut self,
        normal: &mut Normal,
        objects: &mut FxHashMap<u64, Vec<usize>>,
        kind: Kind,
        shape: Shape,
        goal: GoalId,
    ) {
        match shape {
            Shape::Constant => match kind {
                Kind::Null => normal.null = true,
                Kind::False => normal.no = true,
                _ => normal.yes = true,
            },
            Shape::Number(shape) => push_new(&mut normal.numbers, shape),
            Shape::String(shape) => push_new(&mut normal.strings, shape),
            Shape::Array(shape) => {
                for array in self.finish_array(&shape, goal) {
                    if !self.reserve(array.bytes(), self.first_node(goal)) {
                        return;
                    }
                    // Of thousands that are listed, few are compared: one that is there twice does no harm.
                    let near = normal.arrays.len().saturating_sub(COMPARED);
                    if !normal.arrays[near..].contains(&array) {
                        normal.arrays.push(array);
                    }
                }
            }
            Shape::Object(shape) => {
                if let Some(object) = self.finish_object(&shape) {
                    // Thousands of alternatives may differ in their last member alone.
                    let alike = objects.entry(object.sketch()).or_default();
                    let mut near = alike.iter().rev().take(COMPARED_OBJECTS);
                    if !near.any(|&at| normal.objects[at] == object) {
                        alike.push(normal.objects.len());
                        self.reserve(object.bytes(), self.first_node(goal));
                        normal.objects.push(object);
                    }
                }
            }
        }
    }

    /// A new node that allows exactly the given values.
    pub(super) fn constant(&mut self, values: Values) -> Literal {
        self.reserve(NODE_BYTES, None);
        let id = NodeId(self.tree.nodes.len() as u32);
        let keywords = Rc::new(vec![("enum", Keyword::Values(Rc::new(values)))]);
        self.tree.nodes.push(Node {
            parent: None,
            segment: "".into(),
            keywords,
        });
        Literal::yes(id)
    }

    /// Notes that a goal has conjunctions that are left out, and which.
    fn truncate(&mut self, goal: GoalId, left_out: LeftOut) {
        self.truncated.insert(goal);
        let literals = self.goals.literals(goal);
        let place = literals
            .first()
            .map_or(String::new(), |literal| self.tree.pointer(literal.node));
        let message = format!("only part of the schema is allowed here: {left_out}");
        let note = Problem::at_pointer(ProblemKind::Narrowed, place, message);
        self.notes.add(note);
    }

    /// Notes that less is allowed than a keyword asks for, once.
    pub(super) fn note(&mut self, node: NodeId, name: &'static str, message: &str) {
        let pointer = self.tree.keyword_pointer(node, name);
        let note = Problem::at_pointer(ProblemKind::Narrowed, pointer, message);
        self.notes.add(note);
    }

    /// Reports that a keyword cannot be enforced, once.
    pub(super) fn unsupported(&mut self, node: NodeId, name: &'static str, message: impl Into<String>) {
        self.report(ProblemKind::Unsupported, node, name, message);
    }

    pub(super) fn report(
        &mut self,
        kind: ProblemKind,
        node: NodeId,
        name: &'static str,
        message: impl Into<String>,
    ) {
        if self.reported.insert((node, name)) {
            let pointer = match name {
                "" => self.tree.pointer(node),
                _ => self.tree.keyword_pointer(node, name),
            };
            self.problems.add(Problem::at_pointer(kind, pointer, message));
        }
    }

    /// Reserves bytes for what is about to be made of a schema; false where there is no room, and then no fuel is left either.
    pub(super) fn reserve(&mut self, bytes: usize, node: Option<NodeId>) -> bool {
        if self.held.grow(bytes) {
            return true;
        }
        let tree = &self.tree;
        let place = || Place::Pointer(node.map_or(String::new(), |node| tree.pointer(node)));
        self.limits.cancel.note_place(place);
        self.fuel = 0;
        false
    }

    /// Whether there is room for bytes that are held only for now.
    pub(super) fn fits(&mut self, bytes: usize, node: NodeId) -> bool {
        let fits = self.reserve(bytes, Some(node));
        self.release(bytes);
        fits
    }

    /// The bytes that are reserved.
    pub(super) fn reserved(&self) -> usize {
        self.held.bytes()
    }

    /// Gives bytes back that were reserved.
    pub(super) fn release(&mut self, bytes: usize) {
        self.held.set(self.held.bytes().saturating_sub(bytes));
    }

    /// The schema that stands for a goal in messages.
    fn first_node(&self, goal: GoalId) -> Option<NodeId> {
        self.goals.literals(goal).first().map(|literal| literal.node)
    }

    /// Takes fuel; false where none is left, which is reported at the schema that asked for it. A compile that was called
    /// off has none left either.
    pub(super) fn burn(&mut self, amount: usize, goal: GoalId) -> bool {
        if self.fuel >= amount && !self.limits.cancel.is_asked() {
            self.fuel -= amount;
            return true;
        }
        self.burn_at(amount, self.first_node(goal))
    }

    /// The same where it is a schema that asks for it.
    pub(super) fn burn_at(&mut self, amount: usize, node: Option<NodeId>) -> bool {
        if self.fuel >= amount && !self.limits.cancel.is_asked() {
            self.fuel -= amount;
            return true;
        }
        self.fuel = 0;
        if !self
            .problems
            .iter()
            .any(|problem| problem.kind == ProblemKind::Limit)
        {
            let place = node.map_or(String::new(), |node| self.tree.pointer(node));
            self.limits.cancel.note_place(|| Place::Pointer(place.clone()));
            let message = format!(
                "the schema's parts combine in too many ways; the limit `fuel` is {}",
                self.limits.fuel
            );
            self.problems
                .add(Problem::at_pointer(ProblemKind::Limit, place, message));
        }
        false
    }
}

impl NormalForms {
    /// The JSON pointers of a goal's schemas.
    pub(crate) fn goal_name(&self, goal: GoalId) -> String {
        let literals = self.goals.literals(goal);
        let mut name = String::new();
        for literal in literals.iter() {
            if name.len() > NAME_LENGTH {
                name.push_str(" and more");
                break;
            }
            name.push_str(if name.is_empty() { "" } else { " and " });
            name.push_str(if literal.sign { "#" } else { "not #" });
            name.push_str(&self.tree.short_pointer(literal.node, NAME_LENGTH));
        }
        if literals.is_empty() {
            name.push_str("any value");
        }
        name
    }
}

/// A name that is longer than this is cut.
const NAME_LENGTH: usize = 1 << 10;

impl Normal {
    /// The goals of all parts of arrays and objects.
    pub(crate) fn parts(&self) -> impl Iterator<Item = GoalId> {
        let arrays = self.arrays.iter().flat_map(Array::parts);
        let objects = self.objects.iter().flat_map(Object::parts);
        arrays.chain(objects)
    }

    /// About the bytes that it takes, arrays and objects apart.
    fn bytes_of_scalars(&self) -> usize {
        let listed = |only: Option<usize>, except: usize| only.unwrap_or(0) + except;
        let numbers = self.numbers.iter().map(|shape| {
            let listed = listed(shape.only.as_ref().map(Vec::len), shape.except.len());
            size_of::<NumberShape>() + (listed + shape.not_steps.len()) * size_of::<Decimal>()
        });
        let strings = self.strings.iter().map(|shape| {
            let listed = listed(shape.only.as_ref().map(|only| only.len()), shape.except.len());
            size_of::<StringShape>() + listed * size_of::<Rc<str>>() + size_of_val(&shape.texts[..])
        });
        size_of::<Normal>() + numbers.chain(strings).sum::<usize>()
    }

    /// The bit of strings in [`kinds`](Self::kinds).
    pub(crate) const STRINGS: u8 = 1 << 4;

    /// The kinds of which there are values, a bit for each.
    pub(crate) fn kinds(&self) -> u8 {
        let there = [
            self.null,
            self.no,
            self.yes,
            !self.numbers.is_empty(),
            !self.strings.is_empty(),
            !self.arrays.is_empty(),
            !self.objects.is_empty(),
        ];
        let bits = there.iter().enumerate();
        bits.fold(0, |kinds, (bit, &there)| kinds | u8::from(there) << bit)
    }

    /// Whether there is no value of any kind that is not an array or object.
    pub(crate) fn has_scalars(&self) -> bool {
        self.null || self.no || self.yes || !self.numbers.is_empty() || !self.strings.is_empty()
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Options, read};

    #[test]
    fn schemas_that_say_the_same_type_alone_share_a_form() {
        let text = r#"{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {
            "a": {"type": "integer"}, "b": {"title": "B", "type": "integer"}, "c": {"type": "integer", "minimum": 0},
            "d": {"type": ["integer", "null"]}, "e": {"not": {"type": "integer"}},
            "f": {"$id": "old", "$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}}}"#;
        let limits = Limits::default();
        let (parsed, _) = read(text, &Options::default(), &limits).expect("the test's schema is well formed");
        let forms = normalise(parsed, &limits).expect("it is small");
        let root = &forms.normals[forms.root.index()];
        let of = |name: &str| {
            let member = root.objects[0]
                .members
                .iter()
                .find(|member| &*member.name == name);
            &forms.normals[member.expect("it has this key").ways[0].goal.index()]
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
