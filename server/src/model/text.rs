//! The contents of a model folder besides its weights: tokenizer, chat template, recommended sampling.

use std::sync::Arc;

use lexiform::vocab::{Tokenizer, TokenizerError, VocabularyError};
use lexiform_chat::{ChatTemplate, TemplateError};
use lexiform_engine::{EngineError, LoadError, ModelFiles};
use serde_json::Value;

use crate::model::corpus::CorpusError;
use crate::model::source::SourceError;
use crate::model::template_file::TemplateFileError;
use crate::operate::digest::sha256;

/// The reasons why a model cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file of the model's folder is missing or invalid.
    #[error("cannot load the model: {0}")]
    Load(#[from] LoadError),
    /// There is no such model on this disk.
    #[error("{0}")]
    Source(#[from] SourceError),
    /// A file of the model's folder is not JSON.
    #[error("cannot load the model: {file}: {error}")]
    NotJson {
        /// The file.
        file: String,
        /// The error of the parser, with its place.
        error: serde_json::Error,
    },
    /// The tokenizer is invalid.
    #[error("cannot load the model: tokenizer.json: {0}")]
    Tokenizer(#[from] TokenizerError),
    /// The vocabulary is invalid.
    #[error("cannot load the model: tokenizer.json and config.json do not fit together: {0}")]
    Vocabulary(#[from] VocabularyError),
    /// The tokenizer of the draft model is invalid.
    #[error("cannot load the draft model: tokenizer.json: {0}")]
    DraftTokenizer(TokenizerError),
    /// The vocabulary of the draft model is invalid.
    #[error("cannot load the draft model: tokenizer.json and config.json do not fit together: {0}")]
    DraftVocabulary(VocabularyError),
    /// The chat template is invalid.
    #[error("cannot load the model: {0}")]
    Template(#[from] TemplateError),
    /// The file that replaces the chat template cannot be used.
    #[error("cannot load the model: {0}")]
    TemplateFile(#[from] TemplateFileError),
    /// The operator allows longer texts than the model has positions.
    #[error("--max-model-len {asked}: the model has {positions} positions")]
    TooLong {
        /// The tokens of a text that the operator allows.
        asked: usize,
        /// The positions of the model.
        positions: usize,
    },
    /// The texts to draft from cannot be used.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The engine cannot start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// This program was built without the demo model, and no other was named.
    #[error(
        "this program was built without the demo model; name another one with --model, as `lexiform models` lists them"
    )]
    NoModel,
}

/// The sampling settings of a request that does not choose its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Defaults {
    /// The temperature.
    pub temperature: f32,
    /// The probability mass of the nucleus.
    pub top_p: f32,
    /// The number of likeliest tokens to choose from.
    pub top_k: Option<u32>,
    /// The minimum probability, as a share of the most likely token's.
    pub min_p: f32,
    /// The probability mass of the tokens whose surprise is closest to the expected one; 1 keeps all.
    pub typical_p: f32,
    /// The minimum probability; 0 keeps all.
    pub epsilon_cutoff: f32,
    /// The minimum probability at low entropy; 0 keeps all.
    pub eta_cutoff: f32,
    /// The penalty for tokens that occurred before; 1 is none.
    pub repetition_penalty: f32,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_p: 1.0,
            top_k: None,
            min_p: 0.0,
            typical_p: 1.0,
            epsilon_cutoff: 0.0,
            eta_cutoff: 0.0,
            repetition_penalty: 1.0,
        }
    }
}

impl Defaults {
    /// Returns the settings for a law about the model: without filters, which would be a part of the model
    /// that nobody asked for, and with a temperature above 0, without which there is no law.
    #[must_use]
    pub fn of_model(self) -> Self {
        let usual = Self::default();
        Self {
            temperature: match self.temperature > 0.0 {
                true => self.temperature,
                false => usual.temperature,
            },
            repetition_penalty: self.repetition_penalty,
            ..usual
        }
    }

    /// Reads the recommendations of `generation_config.json`.
    fn read(config: &Value) -> Self {
        let number = |name: &str| {
            config
                .get(name)
                .and_then(Value::as_f64)
                .map(|number| number as f32)
        };
        let share = |name: &str| number(name).filter(|p| *p > 0.0 && *p <= 1.0).unwrap_or(1.0);
        let bound = |name: &str| number(name).filter(|p| (0.0..=1.0).contains(p)).unwrap_or(0.0);
        let greedy = config.get("do_sample").and_then(Value::as_bool) == Some(false);
        let top_k = config
            .get("top_k")
            .and_then(Value::as_u64)
            .and_then(|k| u32::try_from(k).ok());
        Self {
            temperature: if greedy {
                0.0
            } else {
                number("temperature").unwrap_or(1.0).clamp(0.0, 2.0)
            },
            top_p: share("top_p"),
            top_k: top_k.filter(|k| *k > 0 && !greedy),
            min_p: bound("min_p"),
            typical_p: share("typical_p"),
            epsilon_cutoff: bound("epsilon_cutoff"),
            eta_cutoff: bound("eta_cutoff"),
            repetition_penalty: number("repetition_penalty")
                .filter(|penalty| (0.01..=100.0).contains(penalty))
                .unwrap_or(1.0),
        }
    }
}

