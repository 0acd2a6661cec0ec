//! The limits of a compile, by name.
//!
//! Sources are untrusted. Each limit stops one way of being expensive. Each has a default that no real schema
//! of JSONSchemaBench reaches, and an error caused by a limit names the limit and its value.
//!
//! Limits are counted, so that the same source gets the same answer everywhere. A caller with less patience
//! than the limits allow *cancels* a compile with a [`Cancel`]: the library reads no clock, but its caller
//! may. Memory is counted like work: a compile reports its allocations to a [`Meter`] before it makes them.

mod meter;

pub use meter::Meter;
pub use meter::{Account, Full};

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::{CompileError, Place, Problem, ProblemKind};

/// The limits on the cost of a compile and of the queries to its grammar.
///
/// ```
/// use lexiform::limits::Limits;
/// let strict = Limits { source_bytes: 64 * 1024, ..Limits::default() };
/// assert!(strict.nesting > 0);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The length of a source in bytes. Example: a schema of 4 MiB is rejected before it is parsed.
    pub source_bytes: usize,
    /// The nesting depth of a source, whatever nests: brackets and postfix operators in a grammar or regular
    /// expression, objects and arrays of a schema. Passes that recurse have a lower bound, and their errors
    /// say so. Rules that call each other and schemas that refer to each other do not count as nesting.
    pub nesting: usize,
    /// The number of expressions in the grammar that a source is lowered to. Example: an `enum` of 2,000,000
    /// values is rejected.
    pub exprs: usize,
    /// The largest count in a repetition that has to be unrolled, as in `(ab){500}`.
    pub repeat: u32,
    /// The number of states of one regular language after determinisation.
    pub regular_states: usize,
    /// The bytes of one automaton under construction.
    pub regular_bytes: usize,
    /// The number of states of the rules before determinisation.
    pub rule_states: usize,
    /// The bytes that one grammar may use for results computed while it is in use. Five eighths are for masks
    /// and an eighth is for distances to the end; entries beyond that are dropped and recomputed. When the
    /// states of the texts it has read exceed the last quarter,
    /// [`Grammar::compacted`](crate::matcher::Grammar::compacted) returns the grammar in which sequences
    /// continue.
    pub grammar_bytes: usize,
    /// The work of one mask, in rounds (loop iterations). A round takes about 3 to 20 ns and allocates at
    /// most about ten bytes. A query that costs more fails with [`Exhausted`](crate::error::Exhausted); no
    /// other query is affected.
    pub mask_work: usize,
    /// The work of what is computed once for a grammar, in rounds: whether its rules can be completed, when
    /// it is compiled, and the distances to the end, on the first query that needs them.
    pub distance_work: usize,
    /// The number of steps of the schema algebra (intersections, complements, subset tests).
    pub fuel: usize,
    /// The bytes that one compile may hold at once, from the text of its source to the finished grammar:
    /// syntax trees, normal forms and their products, expressions, automata. They are counted where they are
    /// allocated, so that the same source gets the same answer everywhere. The count is an estimate: actual
    /// allocations stay below one and a half times the limit plus the buffers of one automaton, about 48 MB.
    pub compile_bytes: usize,
    /// Counts the bytes that all compiles with these limits hold together, and may bound them.
    pub meter: Meter,
    /// Cancels the compile before any other limit is reached, if the caller asks for it.
    pub cancel: Cancel,
}

/// Cancels a running compile.
///
/// A compile checks it wherever it counts work. A compile that needs more memory than it may use ends in the
/// same way, with an error of its own kind. Once a check has returned `true`, the only outcome of the compile
/// is an error (of kind [`ProblemKind::Cancelled`] if the caller cancelled it): what was built until then may
/// be incomplete and is never returned.
///
/// ```
/// use lexiform::error::ProblemKind;
/// use lexiform::limits::{Cancel, Limits};
/// use lexiform_syntax::schema;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// let unwanted = Arc::new(AtomicBool::new(false));
/// let asked = unwanted.clone();
/// let cancel = Cancel::when(move || asked.load(Ordering::Relaxed));
/// let limits = Limits { cancel, ..Limits::default() };
/// assert!(schema::lower("true", &schema::Options::default(), &limits).is_ok());
/// unwanted.store(true, Ordering::Relaxed);
/// let error = schema::lower("true", &schema::Options::default(), &limits).unwrap_err();
/// assert_eq!(error.problems[0].kind, ProblemKind::Cancelled);
/// ```
#[derive(Clone, Default)]
pub struct Cancel {
    asked: Option<Arc<Asked>>,
    /// The byte count of the compile, once it has begun.
    bytes: Option<Bytes>,
}

/// The byte count of a running compile.
#[derive(Clone)]
struct Bytes {
    meter: Meter,
    /// The place in the source at which the bytes ran out.
    place: Arc<OnceLock<Place>>,
}

