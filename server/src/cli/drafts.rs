//! `lexiform eval drafts`: how much each drafter saves on tool calls and documents that are generated one
//! after another.
//!
//! ```text
//! DATA ─► tasks ─► for each arm: a fresh engine writes all of them ─► figures of the arm
//! an arm: which drafts are made, and by which policy they are fed; one arm makes none, and is what others
//! are compared with
//! ```
//!
//! Every request takes the same path as a client's, and has a seed, so that all arms write the same texts;
//! if an arm does not, the report says so. Arms whose drafts are sampled write texts of their own, except at
//! temperature 0.

mod arms;
mod page;
mod regions;
mod report;
mod tasks;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use lexiform_cli::failure::{EXIT_CODES, Failure, Outcome};
use lexiform_cli::report::Destinations;
use lexiform_cli::shown::output::{self, Output};
use lexiform_engine::{Drafting, Event, Request, Sink, Stats};
use rustix::time::{ClockId, clock_gettime};

use crate::cli::model::ModelArgs;
use crate::grammars::interest::Interest;
use crate::model::served::ServedModel;
use crate::routes::prepare;
use arms::{ARMS, Arm};
use regions::Regions;
use report::{Figures, Report};
use tasks::Task;

/// Write tool calls and documents with each kind of draft, and compare
///
/// The data is a file of JSON lines, each with `messages`, `question` (the format of the Berkeley
/// function-calling leaderboard) or `prompt`, with `tools`, one of which is called, or a `schema`, or
/// neither for any text; a `prediction` is a text that the answer will repeat in parts, and `max_tokens`
/// bounds it. An arm may use for one line what it has learned from earlier ones.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    /// The tasks
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// The number of tasks, from the first on
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// Offer the tools of the first N tasks in all of them, like an agent whose tools are always the same
    #[arg(long, value_name = "N")]
    same_tools: Option<usize>,
    /// How often the tasks are written, one round after another; the figures are from the last round
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Answers that are written at a time
    #[arg(long, default_value_t = 1)]
    answers: usize,
    /// The temperature
    #[arg(long, default_value_t = 0.0)]
    temperature: f64,
    /// The maximum number of tokens of an answer
    #[arg(long, default_value_t = 160)]
    max_tokens: usize,
    /// The drafts to compare; by default all of them, with `rest` only where there is a --draft-corpus
    #[arg(long = "arm", value_parser = ARMS.map(|arm| arm.name))]
    arms: Vec<String>,
    /// Let the arms write in turn, task by task, so that a machine whose speed varies is as fast for one as
    /// for another. Each has a model of its own in memory
    #[arg(long)]
    in_turn: bool,
    /// Read the prompts of the tasks before the time is taken, so that the figures are of the answers alone,
    /// as where prompts are in the cache
    #[arg(long)]
    prompts_read: bool,
    /// Feed all drafts, whatever passes cost, instead of as many as pay off; `svip`, `ucb1` and `exp3` keep
    /// their own policies
    #[arg(long)]
    always: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    destinations: Destinations,
    #[command(flatten, next_help_heading = "Model")]
    model: ModelArgs,
}

impl Args {
    /// Returns `true` if the output is JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }

    fn arms(&self) -> impl Iterator<Item = &'static Arm> {
        let is_named = |arm: &Arm| self.arms.iter().any(|name| name == arm.name);
        let has_corpus = !self.model.run.drafts.draft_corpus.is_empty();
        let is_wanted = move |arm: &&Arm| match self.arms.is_empty() {
            true => has_corpus || !arm.needs_corpus(),
            false => is_named(arm),
        };
        ARMS.iter().filter(is_wanted)
    }
}

/// Runs `lexiform eval drafts`.
///
/// # Errors
/// Fails if the data cannot be read, the model cannot be loaded, or a report cannot be written.
pub fn run(args: &Args) -> Outcome {
    if let Some(arm) = args
        .arms()
        .find(|arm| arm.needs_corpus() && args.model.run.drafts.draft_corpus.is_empty())
    {
        let message = format!(
            "the drafts of --arm {} come from --draft-corpus PATH, which is missing",
            arm.name
        );
        return Err(Failure::message(message));
    }
    args.destinations.check()?;
    let mut tasks = tasks::read(&args.data, args.limit)?;
    if let Some(count) = args.same_tools {
        tasks::share_tools(&mut tasks, count);
    }
    let mut report = Report::new(args.answers, args.temperature, args.always, tasks.len());
    let arms: Vec<&'static Arm> = args.arms().collect();
    let at_once = if args.in_turn { arms.len() } else { 1 };
    for arms in arms.chunks(at_once.max(1)) {
        let runs = arms.iter().map(|arm| Run::open(args, arm, &tasks));
        let mut runs = runs.collect::<Result<Vec<_>, _>>()?;
        write_in_turn(args, &mut runs)?;
        for run in runs {
            run.served.engine().stop();
            let figures = Figures {
                has_own_texts: run.arm.is_sampled() && args.temperature > 0.0,
                ..run.figures
            };
            report.add(run.arm.name, figures);
        }
    }
    let page = page::report(&report, &args.data)?;
    args.destinations
        .publish(page, args.output, &report.json(), &report.table())
}

/// An arm with an engine of its own, and what was measured on it.
struct Run {
    arm: &'static Arm,
    served: Arc<ServedModel>,
    requests: Vec<Request>,
    figures: Figures,
}

