//! The shapes of answers and of stream chunks.
//!
//! Clients differ in what they tolerate, so every key that any of them reads is always present, `null` if it
//! has no value; log-probabilities are always finite numbers.

mod diagnostics;
mod population;

use serde::Serialize;

pub use diagnostics::Diagnostics;
pub use population::{FieldSupport, ParticleText, Support};

/// The version, with which the `system_fingerprint` of answers begins.
pub const FINGERPRINT: &str = concat!("lexiform-", env!("CARGO_PKG_VERSION"));

/// The number that represents the logarithm of zero, which JSON cannot express.
const LOG_ZERO: f64 = -9999.0;

/// Returns a logarithm as a finite number.
pub fn finite(value: f64) -> f64 {
    if value.is_finite() {
        value.max(LOG_ZERO)
    } else {
        LOG_ZERO
    }
}

/// An answer: the same envelope for chats, completions, and the chunks of both.
#[derive(Debug, Serialize)]
pub struct Answer<'a, C> {
    /// The identity of the answer; all its chunks have the same one.
    pub id: &'a str,
    /// The type of the object: `chat.completion`, `chat.completion.chunk` or `text_completion`.
    pub object: &'a str,
    /// The time at which the answer was begun, in seconds.
    pub created: u64,
    /// The name of the model.
    pub model: &'a str,
    /// The version of the server, and the format of the model's weights in memory if it differs from the
    /// stored one.
    pub system_fingerprint: &'a str,
    /// One choice for each sample; in a chunk, only the samples with news.
    pub choices: Vec<C>,
    /// The tokens used; `null` in chunks that do not report them.
    pub usage: Option<Usage>,
    /// The fields that are specific to this server; in streams, at the beginning and the end of a sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lexiform: Option<Extension<'a>>,
}

/// The fields about a whole answer that are specific to this server.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Extension<'a> {
    /// The enforcement of the constraint, if there is one.
    #[serde(flatten)]
    pub enforcement: Option<&'a Enforcement>,
    /// The format of the model's weights, if they were rounded to it: the law is then that of a different
    /// model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<&'static str>,
    /// The fields of the request that have no effect on this server.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub ignored: &'a [String],
}

impl<'a> Extension<'a> {
    /// Creates the extension, if it has any content.
    pub fn of(
        enforcement: Option<&'a Enforcement>,
        weights: Option<&'static str>,
        ignored: &'a [String],
    ) -> Option<Self> {
        let is_any = enforcement.is_some() || weights.is_some() || !ignored.is_empty();
        is_any.then_some(Self {
            enforcement,
            weights,
            ignored,
        })
    }
}

/// The types that an answer may list as its choices.
pub trait Choice: Serialize {}

impl Choice for ChatChoice {}
impl Choice for ChatDelta {}
impl Choice for TextChoice {}

impl<C: Choice> Answer<'_, C> {
    /// Returns the answer as JSON, on one line.
    pub fn to_json(&self) -> String {
        let written = serde_json::to_string(self);
        // These shapes contain only strings, finite numbers and lists of them, which can always be written
        // as JSON.
        debug_assert!(written.is_ok(), "an answer could not be written: {written:?}");
        written.unwrap_or_default()
    }
}

/// The tokens that a request used.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Usage {
    /// The tokens of the prompt.
    pub prompt_tokens: usize,
    /// The tokens written.
    pub completion_tokens: usize,
    /// The sum of both.
    pub total_tokens: usize,
    /// The details of the prompt's tokens.
    pub prompt_tokens_details: PromptDetails,
    /// The details of the written tokens.
    pub completion_tokens_details: CompletionDetails,
}

/// The details of the prompt's tokens.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct PromptDetails {
    /// The tokens that were found in the cache.
    pub cached_tokens: usize,
}

/// The details of the written tokens.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CompletionDetails {
    /// The tokens of the thought before the answer.
    pub reasoning_tokens: usize,
    /// The tokens that were drafted from the request's prediction and written.
    pub accepted_prediction_tokens: usize,
    /// The tokens that were drafted from it and not written. Tokens that were not drafted count in neither.
    pub rejected_prediction_tokens: usize,
}

/// One sample of a chat.
#[derive(Debug, Serialize)]
pub struct ChatChoice {
    /// The index of the sample.
    pub index: usize,
    /// The message that was written.
    pub message: ChatMessage,
    /// The log-probabilities of its tokens.
    pub logprobs: Option<ChatLogprobs>,
    /// The reason why it ended.
    pub finish_reason: &'static str,
    /// The fields that are specific to this server.
    pub lexiform: Told,
}

