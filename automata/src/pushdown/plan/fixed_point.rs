//! A fixed point: marks spread from the start of every rule, as far as a question allows.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::nfa::{Callee, Edge, Label, Nfa, Users};
use crate::language::Terminal;
use crate::limits::Cancel;

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Question {
    Productive,
    Nullable,
}

pub(crate) struct Answer {
    pub(crate) rules: Vec<bool>,
    pub(crate) object_lists: Vec<bool>,
    pub(crate) terminals: Vec<bool>,
}

/// No rule, or no object list.
const NONE: u32 = u32::MAX;

/// The users of rules.
pub(crate) struct Uses {
    /// The rule that each node completes, if any. Every rule has a separate node for that.
    rule_of_accept: Vec<u32>,
    /// The object lists that use each rule as an item or as their separator.
    users: Users,
}

impl Uses {
    pub(crate) fn new(nfa: &Nfa) -> Uses {
        let mut rule_of_accept = vec![NONE; nfa.nodes.len()];
        for (rule, index) in nfa.rules.iter().zip(0..) {
            rule_of_accept[rule.accept as usize] = index;
        }
        Uses {
            rule_of_accept,
            users: Users::new(nfa),
        }
    }
}

struct Spread<'a> {
    nfa: &'a Nfa,
    uses: &'a Uses,
    terminals: &'a [Option<Arc<Terminal>>],
    question: Question,
    cancel: &'a Cancel,
    answer: Answer,
    marked: Vec<bool>,
    open: Vec<u32>,
    /// The nodes after edges that wait for a callee.
    waiting: FxHashMap<Callee, Vec<u32>>,
    /// The object lists with an item that came to hold since they were last decided. They wait until no node
    /// is open, so that an object list of a thousand properties is not decided a thousand times.
    doubtful: Vec<u32>,
}

pub(crate) fn spread(
    nfa: &Nfa,
    uses: &Uses,
    terminals: &[Option<Arc<Terminal>>],
    question: Question,
    cancel: &Cancel,
) -> Answer {
    let holding = terminals.iter().map(|terminal| match (terminal, question) {
        (None, _) => false,
        (Some(_), Question::Productive) => true,
        (Some(terminal), Question::Nullable) => terminal.is_accepting(terminal.start()),
    });
    let answer = Answer {
        rules: vec![false; nfa.rules.len()],
        object_lists: vec![false; nfa.object_lists.len()],
        terminals: holding.collect(),
    };
    let mut spread = Spread {
        nfa,
        uses,
        terminals,
        question,
        cancel,
        answer,
        marked: vec![false; nfa.nodes.len()],
        open: Vec::new(),
        waiting: FxHashMap::default(),
        doubtful: (0..nfa.object_lists.len() as u32).collect(),
    };
    spread.run();
    spread.answer
}

impl Spread<'_> {
    fn run(&mut self) {
        for rule in &self.nfa.rules {
            self.mark(rule.start);
        }
        loop {
            while let Some(node) = self.open.pop() {
                if self.cancel.is_asked() {
                    return;
                }
                self.visit(node);
            }
            let mut doubtful = std::mem::take(&mut self.doubtful);
            if doubtful.is_empty() {
                break;
            }
            doubtful.sort_unstable();
            doubtful.dedup();
            for object_list in doubtful {
                self.decide_object_list(object_list);
            }
        }
    }

    fn mark(&mut self, node: u32) {
        if !std::mem::replace(&mut self.marked[node as usize], true) {
            self.open.push(node);
        }
    }

    /// Returns the node at the end of a fixed text, given a node in it: most nodes are inside fixed texts,
    /// and neither complete a rule nor have other edges. Returns `None` if it was reached before.
    fn after_text(&mut self, mut node: u32) -> Option<u32> {
        while let [
            Edge {
                label: Label::Bytes(..),
                to,
            },
        ] = self.nfa.nodes[node as usize][..]
            && self.question == Question::Productive
            && self.uses.rule_of_accept[node as usize] == NONE
        {
            if std::mem::replace(&mut self.marked[to as usize], true) {
                return None;
            }
            node = to;
        }
        Some(node)
    }

    fn visit(&mut self, node: u32) {
        let Some(node) = self.after_text(node) else {
            return;
        };
        let rule = self.uses.rule_of_accept[node as usize];
        if rule != NONE {
            self.answer.rules[rule as usize] = true;
            self.wake(Callee::Rule(rule));
            self.doubtful.extend_from_slice(self.uses.users.of(rule));
        }
        for index in 0..self.nfa.nodes[node as usize].len() {
            let edge = &self.nfa.nodes[node as usize][index];
            match edge.label {
                Label::Empty => self.mark(edge.to),
                Label::Bytes(..) | Label::Special(_) if self.question == Question::Productive => {
                    self.mark(edge.to)
                }
                Label::Bytes(..) | Label::Special(_) => {}
                Label::Call(callee) if self.holds(callee) => self.mark(edge.to),
                Label::Call(callee) => self.waiting.entry(callee).or_default().push(edge.to),
            }
        }
    }

    fn holds(&self, callee: Callee) -> bool {
        match callee {
            Callee::Rule(rule) => self.answer.rules[rule as usize],
            Callee::Terminal(terminal) => self.answer.terminals[terminal as usize],
            // Every prefix of a word can be completed, so there are words.
            Callee::Validated(validated) => {
                let terminal = self.nfa.validated[validated as usize].terminal;
                self.answer.terminals[terminal as usize]
            }
            Callee::ObjectList(object_list) => self.answer.object_lists[object_list as usize],
        }
    }

    fn wake(&mut self, callee: Callee) {
        for node in self.waiting.remove(&callee).unwrap_or_default() {
            self.mark(node);
        }
    }

    fn decide_object_list(&mut self, index: u32) {
        if self.answer.object_lists[index as usize] {
            return;
        }
        let object_list = &self.nfa.object_lists[index as usize];
        let holds = match self.question {
            Question::Productive => object_list.is_productive(&self.answer.rules, self.terminals),
            Question::Nullable => object_list.is_nullable(&self.answer.rules),
        };
        if holds {
            self.answer.object_lists[index as usize] = true;
            self.wake(Callee::ObjectList(index));
        }
    }
}
