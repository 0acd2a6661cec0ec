//! The sets of bytes that the subtrees of a trie use.
//!
//! A state that loops on every character of a subtree can skip the subtree: all of its tokens lead back to
//! the state. To check this in one operation, each node has the set of the bytes on its edge and below.
//!
//! ```text
//!   bit    0        14 … 29             32 … 127
//!          unsound  beyond ASCII        the byte itself, as line feed, carriage return and tab
//! ```
//!
//! Characters beyond ASCII are divided into sixteen groups of neighbours, such that the spaces and other
//! marks that languages treat specially are in groups of their own; only whole characters count. Bytes that
//! are not part of a character in well-formed UTF-8, and the control characters whose bits are taken, make a
//! subtree *unsound*: it is walked byte by byte.

use super::node::Node;

/// A set of bytes, encoded as the module docs describe.
pub(crate) type Alphabet = u128;

/// The bit for bytes that are not whole characters.
pub(crate) const UNSOUND: Alphabet = 1;

/// The bit of the first group of characters beyond ASCII.
const FIRST_GROUP: u8 = 14;

/// The bits of all characters beyond ASCII.
pub(crate) const BEYOND_ASCII: Alphabet = 0xFFFF << FIRST_GROUP;

/// Returns the bit of an ASCII character.
pub(crate) fn ascii(byte: u8) -> Alphabet {
    match byte {
        b'\t' | b'\n' | b'\r' | 32..=127 => 1 << byte,
        _ => UNSOUND,
    }
}

/// Returns the bit of the characters that begin with two bytes.
pub(crate) fn beyond(lead: u8, second: u8) -> Alphabet {
    let group = match (lead, second) {
        (0xC2, _) => 0,
        (0xC3, _) => 1,
        (0xC4..=0xCF, _) => 2,
        (0xD0..=0xD1, _) => 3,
        (0xD2..=0xDF, _) => 4,
        (0xE0, _) => 5,
        // U+1680 and U+180E are spaces.
        (0xE1, 0x9A | 0xA0) => 6,
        (0xE1, _) => 7,
        // General punctuation, with most spaces and the line separators.
        (0xE2, 0x80 | 0x81) => 8,
        (0xE2, _) => 9,
        // The ideographic space and its neighbours.
        (0xE3, 0x80) => 10,
        (0xE3, _) => 11,
        (0xE4..=0xE9, _) => 12,
        (0xEA..=0xED, _) => 13,
        (0xEE..=0xEF, _) => 14,
        _ => 15,
    };
    1 << (FIRST_GROUP + group)
}

/// The lead bytes of characters beyond ASCII: their range, the range of the next byte, and how many bytes
/// follow it.
const LEADS: [(u8, u8, u8, u8, u8); 8] = [
    (0xC2, 0xDF, 0x80, 0xBF, 0),
    (0xE0, 0xE0, 0xA0, 0xBF, 1),
    (0xE1, 0xEC, 0x80, 0xBF, 1),
    (0xED, 0xED, 0x80, 0x9F, 1),
    (0xEE, 0xEF, 0x80, 0xBF, 1),
    (0xF0, 0xF0, 0x90, 0xBF, 2),
    (0xF1, 0xF3, 0x80, 0xBF, 2),
    (0xF4, 0xF4, 0x80, 0x8F, 2),
];

/// The bytes that must follow within a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Within {
    first: u8,
    last: u8,
    /// The number of bytes after the next one.
    more: u8,
}

impl Within {
    /// Returns the lead bytes, each with the bytes that must follow it.
    pub(crate) fn leads() -> impl Iterator<Item = (u8, Within)> {
        let leads = LEADS.iter();
        leads.flat_map(|&(from, to, first, last, more)| {
            (from..=to).map(move |byte| (byte, Within { first, last, more }))
        })
    }

    /// Returns the bytes that may come next.
    pub(crate) fn bytes(self) -> std::ops::RangeInclusive<u8> {
        self.first..=self.last
    }

