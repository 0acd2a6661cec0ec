//! The main flow: from a source through a grammar to a machine that computes masks.
//!
//! ```text
//!   Compiler ─ one vocabulary and the tables that all its grammars share
//!      └─ compile(Source, Options) ─► Grammar + Diagnostics   or   every problem of the source, each with its place
//! ```

use std::sync::Arc;

use lexiform_automata::error::{CompileError, Diagnostics, Place, Problem, ProblemKind};
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::Limits;
use lexiform_automata::mask::Tables;
use lexiform_automata::matcher::Grammar;
use lexiform_automata::vocab::Vocabulary;
use lexiform_syntax::notation::{self, GrammarOptions, choice, ebnf};
use lexiform_syntax::regex;
use lexiform_syntax::schema;
use lexiform_syntax::tags::{self, ContentKind};

/// The source of a grammar. Sources are texts, so that errors can name a place in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source<'a> {
    /// A JSON Schema; the language is the JSON texts that it accepts.
    JsonSchema(&'a str),
    /// A regular expression that must match the whole text, in the dialect that the options select.
    Regex(&'a str),
    /// A grammar in EBNF; see [`notation::ebnf`](lexiform_syntax::notation::ebnf) for the notation.
    Ebnf(&'a str),
    /// A grammar in the notation that [`Options::grammar`] names, or in one that is recognised; see
    /// [`Notation`](lexiform_syntax::notation::Notation).
    Grammar(&'a str),
    /// A structural tag in JSON; see [`tags`] for the supported formats.
    StructuralTag(&'a str),
    /// A list of texts, any one of which is the whole text.
    Choice(&'a [String]),
    /// Everything that the model can write: any bytes, with special tokens between them. With
    /// [`Options::prefix`], this is the text that may follow a prompt that was
    /// [healed](lexiform_automata::vocab::Vocabulary::heal).
    Any,
}

impl Source<'_> {
    /// Returns the texts of the source: one, or all of a list; none for [`Any`](Source::Any).
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (text, list) = match self {
            Source::JsonSchema(text)
            | Source::Regex(text)
            | Source::Ebnf(text)
            | Source::Grammar(text)
            | Source::StructuralTag(text) => (Some(*text), &[][..]),
            Source::Choice(texts) => (None, *texts),
            Source::Any => (None, &[][..]),
        };
        text.into_iter().chain(list.iter().map(String::as_str))
    }
}

/// How a source is read, and the limits on its cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// How a JSON Schema is read, and how its JSON is written.
    pub schema: schema::Options,
    /// The dialect of a regular expression as a source; `pattern` in a schema is always ECMA-262.
    pub regex: regex::Dialect,
    /// How a grammar is read.
    pub grammar: GrammarOptions,
    /// Bytes that precede every text of the source; empty if there are none.
    ///
    /// For a prompt that was [healed](lexiform_automata::vocab::Vocabulary::heal), these are the bytes that
    /// were removed from it. Masks, budgets, forced text and drafts then apply to texts that begin with them:
    /// tokens may end inside them, at their end, or after it. Laws condition on them as on the rest of the
    /// grammar.
    pub prefix: Vec<u8>,
    /// The limits on the cost of the compilation.
    pub limits: Limits,
}

impl Options {
    /// Returns the options for output that models write; see [`schema::Options::for_generation`].
    pub fn for_generation() -> Options {
        Options {
            schema: schema::Options::for_generation(),
            ..Options::default()
        }
    }

    /// Returns the options for judging texts of other writers: every spelling of a value counts, not only the
    /// one that a model would write, and objects are as open as their schemas say.
    ///
    /// The limits are higher than usual: a character has up to twelve states in all its spellings, where it
    /// has one or two in its own.
    pub fn for_judging() -> Options {
        let mut options = Options::default();
        options.schema.escapes = regex::Escapes::Any;
        let limits = &mut options.limits;
        limits.regular_states *= SPELLINGS;
        limits.regular_bytes *= SPELLINGS;
        limits.rule_states *= SPELLINGS;
        limits.compile_bytes *= SPELLINGS;
        options
    }
}

/// The factor by which a schema may need more room if every spelling of its characters counts.
const SPELLINGS: usize = 8;

/// Compiles sources for one vocabulary. Cloning is cheap; the grammars of one compiler share everything that
/// does not depend on a grammar.
#[derive(Clone, Debug)]
pub struct Compiler {
    tables: Arc<Tables>,
}

/// The most memory that the shared tables of one vocabulary may take, in bytes.
const TABLE_BYTES: usize = 64 << 20;

/// Schemas that consist of common parts of schemas, each with a text of its language.
const PRIMERS: [(&str, &str); 6] = [
    ("true", r#"{"a":[1,"a",{"b":null}],"b":"\n","c":1.5e2}"#),
    (r#"{"type": ["integer", "boolean"]}"#, "12"),
    (
        r#"{"type": "string", "minLength": 1, "maxLength": 100}"#,
        r#""a""#,
    ),
    (
        r#"{"anyOf": [{"type": "integer", "minimum": 0}, {"type": "object", "properties": {"a": {"type": "integer",
        "minimum": 1}, "b": {"type": "number", "minimum": 0}}, "additionalProperties": {"type": "string"}}]}"#,
        r#"{"a":1,"b":2.5,"c":"d","e":"f"}"#,
    ),
    (
        r#"{"prefixItems": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"},
        {"type": "string", "format": "time"}, {"type": "string", "format": "email"},
        {"type": "string", "format": "uri"}, {"type": "string", "format": "uuid"},
        {"type": "string", "format": "ipv4"}]}"#,
        "[",
    ),
    // Draft 4 has its own spellings of integers.
    (
        r#"{"$schema": "http://json-schema.org/draft-04/schema#", "items": [{"type": "integer"},
        {"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 1}, {"type": ["number", "string"]}]}"#,
        "[1,2,3,4",
    ),
];

