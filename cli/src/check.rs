//! `lexiform check`: does this constraint compile, and which texts belong to it?
//!
//! ```text
//!   $ lexiform check --schema '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}' --text '{"a":x}'
//!   schema: compiles
//!   text 1: does not belong: at byte 5 (line 1, column 6) there is 'x', expected '-' or '0'–'9'
//!       1 | {"a":x}
//!         |      ^
//! ```
//!
//! `check/about.rs` answers questions about a schema itself, `check/judged.rs` holds the verdicts on texts.

mod about;
mod judged;

use std::sync::Arc;

use clap::ArgGroup;
use lexiform::Grammar;
use lexiform::Options;
use lexiform::error::{CompileError, Problem};
use lexiform::vocab::Vocabulary;
use lexiform_syntax::schema;
use serde_json::{Value, json};

use crate::failure::{Code, EXIT_CODES, Outcome};
use crate::input::source::{Constraint, KINDS, Loaded, Meaning};
use crate::input::texts::Texts;
use crate::shown::output::Output;
use crate::shown::paint::{bad, good};
use crate::shown::problems;
use about::SchemaArgs;
use judged::{Judge, Judged};

/// The arguments of `lexiform check`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("constraint").args(KINDS).required(true), after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    constraint: Constraint,
    #[command(flatten)]
    meaning: Meaning,
    #[command(flatten)]
    schema: SchemaArgs,
    #[command(flatten)]
    texts: Texts,
    #[command(flatten)]
    output: Output,
}

impl Args {
    /// Returns `true` if the answer is printed as JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }
}

/// Runs `lexiform check`.
///
/// # Errors
/// The source cannot be read, or the answer cannot be printed.
pub fn run(args: Args) -> Outcome {
    let source = args.constraint.load()?;
    let texts = args.texts.read();
    let [mut options, mut written] = [args.meaning.options_for_judging(), args.meaning.options()];
    for options in [&mut options, &mut written] {
        options.schema.refuse = args.schema.refuse();
    }
    let any_order = || {
        let mut options = options.clone();
        options.schema.key_order = schema::KeyOrder::Any;
        let compiled = source
            .compile(&source.vocabulary_of_bytes().ok()?, &options)
            .ok()?;
        Some(compiled.0)
    };
    let vocabulary = source.vocabulary_of_bytes()?;
    let compiled = compiled(&args, &source, &vocabulary, (&written, &options));
    let judged = match &compiled {
        Ok(compiled) => Judged::all(
            &Judge {
                grammar: &compiled.grammar,
                source: &source,
                by: args.schema.by(),
                any_order: &any_order,
            },
            texts,
        ),
        Err(_) => Judged::unread(texts),
    };
    let code = match &compiled {
        Ok(_) => judged.code(),
        Err(_) => judged.code().max(Code::DoesNotCompile),
    };
    let answer = CheckAnswer {
        source: &source,
        compiled: &compiled,
        judged: &judged,
    };
    args.output
        .print(|| answer.json(code), || answer.text(), String::new)?;
    judged.complain();
    Ok(code)
}

/// A source that compiles, with the answers about its schema.
struct Compiled {
    grammar: Grammar,
    findings: Vec<Problem>,
    about: about::About,
}

/// Compiles a source. What a service would write decides whether it compiles; the grammar is that of all
/// texts that are judged, which takes more room.
fn compiled(
    args: &Args,
    source: &Loaded,
    vocabulary: &Arc<Vocabulary>,
    (written, options): (&Options, &Options),
) -> Result<Compiled, CompileError> {
    if source.is_schema() {
        source.compile(vocabulary, written)?;
    }
    let (grammar, diagnostics) = source.compile(vocabulary, options)?;
    let findings = diagnostics.findings;
    let about = args.schema.about(source, options)?;
    Ok(Compiled {
        grammar,
        findings,
        about,
    })
}

/// Everything that the check found.
struct CheckAnswer<'a> {
    source: &'a Loaded,
    compiled: &'a Result<Compiled, CompileError>,
    judged: &'a Judged,
}

impl CheckAnswer<'_> {
    fn text(&self) -> String {
        let name = self.source.name();
        match self.compiled {
            Err(error) => {
                let problems = problems::in_words(self.source, &error.problems);
                format!("{name}: {}\n{problems}", bad("does not compile"))
            }
            Ok(compiled) => {
                let notes = problems::notes(self.source, &compiled.findings);
                let about = compiled.about.text();
                format!(
                    "{name}: {}\n{about}{notes}{}",
                    good("compiles"),
                    self.judged.text()
                )
            }
        }
    }

    fn json(&self, code: Code) -> Value {
        let mut source = json!({"kind": self.source.name(), "file": self.source.file(), "compiles": self.compiled.is_ok()});
        match self.compiled {
            Err(error) => source["problems"] = json!(problems::as_json(self.source, &error.problems)),
            Ok(compiled) => {
                source["notes"] = json!(problems::as_json(self.source, &compiled.findings));
                compiled.about.add_to(&mut source);
            }
        }
        json!({"ok": code == Code::Fine, "exit": code as u8, "source": source, "texts": self.judged.json()})
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    /// Returns words of letters that hardly any two share.
    fn labels(count: u64, length: u64) -> Vec<String> {
        let letter = |at: u64| {
            let mixed = (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            char::from(b'a' + (mixed >> 40) as u8 % 26)
        };
        let label = |number: u64| (0..length).map(|at| letter(number * length + at)).collect();
        (0..count).map(label).collect()
    }

    /// Guards against a check that refuses what the service compiles: spellings that nobody asked about took
    /// the room.
    #[test]
    fn long_lists_compile_as_they_do_in_the_service() {
        let schema = json!({"enum": labels(1_200, 42)}).to_string();
        let args = Program::parse_from(["check", "--schema", &schema]).args;
        let source = args.constraint.load().expect("a schema");
        let vocabulary = source.vocabulary_of_bytes().expect("a vocabulary");
        let [judging, written] = [args.meaning.options_for_judging(), args.meaning.options()];
        let compiled = compiled(&args, &source, &vocabulary, (&written, &judging));
        assert!(compiled.is_ok(), "{:?}", compiled.err());
    }
}