    /// Returns what must follow the next byte, or `None` if the character is then complete.
    pub(crate) fn next(self) -> Option<Within> {
        let more = self.more.checked_sub(1)?;
        Some(Within {
            first: 0x80,
            last: 0xBF,
            more,
        })
    }
}

/// Returns the alphabet of each node: its own byte, read at the beginning of a character, and all bytes
/// below. O(nodes).
pub(super) fn alphabets(nodes: &[Node]) -> Box<[Alphabet]> {
    let mut alphabets = own_alphabets(nodes);
    // The bits that a node adds to its parent. A byte within a character is sound there and nowhere else.
    let mut up = vec![0; nodes.len()];
    for at in (0..nodes.len()).rev() {
        let mut below = 0;
        let mut child = at + 1;
        while child < nodes[at].end as usize {
            below |= up[child];
            child = nodes[child].end as usize;
        }
        let (own, is_within) = alphabets[at];
        up[at] = below | own;
        alphabets[at].0 = if is_within { UNSOUND } else { up[at] };
    }
    alphabets.into_iter().map(|(alphabet, _)| alphabet).collect()
}

/// Returns the greatest number of characters on a path down from the edge into each node, counting partial
/// ones. O(nodes).
pub(super) fn heights(nodes: &[Node]) -> Box<[u8]> {
    upwards(nodes, |node, below| {
        let is_within = node.byte & 0xC0 == 0x80;
        below.saturating_add(u8::from(!is_within))
    })
}

/// Computes a value for each node from the greatest value of its children, or from 0 if it has none.
fn upwards(nodes: &[Node], value: impl Fn(&Node, u8) -> u8) -> Box<[u8]> {
    let mut values = vec![0u8; nodes.len()];
    // At each depth, the greatest value of the subtrees below the current node.
    let mut below = vec![0u8; 2];
    for (at, node) in nodes.iter().enumerate().rev() {
        let depth = usize::from(node.depth);
        if below.len() <= depth + 1 {
            below.resize(depth + 2, 0);
        }
        values[at] = value(node, std::mem::take(&mut below[depth + 1]));
        below[depth] = below[depth].max(values[at]);
    }
    values.into()
}

/// Returns the number of edges with a character of each bit; beyond ASCII, only lead bytes are counted.
/// O(nodes).
pub(super) fn weights(nodes: &[Node]) -> [u32; 128] {
    let mut weights = [0; 128];
    for node in nodes {
        let mut bits = match node.byte.is_ascii() {
            true => ascii(node.byte),
            false => Within::leads()
                .find(|&(lead, _)| lead == node.byte)
                .map_or(0, |(lead, within)| beyond(lead, *within.bytes().start())),
        };
        bits &= !UNSOUND;
        if bits != 0 {
            weights[bits.trailing_zeros() as usize] += 1;
        }
    }
    weights
}

/// Returns, for each first and last byte (`first << 8 | last`), the greatest number of bytes on a path from
/// the root that begins and ends with them; saturates at 255. O(nodes).
pub(super) fn spans(nodes: &[Node]) -> Box<[u8]> {
    let mut spans = vec![0u8; 1 << 16];
    let mut first = 0;
    for node in nodes {
        if node.depth == 1 {
            first = usize::from(node.byte);
        }
        let span = &mut spans[first << 8 | usize::from(node.byte)];
        *span = (*span).max(u8::try_from(node.depth).unwrap_or(u8::MAX));
    }
    spans.into()
}

/// Returns the bits of each node's byte, given the bytes before it, and whether the byte continues a
/// character.
fn own_alphabets(nodes: &[Node]) -> Vec<(Alphabet, bool)> {
    // At each depth, the bytes that must follow, and the lead byte if it was the previous byte.
    let mut path: Vec<(Option<Within>, Option<u8>)> = vec![(None, None)];
    let own = |node: &Node| {
        path.truncate(usize::from(node.depth));
        let (alphabet, is_within, next) = match path[path.len() - 1] {
            (Some(within), lead) if within.bytes().contains(&node.byte) => {
                let group = lead.map_or(0, |lead| beyond(lead, node.byte));
                (group, true, (within.next(), None))
            }
            (None, _) if node.byte.is_ascii() => (ascii(node.byte), false, (None, None)),
            (None, _) => match Within::leads().find(|&(lead, _)| lead == node.byte) {
                Some((lead, within)) => (cut_off(node, within), false, (Some(within), Some(lead))),
                None => (UNSOUND, false, (None, None)),
            },
            (Some(_), _) => (UNSOUND, false, (None, None)),
        };
        path.push(next);
        (alphabet, is_within)
    };
    nodes.iter().map(own).collect()
}

