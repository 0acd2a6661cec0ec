//! The programs that contain the targets: how they are built and run, and how their findings are stored.

use super::seeds;
use crate::process::{Failure, line, must_succeed, quiet_output, root};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The instrumentation that rustc adds for libFuzzer: counters at every edge, a table of them, and the
/// operands of comparisons. Stable toolchains support all of it.
const COVERAGE: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];
/// If a target is given, build scripts and macros are built without those flags.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
/// The resident memory at which libFuzzer ends a run; the targets count allocations and end before that.
const RESIDENT_MB: usize = 900;
/// The seconds after which a run that does not end is a finding, for a program that is [`SLACK`] times slower
/// than in production.
const TIMEOUT: usize = 25;
const SLACK: usize = 4;
/// The largest timeout in seconds, on any machine: a run that takes longer will not end.
const LONGEST: usize = 300;
/// The number of findings after which a target is stopped.
const FINDINGS: usize = 5;
/// The bytes of a finding's input that a report shows.
const SHOWN: usize = 2_000;

/// The inputs that a target is given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Search {
    /// The committed seeds, each once: the same inputs on every machine.
    Seeds,
    /// The seeds, the corpus of earlier searches and what libFuzzer makes of them, for this long.
    For(Duration),
}

impl Search {
    fn goes_on(self, elapsed: Duration) -> bool {
        match self {
            Search::Seeds => true,
            Search::For(time) => elapsed < time,
        }
    }
}

/// The optimisation of the code under test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Build {
    /// As in the manifest, for runs of hours.
    Optimised,
    /// As for its dependencies, for a quick check of every target.
    Quick,
}

/// The targets in one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Targets that link the library alone.
    Library,
    /// Targets that link the service, and libtorch with it.
    Server,
}

impl Group {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Group::Library => "library",
            Group::Server => "server",
        }
    }

    /// Returns `true` if one of these names may be in this group. The few targets of the service are listed
    /// here, so that the service is not built for a name of the library's.
    pub(crate) fn may_have(self, names: &[String]) -> bool {
        const SERVED: [&str; 10] = [
            "server",
            "template",
            "chat",
            "completions",
            "responses",
            "decisions",
            "grammars",
            "tokens",
            "config",
            "gguf",
        ];
        names
            .iter()
            .any(|name| SERVED.contains(&name.as_str()) == (self == Group::Server))
    }

    /// Returns the requirement that is missing, if any.
    pub(crate) fn is_missing(self) -> Option<&'static str> {
        let is_there = match self {
            Group::Library => true,
            Group::Server => libtorch().join("lib").is_dir(),
        };
        (!is_there).then_some("libtorch is not there; `cargo xtask setup` brings it")
    }

    pub(crate) fn build(self, build: Build) -> Result<Program, Failure> {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(root().join("fuzz"));
        command.args([
            "build",
            "--release",
            "--locked",
            "--bin",
            self.name(),
            "--target",
            PLATFORM,
        ]);
        if self == Group::Server {
            command.args(["--features", "server"]);
        }
        if let Build::Quick = build {
            for package in ["lexiform", "lexiform-automata", "lexiform-syntax", "lexiform-law"] {
                let setting = format!("profile.release.package.{package}.opt-level=1");
                command.args(["--config", &setting]);
            }
        }
        command
            .env("RUSTFLAGS", COVERAGE.join(" "))
            .env("CARGO_TARGET_DIR", folder(""));
        must_succeed(&mut command)?;
        Ok(Program {
            path: folder(PLATFORM).join("release").join(self.name()),
        })
    }
}

fn libtorch() -> PathBuf {
    std::env::var_os("LIBTORCH").map_or_else(|| root().join(".libtorch/torch"), PathBuf::from)
}

/// Returns a folder for the output of fuzzing, which git ignores.
fn folder(name: &str) -> PathBuf {
    root().join("target/fuzz").join(name)
}

/// A built program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: PathBuf,
}