/// The contents of a model folder besides its weights.
pub struct ModelText {
    /// The tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// The SHA-256 of `tokenizer.json`, in hexadecimal digits.
    pub tokenizer_sha256: String,
    /// The chat template, if the model has one.
    pub template: Option<ChatTemplate>,
    /// The sampling that the makers of the model recommend.
    pub defaults: Defaults,
}

impl ModelText {
    /// Reads `tokenizer.json`, and `tokenizer_config.json`, `chat_template.jinja` and
    /// `generation_config.json` if they exist. `template` replaces the model's own chat template.
    ///
    /// # Errors
    /// Fails if a file is missing or broken.
    pub fn read(files: &ModelFiles, template: Option<String>) -> Result<Self, StartError> {
        let tokenizer = files.text("tokenizer.json")?;
        let config = optional_json(files, "tokenizer_config.json")?.unwrap_or_default();
        let jinja =
            template.map_or_else(|| optional(files, "chat_template.jinja"), |given| Ok(Some(given)))?;
        let generation = optional_json(files, "generation_config.json")?;
        let defaults = generation.as_ref().map_or_else(Defaults::default, Defaults::read);
        Self::new(tokenizer.as_bytes(), &config, jinja, defaults)
    }

    /// Creates the value from the contents of the files.
    ///
    /// # Errors
    /// Fails if one of them is broken.
    pub fn new(
        tokenizer_json: &[u8],
        tokenizer_config: &Value,
        jinja: Option<String>,
        defaults: Defaults,
    ) -> Result<Self, StartError> {
        let tokenizer = Arc::new(Tokenizer::from_bytes(tokenizer_json)?);
        let source = jinja.or_else(|| template_source(tokenizer_config));
        let template = match source {
            None => None,
            Some(source) => Some(ChatTemplate::new(&source, named_tokens(tokenizer_config))?),
        };
        Ok(Self {
            tokenizer,
            tokenizer_sha256: sha256(tokenizer_json),
            template,
            defaults,
        })
    }
}

/// Returns the template of `tokenizer_config.json`: a text, or the one named `default` of a list.
fn template_source(config: &Value) -> Option<String> {
    match config.get("chat_template")? {
        Value::String(source) => Some(source.clone()),
        Value::Array(named) => {
            let default = named.iter().find(|entry| entry["name"] == "default")?;
            default["template"].as_str().map(str::to_owned)
        }
        _ => None,
    }
}

/// Returns the special tokens that templates refer to by name.
fn named_tokens(config: &Value) -> Vec<(String, String)> {
    ["bos_token", "eos_token", "pad_token", "unk_token"]
        .into_iter()
        .filter_map(|name| {
            let token = config.get(name)?;
            let text = token.as_str().or_else(|| token.get("content")?.as_str())?;
            Some((name.to_owned(), text.to_owned()))
        })
        .collect()
}

fn optional(files: &ModelFiles, name: &str) -> Result<Option<String>, StartError> {
    if files.has(name) {
        Ok(Some(files.text(name)?))
    } else {
        Ok(None)
    }
}

fn optional_json(files: &ModelFiles, name: &str) -> Result<Option<Value>, StartError> {
    let Some(text) = optional(files, name)? else {
        return Ok(None);
    };
    let read = serde_json::from_str(&text).map(Some);
    read.map_err(|error| StartError::NotJson {
        file: files.path(name).display().to_string(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_model_that_does_not_sample_is_greedy() {
        let defaults = Defaults::read(&json!({"do_sample": false, "temperature": 0.7, "top_k": 50}));
        assert_eq!(
            defaults,
            Defaults {
                temperature: 0.0,
                ..Defaults::default()
            }
        );
        let sampled = json!({
            "temperature": 0.6, "top_p": 0.9, "top_k": 20, "repetition_penalty": 1.05, "typical_p": 0.95,
            "epsilon_cutoff": 3e-4, "eta_cutoff": 7,
        });
        let sampled = Defaults::read(&sampled);
        assert_eq!(
            sampled,
            Defaults {
                temperature: 0.6,
                top_p: 0.9,
                top_k: Some(20),
                min_p: 0.0,
                typical_p: 0.95,
                epsilon_cutoff: 3e-4,
                eta_cutoff: 0.0,
                repetition_penalty: 1.05,
            }
        );
    }

    #[test]
    fn a_template_is_found_in_both_forms() {
        assert_eq!(
            template_source(&json!({"chat_template": "a"})).as_deref(),
            Some("a")
        );
        let named = json!({"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]});
        assert_eq!(template_source(&named).as_deref(), Some("d"));
        assert_eq!(template_source(&json!({})), None);
    }

    #[test]
    fn a_missing_tokenizer_is_named() {
        let folder = std::env::temp_dir().join(format!("lexiform-no-model-{}", std::process::id()));
        let message = ModelText::read(&ModelFiles::folder(folder), None)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(message.contains("tokenizer.json"), "{message}");
    }
}
