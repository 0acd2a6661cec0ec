//! The shapes of answers and of stream chunks.
//!
//! Clients differ in what they tolerate, so every key that any of them reads is always there, `null` where it
//! holds nothing; log-probabilities are always finite numbers.

use serde::Serialize;

/// The version, with which the `system_fingerprint` begins that clients see.
pub const FINGERPRINT: &str = concat!("lexiform-", env!("CARGO_PKG_VERSION"));

/// The number that stands for the logarithm of zero, which JSON cannot hold.
const LOG_ZERO: f64 = -9999.0;

/// A logarithm as JSON can hold it.
pub fn finite(value: f64) -> f64 {
    if value.is_finite() {
        value.max(LOG_ZERO)
    } else {
        LOG_ZERO
    }
}

/// An answer: the same frame for chats, completions, and the chunks of both.
#[derive(Debug, Serialize)]
pub struct Answer<'a, C> {
    /// The identity of the answer; the same for all its chunks.
    pub id: &'a str,
    /// What it is: `chat.completion`, `chat.completion.chunk` or `text_completion`.
    pub object: &'a str,
    /// When it was begun, in seconds.
    pub created: u64,
    /// The model.
    pub model: &'a str,
    /// The version of the server, and how the weights of the model are kept, if that is not as they are
    /// stored.
    pub system_fingerprint: &'a str,
    /// One choice for each sample; of a chunk, those that it brings news of.
    pub choices: Vec<C>,
    /// The tokens used; `null` in the chunks that do not tell it.
    pub usage: Option<Usage>,
    /// What only this server tells; in streams, when a sample begins and when it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lexiform: Option<Extension<'a>>,
}

/// What only this server tells of a whole answer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Extension<'a> {
    /// What is enforced, of answers under a constraint.
    #[serde(flatten)]
    pub enforcement: Option<&'a Enforcement>,
    /// The format of the model's weights, if they were rounded to it: then the law is that of another model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<&'static str>,
    /// The fields of the request that mean nothing to this server.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub ignored: &'a [String],
}

impl<'a> Extension<'a> {
    /// The extension, if there is anything to tell.
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

/// What an answer may list as its choices.
pub trait Choice: Serialize {}

impl Choice for ChatChoice {}
impl Choice for ChatDelta {}
impl Choice for TextChoice {}

impl<C: Choice> Answer<'_, C> {
    /// The answer as JSON, on one line.
    pub fn to_json(&self) -> String {
        let written = serde_json::to_string(self);
        // These shapes hold only strings, finite numbers and lists of them, which JSON can always write.
        debug_assert!(written.is_ok(), "an answer could not be written: {written:?}");
        written.unwrap_or_default()
    }
}

/// The tokens that a request used.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Usage {
    /// Of the prompt.
    pub prompt_tokens: usize,
    /// Written.
    pub completion_tokens: usize,
    /// Both.
    pub total_tokens: usize,
    /// Of the prompt, in detail.
    pub prompt_tokens_details: PromptDetails,
    /// Written, in detail.
    pub completion_tokens_details: CompletionDetails,
}

/// The prompt's tokens in detail.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct PromptDetails {
    /// Those that an earlier request had left in the cache.
    pub cached_tokens: usize,
}

/// The written tokens in detail.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CompletionDetails {
    /// Those of the thought before the answer.
    pub reasoning_tokens: usize,
    /// Drafted from the request's prediction, and written.
    pub accepted_prediction_tokens: usize,
    /// Drafted from there, and not written. What was not drafted counts neither way.
    pub rejected_prediction_tokens: usize,
}

/// One sample of a chat.
#[derive(Debug, Serialize)]
pub struct ChatChoice {
    /// Its number.
    pub index: usize,
    /// What was written.
    pub message: ChatMessage,
    /// Log-probabilities of its tokens.
    pub logprobs: Option<ChatLogprobs>,
    /// Why it ended.
    pub finish_reason: &'static str,
    /// What only this server tells.
    pub lexiform: Told,
}

/// A message of the assistant.
#[derive(Debug, Serialize)]
pub struct ChatMessage {
    /// Always `assistant`.
    pub role: &'static str,
    /// The text, unless a tool is called.
    pub content: Option<String>,
    /// Never: this server does not refuse.
    pub refusal: Option<String>,
    /// Always empty.
    pub annotations: [(); 0],
    /// The calls of tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// What the model thought before, in the spelling of DeepSeek and older servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// The same in the spelling of newer ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Serialize)]
pub struct ToolCall {
    /// The place among the calls; only in streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// The identity; in streams only at the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `function` or `custom`; in streams only at the beginning.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// What is called.
    #[serde(flatten)]
    pub called: Called,
}

/// What is called and with what. Names are told once; in streams only at the beginning.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Called {
    /// A function, with a JSON text.
    Function {
        /// Its name.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Its arguments.
        arguments: String,
    },
    /// A custom tool, with any text.
    Custom {
        /// Its name.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Its input.
        input: String,
    },
}

