//! Asks again after failures that may pass, a bounded number of times.

use std::time::Duration;

use super::fault::{Fault, Kind};
use super::record::Answer;

/// The wait before the second attempt, which doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait that we choose.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The longest wait that an endpoint may choose.
const LONGEST_WISH: Duration = Duration::from_secs(120);

/// Asks until there is an answer, or a failure that asking again does not mend, or `retries` more attempts
/// have failed. Returns the last result, and the failures before it.
pub(super) fn persist(
    retries: usize,
    mut ask: impl FnMut() -> Result<Answer, Fault>,
    wait: impl Fn(Duration),
) -> (Result<Answer, Fault>, Vec<Kind>) {
    let mut failed = Vec::new();
    loop {
        match ask() {
            Err(fault) if fault.kind.may_pass() && failed.len() < retries => {
                wait(pause(failed.len(), fault.retry_after));
                failed.push(fault.kind);
            }
            result => return (result, failed),
        }
    }
}

fn pause(failures: usize, wish: Option<Duration>) -> Duration {
    let doublings = u32::try_from(failures).unwrap_or(u32::MAX);
    let ours = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(doublings));
    wish.map_or(ours.min(LONGEST_WAIT), |wish| wish.min(LONGEST_WISH))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn tried(retries: usize, faults: &[Fault]) -> (bool, Vec<Kind>, Vec<u64>) {
        let waits = RefCell::new(Vec::new());
        let mut left = faults.iter().cloned();
        let ask = || left.next().map_or_else(|| Ok(Answer::default()), Err);
        let (result, failed) = persist(retries, ask, |wait| {
            waits
                .borrow_mut()
                .push(u64::try_from(wait.as_millis()).expect("a short wait"));
        });
        (result.is_ok(), failed, waits.into_inner())
    }

    #[test]
    fn waits_double_and_attempts_are_bounded() {
        let late = Fault::new(Kind::Late, "");
        let kinds = |count| vec![Kind::Late; count];
        let two = tried(3, &vec![late.clone(); 2]);
        assert_eq!(two, (true, kinds(2), vec![500, 1000]));
        let all = tried(3, &vec![late.clone(); 9]);
        assert_eq!(all, (false, kinds(3), vec![500, 1000, 2000]));
        let (_, _, waits) = tried(9, &vec![late; 20]);
        assert_eq!(waits.last(), Some(&30_000));
    }

    #[test]
    fn the_endpoint_says_when_it_wants_to_be_asked_within_bounds() {
        let busy = |seconds| Fault {
            retry_after: Some(Duration::from_secs(seconds)),
            ..Fault::new(Kind::Busy, "")
        };
        let (_, _, waits) = tried(3, &[busy(7), busy(0), busy(86_400)]);
        assert_eq!(waits, [7_000, 0, 120_000]);
    }

    #[test]
    fn what_does_not_pass_is_asked_once() {
        for kind in [
            Kind::Refused,
            Kind::TooLong,
            Kind::Denied,
            Kind::NotFound,
            Kind::NotTheApi,
        ] {
            let refused = tried(3, &[Fault::new(kind, "")]);
            assert_eq!(refused, (false, vec![], vec![]), "{kind:?}");
        }
    }
}
