//! The sizes and times that the decode loop works with.

use lexiform_law::draft::{Retrieval, Union};
use std::path::PathBuf;
use std::time::Duration;

/// The policy that decides which drafts are fed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drafting {
    /// Feeds as many as give the most tokens per second, by the measured costs of passes and the share of
    /// drafts that are confirmed.
    #[default]
    Measured,
    /// Feeds all that a request allows, as far as the pass has room.
    Always,
    /// Feeds all of them, except that the drafts of a draft model or a store end where it is unsure: SVIP
    /// ([Zhang et al. 2024](https://arxiv.org/abs/2411.18462)).
    Svip,
    /// Feeds those of the sources that a bandit chooses by their past success, separately for keys, numbers,
    /// free strings and so on: UCBSpec of BanditSpec
    /// ([Hou et al. 2025](https://arxiv.org/abs/2505.15141)).
    Ucb1,
    /// Feeds those of the sources that an EXP3 bandit chooses: EXP3Spec of BanditSpec. Which drafts are fed
    /// is random, the text is not.
    Exp3,
}

/// The tree in which a store drafts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DraftShape {
    /// The likeliest paths of all ([`BestFirst`](lexiform_law::draft::BestFirst)): DySpec for candidates
    /// without chance.
    #[default]
    BestFirst,
    /// The likeliest token after each ([`Chain`](lexiform_law::draft::Chain)).
    Chain,
    /// The likeliest nodes of each layer ([`OptTree`](lexiform_law::draft::OptTree)).
    OptTree,
    /// A fixed tree of ranks like that of Token Recycling
    /// ([`Sequoia::halving`](lexiform_law::draft::Sequoia::halving)).
    Recycling,
    /// The best tree of ranks for their measured acceptance ([`Sequoia`](lexiform_law::draft::Sequoia)). Its
    /// size in a pass is the policy's choice, by the cost of passes.
    Sequoia,
}

/// A predictor of a draft store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Learner {
    /// Predicts what followed the end of the text in earlier answers
    /// ([`Suffixes`](lexiform_law::draft::Suffixes)).
    Suffixes,
    /// Predicts from the rows at a state of the grammar ([`StateKeyed`](lexiform_law::draft::StateKeyed)).
    StateKeyed,
    /// Predicts from the rows after the last few tokens ([`NGrams`](lexiform_law::draft::NGrams)).
    NGrams,
    /// Predicts the tokens seen after the last two ([`Trigram`](lexiform_law::draft::Trigram)).
    Trigram,
    /// Predicts from the last row after a token ([`Recycling`](lexiform_law::draft::Recycling)).
    Recycling,
    /// Predicts from a pool of phrases ([`Phrases`](lexiform_law::draft::Phrases)).
    Phrases,
    /// Predicts what followed the end of the text in [`DraftStores::corpus`]. It learns nothing; without a
    /// corpus it is left out.
    Retrieval,
}

/// The window of guesses that a sequence feeds beside its drafts: lookahead decoding
/// ([Fu et al. 2024](https://arxiv.org/abs/2402.02057)).
///
/// A pass feeds about `columns * (length - 1)` more tokens for each sequence. This pays off where a pass
/// takes as long with them as without, as on a GPU that decodes few sequences. The phrases found this way
/// are drafted where the owner's store has [`Learner::Phrases`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookahead {
    /// The number of branches of the window; the paper's W.
    pub columns: usize,
    /// The number of tokens of a phrase, of which a branch guesses all but the last; the paper's N.
    pub length: usize,
}

impl Default for Lookahead {
    /// Returns the paper's setting for models of 7 billion weights.
    fn default() -> Self {
        Lookahead {
            columns: 15,
            length: 5,
        }
    }
}

