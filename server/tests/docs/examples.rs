//! Runs the examples of the docs and of the README.
//!
//! ```text
//!   sh, then json      a script, often with curl; an answer has at least what the page shows of it
//!   console            commands after `$ `, gone on after `> `, each with its output
//!   sh,norun           not run: it would build everything, or serve for ever
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::blocks::{Block, blocks, pages, read, root};
use crate::pattern::{matches, missing};
use crate::service::Service;

/// The commands of a console block, with the outputs that are shown.
fn commands(block: &Block) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in block.text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push((command.to_owned(), String::new()));
            continue;
        }
        let last = found.last_mut();
        let (command, output) =
            last.unwrap_or_else(|| panic!("line {}: a console block begins with a command", block.line));
        match line.strip_prefix("> ") {
            Some(more) => *command = format!("{command}\n{more}"),
            None => *output = format!("{output}{line}\n"),
        }
    }
    found
}

/// Runs the blocks of a page in order; what is not as it is shown.
fn faults(page: &Path, service: &Service, runs: impl Fn(&Block) -> bool) -> Vec<String> {
    let name = page.file_name().expect("a name").to_string_lossy().into_owned();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("docs-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the examples");
    std::fs::copy(
        root().join("models/demo/tokenizer.json"),
        folder.join("tokenizer.json"),
    )
    .expect("a tokenizer");
    let (mut faults, mut answer) = (Vec::new(), None);
    for block in blocks(&read(page)) {
        let place = format!("{name}, line {}", block.line);
        if block.runs_as("console") {
            for (command, shown) in commands(&block) {
                let output = service.run(&command, &folder);
                if !matches(shown.trim_end(), output.trim_end()) {
                    faults.push(format!("{place}: $ {command}\n{output}"));
                }
            }
        } else if block.runs_as("sh") && runs(&block) {
            answer = Some(service.run(&block.text, &folder));
            continue;
        } else if let (true, Some(answer)) = (block.runs_as("json"), &answer) {
            let shown: Value =
                serde_json::from_str(&block.text).unwrap_or_else(|error| panic!("{place}: {error}"));
            let given: Value = serde_json::from_str(answer).unwrap_or_default();
            faults.extend(missing(&shown, &given, "").map(|it| format!("{place}: {it}\n{answer}")));
        }
        answer = None;
    }
    std::fs::remove_dir_all(folder).expect("removed");
    faults
}

#[test]
fn every_example_does_what_its_page_shows() {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    for program in ["curl", "bash"] {
        if !is_there(program) {
            println!("skipped: every_example_does_what_its_page_shows: {program} is not there");
            return;
        }
    }
    let service = Service::start("demo");
    let found: Vec<String> = pages()
        .iter()
        .flat_map(|page| faults(page, &service, |_| true))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// The README asks the model that `cargo xtask serve` fetches.
#[test]
fn the_readme_shows_what_the_fetched_model_answers() {
    const MODEL: &str = "smollm2-135m-instruct";
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cache")));
    let is_there = cache.is_some_and(|cache| cache.join("lexiform/models").join(MODEL).is_dir());
    if !is_there {
        println!("skipped: the_readme_shows_what_the_fetched_model_answers: {MODEL} was not fetched");
        return;
    }
    let service = Service::start(MODEL);
    // Only the requests: other commands build, or serve for ever.
    let asks = |block: &Block| block.text.starts_with("curl ");
    let found = faults(&root().join("README.md"), &service, asks);
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

#[test]
fn every_block_has_a_language() {
    for page in pages() {
        for block in blocks(&read(&page)) {
            let known = [
                "sh",
                "sh,norun",
                "json",
                "json,norun",
                "console",
                "rust",
                "python",
                // Run by `bindings/node/tests/documents.test.js`.
                "js",
                // Compiled and run by `bindings/c/tests/programs.rs`.
                "c",
                "toml",
                "text",
            ];
            let Block { info, line, .. } = &block;
            assert!(
                known.contains(&info.as_str()),
                "{}, line {line}: {info:?}",
                page.display()
            );
        }
    }
}
