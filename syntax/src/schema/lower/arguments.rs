//! Lowers the outermost object as the arguments of a call, in the style of a model.
//!
//! ```text
//!   json        {"city": "Paris", "days": 3}
//!   qwen_xml    <parameter=city>Paris</parameter><parameter=days>3</parameter>
//!   glm_xml     <arg_key>city</arg_key><arg_value>Paris</arg_value>
//! ```
//!
//! Each property of the outermost object is written in a frame. Strings are written in it as they are,
//! without quotes and escapes, and contain no text that ends the frame; all other values are JSON. The names
//! of the styles are those of xgrammar.

use std::rc::Rc;

use regex_syntax::hir::Hir;

use crate::schema::forms::{Member, Object, StringShape, Way};
use crate::schema::options::{ArgumentStyle, KeyOrder};
use crate::schema::text::{Text, hir, unrolled};
use lexiform_automata::error::ProblemKind;
use lexiform_automata::grammar::{
    self, Demand, ExprId, Part, Regular, RegularId, Rest, RuleId, Series, SeriesOrder,
};

use super::object::may_be_empty;
use super::writer::Writer;

/// The most characters of white space at each place between frames and values. It is bounded, because models
/// get stuck in loops of white space.
const WHITE_SPACE: u32 = 32;

/// The names of arguments that the schema does not list.
const NAMES: &str = "[A-Za-z_][A-Za-z0-9_.-]*";

/// The characters that no name of an argument can contain, because they could end its frame.
const NOT_IN_NAMES: [char; 6] = ['<', '>', '"', '&', '\n', '\r'];

/// The texts around the name and the value of an argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The text before the name.
    pub(super) open: &'static str,
    /// The text between the name and the value.
    pub(super) after_key: AfterKey,
    /// The text after the value.
    pub(super) close: &'static str,
}

impl Frame {
    /// Returns the frame of an argument, or `None` for JSON.
    pub(super) fn of(style: ArgumentStyle) -> Option<Frame> {
        let frame = |open, after_key, close| Frame {
            open,
            after_key,
            close,
        };
        Some(match style {
            ArgumentStyle::Json => return None,
            ArgumentStyle::QwenXml => frame("<parameter=", AfterKey::Text(">"), "</parameter>"),
            ArgumentStyle::MinimaxXml => frame("<parameter name=\"", AfterKey::Text("\">"), "</parameter>"),
            ArgumentStyle::DeepseekXml => frame(
                "<｜DSML｜parameter name=\"",
                AfterKey::IsString,
                "</｜DSML｜parameter>",
            ),
            ArgumentStyle::DeepseekV41Xml => frame(
                "<｜DSML｜ parameter name=\"",
                AfterKey::IsString,
                "</｜DSML｜ parameter>",
            ),
            ArgumentStyle::GlmXml => frame(
                "<arg_key>",
                AfterKey::Texts("</arg_key>", "<arg_value>"),
                "</arg_value>",
            ),
            ArgumentStyle::KimiK3Xml => frame(
                "<|open|>argument key=\"",
                AfterKey::Type,
                "<|close|>argument<|sep|>",
            ),
        })
    }
}

/// The text between the name of an argument and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterKey {
    /// This text.
    Text(&'static str),
    /// These texts, with white space between them.
    Texts(&'static str, &'static str),
    /// `" string="true">` before strings, which then have no white space around them, and `" string="false">`
    /// before other values.
    IsString,
    /// `" type="` and the name of the type of the value, then `"<|sep|>`.
    Type,
}

impl AfterKey {
    /// Returns `true` if the text says whether the value is a string.
    pub(super) fn tells_strings(self) -> bool {
        matches!(self, AfterKey::IsString | AfterKey::Type)
    }
}

/// The type of the value of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueType {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

impl ValueType {
    /// Returns the name of the type in JSON Schema.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            ValueType::Null => "null",
            ValueType::Boolean => "boolean",
            ValueType::Number => "number",
            ValueType::String => "string",
            ValueType::Array => "array",
            ValueType::Object => "object",
        }
    }
}

impl Writer<'_> {
    /// Declares the rule of a grammar whose texts are the properties of the root's objects, each in a frame.
    pub(super) fn arguments(&mut self, frame: Frame) -> RuleId {
        let root = self.forms.root;
        let rule = self.builder.declare(self.name(root));
        let normal = Rc::clone(&self.forms.normals[root.index()]);
        if normal.objects.is_empty() {
            let message = "arguments are the properties of an object, and the schema allows no object";
            self.problem(ProblemKind::Unsupported, root, message);
        }
        let mut writer = Arguments {
            space: white_space(self),
            frame,
            writer: self,
        };
        let ways: Vec<ExprId> = normal
            .objects
            .iter()
            .map(|object| writer.object(object))
            .collect();
        let space = writer.space;
        let body = self.builder.choice(ways);
        let body = self.builder.seq([space, body, space]);
        self.builder.define(rule, body);
        rule
    }
}

