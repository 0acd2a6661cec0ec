//! The project's own commands, in one place and without a shell dialect to learn.
//!
//! ```text
//!  cargo xtask serve ──┐                                        (and a model, for serve)
//!  cargo xtask test ───┼─► setup (libtorch in .libtorch/) ─► cargo build | test | clippy | bench
//!  cargo xtask check ──┤
//!  cargo xtask bench ──┘
//! ```
//!
//! Everything here runs on the standard library and calls the tools a developer would call by hand, so that a
//! failing step can be repeated by copying the line that was printed.

mod bench;
mod check;
mod clients;
mod container;
mod fuzz;
mod licences;
mod loom;
mod process;
mod serve;
mod setup;
mod soak;
mod tally;
mod test;
mod traffic;

use process::Failure;
use std::process::ExitCode;
use traffic::{attack, crowd, fair, load};

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  serve [ARGS]    set up, build (profile `serve`; with --dev first, as for tests), and run `lexiform serve ARGS`; without a --model
                  among them it fetches SmolLM2-135M-Instruct (93 MB), once for each user
  test            set up and run every test of the workspace, those with clients and those of Python too;
                  `test clients` and `test python` run these alone
  plugins         the plugins for vLLM and SGLang in these engines, which it installs into .venv/plugins (1.3 GB), and the
                  examples for candle and mistral.rs
  check           formatting, clippy, docs, layering, dependencies and licences, kernels; `check kernels` compiles the
                  kernels for sm_90 alone, which needs no card
  load [ARGS]     many clients at once against a running service, and what came of it (load --help)
  crowd [ARGS]    clients that all want eight texts at once, by particles and by beams (crowd --help)
  fair [ARGS]     a light client of a running service, alone and beside heavy ones (fair --help)
  attack [ARGS]   requests that are made to end, stall or fatten the program, and whether they do (attack --help)
  fuzz [ARGS]     coverage-guided fuzzing of every reader, seconds or hours (fuzz --help)
  bench [ARGS]    run the benchmarks of the library; `bench peers [ARGS]` runs it beside llguidance,
                  and `bench llama --model FILE [ARGS]` the service beside llama.cpp's
  card [--dev]    a bundle in .card/ that checks and times on a machine with an NVIDIA card what needs one
  soak [CASES]    the property tests of the library with CASES random cases each (20000), for hours
  soak drafts [N] N requests (1000000) through what the engine learns from answers, and what that holds
  loom            lock-free tables, and threads that share a pass, under all orders of their threads
  docs            build the site of docs/ with mdBook, and the API of the library
  wheel           build the Python package into target/wheels
  container       build the image of deploy/Containerfile with buildah, start it, and ask its model a question
  setup [--cuda] [--model]
                  bring libtorch into .libtorch/ (the others do this themselves), and the model that serve serves";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<ExitCode, Failure> {
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", args),
    };
    match command {
        "serve" => serve::run(rest),
        "test" => match rest.split_first() {
            Some((part, more)) if part == "clients" => no_arguments(more).and_then(|()| test::clients()),
            Some((part, more)) if part == "python" => no_arguments(more).and_then(|()| test::of_python()),
            _ => no_arguments(rest).and_then(|()| test::run()),
        },
        "plugins" => no_arguments(rest).and_then(|()| test::of_plugins()),
        "check" => match rest.split_first() {
            Some((part, more)) => no_arguments(more).and_then(|()| check::only(part)),
            None => check::run(),
        },
        "load" => load::run(rest),
        "crowd" => crowd::run(rest),
        "fair" => fair::run(rest),
        "attack" => attack::run(rest),
        "fuzz" => fuzz::run(rest),
        "bench" => bench::run(rest),
        "card" => check::card::run(rest),
        "soak" => soak::run(rest),
        "docs" => no_arguments(rest).and_then(|()| check::docs::run()),
        "wheel" => no_arguments(rest).and_then(|()| test::python::wheel()),
        "container" => no_arguments(rest).and_then(|()| container::run()),
        "loom" => no_arguments(rest).and_then(|()| loom::run()),
        "setup" => setup::run(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        other => Err(Failure::new(format!("there is no command {other:?}\n\n{USAGE}"))),
    }
}

fn no_arguments(rest: &[String]) -> Result<(), Failure> {
    match rest.first() {
        None => Ok(()),
        Some(extra) => Err(Failure::new(format!("unexpected argument {extra:?}\n\n{USAGE}"))),
    }
}
