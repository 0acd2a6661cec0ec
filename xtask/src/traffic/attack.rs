//! `cargo xtask attack`: runs the real program with its memory watched, against requests meant to crash,
//! stall or bloat it, with a light client beside them.
//!
//! ```text
//!   table ─ what once worked, and random members of the families ─► sending ─► service ◄─ light (its waits)
//!                                                                                 └─ memory: before, peak, after
//! ```

mod sending;
mod sources;
mod table;

use super::driver::{Clients, Seen, said};
use super::model;
use super::service::{Program, Service};
use crate::options::Options;
use crate::process::Failure;
use crate::tally::Tally;
use crate::traffic::http::{Answer, CHAT, ask, post_as};
use sending::Outcome;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use table::{Attack, Dice, Expected};

const USAGE: &str = "\
Usage: cargo xtask attack [--program PATH] [--port N] [--memory MB] [--members N] [--seed N] [NAME...]

  Attacks `lexiform serve`, by default the release build of this checkout, which it builds, on a free port. It is killed
  beyond --memory (2000). Each family has --members random attacks (4). NAME picks attacks whose names hold it.";

/// The most time that a single short request may take, including its few tokens.
const SOON: Duration = Duration::from_secs(2);
/// The most time that a mask may take in an attack of a single request.
const MASK: Duration = Duration::from_millis(50);
/// The most processor time that the service may spend for clients that have left.
const LEFT: Duration = Duration::from_millis(500);
/// The time during which that is watched.
const WATCH: Duration = Duration::from_secs(4);
/// The most resident memory that an attack may add.
const MEMORY: u64 = 256 << 20;
/// A wait of the light client that is always acceptable, however short its waits are without an attack.
const WAIT: Duration = Duration::from_millis(60);
/// The time that memory is given to return to normal.
const SETTLING: Duration = Duration::from_secs(8);

/// The pause of the light client between two requests.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let Some(options) = Options::read(args, USAGE)? else {
        return Ok(ExitCode::SUCCESS);
    };
    // So that the light client is another one than those that attack.
    let args = "--model demo --log error --trusted-proxy 127.0.0.1";
    let program = Program::read(&options, &args.split(' ').collect::<Vec<_>>())?;
    let mut running = None;
    let mut tally = Tally::default();
    for attack in attacks(&options) {
        let service = match &mut running {
            Some(running) => running,
            none => none.insert(start(&program)?),
        };
        let seen = attacked(service, &attack);
        let problems = problems(attack.expected, &seen);
        report(&attack, &seen, &problems);
        tally += Tally::from(problems.is_empty());
        // A service that was harmed is started again.
        running = running.filter(|_| problems.is_empty());
    }
    Ok(tally.close())
}

fn attacks(options: &Options) -> Vec<Attack> {
    let mut dice = Dice(options.number("--seed", 0x5eed) as u64 | 1);
    let mut all = table::known();
    for family in 0..table::FAMILIES {
        all.extend((0..options.number("--members", 4)).map(|_| table::member(family, &mut dice)));
    }
    let names = &options.names;
    all.retain(|attack| names.is_empty() || names.iter().any(|name| attack.name.contains(name)));
    all
}

/// The service under attack.
struct Running {
    service: Service,
    model: String,
    /// The wait of the light client without other requests.
    alone: Duration,
    /// The longest mask so far.
    mask: Duration,
}

/// The observations that are judged.
struct SeenOutcome {
    outcome: Outcome,
    before: u64,
    peak: u64,
    after: u64,
    beside: Duration,
    /// The number of wrong answers to the light client.
    wrong: usize,
    /// The longest mask since the service began, if this attack had a longer one than those before.
    mask: Option<Duration>,
    /// The processor time that the service spent when nobody waited for an answer.
    idle: Duration,
    alone: Duration,
    end: Option<String>,
}

fn start(program: &Program) -> Result<Running, Failure> {
    let service = program.start()?;
    let model = model(&service.address)?;
    if !sending::is_live(&service.address) {
        return Err(Failure::new("the service does not say that it lives"));
    }
    // The first requests fill caches that later ones use.
    let light = |seconds| {
        light((&service, &model), || {
            std::thread::sleep(Duration::from_secs(seconds))
        })
        .0
    };
    light(1);
    let alone = wait(&light(2));
    let mask = longest_mask(&service.address);
    Ok(Running {
        service,
        model,
        alone,
        mask,
    })
}

/// Runs a client of small requests until `meanwhile` returns.
fn light<T>((service, model): (&Service, &str), meanwhile: impl FnOnce() -> T) -> (Seen, T) {
    let body = json!({"model": model, "max_tokens": 4, "temperature": 0, "guided_choice": ["yes", "no"],
        "messages": said("Is water wet?")});
    let body = body.to_string();
    let (count, first, step) = (1, 0, Some(1));
    Clients { count, first, step }.drive(
        |_, _, seen| {
            let goes_on = |answer: &Answer| answer.time < SETTLING;
            let answer = post_as(1, &service.address, (CHAT, &body), goes_on);
            if answer.status != 200 {
                seen.wrong.push(format!("status {}", answer.status));
            }
            seen.time("light", answer.time);
            std::thread::sleep(PAUSE);
        },
        meanwhile,
    )
}

