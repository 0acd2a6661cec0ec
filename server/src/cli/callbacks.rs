//! The flags of callbacks.

use std::path::PathBuf;
use std::time::Duration;

use lexiform_cli::failure::Failure;

use crate::operate::callbacks::{Allowed, Callbacks};

/// The programs that requests may have asked about their texts.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Callbacks")]
pub(super) struct CallbackArgs {
    /// A program that requests may name as a monitor or as a score, as NAME=URL with a URL of HTTP or HTTPS;
    /// may be given several times. No other address is ever asked
    #[arg(
        long,
        env = "LEXIFORM_CALLBACK",
        value_name = "NAME=URL",
        value_delimiter = ','
    )]
    callback: Vec<Allowed>,
    /// Seconds that the callbacks of a request may take for the tokens of one pass, before it fails with
    /// status 504
    #[arg(
        long,
        env = "LEXIFORM_CALLBACK_SECONDS",
        default_value_t = 5,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=600)
    )]
    callback_seconds: u64,
    /// Certificates of authorities in PEM, of those that certify callbacks over HTTPS
    #[arg(long, env = "LEXIFORM_CALLBACK_CA", value_name = "FILE")]
    callback_ca: Option<PathBuf>,
}

impl CallbackArgs {
    /// Returns the callbacks.
    ///
    /// # Errors
    /// Fails if they are not as they have to be, or a file cannot be read.
    pub(super) fn read(&self) -> Result<Callbacks, Failure> {
        let patience = Duration::from_secs(self.callback_seconds);
        let callbacks = Callbacks::new(&self.callback, patience, self.callback_ca.as_deref());
        callbacks.map_err(|error| Failure::message(format!("--callback: {error}")))
    }
}
