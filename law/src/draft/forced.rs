//! Forced text: the common beginning of every completion, in the tokens in which the model would write it.
//!
//! A key of a schema is forced as text, hardly ever as tokens: the mask allows every way to cut it. So forced
//! text is a *draft*, verified like any other, and a cut that the model would not have made costs only its
//! own verification.
//!
//! **The open tail.** The last forced token may not be the one that the model would write, because the model
//! may prefer a longer one that reaches into the free text:
//!
//! ```text
//!   forced   {"name": "        cut by the tokenizer   {" name ": ␠"
//!   free                Ada…                          the model may write  ␠"A  as one token: leave ␠" to it
//! ```
//!
//! Nothing is drafted from the first place, among the last few tokens, where a longer token of the vocabulary
//! could begin and still be allowed.

use std::sync::Arc;

use super::{Constraint, Draft, Drafter, Origin, Text};
use lexiform_automata::vocab::{Node, Vocabulary};

/// The number of tokens at the end of a forced text that a longer token may cover.
const TAIL_TOKENS: usize = 4;
/// The number of tokens before a forced text that are given to the tokenizer, so that it cuts as it would in
/// running text.
const CONTEXT_TOKENS: usize = 2;
/// The number of bytes of forced text that are read for each token that may still be drafted.
const BYTES_A_TOKEN: usize = 16;
/// The number of trie nodes tried below one place; beyond it, a longer token is assumed. A draft is only a
/// guess.
const SEARCH: usize = 512;

/// Cuts text into the tokens that a model would write.
pub trait Tokenise: Send {
    /// Returns the tokens of this text, without special tokens; `None` if it cannot be cut.
    fn tokens(&self, bytes: &[u8]) -> Option<Vec<u32>>;
}

/// Cuts text by the longest token at each place. Close to byte-pair encodings, but not equal to them; used
/// where no tokenizer is available.
pub struct LongestMatch(pub Arc<Vocabulary>);

impl Tokenise for LongestMatch {
    fn tokens(&self, mut bytes: &[u8]) -> Option<Vec<u32>> {
        let mut tokens = Vec::new();
        while !bytes.is_empty() {
            let (token, length) = longest(&self.0, bytes)?;
            tokens.push(token);
            bytes = &bytes[length..];
        }
        Some(tokens)
    }
}

#[cfg(feature = "tokenizers")]
impl Tokenise for Arc<lexiform_automata::vocab::Tokenizer> {
    fn tokens(&self, bytes: &[u8]) -> Option<Vec<u32>> {
        self.encode(std::str::from_utf8(bytes).ok()?).ok()
    }
}

/// Returns the text up to a length and up to its last whole character; bytes that are no text are left to the
/// tokenizer.
fn whole_characters(mut bytes: Vec<u8>, limit: usize) -> Vec<u8> {
    bytes.truncate(limit);
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.valid_up_to() > 0
    {
        bytes.truncate(error.valid_up_to());
    }
    bytes
}

/// Returns the longest token that the bytes begin with.
fn longest(vocabulary: &Vocabulary, bytes: &[u8]) -> Option<(u32, usize)> {
    let mut best = None;
    let mut below = 0..vocabulary.trie().nodes().len();
    for (depth, &byte) in bytes.iter().enumerate() {
        let Some((index, node)) = child(vocabulary, below, byte) else {
            break;
        };
        if let Some(&token) = vocabulary.trie().tokens_at(node).first() {
            best = Some((token, depth + 1));
        }
        below = index + 1..node.end as usize;
    }
    best
}

/// Returns the node with this byte among the topmost nodes of a range of the trie.
fn child(vocabulary: &Vocabulary, mut range: std::ops::Range<usize>, byte: u8) -> Option<(usize, &Node)> {
    while !range.is_empty() {
        let node = &vocabulary.trie().nodes()[range.start];
        if node.byte == byte {
            return Some((range.start, node));
        }
        range.start = node.end as usize;
    }
    None
}

/// Drafts the text that the constraint forces.
pub struct Forced<T> {
    tokeniser: T,
    vocabulary: Arc<Vocabulary>,
}

impl<T: Tokenise> Forced<T> {
    /// Creates a drafter that cuts forced text with this tokenizer.
    pub fn new(tokeniser: T, vocabulary: Arc<Vocabulary>) -> Self {
        Forced {
            tokeniser,
            vocabulary,
        }
    }

