//! The library's messages about invalid sources, in one table that can be read in one sitting, and the rules
//! of their wording.
//!
//! `tests/data/messages.txt` has one source on each line, after the word for its language, and the messages
//! below it: its problems or, if it compiles, its notes. With `GOLDEN=write` in the environment, the table is
//! written anew.

use std::path::PathBuf;
use std::sync::Arc;

use lexiform::error::Problem;
use lexiform::limits::Limits;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Options, Source, compile};
use lexiform_syntax::schema;

/// Words that make a reader stumble, and names that only our sources have.
const BANNED: &[&str] = &[
    "answer",
    "behind",
    "beside",
    "denial",
    "exclude one another",
    "hangs on",
    "is no regular",
    "is none",
    "leads nowhere",
    "none is",
    "nowhere",
    "out of order",
    "says of",
    "seen to",
    "so many",
    "tells",
    "told",
    "whoever",
];

fn table() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/messages.txt")
}

fn text() -> String {
    std::fs::read_to_string(table()).expect("the table of messages")
}

/// Returns the sources of the table, with the words for their languages.
fn sources(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let heads = text
        .lines()
        .filter(|line| !line.starts_with([' ', '#']) && !line.is_empty());
    heads.map(|line| line.split_once(' ').unwrap_or((line, "")))
}

/// Creates a vocabulary of all single bytes.
fn bytes() -> Arc<Vocabulary> {
    let eos = (TokenKind::Text, b"<eos>".to_vec());
    let tokens: Vec<_> = std::iter::once(eos)
        .chain((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])))
        .collect();
    Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"))
}

/// Returns limits that small sources reach.
fn small() -> Limits {
    Limits {
        source_bytes: 400,
        nesting: 8,
        exprs: 200,
        repeat: 50,
        regular_states: 400,
        rule_states: 2_000,
        fuel: 300,
        ..Limits::default()
    }
}

/// Returns the messages about a source.
fn said(language: &str, source: &str) -> Vec<Problem> {
    let (language, limits) = match language.strip_prefix("small-") {
        Some(language) => (language, small()),
        None => (language, Limits::default()),
    };
    let source = match language {
        "schema" => Source::JsonSchema(source),
        "regex" => Source::Regex(source),
        "ebnf" => Source::Ebnf(source),
        other => panic!("no language {other}"),
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    match compile(source, &bytes(), &options) {
        Ok((_, notes)) => notes.findings,
        Err(error) => error.problems,
    }
}

/// Returns the report's lines about the assertions of a schema.
fn reported(source: &str) -> Vec<String> {
    let report =
        schema::report(source, &schema::Options::default(), &Limits::default()).expect("it compiles");
    report.assertions.iter().map(ToString::to_string).collect()
}

fn lines(language: &str, source: &str) -> Vec<String> {
    match language {
        "report" => reported(source),
        _ => said(language, source).iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn every_message_is_as_recorded() {
    let recorded = text();
    let mut now = String::new();
    for line in recorded.lines().filter(|line| !line.starts_with(' ')) {
        now.push_str(line);
        now.push('\n');
        if let Some((language, source)) = sources(line).next() {
            for said in lines(language, source) {
                now.push_str(&format!("  {said}\n"));
            }
        }
    }
    if std::env::var("GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(table(), now).expect("the table can be written");
        return;
    }
    let changed = now.lines().zip(recorded.lines()).find(|(now, then)| now != then);
    assert_eq!(now, recorded, "the first change: {changed:?}");
}

#[test]
fn every_source_of_the_table_is_worth_a_word() {
    let text = text();
    for (language, source) in sources(&text) {
        assert!(!lines(language, source).is_empty(), "{language} {source}");
    }
}

#[test]
fn messages_keep_to_the_rules_of_wording() {
    let text = text();
    let mut faults = Vec::new();
    for (language, source) in sources(&text).filter(|(language, _)| *language != "report") {
        for problem in said(language, source) {
            let message = &problem.message;
            let first = message.chars().next().unwrap_or('A');
            if first.is_uppercase() || message.ends_with('.') {
                faults.push(format!("neither a capital nor a full stop: {message}"));
            }
            // Quoted parts are the source's own text.
            let unquoted: String = message.split(['`', '"']).step_by(2).collect();
            let unquoted = format!(" {unquoted} ");
            faults.extend(
                BANNED
                    .iter()
                    .filter(|word| unquoted.contains(&format!(" {word} ")))
                    .map(|word| format!("{word:?}: {message}")),
            );
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
