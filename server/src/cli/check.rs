//! `lexiform check`: does this constraint compile, and which texts belong to it?
//!
//! ```text
//!   $ lexiform check --schema '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}' --text '{"a":x}'
//!   schema: compiles
//!   text 1: does not belong: at byte 5 (line 1, column 6) there is "x", expected '-', '0'–'9'
//! ```
//!
//! The exit code is 0 if the source compiles and all texts belong, 1 if some text does not, 3 if the source does not
//! compile, and 2, as for every command, if the call itself was wrong.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use lexiform::compile::{Options, compile};
use lexiform::error::{CompileError, Place};
use lexiform::{Grammar, schema};

use super::expected::Expected;
use super::source::{Constraint, Meaning};
use super::twice::{self, Twice};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::tokens;

/// The arguments of `lexiform check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 all belong, 1 some text does not belong, 2 wrong call, 3 the source does not compile."
)]
pub struct Args {
    #[command(flatten)]
    constraint: Constraint,
    #[command(flatten)]
    meaning: Meaning,
    /// Say of every assertion of a schema how it is enforced.
    #[arg(long, requires = "schema")]
    report: bool,
    /// Refuse a schema of which less is allowed than it says.
    #[arg(long, requires = "schema")]
    strict: bool,
    /// Print a form of the schema that the compiler works with.
    #[arg(long, value_enum, value_name = "FORM", requires = "schema")]
    show: Option<Form>,
    /// A text to check; may be given several times.
    #[arg(long, value_name = "TEXT")]
    text: Vec<String>,
    /// Files to check, each one text. A line break at the very end of a file is not part of its text.
    files: Vec<PathBuf>,
}

/// A form of a schema between its text and its grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Which values each part allows, as unions of plain conjunctions.
    NormalForm,
}

/// The source does not compile.
const DOES_NOT_COMPILE: u8 = 3;

/// Runs `lexiform check`.
///
/// # Errors
/// A file cannot be read.
pub fn run(args: Args) -> Outcome {
    let source = args.constraint.load()?;
    let texts = texts(&args)?;
    let mut options = args.meaning.options_for_judging();
    options.schema.strict = args.strict;
    let compiled = compile(source.source(), &tokens::bytes_only()?, &options);
    let shown = compiled.and_then(|compiled| Ok((compiled, about(&args, source.source().text(), &options)?)));
    let ((grammar, diagnostics), about) = match shown {
        Ok(shown) => shown,
        Err(error) => {
            println!("{}: does not compile", source.name());
            error.problems.iter().for_each(|problem| println!("  {problem}"));
            return Ok(ExitCode::from(DOES_NOT_COMPILE));
        }
    };
    println!("{}: compiles", source.name());
    print!("{about}");
    diagnostics
        .findings
        .iter()
        .for_each(|finding| println!("  note: {finding}"));
    let mut all_belong = true;
    for (name, text) in &texts {
        let verdict = match judge(&grammar, text) {
            Verdict::Belongs if source.is_schema() => {
                twice::find(text).map_or(Verdict::Belongs, Verdict::Twice)
            }
            verdict => verdict,
        };
        all_belong &= verdict == Verdict::Belongs;
        println!("{name}: {}", verdict.in_words(text));
    }
    Ok(if all_belong {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What was asked about the schema itself.
fn about(args: &Args, schema: &str, options: &Options) -> Result<String, CompileError> {
    let mut about = String::new();
    if args.show == Some(Form::NormalForm) {
        about.push_str(&schema::normal_form(schema, &options.schema, &options.limits)?);
    }
    if args.report {
        about.push_str(&schema::report(schema, &options.schema, &options.limits)?.to_string());
    }
    Ok(about)
}

/// The texts with what to call them.
fn texts(args: &Args) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let given = args.text.iter().enumerate();
    let mut texts: Vec<_> = given
        .map(|(index, text)| (format!("text {}", index + 1), text.clone().into_bytes()))
        .collect();
    for path in &args.files {
        let mut bytes = std::fs::read(path).map_err(|source| Failure::Read {
            path: path.clone(),
            source,
        })?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        texts.push((path.display().to_string(), bytes));
    }
    Ok(texts)
}

/// Whether a text belongs to a language, and if not, where it leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Belongs,
    /// The byte here is not one that could come.
    Leaves {
        offset: usize,
        expected: Expected,
    },
    /// All is well up to the end, but the text is not whole.
    EndsEarly {
        expected: Expected,
    },
    /// An object has a key twice, in two spellings.
    Twice(Twice),
}

fn judge(grammar: &Grammar, text: &[u8]) -> Verdict {
    let mut state = grammar.start();
    for (offset, byte) in text.iter().enumerate() {
        match grammar.step_bytes(state, &[*byte]) {
            Some(next) => state = next,
            None => {
                return Verdict::Leaves {
                    offset,
                    expected: Expected::after(grammar, state),
                };
            }
        }
    }
    if grammar.is_accepting(state) {
        return Verdict::Belongs;
    }
    Verdict::EndsEarly {
        expected: Expected::after(grammar, state),
    }
}

impl Verdict {
    fn in_words(&self, text: &[u8]) -> String {
        match self {
            Verdict::Belongs => "belongs".to_owned(),
            Verdict::Leaves { offset, expected } => {
                let found = String::from_utf8_lossy(&text[*offset..])
                    .chars()
                    .next()
                    .unwrap_or(' ');
                let (place, expected) = (place(text, *offset), expected.in_words());
                format!("does not belong: at {place} there is {found:?}, expected {expected}")
            }
            Verdict::Twice(Twice { key, offset }) => {
                let place = place(text, *offset);
                format!("does not belong: at {place} the key {key:?} comes again")
            }
            Verdict::EndsEarly { expected } => {
                let (place, expected) = (place(text, text.len()), expected.in_words());
                format!("does not belong: it ends too early, at {place}, expected {expected}")
            }
        }
    }
}

fn place(text: &[u8], offset: usize) -> String {
    let before = String::from_utf8_lossy(&text[..offset]);
    format!("byte {offset} ({})", Place::in_text(&before, before.len()))
}
