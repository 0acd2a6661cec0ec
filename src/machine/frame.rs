//! Frames: what one rule, terminal or series in progress knows, and how it can go on.
//!
//! A frame is a determinised state *within* one callee, taken without whoever called it. Frames are interned, so a
//! frame number is an identity: equal numbers have equal futures up to their end.
//!
//! ```text
//!   kind        state                                own bytes            calls
//!   rule        set of automaton nodes               edges on bytes       edges that call
//!   terminal    cursor of its DFA                    the DFA's table      –
//!   judged      cursor of its beginnings, its text   the DFA's table      –
//!   series      register (done, count, used)         –                    separator, next items
//!   key         a rest item's key being written      its DFA's table      the item, when the key is complete
//!   words       listed words with the same beginning their next bytes     –
//! ```
//!
//! A callee is entered through a *start* frame, which is never complete by itself: a caller that may call something
//! empty passes the call by (see `closure`), so that entering never loops.

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::analysis::{Analysis, leading_nodes};
use super::bytes::ByteSet;
use super::choice::{Choice, Choosing};
use super::demand::Stock;
use super::interner::{Chains, Interner};
use super::like::{Class, Hidden, UNKNOWN};
use super::nfa::{Callee, Label, Nfa, SeriesPlan};
use super::series::{Bits, Register};
use super::tails::Tails;
use super::terminal::{Cursor, Terminal};
use super::used::LastUsed;

/// The number of an interned frame.
pub(crate) type FrameId = u32;

/// The frame that is complete and does nothing else; calling with it as the return is a tail call.
pub(super) const RETURN: FrameId = 0;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum FrameKey {
    Return,
    RuleStart(u32),
    Rule {
        rule: u32,
        nodes: Arc<[u32]>,
    },
    TerminalStart(u32),
    Terminal(u32, Cursor),
    Series(u32, Register),
    /// The members of a series as far as they begin alike.
    Choice(Choosing),
    Key {
        series: u32,
        rest: u32,
        register: Register,
        cursor: Cursor,
        text: u32,
    },
    Judged {
        judged: u32,
        cursor: Cursor,
        text: u32,
    },
    /// One of these words, of which so many bytes are written; the words are in order, and begin with the same ones.
    Words {
        words: Arc<[Arc<[u8]>]>,
        at: u32,
    },
}

/// A call: the frame that the callee starts in, and the frame of the caller once the callee is complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) callee: FrameId,
    pub(super) then: FrameId,
}

