//! `lexiform bench decode`: the speed of the decode loop, and its share of the machine's memory bandwidth.
//!
//! ```text
//!   flags ─► grid: groups of (answers, prompt, temperature), each with the same arms
//!   a group, round after round: [speed of memory] [free] [schema] [drafts] [local] [global] [peer]   the first round does not count
//!   runs of an arm ─► medians ─► report: JSON, table, page
//! ```
//!
//! The arms of a group take turns, so that a change in the speed of the machine affects all of them, and each
//! is compared with its baseline of the same round. No two prompts are the same, so that nothing is found in
//! the cache, and nothing is learned from earlier answers: both would make later rounds faster than earlier
//! ones.

mod args;
mod arms;
mod grid;
mod machine;
mod page;
mod peer;
mod report;
mod run;

use std::sync::Arc;

use lexiform_cli::failure::{Failure, Outcome};
use lexiform_cli::report::write;
use lexiform_cli::shown::output;
use lexiform_engine::{Bandwidth, PassReads};

use crate::model::served::ServedModel;
use crate::model::source::Wanted;
pub use args::Args;
use args::PEERS;
use arms::Constraints;
use grid::{Grid, Group};
use machine::Machine;
use peer::Peer;
use report::{Cell, Report};
use run::Run;

/// Runs `lexiform bench decode`.
///
/// # Errors
/// Fails if a flag is invalid, the model cannot be loaded, a request is refused, or a report cannot be
/// written.
pub fn run(args: &Args) -> Outcome {
    args.destinations.check()?;
    let grid = Grid::of(args)?;
    // The log reports how a card runs passes.
    let log = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false);
    drop(log.with_max_level(tracing::Level::INFO).try_init());
    let machine = Machine::found(&args.model);
    let wanted = args.shape.map_or(Wanted::ToAnswer, |_| Wanted::ForItsTokens);
    let mut chosen = args.model.choose(wanted).map_err(unusable)?;
    if let Some(shape) = args.shape {
        let random = chosen.files.with_random_weights(shape);
        chosen.files = random.map_err(|error| Failure::message(error.to_string()))?;
        chosen.located.name = format!("{shape} with random weights");
        // The draft model of the demo model would guess at random here; a draft model that was named is kept.
        chosen.draft_files = chosen
            .draft_files
            .filter(|_| args.model.run.drafts.draft_model.is_some());
    }
    // Before the model, which may take a long time to load.
    let peer = match args.peer {
        Some(_) => Some(Peer::start(args, &chosen, &machine)?),
        None => None,
    };
    let loaded = args.model.run.load(chosen).map_err(unusable)?;
    grid.check_room(
        loaded.max_positions(),
        loaded.cache_bytes_per_token(),
        machine.free_bytes,
    )?;
    let reads = loaded.reads().clone();
    let started = loaded.start(&args.model.run, None, &mut |config| grid.fit(config));
    let served = started.map_err(unusable)?;
    let measured = Bench {
        constraints: Constraints::compile(&served)?,
        served: Arc::new(served),
        args,
        reads,
        machine,
        peer,
    };
    let report = measured.report(&grid)?;
    measured.served.engine().stop();
    publish(args, &report)
}

fn unusable(error: crate::model::text::StartError) -> Failure {
    Failure::message(error.to_string())
}

/// Prints a report, and writes it to the files given on the command line.
fn publish(args: &Args, report: &Report) -> Outcome {
    let json = report.json();
    if let Some(path) = &args.out {
        write(path, &format!("{json:#}\n"))?;
    }
    let page = page::report(report);
    args.destinations
        .publish(page, args.output, &json, &report.table())
}

/// The state of a benchmark.
struct Bench<'a> {
    args: &'a Args,
    served: Arc<ServedModel>,
    reads: PassReads,
    constraints: Constraints,
    machine: Machine,
    peer: Option<Peer>,
}

impl Bench<'_> {
    /// Measures the whole grid and returns the report.
    fn report(&self, grid: &Grid) -> Result<Report, Failure> {
        let mut report = Report::new(&self.machine, &self.served, &self.reads, grid);
        let mut serial = 0;
        for group in &grid.groups {
            output::err(&format!("{group}…\n"));
            let mut cells = self.cells(group);
            for round in 0..grid.rounds {
                let speed = self.bandwidth()?;
                let runs = self.round(grid, group, &mut serial)?;
                if round > 0 {
                    report.memory.push(speed);
                    cells
                        .iter_mut()
                        .zip(runs)
                        .for_each(|(cell, run)| cell.runs.push(run));
                }
            }
            report.cells.extend(cells);
        }
        report.end();
        Ok(report)
    }

    /// Returns the cells of a group, still empty: one for each arm, and one for the peer.
    fn cells(&self, group: &Group) -> Vec<Cell> {
        let arms = group.arms.iter().map(|arm| (arm.name, arm.baseline));
        let peer = self.args.peer.iter().map(|_| (PEERS[0], Some("free")));
        let cell = |(arm, baseline)| Cell {
            answers: group.answers,
            prompt: group.prompt,
            temperature: group.temperature,
            arm,
            baseline,
            runs: Vec::new(),
        };
        arms.chain(peer).map(cell).collect()
    }

    /// Runs each arm once. `serial` is the number of the last prompt.
    fn round(&self, grid: &Grid, group: &Group, serial: &mut usize) -> Result<Vec<Run>, Failure> {
        let mut runs = Vec::new();
        for arm in &group.arms {
            let prompts = group.prompts(&self.served, serial)?;
            let seed = *serial as u64;
            let request = |(number, prompt)| {
                arm.request(
                    &self.constraints,
                    prompt,
                    grid.tokens,
                    group.temperature,
                    seed + number as u64,
                )
            };
            let requests = prompts.into_iter().enumerate().map(request).collect();
            let run = run::timed(&self.served, &self.reads, requests, arm.is_steady());
            runs.push(run.map_err(|message| Failure::message(format!("arm {}: {message}", arm.name)))?);
        }
        if let Some(peer) = &self.peer {
            let prompts = group.prompts(&self.served, serial)?;
            runs.push(peer.run(&prompts, grid.tokens, group.temperature, &self.reads)?);
        }
        Ok(runs)
    }

    fn bandwidth(&self) -> Result<Bandwidth, Failure> {
        let options = self.args.model.run.load_options();
        let measured = Bandwidth::measure(options.device, options.threads, self.machine.buffer_bytes);
        measured.map_err(|error| Failure::Unable(format!("cannot measure the memory: {error}")))
    }
}
