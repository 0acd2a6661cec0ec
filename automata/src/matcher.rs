//! Matches one sequence against one grammar: masks, steps, and forced text.
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
use crate::mask::{Mask, Specials, Tables, fill};
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

/// The state of a sequence: a small value. Equal states allow the same continuations.
///
/// A state belongs to the grammar that returned it. To roll back, keep an older state; to fork, copy one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State(u32);

impl State {
    /// Returns the number of the state in its grammar, for callers that keep states outside of Rust. It is
    /// never [`u32::MAX`].
    pub fn to_u32(self) -> u32 {
        self.0
    }
}

/// A compiled grammar over one vocabulary: immutable, cheap to clone, shared between threads.
#[derive(Clone)]
pub struct Grammar {
    inner: Arc<Inner>,
    /// The configuration in which sequences begin: that of the machine, or a later one.
    start: u32,
}

struct Inner {
    machine: Machine,
    tables: Arc<Tables>,
    masks: Masks,
    /// The tokens of each symbol of the machine that is not a byte.
    specials: Specials,
    /// The distances to the end, computed on first use.
    budget: OnceLock<Result<Budget, Exhausted>>,
    /// `true` if each byte of the texts is a token, so that a text that can be completed can be completed
    /// with tokens.
    spells_all: bool,
    shares: Shares,
    allowances: Allowances,
    /// The bytes of the states that other grammars handed over.
    brought: AtomicUsize,
    lineage: Arc<Lineage>,
}

