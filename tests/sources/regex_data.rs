//! Whole regular-expression suites, run on the languages that `lexiform_syntax::regex` makes of the patterns.
//!
//! Each language is run as the automaton that regex-automata builds from it, part by part. The failures are
//! listed in `tests/data/ratchet/regex.json` by name and with their reasons: a new failure fails the test,
//! and so does an entry that is no longer true.

use crate::ratchet;
use crate::regular_run;
use std::path::PathBuf;

use lexiform::error::ProblemKind;
use lexiform::limits::Limits;
use lexiform_syntax::regex;
use ratchet::{ACCEPTED_WRONGLY, Ratchet};
use regular_run::Runner;
use serde_json::Value;

/// Why a text or a pattern that a suite rejects is accepted here all the same, by suite: the suite asks about
/// another dialect. Nothing else may be accepted that a suite rejects.
const OTHER_DIALECTS: [(&str, &str, &[&str]); 2] = [
    (
        "ecma_syntax",
        "accepted: the suite has it with the flag `u` alone, and Annex B of ECMA-262 gives it a meaning without",
        &[
            ".(?!.)?",
            ".(?!.){2,3}",
            ".(?=.)?",
            ".(?=.){2,3}",
            "[%-\\d]",
            "[--\\d]",
            "[\\d-a]",
            "[\\s-\\d]",
        ],
    ),
    (
        "rust_fullmatch",
        "accepted: the suite asks about regex-lite, whose classes and cases are those of ASCII",
        &[
            "regex-lite/case-insensitive-is-ascii-only",
            "regex-lite/perl-class-decimal",
            "regex-lite/perl-class-space",
            "regex-lite/perl-class-word",
        ],
    ),
];

/// Returns the rows of a data file, or `None` with a message if the file is missing.
fn rows(test: &str, file: &str) -> Option<Vec<Value>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(".data/regex")
        .join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: {test}: .data/regex/{file} is not there");
        return None;
    };
    Some(
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a row is JSON"))
            .collect(),
    )
}

fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().unwrap_or_default()
}

/// Returns a runner for the language of a pattern, or the reason why the pattern is refused.
fn runner(made: Result<lexiform_automata::grammar::Regular, regex::RegexError>) -> Result<Runner, String> {
    let regular = made.map_err(|error| format!("refused: {error}"))?;
    Runner::new(&regular)
}

fn judge(runner: &Result<Runner, String>, text: &[u8], expected: bool) -> Result<(), String> {
    match runner {
        Err(reason) => Err(reason.clone()),
        Ok(runner) if runner.accepts(text) == expected => Ok(()),
        Ok(_) if expected => Err("rejected wrongly".into()),
        Ok(_) => Err(ACCEPTED_WRONGLY.into()),
    }
}

/// Returns the outcome, with its reason if the case tests another dialect.
fn excuse(section: &str, name: &str, outcome: Result<(), String>) -> Result<(), String> {
    let another = OTHER_DIALECTS
        .iter()
        .find(|(suite, _, names)| *suite == section && names.contains(&name));
    match (outcome, another) {
        (Err(reason), Some((_, why, _))) if reason == ACCEPTED_WRONGLY => Err((*why).to_owned()),
        (outcome, _) => outcome,
    }
}

#[test]
fn schema_patterns_mean_what_ecma_262_says() {
    let Some(rows) = rows("schema_patterns", "schema_pattern_strings.jsonl") else {
        return;
    };
    let mut ratchet = Ratchet::open("regex.json", "schema_pattern_strings");
    let mut known = std::collections::HashMap::new();
    for row in &rows {
        let pattern = text(row, "pattern");
        let runner = known
            .entry(pattern.to_owned())
            .or_insert_with(|| runner(regex::ecma(pattern, &Limits::default())));
        let outcome = judge(runner, text(row, "string").as_bytes(), row["match"] == true);
        ratchet.note(&format!("{pattern} on {}", text(row, "string")), outcome);
    }
    ratchet.close();
}

#[test]
fn rust_expressions_match_whole_texts() {
    let Some(rows) = rows("rust_expressions", "rust_fullmatch.jsonl") else {
        return;
    };
    let mut ratchet = Ratchet::open("regex.json", "rust_fullmatch");
    for row in &rows {
        let flags = match (row["unicode"] == true, row["i"] == true) {
            (true, true) => "(?i)",
            (true, false) => "",
            (false, true) => "(?i-u)",
            (false, false) => "(?-u)",
        };
        let pattern = format!("{flags}{}", text(row, "regex"));
        let made = runner(regex::rust(&pattern, &Limits::default()));
        let outcome = if let Some(compiles) = row["compiles"].as_bool() {
            if made.is_ok() == compiles {
                Ok(())
            } else {
                Err(format!("compiles: {}", made.is_ok()))
            }
        } else {
            let bytes = match row["hex"].as_str() {
                Some(hex) => unhex(hex),
                None => text(row, "text").as_bytes().to_vec(),
            };
            judge(&made, &bytes, row["full"] == true)
        };
        let name = text(row, "name");
        ratchet.note(name, excuse("rust_fullmatch", name, outcome));
    }
    ratchet.close();
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks_exact(2)
        .map(|pair| pair[0] * 16 + pair[1])
        .collect()
}

#[test]
fn re2_expressions_match_whole_texts() {
    let Some(rows) = rows("re2_expressions", "re2_search.jsonl") else {
        return;
    };
    let mut ratchet = Ratchet::open("regex.json", "re2_search");
    for row in &rows {
        let pattern = text(row, "regex");
        let made = runner(regex::rust(pattern, &Limits::default()));
        for (field, expected) in [("accept", true), ("reject", false)] {
            for string in row[field].as_array().expect("a list of texts") {
                let string = string.as_str().expect("a text");
                ratchet.note(
                    &format!("{pattern} on {string}"),
                    judge(&made, string.as_bytes(), expected),
                );
            }
        }
    }
    ratchet.close();
}

#[test]
fn ecma_syntax_is_told_from_what_is_none() {
    let Some(rows) = rows("ecma_syntax", "ecma_syntax.jsonl") else {
        return;
    };
    let mut ratchet = Ratchet::open("regex.json", "ecma_syntax");
    // A pattern counts as valid if it is with or without the `u` flag: the dialect is `u` with tolerance.
    let mut valid: std::collections::BTreeMap<&str, bool> = Default::default();
    for row in rows.iter().filter(|row| matches!(text(row, "flags"), "" | "u")) {
        *valid.entry(text(row, "pattern")).or_default() |= row["valid"] == true;
    }
    for (pattern, valid) in valid {
        let outcome = match (regex::ecma(pattern, &Limits::default()), valid) {
            (Ok(_), true) | (Err(_), false) => Ok(()),
            // A backreference, say, is read but not supported.
            (Err(error), true) if error.kind == ProblemKind::Unsupported => Ok(()),
            (Ok(_), false) => Err(ACCEPTED_WRONGLY.into()),
            (Err(error), true) => Err(format!("refused: {error}")),
        };
        ratchet.note(pattern, excuse("ecma_syntax", pattern, outcome));
    }
    ratchet.close();
}