fn white_space(writer: &mut Writer<'_>) -> ExprId {
    let space = hir::class(&[(b' ', b' '), (b'\n', b'\n'), (b'\r', b'\r'), (b'\t', b'\t')]);
    writer.builder.hir(hir::repeat(space, 0, Some(WHITE_SPACE)))
}

/// The writer of arguments.
struct Arguments<'w, 'a> {
    writer: &'w mut Writer<'a>,
    frame: Frame,
    /// White space, which may be empty.
    space: ExprId,
}

impl Arguments<'_, '_> {
    /// Returns the arguments of a set of objects, without the white space around them.
    fn object(&mut self, object: &Object) -> ExprId {
        let mut ways = Vec::new();
        if may_be_empty(object) {
            ways.push(self.writer.builder.empty());
        }
        if let Some(list) = self.list(object) {
            let open = self.writer.builder.marked(self.frame.open);
            ways.push(self.writer.builder.seq([open, list]));
        }
        self.writer.builder.choice(ways)
    }

    /// Returns one or more arguments, without the text before the first name: it is part of the separator, so
    /// that each item begins with its name.
    fn list(&mut self, object: &Object) -> Option<ExprId> {
        let mut members = Vec::new();
        for member in &object.members {
            let ways = self.member_ways(member);
            if !ways.is_empty() {
                let required = member.required;
                members.push(grammar::Member { ways, required });
            } else if member.required {
                return None;
            }
        }
        let rest = self.rest(object);
        let (min, max) = (object.min.max(1), object.max);
        let enough = !rest.is_empty() || members.len() as u64 >= min;
        if !enough || max.is_some_and(|max| max < min) {
            return None;
        }
        let order = match self.writer.options.key_order {
            KeyOrder::Schema => SeriesOrder::Listed,
            KeyOrder::Any => SeriesOrder::Any,
        };
        let open = self.writer.builder.marked(self.frame.open);
        let separator = self.writer.builder.seq([self.space, open]);
        Some(self.writer.builder.series(Series {
            members,
            rest,
            taken: Vec::new(),
            separator,
            order,
            min,
            max,
            demands: vec![Demand { min: 1, max: None }; object.demands],
        }))
    }

    fn member_ways(&mut self, member: &Member) -> Vec<grammar::Way> {
        let forms = self.writer.forms;
        let live: Vec<Way> = (member.ways.iter())
            .filter(|way| forms.is_live(way.goal))
            .copied()
            .collect();
        if !live.is_empty() && !is_writable(&member.name) {
            let message = format!(
                "the name {:?} cannot be written in the frame of an argument",
                member.name
            );
            self.writer.problem(ProblemKind::Unsupported, forms.root, message);
            return Vec::new();
        }
        let key = self.writer.builder.bytes(&*member.name);
        let item = |way: Way| {
            let value = self.value(way);
            grammar::Way {
                item: self.writer.builder.seq([key, value]),
                meets: way.meets,
            }
        };
        live.into_iter().map(item).collect()
    }

    /// Returns the arguments that the schema does not list.
    fn rest(&mut self, object: &Object) -> Vec<Rest> {
        let forms = self.writer.forms;
        let mut rest = Vec::new();
        for class in &object.rest {
            let live: Vec<Way> = (class.ways.iter())
                .filter(|way| forms.is_live(way.goal))
                .copied()
                .collect();
            if live.is_empty() || self.writer.is_over() {
                continue;
            }
            let key = Some(self.name(&class.key, object));
            for way in live {
                rest.push(Rest {
                    key,
                    item: self.value(way),
                    meets: way.meets,
                });
            }
        }
        rest
    }

    /// Returns the names of a class that are not listed.
    fn name(&mut self, shape: &StringShape, object: &Object) -> RegularId {
        let mut parts = self.parts(shape);
        parts.push(Part::Match(hir::own_expression(NAMES)));
        let listed = object.members.iter().map(|member| hir::text(&*member.name));
        let listed: Vec<Hir> = listed.collect();
        if !listed.is_empty() {
            parts.push(Part::Not(hir::any(listed).into()));
        }
        self.writer.builder.add_regular(Regular { parts })
    }

