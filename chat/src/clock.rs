//! `strftime_now`: the date in UTC, for templates that mention the current day. The caller says what time it is.

const MONTHS: &str = "January February March April May June July August September October November December";
/// The names of the weekdays, from 1 January 1970, a Thursday.
const DAYS: &str = "Thursday Friday Saturday Sunday Monday Tuesday Wednesday";

/// Returns the name at this index of a list.
fn name(names: &'static str, place: u64) -> &'static str {
    let place = usize::try_from(place).unwrap_or(0);
    names.split(' ').nth(place).unwrap_or_default()
}

/// Formats the seconds since 1970 in a `strftime` format.
///
/// # Errors
/// Returns the message of a directive that is not known.
pub(crate) fn at(seconds: u64, format: &str) -> Result<String, String> {
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
            Some('-') if letters.as_str().starts_with('d') => {
                letters.next();
                out.push_str(&day.to_string());
            }
            Some('j') => out.push_str(&format!("{:03}", days - first_day(year) + 1)),
            Some('y') => out.push_str(&format!("{:02}", year % 100)),
            Some('H') => out.push_str(&format!("{:02}", time / 3600)),
            Some('M') => out.push_str(&format!("{:02}", time / 60 % 60)),
            Some('S') => out.push_str(&format!("{:02}", time % 60)),
            Some('%') => out.push('%'),
            other => {
                let directive = other.map_or_else(|| "%".to_owned(), |letter| format!("%{letter}"));
                return Err(format!("strftime_now does not know the directive {directive}"));
            }
        }
    }
    Ok(out)
}

/// Returns the number of days from 1970 to the first day of a year that is not before it.
fn first_day(year: u64) -> u64 {
    let before = year - 1;
    before * 365 + before / 4 - before / 100 + before / 400 - 719_162
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
        let format = "%A %a %d %B %b %m %Y %H:%M:%S %% %-d %j %y";
        assert_eq!(
            at(0, format).ok().as_deref(),
            Some("Thursday Thu 01 January Jan 01 1970 00:00:00 % 1 001 70")
        );
        let leap_day = at(951_827_696, format).ok();
        assert_eq!(
            leap_day.as_deref(),
            Some("Tuesday Tue 29 February Feb 02 2000 12:34:56 % 29 060 00")
        );
        assert!(at(0, "%Q").is_err());
    }
}
