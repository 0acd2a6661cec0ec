//! The grammars of `grammars/` and those of other projects' suites, with the texts that they do and do not have.

#[path = "grammars/oracle.rs"]
mod oracle;
#[path = "regex_data/ratchet.rs"]
mod ratchet;
#[path = "regex_data/regular_run.rs"]
mod regular_run;

use std::path::{Path, PathBuf};

use lexiform::grammar::Cfg;
use lexiform::limits::Limits;
use lexiform::syntax::ebnf;
use ratchet::Ratchet;
use serde_json::Value;

fn at_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The recogniser recurses with the text, which the stack of a test thread does not allow for.
fn with_deep_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(256 << 20)
        .spawn(test)
        .expect("a thread");
    thread.join().expect("the test passes");
}

/// The folders of `grammars/`, with their grammars.
fn folders() -> Vec<(PathBuf, Cfg)> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(at_root("grammars")).expect("the folder of grammars") {
        let folder = entry.expect("an entry").path();
        if folder.is_dir() {
            let text = read(&folder.join("grammar.ebnf"));
            let cfg = ebnf::lower(&text, &Limits::default());
            let cfg = cfg.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            folders.push((folder, cfg));
        }
    }
    assert!(folders.len() >= 8, "there are {} grammars", folders.len());
    folders
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
        for (folder, cfg) in folders() {
            for (file, expected) in [("accept.txt", true), ("reject.txt", false)] {
                for text in texts(&folder, file) {
                    assert_eq!(
                        oracle::has(&cfg, &text),
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
    let cfg = ebnf::lower(grammar, &Limits::default());
    for (field, expected) in [("accept", true), ("reject", false)] {
        for text in row[field].as_array().into_iter().flatten() {
            let text = text.as_str().expect("a text");
            let outcome = match &cfg {
                Err(error) => Err(format!("refused: {error}")),
                Ok(cfg) if oracle::has(cfg, text) == expected => Ok(()),
                Ok(_) => Err(format!("should be {expected}")),
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
        let outcome = ebnf::lower(&read(&path), &Limits::default());
        ratchet.note(&name, outcome.map(drop).map_err(|error| error.to_string()));
    }
    ratchet.close();
}
