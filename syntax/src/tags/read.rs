//! Reads the JSON of a structural tag into a [`Form`], and reports every problem at its JSON pointer.

use serde_json::{Map, Value};

use super::{Content, ContentKind, Count, FORMATS, Form, Mark, Tag, Token, TokenName};
use crate::schema::{self, ArgumentStyle};
use crate::suggest;
use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};
use lexiform_automata::limits::Limits;

/// The maximum number of entries in a list of a form.
const PARTS: usize = 1_024;
/// How deep forms may nest.
const FORM_DEPTH: usize = 64;
/// The greatest count of a repetition.
const TIMES: u32 = 10_000;

/// Reads the JSON text of a structural tag.
///
/// ```
/// use lexiform::limits::Limits;
/// use lexiform_syntax::tags;
/// let text = r#"{"type": "structural_tag", "format": {"type": "tag", "begin": "<a>", "end": "</a>",
///     "content": {"type": "regex", "pattern": "[0-9]+"}}}"#;
/// let form = tags::read(text, &Limits::default())?;
/// assert_eq!(form.contents()[0].pointer, "/format/content/pattern");
/// # Ok::<(), lexiform::error::CompileError>(())
/// ```
///
/// # Errors
/// Returns all problems at once: invalid JSON, missing fields, wrong types, and unsupported features.
pub fn read(text: &str, limits: &Limits) -> Result<Form<Content>, CompileError> {
    read_value(&schema::read_json(text, limits)?)
}

/// Reads a structural tag from a parsed JSON value, which must not nest deeper than a thread can walk.
///
/// # Errors
/// Returns the same errors as [`read`].
pub fn read_value(value: &Value) -> Result<Form<Content>, CompileError> {
    let mut reader = TagReader::default();
    match reader.whole(value) {
        Some(form) if reader.problems.is_empty() => Ok(form),
        _ => Err(CompileError {
            problems: reader.problems,
        }),
    }
}

/// Reads forms, and keeps the problems that it finds.
#[derive(Default)]
pub(super) struct TagReader {
    problems: Vec<Problem>,
    depth: usize,
}

/// The fields of an object, with the names that were requested so far. All other fields are stray.
pub(super) struct Fields<'v> {
    map: &'v Map<String, Value>,
    pointer: String,
    known: Vec<&'static str>,
}

