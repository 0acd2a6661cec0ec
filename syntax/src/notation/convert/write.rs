//! Writes rules in plain constructs down.

use super::spelling::{self, Spelled};
use crate::notation::lower::Problems;
use crate::notation::recognise::Notation;
use crate::notation::tree::{Definition, Node, NodeKind};
use lexiform_automata::error::ProblemKind;
use lexiform_automata::limits::Limits;

/// The deepest nesting of brackets: the readers read no deeper one.
const MOST_BRACKETS: usize = 190;

/// How texts are written in Lark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Texts {
    /// In quotes.
    Quoted,
    /// As expressions.
    Expressions,
}

/// Writes rules down. What the notation cannot say is added to the problems.
pub(super) fn grammar(
    definitions: &[Definition],
    to: Notation,
    texts: Texts,
    limits: &Limits,
    problems: &mut Problems,
) -> String {
    let mut writer = Writer {
        to,
        texts,
        most: limits.source_bytes,
        brackets: 0,
        written: String::new(),
        problems,
    };
    let (defines, end) = match to {
        Notation::Lark | Notation::Llguidance => (": ", "\n"),
        Notation::Abnf => (" = ", "\n"),
        Notation::Iso => (" = ", ";\n"),
        _ => (" ::= ", "\n"),
    };
    for definition in definitions {
        writer.written.push_str(&definition.name);
        writer.written.push_str(defines);
        writer.part(&definition.body, Binding::Choice);
        writer.written.push_str(end);
        if writer.is_full() {
            let most = writer.most;
            let message =
                format!("the grammar in `{to}` would be too long; the limit `source_bytes` is {most}");
            writer.problems.add(ProblemKind::Limit, definition.at, message);
            break;
        }
    }
    writer.written
}

/// What may stand at a place without brackets, from the loosest to the tightest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Choice,
    Sequence,
    /// A part of a sequence, which may be several.
    Exception,
    /// A part with one operator.
    Repetition,
    Part,
}

struct Writer<'a> {
    to: Notation,
    texts: Texts,
    /// The greatest length of the text.
    most: usize,
    /// The number of open brackets.
    brackets: usize,
    written: String,
    problems: &'a mut Problems,
}

