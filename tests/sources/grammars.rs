//! The grammars of `grammars/` and of other projects' suites, with texts to accept and to reject.

mod oracle;

use crate::ratchet;
use std::path::{Path, PathBuf};

use std::sync::Arc;

use lexiform::Grammar;
use lexiform::limits::Limits;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_automata::grammar::{Cfg, Expr};
use lexiform_automata::mask::Tables;
use lexiform_syntax::notation::ebnf;
use ratchet::Ratchet;
use serde_json::Value;

pub(crate) fn at_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The recogniser recurses with the text, which the stack of a test thread does not allow for.
pub(crate) fn with_deep_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(256 << 20)
        .spawn(test)
        .expect("a thread");
    thread.join().expect("the test passes");
}

/// A grammar as written, for the recogniser, and as compiled for the machine.
struct Both {
    written: Cfg,
    lowered: Cfg,
}

fn both(text: &str) -> Result<Both, String> {
    let limits = Limits::default();
    let written = ebnf::as_written(text, &limits).map_err(|error| error.to_string())?;
    let lowered = ebnf::lower(text, &limits).map_err(|error| error.to_string())?;
    Ok(Both { written, lowered })
}

/// Returns the folders of `grammars/` with grammars in EBNF; the others are those of `notations.rs`.
fn folders() -> Vec<(PathBuf, Both)> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(at_root("grammars")).expect("the folder of grammars") {
        let folder = entry.expect("an entry").path();
        if folder.join("grammar.ebnf").is_file() {
            let text = read(&folder.join("grammar.ebnf"));
            let both = both(&text).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            folders.push((folder, both));
        }
    }
    assert!(folders.len() >= 8, "there are {} grammars", folders.len());
    folders
}

/// Compiles the machine of a grammar over all single bytes, a few longer tokens, and the special tokens that
/// it names.
fn machine(cfg: &Cfg) -> Result<Grammar, String> {
    let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
    tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    let longer = [
        "  ", "\n\n", "\":", "\"}", "],[", "ab", "aa", "xx", "())", "://", "true", "1.5", "ß", "よう",
    ];
    tokens.extend(longer.map(|token| (TokenKind::Text, token.as_bytes().to_vec())));
    for expr in &cfg.exprs {
        if let Expr::Special(name) = expr {
            tokens.push((TokenKind::Special, name.as_bytes().to_vec()));
        }
    }
    let vocabulary = Vocabulary::new(&tokens, &[0]).expect("the vocabulary is well formed");
    let tables = Arc::new(Tables::new(Arc::new(vocabulary), 1 << 24));
    Grammar::new(cfg, &tables, &Limits::default()).map_err(|error| error.to_string())
}

fn accepts(grammar: &Grammar, text: &str) -> bool {
    let end = grammar.step_bytes(grammar.start(), text.as_bytes());
    end.is_some_and(|state| grammar.is_accepting(state))
}

/// Returns texts near this one: a character left out, doubled, or replaced by its neighbour.
fn neighbours(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut near = Vec::new();
    for at in 0..characters.len() {
        let (before, behind) = (&characters[..at], &characters[at + 1..]);
        near.push(before.iter().chain(behind).collect());
        near.push(
            before
                .iter()
                .chain([&characters[at], &characters[at]])
                .chain(behind)
                .collect(),
        );
        if let Some((next, behind)) = behind.split_first() {
            near.push(
                before
                    .iter()
                    .chain([next, &characters[at]])
                    .chain(behind)
                    .collect(),
            );
        }
    }
    near
}

fn texts(folder: &Path, file: &str) -> Vec<String> {
    let texts = read(&folder.join(file));
    let texts: Vec<String> = texts
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON string"))
        .collect();
    assert!(!texts.is_empty(), "{}: {file} is empty", folder.display());
    texts
}

#[test]
fn every_grammar_has_the_texts_it_should() {
    with_deep_stack(|| {
        for (folder, both) in folders() {
            for (file, expected) in [("accept.txt", true), ("reject.txt", false)] {
                for text in texts(&folder, file) {
                    assert_eq!(
                        oracle::has(&both.written, &text),
                        expected,
                        "{}: {text:?}",
                        folder.display()
                    );
                }
            }
        }
    });
}

