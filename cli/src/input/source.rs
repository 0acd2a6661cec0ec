//! Which constraint a command is about: a schema, a regular expression or a grammar, from the command line or
//! a file.
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
use lexiform::vocab::Vocabulary;
use lexiform::{Compiler, Source};
use lexiform_syntax::regex;
use lexiform_syntax::regex::Escapes;
use lexiform_syntax::{notation, schema};

use crate::failure::{Failure, read_text};
use crate::input::folder::{Case, Folder};
use crate::input::{stdin, tokenizer};

/// The constraint: one of the three, which the group [`KINDS`] of a command holds.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Constraint {
    /// A JSON Schema: a file, the schema itself, or `-` for standard input
    #[arg(long, short, value_name = "FILE|TEXT|-")]
    schema: Option<String>,
    /// A regular expression that whole texts match: the expression, `@FILE`, or `-` for standard input
    #[arg(long, short, value_name = "TEXT|@FILE|-", allow_hyphen_values = true)]
    regex: Option<String>,
    /// An EBNF grammar: a file, the grammar itself, `-` for standard input, or a folder with a grammar.ebnf,
    /// an accept.txt and a reject.txt
    #[arg(long, short, value_name = "FILE|TEXT|-|DIR")]
    grammar: Option<String>,
    /// The syntax of the regular expression
    #[arg(long, value_enum, default_value_t, requires = "regex")]
    dialect: Dialect,
}

/// The arguments of [`Constraint`] that exclude one another.
pub const KINDS: [&str; 3] = ["schema", "regex", "grammar"];

/// The syntax of a regular expression. In all of them the whole text has to match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    /// That of Rust's `regex`, which is much like RE2's
    #[default]
    Rust,
    /// That of JavaScript (ECMA-262, with the flag `u`), which JSON Schema's `pattern` uses
    Ecma,
    /// That of Python's module `re`
    Python,
}

impl Dialect {
    /// Its name in a request.
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

/// What a source means where its language leaves a choice.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Meaning {
    /// The order of an object's keys
    #[arg(long, value_enum, default_value_t)]
    pub key_order: KeyOrder,
    /// White space between the tokens of JSON; default: indented for mask, else flexible
    #[arg(long, value_enum)]
    pub whitespace: Option<Whitespace>,
    /// What a model writes where a schema leaves a choice
    #[command(flatten)]
    pub writing: Writing,
}

/// What a model writes under a schema where it leaves a choice. The defaults differ: `generate` and `mask`
/// are about what is written, the other commands about texts that are there.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Writing {
    /// Further keys of objects that list `properties` and say nothing of others; default: closed for generate
    /// and mask, else open
    #[arg(long, value_enum)]
    pub additional_properties: Option<AdditionalProperties>,
    /// The spellings of numbers; default: double for generate and mask, else any
    #[arg(long, value_enum)]
    pub numbers: Option<Numbers>,
}

/// What objects may hold that list their properties and say nothing of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AdditionalProperties {
    /// The keys that are listed
    Closed,
    /// Any further keys, as JSON Schema itself has it
    Open,
}

/// How numbers may be spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Numbers {
    /// As doubles: integers in at most 20 digits and nothing else, others with at most 17 significant digits
    /// and three digits of exponent
    Double,
    /// In all ways that JSON has
    Any,
}

impl Writing {
    /// Puts the choices into options.
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

    /// The choices that were made, as the fields of a request.
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

/// In which order the keys of an object may come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum KeyOrder {
    /// As `properties` lists them, the others after them
    #[default]
    Schema,
    /// In every order, as JSON Schema itself has it
    Any,
}

/// Where white space may stand in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Whitespace {
    /// A space, or a line break with as much indentation as the depth needs, where people and programs put
    /// some
    Indented,
    /// The same with up to 64 spaces or tabs of indentation
    Flexible,
    /// Nowhere
    Compact,
}

impl Meaning {
    /// The options of a compile, where what is not said is as the specification has it.
    pub fn options(&self) -> lexiform::Options {
        self.over(schema::Options::default())
    }

    /// The same where a model writes the texts.
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

    /// The same where texts are judged that others wrote: every spelling of a character counts, not only the
    /// one that we would write.
    pub fn options_for_judging(&self) -> lexiform::Options {
        let mut options = self.options();
        options.schema.escapes = Escapes::Any;
        options
    }
}

/// A source that was read and is ready to compile.
#[derive(Clone, Debug)]
pub struct Loaded {
    kind: SourceKind,
    dialect: Dialect,
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
    /// Reads the source, from where it lies.
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
            (_, _, Some(grammar)) => grammar_from(grammar)?,
            (None, None, None) => return Ok(None),
        };
        loaded.dialect = self.dialect;
        Ok(Some(loaded))
    }
}

impl Loaded {
    fn new(kind: SourceKind, text: String, file: Option<String>) -> Self {
        let (dialect, cases) = (Dialect::default(), Vec::new());
        Self {
            kind,
            dialect,
            text,
            file,
            cases,
        }
    }

    /// What this source is, for messages.
    pub fn name(&self) -> &'static str {
        match self.kind {
            SourceKind::Schema => "schema",
            SourceKind::Regex => "regex",
            SourceKind::Grammar => "grammar",
        }
    }

    /// The file it came from.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The texts that its folder has.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// Whether the texts of the source are JSON.
    pub fn is_schema(&self) -> bool {
        self.kind == SourceKind::Schema
    }

    /// Whether it is a grammar.
    pub fn is_grammar(&self) -> bool {
        self.kind == SourceKind::Grammar
    }

    /// Whether it is a regular expression, and in which syntax.
    pub fn dialect(&self) -> Option<Dialect> {
        (self.kind == SourceKind::Regex).then_some(self.dialect)
    }

    /// A vocabulary of bytes to judge texts with, and of the special tokens that a grammar names.
    ///
    /// # Errors
    /// Those of [`tokenizer::bytes_only`].
    pub fn vocabulary_of_bytes(&self) -> Result<Arc<Vocabulary>, Failure> {
        match self.kind {
            SourceKind::Grammar => tokenizer::bytes_and_specials_of(&self.text),
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
            SourceKind::Grammar => compiler.compile(Source::Ebnf(&self.text), options),
        }
    }

    /// Finds what is wrong with the source itself, whatever the vocabulary.
    ///
    /// # Errors
    /// All problems that its front end finds.
    pub fn check(&self, options: &lexiform::Options) -> Result<(), CompileError> {
        let limits = &options.limits;
        match self.kind {
            SourceKind::Schema => schema::lower(&self.text, &options.schema, limits).map(|_| ()),
            SourceKind::Regex => regex::lower_as(&self.text, self.dialect.into(), limits).map(|_| ()),
            SourceKind::Grammar => notation::ebnf::lower(&self.text, limits).map(|_| ()),
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

fn grammar_from(value: &str) -> Result<Loaded, Failure> {
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
    from_place(SourceKind::Grammar, value, "--grammar")
}

/// The source in a file or on standard input.
fn from_place(kind: SourceKind, value: &str, flag: &'static str) -> Result<Loaded, Failure> {
    if value == stdin::DASH {
        return Ok(Loaded::new(kind, stdin::text(flag)?, None));
    }
    let path = value.strip_prefix('@').unwrap_or(value);
    let text = read_text(Path::new(path))?;
    Ok(Loaded::new(kind, text, Some(path.to_owned())))
}
