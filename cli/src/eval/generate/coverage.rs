//! Counts outcomes, and computes the shares by which endpoints are compared.

use super::fault::Kind;
use super::item::Verdict;
use super::record::{Outcome, Record};

/// The number of items with each outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Coverage {
    pub(super) asked: u64,
    pub(super) valid: u64,
    pub(super) wrapped: u64,
    pub(super) invalid: u64,
    pub(super) not_json: u64,
    pub(super) unjudged: u64,
    /// Answers that ended at the limit of tokens and are not valid. Nobody knows what they would have become.
    pub(super) truncated: u64,
    pub(super) refused: u64,
    pub(super) too_long: u64,
    /// Requests that failed for reasons that have nothing to do with the item.
    pub(super) failed: u64,
}

/// A share: so many of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) part: u64,
    pub(super) all: u64,
}

impl Coverage {
    pub(super) fn add(&mut self, record: &Record) {
        self.asked += 1;
        *self.count(&record.outcome) += 1;
    }

    fn count(&mut self, outcome: &Outcome) -> &mut u64 {
        match outcome {
            Outcome::Answered { judged, answer } => match judged.verdict {
                Verdict::Valid => &mut self.valid,
                _ if answer.is_truncated() => &mut self.truncated,
                Verdict::Wrapped => &mut self.wrapped,
                Verdict::Invalid => &mut self.invalid,
                Verdict::NotJson => &mut self.not_json,
                Verdict::Unjudged => &mut self.unjudged,
            },
            Outcome::Failed(fault) => match fault.kind {
                Kind::Refused => &mut self.refused,
                Kind::TooLong => &mut self.too_long,
                _ => &mut self.failed,
            },
        }
    }

    /// Returns the counts with their names.
    pub(super) fn counts(&self) -> [(&'static str, u64); 10] {
        [
            ("asked", self.asked),
            ("valid", self.valid),
            ("wrapped", self.wrapped),
            ("invalid", self.invalid),
            ("not_json", self.not_json),
            ("unjudged", self.unjudged),
            ("truncated", self.truncated),
            ("refused", self.refused),
            ("too_long", self.too_long),
            ("failed", self.failed),
        ]
    }

    /// Returns the share of the schemas that the endpoint took. A prompt that is too long and a failure of
    /// the endpoint say nothing about a schema.
    pub(super) fn declared(&self) -> Share {
        Share {
            part: self.answered(),
            all: self.answered() + self.refused,
        }
    }

    /// Returns the share of the schemas with a valid answer. A truncated answer is none.
    pub(super) fn empirical(&self) -> Share {
        Share {
            part: self.valid,
            all: self.answered() + self.refused - self.unjudged,
        }
    }

    /// Returns the share of valid answers among those that came to their end.
    pub(super) fn compliance(&self) -> Share {
        Share {
            part: self.valid,
            all: self.valid + self.wrapped + self.invalid + self.not_json,
        }
    }

    fn answered(&self) -> u64 {
        self.valid + self.wrapped + self.invalid + self.not_json + self.unjudged + self.truncated
    }
}

impl Share {
    /// Returns the share as a number from 0 to 1; `None` of nothing.
    pub(super) fn value(self) -> Option<f64> {
        (self.all > 0).then(|| self.part as f64 / self.all as f64)
    }

    /// Returns Wilson's interval at 95 %, which also holds for few cases and for shares near 0 and 1.
    pub(super) fn interval(self) -> Option<(f64, f64)> {
        const Z: f64 = 1.959_963_984_540_054;
        let (share, all) = (self.value()?, self.all as f64);
        let scale = 1.0 + Z * Z / all;
        let middle = (share + Z * Z / (2.0 * all)) / scale;
        let half = Z / scale * (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).sqrt();
        Some(((middle - half).max(0.0), (middle + half).min(1.0)))
    }

    /// Returns the share in words: `96.7 %`. What is rounded is never 0 or 100 %.
    pub(super) fn percent(self) -> String {
        let Some(value) = self.value() else {
            return "–".to_owned();
        };
        let tenths = (value * 1000.0).round() / 10.0;
        let tenths = match (self.part, self.all - self.part) {
            (0, _) | (_, 0) => tenths,
            _ => tenths.clamp(0.1, 99.9),
        };
        format!("{tenths:.1} %")
    }

    /// Returns the share in a sentence: `96.7 % (29 of 30; 83.3 to 99.4 % with a certainty of 95 %)`.
    pub(super) fn sentence(self) -> String {
        let Some((low, high)) = self.interval() else {
            return "none".to_owned();
        };
        let (percent, part, all) = (self.percent(), self.part, self.all);
        let (low, high) = (low * 100.0, high * 100.0);
        format!("{percent} ({part} of {all}; 95 % interval {low:.1} to {high:.1} %)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_leave_out_what_says_nothing_about_the_schema() {
        let coverage = Coverage {
            asked: 36,
            valid: 10,
            wrapped: 1,
            invalid: 2,
            not_json: 3,
            unjudged: 4,
            truncated: 5,
            refused: 6,
            too_long: 2,
            failed: 3,
        };
        let share = |part, all| Share { part, all };
        assert_eq!(coverage.declared(), share(25, 31));
        assert_eq!(coverage.empirical(), share(10, 27));
        assert_eq!(coverage.compliance(), share(10, 16));
    }

    /// The figures are those of Wilson's formula, computed by hand for 9 of 10.
    #[test]
    fn intervals_are_wilsons() {
        let (low, high) = Share { part: 9, all: 10 }.interval().expect("an interval");
        assert!(
            (low - 0.595_85).abs() < 1e-5 && (high - 0.982_12).abs() < 1e-5,
            "{low} {high}"
        );
        let (low, high) = Share { part: 10, all: 10 }.interval().expect("an interval");
        assert!((low - 0.722_47).abs() < 1e-5 && high > 0.999_999, "{low} {high}");
        assert_eq!(Share { part: 0, all: 0 }.interval(), None);
    }

    #[test]
    fn almost_all_is_not_all() {
        let percent = |part, all| Share { part, all }.percent();
        assert_eq!(percent(2999, 3000), "99.9 %");
        assert_eq!(percent(1, 3000), "0.1 %");
        assert_eq!(percent(3000, 3000), "100.0 %");
        assert_eq!(percent(0, 3000), "0.0 %");
        assert_eq!(percent(0, 0), "–");
    }
}
