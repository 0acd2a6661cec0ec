//! The details of tokens: how each was chosen, its place in the constraint, and the alternatives.

use std::time::Instant;

use lexiform::vocab::Vocabulary;
use lexiform::{Expected, Way};
use lexiform_engine::{Candidate, Candidates, Drafted, Fate, Grammar, Origin, State};

use crate::wire::chat::TokenDetails;
use crate::wire::response::{CandidateToken, DraftedToken, TokenDetail};

/// The maximum number of readings of a text whose places are named.
const READINGS: usize = 8;

/// The state of watching a sample: the state of its grammar, and the time of the last token.
#[derive(Debug)]
pub(super) struct TokenWatch {
    grammar: Option<(Grammar, State)>,
    tells_drafts: bool,
    last: Instant,
}

/// A token as the engine reports it.
pub(super) struct Seen {
    pub(super) token: u32,
    /// The text that shows the token.
    pub(super) text: String,
    pub(super) logprob: f32,
    pub(super) log_mass: f32,
    pub(super) origin: Origin,
}

impl TokenWatch {
    /// Begins a text; with a grammar, the places of tokens are named.
    pub(super) fn new(grammar: Option<Grammar>, details: TokenDetails) -> Self {
        Self {
            grammar: grammar.map(|grammar| (grammar.clone(), grammar.start())),
            tells_drafts: details.drafts,
            last: Instant::now(),
        }
    }

    /// Takes a token and returns its details.
    pub(super) fn step(
        &mut self,
        seen: Seen,
        candidates: &Candidates,
        vocabulary: &Vocabulary,
    ) -> TokenDetail {
        let places = self.places(seen.token, vocabulary);
        let now = Instant::now();
        let micros = now.duration_since(self.last).as_micros();
        self.last = now;
        let likely = candidates.likely.iter();
        let drafted = candidates.drafted.iter().filter(|_| self.tells_drafts);
        TokenDetail {
            id: seen.token,
            text: seen.text,
            origin: match seen.origin {
                Origin::Sampled => "sampled",
                Origin::Drafted => "drafted",
                Origin::Forced => "forced",
                Origin::Given => "given",
            },
            allowed: candidates.allowed,
            steered: candidates.is_steered,
            probability: f64::from(seen.logprob).exp(),
            mass: f64::from(seen.log_mass).exp(),
            micros: u64::try_from(micros).unwrap_or(u64::MAX),
            places,
            candidates: likely.map(|candidate| told(candidate, vocabulary)).collect(),
            drafts: drafted.map(|draft| told_draft(draft, vocabulary)).collect(),
        }
    }

    /// Returns the places in the grammar where this token begins: the places reached so far.
    fn places(&mut self, token: u32, vocabulary: &Vocabulary) -> Vec<Vec<String>> {
        let Some((grammar, state)) = &mut self.grammar else {
            return Vec::new();
        };
        let bytes = vocabulary.bytes(token);
        let begins = |way: &Way| match &way.expected {
            Expected::Special(name) => name.as_bytes() == bytes,
            _ => (bytes.first())
                .is_some_and(|byte| way.bytes.iter().any(|(low, high)| (low..=high).contains(&byte))),
        };
        let mut places: Vec<Vec<String>> = Vec::new();
        for way in grammar.explain(*state, READINGS).ways.into_iter().filter(begins) {
            if !way.rules.is_empty() && !places.contains(&way.rules) {
                places.push(way.rules);
            }
        }
        if let Some(next) = grammar.step(*state, token) {
            *state = next;
        }
        grammar.compact(std::slice::from_mut(state));
        places
    }
}

fn told(candidate: &Candidate, vocabulary: &Vocabulary) -> CandidateToken {
    CandidateToken {
        id: candidate.token,
        text: String::from_utf8_lossy(vocabulary.bytes(candidate.token)).into_owned(),
        probability: f64::from(candidate.logprob).exp(),
        allowed: candidate.is_allowed,
        share: f64::from(candidate.log_share).exp(),
    }
}

fn told_draft(draft: &Drafted, vocabulary: &Vocabulary) -> DraftedToken {
    DraftedToken {
        id: draft.token,
        text: String::from_utf8_lossy(vocabulary.bytes(draft.token)).into_owned(),
        parent: draft.parent,
        drafter: draft.drafter,
        fate: match draft.fate {
            Fate::Kept => "kept",
            Fate::Refused => "refused",
            Fate::Unjudged => "unjudged",
        },
    }
}
