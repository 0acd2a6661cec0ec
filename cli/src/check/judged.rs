//! The texts of a check with their verdicts.

use lexiform::Grammar;
use serde_json::{Value, json};

use crate::failure::{Code, Failure};
use crate::input::folder::Case;
use crate::input::source::Loaded;
use crate::input::texts::Text;
use crate::shown::output;
use crate::shown::paint::{bad, good};
use crate::verdict::{Verdict, judge};

/// All texts of a check.
pub(super) struct Judged {
    cases: Vec<(Case, Verdict)>,
    texts: Vec<(String, Vec<u8>, Verdict)>,
    unreadable: Vec<(String, Failure)>,
}

impl Judged {
    /// Judges the texts of the call, and those of the grammar's folder.
    pub(super) fn all(grammar: &Grammar, source: &Loaded, given: Vec<Text>) -> Self {
        let is_json = source.is_schema();
        let cases = source.cases().iter().map(|case| {
            let verdict = judge(grammar, case.text.as_bytes(), is_json);
            (case.clone(), verdict)
        });
        let cases = cases.collect();
        let (mut texts, mut unreadable) = (Vec::new(), Vec::new());
        for Text { name, bytes } in given {
            match bytes {
                Ok(bytes) => {
                    let verdict = judge(grammar, &bytes, is_json);
                    texts.push((name, bytes, verdict));
                }
                Err(failure) => unreadable.push((name, failure)),
            }
        }
        Self {
            cases,
            texts,
            unreadable,
        }
    }

    /// Texts that nothing can be said of; those that cannot be read are named all the same.
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
            .map(|(_, _, verdict)| of(verdict, verdict.belongs()));
        let unreadable = self.unreadable.iter().map(|(_, failure)| failure.code());
        cases.chain(texts).chain(unreadable).max().unwrap_or(Code::Fine)
    }

    /// Says on standard error which texts could not be read.
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
                true => told(&case.name, case.text.as_bytes(), verdict),
                false if verdict.belongs() => format!("{}: {}\n", case.name, bad("belongs, but must not")),
                false => told(&case.name, case.text.as_bytes(), verdict),
            };
        }
        for (name, bytes, verdict) in &self.texts {
            text += &told(name, bytes, verdict);
        }
        text
    }

    /// How many texts of a list are as its folder says.
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
        let texts = self
            .texts
            .iter()
            .map(|(name, bytes, verdict)| object(name, bytes, verdict));
        let unreadable = self.unreadable.iter();
        let unreadable = unreadable
            .map(|(name, failure)| json!({"name": name, "belongs": null, "error": failure.to_string()}));
        cases.chain(texts).chain(unreadable).collect()
    }
}

fn is_right(case: &Case, verdict: &Verdict) -> bool {
    !matches!(verdict, Verdict::Undecided { .. }) && verdict.belongs() == case.accept
}

fn told(name: &str, bytes: &[u8], verdict: &Verdict) -> String {
    match verdict {
        Verdict::Belongs => format!("{name}: {}\n", good("belongs")),
        Verdict::Undecided { .. } => format!(
            "{name}: {}\n{}",
            bad(verdict.reason(bytes)),
            verdict.excerpt(bytes)
        ),
        _ => {
            let (reason, excerpt) = (verdict.reason(bytes), verdict.excerpt(bytes));
            format!("{name}: {}: {reason}\n{excerpt}", bad("does not belong"))
        }
    }
}

fn object(name: &str, bytes: &[u8], verdict: &Verdict) -> Value {
    let belongs = (!matches!(verdict, Verdict::Undecided { .. })).then(|| verdict.belongs());
    json!({"name": name, "belongs": belongs, "problem": verdict.json(bytes)})
}
