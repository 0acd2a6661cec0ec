//! `lexiform eval cases`: sources with texts to accept and to reject. A case is one whole text.
//!
//! ```text
//!   {"regex": "a+b", "accept": ["ab", "aab"], "reject": ["b"]}
//! ```
//!
//! A folder can also be a collection, in the layout of `grammars/`: a folder for each grammar, with
//! `grammar.ebnf`, `accept.txt` and `reject.txt`, or one such folder alone.
//!
//! Two marks of existing collections are understood. `FINAL_REJECT:` before a text means that an engine may
//! reject it only at its end, which makes no difference for a whole text. `spec_disagrees` lists texts whose
//! label contradicts the specification of the language; they are judged by the specification.

use std::path::Path;

use clap::ValueEnum;
use lexiform::Grammar;
use lexiform::grammar::Notation;
use lexiform::{Compiler, Source};
use serde_json::Value;

use super::panics::{caught, quietly};
use super::report::judged::{Judged, Only, Words};
use super::report::{Findings, Publishing};
use super::suite::belongs;
use super::verdict::{Data, Verdict, parse_line, progress};
use crate::failure::{EXIT_CODES, Failure, read_text};
use crate::input::folder::Folder;
use crate::input::source::{KeyOrder, Meaning};
use crate::input::tokenizer;

/// The arguments of `lexiform eval cases`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    data: Data,
    /// The language of the sources; without it, each line names its own
    #[arg(long, value_enum)]
    kind: Option<CaseKind>,
    #[command(flatten)]
    only: Only,
    #[command(flatten)]
    pub(super) publishing: Publishing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CaseKind {
    Regex,
    Lark,
    Gbnf,
    Ebnf,
    #[value(name = "json_schema")]
    JsonSchema,
}

/// Judges every text of the collection.
///
/// # Errors
/// A file cannot be read.
pub(super) fn report(args: &Args) -> Result<Findings, Failure> {
    let entries = match args.data.path() {
        folder if folder.is_dir() => of_folders(folder, args.kind)?,
        file => of_lines(file, args.kind)?,
    };
    let compiler = Compiler::new(tokenizer::bytes_only()?);
    let mut judged = Judged::new(&args.only);
    let bar = progress(entries.len());
    quietly(|| {
        for entry in &entries {
            entry.judge(&compiler, &args.only, &mut judged);
            bar.inc(1);
        }
    });
    bar.finish_and_clear();
    let words = Words {
        kind: "cases",
        title: "Grammars with texts to accept and to reject".to_owned(),
        table: "Texts by source",
        group: "source",
        cases: "texts",
        texts: "texts",
        wrong: ["rejected_wrongly", "accepted_wrongly"],
    };
    judged.findings(args.data.path(), words)
}

/// A source with its texts.
struct CaseEntry {
    /// The place of the source in the collection.
    name: String,
    kind: CaseKind,
    /// The notation of a grammar.
    notation: Option<Notation>,
    source: String,
    /// The texts, each with its name and whether the specification accepts it.
    texts: Vec<(String, String, bool)>,
}

fn of_lines(file: &Path, kind: Option<CaseKind>) -> Result<Vec<CaseEntry>, Failure> {
    let text = read_text(file)?;
    let name = file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut entries = Vec::new();
    for (index, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let entry = parse_line(file, index + 1, line)?;
        let own = || {
            let own = CaseKind::ALL.into_iter().find(|kind| kind.is_of(&entry));
            let place = format!("{}, line {}", file.display(), index + 1);
            own.ok_or_else(|| {
                Failure::message(format!(
                    "{place}: neither a regex, nor a grammar or schema of a known kind"
                ))
            })
        };
        let kind = match kind {
            Some(kind) if kind.is_of(&entry) => kind,
            Some(_) => continue,
            None => own()?,
        };
        let texts = cases_of(&entry)
            .into_iter()
            .map(|(text, accept)| (format!(" {text:?}"), text, accept));
        entries.push(CaseEntry {
            name: format!("{name}:{}", index + 1),
            kind,
            notation: kind.notation(),
            source: source_of(kind, &entry),
            texts: texts.collect(),
        });
    }
    Ok(entries)
}

fn of_folders(place: &Path, kind: Option<CaseKind>) -> Result<Vec<CaseEntry>, Failure> {
    if kind.is_some_and(|kind| kind != CaseKind::Ebnf) {
        let message = "the grammars of folders name their notation; leave out --kind";
        return Err(Failure::message(message));
    }
    let folders = Folder::all(place)?.into_iter().map(|path| {
        let folder = Folder::read(&path)?;
        let notation = folder.notation();
        let texts = folder
            .cases
            .into_iter()
            .map(|case| (format!("/{}", case.name), case.text, case.accept));
        Ok(CaseEntry {
            name: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            kind: CaseKind::Ebnf,
            notation,
            source: folder.source,
            texts: texts.collect(),
        })
    });
    folders.collect()
}

