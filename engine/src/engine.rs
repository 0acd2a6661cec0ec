//! The handle that others hold: requests go in through a channel, events come out through each request's
//! sink.
//!
//! One thread owns the model and runs the loop. It takes what has been submitted, makes one step, and
//! repeats; with nothing to do it sleeps. A panic inside a step fails the sequences that ran and empties the
//! cache; after three in a row the engine gives up and refuses everything.

mod ahead;
mod check;
pub(crate) mod draft_model;
mod drive;
pub(crate) mod grammar_task;
mod step;

use self::check::{
    check_answers, check_budget, check_combination, check_company, check_config, check_healed, check_law,
    check_options, check_prefix, check_search, option_tokens,
};
use crate::config::EngineConfig;
use crate::engine::draft_model::Assistant;
use crate::engine::drive::driver;
use crate::engine::step::{Core, Parts};
use crate::error::{EngineError, Refusal};
use crate::fairness::room::Room;
use crate::grammar::masks::MaskHook;
use crate::metrics::meters::Meters;
use crate::metrics::stats::Stats;
use crate::model::Model;
use crate::request::law;
use crate::request::{OnBudget, Request, Speculation};
use crate::sequence::Sequence;
use crate::sequence::job::{Job, Sink};
use crate::speculation::policy::CountedTime;
use lexiform::vocab::Vocabulary;
use lexiform_law::draft::Tokenise;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Panics in a row after which the engine gives up.
const MAX_PANICS: usize = 3;

enum Command {
    Submit(Box<Sequence>, Job),
    Cancel { job: u64, answer: usize },
    Stop,
}

pub(crate) struct Shared {
    stats: Mutex<Stats>,
    meters: Arc<Meters>,
    /// Requests submitted that have not run yet.
    queue: Arc<Room>,
    alive: AtomicBool,
    next_id: AtomicU64,
    limits: Limits,
    /// What was found wrong at the start and left aside.
    notices: Vec<String>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Limits {
    max_context: usize,
    max_branches: usize,
    vocab_size: usize,
    vocabulary: Arc<Vocabulary>,
    /// The most tokens of options that a pass weighs.
    option_tokens: usize,
    /// [`Model::variance`].
    variance: Option<&'static str>,
}

/// A handle on a running engine; cheap to clone. The thread ends when all handles and tickets are gone and
/// nothing runs.
#[derive(Clone)]
pub struct Engine {
    commands: Sender<Command>,
    shared: Arc<Shared>,
}

impl Engine {
    /// Starts the decode thread. `draft` is a small model with the same vocabulary whose guesses the big one
    /// verifies.
    pub fn start(
        model: Box<dyn Model>,
        draft: Option<Box<dyn Model>>,
        vocabulary: Arc<Vocabulary>,
        config: EngineConfig,
    ) -> Result<Engine, EngineError> {
        Self::start_parts(Parts {
            draft: draft.map(Assistant::from),
            ..Parts::new(model, vocabulary, config)
        })
    }

    /// The same with a hook that runs before every mask, for tests of slow grammars.
    #[doc(hidden)]
    pub fn start_with_hook(
        model: Box<dyn Model>,
        vocabulary: Arc<Vocabulary>,
        config: EngineConfig,
        hook: MaskHook,
    ) -> Result<Engine, EngineError> {
        Self::start_parts(Parts {
            mask_hook: Some(hook),
            ..Parts::new(model, vocabulary, config)
        })
    }

    /// The same with passes whose cost is said and not measured, for tests of what is drafted.
    #[doc(hidden)]
    pub fn start_counted(
        model: Box<dyn Model>,
        draft: Option<Box<dyn Model>>,
        vocabulary: Arc<Vocabulary>,
        config: EngineConfig,
        counted: CountedTime,
    ) -> Result<Engine, EngineError> {
        Self::start_parts(Parts {
            draft: draft.map(Assistant::from),
            counted: Some(counted),
            ..Parts::new(model, vocabulary, config)
        })
    }

