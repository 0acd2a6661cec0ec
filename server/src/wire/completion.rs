//! `POST /v1/completions`: the request.

use serde_json::Value;

use super::fields::{Fields, Ignored, Problems};
use super::generation::{self, Contrast, Generation};
use crate::wire::error::ApiError;

/// The maximum number of prompts in a request.
const PROMPTS: usize = 16;

/// The prompt of a completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// A text; no part of it is read as a special token.
    Text(String),
    /// Tokens as they are.
    Tokens(Vec<u32>),
}

/// A completion request whose every field was checked.
#[derive(Clone, Debug)]
pub struct CompletionRequest {
    /// The prompts; each gets `n` choices.
    pub prompts: Vec<Prompt>,
    /// The number of alternatives in log-probabilities; `None` for no log-probabilities.
    pub logprobs: Option<u8>,
    /// What the answers are contrasted with: another prompt, or the draft model.
    pub contrast: Option<Contrast<Prompt>>,
    /// The text that follows the answers, which then stand between the prompt and it.
    pub suffix: Option<String>,
    /// `true` if each answer begins with its prompt.
    pub echo: bool,
    /// `true` if answers may begin with a token that reaches back into the prompt.
    pub token_healing: bool,
    /// The fields that all routes share.
    pub generation: Generation,
    /// The fields that have no effect here.
    pub ignored: Ignored,
}

/// Reads a request.
///
/// # Errors
/// Returns all problems of the body in one error.
pub fn read(body: &[u8]) -> Result<CompletionRequest, ApiError> {
    let mut fields = Fields::root(super::object(body)?);
    let mut problems = Problems::default();
    let mut generation = generation::read(&mut fields, &mut problems);
    generation.settle_writing(&mut fields, None, &mut problems);
    generation.not_a_chat(&mut problems);
    let prompts = prompts(&mut fields, &mut problems);
    let logprobs = generation::completion_logprobs(&mut fields, &mut problems);
    let token_healing = fields.boolean("token_healing", &mut problems).unwrap_or(false);
    let contrast = Contrast::read(&mut fields, &mut problems, one_prompt);
    let suffix = fields
        .string("suffix", &mut problems)
        .filter(|suffix| !suffix.is_empty());
    if token_healing {
        healed(&generation, &mut problems);
        let others = [("suffix", suffix.is_some()), ("contrast", contrast.is_some())];
        for (param, _) in others.into_iter().filter(|(_, is_there)| *is_there) {
            problems.invalid(param, "cannot be combined with token_healing");
        }
    }
    let echo = fields.boolean("echo", &mut problems).unwrap_or(false);
    if echo && logprobs.is_some() {
        let message = "cannot be combined with logprobs: there are no log-probabilities of a prompt";
        problems.invalid("echo", message);
    }
    if echo && suffix.is_some() {
        problems.invalid(
            "echo",
            "cannot be combined with suffix: the answer is not what follows the prompt",
        );
    }
    // A completion has no template that could say where a thought begins.
    let chat_only: &[(&str, &[&str])] = &[
        ("prompt_embeds", &[]),
        ("reasoning", &["\"auto\"", "\"off\""]),
        ("max_reasoning_tokens", &[]),
    ];
    fields.only_neutral(chat_only, &mut problems);
    fields.finish(&mut problems);
    let ignored = problems.check()?;
    Ok(CompletionRequest {
        prompts,
        logprobs,
        contrast,
        suffix,
        echo,
        token_healing,
        generation,
        ignored,
    })
}

/// Refuses fields that cannot be combined with healed prompts.
fn healed(generation: &Generation, problems: &mut Problems) {
    let combined = [
        ("monitors", !generation.monitors.is_empty()),
        ("enum_scores", generation.enum_scores),
        ("stop_token_ids", !generation.stop.tokens.is_empty()),
        ("ignore_eos", generation.ignore_eos),
    ];
    for (param, _) in combined.into_iter().filter(|(_, is_there)| *is_there) {
        problems.invalid(param, "cannot be combined with token_healing");
    }
}

/// Takes one prompt: a text, or tokens.
fn one_prompt(fields: &mut Fields, problems: &mut Problems) -> Option<Prompt> {
    let read = fields.take("prompt").as_ref().and_then(prompt);
    if read.is_none() {
        problems.invalid(fields.path("prompt"), "expected a text or an array of tokens");
    }
    read
}

/// Takes a text, tokens, or a list of either.
fn prompts(fields: &mut Fields, problems: &mut Problems) -> Vec<Prompt> {
    let expected = "expected a text, an array of tokens, or an array of up to 16 of these";
    let prompts = match fields.take("prompt") {
        Some(Value::String(text)) => vec![Prompt::Text(text)],
        Some(Value::Array(items)) if items.first().is_some_and(Value::is_number) => {
            tokens(&items).into_iter().collect()
        }
        Some(Value::Array(items)) if items.len() <= PROMPTS => {
            let read: Vec<Prompt> = items.iter().filter_map(prompt).collect();
            if read.len() == items.len() {
                read
            } else {
                Vec::new()
            }
        }
        _ => Vec::new(),
    };
    if prompts.is_empty() {
        problems.invalid("prompt", expected);
    }
    prompts
}

fn prompt(item: &Value) -> Option<Prompt> {
    match item {
        Value::String(text) => Some(Prompt::Text(text.clone())),
        Value::Array(items) => tokens(items),
        _ => None,
    }
}

fn tokens(items: &[Value]) -> Option<Prompt> {
    let ids: Option<Vec<u32>> = items.iter().map(generation::token_id).collect();
    ids.filter(|ids| !ids.is_empty()).map(Prompt::Tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompts_of(prompt: &str) -> Option<Vec<Prompt>> {
        let body = format!(r#"{{"model":"m","prompt":{prompt}}}"#);
        read(body.as_bytes()).ok().map(|request| request.prompts)
    }

    #[test]
    fn every_form_of_prompt_is_read() {
        let text = || Prompt::Text("a".to_owned());
        assert_eq!(prompts_of(r#""a""#), Some(vec![text()]));
        assert_eq!(prompts_of(r#"["a","a"]"#), Some(vec![text(), text()]));
        assert_eq!(prompts_of("[1,2]"), Some(vec![Prompt::Tokens(vec![1, 2])]));
        assert_eq!(
            prompts_of(r#"[[1],"a"]"#),
            Some(vec![Prompt::Tokens(vec![1]), text()])
        );
        for wrong in ["[]", "3", "{}", "[-1]", "[1.5]", "[[]]", "[null]", "null"] {
            assert_eq!(prompts_of(wrong), None, "{wrong}");
        }
    }
}
