//! Frames: the state of one rule, terminal or object list in progress, and its possible continuations.
//!
//! A frame is a determinised state *within* one callee, independent of its callers. Frames are interned, so a
//! frame id is an identity: equal ids have equal futures up to their end.
//!
//! ```text
//!   kind        state                                own bytes            calls
//!   rule        set of automaton nodes               edges on bytes       edges that call
//!   terminal    cursor of its DFA                    the DFA's table      –
//!   validated   cursor of its prefix, its text       the DFA's table      –
//!   list        progress (done, count, used)         –                    separator, next items
//!   key         an additional item's key             its DFA's table      the item, when the key is complete
//!   next key    properties with a common prefix      their next bytes     properties read by their own rules
//!   guarded     a frame after a word                 its bytes, but some  –
//! ```
//!
//! A callee is entered through a *start* frame, which is never complete by itself: a caller that may call
//! something empty skips the call (see `closure`), so entering never loops.

mod guarded;
mod guards;
mod rule;
mod validated;

use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

use once_cell::race::OnceBox;
use smallvec::SmallVec;

use crate::language::ByteSet;
use crate::language::{Cursor, Terminal};
use crate::pushdown::intern::index::{Index, hash_of};
use crate::pushdown::intern::interner::{Chains, Interner};
use crate::pushdown::object::contains::Stock;
use crate::pushdown::object::next_key::{NextKeyAutomaton, NextKeyState};
use crate::pushdown::object::progress::{Bits, Progress};
use crate::pushdown::object::used_keys::LastUsed;
use crate::pushdown::plan::analysis::Analysis;
use crate::pushdown::plan::nfa::{Callee, Label, Nfa, ObjectListPlan};
pub(crate) use guards::Guard;
use guards::Guards;

/// The id of an interned frame.
pub(crate) type FrameId = u32;

/// The frame that is complete and has no continuation of its own. A call that returns to it is a tail call.
pub(crate) const RETURN: FrameId = 0;

/// The content by which a frame is interned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FrameKey {
    Return,
    RuleStart(u32),
    Rule {
        rule: u32,
        nodes: Arc<[u32]>,
    },
    TerminalStart(u32),
    Terminal(u32, Cursor),
    ObjectList(u32, Progress),
    /// The properties of an object list that begin with the text read so far.
    NextKey(NextKeyState),
    Key {
        object_list: u32,
        additional: u32,
        progress: Progress,
        cursor: Cursor,
        text: u32,
    },
    Validated {
        validated: u32,
        cursor: Cursor,
        text: u32,
    },
    /// A frame that reads, directly after a word that some bytes must not follow.
    Guarded(FrameId, Guard),
}

impl FrameKey {
    fn hash(&self) -> u64 {
        match self {
            FrameKey::Rule { rule, nodes } => hash_of_rule(*rule, nodes),
            _ => hash_of(self),
        }
    }
}

fn hash_of_rule(rule: u32, nodes: &[u32]) -> u64 {
    hash_of(&(rule, nodes))
}

/// The representative of the frame is not known yet.
pub(crate) const UNKNOWN_FRAME: FrameId = FrameId::MAX;

/// A call: the start frame of the callee, and the frame of the caller after the callee is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) callee: FrameId,
    pub(crate) then: FrameId,
}

/// The calls that a frame may make; usually one or two.
pub(crate) type Calls = SmallVec<[Call; 2]>;