    /// Returns the tokens in which every completion begins, as the model would most likely cut them: at most
    /// `most` of them, and none that a longer token could still cover. `before` are the tokens so far, of
    /// which only the last few matter.
    pub fn forced_tokens<C: Constraint>(&self, at: (&C, C::State), before: &[u32], most: usize) -> Vec<u32> {
        let forced = whole_characters(at.0.forced(at.1), most * BYTES_A_TOKEN);
        if forced.is_empty() {
            return Vec::new();
        }
        let recent = &before[before.len().saturating_sub(CONTEXT_TOKENS)..];
        let before: Vec<u8> = recent
            .iter()
            .flat_map(|&token| self.vocabulary.bytes(token))
            .copied()
            .collect();
        let tokens = self.cut(&before, &forced).unwrap_or_default();
        let mut closed = self.closed(tokens, &forced, at);
        closed.truncate(most);
        closed
    }

    /// Returns the tokens of `forced` after the given text, cut as in running text where the boundary
    /// permits.
    fn cut(&self, before: &[u8], forced: &[u8]) -> Option<Vec<u32>> {
        let running = self
            .tokeniser
            .tokens(&[before, forced].concat())
            .unwrap_or_default();
        let mut length = 0;
        for (index, &token) in running.iter().enumerate() {
            if length == before.len() {
                return Some(running[index..].to_vec());
            }
            length += self.vocabulary.bytes(token).len();
        }
        self.tokeniser.tokens(forced)
    }

    /// Returns the tokens before the first place, among the last few tokens, that a longer allowed token
    /// could cover.
    fn closed<C: Constraint>(&self, mut tokens: Vec<u32>, forced: &[u8], at: (&C, C::State)) -> Vec<u32> {
        let length = |tokens: &[u32]| {
            tokens
                .iter()
                .map(|&token| self.vocabulary.bytes(token).len())
                .sum::<usize>()
        };
        let tail = length(&tokens[..tokens.len().saturating_sub(TAIL_TOKENS)]);
        let open = |&from: &usize| reaches_past(&self.vocabulary, &forced[from..], at, &forced[..from]);
        if let Some(open) = (tail..forced.len()).find(open) {
            while length(&tokens) > open {
                tokens.pop();
            }
        }
        tokens
    }
}

impl<C: Constraint, Q, T: Tokenise> Drafter<C, Q> for Forced<T> {
    fn propose(&mut self, text: Text<'_>, draft: &mut Draft<'_, C, Q>) {
        // After an ending token the constraint has no state.
        let Some(at) = draft.tip().filter(|_| draft.room() > 0) else {
            return;
        };
        let last = |tokens: &[u32]| tokens[tokens.len().saturating_sub(CONTEXT_TOKENS)..].to_vec();
        let before = [last(text.prompt), last(text.answer), draft.tokens().collect()].concat();
        let forced = self.forced_tokens(at, &before, draft.room());
        if forced.into_iter().all(|token| draft.offer(token, Origin::Forced)) {
            self.offer_end(draft);
        }
    }
}

impl<T> Forced<T> {
    /// Offers an ending token where nothing else is possible: the end is forced too.
    fn offer_end<C: Constraint, Q>(&self, draft: &mut Draft<'_, C, Q>) {
        let Some((constraint, state)) = draft.tip().filter(|_| draft.room() > 0) else {
            return;
        };
        let any_byte = |byte: u8| constraint.step_bytes(state, &[byte]).is_some();
        if constraint.is_accepting(state)
            && !(0..=u8::MAX).any(any_byte)
            && let Some(&end) = self.vocabulary.eos().first()
        {
            draft.offer(end, Origin::Forced);
        }
    }
}

/// Returns `true` if some token is longer than `rest`, begins with it, and is allowed where `rest` begins.
fn reaches_past<C: Constraint>(
    vocabulary: &Vocabulary,
    rest: &[u8],
    at: (&C, C::State),
    before: &[u8],
) -> bool {
    let (constraint, start) = at;
    let mut below = 0..vocabulary.trie().nodes().len();
    for &byte in rest {
        let Some((index, node)) = child(vocabulary, below, byte) else {
            return false;
        };
        below = index + 1..node.end as usize;
    }
    let Some(state) = constraint.step_bytes(start, &[before, rest].concat()) else {
        return false;
    };
    let mut states = vec![state];
    let mut tried = 0;
    let base = rest.len();
    while !below.is_empty() {
        let node = &vocabulary.trie().nodes()[below.start];
        states.truncate((node.depth as usize).saturating_sub(base).max(1));
        tried += 1;
        match states
            .last()
            .and_then(|&state| constraint.step_bytes(state, &[node.byte]))
        {
            Some(_) if node.count > 0 || tried == SEARCH => return true,
            Some(state) => {
                states.push(state);
                below.start += 1;
            }
            None => below.start = node.end as usize,
        }
    }
    false
}
