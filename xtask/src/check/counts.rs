//! `cargo xtask counts`: counts the instructions of a fixed set of compiles and masks, and compares them with
//! the last record.
//!
//! ```text
//!   benches/counts.rs ──callgrind──► a dump for each counted part ──► counts ──┬─► benches/record/counts.tsv
//!                                                                              └─► what takes more
//! ```
//!
//! The program is built with the profile of the tests, which every check has built already. Its counts are
//! not those of a release, but a compile that takes more steps takes more of them in both. Counts also depend
//! on the version of the compiler, so that a record of another version is not compared.
//!
//! A few parts take up to a half more in some processes than in others, since names of languages are hashed
//! with keys that each process draws. So the record holds the largest of three counts, and a part is worse
//! only if the smallest of three exceeds it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::process::{Failure, cargo, code, line, quiet_output, root};
use crate::tally::Tally;
use crate::test::programs::BUILT;

/// The record, relative to the root.
const RECORD: &str = "benches/record/counts.tsv";
/// The function whose instructions are counted.
const COUNTED: &str = "counts::counted";
/// How many times its recorded count a part may take, and the parts of a kind in the geometric mean.
const PART: f64 = 1.1;
const KIND: f64 = 1.02;
/// The number of runs after which a count is believed.
const RUNS: usize = 3;
/// Parts below this number of instructions are judged only together with the others of their kind.
const SMALL: u64 = 100_000;

/// The number of instructions of each part: by the name of its source, and its kind.
type Counts = BTreeMap<(String, String), u64>;

/// Runs `cargo xtask counts [--write]`.
pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let writes = match args {
        [] => false,
        [flag] if flag == "--write" => true,
        _ => return Err(Failure::new("usage: cargo xtask counts [--write]")),
    };
    if !has_valgrind() {
        return Err(Failure::new("valgrind is not installed (package valgrind)"));
    }
    if writes {
        let mut counts = Counts::new();
        for _ in 0..RUNS {
            merge(&mut counts, count()?, u64::max);
        }
        return write(&counts).map(|()| ExitCode::SUCCESS);
    }
    Ok(code(holds(&read()?.counts)?))
}

/// Compares the counts with the record, as a check. Without valgrind, or with another compiler than that of
/// the record, the check is skipped.
pub(crate) fn check() -> Result<Tally, Failure> {
    if !has_valgrind() {
        eprintln!("xtask: instructions are not counted: valgrind is not installed (package valgrind)");
        return Ok(Tally::SKIPPED);
    }
    let recorded = read()?;
    let compiler = compiler();
    if recorded.compiler != compiler {
        eprintln!(
            "xtask: instructions are not compared: the record is of {}, and this is {compiler}; renew it with \
             `cargo xtask counts --write`",
            recorded.compiler
        );
        return Ok(Tally::SKIPPED);
    }
    Ok(Tally::from(holds(&recorded.counts)?))
}

/// Counts until nothing takes more than it may, at most [`RUNS`] times. Prints what does in the end.
fn holds(recorded: &Counts) -> Result<bool, Failure> {
    let mut counts = Counts::new();
    for run in 1..=RUNS {
        merge(&mut counts, count()?, u64::min);
        let worse = compare(recorded, &counts);
        if worse.is_empty() || run == RUNS {
            report(&worse);
            return Ok(worse.is_empty());
        }
    }
    Ok(true)
}

/// Adds the counts of a run: of two counts of a part, the one that is picked.
fn merge(counts: &mut Counts, run: Counts, pick: fn(u64, u64) -> u64) {
    for (part, count) in run {
        let known = counts.entry(part).or_insert(count);
        *known = pick(*known, count);
    }
}

fn has_valgrind() -> bool {
    let version = Command::new("valgrind").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

/// Returns the version of the compiler, as it says it.
fn compiler() -> String {
    let version = quiet_output(Command::new("rustc").arg("--version"));
    version.unwrap_or_default().trim().to_owned()
}

/// Builds the program, runs it under callgrind, and returns the counts.
fn count() -> Result<Counts, Failure> {
    let program = build()?;
    let dumps = root().join("target/counts");
    let _ = fs::remove_dir_all(&dumps);
    fs::create_dir_all(&dumps).map_err(|error| Failure::io("could not create", &dumps, &error))?;
    let mut command = Command::new("valgrind");
    command
        .args([
            "--tool=callgrind",
            "--quiet",
            "--collect-atstart=no",
            "--compress-strings=no",
        ])
        .arg(format!("--toggle-collect={COUNTED}"))
        .arg(format!("--dump-after={COUNTED}"))
        .arg(format!("--callgrind-out-file={}", dumps.join("part").display()))
        .arg(&program)
        .current_dir(root());
    eprintln!("$ {}", line(&command));
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::new(format!("could not run valgrind: {error}")))?;
    if !output.status.success() {
        return Err(Failure::new(format!("this failed: {}", line(&command))));
    }
    let parts = String::from_utf8_lossy(&output.stdout);
    let parts = parts.lines().filter_map(|part| part.split_once('\t'));
    let numbered = parts.zip(1..).map(|((name, kind), number)| {
        let count = total(&dumps.join(format!("part.{number}")))?;
        Ok(((name.to_owned(), kind.to_owned()), count))
    });
    numbered.collect()
}