struct Asked {
    /// `true` once some call of `ask` has returned `true`. It is kept because every later check must agree.
    yes: AtomicBool,
    ask: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Cancel {
    /// Cancels the compile once `ask` returns `true`. A long compile calls it some hundred thousand times.
    pub fn when(ask: impl Fn() -> bool + Send + Sync + 'static) -> Cancel {
        let asked = Asked {
            yes: AtomicBool::new(false),
            ask: Box::new(ask),
        };
        Cancel {
            asked: Some(Arc::new(asked)),
            bytes: None,
        }
    }

    /// Returns `true` if the compile is cancelled or has run out of memory.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.full().is_some() || self.is_called()
    }

    fn full(&self) -> Option<Full> {
        self.bytes.as_ref().and_then(|bytes| bytes.meter.full())
    }

    /// Returns `true` if the caller cancelled the compile.
    fn is_called(&self) -> bool {
        let Some(asked) = &self.asked else {
            return false;
        };
        if asked.yes.load(Ordering::Relaxed) {
            return true;
        }
        let yes = (asked.ask)();
        if yes {
            asked.yes.store(true, Ordering::Relaxed);
        }
        yes
    }

    /// Returns the final result of a stage of a compile: `result`, unless the compile was cancelled or ran
    /// out of memory. Every way out of the library passes through here, so that inner loops may stop in
    /// whatever way is easiest.
    #[doc(hidden)]
    pub fn unless<T, E: Into<CompileError>>(&self, result: Result<T, E>) -> Result<T, CompileError> {
        match self.problem() {
            Some(problem) => Err(problem.into()),
            None => result.map_err(Into::into),
        }
    }

    /// Returns why the compile ended early, if it did.
    pub(crate) fn problem(&self) -> Option<Problem> {
        if self.is_called() {
            let message = "the compile was cancelled";
            return Some(Problem::new(ProblemKind::Cancelled, Place::Whole, message));
        }
        self.full().map(|full| self.out_of_bytes(full))
    }

    fn out_of_bytes(&self, full: Full) -> Problem {
        let place = self.bytes.as_ref().and_then(|bytes| bytes.place.get().cloned());
        let place = place.unwrap_or(Place::Whole);
        let most = self.bytes.as_ref().map_or(0, |bytes| bytes.meter.most());
        match full {
            Full::Own => {
                let message =
                    format!("the compile needs too much memory; the limit `compile_bytes` is {most}");
                Problem::new(ProblemKind::Limit, place, message)
            }
            Full::Around => {
                let message = "other compiles are using the memory that this one needs; try again later";
                Problem::new(ProblemKind::Busy, place, message)
            }
        }
    }

    /// Opens an account for one structure of this compile.
    #[doc(hidden)]
    pub fn account(&self) -> Account {
        Account::new(self.bytes.as_ref().map(|bytes| &bytes.meter))
    }

    /// Records the place in the source at which the bytes ran out; the first place is kept.
    #[doc(hidden)]
    pub fn note_place(&self, place: impl FnOnce() -> Place) {
        if let (Some(bytes), Some(_)) = (&self.bytes, self.full()) {
            bytes.place.get_or_init(place);
        }
    }
}

impl Limits {
    /// Returns these limits with a new byte count, for a compile that begins. A stage of a running compile
    /// keeps the count that it has.
    #[doc(hidden)]
    pub fn begin(&self) -> Cow<'_, Limits> {
        if self.cancel.bytes.is_some() {
            return Cow::Borrowed(self);
        }
        let bytes = Bytes {
            meter: Meter::within(&self.meter, self.compile_bytes),
            place: Arc::default(),
        };
        let cancel = Cancel {
            asked: self.cancel.asked.clone(),
            bytes: Some(bytes),
        };
        Cow::Owned(Limits {
            cancel,
            ..self.clone()
        })
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.asked.is_some() {
            "Cancel::when(…)"
        } else {
            "Cancel::default()"
        };
        f.write_str(name)
    }
}

/// All values are equal: limits are equal if the same sources compile within them, whoever may cancel the
/// compiles.
impl PartialEq for Cancel {
    fn eq(&self, _: &Cancel) -> bool {
        true
    }
}

impl Eq for Cancel {}

impl Hash for Cancel {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// All values are equal, as for [`Cancel`]: limits are equal whatever counts the bytes.
impl PartialEq for Meter {
    fn eq(&self, _: &Meter) -> bool {
        true
    }
}

impl Eq for Meter {}

impl Hash for Meter {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            source_bytes: 3 << 20,
            nesting: 512,
            exprs: 1_000_000,
            repeat: 100_000,
            regular_states: 200_000,
            regular_bytes: 16 << 20,
            rule_states: 4_000_000,
            grammar_bytes: 64 << 20,
            mask_work: 1 << 22,
            distance_work: 1 << 25,
            fuel: 300_000,
            compile_bytes: 192 << 20,
            meter: Meter::default(),
            cancel: Cancel::default(),
        }
    }
}