/// A message of the assistant.
#[derive(Debug, Serialize)]
pub struct ChatMessage {
    /// Always `assistant`.
    pub role: &'static str,
    /// The text, unless a tool is called.
    pub content: Option<String>,
    /// Always `null`: this server does not refuse.
    pub refusal: Option<String>,
    /// Always empty.
    pub annotations: [(); 0],
    /// The calls of tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The thought of the model, under the name of DeepSeek and older servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// The thought of the model, under the name of newer servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Serialize)]
pub struct ToolCall {
    /// The index among the calls; only in streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// The identity of the call; in streams only at the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `function` or `custom`; in streams only at the beginning.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The tool and its input.
    #[serde(flatten)]
    pub called: Called,
}

/// The tool of a call and its input. In streams, the name is present only at the beginning.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Called {
    /// A function, with a JSON text.
    Function {
        /// The name of the function.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The arguments.
        arguments: String,
    },
    /// A custom tool, with any text.
    Custom {
        /// The name of the tool.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The input.
        input: String,
    },
}

/// The changes of one sample of a chat.
#[derive(Debug, Serialize)]
pub struct ChatDelta {
    /// The index of the sample.
    pub index: usize,
    /// The changes of the message.
    pub delta: Delta,
    /// The log-probabilities of the new tokens.
    pub logprobs: Option<ChatLogprobs>,
    /// The reason why it ended, in its last chunk.
    pub finish_reason: Option<&'static str>,
    /// How the new tokens were chosen, if the request asks for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lexiform_tokens: Vec<TokenDetail>,
    /// How the JSON value of the content has grown, if the request asks for it: operations of JSON Patch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lexiform_patch: Vec<serde_json::Value>,
    /// The fields that are specific to this server, in its last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lexiform: Option<Told>,
}

/// The changes of a message.
#[derive(Debug, Default, Serialize)]
pub struct Delta {
    /// The role of the speaker, in the first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    /// More text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Present in the first chunk, and always `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<()>,
    /// More of a call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// More of the thought, under the name of DeepSeek and older servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// More of the thought, under the name of newer servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
}

/// Log-probabilities in the format of chats.
#[derive(Debug, Default, Serialize)]
pub struct ChatLogprobs {
    /// One entry for each token.
    pub content: Vec<TokenLogprob>,
    /// Always `null`.
    pub refusal: Option<()>,
}

/// A token with the likely alternatives.
#[derive(Clone, Debug, Serialize)]
pub struct TokenLogprob {
    /// The text of the token; incomplete characters are shown as U+FFFD.
    pub token: String,
    /// The model's own log-probability, before the constraint; or after it, if `logprobs_mode` says so.
    pub logprob: f64,
    /// The bytes of the token.
    pub bytes: Vec<u8>,
    /// The most likely tokens at this place, under the same distribution.
    pub top_logprobs: Vec<TopLogprob>,
}

/// How a token was chosen.
#[derive(Clone, Debug, Serialize)]
pub struct TokenDetail {
    /// The id of the token.
    pub id: u32,
    /// The text of the token.
    pub text: String,
    /// `sampled`, `drafted` or `forced`.
    pub origin: &'static str,
    /// How many tokens were allowed here by the constraint and the remaining `max_tokens`.
    pub allowed: usize,
    /// `true` if `max_tokens` excluded tokens here that the constraint allows.
    pub steered: bool,
    /// The model's own probability of the token, before the constraint.
    pub probability: f64,
    /// The probability that the model itself put on all allowed tokens.
    pub mass: f64,
    /// The microseconds since the previous token.
    pub micros: u64,
    /// The places of the token in the constraint, if the request asks for them: for each reading of the
    /// text, the rules being read, from the innermost outwards. They are rules of a grammar or JSON pointers
    /// into a schema.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Vec<String>>,
    /// The alternatives to the token, by the model's own probability, if the request asks for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateToken>,
    /// The drafts of the pass that wrote this token first, if the request asks for them: a tree in which
    /// each draft comes after its parent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drafts: Vec<DraftedToken>,
}

/// A token that was drafted.
#[derive(Clone, Debug, Serialize)]
pub struct DraftedToken {
    /// The id of the token.
    pub id: u32,
    /// The text of the token.
    pub text: String,
    /// The index of the draft that it follows; `None` if it follows the text before the token.
    pub parent: Option<usize>,
    /// The drafter that proposed it.
    pub drafter: &'static str,
    /// `kept`, `refused`, or `unjudged` if it follows a refused one.
    pub fate: &'static str,
}

