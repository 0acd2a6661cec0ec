//! The format in which a model is held to write calls of tools: the frames of a family of models, from the
//! table of the library, or any of the frames that the service knows.
//!
//! ```text
//!   --tool-format auto ─► signs in the chat template ─► a name of the table, else any
//!   --tool-format NAME ─────────────────────────────► a name of the table ─► its frames
//! ```

use std::fmt;
use std::str::FromStr;

use lexiform_syntax::answer::{self, Frame};
use lexiform_syntax::suggest;
use lexiform_syntax::tags::{model_formats, recognised};

/// The word for recognising the format in the chat template.
const AUTO: &str = "auto";
/// The word for all frames.
const ANY: &str = "any";

/// The format in which a model is held to write calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolFormat {
    /// Any of the frames that the service knows.
    #[default]
    Any,
    /// The format of this name.
    Of(&'static str),
}

impl ToolFormat {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            ToolFormat::Any => ANY,
            ToolFormat::Of(name) => name,
        }
    }

    /// Returns the frames of the format; none for [`Any`](ToolFormat::Any).
    pub fn frames(self) -> &'static [Frame] {
        match self {
            ToolFormat::Any => &[],
            ToolFormat::Of(name) => answer::frames(name).unwrap_or_default(),
        }
    }
}

/// The choice of a format by the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolFormatChoice {
    /// The format that the chat template shows.
    Auto,
    /// This format.
    Fixed(ToolFormat),
}

impl ToolFormatChoice {
    /// Returns the format for a model with this chat template.
    pub fn with_template(self, template: Option<&str>) -> ToolFormat {
        match self {
            ToolFormatChoice::Fixed(format) => format,
            ToolFormatChoice::Auto => template
                .and_then(recognised)
                .map_or(ToolFormat::Any, ToolFormat::Of),
        }
    }
}

impl FromStr for ToolFormatChoice {
    type Err = UnknownToolFormat;

    fn from_str(text: &str) -> Result<Self, UnknownToolFormat> {
        if text == AUTO {
            return Ok(ToolFormatChoice::Auto);
        }
        if text == ANY {
            return Ok(ToolFormatChoice::Fixed(ToolFormat::Any));
        }
        let name = model_formats().find(|name| *name == text);
        let format = name.ok_or_else(|| UnknownToolFormat(text.to_owned()))?;
        Ok(ToolFormatChoice::Fixed(ToolFormat::Of(format)))
    }
}

/// A name that is no format of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownToolFormat(String);

impl fmt::Display for UnknownToolFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = || [AUTO, ANY].into_iter().chain(model_formats());
        match suggest::nearest(&self.0, names()) {
            Some(near) => write!(f, "there is no such format; did you mean `{near}`?"),
            None => {
                let all: Vec<&str> = names().collect();
                write!(f, "there is no such format; expected one of {}", all.join(", "))
            }
        }
    }
}

impl std::error::Error for UnknownToolFormat {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_table_is_a_choice() {
        for name in model_formats() {
            let choice: ToolFormatChoice = name.parse().expect(name);
            let format = choice.with_template(None);
            assert_eq!(format, ToolFormat::Of(name));
            assert!(!format.frames().is_empty(), "{name}");
        }
        let any = ToolFormatChoice::Fixed(ToolFormat::Any);
        assert_eq!("any".parse(), Ok(any));
        assert_eq!(
            any.with_template(Some("<tool_call>\\n<function=")),
            ToolFormat::Any
        );
        assert!(ToolFormat::Any.frames().is_empty());
    }

    #[test]
    fn a_name_that_is_none_is_an_error_with_the_nearest() {
        let error = |name: &str| name.parse::<ToolFormatChoice>().expect_err(name).to_string();
        assert!(error("qwen3_coder").contains("did you mean `qwen_3_coder`"));
        assert!(
            error("something_else").contains("auto, any, llama"),
            "{}",
            error("something_else")
        );
    }

    #[test]
    fn the_template_shows_the_format_unless_one_is_named() {
        let auto: ToolFormatChoice = "auto".parse().expect("a choice");
        assert_eq!(auto.with_template(None), ToolFormat::Any);
        assert_eq!(auto.with_template(Some("{{ messages }}")), ToolFormat::Any);
        let coder = "{{- '\\n<tool_call>\\n<function=' + tool_call.name + '>\\n' }}";
        assert_eq!(auto.with_template(Some(coder)), ToolFormat::Of("qwen_3_coder"));
        let fixed: ToolFormatChoice = "kimi".parse().expect("a choice");
        assert_eq!(fixed.with_template(Some(coder)), ToolFormat::Of("kimi"));
    }
}
