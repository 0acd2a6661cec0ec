//! Counts of bytes: what a compile holds, and what compiles hold together.
//!
//! The structures of a compile report what they take before they take it, each through an [`Account`] that
//! gives everything back when the structure is dropped. The reports are estimates from above of what the
//! allocator is asked for; `tests/limits/compile_bytes.rs` compares them with it.
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
/// Put into [`Limits::meter`](super::Limits::meter), a meter bounds all compiles that run with these limits
/// together, and tells afterwards the most bytes that they held at once. What a compile holds is given back
/// when it ends; what the grammar takes from then on is for the grammar's own bounds.
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
    /// Whether something was refused, and by whom; see [`Full`].
    full: AtomicU8,
    within: Option<Meter>,
}

#[derive(Clone, Copy, Default)]
struct Held {
    now: usize,
    peak: usize,
}

/// Whose bound refused bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The meter's own.
    Own,
    /// That of a meter around it.
    Around,
}

impl Meter {
    /// A meter that lets `most` bytes be held at once.
    pub fn new(most: usize) -> Meter {
        Meter::of(most, None)
    }

    /// A meter of which every byte is one of another meter, too.
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

    /// The bytes that are held now.
    pub fn held(&self) -> usize {
        self.count().now
    }

    /// The most bytes that were held at once.
    pub fn peak(&self) -> usize {
        self.count().peak
    }

    fn count(&self) -> MutexGuard<'_, Held> {
        // Nothing panics while it is locked; if something did, the numbers are whole all the same.
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes; false where they do not fit, and then nothing is taken. O(meters around it).
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

    /// Whether bytes were refused, and by whose bound. Once it is so it stays so.
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

/// An account takes bytes from its meter in such portions, so that most reports cost an addition.
const PORTION: usize = 16 << 10;

/// What one structure of a compile holds. It is given back when the account is dropped.
#[derive(Debug, Default)]
pub struct Account {
    meter: Option<Meter>,
    /// The bytes that were reported, and those that were taken for them.
    bytes: usize,
    taken: usize,
}

impl Account {
    /// An account that holds nothing yet; without a meter everything fits.
    pub(crate) fn new(meter: Option<&Meter>) -> Account {
        Account {
            meter: meter.cloned(),
            ..Account::default()
        }
    }

    /// Reports bytes that are about to be allocated; false where they do not fit, and the compile ends.
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

    /// Holds so many bytes, be it more or less than before.
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

    /// The bytes that were reported.
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
