//! What people see, as they would type it: `tests/data/cli/snapshots/*.txt`, whose README says how they are
//! written and renewed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::program::{Run, data, program, run, run_with};

/// Set to write what was seen instead of comparing it.
const RENEW: &str = "LEXIFORM_RENEW_SNAPSHOTS";

#[test]
fn people_see_what_they_saw() {
    let folder = PathBuf::from(data("snapshots"));
    let mut differences = String::new();
    let mut calls = 0;
    for path in text_files(&folder) {
        let expected = std::fs::read_to_string(&path).expect("a snapshot");
        calls += expected.lines().filter(|line| line.starts_with("$ ")).count();
        let seen = replayed(&expected, &folder.join("files"));
        if seen == expected {
            continue;
        }
        if std::env::var_os(RENEW).is_some() {
            std::fs::write(&path, seen).expect("written");
            continue;
        }
        let _ = writeln!(differences, "{}", path.display());
        let pairs = seen
            .lines()
            .zip(expected.lines().chain(std::iter::repeat("(nothing)")));
        for (seen, expected) in pairs.filter(|(seen, expected)| seen != expected).take(8) {
            let _ = writeln!(differences, "  expected {expected}\n      seen {seen}");
        }
    }
    assert!(calls >= 60, "{calls} calls were found");
    assert!(differences.is_empty(), "set {RENEW}=1 to renew:\n{differences}");
}

fn text_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder of snapshots");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "txt"))
        .collect();
    paths.sort();
    paths
}

/// A snapshot with what its commands print now; comments stay.
fn replayed(snapshot: &str, folder: &Path) -> String {
    let mut seen = String::new();
    for line in snapshot
        .lines()
        .filter(|line| line.starts_with("# ") || line.starts_with("$ "))
    {
        if let Some(command) = line.strip_prefix("$ ") {
            let ran = ran(command, folder);
            let _ = write!(seen, "{line}\n{}", ran.out.replace('\u{1b}', "␛"));
            ran.err
                .lines()
                .for_each(|line| seen.push_str(&format!("! {line}\n")));
            let _ = writeln!(seen, "[{}]\n", ran.code);
        } else {
            let _ = writeln!(seen, "{line}");
        }
    }
    seen
}

/// Runs `printf 'TEXT' | NAME=VALUE lexiform ARGUMENTS < FILE`, of which all but the program may be missing.
fn ran(command: &str, folder: &Path) -> Run {
    let mut words = words(command);
    let mut input = None;
    if words.first().is_some_and(|word| word == "printf") {
        input = Some(words[1].replace("\\n", "\n"));
        words.drain(..3);
    }
    let mut program = program();
    program.current_dir(folder);
    while let Some((name, value)) = words[0].split_once('=') {
        program.env(name, value);
        words.remove(0);
    }
    assert_eq!(words.remove(0), "lexiform", "{command}");
    if let Some(place) = words.iter().position(|word| word == "<") {
        let file = std::fs::File::open(folder.join(&words[place + 1])).expect("a file for standard input");
        program.stdin(file);
        words.truncate(place);
    }
    program.args(words);
    match input {
        Some(text) => run_with(&mut program, &text),
        None => run(&mut program),
    }
}

/// Words as a shell has them, with single quotes alone.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut is_open, mut is_quoted) = (String::new(), false, false);
    for c in command.chars() {
        match c {
            '\'' => (is_quoted, is_open) = (!is_quoted, true),
            ' ' if !is_quoted => {
                words.extend(is_open.then(|| std::mem::take(&mut word)));
                is_open = false;
            }
            c => {
                word.push(c);
                is_open = true;
            }
        }
    }
    words.extend(is_open.then_some(word));
    words
}
