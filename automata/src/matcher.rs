//! One sequence against one grammar: masks, steps, and what is forced.
//!
//! ```text
//!   let mut state = grammar.start();
//!   loop {
//!       let mask = grammar.mask(state);          // which tokens may come next
//!       let token = sample(logits, &mask);       // the caller's business
//!       state = grammar.step(state, token)?;     // a new value; the old one stays usable
//!       if grammar.is_finished(state) { break }
//!   }
//! ```

mod batch;
mod batch_row;
mod compaction;
mod ends;
mod explain;
mod masks;
mod pool;
mod request;
mod session;
mod walk;
mod within;

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::budget::Budget;
use crate::error::{CompileError, Exhausted, Place, Problem, ProblemKind};
use crate::grammar::Cfg;
use crate::limits::Limits;
use crate::mask::{Mask, Tables, fill};
use crate::pushdown::{FINISHED, Machine};
use crate::vocab::{TokenKind, Vocabulary};
use crate::work;

pub use batch_row::BatchRow;
pub use ends::Ends;
pub use explain::Explanation;
use masks::Masks;
pub use pool::Pool;
pub use request::MaskRequest;
pub use session::{Session, SessionError};
pub use walk::{DraftTree, TreeError};

/// Where a sequence stands: a small value whose equality means "the same may follow".
///
/// A state belongs to the grammar that handed it out. Keeping an older one is a rollback, copying one is a
/// fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State(u32);

impl State {
    /// The number of the state in its grammar, for callers that keep states outside of Rust. [`u32::MAX`] is
    /// never one.
    pub fn to_u32(self) -> u32 {
        self.0
    }
}

/// A compiled grammar over one vocabulary: immutable, cheap to clone, shared between threads.
#[derive(Clone)]
pub struct Grammar {
    inner: Arc<Inner>,
}

struct Inner {
    machine: Machine,
    tables: Arc<Tables>,
    masks: Masks,
    /// The token of each special that the grammar names, by the machine's number.
    specials: Vec<u32>,
    /// How far it is to the end; found when it is first asked for.
    budget: OnceLock<Result<Budget, Exhausted>>,
    shares: Shares,
    allowances: Allowances,
    /// The memory of the states that others handed over, in bytes.
    brought: AtomicUsize,
    lineage: Arc<Lineage>,
}

/// What questions may cost, each a limit's name and value.
#[derive(Clone, Copy, Debug)]
struct Allowances {
    /// One mask, step or look at what is forced.
    question: (&'static str, usize),
    /// What is found once about how far it is to the end.
    distances: (&'static str, usize),
}

impl Allowances {
    fn of(limits: &Limits) -> Allowances {
        Allowances {
            question: ("mask_work", limits.mask_work),
            distances: ("distance_work", limits.distance_work),
        }
    }
}

/// How the bytes of a grammar are divided.
#[derive(Clone, Copy, Debug)]
struct Shares {
    masks: usize,
    states: usize,
    budget: usize,
}

impl Shares {
    fn of(bytes: usize) -> Shares {
        let eighth = bytes / 8;
        Shares {
            masks: bytes - 3 * eighth,
            states: 2 * eighth,
            budget: eighth,
        }
    }
}

/// What the grammars that follow each other have in common.
#[derive(Debug, Default)]
struct Lineage {
    /// The last one that took the place of another, as long as somebody uses it.
    latest: Mutex<Weak<Inner>>,
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (frames, configurations) = self.inner.machine.size();
        f.debug_struct("Grammar")
            .field("frames", &frames)
            .field("configurations", &configurations)
            .finish()
    }
}

impl Grammar {
    /// Builds the machine of a grammar over the vocabulary of `tables`.
    ///
    /// # Errors
    /// When no text belongs to the language, when it names a special token that the vocabulary lacks, or when
    /// a limit is reached.
    #[doc(hidden)]
    pub fn new(cfg: &Cfg, tables: &Arc<Tables>, limits: &Limits) -> Result<Grammar, CompileError> {
        let limits = &*limits.begin();
        let machine = Machine::new(cfg, &**tables, limits)?;
        let specials = find_specials(&machine, tables.vocabulary())?;
        let shares = Shares::of(limits.grammar_bytes);
        let inner = Inner {
            machine,
            tables: tables.clone(),
            masks: Masks::new(shares.masks),
            specials,
            budget: OnceLock::new(),
            shares,
            allowances: Allowances::of(limits),
            brought: AtomicUsize::new(0),
            lineage: Arc::default(),
        };
        Ok(Grammar {
            inner: Arc::new(inner),
        })
    }

