//! `strftime_now`: the date in UTC, for templates that mention the current day.

use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::{Error, ErrorKind};

const MONTHS: &str = "January February March April May June July August September October November December";
/// The names of the weekdays, from 1 January 1970, a Thursday.
const DAYS: &str = "Thursday Friday Saturday Sunday Monday Tuesday Wednesday";

/// Formats the current time in a `strftime` format.
pub(super) fn now(format: &str) -> Result<String, Error> {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs());
    at(seconds, format)
}

/// Returns the name at this index of a list.
fn name(names: &'static str, place: u64) -> &'static str {
    let place = usize::try_from(place).unwrap_or(0);
    names.split(' ').nth(place).unwrap_or_default()
}

/// Formats the seconds since 1970 in a `strftime` format.
fn at(seconds: u64, format: &str) -> Result<String, Error> {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (weekday, month_name) = (name(DAYS, days % 7), name(MONTHS, month - 1));
    let mut out = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('Y') => out.push_str(&year.to_string()),
            Some('m') => out.push_str(&format!("{month:02}")),
            Some('d') => out.push_str(&format!("{day:02}")),
            Some('B') => out.push_str(month_name),
            Some('b') => out.push_str(&month_name[..3]),
            Some('A') => out.push_str(weekday),
            Some('a') => out.push_str(&weekday[..3]),
            Some('H') => out.push_str(&format!("{:02}", time / 3600)),
            Some('M') => out.push_str(&format!("{:02}", time / 60 % 60)),
            Some('S') => out.push_str(&format!("{:02}", time % 60)),
            Some('%') => out.push('%'),
            other => {
                let message = format!("strftime_now does not know the directive {other:?}");
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
        }
    }
    Ok(out)
}

/// Converts a number of days since 1970 to year, month and day in the Gregorian calendar. Years are counted
/// from March, so that the leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_strftime_writes_them() {
        let format = "%A %a %d %B %b %m %Y %H:%M:%S %%";
        assert_eq!(
            at(0, format).ok().as_deref(),
            Some("Thursday Thu 01 January Jan 01 1970 00:00:00 %")
        );
        let leap_day = at(951_827_696, format).ok();
        assert_eq!(
            leap_day.as_deref(),
            Some("Tuesday Tue 29 February Feb 02 2000 12:34:56 %")
        );
        assert!(at(0, "%Q").is_err());
    }
}