    /// The same with the model's tokenizer, so that forced text is drafted in the tokens that the model would
    /// write. Without one it is cut by the longest token at each place. The draft model may have tokens of
    /// its own: then it drafts text at temperature 0, and tokens that both have at others (SLEM and TLI of
    /// [Timor et al. 2025](https://arxiv.org/abs/2502.05202)).
    ///
    /// # Errors
    /// No tokens of the draft model write what one of the model's does, or the engine cannot start.
    pub fn start_with_tokeniser(
        model: Box<dyn Model>,
        draft: Option<Assistant>,
        vocabulary: Arc<Vocabulary>,
        tokeniser: Arc<dyn Tokenise + Sync>,
        config: EngineConfig,
    ) -> Result<Engine, EngineError> {
        Self::start_parts(Parts {
            draft,
            tokeniser: Some(tokeniser),
            ..Parts::new(model, vocabulary, config)
        })
    }

    fn start_parts(parts: Parts) -> Result<Engine, EngineError> {
        let config = &parts.config;
        check_config(config)?;
        let queue = Arc::new(Room::new(config.max_waiting));
        let limits = Limits {
            max_context: parts
                .model
                .max_positions()
                .min(config.blocks.saturating_mul(config.block_size)),
            max_branches: config.max_branches,
            vocab_size: parts.model.vocab_size(),
            vocabulary: parts.vocabulary.clone(),
            option_tokens: option_tokens(config, parts.model.vocab_size()),
            variance: parts.model.variance(),
        };
        let meters = Arc::<Meters>::default();
        let core = Core::new(parts, meters.clone())?;
        let shared = Arc::new(Shared {
            stats: Mutex::default(),
            meters,
            queue,
            alive: AtomicBool::new(true),
            next_id: AtomicU64::new(0),
            limits,
            notices: core.stores.notices().to_vec(),
            thread: Mutex::default(),
        });
        let (commands, queue) = channel();
        let mut decoder = Decoder {
            core,
            queue,
            shared: shared.clone(),
            panics: 0,
            stopped: false,
        };
        decoder.publish();
        let thread = std::thread::Builder::new().name("lexiform-decode".to_string());
        let spawned = thread.spawn(move || decoder.run());
        let spawned = spawned
            .map_err(|error| EngineError::Config(format!("no thread for the decode loop: {error}")))?;
        *shared.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(spawned);
        Ok(Engine { commands, shared })
    }

    /// Ends the decode thread after the pass that it is in, and waits for that. What ran hears that the
    /// engine stopped, and new requests are refused.
    ///
    /// A program that ends while its thread computes on a card takes the card's libraries away under it, and
    /// ends with a crash instead of its status. Not to be called from a sink.
    pub fn stop(&self) {
        // A thread that has ended listens no more.
        let _ = self.commands.send(Command::Stop);
        let thread = self
            .shared
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // Its panics are caught where they happen.
        let _ = thread.map(JoinHandle::join);
    }

    /// What was found wrong at the start and left aside, a sentence each: damaged files of
    /// [`DraftStores::folder`](crate::DraftStores::folder).
    pub fn notices(&self) -> &[String] {
        &self.shared.notices
    }

    /// The most tokens that a prompt and its answer may have together.
    pub fn max_context(&self) -> usize {
        self.shared.limits.max_context
    }

    /// Why no request can have [`Request::batch_invariant`]; `None` if they can.
    pub fn variance(&self) -> Option<&'static str> {
        self.shared.limits.variance
    }

    /// Takes a request for one answer, or says why not. Events go to `sink`; dropping the ticket cancels the
    /// request.
    pub fn submit(&self, request: Request, sink: Sink) -> Result<Ticket, Refusal> {
        let mut tickets = self.submit_all(request, vec![sink])?;
        tickets.pop().ok_or(Refusal::Stopped)
    }

