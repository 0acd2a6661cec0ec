//! The sizes and times that the decode loop works with.

use lexiform_law::draft::{Retrieval, Union};
use std::path::PathBuf;
use std::time::Duration;

/// Which drafts are fed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drafting {
    /// As many as bring the most tokens a second, by what passes cost and how many drafts are confirmed.
    #[default]
    Measured,
    /// All that a request allows, as far as there is room in the pass.
    Always,
    /// All of them, but what a draft model or a store offers ends where it is unsure: SVIP
    /// ([Zhang et al. 2024](https://arxiv.org/abs/2411.18462)).
    Svip,
    /// Those of some sources, which a bandit chooses by what they have brought, for keys, numbers, free
    /// strings and so on apart: UCBSpec of BanditSpec ([Hou et al. 2025](https://arxiv.org/abs/2505.15141)).
    Ucb1,
    /// The same by EXP3: EXP3Spec of BanditSpec. Which drafts are fed is left to chance, the text is not.
    Exp3,
}

/// A predictor of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Learner {
    /// What followed the end of the text in earlier answers ([`Suffixes`](lexiform_law::draft::Suffixes)).
    Suffixes,
    /// The rows at a state of the grammar ([`StateKeyed`](lexiform_law::draft::StateKeyed)).
    StateKeyed,
    /// The rows after the last few tokens ([`NGrams`](lexiform_law::draft::NGrams)).
    NGrams,
    /// The tokens after the last two ([`Trigram`](lexiform_law::draft::Trigram)).
    Trigram,
    /// The last row after a token ([`Recycling`](lexiform_law::draft::Recycling)).
    Recycling,
    /// A pool of phrases ([`Phrases`](lexiform_law::draft::Phrases)).
    Phrases,
    /// What followed the end of the text in [`DraftStores::corpus`]. It learns nothing; without a corpus it
    /// is left out.
    Retrieval,
}

/// The window of guesses that a sequence feeds beside its drafts: lookahead decoding
/// ([Fu et al. 2024](https://arxiv.org/abs/2402.02057)).
///
/// A pass feeds about `columns * (length - 1)` tokens more for each sequence. They are worth their cost where
/// a pass takes as long with them as without, as on a card that decodes few sequences. Phrases that they give
/// are drafted where the owner's store has [`Learner::Phrases`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookahead {
    /// How many branches the window has; the paper's W.
    pub columns: usize,
    /// How many tokens a phrase has, of which a branch guesses all but the last; the paper's N.
    pub length: usize,
}

impl Default for Lookahead {
    /// What the paper takes for models of 7 billion weights.
    fn default() -> Self {
        Lookahead {
            columns: 15,
            length: 5,
        }
    }
}

/// What is kept of earlier answers to draft from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftStores {
    /// The bytes of the store of one owner, which those of its predictors that learn share equally; with 0,
    /// nothing is learned.
    pub bytes: usize,
    /// Owners who have one at a time; the store of the one who was not served for longest goes first.
    pub owners: usize,
    /// Whether all owners share one. They can then tell by the time an answer takes whether another one had
    /// similar answers.
    pub shared: bool,
    /// The predictors of a store, in the order in which they are asked.
    pub learners: Vec<Learner>,
    /// Whose candidates count where several predictors have some.
    pub union: Union,
    /// Where the last answers of each owner are kept over a restart, in a quarter of the bytes of its store,
    /// to be learned from again, with what rows of the model have taught. The folder is made if it is not
    /// there.
    pub folder: Option<PathBuf>,
    /// Texts of the operator that the answers of all owners are drafted from, beside what is learned of each.
    /// Its memory is none of the stores'.
    pub corpus: Option<Retrieval>,
}

impl DraftStores {
    /// Whether anything is learned of answers.
    pub(crate) fn learns(&self) -> bool {
        let learns = |learner: &Learner| *learner != Learner::Retrieval;
        self.bytes > 0 && self.owners > 0 && self.learners.iter().any(learns)
    }
}

impl Default for DraftStores {
    fn default() -> Self {
        DraftStores {
            bytes: 8 << 20,
            owners: 32,
            shared: false,
            learners: vec![
                Learner::Suffixes,
                Learner::Retrieval,
                Learner::StateKeyed,
                Learner::Recycling,
            ],
            union: Union::First,
            folder: None,
            corpus: None,
        }
    }
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
    /// Requests that may wait; more are refused with [`Refusal::Busy`](crate::Refusal::Busy), except of
    /// owners of whom hardly any wait, up to half as many again.
    pub max_waiting: usize,
    /// Tokens fed in one pass, over all sequences: longer prompts are fed in pieces.
    pub max_step_tokens: usize,
    /// The most tokens of prompts in a pass in which sequences decode. Some are left to them there in any
    /// case, up to this many: a few by those that decode, a quarter of the pass by their drafts.
    pub prompt_piece: usize,
    /// How much time the tokens of a pass may add to it where several owners share it, and prompts to one in
    /// which sequences decode, as far as can be told beforehand. Where a model takes longer for more tokens,
    /// such passes are smaller than [`max_step_tokens`](Self::max_step_tokens), but have a token for each
    /// sequence that decodes.
    pub shared_pass: Duration,
    /// Threads that compute masks while the model runs. 0 computes them on the decode thread.
    /// As many more, at the lowest priority, serve requests whose grammars were slow lately.
    pub mask_threads: usize,
    /// How long a pass waits for masks after the model is done, if the model took less: a request whose mask
    /// is not there by then sits the pass out.
    pub mask_grace: Duration,
    /// Threads that draw from the rows of a pass, where there is enough to draw from. 0 and 1 draw on the
    /// decode thread.
    pub draw_threads: usize,
    /// Which of the drafts that requests allow are fed.
    pub drafting: Drafting,
    /// What is kept of earlier answers to draft from.
    pub draft_stores: DraftStores,
    /// What requests that draft from [what was learned](crate::Speculation::learned) guess beside that;
    /// `None` for nothing.
    pub lookahead: Option<Lookahead>,
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
            draft_stores: DraftStores::default(),
            lookahead: None,
        }
    }
}
