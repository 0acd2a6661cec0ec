//! Counts of what the engine has done.

/// The state of the engine, and counts of what it has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// `true` while the engine serves requests.
    pub alive: bool,
    /// The number of sequences that decode.
    pub running: usize,
    /// The number of requests that wait, preempted ones included.
    pub waiting: usize,
    /// The number of positions in a block of the cache.
    pub block_size: usize,
    /// The number of blocks of the cache.
    pub blocks_total: usize,
    /// The number of blocks that running sequences refer to.
    pub blocks_used: usize,
    /// The number of free blocks whose content can still be taken over.
    pub blocks_kept: usize,
    /// The number of answers requested.
    pub requests: u64,
    /// The number of answers that ended with [`Event::Failed`](crate::Event::Failed) or whose client left.
    pub failed: u64,
    /// The number of prompt tokens of all accepted requests, once for all answers to a request.
    pub prompt_tokens: u64,
    /// The number of prompt tokens that passes computed. Where all answers to a request share its prompt, and
    /// the cache is empty, this is about as many as [`prompt_tokens`](Self::prompt_tokens).
    pub prefilled_tokens: u64,
    /// The number of texts that began as a fork of another, with its keys and values.
    pub forks: u64,
    /// The number of prompt tokens that were found in the cache.
    pub cached_tokens: u64,
    /// The number of tokens generated.
    pub generated: u64,
    /// The number of passes of a sequence that verified a draft.
    pub drafts: u64,
    /// The number of tokens drafted.
    pub drafted: u64,
    /// The number of drafted tokens confirmed.
    pub accepted: u64,
    /// The number of drafts whose first token was confirmed, whose second token was, and so on.
    pub accepted_at: Vec<u64>,
    /// The number of passes of the model.
    pub steps: u64,
    /// The number of these passes that began directly after the draws of the previous pass, before the host
    /// had read the drawn tokens.
    pub steps_ahead: u64,
    /// The number of passes that began so and of which no row was used, because every sequence that needed
    /// one ended, left or went back. They are not among [`steps`](Self::steps).
    pub steps_unused: u64,
    /// The number of times that a sequence lost its blocks to others and was computed again.
    pub preemptions: u64,
    /// The number of panics caught.
    pub panics: u64,
    /// `true` if the draft model was given up because it failed.
    pub draft_model_failed: bool,
    /// The size in bytes of what was learned from answers to draft from.
    pub draft_store_bytes: usize,
    /// The size in bytes of the operator's corpus to draft from.
    pub draft_corpus_bytes: usize,
    /// The number of draft stores that were given up because a predictor panicked.
    pub draft_stores_failed: u64,
    /// The number of times that a draft store could not be written to its folder.
    pub draft_saves_failed: u64,
}
