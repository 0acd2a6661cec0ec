//! What tokens do in a counted language, whatever the bounds are.
//!
//! A string of at most 60 characters has another mask at each of its characters once a token can reach the
//! end. All of these come from one walk: for each token how many units a word has at least that begins with
//! it. Mostly this is one for each character of the token and some more, so that tokens are kept by how many
//! more it takes, and the ones with few enough characters are picked from all of them at once.
//!
//! ```text
//!   set                          tokens                    left 2            left 5
//!   no more than its characters  a  th  hello  world …     a  th             a  th  hello  world
//!   one more                     a\\  th\\ …               a\\               a\\  th\\
//!   group, ended after 3 units   the"  …                   by the counter of the terminal at hand
//! ```
//!
//! That is all there is to know as long as nothing but the upper bound can be missed: if there is no lower
//! one, or in states from which words of any larger number of units can be completed. Tokens that lead to
//! other states are kept by their state and their units, and the counter of the terminal at hand is asked for
//! all of a group at once.
//!
//! Tokens that leave the language are found without the bounds first; those that could only have left it with
//! a wrong number of units are then judged again, each for itself.

use super::token_lengths::TokenLengths;
use crate::language::{ByteSet, Cursor, LanguageId, Terminal};
use crate::mask::set::{Mask, TokenSet};
use crate::vocab::Trie;

/// The tokens allowed in one state of a counted language, whatever its bounds are, grouped by what they do.
#[derive(Debug)]
pub(crate) struct LengthMask {
    /// Tokens that stay within the language, by how many units more than characters a word takes that begins
    /// with them.
    pub(crate) sets: Vec<(i64, TokenSet)>,
    /// Other tokens that stay within the language.
    pub(crate) inner: Vec<Group>,
    /// Where a word may have ended.
    pub(crate) ends: Vec<Ends>,
}

/// Tokens that complete the same number of units and lead to the same language.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) language: LanguageId,
    pub(crate) units: u64,
    pub(crate) tokens: TokenSet,
}

/// The nodes that one byte leads into right after a word, by the number of its units.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) byte: u8,
    pub(crate) units: u64,
    pub(crate) nodes: Box<[u32]>,
}

/// Told from length masks of the same language that serve lower bounds as well.
const ONLY_UPPER: LanguageId = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834;

impl LengthMask {
    /// The name of the length mask of a state.
    pub(crate) fn name(terminal: &Terminal, state: u32) -> LanguageId {
        let language = terminal.language_ids(true)[state as usize];
        match only_upper(terminal, state) {
            true => language ^ ONLY_UPPER,
            false => language,
        }
    }

    /// The tokens that stay within the language from a cursor of a terminal, which stands in the state of the
    /// length mask.
    pub(crate) fn inner(
        &self,
        terminal: &Terminal,
        cursor: Cursor,
        lengths: &TokenLengths,
        tokens: usize,
    ) -> TokenSet {
        let mut mask = Mask::empty(tokens);
        let left = terminal.units_left(cursor.count);
        for (more, tokens) in &self.sets {
            let most = left.map_or(i64::MAX, |left| {
                i64::try_from(left).unwrap_or(i64::MAX).saturating_sub(*more)
            });
            lengths.add_shorter(tokens, most, &mut mask);
        }
        for group in &self.inner {
            if terminal.is_alive_at(group.language, cursor.count + group.units) {
                group.tokens.add_to(&mut mask);
            }
        }
        TokenSet::from_mask(mask)
    }

    /// Moves tokens that may have left the language out of bounds from a mask to a list; only those count
    /// that go on with one of these bytes.
    pub(crate) fn doubt(
        &self,
        (terminal, cursor): (&Terminal, Cursor),
        bytes: &ByteSet,
        trie: &Trie,
        mask: &mut Mask,
        doubted: &mut Vec<u32>,
    ) {
        let out = |units: u64| !terminal.is_in_range(cursor.count + units);
        let wrong = self
            .ends
            .iter()
            .filter(|ends| bytes.contains(ends.byte) && out(ends.units));
        for &node in wrong.flat_map(|ends| &ends.nodes) {
            for &token in trie.tokens_below(node as usize) {
                if mask.contains(token) {
                    mask.remove_all(&[token]);
                    doubted.push(token);
                }
            }
        }
    }

    /// The memory that the length mask takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let inner: usize = self.inner.iter().map(|group| 48 + group.tokens.bytes()).sum();
        let ends: usize = self.ends.iter().map(|ends| 32 + ends.nodes.len() * 4).sum();
        let sets: usize = self.sets.iter().map(|(_, tokens)| 16 + tokens.bytes()).sum();
        sets + inner + ends
    }
}

/// Whether nothing but the upper bound can be missed from this state on, and the state is not one that has a
/// length mask for all bounds anyway.
pub(crate) fn only_upper(terminal: &Terminal, state: u32) -> bool {
    terminal.has_only_an_upper_bound() && !terminal.is_endless(state)
}
