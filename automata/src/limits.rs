//! The limits of a compile, by name.
//!
//! Sources are untrusted. Each limit stops one way of being expensive, each has a default that no real schema
//! of JSONSchemaBench reaches, and an error that a limit causes names it and its value.
//!
//! Limits are counted, so that the same source gets the same answer everywhere. Whoever has less patience
//! than they allow for *calls off* a compile with a [`Cancel`]: the library reads no clock, its caller may.
//! Memory is counted like work: a compile reports to a [`Meter`] what it takes, before it takes it.

mod meter;

pub use meter::Meter;
pub use meter::{Account, Full};

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::{CompileError, Place, Problem, ProblemKind};

/// What a compile may cost.
///
/// ```
/// use lexiform::limits::Limits;
/// let strict = Limits { source_bytes: 64 * 1024, ..Limits::default() };
/// assert!(strict.nesting > 0);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The length of a source in bytes. Example: a schema of 2 MiB is refused before it is parsed.
    pub source_bytes: usize,
    /// How deep a source may nest, whatever makes it deep: brackets and the operators behind parts in a
    /// grammar or regular expression, objects and arrays of a schema. Where passes recurse they bound it
    /// further, and their errors say so. Rules that call each other and schemas that refer to each other do
    /// not nest.
    pub nesting: usize,
    /// The expressions of the grammar that a source becomes. Example: an `enum` of 2,000,000 values is
    /// refused.
    pub exprs: usize,
    /// The greatest count in a repetition that has to be unrolled, as in `(ab){500}`.
    pub repeat: u32,
    /// The states of one regular language after determinisation.
    pub regular_states: usize,
    /// The bytes of one automaton while it is being built.
    pub regular_bytes: usize,
    /// The states of the rules before determinisation.
    pub rule_states: usize,
    /// The memory for what one grammar finds while it is used. Five eighths of it are for masks, an eighth
    /// for distances to the end; these are dropped beyond that and found again. When the states of the texts
    /// that it read pass the last quarter, [`Grammar::compacted`](crate::matcher::Grammar::compacted) tells
    /// where sequences go on.
    pub grammar_bytes: usize,
    /// The work of one mask, in rounds of its loops; a round takes some 3 to 20 ns, and at most some ten
    /// bytes. What costs more is refused as [`Exhausted`](crate::error::Exhausted), to that question alone.
    pub mask_work: usize,
    /// The work of what is found once for a grammar when it is first asked how far it is to the end, in
    /// rounds.
    pub distance_work: usize,
    /// Steps of the schema algebra (intersections, complements, subset tests).
    pub fuel: usize,
    /// The bytes that one compile may hold at once, from the text of its source to the finished grammar:
    /// syntax trees, normal forms and their products, expressions, automata. They are counted where they are
    /// made, so that the same source gets the same answer everywhere. The count is an estimate: what the
    /// allocator is asked for stays below half as much again and the buffers of one automaton, some 48 MB.
    pub compile_bytes: usize,
    /// What all compiles with these limits hold together, bounded or only counted.
    pub meter: Meter,
    /// Ends the compile before any of the others does, if somebody asks for it.
    pub cancel: Cancel,
}

/// Calls off a compile that is running.
///
/// Wherever a compile counts work it looks here; one that needs more memory than it may take is called off in
/// the same way, and says so. Once a look has said yes, the compile has no other outcome than an error of
/// kind [`ProblemKind::Cancelled`]: what was made by then may lack parts, and nobody sees it.
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
    /// The bytes of the compile, once it runs.
    bytes: Option<Bytes>,
}

/// The bytes of a compile that runs.
#[derive(Clone)]
struct Bytes {
    meter: Meter,
    /// Where in the source it was that they did not suffice.
    place: Arc<OnceLock<Place>>,
}

struct Asked {
    /// Whether some look has said yes. Kept, because every later look must say the same.
    yes: AtomicBool,
    ask: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Cancel {
    /// Called off once this says so. It is asked often, some hundred thousand times by a long compile.
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

    /// Whether the compile is called off.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.full().is_some() || self.is_called()
    }

    fn full(&self) -> Option<Full> {
        self.bytes.as_ref().and_then(|bytes| bytes.meter.full())
    }

    /// Whether somebody called the compile off.
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

    /// What a stage of a compile ends with: its own result, unless the compile was called off. Every way out
    /// of the library goes through here, so that its loops may stop in whatever way is nearest.
    #[doc(hidden)]
    pub fn unless<T, E: Into<CompileError>>(&self, result: Result<T, E>) -> Result<T, CompileError> {
        if self.is_called() {
            let message = "the compile was cancelled";
            return Err(Problem::new(ProblemKind::Cancelled, Place::Whole, message).into());
        }
        match self.full() {
            Some(full) => Err(self.out_of_bytes(full).into()),
            None => result.map_err(Into::into),
        }
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

    /// An account of a structure of this compile.
    #[doc(hidden)]
    pub fn account(&self) -> Account {
        Account::new(self.bytes.as_ref().map(|bytes| &bytes.meter))
    }

    /// Says where in the source the bytes did not suffice; the first place stays.
    #[doc(hidden)]
    pub fn note_place(&self, place: impl FnOnce() -> Place) {
        if let (Some(bytes), Some(_)) = (&self.bytes, self.full()) {
            bytes.place.get_or_init(place);
        }
    }
}

impl Limits {
    /// These limits for a compile that begins, with a count of its own. A stage of a compile that runs goes
    /// on with the count it has.
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

/// Limits are equal if the same sources compile within them; who may call them off is another matter.
impl PartialEq for Cancel {
    fn eq(&self, _: &Cancel) -> bool {
        true
    }
}

impl Eq for Cancel {}

impl Hash for Cancel {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// As for who calls compiles off, it is another matter who counts them.
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
            source_bytes: 1 << 20,
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
