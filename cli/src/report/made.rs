//! How a report is made: the day, the command line, the versions, the machine and the data.

mod command;
mod machine;
mod sums;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

pub use command::{CommandLine, quoted};
pub use machine::{memory, processor};

use super::model::{Data, Made};
use crate::failure::Failure;

impl Made {
    /// Describes this run: today, its command line, this program and this machine. The data is yet to be
    /// added.
    pub fn here() -> Self {
        Made {
            date: today(),
            command: CommandLine::of_this_run().to_string(),
            versions: vec![("lexiform".to_owned(), env!("CARGO_PKG_VERSION").to_owned())],
            machine: machine::facts(),
            data: Vec::new(),
        }
    }

    /// Adds a file or folder from which cases were read, with its size and sum.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(mut self, path: &Path) -> Result<Self, Failure> {
        self.data.push(Data::summed(path)?);
        Ok(self)
    }
}

impl Data {
    /// Sums a file or a folder.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn summed(path: &Path) -> Result<Self, Failure> {
        let (bytes, sha256) = sums::of(path)?;
        Ok(Data {
            path: path.display().to_string(),
            bytes,
            sha256,
        })
    }
}

/// Returns the day in UTC, as `2026-11-28`.
fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    day(now.map_or(0, |elapsed| elapsed.as_secs() / 86_400))
}

/// Writes a day, counted from 1 January 1970.
fn day(mut days: u64) -> String {
    let is_leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        let days = [0, 58, 59, 364, 365, 789, 790, 10_956, 11_016, 20_785];
        let dates = [
            "1970-01-01",
            "1970-02-28",
            "1970-03-01",
            "1970-12-31",
            "1971-01-01",
            "1972-02-29",
            "1972-03-01",
            "1999-12-31",
            "2000-02-29",
            "2026-11-28",
        ];
        assert_eq!(days.map(day), dates);
    }
}
