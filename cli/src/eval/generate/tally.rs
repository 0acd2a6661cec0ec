//! The sums over the records of one arm of one endpoint.

use std::collections::BTreeMap;

use super::coverage::Coverage;
use super::item::{Arm, Item, Verdict};
use super::laws::{self, Laws};
use super::record::{Answer, Outcome, Record};
use crate::eval::figures::Reasons;
use crate::verdict::twice;

/// The sums over the records of an arm.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// The name in tables and plots: that of the arm, or of the endpoint.
    pub(super) label: String,
    pub(super) arm: Arm,
    pub(super) coverage: Coverage,
    pub(super) by_split: BTreeMap<String, Coverage>,
    pub(super) by_keyword: BTreeMap<String, Coverage>,
    pub(super) by_finish: BTreeMap<String, u64>,
    /// The requests without an answer, by the kind of their failure.
    pub(super) by_fault: BTreeMap<&'static str, u64>,
    /// The attempts that failed and were followed by another one.
    pub(super) retried: BTreeMap<&'static str, u64>,
    /// Why answers are not valid and schemas were refused.
    pub(super) reasons: Reasons,
    pub(super) usage: Usage,
    pub(super) laws: Laws,
    /// The times to the first token, sorted.
    pub(super) first_token_ms: Vec<f64>,
    /// The mean times of a token of each answer, sorted.
    pub(super) token_ms: Vec<f64>,
    /// The valid answers with an object that has a key twice, which readers treat in different ways.
    pub(super) keys_twice: u64,
}

/// The sums of what the endpoint said about its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) answers_without: u64,
    pub(super) prompt_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) completion_tokens: u64,
    /// The sums of the whole numbers in `lexiform`, by name: `drafted`, `accepted`.
    pub(super) lexiform: BTreeMap<String, u64>,
}

impl Tally {
    /// Sums up the records of an arm.
    pub(super) fn of<'a>(
        label: String,
        arm: Arm,
        records: impl Iterator<Item = (&'a Item, &'a Record)>,
    ) -> Self {
        let mut tally = Self::new(label, arm);
        for (item, record) in records {
            tally.add(item, record);
        }
        tally.first_token_ms.sort_by(f64::total_cmp);
        tally.token_ms.sort_by(f64::total_cmp);
        tally
    }

    fn new(label: String, arm: Arm) -> Self {
        Self {
            label,
            arm,
            coverage: Coverage::default(),
            by_split: BTreeMap::new(),
            by_keyword: BTreeMap::new(),
            by_finish: BTreeMap::new(),
            by_fault: BTreeMap::new(),
            retried: BTreeMap::new(),
            reasons: Reasons::default(),
            usage: Usage::default(),
            laws: Laws::new(),
            first_token_ms: Vec::new(),
            token_ms: Vec::new(),
            keys_twice: 0,
        }
    }

    fn add(&mut self, item: &Item, record: &Record) {
        self.coverage.add(record);
        self.by_split.entry(item.split.clone()).or_default().add(record);
        for keyword in &item.keywords {
            self.by_keyword.entry(keyword.clone()).or_default().add(record);
        }
        for kind in &record.retried {
            *self.retried.entry(kind.name()).or_default() += 1;
        }
        match &record.outcome {
            Outcome::Answered { judged, answer } => {
                let is_valid = judged.verdict == Verdict::Valid;
                if !is_valid && !answer.is_truncated() {
                    self.reasons.count(&judged.reason);
                }
                let is_twice = is_valid && twice::find(answer.text.as_bytes()).is_some();
                self.keys_twice += u64::from(is_twice);
                self.add_answer(answer);
            }
            Outcome::Failed(fault) => {
                self.reasons.count(&fault.reason);
                *self.by_fault.entry(fault.kind.name()).or_default() += 1;
            }
        }
    }

    fn add_answer(&mut self, answer: &Answer) {
        let finish = answer.finish.clone().unwrap_or_else(|| "none".to_owned());
        *self.by_finish.entry(finish).or_default() += 1;
        self.first_token_ms.extend(answer.times.first_token_ms);
        self.token_ms.extend(answer.token_ms());
        self.usage.add(answer);
        laws::add(&mut self.laws, answer);
    }
}

impl Usage {
    fn add(&mut self, answer: &Answer) {
        let used = |path: &[&str]| answer.used(path);
        let completion = used(&["completion_tokens"]);
        self.answers_without += u64::from(completion.is_none());
        self.completion_tokens += completion.unwrap_or(0);
        self.prompt_tokens += used(&["prompt_tokens"]).unwrap_or(0);
        self.cached_tokens += used(&["prompt_tokens_details", "cached_tokens"]).unwrap_or(0);
        let told = answer.lexiform.as_ref().and_then(|it| it.as_object());
        for (name, value) in told.into_iter().flatten() {
            if let Some(number) = value.as_u64() {
                *self.lexiform.entry(name.clone()).or_default() += number;
            }
        }
    }
}
