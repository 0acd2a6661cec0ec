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
//! ([`briefly`]): most queries are answered in less time than it takes to hand them to another thread.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::error::Exhausted;

thread_local! {
    /// The rounds that the query of this thread may still spend.
    static LEFT: Cell<u64> = const { Cell::new(UNLIMITED) };
    /// The rounds that all queries of this thread together may still spend, until [`briefly`] returns.
    static BRIEFLY: Cell<u64> = const { Cell::new(UNLIMITED) };
}

/// The allowance outside of any query. No loop ever spends this much.
const UNLIMITED: u64 = u64::MAX;

/// The payload of the unwinding that ends a query.
struct Ended(Exhausted);

/// Pays for this many rounds of a loop. Does not return if the allowance is spent.
#[inline]
pub(crate) fn spend(rounds: usize) {
    LEFT.with(|left| match left.get().checked_sub(rounds as u64) {
        Some(rest) => left.set(rest),
        None => end(Exhausted::default()),
    });
}

/// Ends the query because of another limit than its work. Returns normally outside of any query.
#[cold]
pub(crate) fn end_by(limit: &'static str, allowed: usize) {
    let is_asked = LEFT.with(Cell::get) < UNLIMITED / 2;
    if is_asked {
        end(Exhausted { limit, allowed });
    }
}

#[cold]
fn end(by: Exhausted) {
    if cfg!(panic = "unwind") {
        resume_unwind(Box::new(Ended(by)));
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
    let brief = BRIEFLY.get();
    let most = brief.min(allowed as u64);
    let outer = LEFT.replace(most);
    let answered = catch_unwind(AssertUnwindSafe(answer));
    let left = LEFT.replace(outer);
    if brief < UNLIMITED {
        BRIEFLY.set(brief - (most - left.min(most)));
    }
    answered.map_err(|payload| match payload.downcast::<Ended>() {
        // The query has run out of the time given by `briefly`, not of its own limit. The caller must not
        // cache that as an error, so the unwinding continues.
        Ok(ended) if ended.0 == Exhausted::default() && most < allowed as u64 => resume_unwind(ended),
        Ok(ended) if ended.0 == Exhausted::default() => Exhausted { limit, allowed },
        Ok(ended) => ended.0,
        Err(panic) => resume_unwind(panic),
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

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_panic_stays_one() {
        let panicked = catch_unwind(AssertUnwindSafe(|| within(LIMIT, || panic!("the test says so"))));
        assert!(panicked.is_err());
        assert_eq!(LEFT.get(), UNLIMITED);
    }
}