impl Compiler {
    /// Creates a compiler with empty tables.
    pub fn new(vocab: Arc<Vocabulary>) -> Compiler {
        Compiler {
            tables: Arc::new(Tables::new(vocab, TABLE_BYTES)),
        }
    }

    /// Returns a compiler whose tables already contain the parts of JSON under these options: the insides of
    /// strings, keys and numbers. Priming takes a fraction of a second, once per vocabulary, and pays off
    /// wherever schemas are compiled; it changes no mask.
    ///
    /// # Errors
    /// Returns an error if the options themselves cannot be compiled, such as an invalid pattern for white
    /// space.
    pub fn primed(&self, options: &Options) -> Result<Compiler, CompileError> {
        let options = &Options {
            prefix: Vec::new(),
            ..options.clone()
        };
        let learning = self.fresh();
        for (source, _) in PRIMERS {
            learning.primer(source, options)?;
        }
        // The factors of all states come first: masks use what is known by then.
        let learned = Compiler {
            tables: Arc::new(learning.tables.primed()),
        };
        for (source, sample) in PRIMERS {
            if let Some(grammar) = learned.primer(source, options)? {
                ask_along(&grammar, sample);
            }
        }
        Ok(Compiler {
            tables: Arc::new(learned.tables.primed()),
        })
    }

