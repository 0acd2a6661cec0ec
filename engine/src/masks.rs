//! Masks on other threads, while the model computes.
//!
//! ```text
//!   decode thread   schedule ──┬── forward pass ──────────────┬── sample
//!   mask threads               └─ mask(s0) mask(s1) mask(s2) ─┘
//! ```
//!
//! The states are known before the pass starts: a mask depends on the state alone, and the states along a draft follow
//! from the draft. So a mask costs no time unless it takes longer than the model.

use crate::meters::Meters;
use crate::{Grammar, Mask, State};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The masks of consecutive positions, or `None` if computing them panicked.
pub(crate) type Masks = Option<Vec<Bounds>>;

/// What may come at a position.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) mask: Arc<Mask>,
    /// Whether the tokens left took something away that the grammar allows.
    pub(crate) steered: bool,
}

/// What may come in a state, with so many tokens left or, if the answer may be cut, with any number.
pub(crate) fn bounds(grammar: &Grammar, state: State, budget: Option<usize>) -> Bounds {
    let (mask, steered) = match budget {
        Some(budget) => grammar.mask_steered(state, budget),
        None => (grammar.mask(state), false),
    };
    Bounds { mask, steered }
}

struct Job {
    number: usize,
    grammar: Grammar,
    states: Vec<(State, Option<usize>)>,
    reply: Sender<(usize, Masks)>,
    meters: Arc<Meters>,
}

impl Job {
    fn run(self) {
        let compute = || {
            self.states
                .iter()
                .map(|&(state, budget)| {
                    let begun = Instant::now();
                    let bounds = bounds(&self.grammar, state, budget);
                    self.meters.masks.observe_time(begun.elapsed());
                    bounds
                })
                .collect()
        };
        let masks = catch_unwind(AssertUnwindSafe(compute)).ok();
        // Nobody listens when the pass failed; the masks are cached by the grammar all the same.
        let _ = self.reply.send((self.number, masks));
    }
}

/// One sequence's grammar and the states whose masks it needs, each with the tokens that the mask may spend, if they
/// are counted.
pub(crate) type Wanted = (Grammar, Vec<(State, Option<usize>)>);

/// The threads. They end when the pool is dropped.
pub(crate) struct MaskPool {
    jobs: Option<Sender<Job>>,
    meters: Arc<Meters>,
}

impl MaskPool {
    /// With no threads at all, masks are computed when they are asked for.
    pub(crate) fn new(threads: usize, meters: Arc<Meters>) -> Self {
        let (jobs, queue) = channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let queue = queue.clone();
            std::thread::spawn(move || work(&queue));
        }
        MaskPool {
            jobs: (threads > 0).then_some(jobs),
            meters,
        }
    }

    /// Starts computing; every entry is what one sequence needs, if it has a grammar.
    pub(crate) fn start(&self, wanted: Vec<Option<Wanted>>) -> Pending {
        let (reply, replies) = channel();
        let count = wanted.len();
        for (number, wanted) in wanted.into_iter().enumerate() {
            let Some((grammar, states)) = wanted else { continue };
            let job = Job {
                number,
                grammar,
                states,
                reply: reply.clone(),
                meters: self.meters.clone(),
            };
            match &self.jobs {
                Some(jobs) => {
                    if let Err(refused) = jobs.send(job) {
                        refused.0.run();
                    }
                }
                None => job.run(),
            }
        }
        Pending { replies, count }
    }
}

fn work(queue: &Mutex<Receiver<Job>>) {
    loop {
        let job = match queue.lock() {
            Ok(queue) => queue.recv(),
            Err(_) => return,
        };
        match job {
            Ok(job) => job.run(),
            Err(_) => return,
        }
    }
}

/// Masks that are being computed.
pub(crate) struct Pending {
    replies: Receiver<(usize, Masks)>,
    count: usize,
}

impl Pending {
    /// Waits for all, in the order in which they were asked for. The senders are gone once every job has replied.
    pub(crate) fn wait(self) -> Vec<Masks> {
        let mut masks = vec![None; self.count];
        for (number, reply) in self.replies {
            masks[number] = reply;
        }
        masks
    }
}