/// The position of a frame in a regular language, as masks see it.
pub(crate) enum View<'a> {
    /// In a terminal.
    Terminal(&'a Arc<Terminal>, Cursor),
    /// In the key of an additional item.
    Key(&'a Arc<Terminal>, Cursor),
    /// In the prefix of a word of a validated language, where a validator decides where words end.
    Validated(&'a Arc<Terminal>, Cursor),
    /// In a rule.
    Rule,
}

/// An edge: a range of bytes, first and last, that leads to one frame.
pub(crate) type Edge = (u8, u8, FrameId);

/// Edges in byte order.
pub(crate) type EdgeList = SmallVec<[Edge; 1]>;

/// A determinised state within one callee, with the data computed for it.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) key: FrameKey,
    /// `true` if the callee may end here.
    pub(crate) accepting: bool,
    /// `true` if the frame reads bytes or special tokens itself.
    pub(crate) reads: bool,
    /// `true` if the frame may have calls to make without reading.
    may_call: bool,
    calls: OnceBox<Calls>,
    /// The edges of the frame of a rule.
    edges: OnceBox<RuleEdges>,
    /// The representative of all frames that tokens cannot tell apart from this one, once it is computed.
    pub(crate) representative: AtomicU32,
    /// For a frame at the top of configurations: the depths below it that mask computations looked at, one
    /// bit for each.
    pub(crate) depths: AtomicU64,
}

impl Frame {
    /// Returns `true` if the frame reads and can do nothing else, whatever its callers are.
    pub(crate) fn is_plain(&self) -> bool {
        self.reads && !self.accepting && !self.may_call
    }
}

/// The edges of the frame of a rule, as ranges of bytes in order, and the bytes of all ranges.
#[derive(Debug, Default)]
struct RuleEdges {
    list: EdgeList,
    bytes: ByteSet,
}

/// All frames of one grammar, found lazily. Reads never lock.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) nfa: Arc<Nfa>,
    pub(crate) analysis: Arc<Analysis>,
    pub(crate) terminals: Arc<[Option<Arc<Terminal>>]>,
    pub(crate) guards: Arc<Guards>,
    /// The number of additional items that each object list can supply.
    pub(crate) capacities: Arc<[Option<u64>]>,
    /// The additional items that each object list with demands can supply.
    pub(crate) stocks: Arc<[Stock]>,
    /// The automaton of the properties of each object list.
    pub(crate) next_keys: Arc<[OnceLock<NextKeyAutomaton>]>,
    /// The hash that identifies the grammar, computed on first use.
    pub(crate) content: Arc<OnceLock<u64>>,
    frames: boxcar::Vec<Frame>,
    known: Index,
    pub(crate) written: Interner<Bits>,
    /// The number of items that met each demand of an object list.
    pub(crate) met: Interner<Box<[u64]>>,
    /// The written keys, as lists of text numbers.
    pub(crate) keys: Chains<u32>,
    pub(crate) last_used: LastUsed,
    /// The texts of keys and validated words.
    pub(crate) texts: Chains<u8>,
    /// `true` if keys that must differ are not remembered, so that they need not differ.
    pub(crate) forgets_keys: bool,
}

impl Frames {
    pub(crate) fn new(nfa: Nfa, analysis: Analysis, terminals: Vec<Option<Arc<Terminal>>>) -> Frames {
        let capacities: Arc<[Option<u64>]> = nfa
            .object_lists
            .iter()
            .map(|object_list| object_list.additional_capacity(&terminals, |_| true))
            .collect();
        let stock = |object_list: &ObjectListPlan| match object_list.has_demands() {
            true => Stock::new(object_list, &terminals, |_| true),
            false => Stock::default(),
        };
        let stocks = nfa.object_lists.iter().map(stock).collect();
        let next_keys = nfa.object_lists.iter().map(|_| OnceLock::new()).collect();
        Frames {
            nfa: nfa.into(),
            analysis: analysis.into(),
            guards: Arc::new(Guards::new(&terminals)),
            terminals: terminals.into(),
            capacities,
            stocks,
            next_keys,
            ..Frames::empty()
        }
        .begun()
    }

    /// Returns `true` if the grammar reads only these bytes.
    pub(crate) fn reads_only(&self, bytes: &ByteSet) -> bool {
        let reads_them = |label: &Label| match *label {
            Label::Bytes(first, last) => (first..=last).all(|byte| bytes.contains(byte)),
            Label::Empty | Label::Special(_) | Label::Call(_) => true,
        };
        let is_word_of_them = |terminal: &Arc<Terminal>| {
            let mut states = 0..terminal.len() as u32;
            states.all(|state| terminal.bytes_of(state)[0].is_within(bytes))
        };
        let mut edges = self.nfa.nodes.iter().flatten();
        edges.all(|edge| reads_them(&edge.label)) && self.terminals.iter().flatten().all(is_word_of_them)
    }

