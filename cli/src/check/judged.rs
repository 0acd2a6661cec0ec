//! The texts of a check with their verdicts.

use lexiform::Grammar;
use lexiform::verdict::{Unwritten, Verdict, judge, pointer};
use serde_json::{Value, json};

use crate::failure::{Code, Failure};
use crate::input::folder::Case;
use crate::input::source::Loaded;
use crate::input::texts::Text;
use crate::shown::output;
use crate::shown::paint::{bad, good, note};
use crate::verdict;

/// The rules by which the texts of a check are judged.
pub(super) struct Judge<'a> {
    pub(super) grammar: &'a Grammar,
    pub(super) source: &'a Loaded,
    /// The property of a JSON text that is judged.
    pub(super) by: By,
    /// Makes the grammar of a schema with the keys in any order.
    pub(super) any_order: &'a dyn Fn() -> Option<Grammar>,
}

/// The property of a JSON text that is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Judges whether the text is ever written.
    Spelling,
    /// Judges whether its value is allowed.
    Value,
}

impl Judge<'_> {
    fn judged(&self, name: String, bytes: Vec<u8>) -> Told {
        let is_json = self.source.is_schema();
        let verdict = judge(self.grammar, &bytes, is_json);
        let is_refused = is_json && matches!(verdict, Verdict::Leaves { .. } | Verdict::EndsEarly { .. });
        let unwritten = is_refused.then(|| Unwritten::of(&bytes, self.grammar, self.any_order));
        let unwritten = unwritten.flatten();
        let verdict = match (self.by, unwritten) {
            (By::Value, Some(_)) => Verdict::Belongs,
            _ => verdict,
        };
        let offset = verdict.offset(&bytes).filter(|_| is_json);
        let pointer = offset.map(|offset| pointer(&bytes, offset));
        Told {
            name,
            bytes,
            verdict,
            unwritten,
            pointer,
        }
    }
}

/// A text with its verdict.
struct Told {
    name: String,
    bytes: Vec<u8>,
    verdict: Verdict,
    /// For a text whose value is allowed: the reason why its spelling is never written.
    unwritten: Option<Unwritten>,
    /// The JSON pointer of the value that contains the problem, for a JSON text.
    pointer: Option<String>,
}

impl Told {
    fn text(&self) -> String {
        let mut text = told(&self.name, &self.bytes, &self.verdict, self.pointer.as_deref());
        if let (Some(unwritten), false) = (self.unwritten, self.verdict.belongs()) {
            let reason = verdict::in_words(unwritten);
            text += &format!(
                "  {} the JSON value is allowed; only this spelling is never written ({reason})\n",
                note("note:")
            );
        }
        text
    }

    fn json(&self) -> Value {
        let mut object = object(&self.name, &self.bytes, &self.verdict);
        if let Some(pointer) = &self.pointer {
            object["problem"]["pointer"] = json!(pointer);
            object["value_allowed"] = json!(self.unwritten.is_some());
        }
        if let Some(unwritten) = self.unwritten {
            object["never_written"] = json!(unwritten.names());
        }
        object
    }
}

/// All texts of a check.
pub(super) struct Judged {
    cases: Vec<(Case, Verdict)>,
    texts: Vec<Told>,
    unreadable: Vec<(String, Failure)>,
}

impl Judged {
    /// Judges the texts of the call, and those of the grammar's folder.
    pub(super) fn all(by: &Judge<'_>, given: Vec<Text>) -> Self {
        let cases = by.source.cases().iter().map(|case| {
            let verdict = judge(by.grammar, case.text.as_bytes(), by.source.is_schema());
            (case.clone(), verdict)
        });
        let cases = cases.collect();
        let (mut texts, mut unreadable) = (Vec::new(), Vec::new());
        for Text { name, bytes } in given {
            match bytes {
                Ok(bytes) => texts.push(by.judged(name, bytes)),
                Err(failure) => unreadable.push((name, failure)),
            }
        }
        Self {
            cases,
            texts,
            unreadable,
        }
    }

