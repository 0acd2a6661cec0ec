//! Counts of what the engine has done.

/// What the engine is doing and has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Whether requests are still served.
    pub alive: bool,
    /// Sequences that decode.
    pub running: usize,
    /// Requests that wait, preempted ones included.
    pub waiting: usize,
    /// Positions in a block of the cache.
    pub block_size: usize,
    /// Blocks of the cache.
    pub blocks_total: usize,
    /// Blocks that running sequences refer to.
    pub blocks_used: usize,
    /// Free blocks whose content can still be taken over.
    pub blocks_kept: usize,
    /// Answers asked for.
    pub requests: u64,
    /// Answers that ended with [`Event::Failed`](crate::Event::Failed) or whose client left.
    pub failed: u64,
    /// Prompt tokens of all requests taken, once for all answers to one.
    pub prompt_tokens: u64,
    /// Prompt tokens that passes computed. Where all answers to a request share its prompt, and nothing is in
    /// the cache, these are about as many as [`prompt_tokens`](Self::prompt_tokens).
    pub prefilled_tokens: u64,
    /// Texts that began where others already were, with their keys and values.
    pub forks: u64,
    /// Prompt tokens that were found in the cache.
    pub cached_tokens: u64,
    /// Tokens generated.
    pub generated: u64,
    /// Passes of a sequence that verified a draft.
    pub drafts: u64,
    /// Tokens drafted.
    pub drafted: u64,
    /// Drafted tokens confirmed.
    pub accepted: u64,
    /// Of the drafts, how many had their first token confirmed, their second, and so on.
    pub accepted_at: Vec<u64>,
    /// Passes of the model.
    pub steps: u64,
    /// Of these, the ones that began behind the draws of the pass before, while the host was still to read
    /// what these brought.
    pub steps_ahead: u64,
    /// Passes that began so and of which no row was used: whoever asked for one ended, left or went back.
    /// They are not among [`steps`](Self::steps).
    pub steps_unused: u64,
    /// Sequences that lost their blocks to others and were computed again.
    pub preemptions: u64,
    /// Panics caught.
    pub panics: u64,
    /// Whether the draft model was given up because it failed.
    pub draft_model_failed: bool,
    /// Bytes of what was learned from answers to draft from.
    pub draft_store_bytes: usize,
    /// Bytes of the operator's corpus, to draft from.
    pub draft_corpus_bytes: usize,
    /// Stores of it that were given up because a predictor panicked.
    pub draft_stores_failed: u64,
    /// Times that what was learned from could not be written to its folder.
    pub draft_saves_failed: u64,
}
