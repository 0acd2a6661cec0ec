//! The state of the algebra: the schemas, goals and normal forms so far, cached answers, and the remaining
//! budget.
//!
//! The passes are methods of [`Algebra`], one file each, and they need one another: expansion asks which
//! alternatives exclude one another, which depends on a normal form a few levels down, which is an expansion
//! again. Each such answer is cached here. A question that recurs during its own computation gets the
//! cautious answer, and `depth` bounds the recursion.

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

/// The part that is left out of a goal whose union is too large.
#[derive(Clone, Copy)]
pub(super) enum LeftOut {
    /// All but one of the ways of denying each part.
    Denials,
    /// The alternatives after the first `kept`.
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

/// The approximate number of bytes of a schema that the algebra creates, with a keyword.
pub(crate) const NODE_BYTES: usize = 512;

/// The deepest nesting of normal forms that are computed while another one is computed.
pub(super) const NESTED: u32 = 24;

/// Pairs of patterns, by their indices in a list.
pub(crate) type Pairs = HashSet<(usize, usize)>;

/// The ways that distinguish the cases of a key, shared by the branches with the same open implications.
pub(super) type Cases = Rc<[Vec<Step>]>;

/// The state of the algebra.
pub(crate) struct Algebra<'l> {
    pub(crate) limits: &'l Limits,
    /// The further keys allowed in an object whose schema lists properties and does not mention others.
    pub(crate) additional_properties: AdditionalProperties,
    pub(crate) tree: Tree,
    pub(crate) texts: Texts,
    pub(crate) goals: Goals,
    pub(crate) normals: FxHashMap<GoalId, Rc<Normal>>,
    /// The normal forms of schemas that consist of a type only, which most schemas are.
    pub(crate) of_type: FxHashMap<(Types, Whole), Rc<Normal>>,
    /// The kinds of value that each schema may allow, as far as they have been computed.
    pub(crate) kinds: Vec<Option<Kinds>>,
    /// `true` if a pair of schemas is disjoint, as far as this has been computed.
    pub(crate) disjoint: FxHashMap<(NodeId, NodeId), bool>,
    /// `true` if a schema, where it holds, may evaluate keys or items, as far as this has been computed.
    pub(crate) speaking: FxHashMap<(NodeId, Kind), bool>,
    /// `true` if a goal certainly has no value, judged by this number of levels, as far as this has been
    /// computed.
    pub(crate) empty: FxHashMap<(GoalId, u32), bool>,
    /// A schema that allows everything, created when it is first needed.
    pub(crate) anything: Option<NodeId>,
    /// For lists of patterns for keys, the pairs that may match the same key; `None` if there are too many.
    pub(crate) together: FxHashMap<Vec<TextSet>, Option<Rc<Pairs>>>,
    /// The cases of keys that have been distinguished, by the key and the lists of its values.
    pub(crate) cases: FxHashMap<(Rc<str>, Vec<NodeId>), Cases>,
    /// The unions that were created from schemas of the source.
    pub(crate) unions: FxHashMap<Vec<NodeId>, NodeId>,
    /// The current nesting depth of tests for emptiness.
    pub(crate) depth: u32,
    /// Goals for which only some conjunctions were computed, because all of them would have been too many.
    pub(crate) truncated: HashSet<GoalId>,
    /// Goals that may have values beyond their normal forms, because only a part of a format is known.
    pub(crate) uncertain: HashSet<GoalId>,
    /// `true` if a conjunction of the current goal was left out.
    pub(crate) dropped: bool,
    pub(crate) fuel: usize,
    /// The account of the memory of everything created here.
    pub(crate) held: Account,
    pub(crate) reported: HashSet<(NodeId, &'static str)>,
    pub(crate) problems: Findings,
    pub(crate) notes: Findings,
}

impl<'l> Algebra<'l> {
    /// Returns the algebra of the schemas of a source, before any of them has been examined.
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
    /// Returns a literal of a new node that allows exactly the given values.
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

    /// Adds a note that some conjunctions of a goal are left out, and which.
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

    /// Adds a note that fewer values are allowed than a keyword says, once.
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

    /// Reserves bytes for something that is about to be created from a schema. Returns `false` if there is no
    /// room, in which case there is no fuel left either.
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

    /// Returns `true` if there is room for bytes that are needed only temporarily.
    pub(crate) fn fits(&mut self, bytes: usize, node: NodeId) -> bool {
        let fits = self.reserve(bytes, Some(node));
        self.release(bytes);
        fits
    }

    /// Returns the number of bytes that are reserved.
    pub(crate) fn reserved(&self) -> usize {
        self.held.bytes()
    }

    /// Releases bytes that were reserved.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.held.set(self.held.bytes().saturating_sub(bytes));
    }

    /// Returns the schema that represents a goal in messages.
    pub(crate) fn first_node(&self, goal: GoalId) -> Option<NodeId> {
        self.goals.literals(goal).first().map(|literal| literal.node)
    }

    /// Consumes fuel. Returns `false` if there is not enough left, and reports this at the schema of the
    /// goal. A cancelled compilation has no fuel left either.
    pub(crate) fn burn(&mut self, amount: usize, goal: GoalId) -> bool {
        if self.fuel >= amount && !self.limits.cancel.is_asked() {
            self.fuel -= amount;
            return true;
        }
        self.burn_at(amount, self.first_node(goal))
    }

    /// Consumes fuel for a schema; see [`burn`](Self::burn).
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
