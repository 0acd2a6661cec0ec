//! The public handle of the engine: requests go in through a channel, events come out through each request's
//! sink.
//!
//! One thread owns the model and runs the loop. It accepts the submitted requests, runs one step, and
//! repeats; without work it sleeps. A panic inside a step fails the running sequences and empties the cache;
//! after three in a row the engine stops and refuses everything.

mod ahead;
mod check;
pub(crate) mod draft_model;
mod drive;
pub(crate) mod grammar_task;
mod step;

use self::check::{
    check_answers, check_budget, check_combination, check_company, check_config, check_contrast,
    check_healed, check_law, check_min_tokens, check_options, check_penalties, check_preamble, check_prefix,
    check_prompt, check_search, option_tokens,
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

/// The number of consecutive panics after which the engine stops.
const MAX_PANICS: usize = 3;

enum Command {
    Submit(Box<Sequence>, Job),
    Cancel { job: u64, answer: usize },
    Stop,
}

pub(crate) struct Shared {
    stats: Mutex<Stats>,
    meters: Arc<Meters>,
    /// The submitted requests that have not run yet.
    queue: Arc<Room>,
    alive: AtomicBool,
    next_id: AtomicU64,
    limits: Limits,
    /// Problems that were found and skipped at the start.
    notices: Vec<String>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Limits {
    max_context: usize,
    /// The number of positions in the cache.
    slots: usize,
    /// The number of tokens that the draft model reads, if its rows can be contrasted with.
    draft_context: Option<usize>,
    max_branches: usize,
    vocab_size: usize,
    vocabulary: Arc<Vocabulary>,
    /// The maximum number of option tokens that a pass weighs.
    option_tokens: usize,
    /// [`Model::variance`].
    variance: Option<&'static str>,
}

/// A handle to a running engine; cheap to clone. The thread ends when all handles and tickets are dropped and
/// nothing runs.
#[derive(Clone)]
pub struct Engine {
    commands: Sender<Command>,
    shared: Arc<Shared>,
}

impl Engine {
    /// Starts the decode thread. `draft` is a small model with the same vocabulary whose drafts the main
    /// model verifies.
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

    /// Starts an engine with a hook that runs before every mask, for tests of slow grammars.
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

    /// Starts an engine with passes whose cost is given rather than measured, for tests of drafting.
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

    /// Starts an engine with the model's tokenizer, so that forced text is drafted in the tokens that the
    /// model would write. Without one it is split into the longest token at each position. The draft model
    /// may have a different vocabulary: then it drafts text at temperature 0, and tokens that both models
    /// have at other temperatures (SLEM and TLI of [Timor et al. 2025](https://arxiv.org/abs/2502.05202)).
    ///
    /// # Errors
    /// Fails if no tokens of the draft model write what one of the model's does, or if the engine cannot
    /// start.
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
        let slots = config.blocks.saturating_mul(config.block_size);
        let mut limits = Limits {
            max_context: parts.model.max_positions().min(slots).min(config.max_context),
            slots,
            draft_context: None,
            max_branches: config.max_branches,
            vocab_size: parts.model.vocab_size(),
            vocabulary: parts.vocabulary.clone(),
            option_tokens: option_tokens(config, parts.model.vocab_size()),
            variance: parts.model.variance(),
        };
        let meters = Arc::<Meters>::default();
        let core = Core::new(parts, meters.clone())?;
        limits.draft_context = core.draft_context().map(|context| context.min(slots));
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
        let spawned = spawned.map_err(EngineError::no_thread("the decode loop"))?;
        *shared.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(spawned);
        Ok(Engine { commands, shared })
    }

    /// Ends the decode thread after its current pass, and waits for that. Running requests receive the error
    /// that the engine stopped, and new requests are refused.
    ///
    /// A program that exits while its thread computes on a GPU unloads the GPU libraries under that thread,
    /// and crashes instead of returning its status. Must not be called from a sink.
    pub fn stop(&self) {
        // A thread that has ended no longer receives.
        let _ = self.commands.send(Command::Stop);
        let thread = self
            .shared
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // The thread's panics are caught inside it.
        let _ = thread.map(JoinHandle::join);
    }

    /// Returns the problems that were found and skipped at the start, a sentence each: damaged files of
    /// [`DraftStores::folder`](crate::DraftStores::folder).
    pub fn notices(&self) -> &[String] {
        &self.shared.notices
    }

    /// Returns the maximum number of tokens of a prompt and its answer together.
    pub fn max_context(&self) -> usize {
        self.shared.limits.max_context
    }

    /// Returns the maximum number of tokens of a prompt and its answer together that can be contrasted with
    /// the draft model; `None` if there is no draft model that predicts the model's tokens one by one.
    pub fn draft_context(&self) -> Option<usize> {
        self.shared.limits.draft_context
    }

    /// Returns why no request can have [`Request::batch_invariant`], or `None` if requests can.
    pub fn variance(&self) -> Option<&'static str> {
        self.shared.limits.variance
    }

    /// Submits a request for one answer. Events go to `sink`; dropping the ticket cancels the request.
    pub fn submit(&self, request: Request, sink: Sink) -> Result<Ticket, Refusal> {
        let mut tickets = self.submit_all(request, vec![sink])?;
        tickets.pop().ok_or(Refusal::Stopped)
    }

    /// Submits a request for several answers. Each answer has a sink, and a ticket that cancels only that
    /// answer.
    pub fn submit_all(&self, request: Request, sinks: Vec<Sink>) -> Result<Vec<Ticket>, Refusal> {
        self.check(&request)?;
        self.submit_checked(request, sinks)
    }

    /// Submits a request that has passed [`check`](Self::check), without repeating the slow checks.
    ///
    /// # Errors
    /// Fails if the queue is full, or if the request is invalid in a way that is quick to check.
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
            // A search requests rows, and inspects every token that is drawn.
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

    /// Checks whether [`submit`](Self::submit) would accept a request, apart from a full queue. The first
    /// check of a large grammar computes the length of its shortest texts, which may take a tenth of a
    /// second: callers that submit from a thread that serves others call this first, from one that may block.
    ///
    /// # Errors
    /// Fails if the request does not fit this engine or its own budget.
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

    /// Performs the checks that do not need the grammar.
    fn check_shape(&self, request: &Request) -> Result<(), Refusal> {
        let limits = &self.shared.limits;
        if !self.is_alive() {
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
        check_penalties(request)?;
        check_min_tokens(request)?;
        check_preamble(request)?;
        check_company(request, limits.variance)?;
        check_search(request, limits.max_branches, &limits.vocabulary)?;
        let max_tokens = request.limits.max_tokens;
        check_prompt(
            &request.prompt.tokens,
            max_tokens,
            (limits.max_context, limits.vocab_size),
        )?;
        let (slots, draft_context) = (limits.slots, limits.draft_context);
        check_contrast(
            request,
            (limits.max_context, limits.vocab_size),
            (slots, draft_context),
        )?;
        law::warper(request)?;
        match &request.constraints.grammar {
            // Equal vocabularies would do, but comparing all tokens for each request would be too slow.
            Some(grammar) if !Arc::ptr_eq(grammar.vocabulary(), &limits.vocabulary) => {
                Err(Refusal::OtherVocabulary)
            }
            _ => Ok(()),
        }
    }

    /// Returns the engine's time measurements.
    pub fn meters(&self) -> &Meters {
        &self.shared.meters
    }

    /// Returns the number of positions in the cache, which all texts share.
    pub fn cache_positions(&self) -> usize {
        self.shared.limits.slots
    }

    /// Returns `true` until the engine has stopped, or has ended because it could not go on.
    pub fn is_alive(&self) -> bool {
        self.shared.alive.load(Ordering::Acquire)
    }

    /// Returns the engine's statistics, as of the end of the last step.
    pub fn stats(&self) -> Stats {
        let mut stats = self
            .shared
            .stats
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        stats.alive = self.is_alive();
        stats
    }
}

/// A handle to an answer. Dropping it cancels the answer, unless it has ended.
pub struct Ticket {
    id: u64,
    answer: usize,
    begun: Arc<AtomicBool>,
    commands: Sender<Command>,
    cancels: bool,
}

impl Ticket {
    /// Returns the request's number in this engine.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns `true` if the request has been in a pass: it no longer waits, though the first
    /// [`Event`](crate::Event) may take long, as in a search or under the global law.
    pub fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Ends the answer now; its sink receives [`Finish::Cancelled`](crate::Finish::Cancelled).
    pub fn cancel(self) {}

    /// Lets the answer run to its end without this ticket.
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
                    // A panic here would repeat after every pass.
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

    /// Receives the submitted commands; sleeps if there is nothing else to do. Returns `false` when no handle
    /// can submit any more.
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
