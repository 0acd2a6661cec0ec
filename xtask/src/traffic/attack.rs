//! `cargo xtask attack`: runs the real program with its memory watched, against requests meant to crash,
//! stall or bloat it, with a light client beside them.
//!
//! ```text
//!   table ─ what once worked, and random members of the families ─► sending ─► service ◄─ light (its waits)
//!                                                                                 └─ memory: before, peak, after
//! ```

mod http;
mod light;
mod sending;
mod service;
mod sources;
mod table;

use crate::process::{Failure, cargo, must_succeed, root};
use crate::setup;
use crate::tally::Tally;
use light::{Light, Waits};
use sending::Outcome;
use service::Service;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use table::{Attack, Dice, Expected};

const USAGE: &str = "\
Usage: cargo xtask attack [--program PATH] [--port N] [--memory MB] [--members N] [--seed N] [NAME...]

  Attacks `lexiform serve`, by default the release build of this checkout, which it builds, on a free port. It is killed
  beyond --memory (2000). Each family has --members random attacks (4). NAME picks attacks whose names hold it.";

/// The most time that a single short request may take, including its few tokens.
const SOON: Duration = Duration::from_secs(2);
/// The most resident memory that an attack may add.
const MEMORY: u64 = 256 << 20;
/// A wait of the light client that is always acceptable, however short its waits are without an attack.
const WAIT: Duration = Duration::from_millis(60);
/// The time that memory is given to return to normal.
const SETTLING: Duration = Duration::from_secs(8);

struct AttackPlan {
    program: Option<PathBuf>,
    port: Option<u16>,
    memory: u64,
    members: usize,
    seed: u64,
    names: Vec<String>,
}

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let Some(plan) = plan(args)? else {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    };
    let program = match &plan.program {
        Some(program) => program.clone(),
        None => built()?,
    };
    let mut field = Field {
        plan,
        program,
        running: None,
    };
    let mut tally = Tally::default();
    for attack in field.attacks() {
        tally += if field.fight(&attack)? {
            Tally::PASSED
        } else {
            Tally::FAILED
        };
    }
    println!("{tally}");
    Ok(if tally.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn built() -> Result<PathBuf, Failure> {
    setup::ensure()?;
    must_succeed(&mut cargo([
        "build",
        "--release",
        "--package",
        "lexiform-server",
        "--bins",
        "--features",
        "kernels",
    ]))?;
    Ok(root().join("target/release/lexiform-server"))
}

fn plan(args: &[String]) -> Result<Option<AttackPlan>, Failure> {
    let mut plan = AttackPlan {
        program: None,
        port: None,
        memory: 2_000,
        members: 4,
        seed: 0x5eed,
        names: Vec::new(),
    };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        if name == "--help" {
            return Ok(None);
        }
        if !name.starts_with("--") {
            plan.names.push(name.clone());
            continue;
        }
        let wrong = || Failure::new(format!("{name} is not understood\n\n{USAGE}"));
        let value = args.next().ok_or_else(wrong)?;
        let number = value.parse::<u32>().map_err(|_| wrong());
        match name.as_str() {
            "--program" => plan.program = Some(value.into()),
            "--port" => plan.port = Some(u16::try_from(number?).map_err(|_| wrong())?),
            "--memory" => plan.memory = u64::from(number?),
            "--members" => plan.members = number? as usize,
            "--seed" => plan.seed = u64::from(number?),
            _ => return Err(wrong()),
        }
    }
    Ok(Some(plan))
}

/// The service under attack, restarted after each attack that harmed it.
struct Field {
    plan: AttackPlan,
    program: PathBuf,
    running: Option<Running>,
}

struct Running {
    service: Service,
    /// The wait of the light client without other requests.
    alone: Duration,
}

/// The observations that are judged.
struct SeenOutcome {
    outcome: Outcome,
    before: u64,
    peak: u64,
    after: u64,
    beside: Waits,
    alone: Duration,
    end: Option<String>,
}