impl Run {
    fn open(args: &Args, arm: &'static Arm, tasks: &[Task]) -> Result<Run, Failure> {
        let mut change = |config: &mut lexiform_engine::EngineConfig| {
            config.draft_stores = arm.stores(config.draft_stores.corpus.take());
            config.lookahead = arm.lookahead();
            config.drafting = arm.policy(match args.always {
                true => Drafting::Always,
                false => Drafting::Measured,
            });
        };
        let served = arm.model(&args.model).open_with(None, &mut change);
        let served = Arc::new(served.map_err(|error| Failure::message(error.to_string()))?);
        let requests = tasks.iter().map(|task| request(&served, task, args, arm));
        let requests = requests.collect::<Result<Vec<_>, _>>()?;
        Ok(Run {
            arm,
            served,
            requests,
            figures: Figures::default(),
        })
    }

    /// Writes some of the tasks at a time, and adds what that took to the figures.
    fn write(&mut self, tasks: Range<usize>, args: &Args) -> Result<(), Failure> {
        let answers = args.answers.max(1);
        if args.prompts_read {
            let read = |request: &Request| Request::new(request.prompt.tokens.clone(), 1);
            let requests: Vec<Request> = self.requests[tasks.clone()].iter().map(read).collect();
            write(&self.served, &requests, answers, &mut Figures::default())?;
        }
        let before = self.served.engine().stats();
        let (begun, worked) = (Instant::now(), processor_time());
        write(&self.served, &self.requests[tasks], answers, &mut self.figures)?;
        self.figures.seconds += begun.elapsed().as_secs_f64();
        self.figures.processor_seconds += (processor_time() - worked).as_secs_f64();
        self.figures.count(&before, &self.served.engine().stats());
        Ok(())
    }
}

/// The number of tasks of a turn, for each answer that is written at a time.
const ANSWERS_IN_TURN: usize = 4;

/// Writes all tasks with these arms: each writes some of them before the next ones are written.
fn write_in_turn(args: &Args, runs: &mut [Run]) -> Result<(), Failure> {
    let tasks = runs.first().map_or(0, |run| run.requests.len());
    // Where several answers are written at a time, the end of a turn, at which fewer and fewer are left, must
    // not be most of it: some drafts shorten only some of the answers.
    let step = match args.answers.max(1) {
        1 => 1,
        answers => ANSWERS_IN_TURN * answers,
    };
    for round in 1..=args.rounds.max(1) {
        runs.iter_mut().for_each(|run| run.figures = Figures::default());
        for begin in (0..tasks).step_by(step) {
            output::err(&format!("\rround {round}, task {begin} of {tasks} "));
            // Another one begins each time: what the one before has left in caches is no arm's advantage.
            let first = begin / step % runs.len();
            for number in 0..runs.len() {
                let place = (first + number) % runs.len();
                let run = &mut runs[place];
                run.write(begin..tasks.min(begin + step), args)?;
            }
        }
    }
    output::err("\n");
    Ok(())
}

/// Returns the time that all threads of the process have worked.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Returns the request that a client would send.
fn request(served: &Arc<ServedModel>, task: &Task, args: &Args, arm: &Arm) -> Result<Request, Failure> {
    let body = task.body(served.name(), args.temperature, args.max_tokens);
    let prepared = prepare::chat(served, body.to_string().as_bytes(), &Interest::default());
    let prepared = prepared.map_err(|error| {
        let envelope = serde_json::to_value(error.envelope()).unwrap_or_default();
        let message = envelope["error"]["message"].as_str().unwrap_or_default();
        Failure::message(format!("{}: {message}", task.place))
    })?;
    let mut requests = prepared.requests.into_iter();
    let request = requests
        .next()
        .ok_or_else(|| Failure::message(format!("{}: nothing to write", task.place)))?;
    let speculation = arm.speculation(request.speculation);
    Ok(request.speculation(speculation))
}

/// Writes answers, so many at a time: the next one begins when one has ended.
fn write(
    served: &ServedModel,
    requests: &[Request],
    at_a_time: usize,
    figures: &mut Figures,
) -> Result<(), Failure> {
    let (sender, events) = channel();
    let mut tickets = Vec::with_capacity(requests.len());
    let mut left = requests.iter().enumerate();
    let mut begin_next = || -> Result<(), Failure> {
        let Some((number, request)) = left.next() else {
            return Ok(());
        };
        let sender = sender.clone();
        let sink: Sink = Box::new(move |event| sender.send((number, event)).is_ok());
        let ticket = served.engine().submit(request.clone(), sink);
        tickets.push(ticket.map_err(|refusal| Failure::message(refusal.to_string()))?);
        Ok(())
    };
    for _ in 0..at_a_time {
        begin_next()?;
    }
    let mut open = requests.len();
    let mut answers: Vec<Regions> = requests
        .iter()
        .map(|request| Regions::new(request.constraints.grammar.clone()))
        .collect();
    let mut texts = vec![Vec::new(); requests.len()];
    while open > 0 {
        let (number, event) = events
            .recv()
            .map_err(|_| Failure::message("the engine has stopped".to_owned()))?;
        match event {
            Event::Token {
                token, bytes, origin, ..
            } => {
                answers[number].take(token, &bytes, origin);
                texts[number].push(token);
            }
            Event::Done(_) => {
                open -= 1;
                begin_next()?;
            }
            Event::Failed(error) => return Err(Failure::message(error.to_string())),
        }
    }
    for regions in answers {
        figures.regions.add(regions.counts());
    }
    figures.texts.extend(texts);
    Ok(())
}

impl Figures {
    /// Adds what the engine has counted between two points in time.
    fn count(&mut self, before: &Stats, after: &Stats) {
        self.passes += after.steps - before.steps;
        self.tokens += after.generated - before.generated;
        self.drafted += after.drafted - before.drafted;
        self.accepted += after.accepted - before.accepted;
        self.store_bytes = after.draft_store_bytes + after.draft_corpus_bytes;
    }
}