/// Builds the program with what the tests are built with, and returns its path.
fn build() -> Result<PathBuf, Failure> {
    let mut command = cargo([
        "build",
        "--bench",
        "counts",
        "--message-format=json-render-diagnostics",
    ]);
    command.args(BUILT).stdin(Stdio::null()).stderr(Stdio::inherit());
    eprintln!("$ {}", line(&command));
    let output = command
        .output()
        .map_err(|error| Failure::new(format!("could not run cargo: {error}")))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut executables = messages.lines().filter_map(|message| {
        let message: serde_json::Value = serde_json::from_str(message).ok()?;
        (message["target"]["name"] == "counts").then(|| message["executable"].as_str().map(PathBuf::from))?
    });
    let last = executables.next_back();
    last.ok_or_else(|| Failure::new(format!("this built no program: {}", line(&command))))
}

/// Returns the number of instructions in a dump of callgrind.
fn total(dump: &Path) -> Result<u64, Failure> {
    let text = fs::read_to_string(dump).map_err(|error| Failure::io("could not read", dump, &error))?;
    let count = text.lines().find_map(|line| {
        line.strip_prefix("totals: ")
            .or_else(|| line.strip_prefix("summary: "))
    });
    count
        .and_then(|count| count.trim().parse().ok())
        .ok_or_else(|| Failure::new(format!("{} has no total", dump.display())))
}

/// The counts of an earlier version.
struct Record {
    compiler: String,
    counts: Counts,
}

fn read() -> Result<Record, Failure> {
    let path = root().join(RECORD);
    let text = fs::read_to_string(&path).map_err(|error| Failure::io("could not read", &path, &error))?;
    let compiler = text.lines().find_map(|line| line.strip_prefix("# "));
    let parts = text.lines().filter(|line| !line.starts_with('#'));
    let counts = parts.map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        match cells[..] {
            [name, kind, count] => Some(((name.to_owned(), kind.to_owned()), count.parse().ok()?)),
            _ => None,
        }
    });
    let counts: Option<Counts> = counts.collect();
    Ok(Record {
        compiler: compiler.unwrap_or_default().to_owned(),
        counts: counts.ok_or_else(|| Failure::new(format!("{RECORD} has a line that is no count")))?,
    })
}

fn write(counts: &Counts) -> Result<(), Failure> {
    let path = root().join(RECORD);
    let mut text = format!("# {}\n", compiler());
    for ((name, kind), count) in counts {
        text += &format!("{name}\t{kind}\t{count}\n");
    }
    fs::write(&path, text).map_err(|error| Failure::io("could not write", &path, &error))
}

/// Prints the ratio of each kind, and returns what takes more than it may.
fn compare(recorded: &Counts, counts: &Counts) -> Vec<String> {
    let mut worse = Vec::new();
    let mut kinds: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (part, &count) in counts {
        let Some(&before) = recorded.get(part) else {
            continue;
        };
        let ratio = count.max(1) as f64 / before.max(1) as f64;
        kinds.entry(part.1.as_str()).or_default().push(ratio);
        if before.max(count) >= SMALL && ratio > PART {
            worse.push(format!(
                "{} of {}: {before} to {count}, {ratio:.3} times",
                part.1, part.0
            ));
        }
    }
    for (kind, ratios) in kinds {
        // The geometric mean, in which a large part counts no more than a small one.
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        println!("{kind}: {} parts, {mean:.4} times the record", ratios.len());
        if mean > KIND {
            worse.push(format!("all {kind} together: {mean:.4} times"));
        }
    }
    worse
}

fn report(worse: &[String]) {
    for line in worse {
        println!("more instructions than recorded: {line}");
    }
    if !worse.is_empty() {
        println!("If this is meant, renew {RECORD} with `cargo xtask counts --write` and say why.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(parts: &[(&str, &str, u64)]) -> Counts {
        let parts = parts.iter();
        parts
            .map(|(name, kind, count)| (((*name).to_owned(), (*kind).to_owned()), *count))
            .collect()
    }

    #[test]
    fn a_part_that_takes_a_tenth_more_is_worse() {
        let before = counts(&[("a", "compile", 1_000_000), ("b", "compile", 99_000_000)]);
        let same = counts(&[("a", "compile", 1_100_000), ("b", "compile", 90_000_000)]);
        assert!(compare(&before, &same).is_empty());
        let more = counts(&[("a", "compile", 1_100_001), ("b", "compile", 90_000_000)]);
        assert_eq!(compare(&before, &more).len(), 1);
    }

    #[test]
    fn all_parts_together_may_not_take_much_more() {
        let before = counts(&[("a", "masks", 1_000_000), ("b", "masks", 1_000_000)]);
        let more = counts(&[("a", "masks", 1_030_000), ("b", "masks", 1_030_000)]);
        assert_eq!(compare(&before, &more).len(), 1);
        assert!(compare(&more, &before).is_empty());
    }

    #[test]
    fn new_and_small_parts_are_not_judged_alone() {
        let before = counts(&[("a", "compile", 10), ("b", "compile", 10_000_000)]);
        let more = counts(&[
            ("a", "compile", 11),
            ("b", "compile", 9_000_000),
            ("c", "compile", 7),
        ]);
        assert!(compare(&before, &more).is_empty());
    }
}
