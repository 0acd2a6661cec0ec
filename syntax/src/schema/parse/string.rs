//! Reads `minLength`, `maxLength`, `pattern` and `format`.

use std::rc::Rc;

use serde_json::Value;

use crate::schema::node::Keyword;
use crate::schema::options::Formats;
use crate::schema::text::{TextSet, format};
use crate::suggest;
use lexiform_automata::error::ProblemKind;

use super::{Reader, Site, describe};

impl<'v> Reader<'v> {
    pub(super) fn string_keyword(&mut self, site: Site<'v>, key: &str, value: &'v Value) {
        match key {
            "minLength" => {
                if let Some(count) = self.count(site, key, value) {
                    self.push(site.id, "minLength", Keyword::MinLength(count));
                }
            }
            "maxLength" => {
                if let Some(count) = self.count(site, key, value) {
                    self.push(site.id, "maxLength", Keyword::MaxLength(count));
                }
            }
            _ => {
                let Some(text) = value.as_str() else {
                    return self.invalid(
                        site.id,
                        key,
                        format!("`{key}` must be a string, not {}", describe(value)),
                    );
                };
                if key == "pattern" {
                    self.pattern(site, text)
                } else {
                    self.format(site, text)
                }
            }
        }
    }

    fn pattern(&mut self, site: Site<'v>, pattern: &str) {
        match self.texts.pattern(pattern, self.limits) {
            Ok(text) => self.push(site.id, "pattern", Keyword::Text(text)),
            Err(error) => {
                let kind = if error.kind == ProblemKind::Syntax {
                    ProblemKind::Invalid
                } else {
                    error.kind
                };
                self.problem(kind, site.id, "pattern", format!("pattern {pattern:?}: {error}"));
            }
        }
    }

    fn format(&mut self, site: Site<'v>, name: &str) {
        if self.formats == Formats::Annotate {
            return;
        }
        if let Some(note) = format::narrowed(name) {
            let message = format!("only part of the format {name:?} is allowed: {note}");
            self.note_as(ProblemKind::Narrowed, site.id, "format", message);
        }
        match self.texts.format(name) {
            Some(sets) => self.push(site.id, "format", format_keyword(&sets)),
            None => {
                let meant = suggest::nearest(name, format::names());
                let meant = meant.map_or(String::new(), |meant| format!("; did you mean {meant:?}?"));
                let message = format!("unknown format {name:?} has no effect{meant}");
                self.note(site.id, "format", message);
            }
        }
    }
}

fn format_keyword(sets: &Rc<[TextSet]>) -> Keyword {
    match &sets[..] {
        [set] => Keyword::Text(set.clone()),
        _ => Keyword::AnyText(sets.clone()),
    }
}
