//! The settings that warp the model's distribution, and the seed.

use super::Preamble;
use lexiform_law::{Contrast, Mirostat};

/// How the model's probabilities are warped before the law sees them. Defaults to greedy decoding.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// 0 takes the most likely allowed token; 1 is the model's own law.
    pub temperature: f32,
    /// Keeps the smallest set of tokens with at least this probability; 1 keeps all.
    pub top_p: f32,
    /// Keeps only this many of the most likely tokens.
    pub top_k: Option<u32>,
    /// Keeps tokens with at least this fraction of the most likely token's probability; 0 keeps all.
    pub min_p: f32,
    /// Keeps the smallest set of tokens whose surprise is closest to the expected one with at least this
    /// probability; 1 keeps all.
    pub typical_p: f32,
    /// Keeps tokens whose logits are at most this many standard deviations below the largest.
    pub top_n_sigma: Option<f32>,
    /// Keeps tokens with at least this probability; 0 keeps all.
    pub epsilon_cutoff: f32,
    /// Like `epsilon_cutoff`, with a bound that falls as the entropy grows; 0 keeps all.
    pub eta_cutoff: f32,
    /// Chooses how many of the most likely tokens to keep by itself: the fewest tokens whose distance from
    /// the row, plus this for each of them, is least; 0 keeps all.
    pub bregman_lambda: f32,
    /// Steers the surprise of the answer. Only under the local law.
    pub mirostat: Option<Mirostat>,
    /// The seed of all random numbers: the same request with the same seed gives the same tokens.
    pub seed: u64,
    /// The index of the seed's random stream that the first sample uses; the other samples use the following
    /// ones. Requests that share a seed but must be independent use indices that do not overlap.
    pub stream: u32,
    /// Divides the positive logits of the tokens of the prompt and the answer so far, and multiplies the
    /// negative ones; 1 changes nothing.
    pub repetition_penalty: f32,
    /// Subtracted from the logit of every token that the answer already contains.
    pub presence_penalty: f32,
    /// Subtracted from a token's logit once for every time the answer contains it.
    pub frequency_penalty: f32,
    /// The tokens that the three penalties concern.
    pub penalty_scope: PenaltyScope,
    /// Added to the logits of single tokens.
    pub logit_bias: Vec<(u32, f32)>,
    /// Combines the rows of the model with others, those after another prompt or those of the draft model,
    /// before anything else: the combined rows are the model's from then on, for laws, filters, drafts,
    /// searches and probabilities.
    pub contrast: Option<ContrastWith>,
}

/// What an answer is contrasted with, as in contrastive decoding and classifier-free guidance.
#[derive(Clone, Debug, PartialEq)]
pub struct ContrastWith {
    /// Where the amateur's rows come from.
    pub amateur: AmateurRows,
    /// How the rows of the model after the prompt, the expert's, and the amateur's are combined. Under laws
    /// that cut before the mask the most plausible token is one of all; under the others, of those that the
    /// grammar allows.
    pub contrast: Contrast,
}

/// The rows that those of the model are contrasted with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AmateurRows {
    /// Those of the model after these tokens, at least one, and the answer.
    Prompt(Vec<u32>),
    /// Those of the engine's draft model, after the same text: contrastive decoding with a small model, and
    /// its speculative form where that model also drafts. It must have the tokens of the model, and predict
    /// one at a time.
    DraftModel,
}

impl ContrastWith {
    /// Returns the other prompt, if the amateur is the model itself.
    pub fn prompt(&self) -> Option<&[u32]> {
        match &self.amateur {
            AmateurRows::Prompt(tokens) => Some(tokens),
            AmateurRows::DraftModel => None,
        }
    }
}

/// The tokens that penalties concern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PenaltyScope {
    /// All tokens.
    #[default]
    All,
    /// The tokens of an answer in JSON that are wholly inside strings that are values, and those of the
    /// preamble before it. Others do not count and are not penalised: punctuation, quotes, keys and numbers.
    /// Under the local law, neither is a string where the grammar leaves at most 64 tokens, such as a value
    /// from a list. Requires a grammar.
    JsonText(Option<Preamble>),
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            temperature: 0.0,
            top_p: 1.0,
            top_k: None,
            min_p: 0.0,
            typical_p: 1.0,
            top_n_sigma: None,
            epsilon_cutoff: 0.0,
            eta_cutoff: 0.0,
            bregman_lambda: 0.0,
            mirostat: None,
            seed: 0,
            stream: 0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            penalty_scope: PenaltyScope::All,
            logit_bias: Vec::new(),
            contrast: None,
        }
    }
}

impl Sampling {
    /// Draws from the model's own law with this seed.
    pub fn seeded(seed: u64) -> Self {
        Sampling {
            temperature: 1.0,
            seed,
            ..Sampling::default()
        }
    }
}
