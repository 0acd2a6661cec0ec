//! `lexiform eval cases`: sources with texts to accept and to reject. A case is one text, and texts are whole.
//!
//! ```text
//!   {"regex": "a+b", "accept": ["ab", "aab"], "reject": ["b"]}
//! ```
//!
//! Two marks of the collections in use are understood. `FINAL_REJECT:` before a text says that an engine may notice
//! only at its end, which is no difference for a whole text. `spec_disagrees` lists texts whose label contradicts
//! the specification of the language; they are judged by the specification.

use std::path::PathBuf;

use clap::ValueEnum;
use lexiform::Grammar;
use lexiform::compile::{Compiler, Source};
use serde_json::{Value, json};

use super::panics::{caught, quietly};
use super::suite::belongs;
use super::verdict::{Counts, Verdict, parse_line, progress};
use crate::cli::failure::{Failure, read_text};
use crate::cli::source::{KeyOrder, Meaning, Whitespace};
use crate::cli::tokens;

/// The arguments of `lexiform eval cases`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The language of the sources.
    #[arg(long, value_enum)]
    kind: Kind,
    /// JSON lines with `regex`, `grammar` or `schema`, `accept`, `reject`, and perhaps `root`.
    #[arg(long, value_name = "FILE.jsonl")]
    data: PathBuf,
    /// Write the report to this file too.
    #[arg(long, value_name = "OUT")]
    pub(super) json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Regex,
    Lark,
    Gbnf,
    Ebnf,
    #[value(name = "json_schema")]
    JsonSchema,
}

/// Judges every text of the file.
///
/// # Errors
/// The file cannot be read.
pub fn report(args: &Args) -> Result<Value, Failure> {
    let text = read_text(&args.data)?;
    let lines: Vec<&str> = text.lines().collect();
    let compiler = Compiler::new(tokens::bytes_only()?);
    let mut counts = Counts::default();
    let bar = progress(lines.len());
    quietly(|| {
        for (index, line) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let entry = parse_line(&args.data, index + 1, line)?;
            if args.kind.is_of(&entry) {
                judge_entry(args.kind, &entry, &compiler, &mut counts);
            }
            bar.inc(1);
        }
        Ok::<(), Failure>(())
    })?;
    bar.finish_and_clear();
    Ok(json!({
        "cases": counts.all,
        "right": counts.right,
        "compile_errors": counts.does_not_compile,
        "rejected_wrongly": counts.refused,
        "accepted_wrongly": counts.let_through,
    }))
}

impl Kind {
    fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |it| it.get_name().to_owned())
    }

    fn field(self) -> &'static str {
        match self {
            Kind::Regex => "regex",
            Kind::Lark | Kind::Gbnf | Kind::Ebnf => "grammar",
            Kind::JsonSchema => "schema",
        }
    }

    /// A file may hold entries of several kinds, which then say theirs.
    fn is_of(self, entry: &Value) -> bool {
        entry.get(self.field()).is_some() && entry["kind"].as_str().is_none_or(|kind| kind == self.name())
    }
}

fn judge_entry(kind: Kind, entry: &Value, compiler: &Compiler, counts: &mut Counts) {
    let cases = cases_of(entry);
    let compiled = caught(|| compile_entry(kind, entry, compiler)).and_then(|it| it);
    for (text, accept) in cases {
        let verdict = match &compiled {
            Ok(grammar) => judge(grammar, &text, accept),
            Err(reason) => Verdict::DoesNotCompile(reason.clone()),
        };
        counts.add(&verdict, 1);
    }
}

fn compile_entry(kind: Kind, entry: &Value, compiler: &Compiler) -> Result<Grammar, String> {
    let field = &entry[kind.field()];
    // A schema is a JSON value, and may be given as its text.
    let text = field.as_str().map_or_else(|| field.to_string(), str::to_owned);
    let text = match entry["root"].as_str().filter(|root| *root != "root") {
        Some(root) => format!("root ::= {root}\n{text}"),
        None => text,
    };
    let source = match kind {
        Kind::Regex => Source::Regex(&text),
        Kind::JsonSchema => Source::JsonSchema(&text),
        Kind::Ebnf => Source::Ebnf(&text),
        Kind::Lark | Kind::Gbnf => return Err(format!("{} grammars are not supported", kind.name())),
    };
    // The texts of a schema are JSON in any spelling that its specification allows.
    let meaning = Meaning {
        key_order: KeyOrder::Any,
        whitespace: Whitespace::Flexible,
    };
    let compiled = compiler.compile(source, &meaning.options_for_judging());
    compiled
        .map(|(grammar, _)| grammar)
        .map_err(|error| error.to_string())
}

/// The texts of an entry, each with whether the specification accepts it.
fn cases_of(entry: &Value) -> Vec<(String, bool)> {
    let disagreements = strings(&entry["spec_disagrees"]);
    let mut cases = Vec::new();
    for (field, label) in [("accept", true), ("reject", false)] {
        for text in strings(&entry[field]) {
            let accept = label != disagreements.contains(&text);
            cases.push((
                text.strip_prefix("FINAL_REJECT:").unwrap_or(&text).to_owned(),
                accept,
            ));
        }
    }
    cases
}

/// A list of strings, or a single one.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

fn judge(grammar: &Grammar, text: &str, accept: bool) -> Verdict {
    match (caught(|| belongs(grammar, text)), accept) {
        (Ok(true), true) | (Ok(false), false) => Verdict::Right,
        (Ok(_), true) => Verdict::Refused("rejected wrongly".to_owned()),
        (Ok(_), false) => Verdict::LetThrough("accepted wrongly".to_owned()),
        (Err(panic), true) => Verdict::Refused(panic),
        (Err(panic), false) => Verdict::LetThrough(panic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_the_collections_are_understood() {
        let entry = json!({
            "accept": "one",
            "reject": ["two", "FINAL_REJECT:three", "four"],
            "spec_disagrees": ["four"],
        });
        let expected = [("one", true), ("two", false), ("three", false), ("four", true)];
        assert_eq!(
            cases_of(&entry),
            expected.map(|(text, accept)| (text.to_owned(), accept))
        );
    }

    #[test]
    fn entries_of_other_kinds_are_left_out() {
        assert!(Kind::Regex.is_of(&json!({"regex": "a"})));
        assert!(!Kind::Regex.is_of(&json!({"grammar": "a"})));
        assert!(!Kind::Ebnf.is_of(&json!({"grammar": "a", "kind": "lark"})));
        assert!(Kind::JsonSchema.is_of(&json!({"schema": true, "kind": "json_schema"})));
    }
}
