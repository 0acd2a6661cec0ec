//! The bounds on what is in memory: the number of models, the bytes of their weights, and the time.

use std::fmt;
use std::time::Duration;

/// The bounds on what is in memory.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The number of models that may be loaded at a time.
    pub loaded: usize,
    /// The bytes that the weights of loaded models may take together; `None` for any number.
    pub memory: Option<u64>,
    /// The time after which an idle model is unloaded; `None` to keep it.
    pub idle: Option<Duration>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            loaded: usize::MAX,
            memory: None,
            idle: None,
        }
    }
}

impl Bounds {
    /// Returns `true` if a model with so many bytes of weights may be loaded beside those that have this
    /// room.
    pub(super) fn admit(&self, bytes: u64, others: impl Iterator<Item = u64>) -> bool {
        let (count, sum) = others.fold((0, bytes), |(count, sum), bytes| {
            (count + 1, bytes.saturating_add(sum))
        });
        count < self.loaded && self.memory.is_none_or(|memory| sum <= memory)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.loaded, self.memory) {
            (loaded, None) => write!(f, "{loaded} models"),
            (usize::MAX, Some(memory)) => write!(f, "models with {memory} bytes of weights"),
            (loaded, Some(memory)) => write!(f, "{loaded} models with {memory} bytes of weights"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_admitted_up_to_their_number_and_their_bytes() {
        let bounds = |loaded, memory| Bounds {
            loaded,
            memory,
            idle: None,
        };
        for (bounds, bytes, others, expected) in [
            (bounds(2, None), u64::MAX, &[u64::MAX][..], true),
            (bounds(2, None), 0, &[0, 0], false),
            (bounds(9, Some(10)), 4, &[3, 3], true),
            (bounds(9, Some(10)), 5, &[3, 3], false),
            (bounds(2, Some(10)), 4, &[3, 3], false),
            (bounds(9, Some(10)), u64::MAX, &[u64::MAX], false),
        ] {
            let admitted = bounds.admit(bytes, others.iter().copied());
            assert_eq!(admitted, expected, "{bounds}: {bytes} beside {others:?}");
        }
    }
}
