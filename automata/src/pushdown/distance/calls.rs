//! Computes which rules and object lists call which, and how far from the end tokens can lead in each.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Distances;
use super::free::{FreeWords, KEYS};
use crate::grammar::ItemOrder;
use crate::language::ByteSet;
use crate::language::components;
use crate::language::{NEVER, plus};
use crate::pushdown::equivalence::TokenFacts;
use crate::pushdown::frame::Frames;
use crate::pushdown::plan::nfa::{Callee, Label, ObjectListPlan};
use crate::work::spend;

/// The maximum number of calls that are followed in a grammar in which rules call themselves.
const WORK: usize = 1 << 22;

/// A call from a rule or object list.
#[derive(Clone, Copy)]
struct Call {
    callee: u32,
    before: CallPrefix,
    /// The distance from the end of the call to the end of the caller.
    after: u64,
}

/// The part of the caller before the call.
#[derive(Clone, Copy)]
enum CallPrefix {
    Nothing,
    /// The path to a node of a rule.
    Node(u32),
    /// The key of an item.
    Key(u32),
}

/// The calls of all rules and, numbered after them, of all object lists.
pub(crate) struct Calls<'a> {
    frames: &'a Frames,
    shortest: &'a Distances,
    calls: Vec<Vec<Call>>,
    /// The greatest distance in each, not counting its calls.
    own: Vec<u64>,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(frames: &'a Frames, shortest: &'a Distances) -> Calls<'a> {
        let nfa = &frames.nfa;
        let all = nfa.rules.len() + nfa.object_lists.len();
        let mut calls = Calls {
            frames,
            shortest,
            calls: vec![Vec::new(); all],
            own: vec![0; all],
        };
        calls.add_rules();
        let mut free = FxHashMap::default();
        for object_list in 0..nfa.object_lists.len() as u32 {
            calls.add_object_list(object_list, &mut free);
        }
        calls
    }

    fn add_rules(&mut self) {
        let (nfa, analysis, shortest) = (&self.frames.nfa, &self.frames.analysis, self.shortest);
        for (node, edges) in nfa.nodes.iter().enumerate() {
            let rule = shortest.rule_of[node];
            if rule == u32::MAX {
                continue;
            }
            // If a rule begins with itself, the distances of its nodes do not cover the rest of it.
            let length = match analysis.recursive_group[rule as usize] {
                Some(_) => NEVER,
                None => shortest.nodes[node],
            };
            self.add_own(rule, length);
            for edge in edges {
                if let Label::Call(callee) = edge.label {
                    let after = shortest.nodes[edge.to as usize];
                    self.add_call((rule, node as u32), callee, after);
                }
            }
        }
    }

    fn add_own(&mut self, caller: u32, length: u64) {
        let own = &mut self.own[caller as usize];
        *own = length.max(*own);
    }

    fn add_call(&mut self, (caller, node): (u32, u32), callee: Callee, after: u64) {
        let (callee, after) = match callee {
            Callee::Rule(rule) => (rule, after),
            // The reach of an object list is added to the distance of its progress, here the first.
            Callee::ObjectList(object_list) => {
                let first = self.shortest.object_lists[object_list as usize];
                (self.number(object_list), plus(after, first))
            }
            Callee::Terminal(terminal) => {
                let start = self.frames.terminal(terminal).start();
                return self.add_own(caller, plus(after, self.shortest.peak(terminal, start)));
            }
            Callee::Validated(validated) => {
                let longest = self.frames.validator(validated).longest_completion() as u64;
                return self.add_own(caller, plus(after, longest));
            }
        };
        let before = CallPrefix::Node(node);
        self.calls[caller as usize].push(Call {
            callee,
            before,
            after,
        });
    }

    fn number(&self, object_list: u32) -> u32 {
        self.frames.nfa.rules.len() as u32 + object_list
    }

    /// Adds the calls of an object list. The distance after an item is never greater than before it, except
    /// for the item that must follow a separator.
    fn add_object_list(&mut self, object_list: u32, free: &mut FxHashMap<u32, Option<FreeWords>>) {
        let (frames, shortest, caller) = (self.frames, self.shortest, self.number(object_list));
        let plan = &frames.nfa.object_lists[object_list as usize];
        if !is_plain(plan) {
            return self.add_own(caller, NEVER);
        }
        let mut of_free_key = |key: u32| {
            let find = || FreeWords::new(frames.terminal(key), key, shortest);
            let free = free.entry(key).or_insert_with(find);
            free.map_or(NEVER, |free| free.longest(plan.taken.len() + 2 * KEYS))
        };
        let lengths = plan.additional.iter().map(|additional| {
            let key = additional.key.map_or(0, &mut of_free_key);
            plus(key, shortest.rules[additional.item as usize])
        });
        let lengths: Vec<u64> = lengths.collect();
        let another = self.another(plan, &lengths);
        let properties = plan.properties.iter().flat_map(|property| &property.ways);
        let call = |callee, before, after| Call {
            callee,
            before,
            after,
        };
        let mut calls: Vec<Call> = properties
            .map(|&(rule, _)| call(rule, CallPrefix::Nothing, 0))
            .collect();
        calls.extend(
            plan.separator
                .map(|rule| call(rule, CallPrefix::Nothing, another)),
        );
        for (additional, length) in plan.additional.iter().zip(lengths) {
            self.add_own(caller, length);
            let before = additional.key.map_or(CallPrefix::Nothing, CallPrefix::Key);
            calls.push(call(additional.item, before, 0));
        }
        self.calls[caller as usize] = calls;
    }

    /// Returns the greatest cost of the cheapest optional item that may follow a separator.
    fn another(&self, plan: &ObjectListPlan, lengths: &[u64]) -> u64 {
        // There is always one more key, so a property is written only if it is cheaper.
        let keyed = plan
            .additional
            .iter()
            .zip(lengths)
            .filter(|(additional, _)| additional.key.is_some());
        let always = keyed.map(|(_, &length)| length).min().unwrap_or(NEVER);
        if always != NEVER {
            return always;
        }
        let properties = plan
            .properties
            .iter()
            .map(|property| self.shortest.of_property(property));
        let all = properties.chain(lengths.iter().copied());
        all.max().unwrap_or(0)
    }

    /// Returns the greatest distance that tokens can lead to in each rule and object list; `facts` knows the
    /// contents of tokens.
    pub(crate) fn furthest(&self, facts: &impl TokenFacts) -> Vec<u64> {
        let edges = self
            .calls
            .iter()
            .map(|calls| calls.iter().map(|call| call.callee).collect());
        let edges: Vec<Vec<u32>> = edges.collect();
        let groups = components(&edges);
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); edges.len()];
        for (caller, &group) in (0..).zip(&groups) {
            members[group as usize].push(caller);
        }
        let within: Vec<(Vec<CallLevel>, ByteSet)> =
            members.iter().map(|group| self.calls_within(group)).collect();
        // One query for all groups, since it examines each token.
        let mut opening = ByteSet::default();
        within.iter().for_each(|(_, bytes)| opening.unite(bytes));
        let most = if opening.is_empty() {
            0
        } else {
            facts.most(&opening)
        };
        let (mut found, mut work) = (vec![0; edges.len()], WORK);
        // The callees of a group have smaller numbers.
        for (group, (calls, _)) in members.iter().zip(within) {
            let outer = group.iter().map(|&caller| {
                let calls = self.calls[caller as usize].iter();
                let calls = calls.filter(|call| groups[call.callee as usize] != groups[caller as usize]);
                let reached = calls.map(|call| plus(call.after, found[call.callee as usize]));
                reached.fold(self.own[caller as usize], u64::max)
            });
            let outer = outer.collect();
            let reached = match calls.is_empty() {
                true => outer,
                false => Levels { calls, outer }.furthest(most, &mut work),
            };
            for (&caller, reached) in group.iter().zip(reached) {
                found[caller as usize] = reached;
            }
        }
        found
    }

    /// Returns the calls within a group, and the bytes of which each level reads one before it calls the
    /// next.
    fn calls_within(&self, group: &[u32]) -> (Vec<CallLevel>, ByteSet) {
        let (mut levels, mut opening) = (Vec::new(), ByteSet::default());
        for (from, &caller) in group.iter().enumerate() {
            let calls = self.calls[caller as usize].iter();
            let calls = calls.filter_map(|call| Some((group.binary_search(&call.callee).ok()?, call)));
            let mut calls = calls.peekable();
            if calls.peek().is_none() {
                continue;
            }
            let start = self
                .frames
                .nfa
                .rules
                .get(caller as usize)
                .map(|rule| Opening::new(self.frames, rule.start));
            for (to, call) in calls {
                let bytes = self.read_before(call, start.as_ref());
                opening.unite(&bytes.unwrap_or_default());
                levels.push(CallLevel {
                    from,
                    to,
                    after: call.after,
                    reads: bytes.is_some(),
                });
            }
        }
        (levels, opening)
    }

    /// Returns the bytes that may come first before a call; `None` if the call may come before any byte.
    fn read_before(&self, call: &Call, start: Option<&Opening>) -> Option<ByteSet> {
        match call.before {
            CallPrefix::Nothing => None,
            CallPrefix::Node(node) => start
                .filter(|start| !start.nodes.contains(&node))
                .map(|start| start.bytes),
            CallPrefix::Key(key) => {
                let (terminal, mut bytes) = (self.frames.terminal(key), ByteSet::default());
                terminal.add_bytes(terminal.start(), &mut bytes);
                (!terminal.is_accepting(terminal.start())).then_some(bytes)
            }
        }
    }
}

