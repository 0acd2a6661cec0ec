//! Counts the work of one query to a grammar and ends the query when its allowance is spent.
//!
//! Grammars are untrusted, and the cost of a mask or step is not known in advance: the parses of an ambiguous
//! text multiply. Therefore every query opens an allowance, every loop whose length depends on the grammar
//! pays for its rounds (iterations), and the first round that cannot be paid for ends the whole query.
//!
//! ```text
//!   within(limit) ─► mask ─► walk ─► threads ─► spend(1) … spend(1) ─► nothing left
//!        ▲                                                                  │
//!        └──────────── Err(Exhausted { limit }) ◄── unwinds ────────────────┘
//! ```
//!
//! Work is counted, not timed, so that the same query gets the same answer everywhere. Because code that
//! allocates memory pays for more rounds, memory is bounded with it. Exhaustion unwinds the stack, as
//! salsa does to cancel a query: no partial result can be cached because no function returns it, and hundreds
//! of signatures need not carry an error that occurs once in a million masks. The unwinding runs no panic
//! hook and never leaves [`within`] or [`briefly`]. Where panics abort the process, unwinding is impossible
//! and the allowance is not enforced.
//!
//! The allowance belongs to the operating-system thread that runs the query. A nested query has an allowance
//! of its own.
//!
//! A caller that can repeat a query on another thread may also bound all queries of a thread for a while
//! ([`briefly`]): most queries are answered in less time than it takes to hand them to another thread. A
//! caller that may lose interest in the answer passes a [`Cancel`], which the paying loops ask now and then
//! ([`unless_cancelled`]).

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::error::Exhausted;
use crate::limits::Cancel;

thread_local! {
    /// The rounds that the query of this thread may spend until it has to [`look`].
    static LEFT: Cell<u64> = const { Cell::new(UNLIMITED) };
    /// The rounds that it may spend after that.
    static RESERVE: Cell<u64> = const { Cell::new(0) };
    /// The rounds that all queries of this thread together may still spend, until [`briefly`] returns.
    static BRIEFLY: Cell<u64> = const { Cell::new(UNLIMITED) };
    /// What cancels the queries of this thread, until [`unless_cancelled`] returns.
    static CANCEL: RefCell<Option<Cancel>> = const { RefCell::new(None) };
}

/// The allowance outside of any query. No loop ever spends this much.
const UNLIMITED: u64 = u64::MAX;

/// The rounds between two questions whether a query is cancelled: less than a millisecond.
const LOOK_EVERY: u64 = 1 << 14;

/// The payload of the unwinding that ends a query.
struct Ended(Exhausted);

/// The payload of the unwinding that ends all queries up to [`unless_cancelled`].
struct Cancelled;

/// Pays for this many rounds of a loop. Does not return if the allowance is spent or the query is cancelled.
#[inline]
pub(crate) fn spend(rounds: usize) {
    LEFT.with(|left| match left.get().checked_sub(rounds as u64) {
        Some(rest) => left.set(rest),
        None => look(rounds as u64),
    });
}

/// Pays for rounds beyond those that were granted without looking.
#[cold]
fn look(rounds: u64) {
    match left().checked_sub(rounds) {
        Some(rest) => {
            grant(rest);
            end_if_cancelled();
        }
        None => unwind(Ended(Exhausted::default())),
    }
}

/// Returns the rounds that the query of this thread may still spend.
fn left() -> u64 {
    LEFT.get().saturating_add(RESERVE.get())
}

/// Lets the query of this thread spend this many rounds, in portions if somebody may cancel it.
fn grant(rounds: u64) {
    let is_asked = CANCEL.with_borrow(Option::is_some);
    let portion = if is_asked { rounds.min(LOOK_EVERY) } else { rounds };
    LEFT.set(portion);
    RESERVE.set(rounds - portion);
}

/// Ends the queries of this thread if they are cancelled.
pub(crate) fn end_if_cancelled() {
    if cancel().is_some_and(|cancel| cancel.is_asked()) {
        unwind(Cancelled);
    }
}

/// Returns what cancels the queries of this thread, for threads that share its work.
pub(crate) fn cancel() -> Option<Cancel> {
    CANCEL.with_borrow(Clone::clone)
}

