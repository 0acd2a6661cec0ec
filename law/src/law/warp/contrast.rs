//! Contrastive decoding: a law made from two rows that favours what an expert finds likelier than an amateur
//! does.
//!
//! ```text
//!   expert's logits e ──┬─► plausible: e(x) ≥ max e + ln α ────────────┐ the first cut, among the allowed tokens
//!   amateur's logits a ─┴─► a row of v e(x) − w a(x) ─ warp ─► mask ───┴─► the other cuts ─► a token
//! ```
//!
//! The amateur is a smaller model of the same vocabulary, or an earlier layer of the expert. Tokens that both
//! find likely (repetition, vagueness) cancel out. The constraint of plausibility is needed because a token
//! that both find impossible may have any difference.
//!
//! | rule | `v` | `w` |
//! |---|---|---|
//! | X. L. Li and others, *Contrastive Decoding: Open-ended Text Generation as Optimization*, 2022, arXiv 2210.15097 | 1 | 1 over the amateur's temperature |
//! | S. O'Brien, M. Lewis, *Contrastive Decoding Improves Reasoning in Large Language Models*, 2023, arXiv 2309.09117 | `1 + β` | `β` |
//!
//! Their scores use log probabilities, which differ from logits only by a constant of each row.
//!
//! **Under a mask.** Under the local law the most plausible token is taken from the masked row: otherwise the
//! mask and the constraint could exclude each other. Under the global law the constraint is part of the
//! model's law, like every filter.
//!
//! **Speculative contrastive decoding** (H. Yuan and others, 2023, arXiv 2311.08981) uses the amateur as the
//! drafter. Its tokens are proposals like any others: with its own masked row as `q` and this one as `p` the
//! residual rule of [`verify`](crate::verify) has the contrastive law exactly.
//!
//! Cost: both rows are read once and a third one is written; then every allowed token is listed for the
//! constraint.

use std::borrow::Cow;
use std::sync::Arc;

use super::super::cut::Plausible;
use super::super::{Allowed, Distribution, Law, LawError, RowError, Walk};
use super::{History, Warper, Warping};

/// The weights with which two rows are combined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    /// The least share of the expert's largest probability that a token must have; from 0, which keeps all,
    /// to 1.
    pub alpha: f32,
    /// The factor of the expert's logits; above 0.
    pub expert: f32,
    /// The factor of the amateur's logits before they are subtracted; 0 makes the law the expert's, and one
    /// below 0 adds them.
    pub amateur: f32,
}

impl Contrast {
    /// Returns the difference of the log probabilities, with the amateur at this temperature, as in Li and
    /// others.
    pub fn difference(alpha: f32, amateur_temperature: f32) -> Self {
        Contrast {
            alpha,
            expert: 1.0,
            amateur: 1.0 / amateur_temperature,
        }
    }

    /// Returns the expert's log probabilities plus `β` times their excess over the amateur's, as in O'Brien
    /// and Lewis; `1 + β` is the scale of classifier-free guidance. A `β` between -1 and 0 gives a weighted
    /// geometric mean of the two.
    pub fn beyond(alpha: f32, beta: f32) -> Self {
        Contrast {
            alpha,
            expert: 1.0 + beta,
            amateur: beta,
        }
    }

    /// Checks that the parameters are in their ranges.
    ///
    /// # Errors
    /// Names the first one that is not.
    pub fn check(&self) -> Result<(), LawError> {
        let Contrast {
            alpha,
            expert,
            amateur,
        } = *self;
        let checks = [
            ("alpha", alpha, (0.0..=1.0).contains(&alpha), "from 0 to 1"),
            ("expert", expert, expert > 0.0, "a number above 0"),
            ("amateur", amateur, true, "a number"),
        ];
        match checks
            .into_iter()
            .find(|(_, value, in_range, _)| !in_range || !value.is_finite())
        {
            Some((name, value, _, expected)) => Err(LawError::OutOfRange {
                name,
                value: f64::from(value),
                expected,
            }),
            None => Ok(()),
        }
    }

