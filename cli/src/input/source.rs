//! The constraint of a command: a schema, a regular expression or a grammar, from the command line or a file.
//!
//! ```text
//!   -             standard input
//!   @FILE         a file, whatever its name
//!   FILE or TEXT  a schema is a text if it begins as one does; a grammar is a file if there is one of this name;
//!                 a regular expression is always a text
//! ```

use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use lexiform::Grammar;
use lexiform::error::{CompileError, Diagnostics};
use lexiform::grammar::{GrammarOptions, Notation};
use lexiform::vocab::Vocabulary;
use lexiform::{Compiler, Source};
use lexiform_syntax::regex;
use lexiform_syntax::{notation, schema};

use crate::failure::{Failure, read_text};
use crate::input::folder::{Case, Folder};
use crate::input::{stdin, tokenizer};

/// The constraint: exactly one of the three, which the group [`KINDS`] of a command enforces.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Constraint {
    /// A JSON Schema: a file, the schema itself, or `-` for standard input
    #[arg(long, short, value_name = "FILE|TEXT|-")]
    schema: Option<String>,
    /// A regular expression that whole texts match: the expression, `@FILE`, or `-` for standard input
    #[arg(long, short, value_name = "TEXT|@FILE|-", allow_hyphen_values = true)]
    regex: Option<String>,
    /// A grammar: a file, the grammar itself, `-` for standard input, or a folder with a grammar.ebnf, an
    /// accept.txt and a reject.txt
    #[arg(long, short, value_name = "FILE|TEXT|-|DIR")]
    grammar: Option<String>,
    /// The syntax of the regular expression
    #[arg(long, value_enum, default_value_t, requires = "regex")]
    dialect: Dialect,
    /// The notation of the grammar; that of a file is known by its ending, and others are recognised
    #[arg(long, value_parser = notation_named, requires = "grammar")]
    notation: Option<Notation>,
}

/// Returns the notation of this name, for an argument.
///
/// # Errors
/// There is none.
pub fn notation_named(name: &str) -> Result<Notation, String> {
    name.parse()
}

/// The arguments of [`Constraint`] that exclude each other.
pub const KINDS: [&str; 3] = ["schema", "regex", "grammar"];

/// The syntax of a regular expression. In every syntax the whole text has to match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    /// The syntax of Rust's `regex`, which is similar to RE2's
    #[default]
    Rust,
    /// The syntax of JavaScript (ECMA-262, with the flag `u`), which JSON Schema's `pattern` uses
    Ecma,
    /// The syntax of Python's `re` module
    Python,
}

impl Dialect {
    /// Returns its name in a request.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Ecma => "ecma",
            Self::Python => "python",
        }
    }
}

impl From<Dialect> for regex::Dialect {
    fn from(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Rust => Self::Rust,
            Dialect::Ecma => Self::Ecma,
            Dialect::Python => Self::Python,
        }
    }
}

/// The interpretation of a source where its language leaves a choice.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Meaning {
    /// The order of an object's keys
    #[arg(long, value_enum, default_value_t)]
    pub key_order: KeyOrder,
    /// White space between the tokens of JSON; default: indented for mask, else flexible
    #[arg(long, value_enum)]
    pub whitespace: Option<Whitespace>,
    /// The choices of a model where a schema leaves any
    #[command(flatten)]
    pub writing: Writing,
}

/// The choices that a model makes where a schema leaves any. The defaults differ: `generate` and `mask`
/// concern text to be written, the other commands existing text.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Writing {
    /// Further keys of objects that list `properties` and do not mention others; default: closed for generate
    /// and mask, else open
    #[arg(long, value_enum)]
    pub additional_properties: Option<AdditionalProperties>,
    /// The spellings of numbers; default: double for generate and mask, else any
    #[arg(long, value_enum)]
    pub numbers: Option<Numbers>,
}

