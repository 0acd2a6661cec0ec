//! Proposals of particles: how a text is extended by a token, and by what factor its weight changes.
//!
//! | proposal | draws | factor | asks the constraint |
//! |---|---|---|---|
//! | [`Masked`] | from the masked row | `m(u)` | for a mask |
//! | [`Asked`] | without replacement, until a token is allowed ([`recursive`](crate::law::recursive)) | of mean `m(u)` | about some tokens, one at a time |
//! | [`Twisted`] | in proportion to `p·θ`, what a trie knows | `θ_now(u) / θ_held(u)` | for a mask |
//!
//! Each is properly weighted, so that the estimate of [`Particles`](super::Particles) is unbiased with any of
//! them, and with different ones for different particles. `Asked` is for constraints whose cost for each
//! token is high (a compiler, a database; Lipkin et al. 2025, arXiv 2504.05410). `Twisted` improves the
//! particles with every text that has passed through the trie: its texts are those of [`Attempt::adaptive`],
//! and the trie may have learned from attempts, drafts and other requests of the same key; such a twist is
//! proper for any positive `θ` (Whiteley and Lee 2014, arXiv 1204.0247, on twisted particle filters).

use super::cars::Attempt;
use super::trie::Trie;
use crate::law::{Allowed, Chooser, Part, Place, Row, Step, Weight, Weighted, recursive};

/// A way to extend a particle by a token.
pub trait Propose<W: Weight> {
    /// Returns a token to follow the prefix of this row, and the factor of the particle's weight. `None`
    /// gives the particle up: its weight is zero.
    fn propose<R, C>(&mut self, row: &R, place: Place, chooser: &mut C) -> Option<Weighted<W>>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized;
}

/// Draws from the masked row.
#[derive(Clone, Copy, Debug)]
pub struct Masked<'a>(pub Allowed<'a>);

/// Checks tokens one at a time, as few as possible.
#[derive(Clone, Copy, Debug)]
pub struct Asked<F>(pub F);

/// Draws in proportion to `p·θ`. The attempt belongs to the particle and was begun by [`Attempt::adaptive`];
/// a copy of the particle continues with a clone of it.
#[derive(Debug)]
pub struct Twisted<'a, W> {
    /// The bounds of the prefixes.
    pub trie: &'a mut Trie<W>,
    /// The position of the particle.
    pub attempt: &'a mut Attempt<W>,
    /// The tokens that the constraint allows.
    pub allowed: Allowed<'a>,
}

impl<W: Weight> Propose<W> for Masked<'_> {
    fn propose<R, C>(&mut self, row: &R, place: Place, chooser: &mut C) -> Option<Weighted<W>>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        let part = row.part(self.0);
        let token = part.draw(place, chooser)?;
        let weight = part.mass();
        Some(Weighted { token, weight })
    }
}

impl<W: Weight, F: FnMut(u32) -> bool> Propose<W> for Asked<F> {
    fn propose<R, C>(&mut self, row: &R, place: Place, chooser: &mut C) -> Option<Weighted<W>>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        recursive(row, &mut self.0, place, chooser)
    }
}

impl<W: Weight> Propose<W> for Twisted<'_, W> {
    /// The place is taken from the attempt.
    fn propose<R, C>(&mut self, row: &R, _place: Place, chooser: &mut C) -> Option<Weighted<W>>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        match self.attempt.next(self.trie, row, self.allowed, chooser) {
            Step::Token(drawn) | Step::End(drawn) => Some(Weighted {
                token: drawn.token,
                weight: self.attempt.factor().clone(),
            }),
            Step::Restart | Step::Stuck(_) => None,
        }
    }
}
