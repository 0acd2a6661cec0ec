//! Where parts end: in a line, after a line break, or where they began.

use super::indentation::{ALL, At, Columns, Ends, MOST_STEPS};
use crate::notation::tree::{Node, NodeKind};

impl Columns<'_> {
    pub(super) fn is_exhausted(&self) -> bool {
        self.steps.get() > MOST_STEPS
    }

    /// Counts a step; returns `false` if there were too many.
    pub(super) fn may_go_on(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        !self.is_exhausted()
    }

    pub(super) fn has_lines(&self, node: &Node) -> bool {
        if !self.may_go_on() {
            return false;
        }
        match &node.kind {
            NodeKind::Name(name) => {
                self.layout.has(name)
                    || self
                        .rules
                        .get(name.as_str())
                        .is_some_and(|&rule| self.lines[rule])
            }
            _ => node.parts().iter().any(|part| self.has_lines(part)),
        }
    }

    pub(super) fn is_nullable(&self, node: &Node) -> bool {
        if !self.may_go_on() {
            return false;
        }
        match &node.kind {
            NodeKind::Name(name) => self
                .rules
                .get(name.as_str())
                .is_some_and(|&rule| self.nullable[rule]),
            NodeKind::Seq(parts) => parts.iter().all(|part| self.is_nullable(part)),
            NodeKind::Choice(parts) => parts.iter().any(|part| self.is_nullable(part)),
            NodeKind::Repeat(body, min, _) => *min == 0 || self.is_nullable(body),
            NodeKind::Text(text) => text.is_empty(),
            _ => false,
        }
    }

    pub(super) fn is(&self, node: &Node, terminal: &str) -> bool {
        matches!(&node.kind, NodeKind::Name(name) if name == terminal)
    }

    /// Returns where a part may end that begins here, in some block.
    pub(super) fn ends_of(&self, node: &Node, from: At) -> Ends {
        let mut ends = [false; 3];
        if !self.has_lines(node) {
            ends[At::Middle as usize] = true;
            ends[from as usize] |= self.is_nullable(node);
            return ends;
        }
        match &node.kind {
            NodeKind::Name(name) => match self.rules.get(name.as_str()) {
                Some(&rule) => return self.ends[rule][from as usize],
                None => ends[At::Line as usize] = from != At::Line && *name == self.layout.newline,
            },
            NodeKind::Choice(parts) => {
                for part in parts {
                    ends = either(ends, self.ends_of(part, from));
                }
            }
            NodeKind::Seq(parts) => ends = self.ends_of_all(parts, from),
            NodeKind::Repeat(body, min, _) => {
                let mut reached = [false; 3];
                reached[from as usize] = true;
                let mut next = self.after(reached, body);
                for _ in 0..ALL.len() {
                    next = either(next, self.after(next, body));
                }
                ends = next;
                ends[from as usize] |= *min == 0;
            }
            _ => {}
        }
        ends
    }

    pub(super) fn after(&self, from: Ends, part: &Node) -> Ends {
        let reached = ALL.iter().filter(|&&at| from[at as usize]);
        reached.fold([false; 3], |ends, &at| either(ends, self.ends_of(part, at)))
    }

    pub(super) fn ends_of_all(&self, parts: &[Node], from: At) -> Ends {
        let mut reached = [false; 3];
        reached[from as usize] = true;
        let mut at = 0;
        while let Some(part) = parts.get(at) {
            at += 1;
            if self.is(part, &self.layout.indent) {
                // A block begins after a line break and ends with one.
                let line = reached[At::Line as usize];
                reached = [false; 3];
                reached[At::Line as usize] = line;
                at += self.block(&parts[at..]).map_or(0, |inner| inner.len() + 1);
            } else {
                reached = self.after(reached, part);
            }
        }
        reached
    }

    /// Returns the parts before the end of a block that has just begun.
    pub(super) fn block<'n>(&self, parts: &'n [Node]) -> Option<&'n [Node]> {
        let mut depth = 0;
        for (at, part) in parts.iter().enumerate() {
            if self.is(part, &self.layout.indent) {
                depth += 1;
            } else if self.is(part, &self.layout.dedent) {
                if depth == 0 {
                    return Some(&parts[..at]);
                }
                depth -= 1;
            }
        }
        None
    }
}

fn either(one: Ends, other: Ends) -> Ends {
    std::array::from_fn(|at| one[at] || other[at])
}
