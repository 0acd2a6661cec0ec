//! The texts and tokens that stop an output.

use serde_json::Value;

use super::super::fields::{Fields, Problems};
use super::values::token_id;

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
    pub(super) fn fields(&self) -> impl Iterator<Item = &'static str> {
        let fields = [
            ("stop", !self.texts.is_empty()),
            ("stop_token_ids", !self.tokens.is_empty()),
        ];
        fields
            .into_iter()
            .filter_map(|(name, is_there)| is_there.then_some(name))
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
