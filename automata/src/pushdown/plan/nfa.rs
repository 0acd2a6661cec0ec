//! Rules as automata over bytes and calls.
//!
//! Every rule, and every expression that is an item of an object list, becomes a small nondeterministic
//! automaton in one shared arena of nodes. An edge reads a byte, reads a special token, or *calls* a rule, a
//! terminal or an object list and continues when the callee is complete.
//!
//! ```text
//!   list: "[" (value ("," value)*)? "]"
//!
//!   start ─'['─► • ──call value──► • ─────']'────► accept
//!                │                 │ ▲
//!                └───────']'──►    └','─► • ─call value┘
//! ```

use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::error::{Place, Problem, ProblemKind};
use crate::grammar::{
    Cfg, Demand, Expr, ExprId, ItemOrder, Meets, ObjectList, TokenSet, TokenSymbol, Validated, Validator,
};
use crate::limits::{Account, Limits};
use crate::pushdown::object::key_set::KeySet;

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Callee {
    /// A rule, or an item of an object list.
    Rule(u32),
    /// A regular language.
    Terminal(u32),
    /// A language that is not regular.
    Validated(u32),
    /// An object list.
    ObjectList(u32),
}

/// The label of an edge from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Label {
    Empty,
    Bytes(u8, u8),
    Special(u32),
    Call(Callee),
}

impl Label {
    /// Returns `true` if an edge with this label reads the byte.
    pub(crate) fn covers(self, byte: u8) -> bool {
        matches!(self, Label::Bytes(first, last) if first <= byte && byte <= last)
    }
}

#[derive(Clone, Debug, Hash)]
pub(crate) struct Edge {
    pub(crate) label: Label,
    pub(crate) to: u32,
}

/// The edges of a node. Nearly all nodes are inside fixed text and have one edge.
pub(crate) type Edges = SmallVec<[Edge; 1]>;

/// A rule, with the nodes where it begins and where it is complete.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) start: u32,
    pub(crate) accept: u32,
}

/// The automata of all rules, and the object lists that they call.
#[derive(Debug, Default, Hash)]
pub(crate) struct Nfa {
    pub(crate) nodes: Vec<Edges>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) object_lists: Vec<ObjectListPlan>,
    pub(crate) validated: Vec<ValidatedPlan>,
    pub(crate) specials: Vec<TokenSymbol>,
    pub(crate) start: u32,
    /// `true` if some node may lead nowhere although everything that is called can be completed.
    pub(crate) has_dead_ends: bool,
}

/// A language that is not regular: the terminal of the prefixes of its words, and the validator that decides
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ValidatedPlan {
    pub(crate) terminal: u32,
    pub(crate) validator: Validator,
}

/// An object list whose items are rules of the automata.
#[derive(Debug, Hash)]
pub(crate) struct ObjectListPlan {
    pub(crate) properties: Vec<PropertyPlan>,
    pub(crate) additional: Vec<AdditionalPlan>,
    /// Keys that no additional item may have, sorted.
    pub(crate) taken: KeySet,
    /// The rule of the separator, unless the separator is empty.
    pub(crate) separator: Option<u32>,
    pub(crate) order: ItemOrder,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    pub(crate) demands: Vec<Demand>,
}

/// An item that may be used once: the rule of each way to write it, with the demands that it meets.
#[derive(Debug, Hash)]
pub(crate) struct PropertyPlan {
    pub(crate) ways: Vec<(u32, Meets)>,
    pub(crate) required: bool,
}

/// An item that may be used repeatedly: the terminal of its key, its rule, and the demands that it meets.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct AdditionalPlan {
    pub(crate) key: Option<u32>,
    pub(crate) item: u32,
    pub(crate) meets: Meets,
}

/// Rules are hashed without their names, which are for messages and do not affect the language.
impl Hash for Rule {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.start, self.accept).hash(hasher);
    }
}

