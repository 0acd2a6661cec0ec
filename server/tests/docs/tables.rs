//! The pages of codes and of limits against the code: what is there is listed, and nothing else.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::blocks::{read, root};

/// The first cells in backticks of the tables of a page, in the section with this heading or in all of it.
fn listed(page: &str, section: Option<&str>) -> BTreeSet<String> {
    let text = read(&root().join("docs/src").join(page));
    let text = match section {
        None => text.as_str(),
        Some(heading) => {
            let rest = text
                .split_once(&format!("\n## {heading}\n"))
                .expect("the section")
                .1;
            rest.split("\n## ").next().unwrap_or_default()
        }
    };
    let cell = Regex::new(r"(?m)^\| `([^`]+)` \|").expect("a pattern");
    cell.captures_iter(text)
        .map(|found| found[1].to_owned())
        .collect()
}

/// The sources of the server, without their tests.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = read(&path);
            found.push(text.split("#[cfg(test)]").next().unwrap_or_default().to_owned());
        }
    }
}

/// The codes of errors, wherever one is written.
fn codes() -> BTreeSet<String> {
    let kinds = "invalid_request|server|rate_limit|timeout|authentication|permission";
    let code = r#""([a-z_]+)""#;
    let patterns = [
        format!(r"(?:ApiError|Self)::invalid\(\s*{code}"),
        format!(r"push\(\s*{code},"),
        format!(r#""(?:{kinds})_error",\s*{code}"#),
        format!(r"let code = if [^{{]*\{{\s*{code}"),
        format!(r"let code = if [^{{]*\{{[^}}]*\}} else \{{\s*{code}"),
    ];
    let mut all = Vec::new();
    sources(&root().join("server/src"), &mut all);
    let mut codes = BTreeSet::new();
    for pattern in patterns.map(|pattern| Regex::new(&pattern).expect("a pattern")) {
        for text in &all {
            codes.extend(pattern.captures_iter(text).map(|found| found[1].to_owned()));
        }
    }
    // Those of a constraint are the arms of one function.
    let subject = read(&root().join("server/src/wire/error/subject.rs"));
    let (_, arms) = subject.split_once("fn code(").expect("the function of the codes");
    let (arms, _) = arms.split_once("fn ").expect("the next function");
    let arm = Regex::new(&format!("=> {code}")).expect("a pattern");
    codes.extend(arm.captures_iter(arms).map(|found| found[1].to_owned()));
    codes
}

#[test]
fn every_code_of_an_error_has_a_line() {
    let codes = codes();
    assert!(codes.len() > 30, "{codes:?}");
    assert_eq!(listed("errors.md", None), codes);
}

#[test]
fn every_limit_of_a_compile_has_a_line() {
    let text = read(&root().join("automata/src/limits.rs"));
    let (_, fields) = text.split_once("pub struct Limits {").expect("the limits");
    let (fields, _) = fields.split_once("\n}").expect("their end");
    let field = Regex::new(r"(?m)^    pub ([a-z_]+):").expect("a pattern");
    // These two bound nothing themselves: one counts for several compiles, one is a switch.
    let names = field.captures_iter(fields).map(|found| found[1].to_owned());
    let names: BTreeSet<String> = names
        .filter(|name| !["meter", "cancel"].contains(&name.as_str()))
        .collect();
    assert_eq!(listed("limits.md", Some("Compiles")), names);
}

#[test]
fn every_flag_that_bounds_something_has_a_line() {
    let help = Command::new(env!("CARGO_BIN_EXE_lexiform"))
        .args(["serve", "--help"])
        .output()
        .expect("the program starts");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let flag = Regex::new("(?m)^ +(?:-., )?(--[a-z-]+) <(?:N|MIB|BYTES)>").expect("a pattern");
    let flags: BTreeSet<String> = flag
        .captures_iter(&help)
        .map(|found| found[1].to_owned())
        .collect();
    assert!(flags.len() > 10, "{flags:?}");
    assert_eq!(listed("limits.md", Some("Flags of the service")), flags);
}