/// The keys of objects that list their properties and do not mention others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AdditionalProperties {
    /// Only the listed keys
    Closed,
    /// Any further keys, as in JSON Schema itself
    Open,
}

/// The spellings of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Numbers {
    /// As doubles: integers in at most 20 digits and nothing else, others with at most 17 significant digits
    /// and three digits of exponent
    Double,
    /// Every spelling that JSON allows
    Any,
}

impl Writing {
    /// Copies the choices into options.
    fn settle(self, options: &mut schema::Options) {
        if let Some(objects) = self.additional_properties {
            options.additional_properties = match objects {
                AdditionalProperties::Closed => schema::AdditionalProperties::Closed,
                AdditionalProperties::Open => schema::AdditionalProperties::Specified,
            };
        }
        if let Some(numbers) = self.numbers {
            options.numbers = match numbers {
                Numbers::Double => schema::Numbers::Double,
                Numbers::Any => schema::Numbers::Any,
            };
        }
    }

    /// Returns the choices that were made, as the fields of a request.
    pub fn fields(self) -> impl Iterator<Item = (&'static str, String)> {
        let name = |value: Option<clap::builder::PossibleValue>| Some(value?.get_name().to_owned());
        let objects = name(
            self.additional_properties
                .and_then(|chosen| chosen.to_possible_value()),
        );
        let numbers = name(self.numbers.and_then(|chosen| chosen.to_possible_value()));
        let fields = [("additional_properties", objects), ("numbers", numbers)];
        fields
            .into_iter()
            .filter_map(|(field, value)| Some((field, value?)))
    }
}

/// The order in which the keys of an object may come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum KeyOrder {
    /// In the order of `properties`, followed by the others
    #[default]
    Schema,
    /// In any order, as in JSON Schema itself
    Any,
}

/// The places where white space may occur in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Whitespace {
    /// A space, or a line break with as much indentation as the depth requires, where people and programs
    /// usually put it
    Indented,
    /// As indented, with up to 64 spaces or tabs of indentation
    Flexible,
    /// No white space
    Compact,
}

impl Meaning {
    /// Returns the options of a compile. Choices that were not made follow the specification.
    pub fn options(&self) -> lexiform::Options {
        self.over(schema::Options::default())
    }

    /// Returns the options for texts that a model writes.
    pub fn options_for_writing(&self) -> lexiform::Options {
        self.over(schema::Options::for_generation())
    }

    fn over(&self, usual: schema::Options) -> lexiform::Options {
        let mut schema = schema::Options {
            key_order: match self.key_order {
                KeyOrder::Schema => schema::KeyOrder::Schema,
                KeyOrder::Any => schema::KeyOrder::Any,
            },
            ..usual
        };
        if let Some(whitespace) = self.whitespace {
            schema.whitespace = match whitespace {
                Whitespace::Indented => schema::Whitespace::Indented,
                Whitespace::Flexible => schema::Whitespace::Flexible,
                Whitespace::Compact => schema::Whitespace::Compact,
            };
        }
        self.writing.settle(&mut schema);
        lexiform::Options {
            schema,
            ..lexiform::Options::default()
        }
    }

    /// Returns the options for judging texts of other writers: every spelling of a character counts, not only
    /// the one that Lexiform would write.
    pub fn options_for_judging(&self) -> lexiform::Options {
        let usual = lexiform::Options::for_judging();
        lexiform::Options {
            limits: usual.limits,
            ..self.over(usual.schema)
        }
    }
}

/// A source that was read and is ready to compile.
#[derive(Clone, Debug)]
pub struct Loaded {
    kind: SourceKind,
    dialect: Dialect,
    notation: Option<Notation>,
    text: String,
    file: Option<String>,
    cases: Vec<Case>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SourceKind {
    Schema,
    Regex,
    Grammar,
}

impl Constraint {
    /// Reads the source, from the command line, a file or standard input.
    ///
    /// # Errors
    /// A file that was named cannot be read, or there is no source.
    pub fn load(&self) -> Result<Loaded, Failure> {
        self.load_if_given()?
            .ok_or_else(|| Failure::message("name a schema, a regex or a grammar"))
    }