/// The beginning of a rule.
struct Opening {
    /// The nodes at which nothing has been read.
    nodes: FxHashSet<u32>,
    /// The bytes that may be read first.
    bytes: ByteSet,
}

impl Opening {
    fn new(frames: &Frames, start: u32) -> Opening {
        let (mut nodes, mut bytes) = (FxHashSet::default(), ByteSet::default());
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            spend(1);
            if !nodes.insert(node) {
                continue;
            }
            for edge in &frames.nfa.nodes[node as usize] {
                match edge.label {
                    Label::Empty => open.push(edge.to),
                    Label::Bytes(first, last) => bytes.insert_range(first, last),
                    Label::Special(_) => {}
                    Label::Call(callee) => {
                        match callee {
                            Callee::Terminal(terminal) => {
                                let terminal = frames.terminal(terminal);
                                terminal.add_bytes(terminal.start(), &mut bytes);
                            }
                            _ => bytes.insert_range(0, u8::MAX),
                        }
                        if frames.analysis.is_nullable(callee) {
                            open.push(edge.to);
                        }
                    }
                }
            }
        }
        Opening { nodes, bytes }
    }
}

/// A call within a group.
struct CallLevel {
    from: usize,
    to: usize,
    after: u64,
    /// `true` if a byte is read before the call.
    reads: bool,
}

