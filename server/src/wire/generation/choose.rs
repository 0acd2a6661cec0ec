//! The field `choose`: how the answers are chosen among the samples of `best_of`.

use super::super::fields::{Fields, Problems};

/// How answers are chosen among samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choose {
    /// The likeliest samples.
    #[default]
    Likeliest,
    /// The samples whose value occurs most often.
    Majority,
    /// The samples that agree most with the others, field by field: those of minimum Bayes risk.
    Agreement,
    /// The samples that are whole first; the others are cancelled.
    First,
}

impl Choose {
    /// Returns the tag of the law of an answer that was chosen in this way.
    pub fn law(self) -> &'static str {
        match self {
            Choose::Likeliest => "best-of",
            Choose::Majority => "majority",
            Choose::Agreement => "mbr",
            Choose::First => "first",
        }
    }
}

/// Reads the field.
pub(super) fn read(fields: &mut Fields, problems: &mut Problems) -> Choose {
    let words = [
        ("likeliest", Choose::Likeliest),
        ("majority", Choose::Majority),
        ("mbr", Choose::Agreement),
        ("first", Choose::First),
    ];
    let choose = fields.word("choose", &words, problems);
    if choose.is_some() && !fields.has("best_of") {
        let message = "requires best_of, the number of samples to choose among";
        problems.invalid("choose", message);
    }
    choose.unwrap_or_default()
}