impl CaseKind {
    /// A grammar that does not say its kind is EBNF.
    const ALL: [CaseKind; 5] = [
        CaseKind::Regex,
        CaseKind::Ebnf,
        CaseKind::Lark,
        CaseKind::Gbnf,
        CaseKind::JsonSchema,
    ];

    /// Returns the notation of a grammar.
    fn notation(self) -> Option<Notation> {
        match self {
            CaseKind::Ebnf => Some(Notation::Ebnf),
            // The cases of other engines are in the dialect that has more.
            CaseKind::Lark => Some(Notation::Llguidance),
            CaseKind::Gbnf => Some(Notation::Gbnf),
            CaseKind::Regex | CaseKind::JsonSchema => None,
        }
    }

    fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |it| it.get_name().to_owned())
    }

    fn field(self) -> &'static str {
        match self {
            CaseKind::Regex => "regex",
            CaseKind::Lark | CaseKind::Gbnf | CaseKind::Ebnf => "grammar",
            CaseKind::JsonSchema => "schema",
        }
    }

    /// Returns `true` if an entry is of this kind. A file may hold entries of several kinds, which then name
    /// theirs.
    fn is_of(self, entry: &Value) -> bool {
        entry.get(self.field()).is_some() && entry["kind"].as_str().is_none_or(|kind| kind == self.name())
    }
}

impl CaseEntry {
    /// Judges the texts that were asked for.
    fn judge(&self, compiler: &Compiler, only: &Only, judged: &mut Judged<'_>) {
        let name = |name: &str| format!("{}{name}", self.name);
        if !self.texts.iter().any(|(text, ..)| only.has(&name(text))) {
            return;
        }
        let compiled = caught(|| self.compile(compiler)).and_then(|it| it);
        for (place, text, accept) in &self.texts {
            judged.judge(&self.name, name(place), || match &compiled {
                Ok(grammar) => judge(grammar, text, *accept),
                Err(reason) => Verdict::DoesNotCompile(reason.clone()),
            });
        }
    }

    fn compile(&self, compiler: &Compiler) -> Result<Grammar, String> {
        let source = match self.kind {
            CaseKind::Regex => Source::Regex(&self.source),
            CaseKind::JsonSchema => Source::JsonSchema(&self.source),
            CaseKind::Ebnf | CaseKind::Lark | CaseKind::Gbnf => Source::Grammar(&self.source),
        };
        // The texts of a schema are JSON in any spelling that the specification allows.
        let meaning = Meaning {
            key_order: KeyOrder::Any,
            ..Meaning::default()
        };
        let mut options = meaning.options_for_judging();
        options.grammar.notation = self.notation;
        let compiled = match source {
            Source::Grammar(_) => {
                let vocabulary = tokenizer::bytes_and_specials_of(&self.source, &options.grammar);
                let vocabulary = vocabulary.map_err(|failure| failure.to_string())?;
                Compiler::new(vocabulary).compile(source, &options)
            }
            _ => compiler.compile(source, &options),
        };
        compiled
            .map(|(grammar, _)| grammar)
            .map_err(|error| error.to_string())
    }
}

/// Returns the text of the source. A schema is a JSON value, and may also be given as text.
fn source_of(kind: CaseKind, entry: &Value) -> String {
    let field = &entry[kind.field()];
    let text = field.as_str().map_or_else(|| field.to_string(), str::to_owned);
    match entry["root"].as_str().filter(|root| *root != "root") {
        Some(root) => format!("root ::= {root}\n{text}"),
        None => text,
    }
}

/// Returns the texts of an entry, each with whether the specification accepts it.
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

/// Returns a list of strings, or a single string as a list.
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
        (Ok(_), true) => Verdict::Refused(String::new()),
        (Ok(_), false) => Verdict::LetThrough(String::new()),
        (Err(panic), true) => Verdict::Refused(panic),
        (Err(panic), false) => Verdict::LetThrough(panic),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        assert!(CaseKind::Regex.is_of(&json!({"regex": "a"})));
        assert!(!CaseKind::Regex.is_of(&json!({"grammar": "a"})));
        assert!(!CaseKind::Ebnf.is_of(&json!({"grammar": "a", "kind": "lark"})));
        assert!(CaseKind::JsonSchema.is_of(&json!({"schema": true, "kind": "json_schema"})));
    }
}
