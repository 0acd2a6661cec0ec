//! What one engine did with the schemas that it was asked about.

use std::collections::BTreeMap;

use super::cases::Case;
use super::dispute::Disputes;
use super::protocol::{Judged, Loaded};
use crate::eval::figures::{Reasons, Samples};
use crate::eval::verdict::Verdict;

/// What became of a schema.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Judged(Judged),
    /// The engine says that it does not take the schema.
    Refused(String),
    /// The engine took too long or too much memory, or its process ended.
    Lost(String),
}

/// The times of one kind of walk or compile, in microseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    pub(super) compile: Samples,
    /// Compile and first mask.
    pub(super) first: Samples,
    /// A step and the mask after it, on a grammar that was just compiled.
    pub(super) cold: Samples,
    pub(super) warm: Samples,
}

/// The number of schemas with a keyword, and what was wrong with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ByKeyword {
    pub(super) asked: u32,
    pub(super) refused: u32,
    /// Schemas of which a valid instance was refused.
    pub(super) narrow: u32,
    /// Schemas of which an invalid instance was accepted.
    pub(super) wide: u32,
}

/// The figures of one engine.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) loaded: Loaded,
    pub(super) all: ByKeyword,
    pub(super) right: u32,
    /// The part of the refused for which the engine took too much, or ended its process.
    pub(super) lost: u32,
    pub(super) reasons: Reasons,
    pub(super) keywords: BTreeMap<String, ByKeyword>,
    /// The first thing that went wrong with each schema that is not right.
    pub(super) failures: Vec<(String, Verdict)>,
    /// All times.
    pub(super) times: Times,
    /// The times of Lexiform and of this engine on the schemas that both compiled and the tokens that both
    /// took.
    pub(super) shared: (Times, Times),
    /// The number of compiles, and the sum of their times, by the power of two that the schema's size
    /// reaches.
    pub(super) compiles_by_size: BTreeMap<u32, (u32, f64)>,
    /// The most memory that the process held after a schema.
    pub(super) resident: u64,
    /// What two threads got done where one got 1 done, for each schema that was tried.
    pub(super) threads: Vec<f64>,
    pub(super) disputes: Disputes,
}

impl Tally {
    /// Adds what became of a schema.
    pub(super) fn add(&mut self, case: &Case, outcome: &Outcome) {
        let verdict = verdict(case, outcome);
        let wrong = |accepted: bool, valid: bool| accepted != valid;
        let mut one = ByKeyword {
            asked: 1,
            ..ByKeyword::default()
        };
        match outcome {
            Outcome::Refused(reason) | Outcome::Lost(reason) => {
                one.refused = 1;
                self.lost += u32::from(matches!(outcome, Outcome::Lost(_)));
                self.reasons.count(reason);
            }
            Outcome::Judged(judged) => {
                for (instance, walk) in case.instances.iter().zip(&judged.walks) {
                    let is_wrong = wrong(walk.accepted, instance.valid);
                    one.narrow |= u32::from(is_wrong && instance.valid);
                    one.wide |= u32::from(is_wrong && !instance.valid);
                }
                self.times.add(judged, None);
                self.resident = self.resident.max(judged.resident);
                let size = self
                    .compiles_by_size
                    .entry(case.schema.len().max(1).ilog2())
                    .or_default();
                *size = (size.0 + 1, size.1 + judged.compile_us);
            }
        }
        self.right += u32::from(verdict == Verdict::Right);
        if verdict != Verdict::Right {
            self.failures.push((case.name.clone(), verdict));
        }
        self.all.add(one);
        for keyword in &case.keywords {
            self.keywords.entry(keyword.clone()).or_default().add(one);
        }
    }

    /// Returns the median of what two threads got done where one got 1 done; `None` if nothing was tried.
    pub(super) fn two_threads(&self) -> Option<f64> {
        let mut ratios = self.threads.clone();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied()
    }

    /// Adds the times of a schema that Lexiform compiled, too.
    pub(super) fn add_shared(&mut self, ours: &Judged, theirs: &Judged) {
        self.shared.0.add(ours, Some(theirs));
        self.shared.1.add(theirs, Some(ours));
    }
}

impl ByKeyword {
    fn add(&mut self, one: ByKeyword) {
        self.asked += one.asked;
        self.refused += one.refused;
        self.narrow += one.narrow;
        self.wide += one.wide;
    }
}

