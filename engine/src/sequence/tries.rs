//! The tries of the global law's attempts, kept for the next request of the same kind.
//!
//! A trie belongs to one owner, salt, prompt, warping, grammar and maximum lengths (and to the one model of
//! this engine). Requests that agree in all of them and enable sharing
//! ([`Law::Global`](lexiform_law::Law::Global)) share it, whatever their seeds: later ones need fewer
//! attempts. Another owner's requests do not: the number of attempts would tell what the owner has asked.
//!
//! Owners share the room equally: a new trie takes the place of one of the owner that has the most.

use crate::Grammar;
use crate::fairness::pool::Owner;
use crate::request::law;
use crate::request::{PreambleLimit, Request, Sampling};
use lexiform::vocab::Vocabulary;
use lexiform_law::Trie;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// The number of tries kept beyond those in use, of all owners together.
const KEPT_TRIES: usize = 16;

/// A trie of the global law, shared by all requests with its key.
pub(crate) type SharedTrie = Arc<Mutex<Trie>>;

struct Key {
    owner: Owner,
    salt: Option<Arc<str>>,
    prompt: Vec<u32>,
    sampling: Sampling,
    grammar: Grammar,
    max_tokens: usize,
    preamble: Option<PreambleLimit>,
}

impl Key {
    fn fits(&self, request: &Request, grammar: &Grammar) -> bool {
        self.max_tokens == request.limits.max_tokens
            && self.preamble == request.limits.preamble
            && self.owner == request.limits.owner
            && self.salt == request.prompt.cache_salt
            && self.prompt == request.prompt.tokens
            && self.sampling == seedless(&request.sampling)
            && self.grammar.ptr_eq(grammar)
            && self.grammar.start() == grammar.start()
    }
}

/// Returns the settings without the seed and the stream.
fn seedless(sampling: &Sampling) -> Sampling {
    Sampling {
        seed: 0,
        stream: 0,
        ..sampling.clone()
    }
}

/// The tries of recent requests, the most recent last.
#[derive(Default)]
pub(crate) struct Tries {
    recent: VecDeque<(Key, SharedTrie)>,
}

impl Tries {
    /// Returns the trie for a request under the global law, if tries are shared.
    pub(crate) fn shared(
        &mut self,
        request: &Request,
        grammar: &Grammar,
        vocabulary: &Vocabulary,
    ) -> SharedTrie {
        let known = self.recent.iter().position(|(key, _)| key.fits(request, grammar));
        let entry = known
            .and_then(|place| self.recent.remove(place))
            .unwrap_or_else(|| {
                let key = Key {
                    owner: request.limits.owner.clone(),
                    salt: request.prompt.cache_salt.clone(),
                    prompt: request.prompt.tokens.clone(),
                    sampling: seedless(&request.sampling),
                    grammar: grammar.clone(),
                    max_tokens: request.limits.max_tokens,
                    preamble: request.limits.preamble,
                };
                (key, new(request, vocabulary))
            });
        let trie = entry.1.clone();
        self.recent.push_back(entry);
        if self.recent.len() > KEPT_TRIES {
            self.drop_one();
        }
        trie
    }

    /// Drops the least recently used trie of the owner that has the most; of several such owners, of the one
    /// whose trie was used the longest ago.
    fn drop_one(&mut self) {
        let of = |owner: &Owner| self.recent.iter().filter(|(key, _)| key.owner == *owner).count();
        let counts: Vec<usize> = self.recent.iter().map(|(key, _)| of(&key.owner)).collect();
        let most = counts.iter().max().copied().unwrap_or(0);
        let place = counts.iter().position(|&count| count == most);
        place.and_then(|place| self.recent.remove(place));
    }

    /// Drops grammars that have outgrown their memory; new requests use their replacements.
    pub(crate) fn renew_grammars(&mut self) {
        for (key, _) in &mut self.recent {
            if let Some(renewed) = key.grammar.compacted() {
                key.grammar = renewed;
            }
        }
    }
}

/// Returns an empty trie.
pub(crate) fn new(request: &Request, vocabulary: &Vocabulary) -> SharedTrie {
    let longest = u32::try_from(request.limits.max_tokens).unwrap_or(u32::MAX);
    let trie = Trie::new(vocabulary.eos(), longest, law::capacity(request));
    Arc::new(Mutex::new(trie))
}

#[cfg(test)]
mod tests;
