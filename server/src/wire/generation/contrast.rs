//! The field `contrast`: another prompt or the draft model, with which the model's rows are combined before
//! anything else.
//!
//! ```json
//! {"messages": [{"role": "user", "content": "Answer vaguely."}], "beta": 0.5, "alpha": 0.1}
//! ```
//!
//! Chats take `messages`, completions a `prompt`, and both `"model": "draft"` in place of it. The weights are
//! those of contrastive decoding: the log probability of a token plus `beta` times its excess over the other
//! one, among the tokens that are at least `alpha` times as likely as the likeliest one.

use lexiform_engine::Contrast as Weights;

use super::super::fields::{Fields, Problems};
use super::Task;

/// The minimum and the maximum of `beta`. At 0 the other rows have no effect; below, it is averaged in.
const BETA: (f64, f64) = (-0.99, 10.0);
/// The default of `beta`.
const DEFAULT_BETA: f32 = 0.5;
/// The default of `alpha` under laws by which the constraint is applied first.
const DEFAULT_ALPHA: f32 = 0.1;

/// The models that rows may be contrasted with, by their names in requests.
const MODELS: [(&str, ()); 1] = [("draft", ())];

/// What the rows of the model are contrasted with.
#[derive(Clone, Debug, PartialEq)]
pub enum Other<P> {
    /// Its rows after another prompt, which has the form that the route takes.
    Prompt(P),
    /// The rows of the draft model.
    DraftModel,
}

/// The other rows, and how rows are combined.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast<P> {
    /// Where the other rows come from.
    pub other: Other<P>,
    /// The weight of the difference.
    pub beta: f32,
    /// The plausibility that tokens must have; if absent, the law decides.
    pub alpha: Option<f32>,
}

impl<P> Contrast<P> {
    /// Takes the field, whose prompt is taken by `prompt` unless it names a model.
    pub(in crate::wire) fn read(
        fields: &mut Fields,
        problems: &mut Problems,
        prompt: impl FnOnce(&mut Fields, &mut Problems) -> Option<P>,
    ) -> Option<Self> {
        let mut inner = fields.object("contrast", problems)?;
        let other = match inner.has("model") {
            true => inner.word("model", &MODELS, problems).map(|()| Other::DraftModel),
            false => prompt(&mut inner, problems).map(Other::Prompt),
        };
        let beta = inner.number("beta", BETA.0, BETA.1, problems);
        let alpha = inner.number("alpha", 0.0, 1.0, problems);
        inner.finish_strict(problems);
        Some(Contrast {
            other: other?,
            beta: beta.unwrap_or(DEFAULT_BETA),
            alpha,
        })
    }

    /// Returns how rows are combined in a task.
    pub fn weights(&self, task: &Task) -> Weights {
        let is_masked_first = match task {
            Task::Draw(law) => law.is_local(),
            Task::Search(search) => search.search.draws(),
        };
        let default = if is_masked_first { DEFAULT_ALPHA } else { 0.0 };
        Weights::beyond(self.alpha.unwrap_or(default), self.beta)
    }
}
