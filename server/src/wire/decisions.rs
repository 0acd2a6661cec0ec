//! `POST /v1/decisions`: questions about an input, each with a closed list of answers.

mod spans;

use std::sync::Arc;

use serde_json::{Value, json};

use super::chat::Message;
use super::fields::{Fields, Ignored, Problems};
use super::generation::caching;
use super::responses;
use crate::wire::error::ApiError;

pub use self::spans::Spans;

/// The maximum number of questions in a request.
const QUESTIONS: usize = 400;
/// The maximum number of choices of a question.
const CHOICES: usize = 4_096;
/// The maximum number of levels of a score.
const LEVELS: usize = 10;
/// The maximum length of an answer, in bytes.
const ANSWER_BYTES: usize = 1_024;

/// A request whose every field was checked.
#[derive(Clone, Debug)]
pub struct DecisionsRequest {
    /// The name of the requested model.
    pub model: String,
    /// The input, as a conversation.
    pub messages: Vec<Message>,
    /// The questions.
    pub questions: Vec<Question>,
    /// The tokenisations over which the probability of an answer is taken.
    pub tokenisations: Tokenisations,
    /// What separates the prompts from others of the client in the prompt cache.
    pub cache_salt: Option<Arc<str>>,
    /// The fields that have no effect here.
    pub ignored: Ignored,
}

/// The tokenisations of an answer that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tokenisations {
    /// The tokens that the tokenizer produces.
    #[default]
    Canonical,
    /// All tokens that write the answer.
    All,
}

/// The kind of answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The probability that a statement is true.
    Predicate,
    /// One choice from a list.
    Choice,
    /// A place on a scale.
    Score,
    /// One of these spans of a text.
    Extract(Spans),
}

/// How an answer is chosen among the choices of a question, if not by its probability. The methods and their
/// names are SGLang's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By the mean log-probability of its tokens.
    TokenLengthNormalized,
    /// By the log-probabilities of its tokens, one after the other.
    GreedyTokenSelection,
    /// By the mean difference of its tokens' log-probabilities to those without the prompt.
    UnconditionalLikelihoodNormalized,
}

impl Method {
    const ALL: [Self; 3] = [
        Self::TokenLengthNormalized,
        Self::GreedyTokenSelection,
        Self::UnconditionalLikelihoodNormalized,
    ];

    /// Returns the name of the method in requests and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::TokenLengthNormalized => "token_length_normalized",
            Self::GreedyTokenSelection => "greedy_token_selection",
            Self::UnconditionalLikelihoodNormalized => "unconditional_likelihood_normalized",
        }
    }
}

/// The kinds of questions by their names in requests.
#[derive(Clone, Copy, Debug)]
enum Word {
    Predicate,
    Choice,
    Score,
    Extract,
}

/// A question.
#[derive(Clone, Debug)]
pub struct Question {
    /// The kind of answer.
    pub kind: Kind,
    /// The client's name for the question.
    pub name: Option<String>,
    /// The question itself.
    pub instructions: String,
    /// The possible answers; for a predicate, yes and no; empty if the answers are spans of a text.
    pub options: Vec<Choice>,
    /// The method by which one of several choices is chosen; if absent, it is the most probable.
    pub method: Option<Method>,
}

/// A possible answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The text that the model would write.
    pub text: String,
    /// The client's value for it.
    pub value: Value,
    /// The meaning of the answer.
    pub description: Option<String>,
}

