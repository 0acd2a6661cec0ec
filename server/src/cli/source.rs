//! Which constraint a command is about: a schema, a regular expression or a grammar, from the command line or a file.

use std::io::Read;
use std::path::Path;

use clap::ValueEnum;
use lexiform::compile::{self, Source};
use lexiform::regex::Escapes;
use lexiform::schema;

use crate::cli::failure::{Failure, read_text};

/// The constraint: exactly one of the three.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Constraint {
    /// A JSON Schema: a file, `-` for standard input, or the schema itself.
    #[arg(long, value_name = "FILE|TEXT")]
    schema: Option<String>,
    /// A regular expression that whole texts match.
    #[arg(long, value_name = "PATTERN")]
    regex: Option<String>,
    /// An EBNF grammar: a file, `-` for standard input, or the grammar itself.
    #[arg(long, value_name = "FILE|TEXT")]
    grammar: Option<String>,
}

/// What a source means where its language leaves a choice.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Meaning {
    /// The order of an object's keys: as `properties` lists them, or any.
    #[arg(long, value_enum, default_value_t)]
    pub key_order: KeyOrder,
    /// White space between the tokens of JSON: a little where people and programs put some, or none.
    #[arg(long, value_enum, default_value_t)]
    pub whitespace: Whitespace,
}

/// In which order the keys of an object may come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum KeyOrder {
    /// As `properties` lists them, the others after them.
    #[default]
    Schema,
    /// In every order, as JSON Schema itself has it.
    Any,
}

/// Where white space may stand in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Whitespace {
    /// A bounded amount between tokens.
    #[default]
    Flexible,
    /// Nowhere.
    Compact,
}

impl Meaning {
    /// The options of a compile.
    pub fn options(&self) -> compile::Options {
        let schema = schema::Options {
            key_order: match self.key_order {
                KeyOrder::Schema => schema::KeyOrder::Schema,
                KeyOrder::Any => schema::KeyOrder::Any,
            },
            whitespace: match self.whitespace {
                Whitespace::Flexible => schema::Whitespace::Flexible,
                Whitespace::Compact => schema::Whitespace::Compact,
            },
            ..schema::Options::default()
        };
        compile::Options {
            schema,
            ..compile::Options::default()
        }
    }

    /// The same where texts are judged that others wrote: every spelling of a character counts, not only the one
    /// that we would write.
    pub fn options_for_judging(&self) -> compile::Options {
        let mut options = self.options();
        options.schema.escapes = Escapes::Any;
        options
    }
}

/// A source that was read and is ready to compile.
#[derive(Debug)]
pub struct Loaded {
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Schema,
    Regex,
    Grammar,
}

impl Constraint {
    /// Reads the source, from where it lies.
    ///
    /// # Errors
    /// A file that was named cannot be read.
    pub fn load(&self) -> Result<Loaded, Failure> {
        let (kind, text) = match (&self.schema, &self.regex, &self.grammar) {
            (Some(schema), _, _) => (Kind::Schema, file_or_text(schema)?),
            (_, Some(regex), _) => (Kind::Regex, regex.clone()),
            (_, _, Some(grammar)) => (Kind::Grammar, file_or_text(grammar)?),
            // The parser of the command line demands one of them.
            (None, None, None) => return Err(Failure::message("name a schema, a regex or a grammar")),
        };
        Ok(Loaded { kind, text })
    }
}

impl Loaded {
    /// What this source is, for messages.
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Schema => "schema",
            Kind::Regex => "regex",
            Kind::Grammar => "grammar",
        }
    }

    /// Whether the texts of the source are JSON.
    pub fn is_schema(&self) -> bool {
        matches!(self.kind, Kind::Schema)
    }

    /// The source as the compiler takes it.
    pub fn source(&self) -> Source<'_> {
        match self.kind {
            Kind::Schema => Source::JsonSchema(&self.text),
            Kind::Regex => Source::Regex(&self.text),
            Kind::Grammar => Source::Ebnf(&self.text),
        }
    }
}

/// Names of files are short and exist; anything else is taken as the source itself. A schema or grammar that a
/// person types holds braces or `::=`, which no file of theirs is called.
fn file_or_text(value: &str) -> Result<String, Failure> {
    if value == "-" {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        return read.map(|_| text).map_err(|source| Failure::Read {
            path: "standard input".into(),
            source,
        });
    }
    let looks_like_a_path = !value.contains(['{', '=', '\n']) && !matches!(value, "true" | "false");
    if looks_like_a_path {
        read_text(Path::new(value))
    } else {
        Ok(value.to_owned())
    }
}
