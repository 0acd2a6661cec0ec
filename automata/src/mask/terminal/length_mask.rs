//! The tokens that a state of a counted language allows, for all bounds at once.
//!
//! A string of at most 60 characters has a different mask at each of its characters once a token can reach
//! the end. All of these masks come from one walk, which computes for each token the smallest number of units
//! in a word that begins with it. Usually this is one unit per character of the token plus a few more, so
//! tokens are grouped by how many more, and the tokens of a group with few enough characters are selected all
//! at once.
//!
//! ```text
//!   set                          tokens                    left 2            left 5
//!   no more than its characters  a  th  hello  world …     a  th             a  th  hello  world
//!   one more                     a\\  th\\ …               a\\               a\\  th\\
//!   group, ended after 3 units   the"  …                   by the counter of the current terminal
//! ```
//!
//! This suffices as long as only the upper bound can be violated: if there is no lower bound, or in states
//! from which words of every larger number of units can be completed. Tokens that lead to other states are
//! stored by their state and their units, and the counter of the current terminal decides for each group at
//! once.
//!
//! Tokens that leave the language are first found without the bounds; those that could have left it only with
//! a wrong number of units are then judged again, one by one.

use super::token_lengths::TokenLengths;
use crate::language::{ByteSet, Cursor, LanguageId, Terminal};
use crate::mask::set::{Mask, TokenSet};
use crate::vocab::Trie;

/// The tokens allowed in one state of a counted language, whatever its bounds are, grouped by their effect.
#[derive(Debug)]
pub(crate) struct LengthMask {
    /// Tokens that stay within the language, by the number of units beyond their characters that the shortest
    /// word beginning with them has.
    pub(crate) sets: Vec<(i64, TokenSet)>,
    /// The other tokens that stay within the language.
    pub(crate) inner: Vec<Group>,
    /// The nodes before which a word may have ended.
    pub(crate) ends: Vec<Ends>,
}

/// Tokens that complete the same number of units and lead to states with the same language.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) language: LanguageId,
    pub(crate) units: u64,
    pub(crate) tokens: TokenSet,
}

/// The nodes entered with one byte right after the end of a word, for one number of units of the word.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) byte: u8,
    pub(crate) units: u64,
    pub(crate) nodes: Box<[u32]>,
}

/// Distinguishes the names of these length masks from those for the same language with lower bounds.
const ONLY_UPPER: LanguageId = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834;

impl LengthMask {
    /// Returns the name of the length mask of a state.
    pub(crate) fn name(terminal: &Terminal, state: u32) -> LanguageId {
        let language = terminal.language_ids(true)[state as usize];
        match only_upper(terminal, state) {
            true => language ^ ONLY_UPPER,
            false => language,
        }
    }

    /// Returns the tokens that stay within the language from a cursor of a terminal. The cursor must be in
    /// the state of the length mask.
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

    /// Moves tokens that may have left the language out of bounds from `mask` to `doubted`, considering only
    /// those that continue with one of `bytes`.
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

    /// Returns the bytes that the length mask takes.
    pub(crate) fn bytes(&self) -> usize {
        let inner: usize = self.inner.iter().map(|group| 48 + group.tokens.bytes()).sum();
        let ends: usize = self.ends.iter().map(|ends| 32 + ends.nodes.len() * 4).sum();
        let sets: usize = self.sets.iter().map(|(_, tokens)| 16 + tokens.bytes()).sum();
        sets + inner + ends
    }
}

/// Returns `true` if only the upper bound can be violated from this state on, and the state is not one whose
/// length mask serves all bounds anyway.
pub(crate) fn only_upper(terminal: &Terminal, state: u32) -> bool {
    terminal.has_only_an_upper_bound() && !terminal.is_endless(state)
}