/// Reads a request.
///
/// # Errors
/// Returns all problems of the body in one error.
pub fn read(body: &[u8]) -> Result<DecisionsRequest, ApiError> {
    let mut fields = Fields::root(super::object(body)?);
    let mut problems = Problems::default();
    let model = fields.string("model", &mut problems).unwrap_or_default();
    let messages = responses::conversation(&mut fields, &mut problems);
    let items = fields.array_of("questions", QUESTIONS, "questions", &mut problems);
    let items = items.unwrap_or_default();
    let mut questions = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        questions.extend(question(&format!("questions[{index}]"), item, &mut problems));
    }
    let words = [
        ("canonical", Tokenisations::Canonical),
        ("all", Tokenisations::All),
    ];
    let tokenisations = fields.word("tokenisations", &words, &mut problems);
    if tokenisations == Some(Tokenisations::All) {
        let methods = questions.iter().enumerate();
        for (index, _) in methods.filter(|(_, question): &(usize, &Question)| question.method.is_some()) {
            problems.invalid(
                format!("questions[{index}].choices_method"),
                "requires 'tokenisations': 'canonical', whose tokens it compares",
            );
        }
    }
    let cache_salt = caching::salt(&mut fields, &mut problems);
    fields.ignore(&["prompt_cache_options", "safety_identifier", "metadata", "user"]);
    fields.finish(&mut problems);
    let ignored = problems.check()?;
    Ok(DecisionsRequest {
        model,
        messages,
        questions,
        tokenisations: tokenisations.unwrap_or_default(),
        cache_salt,
        ignored,
    })
}

fn question(path: &str, item: Value, problems: &mut Problems) -> Option<Question> {
    let mut fields = Fields::of(item, path, problems)?;
    let kinds = [
        ("predicate", Word::Predicate),
        ("choice", Word::Choice),
        ("score", Word::Score),
        ("extract", Word::Extract),
    ];
    if !fields.has("type") {
        problems.invalid(
            fields.path("type"),
            "expected 'predicate', 'choice', 'score' or 'extract'",
        );
    }
    let word = fields.word("type", &kinds, problems)?;
    let name = fields.string("name", problems);
    let instructions = instructions(&mut fields, problems);
    let method = match word {
        Word::Choice => {
            let words = Method::ALL.map(|method| (method.name(), method));
            fields.word("choices_method", &words, problems)
        }
        _ => None,
    };
    let (kind, options) = match word {
        Word::Predicate => {
            let options = ["yes", "no"].map(|text| option(json!(text), None));
            (Kind::Predicate, options.to_vec())
        }
        Word::Choice => {
            let listed = listed(&mut fields, ("choices", "value", CHOICES), problems);
            (Kind::Choice, listed)
        }
        Word::Score => {
            let listed = listed(&mut fields, ("levels", "label", LEVELS), problems);
            (Kind::Score, listed)
        }
        Word::Extract => (Kind::Extract(spans::read(&mut fields, problems)?), Vec::new()),
    };
    fields.finish_strict(problems);
    Some(Question {
        kind,
        name,
        instructions,
        options,
        method,
    })
}

fn option(value: Value, description: Option<String>) -> Choice {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Choice {
        text,
        value,
        description,
    }
}

/// Takes a text, or parts of text and JSON.
fn instructions(fields: &mut Fields, problems: &mut Problems) -> String {
    let path = fields.path("instructions");
    let parts = match fields.take("instructions") {
        Some(Value::String(text)) => return text,
        Some(Value::Array(parts)) => parts,
        _ => {
            problems.invalid(path, "expected a text or an array of parts");
            return String::new();
        }
    };
    let mut texts = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        Fields::beside(part, &["type", "text", "data"], &format!("{path}[{index}]")).finish_strict(problems);
        match (part["type"].as_str(), part["text"].as_str()) {
            (Some("input_text"), Some(text)) => texts.push(text.to_owned()),
            (Some("input_json"), _) => texts.push(part["data"].to_string()),
            _ => problems.unsupported(
                format!("{path}[{index}]"),
                "expected 'input_text' or 'input_json'",
            ),
        }
    }
    texts.join("\n")
}

