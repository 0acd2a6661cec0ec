//! Draws the parts of invented texts: numbers, people, places, days and times of day in several notations.

use serde_json::Value;

use crate::eval::tasks::statistics::Random;

/// A task that was invented.
pub(super) struct Invented {
    pub(super) prompt: String,
    /// `schema` or `tools`, with its value.
    pub(super) form: (&'static str, Value),
    pub(super) answer: Value,
}

/// Draws the parts of a task.
pub(super) struct Draw(Random);

impl Draw {
    /// Creates the generator of a task of a kind.
    pub(super) fn new(seed: u64, kind: u64, number: u64) -> Self {
        let mut random = Random::new(seed);
        let of_kind = random.next() ^ kind.wrapping_mul(0x9e37_79b9);
        let mut random = Random::new(of_kind);
        Self(Random::new(random.next() ^ number))
    }

    /// Returns a number of this range, with its ends.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.0.below((high - low + 1) as usize) as i64
    }

    /// Returns a multiple of `step` of this range.
    pub(super) fn step(&mut self, low: i64, high: i64, step: i64) -> i64 {
        self.between(low / step, high / step) * step
    }

    /// Returns `true` this many times in a hundred.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.0.below(100) < percent
    }

    /// Returns one of these.
    pub(super) fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.0.below(of.len())]
    }

    /// Returns `count` different ones of these, in any order.
    pub(super) fn some<T: Clone>(&mut self, of: &[T], count: usize) -> Vec<T> {
        let mut all = of.to_vec();
        self.shuffle(&mut all);
        all.truncate(count);
        all
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.0.below(last + 1));
        }
    }

    /// Returns the name of a person.
    pub(super) fn person(&mut self) -> String {
        format!("{} {}", self.one(&GIVEN), self.one(&FAMILY))
    }

    /// Returns different given names.
    pub(super) fn given(&mut self, count: usize) -> Vec<&'static str> {
        self.some(&GIVEN, count)
    }

    /// Returns different cities.
    pub(super) fn cities(&mut self, count: usize) -> Vec<&'static str> {
        self.some(&CITIES, count)
    }

    pub(super) fn day(&mut self, year: i64) -> Day {
        Day {
            year,
            month: self.between(1, 12),
            day: self.between(1, 28),
        }
    }
}

const GIVEN: [&str; 24] = [
    "Amara", "Bo", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hiro", "Ines", "Jonas", "Kavya", "Liam",
    "Mei", "Nuno", "Olga", "Pavel", "Quentin", "Rosa", "Sami", "Tuva", "Uma", "Viktor", "Wanda", "Yusuf",
];

const FAMILY: [&str; 20] = [
    "Abe", "Brandt", "Costa", "Dahl", "Eriksen", "Fofana", "Grau", "Haddad", "Ivanova", "Jensen", "Kaya",
    "Lehmann", "Moreau", "Novak", "Okafor", "Petrov", "Quist", "Rossi", "Silva", "Tanaka",
];

const CITIES: [&str; 18] = [
    "Bergen", "Porto", "Kraków", "Ghent", "Turku", "Lyon", "Zagreb", "Graz", "Malmö", "Sevilla", "Leeds",
    "Bologna", "Izmir", "Tartu", "Cork", "Patras", "Basel", "Utrecht",
];

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

const NUMBERS: [&str; 13] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];

/// Returns a small number in words.
pub(super) fn in_words(number: i64) -> String {
    let word = usize::try_from(number).ok().and_then(|it| NUMBERS.get(it));
    word.map_or_else(|| number.to_string(), |it| (*it).to_owned())
}

/// Returns an amount of hundredths as a JSON number.
pub(super) fn hundredths(amount: i64) -> Value {
    let sign = if amount < 0 { "-" } else { "" };
    let (whole, part) = (amount.abs() / 100, amount.abs() % 100);
    let spelled = match part {
        0 => format!("{sign}{whole}"),
        part if part % 10 == 0 => format!("{sign}{whole}.{}", part / 10),
        part => format!("{sign}{whole}.{part:02}"),
    };
    serde_json::from_str(&spelled).unwrap_or_default()
}

