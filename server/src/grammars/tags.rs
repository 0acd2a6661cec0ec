//! The lowering of structural tags to a grammar.
//!
//! ```text
//!   triggered ::= ( free tag )* free        free: any text in which no trigger stands
//!   tag       ::= begin content end
//! ```
//!
//! Where the name of a special token or a mark of the model stands in a beginning or an end, it is that token: models are
//! trained to write `<tool_call>` so, and never letter by letter. Spelled out, it still begins and ends nothing: free text
//! holds no trigger in either form, so that whoever reads the answer as text finds the tags that there are.

use lexiform::error::Diagnostics;
use lexiform::grammar::{Cfg, CfgBuilder, ExprId, Part, Regular};
use lexiform::limits::Limits;
use lexiform::regex;
use lexiform::vocab::Vocabulary;

use super::language::Rejected;
use crate::wire::constraint::{Constraint, Count, Form, Tag};

/// The longest name of a mark, and the longest text in which marks are looked for: more is no tag of any model.
const MARK_BYTES: usize = 64;
const MARKED_BYTES: usize = 4_096;

/// Lowers one constraint; a tag holds constraints of any kind, and who lowers those lowers tags too.
pub(super) type Lower = fn(&Constraint, &Vocabulary, &Limits) -> Result<(Cfg, Diagnostics), Rejected>;

/// Lowers a form, which came with this constraint; `lower` is for the constraints in it.
///
/// # Errors
/// All problems of one of the constraints in it.
pub(super) fn tagged(
    form: &Form,
    from: &Constraint,
    (vocabulary, limits): (&Vocabulary, &Limits),
    lower: Lower,
) -> Result<(Cfg, Diagnostics), Rejected> {
    let mut writer = Writer {
        lower,
        builder: CfgBuilder::new(),
        limits,
        vocabulary,
        from,
        diagnostics: Diagnostics::default(),
    };
    let body = writer.form(form, "")?;
    let start = writer.builder.declare("");
    writer.builder.define(start, body);
    Ok((writer.builder.finish(start), writer.diagnostics))
}

struct Writer<'a> {
    lower: Lower,
    builder: CfgBuilder,
    limits: &'a Limits,
    vocabulary: &'a Vocabulary,
    from: &'a Constraint,
    diagnostics: Diagnostics,
}

impl Writer<'_> {
    /// A form; `end` is what ends the tag that it is the content of.
    fn form(&mut self, form: &Form, end: &str) -> Result<ExprId, Rejected> {
        match form {
            Form::Text(text) => Ok(self.builder.bytes(text)),
            Form::Obeys(constraint) => {
                let (cfg, diagnostics) = (self.lower)(constraint, self.vocabulary, self.limits)?;
                self.diagnostics.findings.extend(diagnostics.findings);
                Ok(self.builder.import(cfg))
            }
            Form::Any if end.is_empty() => self.free(&[]),
            Form::Any => self.free(&[end.to_owned()]),
            Form::All(forms) => {
                let parts = forms
                    .iter()
                    .map(|form| self.form(form, end))
                    .collect::<Result<Vec<ExprId>, _>>()?;
                Ok(self.builder.seq(parts))
            }
            Form::Either(forms) => {
                let ways = forms
                    .iter()
                    .map(|form| self.form(form, end))
                    .collect::<Result<Vec<ExprId>, _>>()?;
                Ok(self.builder.choice(ways))
            }
            Form::Tag(tag) => self.tag(tag),
            Form::Triggered {
                triggers,
                tags,
                count,
            } => self.triggered(triggers, tags, *count),
            Form::Separated {
                separator,
                tags,
                count,
            } => self.separated(separator, tags, *count),
        }
    }

    fn tag(&mut self, tag: &Tag) -> Result<ExprId, Rejected> {
        let begin = self.marked(&tag.begin);
        let content = self.form(&tag.content, &tag.end)?;
        let end = self.marked(&tag.end);
        Ok(self.builder.seq(vec![begin, content, end]))
    }

    /// A text with the marks in it as the tokens that they are.
    fn marked(&mut self, text: &str) -> ExprId {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, mark, behind)) = first_mark(rest, self.vocabulary) {
            parts.push(self.builder.bytes(before));
            parts.push(self.builder.special(mark));
            rest = behind;
        }
        parts.push(self.builder.bytes(rest));
        self.builder.seq(parts)
    }

    fn one_of(&mut self, tags: &[Tag]) -> Result<ExprId, Rejected> {
        let ways = tags
            .iter()
            .map(|tag| self.tag(tag))
            .collect::<Result<Vec<ExprId>, _>>()?;
        Ok(self.builder.choice(ways))
    }

    fn triggered(&mut self, triggers: &[String], tags: &[Tag], count: Count) -> Result<ExprId, Rejected> {
        let (free, tag) = (self.free(triggers)?, self.one_of(tags)?);
        let one = self.builder.seq(vec![free, tag]);
        let least = u32::from(count.at_least_one);
        if count.stop_after_first {
            // Without a tag, the text is free to its end.
            return Ok(match least {
                0 => self.builder.choice(vec![one, free]),
                _ => one,
            });
        }
        let tagged = self.builder.repeat(one, least, None);
        Ok(self.builder.seq(vec![tagged, free]))
    }

    fn separated(&mut self, separator: &str, tags: &[Tag], count: Count) -> Result<ExprId, Rejected> {
        let tag = self.one_of(tags)?;
        let mut all = tag;
        if !count.stop_after_first {
            let between = self.builder.bytes(separator);
            let next = self.builder.seq(vec![between, tag]);
            let rest = self.builder.repeat(next, 0, None);
            all = self.builder.seq(vec![tag, rest]);
        }
        Ok(if count.at_least_one {
            all
        } else {
            self.builder.optional(all)
        })
    }

    /// Any text in which none of these stands.
    fn free(&mut self, without: &[String]) -> Result<ExprId, Rejected> {
        let mut parts = any_text(self.limits);
        for text in without {
            let pattern = format!("(?s:.*){}(?s:.*)", ::regex::escape(text));
            let with = regex::rust(&pattern, self.limits).map_err(|error| Rejected {
                constraint: self.from.clone(),
                error: error.into_problem().into(),
            })?;
            for part in with.parts {
                if let Part::Match(hir) = part {
                    parts.push(Part::Not(hir));
                }
            }
        }
        let id = self.builder.add_regular(Regular { parts });
        Ok(self.builder.regular(id))
    }
}

/// The first mark in a text, the longest that begins there, with what stands before and after it. What ends a sequence
/// is none: nothing can stand after it.
fn first_mark<'t>(text: &'t str, vocabulary: &Vocabulary) -> Option<(&'t str, &'t str, &'t str)> {
    if text.len() > MARKED_BYTES {
        return None;
    }
    text.char_indices().find_map(|(at, _)| {
        let rest = &text[at..];
        let longest = rest.len().min(MARK_BYTES);
        let ends = (2..=longest).rev().filter(|end| rest.is_char_boundary(*end));
        let mut marks = ends.filter(|end| {
            let token = vocabulary.special(&rest[..*end]);
            token.is_some_and(|token| !vocabulary.is_eos(token))
        });
        let end = marks.next()?;
        Some((&text[..at], &rest[..end], &rest[end..]))
    })
}

/// Any text at all.
pub(super) fn any_text(limits: &Limits) -> Vec<Part> {
    regex::rust("(?s:.*)", limits)
        .map(|regular| regular.parts)
        .unwrap_or_default()
}