impl Times {
    /// Adds the times of a schema, as far as another engine went, too.
    fn add(&mut self, judged: &Judged, other: Option<&Judged>) {
        self.compile.push(judged.compile_us);
        self.first.push(judged.compile_us + judged.first_us);
        self.cold.push(judged.first_us);
        for (index, walk) in judged.walks.iter().enumerate() {
            let others = other.map(|other| other.walks.get(index));
            let length = |times: fn(&super::protocol::Walk) -> usize| match others {
                None => usize::MAX,
                Some(walk) => walk.map_or(0, times),
            };
            let (cold, warm) = (length(|it| it.cold.len()), length(|it| it.warm.len()));
            walk.cold.iter().take(cold).for_each(|time| self.cold.push(*time));
            walk.warm.iter().take(warm).for_each(|time| self.warm.push(*time));
        }
    }
}

/// Returns the first thing that went wrong with a schema, as `lexiform eval maskbench` counts it.
fn verdict(case: &Case, outcome: &Outcome) -> Verdict {
    let judged = match outcome {
        Outcome::Refused(reason) | Outcome::Lost(reason) => return Verdict::DoesNotCompile(reason.clone()),
        Outcome::Judged(judged) => judged,
    };
    let walks = case.instances.iter().zip(&judged.walks).enumerate();
    let first = walks
        .map(|(index, (instance, walk))| (index, instance.valid, walk.accepted))
        .find(|(_, valid, accepted)| valid != accepted);
    match first {
        None => Verdict::Right,
        Some((index, true, _)) => Verdict::Refused(format!("valid instance {index} refused")),
        Some((index, false, _)) => Verdict::LetThrough(format!("invalid instance {index} accepted")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases::Instance;
    use super::super::protocol::Walk;
    use super::*;

    fn judged(accepted: &[bool], steps: usize) -> Judged {
        let walk = |accepted: &bool| Walk {
            accepted: *accepted,
            cold: vec![2.0; steps],
            warm: vec![1.0; steps],
            masks: Vec::new(),
        };
        Judged {
            compile_us: 100.0,
            first_us: 10.0,
            walks: accepted.iter().map(walk).collect(),
            resident: 7,
        }
    }

    #[test]
    fn a_schema_counts_once_and_for_each_of_its_keywords() {
        let instance = |valid| Instance {
            valid,
            tokens: vec![1],
        };
        let case = Case {
            name: "a".to_owned(),
            schema: "{}".to_owned(),
            keywords: ["type".to_owned()].into(),
            instances: vec![instance(true), instance(false)],
        };
        let mut tally = Tally::default();
        tally.add(&case, &Outcome::Judged(judged(&[true, false], 1)));
        tally.add(&case, &Outcome::Judged(judged(&[false, true], 1)));
        tally.add(&case, &Outcome::Refused("no".to_owned()));
        tally.add(&case, &Outcome::Lost("more than 1 s".to_owned()));
        let expected = ByKeyword {
            asked: 4,
            refused: 2,
            narrow: 1,
            wide: 1,
        };
        assert_eq!((tally.all, tally.keywords["type"]), (expected, expected));
        assert_eq!((tally.right, tally.lost), (1, 1));
        let failed: Vec<_> = tally
            .failures
            .iter()
            .map(|(_, verdict)| verdict.clone())
            .collect();
        assert_eq!(
            failed,
            [
                Verdict::Refused("valid instance 0 refused".to_owned()),
                Verdict::DoesNotCompile("no".to_owned()),
                Verdict::DoesNotCompile("more than 1 s".to_owned()),
            ]
        );
        // A first mask and a step for each of two instances, twice.
        assert_eq!((tally.times.cold.count(), tally.times.warm.count()), (6, 4));
        assert_eq!(tally.compiles_by_size[&1], (2, 200.0));
    }

    #[test]
    fn shared_times_end_where_the_first_engine_stops() {
        let mut tally = Tally::default();
        tally.add_shared(&judged(&[true, true], 5), &judged(&[true, false], 3));
        assert_eq!((tally.shared.0.cold.count(), tally.shared.1.cold.count()), (7, 7));
        assert_eq!(tally.shared.0.first.mean(), Some(110.0));
    }
}