    /// Returns the text after the name of an argument: what follows the name, the value, and the end.
    fn value(&mut self, way: Way) -> ExprId {
        let normal = Rc::clone(&self.writer.forms.normals[way.goal.index()]);
        let is_free = normal.strings.iter().any(StringShape::is_any);
        let mut ways = Vec::new();
        let strings: Vec<(bool, ExprId)> = normal
            .strings
            .iter()
            .map(|shape| (shape.is_any(), self.string(shape)))
            .collect();
        for (is_any, string) in strings {
            ways.push(self.framed(ValueType::String, is_any, string));
        }
        // Every value is also a string where any string is allowed and nothing tells them apart.
        if is_free && !self.frame.after_key.tells_strings() {
            return self.writer.builder.choice(ways);
        }
        let booleans: Vec<&str> = [(normal.yes, "true"), (normal.no, "false")]
            .into_iter()
            .filter_map(|(there, text)| there.then_some(text))
            .collect();
        for text in booleans {
            let text = self.writer.builder.bytes(text);
            ways.push(self.framed(ValueType::Boolean, false, text));
        }
        if normal.null {
            let null = self.writer.builder.bytes("null");
            ways.push(self.framed(ValueType::Null, false, null));
        }
        for shape in normal.numbers.iter() {
            let number = self.writer.number(shape, way.goal);
            ways.push(self.framed(ValueType::Number, false, number));
        }
        for array in &normal.arrays {
            let array = self.writer.array(array);
            ways.push(self.framed(ValueType::Array, false, array));
        }
        for object in &normal.objects {
            let object = self.writer.object(object, way.goal);
            ways.push(self.framed(ValueType::Object, false, object));
        }
        self.writer.builder.choice(ways)
    }

    /// Returns a value with the texts around it. White space around a string that may be anything would be
    /// part of the string.
    fn framed(&mut self, kind: ValueType, is_any: bool, value: ExprId) -> ExprId {
        let after_key = self.after_key(kind);
        let close = self.writer.builder.marked(self.frame.close);
        let is_bare = is_any || kind == ValueType::String && self.frame.after_key == AfterKey::IsString;
        let parts = match is_bare {
            true => vec![after_key, value, close],
            false => vec![after_key, self.space, value, self.space, close],
        };
        self.writer.builder.seq(parts)
    }

    fn after_key(&mut self, kind: ValueType) -> ExprId {
        let builder = &mut self.writer.builder;
        match self.frame.after_key {
            AfterKey::Text(text) => builder.marked(text),
            AfterKey::Texts(first, second) => {
                let (first, second) = (builder.marked(first), builder.marked(second));
                builder.seq([first, self.space, second])
            }
            AfterKey::IsString => {
                let is_string = kind == ValueType::String;
                builder.marked(&format!("\" string=\"{is_string}\">"))
            }
            AfterKey::Type => builder.marked(&format!("\" type=\"{}\"<|sep|>", kind.as_str())),
        }
    }

    /// Returns the texts of a set of strings as they are, without the end of the frame in them.
    fn string(&mut self, shape: &StringShape) -> ExprId {
        if let Some(only) = &shape.only {
            let close = self.frame.close;
            let only = self.writer.not_excluded(only);
            let texts = only.iter().filter(|text| !text.contains(close));
            let texts: Vec<ExprId> = texts.map(|text| self.writer.builder.bytes(&**text)).collect();
            return self.writer.builder.choice(texts);
        }
        let mut parts = self.parts(shape);
        let any = || hir::star(any_char());
        let with_close = hir::concat([any(), hir::text(self.frame.close), any()]);
        parts.push(Part::Not(with_close.into()));
        self.writer.regular(Regular { parts })
    }

    /// Returns the languages whose intersection is the shape, without quotes and escapes.
    fn parts(&mut self, shape: &StringShape) -> Vec<Part> {
        let forms = self.writer.forms;
        let mut parts = vec![Part::Match(hir::star(any_char()).into())];
        for &(text, sign) in &shape.texts {
            parts.push(match (forms.texts.text(text), sign) {
                (Text::Match(text), true) => Part::Match(text.clone()),
                (Text::Match(text), false) => Part::Not(text.clone()),
                (Text::Units { unit, min, max }, true) => Part::Units {
                    unit: unit.clone(),
                    min: *min,
                    max: *max,
                },
                (Text::Units { unit, min, max }, false) => match unrolled(unit, *min, *max) {
                    Some(text) => Part::Not(text.into()),
                    None => Part::Match(hir::never().into()),
                },
            });
        }
        if let Some(only) = &shape.only {
            parts.push(Part::Match(
                hir::any(only.iter().map(|text| hir::text(&**text))).into(),
            ));
        }
        if !shape.except.is_empty() {
            let except = shape.except.iter().map(|text| hir::text(&**text));
            parts.push(Part::Not(hir::any(except).into()));
        }
        if let Some(excluded) = &self.writer.excluded {
            parts.push(Part::Not(excluded.clone().into()));
        }
        if shape.min > 0 || shape.max.is_some() {
            parts.push(Part::Units {
                unit: any_char().into(),
                min: shape.min,
                max: shape.max,
            });
        }
        parts
    }
}

/// Returns any one character.
fn any_char() -> Hir {
    hir::own("(?s:.)")
}

/// Returns `true` if a name can be written before the value of an argument.
fn is_writable(name: &str) -> bool {
    !name.is_empty() && !name.contains(NOT_IN_NAMES)
}
