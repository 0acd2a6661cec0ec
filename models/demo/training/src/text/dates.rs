//! Days and times, as people write them and as JSON Schema's formats want them.

use super::scene::{Fact, Node};
use super::values::Values;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// A day of the calendar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Day {
    /// The year.
    pub(crate) year: i64,
    /// The month, from 1.
    pub(crate) month: i64,
    /// The day of the month, from 1.
    pub(crate) day: i64,
}

impl Day {
    /// Any day that every month has, from the middle of the last century on.
    pub(crate) fn any(values: &mut Values, first_year: i64, last_year: i64) -> Self {
        let random = &mut values.random;
        Self {
            year: random.between(first_year, last_year),
            month: random.between(1, 12),
            day: random.between(1, 28),
        }
    }

    /// `2024-03-05`
    pub(crate) fn iso(self) -> String {
        format!("{}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// One of the ways in which a text writes it.
    pub(crate) fn words(self, values: &mut Values) -> String {
        let (month, day, year) = (MONTHS[self.month as usize - 1], self.day, self.year);
        match values.random.below(5) {
            0 | 1 => self.iso(),
            2 => format!("{day} {month} {year}"),
            _ => format!("{month} {day}, {year}"),
        }
    }

    /// The fact that something is on this day.
    pub(crate) fn fact(self, values: &mut Values, slot: &'static str, keys: &'static [&'static str]) -> Fact {
        let words = self.words(values);
        Fact {
            slot,
            keys,
            node: Node::Formatted("date", self.iso(), words.clone()),
            words,
        }
    }
}

/// A time of the day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    hour: i64,
    minute: i64,
}

impl Clock {
    /// Any time from `first` to `last` o'clock.
    pub(crate) fn any(values: &mut Values, first: i64, last: i64) -> Self {
        let minute = *values.random.pick(&[0, 0, 0, 30, 30, 15, 45, 20, 5]);
        Self {
            hour: values.random.between(first, last),
            minute,
        }
    }

    /// `15:30`
    pub(crate) fn short(self) -> String {
        format!("{:02}:{:02}", self.hour, self.minute)
    }

    /// `15:30:00Z`, which is what the format `time` asks for.
    pub(crate) fn full(self) -> String {
        format!("{}:00Z", self.short())
    }

    /// The fact that something is at this time.
    pub(crate) fn fact(self, values: &mut Values, slot: &'static str, keys: &'static [&'static str]) -> Fact {
        let half = if self.hour < 12 { "am" } else { "pm" };
        let hour = (self.hour + 11) % 12 + 1;
        let words = match values.random.below(4) {
            0 if self.minute == 0 => format!("{hour} {half}"),
            0 | 1 => format!("{hour}:{:02} {half}", self.minute),
            _ => self.short(),
        };
        Fact {
            slot,
            keys,
            node: Node::Formatted("time", self.full(), words.clone()),
            words,
        }
    }
}

/// A day of the week.
pub(crate) fn weekday(values: &mut Values) -> &'static str {
    WEEKDAYS[values.random.below(7)]
}

/// A month and a year, such as `May 2021`.
pub(crate) fn month(values: &mut Values) -> String {
    format!(
        "{} {}",
        MONTHS[values.random.below(12)],
        values.random.between(1990, 2030)
    )
}

/// The fact that something is at a time of a day, as one string.
pub(super) fn moment(
    values: &mut Values,
    day: Day,
    time: Clock,
    slot: &'static str,
    keys: &'static [&'static str],
) -> Fact {
    let clock = time.fact(values, slot, keys).words;
    let words = format!("{} at {clock}", day.words(values));
    let full = format!("{}T{}", day.iso(), time.full());
    Fact {
        slot,
        keys,
        node: Node::Formatted("date-time", full, words.clone()),
        words,
    }
}
