//! Lowers the outermost object as the arguments of a call, in the style of a model.
//!
//! ```text
//!   json        {"city": "Paris", "days": 3}
//!   qwen_xml    <parameter=city>Paris</parameter><parameter=days>3</parameter>
//!   glm_xml     <arg_key>city</arg_key><arg_value>Paris</arg_value>
//! ```
//!
//! Each property of the outermost object is written in a frame. Strings are written in it as they are,
//! without quotes and escapes, and contain no text that ends the frame; all other values are JSON. Two styles
//! also write the properties and items of inner objects and arrays in frames. The names of the styles are
//! those of xgrammar.

use std::rc::Rc;

use regex_syntax::hir::Hir;

use crate::schema::forms::{Array, GoalId, Object, Property, StringShape, Way};
use crate::schema::text::{Text, hir, unrolled};
use lexiform_automata::error::ProblemKind;
use lexiform_automata::grammar::{
    self, Additional, ExprId, ItemOrder, ObjectList, Part, Regular, RegularId, RuleId,
};

use super::frame::{AfterKey, Close, Frame, ValueType, escaped, is_writable};
use super::object::may_be_empty;
use super::writer::{Piece, Writer};

/// The most characters of white space at each place between frames and values. It is bounded, because models
/// get stuck in loops of white space.
const WHITE_SPACE: u32 = 4;

/// The names of arguments that the schema does not list.
const NAMES: &str = "[A-Za-z_][A-Za-z0-9_.-]*";

impl<'a> Writer<'a> {
    /// Declares the rule of a grammar whose texts are the properties of the root's objects, each in a frame.
    pub(super) fn arguments(&mut self) -> RuleId {
        let root = self.forms.root;
        if self.forms.normals[root.index()].objects.is_empty() {
            let message = "arguments are the properties of an object, and the schema allows no object";
            self.problem(ProblemKind::Unsupported, root, message);
        } else if self.forms.normals[root.index()].has_other_than_objects() {
            self.narrowed(
                root,
                "arguments are the properties of an object; no other value is written",
            );
        }
        let rule = self.builder.declare(self.name(root));
        let body = self.argument_objects(root);
        self.builder.define(rule, body);
        rule
    }

    /// Returns the objects of a goal, with each property in a frame.
    pub(super) fn argument_objects(&mut self, goal: GoalId) -> ExprId {
        let normal = Rc::clone(&self.forms.normals[goal.index()]);
        let Some(mut writer) = self.framing(goal) else {
            return self.builder.never();
        };
        let ways = normal
            .objects
            .iter()
            .map(|object| writer.object(object))
            .collect();
        writer.spaced(ways)
    }

    /// Returns the arrays of a goal, with each item in a frame.
    pub(super) fn argument_arrays(&mut self, goal: GoalId) -> ExprId {
        let normal = Rc::clone(&self.forms.normals[goal.index()]);
        let Some(mut writer) = self.framing(goal) else {
            return self.builder.never();
        };
        let ways = normal.arrays.iter().map(|array| writer.array(array)).collect();
        writer.spaced(ways)
    }

    fn framing(&mut self, goal: GoalId) -> Option<Arguments<'_, 'a>> {
        Some(Arguments {
            frame: Frame::of(self.options.arguments)?,
            space: white_space(self),
            goal,
            writer: self,
        })
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
    /// The goal whose objects or arrays are written, for messages.
    goal: GoalId,
}

impl Arguments<'_, '_> {
    /// Returns a choice with white space around it.
    fn spaced(&mut self, ways: Vec<ExprId>) -> ExprId {
        let ways = self.writer.builder.choice(ways);
        self.writer.builder.seq([self.space, ways, self.space])
    }

