//! Rejection control: between weighted texts that never fail and exact ones that do.
//!
//! Both consume the same numbers. With `r = now/held` of each step as in `cars`, a text of weight `w`
//! survives
//!
//! ```text
//!   with probability  min(1, w·r/κ),  and then has the weight  max(κ, w·r)
//! ```
//!
//! (Liu, Chen and Wong 1998, *J. Amer. Statist. Assoc.* 93, "Rejection control and sequential importance
//! sampling"). Weights begin at 1 and only fall, so `κ` is between 0 and 1:
//!
//! | `κ` | sampler |
//! |---|---|
//! | 0 | nothing fails, and every text has its importance weight: particles |
//! | between | texts whose weight falls below `κ` fail in proportion, and the others have the weight `κ` |
//! | 1 (or more) | all weights are equal: constrained adaptive rejection sampling |
//!
//! The weight is proper for every `κ` and any trie: `E[weight · 1{text = w}] = P(w)` for valid `w`, where a
//! failure has weight zero. So a lower `κ` gives an answer sooner, and a higher one, where there is time,
//! spends fewer texts on low weights.

use crate::law::{Chooser, Place, Weight};

/// The weight of a text, which rejection control keeps from falling below a level.
#[derive(Clone, Debug)]
pub(super) struct Control<W> {
    level: W,
    weight: W,
}

impl<W: Weight> Control<W> {
    /// Begins with the weight 1, to be kept from falling below `level`.
    pub(super) fn new(level: W) -> Self {
        let weight = W::one();
        Control { level, weight }
    }

    /// Multiplies the weight by a factor and returns `true` if the text survives.
    pub(super) fn survives<C: Chooser<W> + ?Sized>(
        &mut self,
        factor: W,
        place: Place,
        chooser: &mut C,
    ) -> bool {
        let weight = self.weight.clone() * factor;
        if weight >= self.level {
            self.weight = weight;
            return true;
        }
        self.weight = self.level.clone();
        chooser.choose(place, &[weight.clone(), self.level.clone() - weight]) == 0
    }

    pub(super) fn weight(&self) -> W {
        self.weight.clone()
    }
}