    /// Reads the source, if one is named.
    ///
    /// # Errors
    /// A file that was named cannot be read.
    pub fn load_if_given(&self) -> Result<Option<Loaded>, Failure> {
        let mut loaded = match (&self.schema, &self.regex, &self.grammar) {
            (Some(schema), _, _) => schema_from(schema)?,
            (_, Some(regex), _) => regex_from(regex)?,
            (_, _, Some(grammar)) => grammar_from(grammar, "--grammar")?,
            (None, None, None) => return Ok(None),
        };
        loaded.dialect = self.dialect;
        loaded.notation = self.notation.or_else(|| loaded.notation_of_file());
        Ok(Some(loaded))
    }
}

impl Loaded {
    /// Reads a grammar: a file, the grammar itself, standard input for the argument of this name, or that of
    /// a folder. Its notation is known by the ending of its file if it is not named.
    ///
    /// # Errors
    /// A file that was named cannot be read.
    pub fn grammar(value: &str, notation: Option<Notation>, flag: &'static str) -> Result<Self, Failure> {
        let mut loaded = grammar_from(value, flag)?;
        loaded.notation = notation.or_else(|| loaded.notation_of_file());
        Ok(loaded)
    }

    fn new(kind: SourceKind, text: String, file: Option<String>) -> Self {
        let (dialect, cases) = (Dialect::default(), Vec::new());
        Self {
            kind,
            dialect,
            notation: None,
            text,
            file,
            cases,
        }
    }

    /// Returns the notation that the ending of the file names.
    fn notation_of_file(&self) -> Option<Notation> {
        let ending = self.file.as_ref()?.rsplit_once('.')?.1;
        // Both dialects of Lark have this ending, and are told apart by their signs.
        let known = ending.parse().ok();
        known.filter(|notation| !matches!(notation, Notation::Lark | Notation::Llguidance))
    }

    /// Returns the notation of a grammar, if it is known; `None` for other sources.
    pub fn notation(&self) -> Option<Notation> {
        self.notation.filter(|_| self.is_grammar())
    }

    fn grammar_options(&self) -> GrammarOptions {
        GrammarOptions {
            notation: self.notation,
            ..GrammarOptions::default()
        }
    }

    /// Returns the kind of the source, for messages.
    pub fn name(&self) -> &'static str {
        match self.kind {
            SourceKind::Schema => "schema",
            SourceKind::Regex => "regex",
            SourceKind::Grammar => "grammar",
        }
    }

    /// Returns the file it came from.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Returns its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the texts of its folder.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// Returns `true` if the texts of the source are JSON.
    pub fn is_schema(&self) -> bool {
        self.kind == SourceKind::Schema
    }

    /// Returns `true` if it is a grammar.
    pub fn is_grammar(&self) -> bool {
        self.kind == SourceKind::Grammar
    }

    /// Returns the syntax of a regular expression; `None` for other sources.
    pub fn dialect(&self) -> Option<Dialect> {
        (self.kind == SourceKind::Regex).then_some(self.dialect)
    }

    /// Creates a vocabulary of bytes to judge texts with, and of the special tokens that a grammar names.
    ///
    /// # Errors
    /// The errors of [`tokenizer::bytes_only`].
    pub fn vocabulary_of_bytes(&self) -> Result<Arc<Vocabulary>, Failure> {
        match self.kind {
            SourceKind::Grammar => tokenizer::bytes_and_specials_of(&self.text, &self.grammar_options()),
            SourceKind::Schema | SourceKind::Regex => tokenizer::bytes_only(),
        }
    }