    /// Compiles a schema to learn from; returns `None` if the vocabulary can write none of its texts.
    fn primer(&self, source: &str, options: &Options) -> Result<Option<Grammar>, CompileError> {
        let is_unwritable = |error: &CompileError| {
            let mut problems = error.problems.iter();
            problems.all(|problem| problem.kind == ProblemKind::Unsatisfiable)
        };
        match self.compile(Source::JsonSchema(source), options) {
            Ok((grammar, _)) => Ok(Some(grammar)),
            Err(error) if is_unwritable(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns a compiler whose tables contain only what they were primed with.
    pub fn fresh(&self) -> Compiler {
        Compiler {
            tables: Arc::new(self.tables.fresh()),
        }
    }

    /// Returns a compiler with the same primed tables, apart from all others: how long its compiles and masks
    /// take tells nothing of what other compilers were asked.
    #[doc(hidden)]
    pub fn apart(&self) -> Compiler {
        Compiler {
            tables: Arc::new(self.tables.apart()),
        }
    }

    /// Returns the vocabulary of the masks.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.tables.vocabulary()
    }

    /// Returns the tables that the grammars of this compiler share.
    #[doc(hidden)]
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Compiles a source.
    ///
    /// # Errors
    /// Returns all problems of the source at once, each with its place: invalid syntax, unsupported features,
    /// constraints that no text can satisfy, and limits that were reached. Nothing is ignored silently:
    /// findings that do not stop the compilation are in the [`Diagnostics`].
    pub fn compile(
        &self,
        source: Source<'_>,
        options: &Options,
    ) -> Result<(Grammar, Diagnostics), CompileError> {
        let limits = &*options.limits.begin();
        check_size(source, &options.prefix, limits)?;
        let (cfg, diagnostics) = lower(source, self.vocabulary(), options, limits)?;
        let grammar = Grammar::new(&cfg.with_prefix(&options.prefix), &self.tables, limits).map_err(
            |error| match source {
                Source::JsonSchema(text) => {
                    schema::explained(at_pointers(error), text, &options.schema, limits)
                }
                _ => error,
            },
        );
        Ok((limits.cancel.unless(grammar)?, diagnostics))
    }
}

/// Replaces rule names by places. The rules of a schema are named by the JSON pointers of the schemas that
/// they were made from, and the first one is the place.
fn at_pointers(mut error: CompileError) -> CompileError {
    for problem in &mut error.problems {
        if let Place::Rule(name) = &problem.place
            && let Some(pointer) = name.split(' ').find_map(|word| word.strip_prefix('#'))
        {
            problem.place = Place::Pointer(pointer.to_owned());
        }
    }
    error
}

/// Compiles a source for a vocabulary without sharing any tables; see [`Compiler::compile`] for the errors.
///
/// ```
/// # use std::sync::Arc;
/// use lexiform::{Options, Source, compile};
/// use lexiform::vocab::{TokenKind, Vocabulary};
///
/// let tokens = ["<eos>", "ye", "s", "no", "n", "o"].map(|text| (TokenKind::Text, text));
/// let vocab = Arc::new(Vocabulary::new(&tokens, &[0])?);
/// let (grammar, _) = compile(Source::Regex("yes|no"), &vocab, &Options::default())?;
/// assert_eq!(grammar.mask(grammar.start()).iter().collect::<Vec<_>>(), [1, 3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compile(
    source: Source<'_>,
    vocab: &Arc<Vocabulary>,
    options: &Options,
) -> Result<(Grammar, Diagnostics), CompileError> {
    Compiler::new(vocab.clone()).compile(source, options)
}

fn check_size(source: Source<'_>, prefix: &[u8], limits: &Limits) -> Result<(), CompileError> {
    let given = source.texts().map(str::len).sum::<usize>() + prefix.len();
    if given <= limits.source_bytes {
        return Ok(());
    }
    let message = format!(
        "the source has {given} bytes; the limit `source_bytes` is {}",
        limits.source_bytes
    );
    Err(Problem::new(ProblemKind::Limit, Place::Whole, message).into())
}

fn lower(
    source: Source<'_>,
    vocabulary: &Vocabulary,
    options: &Options,
    limits: &Limits,
) -> Result<(Cfg, Diagnostics), CompileError> {
    match source {
        Source::Regex(pattern) => {
            let cfg = regex::lower_as(pattern, options.regex, limits)?;
            Ok((cfg, Diagnostics::default()))
        }
        Source::Ebnf(text) => Ok((ebnf::lower(text, limits)?, Diagnostics::default())),
        Source::Grammar(text) => {
            let cfg = notation::lower(text, &options.grammar, &options.schema, limits)?;
            Ok((cfg, Diagnostics::default()))
        }
        Source::Choice(texts) => Ok((choice::lower(texts, limits)?, Diagnostics::default())),
        Source::Any => Ok((tags::anything(vocabulary), Diagnostics::default())),
        Source::JsonSchema(text) => schema::lower(text, &options.schema, limits),
        Source::StructuralTag(text) => {
            let form = tags::read(text, limits)?;
            let mut contents = Contents {
                options,
                limits,
                diagnostics: Diagnostics::default(),
            };
            let cfg = tags::lower(&form, vocabulary, limits, &mut contents)?;
            Ok((cfg, contents.diagnostics))
        }
    }
}

/// Lowers the constraints in a structural tag, each with the front end of its language.
struct Contents<'a> {
    options: &'a Options,
    limits: &'a Limits,
    diagnostics: Diagnostics,
}

