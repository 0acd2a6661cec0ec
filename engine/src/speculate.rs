//! Drafts: tokens that are cheap to guess, fed together with what must be fed anyway.
//!
//! A draft is a chain of single guesses. It is verified by *drawing once*: at every position the law draws its token
//! as if there were no draft, and if that token is the one drafted, the logits behind it are already there. So a draft
//! can only save passes; the text, its probability and the random numbers used are the same without it.

use crate::request::Origin;
use crate::sequence::{Draft, Sequence};
use lexiform::vocab::Vocabulary;

/// The longest context that lookup matches.
const LOOKUP_CONTEXT: usize = 4;
/// How far back lookup searches; bounds its cost for long prompts.
const LOOKUP_WINDOW: usize = 8192;

/// Sets the drafts of a sequence that is about to decode.
pub(crate) fn propose(sequence: &mut Sequence, vocabulary: &Vocabulary) {
    let speculation = sequence.request.speculation;
    sequence.drafts.clear();
    // The last token drawn needs no draft: a row behind it would be wasted.
    let room = speculation.max_draft.min(sequence.remaining().saturating_sub(1));
    if room == 0 {
        return;
    }
    if speculation.forced {
        let forced = forced(sequence, vocabulary);
        keep_allowed(sequence, &forced, room, vocabulary, Origin::Forced);
    }
    if sequence.drafts.is_empty() && speculation.lookup {
        let copied = lookup(&sequence.tokens, room).to_vec();
        keep_allowed(sequence, &copied, room, vocabulary, Origin::Drafted);
    }
}

/// Appends a guess up to the first token that the grammar does not allow. End tokens are not drafted: nothing follows.
pub(crate) fn keep_allowed(
    sequence: &mut Sequence,
    guess: &[u32],
    room: usize,
    vocabulary: &Vocabulary,
    origin: Origin,
) {
    let mut state = match sequence.states_along_drafts() {
        Some((_, states)) => states.last().copied(),
        None => None,
    };
    for &token in guess.iter().take(room.saturating_sub(sequence.drafts.len())) {
        if vocabulary.is_eos(token) {
            return;
        }
        if let (Some(grammar), Some(before)) = (&sequence.request.grammar, state) {
            state = grammar.step(before, token);
            if state.is_none() {
                return;
            }
        }
        sequence.drafts.push(Draft { token, origin });
    }
}

/// Forced text as tokens, each the longest that fits. Where the model would cut the text otherwise, the draft ends.
fn forced(sequence: &Sequence, vocabulary: &Vocabulary) -> Vec<u32> {
    let (Some(grammar), Some(state)) = (&sequence.request.grammar, sequence.state) else {
        return Vec::new();
    };
    let bytes = grammar.forced(state);
    longest_match(vocabulary, &bytes)
}

fn longest_match(vocabulary: &Vocabulary, mut bytes: &[u8]) -> Vec<u32> {
    let mut tokens = Vec::new();
    while let Some((token, length)) = longest_token(vocabulary, bytes) {
        tokens.push(token);
        bytes = &bytes[length..];
    }
    tokens
}

fn longest_token(vocabulary: &Vocabulary, bytes: &[u8]) -> Option<(u32, usize)> {
    let nodes = vocabulary.trie().nodes();
    let (mut at, mut end, mut best) = (0, nodes.len(), None);
    for (depth, &byte) in bytes.iter().enumerate() {
        // Siblings follow one another behind their subtrees.
        while at < end && nodes[at].byte != byte {
            at = nodes[at].end as usize;
        }
        if at >= end {
            break;
        }
        if let Some(&token) = vocabulary.trie().tokens_at(&nodes[at]).first() {
            best = Some((token, depth + 1));
        }
        end = nodes[at].end as usize;
        at += 1;
    }
    best
}

/// What followed the last occurrence of the last few tokens, longest context first.
fn lookup(tokens: &[u32], room: usize) -> &[u32] {
    let window = &tokens[tokens.len().saturating_sub(LOOKUP_WINDOW)..];
    for context in (1..=LOOKUP_CONTEXT.min(window.len().saturating_sub(1))).rev() {
        let (before, suffix) = window.split_at(window.len() - context);
        let earlier = &window[..window.len() - 1];
        let found = earlier
            .windows(context)
            .rposition(|candidate| candidate == suffix);
        if let Some(place) = found.filter(|place| *place < before.len()) {
            let follow = &window[place + context..];
            return &follow[..follow.len().min(room)];
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::lookup;

    #[test]
    fn lookup_prefers_the_longest_and_latest_context() {
        assert_eq!(lookup(&[1, 2, 3, 9, 2, 3, 4, 1, 2, 3], 2), &[9, 2]);
        assert_eq!(lookup(&[5, 3, 8, 5, 3, 7, 5, 3], 4), &[7, 5, 3]);
        assert_eq!(lookup(&[1, 2, 3], 4), &[] as &[u32]);
        assert_eq!(lookup(&[7, 7], 4), &[7]);
    }
}