/// An alternative to a token.
#[derive(Clone, Debug, Serialize)]
pub struct CandidateToken {
    /// The id of the token.
    pub id: u32,
    /// The text of the token.
    pub text: String,
    /// The model's own probability, before the constraint.
    pub probability: f64,
    /// `true` if the constraint and the remaining `max_tokens` allow the token.
    pub allowed: bool,
    /// The probability among the tokens that may be drawn: after penalties, temperature, filters and the
    /// constraint (at temperature 0 as at 1). 0 for tokens that may not be drawn.
    pub share: f64,
}

/// A likely token.
#[derive(Clone, Debug, Serialize)]
pub struct TopLogprob {
    /// The text of the token.
    pub token: String,
    /// The log-probability, under the same distribution.
    pub logprob: f64,
    /// The bytes of the token.
    pub bytes: Vec<u8>,
}

/// Returns log-probabilities in the format of responses: a list, empty if none were requested.
pub fn logprobs_json(entries: &[TokenLogprob]) -> serde_json::Value {
    serde_json::to_value(entries).unwrap_or_else(|_| serde_json::Value::Array(Vec::new()))
}

/// Returns the fields of a response that are specific to this server.
pub fn response_extension(
    extension: Option<Extension<'_>>,
    told: Option<&Told>,
) -> serde_json::Map<String, serde_json::Value> {
    let mut both = serde_json::Map::new();
    for part in [
        extension.and_then(|part| serde_json::to_value(part).ok()),
        told.and_then(|part| serde_json::to_value(part).ok()),
    ] {
        if let Some(serde_json::Value::Object(map)) = part {
            both.extend(map);
        }
    }
    let entry = ("lexiform".to_owned(), serde_json::Value::Object(both));
    std::iter::once(entry).collect()
}

/// Writes a named event of a stream.
pub fn event(name: &str, body: &serde_json::Value, out: &mut String) {
    out.push_str("event: ");
    out.push_str(name);
    out.push_str("\ndata: ");
    out.push_str(&body.to_string());
    out.push_str("\n\n");
}

/// One sample of a completion, whole or in part.
#[derive(Debug, Serialize)]
pub struct TextChoice {
    /// The index of the sample.
    pub index: usize,
    /// The text.
    pub text: String,
    /// The log-probabilities of its tokens.
    pub logprobs: Option<TextLogprobs>,
    /// The reason why it ended; `null` in all chunks but the last.
    pub finish_reason: Option<&'static str>,
    /// The fields that are specific to this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lexiform: Option<Told>,
}

/// Log-probabilities in the older format of completions.
#[derive(Debug, Default, Serialize)]
pub struct TextLogprobs {
    /// The texts of the tokens.
    pub tokens: Vec<String>,
    /// The log-probabilities of the tokens.
    pub token_logprobs: Vec<f64>,
    /// The most likely tokens at each place.
    pub top_logprobs: Vec<serde_json::Map<String, serde_json::Value>>,
    /// The offset of each token, in characters of the text.
    pub text_offset: Vec<usize>,
}

/// The fields about a sample that are specific to this server.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// The origin of the sample.
    #[serde(flatten)]
    pub sample: Sample,
    /// How `max_tokens` narrowed what the constraint allows, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The certificates of the texts that were checked again, if the request asks for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<serde_json::Value>,
    /// The model's confidence in each value, if the request asks for it and the text is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<Confidence>>,
    /// The texts that the sample was drawn from, if the request asks for them; only with the first answer to
    /// each prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub population: Option<Vec<ParticleText>>,
    /// How far the samples that this one was chosen among support it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub support: Option<Support>,
}

/// How an answer was steered so that it is complete in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// Always `true`: an answer that was not steered has no budget.
    pub steered: bool,
    /// The number of tokens before the first one whose choice was narrowed; absent if only the end of the
    /// text was narrowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_token: Option<usize>,
    /// The maximum number of tokens.
    pub max_tokens: usize,
    /// How the limit of the thought narrowed it; absent if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningBudget>,
}

/// How the limit of a thought changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReasoningBudget {
    /// The number of tokens of the answer before the first one whose choice was narrowed.
    pub from_token: u32,
    /// The maximum number of tokens of the thought.
    pub max_reasoning_tokens: u32,
}

