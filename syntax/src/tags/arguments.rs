//! Arguments of calls, read from the styles of models and written in them.
//!
//! ```text
//!   <parameter=city>\nParis\n</parameter><parameter=days>3</parameter>
//!        │ scan: names and texts            plan: the normal forms of the schema
//!        ▼                                        │
//!   (city, "\nParis\n"), (days, "3") ── value ◄───┘ ──► {"city": "Paris", "days": 3}
//! ```
//!
//! This is the inverse of the lowering of arguments. Most styles do not say whether a value is a string, so
//! the schema decides: a text that the schema allows as a string is one, and any other text is JSON. Where
//! the schema allows any string, every text is a string, as in the grammar.

mod error;
mod guess;
mod plan;
mod scan;
mod value;
mod write;

use serde_json::Value;

use crate::schema::frame::Frame;
use crate::schema::{self, ArgumentStyle, Options};
use lexiform_automata::limits::Limits;

use plan::Plan;

pub use error::ArgumentError;
pub use guess::guessed_arguments;
pub use scan::ArgumentScanner;
pub use write::write_arguments;

/// A reader of the arguments of one tool.
#[derive(Clone, Debug)]
pub struct ArgumentReader {
    style: ArgumentStyle,
    /// The frame of an argument and the values that the schema allows; `None` if arguments are JSON.
    framed: Option<(Frame, Plan)>,
}

impl ArgumentReader {
    /// Creates the reader of arguments in this style that obey a schema. The options are those that the
    /// schema was lowered with.
    ///
    /// # Errors
    /// Fails if the schema does not compile.
    pub fn new(
        style: ArgumentStyle,
        schema: &str,
        options: &Options,
        limits: &Limits,
    ) -> Result<ArgumentReader, ArgumentError> {
        let Some(frame) = Frame::of(style) else {
            return Ok(ArgumentReader { style, framed: None });
        };
        let forms = schema::normal_forms(schema, options, limits).map_err(ArgumentError::Schema)?;
        Ok(ArgumentReader {
            style,
            framed: Some((frame, Plan::of(&forms, frame.item.is_some()))),
        })
    }

    /// Returns the memory of its machines for patterns, in bytes; the rest is about as large as the schema.
    pub fn memory_usage(&self) -> usize {
        self.framed.as_ref().map_or(0, |(_, plan)| plan.machine_bytes)
    }

    /// Returns the arguments that a text writes.
    ///
    /// # Errors
    /// Fails if the text is not in the style, or if its values are not those of the schema. Bounds on the
    /// number of arguments are not checked.
    pub fn read(&self, text: &str) -> Result<Value, ArgumentError> {
        match &self.framed {
            None => serde_json::from_str(text).map_err(|error| ArgumentError::Json(error.to_string())),
            Some((frame, plan)) => value::read(*frame, plan, &scan::items(*frame, text)?),
        }
    }

    /// Returns the arguments that a text writes, by the schema if they obey it, and otherwise as they
    /// [seem](guessed_arguments) to be; `None` if the text is not in the style.
    pub fn read_any(&self, text: &str) -> Option<Value> {
        let read = self.read(text).ok();
        read.or_else(|| guessed_arguments(self.style, text))
    }
}

/// Returns the arguments that a text writes in a style, by the schema of the tool.
///
/// The schema is lowered with the options for output of models. A program that reads many texts makes one
/// [`ArgumentReader`].
///
/// # Examples
///
/// ```
/// use lexiform::schema::ArgumentStyle;
/// use lexiform::tags::read_arguments;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}});
/// let text = "<parameter=city>\nParis\n</parameter>\n<parameter=days>3</parameter>";
/// let arguments = read_arguments(ArgumentStyle::QwenXml, &schema, text)?;
/// assert_eq!(arguments, json!({"city": "Paris", "days": 3}));
/// # Ok::<(), lexiform::tags::ArgumentError>(())
/// ```
///
/// # Errors
/// Fails if the schema does not compile, if the text is not in the style, or if its values are not those of
/// the schema.
pub fn read_arguments(style: ArgumentStyle, schema: &Value, text: &str) -> Result<Value, ArgumentError> {
    let (options, limits) = (Options::for_generation(), Limits::default());
    ArgumentReader::new(style, &schema.to_string(), &options, &limits)?.read(text)
}
