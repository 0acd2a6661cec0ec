//! Turns a panic of the engine under test into a finding about one source, so that the run continues.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

/// Runs `work` for a whole evaluation without printing a trace for each panic that [`caught`] turns into a
/// finding.
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let before = take_hook();
    set_hook(Box::new(|_| {}));
    let result = catch_unwind(AssertUnwindSafe(work));
    set_hook(before);
    // A panic of the evaluation itself is a bug in it, and is resumed.
    result.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}

/// Runs `work`, and converts a panic into its message.
///
/// A panic may leave the data of `work` half changed, so callers pass only data that they discard, or samples
/// whose loss does not matter.
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