impl<'v> Fields<'v> {
    /// Returns a field; `null` counts as absent.
    pub(super) fn get(&mut self, name: &'static str) -> Option<&'v Value> {
        self.known.push(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Returns `true` if a field is there and not `null`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// Returns the pointer to a field.
    pub(super) fn at(&self, name: &str) -> String {
        child(&self.pointer, name)
    }
}

fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

impl TagReader {
    fn problem(&mut self, kind: ProblemKind, pointer: String, message: impl Into<String>) {
        self.problems
            .push(Problem::new(kind, Place::Pointer(pointer), message));
    }

    pub(super) fn invalid(&mut self, pointer: String, message: impl Into<String>) {
        self.problem(ProblemKind::Invalid, pointer, message);
    }

    fn unsupported(&mut self, pointer: String, message: impl Into<String>) {
        self.problem(ProblemKind::Unsupported, pointer, message);
    }

    fn fields<'v>(&mut self, value: &'v Value, pointer: String) -> Option<Fields<'v>> {
        match value.as_object() {
            Some(map) => Some(Fields {
                map,
                pointer,
                known: Vec::new(),
            }),
            None => {
                self.invalid(pointer, format!("must be an object, not {}", kind_of(value)));
                None
            }
        }
    }

    /// Refuses the fields that were never requested: ignoring them would lose what the author meant.
    fn finish(&mut self, fields: Fields<'_>) {
        for name in fields
            .map
            .keys()
            .filter(|name| !fields.known.contains(&name.as_str()))
        {
            let message = match suggest::nearest(name, fields.known.iter().copied()) {
                Some(near) => format!("unknown field `{name}`; did you mean `{near}`?"),
                None => format!("unknown field `{name}`"),
            };
            self.unsupported(fields.at(name), message);
        }
    }

    fn whole(&mut self, value: &Value) -> Option<Form<Content>> {
        let mut fields = self.fields(value, String::new())?;
        if let Some(kind) = fields.get("type")
            && kind != "structural_tag"
        {
            self.invalid(fields.at("type"), "must be \"structural_tag\"");
        }
        let form = match fields.get("format") {
            Some(format) => self.form(format, fields.at("format")),
            None => self.structures(&mut fields),
        };
        self.finish(fields);
        form
    }

    /// Reads the older shape.
    fn structures(&mut self, fields: &mut Fields<'_>) -> Option<Form<Content>> {
        let triggers = self.texts(fields, "triggers");
        let items = self.list(fields, "structures");
        let at = fields.at("structures");
        let tags = self.each(items?, &at, |reader, item, pointer| {
            let mut inner = reader.fields(item, pointer)?;
            let begin = reader.text(&mut inner, "begin");
            let end = reader.text(&mut inner, "end");
            let content = reader.schema(&mut inner, "schema", false);
            reader.finish(inner);
            Some(Tag {
                begin: Mark::Text(begin?),
                content: Form::Content(Box::new(content?)),
                ends: vec![Mark::Text(end?)],
            })
        })?;
        self.triggered(triggers?, Vec::new(), (tags, &at), Count::default())
    }

    /// Reads the newer shape.
    pub(super) fn form(&mut self, value: &Value, pointer: String) -> Option<Form<Content>> {
        if self.depth == FORM_DEPTH {
            let message = format!("forms may lie inside each other {FORM_DEPTH} deep");
            self.problem(ProblemKind::Limit, pointer, message);
            return None;
        }
        self.depth += 1;
        let form = self.fields(value, pointer).and_then(|mut fields| {
            let form = self.of_type(&mut fields);
            // The meaning of the fields of an unknown format is not known either.
            if form.is_some() || !matches!(self.problems.last(), Some(last) if is_type(last)) {
                self.finish(fields);
            }
            form
        });
        self.depth -= 1;
        form
    }

    fn of_type(&mut self, fields: &mut Fields<'_>) -> Option<Form<Content>> {
        let kind = self.text(fields, "type")?;
        match kind.as_str() {
            "const_string" => self.text(fields, "value").map(Form::Text),
            "token" => self.token(fields).map(Form::Token),
            "any_text" => self.any(fields),
            "any_tokens" => self.any_tokens(fields),
            "exclude_token" => self.exclude_token(fields),
            "dispatch" => self.dispatch(fields),
            "token_dispatch" => self.token_dispatch(fields),
            "token_triggered_tags" => self.token_triggered_tags(fields),
            "json_schema" => self.json_schema(fields),
            "qwen_xml_parameter" => self.schema_of_style(fields, ArgumentStyle::QwenXml),
            "regex" => self.source(fields, "pattern", ContentKind::Regex),
            "grammar" => self.source(fields, "grammar", ContentKind::Grammar),
            "sequence" => self.forms(fields).map(Form::Sequence),
            "or" => self.forms(fields).map(Form::Choice),
            "optional" => self.repeated(fields, (0, Some(1))),
            "plus" => self.repeated(fields, (1, None)),
            "star" => self.repeated(fields, (0, None)),
            "repeat" => {
                let times = self.times(fields);
                self.repeated(fields, times?)
            }
            "tag" => self.tag(fields).map(|tag| Form::Tag(Box::new(tag))),
            "triggered_tags" => self.triggered_tags(fields),
            "tags_with_separator" => self.separated(fields),
            other => {
                self.unknown_type(fields.at("type"), other);
                None
            }
        }
    }

    fn unknown_type(&mut self, pointer: String, name: &str) {
        let message = match suggest::nearest(name, FORMATS) {
            Some(near) => format!("unknown format `{name}`; did you mean `{near}`?"),
            None => format!("unknown format `{name}` (formats: {})", FORMATS.join(", ")),
        };
        self.unsupported(pointer, message);
    }

    fn any(&mut self, fields: &mut Fields<'_>) -> Option<Form<Content>> {
        self.refuse(fields, "max_tokens");
        let most = self.limit(fields, "max_chars");
        let without = self.excludes(fields)?;
        Some(Form::Any { without, most: most? })
    }

    fn json_schema(&mut self, fields: &mut Fields<'_>) -> Option<Form<Content>> {
        let style = self.style(fields);
        self.schema_of_style(fields, style)
    }

    /// Reads how the properties of an object are written.
    fn style(&mut self, fields: &mut Fields<'_>) -> ArgumentStyle {
        let Some(value) = fields.get("style") else {
            return ArgumentStyle::Json;
        };
        let known = value.as_str().and_then(ArgumentStyle::named);
        known.unwrap_or_else(|| {
            let styles = ArgumentStyle::ALL.map(ArgumentStyle::as_str).join(", ");
            self.unsupported(
                fields.at("style"),
                format!("the style {value} is not supported (styles: {styles})"),
            );
            ArgumentStyle::Json
        })
    }

    fn schema_of_style(&mut self, fields: &mut Fields<'_>, style: ArgumentStyle) -> Option<Form<Content>> {
        let most_space = self.limit(fields, "max_whitespace_cnt");
        let excludes = self.excludes(fields)?;
        let any_order = self.flag(fields, "any_order");
        let content = self.schema(fields, "json_schema", any_order)?;
        Some(Form::Content(Box::new(Content {
            style,
            excludes,
            whitespace: most_space?.map(|most| format!(r"[ \n\r\t]{{0,{most}}}")),
            ..content
        })))
    }

    /// Reads a schema, given as a value or as a string that contains one.
    fn schema(&mut self, fields: &mut Fields<'_>, name: &'static str, any_order: bool) -> Option<Content> {
        let pointer = fields.at(name);
        let text = match fields.get(name) {
            Some(value @ (Value::Object(_) | Value::Bool(_))) => value.to_string(),
            Some(Value::String(text)) => text.clone(),
            None => {
                self.invalid(pointer, "a schema is required");
                return None;
            }
            Some(other) => {
                self.invalid(pointer, format!("must be a schema, not {}", kind_of(other)));
                return None;
            }
        };
        Some(Content {
            kind: ContentKind::JsonSchema,
            text,
            any_order,
            style: ArgumentStyle::Json,
            excludes: Vec::new(),
            whitespace: None,
            pointer,
        })
    }

    fn source(
        &mut self,
        fields: &mut Fields<'_>,
        name: &'static str,
        kind: ContentKind,
    ) -> Option<Form<Content>> {
        let text = self.text(fields, name)?;
        Some(Form::Content(Box::new(Content {
            kind,
            text,
            any_order: false,
            style: ArgumentStyle::Json,
            excludes: Vec::new(),
            whitespace: None,
            pointer: fields.at(name),
        })))
    }

    fn forms(&mut self, fields: &mut Fields<'_>) -> Option<Vec<Form<Content>>> {
        let items = self.list(fields, "elements")?;
        let at = fields.at("elements");
        self.each(items, &at, Self::form)
    }

    fn repeated(
        &mut self,
        fields: &mut Fields<'_>,
        (least, most): (u32, Option<u32>),
    ) -> Option<Form<Content>> {
        let form = Box::new(self.content(fields)?);
        Some(Form::Repeat { form, least, most })
    }

    fn times(&mut self, fields: &mut Fields<'_>) -> Option<(u32, Option<u32>)> {
        let least = self.integer(fields, "min");
        let most = self.integer(fields, "max");
        let (least, most) = (least?, most?);
        let counts = |number: i64| u32::try_from(number).ok().filter(|number| *number <= TIMES);
        let Some(least) = counts(least) else {
            self.invalid(fields.at("min"), format!("must be a number from 0 to {TIMES}"));
            return None;
        };
        match (most, counts(most)) {
            (-1, _) => Some((least, None)),
            (_, Some(most)) if most >= least => Some((least, Some(most))),
            _ => {
                let message = format!("must be -1 or a number from `min` to {TIMES}");
                self.invalid(fields.at("max"), message);
                None
            }
        }
    }

    fn content(&mut self, fields: &mut Fields<'_>) -> Option<Form<Content>> {
        let pointer = fields.at("content");
        match fields.get("content") {
            Some(content) => self.form(content, pointer),
            None => {
                self.invalid(pointer, "a format is required");
                None
            }
        }
    }

    fn tag(&mut self, fields: &mut Fields<'_>) -> Option<Tag<Content>> {
        let begin = self.mark(fields, "begin");
        let ends = self.ends(fields);
        let content = self.content(fields);
        Some(Tag {
            begin: begin?,
            content: content?,
            ends: ends?,
        })
    }

    fn mark(&mut self, fields: &mut Fields<'_>, name: &'static str) -> Option<Mark> {
        let pointer = fields.at(name);
        match fields.get(name) {
            Some(Value::String(text)) => Some(Mark::Text(text.clone())),
            Some(token @ Value::Object(_)) => {
                let mut inner = self.fields(token, pointer)?;
                if inner.get("type").is_some_and(|kind| kind != "token") {
                    self.invalid(inner.at("type"), "must be \"token\"");
                }
                let token = self.token(&mut inner);
                self.finish(inner);
                token.map(Mark::Token)
            }
            _ => {
                self.invalid(pointer, "must be a string, or an object with a `token`");
                None
            }
        }
    }

    fn ends(&mut self, fields: &mut Fields<'_>) -> Option<Vec<Mark>> {
        if !matches!(fields.map.get("end"), Some(Value::Array(_))) {
            return Some(vec![self.mark(fields, "end")?]);
        }
        let ends = self.texts(fields, "end")?;
        Some(ends.into_iter().map(Mark::Text).collect())
    }

    fn token(&mut self, fields: &mut Fields<'_>) -> Option<Token> {
        let pointer = fields.at("token");
        let name = match fields.get("token") {
            Some(Value::String(text)) if !text.is_empty() => Some(TokenName::Text(text.clone())),
            Some(value) => value
                .as_u64()
                .and_then(|id| u32::try_from(id).ok())
                .map(TokenName::Id),
            None => None,
        };
        let Some(name) = name else {
            self.invalid(pointer, "must be the text of a token or its number");
            return None;
        };
        Some(Token { name, pointer })
    }

    fn triggered_tags(&mut self, fields: &mut Fields<'_>) -> Option<Form<Content>> {
        let triggers = self.texts(fields, "triggers");
        let (at, tags) = (fields.at("tags"), self.tags(fields));
        let without = self.excludes(fields);
        let count = self.count(fields);
        self.triggered(triggers?, without?, (tags?, &at), count)
    }

    fn triggered(
        &mut self,
        triggers: Vec<String>,
        without: Vec<String>,
        (tags, at): (Vec<Tag<Content>>, &str),
        count: Count,
    ) -> Option<Form<Content>> {
        let is_triggered = |tag: &Tag<Content>| {
            let Mark::Text(begin) = &tag.begin else {
                return false;
            };
            triggers.iter().any(|trigger| begin.starts_with(trigger.as_str()))
        };
        let mut all = true;
        for (index, _) in tags.iter().enumerate().filter(|(_, tag)| !is_triggered(tag)) {
            self.invalid(
                format!("{at}/{index}/begin"),
                "must begin with one of the triggers",
            );
            all = false;
        }
        all.then_some(Form::Triggered {
            triggers,
            without,
            tags,
            count,
        })
    }

    fn separated(&mut self, fields: &mut Fields<'_>) -> Option<Form<Content>> {
        let separator = self.text(fields, "separator");
        let tags = self.tags(fields);
        let count = self.count(fields);
        Some(Form::Separated {
            separator: separator?,
            tags: tags?,
            count,
        })
    }

    pub(super) fn tags(&mut self, fields: &mut Fields<'_>) -> Option<Vec<Tag<Content>>> {
        let items = self.list(fields, "tags")?;
        let at = fields.at("tags");
        self.each(items, &at, |reader, item, pointer| {
            let mut inner = reader.fields(item, pointer)?;
            if inner.get("type").is_some_and(|kind| kind != "tag") {
                reader.invalid(inner.at("type"), "must be \"tag\"");
            }
            let tag = reader.tag(&mut inner);
            reader.finish(inner);
            tag
        })
    }

    /// Reads all items, and returns `None` if one of them is wrong; every item is read in either case.
    pub(super) fn each<T>(
        &mut self,
        items: &[Value],
        at: &str,
        mut read: impl FnMut(&mut Self, &Value, String) -> Option<T>,
    ) -> Option<Vec<T>> {
        let all: Vec<Option<T>> = items
            .iter()
            .enumerate()
            .map(|(index, item)| read(self, item, format!("{at}/{index}")))
            .collect();
        all.into_iter().collect()
    }

    pub(super) fn count(&mut self, fields: &mut Fields<'_>) -> Count {
        Count {
            at_least_one: self.flag(fields, "at_least_one"),
            stop_after_first: self.flag(fields, "stop_after_first"),
        }
    }

    pub(super) fn flag(&mut self, fields: &mut Fields<'_>, name: &'static str) -> bool {
        match fields.get(name) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(other) => {
                self.invalid(
                    fields.at(name),
                    format!("must be a boolean, not {}", kind_of(other)),
                );
                false
            }
        }
    }