impl Field {
    fn attacks(&self) -> Vec<Attack> {
        let mut dice = Dice(self.plan.seed | 1);
        let mut all = table::known();
        for family in 0..table::FAMILIES {
            all.extend((0..self.plan.members).map(|_| table::member(family, &mut dice)));
        }
        let names = &self.plan.names;
        all.retain(|attack| names.is_empty() || names.iter().any(|name| attack.name.contains(name)));
        all
    }

    /// Runs an attack, prints its outcome on a line, and returns `true` if the service is unharmed.
    fn fight(&mut self, attack: &Attack) -> Result<bool, Failure> {
        let running = match &mut self.running {
            Some(running) => running,
            none => none.insert(start(&self.plan, &self.program)?),
        };
        let seen = attacked(running, attack);
        let problems = problems(attack.expected, &seen);
        report(attack, &seen, &problems);
        if !problems.is_empty() {
            self.running = None;
        }
        Ok(problems.is_empty())
    }
}

fn start(plan: &AttackPlan, program: &std::path::Path) -> Result<Running, Failure> {
    let service = Service::start(program, plan.port, plan.memory << 20)?;
    if !sending::answers(service.address) {
        return Err(Failure::new("the service does not say that it lives"));
    }
    // The first requests fill caches that later ones use.
    for seconds in [1, 2] {
        let light = Light::start(&service);
        std::thread::sleep(Duration::from_secs(seconds));
        let alone = light.stop().p99();
        if seconds == 2 {
            return Ok(Running { service, alone });
        }
    }
    Err(Failure::new("the light client never asked"))
}

fn attacked(running: &mut Running, attack: &Attack) -> SeenOutcome {
    let service = &mut running.service;
    let before = service.memory();
    service.take_peak();
    let light = Light::start(service);
    std::thread::sleep(Duration::from_millis(200));
    let outcome = sending::send(service.address, &service.model, &attack.sent);
    let beside = light.stop();
    let peak = service.take_peak();
    let end = (!service.is_alive()).then(|| service.end());
    let begun = Instant::now();
    while end.is_none() && service.memory() > most_after(before) && begun.elapsed() < SETTLING {
        std::thread::sleep(Duration::from_millis(100));
    }
    let after = service.memory();
    // Work that is still under way for closed connections may end the service later.
    let end = end.or_else(|| (!service.is_alive()).then(|| service.end()));
    SeenOutcome {
        outcome,
        before,
        peak,
        after,
        beside,
        alone: running.alone,
        end,
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
        };
        let may_wait = matches!(expected, Expected::InTurn | Expected::Closed);
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
    if seen.beside.p99() > (seen.alone * 3).max(WAIT) {
        all.push("others wait".to_owned());
    }
    if seen.beside.wrong > 0 {
        all.push(format!("{} wrong answers to others", seen.beside.wrong));
    }
    all.dedup();
    all
}

fn report(attack: &Attack, seen: &SeenOutcome, problems: &[String]) {
    let answers = &seen.outcome.answers;
    let slowest = answers.iter().max_by_key(|answer| answer.time);
    let (status, code) = slowest.map_or((0, String::new()), |answer| (answer.status, answer.code()));
    let time = slowest.map_or(Duration::ZERO, |answer| answer.time);
    let verdict = if problems.is_empty() {
        "ok".to_owned()
    } else {
        format!("FAILED: {}", problems.join(", "))
    };
    println!(
        "{:<34} {status:>3} {code:<22} {:>6.2} s  {:>4}/{:>4}/{:>4} MB  p99 {:>4}/{:>5} ms  {verdict}",
        attack.name.chars().take(34).collect::<String>(),
        time.as_secs_f64(),
        seen.before >> 20,
        seen.peak >> 20,
        seen.after >> 20,
        seen.alone.as_millis(),
        seen.beside.p99().as_millis(),
    );
}