    /// Takes a request for several answers, or says why not. Each answer has a sink, and a ticket that
    /// cancels it alone.
    pub fn submit_all(&self, request: Request, sinks: Vec<Sink>) -> Result<Vec<Ticket>, Refusal> {
        self.check(&request)?;
        self.submit_checked(request, sinks)
    }

    /// The same for a request that [`check`](Self::check) has taken: what may take long is not looked at
    /// again.
    ///
    /// # Errors
    /// The queue is full, or the request is wrong in a way that is seen at once.
    pub fn submit_checked(&self, mut request: Request, sinks: Vec<Sink>) -> Result<Vec<Ticket>, Refusal> {
        self.check_shape(&request)?;
        let answers = request.task.answers();
        if sinks.len() != answers {
            return Err(Refusal::Invalid {
                name: "answers",
                value: answers.to_string(),
                expected: "as many as there are sinks",
            });
        }
        if request.task.search().is_some() {
            // A search asks for rows, and looks at every token that is drawn.
            request.speculation = Speculation::none();
        }
        let warper = law::warper(&request)?;
        let walk = law::local_walk(&request, &warper, &self.shared.limits.vocabulary);
        let queue = &self.shared.queue;
        let busy = |waiting| Refusal::Busy {
            waiting,
            limit: queue.limit(),
        };
        let branches = law::branches(&request);
        let place = queue.take(&request.limits.owner, branches).map_err(busy)?;
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let limits = &self.shared.limits;
        let driver = driver(&request, limits.option_tokens, &limits.vocabulary);
        let job = Job::new(driver, sinks);
        let sequence = Box::new(Sequence::new(id, request, (warper, walk), place));
        let ticket = |answer| Ticket {
            id,
            answer,
            begun: sequence.report.begun.clone(),
            commands: self.commands.clone(),
            cancels: true,
        };
        let tickets = (0..answers).map(ticket).collect();
        self.commands
            .send(Command::Submit(sequence, job))
            .map_err(|_| Refusal::Stopped)?;
        Ok(tickets)
    }

    /// Says why [`submit`](Self::submit) would not take a request, but for the queue. The first look at a
    /// large grammar finds how long its shortest texts are, which may take a tenth of a second: whoever
    /// submits from a thread that serves others asks here first, from one that may block.
    ///
    /// # Errors
    /// The request does not fit this engine or its own budget.
    pub fn check(&self, request: &Request) -> Result<(), Refusal> {
        self.check_shape(request)?;
        if let Some(grammar) = &request.constraints.grammar {
            check_prefix(&request.prompt.healed, grammar)?;
        }
        match &request.constraints.grammar {
            Some(grammar)
                if request.limits.on_budget != OnBudget::Cut && request.task.options().is_none() =>
            {
                check_budget(request, grammar)
            }
            _ => Ok(()),
        }
    }

    /// What is seen without asking the grammar.
    fn check_shape(&self, request: &Request) -> Result<(), Refusal> {
        let limits = &self.shared.limits;
        if !self.shared.alive.load(Ordering::Acquire) {
            return Err(Refusal::Stopped);
        }
        if request.prompt.tokens.is_empty() {
            return Err(Refusal::EmptyPrompt);
        }
        if request.limits.max_tokens == 0 {
            return Err(Refusal::Invalid {
                name: "max_tokens",
                value: "0".to_string(),
                expected: "at least 1",
            });
        }
        check_combination(request)?;
        check_answers(request, limits.max_branches)?;
        check_law(request, limits.max_branches)?;
        check_options(request, (&limits.vocabulary, limits.vocab_size))?;
        check_healed(request)?;
        check_company(request, limits.variance)?;
        check_search(request, limits.max_branches, &limits.vocabulary)?;
        let (prompt, max_tokens, limit) = (
            request.prompt.tokens.len(),
            request.limits.max_tokens,
            limits.max_context,
        );
        if prompt.saturating_add(max_tokens) > limit {
            return Err(Refusal::TooLong {
                prompt,
                max_tokens,
                limit,
            });
        }
        law::warper(request)?;
        let len = limits.vocab_size;
        if let Some(place) = request
            .prompt
            .tokens
            .iter()
            .position(|&token| token as usize >= len)
        {
            return Err(Refusal::UnknownToken {
                place,
                token: request.prompt.tokens[place],
                len,
            });
        }
        match &request.constraints.grammar {
            // Equal vocabularies would do, but a comparison of all tokens for each request would not.
            Some(grammar) if !Arc::ptr_eq(grammar.vocabulary(), &limits.vocabulary) => {
                Err(Refusal::OtherVocabulary)
            }
            _ => Ok(()),
        }
    }

