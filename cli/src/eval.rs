//! `lexiform eval`: the correctness and the speed of the compiler and the masks, on collections by which
//! engines are compared.
//!
//! ```text
//!   maskbench   schemas with instances, walked token by token    ─┐
//!   generate    answers of an endpoint under schemas              │
//!   endpoints   those of several endpoints, side by side          │
//!   suite       the official test suite of JSON Schema            ├─► counts, what failed and why; --json: one object
//!   cases       grammars with texts to accept and to reject      ─┤
//!   compare     other engines on the same tokens                 ─┘
//!   tasks       answers of a model to questions                  ───► accuracy by way of asking, with intervals
//! ```
//!
//! `data` says where these collections come from, and what of them lies in a folder. The format of the
//! reports is stable, so that figures of different versions can be compared.

pub mod cases;
pub mod clock;
pub mod compare;
pub mod data;
pub mod figures;
pub mod generate;
mod invent;
pub mod maskbench;
pub mod panics;
pub mod python_json;
pub mod render;
pub mod report;
pub mod suite;
pub mod tasks;
mod verdict;

use clap::Subcommand;

use crate::failure::Outcome;
use crate::program::Commands;

/// The arguments of `lexiform eval`.
#[derive(Debug, clap::Args)]
pub struct Args<E: Commands> {
    #[command(subcommand)]
    collection: Collection<E>,
}

#[derive(Debug, Subcommand)]
enum Collection<E: Commands> {
    /// Schemas with instances (MaskBench): each is walked token by token, with a mask before every token
    ///
    /// DATA is a file of JSON lines with `name`, `schema` and `tests` (`valid`, `data`). Each schema is
    /// counted once: as right, or by the first thing that went wrong with it.
    Maskbench(Box<maskbench::Args>),
    /// Answers of any OpenAI-compatible endpoint under schemas: how many are valid, and how fast
    ///
    /// DATA is a file of JSON lines with `schema` or `json_schema` and perhaps `name` (MaskBench,
    /// JSONSchemaBench), or a folder with a schema in each .json file. The endpoint is asked for each schema,
    /// and each answer is validated by the crate `jsonschema`.
    Generate(Box<generate::Args>),
    /// The answers of several endpoints to the same questions, side by side
    ///
    /// Each NAME=FILE is a name and a file that `lexiform eval generate --answers` wrote. Nothing is asked:
    /// who is valid, who is fast, and what each cannot do comes from the files.
    Endpoints(Box<generate::endpoints::Args>),
    /// The official JSON Schema test suite
    ///
    /// DATA is a checkout of the suite: a folder with `tests/` and `remotes/`.
    Suite(Box<suite::Args>),
    /// Grammars, regular expressions or schemas with texts to accept and to reject
    ///
    /// DATA is a file of JSON lines with `regex`, `grammar` or `schema`, `accept`, `reject`, and perhaps
    /// `root`, or a folder of grammars, each in a folder of its own with grammar.ebnf, accept.txt and
    /// reject.txt.
    Cases(Box<cases::Args>),
    /// The collections: what they are, their licences and where people get them
    ///
    /// With PATH, recognises and counts what lies there, names broken lines, and says with which command it
    /// can be used. Nothing is downloaded.
    Data(data::Args),
    /// Questions with right answers, and the answers of a model to them
    ///
    /// --data names the tasks: benches/tasks, GSM8K, Last Letter Concatenation, BIG-bench or BFCL. With
    /// --answers, answers that were collected before are judged, by way of asking; with --questions, the
    /// questions are written to a file. Nothing of an answer is run.
    Tasks(Box<tasks::Args>),
    /// An earlier report as a page or as Markdown, or its tables and plots in a document
    Render(Box<render::Args>),
    /// Lexiform beside llguidance, XGrammar, outlines-core and lm-format-enforcer, on MaskBench
    ///
    /// DATA is a file as for `maskbench`. Every engine walks the same tokens in a process of its own. The
    /// first run installs the other engines, with pip, into a folder of the user's cache. An engine that
    /// takes more than `--seconds` or `--memory-mb` for a schema has refused it.
    Compare(Box<compare::Args>),
    /// Answer the questions of `lexiform eval compare`
    #[command(hide = true)]
    CompareWorker,
    /// The collections that a program with more than the library adds.
    #[command(flatten)]
    More(E),
}

impl<E: Commands> Args<E> {
    /// Returns `true` if the answer is printed as JSON.
    pub fn is_json(&self) -> bool {
        match &self.collection {
            Collection::Maskbench(args) => args.publishing.is_json(),
            Collection::Generate(args) => args.output.json,
            Collection::Endpoints(args) => args.output.json,
            Collection::Suite(args) => args.publishing.is_json(),
            Collection::Cases(args) => args.publishing.is_json(),
            Collection::Data(args) => args.is_json(),
            Collection::Render(_) => false,
            Collection::Tasks(args) => args.is_json(),
            Collection::Compare(args) => args.output.json,
            Collection::CompareWorker => false,
            Collection::More(more) => more.is_json(),
        }
    }
}

/// Runs `lexiform eval`.
///
/// # Errors
/// The data or the tokenizer cannot be read, or the report cannot be written.
pub fn run<E: Commands>(args: Args<E>) -> Outcome {
    match args.collection {
        Collection::Maskbench(args) => {
            args.publishing.check()?;
            maskbench::report(&args)?.publish(&args.publishing)
        }
        Collection::Suite(args) => {
            args.publishing.check()?;
            suite::report(&args)?.publish(&args.publishing)
        }
        Collection::Cases(args) => {
            args.publishing.check()?;
            cases::report(&args)?.publish(&args.publishing)
        }
        Collection::Data(args) => data::run(&args),
        Collection::Render(args) => render::run(&args),
        Collection::Tasks(args) => tasks::run(&args),
        Collection::Compare(args) => compare::run(&args),
        Collection::CompareWorker => compare::answer_questions(),
        Collection::Generate(args) => generate::run(&args),
        Collection::Endpoints(args) => generate::endpoints::run(&args),
        Collection::More(more) => more.run(),
    }
}
