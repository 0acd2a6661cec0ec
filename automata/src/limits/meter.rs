//! Counts of the bytes that a compile holds and of those that several compiles hold together.
//!
//! The structures of a compile report their allocations before they make them, each through an [`Account`]
//! that returns all its bytes when the structure is dropped. The reports are upper estimates of the actual
//! allocations; `tests/limits/compile_bytes.rs` compares the two.
//!
//! ```text
//!   Account ─┐                       ┌─ Meter of a key ─┐
//!   Account ─┼─► Meter of a compile ─┤                  ├─► Meter of all compiles
//!   Account ─┘   (compile_bytes)     └─ Meter of a key ─┘
//! ```

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts bytes up to a bound, alone or within another meter.
///
/// As [`Limits::meter`](super::Limits::meter), a meter bounds all compiles with these limits together, and
/// afterwards reports the most bytes that they held at once. A compile returns its bytes when it ends; the
/// memory that the grammar uses from then on falls under the grammar's own bounds.
///
/// ```
/// use lexiform::limits::{Limits, Meter};
/// use lexiform_syntax::schema;
///
/// let all = Meter::new(1 << 30);
/// let one_key = Meter::within(&all, 256 << 20);
/// let one_compile = Meter::within(&one_key, usize::MAX);
/// let limits = Limits { meter: one_compile.clone(), ..Limits::default() };
/// assert!(schema::lower("true", &schema::Options::default(), &limits).is_ok());
/// assert!(one_compile.peak() > 0 && one_compile.peak() <= limits.compile_bytes);
/// assert_eq!((one_compile.held(), all.held()), (0, 0));
/// ```
#[derive(Clone)]
pub struct Meter(Arc<Count>);

struct Count {
    held: Mutex<Held>,
    most: usize,
    /// Zero, or the refusing bound plus one; see [`Full`].
    full: AtomicU8,
    within: Option<Meter>,
}

#[derive(Clone, Copy, Default)]
struct Held {
    now: usize,
    peak: usize,
}

/// The meter whose bound refused an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The meter itself.
    Own,
    /// A meter that encloses it.
    Around,
}

impl Meter {
    /// Creates a meter that allows `most` bytes to be held at once.
    pub fn new(most: usize) -> Meter {
        Meter::of(most, None)
    }

    /// Creates a meter whose bytes also count towards another meter.
    pub fn within(other: &Meter, most: usize) -> Meter {
        Meter::of(most, Some(other.clone()))
    }

    fn of(most: usize, within: Option<Meter>) -> Meter {
        Meter(Arc::new(Count {
            held: Mutex::default(),
            most,
            full: AtomicU8::new(0),
            within,
        }))
    }

    /// Returns the bytes that are held now.
    pub fn held(&self) -> usize {
        self.count().now
    }

    /// Returns the most bytes that were held at once.
    pub fn peak(&self) -> usize {
        self.count().peak
    }

    fn count(&self) -> MutexGuard<'_, Held> {
        // Nothing panics while the lock is held; even if something did, the numbers would be consistent.
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `bytes`, or takes nothing and returns `false` if they do not fit. O(number of enclosing meters).
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let mut held = self.count();
        let now = held.now.saturating_add(bytes);
        if now > self.0.most {
            self.0.full.store(Full::Own as u8 + 1, Ordering::Relaxed);
            return false;
        }
        if self.0.within.as_ref().is_some_and(|within| !within.take(bytes)) {
            self.0.full.store(Full::Around as u8 + 1, Ordering::Relaxed);
            return false;
        }
        *held = Held {
            now,
            peak: held.peak.max(now),
        };
        true
    }

    pub(crate) fn give(&self, bytes: usize) {
        let mut held = self.count();
        held.now = held.now.saturating_sub(bytes);
        if let Some(within) = &self.0.within {
            within.give(bytes);
        }
    }

    /// Returns the meter whose bound refused bytes, or `None` if none did. A refusal is permanent.
    pub(crate) fn full(&self) -> Option<Full> {
        match self.0.full.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Full::Own),
            _ => Some(Full::Around),
        }
    }

    pub(crate) fn most(&self) -> usize {
        self.0.most
    }
}

impl Default for Meter {
    fn default() -> Meter {
        Meter::new(usize::MAX)
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Held { now, peak } = *self.count();
        write!(f, "Meter({now} of {} bytes, {peak} at most)", self.0.most)
    }
}

/// The portion in which an account takes bytes from its meter, so that most reports cost one addition.
const PORTION: usize = 16 << 10;

/// The bytes that one structure of a compile holds. They are returned when the account is dropped.
#[derive(Debug, Default)]
pub struct Account {
    meter: Option<Meter>,
    /// The bytes that were reported; `taken` holds the bytes taken from the meter to cover them.
    bytes: usize,
    taken: usize,
}

impl Account {
    /// Creates an account that holds nothing yet. Without a meter everything fits.
    pub(crate) fn new(meter: Option<&Meter>) -> Account {
        Account {
            meter: meter.cloned(),
            ..Account::default()
        }
    }

    /// Reports bytes that are about to be allocated. Returns `false` if they do not fit; the compile then
    /// ends.
    #[inline]
    pub fn grow(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes <= self.taken || self.take()
    }

    #[cold]
    fn take(&mut self) -> bool {
        let Some(meter) = &self.meter else { return true };
        let more = (self.bytes - self.taken).max(PORTION);
        let fits = meter.take(more);
        if fits {
            self.taken += more;
        }
        fits
    }

    /// Sets the bytes held to `bytes`, which may be more or less than before. Returns `false` if they do not
    /// fit.
    #[inline]
    pub fn set(&mut self, bytes: usize) -> bool {
        self.bytes = bytes;
        if self.taken > bytes.saturating_add(4 * PORTION) {
            if let Some(meter) = &self.meter {
                meter.give(self.taken - bytes);
            }
            self.taken = bytes;
        }
        self.bytes <= self.taken || self.take()
    }

    /// Returns the bytes that were reported.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if let Some(meter) = &self.meter {
            meter.give(self.taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_given_back() {
        let all = Meter::new(1 << 20);
        let one = Meter::within(&all, 1 << 18);
        let mut account = Account::new(Some(&one));
        assert!(account.grow(100_000));
        assert!((100_000..=100_000 + PORTION).contains(&one.held()));
        assert_eq!(one.held(), all.held());
        assert!(account.set(10));
        assert!(one.held() <= 5 * PORTION);
        assert!(account.grow(1 << 17));
        drop(account);
        assert_eq!((one.held(), all.held()), (0, 0));
        assert!(one.peak() >= 1 << 17 && one.full().is_none());
    }

    #[test]
    fn whoever_refuses_is_known() {
        let all = Meter::new(1 << 20);
        let (one, other) = (Meter::within(&all, 1 << 18), Meter::within(&all, 1 << 30));
        assert!(!Account::new(Some(&one)).grow(1 << 19));
        assert_eq!((one.full(), all.full()), (Some(Full::Own), None));
        let mut large = Account::new(Some(&other));
        assert!(large.grow(900_000));
        let mut refused = Account::new(Some(&other));
        assert!(!refused.grow(200_000));
        assert_eq!((other.full(), all.full()), (Some(Full::Around), Some(Full::Own)));
        drop((large, refused));
        assert_eq!((all.held(), other.held()), (0, 0));
        assert!(all.take(1 << 20));
    }
}
