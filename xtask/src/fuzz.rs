//! `cargo xtask fuzz`: builds the targets of `fuzz/` with coverage on the stable toolchain, and runs each
//! under libFuzzer.
//!
//! ```text
//!   fuzz/seeds, schemas/, grammars/, tests/data ─► seeds ─┐
//!   target/fuzz/corpus/TARGET (kept from run to run) ─────┼─► libFuzzer ─► target/fuzz/found/TARGET-…
//!                                                         │                   └─ minimised, and its source beside it
//!                                                         └─ a line a target: runs, coverage, findings
//! ```

mod program;
mod seeds;

use crate::options::Options;
use crate::process::Failure;
use crate::tally::Tally;
use program::{Build, Group, Report, Search};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

const USAGE: &str = "\
Usage: cargo xtask fuzz [TARGET...] [--seconds N | --hours N | --seeds-only] [--jobs N] [--quick-build]

  Runs these targets, or all, for --seconds each (30), or for --hours in all, --jobs of them at a time (1). With
  --seeds-only they read the committed seeds and nothing else, which gives the same result every time. A group is
  named by `library` or `server`; the server's needs libtorch and is skipped where there is none. With --quick-build
  the library is optimised as little as its dependencies: it is built sooner, and each run takes longer, so that times
  are findings only where FUZZ_SLACK says by how much.";

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let Some(options) = Options::read(args, USAGE)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let (targets, jobs) = (&options.names, options.number("--jobs", 1));
    let build = match options.get("--quick-build") {
        Some(_) => Build::Quick,
        None => Build::Optimised,
    };
    let mut tally = Tally::default();
    let mut chosen = Vec::new();
    for group in [Group::Library, Group::Server] {
        if !targets.is_empty() && !group.may_have(targets) {
            continue;
        }
        if let Some(why) = group.is_missing() {
            println!("skipped: fuzz targets of the {}: {why}", group.name());
            tally += Tally::SKIPPED;
            continue;
        }
        let program = group.build(build)?;
        let names = program.targets()?;
        let is_wanted =
            |name: &String| targets.is_empty() || targets.iter().any(|it| it == name || it == group.name());
        chosen.extend(
            names
                .into_iter()
                .filter(is_wanted)
                .map(|name| (program.clone(), name)),
        );
    }
    if chosen.is_empty() && tally == Tally::default() {
        return Err(Failure::new(format!("no such target\n\n{USAGE}")));
    }
    let search = match (options.get("--seeds-only"), options.number("--hours", 0) as u64) {
        (Some(_), _) => Search::Seeds,
        (None, 0) => Search::For(options.seconds(30)),
        (None, hours) => {
            Search::For(Duration::from_secs(3600 * hours) * jobs as u32 / chosen.len().max(1) as u32)
        }
    };
    for report in all(chosen, search, jobs)? {
        tally += Tally::from(report.findings.is_empty() && report.runs > 0);
    }
    Ok(tally.close())
}

/// Runs all targets, some at a time, and prints a line when each is done.
fn all(chosen: Vec<(program::Program, String)>, search: Search, jobs: usize) -> Result<Vec<Report>, Failure> {
    let waiting = Mutex::new(chosen.into_iter());
    let next = || waiting.lock().ok().and_then(|mut all| all.next());
    let work = || {
        let mut done = Vec::new();
        while let Some((program, target)) = next() {
            let report = program.fuzz(&target, search)?;
            println!("{report}");
            done.push(report);
        }
        Ok(done)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for worker in workers {
            let done: Result<Vec<Report>, Failure> = worker
                .join()
                .unwrap_or_else(|_| Err(Failure::new("a job of fuzzing panicked")));
            all.extend(done?);
        }
        Ok(all)
    })
}