impl Nfa {
    /// Returns the bytes as ranges between the ends of the edges' ranges: all bytes of a range act alike. The
    /// result may contain ranges that no edge covers.
    pub(crate) fn byte_ranges(&self, nodes: impl Iterator<Item = u32>) -> Vec<(u8, u8)> {
        let mut cuts = Vec::new();
        for edge in nodes.flat_map(|node| &self.nodes[node as usize]) {
            if let Label::Bytes(first, last) = edge.label {
                cuts.extend([u16::from(first), u16::from(last) + 1]);
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        let ranges = cuts.windows(2).map(|two| (two[0] as u8, (two[1] - 1) as u8));
        ranges.collect()
    }
}

impl ObjectListPlan {
    /// Returns the rules of all items.
    pub(crate) fn items(&self) -> impl Iterator<Item = u32> + '_ {
        let properties = self.properties.iter().flat_map(|property| &property.ways);
        properties
            .map(|&(rule, _)| rule)
            .chain(self.additional.iter().map(|additional| additional.item))
    }
}

/// The object lists that use each rule, as concatenated lists.
pub(crate) struct Users {
    starts: Vec<u32>,
    object_lists: Vec<u32>,
}

impl Users {
    /// Collects the users of each rule. O(rules + items).
    pub(crate) fn new(nfa: &Nfa) -> Users {
        let uses = || {
            let object_lists = nfa.object_lists.iter().zip(0u32..);
            object_lists.flat_map(|(plan, index)| {
                let rules = plan.items().chain(plan.separator);
                rules.map(move |rule| (rule as usize, index))
            })
        };
        let mut starts = vec![0; nfa.rules.len() + 1];
        for (rule, _) in uses() {
            starts[rule + 1] += 1;
        }
        for rule in 0..nfa.rules.len() {
            starts[rule + 1] += starts[rule];
        }
        let mut places = starts.clone();
        let mut object_lists = vec![0; starts[nfa.rules.len()] as usize];
        for (rule, index) in uses() {
            object_lists[places[rule] as usize] = index;
            places[rule] += 1;
        }
        Users { starts, object_lists }
    }

    pub(crate) fn of(&self, rule: u32) -> &[u32] {
        let rule = rule as usize;
        &self.object_lists[self.starts[rule] as usize..self.starts[rule + 1] as usize]
    }
}

/// The largest repetition count that is unrolled; larger ones are counted by a progress.
const UNROLLED_REPETITIONS: u32 = 16;

/// Builds the automata of all rules of a grammar, and reports their bytes to `held`.
pub(crate) fn build(cfg: &Cfg, limits: &Limits, held: &mut Account) -> Result<Nfa, Problem> {
    let rules = Vec::with_capacity(cfg.rules.len());
    // Each part of an expression ends at a node, and so does each byte; expressions used in several places
    // take more nodes.
    let nodes = cfg.exprs.iter().map(|expr| match expr {
        Expr::Bytes(bytes) => bytes.len(),
        Expr::Seq(parts) => parts.len(),
        _ => 1,
    });
    let nfa = Nfa {
        nodes: Vec::with_capacity(nodes.sum::<usize>().min(limits.rule_states)),
        rules,
        object_lists: Vec::new(),
        validated: Vec::new(),
        specials: Vec::new(),
        start: cfg.start.0,
        has_dead_ends: false,
    };
    held.grow(nfa.nodes.capacity() * NODE_BYTES);
    let mut builder = Builder {
        cfg,
        limits,
        held,
        nfa,
        open: Vec::new(),
        items: FxHashMap::default(),
    };
    for rule in &cfg.rules {
        builder.add_rule(rule.name.clone(), rule.body);
    }
    for object_list in &cfg.object_lists {
        if limits.cancel.is_asked() {
            break;
        }
        builder.add_object_list(object_list);
    }
    builder.connect_all()?;
    Ok(builder.nfa)
}

/// About the bytes of a node with an edge, including the results of the analysis.
const NODE_BYTES: usize = size_of::<Edges>() + 16;

/// About the bytes of a rule without its name, including the results of the analysis.
const RULE_BYTES: usize = 160;

/// About the bytes that the analysis and the frames store for a property.
const ITEM_BYTES: usize = 32;

struct Builder<'a> {
    cfg: &'a Cfg,
    limits: &'a Limits,
    held: &'a mut Account,
    nfa: Nfa,
    /// Expressions that still have to be built between two nodes; a list instead of recursion.
    open: Vec<(ExprId, u32, u32)>,
    /// The rules of the items of object lists. In a schema with a thousand alternatives, the objects share
    /// most properties, and text that is read by one rule is in one place for all of them.
    items: FxHashMap<ExprId, u32>,
}