/// News of one sample of a chat.
#[derive(Debug, Serialize)]
pub struct ChatDelta {
    /// The sample's number.
    pub index: usize,
    /// What is new.
    pub delta: Delta,
    /// Log-probabilities of the new tokens.
    pub logprobs: Option<ChatLogprobs>,
    /// Why it ended, in its last chunk.
    pub finish_reason: Option<&'static str>,
    /// How the new tokens came about, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lexiform_tokens: Vec<TokenDetail>,
    /// How the JSON value of the content has grown, if that was asked for: operations of JSON Patch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lexiform_patch: Vec<serde_json::Value>,
    /// What only this server tells, in its last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lexiform: Option<Told>,
}

/// What is new in a message.
#[derive(Debug, Default, Serialize)]
pub struct Delta {
    /// The speaker, in the first chunk.
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
    /// More of the thought, in the spelling of DeepSeek and older servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// The same in the spelling of newer ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
}

/// Log-probabilities in the form of chats.
#[derive(Debug, Default, Serialize)]
pub struct ChatLogprobs {
    /// One entry for each token.
    pub content: Vec<TokenLogprob>,
    /// Always `null`.
    pub refusal: Option<()>,
}

/// A token and what else was likely there.
#[derive(Clone, Debug, Serialize)]
pub struct TokenLogprob {
    /// The token's text; parts of characters are shown as U+FFFD.
    pub token: String,
    /// The model's own log-probability, before the constraint; or after, if `logprobs_mode` says so.
    pub logprob: f64,
    /// The token's bytes.
    pub bytes: Vec<u8>,
    /// The most likely tokens at this place, of the same law.
    pub top_logprobs: Vec<TopLogprob>,
}

/// How a token came about.
#[derive(Clone, Debug, Serialize)]
pub struct TokenDetail {
    /// The token.
    pub id: u32,
    /// Its text.
    pub text: String,
    /// `sampled`, `drafted` or `forced`.
    pub origin: &'static str,
    /// How many tokens the constraint, and what `max_tokens` leaves of it, allowed here.
    pub allowed: usize,
    /// Whether `max_tokens` took something away here that the constraint allows.
    pub steered: bool,
    /// The model's own probability of the token, before the constraint.
    pub probability: f64,
    /// The probability that the model itself put on all allowed tokens.
    pub mass: f64,
    /// Microseconds since the token before.
    pub micros: u64,
    /// Where in the constraint the token stands, if that was asked for: of each reading of the text the rules
    /// that are being read, from the inside out, which are rules of a grammar or JSON pointers into a schema.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Vec<String>>,
    /// What else might have come here, by the model's own probability, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<CandidateToken>,
    /// The drafts of the pass that wrote this token first, if that was asked for: a tree, in which each
    /// stands after its parent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drafts: Vec<DraftedToken>,
}

/// A token that was drafted.
#[derive(Clone, Debug, Serialize)]
pub struct DraftedToken {
    /// The token.
    pub id: u32,
    /// Its text.
    pub text: String,
    /// The number of the draft that it follows; `None` for one that follows the text before the token.
    pub parent: Option<usize>,
    /// Who drafted it.
    pub drafter: &'static str,
    /// `kept`, `refused` or `unjudged`, which is what follows a refused one.
    pub fate: &'static str,
}

/// A token that might have come.
#[derive(Clone, Debug, Serialize)]
pub struct CandidateToken {
    /// The token.
    pub id: u32,
    /// Its text.
    pub text: String,
    /// The model's own probability, before the constraint.
    pub probability: f64,
    /// Whether the constraint, and what `max_tokens` leaves of it, allows the token.
    pub allowed: bool,
    /// Its probability among the tokens that may be drawn: after penalties, temperature, filters and the
    /// constraint (at temperature 0 as at 1). 0 for what is not among them.
    pub share: f64,
}

/// A likely token.
#[derive(Clone, Debug, Serialize)]
pub struct TopLogprob {
    /// Its text.
    pub token: String,
    /// Its log-probability, of the same law.
    pub logprob: f64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Log-probabilities in the form of responses: a list, empty if none were asked for.
pub fn logprobs_json(entries: &[TokenLogprob]) -> serde_json::Value {
    serde_json::to_value(entries).unwrap_or_else(|_| serde_json::Value::Array(Vec::new()))
}

/// What only this server tells of a response.
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
    /// Its number.
    pub index: usize,
    /// The text.
    pub text: String,
    /// Log-probabilities of its tokens.
    pub logprobs: Option<TextLogprobs>,
    /// Why it ended; `null` in all chunks but the last.
    pub finish_reason: Option<&'static str>,
    /// What only this server tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lexiform: Option<Told>,
}

/// Log-probabilities in the older form of completions.
#[derive(Debug, Default, Serialize)]
pub struct TextLogprobs {
    /// The tokens' texts.
    pub tokens: Vec<String>,
    /// Their log-probabilities.
    pub token_logprobs: Vec<f64>,
    /// The most likely tokens at each place.
    pub top_logprobs: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Where each token begins, in characters of the text.
    pub text_offset: Vec<usize>,
}

