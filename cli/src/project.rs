//! `lexiform project` and `lexiform lint`: schemas as providers and engines take them.
//!
//! ```text
//!   $ lexiform project --profile openai-strict '{"type":"object","properties":{"age":{"type":"integer"}}}'
//!   {"type":"object","properties":{"age":{"type":["integer","null"]}},"required":["age"],"additionalProperties":false}
//!   schema: equal, proven                                          (on standard error)
//!     #: properties that may be absent are always there, as null where they are absent
//!   $ lexiform project --profile openai-strict --restore '{"age": null}' person.json
//!   {}
//! ```
//!
//! `document` finds the schemas of a list of tools or an OpenAPI document, `judged` projects one of them,
//! and `lint` reports on all of them for several targets.

mod document;
mod judged;
pub mod lint;

use std::path::Path;

use lexiform::error::CompileError;
use lexiform::project::Profile;
use serde_json::{Value, json};

use crate::failure::{Code, EXIT_CODES, Failure, Outcome, read_text};
use crate::input::stdin;
use crate::shown::output::{self, Output};
use crate::shown::paint::bad;
pub use document::{Document, Named};
use judged::Side;
pub use judged::{Judged, Judging};

/// The arguments of `lexiform project`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// The target: openai-strict, anthropic, gemini, llama.cpp, xgrammar, outlines, or a file with a profile
    #[arg(long, short, value_name = "NAME|FILE")]
    profile: String,
    #[command(flatten)]
    side: Side,
    /// Restore the value that an answer of the target stands for, in place of printing the schema: the
    /// answer, a file, or `-` for standard input
    #[arg(long, value_name = "TEXT|FILE|-")]
    restore: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// The document with the schemas.
#[derive(Clone, Debug, clap::Args)]
pub struct Input {
    /// A schema, a list of tools, the answer of an MCP server to tools/list, or an OpenAPI document: a
    /// file, the text itself, or `-` for standard input
    #[arg(value_name = "FILE|TEXT|-")]
    document: String,
}

impl Args {
    /// Returns `true` if the answer is printed as JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }
}

/// Runs `lexiform project`.
///
/// # Errors
/// The document or the profile cannot be read, or a schema cannot be projected.
pub fn run(args: Args) -> Outcome {
    let mut document = args.input.load()?;
    let profile = profile(&args.profile)?;
    let judging = Judging::from(args.side);
    let judged: Vec<Judged> = document
        .schemas()
        .into_iter()
        .flat_map(|named| judging.judge(&named, std::slice::from_ref(&profile)))
        .collect();
    if let Some(failed) = judged.iter().find(|one| one.projection.is_err()) {
        return Err(failed.failure(&profile));
    }
    if let Some(answer) = &args.restore {
        return restored(&judged, answer, args.output);
    }
    for one in &judged {
        if let Ok(projection) = &one.projection {
            document.replace(&one.named, projection.schema().clone());
        }
    }
    let code = judged.iter().map(Judged::code).max().unwrap_or(Code::Fine);
    let written = || format!("{}\n", document.value());
    let told = || {
        let schemas: Vec<Value> = judged.iter().map(|one| one.json(&profile)).collect();
        json!({"ok": code == Code::Fine, "exit": code as u8, "profile": profile.name, "document": document.value(), "schemas": schemas})
    };
    args.output.print(told, written, written)?;
    if !args.output.json && !args.output.quiet {
        judged.iter().for_each(|one| output::err(&one.in_words()));
    }
    Ok(code)
}

/// Restores an answer to the only schema, validates it, and prints it.
fn restored(judged: &[Judged], answer: &str, output: Output) -> Outcome {
    let [one] = judged else {
        return Err(Failure::message("--restore takes a document with one schema"));
    };
    let text = text_of(answer, "--restore")?;
    let answer: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::message(format!("the answer is no JSON: {error}")))?;
    let value = one.restore(answer)?;
    let problem = one.problem(&value);
    let code = if problem.is_none() { Code::Fine } else { Code::No };
    let written = || format!("{value}\n");
    output.print(
        || json!({"ok": problem.is_none(), "exit": code as u8, "value": value, "problem": problem}),
        written,
        written,
    )?;
    if let Some(problem) = problem.filter(|_| !output.json && !output.quiet) {
        output::err(&format!(
            "{} the schema does not allow this value: {problem}\n",
            bad("error:")
        ));
    }
    Ok(code)
}

impl Input {
    /// Reads the document.
    ///
    /// # Errors
    /// It cannot be read, or is no JSON, or has no schemas.
    fn load(&self) -> Result<Document, Failure> {
        let text = text_of(&self.document, "FILE")?;
        let value = serde_json::from_str(&text)
            .map_err(|error| Failure::message(format!("the document is no JSON: {error}")))?;
        let document = Document::new(value);
        match document.schemas().is_empty() {
            true => Err(Failure::message(
                "the document has no tool or operation with a schema",
            )),
            false => Ok(document),
        }
    }
}

/// Returns a text that was given, or that of the file that was named.
fn text_of(given: &str, flag: &'static str) -> Result<String, Failure> {
    match given {
        stdin::DASH => {
            let bytes = stdin::bytes(flag)?;
            String::from_utf8(bytes).map_err(|_| Failure::message("standard input is not UTF-8 text"))
        }
        text if text.trim_start().starts_with(['{', '[', '"']) => Ok(text.to_owned()),
        text if matches!(text.trim(), "true" | "false" | "null") => Ok(text.to_owned()),
        file => read_text(Path::new(file)),
    }
}

/// Returns a profile of the library, or that of a file.
///
/// # Errors
/// There is no such profile and no such file, or the file is no profile.
pub fn profile(name: &str) -> Result<Profile, Failure> {
    if let Some(known) = Profile::named(name) {
        return Ok(known);
    }
    let path = Path::new(name);
    if !path.exists() {
        let known: Vec<&str> = Profile::names().collect();
        let text = format!(
            "there is no profile {name:?}; there are {}, and files with a profile",
            known.join(", ")
        );
        return Err(Failure::message(text));
    }
    let problem = |error: CompileError| Failure::message(format!("{name}: {error}"));
    Profile::read(&read_text(path)?).map_err(problem)
}
