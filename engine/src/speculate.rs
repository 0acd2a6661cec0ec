//! Drafts: tokens that are cheap to guess, fed together with what must be fed anyway.
//!
//! ```text
//!   forced text ─► lookup in prompt and answer ─► draft model      each goes on where the one before it stopped
//! ```
//!
//! A draft is verified by *drawing once*: at every position the law draws its token as if there were no draft, and if
//! that token is the one drafted, the logits behind it are already there. So a draft can only save passes; the text,
//! its probability and the random numbers used are the same without it.
//!
//! Forced text is drafted as far as it goes. Guesses are kept short where they fail: a sequence drafts one token more
//! than were confirmed the last time, and twice as many after all were.

use crate::request::Origin;
use crate::sample::only_the_end_is_left;
use crate::sequence::{Draft, Sequence};
use crate::{Grammar, State};
use lexiform::draft::{self, Drafter, Forced, PromptLookup, Text, Tokenise};
use lexiform::vocab::Vocabulary;
use std::sync::Arc;

/// Shorter matches than two tokens are mostly chance.
const LOOKUP: PromptLookup = PromptLookup {
    longest: 4,
    shortest: 2,
};

/// A tokenizer that drafters share.
struct Cutter(Arc<dyn Tokenise + Sync>);

impl Tokenise for Cutter {
    fn tokens(&self, bytes: &[u8]) -> Option<Vec<u32>> {
        self.0.tokens(bytes)
    }
}

/// The drafters that need no model.
pub(crate) struct Drafters {
    forced: Forced<Cutter>,
    vocabulary: Arc<Vocabulary>,
}

impl Drafters {
    pub(crate) fn new(tokeniser: Arc<dyn Tokenise + Sync>, vocabulary: Arc<Vocabulary>) -> Self {
        Drafters {
            forced: Forced::new(Cutter(tokeniser), vocabulary.clone()),
            vocabulary,
        }
    }

    /// Sets the drafts of a sequence.
    pub(crate) fn propose(&mut self, sequence: &mut Sequence) {
        sequence.drafts.clear();
        let speculation = sequence.request.speculation;
        let room = room(sequence);
        if room == 0 || !(speculation.forced || speculation.lookup) {
            return;
        }
        let (prompt, answer) = sequence.tokens.split_at(sequence.request.prompt.len());
        let text = Text { prompt, answer };
        let at = sequence.request.grammar.as_ref().zip(sequence.state);
        let mut draft: draft::Draft<'_, Grammar> = draft::Draft::new(at, self.vocabulary.eos(), room);
        if speculation.forced {
            self.forced.propose(text, &mut draft);
        }
        if speculation.lookup {
            LOOKUP.clone().propose(text, &mut draft);
        }
        let drafts: Vec<(Draft, Option<State>)> = draft
            .nodes()
            .iter()
            .map(|node| {
                let origin = match node.origin {
                    draft::Origin::Forced => Origin::Forced,
                    draft::Origin::Copied | draft::Origin::Model => Origin::Drafted,
                };
                (
                    Draft {
                        token: node.token,
                        origin,
                    },
                    node.state,
                )
            })
            .collect();
        for (draft, state) in drafts {
            if !push(sequence, draft, state, &self.vocabulary) {
                return;
            }
        }
    }
}

/// How many tokens may be drafted. The last token of the answer needs no draft: a row behind it would be wasted.
pub(crate) fn room(sequence: &Sequence) -> usize {
    sequence
        .request
        .speculation
        .max_draft
        .min(sequence.remaining().saturating_sub(1))
}

/// Appends a drafted token unless it would be wasted: an end token, one behind which only the end is left (the draw
/// that confirms it ends the text) or too much for the answer's tokens, or a guess beyond what the sequence's guesses
/// have been good for.
pub(crate) fn push(
    sequence: &mut Sequence,
    draft: Draft,
    state: Option<State>,
    vocabulary: &Vocabulary,
) -> bool {
    let guesses = sequence
        .drafts
        .iter()
        .filter(|draft| draft.origin == Origin::Drafted)
        .count();
    let too_bold = draft.origin == Origin::Drafted && guesses >= sequence.reach;
    let ahead = sequence.drafts.len() + 1;
    let ends = vocabulary.is_eos(draft.token)
        || sequence.ends_early() && state.is_some_and(|state| only_the_end_is_left(sequence, state, ahead));
    let counted = sequence
        .request
        .grammar
        .as_ref()
        .zip(state)
        .zip(sequence.budget(ahead));
    let too_far = counted.is_some_and(|((grammar, state), budget)| !grammar.completes_within(state, budget));
    if too_bold || ends || too_far || sequence.drafts.len() >= room(sequence) {
        return false;
    }
    sequence.drafts.push(draft);
    true
}

/// Learns from a verified draft.
pub(crate) fn observe(sequence: &mut Sequence, accepted: usize) {
    let guessed = |drafts: &[Draft]| {
        drafts
            .iter()
            .filter(|draft| draft.origin == Origin::Drafted)
            .count()
    };
    let (offered, confirmed) = (guessed(&sequence.drafts), guessed(&sequence.drafts[..accepted]));
    if offered > 0 {
        let reach = if confirmed == offered {
            2 * offered.max(sequence.reach)
        } else {
            confirmed + 1
        };
        sequence.reach = reach.clamp(1, sequence.request.speculation.max_draft);
    }
}
