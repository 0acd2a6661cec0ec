//! The styles in which models write the arguments of a call.
//!
//! ```text
//!   json        {"city": "Paris", "days": 3}
//!   qwen_xml    <parameter=city>Paris</parameter><parameter=days>3</parameter>
//!   glm_xml     <arg_key>city</arg_key><arg_value>Paris</arg_value><arg_key>days</arg_key><arg_value>3</arg_value>
//! ```
//!
//! Each property of the outermost object is written in a frame. Strings are written in it as they are, without
//! quotes and escapes, and contain no text that ends the frame; all other values are JSON. The names of the
//! styles are those of xgrammar.

/// How the properties of an object are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArgumentStyle {
    /// As a JSON object.
    #[default]
    Json,
    /// Qwen3-Coder, Qwen3.5, MiMo: `<parameter=city>Paris</parameter>`.
    QwenXml,
    /// MiniMax M2: `<parameter name="city">Paris</parameter>`.
    MinimaxXml,
    /// DeepSeek V3.2 and V4: `<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>`.
    DeepseekXml,
    /// DeepSeek V4.1: the same with a space after each `｜DSML｜`.
    DeepseekV41Xml,
    /// GLM 4.5 to 4.7: `<arg_key>city</arg_key><arg_value>Paris</arg_value>`.
    GlmXml,
    /// Kimi K3: `<|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|>`.
    KimiK3Xml,
}

impl ArgumentStyle {
    /// All styles.
    pub const ALL: [ArgumentStyle; 7] = [
        ArgumentStyle::Json,
        ArgumentStyle::QwenXml,
        ArgumentStyle::MinimaxXml,
        ArgumentStyle::DeepseekXml,
        ArgumentStyle::DeepseekV41Xml,
        ArgumentStyle::GlmXml,
        ArgumentStyle::KimiK3Xml,
    ];

    /// Returns the name of the style in structural tags.
    pub fn as_str(self) -> &'static str {
        match self {
            ArgumentStyle::Json => "json",
            ArgumentStyle::QwenXml => "qwen_xml",
            ArgumentStyle::MinimaxXml => "minimax_xml",
            ArgumentStyle::DeepseekXml => "deepseek_xml",
            ArgumentStyle::DeepseekV41Xml => "deepseek_v4_1_xml",
            ArgumentStyle::GlmXml => "glm_xml",
            ArgumentStyle::KimiK3Xml => "kimi_k3_xml",
        }
    }

    /// Returns the style with this name.
    pub fn named(name: &str) -> Option<ArgumentStyle> {
        ArgumentStyle::ALL
            .into_iter()
            .find(|style| style.as_str() == name)
    }

    /// Returns the frame of an argument, or `None` for JSON.
    pub(super) fn frame(self) -> Option<Frame> {
        let frame = |open, after_key, close| Frame {
            open,
            after_key,
            close,
        };
        Some(match self {
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
