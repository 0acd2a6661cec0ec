//! Structural tags as a grammar.
//!
//! ```text
//!   triggered ::= ( free tag )* free        free: any text in which no trigger stands
//!   tag       ::= begin content end
//! ```

use lexiform::error::Diagnostics;
use lexiform::grammar::{Cfg, CfgBuilder, ExprId, Part, Regular};
use lexiform::limits::Limits;
use lexiform::regex;

use super::{Rejected, any_text, lower};
use crate::wire::constraint::Constraint;
use crate::wire::tags::{Count, Form, Tag};

/// Lowers a form, which came with this constraint.
///
/// # Errors
/// All problems of one of the constraints in it.
pub(super) fn tagged(
    form: &Form,
    from: &Constraint,
    limits: &Limits,
) -> Result<(Cfg, Diagnostics), Rejected> {
    let mut writer = Writer {
        builder: CfgBuilder::new(),
        limits,
        from,
        diagnostics: Diagnostics::default(),
    };
    let body = writer.form(form, "")?;
    let start = writer.builder.declare("tagged");
    writer.builder.define(start, body);
    Ok((writer.builder.finish(start), writer.diagnostics))
}

struct Writer<'a> {
    builder: CfgBuilder,
    limits: &'a Limits,
    from: &'a Constraint,
    diagnostics: Diagnostics,
}

impl Writer<'_> {
    /// A form; `end` is what ends the tag that it is the content of.
    fn form(&mut self, form: &Form, end: &str) -> Result<ExprId, Rejected> {
        match form {
            Form::Text(text) => Ok(self.builder.bytes(text)),
            Form::Obeys(constraint) => {
                let (cfg, diagnostics) = lower(constraint, self.limits)?;
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
        let begin = self.builder.bytes(&tag.begin);
        let content = self.form(&tag.content, &tag.end)?;
        let end = self.builder.bytes(&tag.end);
        Ok(self.builder.seq(vec![begin, content, end]))
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