impl Builder<'_> {
    fn node(&mut self) -> u32 {
        self.nfa.nodes.push(Edges::new());
        self.nfa.nodes.len() as u32 - 1
    }

    fn edge(&mut self, from: u32, label: Label, to: u32) {
        self.nfa.nodes[from as usize].push(Edge { label, to });
    }

    fn add_rule(&mut self, name: String, body: ExprId) -> u32 {
        self.held.grow(RULE_BYTES + name.len());
        // If the nodes do not fit, the compile ends before the next expression.
        self.reserve(2);
        let (start, accept) = (self.node(), self.node());
        self.nfa.rules.push(Rule { name, start, accept });
        self.open.push((body, start, accept));
        self.nfa.rules.len() as u32 - 1
    }

    fn add_item(&mut self, item: ExprId) -> u32 {
        if let Some(&known) = self.items.get(&item) {
            return known;
        }
        let rule = self.add_rule(String::new(), item);
        self.items.insert(item, rule);
        rule
    }

    fn add_object_list(&mut self, object_list: &ObjectList) -> u32 {
        let properties = object_list.properties.len() * (size_of::<PropertyPlan>() + 16 + ITEM_BYTES);
        let taken: usize = object_list.taken.iter().map(|key| key.len() + 16).sum();
        self.held.grow(
            2 * size_of::<ObjectListPlan>()
                + properties
                + object_list.additional.len() * size_of::<AdditionalPlan>()
                + taken,
        );
        let properties = object_list.properties.iter().map(|property| PropertyPlan {
            ways: (property.ways.iter())
                .map(|way| (self.add_item(way.item), way.meets))
                .collect(),
            required: property.required,
        });
        let properties = properties.collect();
        let additional = object_list.additional.iter().map(|additional| AdditionalPlan {
            key: additional.key.map(|key| key.0),
            item: self.add_item(additional.item),
            meets: additional.meets,
        });
        let additional = additional.collect();
        let empty = matches!(self.cfg.expr(object_list.separator), Expr::Empty);
        let separator = (!empty).then(|| self.add_item(object_list.separator));
        let (order, min, max) = (object_list.order, object_list.min, object_list.max);
        self.nfa.object_lists.push(ObjectListPlan {
            properties,
            additional,
            separator,
            order,
            min,
            max,
            taken: KeySet::new(object_list.taken.iter().collect()),
            demands: object_list.demands.clone(),
        });
        self.nfa.object_lists.len() as u32 - 1
    }

    fn connect_all(&mut self) -> Result<(), Problem> {
        while let Some((expr, from, to)) = self.open.pop() {
            if self.limits.cancel.is_asked() {
                return Ok(());
            }
            if !self.reserve(self.most_nodes(expr)) {
                return Ok(());
            }
            self.connect(expr, from, to);
            if self.nfa.nodes.len() > self.limits.rule_states {
                let message = format!(
                    "the grammar has too many rule states; the limit `rule_states` is {}",
                    self.limits.rule_states
                );
                return Err(Problem::new(ProblemKind::Limit, Place::Whole, message));
            }
        }
        Ok(())
    }

    /// Returns the maximum number of nodes that building this expression adds, not counting its
    /// subexpressions.
    fn most_nodes(&self, expr: ExprId) -> usize {
        match self.cfg.expr(expr) {
            Expr::Bytes(bytes) => bytes.len(),
            Expr::Seq(parts) => parts.len(),
            Expr::Repeat { .. } => UNROLLED_REPETITIONS as usize + 2,
            _ => 0,
        }
    }

    /// Reserves room for this many nodes, which are reported before they are allocated. Returns `false` if
    /// the compile may not hold them.
    fn reserve(&mut self, nodes: usize) -> bool {
        let (length, capacity) = (self.nfa.nodes.len(), self.nfa.nodes.capacity());
        if length + nodes <= capacity {
            return true;
        }
        let larger = (2 * capacity).max(length + nodes);
        if !self.held.grow((larger - capacity) * NODE_BYTES) {
            return false;
        }
        self.nfa.nodes.reserve_exact(larger - length);
        true
    }

    fn connect(&mut self, expr: ExprId, from: u32, to: u32) {
        match self.cfg.expr(expr) {
            Expr::Never => self.nfa.has_dead_ends = true,
            Expr::Empty => self.edge(from, Label::Empty, to),
            Expr::Bytes(bytes) => self.chain(bytes, from, to),
            Expr::Seq(parts) => self.sequence(parts, from, to),
            Expr::Choice(alternatives) => {
                self.nfa.has_dead_ends |= alternatives.is_empty();
                self.open.extend(alternatives.iter().map(|&a| (a, from, to)));
            }
            &Expr::Repeat { body, min, max } => self.repeat(body, min, max, from, to),
            Expr::Rule(rule) => self.edge(from, Label::Call(Callee::Rule(rule.0)), to),
            Expr::Regular(regular) => self.edge(from, Label::Call(Callee::Terminal(regular.0)), to),
            &Expr::Validated(validated) => {
                let validated = self.validated(validated);
                self.edge(from, Label::Call(Callee::Validated(validated)), to);
            }
            Expr::ObjectList(object_list) => {
                self.edge(from, Label::Call(Callee::ObjectList(object_list.0)), to)
            }
            Expr::Special(name) => {
                let special = self.special(TokenSymbol::Name(name.clone()));
                self.edge(from, Label::Special(special), to);
            }
            Expr::Tokens(set) => {
                let special = self.special(TokenSymbol::Set(TokenSet::clone(set)));
                self.edge(from, Label::Special(special), to);
            }
            Expr::Marked(text) => self.chain(text.as_bytes(), from, to),
        }
    }

    fn validated(&mut self, validated: Validated) -> u32 {
        let plan = ValidatedPlan {
            terminal: validated.beginnings().0,
            validator: validated.validator(),
        };
        let known = self.nfa.validated.iter().position(|known| *known == plan);
        known.unwrap_or_else(|| {
            self.nfa.validated.push(plan);
            self.nfa.validated.len() - 1
        }) as u32
    }

    fn special(&mut self, symbol: TokenSymbol) -> u32 {
        let known = self.nfa.specials.iter().position(|known| *known == symbol);
        known.unwrap_or_else(|| {
            self.nfa.specials.push(symbol);
            self.nfa.specials.len() - 1
        }) as u32
    }

    fn chain(&mut self, bytes: &[u8], from: u32, to: u32) {
        let mut at = from;
        self.nfa.has_dead_ends |= bytes.is_empty();
        for (index, &byte) in bytes.iter().enumerate() {
            let next = if index + 1 == bytes.len() { to } else { self.node() };
            self.edge(at, Label::Bytes(byte, byte), next);
            at = next;
        }
    }

    fn sequence(&mut self, parts: &[ExprId], from: u32, to: u32) {
        let mut at = from;
        self.nfa.has_dead_ends |= parts.is_empty();
        for (index, &part) in parts.iter().enumerate() {
            let next = if index + 1 == parts.len() { to } else { self.node() };
            self.open.push((part, at, next));
            at = next;
        }
    }

    /// Builds a repetition; a loop gets a separate node, so that nothing else can enter or leave it.
    fn repeat(&mut self, body: ExprId, min: u32, max: Option<u32>, from: u32, to: u32) {
        if min > UNROLLED_REPETITIONS || max.is_some_and(|max| max > UNROLLED_REPETITIONS) {
            return self.counted(body, min, max, from, to);
        }
        let mut at = self.node();
        self.edge(from, Label::Empty, at);
        for _ in 0..min {
            let next = self.node();
            self.open.push((body, at, next));
            at = next;
        }
        match max {
            None => self.open.push((body, at, at)),
            Some(max) => {
                for _ in min..max {
                    self.edge(at, Label::Empty, to);
                    let next = self.node();
                    self.open.push((body, at, next));
                    at = next;
                }
            }
        }
        self.edge(at, Label::Empty, to);
    }

    fn counted(&mut self, body: ExprId, min: u32, max: Option<u32>, from: u32, to: u32) {
        let item = self.add_rule(String::new(), body);
        let (order, max) = (ItemOrder::Listed, max.map(u64::from));
        let plan = ObjectListPlan {
            properties: Vec::new(),
            additional: vec![AdditionalPlan {
                key: None,
                item,
                meets: 0,
            }],
            separator: None,
            order,
            min: min.into(),
            max,
            taken: KeySet::default(),
            demands: Vec::new(),
        };
        self.nfa.object_lists.push(plan);
        let object_list = self.nfa.object_lists.len() as u32 - 1;
        self.edge(from, Label::Call(Callee::ObjectList(object_list)), to);
    }
}