    fn integer(&mut self, fields: &mut Fields<'_>, name: &'static str) -> Option<i64> {
        let number = fields.get(name).and_then(Value::as_i64);
        if number.is_none() {
            self.invalid(fields.at(name), "an integer is required");
        }
        number
    }

    /// Reads a required text.
    fn text(&mut self, fields: &mut Fields<'_>, name: &'static str) -> Option<String> {
        match fields.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            None => {
                self.invalid(fields.at(name), "a string is required");
                None
            }
            Some(other) => {
                self.invalid(
                    fields.at(name),
                    format!("must be a string, not {}", kind_of(other)),
                );
                None
            }
        }
    }

    /// Reads a list that is neither empty nor too long.
    pub(super) fn list<'v>(&mut self, fields: &mut Fields<'v>, name: &'static str) -> Option<&'v [Value]> {
        let items = fields
            .get(name)
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        if items.is_empty() || items.len() > PARTS {
            self.invalid(fields.at(name), format!("must be a list of 1 to {PARTS} entries"));
            return None;
        }
        Some(items)
    }

    fn texts(&mut self, fields: &mut Fields<'_>, name: &'static str) -> Option<Vec<String>> {
        let items = self.list(fields, name)?;
        let text = |item: &Value| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let texts: Option<Vec<String>> = items.iter().map(text).collect();
        if texts.is_none() {
            self.invalid(fields.at(name), "must be a list of strings that are not empty");
        }
        texts
    }

    /// Reads `excludes`, which may be missing or empty.
    pub(super) fn excludes(&mut self, fields: &mut Fields<'_>) -> Option<Vec<String>> {
        match fields.get("excludes") {
            None => Some(Vec::new()),
            Some(Value::Array(items)) if items.is_empty() => Some(Vec::new()),
            Some(_) => self.texts(fields, "excludes"),
        }
    }

    /// Refuses a field, because it would have no effect.
    fn refuse(&mut self, fields: &mut Fields<'_>, name: &'static str) {
        if fields.get(name).is_some() {
            self.unsupported(fields.at(name), format!("`{name}` is not supported"));
        }
    }
}

fn is_type(problem: &Problem) -> bool {
    problem.keyword() == Some("type")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
