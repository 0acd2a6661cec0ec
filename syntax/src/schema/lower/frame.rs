//! The frames of arguments: the texts that the styles of models have around names and values, as data.

use crate::schema::options::ArgumentStyle;

/// The characters that no name of an argument can contain, because they could end its frame.
const NOT_IN_NAMES: [char; 6] = ['<', '>', '"', '&', '\n', '\r'];

/// The texts around the name and the value of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The text before the name.
    pub(crate) open: &'static str,
    /// The text between the name and the value.
    pub(crate) after_key: AfterKey,
    /// The text after the value.
    pub(crate) close: Close,
    /// The text before an item of an array, if inner values are written in frames, too.
    pub(crate) item: Option<&'static str>,
    /// `true` if models write a line break before and after every value, which is part of no string.
    pub(crate) has_lines: bool,
}

/// The text after the value of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Close {
    /// This text.
    Text(&'static str),
    /// These texts, with the name between them. No string contains the first of them.
    Named(&'static str, &'static str),
}

impl Close {
    /// Returns the text that no string contains.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Close::Text(text) | Close::Named(text, _) => text,
        }
    }
}

/// The text before each name of [`ArgumentStyle::MinimaxM3Xml`], and before each end.
const M3: &str = "]<]minimax[>[";

impl Frame {
    /// Returns the frame of an argument, or `None` for JSON.
    pub(crate) fn of(style: ArgumentStyle) -> Option<Frame> {
        let frame = |open, after_key, close| Frame {
            open,
            after_key,
            close: Close::Text(close),
            item: None,
            has_lines: false,
        };
        Some(match style {
            ArgumentStyle::Json => return None,
            ArgumentStyle::QwenXml => Frame {
                has_lines: true,
                ..frame("<parameter=", AfterKey::Text(">"), "</parameter>")
            },
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
            ArgumentStyle::CohereXml => Frame {
                item: Some("<cofl:value"),
                ..frame("<cofl:value name=\"", AfterKey::Kind, "</cofl:value>")
            },
            ArgumentStyle::MinimaxM3Xml => Frame {
                open: "]<]minimax[>[<",
                after_key: AfterKey::Text(">"),
                close: Close::Named(M3, ">"),
                item: Some("]<]minimax[>[<item"),
                has_lines: false,
            },
        })
    }
}

/// The text between the name of an argument and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterKey {
    /// This text.
    Text(&'static str),
    /// These texts, with white space between them.
    Texts(&'static str, &'static str),
    /// `" string="true">` before strings, which then have no white space around them, and `" string="false">`
    /// before other values.
    IsString,
    /// `" type="` and the name of the type of the value, then `"<|sep|>`.
    Type,
    /// `" type="` and the kind of the value (`raw`, `json`, `list`, `dict`), then `">`. Items of arrays have
    /// the same without the first quote.
    Kind,
}

impl AfterKey {
    /// Returns `true` if the text says whether the value is a string.
    pub(crate) fn tells_strings(self) -> bool {
        matches!(self, AfterKey::IsString | AfterKey::Type | AfterKey::Kind)
    }
}

/// The type of the value of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

impl ValueType {
    /// Returns the name of the type in JSON Schema.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ValueType::Null => "null",
            ValueType::Boolean => "boolean",
            ValueType::Number => "number",
            ValueType::String => "string",
            ValueType::Array => "array",
            ValueType::Object => "object",
        }
    }

    /// Returns the kind of the value in [`ArgumentStyle::CohereXml`].
    pub(crate) fn kind(self) -> &'static str {
        match self {
            ValueType::String => "raw",
            ValueType::Array => "list",
            ValueType::Object => "dict",
            ValueType::Null | ValueType::Boolean | ValueType::Number => "json",
        }
    }
}

/// Returns a name with the signs of markup as entities.
pub(crate) fn escaped(name: &str) -> String {
    let entities = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;")];
    let replace = |name: String, (sign, entity): (&str, &str)| name.replace(sign, entity);
    entities.into_iter().fold(name.to_owned(), replace)
}

/// Returns the name whose signs of markup were written as entities; see [`escaped`].
pub(crate) fn unescaped(name: &str) -> String {
    let entities = [("&quot;", "\""), ("&gt;", ">"), ("&lt;", "<"), ("&amp;", "&")];
    let replace = |name: String, (entity, sign): (&str, &str)| name.replace(entity, sign);
    entities.into_iter().fold(name.to_owned(), replace)
}

/// Returns `true` if a name can be written before the value of an argument.
pub(crate) fn is_writable(name: &str, after_key: AfterKey) -> bool {
    let is_escaped = after_key == AfterKey::Kind;
    !name.is_empty() && !name.contains('\0') && (is_escaped || !name.contains(NOT_IN_NAMES))
}
