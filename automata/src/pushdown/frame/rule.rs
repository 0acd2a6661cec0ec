//! The frames of rules: sets of nodes of their automata, closed under moves that read nothing.

use smallvec::SmallVec;

use super::{Call, Calls, EdgeList, FrameId, Frames, RETURN};
use crate::pushdown::intern::seen::Seen;
use crate::pushdown::plan::analysis::leading_nodes;
use crate::pushdown::plan::nfa::{Callee, Label};
use crate::work::spend;

/// The number of nodes or edges that are visited in the time of one round of other loops.
const NODES_A_ROUND: usize = 16;

impl Frames {
    pub(crate) fn find_edges(&self, rule: u32, nodes: &[u32]) -> EdgeList {
        let ranges = self.nfa.byte_ranges(nodes.iter().copied()).into_iter();
        let edges = ranges.filter_map(|(first, last)| {
            let to = self.read_nodes(rule, nodes, |label| label.covers(first))?;
            Some((first, last, to))
        });
        edges.collect()
    }

    pub(crate) fn read_nodes(
        &self,
        rule: u32,
        nodes: &[u32],
        covers: impl Fn(Label) -> bool,
    ) -> Option<FrameId> {
        spend(1 + nodes.len() / NODES_A_ROUND);
        let edges = nodes.iter().flat_map(|&node| &self.nfa.nodes[node as usize]);
        let to = edges.filter(|edge| covers(edge.label)).map(|edge| edge.to);
        let to: SmallVec<[u32; 4]> = to.collect();
        (!to.is_empty()).then(|| self.rule_frame(rule, &to))
    }

    pub(crate) fn rule_frame(&self, rule: u32, nodes: &[u32]) -> FrameId {
        let closed: Vec<u32>;
        let nodes = match nodes {
            [node] if self.is_closed(*node) => nodes,
            _ => {
                closed = self.closure(nodes);
                &closed
            }
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
        self.intern_rule(rule, nodes)
    }

    /// Returns the frame of a rule at one of its nodes, other than its start.
    pub(crate) fn frame_at(&self, rule: u32, node: u32) -> FrameId {
        let is_over = self.nfa.rules[rule as usize].accept == node
            && self.nfa.nodes[node as usize].is_empty()
            && self.has_no_left_corners(node);
        match is_over {
            true => RETURN,
            false => self.rule_frame(rule, &[node]),
        }
    }

    /// Returns `true` if a rule at this node reads bytes next and does nothing else.
    pub(crate) fn is_plain(&self, rule: u32, node: u32) -> bool {
        let is_end = self.nfa.rules[rule as usize].accept == node;
        !is_end && !self.nfa.nodes[node as usize].is_empty() && self.is_closed(node)
    }

    /// Returns the nodes after a byte from a node.
    pub(crate) fn after(&self, node: u32, byte: u8) -> impl Iterator<Item = u32> + '_ {
        let edges = self.nfa.nodes[node as usize].iter();
        edges
            .filter(move |edge| edge.label.covers(byte))
            .map(|edge| edge.to)
    }

    /// Returns the ranges of bytes that a node reads.
    pub(crate) fn ranges(&self, node: u32) -> impl Iterator<Item = (u8, u8)> + '_ {
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

    /// Returns `true` if no other node is reached from the node without reading.
    fn is_closed(&self, node: u32) -> bool {
        let mut edges = self.nfa.nodes[node as usize].iter();
        edges.all(|edge| matches!(edge.label, Label::Bytes(..))) && self.has_no_left_corners(node)
    }

    /// Returns all nodes that are reached without reading: along empty edges, along calls of callees that may
    /// be empty, and after the leading calls of a left-recursive rule that has just been completed.
    pub(crate) fn closure(&self, nodes: &[u32]) -> Vec<u32> {
        let mut nodes = nodes.to_vec();
        let mut seen = Seen::default();
        nodes.retain(|&node| seen.insert(node));
        let mut at = 0;
        while at < nodes.len() {
            let node = nodes[at];
            spend(1 + self.nfa.nodes[node as usize].len() / NODES_A_ROUND);
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
        // Non-accepting nodes without edges would only make equal frames differ.
        nodes.retain(|&node| !self.only_passes(node));
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Returns `true` if the node has only empty edges, so that it adds nothing to a set that contains their
    /// targets.
    fn only_passes(&self, node: u32) -> bool {
        let edges = &self.nfa.nodes[node as usize];
        !edges.is_empty() && edges.iter().all(|edge| edge.label == Label::Empty)
    }

    /// Returns the nodes in which a rule begins; for a left-recursive rule also those of the rules it may
    /// begin with.
    pub(crate) fn leading(&self, rule: u32) -> Vec<u32> {
        let group = self.analysis.recursive_group[rule as usize];
        let mut rules = vec![rule];
        let mut found = Vec::new();
        let mut at = 0;
        while at < rules.len() {
            spend(1);
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

    /// Returns `true` for a rule's call of itself at its end. When the rule is complete, it may also continue
    /// as the rules that begin with it, but so may the call itself: `s s` after `s` is another `s`, and need
    /// not be remembered as one.
    fn is_own_end(&self, rule: u32, callee: Callee, to: &[u32]) -> bool {
        callee == Callee::Rule(rule) && to == [self.nfa.rules[rule as usize].accept]
    }

    pub(crate) fn rule_calls(&self, rule: u32, nodes: &[u32], leading: bool) -> Calls {
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
                false => self.rule_frame(rule, &to),
            },
        };
        targets.into_iter().map(call).collect()
    }
}
