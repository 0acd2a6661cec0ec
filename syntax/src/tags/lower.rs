//! The lowering of structural tags to a grammar.
//!
//! ```text
//!   triggered ::= ( free tag )* free        free: any text that contains no trigger
//!   tag       ::= begin content end
//! ```
//!
//! The name of a special token of the model in a beginning or an end denotes that token: models are trained
//! to write `<tool_call>` as one token, and never letter by letter. Spelled out, the name still begins and
//! ends nothing: free text contains no trigger in either form, so a reader of the answer as text finds
//! exactly the tags that there are.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir};

use super::{Count, Form, Mark, Tag, Token, TokenName};
use crate::regex;
use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};
use lexiform_automata::grammar::{Cfg, CfgBuilder, ExprId, Part, Regular, TokenSet};
use lexiform_automata::limits::Limits;
use lexiform_automata::vocab::{TokenKind, Vocabulary};

/// Lowers the constraints inside a form.
pub trait Contents {
    /// The type of a constraint.
    type Content;
    /// The type of the error for a constraint that does not compile.
    type Error;

    /// Lowers one constraint to a grammar.
    ///
    /// # Errors
    /// Returns all problems of the constraint.
    fn lower(&mut self, content: &Self::Content) -> Result<Cfg, Self::Error>;

    /// Converts an error of the form itself: of a trigger, or of a token that the form names.
    fn refused(&self, error: CompileError) -> Self::Error;
}

/// Lowers a form to a grammar for one vocabulary.
///
/// # Errors
/// Returns an error if a constraint does not compile, or if the form names a token that the vocabulary does
/// not have or that ends a sequence.
pub fn lower<L: Contents>(
    form: &Form<L::Content>,
    vocabulary: &Vocabulary,
    limits: &Limits,
    contents: &mut L,
) -> Result<Cfg, L::Error> {
    let mut writer = TagWriter {
        builder: CfgBuilder::new(),
        limits,
        vocabulary,
        contents,
    };
    let body = writer.form(form, &[])?;
    // The rule has no name: clients never wrote it, so no message and no place may mention it.
    let start = writer.builder.declare("");
    writer.builder.define(start, body);
    Ok(writer.builder.finish(start))
}

struct TagWriter<'a, L> {
    builder: CfgBuilder,
    limits: &'a Limits,
    vocabulary: &'a Vocabulary,
    contents: &'a mut L,
}

