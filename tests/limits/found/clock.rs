//! The clock of the fuzz targets, without hands: tests do not depend on how fast the machine is.

use std::time::Duration;

pub(crate) const COMPILE: Duration = Duration::ZERO;
pub(crate) const MASK: Duration = Duration::ZERO;
pub(crate) const WALK: Duration = Duration::MAX;

/// Does the work.
pub(crate) fn within<T>(_: Duration, _: &str, work: impl FnOnce() -> T) -> T {
    work()
}

/// Looks at no clock, so that nothing is ever over.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch;

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Stopwatch
    }

    pub(crate) fn is_over(self, _: Duration) -> bool {
        false
    }
}