fn listed(
    fields: &mut Fields,
    (field, key, most): (&'static str, &'static str, usize),
    problems: &mut Problems,
) -> Vec<Choice> {
    let path = fields.path(field);
    let items = fields.array(field, problems).unwrap_or_default();
    if items.len() < 2 || items.len() > most {
        problems.invalid(path, format!("expected 2 to {most} entries"));
        return Vec::new();
    }
    let mut options = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let known = match key {
            "value" => &["value", "description"],
            _ => &["label", "description"],
        };
        Fields::beside(item, known, &format!("{path}[{index}]")).finish_strict(problems);
        let value = item
            .get(key)
            .filter(|value| value.is_string() || (value.is_boolean() && key == "value"));
        let fits = |value: &&Value| (1..=ANSWER_BYTES).contains(&value.as_str().map_or(1, str::len));
        match value.filter(fits) {
            Some(value) => options.push(option(
                value.clone(),
                item["description"].as_str().map(str::to_owned),
            )),
            None => problems.invalid(
                format!("{path}[{index}].{key}"),
                format!("expected a text of 1 to {ANSWER_BYTES} bytes"),
            ),
        }
    }
    distinct(&path, options, problems)
}

/// Checks that values differ. A text and a boolean that look the same are distinguished by quotes around
/// texts.
fn distinct(path: &str, mut options: Vec<Choice>, problems: &mut Problems) -> Vec<Choice> {
    let repeats = |options: &[Choice]| {
        let mut texts: Vec<&str> = options.iter().map(|option| option.text.as_str()).collect();
        texts.sort_unstable();
        texts.windows(2).any(|pair| pair[0] == pair[1])
    };
    if repeats(&options) {
        for option in &mut options {
            option.text = option.value.to_string();
        }
    }
    if repeats(&options) {
        problems.invalid(path, "each entry must be unique");
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn questions(question: Value) -> Result<Vec<Question>, ApiError> {
        let body = json!({"model": "m", "input": "x", "questions": [question]});
        read(body.to_string().as_bytes()).map(|request| request.questions)
    }

    #[test]
    fn each_kind_of_question_has_its_options() {
        let read = questions(json!({"type": "choice", "instructions": "q", "choices":
            [{"value": "true"}, {"value": true}, {"value": "b", "description": "d"}]}));
        let texts: Vec<String> = read.expect("choices")[0]
            .options
            .iter()
            .map(|o| o.text.clone())
            .collect();
        assert_eq!(texts, ["\"true\"", "true", "\"b\""]);
        let read = questions(
            json!({"type": "score", "instructions": "q", "levels": [{"label": "lo"}, {"label": "hi"}]}),
        );
        assert_eq!(read.expect("levels")[0].options[1].text, "hi");
        assert!(questions(json!({"type": "predicate", "instructions": "q"})).is_ok());
    }

    #[test]
    fn answers_count_in_canonical_tokens_unless_all_are_asked_for() {
        let read = |more: &str| {
            let body = format!(
                r#"{{"model": "m", "input": "x", "questions": [{{"type": "predicate", "instructions": "q"}}]{more}}}"#
            );
            super::read(body.as_bytes()).map(|request| request.tokenisations)
        };
        assert_eq!(read("").ok(), Some(Tokenisations::Canonical));
        assert_eq!(
            read(r#", "tokenisations": null"#).ok(),
            Some(Tokenisations::Canonical)
        );
        assert_eq!(read(r#", "tokenisations": "all""#).ok(), Some(Tokenisations::All));
        assert!(read(r#", "tokenisations": "some""#).is_err());
    }

    #[test]
    fn questions_without_a_closed_list_are_refused() {
        for wrong in [
            json!({"type": "choice", "instructions": "q", "choices": [{"value": "a"}]}),
            json!({"type": "choice", "instructions": "q", "choices": [{"value": "a"}, {"value": "a"}]}),
            json!({"type": "choice", "instructions": "q", "choices": [{"value": 1}, {"value": "a"}]}),
            json!({"type": "score", "instructions": "q", "levels": [{"label": ""}, {"label": "b"}]}),
            json!({"type": "essay", "instructions": "q"}),
            json!({"type": "predicate"}),
        ] {
            assert!(questions(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
