//! The laws that our service names with its answers: how many attempts each took, and what drafts saved.

use std::collections::BTreeMap;

use super::record::Answer;
use super::tally::Tally;
use crate::report::{Table, count};

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
pub(super) fn add(laws: &mut Laws, answer: &Answer) {
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

/// Returns the table of all laws, or `None` if no answer names one.
pub(super) fn table(tallies: &[Tally]) -> Option<Table> {
    let rows: Vec<Vec<String>> = tallies
        .iter()
        .flat_map(|tally| {
            let laws = tally.laws.iter();
            laws.map(|(name, law)| law.row(&tally.label, name))
        })
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
            add(&mut laws, &answer(Some(told)));
        }
        add(&mut laws, &answer(Some(json!({"law": "local", "attempts": 1}))));
        add(&mut laws, &answer(None));
        let row = |name: &str| laws[name].row("ours", name)[2..].join(" ");
        assert_eq!(laws.len(), 2);
        assert_eq!(row("global-exact"), "2 3.00 5 5 50 % 1.50");
        assert_eq!(row("local"), "1 1.00 1 1 – 1.00");
    }
}
