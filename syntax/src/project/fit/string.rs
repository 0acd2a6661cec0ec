//! Strings: lengths, patterns and formats, each in the place of another where the target takes only that.

use regex_syntax::hir::{Hir, HirKind};
use serde_json::Value;

use crate::project::form::{Form, Pattern, Text};
use crate::project::pattern;
use crate::project::profile::{Beside, Patterns};
use crate::schema::{GoalId, Normal, StringShape, TextSource, text::Text as Language};

use super::Fitting;

/// A pattern that a string has to match, or must not.
struct Wanted {
    /// Its text for the target, and in JSON Schema, if the target takes it.
    text: Option<(String, String)>,
    /// The only language that it consists of.
    language: Option<crate::schema::TextId>,
    is_affirmed: bool,
    keyword: &'static str,
    shown: String,
}

impl Fitting<'_> {
    /// Returns the forms of the strings of a normal form.
    pub(super) fn strings(&mut self, normal: &Normal, goal: GoalId) -> Vec<Form> {
        let shapes = normal.strings.iter();
        shapes.filter_map(|shape| self.string(shape, goal)).collect()
    }

    pub(super) fn string(&mut self, shape: &StringShape, goal: GoalId) -> Option<Form> {
        let value = |text: &std::rc::Rc<str>| Value::from(&**text);
        if let Some(only) = &shape.only {
            return Some(Form::Constants(only.iter().map(value).collect()));
        }
        let mut text = Text::default();
        if !shape.except.is_empty() {
            let message = "that some strings are not allowed is not enforced";
            if self.profile.combine {
                text.except = shape.except.iter().map(value).collect();
            } else if !self.lose(goal, &["not", "enum", "const"], message) {
                return None;
            }
        }
        let mut wanted = self.wanted(shape, &mut text);
        let is_counted = self.count_units(shape, &text, &mut wanted);
        self.choose(wanted, &mut text, goal)?;
        if has_lengths(shape) && !is_counted {
            self.lengths(shape, &mut text, goal)?;
        }
        Some(Form::String(text))
    }

    /// Returns the patterns of a shape. A format that the target takes goes into the text.
    fn wanted(&self, shape: &StringShape, text: &mut Text) -> Vec<Wanted> {
        let texts = &self.normal.texts;
        let mut wanted = Vec::new();
        for source in texts.sources(&shape.texts) {
            match source {
                TextSource::Format(name) if text.format.is_none() && self.takes_format(name) => {
                    text.format = Some(name.to_owned());
                }
                TextSource::Format(name) => {
                    wanted.push(self.printed(&texts.format_texts(name), "format", name))
                }
                TextSource::Pattern(pattern, ids) => {
                    let mut one = self.printed(&ids, "pattern", pattern);
                    let rules = self.profile.string.pattern.as_ref();
                    if rules.is_some_and(|rules| pattern::is_taken(pattern, rules)) {
                        one.text = Some((pattern.to_owned(), pattern.to_owned()));
                    }
                    wanted.push(one);
                }
                TextSource::Other(id, sign) => {
                    let mut one =
                        self.printed(&[(id, true)], "pattern", "what follows from several keywords");
                    one.is_affirmed = sign;
                    wanted.push(one);
                }
            }
        }
        wanted
    }

    fn takes_format(&self, name: &str) -> bool {
        self.profile.string.formats.iter().any(|known| known == name)
    }

    /// Returns the pattern of languages, printed if it is a single one.
    fn printed(&self, ids: &[(crate::schema::TextId, bool)], keyword: &'static str, shown: &str) -> Wanted {
        let mut wanted = Wanted {
            text: None,
            language: None,
            is_affirmed: true,
            keyword,
            shown: shown.to_owned(),
        };
        let (&[(id, sign)], Some(rules)) = (ids, &self.profile.string.pattern) else {
            return wanted;
        };
        wanted.is_affirmed = sign;
        match self.normal.texts.text(id) {
            Language::Match(hir) => wanted.text = both(rules, |rules| pattern::printed(hir, rules)),
            Language::Units { unit, min, max } => {
                wanted.text = both(rules, |rules| pattern::printed_units(unit, *min, *max, rules));
            }
        }
        wanted.language = Some(id);
        wanted
    }

    /// Counts the lengths of a shape into its only pattern, where that counts single characters. Returns
    /// `true` if it did.
    fn count_units(&self, shape: &StringShape, text: &Text, wanted: &mut [Wanted]) -> bool {
        let ([only], None, Some(rules)) = (wanted, &text.format, &self.profile.string.pattern) else {
            return false;
        };
        let Some(id) = only
            .language
            .filter(|_| only.is_affirmed && !self.takes_lengths_beside(true))
        else {
            return false;
        };
        let Some((unit, min, max)) = characters(self.normal.texts.text(id)).filter(|_| has_lengths(shape))
        else {
            return false;
        };
        let most = [max, shape.max].into_iter().flatten().min();
        match both(rules, |rules| {
            pattern::printed_units(unit, min.max(shape.min), most, rules)
        }) {
            Some(printed) => {
                only.text = Some(printed);
                true
            }
            None => false,
        }
    }

    /// Puts the patterns into the text, as far as the target takes them together.
    fn choose(&mut self, wanted: Vec<Wanted>, text: &mut Text, goal: GoalId) -> Option<()> {
        for one in wanted {
            let is_free = self.profile.combine || (text.patterns.is_empty() && one.is_affirmed);
            let is_beside = text.format.is_none() || self.takes_beside(Beside::Format);
            match one.text {
                Some(both) if is_free && is_beside => text.patterns.push(pattern_of(both, one.is_affirmed)),
                Some(both) if is_free => {
                    // A pattern says more than a format beside it.
                    let format = text.format.take().unwrap_or_default();
                    text.patterns.push(pattern_of(both, true));
                    let message = format!("the format `{format}` is not enforced beside a pattern");
                    self.lose(goal, &["format"], &message).then_some(())?;
                }
                _ => {
                    let message = match one.keyword {
                        "format" => format!("the format `{}` is not enforced", one.shown),
                        _ => format!("the pattern `{}` is not enforced", one.shown),
                    };
                    self.lose(
                        goal,
                        &[one.keyword, "propertyNames", "patternProperties"],
                        &message,
                    )
                    .then_some(())?;
                }
            }
        }
        Some(())
    }

    fn takes_beside(&self, what: Beside) -> bool {
        let pattern: Option<&Patterns> = self.profile.string.pattern.as_ref();
        pattern.is_some_and(|rules| rules.beside.contains(&what))
    }

    /// Returns `true` if the target takes lengths, beside a pattern or format if there is one.
    fn takes_lengths_beside(&self, is_beside: bool) -> bool {
        self.profile.string.lengths && (!is_beside || self.takes_beside(Beside::Lengths))
    }

    /// Puts the lengths into the text: as they are, or as its pattern.
    fn lengths(&mut self, shape: &StringShape, text: &mut Text, goal: GoalId) -> Option<()> {
        let is_alone = text.patterns.is_empty() && text.format.is_none();
        if self.takes_lengths_beside(!is_alone) && self.takes_counts(shape.min, shape.max) {
            (text.min, text.max) = (shape.min, shape.max);
            return Some(());
        }
        let rules = self.profile.string.pattern.as_ref().filter(|_| is_alone);
        if let Some(printed) = rules.and_then(|rules| pattern::printed_lengths(shape.min, shape.max, rules)) {
            text.lengths = Some(printed);
            (text.min, text.max) = (shape.min, shape.max);
            return Some(());
        }
        for (there, keyword) in [(shape.min > 0, "minLength"), (shape.max.is_some(), "maxLength")] {
            if there {
                self.lose(goal, &[keyword], &format!("`{keyword}` is not enforced"))
                    .then_some(())?;
            }
        }
        Some(())
    }
}

