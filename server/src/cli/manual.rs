//! `lexiform completions` and `lexiform man`: shell completions and manual pages, both generated from the
//! definitions of the flags.

use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use lexiform_cli::failure::{Code, Failure, Outcome};
use lexiform_cli::shown::output;

/// The arguments of `lexiform completions`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "For bash: lexiform completions bash > ~/.local/share/bash-completion/completions/lexiform
For zsh:  lexiform completions zsh > \"${fpath[1]}/_lexiform\"
For fish: lexiform completions fish > ~/.config/fish/completions/lexiform.fish"
)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// The arguments of `lexiform man`.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// A folder to write a page for each command to; without it, the page of `lexiform` is printed
    dir: Option<PathBuf>,
}

/// Runs `lexiform completions`.
///
/// # Errors
/// Fails if standard output cannot be written.
pub fn completions(args: CompletionsArgs, mut command: Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "lexiform", &mut script);
    output::raw(&script)?;
    Ok(Code::Fine)
}

/// Runs `lexiform man`.
///
/// # Errors
/// Fails if the folder or standard output cannot be written.
pub fn man(args: ManArgs, command: Command) -> Outcome {
    // `help` has no page.
    let command = command.disable_help_subcommand(true);
    let Some(folder) = args.dir else {
        let mut page = Vec::new();
        let rendered = Man::new(command).render(&mut page);
        rendered.map_err(|error| Failure::Unable(format!("no page: {error}")))?;
        output::raw(&page)?;
        return Ok(Code::Fine);
    };
    let written = std::fs::create_dir_all(&folder).and_then(|()| clap_mangen::generate_to(command, &folder));
    written.map_err(|source| Failure::Write { path: folder, source })?;
    Ok(Code::Fine)
}
