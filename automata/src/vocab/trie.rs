//! A trie of all text tokens in depth-first order.
//!
//! ```text
//!   tokens  a=0  ab=1  ac=2  b=3          index  byte  depth  end  tokens
//!                                           0    'a'    1      3   [0]
//!        (root)                             1    'b'    2      2   [1]
//!        a     b                            2    'c'    2      3   [2]
//!      b   c                                3    'b'    1      4   [3]
//! ```
//!
//! The subtree of node `i` is the range `i..end`; a walk that cannot read the byte of node `i` continues at
//! `end`.

use std::sync::OnceLock;

use super::alphabet::{Alphabet, alphabets, heights, spans, weights};
use super::children::Children;
use super::node::Node;

/// Byte strings with token ids in depth-first order, as the module docs show.
#[derive(Clone, Debug, Default)]
pub struct Trie {
    nodes: Vec<Node>,
    tokens: Vec<u32>,
    /// The bytes in the subtree of each node, computed on first use.
    alphabets: OnceLock<Box<[Alphabet]>>,
    /// The height of the subtree of each node in characters, computed on first use.
    heights: OnceLock<Box<[u8]>>,
    /// The number of edges with a character of each bit, computed on first use.
    weights: OnceLock<Box<[u32; 128]>>,
    /// For each first and last byte, the greatest number of bytes on a path from the root, computed on first
    /// use.
    spans: OnceLock<Box<[u8]>>,
    /// The children of each node, computed on first use.
    children: OnceLock<Children>,
}

impl Trie {
    /// Builds the trie of these pairs, ignoring empty byte strings. O(total bytes · log n).
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

    /// Returns the nodes in depth-first order, without the root.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the bytes on the edge into a node and below.
    #[inline]
    pub(crate) fn alphabet(&self, node: usize) -> Alphabet {
        self.alphabets()[node]
    }

    /// Returns the alphabets of all nodes; see [`alphabet`](Self::alphabet).
    #[inline]
    pub(crate) fn alphabets(&self) -> &[Alphabet] {
        self.alphabets.get_or_init(|| alphabets(&self.nodes))
    }

    /// Returns, for each node, the greatest number of characters on a path down from its edge; saturates at
    /// 255.
    pub(crate) fn heights(&self) -> &[u8] {
        self.heights.get_or_init(|| heights(&self.nodes))
    }

    /// Returns about how many edges have a character of each bit of an alphabet.
    pub(crate) fn weights(&self) -> &[u32; 128] {
        self.weights.get_or_init(|| Box::new(weights(&self.nodes)))
    }

    /// Returns `true` if some token may begin with these bytes, judging only by their first byte, their last
    /// byte and their number. O(1).
    pub(crate) fn may_hold(&self, bytes: &[u8]) -> bool {
        let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else {
            return true;
        };
        let spans = self.spans.get_or_init(|| spans(&self.nodes));
        let span = spans[usize::from(first) << 8 | usize::from(last)];
        span == u8::MAX || bytes.len() <= usize::from(span)
    }

    /// Returns all token ids, in the order of the nodes that they end at.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Returns the tokens that end at this node.
    pub fn tokens_at(&self, node: &Node) -> &[u32] {
        &self.tokens[node.first as usize..(node.first + node.count) as usize]
    }

    /// Returns the node that these bytes lead to, if some token begins with them.
    pub fn find(&self, bytes: &[u8]) -> Option<usize> {
        self.find_below(None, bytes)
    }

    /// Returns the node that these bytes lead to from a node, or from the root. If there are no bytes,
    /// returns the node itself.
    pub(crate) fn find_below(&self, node: Option<usize>, bytes: &[u8]) -> Option<usize> {
        let children = self.siblings();
        bytes
            .iter()
            .try_fold(node, |node, &byte| children.find(node, byte).map(Some))
            .flatten()
    }

    /// Returns the tokens that end at a node or below it.
    pub fn tokens_below(&self, node: usize) -> &[u32] {
        let places = self.places_below(node);
        &self.tokens[places.start as usize..places.end as usize]
    }

    /// Returns the places of the children of a node, or of the root, in the order of their bytes.
    pub(crate) fn children(&self, node: Option<usize>) -> std::ops::Range<u32> {
        self.siblings().of(node)
    }

    /// Returns the byte and the node at a place among [`children`](Self::children).
    #[inline]
    pub(crate) fn child(&self, place: u32) -> (u8, u32) {
        self.siblings().at(place)
    }

    /// Returns the one of these children on the edge with this byte. O(log children).
    #[inline]
    pub(crate) fn child_after(&self, children: std::ops::Range<u32>, byte: u8) -> Option<u32> {
        self.siblings().among(children, byte)
    }

    #[inline]
    fn siblings(&self) -> &Children {
        self.children.get_or_init(|| Children::new(&self.nodes))
    }

    /// Returns the places, among [`tokens`](Self::tokens), of the tokens that end at a node or below it.
    pub(crate) fn places_below(&self, node: usize) -> std::ops::Range<u32> {
        let end = self.nodes[node].end as usize;
        let last = self
            .nodes
            .get(end)
            .map_or(self.tokens.len() as u32, |node| node.first);
        self.nodes[node].first..last
    }

    /// Visits the nodes of a subtree at which tokens end, with the bytes from the subtree's own edge on and
    /// the tokens.
    pub fn for_each_below(&self, node: usize, mut visit: impl FnMut(&[u8], &[u32])) {
        let base = usize::from(self.nodes[node].depth) - 1;
        let mut bytes = Vec::new();
        for node in &self.nodes[node..self.nodes[node].end as usize] {
            bytes.truncate(usize::from(node.depth) - 1 - base);
            bytes.push(node.byte);
            if node.count > 0 {
                visit(&bytes, self.tokens_at(node));
            }
        }
    }

