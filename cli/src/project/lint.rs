//! `lexiform lint`: which provider refuses which tool, and why.
//!
//! ```text
//!   $ lexiform lint tools.json
//!   search
//!     openai-strict  refused; projected: equal, proven
//!       #/properties/limit/minimum …
//!     anthropic      taken as it is
//! ```

use clap::ValueEnum;
use lexiform::project::Profile;
use serde_json::{Value, json};

use super::Input;
use super::judged::{Judged, Judging, Side, line};
use crate::failure::{Code, EXIT_CODES, Outcome};
use crate::shown::output::Output;
use crate::shown::paint::bad;

/// The arguments of `lexiform lint`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// The targets; may be given several times. Default: all that Lexiform knows
    #[arg(long, short, value_name = "NAME|FILE")]
    profile: Vec<String>,
    #[command(flatten)]
    side: Side,
    /// What makes the answer no
    #[arg(long, value_enum, default_value_t)]
    fail_on: FailOn,
    #[command(flatten)]
    output: Output,
}

/// What makes the answer no.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A target refuses a schema as it is
    #[default]
    Refused,
    /// A schema cannot be written for a target without a loss
    Lossy,
}

impl Args {
    /// Returns `true` if the answer is printed as JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }
}

/// Runs `lexiform lint`.
///
/// # Errors
/// The document or a profile cannot be read.
pub fn run(args: Args) -> Outcome {
    let document = args.input.load()?;
    let profiles: Vec<Profile> = match args.profile.is_empty() {
        true => Profile::names().filter_map(Profile::named).collect(),
        false => args
            .profile
            .iter()
            .map(|name| super::profile(name))
            .collect::<Result<_, _>>()?,
    };
    let judging = Judging::from(args.side);
    let schemas = document.schemas();
    let tools: Vec<Vec<Judged>> = schemas
        .iter()
        .map(|named| judging.judge(named, &profiles))
        .collect();
    let is_bad = |judged: &Judged| match args.fail_on {
        FailOn::Refused => !judged.refused.is_empty(),
        FailOn::Lossy => judged.is_lossy(),
    };
    let contradicted = tools
        .iter()
        .flatten()
        .map(Judged::code)
        .max()
        .unwrap_or(Code::Fine);
    let code = match tools.iter().flatten().any(is_bad) {
        true => contradicted.max(Code::No),
        false => contradicted,
    };
    let json = || {
        let tools: Vec<Value> = tools
            .iter()
            .map(|tool| {
                let targets: Vec<Value> = tool
                    .iter()
                    .zip(&profiles)
                    .map(|(judged, profile)| judged.json(profile))
                    .collect();
                json!({"name": tool.first().map(|judged| judged.named.name.clone()), "targets": targets})
            })
            .collect();
        json!({"ok": code == Code::Fine, "exit": code as u8, "tools": tools})
    };
    args.output
        .print(json, || in_words(&tools, &profiles), String::new)?;
    Ok(code)
}

fn in_words(tools: &[Vec<Judged>], profiles: &[Profile]) -> String {
    let mut text = String::new();
    let width = profiles
        .iter()
        .map(|profile| profile.name.len())
        .max()
        .unwrap_or(0);
    for tool in tools {
        if let Some(first) = tool.first() {
            text += &format!("{}\n", first.named.name);
        }
        for (judged, profile) in tool.iter().zip(profiles) {
            text += &format!("  {:width$}  {}\n", profile.name, verdict(judged));
            for problem in &judged.refused {
                text += &line(6, &problem.to_string());
            }
            if let Ok(projection) = &judged.projection {
                for loss in projection.losses() {
                    text += &line(6, &format!("lost: {loss}"));
                }
            }
        }
    }
    text
}

fn verdict(judged: &Judged) -> String {
    match &judged.projection {
        Ok(projection) if judged.refused.is_empty() => judged.relation_in_words(projection),
        Ok(projection) => format!(
            "{}; projected: {}",
            bad("refused"),
            judged.relation_in_words(projection)
        ),
        Err(error) => format!("{}, and cannot be projected: {error}", bad("refused")),
    }
}
