//! The request of an item: a chat completion in OpenAI's format, with the schema in the field that the server
//! reads.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::item::{Arm, Item, Message};
use crate::input::hash;

/// The field that contains the schema in requests whose answer is constrained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConstraintField {
    /// `response_format`, as OpenAI defines it
    #[default]
    #[value(name = "json_schema")]
    JsonSchema,
    /// The same with `strict: true`, which some services need to enforce a schema, and in which others take
    /// fewer keywords
    #[value(name = "json_schema_strict")]
    JsonSchemaStrict,
    /// `guided_json` (vLLM before 0.12)
    #[value(name = "guided_json")]
    GuidedJson,
    /// `structured_outputs` (vLLM)
    #[value(name = "structured_outputs")]
    StructuredOutputs,
    /// `response_format` of type `json_object` with `schema` (llama.cpp)
    #[value(name = "llama_cpp")]
    LlamaCpp,
    /// `response_format`, and nothing of the schema in the prompt but what the arm tells (Lexiform)
    #[value(name = "lexiform")]
    Lexiform,
}

/// What determines the answers, apart from the question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sampling {
    pub(crate) constraint: ConstraintField,
    pub(crate) max_tokens: u32,
    pub(crate) temperature: f64,
    pub(crate) seed: u64,
    /// Further fields of the requests.
    #[serde(skip_serializing_if = "Map::is_empty", default)]
    pub(crate) fields: Map<String, Value>,
}

/// Returns the body of the request for an item.
pub(super) fn body(item: &Item, arm: Arm, model: &str, sampling: &Sampling) -> Value {
    let messages: Vec<Value> = item.messages(arm).iter().map(Message::json).collect();
    let mut body = json!({
        "model": model,
        "messages": messages,
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "seed": seed(sampling.seed, &item.name),
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let (true, Some(schema)) = (arm.constrains(), &item.schema) {
        let (field, value) = sampling.constraint.field(schema);
        body[field] = value;
        if sampling.constraint == ConstraintField::Lexiform {
            body["schema_in_prompt"] = json!("never");
        }
    }
    if let Some(body) = body.as_object_mut() {
        body.extend(sampling.fields.clone());
    }
    body
}

/// Returns the seed of a request, which all arms of an item share. It is less than 2^31: some servers read
/// seeds as integers of 32 bits with a sign.
fn seed(seed: u64, name: &str) -> u32 {
    let sum = hash::sum(format!("{seed}:{name}").as_bytes());
    u32::from_be_bytes([sum[0], sum[1], sum[2], sum[3]]) >> 1
}

/// Returns the words of the command that asks an endpoint with these settings, without the data.
pub(super) fn command(endpoint: &str, model: &str, sampling: &Sampling) -> Vec<String> {
    let mut settings = vec![
        ("--endpoint", endpoint.to_owned()),
        ("--model", model.to_owned()),
        ("--constraint", sampling.constraint.name()),
        ("--max-tokens", sampling.max_tokens.to_string()),
        ("--temperature", sampling.temperature.to_string()),
        ("--seed", sampling.seed.to_string()),
    ];
    if !sampling.fields.is_empty() {
        settings.push(("--fields", json!(sampling.fields).to_string()));
    }
    let words = ["lexiform", "eval", "generate"].map(str::to_owned).into_iter();
    let settings = settings.into_iter();
    words
        .chain(settings.flat_map(|(flag, value)| [flag.to_owned(), quoted(&value)]))
        .collect()
}

/// Returns a word as a shell reads it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

impl ConstraintField {
    pub(super) fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |it| it.get_name().to_owned())
    }

    fn field(self, schema: &Value) -> (&'static str, Value) {
        let format = |inner| json!({"type": "json_schema", "json_schema": inner});
        match self {
            Self::JsonSchema | Self::Lexiform => (
                "response_format",
                format(json!({"name": "answer", "schema": schema})),
            ),
            Self::JsonSchemaStrict => (
                "response_format",
                format(json!({"name": "answer", "schema": schema, "strict": true})),
            ),
            Self::GuidedJson => ("guided_json", schema.clone()),
            Self::StructuredOutputs => ("structured_outputs", json!({"json": schema})),
            Self::LlamaCpp => (
                "response_format",
                json!({"type": "json_object", "schema": schema}),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::eval::generate::item::Judged;

    fn item() -> Item {
        Item {
            name: "one".to_owned(),
            split: String::new(),
            keywords: std::collections::BTreeSet::new(),
            untold: vec![Message::user("Write.")],
            told: vec![Message::system("Fit this."), Message::user("{}")],
            schema: Some(Arc::new(json!({"type": "null"}))),
            judge: Box::new(|_| Judged::valid()),
        }
    }

    fn sampling(constraint: ConstraintField) -> Sampling {
        Sampling {
            constraint,
            max_tokens: 5,
            temperature: 0.5,
            seed: 7,
            fields: Map::new(),
        }
    }

    /// Guards against telling the model the schema in an arm that does not.
    #[test]
    fn lexiform_adds_nothing_to_the_prompt() {
        let sampling = sampling(ConstraintField::Lexiform);
        let constrained = body(&item(), Arm::Constrained, "m", &sampling);
        assert_eq!(constrained["schema_in_prompt"], "never");
        assert_eq!(constrained["response_format"]["type"], "json_schema");
        assert!(
            body(&item(), Arm::Free, "m", &sampling)
                .get("schema_in_prompt")
                .is_none()
        );
    }

    #[test]
    fn each_server_finds_the_schema_in_its_field() {
        let schema = json!({"type": "null"});
        let sent = |field: ConstraintField, name: &str| {
            body(&item(), Arm::Constrained, "m", &sampling(field))[name].clone()
        };
        let standard = sent(ConstraintField::JsonSchema, "response_format");
        assert_eq!(standard["type"], "json_schema");
        assert_eq!(standard["json_schema"]["schema"], schema);
        assert_eq!(standard["json_schema"].get("strict"), None);
        let strict = sent(ConstraintField::JsonSchemaStrict, "response_format");
        assert_eq!(strict["json_schema"]["strict"], true);
        assert_eq!(sent(ConstraintField::GuidedJson, "guided_json"), schema);
        let vllm = sent(ConstraintField::StructuredOutputs, "structured_outputs");
        assert_eq!(vllm, json!({"json": schema}));
        let llama = sent(ConstraintField::LlamaCpp, "response_format");
        assert_eq!(llama, json!({"type": "json_object", "schema": schema}));
    }

    #[test]
    fn arms_differ_in_the_prompt_and_the_constraint_and_share_the_seed() {
        let sent = |arm: Arm| body(&item(), arm, "m", &sampling(ConstraintField::JsonSchema));
        for (arm, messages, constrained) in [
            (Arm::Both, 2, true),
            (Arm::Constrained, 1, true),
            (Arm::Told, 2, false),
            (Arm::Free, 1, false),
        ] {
            let body = sent(arm);
            assert_eq!(body["messages"].as_array().map(Vec::len), Some(messages));
            assert_eq!(body.get("response_format").is_some(), constrained, "{arm:?}");
            assert_eq!(body["seed"], sent(Arm::Free)["seed"]);
        }
        assert_ne!(seed(7, "one"), seed(8, "one"));
        assert_ne!(seed(7, "one"), seed(7, "two"));
    }
}
