//! Lowers strings, and the keys of objects.

use std::rc::Rc;

use regex_syntax::hir::Hir;

use crate::regex::{self, Escapes};
use crate::schema::forms::{GoalId, StringShape};
use crate::schema::text::{Text, TextId, any_key, hir, punycode, quoted, unrolled};
use lexiform_automata::error::ProblemKind;
use lexiform_automata::grammar::{ExprId, Expression, Part, Regular, RegularId};

use super::writer::Writer;

impl Writer<'_> {
    /// Returns the expression for the texts of a set of strings.
    pub(super) fn string(&mut self, shape: &StringShape, goal: GoalId) -> ExprId {
        if let Some(only) = &shape.only {
            let only = self.not_excluded(only);
            let literals: Vec<ExprId> = only.iter().map(|value| self.literal(value)).collect();
            return self.builder.choice(literals);
        }
        if let (true, Some(known)) = (shape.is_any(), self.any_string) {
            return known;
        }
        let Some(parts) = self.parts(shape, goal) else {
            return self.builder.never();
        };
        let mut body = self.regular(Regular::of(parts));
        if self.is_with_punycode(shape) {
            let names = punycode::names(&mut self.builder);
            body = self.builder.choice([body, names]);
        }
        let quote = self.builder.bytes("\"");
        let string = self.builder.seq([quote, body, quote]);
        if shape.is_any() {
            self.any_string = Some(string);
        }
        string
    }

    /// Returns `true` if a shape includes names in Punycode: the validator that decides them applies only to
    /// a whole format.
    fn is_with_punycode(&self, shape: &StringShape) -> bool {
        let only_texts = StringShape {
            texts: shape.texts.clone(),
            ..StringShape::default()
        };
        *shape == only_texts && self.forms.texts.have_punycode(&shape.texts)
    }

    /// Returns whole literals in a unique spelling for each string.
    pub(super) fn unique_string(&mut self, shape: &StringShape, goal: GoalId) -> Vec<Part> {
        let escapes = std::mem::replace(&mut self.escapes, Escapes::Canonical);
        let parts = match &shape.only {
            Some(only) => Some(vec![Part::Match(self.one_of(&self.not_excluded(only)).into())]),
            None => self.parts(shape, goal),
        };
        self.escapes = escapes;
        let parts = parts.unwrap_or_else(|| vec![Part::Match(hir::never().into())]);
        let whole = parts.into_iter().map(|part| match part {
            Part::Match(hir) => Part::Match(quoted(&hir)),
            Part::Not(hir) => Part::Not(quoted(&hir)),
            Part::Units { unit, min, max } => {
                let run = self.unroll(&unit, min, max, goal).unwrap_or_else(hir::never);
                Part::Match(quoted(&run))
            }
        });
        whole.collect()
    }

    /// Returns the languages whose intersection is the shape, between the quotes, or `None` if its lengths
    /// exclude one another.
    fn parts(&mut self, shape: &StringShape, goal: GoalId) -> Option<Vec<Part>> {
        let escapes = self.escapes;
        let (mut min, mut max) = (shape.min, shape.max);
        let mut runs = Vec::new();
        let mut parts = Vec::new();
        for &(text, sign) in &shape.texts {
            match self.part(text, sign, goal) {
                Some(Part::Units { unit, min, max }) => runs.push((unit, min, max)),
                part => parts.extend(part),
            }
        }
        if let ([(unit, from, to)], 0, None) = (&runs[..], min, max) {
            parts.push(Part::Units {
                unit: unit.clone(),
                min: *from,
                max: *to,
            });
            runs.clear();
        }
        // A unit of a text is one character, so several counts combine into one: the length of the string.
        for (unit, from, to) in runs {
            parts.push(Part::Match(hir::star(Hir::clone(&unit)).into()));
            min = min.max(from);
            max = max.into_iter().chain(to).min();
        }
        if !shape.except.is_empty() {
            parts.push(Part::Not(self.one_of(&shape.except).into()));
        }
        if let Some(excluded) = &self.excluded {
            parts.push(Part::Not(regex::encode_json(excluded, escapes).into()));
        }
        if min > 0 || max.is_some() {
            parts.push(Part::Units {
                unit: regex::one_char(escapes),
                min,
                max,
            });
        } else if !parts
            .iter()
            .any(|part| matches!(part, Part::Match(_) | Part::Units { .. }))
        {
            parts.push(Part::Match(regex::string_body(escapes)));
        }
        max.is_none_or(|max| min <= max).then_some(parts)
    }

    /// Returns a text with its sign, as it is spelled between quotes.
    fn part(&mut self, text: TextId, sign: bool, goal: GoalId) -> Option<Part> {
        let forms = self.forms;
        let encoded = forms.texts.encoded(text, self.escapes).clone();
        Some(match (forms.texts.text(text), sign) {
            (Text::Match(_), true) => Part::Match(encoded),
            (Text::Match(_), false) => Part::Not(encoded),
            (Text::Units { min, max, .. }, true) => Part::Units {
                unit: encoded,
                min: *min,
                max: *max,
            },
            (Text::Units { min, max, .. }, false) => {
                Part::Not(self.unroll(&encoded, *min, *max, goal)?.into())
            }
        })
    }

    fn unroll(&mut self, unit: &Hir, min: u64, max: Option<u64>, goal: GoalId) -> Option<Hir> {
        let hir = unrolled(unit, min, max);
        if hir.is_none() {
            self.problem(
                ProblemKind::Limit,
                goal,
                "a length above 2000 is not supported in this combination",
            );
        }
        hir
    }

    fn one_of(&self, values: &[Rc<str>]) -> Hir {
        let escapes = self.escapes;
        hir::any(
            values
                .iter()
                .map(|value| regex::encode_json(&hir::text(&**value), escapes)),
        )
    }

    /// Returns a string constant with its quotes.
    pub(super) fn literal(&mut self, value: &str) -> ExprId {
        let plain = |byte: u8| byte >= 0x20 && byte != b'"' && byte != b'\\';
        if self.escapes != Escapes::Any && value.bytes().all(plain) {
            return self.builder.bytes(["\"", value, "\""].concat());
        }
        let body = regex::encode_json(&hir::text(value), self.escapes);
        let quote = self.builder.bytes("\"");
        let body = self.builder.hir(body);
        self.builder.seq([quote, body, quote])
    }

    /// Returns a text with quotes. It is cached, because hundreds of classes of keys may use the same hundred
    /// texts.
    fn quoted_text(&mut self, text: TextId, encoded: &Hir) -> Expression {
        if let Some(known) = self.quoted.get(&text) {
            return known.clone();
        }
        let whole = quoted(encoded);
        self.held.grow(whole.bytes());
        self.quoted.insert(text, whole.clone());
        whole
    }

    /// Returns the whole literals of a class of keys, without those of named keys.
    pub(super) fn key(&mut self, shape: &StringShape, names: &[Rc<str>], goal: GoalId) -> RegularId {
        let plain = shape.is_any() && names.is_empty();
        if let (true, Some(known)) = (plain, self.any_key) {
            return known;
        }
        let mut parts = Vec::new();
        for &(text, sign) in &shape.texts {
            parts.extend(match self.part(text, sign, goal) {
                Some(Part::Match(hir)) => Some(Part::Match(self.quoted_text(text, &hir))),
                Some(Part::Not(hir)) => Some(Part::Not(self.quoted_text(text, &hir))),
                Some(Part::Units { unit, min, max }) => self
                    .unroll(&unit, min, max, goal)
                    .map(|hir| Part::Match(quoted(&hir))),
                None => None,
            });
        }
        // Keys that must not be repeated are distinguished by their spelling, so each needs exactly one.
        let escapes = match self.escapes {
            Escapes::Minimal => Escapes::Canonical,
            escapes => escapes,
        };
        let length = match (shape.min, shape.max) {
            (0, None) => Some(any_key(escapes)),
            (min, max) => {
                let char = regex::one_char(escapes);
                self.unroll(&char, min, max, goal).map(|hir| quoted(&hir))
            }
        };
        if let Some(length) = length {
            // Every key is a string literal, whatever the texts contain.
            parts.insert(0, Part::Match(length));
        }
        let except: Vec<Rc<str>> = shape.except.iter().chain(names).cloned().collect();
        if !except.is_empty() {
            parts.push(Part::Not(quoted(&self.one_of(&except))));
        }
        if let Some(excluded) = &self.excluded {
            parts.push(Part::Not(quoted(&regex::encode_json(excluded, self.escapes))));
        }
        let id = self.builder.add_regular(Regular::of(parts));
        if plain {
            self.any_key = Some(id);
        }
        id
    }
}
