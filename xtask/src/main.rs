//! The project's development commands, in one place and without a shell dialect to learn.
//!
//! ```text
//!  cargo xtask serve ──┐                                        (and a model, for serve)
//!  cargo xtask test ───┼─► setup (libtorch in .libtorch/) ─► cargo build | test | clippy | bench
//!  cargo xtask check ──┤
//!  cargo xtask bench ──┘
//! ```
//!
//! Everything here uses the standard library and calls the tools that a developer would call by hand, so that
//! a failing step can be repeated by copying the line that was printed.

mod bench;
mod check;
mod clients;
mod container;
mod fuzz;
mod help;
mod options;
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
            Some((part, more)) if part == "node" => no_arguments(more).and_then(|()| test::of_node()),
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
        "counts" => check::counts::run(rest),
        "card" => check::card::run(rest),
        "soak" => soak::run(rest),
        "docs" => no_arguments(rest).and_then(|()| check::docs::run()),
        "wheel" => no_arguments(rest).and_then(|()| test::python::wheel()),
        "npm" => no_arguments(rest).and_then(|()| test::node::pack()),
        "container" => no_arguments(rest).and_then(|()| container::run()),
        "loom" => no_arguments(rest).and_then(|()| check::loom::run()),
        "setup" => setup::run(rest),
        "help" | "--help" | "-h" => {
            let text = rest
                .first()
                .map_or_else(|| Ok(help::overview()), |name| help::of(name))?;
            println!("{text}");
            Ok(ExitCode::SUCCESS)
        }
        other => help::of(other).map(|_| ExitCode::FAILURE),
    }
}

fn no_arguments(rest: &[String]) -> Result<(), Failure> {
    match rest.first() {
        None => Ok(()),
        Some(extra) => Err(Failure::new(format!(
            "unexpected argument {extra:?}\n\n{}",
            help::overview()
        ))),
    }
}