    /// Returns an empty set of frames without a grammar.
    fn empty() -> Frames {
        Frames {
            nfa: Arc::default(),
            analysis: Arc::default(),
            terminals: Arc::default(),
            guards: Arc::default(),
            capacities: Arc::default(),
            stocks: Arc::default(),
            next_keys: Arc::default(),
            content: Arc::default(),
            frames: boxcar::Vec::new(),
            known: Index::default(),
            written: Interner::default(),
            met: Interner::default(),
            keys: Chains::default(),
            last_used: LastUsed::default(),
            texts: Chains::default(),
            forgets_keys: false,
        }
    }

    /// Adds the values whose numbers are fixed.
    fn begun(self) -> Frames {
        self.intern(FrameKey::Return);
        self.written.intern(Box::default());
        self.met.intern(Box::default());
        self
    }

    /// Returns the frames of the same grammar with empty tables. O(1).
    pub(crate) fn fresh(&self) -> Frames {
        Frames {
            nfa: self.nfa.clone(),
            analysis: self.analysis.clone(),
            terminals: self.terminals.clone(),
            guards: self.guards.clone(),
            capacities: self.capacities.clone(),
            stocks: self.stocks.clone(),
            next_keys: self.next_keys.clone(),
            content: self.content.clone(),
            forgets_keys: self.forgets_keys,
            ..Frames::empty()
        }
        .begun()
    }

    pub(crate) fn get(&self, id: FrameId) -> &Frame {
        &self.frames[id as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.count()
    }

    /// Returns how many values the frames remember about the text.
    pub(crate) fn remembered(&self) -> usize {
        self.written.len() + self.met.len() + self.keys.len() + self.texts.len()
    }

    pub(crate) fn intern(&self, key: FrameKey) -> FrameId {
        let hash = key.hash();
        let known = self.known.find(hash, |id| self.get(id).key == key);
        known.unwrap_or_else(|| self.add(hash, key))
    }

    fn add(&self, hash: u64, key: FrameKey) -> FrameId {
        let is = |frame: &Frame, id| self.get(id).key == frame.key;
        let add = |frame| self.frames.push(frame) as FrameId;
        self.known.find_or_add(hash, self.describe(key), is, add)
    }

    /// Interns the frame of a rule in these nodes. The nodes are copied only for a new frame.
    pub(crate) fn intern_rule(&self, rule: u32, nodes: &[u32]) -> FrameId {
        let hash = hash_of_rule(rule, nodes);
        let is = |id| match &self.get(id).key {
            FrameKey::Rule {
                rule: of,
                nodes: known,
            } => *of == rule && **known == *nodes,
            _ => false,
        };
        let key = || FrameKey::Rule {
            rule,
            nodes: nodes.into(),
        };
        let known = self.known.find(hash, is);
        known.unwrap_or_else(|| self.add(hash, key()))
    }

    pub(crate) fn start(&self, callee: Callee) -> FrameId {
        match callee {
            Callee::Rule(rule) => self.intern(FrameKey::RuleStart(rule)),
            Callee::Terminal(terminal) => self.intern(FrameKey::TerminalStart(terminal)),
            Callee::Validated(validated) => self.validated_start(validated),
            Callee::ObjectList(object_list) => {
                self.intern(FrameKey::ObjectList(object_list, Progress::START))
            }
        }
    }

    pub(crate) fn terminal(&self, index: u32) -> &Arc<Terminal> {
        self.terminals[index as usize]
            .as_ref()
            .expect("calls of empty terminals are pruned")
    }

    fn describe(&self, key: FrameKey) -> Frame {
        let (accepting, (reads, may_call)) = match &key {
            FrameKey::Return => (true, (false, false)),
            FrameKey::RuleStart(rule) => (false, self.moves(&self.leading(*rule))),
            FrameKey::Rule { rule, nodes } => {
                let accept = self.nfa.rules[*rule as usize].accept;
                (nodes.contains(&accept), self.moves(nodes))
            }
            FrameKey::TerminalStart(_) => (false, (true, false)),
            FrameKey::Terminal(index, cursor) => (self.terminal(*index).is_accepting(*cursor), (true, false)),
            FrameKey::ObjectList(object_list, progress) => {
                (self.object_list_may_end(*object_list, *progress), (false, true))
            }
            FrameKey::NextKey(at) => (false, (self.next_key_reads(at), self.leaves_next_key(at))),
            FrameKey::Key {
                object_list,
                additional,
                cursor,
                ..
            } => {
                let key = self.key_terminal(*object_list, *additional);
                (false, (true, key.is_accepting(*cursor)))
            }
            FrameKey::Validated { validated, text, .. } => (self.is_word(*validated, *text), (true, false)),
            FrameKey::Guarded(..) => (false, (true, false)),
        };
        Frame {
            key,
            accepting,
            reads,
            may_call,
            calls: OnceBox::new(),
            edges: OnceBox::new(),
            representative: AtomicU32::new(UNKNOWN_FRAME),
            depths: AtomicU64::new(0),
        }
    }

    /// Returns the regular language that a frame is in and its position there, if it is in one.
    pub(crate) fn view(&self, id: FrameId) -> View<'_> {
        match self.get(id).key {
            FrameKey::TerminalStart(index) => {
                View::Terminal(self.terminal(index), self.terminal(index).start())
            }
            FrameKey::Terminal(index, cursor) => View::Terminal(self.terminal(index), cursor),
            FrameKey::Key {
                object_list,
                additional,
                cursor,
                ..
            } => View::Key(self.key_terminal(object_list, additional), cursor),
            FrameKey::Validated {
                validated, cursor, ..
            } => View::Validated(self.beginnings(validated), cursor),
            _ => View::Rule,
        }
    }

