//! The languages of `grammars/` on files of other projects: what a corpus says of each file, against what
//! the grammar says. What differs is in `tests/data/ratchet/corpora.json`, each by its name.

use std::path::{Path, PathBuf};

use lexiform::Grammar;
use lexiform::grammar::{GrammarOptions, Notation};
use lexiform::limits::Limits;

use crate::notations::{accepts, data, machine};
use crate::ratchet::Ratchet;

/// Compiles a grammar of `grammars/`.
fn language(folder: &str, notation: Notation) -> Grammar {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("grammars/{folder}/grammar.{notation}"));
    let text = std::fs::read_to_string(&path).expect("the grammar is there");
    let options = GrammarOptions {
        notation: Some(notation),
        ..GrammarOptions::default()
    };
    let lower = |text: &str, limits: &Limits| {
        lexiform_syntax::notation::lower(text, &options, &Default::default(), limits)
    };
    machine(lower, &text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the files of a folder with this ending, in order of their names.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|it| it == ending))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{} has no file", folder.display());
    found
}

fn name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

/// Returns how a text that should belong is read: if it does not, with what stands where it goes wrong.
fn belongs(grammar: &Grammar, text: &[u8]) -> Result<(), String> {
    let mut state = grammar.start();
    for (at, byte) in text.iter().enumerate() {
        let next = grammar.try_step_bytes(state, &[*byte]);
        let Some(next) = next.map_err(|limit| limit.to_string())? else {
            let near = &text[at.saturating_sub(20)..text.len().min(at + 10)];
            let (before, after) = near.split_at(at.min(20));
            let [before, after] = [before, after].map(String::from_utf8_lossy);
            return Err(format!("rejected between {before:?} and {after:?}"));
        };
        state = next;
    }
    match grammar.is_accepting(state) {
        true => Ok(()),
        false => Err("rejected at its end".into()),
    }
}

/// Returns how a text that should not belong is read; if it does, that is for the reason that is given.
fn does_not_belong(grammar: &Grammar, text: &[u8], reason: &str) -> Result<(), String> {
    match belongs(grammar, text) {
        Ok(()) => Err(format!("accepted: {reason}")),
        Err(_) => Ok(()),
    }
}

/// Files that begin with `y_` are JSON, those with `n_` are not, and readers may differ on those with `i_`.
/// Each is read by a grammar of its own, because two that are nested 100,000 deep use up the bytes of theirs.
#[test]
fn the_grammar_of_json_holds_on_json_test_suite() {
    let Some(folder) = data("corpora/json_test_suite") else {
        return;
    };
    let mut ratchet = Ratchet::open("corpora.json", "json");
    for path in files(&folder, "json") {
        let grammar = language("json", Notation::Ebnf);
        let (name, text) = (name(&path), std::fs::read(&path).expect("a file"));
        match &name[..2] {
            "y_" => ratchet.note(&name, belongs(&grammar, &text)),
            "n_" => ratchet.note(&name, does_not_belong(&grammar, &text, "no document of JSON")),
            _ => {}
        }
    }
    ratchet.close();
}

#[test]
fn the_grammar_of_toml_holds_on_toml_test() {
    let Some(list) = data("corpora/toml_test/tests/files-toml-1.0.0") else {
        return;
    };
    let grammar = language("toml", Notation::Abnf);
    let mut ratchet = Ratchet::open("corpora.json", "toml");
    let names = std::fs::read_to_string(&list).expect("a list of files");
    for name in names.lines().filter(|name| name.ends_with(".toml")) {
        let text = std::fs::read(list.with_file_name(name)).expect("a file");
        let outcome = match name.starts_with("valid/") {
            true => belongs(&grammar, &text),
            false => {
                let reason = "what is defined twice, or was closed, takes a list of names to tell";
                does_not_belong(&grammar, &text, reason)
            }
        };
        ratchet.note(name, outcome);
    }
    ratchet.close();
}

#[test]
fn the_grammar_of_c_has_the_programs_of_c_testsuite() {
    let Some(folder) = data("corpora/c/tests/single-exec") else {
        return;
    };
    let grammar = language("c", Notation::Lark);
    let mut ratchet = Ratchet::open("corpora.json", "c");
    for path in files(&folder, "c") {
        let text = std::fs::read(&path).expect("a program");
        ratchet.note(&name(&path), belongs(&grammar, &text));
    }
    ratchet.close();
}

/// The statements of sqlglot's tests, of all dialects, and expressions, which are read as what a query
/// selects. Its files about types and about the columns of one dialect are left out.
#[test]
fn the_grammar_of_sql_has_the_statements_of_sqlglot() {
    let Some(folder) = data("corpora/sql/tests/fixtures") else {
        return;
    };
    let grammar = language("sql", Notation::Lark);
    let mut ratchet = Ratchet::open("corpora.json", "sql");
    for path in files(&folder, "sql") {
        note_statements(&grammar, &path, &mut ratchet);
    }
    for folder in ["optimizer", "optimizer/tpc-h", "optimizer/tpc-ds"].map(|it| folder.join(it)) {
        for path in files(&folder, "sql") {
            let name = name(&path);
            if !name.starts_with("annotate") && !name.starts_with("qualify") {
                note_statements(&grammar, &path, &mut ratchet);
            }
        }
    }
    ratchet.close();
}

fn note_statements(grammar: &Grammar, path: &Path, ratchet: &mut Ratchet) {
    let text = std::fs::read_to_string(path).expect("a file of statements");
    let found = match name(path) == "identity.sql" {
        true => (1..).zip(text.lines().map(str::to_owned)).collect::<Vec<_>>(),
        false => statements(&text),
    };
    for (line, statement) in found.into_iter().filter(|(_, text)| !text.is_empty()) {
        // An expression alone is what a query selects.
        let outcome = match accepts(grammar, &format!("SELECT {statement}")) {
            true => Ok(()),
            false => belongs(grammar, statement.as_bytes()),
        };
        ratchet.note(&format!("{}:{line:04}", name(path)), outcome);
    }
}

/// Splits a file into statements, each with the number of the line in which it begins. Lines that begin with
/// `#` say how sqlglot runs a test.
fn statements(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut line, mut first) = (1, None);
    let mut statement = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let before = &text[..text.len() - rest.len()];
        let begins_line = before.is_empty() || before.ends_with('\n');
        let (piece, after) = rest.split_at(piece(rest, begins_line));
        match piece {
            ";" => found.extend(first.take().map(|first| (first, std::mem::take(&mut statement)))),
            _ if piece.starts_with("--") || piece.starts_with('#') && piece.len() > 1 => statement.push('\n'),
            _ => {
                let is_blank = piece.starts_with("/*") || piece.trim().is_empty();
                first = first.or((!is_blank).then_some(line));
                statement.push_str(piece);
            }
        }
        line += piece.matches('\n').count();
        rest = after;
    }
    found.extend(first.map(|first| (first, statement)));
    found
}

/// Returns the length of the comment, the quoted text or the character with which a text begins.
fn piece(text: &str, begins_line: bool) -> usize {
    let until = |from: usize, end: &str| {
        let found = text[from..].find(end);
        found.map_or(text.len(), |at| from + at + end.len())
    };
    match text.chars().next() {
        Some('#') if begins_line => until(1, "\n"),
        Some('-') if text.starts_with("--") => until(2, "\n"),
        Some('/') if text.starts_with("/*") => until(2, "*/"),
        Some(quote @ ('"' | '\'' | '`')) => until(1, quote.encode_utf8(&mut [0; 4])),
        Some(other) => other.len_utf8(),
        None => 0,
    }
}
