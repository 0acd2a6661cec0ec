//! The sizes and times that the decode loop works with.

use std::time::Duration;

/// Which drafts are fed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drafting {
    /// As many as bring the most tokens a second, by what passes cost and how many drafts are confirmed.
    #[default]
    Measured,
    /// All that a request allows, as far as there is room in the pass.
    Always,
}

/// The sizes that the loop works with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Positions in a block of the cache.
    pub block_size: usize,
    /// Blocks in the cache.
    pub blocks: usize,
    /// Sequences that decode at the same time.
    pub max_running: usize,
    /// Texts that one request may have under way at once.
    pub max_branches: usize,
    /// Requests that may wait; more are refused with [`Refusal::Busy`](crate::Refusal::Busy), except of owners of whom
    /// hardly any wait, up to half as many again.
    pub max_waiting: usize,
    /// Tokens fed in one pass, over all sequences: longer prompts are fed in pieces.
    pub max_step_tokens: usize,
    /// The most tokens of prompts in a pass in which sequences decode. Some are left to them there in any case, up to this
    /// many: a few by those that decode, a quarter of the pass by their drafts.
    pub prompt_piece: usize,
    /// How much time the tokens of a pass may add to it where several owners share it, and prompts to one in which
    /// sequences decode, as far as can be told beforehand. Where a model takes longer for more tokens, such passes are
    /// smaller than [`max_step_tokens`](Self::max_step_tokens), but have a token for each sequence that decodes.
    pub shared_pass: Duration,
    /// Threads that compute masks while the model runs. 0 computes them on the decode thread.
    /// As many more, at the lowest priority, serve requests whose grammars were slow lately.
    pub mask_threads: usize,
    /// How long a pass waits for masks after the model is done, if the model took less: a request whose mask is not there
    /// by then sits the pass out.
    pub mask_grace: Duration,
    /// Threads that draw from the rows of a pass, where there is enough to draw from. 0 and 1 draw on the decode thread.
    pub draw_threads: usize,
    /// Which of the drafts that requests allow are fed.
    pub drafting: Drafting,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            block_size: 16,
            blocks: 1024,
            max_running: 32,
            max_branches: 1024,
            max_waiting: 256,
            max_step_tokens: 512,
            prompt_piece: 512,
            shared_pass: Duration::from_millis(8),
            mask_threads: 1,
            mask_grace: Duration::from_millis(2),
            draw_threads: std::thread::available_parallelism().map_or(1, |cores| cores.get().min(16)),
            drafting: Drafting::default(),
        }
    }
}