    /// Returns whether a rule in these nodes reads, and whether it calls.
    fn moves(&self, nodes: &[u32]) -> (bool, bool) {
        let (mut reads, mut calls) = (false, false);
        for edge in nodes.iter().flat_map(|&node| &self.nfa.nodes[node as usize]) {
            reads |= matches!(edge.label, Label::Bytes(..) | Label::Special(_));
            calls |= matches!(edge.label, Label::Call(_));
        }
        (reads, calls)
    }

    /// Returns the calls that the frame can make without reading anything itself.
    pub(crate) fn calls(&self, id: FrameId) -> &[Call] {
        let frame = self.get(id);
        if !frame.may_call {
            return &[];
        }
        let find = || match &frame.key {
            FrameKey::RuleStart(rule) => self.rule_calls(*rule, &self.leading(*rule), true),
            FrameKey::Rule { rule, nodes } => self.rule_calls(*rule, nodes, false),
            FrameKey::ObjectList(object_list, progress) => self.object_list_calls(*object_list, *progress),
            FrameKey::NextKey(at) => self.own_calls(*at),
            FrameKey::Key {
                object_list,
                additional,
                progress,
                cursor,
                text,
            } => self.key_calls(*object_list, *additional, *progress, *cursor, *text),
            _ => Calls::new(),
        };
        frame.calls.get_or_init(|| Box::new(find()))
    }

    /// Returns `true` if the frame belongs to a rule that reads bytes next and does nothing else.
    pub(crate) fn only_reads(&self, id: FrameId) -> bool {
        let frame = self.get(id);
        let is_rule = matches!(frame.key, FrameKey::RuleStart(_) | FrameKey::Rule { .. });
        is_rule && frame.is_plain()
    }

