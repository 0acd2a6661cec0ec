//! The state of the algebra: the schemas, goals and normal forms so far, what was found out on the way, and
//! what it may cost.
//!
//! The passes are methods of [`Algebra`], one file each, and they need one another: expansion asks which
//! alternatives exclude one another, which is seen in a normal form a few levels down, which is an expansion
//! again. Each such answer is kept here, one that is asked for again from within itself is the cautious one,
//! and `depth` bounds how far that goes.

use std::fmt;
use std::rc::Rc;

use foldhash::{HashSet, HashSetExt};
use rustc_hash::FxHashMap;

use crate::schema::findings::Findings;
use crate::schema::forms::{GoalId, Goals, Literal, MOST_WISHES, Normal};
use crate::schema::node::{Keyword, Kind, Kinds, Node, NodeId, Tree, Types, Values, Whole};
use crate::schema::options::AdditionalProperties;
use crate::schema::parse::Parsed;
use crate::schema::shape::Step;
use crate::schema::text::{TextSet, Texts};
use lexiform_automata::error::{Place, Problem, ProblemKind};
use lexiform_automata::limits::{Account, Limits};

/// What is left out of a goal that is too large a union.
#[derive(Clone, Copy)]
pub(super) enum LeftOut {
    /// Ways of denying a part, but for one of each.
    Denials,
    /// Alternatives, but for the first of them.
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
                MOST_WISHES
            ),
        }
    }
}

/// About the bytes of a schema that the algebra makes, with a keyword.
pub(crate) const NODE_BYTES: usize = 512;

/// How deep normal forms may be asked for while another is being made.
pub(super) const NESTED: u32 = 24;

/// Pairs of patterns, by their places in a list.
pub(crate) type Pairs = HashSet<(usize, usize)>;

/// The ways to tell the cases of a key apart, shared by the branches in which the same implications are open.
pub(super) type Cases = Rc<[Vec<Step>]>;

/// The state of the algebra.
pub(crate) struct Algebra<'l> {
    pub(crate) limits: &'l Limits,
    /// What an object may hold that lists its properties and says nothing of others.
    pub(crate) additional_properties: AdditionalProperties,
    pub(crate) tree: Tree,
    pub(crate) texts: Texts,
    pub(crate) goals: Goals,
    pub(crate) normals: FxHashMap<GoalId, Rc<Normal>>,
    /// The normal forms of schemas that say nothing but a type: most of a schema is made of such.
    pub(crate) of_type: FxHashMap<(Types, Whole), Rc<Normal>>,
    /// The kinds of value that each schema may allow, where that was asked.
    pub(crate) kinds: Vec<Option<Kinds>>,
    /// Pairs of schemas of which it is known whether they can share a value.
    pub(crate) disjoint: FxHashMap<(NodeId, NodeId), bool>,
    /// Whether schemas, where they hold, may speak of keys or items, as far as it was asked.
    pub(crate) speaking: FxHashMap<(NodeId, Kind), bool>,
    /// Whether goals have surely no value, as far as it is seen this number of levels down, where that was
    /// asked.
    pub(crate) empty: FxHashMap<(GoalId, u32), bool>,
    /// A schema that allows everything, made when one is first needed.
    pub(crate) anything: Option<NodeId>,
    /// For lists of patterns for keys, the pairs that may match one key; `None` where they are many.
    pub(crate) together: FxHashMap<Vec<TextSet>, Option<Rc<Pairs>>>,
    /// The cases of keys that were told apart, by the key and the lists of its values.
    pub(crate) cases: FxHashMap<(Rc<str>, Vec<NodeId>), Cases>,
    /// Unions that were made of schemas of the source.
    pub(crate) unions: FxHashMap<Vec<NodeId>, NodeId>,
    /// How deep tests for emptiness are nested at the moment.
    pub(crate) depth: u32,
    /// Goals of which only some conjunctions were made, because all would have been too many.
    pub(crate) truncated: HashSet<GoalId>,
    /// Goals that may have values beyond their normal forms, because a format is known in part.
    pub(crate) uncertain: HashSet<GoalId>,
    /// Whether a conjunction of the goal at hand was left out.
    pub(crate) dropped: bool,
    pub(crate) fuel: usize,
    /// The bytes of what is made here.
    pub(crate) held: Account,
    pub(crate) reported: HashSet<(NodeId, &'static str)>,
    pub(crate) problems: Findings,
    pub(crate) notes: Findings,
}

impl<'l> Algebra<'l> {
    /// The algebra of the schemas of a source, of which none was looked at yet.
    pub(super) fn new(parsed: Parsed, limits: &'l Limits) -> Algebra<'l> {
        Algebra {
            limits,
            additional_properties: AdditionalProperties::Specified,
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
    /// A new node that allows exactly the given values.
    pub(crate) fn constant(&mut self, values: Values) -> Literal {
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
    pub(super) fn truncate(&mut self, goal: GoalId, left_out: LeftOut) {
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
    pub(crate) fn note(&mut self, node: NodeId, name: &'static str, message: &str) {
        let pointer = self.tree.keyword_pointer(node, name);
        let note = Problem::at_pointer(ProblemKind::Narrowed, pointer, message);
        self.notes.add(note);
    }

    /// Reports that a keyword cannot be enforced, once.
    pub(crate) fn unsupported(&mut self, node: NodeId, name: &'static str, message: impl Into<String>) {
        self.report(ProblemKind::Unsupported, node, name, message);
    }

    pub(crate) fn report(
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

    /// Reserves bytes for what is about to be made of a schema; false where there is no room, and then no
    /// fuel is left either.
    pub(crate) fn reserve(&mut self, bytes: usize, node: Option<NodeId>) -> bool {
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
    pub(crate) fn fits(&mut self, bytes: usize, node: NodeId) -> bool {
        let fits = self.reserve(bytes, Some(node));
        self.release(bytes);
        fits
    }

    /// The bytes that are reserved.
    pub(crate) fn reserved(&self) -> usize {
        self.held.bytes()
    }

    /// Gives bytes back that were reserved.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.held.set(self.held.bytes().saturating_sub(bytes));
    }

    /// The schema that stands for a goal in messages.
    pub(crate) fn first_node(&self, goal: GoalId) -> Option<NodeId> {
        self.goals.literals(goal).first().map(|literal| literal.node)
    }

    /// Takes fuel; false where none is left, which is reported at the schema that asked for it. A compile
    /// that was called off has none left either.
    pub(crate) fn burn(&mut self, amount: usize, goal: GoalId) -> bool {
        if self.fuel >= amount && !self.limits.cancel.is_asked() {
            self.fuel -= amount;
            return true;
        }
        self.burn_at(amount, self.first_node(goal))
    }

    /// The same where it is a schema that asks for it.
    pub(crate) fn burn_at(&mut self, amount: usize, node: Option<NodeId>) -> bool {
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