/// The work limits of queries, each as the name and value of a limit.
#[derive(Clone, Copy, Debug)]
struct Allowances {
    /// The work of one mask, step or query for forced text.
    question: (&'static str, usize),
    /// The work of computing the distances to the end, once.
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

/// The division of a grammar's bytes among its caches.
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

/// The data that a grammar shares with the grammars that replace it.
#[derive(Debug, Default)]
struct Lineage {
    /// The latest replacement, as long as it is in use.
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
    /// Compiles a grammar over the vocabulary of `tables`.
    ///
    /// # Errors
    /// Returns an error if no text belongs to the language, if the vocabulary can write none of its texts, if
    /// the grammar names a special token that the vocabulary lacks, or if a limit is reached.
    #[doc(hidden)]
    pub fn new(cfg: &Cfg, tables: &Arc<Tables>, limits: &Limits) -> Result<Grammar, CompileError> {
        let limits = &*limits.begin();
        let vocabulary = tables.vocabulary();
        let is_mark = |name: &str| {
            let token = vocabulary.special(name);
            token.is_some_and(|token| !vocabulary.is_eos(token))
        };
        let build = || {
            let marked = cfg.with_marks(&is_mark);
            let machine = Machine::new(marked.as_ref().unwrap_or(cfg), &**tables, limits)?;
            let specials = Specials::find(machine.specials(), vocabulary)?;
            Ok::<_, CompileError>((machine, specials))
        };
        let built = work::unless_cancelled(&limits.cancel, build);
        // If it was cancelled, that is the only problem.
        let problems = || limits.cancel.problem().into_iter().collect();
        let (machine, specials) = built.unwrap_or_else(|| Err(CompileError { problems: problems() }))?;
        // A vocabulary without text tokens is for callers that only read texts.
        let writes_all = vocabulary.longest() == 0 || vocabulary.writes_utf8();
        let is_token = |byte| vocabulary.token_of_byte(byte).is_some();
        let spells_all = writes_all || machine.reads_only(is_token);
        let shares = Shares::of(limits.grammar_bytes);
        let inner = Inner {
            machine,
            tables: tables.clone(),
            masks: Masks::new(shares.masks),
            specials,
            budget: OnceLock::new(),
            spells_all,
            shares,
            allowances: Allowances::of(limits),
            brought: AtomicUsize::new(0),
            lineage: Arc::default(),
        };
        let grammar = Grammar::beginning(inner);
        let spelled = work::unless_cancelled(&limits.cancel, || grammar.is_spelled(grammar.start()));
        match spelled {
            // Where that takes too long, it is the first mask that says so.
            Some(Ok(true) | Err(_)) => Ok(grammar),
            Some(Ok(false)) => {
                let message = "no text that matches can be written with the tokens of the vocabulary";
                Err(Problem::new(ProblemKind::Unsatisfiable, Place::Whole, message).into())
            }
            None => Err(CompileError { problems: problems() }),
        }
    }

    /// Returns a handle whose sequences begin where those of the machine do.
    fn beginning(inner: Inner) -> Grammar {
        let start = inner.machine.start();
        let inner = Arc::new(inner);
        Grammar { inner, start }
    }

    /// Returns the grammar of the texts that continue `bytes` to a text of this grammar, or `None` if no text
    /// begins with these bytes. The two share their tables, and their states are interchangeable.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use lexiform::{Options, Source, compile};
    /// # use lexiform::vocab::{TokenKind, Vocabulary};
    /// # let tokens = ["<eos>", "a", "b"].map(|text| (TokenKind::Text, text));
    /// # let vocab = Arc::new(Vocabulary::new(&tokens, &[0])?);
    /// let (grammar, _) = compile(Source::Regex("ab*a"), &vocab, &Options::default())?;
    /// let rest = grammar.after(b"ab")?.expect("some texts begin like this");
    /// assert_eq!(rest.mask(rest.start()).iter().collect::<Vec<_>>(), [1, 2]);
    /// assert!(grammar.after(b"b")?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if reading the bytes costs more than the limits allow.
    pub fn after(&self, bytes: &[u8]) -> Result<Option<Grammar>, Exhausted> {
        match self.try_step_bytes(self.start(), bytes)? {
            Some(next) if self.is_spelled(next)? => Ok(Some(Grammar {
                inner: self.inner.clone(),
                start: next.0,
            })),
            _ => Ok(None),
        }
    }

    /// Returns about how many bytes the masks, states and distances computed so far take.
    pub fn memory_usage(&self) -> usize {
        let budget = self.inner.budget.get().and_then(|budget| budget.as_ref().ok());
        let budget = budget.map_or(0, Budget::bytes);
        self.inner.masks.bytes() + self.inner.machine.bytes() + budget
    }

    /// Returns the vocabulary of the masks.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.inner.tables.vocabulary()
    }

    /// Returns `true` if both are handles to the same compiled grammar, so that their states are
    /// interchangeable.
    pub fn ptr_eq(&self, other: &Grammar) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the state in which every sequence begins.
    pub fn start(&self) -> State {
        State(self.start)
    }

    /// Returns the state whose number [`State::to_u32`] returned, or `None` if no state of this grammar has
    /// that number.
    ///
    /// The numbers of two grammars overlap, so a number does not say which grammar it belongs to: a caller
    /// that keeps numbers has to keep the grammar with them.
    pub fn state(&self, number: u32) -> Option<State> {
        self.inner.machine.stacks().holds(number).then_some(State(number))
    }

    /// Returns the tokens that may come next: exactly those after which some completion exists. The
    /// end-of-sequence tokens are among them if and only if the text so far is complete.
    ///
    /// For a state seen before, this is a look-up without a copy. If the mask would cost more than
    /// [`Limits::mask_work`](crate::limits::Limits::mask_work) allows, it is empty, which no other mask of an
    /// unfinished sequence is; [`try_mask`](Self::try_mask) returns the reason.
    pub fn mask(&self, state: State) -> Arc<Mask> {
        self.mask_of_tokens(state).unwrap_or_else(|_| self.nothing())
    }

    /// Returns the mask of a state without a budget, for the end tokens of the vocabulary: the tokens after
    /// which bytes complete the text.
    fn mask_of_bytes(&self, state: State) -> Result<Arc<Mask>, Exhausted> {
        let inner = &self.inner;
        match inner.masks.known(state.0) {
            Some(known) => Ok(known),
            None => self.ask(|| {
                let compute = |representative| self.compute_mask(State(representative));
                inner
                    .masks
                    .get(state.0, &inner.machine, inner.tables.facts(), compute)
            }),
        }
    }

    /// Returns the machine, for searches over it.
    #[doc(hidden)]
    pub fn machine(&self) -> &Machine {
        &self.inner.machine
    }

    /// Runs a query whose answer is cached, within the work limit of such queries.
    #[doc(hidden)]
    pub fn ask_once<T>(&self, answer: impl FnOnce() -> T) -> Result<T, Exhausted> {
        work::within(self.inner.allowances.distances, answer)
    }

    /// Runs a query within the work limit of one query.
    #[doc(hidden)]
    pub fn ask<T>(&self, answer: impl FnOnce() -> T) -> Result<T, Exhausted> {
        work::within(self.inner.allowances.question, answer)
    }

    fn nothing(&self) -> Arc<Mask> {
        Arc::new(Mask::empty(self.vocabulary().len()))
    }

    /// Returns the mask of a state, and the lowest height in the stacks that its computation looked at.
    fn compute_mask(&self, state: State) -> (Mask, u32) {
        if state.0 == FINISHED {
            return (Mask::empty(self.vocabulary().len()), 0);
        }
        let inner = &self.inner;
        let (mut mask, lowest) = fill(&inner.machine, &inner.tables, state.0);
        let stacks = self.inner.machine.stacks();
        for special in 0..self.inner.specials.len() as u32 {
            if stacks.step_special(state.0, special).is_some() {
                let tokens = self.inner.specials.tokens(special);
                tokens.for_each(|token| mask.insert(token));
            }
        }
        if self.is_accepting(state) {
            mask.insert_all(self.vocabulary().eos());
        }
        (mask, lowest)
    }

    /// Returns `true` if this token may come next. Cheaper than a mask when only a few tokens are checked.
    pub fn allows(&self, state: State, token: u32) -> bool {
        self.step(state, token).is_some()
    }

    /// Returns the state after a token, or `None` if the token may not come next or if the step would cost
    /// more than [`Limits::mask_work`](crate::limits::Limits::mask_work) allows.
    pub fn step(&self, state: State, token: u32) -> Option<State> {
        self.try_step(state, token).unwrap_or(None)
    }

    /// Returns the state after a token as [`step`](Self::step) does, or the limit that was reached.
    ///
    /// # Errors
    /// Returns an error if the step costs more than its limits allow. The token may or may not be allowed in
    /// that case.
    pub fn try_step(&self, state: State, token: u32) -> Result<Option<State>, Exhausted> {
        let next = self.try_step_of_bytes(state, token)?;
        Ok(match next {
            Some(next) if !self.is_spelled(next)? => None,
            next => next,
        })
    }

    /// Returns the state after a token, whether or not tokens can complete the text from there.
    ///
    /// # Errors
    /// Returns an error as [`try_step`](Self::try_step) does.
    #[doc(hidden)]
    pub fn try_step_of_bytes(&self, state: State, token: u32) -> Result<Option<State>, Exhausted> {
        let (vocab, stacks) = (self.vocabulary(), self.inner.machine.stacks());
        match vocab.kind(token) {
            TokenKind::Text if self.inner.specials.may_be_text() => {
                self.ask(|| self.step_either(state, token))
            }
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

    /// Returns the state after a token that the grammar names, alone or in sets.
    fn step_named(&self, state: State, token: u32) -> Option<State> {
        let stacks = self.inner.machine.stacks();
        let symbols = self.inner.specials.of(token);
        let ends = symbols.filter_map(|symbol| stacks.step_special(state.0, symbol));
        ends.reduce(|one, other| stacks.either(one, other)).map(State)
    }

    /// Returns the state after a token that the grammar reads as text, as one of a set of tokens, or both.
    fn step_either(&self, state: State, token: u32) -> Option<State> {
        let (bytes, stacks) = (self.vocabulary().bytes(token), self.inner.machine.stacks());
        let read = match bytes {
            [] => None,
            bytes => stacks.step_bytes(state.0, bytes),
        };
        let named = self.step_named(state, token).map(|state| state.0);
        match (read, named) {
            (Some(read), Some(named)) => Some(State(stacks.either(read, named))),
            (read, named) => read.or(named).map(State),
        }
    }

    /// Returns the special tokens and marks that the grammar names.
    pub fn specials(&self) -> &[u32] {
        self.inner.specials.named()
    }

    /// Returns the state after these bytes, or `None` if no text of the language continues with them or if
    /// the step would cost more than the limits allow. Long texts are read in pieces, each with the allowance
    /// of one query.
    pub fn step_bytes(&self, state: State, bytes: &[u8]) -> Option<State> {
        self.try_step_bytes(state, bytes).unwrap_or(None)
    }

    /// Returns the state after these bytes as [`step_bytes`](Self::step_bytes) does, or the limit that was
    /// reached.
    ///
    /// # Errors
    /// Returns an error if some piece of the bytes costs more than the limits allow.
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

    /// Returns `true` if the text so far is complete, and `false` if checking would cost more than the limits
    /// allow.
    pub fn is_accepting(&self, state: State) -> bool {
        let stacks = self.inner.machine.stacks();
        match stacks.known_closure(state.0) {
            Some(closure) => closure.accepting,
            None => self.ask(|| stacks.closure(state.0).accepting).unwrap_or(false),
        }
    }

    /// Returns `true` if an end token was accepted.
    pub fn is_finished(&self, state: State) -> bool {
        state.0 == FINISHED
    }

    /// Returns the bytes with which every completion begins. They are empty if there is a choice or if the
    /// text may end.
    pub fn forced(&self, state: State) -> Vec<u8> {
        let mut bytes = Vec::new();
        // The bytes found before the allowance was spent are forced in any case.
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

    /// Returns a number for the state that is the same in every process that reaches the state in the same
    /// way in an equal grammar.
    ///
    /// States of different grammars have the same number only by chance. It can be the key for data about a
    /// state that is kept across restarts. Repeated calls for a state are a look-up.
    pub fn state_key(&self, state: State) -> u64 {
        self.inner.machine.stacks().name(state.0)
    }

    fn has_special(&self, config: u32) -> bool {
        let stacks = self.inner.machine.stacks();
        (0..self.inner.specials.len() as u32).any(|special| stacks.step_special(config, special).is_some())
    }
}

/// The maximum length of forced text; the rest is forced again from there.
const FORCED_BYTES: usize = 1 << 12;

/// The length of a piece in bytes. Longer texts are read in pieces, each with its own allowance.
const PIECE_BYTES: usize = 1 << 6;
