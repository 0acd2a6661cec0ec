//! Grammars of other projects in their own notations, with texts to accept and to reject.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lexiform::Grammar;
use lexiform::error::CompileError;
use lexiform::grammar::{GrammarOptions, Notation};
use lexiform::limits::Limits;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_automata::grammar::Cfg;
use lexiform_automata::mask::Tables;
use lexiform_syntax::notation::{gbnf, xgrammar};
use serde_json::Value;

type Lower = fn(&str, &Limits) -> Result<Cfg, CompileError>;

/// Compiles a grammar for a vocabulary of all single bytes.
pub(crate) fn machine(
    lower: impl Fn(&str, &Limits) -> Result<Cfg, CompileError>,
    text: &str,
) -> Result<Grammar, CompileError> {
    let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
    tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    let vocabulary = Vocabulary::new(&tokens, &[0]).expect("the vocabulary is well formed");
    let tables = Arc::new(Tables::new(Arc::new(vocabulary), 1 << 24));
    Grammar::new(&lower(text, &Limits::default())?, &tables, &Limits::default())
}

pub(crate) fn accepts(grammar: &Grammar, text: &str) -> bool {
    let end = grammar.step_bytes(grammar.start(), text.as_bytes());
    end.is_some_and(|state| grammar.is_accepting(state))
}

/// Returns a file or folder of the data, if it was fetched.
pub(crate) fn data(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(".data/grammars")
        .join(path);
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
    }
    path.exists().then_some(path)
}

#[test]
fn the_cases_of_llama_cpp_hold_as_gbnf_and_as_xgrammar() {
    let Some(path) = data("cases/llamacpp_gbnf.jsonl") else {
        return;
    };
    for row in std::fs::read_to_string(path).expect("a file").lines() {
        let row: Value = serde_json::from_str(row).expect("a row is JSON");
        let text = row["grammar"].as_str().expect("a grammar");
        // XGrammar has no `.` for any character.
        let readers: &[Lower] = match text.contains("...") {
            true => &[gbnf::lower],
            false => &[gbnf::lower, xgrammar::lower],
        };
        for lower in readers {
            let grammar = machine(*lower, text).unwrap_or_else(|error| panic!("{text}\n{error}"));
            for (field, expected) in [("accept", true), ("reject", false)] {
                for word in row[field].as_array().into_iter().flatten() {
                    let word = word.as_str().expect("a text");
                    assert_eq!(accepts(&grammar, word), expected, "{text}\non {word:?}");
                }
            }
        }
    }
}

#[test]
fn the_grammars_of_others_are_read_as_gbnf() {
    let Some(folder) = data("gbnf") else {
        return;
    };
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a grammar");
        if let Err(error) = machine(gbnf::lower, &text) {
            panic!("{}: {error}", path.display());
        }
    }
}

/// The grammars of `grammars/` in the notations of others: each has its texts, in the notation that its file
/// names and, if another one is not meant, in the one that is recognised.
#[test]
fn grammars_in_other_notations_have_their_texts() {
    let folders = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("grammars"));
    let mut found = 0;
    for folder in folders.expect("the folder of grammars").flatten() {
        for notation in Notation::all().filter(|notation| *notation != Notation::Ebnf) {
            let path = folder.path().join(format!("grammar.{notation}"));
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            found += 1;
            for options in [Some(notation), None] {
                let options = GrammarOptions {
                    notation: options,
                    ..GrammarOptions::default()
                };
                let lower = |text: &str, limits: &Limits| {
                    lexiform_syntax::notation::lower(text, &options, &Default::default(), limits)
                };
                let grammar = machine(lower, &text);
                let grammar = grammar.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                check_texts(&grammar, &folder.path());
            }
        }
    }
    assert!(found >= 5, "{found} grammars");
}

fn check_texts(grammar: &Grammar, folder: &Path) {
    for (file, belongs) in [("accept.txt", true), ("reject.txt", false)] {
        let texts = std::fs::read_to_string(folder.join(file)).expect("a list of texts");
        for line in texts.lines() {
            let text: String = serde_json::from_str(line).expect("a JSON string");
            assert_eq!(accepts(grammar, &text), belongs, "{}: {line}", folder.display());
        }
    }
}
