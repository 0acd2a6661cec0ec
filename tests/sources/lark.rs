//! Grammars for the lark parser and in llguidance's dialect: cases of other engines' tests, whole grammars, and
//! cases of our own.

use std::sync::Arc;

use lexiform::error::CompileError;
use lexiform::grammar::{GrammarOptions, Notation};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Grammar, Options, Source};
use serde_json::Value;

use crate::grammars::{at_root, with_deep_stack};
use crate::ratchet::Ratchet;

/// Every byte as a token, and some special tokens.
fn compiler() -> Compiler {
    let bytes = (0..=255).map(|byte| (TokenKind::Text, vec![byte]));
    let special = ["<end>", "<|tool|>"].map(|name| (TokenKind::Special, name.as_bytes().to_vec()));
    // Some tests of other engines name tokens with large numbers.
    let filler = (0..5_000).map(|_| (TokenKind::Unused, Vec::new()));
    let tokens: Vec<_> = bytes.chain(special).chain(filler).collect();
    Compiler::new(Arc::new(Vocabulary::new(&tokens, &[256]).expect("a vocabulary")))
}

fn compile(
    compiler: &Compiler,
    text: &str,
    notation: Notation,
    start: Option<&str>,
) -> Result<Grammar, CompileError> {
    let options = Options {
        grammar: GrammarOptions {
            notation: Some(notation),
            start: start.map(str::to_owned),
            ..GrammarOptions::default()
        },
        ..Options::default()
    };
    compiler
        .compile(Source::Grammar(text), &options)
        .map(|(grammar, _)| grammar)
}

fn accepts(grammar: &Grammar, text: &str) -> bool {
    let state = grammar.step_bytes(grammar.start(), text.as_bytes());
    state.is_some_and(|state| grammar.is_accepting(state))
}

fn texts<'a>(row: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    row[field]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Checks one case: texts that belong, texts that do not, or a grammar that is refused.
fn outcome(compiler: &Compiler, row: &Value) -> Result<(), String> {
    let grammar = row["grammar"].as_str().expect("a grammar");
    let compiled = compile(compiler, grammar, Notation::Llguidance, None);
    let grammar = match (compiled, row["error"].as_str()) {
        (Err(error), Some(_)) if !error.problems.is_empty() => return Ok(()),
        (Ok(_), Some(theirs)) => return Err(format!("compiles; theirs: {theirs}")),
        (Err(error), _) => return Err(format!("refused: {error}")),
        (Ok(grammar), None) => grammar,
    };
    for text in texts(row, "accept") {
        if !accepts(&grammar, text) {
            return Err(format!("does not accept {text:?}"));
        }
    }
    for text in texts(row, "reject") {
        let text = text.strip_prefix("FINAL_REJECT:").unwrap_or(text);
        if accepts(&grammar, text) {
            return Err(format!("accepts {text:?}"));
        }
    }
    Ok(())
}

fn run_cases(file: &str, section: &'static str) {
    let path = at_root(&format!(".data/grammars/cases/{file}"));
    let Ok(rows) = std::fs::read_to_string(&path) else {
        println!("skipped: {section}: .data/grammars/cases/{file} is not there");
        return;
    };
    with_deep_stack(move || {
        let compiler = compiler();
        let mut ratchet = Ratchet::open("lark.json", section);
        for (line, row) in rows.lines().enumerate() {
            let row: Value = serde_json::from_str(row).expect("a row is JSON");
            if row["kind"] != "json_schema" {
                let text = row["grammar"].as_str().expect("a grammar");
                let shown: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let shown: String = shown.chars().take(90).collect();
                ratchet.note(&format!("{}: {shown}", line + 1), outcome(&compiler, &row));
            }
        }
        ratchet.close();
    });
}

#[test]
fn lark_cases_of_xgrammar() {
    run_cases("xgrammar_lark.jsonl", "xgrammar_lark");
}

#[test]
fn lark_cases_of_llguidance() {
    run_cases("llguidance.jsonl", "llguidance");
}

/// The starts of whole grammars that have no rule `start`.
const STARTS: [(&str, &str); 6] = [
    ("lark_common", "NUMBER"),
    ("outlines_common", "NUMBER"),
    ("lark_unicode", "UNICODE_LETTER"),
    ("lark_python", "file_input"),
    ("lark_python2", "file_input"),
    ("syncode_python", "file_input"),
];

#[test]
fn lark_grammars_of_others_are_read() {
    let folder = at_root(".data/grammars/lark");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: lark_grammars_of_others_are_read: .data/grammars/lark is not there");
        return;
    };
    let entries: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    with_deep_stack(move || {
        let compiler = compiler();
        let mut ratchet = Ratchet::open("lark.json", "grammars");
        for path in entries {
            let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
            let text = std::fs::read_to_string(&path).expect("a grammar");
            let start = STARTS.iter().find(|(of, _)| *of == name).map(|(_, start)| *start);
            let compiled = compile(&compiler, &text, Notation::Lark, start);
            ratchet.note(name, compiled.map(drop).map_err(|error| error.to_string()));
        }
        ratchet.close();
    });
}
