//! The `lexiform` program: see [`lexiform_server::cli`] for what it can do.

use std::process::ExitCode;

fn main() -> ExitCode {
    lexiform_server::cli::main()
}