    /// Compiles the source.
    ///
    /// # Errors
    /// All problems of the source.
    pub fn compile(
        &self,
        vocabulary: &Arc<Vocabulary>,
        options: &lexiform::Options,
    ) -> Result<(Grammar, Diagnostics), CompileError> {
        let compiler = Compiler::new(vocabulary.clone());
        match self.kind {
            SourceKind::Schema => compiler.compile(Source::JsonSchema(&self.text), options),
            SourceKind::Regex => {
                let regex = self.dialect.into();
                let options = lexiform::Options {
                    regex,
                    ..options.clone()
                };
                compiler.compile(Source::Regex(&self.text), &options)
            }
            SourceKind::Grammar => {
                let options = lexiform::Options {
                    grammar: self.grammar_options(),
                    ..options.clone()
                };
                compiler.compile(Source::Grammar(&self.text), &options)
            }
        }
    }

    /// Checks the source itself, independently of the vocabulary.
    ///
    /// # Errors
    /// All problems that its front end finds.
    pub fn check(&self, options: &lexiform::Options) -> Result<(), CompileError> {
        let limits = &options.limits;
        match self.kind {
            SourceKind::Schema => schema::lower(&self.text, &options.schema, limits).map(|_| ()),
            SourceKind::Regex => regex::lower_as(&self.text, self.dialect.into(), limits).map(|_| ()),
            SourceKind::Grammar => {
                let options = (self.grammar_options(), &options.schema);
                notation::lower(&self.text, &options.0, options.1, limits).map(|_| ())
            }
        }
    }
}

fn schema_from(value: &str) -> Result<Loaded, Failure> {
    let is_text =
        value.trim_start().starts_with(['{', '[', '"']) || matches!(value.trim(), "true" | "false" | "");
    if is_text {
        return Ok(Loaded::new(SourceKind::Schema, value.to_owned(), None));
    }
    let name = |failure: Failure| match failure {
        Failure::Read { path, source } if !path.exists() => {
            let reason = crate::failure::reason(&source);
            let path = path.display();
            Failure::message(format!(
                "cannot read {path}: {reason} (a schema itself begins with '{{')"
            ))
        }
        other => other,
    };
    from_place(SourceKind::Schema, value, "--schema").map_err(name)
}

fn regex_from(value: &str) -> Result<Loaded, Failure> {
    if value == stdin::DASH || value.starts_with('@') {
        let mut loaded = from_place(SourceKind::Regex, value, "--regex")?;
        if loaded.text.ends_with('\n') {
            loaded.text.pop();
        }
        return Ok(loaded);
    }
    if Path::new(value).is_file() {
        eprintln!("note: {value:?} is taken as the expression; --regex @{value} reads the file of this name");
    }
    Ok(Loaded::new(SourceKind::Regex, value.to_owned(), None))
}

fn grammar_from(value: &str, flag: &'static str) -> Result<Loaded, Failure> {
    let path = Path::new(value.strip_prefix('@').unwrap_or(value));
    if path.is_dir() {
        let folder = Folder::read(path)?;
        let file = Some(folder.grammar.display().to_string());
        let mut loaded = Loaded::new(SourceKind::Grammar, folder.source, file);
        loaded.cases = folder.cases;
        return Ok(loaded);
    }
    let is_text = value.contains(['=', ':', '\n']) || value.trim().is_empty();
    if is_text && !value.starts_with('@') && !path.is_file() {
        return Ok(Loaded::new(SourceKind::Grammar, value.to_owned(), None));
    }
    from_place(SourceKind::Grammar, value, flag)
}

/// Reads the source from a file or standard input.
fn from_place(kind: SourceKind, value: &str, flag: &'static str) -> Result<Loaded, Failure> {
    if value == stdin::DASH {
        return Ok(Loaded::new(kind, stdin::text(flag)?, None));
    }
    let path = value.strip_prefix('@').unwrap_or(value);
    let text = read_text(Path::new(path))?;
    Ok(Loaded::new(kind, text, Some(path.to_owned())))
}
