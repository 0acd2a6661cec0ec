//! The sums over the records of one arm of one endpoint, and those of each law that our service names.

use std::collections::BTreeMap;

use super::coverage::Coverage;
use super::item::{Arm, Item, Verdict};
use super::record::{Answer, Outcome, Record};
use crate::eval::figures::Reasons;
use crate::report::{Table, count};
use lexiform::verdict::find_twice;

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
                let is_twice = is_valid && find_twice(answer.text.as_bytes()).is_some();
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
        add_law(&mut self.laws, answer);
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

/// The answers of one law.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Law {
    /// The attempts of each answer.
    attempts: Vec<u64>,
    tokens: u64,
    drafted: u64,
    accepted: u64,
}

/// The answers by the law that they follow. Other services name none.
pub(super) type Laws = BTreeMap<String, Law>;

/// Counts an answer, if it names its law.
fn add_law(laws: &mut Laws, answer: &Answer) {
    let Some(told) = &answer.lexiform else { return };
    let Some(name) = told.get("law").and_then(|it| it.as_str()) else {
        return;
    };
    let number = |field| told.get(field).and_then(|it| it.as_u64());
    let law = laws.entry(name.to_owned()).or_default();
    law.attempts.push(number("attempts").unwrap_or(1));
    law.tokens += answer.used(&["completion_tokens"]).unwrap_or(0);
    law.drafted += number("drafted").unwrap_or(0);
    law.accepted += number("accepted").unwrap_or(0);
}

/// Returns the table of the laws of groups, each with its label, or `None` if no answer names one.
pub(super) fn laws<'a>(groups: impl Iterator<Item = (&'a str, &'a Laws)>) -> Option<Table> {
    let rows: Vec<Vec<String>> = groups
        .flat_map(|(label, laws)| laws.iter().map(move |(name, law)| law.row(label, name)))
        .collect();
    let columns = [
        "answers of",
        "law",
        "answers",
        "attempts, mean",
        "90 %",
        "most",
        "drafted tokens that were kept",
        "tokens a pass",
    ];
    (!rows.is_empty()).then(|| Table {
        title: "Attempts by law, and what drafts saved".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: "A global law draws a text again until it obeys the constraint; all others take one attempt. Each drafted \
               token that is kept saves a pass of the model."
            .to_owned(),
    })
}

impl Law {
    fn row(&self, label: &str, name: &str) -> Vec<String> {
        let mut attempts = self.attempts.clone();
        attempts.sort_unstable();
        let answers = attempts.len();
        let mean = attempts.iter().sum::<u64>() as f64 / answers.max(1) as f64;
        let late = attempts.get((answers * 9).div_ceil(10).max(1) - 1);
        let number = |it: Option<&u64>| it.map_or_else(|| "–".to_owned(), u64::to_string);
        vec![
            label.to_owned(),
            name.to_owned(),
            count(answers),
            format!("{mean:.2}"),
            number(late),
            number(attempts.last()),
            share(self.accepted, self.drafted),
            self.tokens_a_pass(),
        ]
    }

    /// Every pass writes one token besides the drafted ones that it confirms.
    fn tokens_a_pass(&self) -> String {
        match self.tokens.checked_sub(self.accepted) {
            Some(passes) if passes > 0 => format!("{:.2}", self.tokens as f64 / passes as f64),
            _ => "–".to_owned(),
        }
    }
}

fn share(part: u64, all: u64) -> String {
    match all {
        0 => "–".to_owned(),
        all => format!("{:.0} %", 100.0 * part as f64 / all as f64),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn laws_are_told_apart() {
        let mut laws = Laws::new();
        let answer = |lexiform| Answer {
            usage: Some(json!({"completion_tokens": 12})),
            lexiform,
            ..Answer::default()
        };
        for attempts in [1, 5] {
            let told = json!({"law": "global-exact", "attempts": attempts, "drafted": 8, "accepted": 4});
            add_law(&mut laws, &answer(Some(told)));
        }
        add_law(&mut laws, &answer(Some(json!({"law": "local", "attempts": 1}))));
        add_law(&mut laws, &answer(None));
        let row = |name: &str| laws[name].row("ours", name)[2..].join(" ");
        assert_eq!(laws.len(), 2);
        assert_eq!(row("global-exact"), "2 3.00 5 5 50 % 1.50");
        assert_eq!(row("local"), "1 1.00 1 1 – 1.00");
    }
}