    /// Returns the prefixes of these bytes at which tokens end, shortest first, as their lengths and tokens.
    pub fn prefixes<'t>(&'t self, bytes: &'t [u8]) -> impl Iterator<Item = (usize, &'t [u32])> {
        let (mut at, mut end) = (0, self.nodes.len());
        let path = bytes.iter().enumerate().map_while(move |(depth, &byte)| {
            // The siblings of a level: each begins where the subtree of the previous one ends.
            while at < end && self.nodes[at].byte != byte {
                at = self.nodes[at].end as usize;
            }
            let node = self.nodes[..end].get(at)?;
            (at, end) = (at + 1, node.end as usize);
            Some((depth + 1, self.tokens_at(node)))
        });
        path.filter(|(_, tokens)| !tokens.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nodes_are_found_by_their_bytes_with_all_that_is_below() {
        let trie = Trie::new([(0, "a"), (1, "ab"), (2, "acd"), (3, "b"), (4, "ab")]);
        let below = |bytes: &str| trie.find(bytes.as_bytes()).map(|node| trie.tokens_below(node));
        assert_eq!(below("a"), Some(&[0, 1, 4, 2][..]));
        assert_eq!(below("ac"), Some(&[2][..]));
        assert_eq!(below("b"), Some(&[3][..]));
        assert_eq!((below("abc"), below("c"), below("")), (None, None, None));
    }

    #[test]
    fn subtrees_are_ranges_and_duplicates_share_a_node() {
        let trie = Trie::new([(0, "a"), (1, "ab"), (2, "ac"), (3, "b"), (4, "ab")]);
        let ends: Vec<u32> = trie.nodes().iter().map(|node| node.end).collect();
        assert_eq!(ends, [3, 2, 3, 4]);
        assert_eq!(trie.tokens_at(&trie.nodes()[1]), [1, 4]);
        assert_eq!(trie.nodes()[2].byte, b'c');
    }

    #[test]
    fn bytes_that_are_longer_than_any_token_between_their_ends_are_not_held() {
        let long = "b".repeat(300);
        let trie = Trie::new([(0, "axxa"), (1, "aab"), (2, &long)]);
        let holds = |bytes: &str| trie.may_hold(bytes.as_bytes());
        assert_eq!(
            ["axxa", "abxa", "axxxa", "xa", "ax", "aaab", ""].map(holds),
            [true, true, false, false, true, false, true]
        );
        assert!(holds(&"b".repeat(1000)), "above 254 bytes all are held");
    }

    type Naive = BTreeMap<Vec<u8>, Vec<u32>>;

    /// Collects the paths of all nodes with their tokens, descending from the root through `end` alone.
    fn paths(trie: &Trie, at: usize, end: usize, path: &mut Vec<u8>, all: &mut Vec<(Vec<u8>, Vec<u32>)>) {
        let mut child = at;
        while child < end {
            let node = &trie.nodes()[child];
            path.push(node.byte);
            assert_eq!(usize::from(node.depth), path.len());
            all.push((path.clone(), trie.tokens_at(node).to_vec()));
            paths(trie, child + 1, node.end as usize, path, all);
            path.pop();
            child = node.end as usize;
        }
        assert_eq!(child, end, "children fill their parent's range");
    }

    proptest! {
        #[test]
        fn a_trie_is_the_map_of_its_pairs(words in prop::collection::vec("[abc]{0,5}", 0..40), text in "[abc]{0,8}") {
            let mut naive = Naive::new();
            for (id, word) in words.iter().enumerate().filter(|(_, word)| !word.is_empty()) {
                naive.entry(word.clone().into_bytes()).or_default().push(id as u32);
            }
            let trie = Trie::new(words.iter().enumerate().map(|(id, word)| (id as u32, word)));
            let mut all = Vec::new();
            paths(&trie, 0, trie.nodes().len(), &mut Vec::new(), &mut all);
            prop_assert!(all.is_sorted_by(|(a, _), (b, _)| a < b), "depth first is the order of the paths");
            let on_the_way = |path: &[u8]| naive.keys().any(|word| word.starts_with(path));
            prop_assert!(all.iter().all(|(path, _)| on_the_way(path)), "no node without a token below");
            let found: Naive = all.into_iter().filter(|(_, tokens)| !tokens.is_empty()).collect();
            prop_assert_eq!(&found, &naive);
            let prefixes: Vec<(usize, Vec<u32>)> =
                trie.prefixes(text.as_bytes()).map(|(len, tokens)| (len, tokens.to_vec())).collect();
            let expected: Vec<(usize, Vec<u32>)> = (1..=text.len())
                .filter_map(|len| Some((len, naive.get(&text.as_bytes()[..len])?.clone())))
                .collect();
            prop_assert_eq!(prefixes, expected);
            prop_assert!(trie.find(text.as_bytes()).is_none() || trie.may_hold(text.as_bytes()));
            let nodes = trie.nodes();
            for node in std::iter::once(None).chain((0..nodes.len()).map(Some)) {
                let (first, end) = node.map_or((0, nodes.len()), |at| (at + 1, nodes[at].end as usize));
                let below: Vec<(u8, u32)> = trie.children(node).map(|place| trie.child(place)).collect();
                let mut next = first;
                for (byte, child) in below {
                    prop_assert_eq!((byte, next), (nodes[next].byte, child as usize));
                    next = nodes[next].end as usize;
                }
                prop_assert_eq!(next, end, "the children of a node are all there is below it");
            }
        }
    }
}
