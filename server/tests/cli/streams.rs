//! Standard input, a reader that leaves early, and the folder that the program is called from.

use std::process::Stdio;

use serde_json::Value;

use crate::program::{program, run, run_with};

#[test]
fn a_piped_text_is_checked_without_being_named() {
    let check =
        |input: &str, more: &[&str]| run_with(program().args(["check", "-r", "yes|no"]).args(more), input);
    assert_eq!(
        check("no\n", &[]).out,
        "regex: compiles\nstandard input: belongs\n"
    );
    assert_eq!(check("nein", &[]).code, 1);
    assert_eq!(check("nein", &["-t", "no"]).code, 0, "a text is named");
    let empty = check("", &[]);
    assert_eq!(
        (empty.code, empty.out.as_str()),
        (0, "regex: compiles\n"),
        "an empty pipe is no text"
    );
    assert_eq!(check("", &["-"]).code, 1, "unless it is named");
}

#[test]
fn a_source_may_come_from_standard_input() {
    for (flag, source) in [("-s", r#"{"const": 1}"#), ("-r", "1\n"), ("-g", "root ::= '1'")] {
        let found = run_with(program().args(["check", flag, "-", "-t", "1"]), source);
        assert_eq!(found.code, 0, "{flag}: {}{}", found.out, found.err);
        let found = run_with(program().args(["mask", flag, "-", "-p", "1", "--json"]), source);
        let view: Value = serde_json::from_str(&found.out).expect("one object");
        assert_eq!(view["eos"], true, "{flag}");
    }
}

#[test]
fn standard_input_is_read_once() {
    let twice = run_with(program().args(["check", "-s", "-", "-"]), "{}");
    assert_eq!(twice.code, 2);
    assert!(
        twice.err.contains("both --schema and FILE ask for it"),
        "{}",
        twice.err
    );
}

#[test]
fn every_command_works_from_any_folder() {
    let from = |args: &[&str]| run(program().args(args).current_dir("/"));
    for args in [
        &["mask", "-r", "[0-9]{4}-[0-9]{2}", "-p", "20"] as &[&str],
        &["tokens", "-t", "20"],
        &["check", "-r", "20", "-t", "20"],
    ] {
        let found = from(args);
        assert_eq!(found.code, 0, "{args:?}: {}", found.err);
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut command = program();
    command
        .args(["man"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn colours_are_for_terminals_and_those_who_force_them() {
    let check = |name: &str, value: &str, more: &[&str]| {
        run(program()
            .env(name, value)
            .args(["check", "-r", "a", "-t", "b"])
            .args(more))
        .out
    };
    let is_painted = |text: &str| text.contains("\u{1b}[");
    assert!(!is_painted(&check("CLICOLOR", "1", &[])));
    assert!(is_painted(&check("CLICOLOR_FORCE", "1", &[])));
    assert!(is_painted(&check("NO_COLOR", "1", &["--color", "always"])));
    assert!(!is_painted(&check("CLICOLOR_FORCE", "1", &["--color=never"])));
    assert!(!is_painted(&check(
        "CLICOLOR_FORCE",
        "1",
        &["--json", "--color=never"]
    )));
}
