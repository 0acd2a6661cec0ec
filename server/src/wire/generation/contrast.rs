//! The field `contrast`: another prompt, with which the model's rows are combined before anything else.
//!
//! ```json
//! {"messages": [{"role": "user", "content": "Answer vaguely."}], "beta": 0.5, "alpha": 0.1}
//! ```
//!
//! Chats take `messages`, completions a `prompt`. The weights are those of contrastive decoding: the log
//! probability of a token plus `beta` times its excess over that after the other prompt, among the tokens that are
//! at least `alpha` times as likely as the likeliest one.

use lexiform_engine::Contrast as Weights;

use super::super::chat::{self, Message};
use super::super::completion::{self, Prompt};
use super::super::fields::{Fields, Problems};
use super::Task;

/// The minimum and the maximum of `beta`. At 0 the other prompt has no effect; below, it is averaged in.
const BETA: (f64, f64) = (-0.99, 10.0);
/// The default of `beta`.
const DEFAULT_BETA: f32 = 0.5;
/// The default of `alpha` under laws by which the constraint is applied first.
const DEFAULT_ALPHA: f32 = 0.1;

/// The prompt that an answer is contrasted with.
#[derive(Clone, Debug, PartialEq)]
pub enum OtherPrompt {
    /// A conversation, which is rendered like that of the request.
    Messages(Vec<Message>),
    /// The prompt of a completion.
    Prompt(Prompt),
}

/// The other prompt, and how rows are combined.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    /// The prompt.
    pub prompt: OtherPrompt,
    /// The weight of the difference.
    pub beta: f32,
    /// The plausibility that tokens must have; if absent, the law decides.
    pub alpha: Option<f32>,
}

impl Contrast {
    /// Takes the field.
    pub(super) fn read(fields: &mut Fields, problems: &mut Problems) -> Option<Contrast> {
        let mut inner = fields.object("contrast", problems)?;
        let prompt = match (inner.has("messages"), inner.has("prompt")) {
            (true, false) => Some(OtherPrompt::Messages(chat::messages(&mut inner, problems))),
            (false, true) => completion::one_prompt(&mut inner, problems).map(OtherPrompt::Prompt),
            _ => {
                problems.invalid(
                    "contrast",
                    "expected either messages or a prompt to contrast the answer with",
                );
                // Both are known, and neither is to be reported as unknown.
                _ = (inner.take("messages"), inner.take("prompt"));
                None
            }
        };
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

    /// Refuses a contrast of chats with prompts of completions, and the other way.
    pub(super) fn fits(&self, is_chat: bool, problems: &mut Problems) {
        match (&self.prompt, is_chat) {
            (OtherPrompt::Prompt(_), true) => {
                problems.invalid(
                    "contrast.prompt",
                    "expected messages: the answer is one of a chat",
                );
            }
            (OtherPrompt::Messages(_), false) => {
                problems.invalid(
                    "contrast.messages",
                    "expected a prompt: the answer is a completion",
                );
            }
            _ => {}
        }
    }
}
