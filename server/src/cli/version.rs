//! `lexiform version`: the build of this program, its platform, and the usable devices.

use std::thread::available_parallelism;

use lexiform_engine::Device;
use serde_json::{Value, json};

use crate::cli::demo;
use crate::model::source::{self, Place, Stores, Wanted};
use lexiform_cli::failure::{Code, Outcome};
use lexiform_cli::shown::output::Output;

/// The arguments of `lexiform version`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    output: Output,
    /// Also print the build of libtorch, and why no other device can be used
    #[arg(long, short)]
    verbose: bool,
}

impl Args {
    /// Returns `true` if the output is JSON.
    pub fn is_json(&self) -> bool {
        self.output.json
    }
}

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The values found by the build script; each is `unknown` if it was not found.
pub(super) const COMMIT: &str = env!("LEXIFORM_COMMIT");
pub(super) const LIBTORCH: &str = env!("LEXIFORM_LIBTORCH");
const TARGET: &str = env!("LEXIFORM_TARGET");

/// Runs `lexiform version`.
///
/// # Errors
/// Fails if standard output cannot be written.
pub fn run(args: Args) -> Outcome {
    let cards = if args.output.quiet {
        Cards::default()
    } else {
        Cards::found()
    };
    let model = model();
    let (libtorch, devices) = match args.verbose {
        true => (LIBTORCH, cards.in_words() + &cards.why_no_more()),
        false => (LIBTORCH.split('+').next().unwrap_or_default(), cards.in_words()),
    };
    args.output.print(
        || cards.json(&model),
        || {
            format!(
                "lexiform {VERSION}\ncommit   {COMMIT}\ntarget   {TARGET}\nlibtorch {libtorch}\nmodel    {model}\ndevices  {devices}\n"
            )
        },
        || format!("{VERSION}\n"),
    )?;
    Ok(Code::Fine)
}

/// Returns the model that is served if none is named.
fn model() -> String {
    let usual = source::usual(Wanted::ToAnswer, &Stores::of_user());
    match (usual.place, demo::model()) {
        (Place::BuiltIn, None) => "none".to_owned(),
        _ => usual.name,
    }
}

/// The usable graphics cards, and the reason why there is no further one.
#[derive(Default)]
struct Cards {
    names: Vec<String>,
    reason: String,
}

impl Cards {
    fn found() -> Self {
        let mut cards = Self::default();
        for index in 0..usize::MAX {
            match Device::Cuda(index).check() {
                Ok(()) => cards.names.push(Device::Cuda(index).to_string()),
                Err(error) => {
                    cards.reason = error.to_string();
                    break;
                }
            }
        }
        cards
    }

    fn in_words(&self) -> String {
        let cores = available_parallelism().map_or(1, usize::from);
        let cores = format!("cpu ({cores} {})", if cores == 1 { "thread" } else { "threads" });
        std::iter::once(cores)
            .chain(self.names.iter().cloned())
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn why_no_more(&self) -> String {
        match self.names.is_empty() {
            true => format!("; no card: {}", self.reason),
            false => String::new(),
        }
    }

    fn json(&self, model: &str) -> Value {
        let devices: Vec<&str> = std::iter::once("cpu")
            .chain(self.names.iter().map(String::as_str))
            .collect();
        json!({
            "ok": true,
            "exit": 0,
            "version": VERSION,
            "commit": COMMIT,
            "target": TARGET,
            "libtorch": LIBTORCH,
            "model": model,
            "devices": devices,
        })
    }
}
