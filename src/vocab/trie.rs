//! All text tokens as one trie in depth-first order.
//!
//! ```text
//!   tokens  a=0  ab=1  ac=2  b=3          index  byte  depth  end  tokens
//!                                           0    'a'    1      3   [0]
//!        (root)                             1    'b'    2      2   [1]
//!        a     b                            2    'c'    2      3   [2]
//!      b   c                                3    'b'    1      4   [3]
//! ```
//!
//! The subtree of node `i` is the range `i..end`; a walk that cannot take the byte of node `i` goes on at `end`.

/// One edge of the [`Trie`] and the node below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The byte on the edge into this node.
    pub byte: u8,
    /// The number of bytes from the root, at least 1; saturates at 65,535.
    pub depth: u16,
    /// One past the last node of this subtree.
    pub end: u32,
    /// The tokens that end here are `tokens[first..first + count]` of the trie.
    pub first: u32,
    /// How many tokens end here; several ids may share the same bytes.
    pub count: u32,
}

/// Byte strings with token ids in depth-first order; see the module's picture.
#[derive(Clone, Debug, Default)]
pub struct Trie {
    nodes: Vec<Node>,
    tokens: Vec<u32>,
}

impl Trie {
    /// Builds the trie of these pairs; empty byte strings are left out. O(total bytes · log n).
    pub fn new<B: AsRef<[u8]>>(pairs: impl IntoIterator<Item = (u32, B)>) -> Self {
        let mut pairs: Vec<(u32, B)> = pairs
            .into_iter()
            .filter(|(_, bytes)| !bytes.as_ref().is_empty())
            .collect();
        pairs.sort_by(|(a, x), (b, y)| x.as_ref().cmp(y.as_ref()).then(a.cmp(b)));
        let mut trie = Trie::default();
        let mut open: Vec<u32> = Vec::new();
        let mut previous: &[u8] = &[];
        for (token, bytes) in &pairs {
            let bytes = bytes.as_ref();
            let shared = previous.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            trie.close(&mut open, shared);
            trie.descend(&mut open, bytes, shared);
            let node = *open.last().expect("the token has at least one byte") as usize;
            trie.nodes[node].count += 1;
            trie.tokens.push(*token);
            previous = bytes;
        }
        trie.close(&mut open, 0);
        trie
    }

    fn close(&mut self, open: &mut Vec<u32>, depth: usize) {
        let end = self.nodes.len() as u32;
        for node in open.drain(depth..) {
            self.nodes[node as usize].end = end;
        }
    }

    fn descend(&mut self, open: &mut Vec<u32>, bytes: &[u8], shared: usize) {
        for (at, &byte) in bytes.iter().enumerate().skip(shared) {
            open.push(self.nodes.len() as u32);
            let depth = u16::try_from(at + 1).unwrap_or(u16::MAX);
            self.nodes.push(Node {
                byte,
                depth,
                end: 0,
                first: self.tokens.len() as u32,
                count: 0,
            });
        }
    }

    /// The nodes in depth-first order; the root is not among them.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All token ids, in the order of the nodes that they end at.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The tokens that end at this node.
    pub fn tokens_at(&self, node: &Node) -> &[u32] {
        &self.tokens[node.first as usize..(node.first + node.count) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtrees_are_ranges_and_duplicates_share_a_node() {
        let trie = Trie::new([(0, "a"), (1, "ab"), (2, "ac"), (3, "b"), (4, "ab")]);
        let ends: Vec<u32> = trie.nodes().iter().map(|node| node.end).collect();
        assert_eq!(ends, [3, 2, 3, 4]);
        assert_eq!(trie.tokens_at(&trie.nodes()[1]), [1, 4]);
        assert_eq!(trie.nodes()[2].byte, b'c');
    }
}
