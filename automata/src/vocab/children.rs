//! The children of the nodes of a trie, side by side.
//!
//! In depth-first order the next sibling of a node lies behind its whole subtree, so that looking over a
//! hundred siblings touches a hundred places in memory. Here their bytes lie next to each other, and only
//! those that are entered are touched.

use super::node::Node;

/// For the root and each node the bytes of its children and where they are.
#[derive(Clone, Debug)]
pub(super) struct Children {
    /// The children of the root are `0..first[0]`, those of node `i` are `first[i]..first[i + 1]`.
    first: Box<[u32]>,
    bytes: Box<[u8]>,
    nodes: Box<[u32]>,
}

impl Children {
    /// O(nodes).
    pub(super) fn new(nodes: &[Node]) -> Children {
        let mut children = Children {
            first: vec![0; nodes.len() + 1].into(),
            bytes: vec![0; nodes.len()].into(),
            nodes: vec![0; nodes.len()].into(),
        };
        let mut filled = children.fill(nodes, 0..nodes.len(), 0);
        for (at, node) in nodes.iter().enumerate() {
            children.first[at] = filled;
            filled = children.fill(nodes, at + 1..node.end as usize, filled);
        }
        children.first[nodes.len()] = filled;
        children
    }

    /// Writes down the siblings that make up a range; where the next ones go.
    fn fill(&mut self, nodes: &[Node], range: std::ops::Range<usize>, mut filled: u32) -> u32 {
        let mut at = range.start;
        while at < range.end {
            self.bytes[filled as usize] = nodes[at].byte;
            self.nodes[filled as usize] = at as u32;
            filled += 1;
            at = nodes[at].end as usize;
        }
        filled
    }

    /// The places of the children of a node, or of the root.
    pub(super) fn of(&self, node: Option<usize>) -> std::ops::Range<u32> {
        match node {
            None => 0..self.first[0],
            Some(node) => self.first[node]..self.first[node + 1],
        }
    }

    /// The child of a node, or of the root, behind a byte. O(log children).
    pub(super) fn find(&self, node: Option<usize>, byte: u8) -> Option<usize> {
        self.among(self.of(node), byte).map(|node| node as usize)
    }

    /// The one of these children that is behind a byte. O(log children).
    #[inline]
    pub(super) fn among(&self, places: std::ops::Range<u32>, byte: u8) -> Option<u32> {
        let bytes = &self.bytes[places.start as usize..places.end as usize];
        let place = bytes.binary_search(&byte).ok()?;
        Some(self.nodes[places.start as usize + place])
    }

    /// The byte and the node at a place.
    #[inline]
    pub(super) fn at(&self, place: u32) -> (u8, u32) {
        (self.bytes[place as usize], self.nodes[place as usize])
    }
}
