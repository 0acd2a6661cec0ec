//! Computes the fixed point over rules and object lists.
//!
//! Nodes are settled in order of their distance. A call costs its callee's distance plus the distance after
//! it, so an edge that calls is used when both are settled. An object list is settled when its required items
//! are, and as many of the cheapest other items as it needs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use dashmap::DashMap;
use rustc_hash::FxHashMap;

use super::Distances;
use super::list::Left;
use super::remembered::Remembered;
use crate::language::{ByteSet, NEVER, lengths_over, plus};
use crate::pushdown::frame::Frames;
use crate::pushdown::object::progress::Progress;
use crate::pushdown::plan::nfa::{Callee, Label, Nfa};
use crate::pushdown::stack::Stacks;
use crate::work::spend;

impl Distances {
    /// Computes the distances over these bytes; for `achievable` see the docs of [`distance`](super).
    pub fn new(stacks: &Stacks, usable: ByteSet, achievable: bool) -> Distances {
        let frames = &stacks.frames;
        let words = frames.terminals.iter();
        let words = words.map(|terminal| Some(lengths_over(terminal.as_ref()?, &usable)));
        let mut shortest = Distances {
            usable,
            achievable,
            words: words.collect(),
            nodes: Arc::default(),
            rules: Arc::default(),
            object_lists: Arc::default(),
            rule_of: rules_of_nodes(&frames.nfa).into(),
            ascents: DashMap::default(),
            peaks: DashMap::default(),
            many: Remembered::default(),
            frames: Remembered::default(),
            lists: Remembered::default(),
            configs: Remembered::default(),
        };
        solve(&mut shortest, frames);
        shortest
    }
}