#[test]
fn the_machine_has_the_same_texts_as_the_recogniser() {
    with_deep_stack(|| {
        for (folder, both) in folders() {
            let grammar =
                machine(&both.lowered).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            for (file, expected) in [("accept.txt", true), ("reject.txt", false)] {
                for text in texts(&folder, file) {
                    assert_eq!(
                        accepts(&grammar, &text),
                        expected,
                        "{}: {text:?}",
                        folder.display()
                    );
                    for near in neighbours(&text).iter().step_by(3) {
                        let expected = oracle::has(&both.written, near);
                        assert_eq!(
                            accepts(&grammar, near),
                            expected,
                            "{}: {near:?}",
                            folder.display()
                        );
                    }
                }
            }
        }
    });
}

#[test]
fn masks_agree_with_steps_along_every_text() {
    for (folder, both) in folders() {
        let grammar = machine(&both.lowered).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for text in texts(&folder, "accept.txt") {
            let mut state = grammar.start();
            for (at, byte) in text.bytes().enumerate() {
                let mask = grammar.mask(state);
                for token in 0..grammar.vocabulary().len() as u32 {
                    let allowed = grammar.allows(state, token);
                    assert_eq!(
                        mask.contains(token),
                        allowed,
                        "{}: {text:?} at {at}",
                        folder.display()
                    );
                }
                state = grammar
                    .step_bytes(state, &[byte])
                    .expect("the text is of the language");
            }
        }
    }
}

/// Masks, forced texts and ends must not depend on whether regular parts are terminals or rules.
#[test]
fn masks_are_the_same_as_of_the_rules_as_they_are_written() {
    for (folder, both) in folders() {
        let of = |cfg| machine(cfg).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let (lowered, written) = (of(&both.lowered), of(&both.written));
        for text in texts(&folder, "accept.txt") {
            let mut states = (lowered.start(), written.start());
            for (at, byte) in text.bytes().enumerate() {
                let place = || format!("{}: {text:?} at {at}", folder.display());
                assert_eq!(lowered.mask(states.0), written.mask(states.1), "{}", place());
                assert_eq!(lowered.forced(states.0), written.forced(states.1), "{}", place());
                let step =
                    |grammar: &Grammar, state| grammar.step_bytes(state, &[byte]).expect("of the language");
                states = (step(&lowered, states.0), step(&written, states.1));
            }
            assert!(lowered.is_accepting(states.0) && written.is_accepting(states.1));
        }
    }
}

#[test]
fn gbnf_cases_of_llama_cpp() {
    let path = at_root(".data/grammars/cases/llamacpp_gbnf.jsonl");
    let Ok(rows) = std::fs::read_to_string(&path) else {
        println!("skipped: gbnf_cases_of_llama_cpp: .data/grammars/cases/llamacpp_gbnf.jsonl is not there");
        return;
    };
    with_deep_stack(move || {
        let mut ratchet = Ratchet::open("ebnf.json", "llamacpp_gbnf");
        for row in rows.lines() {
            gbnf_case(&serde_json::from_str(row).expect("a row is JSON"), &mut ratchet);
        }
        ratchet.close();
    });
}

fn gbnf_case(row: &Value, ratchet: &mut Ratchet) {
    let grammar = row["grammar"].as_str().expect("a grammar");
    let cfg = both(grammar).and_then(|both| Ok((machine(&both.lowered)?, both.written)));
    for (field, expected) in [("accept", true), ("reject", false)] {
        for text in row[field].as_array().into_iter().flatten() {
            let text = text.as_str().expect("a text");
            let outcome = match &cfg {
                Err(error) => Err(format!("refused: {error}")),
                Ok((grammar, _)) if accepts(grammar, text) != expected => {
                    Err(format!("the machine should say {expected}"))
                }
                Ok((_, cfg)) if oracle::has(cfg, text) != expected => Err(format!("should be {expected}")),
                Ok(_) => Ok(()),
            };
            ratchet.note(&format!("{} on {text}", row["desc"]), outcome);
        }
    }
}

#[test]
fn gbnf_grammars_of_others_are_read() {
    let folder = at_root(".data/grammars/gbnf");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: gbnf_grammars_of_others_are_read: .data/grammars/gbnf is not there");
        return;
    };
    let mut ratchet = Ratchet::open("ebnf.json", "gbnf_grammars");
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .expect("a name")
            .to_owned();
        let both = both(&read(&path));
        ratchet.note(&name, both.and_then(|both| machine(&both.lowered)).map(drop));
    }
    ratchet.close();
}