    /// How long things take.
    pub fn meters(&self) -> &Meters {
        &self.shared.meters
    }

    /// What the engine is doing; as of the end of the last step.
    pub fn stats(&self) -> Stats {
        let mut stats = self
            .shared
            .stats
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        stats.alive = self.shared.alive.load(Ordering::Acquire);
        stats
    }
}

/// An answer's handle. Dropping it cancels the answer; one that has ended does not mind.
pub struct Ticket {
    id: u64,
    answer: usize,
    begun: Arc<AtomicBool>,
    commands: Sender<Command>,
    cancels: bool,
}

impl Ticket {
    /// The request's number in this engine.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether the request has been taken into a pass: it no longer waits, though it may take long until
    /// there is an [`Event`](crate::Event) to tell, as in a search or under the global law.
    pub fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Ends the answer now; its sink hears [`Finish::Cancelled`](crate::Finish::Cancelled).
    pub fn cancel(self) {}

    /// Lets the answer come to its end without this ticket.
    pub fn detach(mut self) {
        self.cancels = false;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.cancels {
            // An engine that has stopped has nothing left to cancel.
            let _ = self.commands.send(Command::Cancel {
                job: self.id,
                answer: self.answer,
            });
        }
    }
}

/// The decode thread.
struct Decoder {
    core: Core,
    queue: Receiver<Command>,
    shared: Arc<Shared>,
    panics: usize,
    stopped: bool,
}

impl Decoder {
    fn run(mut self) {
        while self.take_commands() {
            match catch_unwind(AssertUnwindSafe(|| self.core.step())) {
                Ok(()) => self.panics = 0,
                Err(panic) => {
                    self.panics += 1;
                    let message = panic_message(&*panic);
                    // What panics here again would do so after every pass.
                    if catch_unwind(AssertUnwindSafe(|| self.core.recover(&message))).is_err() {
                        break;
                    }
                }
            }
            self.publish();
            if self.panics >= MAX_PANICS {
                break;
            }
        }
        self.shared.alive.store(false, Ordering::Release);
        self.core.settle();
        self.refuse_rest();
        self.core.stores.close();
        self.publish();
    }

    /// Takes what has been submitted; sleeps if there is nothing else to do. `false` when nobody can submit
    /// any more.
    fn take_commands(&mut self) -> bool {
        loop {
            if self.core.is_idle() {
                match self.queue.recv() {
                    Ok(command) => self.take(command),
                    Err(_) => return false,
                }
            }
            while let Ok(command) = self.queue.try_recv() {
                self.take(command);
            }
            if self.stopped {
                return false;
            }
            if !self.core.is_idle() {
                return true;
            }
            self.publish();
        }
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Submit(sequence, job) => self.core.take_in(*sequence, job),
            Command::Stop => self.stopped = true,
            Command::Cancel { job, answer } => {
                self.core.cancel(job, answer);
                self.core.collect();
            }
        }
    }

    fn refuse_rest(&mut self) {
        while let Ok(command) = self.queue.try_recv() {
            self.take(command);
        }
        for sequence in self.core.scheduler.all() {
            sequence.fail(EngineError::Stopped);
        }
        self.core.collect();
    }

    fn publish(&mut self) {
        *self.shared.stats.lock().unwrap_or_else(PoisonError::into_inner) = self.core.measure();
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_string())
}
