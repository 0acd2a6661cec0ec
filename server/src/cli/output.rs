//! The standard output and the log of a running service.

use std::backtrace::{Backtrace, BacktraceStatus};

use lexiform_cli::failure::{Failure, reason};

use crate::operate::lines::Lines;

/// The standard output, for what the service says at its start, and the log on standard error. Neither can
/// stop the service: see [`Lines`].
pub(super) struct Output {
    pub(super) told: Lines,
    pub(super) log: Lines,
}

impl Output {
    /// Starts the log at a level and in a format, to which panics of any thread also go.
    ///
    /// # Errors
    /// Fails if the operating system has neither threads nor descriptors left.
    pub(super) fn open(level: tracing::Level, format: Format) -> Result<Self, Failure> {
        let unable = |error| Failure::Unable(format!("cannot start the log: {}", reason(&error)));
        let output = Self {
            told: Lines::to_descriptor(std::io::stdout()).map_err(unable)?,
            log: Lines::to_descriptor(std::io::stderr()).map_err(unable)?,
        };
        start(level, format, output.log.clone());
        let log = output.log.clone();
        std::panic::set_hook(Box::new(move |panic| {
            let trace = Backtrace::capture();
            log.line(&match trace.status() {
                BacktraceStatus::Captured => format!("lexiform: {panic}\n{trace}"),
                _ => format!("lexiform: {panic}"),
            });
        }));
        Ok(output)
    }

    /// Writes a notice to the log, at any level.
    pub(super) fn notice(&self, notice: &str) {
        self.log.line(&format!("lexiform: {notice}"));
    }
}

/// The format of a log.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Format {
    /// A human-readable log.
    Text,
    /// A log in JSON.
    Json,
}

impl Drop for Output {
    fn drop(&mut self) {
        self.told.flush();
        self.log.flush();
    }
}

fn start(level: tracing::Level, format: Format, lines: Lines) {
    let log = tracing_subscriber::fmt()
        .with_writer(lines)
        .with_max_level(level)
        // The subscriber would print its complaints on standard error itself.
        .log_internal_errors(false);
    let started = match format {
        Format::Text => log.with_ansi(false).try_init(),
        Format::Json => log.json().flatten_event(true).try_init(),
    };
    // A subscriber can exist only if another program calls this function; its subscriber is kept.
    drop(started);
}
