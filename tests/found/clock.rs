//! The clock of the fuzz targets, without hands: tests do not depend on how fast the machine is.

use std::time::Duration;

pub(crate) const COMPILE: Duration = Duration::ZERO;
pub(crate) const MASK: Duration = Duration::ZERO;

/// Does the work.
pub(crate) fn within<T>(_: Duration, _: &str, work: impl FnOnce() -> T) -> T {
    work()
}
