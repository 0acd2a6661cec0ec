//! One timed run: some answers that are generated at the same time.
//!
//! ```text
//!   submit ──── prompts ────► first tokens …  last first token ═══════ decoding ═══════► last token
//!   └── time to the first token of each ──┘                    └── seconds, passes, bytes that they read
//! ```
//!
//! Passes are counted where the events happen, on the threads of the engine: a listening thread may be late.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

use lexiform_engine::{Event, Origin, PassReads, Request, Sink};

use crate::model::served::ServedModel;

/// The measurements of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Run {
    /// The number of tokens of all answers.
    pub(super) tokens: usize,
    /// The seconds from the first request to the last token.
    pub(super) seconds: f64,
    /// The seconds until the first token of each answer.
    pub(super) firsts: Vec<f64>,
    /// The number of attempts of all answers; it exceeds the number of answers only under the global law.
    pub(super) attempts: usize,
    /// The number of tokens that were drafted.
    pub(super) drafted: usize,
    /// The measurements after all answers had their first token, if any token followed.
    pub(super) decoding: Option<Decoding>,
}

/// The part of a run in which all answers are being generated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decoding {
    pub(super) seconds: f64,
    pub(super) passes: f64,
    /// The seconds per pass spent in the model, until its rows are in memory; the rest is the loop's.
    pub(super) model_seconds: Option<f64>,
    /// The bytes that all these passes read.
    pub(super) bytes: f64,
}

/// The counters of the engine at a point in time.
#[derive(Clone, Copy)]
struct RunMark {
    at: Instant,
    passes: u64,
    pass_seconds: f64,
    fed: f64,
}

impl RunMark {
    fn now(served: &ServedModel) -> Self {
        let meters = served.engine().meters();
        RunMark {
            at: Instant::now(),
            passes: meters.passes.count(),
            pass_seconds: meters.passes.sum(),
            fed: meters.pass_tokens.sum(),
        }
    }
}

/// Generates the answers to these requests. `is_steady` means that each pass advances each answer.
///
/// # Errors
/// Returns the message of a refusal or a failure.
pub(super) fn timed(
    served: &Arc<ServedModel>,
    reads: &PassReads,
    requests: Vec<Request>,
    is_steady: bool,
) -> Result<Run, String> {
    let prompts: Vec<usize> = requests
        .iter()
        .map(|request| request.prompt.tokens.len())
        .collect();
    let (sender, events) = channel();
    let begun = Instant::now();
    let mut tickets = Vec::with_capacity(requests.len());
    for (number, request) in requests.into_iter().enumerate() {
        let (sender, served_there) = (sender.clone(), served.clone());
        let sink: Sink =
            Box::new(move |event| sender.send((number, RunMark::now(&served_there), event)).is_ok());
        let ticket = served.engine().submit(request, sink);
        tickets.push(ticket.map_err(|refusal| refusal.to_string())?);
    }
    drop(sender);
    let mut run = Run::default();
    let mut tokens: Vec<Vec<(RunMark, Origin)>> = vec![Vec::new(); prompts.len()];
    for (number, mark, event) in events {
        match event {
            Event::Token { origin, .. } => tokens[number].push((mark, origin)),
            Event::Done(outcome) => {
                run.attempts += outcome.attempts;
                run.drafted += outcome.drafted;
            }
            Event::Failed(error) => return Err(error.to_string()),
        }
    }
    let last = tokens.iter().flatten().map(|(mark, _)| mark.at).max();
    run.tokens = tokens.iter().map(Vec::len).sum();
    run.seconds = last.map_or(0.0, |last| (last - begun).as_secs_f64());
    let firsts = tokens.iter().filter_map(|tokens| tokens.first());
    run.firsts = firsts.map(|(mark, _)| (mark.at - begun).as_secs_f64()).collect();
    if is_steady {
        run.decoding = decoding(&prompts, &tokens, reads);
    }
    Ok(run)
}

/// Returns the measurements after all answers had their first token; `None` if no pass followed.
fn decoding(prompts: &[usize], tokens: &[Vec<(RunMark, Origin)>], reads: &PassReads) -> Option<Decoding> {
    let firsts = tokens.iter().map(|tokens| Some(tokens.first()?.0));
    let firsts: Option<Vec<RunMark>> = firsts.collect();
    let from = firsts?.into_iter().max_by_key(|mark| mark.at)?;
    let all = tokens.iter().flatten().map(|(mark, _)| *mark);
    let to = all.max_by_key(|mark| mark.at)?;
    let passes = to.passes.checked_sub(from.passes).filter(|passes| *passes > 0)? as f64;
    let weights = passes * reads.weights((to.fed - from.fed) / passes);
    // A text was read once for each pass that produced a token which was not drafted.
    let read = |(prompt, tokens): (&usize, &Vec<(RunMark, Origin)>)| -> f64 {
        let later = tokens.iter().enumerate();
        let drawn =
            later.filter(|(_, (mark, origin))| from.passes < mark.passes && *origin == Origin::Sampled);
        drawn.map(|(index, _)| reads.cache(prompt + index)).sum()
    };
    let cache: f64 = prompts.iter().zip(tokens).map(read).sum();
    Some(Decoding {
        seconds: (to.at - from.at).as_secs_f64(),
        passes,
        model_seconds: Some((to.pass_seconds - from.pass_seconds) / passes),
        bytes: weights + cache,
    })
}