impl<L: Contents> TagWriter<'_, L> {
    /// Lowers a form; `ends` are the texts that end the tag around it.
    fn form(&mut self, form: &Form<L::Content>, ends: &[String]) -> Result<ExprId, L::Error> {
        match form {
            Form::Text(text) => Ok(self.builder.bytes(text)),
            Form::Token(token) => self.token(token),
            Form::Content(content) => {
                let cfg = self.contents.lower(content)?;
                Ok(self.builder.import(cfg))
            }
            Form::Any { without, most } => self.free(&[without, ends], *most),
            Form::AnyToken { except } => self.any_token(except, ends),
            Form::Sequence(forms) => {
                let parts = self.each(forms, ends)?;
                Ok(self.builder.seq(parts))
            }
            Form::Choice(forms) => {
                let ways = self.each(forms, ends)?;
                Ok(self.builder.choice(ways))
            }
            Form::Repeat { form, least, most } => {
                let body = self.form(form, ends)?;
                Ok(self.builder.repeat(body, *least, *most))
            }
            Form::Tag(tag) => self.tag(tag),
            Form::Triggered {
                triggers,
                without,
                tags,
                count,
            } => self.triggered(&[triggers, without, ends], tags, *count),
            Form::TokenTriggered { except, tags, count } => {
                self.token_triggered(except, ends, (tags, *count))
            }
            Form::Separated {
                separator,
                tags,
                count,
            } => self.separated(separator, tags, *count),
        }
    }

    fn each(&mut self, forms: &[Form<L::Content>], ends: &[String]) -> Result<Vec<ExprId>, L::Error> {
        forms.iter().map(|form| self.form(form, ends)).collect()
    }

    fn tag(&mut self, tag: &Tag<L::Content>) -> Result<ExprId, L::Error> {
        let begin = self.mark(&tag.begin)?;
        let texts: Result<Vec<String>, L::Error> = tag.ends.iter().map(|end| self.text_of(end)).collect();
        let content = self.form(&tag.content, &texts?)?;
        let ends: Result<Vec<ExprId>, L::Error> = tag.ends.iter().map(|end| self.mark(end)).collect();
        let ends = ends?;
        let end = match ends.is_empty() {
            true => self.builder.empty(),
            false => self.builder.choice(ends),
        };
        Ok(self.builder.seq(vec![begin, content, end]))
    }

    fn mark(&mut self, mark: &Mark) -> Result<ExprId, L::Error> {
        match mark {
            Mark::Text(text) => Ok(self.builder.marked(text)),
            Mark::Token(token) => self.token(token),
        }
    }

    /// Returns the text of a mark, as a reader of the answer sees it.
    fn text_of(&self, mark: &Mark) -> Result<String, L::Error> {
        match mark {
            Mark::Text(text) => Ok(text.clone()),
            Mark::Token(token) => self.name(token),
        }
    }

    fn token(&mut self, token: &Token) -> Result<ExprId, L::Error> {
        let name = self.name(token)?;
        Ok(self.builder.special(&name))
    }

    /// Returns the name of a special token, if the vocabulary has the token and a text can continue after it.
    fn name(&self, token: &Token) -> Result<String, L::Error> {
        let problem = |kind, message: String| {
            let place = Place::Pointer(token.pointer.clone());
            self.contents.refused(Problem::new(kind, place, message).into())
        };
        let (id, shown) = match &token.name {
            TokenName::Text(name) => (self.vocabulary.special(name), format!("{name:?}")),
            TokenName::Id(id) => {
                let is_special =
                    (*id as usize) < self.vocabulary.len() && self.vocabulary.kind(*id) == TokenKind::Special;
                (is_special.then_some(*id), id.to_string())
            }
        };
        match id {
            None => {
                let message = format!("the vocabulary has no special token {shown}");
                Err(problem(ProblemKind::Invalid, message))
            }
            Some(id) if self.vocabulary.is_eos(id) => {
                let message = format!("the token {shown} ends every text, so it cannot stand inside of one");
                Err(problem(ProblemKind::Unsupported, message))
            }
            Some(id) => Ok(String::from_utf8_lossy(self.vocabulary.bytes(id)).into_owned()),
        }
    }

    /// Lowers one token that is neither among `except` nor an end of the tag around it.
    fn any_token(&mut self, except: &[Token], ends: &[String]) -> Result<ExprId, L::Error> {
        let mut ids = Vec::with_capacity(except.len());
        for token in except {
            ids.push(self.id(token)?);
        }
        ids.extend(ends.iter().filter_map(|end| self.vocabulary.special(end)));
        let set = TokenSet {
            ids: ids.into_iter().map(|id| (id, id)).collect(),
            names: Vec::new(),
            is_complement: true,
        };
        Ok(self.builder.tokens(set))
    }

    /// Returns the id of a token of the vocabulary, which may be text.
    fn id(&self, token: &Token) -> Result<u32, L::Error> {
        let id = match &token.name {
            TokenName::Text(name) => self.vocabulary.special(name),
            TokenName::Id(id) => Some(*id).filter(|id| (*id as usize) < self.vocabulary.len()),
        };
        id.ok_or_else(|| {
            let message = match &token.name {
                TokenName::Text(name) => format!("the vocabulary has no special token {name:?}"),
                TokenName::Id(id) => format!("the vocabulary has no token {id}"),
            };
            let place = Place::Pointer(token.pointer.clone());
            self.contents
                .refused(Problem::new(ProblemKind::Invalid, place, message).into())
        })
    }

    fn token_triggered(
        &mut self,
        except: &[Token],
        ends: &[String],
        (tags, count): (&[Tag<L::Content>], Count),
    ) -> Result<ExprId, L::Error> {
        let begins = tags.iter().filter_map(|tag| match &tag.begin {
            Mark::Token(token) => Some(token.clone()),
            Mark::Text(_) => None,
        });
        let except: Vec<Token> = except.iter().cloned().chain(begins).collect();
        let token = self.any_token(&except, ends)?;
        let free = self.builder.repeat(token, 0, None);
        self.dispatched(free, tags, count)
    }

    fn one_of(&mut self, tags: &[Tag<L::Content>]) -> Result<ExprId, L::Error> {
        let ways: Result<Vec<ExprId>, L::Error> = tags.iter().map(|tag| self.tag(tag)).collect();
        Ok(self.builder.choice(ways?))
    }

    fn triggered(
        &mut self,
        without: &[&[String]],
        tags: &[Tag<L::Content>],
        count: Count,
    ) -> Result<ExprId, L::Error> {
        let free = self.free(without, None)?;
        self.dispatched(free, tags, count)
    }

    /// Lowers tags with free text before, between and after them.
    fn dispatched(
        &mut self,
        free: ExprId,
        tags: &[Tag<L::Content>],
        count: Count,
    ) -> Result<ExprId, L::Error> {
        let tag = self.one_of(tags)?;
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

    fn separated(
        &mut self,
        separator: &str,
        tags: &[Tag<L::Content>],
        count: Count,
    ) -> Result<ExprId, L::Error> {
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

    /// Lowers free text: any text of at most so many characters that contains none of these.
    fn free(&mut self, without: &[&[String]], most: Option<u32>) -> Result<ExprId, L::Error> {
        let parts = free_text(without.iter().copied().flatten().map(String::as_str), self.limits);
        let mut parts = parts.map_err(|error| self.contents.refused(error))?;
        if let Some(most) = most {
            let any = ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]);
            parts.push(Part::Units {
                unit: Hir::class(Class::Unicode(any)).into(),
                min: 0,
                max: Some(u64::from(most)),
            });
        }
        let id = self.builder.add_regular(Regular::of(parts));
        Ok(self.builder.regular(id))
    }
}

