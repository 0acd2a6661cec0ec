//! `--only`: the cases that are judged, by the names that a report shows.

use super::report::again;
use crate::failure::Failure;
use crate::report::CommandLine;

/// The cases that are judged; all of them if none is named.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Only {
    /// Only the case of this name, as the list of failures shows it; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
}

impl Only {
    /// Returns `true` if the case of this name is judged.
    pub(super) fn has(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// Returns the command of this run without its choice of cases, to which a failure adds its own.
    pub(super) fn again() -> CommandLine {
        again().without(&["--only"])
    }

    /// # Errors
    /// No case has one of the names, so that a report on none would look like a good one.
    pub(super) fn check(&self, judged: u64) -> Result<(), Failure> {
        if judged > 0 || self.only.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = self.only.iter().map(|name| format!("{name:?}")).collect();
        let message = format!("no case has the name {}", names.join(" or "));
        Err(Failure::message(message))
    }
}
