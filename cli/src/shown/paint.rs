//! Colours. Every text contains them; the printer removes them if the output is no terminal or colours are
//! disabled.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

/// Paints a positive verdict.
pub fn good(text: impl Display) -> String {
    painted(AnsiColor::Green.on_default().bold(), text)
}

/// Paints a negative verdict or an error.
pub fn bad(text: impl Display) -> String {
    painted(AnsiColor::Red.on_default().bold(), text)
}

/// Paints a note.
pub fn note(text: impl Display) -> String {
    painted(AnsiColor::Yellow.on_default().bold(), text)
}

/// Paints secondary text: margins, line numbers.
pub fn dim(text: impl Display) -> String {
    painted(Style::new().dimmed(), text)
}

fn painted(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}
