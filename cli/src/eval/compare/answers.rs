//! The first screen: questions of somebody who chooses an engine, with their answers.

use super::arena::Grown;
use super::dispute::{Blame, Side};
use super::findings::Findings;
use super::run::{Finished, OURS};
use super::tables::{grouped, microseconds, times};
use super::tally::Tally;
use crate::eval::figures::Samples;
use crate::report::{Answer, Mood};

/// The vocabulary that the first screen asks about: that of Gemma, the largest in wide use.
const LARGE: usize = 262_144;

impl Findings<'_> {
    pub(super) fn answers(&self) -> Vec<Answer> {
        let answers = [
            self.left_out_answer(),
            Some(self.count_answer("Who accepts invalid instances?", |engine| engine.tally.all.wide)),
            Some(self.count_answer("Who refuses valid instances?", |engine| engine.tally.all.narrow)),
            Some(self.count_answer("Who refuses whole schemas?", |engine| engine.tally.all.refused)),
            self.tail_answer(),
            self.compile_answer(),
            self.dispute_answer(),
            self.large_answer(),
        ];
        answers.into_iter().flatten().collect()
    }

    fn left_out_answer(&self) -> Option<Answer> {
        let named: Vec<String> = self
            .left_out
            .iter()
            .map(|(name, why)| format!("{name} ({why})"))
            .collect();
        (!named.is_empty()).then(|| answer("Which engines are missing?", format!("{}.", named.join("; "))))
    }

    /// Counts schemas of each engine, the fewest first.
    fn count_answer(&self, question: &str, count: impl Fn(&Finished) -> u32) -> Answer {
        let share = |engine: &&Finished| f64::from(count(engine)) / f64::from(engine.tally.all.asked.max(1));
        let mut engines: Vec<&Finished> = self
            .engines
            .iter()
            .filter(|engine| engine.tally.all.asked > 0)
            .collect();
        engines.sort_by(|a, b| share(a).total_cmp(&share(b)));
        let said = engines.iter().map(|engine| {
            let asked = grouped(engine.tally.all.asked.into());
            match count(engine) {
                0 => format!("{} on none of {asked} schemas", engine.name),
                count => format!("{} on {} of {asked}", engine.name, grouped(count.into())),
            }
        });
        answer(question, format!("{}.", said.collect::<Vec<_>>().join("; ")))
    }

    /// Compares the tails on what each engine and Lexiform both did.
    fn tail_answer(&self) -> Option<Answer> {
        let p99 = |samples: &Samples| samples.percentiles(&[0.99]).first().copied();
        let mut tails: Vec<(&str, f64)> = self
            .engines
            .iter()
            .filter_map(|engine| Some((engine.name.as_str(), p99(&engine.tally.times.cold)?)))
            .collect();
        tails.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (best, _) = *tails.first()?;
        let said: Vec<String> = tails
            .iter()
            .map(|(name, tail)| format!("{name} {} µs", microseconds(Some(*tail))))
            .collect();
        let same: Vec<String> = self
            .others()
            .filter_map(|engine| {
                let (ours, theirs) = &engine.tally.shared;
                Some(format!(
                    "{} {}",
                    engine.name,
                    times(Some(p99(&theirs.cold)? / p99(&ours.cold)?))
                ))
            })
            .collect();
        let mut text = format!("{best}: {}, each on the schemas that it takes.", said.join(", "));
        if !same.is_empty() {
            text += &format!(
                " On the same tokens, as multiples of {OURS}: {}.",
                same.join(", ")
            );
        }
        Some(answer(
            "Whose step and mask is best at the 99th percentile?",
            text,
        ))
    }

    fn compile_answer(&self) -> Option<Answer> {
        let median = |engine: &Finished| engine.tally.times.first.percentiles(&[0.5]).first().copied();
        let mut medians: Vec<(&str, f64)> = self
            .engines
            .iter()
            .filter_map(|engine| Some((engine.name.as_str(), median(engine)?)))
            .collect();
        medians.sort_by(|a, b| a.1.total_cmp(&b.1));
        if medians.is_empty() {
            return None;
        }
        let said: Vec<String> = medians
            .iter()
            .map(|(name, time)| format!("{name} {} µs", microseconds(Some(*time))))
            .collect();
        let text = format!("{}, at the median.", said.join(", "));
        Some(answer("How long until the first mask?", text))
    }

    /// Counts the examples of disagreements by who is wrong.
    fn dispute_answer(&self) -> Option<Answer> {
        let kinds = self
            .engines
            .iter()
            .flat_map(|engine| &engine.tally.disputes.kinds);
        let blames: Vec<(Side, Blame)> = kinds
            .flat_map(|((side, place), tally)| {
                let examples = tally.examples.iter();
                examples.map(|example| (*side, example.blame(*side, *place)))
            })
            .filter(|(_, blame)| *blame != Blame::Nobody)
            .collect();
        let count = |wanted: &[(Side, Blame)]| blames.iter().filter(|it| wanted.contains(it)).count();
        let both = |blame| count(&[(Side::Ours, blame), (Side::Theirs, blame)]);
        (!blames.is_empty()).then(|| {
            let text = format!(
                "Of {} texts, one or two of each kind of disagreement, {} are invalid and the other engine allows \
                 them, {} are valid and the other engine forbids them, {} are valid with white space or escapes \
                 that {OURS} leaves out by choice, {} show {OURS} wrong, and {} could not be completed or judged.",
                blames.len(),
                count(&[(Side::Theirs, Blame::TheOther)]),
                count(&[(Side::Ours, Blame::TheOther)]),
                both(Blame::Choice),
                both(Blame::Lexiform),
                both(Blame::Unknown),
            );
            answer("Where masks differ, who is right?", text)
        })
    }

    /// Says what becomes of each engine with a large vocabulary.
    fn large_answer(&self) -> Option<Answer> {
        let large = self.growth.iter().find(|grown| grown.tokens >= LARGE)?;
        let small = self.growth.first().filter(|small| small.tokens < large.tokens)?;
        let missing = large
            .left_out
            .iter()
            .map(|(name, why)| format!("{name} cannot be used: {why}"));
        let said: Vec<String> = missing
            .chain(large.engines.iter().filter_map(|engine| change(engine, small)))
            .collect();
        let question = format!("What breaks with {} tokens?", grouped(large.tokens as u64));
        Some(answer(&question, format!("{}.", said.join("; "))))
    }
}

/// Says what changed for an engine since a smaller vocabulary.
fn change(engine: &Finished, small: &Grown) -> Option<String> {
    let before = small.engines.iter().find(|known| known.name == engine.name)?;
    let (was, is) = (&before.tally, &engine.tally);
    let p99 = |tally: &Tally| tally.times.cold.percentiles(&[0.99]).first().copied();
    let lost = match is.lost {
        0 => "nothing".to_owned(),
        lost => format!(
            "out of bounds on {lost} of {} schemas ({} of {} before)",
            is.all.asked, was.lost, was.all.asked
        ),
    };
    let tail = match (p99(was), p99(is)) {
        (Some(was), Some(is)) => format!(
            ", p99 {} → {} µs",
            microseconds(Some(was)),
            microseconds(Some(is))
        ),
        _ => String::new(),
    };
    Some(format!("{}: {lost}{tail}", engine.name))
}

/// An answer about several engines. It is neither good nor bad news: that depends on whose engine it is.
fn answer(question: &str, answer: String) -> Answer {
    Answer {
        question: question.to_owned(),
        answer,
        mood: Mood::Plain,
    }
}
