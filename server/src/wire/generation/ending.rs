//! Where an output ends: the texts and tokens that stop it, and what they cannot be combined with.

use serde_json::Value;

use super::{Generation, Task, token_id};
use crate::wire::fields::{Fields, Problems};

/// The maximum number of stop strings, and the maximum length of one in bytes.
const TEXTS: (usize, usize) = (4, 256);
/// The maximum number of stop tokens.
const TOKENS: usize = 64;

/// The texts and tokens that stop an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// The texts.
    pub texts: Vec<String>,
    /// `true` if the text that stops the output stays in it.
    pub keeps_text: bool,
    /// The tokens, which never stay in it.
    pub tokens: Vec<u32>,
}

impl Stop {
    pub(super) fn read(fields: &mut Fields, problems: &mut Problems) -> Self {
        let keeps_text = fields.boolean("include_stop_str_in_output", problems);
        Self {
            texts: texts(fields, problems),
            keeps_text: keeps_text.unwrap_or(false),
            tokens: tokens(fields, problems),
        }
    }

    /// Returns the fields that stop the output.
    fn fields(&self) -> impl Iterator<Item = &'static str> {
        let fields = [
            ("stop", !self.texts.is_empty()),
            ("stop_token_ids", !self.tokens.is_empty()),
        ];
        fields
            .into_iter()
            .filter_map(|(name, is_there)| is_there.then_some(name))
    }
}

impl Generation {
    /// Refuses settings of where the output ends that cannot be honoured together.
    pub(super) fn check_end(&self, problems: &mut Problems) {
        let is_local = matches!(&self.task, Task::Draw(law) if law.is_local());
        if self.ignore_eos && !is_local {
            problems.invalid(
                "ignore_eos",
                "requires law: local: the others are about texts that end",
            );
        }
        for param in self.stop.fields().filter(|_| self.min_tokens > 0) {
            problems.invalid(param, "cannot be combined with min_tokens");
        }
    }

    /// Refuses the settings that have no meaning beside a text that ends where it is complete.
    pub(crate) fn ends_whole(&self, what: &str, problems: &mut Problems) {
        if self.ignore_eos {
            let reason = format!("{what} ends where it is complete; min_tokens lets it grow");
            problems.invalid("ignore_eos", reason);
        }
        if let Some(param) = self.stop.fields().find(|_| self.weights) {
            let reason =
                format!("cannot be combined with {param}: the weight is that of a text that nothing cuts");
            problems.invalid("weights", reason);
        }
    }
}

fn texts(fields: &mut Fields, problems: &mut Problems) -> Vec<String> {
    let items = match fields.take("stop") {
        None => return Vec::new(),
        Some(Value::Array(items)) => items,
        Some(one) => vec![one],
    };
    let texts: Vec<String> = items
        .iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect();
    let (most, longest) = TEXTS;
    let fits = |text: &String| (1..=longest).contains(&text.len());
    if texts.len() != items.len() || texts.len() > most || !texts.iter().all(fits) {
        problems.invalid(
            "stop",
            format!("expected up to {most} strings of 1 to {longest} bytes"),
        );
        return Vec::new();
    }
    texts
}

fn tokens(fields: &mut Fields, problems: &mut Problems) -> Vec<u32> {
    let items = fields.array("stop_token_ids", problems).unwrap_or_default();
    let ids: Vec<u32> = items.iter().filter_map(token_id).collect();
    if ids.len() != items.len() || ids.len() > TOKENS {
        problems.invalid("stop_token_ids", format!("expected up to {TOKENS} token numbers"));
    }
    ids
}