impl tags::Contents for Contents<'_> {
    type Content = tags::Content;
    type Error = CompileError;

    fn lower(&mut self, content: &tags::Content) -> Result<Cfg, CompileError> {
        let text = &content.text;
        let lowered = match content.kind {
            ContentKind::Regex => {
                regex::lower_as(text, self.options.regex, self.limits).map(without_findings)
            }
            ContentKind::Grammar => {
                let options = self.options;
                let cfg = notation::lower(text, &options.grammar, &options.schema, self.limits);
                cfg.map(without_findings)
            }
            ContentKind::JsonSchema => {
                let mut options = self.options.schema.clone();
                options.arguments = content.style;
                options.excludes.clone_from(&content.excludes);
                if content.any_order {
                    options.key_order = schema::KeyOrder::Any;
                }
                if let Some(whitespace) = &content.whitespace {
                    options.whitespace = schema::Whitespace::Pattern(whitespace.clone());
                }
                schema::lower(text, &options, self.limits)
            }
        };
        let (cfg, found) = lowered.map_err(|mut error| {
            error
                .problems
                .iter_mut()
                .for_each(|problem| place_inside(problem, content));
            error
        })?;
        for mut finding in found.findings {
            place_inside(&mut finding, content);
            self.diagnostics.push(finding);
        }
        Ok(cfg)
    }

    fn refused(&self, error: CompileError) -> CompileError {
        error
    }
}

fn without_findings(cfg: Cfg) -> (Cfg, Diagnostics) {
    (cfg, Diagnostics::default())
}

/// Moves the place of a constraint's problem into the structural tag. A place in a text becomes part of the
/// message.
fn place_inside(problem: &mut Problem, content: &tags::Content) {
    let pointer = &content.pointer;
    problem.place = match std::mem::replace(&mut problem.place, Place::Whole) {
        Place::Pointer(inner) => Place::Pointer(format!("{pointer}{inner}")),
        Place::Whole => Place::Pointer(pointer.clone()),
        place => {
            problem.message = format!("{place}: {}", problem.message);
            Place::Pointer(pointer.clone())
        }
    };
}

/// Computes the masks along a text, as far as it belongs to the grammar, so that the tables learn what the
/// masks need.
fn ask_along(grammar: &Grammar, text: &str) {
    let mut state = grammar.start();
    for byte in text.bytes() {
        grammar.mask(state);
        let Some(next) = grammar.step_bytes(state, &[byte]) else {
            return;
        };
        state = next;
    }
    grammar.mask(state);
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexiform_automata::vocab::TokenKind;

    fn vocabulary() -> Arc<Vocabulary> {
        let tokens = ["<end>", "a", "b", "1"].map(|text| (TokenKind::Text, text));
        Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"))
    }

    fn behind(prefix: &[u8]) -> Options {
        Options {
            prefix: prefix.to_vec(),
            ..Options::default()
        }
    }

    #[test]
    fn a_prefix_changes_no_error() {
        let sources = [
            Source::Ebnf("s ::= s"),
            Source::Ebnf("s ::= \"a\" t\nt ::= \"b\" t"),
            Source::Regex("(a"),
            Source::JsonSchema(r#"{"allOf": [{"const": 1}, {"const": 2}]}"#),
            Source::JsonSchema(r#"{"properties": {"a": {"type": "integr"}}}"#),
            Source::Choice(&[]),
        ];
        for source in sources {
            let error = |options| {
                compile(source, &vocabulary(), &options)
                    .expect_err("it is wrong")
                    .to_string()
            };
            assert_eq!(error(behind(b"ab")), error(behind(b"")), "{source:?}");
        }
    }

    #[test]
    fn a_prefix_counts_as_source() {
        let mut options = behind(b"ab");
        options.limits.source_bytes = 3;
        assert!(compile(Source::Regex("a"), &vocabulary(), &options).is_ok());
        let error = compile(Source::Regex("ab"), &vocabulary(), &options).expect_err("four bytes");
        assert_eq!(error.problems[0].kind, ProblemKind::Limit);
    }

    #[test]
    fn a_compiler_is_primed_without_it() {
        let primed = Compiler::new(vocabulary())
            .primed(&behind(b"ab"))
            .expect("it is primed");
        let (grammar, _) = primed
            .compile(Source::Choice(&["1".to_owned()]), &behind(b"ab"))
            .expect("it compiles");
        assert_eq!(grammar.forced(grammar.start()), b"ab1");
    }
}