/// The stores of earlier answers to draft from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftStores {
    /// The size of one owner's store in bytes, which its learning predictors share equally; with 0, nothing
    /// is learned.
    pub bytes: usize,
    /// The number of owners that have a store at the same time. The store of the owner that was served least
    /// recently is dropped first.
    pub owners: usize,
    /// `true` if all owners share one store. They can then infer from the time of an answer whether another
    /// owner had similar answers.
    pub shared: bool,
    /// The predictors of a store, in the order in which they are consulted.
    pub learners: Vec<Learner>,
    /// Decides whose candidates count where several predictors have some.
    pub union: Union,
    /// The tree that the candidates make.
    pub shape: DraftShape,
    /// The folder that keeps the last answers of each owner across restarts, in a quarter of the bytes of
    /// its store, together with what was learned from rows of the model. The store learns from them again
    /// after a restart. The folder is created if it does not exist.
    pub folder: Option<PathBuf>,
    /// Texts of the operator that the answers of all owners are drafted from, in addition to what is learned
    /// from each owner. Its memory does not count towards that of the stores.
    pub corpus: Option<Retrieval>,
}

impl DraftStores {
    /// Returns `true` if anything is learned from answers.
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
            union: Union::default(),
            shape: DraftShape::default(),
            folder: None,
            corpus: None,
        }
    }
}

/// The sizes and times that the decode loop works with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// The number of positions in a block of the cache.
    pub block_size: usize,
    /// The number of blocks in the cache.
    pub blocks: usize,
    /// The most positions of a text, if fewer than the model and the cache allow.
    pub max_context: usize,
    /// `true` if all owners share the blocks of equal beginnings of texts. They can then infer from
    /// [`Outcome::cached_tokens`](crate::Outcome::cached_tokens), and from the time of an answer, whether
    /// another owner had a text with the same beginning.
    pub share_prompts: bool,
    /// The number of sequences that decode at the same time.
    pub max_running: usize,
    /// The number of texts that one request may have in progress at once.
    pub max_branches: usize,
    /// The number of requests that may wait. More are refused with [`Refusal::Busy`](crate::Refusal::Busy),
    /// except those of owners that have hardly any waiting, up to half as many again.
    pub max_waiting: usize,
    /// The number of tokens fed in one pass, over all sequences: longer prompts are fed in pieces.
    pub max_step_tokens: usize,
    /// The most prompt tokens in a pass in which sequences decode. Prompts always have some tokens of such a
    /// pass, up to this many: the decoding sequences leave them a few, and the drafts a quarter of the pass.
    pub prompt_piece: usize,
    /// The time that tokens may add to a pass that several owners share, and that prompts may add to a pass
    /// in which sequences decode, as far as it can be predicted. Where a model takes longer for more tokens,
    /// such passes are smaller than [`max_step_tokens`](Self::max_step_tokens), but have a token for each
    /// sequence that decodes.
    pub shared_pass: Duration,
    /// The number of threads that compute masks while the model runs; with 0, the decode thread computes
    /// them. The same number of further threads, at the lowest priority, serve requests whose grammars were
    /// slow lately.
    pub mask_threads: usize,
    /// The least time that a pass waits for masks after the model is done; it waits for as long as the last
    /// pass of the model took, if that is longer. A request whose mask is not ready by then sits the pass
    /// out.
    pub mask_grace: Duration,
    /// The number of threads that draw from the rows of a pass, if there are enough draws to share. With 0
    /// or 1, the decode thread draws.
    pub draw_threads: usize,
    /// The policy that decides which of the drafts that requests allow are fed.
    pub drafting: Drafting,
    /// The stores of earlier answers to draft from.
    pub draft_stores: DraftStores,
    /// The guesses that are fed for requests that draft from [what was
    /// learned](crate::Speculation::learned), in addition to their drafts; `None` for no guesses.
    pub lookahead: Option<Lookahead>,
    /// `true` if a pass may begin right after the draws of the one before, on devices that can do so. Texts
    /// and probabilities do not depend on it.
    pub overlap: bool,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            block_size: 16,
            blocks: 1024,
            max_context: usize::MAX,
            share_prompts: false,
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
            overlap: true,
        }
    }
}
