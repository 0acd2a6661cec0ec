//! The limits of a compile, by name.
//!
//! Sources are untrusted. Each limit stops one way of being expensive, each has a default that no real schema of
//! JSONSchemaBench reaches, and an error that a limit causes names it and its value.
//!
//! Limits are counted, so that the same source gets the same answer everywhere. Whoever has less patience than they
//! allow for *calls off* a compile with a [`Cancel`]: the library reads no clock, its caller may.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// How deep a source may nest, whatever makes it deep: brackets and the operators behind parts in a grammar or regular
    /// expression, objects and arrays of a schema. Where passes recurse they bound it further, and their errors say so. Rules
    /// that call each other and schemas that refer to each other do not nest.
    pub nesting: usize,
    /// The expressions of the grammar that a source becomes. Example: an `enum` of 2,000,000 values is refused.
    pub exprs: usize,
    /// The greatest count in a repetition that has to be unrolled, as in `(ab){500}`.
    pub repeat: u32,
    /// The states of one regular language after determinisation.
    pub regular_states: usize,
    /// The bytes of one automaton while it is being built.
    pub regular_bytes: usize,
    /// The states of the rules before determinisation.
    pub rule_states: usize,
    /// The memory for what one grammar finds while it is used. Half of it is for masks, a quarter for what speeds up finding
    /// them and for distances to the end; these are dropped beyond that and found again. When the states of the texts that
    /// it read pass the last quarter, [`Grammar::renewed`](crate::Grammar::renewed) tells where sequences go on.
    pub grammar_bytes: usize,
    /// The work of one mask, in rounds of its loops; a round takes some 10 to 50 ns and at most some hundred bytes. What
    /// costs more is refused as [`Exhausted`](crate::error::Exhausted), to that question alone.
    pub mask_work: usize,
    /// The work of what is found once for a grammar when it is first asked how far it is to the end, in rounds.
    pub distance_work: usize,
    /// Steps of the schema algebra (intersections, complements, subset tests).
    pub fuel: usize,
    /// Ends the compile before any of the others does, if somebody asks for it.
    pub cancel: Cancel,
}

/// Calls off a compile that is running.
///
/// Wherever a compile counts work it looks here. Once a look has said yes, the compile has no other outcome than an
/// error of kind [`ProblemKind::Cancelled`]: what was made by then may lack parts, and nobody sees it.
///
/// ```
/// use lexiform::error::ProblemKind;
/// use lexiform::limits::{Cancel, Limits};
/// use lexiform::schema;
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
pub struct Cancel(Option<Arc<Asked>>);

struct Asked {
    /// Whether some look has said yes. Kept, because every later look must say the same.
    yes: AtomicBool,
    ask: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Cancel {
    /// Called off once this says so. It is asked often, some hundred thousand times by a long compile.
    pub fn when(ask: impl Fn() -> bool + Send + Sync + 'static) -> Cancel {
        Cancel(Some(Arc::new(Asked {
            yes: AtomicBool::new(false),
            ask: Box::new(ask),
        })))
    }

    /// Whether the compile is called off.
    #[inline]
    pub fn is_asked(&self) -> bool {
        let Some(asked) = &self.0 else { return false };
        if asked.yes.load(Ordering::Relaxed) {
            return true;
        }
        let yes = (asked.ask)();
        if yes {
            asked.yes.store(true, Ordering::Relaxed);
        }
        yes
    }

    /// What a stage of a compile ends with: its own result, unless the compile was called off. Every way out of the
    /// library goes through here, so that its loops may stop in whatever way is nearest.
    pub(crate) fn unless<T, E: Into<CompileError>>(&self, result: Result<T, E>) -> Result<T, CompileError> {
        if self.is_asked() {
            let message = "the compile was called off";
            return Err(Problem::new(ProblemKind::Cancelled, Place::Whole, message).into());
        }
        result.map_err(Into::into)
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.0.is_some() {
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
            mask_work: 1 << 20,
            distance_work: 1 << 25,
            fuel: 300_000,
            cancel: Cancel::default(),
        }
    }
}
