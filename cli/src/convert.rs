//! `lexiform convert`: prints a grammar in another notation.
//!
//! ```text
//!   $ lexiform convert --to gbnf 'list = item, { ",", item } ; item = "a" | "b" ;'
//!   root ::= list
//!   list ::= item ("," item)*
//!   item ::= "a" | "b"
//! ```

use lexiform::error::CompileError;
use lexiform::grammar::{GrammarOptions, Notation, convert};
use lexiform::limits::Limits;
use lexiform_syntax::{notation, schema};
use serde_json::json;

use crate::failure::{Code, EXIT_CODES, Failure, Outcome};
use crate::input::source::{Loaded, notation_named};
use crate::shown::output::Output;
use crate::shown::problems;

/// The arguments of `lexiform convert`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    /// The grammar: a file, the grammar itself, `-` for standard input, or a folder with a grammar in it
    #[arg(value_name = "FILE|TEXT|-|DIR")]
    grammar: String,
    /// The notation to print: ebnf, gbnf, lark, llguidance, xgrammar, w3c, iso or abnf
    #[arg(long, value_name = "NOTATION", value_parser = notation_named)]
    to: Notation,
    /// The notation of the grammar; that of a file is known by its ending, and others are recognised
    #[arg(long, value_name = "NOTATION", value_parser = notation_named)]
    from: Option<Notation>,
    /// The rule with which texts begin, for grammars of lark, llguidance and pest
    #[arg(long, value_name = "RULE")]
    start: Option<String>,
    #[command(flatten)]
    output: Output,
}

impl Args {
    /// Returns `true` if the answer is printed as JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }
}

/// Runs `lexiform convert`.
///
/// # Errors
/// The grammar cannot be read, does not compile, or has parts that the notation does not have.
pub fn run(args: Args) -> Outcome {
    let source = Loaded::grammar(&args.grammar, args.from, "GRAMMAR")?;
    let options = GrammarOptions {
        notation: source.notation(),
        start: args.start,
        ..GrammarOptions::default()
    };
    let (schema, limits) = (schema::Options::default(), Limits::default());
    let compiled = notation::lower(source.text(), &options, &schema, &limits);
    compiled.map_err(|error| problems::failure(&source, &error))?;
    let printed = convert(source.text(), args.to, &options, &schema, &limits);
    let printed = printed.map_err(|error| unsaid(&source, args.to, &error))?;
    args.output.print(
        || json!({"ok": true, "exit": 0, "notation": args.to.name(), "grammar": printed}),
        || printed.clone(),
        || printed.clone(),
    )?;
    Ok(Code::Fine)
}

/// Returns the failure for a grammar that cannot be said in a notation.
fn unsaid(source: &Loaded, to: Notation, error: &CompileError) -> Failure {
    let text = format!(
        "the grammar cannot be written in `{to}`\n{}",
        problems::in_words(source, &error.problems)
    );
    Failure::No {
        text: text.trim_end().to_owned(),
        json: json!({"notation": to.name(), "problems": problems::as_json(source, &error.problems)}),
    }
}
