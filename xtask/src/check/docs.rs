//! `cargo xtask docs`: builds the documentation site with mdBook from `docs/`, and the API docs of the
//! library beside it.

use crate::process::{Failure, cargo, must_succeed, quiet_output, root};
use std::process::{Command, ExitCode};

pub(crate) fn run() -> Result<ExitCode, Failure> {
    if quiet_output(Command::new("mdbook").arg("--version")).is_none() {
        return Err(Failure::new(
            "mdbook is not installed; `cargo install mdbook` installs it, or see https://rust-lang.github.io/mdBook/",
        ));
    }
    let site = root().join("target/docs");
    let mut book = Command::new("mdbook");
    book.args(["build", "docs", "--dest-dir"]).arg(&site);
    must_succeed(book.current_dir(root()))?;
    must_succeed(&mut cargo(["doc", "--package", "lexiform", "--no-deps"]))?;
    println!("the site: {}", site.join("index.html").display());
    println!(
        "the API:  {}",
        root().join("target/doc/lexiform/index.html").display()
    );
    Ok(ExitCode::SUCCESS)
}
