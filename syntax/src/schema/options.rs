//! The options of a compilation: the spelling of JSON, and the meaning of a schema where it is open.
//!
//! # Why the order of keys is the order of reading
//!
//! [`KeyOrder::Schema`] takes the keys of several `properties` in the order in which they are read.
//! Interleaving them would accept two more schemas of MaskBench, but every object would need a choice between
//! all orders.

use crate::regex::Escapes;

use super::draft::Draft;

/// The spelling of JSON, and the meaning of a schema where it is open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The order of the keys of an object.
    pub key_order: KeyOrder,
    /// The allowed white space.
    pub whitespace: Whitespace,
    /// The allowed spellings of the characters of strings.
    pub escapes: Escapes,
    /// The allowed spellings of numbers.
    pub numbers: Numbers,
    /// The further keys allowed in an object whose schema lists properties and does not mention others.
    pub additional_properties: AdditionalProperties,
    /// The draft of a schema without `$schema`. `None` is 2020-12 plus the older spellings of keywords.
    pub draft: Option<Draft>,
    /// The effect of `format`.
    pub formats: Formats,
    /// The documents that references may name: pairs of a URI and a JSON text. Nothing is ever fetched.
    pub documents: Vec<(String, String)>,
    /// The schemas that are refused although they can be compiled.
    pub refuse: Refuse,
    /// How the properties of the outermost object are written: as JSON, or as the arguments of a call in the
    /// format of a model.
    pub arguments: ArgumentStyle,
    /// The texts that no string and no unlisted key contains.
    pub excludes: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            key_order: KeyOrder::Schema,
            whitespace: Whitespace::Flexible,
            escapes: Escapes::Minimal,
            numbers: Numbers::Any,
            additional_properties: AdditionalProperties::Specified,
            draft: None,
            formats: Formats::Assert,
            documents: Vec::new(),
            refuse: Refuse::Nothing,
            arguments: ArgumentStyle::Json,
            excludes: Vec::new(),
        }
    }
}

/// The schemas that are refused although they can be compiled. Problems that are not refused are reported as
/// findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Refuse {
    /// Refuses no schema.
    #[default]
    Nothing,
    /// Refuses schemas with a keyword that has no effect but was [meant to have
    /// one](crate::schema::is_lost_assertion). This is `strict` in the API, on the command line and in
    /// Python.
    Ineffective,
    /// Refuses schemas that are not enforced exactly. In addition to `Ineffective`, these are schemas for
    /// which fewer values are allowed than they say (see [`report`](crate::schema::report())), and schemas
    /// with an unknown `format`. Restricted spellings are no reason, since every integer would be one. This
    /// is `exact` on the command line and in Python.
    Inexact,
}

impl Options {
    /// Returns the options for output that models write: closed objects, numbers as programs write them, and
    /// no more white space than an indentation.
    ///
    /// A model that may add a key to an object often keeps adding keys until its token limit, and the digits
    /// of a number need not end either. The service, the command line, the bindings and the plug-ins start
    /// from these options; the [default](Options::default) follows the specification.
    pub fn for_generation() -> Options {
        Options {
            whitespace: Whitespace::Indented,
            numbers: Numbers::Double,
            additional_properties: AdditionalProperties::Closed,
            ..Options::default()
        }
    }
}

/// The further keys allowed in an object whose schema lists properties and does not mention others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdditionalProperties {
    /// Any further keys, as the specification says.
    Specified,
    /// No further keys.
    ///
    /// An object is closed if, after references, `allOf` and the chosen branches are combined, some
    /// `properties` applies to it, and neither `additionalProperties`, `unevaluatedProperties` nor
    /// `propertyNames` does. Its keys are then the ones that any of its `properties` lists, the ones that
    /// match its `patternProperties`, and the ones that `required`, `dependentRequired` or a condition names.
    /// An object that would have no value if it were closed, because `minProperties` requires more keys than
    /// there are, stays open.
    Closed,
}

/// The allowed spellings of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// All spellings of JSON, as far as they can be distinguished.
    Any,
    /// The spellings that programs write for doubles: integers in digits only (`34`, never `34.0`, `34e0` or
    /// `-0`) and at most 20 of them, other numbers in at most 17 significant digits and three digits of
    /// exponent.
    ///
    /// This excludes no 64-bit integer, and no number that a double can represent. Constants are written in
    /// all their digits. Bounds beyond the precision of a double allow as many digits as they need.
    Double,
}

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
    /// Cohere: `<cofl:value name="city" type="raw">Paris</cofl:value>`, where inner objects and arrays
    /// consist of such values, too. Items of arrays have no name.
    CohereXml,
    /// MiniMax M3: `]<]minimax[>[<city>Paris]<]minimax[>[</city>`, where inner objects and arrays consist of
    /// such elements, too. The elements of arrays are called `item`.
    MinimaxM3Xml,
}

impl ArgumentStyle {
    /// All styles.
    pub const ALL: [ArgumentStyle; 9] = [
        ArgumentStyle::Json,
        ArgumentStyle::QwenXml,
        ArgumentStyle::MinimaxXml,
        ArgumentStyle::DeepseekXml,
        ArgumentStyle::DeepseekV41Xml,
        ArgumentStyle::GlmXml,
        ArgumentStyle::KimiK3Xml,
        ArgumentStyle::CohereXml,
        ArgumentStyle::MinimaxM3Xml,
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
            ArgumentStyle::CohereXml => "cohere_xml",
            ArgumentStyle::MinimaxM3Xml => "minimax_m3_xml",
        }
    }

    /// Returns the style with this name.
    pub fn named(name: &str) -> Option<ArgumentStyle> {
        ArgumentStyle::ALL
            .into_iter()
            .find(|style| style.as_str() == name)
    }
}

/// The order in which the keys of an object are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyOrder {
    /// The order of the schema. Optional keys may be left out, and keys that the schema does not list come
    /// last.
    ///
    /// This is the order in which the keys of `properties` occur when the schema is read from the top,
    /// keyword by keyword as they are written; the targets of `$ref` and the branches of `allOf` are read in
    /// place. The chosen branches of `anyOf` and `oneOf` are read at the end of the schema that contains
    /// them; `if` and `dependent…`, which mostly mention the same keys again, are read at the very end. Keys
    /// that only `required` or an `enum` of `propertyNames` names come after those, in that order, followed
    /// by all further keys in any order.
    Schema,
    /// Any order, as the specification says.
    Any,
}

/// The effect of `format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Formats {
    /// Strings must have the format.
    Assert,
    /// None: this is the default of the specification.
    Annotate,
}

/// The white space that is allowed between the tokens of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whitespace {
    /// None, or one space after `:` and `,`, or line breaks with a bounded indentation. It is never
    /// unbounded: models get stuck in loops of white space.
    Flexible,
    /// Like `Flexible`, but with no more indentation than the depth needs: up to eight spaces or tabs for
    /// each open bracket, and 64 where values may nest without end.
    Indented,
    /// None at all.
    Compact,
    /// Text that matches this regular expression (in the syntax of Rust's `regex`), after `{ [ , :` and
    /// before `] }`. Empty objects and arrays are always `{}` and `[]`.
    Pattern(String),
}
