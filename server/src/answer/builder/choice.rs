//! The choice of the answers among the samples of a prompt.
//!
//! A sample that failed is no candidate, and one that was cut comes after all that are whole. If too few are
//! left, the request fails with the error of the first sample that failed.

use serde_json::Value;

use super::agreement::{Ballot, by_agreement, by_likelihood, equal, majority, scalars};
use crate::answer::sample::Ended;
use crate::wire::error::ApiError;
use crate::wire::generation::{Choose, Generation};
use crate::wire::response::{FieldSupport, Support};

/// How the answers of each prompt are chosen.
pub(super) struct Choice {
    pub(super) by: Choose,
    /// The number of answers.
    pub(super) answers: usize,
    /// The samples that have ended whole, in the order in which they did.
    pub(super) finished: Vec<usize>,
    /// The error of the first sample that failed.
    pub(super) failed: Option<ApiError>,
}

/// The place of a sample in the answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// A choice of this index, with the support that decided for it.
    Told(usize, Option<Support>),
    /// Not decided yet.
    Open,
    /// None: it failed, or was cancelled, or others were chosen.
    LeftOut,
}

impl Choice {
    /// Returns the choice that a request asks for, unless every sample is an answer.
    pub(super) fn of(generation: &Generation) -> Option<Self> {
        let choice = Choice {
            by: generation.choose,
            answers: generation.n.max(1),
            finished: Vec::new(),
            failed: None,
        };
        (generation.choose != Choose::Likeliest).then_some(choice)
    }

    /// Returns the place of a sample before anything is known about it.
    pub(super) fn place(choice: Option<&Self>, index: usize) -> Place {
        match choice {
            Some(_) => Place::Open,
            None => Place::Told(index, None),
        }
    }

    /// Returns the chosen of these samples in their order, each with its support.
    pub(super) fn among(&self, candidates: &[Candidate]) -> Vec<(usize, Option<Support>)> {
        let (uncut, cut): (Vec<&Candidate>, Vec<&Candidate>) =
            candidates.iter().partition(|candidate| candidate.is_whole);
        let ballots: Vec<Ballot> = uncut.iter().map(|candidate| candidate.ballot.clone()).collect();
        let indices = |order: Vec<usize>| order.into_iter().map(|number| (number, None));
        let order: Vec<(usize, Option<f64>)> = match self.by {
            Choose::Likeliest => indices(by_likelihood(&ballots)).collect(),
            Choose::Majority => indices(majority(&ballots)).collect(),
            Choose::Agreement => by_agreement(&ballots)
                .into_iter()
                .map(|(number, agreement)| (number, Some(agreement)))
                .collect(),
            Choose::First => {
                let when = |number: &usize| {
                    let index = uncut[*number].index;
                    self.finished.iter().position(|&finished| finished == index)
                };
                let mut order: Vec<usize> = (0..uncut.len()).collect();
                order.sort_by_key(when);
                indices(order).collect()
            }
        };
        let told = order.into_iter().map(|(number, agreement)| {
            let support = (self.by != Choose::First).then(|| support(&ballots, number, agreement));
            (uncut[number].index, support)
        });
        let cut_ballots: Vec<Ballot> = cut.iter().map(|candidate| candidate.ballot.clone()).collect();
        let rest = by_likelihood(&cut_ballots);
        let rest = rest.into_iter().map(|number| (cut[number].index, None));
        told.chain(rest).take(self.answers).collect()
    }
}

/// A sample that may be chosen.
pub(super) struct Candidate {
    index: usize,
    is_whole: bool,
    ballot: Ballot,
}

impl Candidate {
    /// Returns a sample that has ended, and wrote this value.
    pub(super) fn new(index: usize, value: Value, ended: Ended) -> Self {
        Candidate {
            index,
            is_whole: ended.finish == "stop",
            ballot: Ballot {
                value,
                log_probability: ended.sample.log_probability / ended.completion_tokens.max(1) as f64,
            },
        }
    }
}

/// Returns how far all samples support one of them.
fn support(ballots: &[Ballot], number: usize, agreement: Option<f64>) -> Support {
    let share = |is_same: &dyn Fn(&Value) -> bool| {
        let same = ballots.iter().filter(|ballot| is_same(&ballot.value)).count();
        same as f64 / ballots.len() as f64
    };
    let value = &ballots[number].value;
    let mut all = Vec::new();
    scalars(value, "", &mut all);
    let fields = all
        .into_iter()
        .filter(|(path, _)| !path.is_empty())
        .map(|(path, scalar)| FieldSupport {
            share: share(&|other| other.pointer(&path).is_some_and(|other| equal(scalar, other))),
            path,
        });
    Support {
        samples: ballots.len(),
        share: share(&|other| equal(value, other)),
        agreement,
        fields: fields.collect(),
    }
}
