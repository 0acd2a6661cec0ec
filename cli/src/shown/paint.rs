//! Colours. They are put into every text, and taken out again where what prints it is no terminal or nobody
//! wants them.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

/// A verdict that is a yes.
pub fn good(text: impl Display) -> String {
    painted(AnsiColor::Green.on_default().bold(), text)
}

/// A verdict that is a no, and what is wrong.
pub fn bad(text: impl Display) -> String {
    painted(AnsiColor::Red.on_default().bold(), text)
}

/// A note.
pub fn note(text: impl Display) -> String {
    painted(AnsiColor::Yellow.on_default().bold(), text)
}

/// What is beside the point: margins, line numbers.
pub fn dim(text: impl Display) -> String {
    painted(Style::new().dimmed(), text)
}

fn painted(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}