    /// Returns the items of a set of arrays.
    fn array(&mut self, array: &Array) -> ExprId {
        if array.unique.is_some() || !array.distinct.is_empty() {
            self.unsupported("`uniqueItems` of an array whose items are written in frames is not supported");
        }
        let mut ways = Vec::new();
        if array.min == 0 && array.demands.iter().all(|demand| demand.min == 0) {
            ways.push(self.writer.builder.empty());
        }
        let forms = self.writer.forms;
        let items = |writer: &mut Self, ways: &[Way]| -> Vec<grammar::Way> {
            let live = ways.iter().filter(|way| forms.is_live(way.goal));
            live.map(|way| grammar::Way {
                item: writer.item(*way),
                meets: way.meets,
            })
            .collect()
        };
        let mut properties = Vec::new();
        for place in &array.prefix {
            let ways = items(self, place);
            if ways.is_empty() {
                break;
            }
            let required = false;
            properties.push(grammar::Property { ways, required });
        }
        let mut additional = Vec::new();
        if properties.len() == array.prefix.len() {
            additional = items(self, &array.additional);
        }
        let (min, max) = (array.min.max(1), array.max);
        let enough = !additional.is_empty() || properties.len() as u64 >= min;
        if enough && max.is_none_or(|max| max >= min) {
            let additional = additional.into_iter().map(|way| Additional {
                key: None,
                item: way.item,
                meets: way.meets,
            });
            ways.push(self.writer.builder.object_list(ObjectList {
                properties,
                additional: additional.collect(),
                taken: Vec::new(),
                separator: self.space,
                order: ItemOrder::Leading,
                min,
                max,
                demands: array.demands.clone(),
            }));
        }
        self.writer.builder.choice(ways)
    }

    /// Returns an item of an array in its frame.
    fn item(&mut self, way: Way) -> ExprId {
        let open = self.writer.builder.marked(self.frame.item.unwrap_or_default());
        let value = self.value(way, None);
        self.writer.builder.seq([open, value])
    }

    fn unsupported(&mut self, message: impl Into<String>) {
        let goal = self.goal;
        self.writer.problem(ProblemKind::Unsupported, goal, message);
    }

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
        let mut properties = Vec::new();
        for property in &object.properties {
            if self.writer.is_over() {
                return None;
            }
            let ways = self.property_ways(property);
            if !ways.is_empty() {
                let required = property.required;
                properties.push(grammar::Property { ways, required });
            } else if property.required {
                return None;
            }
        }
        let additional = self.additional(object);
        let open = self.writer.builder.marked(self.frame.open);
        let separator = self.writer.builder.seq([self.space, open]);
        self.writer
            .some_of(object, properties, (additional, Vec::new()), separator)
    }

    fn property_ways(&mut self, property: &Property) -> Vec<grammar::Way> {
        let forms = self.writer.forms;
        let live: Vec<Way> = (property.ways.iter())
            .filter(|way| forms.is_live(way.goal))
            .copied()
            .collect();
        let name = match self.frame.after_key {
            AfterKey::Kind => escaped(&property.name),
            _ => property.name.to_string(),
        };
        if !live.is_empty() && !is_writable(&name, self.frame.after_key) {
            let name = &property.name;
            self.unsupported(format!(
                "the name {name:?} cannot be written in the frame of an argument"
            ));
            return Vec::new();
        }
        let key = self.writer.builder.bytes(&name);
        let item = |way: Way| {
            let value = self.value(way, Some(&name));
            grammar::Way {
                item: self.writer.builder.seq([key, value]),
                meets: way.meets,
            }
        };
        live.into_iter().map(item).collect()
    }

    /// Returns the arguments that the schema does not list.
    fn additional(&mut self, object: &Object) -> Vec<Additional> {
        let forms = self.writer.forms;
        let mut additional = Vec::new();
        for class in &object.additional {
            let live: Vec<Way> = (class.ways.iter())
                .filter(|way| forms.is_live(way.goal))
                .copied()
                .collect();
            if live.is_empty() || self.writer.is_over() {
                continue;
            }
            if matches!(self.frame.close, Close::Named(..)) {
                self.unsupported(
                    "keys that the schema does not list are not supported in this style of arguments",
                );
                break;
            }
            let key = Some(self.name(&class.key, object));
            for way in live {
                additional.push(Additional {
                    key,
                    item: self.value(way, Some("")),
                    meets: way.meets,
                });
            }
        }
        additional
    }