/// What only this server tells of a sample.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// Where it came from.
    #[serde(flatten)]
    pub sample: Sample,
    /// How `max_tokens` narrowed what the constraint allows, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The texts in it that were checked again, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<serde_json::Value>,
    /// How sure the model was of each value, if that was asked for and the text is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<Confidence>>,
    /// The texts that it was drawn from, if that was asked for: with the first answer of each prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub population: Option<Vec<ParticleText>>,
}

/// A text of a population.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParticleText {
    /// The text as it was written, thoughts and calls of tools included; `null` where it could not be
    /// completed.
    pub text: Option<String>,
    /// The log of its weight.
    pub log_weight: f64,
}

/// An answer that was steered so that it is complete in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// Always true: of an answer that was not steered, nothing is told.
    pub steered: bool,
    /// How many tokens stood before the first one whose choice was narrowed; absent where that was the end of
    /// the text alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_token: Option<usize>,
    /// The tokens that there were.
    pub max_tokens: usize,
}

/// How sure the model was of a value that it wrote.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confidence {
    /// The pointer of the value.
    pub path: String,
    /// The call of a tool whose arguments hold it; absent for content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<usize>,
    /// The probability of its tokens under the model itself, before the constraint.
    pub probability: f64,
    /// The logarithm of that.
    pub logprob: f64,
    /// The mass on allowed tokens at its tokens, multiplied up: small where the constraint decided more than
    /// the model.
    pub mass: f64,
    /// How many tokens hold it.
    pub tokens: usize,
    /// The values that the constraint left there, the likeliest first, if that was asked for and they are
    /// few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<ValueOption>>,
}

/// A value that could have stood at a place of an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueOption {
    /// The value; of an answer that is not JSON, its text.
    pub value: serde_json::Value,
    /// Its probability among the values that could have stood there.
    pub probability: f64,
}

/// What is enforced in an answer under a constraint.
#[derive(Clone, Debug, Serialize)]
pub struct Enforcement {
    /// The identity of the grammar.
    pub grammar: String,
    /// `exact`; `closed` where objects that the constraint leaves open hold only the keys that it lists;
    /// `narrower` where more of what it allows is not written; `partial` where a part of it has no effect.
    pub enforced: &'static str,
    /// The parts that are narrower or without effect, each with its place.
    pub diagnostics: serde_json::Value,
    /// The keywords that are not enforced exactly, if there are any; all of them, if that was asked for. In
    /// streams only when a sample ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Vec<Keyword>>,
    /// How many more there are than can be listed.
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

/// How one keyword of a constraint is enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Keyword {
    /// The field of the request that holds the constraint.
    pub param: String,
    /// The JSON pointer of the keyword in its schema.
    pub path: String,
    /// The keyword; `null` where the constraint is no schema.
    pub keyword: Option<String>,
    /// `exact`; `closed`, where it lists the only keys that are written; `narrower`, where some of what it
    /// allows is not written; `ignored`, where it has no effect.
    pub status: &'static str,
    /// What is not written, or why it has no effect; where it is `exact`, which spellings of its values are
    /// not written.
    pub how: Option<String>,
}

/// Where a sample came from: the law it was drawn from and how much of it was drafted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The tag of the law: `raw`, `greedy`, `local`, `global-exact`, `global-weighted`, `best-of`, `asap`,
    /// `aprad`, `smc`, `sir`, `mcmc`, the name of a search, and the first and third with `-filtered`.
    pub law: &'static str,
    /// The logarithm of the text's probability under the warped model: after penalties, bias and temperature
    /// (at 0 as at 1), without the constraint. The table of numbers in [`lexiform_law`] says what this and
    /// the weight are under which law.
    pub log_probability: f64,
    /// The logarithm of the sample's importance weight with respect to the global law. 0 for `global-exact`,
    /// which has the normalised law already: not to be mixed with the weights of other laws. For `smc` and
    /// `sir` the estimate of the normaliser. Absent for `greedy`, `best-of`, `mcmc`, `aprad` and searches,
    /// for what was cut, and where the probability of the end is not known because `weights` was not asked
    /// for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_weight: Option<f64>,
    /// Attempts that the global law took; for `aprad` one more than the times the text went back.
    pub attempts: usize,
    /// Tokens drafted ahead.
    pub drafted: usize,
    /// Those that were kept.
    pub accepted: usize,
    /// What a law that draws several texts for an answer says of them.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Diagnostics>,
}

/// How near a sample is to its law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Diagnostics {
    /// Of `smc` and `sir`.
    Particles {
        /// Texts under way.
        particles: usize,
        /// How many of equal weight would say as much.
        effective_size: f64,
        /// How often they were resampled.
        resampled: usize,
    },
    /// Of a search.
    Search {
        /// Prefixes followed at a time, where the search bounds them.
        #[serde(skip_serializing_if = "Option::is_none")]
        beam_width: Option<usize>,
        /// The log-probability of the text, divided by its length to the power of `length_penalty`; with
        /// `cntp` by its length.
        score: f64,
        /// Prefixes of which the model was asked what follows, for all answers together.
        rows: usize,
    },
    /// Of `mcmc`.
    Chain {
        /// Texts proposed after the first.
        steps: usize,
        /// Those of them that were accepted.
        moves: usize,
    },
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