/// Returns an amount of hundredths as people write money.
pub(super) fn money(amount: i64) -> String {
    format!("{}.{:02}", amount / 100, amount % 100)
}

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Day {
    pub(super) year: i64,
    month: i64,
    day: i64,
}

impl Day {
    /// Returns the day as `2026-03-14`.
    pub(super) fn iso(self) -> String {
        format!("{}-{:02}-{:02}", self.year, self.month, self.day)
    }

    pub(super) fn month_name(self) -> &'static str {
        MONTHS[(self.month - 1) as usize]
    }

    /// Returns the day in a notation that has one meaning; harder ones at higher levels.
    pub(super) fn spelled(self, draw: &mut Draw, level: u64) -> String {
        let (year, name, day) = (self.year, self.month_name(), self.day);
        match draw.between(0, if level == 1 { 1 } else { 4 }) {
            0 => format!("{name} {day}, {year}"),
            1 => format!("{day} {name} {year}"),
            2 => format!("{day} {}. {year}", &name[..3]),
            3 => format!("the {} of {name} {year}", ordinal(day)),
            _ => format!("{year}/{:02}/{day:02}", self.month),
        }
    }

    /// Returns the day that comes this many days later.
    pub(super) fn plus(self, days: i64) -> Self {
        let mut later = Self {
            day: self.day + days,
            ..self
        };
        while later.day > later.days_of_month() {
            later.day -= later.days_of_month();
            later.month += 1;
            if later.month > 12 {
                later.month = 1;
                later.year += 1;
            }
        }
        later
    }

    fn days_of_month(self) -> i64 {
        let is_leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        match self.month {
            2 => 28 + i64::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}

fn ordinal(number: i64) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Returns a time of day as `19:30`.
pub(super) fn clock(minutes: i64) -> String {
    format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60)
}

/// Returns a time of day in a notation that has one meaning.
pub(super) fn clock_spelled(minutes: i64, draw: &mut Draw, level: u64) -> String {
    let (hour, minute) = (minutes / 60 % 24, minutes % 60);
    let twelve = (hour + 11) % 12 + 1;
    let half = if hour < 12 { "am" } else { "pm" };
    match draw.between(0, if level == 1 { 0 } else { 2 }) {
        0 => clock(minutes),
        1 if minute == 0 => format!("{twelve} {half}"),
        1 => format!("{twelve}:{minute:02} {half}"),
        _ => {
            let part = match hour {
                0..12 => "in the morning",
                12..18 => "in the afternoon",
                _ => "in the evening",
            };
            match minute {
                0 => format!("{} o'clock {part}", in_words(twelve)),
                30 => format!("half past {} {part}", in_words(twelve)),
                15 => format!("a quarter past {} {part}", in_words(twelve)),
                _ => format!("{twelve}:{minute:02} {part}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_over_months_and_years() {
        let day = |year, month, day| Day { year, month, day };
        assert_eq!(day(2024, 2, 28).plus(2), day(2024, 3, 1));
        assert_eq!(day(2026, 2, 28).plus(1), day(2026, 3, 1));
        assert_eq!(day(2026, 12, 20).plus(45), day(2027, 2, 3));
        assert_eq!(
            ["1st", "12th", "23rd", "30th"],
            [1, 12, 23, 30].map(ordinal).each_ref().map(String::as_str)
        );
    }

    #[test]
    fn amounts_and_times_are_written_as_they_are() {
        let amounts = [1200, 1250, 1205, -5, 0].map(|it| hundredths(it).to_string());
        assert_eq!(amounts, ["12", "12.5", "12.05", "-0.05", "0"]);
        let mut draw = Draw::new(1, 1, 1);
        for minutes in [0, 12 * 60, 13 * 60 + 15, 23 * 60 + 59] {
            assert_eq!(clock_spelled(minutes, &mut draw, 1), clock(minutes));
        }
    }
}
