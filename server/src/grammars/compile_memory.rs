//! The memory that all compilations together may hold, and the share of each owner.
//!
//! ```text
//!   compile ─┐
//!   compile ─┴─► owner, at most half ─┐
//!   compile ───► owner ───────────────┴─► all compiles
//! ```
//!
//! A compilation counts its bytes before it allocates them ([`Meter`]). If there is no room, it is refused as
//! busy: its source is not at fault, and the same request may succeed a moment later.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lexiform::limits::Meter;

use lexiform_engine::Owner;

/// The memory held by compilations, in total and by owner.
pub struct CompileMemory {
    all: Meter,
    share: usize,
    /// The owners with running compilations.
    owners: Mutex<HashMap<Owner, Meter>>,
}

impl CompileMemory {
    /// Creates a bound of this many bytes for all compilations, and half of them for the compilations of one
    /// owner.
    pub fn new(bytes: usize) -> Self {
        Self {
            all: Meter::new(bytes),
            share: bytes / 2,
            owners: Mutex::default(),
        }
    }

    /// Returns the meter of one compilation of this owner; a request without an owner has no separate share.
    /// O(owners with running compilations).
    pub fn one_of(&self, owner: &Owner) -> Meter {
        if owner.is_none() {
            return Meter::within(&self.all, usize::MAX);
        }
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        // An owner whose compilation holds nothing yet may be dropped here; the bound of all compilations
        // still applies.
        owners.retain(|_, meter| meter.held() > 0);
        let meter = owners.entry(owner.clone());
        let meter = meter.or_insert_with(|| Meter::within(&self.all, self.share));
        Meter::within(meter, usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use lexiform::error::ProblemKind;
    use lexiform::limits::Limits;
    use lexiform_syntax::schema;

    use super::*;

    const SOURCE: &str =
        r#"{"enum": ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]}"#;

    /// Returns the peak number of bytes that the compilation held, or the kind of its first problem.
    fn lower(meter: Meter) -> Result<usize, ProblemKind> {
        let limits = Limits {
            meter: meter.clone(),
            ..Limits::default()
        };
        let lowered = schema::lower(SOURCE, &schema::Options::default(), &limits);
        lowered
            .map(|_| meter.peak())
            .map_err(|error| error.problems[0].kind)
    }

    #[test]
    fn beyond_its_half_an_owner_is_busy_and_others_are_not() {
        let needed = lower(Meter::new(usize::MAX)).expect("it compiles");
        let memory = CompileMemory::new(needed * 3 / 2);
        assert_eq!(lower(memory.one_of(&Some("a".into()))), Err(ProblemKind::Busy));
        assert_eq!(lower(memory.one_of(&None)), Ok(needed));
        assert_eq!(memory.all.held(), 0);
        let memory = CompileMemory::new(needed * 2);
        assert_eq!(lower(memory.one_of(&Some("a".into()))), Ok(needed));
    }

    #[test]
    fn owners_without_compiles_are_forgotten() {
        let memory = CompileMemory::new(1 << 30);
        for owner in 0..100 {
            let meter = memory.one_of(&Some(owner.to_string().into()));
            lower(meter).expect("it compiles");
        }
        assert!(memory.owners.lock().expect("nothing panicked").len() <= 1);
    }
}