/// Computes the distances of all nodes, rules and object lists.
fn solve(shortest: &mut Distances, frames: &Frames) {
    let nfa = &frames.nfa;
    shortest.nodes = vec![NEVER; nfa.nodes.len()].into();
    shortest.rules = vec![NEVER; nfa.rules.len()].into();
    shortest.object_lists = vec![NEVER; nfa.object_lists.len()].into();
    let mut solve = Solve {
        into: vec![Vec::new(); nfa.nodes.len()],
        calls: FxHashMap::default(),
        used_by: vec![Vec::new(); nfa.rules.len()],
        missing: vec![0; nfa.object_lists.len()],
        settled: vec![false; nfa.object_lists.len()],
        open: BinaryHeap::new(),
        shortest,
        frames,
    };
    solve.prepare();
    while let Some(Reverse((length, item))) = solve.open.pop() {
        spend(1);
        match item {
            Item::Node(node) => solve.settle_node(node, length),
            Item::ObjectList(object_list) => solve.settle_object_list(object_list, length),
            Item::Offer(object_list) => solve.try_object_list(object_list),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Node(u32),
    ObjectList(u32),
    /// An additional item of an object list is available at this length.
    Offer(u32),
}

/// The use of a rule by an object list.
#[derive(Clone, Copy)]
enum Use {
    /// A way to write this property, which must be written.
    Required(u32),
    Optional,
    /// An additional item with its key.
    Additional(Option<u32>),
    Separator,
}

struct Solve<'a> {
    into: Vec<Vec<(u32, Label)>>,
    calls: FxHashMap<Callee, Vec<(u32, u32)>>,
    /// The object lists that use each rule, with the kind of use.
    used_by: Vec<Vec<(u32, Use)>>,
    /// The number of rules that each object list still waits for.
    missing: Vec<usize>,
    settled: Vec<bool>,
    open: BinaryHeap<Reverse<(u64, Item)>>,
    shortest: &'a mut Distances,
    frames: &'a Frames,
}

impl Solve<'_> {
    fn prepare(&mut self) {
        let nfa = &self.frames.nfa;
        for (from, edges) in nfa.nodes.iter().enumerate() {
            for edge in edges {
                self.into[edge.to as usize].push((from as u32, edge.label));
                if let Label::Call(callee) = edge.label {
                    self.calls.entry(callee).or_default().push((from as u32, edge.to));
                }
            }
        }
        for (index, plan) in nfa.object_lists.iter().enumerate() {
            let index = index as u32;
            for (property, place) in plan.properties.iter().zip(0..) {
                for (at, &(rule, _)) in property.ways.iter().enumerate() {
                    // Ways that write the same text share their rule.
                    if property.ways[..at].iter().any(|way| way.0 == rule) {
                        continue;
                    }
                    let role = if property.required {
                        Use::Required(place)
                    } else {
                        Use::Optional
                    };
                    self.used_by[rule as usize].push((index, role));
                }
            }
            for additional in &plan.additional {
                self.used_by[additional.item as usize].push((index, Use::Additional(additional.key)));
            }
            let required = plan
                .properties
                .iter()
                .filter(|property| property.required)
                .count();
            let many = plan.min.max(required as u64) > 1 || plan.has_demands();
            if let Some(separator) = plan.separator.filter(|_| many) {
                self.used_by[separator as usize].push((index, Use::Separator));
            }
            self.missing[index as usize] = required + usize::from(many && plan.separator.is_some());
            self.try_object_list(index);
        }
        for rule in &nfa.rules {
            self.open.push(Reverse((0, Item::Node(rule.accept))));
        }
    }

    fn settle_node(&mut self, node: u32, length: u64) {
        if self.shortest.nodes[node as usize] != NEVER {
            return;
        }
        Arc::make_mut(&mut self.shortest.nodes)[node as usize] = length;
        spend(self.into[node as usize].len());
        for index in 0..self.into[node as usize].len() {
            let (from, label) = self.into[node as usize][index];
            let step = self.step(label);
            self.push_node(from, plus(step, length));
        }
        let rule = self.shortest.rule_of[node as usize];
        if rule != u32::MAX && self.frames.nfa.rules[rule as usize].start == node {
            self.settle_rule(rule, length);
        }
    }

    fn step(&self, label: Label) -> u64 {
        match label {
            Label::Empty => 0,
            Label::Special(_) => 1,
            Label::Bytes(first, last) => match (first..=last).any(|byte| self.shortest.usable.contains(byte))
            {
                true => 1,
                false => NEVER,
            },
            Label::Call(Callee::Rule(rule)) => self.shortest.rules[rule as usize],
            Label::Call(Callee::ObjectList(object_list)) => self.shortest.object_lists[object_list as usize],
            Label::Call(Callee::Validated(validated)) => {
                self.shortest.of_word(self.frames.validator(validated), b"")
            }
            Label::Call(Callee::Terminal(terminal)) => self
                .shortest
                .of_cursor(terminal, self.frames.terminal(terminal).start()),
        }
    }

    fn push_node(&mut self, node: u32, length: u64) {
        if length != NEVER && self.shortest.nodes[node as usize] == NEVER {
            self.open.push(Reverse((length, Item::Node(node))));
        }
    }

    fn settle_rule(&mut self, rule: u32, length: u64) {
        Arc::make_mut(&mut self.shortest.rules)[rule as usize] = length;
        self.wake(Callee::Rule(rule), length);
        for (object_list, role) in std::mem::take(&mut self.used_by[rule as usize]) {
            if !self.settled[object_list as usize] {
                self.rule_of_object_list(object_list, (rule, role), length);
            }
        }
    }

    fn rule_of_object_list(&mut self, object_list: u32, (rule, role): (u32, Use), length: u64) {
        let index = object_list as usize;
        match role {
            Use::Separator => self.missing[index] -= 1,
            Use::Optional => {}
            Use::Required(place) => {
                // The first way that is settled is the cheapest.
                let property = &self.frames.nfa.object_lists[index].properties[place as usize];
                let mut others = property.ways.iter().filter(|way| way.0 != rule);
                if others.all(|way| self.shortest.rules[way.0 as usize] == NEVER) {
                    self.missing[index] -= 1;
                }
            }
            Use::Additional(key) => {
                let plan = &self.frames.nfa.object_lists[index];
                let keys = usize::try_from(plan.min).unwrap_or(usize::MAX);
                let terminal = |key| self.frames.terminal(key);
                let key = key.map_or(0, |key| self.shortest.key_among(terminal(key), key, (plan, keys)));
                if plus(key, length) != NEVER {
                    self.open
                        .push(Reverse((plus(key, length), Item::Offer(object_list))));
                }
            }
        }
        self.try_object_list(object_list);
    }

    fn try_object_list(&mut self, object_list: u32) {
        if self.missing[object_list as usize] == 0 && !self.settled[object_list as usize] {
            self.push_object_list(object_list);
        }
    }

    /// Computes the distance of an object list from what is settled so far: the first finite value is the
    /// smallest, because everything settled later is no shorter than what was used.
    fn push_object_list(&mut self, object_list: u32) {
        let plan = &self.frames.nfa.object_lists[object_list as usize];
        let length = match plan.has_demands() {
            true => self
                .shortest
                .of_demanding(self.frames, object_list, Progress::START, 0),
            false => {
                let properties = plan.properties.iter();
                let properties =
                    properties.map(|property| (self.shortest.of_property(property), property.required));
                let mut left = Left {
                    properties: properties.collect(),
                    additional: Vec::new(),
                    separator: plan
                        .separator
                        .map_or(0, |rule| self.shortest.rules[rule as usize]),
                };
                let needed = left.additional_needed(plan, Progress::START);
                left.additional = self.shortest.additional_of(self.frames, plan, 0, needed);
                left.shortest(plan, Progress::START)
            }
        };
        if length != NEVER {
            self.open.push(Reverse((length, Item::ObjectList(object_list))));
        }
    }

    fn settle_object_list(&mut self, object_list: u32, length: u64) {
        if !std::mem::replace(&mut self.settled[object_list as usize], true) {
            Arc::make_mut(&mut self.shortest.object_lists)[object_list as usize] = length;
            self.wake(Callee::ObjectList(object_list), length);
        }
    }

    fn wake(&mut self, callee: Callee, length: u64) {
        for (from, to) in self.calls.get(&callee).cloned().unwrap_or_default() {
            let after = self.shortest.nodes[to as usize];
            self.push_node(from, plus(length, after));
        }
    }
}

/// Returns the rule that each node belongs to.
fn rules_of_nodes(nfa: &Nfa) -> Vec<u32> {
    let mut rule_of = vec![u32::MAX; nfa.nodes.len()];
    for (rule, parts) in nfa.rules.iter().zip(0..) {
        let mut open = vec![rule.start, rule.accept];
        while let Some(node) = open.pop() {
            spend(1);
            if std::mem::replace(&mut rule_of[node as usize], parts) == u32::MAX {
                open.extend(nfa.nodes[node as usize].iter().map(|edge| edge.to));
            }
        }
    }
    rule_of
}