/// The outcome of a target.
#[derive(Debug)]
pub(crate) struct Report {
    target: String,
    pub(crate) runs: u64,
    edges: u64,
    pub(crate) findings: Vec<Finding>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (target, runs, edges) = (&self.target, self.runs, self.edges);
        write!(
            f,
            "{target:<16}{runs:>10} runs {edges:>8} edges {:>3} findings",
            self.findings.len()
        )?;
        for finding in &self.findings {
            write!(f, "\n    {finding}")?;
        }
        Ok(())
    }
}

/// An input that broke a limit or made a target panic.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The file that holds the input.
    path: PathBuf,
    what: String,
}

impl Finding {
    fn new(path: PathBuf, what: String) -> Finding {
        Finding { path, what }
    }
}

impl fmt::Display for Finding {
    /// Writes the reason and the beginning of the input, from which the finding can be repeated where the
    /// file is lost, as on a machine that tests a change and is cleaned afterwards.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)?;
        let source = fs::read(self.path.with_extension("source"));
        let Ok(input) = source.or_else(|_| fs::read(&self.path)) else {
            return Ok(());
        };
        let shown = &input[..input.len().min(SHOWN)];
        write!(f, "\n    {} bytes: {}", input.len(), shown.escape_ascii())
    }
}

/// One run of libFuzzer, from its start to its end or to a finding.
struct Run {
    ended_well: bool,
    runs: u64,
    edges: u64,
    what: String,
}

impl Program {
    fn command(&self, target: &str) -> Command {
        let mut command = Command::new(&self.path);
        command
            .env("FUZZ_TARGET", target)
            .env("LD_LIBRARY_PATH", libtorch().join("lib"));
        command.current_dir(root()).stdin(Stdio::null());
        command
    }

    pub(crate) fn targets(&self) -> Result<Vec<String>, Failure> {
        let list = quiet_output(self.command("").arg("--list"));
        let list = list.ok_or_else(|| Failure::new(format!("{} does not run", self.path.display())))?;
        Ok(list.lines().map(str::to_owned).collect())
    }

    /// Runs a target over this search. After a finding it continues, so that one finding does not hide
    /// others.
    pub(crate) fn fuzz(&self, target: &str, search: Search) -> Result<Report, Failure> {
        let (corpus, found) = (folder("corpus").join(target), folder("found"));
        let seeds = folder("seeds").join(target);
        for path in [&corpus, &found, &seeds] {
            fs::create_dir_all(path).map_err(|error| Failure::io("could not make", path, &error))?;
        }
        seeds::lay(target, &seeds)?;
        let mut report = Report {
            target: target.to_owned(),
            runs: 0,
            edges: 0,
            findings: Vec::new(),
        };
        let begun = Instant::now();
        while search.goes_on(begun.elapsed()) && report.findings.len() < FINDINGS {
            let artifact = found.join(format!("{target}-{}", report.findings.len()));
            drop(fs::remove_file(&artifact));
            let mut command = self.command(target);
            match search {
                Search::Seeds => command.arg(&seeds).arg("-runs=0"),
                Search::For(time) => {
                    let left = time.saturating_sub(begun.elapsed()).as_secs().max(1);
                    let time = format!("-max_total_time={left}");
                    command.args([&corpus, &seeds]).arg(time)
                }
            };
            command.args(options(target));
            command.arg(format!("-exact_artifact_path={}", artifact.display()));
            let run = run(&mut command)?;
            report.runs += run.runs;
            report.edges = report.edges.max(run.edges);
            if run.ended_well {
                // The last input of a run without a finding.
                drop(fs::remove_file(&artifact));
                break;
            }
            let kept = self.minimised(target, &artifact).unwrap_or(artifact);
            self.show(target, &kept);
            report.findings.push(Finding::new(kept, run.what));
            if let Search::Seeds = search {
                // The same input would end the next run at the same place.
                break;
            }
        }
        Ok(report)
    }

