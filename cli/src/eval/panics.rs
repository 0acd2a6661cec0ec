//! A panic in the engine under test is a finding about one source, not the end of the run.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

/// Runs `work` for a whole evaluation without printing a trace for each panic that [`caught`] turns into a
/// finding.
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let before = take_hook();
    set_hook(Box::new(|_| {}));
    let result = catch_unwind(AssertUnwindSafe(work));
    set_hook(before);
    // A panic of the evaluation itself is a bug in it, and goes on as one.
    result.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}

/// Runs `work`, and turns a panic into its message.
///
/// What `work` was changing may be half changed; callers hand in only what they throw away, or samples whose
/// loss does not matter.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| format!("panic: {}", message(&*payload)))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|it| (*it).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        let outcome = quietly(|| {
            caught(|| {
                if [1].len() == 1 {
                    panic!("state {}", 7)
                }
            })
        });
        assert_eq!(outcome, Err("panic: state 7".to_owned()));
        assert_eq!(caught(|| 3), Ok(3));
    }
}
