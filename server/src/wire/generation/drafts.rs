//! The field `draft`: whether tokens are drafted, from which sources, and how drafts of a draft model are
//! verified.
//!
//! `false` drafts nothing, `true` drafts from all sources, and an object chooses:
//!
//! ```json
//! {"sources": ["grammar", "copies"], "max_tokens": 64, "branches": 2, "candidates": 3, "rule": "k_seq"}
//! ```

use lexiform_engine::{Speculation, Verification};
use serde_json::Value;

use super::super::fields::{Fields, Problems};

/// The maximum number of tokens that a request may have drafted for one pass.
const TOKENS: i64 = 4_096;
/// The maximum number of siblings at one place: of a draft model, or of copies.
const SIBLINGS: i64 = 16;

/// Returns the flag of a source.
type Flag = fn(&mut Speculation) -> &mut bool;

/// The sources of drafts, by their names in requests.
const SOURCES: [(&str, Flag); 5] = [
    ("grammar", |drafts| &mut drafts.forced),
    ("copies", |drafts| &mut drafts.lookup),
    ("answers", |drafts| &mut drafts.learned),
    ("samples", |drafts| &mut drafts.siblings),
    ("model", |drafts| &mut drafts.model),
];

/// The rules that verify tokens of a draft model, by their names in requests, and whether tokens of stores
/// are drawn, too.
const RULES: [(&str, (Verification, bool)); 4] = [
    ("residual", (Verification::Residual, false)),
    ("k_seq", (Verification::KSeq, false)),
    ("draw_once", (Verification::DrawOnce, false)),
    ("sampled", (Verification::Residual, true)),
];

/// The drafts that a request allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drafts {
    /// The sources and sizes, with the engine's default rule.
    pub allowed: Speculation,
    /// The rule that the request names.
    pub rule: Option<Verification>,
}

impl Default for Drafts {
    fn default() -> Self {
        Drafts {
            allowed: Speculation::all(),
            rule: None,
        }
    }
}

impl Drafts {
    /// Returns drafts that are turned off.
    pub fn off() -> Self {
        Drafts {
            allowed: Speculation::none(),
            rule: None,
        }
    }

    /// Returns `true` if nothing is drafted.
    pub fn is_off(&self) -> bool {
        self.allowed == Speculation::none()
    }

    /// Takes the field; without it, tokens are drafted from all sources.
    pub(in crate::wire) fn read(fields: &mut Fields, problems: &mut Problems) -> Drafts {
        let value = match fields.take("draft") {
            None | Some(Value::Bool(true)) => return Drafts::default(),
            Some(Value::Bool(false)) => return Drafts::off(),
            Some(value @ Value::Object(_)) => value,
            Some(_) => {
                problems.invalid(fields.path("draft"), "expected true, false or an object");
                return Drafts::default();
            }
        };
        let Some(mut inner) = Fields::of(value, &fields.path("draft"), problems) else {
            return Drafts::default();
        };
        let mut allowed = Speculation::all();
        sources(&mut inner, &mut allowed, problems);
        let mut number = |name, most| {
            let number = inner.integer(name, 1, most, problems);
            number.map(|number| number as usize)
        };
        allowed.max_draft = number("max_tokens", TOKENS).unwrap_or(allowed.max_draft);
        allowed.candidates = number("candidates", SIBLINGS).unwrap_or(allowed.candidates);
        allowed.branches = number("branches", SIBLINGS).unwrap_or(allowed.branches);
        let rule = inner.word("rule", &RULES, problems);
        allowed.sampled = rule.is_some_and(|(_, sampled)| sampled);
        inner.finish_strict(problems);
        Drafts {
            allowed,
            rule: rule.map(|(rule, _)| rule),
        }
    }

    /// Reports a rule that the request contradicts: the text of a seed is the one without drafts, and so is
    /// a text that may not depend on other requests.
    pub(super) fn contradictions(&self, (seed, batch_invariant): (bool, bool), problems: &mut Problems) {
        let is_free = self.rule.is_none_or(|rule| rule == Verification::DrawOnce);
        let field = match (seed, batch_invariant) {
            (true, _) => "a seed",
            (_, true) => "batch_invariant",
            _ => return,
        };
        if !is_free {
            let message = format!("must be draw_once with {field}, whose text is the one without drafts");
            problems.invalid("draft.rule", message);
        }
    }
}

/// Takes the list of sources, and turns all others off.
fn sources(inner: &mut Fields, allowed: &mut Speculation, problems: &mut Problems) {
    if !inner.has("sources") {
        return;
    }
    let Some(named) = inner.array_of("sources", SOURCES.len(), "sources", problems) else {
        return;
    };
    SOURCES.iter().for_each(|(_, flag)| *flag(allowed) = false);
    for (number, name) in named.iter().enumerate() {
        match SOURCES.iter().find(|(known, _)| name == known) {
            Some((_, flag)) => *flag(allowed) = true,
            None => {
                let names = SOURCES.map(|(name, _)| format!("'{name}'")).join(" or ");
                problems.invalid(
                    format!("{}[{number}]", inner.path("sources")),
                    format!("expected {names}"),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Result<Drafts, String> {
        let body = json!({"draft": value});
        let Value::Object(map) = body else {
            return Err("no object".to_owned());
        };
        let (mut fields, mut problems) = (Fields::root(map), Problems::default());
        let drafts = Drafts::read(&mut fields, &mut problems);
        drafts.contradictions((false, false), &mut problems);
        match problems.check() {
            Ok(_) => Ok(drafts),
            Err(error) => Err(serde_json::to_string(&error.envelope()).unwrap_or_default()),
        }
    }

    #[test]
    fn a_word_or_an_object_chooses() {
        assert_eq!(read(json!(true)), Ok(Drafts::default()));
        assert!(read(json!(false)).is_ok_and(|drafts| drafts.is_off()));
        assert_eq!(read(json!({})), Ok(Drafts::default()));
        let chosen = json!({"sources": ["copies", "model"], "max_tokens": 9, "candidates": 3, "branches": 2, "rule": "k_seq"});
        let expected = Speculation {
            lookup: true,
            model: true,
            max_draft: 9,
            candidates: 3,
            branches: 2,
            verification: Verification::Residual,
            ..Speculation::none()
        };
        assert_eq!(
            read(chosen),
            Ok(Drafts {
                allowed: expected,
                rule: Some(Verification::KSeq)
            })
        );
    }

    #[test]
    fn stores_draw_by_a_rule_of_their_own() {
        let drafts = read(json!({"rule": "sampled"})).expect("a rule");
        assert!(drafts.allowed.sampled);
        assert_eq!(drafts.rule, Some(Verification::Residual));
        assert!(!read(json!({"rule": "residual"})).is_ok_and(|drafts| drafts.allowed.sampled));
    }

    #[test]
    fn what_is_none_is_refused_at_its_place() {
        for (value, place) in [
            (json!("yes"), "draft"),
            (json!({"sources": ["prompt"]}), "draft.sources[0]"),
            (json!({"sources": []}), "draft.sources"),
            (json!({"max_tokens": 0}), "draft.max_tokens"),
            (json!({"candidates": 99}), "draft.candidates"),
            (json!({"rule": "lossy"}), "draft.rule"),
            (json!({"shape": "tree"}), "draft.shape"),
        ] {
            let told = read(value.clone()).expect_err("it is refused");
            assert!(told.contains(place), "{value}: {told}");
        }
    }
}