    /// Returns a smaller input that is also a finding, if one is found in time.
    fn minimised(&self, target: &str, artifact: &Path) -> Option<PathBuf> {
        let smaller = artifact.with_extension("min");
        drop(fs::remove_file(&smaller));
        let mut command = self.command(target);
        command
            .arg(artifact)
            .args(["-minimize_crash=1", "-max_total_time=20"]);
        command
            .args(options(target))
            .arg(format!("-exact_artifact_path={}", smaller.display()));
        run(&mut command).ok()?;
        fs::metadata(&smaller)
            .is_ok_and(|it| it.len() > 0)
            .then_some(smaller)
    }

    /// Writes the source beside an input that is not itself a source.
    fn show(&self, target: &str, input: &Path) {
        let source = quiet_output(self.command(target).arg("--show").arg(input));
        if let Some(source) = source {
            // The input is there even if this fails.
            drop(fs::write(input.with_extension("source"), source));
        }
    }
}

/// Returns the seconds after which a run that does not end is a finding. libFuzzer measures wall time, which
/// on a shared machine is much longer than processor time; `FUZZ_SLACK` raises the timeout there.
fn timeout(slack: Option<&str>) -> usize {
    let slack = slack.and_then(|text| text.parse().ok()).unwrap_or(SLACK);
    TIMEOUT.saturating_mul(slack.max(SLACK) / SLACK).min(LONGEST)
}

fn options(target: &str) -> Vec<String> {
    let longest = match target {
        "judge" | "project_shapes" => 24,
        "oracle" => 16,
        name if name.ends_with("_shapes") => 64,
        "tokenizer" => 16_000,
        _ => 4_096,
    };
    let timeout = timeout(std::env::var("FUZZ_SLACK").ok().as_deref());
    let mut all = vec![
        format!("-max_len={longest}"),
        format!("-timeout={timeout}"),
        format!("-rss_limit_mb={RESIDENT_MB}"),
        "-print_final_stats=1".to_owned(),
        "-verbosity=1".to_owned(),
    ];
    if longest <= 64 {
        // Inputs are sequences of choices: long ones are as likely to matter as short ones.
        all.push("-len_control=0".to_owned());
    }
    all
}

fn run(command: &mut Command) -> Result<Run, Failure> {
    let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| Failure::new(format!("could not run {}: {error}", line(command))))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let after = |label: &str| {
        let found = text.lines().rev().find_map(|it| it.split_once(label));
        let digits = found.and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
        digits.unwrap_or(0)
    };
    Ok(Run {
        ended_well: output.status.success(),
        runs: after("stat::number_of_executed_units:").max(after("Done ")),
        edges: after(" cov: "),
        what: what(&text),
    })
}

/// Summarises in a line why a run ended.
fn what(text: &str) -> String {
    const SIGNS: [&str; 6] = [
        "finding: ",
        "panicked at",
        "overflowed its stack",
        "libFuzzer: timeout",
        "libFuzzer: out-of-memory",
        "ERROR",
    ];
    let lines: Vec<&str> = text.lines().collect();
    let found = SIGNS
        .iter()
        .find_map(|sign| lines.iter().find(|it| it.contains(sign)));
    found
        .map_or("it ended without a word", |it| it.trim())
        .chars()
        .take(200)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_finding_is_read() {
        let text = "#3 NEW cov: 7\nthread 'a' panicked at x.rs:1:2:\nfinding: time: a mask took 90 ms\n==1== ERROR: deadly";
        assert_eq!(what(text), "finding: time: a mask took 90 ms");
        assert_eq!(
            what("==1== ERROR: libFuzzer: timeout after 25 seconds"),
            "==1== ERROR: libFuzzer: timeout after 25 seconds"
        );
    }

    #[test]
    fn where_time_is_no_finding_a_run_may_take_longer_and_not_for_ever() {
        assert_eq!(timeout(None), 25);
        assert_eq!(timeout(Some("1")), 25);
        assert_eq!(timeout(Some("8")), 50);
        assert_eq!(timeout(Some("1000")), 300);
    }

    #[test]
    fn names_choose_their_group() {
        let names = |name: &str| vec![name.to_owned()];
        assert!(Group::Server.may_have(&names("chat")) && !Group::Library.may_have(&names("chat")));
        assert!(Group::Library.may_have(&names("ebnf")) && !Group::Server.may_have(&names("ebnf")));
    }
}