/// Prints a pattern for a target, and for JSON Schema.
fn both(rules: &Patterns, print: impl Fn(&Patterns) -> Option<String>) -> Option<(String, String)> {
    let plain = Patterns {
        anything: ANYTHING.to_owned(),
        ..rules.clone()
    };
    Some((print(rules)?, print(&plain)?))
}

/// Any one character, in JSON Schema.
const ANYTHING: &str = "[\\s\\S]";

fn pattern_of((written, meant): (String, String), is_affirmed: bool) -> Pattern {
    Pattern {
        written,
        meant,
        is_affirmed,
    }
}

/// Returns the class and the counts of a language of strings of single characters, such as `[a-z]{2,5}`.
fn characters(language: &Language) -> Option<(&Hir, u64, Option<u64>)> {
    let (unit, min, max) = match language {
        Language::Units { unit, min, max } => (&**unit, *min, *max),
        Language::Match(hir) => match hir.kind() {
            HirKind::Repetition(run) => (&*run.sub, u64::from(run.min), run.max.map(u64::from)),
            _ => return None,
        },
    };
    matches!(unit.kind(), HirKind::Class(_)).then_some((unit, min, max))
}

fn has_lengths(shape: &StringShape) -> bool {
    shape.min > 0 || shape.max.is_some()
}