    /// Returns the names of a class that are not listed.
    fn name(&mut self, shape: &StringShape, object: &Object) -> RegularId {
        let mut parts = self.parts(shape);
        parts.push(Part::Match(hir::own_expression(NAMES)));
        let listed = object
            .properties
            .iter()
            .map(|property| hir::text(&*property.name));
        let listed: Vec<Hir> = listed.collect();
        if !listed.is_empty() {
            parts.push(Part::Not(hir::any(listed).into()));
        }
        self.writer.builder.add_regular(Regular::of(parts))
    }

    /// Returns the text after the name of an argument: what follows the name, the value, and the end. Items
    /// of arrays have no name.
    fn value(&mut self, way: Way, name: Option<&str>) -> ExprId {
        let normal = Rc::clone(&self.writer.forms.normals[way.goal.index()]);
        let is_free = normal.strings.iter().any(StringShape::is_any);
        let mut ways = Vec::new();
        let strings: Vec<(bool, ExprId)> = normal
            .strings
            .iter()
            .map(|shape| (shape.is_any(), self.string(shape)))
            .collect();
        for (is_any, string) in strings {
            ways.push(self.framed(ValueType::String, is_any, string, name));
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
            ways.push(self.framed(ValueType::Boolean, false, text, name));
        }
        if normal.null {
            let null = self.writer.builder.bytes("null");
            ways.push(self.framed(ValueType::Null, false, null, name));
        }
        for shape in normal.numbers.iter() {
            let number = self.writer.number(shape, way.goal);
            ways.push(self.framed(ValueType::Number, false, number, name));
        }
        if self.frame.item.is_some() {
            if !normal.arrays.is_empty() {
                let arrays = self.writer.piece(way.goal, Piece::ArgumentArrays);
                ways.push(self.framed(ValueType::Array, true, arrays, name));
            }
            if !normal.objects.is_empty() {
                let objects = self.writer.piece(way.goal, Piece::ArgumentObjects);
                ways.push(self.framed(ValueType::Object, true, objects, name));
            }
            return self.writer.builder.choice(ways);
        }
        for array in &normal.arrays {
            let array = self.writer.array(array);
            ways.push(self.framed(ValueType::Array, false, array, name));
        }
        for object in &normal.objects {
            let object = self.writer.object(object, way.goal);
            ways.push(self.framed(ValueType::Object, false, object, name));
        }
        self.writer.builder.choice(ways)
    }

    /// Returns a value with the texts around it. White space around a string that may be anything would be
    /// part of the string.
    fn framed(&mut self, kind: ValueType, is_bare: bool, value: ExprId, name: Option<&str>) -> ExprId {
        let after_key = self.after_key(kind, name.is_some());
        let close = match self.frame.close {
            Close::Text(text) => self.writer.builder.marked(text),
            Close::Named(before, after) => {
                let name = name.unwrap_or("item");
                self.writer.builder.marked(&format!("{before}</{name}{after}"))
            }
        };
        let is_bare = is_bare
            || matches!(self.frame.close, Close::Named(..))
            || kind == ValueType::String && self.frame.after_key == AfterKey::IsString;
        let parts = match is_bare {
            true => vec![after_key, value, close],
            false => vec![after_key, self.space, value, self.space, close],
        };
        self.writer.builder.seq(parts)
    }

    fn after_key(&mut self, kind: ValueType, has_name: bool) -> ExprId {
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
            AfterKey::Kind => {
                let quote = if has_name { "\"" } else { "" };
                builder.marked(&format!("{quote} type=\"{}\">", kind.kind()))
            }
        }
    }

    /// Returns the texts of a set of strings as they are, without the end of the frame in them.
    fn string(&mut self, shape: &StringShape) -> ExprId {
        if let Some(only) = &shape.only {
            let close = self.frame.close.mark();
            let only = self.writer.not_excluded(only);
            let texts = only.iter().filter(|text| !text.contains(close));
            let texts: Vec<ExprId> = texts.map(|text| self.writer.builder.bytes(&**text)).collect();
            return self.writer.builder.choice(texts);
        }
        let mut parts = self.parts(shape);
        let any = || hir::star(any_char());
        let with_close = hir::concat([any(), hir::text(self.frame.close.mark()), any()]);
        parts.push(Part::Not(with_close.into()));
        self.writer.regular(Regular::of(parts))
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
