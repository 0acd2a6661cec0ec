//! `lexiform tokens`: shows how a tokenizer cuts texts.
//!
//! ```text
//!   $ lexiform tokens --text '{"age": 34}'
//!   text 1: 7 tokens
//!      92  "{"
//!     301  "\"age\":"
//! ```

use lexiform::vocab::{TokenKind, Tokenizer, Vocabulary};
use serde_json::{Value, json};

use crate::failure::{Code, EXIT_CODES, Failure, Outcome};
use crate::input::texts::{Text, Texts};
use crate::input::tokenizer::TokenizerArgs;
use crate::shown::output::{self, Output};
use crate::shown::paint::{bad, dim};

/// The arguments of `lexiform tokens`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    texts: Texts,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    #[command(flatten)]
    output: Output,
}

impl Args {
    /// Returns `true` if the answer is printed as JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }
}

/// Runs `lexiform tokens`.
///
/// # Errors
/// There is no text, or the tokenizer cannot be read.
pub fn run(args: Args) -> Outcome {
    let texts = args.texts.read();
    if texts.is_empty() {
        return Err(Failure::message(
            "name a text: --text TEXT, a FILE, or - for standard input",
        ));
    }
    let (tokenizer, vocabulary) = args.tokenizer.load()?;
    let (mut cut, mut failures) = (Vec::new(), Vec::new());
    for text in texts {
        match CutText::of(text, &tokenizer) {
            Ok(text) => cut.push(text),
            Err(failure) => failures.push(failure),
        }
    }
    let code = failures.iter().map(Failure::code).max().unwrap_or(Code::Fine);
    args.output.print(
        || {
            let texts: Vec<Value> = cut.iter().map(|text| text.json(&vocabulary)).collect();
            let errors: Vec<String> = failures.iter().map(Failure::to_string).collect();
            json!({"ok": code == Code::Fine, "exit": code as u8, "texts": texts, "errors": errors})
        },
        || cut.iter().map(|text| text.in_words(&vocabulary)).collect(),
        || cut.iter().map(CutText::bare).collect(),
    )?;
    for failure in &failures {
        output::err(&format!("{} {failure}\n", bad("error:")));
    }
    Ok(code)
}

/// A text cut into tokens.
struct CutText {
    name: String,
    tokens: Vec<u32>,
}

impl CutText {
    fn of(Text { name, bytes }: Text, tokenizer: &Tokenizer) -> Result<Self, Failure> {
        let text =
            String::from_utf8(bytes?).map_err(|_| Failure::message(format!("{name} is not UTF-8 text")))?;
        let tokens = tokenizer.encode(&text);
        let tokens = tokens.map_err(|error| Failure::Unable(format!("{name}: {error}")))?;
        Ok(Self { name, tokens })
    }

    fn in_words(&self, vocabulary: &Vocabulary) -> String {
        let count = self.tokens.len();
        let mut text = format!(
            "{}: {count} {}\n",
            self.name,
            if count == 1 { "token" } else { "tokens" }
        );
        for token in &self.tokens {
            text += &format!("{}  {}\n", dim(format!("{token:>8}")), quoted(vocabulary, *token));
        }
        text
    }

    fn json(&self, vocabulary: &Vocabulary) -> Value {
        let token = |it: &u32| json!({"id": it, "text": String::from_utf8_lossy(vocabulary.bytes(*it)), "bytes": vocabulary.bytes(*it).len()});
        let tokens: Vec<Value> = self.tokens.iter().map(token).collect();
        json!({"name": self.name, "count": self.tokens.len(), "tokens": tokens})
    }

    fn bare(&self) -> String {
        let ids: Vec<String> = self.tokens.iter().map(u32::to_string).collect();
        ids.join(" ") + "\n"
    }
}

/// Returns a token as a literal; a token that is not valid text by itself is shown in hexadecimal digits.
pub fn quoted(vocabulary: &Vocabulary, token: u32) -> String {
    let bytes = vocabulary.bytes(token);
    if vocabulary.kind(token) != TokenKind::Text {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    match str::from_utf8(bytes) {
        Ok(text) => format!("{text:?}"),
        Err(_) => bytes.iter().map(|it| format!("<{it:02x}>")).collect(),
    }
}