    /// About how much memory the masks and states take that were found so far, in bytes.
    pub fn memory_usage(&self) -> usize {
        let budget = self.inner.budget.get().and_then(|budget| budget.as_ref().ok());
        let budget = budget.map_or(0, Budget::bytes);
        self.inner.masks.bytes() + self.inner.machine.bytes() + budget
    }

    /// The vocabulary that the masks are over.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.inner.tables.vocabulary()
    }

    /// Whether both are handles on the same compiled grammar, so that their states mean the same.
    pub fn ptr_eq(&self, other: &Grammar) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Where every sequence begins.
    pub fn start(&self) -> State {
        State(self.inner.machine.start())
    }

    /// The state of a number that [`State::to_u32`] returned; `None` for a number that no state of this
    /// grammar has.
    ///
    /// The numbers of two grammars overlap, so a number does not say which grammar it belongs to: who keeps
    /// numbers keeps the grammar beside them.
    pub fn state(&self, number: u32) -> Option<State> {
        self.inner.machine.stacks().holds(number).then_some(State(number))
    }

    /// The tokens that may come next: exactly those after which some completion exists. The end-of-sequence
    /// tokens are among them iff the text so far is complete.
    ///
    /// A state seen before costs a look-up and no copy. Where the mask would cost more than
    /// [`Limits::mask_work`](crate::limits::Limits::mask_work) allows it is empty, which no other mask of an
    /// unfinished sequence is; [`try_mask`](Self::try_mask) tells why.
    pub fn mask(&self, state: State) -> Arc<Mask> {
        self.mask_of(state).unwrap_or_else(|_| self.nothing())
    }

    /// The mask of a state without a budget and with the ends of the vocabulary.
    fn mask_of(&self, state: State) -> Result<Arc<Mask>, Exhausted> {
        let inner = &self.inner;
        match inner.masks.known(state.0) {
            Some(known) => Ok(known),
            None => self.ask(|| {
                let compute = |like| self.compute_mask(State(like));
                inner
                    .masks
                    .get(state.0, &inner.machine, inner.tables.facts(), compute)
            }),
        }
    }

    /// The machine, for searches over it.
    #[doc(hidden)]
    pub fn machine(&self) -> &Machine {
        &self.inner.machine
    }

    /// Answers a question whose answer is kept, within what such a one may cost.
    #[doc(hidden)]
    pub fn ask_once<T>(&self, answer: impl FnOnce() -> T) -> Result<T, Exhausted> {
        work::within(self.inner.allowances.distances, answer)
    }

    /// Answers a question within what one may cost.
    #[doc(hidden)]
    pub fn ask<T>(&self, answer: impl FnOnce() -> T) -> Result<T, Exhausted> {
        work::within(self.inner.allowances.question, answer)
    }

    fn nothing(&self) -> Arc<Mask> {
        Arc::new(Mask::empty(self.vocabulary().len()))
    }

    /// The mask of a state, and the least height of what was looked into to find it.
    fn compute_mask(&self, state: State) -> (Mask, u32) {
        if state.0 == FINISHED {
            return (Mask::empty(self.vocabulary().len()), 0);
        }
        let inner = &self.inner;
        let (mut mask, lowest) = fill(&inner.machine, &inner.tables, state.0);
        let stacks = self.inner.machine.stacks();
        for (special, &token) in self.inner.specials.iter().enumerate() {
            if stacks.step_special(state.0, special as u32).is_some() {
                mask.insert(token);
            }
        }
        if self.is_accepting(state) {
            mask.insert_all(self.vocabulary().eos());
        }
        (mask, lowest)
    }

    /// Whether this token may come next; cheaper than a mask when only few tokens are asked for.
    pub fn allows(&self, state: State, token: u32) -> bool {
        self.step(state, token).is_some()
    }

    /// The state after a token, or `None` if it may not come next, or if to know would cost more than
    /// [`Limits::mask_work`](crate::limits::Limits::mask_work) allows.
    pub fn step(&self, state: State, token: u32) -> Option<State> {
        self.try_step(state, token).unwrap_or(None)
    }

    /// [`step`](Self::step), or the limit that it would break.
    ///
    /// # Errors
    /// When the step costs more than its limits allow. The token may or may not be one that could come next.
    pub fn try_step(&self, state: State, token: u32) -> Result<Option<State>, Exhausted> {
        let (vocab, stacks) = (self.vocabulary(), self.inner.machine.stacks());
        match vocab.kind(token) {
            TokenKind::Text if vocab.bytes(token).is_empty() => Ok(None),
            TokenKind::Text => match stacks.known_step_token(state.0, token) {
                Some(known) => Ok(Some(State(known))),
                None => self.ask(|| stacks.step_token(state.0, token, vocab.bytes(token)).map(State)),
            },
            TokenKind::Special | TokenKind::Mark => self.ask(|| self.step_special(state, token)),
            TokenKind::Unused => Ok(None),
        }
    }