    /// Returns the frame after reading a byte, ignoring calls.
    pub(crate) fn read(&self, id: FrameId, byte: u8) -> Option<FrameId> {
        match self.get(id).key {
            FrameKey::Return | FrameKey::ObjectList(..) => None,
            FrameKey::NextKey(at) => Some(self.intern(FrameKey::NextKey(self.read_next_key(&at, byte)?))),
            FrameKey::RuleStart(_) | FrameKey::Rule { .. } => self.read_rule(id, byte),
            FrameKey::TerminalStart(index) => {
                let terminal = self.terminal(index);
                let cursor = terminal.next(terminal.start(), byte)?;
                Some(self.intern(FrameKey::Terminal(index, cursor)))
            }
            FrameKey::Terminal(index, cursor) => {
                let cursor = self.terminal(index).next(cursor, byte)?;
                Some(self.intern(FrameKey::Terminal(index, cursor)))
            }
            FrameKey::Key { cursor, .. } => {
                let cursor = self.read_key(id, cursor, &[byte])?;
                Some(self.key_frame(id, cursor, &[byte]))
            }
            FrameKey::Validated { cursor, .. } => {
                let cursor = self.beginnings_of(id).next(cursor, byte)?;
                Some(self.validated_frame(id, cursor, &[byte]))
            }
            FrameKey::Guarded(frame, guard) => match self.guards.set(guard).contains(byte) {
                true => None,
                false => self.read(frame, byte),
            },
        }
    }

    /// Reads a byte in a rule. Most frames of rules are left by a single byte only, so this does not compute
    /// their other edges.
    fn read_rule(&self, id: FrameId, byte: u8) -> Option<FrameId> {
        let frame = self.get(id);
        let wanted = |label: Label| label.covers(byte);
        match (&frame.key, frame.edges.get()) {
            (FrameKey::RuleStart(rule), None) => self.read_nodes(*rule, &self.leading(*rule), wanted),
            (FrameKey::Rule { rule, nodes }, None) => self.read_nodes(*rule, nodes, wanted),
            _ => {
                let edges = self.edge_list(id);
                let at = edges.partition_point(|&(_, last, _)| last < byte);
                let &(first, _, to) = edges.get(at)?;
                (first <= byte).then_some(to)
            }
        }
    }

    /// Returns the edges of the frame of a rule, computed once.
    fn edges(&self, id: FrameId) -> &RuleEdges {
        let frame = self.get(id);
        let find = || {
            if let FrameKey::Guarded(frame, guard) = frame.key {
                return Box::new(RuleEdges {
                    list: SmallVec::new(),
                    bytes: self.first_bytes(frame).without(self.guards.set(guard)),
                });
            }
            let list = match &frame.key {
                FrameKey::RuleStart(rule) => self.find_edges(*rule, &self.leading(*rule)),
                FrameKey::Rule { rule, nodes } => self.find_edges(*rule, nodes),
                _ => SmallVec::new(),
            };
            let mut bytes = ByteSet::default();
            for &(first, last, _) in &list {
                bytes.insert_range(first, last);
            }
            Box::new(RuleEdges { list, bytes })
        };
        frame.edges.get_or_init(find)
    }

    /// Returns the edges of the frame of a rule, as ranges of bytes in order with their targets.
    pub(crate) fn edge_list(&self, id: FrameId) -> &[Edge] {
        &self.edges(id).list
    }

    /// Returns the bytes that the frame of a rule, or a guarded frame, reads.
    pub(crate) fn bytes(&self, id: FrameId) -> &ByteSet {
        &self.edges(id).bytes
    }

    /// Returns the frame after reading a special token.
    pub(crate) fn read_special(&self, id: FrameId, special: u32) -> Option<FrameId> {
        let wanted = |label: Label| label == Label::Special(special);
        match &self.get(id).key {
            FrameKey::RuleStart(rule) => self.read_nodes(*rule, &self.leading(*rule), wanted),
            FrameKey::Rule { rule, nodes } => self.read_nodes(*rule, nodes, wanted),
            FrameKey::Guarded(frame, _) => self.read_special(*frame, special),
            _ => None,
        }
    }
}
