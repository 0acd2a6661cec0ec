//! The field `contrast`: another prompt, with which the model's rows are combined before anything else.
//!
//! ```json
//! {"messages": [{"role": "user", "content": "Answer vaguely."}], "beta": 0.5, "alpha": 0.1}
//! ```
//!
//! Chats take `messages`, completions a `prompt`. The weights are those of contrastive decoding: the log
//! probability of a token plus `beta` times its excess over that after the other prompt, among the tokens
//! that are at least `alpha` times as likely as the likeliest one.

use lexiform_engine::Contrast as Weights;

use super::super::fields::{Fields, Problems};
use super::Task;

/// The minimum and the maximum of `beta`. At 0 the other prompt has no effect; below, it is averaged in.
const BETA: (f64, f64) = (-0.99, 10.0);
/// The default of `beta`.
const DEFAULT_BETA: f32 = 0.5;
/// The default of `alpha` under laws by which the constraint is applied first.
const DEFAULT_ALPHA: f32 = 0.1;

/// Another prompt, and how rows are combined.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast<P> {
    /// The prompt, in the form that the route takes.
    pub prompt: P,
    /// The weight of the difference.
    pub beta: f32,
    /// The plausibility that tokens must have; if absent, the law decides.
    pub alpha: Option<f32>,
}

impl<P> Contrast<P> {
    /// Takes the field, whose prompt is taken by `prompt`.
    pub(in crate::wire) fn read(
        fields: &mut Fields,
        problems: &mut Problems,
        prompt: impl FnOnce(&mut Fields, &mut Problems) -> Option<P>,
    ) -> Option<Self> {
        let mut inner = fields.object("contrast", problems)?;
        let prompt = prompt(&mut inner, problems);
        let beta = inner.number("beta", BETA.0, BETA.1, problems);
        let alpha = inner.number("alpha", 0.0, 1.0, problems);
        inner.finish_strict(problems);
        Some(Contrast {
            prompt: prompt?,
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