impl Writer<'_> {
    fn is_full(&self) -> bool {
        self.written.len() > self.most
    }

    fn refuse(&mut self, at: usize, what: &str) {
        let message = format!("grammars in `{}` cannot contain {what}", self.to);
        self.problems.unsupported(at, message);
    }

    /// Writes a part where what binds at least so tightly may stand.
    fn part(&mut self, node: &Node, least: Binding) {
        if self.is_full() {
            return;
        }
        let at = node.at;
        match &node.kind {
            NodeKind::Text(text) => {
                let spelled = match self.texts {
                    Texts::Expressions => Ok(spelling::expression(text)),
                    Texts::Quoted => spelling::text(text, self.to),
                };
                self.spelled(spelled, at, least);
            }
            NodeKind::Set(set) => {
                let spelled = spelling::set(set, self.to);
                self.spelled(spelled, at, least);
            }
            NodeKind::Name(name) => self.written.push_str(name),
            NodeKind::Seq(parts) if parts.is_empty() => self.nothing(),
            NodeKind::Seq(parts) => self.bracketed(Binding::Sequence, least, at, |writer| {
                let separator = if writer.to == Notation::Iso { ", " } else { " " };
                writer.list(parts, separator, Binding::Exception);
            }),
            NodeKind::Choice(parts) => self.bracketed(Binding::Choice, least, at, |writer| {
                let separator = if writer.to == Notation::Abnf { " / " } else { " | " };
                writer.list(parts, separator, Binding::Sequence);
            }),
            NodeKind::Repeat(body, min, max) => self.repeated(body, (*min, *max), at, least),
            NodeKind::All(parts) => match &parts[..] {
                [
                    whole,
                    Node {
                        kind: NodeKind::Not(other),
                        ..
                    },
                ] => {
                    self.bracketed(Binding::Exception, least, at, |writer| {
                        writer.list([whole, &**other], " - ", Binding::Repetition);
                    });
                }
                _ => self.refuse(at, "an intersection"),
            },
            NodeKind::Special(name) => match spelling::special(name, self.to) {
                Some(spelled) => self.written.push_str(spelled),
                None => self.refuse(at, &format!("the special token `{name}`")),
            },
            NodeKind::Tokens(set) => match spelling::tokens(set, self.to) {
                Some(spelled) => self.written.push_str(&spelled),
                None => self.refuse(at, &format!("the tokens `{set}`")),
            },
            _ => self.refuse(at, "this part"),
        }
    }

    fn list<'n>(&mut self, parts: impl IntoIterator<Item = &'n Node>, separator: &str, least: Binding) {
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                self.written.push_str(separator);
            }
            self.part(part, least);
        }
    }

    fn nothing(&mut self) {
        self.written.push_str(match self.to {
            Notation::Iso | Notation::Lark | Notation::Llguidance => "()",
            _ => "\"\"",
        });
    }

    fn spelled(&mut self, spelled: Result<Spelled, String>, at: usize, least: Binding) {
        match spelled {
            Ok(spelled) => {
                let own = match (spelled.is_choice, spelled.is_sequence) {
                    (true, _) => Binding::Choice,
                    (_, true) => Binding::Exception,
                    _ => Binding::Part,
                };
                self.bracketed(own, least, at, |writer| writer.written.push_str(&spelled.text));
            }
            Err(what) => self.refuse(at, &what),
        }
    }

    /// Writes something that binds as tightly as `own`, in brackets if that is not enough.
    fn bracketed(&mut self, own: Binding, least: Binding, at: usize, write: impl FnOnce(&mut Self)) {
        match own < least {
            true => self.within(("(", ")"), at, write),
            false => write(self),
        }
    }

    fn within(&mut self, (open, close): (&str, &str), at: usize, write: impl FnOnce(&mut Self)) {
        self.brackets += 1;
        if self.brackets > MOST_BRACKETS {
            let message = format!("brackets in `{}` would nest too deeply", self.to);
            self.problems.add(ProblemKind::Limit, at, message);
        } else {
            self.written.push_str(open);
            write(self);
            self.written.push_str(close);
        }
        self.brackets -= 1;
    }

    fn repeated(&mut self, body: &Node, counts: (u32, Option<u32>), at: usize, least: Binding) {
        match self.to {
            Notation::Abnf => self.repeated_in_abnf(body, counts, at, least),
            Notation::Iso => self.repeated_in_iso(body, counts, at, least),
            Notation::W3c | Notation::Lark | Notation::Llguidance => {
                self.repeated_by_signs(body, counts, at, least);
            }
            _ => self.bracketed(Binding::Repetition, least, at, |writer| {
                writer.part(body, Binding::Part);
                let operator = match counts {
                    (0, Some(1)) => "?".to_owned(),
                    (0, None) => "*".to_owned(),
                    (1, None) => "+".to_owned(),
                    (min, None) => format!("{{{min},}}"),
                    (min, Some(max)) if min == max => format!("{{{min}}}"),
                    (min, Some(max)) => format!("{{{min},{max}}}"),
                };
                writer.written.push_str(&operator);
            }),
        }
    }

    fn repeated_in_abnf(&mut self, body: &Node, counts: (u32, Option<u32>), at: usize, least: Binding) {
        if counts == (0, Some(1)) {
            return self.within(("[", "]"), at, |writer| writer.part(body, Binding::Choice));
        }
        self.bracketed(Binding::Repetition, least, at, |writer| {
            let operator = match counts {
                (0, None) => "*".to_owned(),
                (min, None) => format!("{min}*"),
                (min, Some(max)) if min == max => min.to_string(),
                (min, Some(max)) => format!("{min}*{max}"),
            };
            writer.written.push_str(&operator);
            writer.part(body, Binding::Part);
        });
    }

    fn repeated_in_iso(&mut self, body: &Node, (min, max): (u32, Option<u32>), at: usize, least: Binding) {
        let often = |writer: &mut Self, count: u32| {
            if count > 1 {
                writer.written.push_str(&format!("{count} * "));
            }
        };
        match (min, max) {
            (0, None) => self.within(("{ ", " }"), at, |writer| writer.part(body, Binding::Choice)),
            (1, None) => self.bracketed(Binding::Exception, least, at, |writer| {
                writer.within(("{ ", " }-"), at, |writer| writer.part(body, Binding::Choice));
            }),
            (0, Some(max)) => self.bracketed(Binding::Repetition, least, at, |writer| {
                often(writer, max);
                writer.within(("[ ", " ]"), at, |writer| writer.part(body, Binding::Choice));
            }),
            (min, Some(max)) if min == max => self.bracketed(Binding::Repetition, least, at, |writer| {
                often(writer, min);
                writer.part(body, Binding::Part);
            }),
            (min, max) => self.bracketed(Binding::Exception, least, at, |writer| {
                often(writer, min);
                writer.part(body, Binding::Part);
                writer.written.push_str(", ");
                writer.repeated_in_iso(body, (0, max.map(|max| max - min)), at, Binding::Exception);
            }),
        }
    }

    /// Writes a repetition with `?`, `*` and `+`; Lark also has counts.
    fn repeated_by_signs(&mut self, body: &Node, (min, max): (u32, Option<u32>), at: usize, least: Binding) {
        let has_counts = self.to != Notation::W3c;
        let sign = match (min, max) {
            (0, Some(1)) => "?".to_owned(),
            (0, None) => "*".to_owned(),
            (1, None) => "+".to_owned(),
            (min, Some(max)) if has_counts && min == max => format!("~{min}"),
            (min, Some(max)) if has_counts => format!("~{min}..{max}"),
            _ => {
                return self.bracketed(Binding::Exception, least, at, |writer| {
                    writer.copies(body, (min, max), at);
                });
            }
        };
        self.bracketed(Binding::Repetition, least, at, |writer| {
            writer.part(body, Binding::Part);
            writer.written.push_str(&sign);
        });
    }

    /// Writes a repetition as copies: `x x x*`, `x x x? x?`.
    fn copies(&mut self, body: &Node, (min, max): (u32, Option<u32>), at: usize) {
        let most = max.unwrap_or(min);
        let has_counts = self.to != Notation::W3c && min > 1;
        if has_counts {
            self.part(body, Binding::Part);
            self.written.push_str(&format!("~{min}"));
        }
        for copy in if has_counts { min } else { 0 }..most {
            if copy > 0 {
                self.written.push(' ');
            }
            self.part(body, Binding::Part);
            if copy >= min {
                self.written.push('?');
            }
            if self.is_full() {
                return;
            }
        }
        if max.is_none() {
            self.written.push(' ');
            self.repeated_by_signs(body, (0, None), at, Binding::Repetition);
        }
    }
}
