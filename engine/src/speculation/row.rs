//! The rows that drafted tokens are drawn from: those of a draft model, and what a store remembers of rows.

use lexiform_law::{Allowed, Ceiling, Chooser, Distribution, Part, Place, Portion, Row, Sparse, SparsePart};

/// A row that a drafted token was drawn from.
#[derive(Clone, Debug)]
pub(crate) enum DraftRow {
    /// A row of a draft model, over all tokens.
    Model(Distribution<'static>),
    /// The tokens that a store knows.
    Store(Sparse),
}

/// A part of a [`DraftRow`].
#[derive(Debug)]
pub(crate) enum DraftPart<'a> {
    Model(Portion<'a>),
    Store(SparsePart<f64>),
}

impl From<Sparse> for DraftRow {
    fn from(row: Sparse) -> Self {
        DraftRow::Store(row)
    }
}

impl Row<f64> for DraftRow {
    type Part<'a> = DraftPart<'a>;

    fn len(&self) -> usize {
        match self {
            DraftRow::Model(row) => row.len(),
            DraftRow::Store(row) => row.len(),
        }
    }

    fn probability(&self, token: u32) -> f64 {
        match self {
            DraftRow::Model(row) => row.probability(token),
            DraftRow::Store(row) => row.probability(token),
        }
    }

    fn part_under<'a>(&'a self, allowed: Allowed<'a>, ceiling: Option<Ceiling>) -> DraftPart<'a> {
        match self {
            DraftRow::Model(row) => DraftPart::Model(row.part_under(allowed, ceiling)),
            DraftRow::Store(row) => DraftPart::Store(row.part_under(allowed, ceiling)),
        }
    }
}

impl Part<f64> for DraftPart<'_> {
    fn mass(&self) -> f64 {
        match self {
            DraftPart::Model(part) => part.mass(),
            DraftPart::Store(part) => part.mass(),
        }
    }

    fn share(&self, token: u32) -> f64 {
        match self {
            DraftPart::Model(part) => part.share(token),
            DraftPart::Store(part) => part.share(token),
        }
    }

    fn shares(&self) -> Vec<f64> {
        match self {
            DraftPart::Model(part) => part.shares(),
            DraftPart::Store(part) => part.shares(),
        }
    }

    fn share_without(&self, token: u32) -> f64 {
        match self {
            DraftPart::Model(part) => part.share_without(token),
            DraftPart::Store(part) => part.share_without(token),
        }
    }

    fn draw<C: Chooser<f64> + ?Sized>(&self, place: Place, chooser: &mut C) -> Option<u32> {
        match self {
            DraftPart::Model(part) => part.draw(place, chooser),
            DraftPart::Store(part) => part.draw(place, chooser),
        }
    }
}
