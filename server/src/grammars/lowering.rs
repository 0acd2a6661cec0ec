//! The lowering of an answer's language to one grammar.
//!
//! [`lower_answer`] writes the frame of a thought, and `calls` the frames of calls; [`lower`] lowers each
//! constraint with its front end, and the result is inserted in its place.

mod calls;

use lexiform::error::{CompileError, Diagnostics};
use lexiform::grammar::GrammarOptions;
use lexiform::limits::Limits;
use lexiform::vocab::Vocabulary;
use lexiform_automata::grammar::{Cfg, CfgBuilder, ExprId, Part, Regular};
use lexiform_syntax::{notation, regex, schema, tags};

use super::language::{Finding, Language, Rejected};
use super::thought::Thought;
use crate::wire::constraint::{Constraint, Form, KeyOrder, Source, Whitespace};
use crate::wire::tools::{Input, Mode};

/// Returns the grammar of a whole answer, and the findings of the lowering.
///
/// # Errors
/// Fails if one of its constraints does not compile.
pub fn lower_answer(
    language: &Language,
    vocabulary: &Vocabulary,
    limits: &Limits,
) -> Result<(Cfg, Vec<Finding>), Rejected> {
    let mut writer = GrammarWriter {
        builder: CfgBuilder::new(),
        vocabulary,
        limits,
        constraints: language.constraints().collect(),
        findings: Vec::new(),
    };
    let (answer, calls) = writer.answer(language)?;
    let whole = writer.thought(language, answer, calls);
    // The rule has no name: clients never wrote it, so no message and no place may name it.
    let start = writer.builder.declare("");
    writer.builder.define(start, whole);
    let answers = writer.builder.finish(start);
    Ok((answers.with_prefix(&language.prefix), writer.findings))
}

/// Lowers one constraint.
///
/// # Errors
/// Returns all problems of the constraint.
pub fn lower(
    constraint: &Constraint,
    vocabulary: &Vocabulary,
    limits: &Limits,
) -> Result<(Cfg, Diagnostics), Rejected> {
    let lowered = match &constraint.source {
        Source::Schema(text) => schema::lower(text, &schema_options(constraint), limits),
        Source::Regex(text) => {
            regex::lower_as(text, constraint.dialect, limits).map(|cfg| (cfg, Diagnostics::default()))
        }
        Source::Grammar(text, notation) => {
            let options = GrammarOptions {
                notation: *notation,
                ..GrammarOptions::default()
            };
            let lowered = notation::lower(text, &options, &schema_options(constraint), limits);
            lowered.map(|cfg| (cfg, Diagnostics::default()))
        }
        Source::Choice(texts) => {
            notation::choice::lower(texts, limits).map(|cfg| (cfg, Diagnostics::default()))
        }
        Source::Extract(text, boundary) => {
            notation::extract::lower(text, *boundary, limits).map(|cfg| (cfg, Diagnostics::default()))
        }
        Source::Tags(form) => return tagged(form, constraint, vocabulary, limits),
    };
    lowered.map_err(|error| Rejected {
        constraint: constraint.clone(),
        error,
    })
}

/// Lowers a structural tag, which belongs to this constraint.
fn tagged(
    form: &Form,
    from: &Constraint,
    vocabulary: &Vocabulary,
    limits: &Limits,
) -> Result<(Cfg, Diagnostics), Rejected> {
    let mut contents = Contents {
        from,
        vocabulary,
        limits,
        diagnostics: Diagnostics::default(),
    };
    let cfg = tags::lower(form, vocabulary, limits, &mut contents)?;
    Ok((cfg, contents.diagnostics))
}

/// The constraints in a structural tag.
struct Contents<'a> {
    from: &'a Constraint,
    vocabulary: &'a Vocabulary,
    limits: &'a Limits,
    diagnostics: Diagnostics,
}

impl tags::Contents for Contents<'_> {
    type Content = Constraint;
    type Error = Rejected;

    fn lower(&mut self, constraint: &Constraint) -> Result<Cfg, Rejected> {
        let (cfg, diagnostics) = lower(constraint, self.vocabulary, self.limits)?;
        self.diagnostics.findings.extend(diagnostics.findings);
        Ok(cfg)
    }

    fn refused(&self, error: CompileError) -> Rejected {
        Rejected {
            constraint: self.from.clone(),
            error,
        }
    }
}

/// Returns the options for writing the JSON of a constraint.
pub fn schema_options(constraint: &Constraint) -> schema::Options {
    schema::Options {
        whitespace: match &constraint.whitespace {
            Whitespace::Indented => schema::Whitespace::Indented,
            Whitespace::Flexible => schema::Whitespace::Flexible,
            Whitespace::Compact => schema::Whitespace::Compact,
            Whitespace::Pattern(pattern) => schema::Whitespace::Pattern(pattern.clone()),
        },
        key_order: match constraint.key_order {
            KeyOrder::Schema => schema::KeyOrder::Schema,
            KeyOrder::Any => schema::KeyOrder::Any,
        },
        additional_properties: constraint.additional_properties,
        numbers: constraint.numbers,
        arguments: constraint.arguments,
        excludes: constraint.excludes.clone(),
        ..schema::Options::for_generation()
    }
}

