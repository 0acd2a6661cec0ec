//! Tokenizers for the commands that show or measure masks.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lexiform::grammar::GrammarOptions;
use lexiform::limits::Limits;
use lexiform::vocab::{TokenKind, Tokenizer, Vocabulary};
use lexiform_automata::grammar::Expr;
use lexiform_syntax::{notation, schema};
use serde_json::Value;

use crate::failure::{Failure, read_text};

/// The tokenizer of the demo model.
const DEMO: &[u8] = include_bytes!("../../../models/demo/tokenizer.json");
/// The configuration beside it, which names the token that ends a sequence.
const DEMO_CONFIG: &[u8] = include_bytes!("../../../models/demo/tokenizer_config.json");

/// The usual names of the token that ends a sequence, for folders that hold nothing but a `tokenizer.json`.
/// The token that ends a chat turn comes before the one that ends a document, since instruction-tuned models
/// write the former.
const USUAL_ENDS: [&str; 9] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|return|>",
    "<|end|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|eos|>",
    "</s>",
    "<eos>",
];

/// The tokenizer to use.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TokenizerArgs {
    /// The tokenizer.json to use; without it, the tokenizer of the demo model, which is built into this
    /// program
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// The token that ends a sequence, by name; else the one that the tokenizer's folder names
    #[arg(long, value_name = "NAME")]
    eos: Option<String>,
}

impl TokenizerArgs {
    /// Names a tokenizer's file; the end of a sequence is the one that its folder names.
    pub fn of_file(path: PathBuf) -> Self {
        Self {
            tokenizer: Some(path),
            eos: None,
        }
    }

    /// Returns the file that was named.
    pub fn file(&self) -> Option<&Path> {
        self.tokenizer.as_deref()
    }

    /// Returns the contents of the `tokenizer.json`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn bytes(&self) -> Result<Cow<'static, [u8]>, Failure> {
        let Some(path) = &self.tokenizer else {
            return Ok(Cow::Borrowed(DEMO));
        };
        let bytes = std::fs::read(path).map_err(|source| Failure::Read {
            path: path.clone(),
            source,
        })?;
        Ok(Cow::Owned(bytes))
    }

    /// Loads the tokenizer and its vocabulary.
    ///
    /// # Errors
    /// The file cannot be read, is not a `tokenizer.json`, or no token is known to end a sequence.
    pub fn load(&self) -> Result<(Tokenizer, Arc<Vocabulary>), Failure> {
        let eos = self.eos.as_deref();
        let bytes = self.bytes()?;
        let Some(path) = &self.tokenizer else {
            let config: Option<Value> = serde_json::from_slice(DEMO_CONFIG).ok();
            let end = config.as_ref().and_then(end_in_config);
            return read(&bytes, (eos, end), "the built-in tokenizer");
        };
        let config = read_text(&path.with_file_name("tokenizer_config.json"));
        let config: Option<Value> = config.ok().and_then(|text| serde_json::from_str(&text).ok());
        let end = config.as_ref().and_then(end_in_config);
        read(&bytes, (eos, end), &path.display().to_string())
    }
}

fn read(
    bytes: &[u8],
    (eos, in_config): (Option<&str>, Option<String>),
    name: &str,
) -> Result<(Tokenizer, Arc<Vocabulary>), Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::message(format!("{name}: {error}"));
    let tokenizer = Tokenizer::from_bytes(bytes).map_err(|error| wrong(&error))?;
    let end = match eos {
        Some(name) => tokenizer
            .special(name)
            .ok_or_else(|| wrong(&format!("there is no special token {name}")))?,
        None => usual_end(&tokenizer, in_config.as_deref())
            .ok_or_else(|| wrong(&"no token is known to end a sequence; name one with --eos"))?,
    };
    let vocabulary = tokenizer.vocabulary(&[end]).map_err(|error| wrong(&error))?;
    Ok((tokenizer, Arc::new(vocabulary)))
}

fn usual_end(tokenizer: &Tokenizer, in_config: Option<&str>) -> Option<u32> {
    let names = in_config.into_iter().chain(USUAL_ENDS);
    names.into_iter().find_map(|name| tokenizer.special(name))
}

/// Returns `eos_token` of a `tokenizer_config.json`: a name, or an object with the name as `content`.
fn end_in_config(config: &Value) -> Option<String> {
    let token = &config["eos_token"];
    Some(token.as_str().or_else(|| token["content"].as_str())?.to_owned())
}

/// Creates a vocabulary with one token for each byte, for questions about text that involve no tokenizer.
///
/// # Errors
/// Never in practice; the vocabulary is small and fixed.
pub fn bytes_only() -> Result<Arc<Vocabulary>, Failure> {
    bytes_and(&[])
}

/// Creates the vocabulary of [`bytes_only`] with the special tokens that a grammar names, so that its
/// texts can be judged. A grammar with mistakes adds none; compiling it reports the mistakes.
///
/// # Errors
/// Never in practice: each name becomes one token.
pub fn bytes_and_specials_of(grammar: &str, options: &GrammarOptions) -> Result<Arc<Vocabulary>, Failure> {
    let lowered = notation::lower(grammar, options, &schema::Options::default(), &Limits::default());
    let exprs = lowered.map_or_else(|_| Vec::new(), |cfg| cfg.exprs);
    let names: BTreeSet<&str> = exprs
        .iter()
        .filter_map(|expr| match expr {
            Expr::Special(name) => Some(&**name),
            _ => None,
        })
        .filter(|name| *name != END)
        .collect();
    bytes_and(&names.into_iter().collect::<Vec<_>>())
}

/// The special token that ends a text of bytes.
const END: &str = "<end>";

fn bytes_and(specials: &[&str]) -> Result<Arc<Vocabulary>, Failure> {
    let mut tokens: Vec<(TokenKind, Vec<u8>)> = (0..=255).map(|byte| (TokenKind::Text, vec![byte])).collect();
    for name in [END].iter().chain(specials) {
        tokens.push((TokenKind::Special, name.as_bytes().to_vec()));
    }
    let vocabulary = Vocabulary::new(&tokens, &[256]).map_err(|error| Failure::message(error.to_string()))?;
    Ok(Arc::new(vocabulary))
}