/// Returns the groups of a lead byte after which a token ends; if none does, the next byte determines the
/// group.
fn cut_off(node: &Node, within: Within) -> Alphabet {
    if node.count == 0 {
        return 0;
    }
    within
        .bytes()
        .fold(0, |groups, second| groups | beyond(node.byte, second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::Trie;

    fn alphabet(tokens: &[&[u8]], path: &[u8]) -> Alphabet {
        let trie = Trie::new(tokens.iter().enumerate().map(|(id, bytes)| (id as u32, bytes)));
        let node = trie.find(path).expect("the path is in the trie");
        trie.alphabet(node)
    }

    #[test]
    fn a_subtree_has_the_bytes_on_its_edge_and_below() {
        let tokens: [&[u8]; 3] = [b"ab", b"ac", b"b"];
        assert_eq!(alphabet(&tokens, b"a"), 1 << b'a' | 1 << b'b' | 1 << b'c');
        assert_eq!(alphabet(&tokens, b"ac"), 1 << b'c');
    }

    #[test]
    fn characters_beyond_ascii_count_only_whole() {
        let tokens: [&[u8]; 3] = ["aé".as_bytes(), b"b\xA9", b"c\xC3x"];
        assert_eq!(alphabet(&tokens, b"a"), 1 << b'a' | beyond(0xC3, 0xA9));
        assert_eq!(
            alphabet(&tokens, "aé".as_bytes()),
            UNSOUND,
            "read alone it is no character"
        );
        assert_eq!(alphabet(&tokens, b"b"), 1 << b'b' | UNSOUND);
        assert_eq!(alphabet(&tokens, b"c"), 1 << b'c' | UNSOUND);
    }

    #[test]
    fn heights_are_counted_in_characters() {
        let trie = Trie::new((0u32..).zip(["a", "aé中x", "ab", "b", "中中"]));
        let height =
            |path: &str| trie.heights()[trie.find(path.as_bytes()).expect("the path is in the trie")];
        assert_eq!(
            ["a", "aé", "aé中", "ab", "b", "中"].map(height),
            [4, 2, 1, 1, 1, 1]
        );
        assert_eq!(trie.weights()[usize::from(b'a')], 1);
        assert_eq!(trie.weights()[usize::from(b'b')], 2);
    }

    #[test]
    fn a_control_character_is_looked_at_by_itself() {
        assert_eq!(alphabet(&[b"a\x0E"], b"a"), 1 << b'a' | UNSOUND);
        assert_eq!(alphabet(&[b"a\t"], b"a"), 1 << b'a' | 1 << b'\t');
    }

    #[test]
    fn exactly_the_characters_of_utf_8_are_sound() {
        for character in (0x80..=0x10FFFF).step_by(37).filter_map(char::from_u32) {
            let bytes = character.to_string();
            let bytes = bytes.as_bytes();
            let (whole, cut) = (
                alphabet(&[bytes], &bytes[..1]),
                alphabet(&[bytes, &bytes[..1]], &bytes[..1]),
            );
            assert_eq!(whole, beyond(bytes[0], bytes[1]));
            assert_eq!(
                (whole | cut, cut & !BEYOND_ASCII),
                (cut, 0),
                "a lead byte alone may go on in any way"
            );
        }
        for wrong in [
            &b"\xC0\x80"[..],
            b"\xED\xA0\x80",
            b"\xF4\x90\x80\x80",
            b"\xE0\x80\x80",
            b"\xFF",
        ] {
            assert_ne!(alphabet(&[wrong], &wrong[..1]) & UNSOUND, 0, "{wrong:x?}");
        }
    }
}
