//! `lexiform mask`: shows what may come next after a prefix.
//!
//! ```text
//!   $ lexiform mask --schema person.json --prefix '{"age": '
//!   allowed: 1,111 of 128,256 tokens
//!   may end: no
//!   next:    '-', '0'–'9'
//!   digits   "0" "1" "12" "123" …  (1,110)
//! ```

use clap::ArgGroup;
use lexiform::verdict::{Expected, Verdict, after};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, State};
use serde_json::{Value, json};

use crate::failure::{Code, EXIT_CODES, Failure, Outcome};
use crate::input::source::{Constraint, KINDS, Meaning};
use crate::input::stdin;
use crate::input::tokenizer::TokenizerArgs;
use crate::shown::output::Output;
use crate::shown::paint::dim;
use crate::shown::problems;
use crate::tokens::quoted;
use crate::verdict;

/// The arguments of `lexiform mask`.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("constraint").args(KINDS).required(true), after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    constraint: Constraint,
    #[command(flatten)]
    meaning: Meaning,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// The text written so far
    #[arg(
        long,
        short,
        default_value = "",
        value_name = "TEXT",
        allow_hyphen_values = true
    )]
    prefix: String,
    /// A file with the text written so far, used exactly to its last byte; `-` for standard input
    #[arg(long, value_name = "FILE|-", conflicts_with = "prefix")]
    prefix_file: Option<String>,
    /// How many tokens of each group to show
    #[arg(long, default_value_t = 10, value_name = "N")]
    samples: usize,
    #[command(flatten)]
    output: Output,
}

impl Args {
    /// Returns `true` if the answer is printed as JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }

    fn prefix(&self) -> Result<Vec<u8>, Failure> {
        match self.prefix_file.as_deref() {
            None => Ok(self.prefix.clone().into_bytes()),
            Some(stdin::DASH) => stdin::bytes("--prefix-file"),
            Some(file) => std::fs::read(file).map_err(|source| Failure::Read {
                path: file.into(),
                source,
            }),
        }
    }
}

/// Runs `lexiform mask`.
///
/// # Errors
/// The source does not compile, the prefix leaves its language, or a file cannot be read.
pub fn run(args: Args) -> Outcome {
    let source = args.constraint.load()?;
    let prefix = args.prefix()?;
    let (_, vocabulary) = args.tokenizer.load()?;
    let compiled = source.compile(&vocabulary, &args.meaning.options_for_writing());
    let (grammar, _) = compiled.map_err(|error| problems::failure(&source, &error))?;
    let state = after(&grammar, &prefix).map_err(|verdict| leaves(&prefix, &verdict))?;
    let view = View::of(&grammar, state);
    args.output.print(
        || view.as_json(&vocabulary, args.samples),
        || view.as_text(&vocabulary, args.samples),
        String::new,
    )?;
    Ok(Code::Fine)
}

fn leaves(prefix: &[u8], verdict: &Verdict) -> Failure {
    let (reason, excerpt) = (verdict.reason(prefix), verdict::wrong_line(verdict, prefix));
    let text = format!("the prefix leaves the language: {reason}\n{excerpt}");
    let text = text.trim_end().to_owned();
    match verdict {
        Verdict::Undecided { .. } => Failure::Unable(text),
        verdict => Failure::No {
            text,
            json: verdict::as_json(verdict, prefix),
        },
    }
}

/// The mask and the expected bytes of one state.
struct View {
    allowed: Vec<u32>,
    expected: Expected,
}

impl View {
    fn of(grammar: &Grammar, state: State) -> Self {
        Self {
            allowed: grammar.mask(state).iter().collect(),
            expected: Expected::after(grammar, state),
        }
    }

    /// Returns the allowed tokens grouped by their beginning; empty groups are left out.
    fn groups(&self, vocabulary: &Vocabulary) -> Vec<(BeginningGroup, Vec<u32>)> {
        let group_of = |token: &u32| BeginningGroup::of(vocabulary, *token);
        let members = |group: BeginningGroup| {
            self.allowed
                .iter()
                .copied()
                .filter(|it| group_of(it) == group)
                .collect()
        };
        let all = BeginningGroup::ALL.map(|group| (group, members(group)));
        all.into_iter()
            .filter(|(_, tokens): &(BeginningGroup, Vec<u32>)| !tokens.is_empty())
            .collect()
    }

    fn as_text(&self, vocabulary: &Vocabulary, samples: usize) -> String {
        let mut text = format!("allowed: {} of {} tokens\n", self.allowed.len(), vocabulary.len());
        text += &format!("may end: {}\n", if self.expected.end { "yes" } else { "no" });
        text += &format!("next:    {}\n", self.expected.in_words());
        if !self.expected.forced.is_empty() {
            text += &format!("forced:  {:?}\n", String::from_utf8_lossy(&self.expected.forced));
        }
        for (group, tokens) in self.groups(vocabulary) {
            let shown: Vec<_> = tokens
                .iter()
                .take(samples)
                .map(|it| quoted(vocabulary, *it))
                .collect();
            let more = if samples < tokens.len() && samples > 0 {
                " …"
            } else {
                ""
            };
            let (name, count) = (group.name(), dim(format!("({})", tokens.len())));
            text += &match samples {
                0 => format!("{name:<8} {count}\n"),
                _ => format!("{name:<8} {}{more}  {count}\n", shown.join(" ")),
            };
        }
        text
    }

    fn as_json(&self, vocabulary: &Vocabulary, samples: usize) -> Value {
        let token = |it: &u32| json!({"id": it, "text": String::from_utf8_lossy(vocabulary.bytes(*it))});
        let groups = self.groups(vocabulary).into_iter().map(|(group, tokens)| {
            let shown: Vec<_> = tokens.iter().take(samples).map(token).collect();
            (
                group.name().to_owned(),
                json!({"count": tokens.len(), "samples": shown}),
            )
        });
        json!({
            "ok": true,
            "exit": 0,
            "allowed": self.allowed.len(),
            "vocabulary": vocabulary.len(),
            "eos": self.expected.end,
            "bytes": self.expected.bytes,
            "expected": self.expected.in_words(),
            "forced": String::from_utf8_lossy(&self.expected.forced),
            "groups": Value::Object(groups.collect()),
        })
    }
}

/// The beginning of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BeginningGroup {
    Space,
    Digit,
    Letter,
    Sign,
    Beyond,
    Special,
}

impl BeginningGroup {
    const ALL: [BeginningGroup; 6] = [
        BeginningGroup::Space,
        BeginningGroup::Digit,
        BeginningGroup::Letter,
        BeginningGroup::Sign,
        BeginningGroup::Beyond,
        BeginningGroup::Special,
    ];

    fn of(vocabulary: &Vocabulary, token: u32) -> Self {
        match vocabulary.bytes(token).first() {
            _ if vocabulary.kind(token) != TokenKind::Text => BeginningGroup::Special,
            Some(first) if first.is_ascii_whitespace() => BeginningGroup::Space,
            Some(first) if first.is_ascii_digit() => BeginningGroup::Digit,
            Some(first) if first.is_ascii_alphabetic() => BeginningGroup::Letter,
            Some(first) if first.is_ascii() => BeginningGroup::Sign,
            _ => BeginningGroup::Beyond,
        }
    }

    fn name(self) -> &'static str {
        match self {
            BeginningGroup::Space => "spaces",
            BeginningGroup::Digit => "digits",
            BeginningGroup::Letter => "letters",
            BeginningGroup::Sign => "signs",
            BeginningGroup::Beyond => "others",
            BeginningGroup::Special => "special",
        }
    }
}
