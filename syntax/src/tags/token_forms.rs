//! Reads the forms of structural tags that are about tokens, and the dispatch of free text to rules.

use serde_json::Value;

use super::read::{Fields, TagReader};
use super::{Content, Count, Form, Mark, Tag, Token, TokenName};

impl TagReader {
    /// `any_tokens`: any number of tokens, except for some.
    pub(super) fn any_tokens(&mut self, fields: &mut Fields<'_>) -> Option<Form<Content>> {
        let except = self.tokens(fields, "exclude_tokens", Listed::Perhaps)?;
        let most = self.limit(fields, "max_tokens")?;
        Some(Form::Repeat {
            form: Box::new(Form::AnyToken { except }),
            least: 0,
            most,
        })
    }

    /// `exclude_token`: one token, except for some.
    pub(super) fn exclude_token(&mut self, fields: &mut Fields<'_>) -> Option<Form<Content>> {
        let except = self.tokens(fields, "exclude_tokens", Listed::Perhaps)?;
        Some(Form::AnyToken { except })
    }

    /// `dispatch`: free text in which each pattern is followed by its form.
    pub(super) fn dispatch(&mut self, fields: &mut Fields<'_>) -> Option<Form<Content>> {
        let rules = self.rules(fields, |reader, value, pointer| match value {
            Value::String(text) if !text.is_empty() => Some(Mark::Text(text.clone())),
            _ => {
                reader.invalid(pointer, "must be a string that is not empty");
                None
            }
        });
        let without = self.excludes(fields);
        let count = self.loops(fields);
        let tags = rules?;
        let triggers = tags.iter().filter_map(|tag| match &tag.begin {
            Mark::Text(text) => Some(text.clone()),
            Mark::Token(_) => None,
        });
        Some(Form::Triggered {
            triggers: triggers.collect(),
            without: without?,
            tags,
            count,
        })
    }

    /// `token_dispatch`: free tokens in which each token of a list is followed by its form.
    pub(super) fn token_dispatch(&mut self, fields: &mut Fields<'_>) -> Option<Form<Content>> {
        let rules = self.rules(fields, |reader, value, pointer| {
            reader.token_of(value, pointer).map(Mark::Token)
        });
        let except = self.tokens(fields, "exclude_tokens", Listed::Perhaps);
        let count = self.loops(fields);
        Some(Form::TokenTriggered {
            except: except?,
            tags: rules?,
            count,
        })
    }

    /// `token_triggered_tags`: free tokens with tags, each of which begins with a token of a list.
    pub(super) fn token_triggered_tags(&mut self, fields: &mut Fields<'_>) -> Option<Form<Content>> {
        let triggers = self.tokens(fields, "trigger_tokens", Listed::Always);
        let (at, tags) = (fields.at("tags"), self.tags(fields));
        let except = self.tokens(fields, "exclude_tokens", Listed::Perhaps);
        let count = self.count(fields);
        let (triggers, tags) = (triggers?, tags?);
        let is_triggered = |tag: &Tag<Content>| match &tag.begin {
            Mark::Token(begin) => triggers.iter().any(|trigger| trigger.name == begin.name),
            Mark::Text(_) => false,
        };
        let mut all = true;
        for (index, _) in tags.iter().enumerate().filter(|(_, tag)| !is_triggered(tag)) {
            let message = "must be one of the `trigger_tokens`, as an object with a `token`";
            self.invalid(format!("{at}/{index}/begin"), message);
            all = false;
        }
        let except = except?.into_iter().chain(triggers).collect();
        all.then_some(Form::TokenTriggered { except, tags, count })
    }

    /// Reads pairs of a beginning and a form, as tags without an end.
    fn rules(
        &mut self,
        fields: &mut Fields<'_>,
        begin: impl Fn(&mut Self, &Value, String) -> Option<Mark>,
    ) -> Option<Vec<Tag<Content>>> {
        let items = self.list(fields, "rules")?;
        let at = fields.at("rules");
        self.each(items, &at, |reader, item, pointer| {
            let Some([first, form]) = item.as_array().map(Vec::as_slice) else {
                reader.invalid(pointer, "must be a list of a pattern and a format");
                return None;
            };
            let begin = begin(reader, first, format!("{pointer}/0"));
            let content = reader.form(form, format!("{pointer}/1"));
            Some(Tag {
                begin: begin?,
                content: content?,
                ends: Vec::new(),
            })
        })
    }

    /// Reads `loop`: whether free text goes on after the first rule.
    fn loops(&mut self, fields: &mut Fields<'_>) -> Count {
        let goes_on = fields.has("loop").then(|| self.flag(fields, "loop"));
        Count {
            at_least_one: false,
            stop_after_first: goes_on == Some(false),
        }
    }

    /// Reads a list of tokens.
    fn tokens(&mut self, fields: &mut Fields<'_>, name: &'static str, listed: Listed) -> Option<Vec<Token>> {
        let is_empty = match fields.get(name) {
            None => true,
            Some(value) => value.as_array().is_some_and(Vec::is_empty),
        };
        if is_empty && listed == Listed::Perhaps {
            return Some(Vec::new());
        }
        let items = self.list(fields, name)?;
        let at = fields.at(name);
        self.each(items, &at, Self::token_of)
    }

    fn token_of(&mut self, value: &Value, pointer: String) -> Option<Token> {
        let name = match value {
            Value::String(text) if !text.is_empty() => Some(TokenName::Text(text.clone())),
            value => {
                let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
                id.map(TokenName::Id)
            }
        };
        if name.is_none() {
            self.invalid(pointer.clone(), "must be the text of a token or its number");
        }
        Some(Token { name: name?, pointer })
    }

    /// Reads a greatest number, which may be missing.
    pub(super) fn limit(&mut self, fields: &mut Fields<'_>, name: &'static str) -> Option<Option<u32>> {
        let Some(value) = fields.get(name) else {
            return Some(None);
        };
        let number = value.as_u64().filter(|number| *number <= i32::MAX as u64);
        match number {
            Some(number) => Some(Some(number as u32)),
            None => {
                self.invalid(fields.at(name), "must be a number from 0 to 2147483647");
                None
            }
        }
    }
}

/// Whether a list must have entries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listed {
    Always,
    Perhaps,
}