    /// Returns texts without verdicts; those that cannot be read are still named.
    pub(super) fn unread(given: Vec<Text>) -> Self {
        let unreadable = given
            .into_iter()
            .filter_map(|text| Some((text.name, text.bytes.err()?)));
        Self {
            cases: Vec::new(),
            texts: Vec::new(),
            unreadable: unreadable.collect(),
        }
    }

    pub(super) fn code(&self) -> Code {
        let of = |verdict: &Verdict, right: bool| match verdict {
            Verdict::Undecided { .. } => Code::DoesNotCompile,
            _ if right => Code::Fine,
            _ => Code::No,
        };
        let cases = self
            .cases
            .iter()
            .map(|(case, verdict)| of(verdict, is_right(case, verdict)));
        let texts = self
            .texts
            .iter()
            .map(|told| of(&told.verdict, told.verdict.belongs()));
        let unreadable = self.unreadable.iter().map(|(_, failure)| failure.code());
        cases.chain(texts).chain(unreadable).max().unwrap_or(Code::Fine)
    }

    /// Reports on standard error which texts could not be read.
    pub(super) fn complain(&self) {
        for (_, failure) in &self.unreadable {
            output::err(&format!("{} {failure}\n", bad("error:")));
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = self.summary(true) + &self.summary(false);
        for (case, verdict) in self
            .cases
            .iter()
            .filter(|(case, verdict)| !is_right(case, verdict))
        {
            text += &match case.accept {
                true => told(&case.name, case.text.as_bytes(), verdict, None),
                false if verdict.belongs() => format!("{}: {}\n", case.name, bad("belongs, but must not")),
                false => told(&case.name, case.text.as_bytes(), verdict, None),
            };
        }
        text.extend(self.texts.iter().map(Told::text));
        text
    }

    /// Summarises how many texts of a list have the verdict that the folder expects.
    fn summary(&self, accept: bool) -> String {
        let of_list = || self.cases.iter().filter(move |(case, _)| case.accept == accept);
        let (all, right) = (
            of_list().count(),
            of_list()
                .filter(|(case, verdict)| is_right(case, verdict))
                .count(),
        );
        let (file, what) = match accept {
            true => ("accept.txt", "belong"),
            false => ("reject.txt", "do not belong"),
        };
        let count = format!("{right} of {all} texts {what}");
        match all {
            0 => String::new(),
            _ if right == all => format!("{file}: {}\n", good(count)),
            _ => format!("{file}: {}\n", bad(count)),
        }
    }

    pub(super) fn json(&self) -> Vec<Value> {
        let cases = self.cases.iter().map(|(case, verdict)| {
            let mut object = object(&case.name, case.text.as_bytes(), verdict);
            object["expected"] = json!(case.accept);
            object
        });
        let texts = self.texts.iter().map(Told::json);
        let unreadable = self.unreadable.iter();
        let unreadable = unreadable
            .map(|(name, failure)| json!({"name": name, "belongs": null, "error": failure.to_string()}));
        cases.chain(texts).chain(unreadable).collect()
    }
}

fn is_right(case: &Case, verdict: &Verdict) -> bool {
    !matches!(verdict, Verdict::Undecided { .. }) && verdict.belongs() == case.accept
}

fn told(name: &str, bytes: &[u8], verdict: &Verdict, pointer: Option<&str>) -> String {
    match verdict {
        Verdict::Belongs => format!("{name}: {}\n", good("belongs")),
        Verdict::Undecided { .. } => format!(
            "{name}: {}\n{}",
            bad(verdict.reason(bytes)),
            verdict::wrong_line(verdict, bytes)
        ),
        _ => {
            let (reason, excerpt) = (verdict.reason(bytes), verdict::wrong_line(verdict, bytes));
            let place = pointer.filter(|pointer| !pointer.is_empty());
            let place = place.map_or(String::new(), |pointer| format!("in {pointer}, "));
            format!("{name}: {}: {place}{reason}\n{excerpt}", bad("does not belong"))
        }
    }
}

fn object(name: &str, bytes: &[u8], verdict: &Verdict) -> Value {
    let belongs = (!matches!(verdict, Verdict::Undecided { .. })).then(|| verdict.belongs());
    json!({"name": name, "belongs": belongs, "problem": verdict::as_json(verdict, bytes)})
}