/// Returns the language of the texts that contain none of these, as the parts of a regular language. Empty
/// texts, which every text contains, are ignored.
///
/// All texts are excluded at once: the automaton of one alternation of literals is as large as the sum of
/// their lengths, while a product of one automaton for each text grows with every text.
///
/// # Errors
/// Returns an error if the texts are longer than the limits of regular expressions allow.
pub fn free_text<'t>(
    without: impl Iterator<Item = &'t str>,
    limits: &Limits,
) -> Result<Vec<Part>, CompileError> {
    // No caller wrote these patterns, so an error says what they are made of and gives no place in them.
    let regular = |pattern: &str| {
        regex::rust(pattern, limits).map_err(|error| {
            let problem = error.into_problem();
            let message = format!(
                "the triggers, ends and `excludes` of free text: {}",
                problem.message
            );
            Problem::new(problem.kind, Place::Whole, message)
        })
    };
    let mut parts = regular("(?s:.*)")?.parts;
    let excluded: Vec<String> = without
        .filter(|text| !text.is_empty())
        .map(regex_syntax::escape)
        .collect();
    if !excluded.is_empty() {
        let with = regular(&format!("(?s:.*)(?:{})(?s:.*)", excluded.join("|")))?;
        parts.extend(with.parts.into_iter().filter_map(|part| match part {
            Part::Match(hir) => Some(Part::Not(hir)),
            _ => None,
        }));
    }
    Ok(parts)
}
