//! Rows of which few tokens have mass.

use super::{Allowed, Part, Row, sum, under};
use crate::law::{Ceiling, Chooser, Place, Weight};

/// A row of which only the listed tokens have mass, such as what a store of rows remembers of one. It takes
/// as much memory as the list, whatever the size of the vocabulary.
///
/// The weights need not sum to one: a part of the row is normalised, as that of any row.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparse<W = f64> {
    /// Tokens in ascending order, with positive weights.
    weights: Vec<(u32, W)>,
}

impl<W: Weight> Sparse<W> {
    /// Creates the row of these weights. Weights that are not positive are left out, and so is a token that
    /// was listed before.
    pub fn new(weights: impl IntoIterator<Item = (u32, W)>) -> Self {
        let mut weights: Vec<(u32, W)> = weights.into_iter().collect();
        weights.sort_by_key(|&(token, _)| token);
        weights.dedup_by_key(|&mut (token, _)| token);
        weights.retain(|(_, weight)| weight.is_positive());
        Sparse { weights }
    }

    /// Returns the tokens that have mass, in ascending order.
    pub fn tokens(&self) -> impl Iterator<Item = u32> + '_ {
        self.weights.iter().map(|&(token, _)| token)
    }
}

/// A part of a [`Sparse`] row.
#[derive(Clone, Debug)]
pub struct SparsePart<W> {
    /// The tokens that can be drawn, in ascending order, with positive weights.
    weights: Vec<(u32, W)>,
    /// The weight of the mask.
    mass: W,
    /// The weight of the tokens that can be drawn.
    kept: W,
}

impl<W: Weight> Row<W> for Sparse<W> {
    type Part<'a>
        = SparsePart<W>
    where
        W: 'a;

    /// Returns the number of tokens up to the last that has mass.
    fn len(&self) -> usize {
        self.weights.last().map_or(0, |&(token, _)| token as usize + 1)
    }

    fn probability(&self, token: u32) -> W {
        weight_of(&self.weights, token).cloned().unwrap_or_else(W::zero)
    }

    fn part_under<'a>(&'a self, allowed: Allowed<'a>, ceiling: Option<Ceiling>) -> SparsePart<W> {
        let inside = self.weights.iter().filter(|(token, _)| allowed.contains(*token));
        let mut weights: Vec<(u32, W)> = inside.cloned().collect();
        let mass = sum(weights.iter().map(|(_, weight)| weight));
        if let Some(ceiling) = ceiling {
            let listed = weights.iter().map(|(token, weight)| (*token, weight));
            let kept = under(ceiling, listed, &mass);
            weights.retain(|(token, _)| kept.binary_search(token).is_ok());
        }
        let kept = sum(weights.iter().map(|(_, weight)| weight));
        SparsePart { weights, mass, kept }
    }
}

impl<W: Weight> Part<W> for SparsePart<W> {
    fn mass(&self) -> W {
        self.mass.clone()
    }

    fn log_kept(&self) -> f64 {
        self.kept.ln()
    }

    fn share(&self, token: u32) -> W {
        match weight_of(&self.weights, token) {
            Some(weight) => weight.clone() / self.kept.clone(),
            None => W::zero(),
        }
    }

    fn shares(&self) -> Vec<W> {
        let len = self.weights.last().map_or(0, |&(token, _)| token as usize + 1);
        let mut shares = vec![W::zero(); len];
        for (token, weight) in &self.weights {
            shares[*token as usize] = weight.clone() / self.kept.clone();
        }
        shares
    }

    fn share_without(&self, token: u32) -> W {
        let others = self.weights.iter().filter(|&&(other, _)| other != token);
        sum(others.map(|(_, weight)| weight)) / self.kept.clone()
    }

    fn draw<C: Chooser<W> + ?Sized>(&self, place: Place, chooser: &mut C) -> Option<u32> {
        let weights: Vec<W> = self.weights.iter().map(|(_, weight)| weight.clone()).collect();
        let can_draw = self.kept.is_positive();
        can_draw.then(|| self.weights[chooser.choose(place, &weights)].0)
    }
}

fn weight_of<W>(weights: &[(u32, W)], token: u32) -> Option<&W> {
    let place = weights.binary_search_by_key(&token, |&(token, _)| token);
    place.ok().map(|place| &weights[place].1)
}
