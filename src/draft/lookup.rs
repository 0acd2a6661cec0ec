//! Prompt lookup: what followed the last words the last time they stood in the text.
//!
//! ```text
//!   prompt  … "name" : " Ada Lovelace " …        answer  … "author" : " Ada
//!                        └─┬─┘ └──┬─────                              └─┬─┘
//!                        match  copied                         the longest suffix found
//! ```

use super::{Constraint, Draft, Drafter, Origin, Text};

/// How far back to search; a bound on the time a draft takes.
const WINDOW: usize = 1 << 14;

/// Copies what followed the latest earlier occurrence of the longest suffix of the text.
#[derive(Clone, Copy, Debug)]
pub struct PromptLookup {
    /// The longest suffix to look for.
    pub longest: usize,
    /// The shortest.
    pub shortest: usize,
}

impl Default for PromptLookup {
    fn default() -> Self {
        PromptLookup {
            longest: 3,
            shortest: 1,
        }
    }
}

impl PromptLookup {
    /// Where the continuation of the best match begins.
    fn find(&self, text: &[u32]) -> Option<usize> {
        let mut best: Option<(usize, usize)> = None;
        for end in (1..text.len()).rev() {
            let shared = suffix(&text[..end], text, self.longest);
            if shared >= self.shortest.max(1) && best.is_none_or(|(length, _)| shared > length) {
                best = Some((shared, end));
                if shared == self.longest {
                    break;
                }
            }
        }
        best.map(|(_, end)| end)
    }
}

/// The length of the longest common suffix, up to a bound.
fn suffix(one: &[u32], other: &[u32], bound: usize) -> usize {
    let pairs = one.iter().rev().zip(other.iter().rev()).take(bound);
    pairs.take_while(|(a, b)| a == b).count()
}

impl<C: Constraint, Q> Drafter<C, Q> for PromptLookup {
    fn propose(&mut self, text: Text<'_>, draft: &mut Draft<'_, C, Q>) {
        let mut tokens: Vec<u32> = text
            .prompt
            .iter()
            .chain(text.answer)
            .copied()
            .chain(draft.tokens())
            .collect();
        tokens.drain(..tokens.len().saturating_sub(WINDOW));
        let Some(mut from) = self.find(&tokens) else {
            return;
        };
        // A copy that reaches the end of the text goes on with what it copied: repeated text is drafted in full.
        while draft.offer(tokens[from], Origin::Copied) {
            tokens.push(tokens[from]);
            from += 1;
        }
    }
}
