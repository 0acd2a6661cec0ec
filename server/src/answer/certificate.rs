//! Certificates: answers checked again, where possible by code that shares nothing with the grammar engine.
//!
//! JSON Schema is checked by the crate `jsonschema`, regular expressions by the crate `regex`, and lists of
//! texts by looking up the text in them. For grammars there is no independent checker, and the certificate
//! says so.

mod validation_cost;

use lexiform::regex::Dialect;
use lexiform_engine::Grammar;
use lexiform_syntax::notation::extract::{Boundary, is_span};
use serde_json::{Value, json};

use crate::answer::parts::Part;
use crate::grammars::inspect;
use crate::grammars::language::Language;
use crate::grammars::store::Compiled;
use crate::model::served::ServedModel;
use crate::operate::digest::sha256;
use crate::wire::constraint::{Constraint, Source};
use crate::wire::response::FINGERPRINT;
use crate::wire::tools::{Input, Mode};

/// The checks for the texts of one request.
pub struct Certifier {
    grammar: String,
    tokenizer: String,
    content: Option<Checker>,
    /// The checker of each tool, by its index.
    tools: Vec<Option<Checker>>,
}

enum Checker {
    Schema(Box<SchemaReader>),
    Regex(regex::Regex),
    List(Vec<String>),
    /// A text of which the answer must be a span.
    Text(String, Boundary),
    /// No independent checker: the grammar engine reads the text byte by byte, where decoding read it token
    /// by token.
    Machine(Box<Grammar>),
}

/// A schema as the independent validator reads it.
struct SchemaReader {
    schema: Value,
    validator: jsonschema::Validator,
    /// The fallback for values whose validation would take too many steps.
    machine: Option<Grammar>,
}

/// A text that was checked.
pub struct Checked {
    /// `true` if the text is valid.
    pub valid: bool,
    /// The certificate that clients receive.
    pub certificate: Value,
}

impl Certifier {
    /// Creates the certifier for answers of this model in this language, which was compiled to `compiled`.
    pub fn new(language: &Language, compiled: &Compiled, served: &ServedModel) -> Self {
        let grammar = &compiled.grammar;
        let alone = language.calls.is_none() && language.thought.is_absent();
        let content = language.content.as_ref();
        let tools = language.calls.iter().flat_map(|calls| {
            let bare = calls.mode == Mode::Bare && language.thought.is_absent();
            calls.tools.iter().map(move |tool| (bare, tool))
        });
        Self {
            grammar: compiled.id.to_string(),
            tokenizer: served.text().tokenizer_sha256.clone(),
            content: content.and_then(|constraint| checker(constraint, alone.then_some(grammar))),
            tools: tools
                .map(|(bare, tool)| match &tool.input {
                    Input::Arguments(constraint) | Input::Raw(Some(constraint)) => {
                        checker(constraint, bare.then_some(grammar))
                    }
                    Input::Raw(None) => None,
                })
                .collect(),
        }
    }

    /// Checks the content of an answer and the inputs of its calls.
    pub fn all(&self, parts: &[Part]) -> Vec<Checked> {
        let (mut content, mut calls): (String, Vec<(usize, String)>) = Default::default();
        for part in parts {
            match part {
                Part::Content(text) => content.push_str(text),
                Part::Opened(tool) => calls.push((*tool, String::new())),
                Part::Input(text) => {
                    if let Some((_, input)) = calls.last_mut() {
                        input.push_str(text);
                    }
                }
                Part::Reasoning(_) | Part::Closed => {}
            }
        }
        // An answer that consists of calls alone has no content to check.
        let said = self
            .content
            .as_ref()
            .filter(|_| calls.is_empty() || !content.is_empty());
        let inputs = calls.iter().filter_map(|(tool, input)| {
            let checker = self.tools.get(*tool)?.as_ref()?;
            self.certificate(checker, input)
        });
        let said = said.and_then(|checker| self.certificate(checker, &content));
        said.into_iter().chain(inputs).collect()
    }

    /// Checks one text on its own. Returns `None` if it has no constraint.
    pub fn text(&self, text: &str) -> Option<Checked> {
        let checker = self.content.as_ref()?;
        self.certificate(checker, text)
    }

    /// Returns `None` if no check of the text finishes within the limit of steps.
    fn certificate(&self, checker: &Checker, text: &str) -> Option<Checked> {
        let (valid, by) = match checker {
            Checker::Schema(reader) => reader.check(text)?,
            Checker::Regex(regex) => (regex.is_match(text), "regex"),
            Checker::List(texts) => (texts.iter().any(|one| one == text), "list"),
            Checker::Text(whole, boundary) => (is_span(text, whole, *boundary), "text"),
            Checker::Machine(grammar) => (accepts(grammar, text), "lexiform"),
        };
        let hex = sha256(text.as_bytes());
        let certificate = json!({"valid": valid, "verified_by": by, "independent": by != "lexiform",
                                 "grammar": self.grammar, "compiler": FINGERPRINT,
                                 "tokenizer_sha256": self.tokenizer, "output_sha256": hex});
        Some(Checked { valid, certificate })
    }
}

impl SchemaReader {
    fn check(&self, text: &str) -> Option<(bool, &'static str)> {
        match serde_json::from_str::<Value>(text) {
            Ok(value) if validation_cost::is_small(&self.schema, &value) => {
                return Some((self.validator.is_valid(&value), "jsonschema"));
            }
            // A value that nests too deep for the reader is still JSON, and may be valid.
            Err(error) if !error.to_string().starts_with("recursion limit") => {
                return Some((false, "jsonschema"));
            }
            _ => {}
        }
        let machine = self.machine.as_ref()?;
        Some((accepts(machine, text), "lexiform"))
    }
}

/// Returns `true` if the grammar accepts the text, read byte by byte.
fn accepts(grammar: &Grammar, text: &str) -> bool {
    let end = inspect::walk(grammar, text);
    end.is_ok_and(|state| grammar.is_accepting(state))
}

fn checker(constraint: &Constraint, grammar: Option<&Grammar>) -> Option<Checker> {
    let machine = || grammar.map(|grammar| Checker::Machine(Box::new(grammar.clone())));
    match &constraint.source {
        Source::Schema(text) => {
            let schema = serde_json::from_str::<Value>(text).ok()?;
            let Ok(validator) = jsonschema::validator_for(&schema) else {
                return machine();
            };
            let reader = SchemaReader {
                schema,
                validator,
                machine: grammar.cloned(),
            };
            Some(Checker::Schema(Box::new(reader)))
        }
        // The crate `regex` reads one of the dialects.
        Source::Regex(text) if constraint.dialect == Dialect::Rust => {
            let regex = regex::Regex::new(&format!("^(?:{text})\\z"));
            regex.map_or_else(|_| machine(), |regex| Some(Checker::Regex(regex)))
        }
        Source::Choice(texts) => Some(Checker::List(texts.clone())),
        Source::Extract(text, boundary) => Some(Checker::Text(text.clone(), *boundary)),
        Source::Regex(_) | Source::Grammar(..) | Source::Tags(_) => machine(),
    }
}