struct GrammarWriter<'a> {
    builder: CfgBuilder,
    vocabulary: &'a Vocabulary,
    limits: &'a Limits,
    constraints: Vec<&'a Constraint>,
    findings: Vec<Finding>,
}

impl GrammarWriter<'_> {
    /// Returns an answer without its thought, and the calls in it that come directly after a thought.
    fn answer(&mut self, language: &Language) -> Result<(ExprId, ExprId), Rejected> {
        let never = self.builder.never();
        let Some(calls) = &language.calls else {
            let answer = match &language.content {
                Some(content) => self.constraint(content)?,
                None => self.anything(language),
            };
            return Ok((answer, never));
        };
        match (calls.mode, &language.content) {
            (Mode::Bare, _) => Ok((self.only_input(calls)?, never)),
            (Mode::Required, _) => {
                let called = self.calls(calls, language.frames())?;
                Ok((called, called))
            }
            (Mode::Auto, Some(content)) => {
                let content = self.constraint(content)?;
                let called = self.calls(calls, language.frames())?;
                Ok((self.builder.choice(vec![content, called]), called))
            }
            (Mode::Auto, None) => {
                let without = (language.thought != Thought::None).then_some(language.marks.open);
                self.text_or_calls(calls, language.frames(), without)
            }
        }
    }

    /// Returns any text; without the mark of a thought, so that no text has two readings, or if the request
    /// asks for no thought.
    fn anything(&mut self, language: &Language) -> ExprId {
        let without = (language.thought != Thought::None).then_some(language.marks.open);
        self.builder
            .import(tags::anything_without(self.vocabulary, without, self.limits))
    }

    /// Returns the answer with its thought. A thought ends with its own mark, or where calls begin whose mark
    /// ends it.
    fn thought(&mut self, language: &Language, answer: ExprId, calls: ExprId) -> ExprId {
        if language.thought.is_absent() {
            return answer;
        }
        let close = self.builder.marked(language.marks.close());
        let line = self.builder.bytes("\n");
        let lines = self.builder.repeat(line, 0, Some(2));
        let closed = self.builder.seq(vec![close, lines, answer]);
        if language.thought == Thought::Skipped {
            return closed;
        }
        let ends = language.marks_of_thought().ends;
        let rest = match ends.len() {
            0 | 1 => closed,
            _ => self.builder.choice(vec![closed, calls]),
        };
        let inside = self.free(ends);
        let rest = self.builder.seq(vec![inside, rest]);
        if language.thought == Thought::Begun {
            return rest;
        }
        let open = self.builder.marked(language.marks.open);
        let thinking = self.builder.seq(vec![open, rest]);
        match language.thought {
            Thought::Required => thinking,
            _ => self.builder.choice(vec![answer, thinking]),
        }
    }

    fn input(&mut self, input: &Input) -> Result<ExprId, Rejected> {
        match input {
            Input::Arguments(constraint) | Input::Raw(Some(constraint)) => self.constraint(constraint),
            Input::Raw(None) => Ok(self.any_text()),
        }
    }

    fn constraint(&mut self, constraint: &Constraint) -> Result<ExprId, Rejected> {
        let (cfg, diagnostics) = lower(constraint, self.vocabulary, self.limits)?;
        // Two tools may have equal constraints, so they are distinguished by their address.
        let mut places = self.constraints.iter();
        let place = places.position(|other| std::ptr::eq(*other, constraint));
        let found = diagnostics.findings.into_iter().map(|problem| Finding {
            constraint: place.unwrap_or_default(),
            problem,
        });
        self.findings.extend(found);
        Ok(self.builder.import(cfg))
    }

    fn any_text(&mut self) -> ExprId {
        self.free(&[])
    }

    fn free(&mut self, without: &[&str]) -> ExprId {
        // The marks are short literals of this crate, so this always parses.
        let parts = tags::free_text(without.iter().copied(), self.limits).unwrap_or_default();
        self.regular(parts)
    }

    fn regular(&mut self, parts: Vec<Part>) -> ExprId {
        let id = self.builder.add_regular(Regular::of(parts));
        self.builder.regular(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexiform::error::ProblemKind;
    use lexiform::vocab::TokenKind;

    #[test]
    fn a_list_of_texts_is_bounded_like_any_source() {
        let limits = Limits {
            source_bytes: 6,
            ..Limits::default()
        };
        let vocabulary = Vocabulary::new(&[(TokenKind::Text, "<end>")], &[0]).expect("a vocabulary");
        let list = |texts: [&str; 3]| {
            let source = Source::Choice(texts.map(str::to_owned).to_vec());
            lower(&Constraint::new(source, "guided_choice"), &vocabulary, &limits)
        };
        assert!(list(["ab", "", "cdef"]).is_ok());
        let rejected = list(["ab", "cde", "fg"]).expect_err("seven bytes");
        assert_eq!(rejected.error.problems[0].kind, ProblemKind::Limit);
    }
}