/// Returns the wait of the light client that one request in a hundred exceeds.
fn wait(light: &Seen) -> Duration {
    light.at("light", 0.99).unwrap_or_default()
}

/// Returns the time of the longest mask since the service began.
fn longest_mask(address: &str) -> Duration {
    let page = ask(address, "GET", "/metrics", SETTLING).body;
    let mut values = page
        .lines()
        .filter_map(|line| line.strip_prefix("lexiform_mask_longest_seconds "));
    let seconds = values.next().and_then(|value| value.parse().ok()).unwrap_or(0.0);
    Duration::from_secs_f64(seconds)
}

/// Returns the processor time that the service spends while no request is under way.
fn spent_idly(service: &Service, attack: &Attack) -> Duration {
    if attack.expected != Expected::Abandoned {
        return Duration::ZERO;
    }
    let before = service.processor_time();
    std::thread::sleep(WATCH);
    service.processor_time().saturating_sub(before)
}

fn attacked(running: &mut Running, attack: &Attack) -> SeenOutcome {
    let service = &mut running.service;
    let before = service.memory();
    service.take_peak();
    let (light, outcome) = light((service, &running.model), || {
        std::thread::sleep(Duration::from_millis(200));
        sending::send(&service.address, &running.model, &attack.sent)
    });
    let idle = spent_idly(service, attack);
    let peak = service.take_peak();
    let end = service.end();
    let mask = Some(longest_mask(&service.address)).filter(|&mask| mask > running.mask);
    running.mask = running.mask.max(mask.unwrap_or_default());
    let begun = Instant::now();
    while end.is_none() && service.memory() > most_after(before) && begun.elapsed() < SETTLING {
        std::thread::sleep(Duration::from_millis(100));
    }
    SeenOutcome {
        outcome,
        before,
        peak,
        after: service.memory(),
        beside: wait(&light),
        wrong: light.wrong.len(),
        mask,
        idle,
        alone: running.alone,
        // Work that is still under way for closed connections may end the service later.
        end: end.or_else(|| service.end()),
    }
}

fn most_after(before: u64) -> u64 {
    before + before / 5
}

/// Returns every deviation from the expected outcome.
fn problems(expected: Expected, seen: &SeenOutcome) -> Vec<String> {
    if let Some(end) = &seen.end {
        return vec![end.clone()];
    }
    let mut all = Vec::new();
    for answer in &seen.outcome.answers {
        let is_refusal = (400..500).contains(&answer.status) && !answer.code().is_empty();
        let is_kind = match expected {
            Expected::Refused => is_refusal,
            Expected::Answered => answer.status == 200 || is_refusal,
            Expected::InTurn => answer.status == 200 || is_refusal || answer.status == 503,
            Expected::Found => (200..400).contains(&answer.status),
            Expected::Explained => (400..500).contains(&answer.status) && !answer.body.is_empty(),
            Expected::Closed => answer.status == 408,
            Expected::Abandoned => true,
        };
        let may_wait = matches!(
            expected,
            Expected::InTurn | Expected::Closed | Expected::Abandoned
        );
        if !is_kind {
            all.push(format!("wrong answer {}", answer.status));
        }
        if !may_wait && answer.time > SOON {
            all.push(format!("slow, {:.1} s", answer.time.as_secs_f64()));
        }
    }
    if !seen.outcome.live {
        all.push("/live is silent".to_owned());
    }
    if seen.peak > seen.before + MEMORY {
        all.push(format!("+{} MB", (seen.peak - seen.before) >> 20));
    }
    if seen.after > most_after(seen.before) {
        all.push(format!("+{} MB stay", (seen.after - seen.before) >> 20));
    }
    if seen.beside > (seen.alone * 3).max(WAIT) {
        all.push("others wait".to_owned());
    }
    if let Some(mask) = seen
        .mask
        .filter(|&mask| mask > MASK && seen.outcome.answers.len() == 1)
    {
        all.push(format!("a mask of {} ms", mask.as_millis()));
    }
    if seen.idle > LEFT {
        all.push(format!("{:.1} s of work for nobody", seen.idle.as_secs_f64()));
    }
    if seen.wrong > 0 {
        all.push(format!("{} wrong answers to others", seen.wrong));
    }
    all.dedup();
    all
}

fn report(attack: &Attack, seen: &SeenOutcome, problems: &[String]) {
    let answers = &seen.outcome.answers;
    let slowest = answers.iter().max_by_key(|answer| answer.time);
    let (status, code, time) = slowest.map_or((0, String::new(), Duration::ZERO), |answer| {
        (answer.status, answer.code(), answer.time)
    });
    let verdict = match problems {
        [] => "ok".to_owned(),
        _ => format!("FAILED: {}", problems.join(", ")),
    };
    println!(
        "{:<34} {status:>3} {code:<22} {:>6.2} s  {:>4}/{:>4}/{:>4} MB  p99 {:>4}/{:>5} ms  {verdict}",
        attack.name.chars().take(34).collect::<String>(),
        time.as_secs_f64(),
        seen.before >> 20,
        seen.peak >> 20,
        seen.after >> 20,
        seen.alone.as_millis(),
        seen.beside.as_millis(),
    );
}
