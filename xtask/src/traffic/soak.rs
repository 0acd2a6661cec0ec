//! `cargo xtask soak service`: streams for minutes, while the service is killed, drained, told to read its
//! files again, and while its models change places.
//!
//! ```text
//!   clients ─ streams ─► service ◄─ story: kill, drain, reload, models in and out
//!      └─ suspects: what did not end well ─► judged by the times of the story ─► table
//! ```
//!
//! A client cannot know why its answer was cut off. It notes when that was, and what it saw; afterwards
//! each is compared with the times at which the service was killed or drained. What no such time explains
//! is wrong.

mod client;
mod place;
mod story;
mod suspect;

use super::driver::{Clients, Seen};
use super::service::Program;
use crate::options::Options;
use crate::process::{Failure, code};
use client::Client;
use place::Place;
use std::process::ExitCode;
use story::{Ended, Story};
use suspect::Suspects;

const USAGE: &str = "\
Usage: cargo xtask soak service [--program PATH] [--port N] [--memory MB] [--clients N] [--seconds N]

  So many clients (200) have texts streamed for so long (300 s) by `lexiform serve` with three demo models, of which two
  may be in memory; by default it is the release build of this checkout, which it builds. Meanwhile it is killed, drained
  and told to reload its files, and an operator loads and unloads models. Fails where an answer that is reported as whole
  does not obey, something is lost that was not open, a gauge does not return to zero, or memory grows by a fifth.";

/// The growth of the resident memory that is allowed after the first fifth of the time.
const GROWTH: f64 = 1.2;

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let Some(options) = Options::read(args, USAGE)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let place = Place::new()?;
    let args = place.args();
    let program = Program::read(&options, &args.iter().map(String::as_str).collect::<Vec<_>>())?;
    place.write(&program)?;
    let count = options.number("--clients", 200);
    let clients = Clients {
        count,
        first: 0,
        // Every client comes to every kind of request.
        step: Some(count | 1),
    };
    let suspects = Suspects::default();
    let mut story = Story::begin(&program, &place, &suspects, options.seconds(300))?;
    let client = Client {
        address: program.address(),
        keys: place.keys(),
        suspects: &suspects,
        fashion: story.fashion(),
    };
    let turn = |number: usize, _: &_, seen: &mut Seen| client.ask(number, seen);
    let (mut seen, told) = clients.drive(turn, || story.tell());
    told?;
    let ended = story.end()?;
    suspects.judge(&mut seen);
    let is_well = report(&seen, &ended);
    Ok(code(is_well))
}

/// Prints what was seen, and returns `true` if all of it may be.
fn report(seen: &Seen, ended: &Ended) -> bool {
    let total: usize = seen.outcomes.values().sum();
    println!("\n{total} requests");
    for (outcome, count) in &seen.outcomes {
        println!("  {count:>8}  {outcome}");
    }
    for times in ["first byte", "whole answer"] {
        seen.print(times, &[("p50", 0.5), ("p99", 0.99), ("most", 1.0)]);
    }
    for (action, count) in &ended.actions {
        println!("  {count:>8}  {action}");
    }
    let growth = ended.memory_at_end as f64 / ended.memory_early.max(1) as f64;
    println!(
        "memory: {} MB after a fifth of the time, {} MB at the end ({growth:.2} times), {} MB at most",
        ended.memory_early >> 20,
        ended.memory_at_end >> 20,
        ended.memory_most >> 20,
    );
    let mut problems = ended.problems.clone();
    if growth > GROWTH {
        problems.push(format!("memory grew {growth:.2} times"));
    }
    for problem in &problems {
        println!("FAILED: {problem}");
    }
    seen.print_wrong();
    println!("{} problems, {} wrong", problems.len(), seen.wrong.len());
    problems.is_empty() && seen.wrong.is_empty()
}
