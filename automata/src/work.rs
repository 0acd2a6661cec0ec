//! Counted work of one question to a grammar, which ends when its allowance is spent.
//!
//! A grammar is untrusted, and what one of its masks or steps costs is not known before it is found: readings
//! of an ambiguous text multiply. So whoever answers a question opens an allowance, every loop whose length
//! depends on the grammar pays for its rounds, and the round that cannot be paid ends the question as a
//! whole.
//!
//! ```text
//!   within(limit) ─► mask ─► walk ─► threads ─► spend(1) … spend(1) ─► nothing left
//!        ▲                                                                  │
//!        └──────────── Err(Exhausted { limit }) ◄── unwinds ────────────────┘
//! ```
//!
//! Work is counted, not timed, so that the same question gets the same answer everywhere; and because what
//! takes memory pays for more rounds, memory is bounded with it. The end unwinds the stack, as salsa does to
//! cancel a query: nothing half found can be remembered then, because no function returns it, and no hundred
//! signatures carry a result that is an error once in a million masks. The unwinding runs no panic hook, and
//! never leaves [`within`] or [`briefly`]. Where panics abort the process there is nothing to unwind, and the
//! allowance is not enforced.
//!
//! The allowance belongs to the operating-system thread that asks. A question inside of another has its own.
//!
//! Whoever can ask a question again elsewhere may bound all that a thread asks for a while ([`briefly`]):
//! most questions are answered in less time than it takes to hand them to another thread.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::error::Exhausted;

thread_local! {
    /// What the question of this thread may still spend.
    static LEFT: Cell<u64> = const { Cell::new(UNLIMITED) };
    /// What all questions of this thread together may still spend, until [`briefly`] returns.
    static BRIEFLY: Cell<u64> = const { Cell::new(UNLIMITED) };
}

/// Outside of any question. No loop ever spends as much.
const UNLIMITED: u64 = u64::MAX;

/// What unwinding carries from where the allowance ended.
struct Ended(Exhausted);

/// Pays for so many rounds of a loop. Does not return if the question cannot.
#[inline]
pub(crate) fn spend(rounds: usize) {
    LEFT.with(|left| match left.get().checked_sub(rounds as u64) {
        Some(rest) => left.set(rest),
        None => end(Exhausted::default()),
    });
}

/// Ends the question because of another limit than its work; returns where no question is asked.
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

/// Answers a question that may spend as much as a named limit allows.
///
/// # Errors
/// When that, or a limit of memory, did not suffice. Nothing that the question was finding is remembered
/// then.
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
        // That it takes longer than somebody has now is not to be remembered by whoever asked, so that nobody
        // hears of it.
        Ok(ended) if ended.0 == Exhausted::default() && most < allowed as u64 => resume_unwind(ended),
        Ok(ended) if ended.0 == Exhausted::default() => Exhausted { limit, allowed },
        Ok(ended) => ended.0,
        Err(panic) => resume_unwind(panic),
    })
}

/// Asks questions that may spend so many rounds together; `None` if they needed more. Then nothing is lost
/// but the time: the same questions have the same answers later. What a question may cost by its own limit
/// stays as it is.
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