/// Where a frame stands in a regular language of its own, as masks see it.
pub(crate) enum View<'a> {
    /// In a terminal.
    Terminal(&'a Arc<Terminal>, Cursor),
    /// In the key of a rest item.
    Key(&'a Arc<Terminal>, Cursor),
    /// In how the words of a language begin of which another tells where they end.
    Judged(&'a Arc<Terminal>, Cursor),
    /// In a rule.
    Rule,
}

/// All bytes of a range lead to the same frame.
pub(super) type Edge = (u8, u8, FrameId);

#[derive(Debug)]
pub(super) struct Frame {
    pub(super) key: FrameKey,
    /// Whether the callee may end here.
    pub(super) accepting: bool,
    /// Whether the frame reads bytes or special tokens itself.
    pub(super) reads: bool,
    calls: OnceLock<Box<[Call]>>,
    /// What the frame of a rule reads.
    edges: OnceLock<Edges>,
    /// The frame that is like it, once that was asked for.
    pub(super) like: AtomicU32,
}

/// What the frame of a rule reads, as ranges of bytes in order, and the bytes of all ranges.
#[derive(Debug, Default)]
struct Edges {
    list: Box<[Edge]>,
    bytes: ByteSet,
}

/// All frames of one grammar, found lazily. Reads never lock.
#[derive(Debug)]
pub(super) struct Frames {
    pub(super) nfa: Arc<Nfa>,
    pub(super) analysis: Arc<Analysis>,
    pub(super) terminals: Arc<[Option<Arc<Terminal>>]>,
    /// How many items the rest of each series can supply.
    pub(super) capacities: Arc<[Option<u64>]>,
    /// What the rest of each series with demands can supply.
    pub(super) stocks: Arc<[Stock]>,
    /// The automaton of the members of each series.
    pub(super) choices: Arc<[OnceLock<Choice>]>,
    /// What is left of rules from their nodes on.
    pub(super) tails: Arc<OnceLock<Tails>>,
    /// What tokens cannot see of each series.
    pub(super) hidden: Arc<[OnceLock<Hidden>]>,
    frames: boxcar::Vec<Frame>,
    known: DashMap<FrameKey, FrameId, FxBuildHasher>,
    pub(super) written: Interner<Bits>,
    /// How many items met each demand of a series.
    pub(super) met: Interner<Box<[u64]>>,
    /// Keys that were written, by the numbers of their texts.
    pub(super) keys: Chains<u32>,
    pub(super) last_used: LastUsed,
    /// The bytes with which the keys begin and end of which it is known whether tokens hold them.
    pub(super) key_edges: Arc<OnceLock<(u8, u8)>>,
    /// For lists of such keys those that tokens hold.
    pub(super) held: DashMap<u32, u32, FxBuildHasher>,
    /// The first frames of keys and rules in progress of which no more is seen than this.
    pub(super) first_like: DashMap<Class, FrameId, FxBuildHasher>,
    /// The texts of keys and of what is judged.
    pub(super) texts: Chains<u8>,
}

impl Frames {
    pub(super) fn new(nfa: Nfa, analysis: Analysis, terminals: Vec<Option<Arc<Terminal>>>) -> Frames {
        let capacities: Arc<[Option<u64>]> = nfa
            .series
            .iter()
            .map(|series| series.rest_capacity(&terminals, |_| true))
            .collect();
        let stock = |series: &SeriesPlan| match series.has_demands() {
            true => Stock::new(series, &terminals, |_| true),
            false => Stock::default(),
        };
        let stocks = nfa.series.iter().map(stock).collect();
        let choices = nfa.series.iter().map(|_| OnceLock::new()).collect();
        let hidden = nfa.series.iter().map(|_| OnceLock::new()).collect();
        Frames {
            nfa: nfa.into(),
            analysis: analysis.into(),
            terminals: terminals.into(),
            capacities,
            stocks,
            choices,
            hidden,
            ..Frames::empty()
        }
        .begun()
    }

    /// No grammar at all, with nothing found.
    fn empty() -> Frames {
        Frames {
            nfa: Arc::default(),
            analysis: Arc::default(),
            terminals: Arc::default(),
            capacities: Arc::default(),
            stocks: Arc::default(),
            choices: Arc::default(),
            hidden: Arc::default(),
            tails: Arc::default(),
            frames: boxcar::Vec::new(),
            known: DashMap::default(),
            written: Interner::default(),
            met: Interner::default(),
            keys: Chains::default(),
            last_used: LastUsed::default(),
            key_edges: Arc::default(),
            held: DashMap::default(),
            first_like: DashMap::default(),
            texts: Chains::default(),
        }
    }

    /// With the values whose numbers are fixed.
    fn begun(self) -> Frames {
        self.intern(FrameKey::Return);
        self.written.intern(Box::default());
        self.met.intern(Box::default());
        self
    }

    /// The same grammar with nothing found yet. O(1).
    pub(super) fn fresh(&self) -> Frames {
        Frames {
            nfa: self.nfa.clone(),
            analysis: self.analysis.clone(),
            terminals: self.terminals.clone(),
            capacities: self.capacities.clone(),
            stocks: self.stocks.clone(),
            choices: self.choices.clone(),
            hidden: self.hidden.clone(),
            tails: self.tails.clone(),
            key_edges: self.key_edges.clone(),
            ..Frames::empty()
        }
        .begun()
    }

    pub(super) fn get(&self, id: FrameId) -> &Frame {
        &self.frames[id as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.frames.count()
    }

    pub(super) fn intern(&self, key: FrameKey) -> FrameId {
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let frame = self.describe(key.clone());
        *self
            .known
            .entry(key)
            .or_insert_with(|| self.frames.push(frame) as FrameId)
    }

    pub(super) fn start(&self, callee: Callee) -> FrameId {
        match callee {
            Callee::Rule(rule) => self.intern(FrameKey::RuleStart(rule)),
            Callee::Terminal(terminal) => self.intern(FrameKey::TerminalStart(terminal)),
            Callee::Judged(judged) => self.judged_start(judged),
            Callee::Series(series) => self.intern(FrameKey::Series(series, Register::START)),
        }
    }

    pub(super) fn terminal(&self, index: u32) -> &Arc<Terminal> {
        self.terminals[index as usize]
            .as_ref()
            .expect("calls of empty terminals are pruned")
    }

    fn describe(&self, key: FrameKey) -> Frame {
        let (accepting, reads) = match &key {
            FrameKey::Return => (true, false),
            FrameKey::RuleStart(rule) => (false, self.reads(&self.leading(*rule))),
            FrameKey::Rule { rule, nodes } => (
                nodes.contains(&self.nfa.rules[*rule as usize].accept),
                self.reads(nodes),
            ),
            FrameKey::TerminalStart(_) => (false, true),
            FrameKey::Terminal(terminal, cursor) => (self.terminal(*terminal).is_accepting(*cursor), true),
            FrameKey::Series(series, register) => (self.series_may_end(*series, *register), false),
            FrameKey::Choice(choosing) => (false, self.choice_reads(choosing)),
            FrameKey::Key { .. } => (false, true),
            FrameKey::Judged { judged, text, .. } => (self.is_word(*judged, *text), true),
            FrameKey::Words { words, at } => super::repeat::ends_and_goes_on(words, *at),
        };
        Frame {
            key,
            accepting,
            reads,
            calls: OnceLock::new(),
            edges: OnceLock::new(),
            like: AtomicU32::new(UNKNOWN),
        }
    }

    /// The regular language that a frame is in and where, if it is in one.
    pub(super) fn view(&self, id: FrameId) -> View<'_> {
        match self.get(id).key {
            FrameKey::TerminalStart(index) => {
                View::Terminal(self.terminal(index), self.terminal(index).start())
            }
            FrameKey::Terminal(index, cursor) => View::Terminal(self.terminal(index), cursor),
            FrameKey::Key {
                series, rest, cursor, ..
            } => View::Key(self.key_terminal(series, rest), cursor),
            FrameKey::Judged { judged, cursor, .. } => View::Judged(self.beginnings(judged), cursor),
            _ => View::Rule,
        }
    }

    fn reads(&self, nodes: &[u32]) -> bool {
        let mut edges = nodes.iter().flat_map(|&node| &self.nfa.nodes[node as usize]);
        edges.any(|edge| matches!(edge.label, Label::Bytes(..) | Label::Special(_)))
    }

    /// The calls that the frame can make without reading anything itself.
    pub(super) fn calls(&self, id: FrameId) -> &[Call] {
        let frame = self.get(id);
        frame.calls.get_or_init(|| match &frame.key {
            FrameKey::Return
            | FrameKey::TerminalStart(_)
            | FrameKey::Terminal(..)
            | FrameKey::Words { .. }
            | FrameKey::Judged { .. } => Box::default(),
            FrameKey::RuleStart(rule) => self.rule_calls(*rule, &self.leading(*rule), true),
            FrameKey::Rule { rule, nodes } => self.rule_calls(*rule, nodes, false),
            FrameKey::Series(series, register) => self.series_calls(*series, *register),
            FrameKey::Choice(choosing) => self.chosen_calls(*choosing),
            FrameKey::Key {
                series,
                rest,
                register,
                cursor,
                text,
            } => self.key_calls(*series, *rest, *register, *cursor, *text),
        })
    }

    /// Whether the frame is that of a rule which reads bytes next, and does nothing else.
    pub(super) fn only_reads(&self, id: FrameId) -> bool {
        let frame = self.get(id);
        let is_rule = matches!(frame.key, FrameKey::RuleStart(_) | FrameKey::Rule { .. });
        is_rule && frame.reads && !frame.accepting && self.calls(id).is_empty()
    }

    /// The frame after reading a byte, without whoever it calls.
    pub(super) fn read(&self, id: FrameId, byte: u8) -> Option<FrameId> {
        match self.get(id).key {
            FrameKey::Return | FrameKey::Series(..) => None,
            FrameKey::Choice(at) => Some(self.intern(FrameKey::Choice(self.choose(&at, byte)?))),
            FrameKey::RuleStart(_) | FrameKey::Rule { .. } | FrameKey::Words { .. } => {
                self.read_rule(id, byte)
            }
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
            FrameKey::Judged { judged, cursor, text } => self.read_judged(judged, cursor, text, byte),
        }
    }

    fn read_rule(&self, id: FrameId, byte: u8) -> Option<FrameId> {
        let edges = self.edge_list(id);
        let at = edges.partition_point(|&(_, last, _)| last < byte);
        let &(first, _, to) = edges.get(at)?;
        (first <= byte).then_some(to)
    }

    /// What the frame of a rule or of listed words reads, as ranges of bytes in order. Found once.
    fn edges(&self, id: FrameId) -> &Edges {
        let frame = self.get(id);
        frame.edges.get_or_init(|| {
            let list = match &frame.key {
                FrameKey::RuleStart(rule) => self.find_edges(*rule, &self.leading(*rule)),
                FrameKey::Rule { rule, nodes } => self.find_edges(*rule, nodes),
                FrameKey::Words { words, at } => self.edges_of_words(words, *at),
                _ => Box::default(),
            };
            let mut bytes = ByteSet::default();
            for &(first, last, _) in &list {
                bytes.insert_range(first, last);
            }
            Edges { list, bytes }
        })
    }

    /// What the frame of a rule reads, as ranges of bytes in order with where each leads.
    pub(super) fn edge_list(&self, id: FrameId) -> &[Edge] {
        &self.edges(id).list
    }

    /// The bytes that the frame of a rule reads.
    pub(super) fn bytes(&self, id: FrameId) -> &ByteSet {
        &self.edges(id).bytes
    }

    fn find_edges(&self, rule: u32, nodes: &[u32]) -> Box<[Edge]> {
        let ranges = self.nfa.byte_ranges(nodes.iter().copied()).into_iter();
        let edges = ranges.filter_map(|(first, last)| {
            let to = self.read_nodes(rule, nodes, |label| covers(label, first))?;
            Some((first, last, to))
        });
        edges.collect()
    }

    /// The frame after reading a special token.
    pub(super) fn read_special(&self, id: FrameId, special: u32) -> Option<FrameId> {
        let wanted = |label: Label| label == Label::Special(special);
        match &self.get(id).key {
            FrameKey::RuleStart(rule) => self.read_nodes(*rule, &self.leading(*rule), wanted),
            FrameKey::Rule { rule, nodes } => self.read_nodes(*rule, nodes, wanted),
            _ => None,
        }
    }

    fn read_nodes(&self, rule: u32, nodes: &[u32], covers: impl Fn(Label) -> bool) -> Option<FrameId> {
        let edges = nodes.iter().flat_map(|&node| &self.nfa.nodes[node as usize]);
        let to: Vec<u32> = edges
            .filter(|edge| covers(edge.label))
            .map(|edge| edge.to)
            .collect();
        (!to.is_empty()).then(|| self.rule_frame(rule, to))
    }

    pub(super) fn rule_frame(&self, rule: u32, nodes: Vec<u32>) -> FrameId {
        let nodes = match nodes[..] {
            [node] if self.is_closed(node) => nodes,
            _ => self.closure(nodes),
        };
        let accept = self.nfa.rules[rule as usize].accept;
        if nodes
            .iter()
            .all(|&node| node == accept || self.nfa.nodes[node as usize].is_empty())
            && nodes.contains(&accept)
            && !self.analysis.left_corners.contains_key(&accept)
        {
            return RETURN;
        }
        self.intern(FrameKey::Rule {
            rule,
            nodes: nodes.into(),
        })
    }

    /// The frame of a rule at one of its nodes, which is not where it begins.
    pub(super) fn frame_at(&self, rule: u32, node: u32) -> FrameId {
        let is_over = self.nfa.rules[rule as usize].accept == node
            && self.nfa.nodes[node as usize].is_empty()
            && self.has_no_left_corners(node);
        match is_over {
            true => RETURN,
            false => self.rule_frame(rule, vec![node]),
        }
    }

    /// Whether a rule that has come to the node reads bytes next and does nothing else.
    pub(super) fn is_plain(&self, rule: u32, node: u32) -> bool {
        let is_end = self.nfa.rules[rule as usize].accept == node;
        !is_end && !self.nfa.nodes[node as usize].is_empty() && self.is_closed(node)
    }

    /// The nodes behind a byte from a node.
    pub(super) fn behind(&self, node: u32, byte: u8) -> impl Iterator<Item = u32> + '_ {
        let edges = self.nfa.nodes[node as usize].iter();
        edges
            .filter(move |edge| covers(edge.label, byte))
            .map(|edge| edge.to)
    }

    /// The ranges of bytes that a node reads.
    pub(super) fn ranges(&self, node: u32) -> impl Iterator<Item = (u8, u8)> + '_ {
        let edges = self.nfa.nodes[node as usize].iter();
        edges.filter_map(|edge| match edge.label {
            Label::Bytes(first, last) => Some((first, last)),
            _ => None,
        })
    }

    fn has_no_left_corners(&self, node: u32) -> bool {
        let corners = &self.analysis.left_corners;
        corners.is_empty() || !corners.contains_key(&node)
    }

    /// Whether no other node is reached from the node without reading.
    fn is_closed(&self, node: u32) -> bool {
        let mut edges = self.nfa.nodes[node as usize].iter();
        edges.all(|edge| matches!(edge.label, Label::Bytes(..))) && self.has_no_left_corners(node)
    }

    /// All nodes that are reached without reading: past empty edges, past calls of what may be empty, and behind
    /// the leading calls of a left-recursive rule that has just been completed.
    fn closure(&self, mut nodes: Vec<u32>) -> Vec<u32> {
        let mut seen: FxHashSet<u32> = nodes.iter().copied().collect();
        let mut at = 0;
        while at < nodes.len() {
            let node = nodes[at];
            for edge in &self.nfa.nodes[node as usize] {
                let passes = match edge.label {
                    Label::Empty => true,
                    Label::Call(callee) => self.analysis.is_nullable(callee),
                    _ => false,
                };
                if passes && seen.insert(edge.to) {
                    nodes.push(edge.to);
                }
            }
            for &next in self.analysis.left_corners.get(&node).into_iter().flatten() {
                if seen.insert(next) {
                    nodes.push(next);
                }
            }
            at += 1;
        }
        // Nodes without edges that accept nothing only make frames differ that are the same.
        nodes.retain(|&node| !self.only_passes(node));
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Whether the node has empty edges only, so that it adds nothing to a set that holds their targets.
    fn only_passes(&self, node: u32) -> bool {
        let edges = &self.nfa.nodes[node as usize];
        !edges.is_empty() && edges.iter().all(|edge| edge.label == Label::Empty)
    }

    /// The nodes in which a rule begins; for a left-recursive one also those of the rules it may begin with.
    fn leading(&self, rule: u32) -> Vec<u32> {
        let group = self.analysis.recursive_group[rule as usize];
        let mut rules = vec![rule];
        let mut found = Vec::new();
        let mut at = 0;
        while at < rules.len() {
            let nodes = leading_nodes(
                &self.nfa,
                &self.analysis,
                self.nfa.rules[rules[at] as usize].start,
            );
            for edge in nodes.iter().flat_map(|&node| &self.nfa.nodes[node as usize]) {
                if let Label::Call(Callee::Rule(callee)) = edge.label
                    && group.is_some()
                    && self.analysis.recursive_group[callee as usize] == group
                    && !rules.contains(&callee)
                {
                    rules.push(callee);
                }
            }
            found.extend(nodes);
            at += 1;
        }
        found.retain(|&node| !self.only_passes(node));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether a rule calls itself at its end. Where it is complete, it may also go on as what it begins with, but so
    /// may the call itself: `s s` behind `s` is another `s`, and need not be remembered to be one.
    fn is_own_end(&self, rule: u32, callee: Callee, to: &[u32]) -> bool {
        callee == Callee::Rule(rule) && to == [self.nfa.rules[rule as usize].accept]
    }

    fn rule_calls(&self, rule: u32, nodes: &[u32], leading: bool) -> Box<[Call]> {
        let group = self.analysis.recursive_group[rule as usize].filter(|_| leading);
        let mut targets: Vec<(Callee, Vec<u32>)> = Vec::new();
        for edge in nodes.iter().flat_map(|&node| &self.nfa.nodes[node as usize]) {
            let Label::Call(callee) = edge.label else { continue };
            if let (Some(_), Callee::Rule(callee)) = (group, callee)
                && self.analysis.recursive_group[callee as usize] == group
            {
                continue;
            }
            match targets.iter_mut().find(|(known, _)| *known == callee) {
                Some((_, to)) => to.push(edge.to),
                None => targets.push((callee, vec![edge.to])),
            }
        }
        let call = |(callee, to): (Callee, Vec<u32>)| Call {
            callee: self.start(callee),
            then: match self.is_own_end(rule, callee, &to) {
                true => RETURN,
                false => self.rule_frame(rule, to),
            },
        };
        targets.into_iter().map(call).collect()
    }
}

fn covers(label: Label, byte: u8) -> bool {
    matches!(label, Label::Bytes(first, last) if first <= byte && byte <= last)
}