    fn step_special(&self, state: State, token: u32) -> Option<State> {
        self.step_named(state, token).or_else(|| {
            (self.vocabulary().is_eos(token) && self.is_accepting(state)).then_some(State(FINISHED))
        })
    }

    /// The state after a special token or a mark that the grammar names.
    fn step_named(&self, state: State, token: u32) -> Option<State> {
        let named = self.inner.specials.iter().position(|&special| special == token)?;
        let next = self.inner.machine.stacks().step_special(state.0, named as u32);
        next.map(State)
    }

    /// The special tokens and marks that texts of the language may hold.
    pub fn specials(&self) -> &[u32] {
        &self.inner.specials
    }

    /// The state after these bytes, or `None` if no text of the language goes on with them, or if to know
    /// would cost more than the limits allow. The allowance is that of one question for each piece of the
    /// bytes.
    pub fn step_bytes(&self, state: State, bytes: &[u8]) -> Option<State> {
        self.try_step_bytes(state, bytes).unwrap_or(None)
    }

    /// [`step_bytes`](Self::step_bytes), or the limit that it would break.
    ///
    /// # Errors
    /// When some piece of the bytes costs more than the limits allow.
    pub fn try_step_bytes(&self, state: State, bytes: &[u8]) -> Result<Option<State>, Exhausted> {
        let stacks = self.inner.machine.stacks();
        let mut at = state.0;
        for piece in bytes.chunks(PIECE_BYTES) {
            match self.ask(|| stacks.step_bytes(at, piece))? {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Ok(Some(State(at)))
    }

    /// Whether the text so far is complete; not so where to know would cost more than the limits allow.
    pub fn is_accepting(&self, state: State) -> bool {
        let stacks = self.inner.machine.stacks();
        match stacks.known_closure(state.0) {
            Some(closure) => closure.accepting,
            None => self.ask(|| stacks.closure(state.0).accepting).unwrap_or(false),
        }
    }

    /// Whether an end-of-sequence token was taken.
    pub fn is_finished(&self, state: State) -> bool {
        state.0 == FINISHED
    }

    /// The bytes that every completion goes on with. Empty where there is a choice, or where the text may
    /// end.
    pub fn forced(&self, state: State) -> Vec<u8> {
        let mut bytes = Vec::new();
        // What was found by the time that the allowance is spent is forced all the same.
        let _ = self.ask(|| self.follow_forced(state, &mut bytes));
        bytes
    }

    fn follow_forced(&self, state: State, bytes: &mut Vec<u8>) {
        let stacks = self.inner.machine.stacks();
        let mut at = state.0;
        while bytes.len() < FORCED_BYTES && !stacks.closure(at).accepting && !self.has_special(at) {
            let mut next = (0..=255u8).filter_map(|byte| Some((byte, stacks.step(at, byte)?)));
            let (Some((byte, config)), None) = (next.next(), next.next()) else {
                break;
            };
            bytes.push(byte);
            at = config;
        }
    }

    /// A number for the state, the same in every process that reached it by the same way in an equal grammar.
    ///
    /// States of different grammars have the same number only by chance. What is learned at a state can be
    /// kept under it, over a restart too. It is a look-up where it was asked for before.
    pub fn state_key(&self, state: State) -> u64 {
        self.inner.machine.stacks().name(state.0)
    }

    fn has_special(&self, config: u32) -> bool {
        let stacks = self.inner.machine.stacks();
        (0..self.inner.specials.len() as u32).any(|special| stacks.step_special(config, special).is_some())
    }
}

/// Forced text is cut at this length; what is left is forced again from there.
const FORCED_BYTES: usize = 1 << 12;

/// The bytes of a piece; longer texts are read in pieces, each with its own allowance.
const PIECE_BYTES: usize = 1 << 6;

fn find_specials(machine: &Machine, vocab: &Vocabulary) -> Result<Vec<u32>, CompileError> {
    let mut problems = Vec::new();
    let mut tokens = Vec::new();
    for name in machine.specials() {
        match vocab.special(name) {
            Some(token) => tokens.push(token),
            None => {
                let message = format!("the vocabulary has no special token `{name}`");
                problems.push(Problem::new(ProblemKind::Reference, Place::Whole, message));
            }
        }
    }
    if problems.is_empty() {
        Ok(tokens)
    } else {
        Err(CompileError { problems })
    }
}