    /// Replaces the expert's logits by those of the law. A token that is not plausible beside the most
    /// plausible of the allowed ones gets `-∞`; those that are not allowed are not judged.
    ///
    /// The combined row is one of a model like any other. Where the law is exact about that model, whatever
    /// the filters and the constraint, `allowed` is all tokens; under the local law it is the mask, so that
    /// something plausible is always left of it.
    ///
    /// # Errors
    /// The rows are of different vocabularies.
    pub fn combine(&self, expert: &mut [f32], amateur: &[f32], allowed: Allowed<'_>) -> Result<(), RowError> {
        check_alike(expert, amateur)?;
        let mut least = f32::NEG_INFINITY;
        if self.alpha > 0.0 {
            let tokens = expert
                .iter()
                .zip(0_u32..)
                .filter(|(_, token)| allowed.contains(*token));
            let most = tokens.fold(f32::NEG_INFINITY, |most, (&logit, _)| most.max(logit));
            least = most + self.alpha.ln();
        }
        for (logit, other) in expert.iter_mut().zip(amateur) {
            // What is not a number stays so, and is refused with the row.
            *logit = match *logit < least {
                true => f32::NEG_INFINITY,
                false => self.logit((logit, other)),
            };
        }
        Ok(())
    }

    /// Returns the logit of a token. A token that the expert cannot write stays impossible, whatever the
    /// amateur's logit.
    fn logit(&self, (&expert, &amateur): (&f32, &f32)) -> f32 {
        if expert == f32::NEG_INFINITY || self.amateur == 0.0 {
            return self.expert * expert;
        }
        self.expert * expert - self.amateur * amateur
    }
}

/// A [`Warper`] whose rows are made from two rows.
///
/// ```
/// use lexiform_law::{Allowed, Contrast, Contrastive, History, Law, Part, Row, Warping};
///
/// let contrast = Contrast::difference(0.1, 1.0);
/// let contrastive = Contrastive::new(contrast, Warping::default(), Law::Local)?;
/// // The amateur prefers what the expert finds likeliest; of the last token neither thinks much.
/// let (expert, amateur) = ([2.0, 1.5, -9.0], [3.0, 0.5, -12.0]);
/// let row = contrastive.row(&expert, &amateur, History::default())?;
/// let part = row.part(Allowed::All);
/// assert!(part.share(1) > part.share(0) && part.share(2) == 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Contrastive {
    contrast: Contrast,
    warper: Warper,
}

impl Contrastive {
    /// Checks the parameters; see [`Warper::new`].
    ///
    /// # Errors
    /// A parameter is out of its range, or the law cannot be sampled from.
    pub fn new(contrast: Contrast, warping: Warping, law: Law) -> Result<Self, LawError> {
        contrast.check()?;
        let warper = Warper {
            is_contrast: true,
            ..Warper::new(warping, law)?
        };
        Ok(Contrastive { contrast, warper })
    }

    /// Returns the law of the next token after `history`, from the logits of the expert and the amateur. The
    /// warping applies to the contrasted row.
    ///
    /// # Errors
    /// The rows are of different vocabularies, or the logit of a token is not finite, as for a token that the
    /// expert can write and the amateur cannot.
    pub fn row<'a>(
        &'a self,
        expert: &[f32],
        amateur: &[f32],
        history: History<'_>,
    ) -> Result<Distribution<'a>, RowError> {
        check_alike(expert, amateur)?;
        let logits = expert.iter().zip(amateur).map(|pair| self.contrast.logit(pair));
        let logits: Vec<f32> = logits.collect();
        let alpha = f64::from(self.contrast.alpha);
        let plausible = || {
            Arc::new(Plausible {
                expert: expert.into(),
                alpha,
            }) as _
        };
        let first = (alpha > 0.0).then(plausible);
        self.warper.row_cut(Cow::Owned(logits), None, history, first)
    }

    /// Creates a walk over such rows under the local law, or without a constraint; see [`Walk::local`].
    pub fn walk(&self, constrained: bool, ends: &[u32]) -> Walk {
        Walk::local(&self.warper, constrained, ends)
    }
}

fn check_alike(expert: &[f32], amateur: &[f32]) -> Result<(), RowError> {
    match expert.len() == amateur.len() {
        true => Ok(()),
        false => Err(RowError::Unlike {
            expert: expert.len(),
            amateur: amateur.len(),
        }),
    }
}
