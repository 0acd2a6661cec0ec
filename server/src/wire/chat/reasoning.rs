//! The fields about thoughts before an answer, in chats and responses.
//!
//! | field | meaning |
//! |---|---|
//! | `reasoning: "auto"`, `"on"`, `"off"` | whether there is a thought; `auto` follows the end of the prompt |
//! | `reasoning: {"enabled", "effort", "max_tokens", "exclude"}` | the same fields, as other services spell them |
//! | `reasoning_effort: "none"` | `reasoning: "off"`; other efforts are for the template |
//! | `max_reasoning_tokens` | the most tokens of a thought |

use serde_json::{Map, Value};

use crate::wire::fields::{Fields, Problems};

/// Whether an answer begins with a thought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thinking {
    /// As the end of the prompt allows, and the model chooses.
    #[default]
    Auto,
    /// It does.
    On,
    /// It does not.
    Off,
}

/// What a request says about thoughts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasoning {
    /// Whether there is one.
    pub thinking: Thinking,
    /// The most tokens of it.
    pub max_tokens: Option<usize>,
    /// `true` if the answer does not show it.
    pub is_hidden: bool,
}

/// What the fields say, before they are compared.
#[derive(Default)]
struct Said {
    thinking: Option<(String, Thinking)>,
    effort: Option<(String, String)>,
    max_tokens: Option<usize>,
    is_hidden: bool,
}

/// Takes the fields about thoughts and `chat_template_kwargs`. Returns what is asked, and the variables for
/// the chat template.
pub(crate) fn read(fields: &mut Fields, problems: &mut Problems) -> (Reasoning, Map<String, Value>) {
    let mut said = Said::default();
    match fields.take("reasoning") {
        None => {}
        Some(Value::String(word)) => {
            said.thinking = thinking(&word, problems).map(|thinking| ("reasoning".to_owned(), thinking));
        }
        Some(value) => said.read_object(value, fields.path("reasoning"), problems),
    }
    if let Some(effort) = fields.string("reasoning_effort", problems) {
        said.effort = Some(("reasoning_effort".to_owned(), effort));
    }
    if let Some(shown) = fields.boolean("include_reasoning", problems) {
        said.is_hidden |= !shown;
    }
    if let Some(most) = fields.integer("max_reasoning_tokens", 0, i64::from(u32::MAX), problems) {
        if said.max_tokens.is_some() {
            problems.invalid(
                "max_reasoning_tokens",
                "reasoning.max_tokens says it, too; one of them is allowed",
            );
        }
        said.max_tokens = Some(most as usize);
    }
    let arguments = match fields.take("chat_template_kwargs") {
        None => Map::new(),
        Some(Value::Object(map)) => map,
        Some(_) => {
            problems.invalid("chat_template_kwargs", "expected an object");
            Map::new()
        }
    };
    said.settle(arguments, problems)
}

fn thinking(word: &str, problems: &mut Problems) -> Option<Thinking> {
    let words = [
        ("auto", Thinking::Auto),
        ("on", Thinking::On),
        ("off", Thinking::Off),
    ];
    let found = words.iter().find(|(known, _)| *known == word);
    if found.is_none() {
        let message = format!(
            "expected 'auto' or 'on' or 'off', or an object, found '{}'",
            word.escape_debug()
        );
        problems.invalid("reasoning", message);
    }
    found.map(|(_, thinking)| *thinking)
}

impl Said {
    /// Reads the fields of an object `reasoning`.
    fn read_object(&mut self, value: Value, path: String, problems: &mut Problems) {
        let Some(mut inner) = Fields::of(value, &path, problems) else {
            return;
        };
        self.effort = inner
            .string("effort", problems)
            .map(|effort| (format!("{path}.effort"), effort));
        if let Some(enabled) = inner.boolean("enabled", problems) {
            let thinking = if enabled { Thinking::On } else { Thinking::Off };
            self.thinking = Some((format!("{path}.enabled"), thinking));
        }
        let most = inner.integer("max_tokens", 0, i64::from(u32::MAX), problems);
        self.max_tokens = most.map(|most| most as usize);
        self.is_hidden = inner.boolean("exclude", problems) == Some(true);
        inner.ignore(&["summary", "generate_summary"]);
        inner.finish(problems);
    }

    /// Compares what the fields say, and tells the template.
    fn settle(
        self,
        mut arguments: Map<String, Value>,
        problems: &mut Problems,
    ) -> (Reasoning, Map<String, Value>) {
        let mut thinking = self.thinking;
        if let Some((path, effort)) = self.effort {
            if effort == "none" {
                match &thinking {
                    Some((other, Thinking::On)) => {
                        problems.invalid(
                            path,
                            format!("none contradicts {other}, which asks for a thought"),
                        );
                    }
                    _ => thinking = Some((path, Thinking::Off)),
                }
            }
            arguments.insert("reasoning_effort".to_owned(), Value::String(effort));
        }
        let (path, thinking) = thinking.unwrap_or_default();
        if thinking == Thinking::Off && self.max_tokens.is_some_and(|most| most > 0) {
            let message = format!("there is no thought to limit: {path} asks for none");
            problems.invalid("max_reasoning_tokens", message);
        }
        // The names that templates have for it.
        let told = match thinking {
            Thinking::Auto => None,
            Thinking::On => Some(true),
            Thinking::Off => Some(false),
        };
        for name in ["enable_thinking", "thinking"] {
            arguments.extend(told.map(|told| (name.to_owned(), Value::Bool(told))));
        }
        let reasoning = Reasoning {
            thinking,
            max_tokens: self.max_tokens,
            is_hidden: self.is_hidden,
        };
        (reasoning, arguments)
    }
}
