//! `lexiform mask`: what may come next after a prefix.
//!
//! ```text
//!   $ lexiform mask --schema person.json --tokenizer tokenizer.json --prefix '{"age": '
//!   allowed: 1,111 of 128,256 tokens
//!   may end: no
//!   next:    '-', '0'–'9'
//!   digits   "0" "1" "12" "123" …  (1,110)
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

use lexiform::compile::compile;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, State};
use serde_json::{Value, json};

use super::expected::Expected;
use super::source::{Constraint, Meaning};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::tokens;

/// The arguments of `lexiform mask`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    constraint: Constraint,
    #[command(flatten)]
    meaning: Meaning,
    /// The `tokenizer.json` whose tokens to show.
    #[arg(long, value_name = "FILE", default_value = "models/demo/tokenizer.json")]
    tokenizer: PathBuf,
    /// The token that ends a sequence, by name; else what the tokenizer's folder says.
    #[arg(long, value_name = "NAME")]
    eos: Option<String>,
    /// The text written so far.
    #[arg(long, default_value = "", value_name = "TEXT")]
    prefix: String,
    /// How many tokens of each group to show.
    #[arg(long, default_value_t = 10, value_name = "N")]
    samples: usize,
    /// Print one JSON object instead.
    #[arg(long)]
    json: bool,
}

/// Runs `lexiform mask`.
///
/// # Errors
/// The source does not compile, the prefix leaves its language, or a file cannot be read.
pub fn run(args: Args) -> Outcome {
    let source = args.constraint.load()?;
    let (_, vocabulary) = tokens::load(&args.tokenizer, args.eos.as_deref())?;
    let compiled = compile(source.source(), &vocabulary, &args.meaning.options());
    let (grammar, _) = compiled
        .map_err(|error| Failure::message(format!("the {} does not compile\n{error}", source.name())))?;
    let state = after_prefix(&grammar, args.prefix.as_bytes())?;
    let view = View::of(&grammar, state);
    if args.json {
        println!("{:#}", view.as_json(&vocabulary, args.samples));
    } else {
        print!("{}", view.as_text(&vocabulary, args.samples));
    }
    Ok(ExitCode::SUCCESS)
}

fn after_prefix(grammar: &Grammar, prefix: &[u8]) -> Result<State, Failure> {
    let mut state = grammar.start();
    for (offset, byte) in prefix.iter().enumerate() {
        state = grammar.step_bytes(state, &[*byte]).ok_or_else(|| {
            let expected = Expected::after(grammar, state).in_words();
            Failure::message(format!(
                "the prefix leaves the language at byte {offset}, expected {expected}"
            ))
        })?;
    }
    Ok(state)
}

/// What is known about one state.
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

    /// The allowed tokens by what they begin with; empty groups are left out.
    fn groups(&self, vocabulary: &Vocabulary) -> Vec<(Group, Vec<u32>)> {
        let group_of = |token: &u32| Group::of(vocabulary, *token);
        let members = |group: Group| {
            self.allowed
                .iter()
                .copied()
                .filter(|it| group_of(it) == group)
                .collect()
        };
        let all = Group::ALL.map(|group| (group, members(group)));
        all.into_iter()
            .filter(|(_, tokens): &(Group, Vec<u32>)| !tokens.is_empty())
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
            let more = if samples < tokens.len() { " …" } else { "" };
            text += &format!(
                "{:<8} {}{more}  ({})\n",
                group.name(),
                shown.join(" "),
                tokens.len()
            );
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

/// What a token begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Space,
    Digit,
    Letter,
    Sign,
    Beyond,
    Special,
}

impl Group {
    const ALL: [Group; 6] = [
        Group::Space,
        Group::Digit,
        Group::Letter,
        Group::Sign,
        Group::Beyond,
        Group::Special,
    ];

    fn of(vocabulary: &Vocabulary, token: u32) -> Self {
        match vocabulary.bytes(token).first() {
            _ if vocabulary.kind(token) != TokenKind::Text => Group::Special,
            Some(first) if first.is_ascii_whitespace() => Group::Space,
            Some(first) if first.is_ascii_digit() => Group::Digit,
            Some(first) if first.is_ascii_alphabetic() => Group::Letter,
            Some(first) if first.is_ascii() => Group::Sign,
            _ => Group::Beyond,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Group::Space => "spaces",
            Group::Digit => "digits",
            Group::Letter => "letters",
            Group::Sign => "signs",
            Group::Beyond => "others",
            Group::Special => "special",
        }
    }
}

fn quoted(vocabulary: &Vocabulary, token: u32) -> String {
    let bytes = vocabulary.bytes(token);
    if vocabulary.kind(token) != TokenKind::Text {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    match str::from_utf8(bytes) {
        Ok(text) => format!("{text:?}"),
        Err(_) => bytes.iter().map(|it| format!("<{it:02x}>")).collect(),
    }
}