/// The model's confidence in a value that it wrote.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// The JSON pointer of the value.
    pub path: String,
    /// The index of the call whose arguments contain the value; absent for content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<usize>,
    /// The probability of its tokens under the model itself, before the constraint.
    pub probability: f64,
    /// The logarithm of the probability.
    pub logprob: f64,
    /// The product of the mass on allowed tokens over its tokens: small if the constraint decided more than
    /// the model.
    pub mass: f64,
    /// The number of tokens that hold the value.
    pub tokens: usize,
    /// The values that the constraint allowed there, the likeliest first, if the request asks for them and
    /// they are few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<ValueOption>>,
}

/// A possible value at a place of an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueOption {
    /// The value; for an answer that is not JSON, its text.
    pub value: serde_json::Value,
    /// The probability of the value among the possible ones.
    pub probability: f64,
}

/// The enforcement of the constraint of an answer.
#[derive(Clone, Debug, Serialize)]
pub struct Enforcement {
    /// The identity of the grammar.
    pub grammar: String,
    /// `exact`; `closed` if objects that the constraint leaves open contain only the keys that it lists;
    /// `narrower` if more of what it allows is left out; `partial` if part of it has no effect.
    pub enforced: &'static str,
    /// The parts that are narrower or without effect, each with its place.
    pub diagnostics: serde_json::Value,
    /// The keywords that are not enforced exactly, if there are any; or all keywords, if the request asks
    /// for them. In streams only at the end of a sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Vec<Keyword>>,
    /// The number of further keywords that are not listed.
    #[serde(skip_serializing_if = "none")]
    pub unlisted: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn none(count: &usize) -> bool {
    *count == 0
}

/// The enforcement of one keyword of a constraint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Keyword {
    /// The field of the request that contains the constraint.
    pub param: String,
    /// The JSON pointer of the keyword in its schema.
    pub path: String,
    /// The keyword; `null` if the constraint is not a schema.
    pub keyword: Option<String>,
    /// `exact`; `closed` if only the listed keys are written; `narrower` if part of what it allows is not
    /// written; `ignored` if it has no effect.
    pub status: &'static str,
    /// What is not written, or why the keyword has no effect; if it is `exact`, the spellings of its values
    /// that are not written.
    pub how: Option<String>,
}

/// The origin of a sample: the law it was drawn from and how much of it was drafted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The tag of the law: `raw`, `greedy`, `local`, `global-exact`, `global-weighted`, `best-of`,
    /// `majority`, `mbr`, `first`, `asap`, `aprad`, `smc`, `sir`, `mcmc`, the name of a search; all but
    /// `greedy`, `best-of`, `majority`, `mbr`, `first` and searches may also end in `-filtered`.
    pub law: &'static str,
    /// The logarithm of the text's probability under the warped model: after penalties, bias and temperature
    /// (at 0 as at 1), without the constraint. The table of numbers in [`lexiform_law`] defines this and the
    /// weight for each law.
    pub log_probability: f64,
    /// The logarithm of the sample's importance weight with respect to the global law. 0 for `global-exact`,
    /// whose law is already normalised: not to be mixed with the weights of other laws. For `smc` and `sir`,
    /// the estimate of the normaliser. Absent for `greedy`, `best-of`, `mcmc`, `aprad` and searches, for
    /// truncated texts, and where the probability of the end is unknown because `weights` was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_weight: Option<f64>,
    /// The number of attempts under the global law; for `aprad`, one more than the number of times the text
    /// went back.
    pub attempts: usize,
    /// The number of tokens drafted ahead.
    pub drafted: usize,
    /// The number of drafted tokens that were kept.
    pub accepted: usize,
    /// How the rows of the model were combined with others, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contrast: Option<Contrast>,
    /// The diagnostics of a law that draws several texts for an answer.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Diagnostics>,
}

/// The contrast that a sample was drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Contrast {
    /// The weight of the difference to the other rows.
    pub beta: f32,
    /// The least share of the probability of the likeliest token that a token must have.
    pub alpha: f32,
    /// The number of tokens of the other prompt, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<usize>,
    /// The model whose rows the others are, if that is not the model itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'static str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_zero_are_numbers() {
        assert_eq!(finite(f64::NEG_INFINITY), LOG_ZERO);
        assert_eq!(finite(f64::NAN), LOG_ZERO);
        assert_eq!(finite(-0.5), -0.5);
    }
}