/// Ends the query because of another limit than its work. Returns normally outside of any query.
#[cold]
pub(crate) fn end_by(limit: &'static str, allowed: usize) {
    if left() < UNLIMITED / 2 {
        unwind(Ended(Exhausted { limit, allowed }));
    }
}

#[cold]
fn unwind(payload: impl Send + 'static) {
    if cfg!(panic = "unwind") {
        resume_unwind(Box::new(payload));
    }
}

/// Runs a query that may spend as much work as a named limit allows.
///
/// # Errors
/// If the work limit, or a limit on memory, was reached. No result of the query is cached in that case.
pub fn within<T>(
    (limit, allowed): (&'static str, usize),
    answer: impl FnOnce() -> T,
) -> Result<T, Exhausted> {
    // Queries that take few rounds each would otherwise never ask.
    end_if_cancelled();
    let brief = BRIEFLY.get();
    let most = brief.min(allowed as u64);
    let outer = left();
    grant(most);
    let answered = catch_unwind(AssertUnwindSafe(answer));
    let spent = most - left().min(most);
    grant(outer);
    if brief < UNLIMITED {
        BRIEFLY.set(brief - spent);
    }
    answered.map_err(|payload| match payload.downcast::<Ended>() {
        // The query has run out of the time given by `briefly`, not of its own limit. The caller must not
        // cache that as an error, so the unwinding continues.
        Ok(ended) if ended.0 == Exhausted::default() && most < allowed as u64 => resume_unwind(ended),
        Ok(ended) if ended.0 == Exhausted::default() => Exhausted { limit, allowed },
        Ok(ended) => ended.0,
        Err(other) => resume_unwind(other),
    })
}

/// Runs queries that may spend `rounds` together; returns `None` if they needed more. Only the time is lost
/// in that case: repeating the queries later gives their usual answers. The limit of each query itself is
/// unchanged.
pub fn briefly<T>(rounds: usize, ask: impl FnOnce() -> T) -> Option<T> {
    let outer = BRIEFLY.replace(rounds as u64);
    let asked = catch_unwind(AssertUnwindSafe(ask));
    BRIEFLY.set(outer);
    match asked {
        Ok(answer) => Some(answer),
        Err(payload) if payload.is::<Ended>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// Runs queries until they are answered or cancelled; returns `None` if they were cancelled. Only the time is
/// lost in that case, as with [`briefly`]. Inside of another call, the queries belong to the inner one: what
/// several callers wait for does not end with the interest of the one whose thread does it.
///
/// The queries of this thread notice within a millisecond; other code may ask [`Cancel::is_asked`].
///
/// ```
/// # use std::sync::Arc;
/// use lexiform::limits::Cancel;
/// use lexiform::{Options, Source, compile, unless_cancelled};
/// # use lexiform::vocab::{TokenKind, Vocabulary};
/// # let tokens = ["<eos>", "a"].map(|text| (TokenKind::Text, text));
/// # let vocab = Arc::new(Vocabulary::new(&tokens, &[0])?);
/// let (grammar, _) = compile(Source::Regex("a+"), &vocab, &Options::default())?;
/// let count = |cancel| unless_cancelled(&cancel, || grammar.mask(grammar.start()).count());
/// assert_eq!(count(Cancel::when(|| true)), None);
/// assert_eq!(count(Cancel::when(|| false)), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn unless_cancelled<T>(cancel: &Cancel, ask: impl FnOnce() -> T) -> Option<T> {
    let outer = CANCEL.replace(Some(cancel.clone()));
    grant(left());
    let asked = catch_unwind(AssertUnwindSafe(ask));
    CANCEL.replace(outer);
    grant(left());
    match asked {
        Ok(answer) => Some(answer),
        Err(payload) if payload.is::<Cancelled>() => None,
        Err(other) => resume_unwind(other),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const LIMIT: (&str, usize) = ("rounds", 10);

    #[test]
    fn what_is_paid_for_is_answered_and_the_rest_names_its_limit() {
        let rounds = |count: usize| within(LIMIT, || (0..count).for_each(|_| spend(1)));
        assert_eq!(rounds(10), Ok(()));
        let Exhausted { limit, allowed } = rounds(11).unwrap_err();
        assert_eq!((limit, allowed), LIMIT);
        assert_eq!(rounds(10), Ok(()), "the next question has its own allowance");
    }

    #[test]
    fn a_question_inside_of_another_spends_its_own() {
        let both = within(LIMIT, || {
            spend(6);
            let inner = within(("inner", 8), || spend(9));
            spend(4);
            inner
        });
        assert_eq!(both.expect("ten rounds").unwrap_err().limit, "inner");
    }

    #[test]
    fn outside_of_questions_nothing_ends() {
        spend(usize::MAX / 4);
        end_by("bytes", 1);
        assert_eq!(within(LIMIT, || end_by("bytes", 7)).unwrap_err().allowed, 7);
    }

    #[test]
    fn what_is_not_brief_is_no_answer() {
        let ask = |rounds: [usize; 2]| rounds.map(|rounds| within(LIMIT, || spend(rounds)).is_ok());
        assert_eq!(briefly(16, || ask([7, 8])), Some([true, true]));
        assert_eq!(briefly(16, || ask([8, 9])), None);
        assert_eq!(
            briefly(16, || ask([17, 1])),
            Some([false, true]),
            "its own limit says so"
        );
        assert_eq!(briefly(9, || ask([10, 1])), None);
        assert_eq!((ask([10, 10]), BRIEFLY.get()), ([true, true], UNLIMITED));
    }

    /// Returns what cancels queries at the given look, counted from 1.
    fn cancelled_at(look: usize) -> Cancel {
        let looks = AtomicUsize::new(0);
        Cancel::when(move || looks.fetch_add(1, Ordering::Relaxed) + 1 >= look)
    }

    #[test]
    fn what_nobody_waits_for_ends_within_some_rounds() {
        let spent = Cell::new(0u64);
        let spend_all = |rounds: u64| {
            within(("rounds", usize::MAX), || {
                for _ in 0..rounds {
                    spend(1);
                    spent.set(spent.get() + 1);
                }
            })
        };
        // The first look is that of the query itself.
        assert!(unless_cancelled(&cancelled_at(4), || spend_all(10 * LOOK_EVERY)).is_none());
        assert!((2 * LOOK_EVERY..4 * LOOK_EVERY).contains(&spent.replace(0)));
        assert!(unless_cancelled(&cancelled_at(4), || spend_all(3 * LOOK_EVERY - 1)).is_some());
        assert_eq!((left(), RESERVE.get()), (UNLIMITED, 0));
    }

    #[test]
    fn short_queries_are_cancelled_between_them() {
        let asked = Cell::new(0);
        let ask = || asked.set(asked.get() + usize::from(within(LIMIT, || spend(1)).is_ok()));
        assert!(unless_cancelled(&cancelled_at(3), || (0..9).for_each(|_| ask())).is_none());
        assert_eq!(asked.get(), 2);
    }

    #[test]
    fn what_others_wait_for_goes_on() {
        let shared = || unless_cancelled(&Cancel::default(), || within(LIMIT, || spend(10)));
        let own = unless_cancelled(&cancelled_at(1), || {
            assert_eq!(shared(), Some(Ok(())));
            within(LIMIT, || spend(1))
        });
        assert!(own.is_none() && cancel().is_none());
    }

    #[test]
    fn the_allowance_counts_in_portions_too() {
        let most = 3 * LOOK_EVERY as usize;
        let rounds = |count: usize| within(("rounds", most), || (0..count).for_each(|_| spend(1)));
        for count in [most, most + 1] {
            let answer = unless_cancelled(&Cancel::default(), || rounds(count));
            assert_eq!(answer.expect("nobody cancels it").is_ok(), count == most);
        }
        let brief = |rounds| briefly(rounds, || within(("rounds", most), || spend(most)));
        assert!(
            unless_cancelled(&Cancel::default(), || brief(most))
                .flatten()
                .is_some()
        );
        assert!(
            unless_cancelled(&Cancel::default(), || brief(most - 1))
                .flatten()
                .is_none()
        );
    }

    #[test]
    fn a_panic_stays_one() {
        let panicked = catch_unwind(AssertUnwindSafe(|| within(LIMIT, || panic!("the test says so"))));
        assert!(panicked.is_err());
        assert_eq!((left(), RESERVE.get()), (UNLIMITED, 0));
    }
}