/// Rules and object lists that call each other.
struct Levels {
    calls: Vec<CallLevel>,
    /// The greatest distance in each without the calls within the group.
    outer: Vec<u64>,
}

impl Levels {
    /// Returns the greatest distance in each rule from any place in it, if at most `most` bytes are read
    /// before calls, within the work.
    fn furthest(self, most: usize, work: &mut usize) -> Vec<u64> {
        let mut started = self.outer.clone();
        for _ in 0..=most {
            if started.contains(&NEVER) || !self.call_at_once(&mut started, work) {
                return vec![NEVER; self.outer.len()];
            }
            let before = started.clone();
            self.add_calls(true, &before, &mut started);
        }
        let mut furthest = self.outer.clone();
        self.calls.iter().for_each(|call| {
            furthest[call.from] = furthest[call.from].max(plus(call.after, started[call.to]));
        });
        furthest
    }

    /// Adds the distances reached by calls before which a byte is read, or by calls before which none is;
    /// returns `true` if any grew.
    fn add_calls(&self, reads: bool, before: &[u64], reached: &mut [u64]) -> bool {
        let mut changed = false;
        for call in self.calls.iter().filter(|call| call.reads == reads) {
            let by_call = plus(call.after, before[call.to]);
            changed |= by_call > reached[call.from];
            reached[call.from] = by_call.max(reached[call.from]);
        }
        changed
    }

    /// Follows calls before which nothing is read, one level per round; returns `true` if that ends within
    /// the work. It ends unless rules begin with themselves.
    fn call_at_once(&self, reached: &mut [u64], work: &mut usize) -> bool {
        (0..=reached.len()).any(|_| {
            *work = work.saturating_sub(self.calls.len() + reached.len());
            let before = reached.to_vec();
            *work == 0 || !self.add_calls(false, &before, reached)
        }) && *work > 0
    }
}

/// Returns `true` if the rest of an object list is never longer than at its progress, except for an item
/// after a separator.
fn is_plain(plan: &ObjectListPlan) -> bool {
    let required = plan
        .properties
        .iter()
        .filter(|property| property.required)
        .count() as u64;
    // Skipped properties no longer contribute to the count.
    let loses = plan.order == ItemOrder::Listed && plan.min > required && !plan.properties.is_empty();
    !plan.has_demands() && !loses
}
