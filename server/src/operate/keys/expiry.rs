//! The moment at which a key expires: a date of TOML, or its text, as RFC 3339 writes dates. Without a time
//! it is the beginning of the day, and without an offset the time is that of UTC.

use figment::value::Value;
use time::{Date, Month};

/// The name under which the reader of TOML hands over dates.
const TOML_DATE: &str = "$__toml_private_datetime";

/// Returns the seconds from 1970 to the moment.
pub(super) fn read(value: &Value) -> Result<u64, String> {
    let text = value
        .as_str()
        .or_else(|| value.as_dict()?.get(TOML_DATE)?.as_str());
    let seconds = text.and_then(seconds);
    let found = text.unwrap_or("another value");
    seconds.ok_or_else(|| format!("{found} is no date such as 2027-01-31 or 2027-01-31T12:00:00Z"))
}

fn seconds(text: &str) -> Option<u64> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        None => (text, None),
        Some((date, time)) => (date, Some(time)),
    };
    let seconds = time.map_or(Some(0), seconds_of_day)?;
    u64::try_from(midnight(date)? + seconds).ok()
}

/// Returns the seconds from 1970 to the beginning of a date, `year-month-day`.
fn midnight(date: &str) -> Option<i64> {
    let mut parts = date.split('-');
    let (year, month, day) = (
        digits(parts.next()?, 4)?,
        digits(parts.next()?, 2)?,
        digits(parts.next()?, 2)?,
    );
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?).ok()?;
    let is_whole = parts.next().is_none();
    is_whole.then(|| date.midnight().assume_utc().unix_timestamp())
}

/// Returns the seconds from the beginning of the day in UTC to a time, `hours:minutes:seconds` with an
/// offset.
fn seconds_of_day(time: &str) -> Option<i64> {
    let (time, offset) = match time.find(['Z', 'z', '+', '-']) {
        None => (time, 0),
        Some(at) => (&time[..at], offset(&time[at..])?),
    };
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut parts = whole.split(':');
    let (hours, minutes) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let seconds = parts.next().map_or(Some(0), |part| digits(part, 2))?;
    let is_time = hours < 24 && minutes < 60 && seconds <= 60 && parts.next().is_none();
    is_time.then_some(hours * 3_600 + minutes * 60 + seconds - offset)
}

fn offset(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first()? {
        b'Z' | b'z' => return (text.len() == 1).then_some(0),
        b'-' => -1,
        _ => 1,
    };
    let (hours, minutes) = text[1..].split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_1970() {
        for (text, expected) in [
            ("1970-01-01", 0),
            ("1970-01-01T00:00:01Z", 1),
            ("1970-03-01", 59 * 86_400),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2027-01-31", 1_801_353_600),
            ("2027-01-31T01:00:00+01:00", 1_801_353_600),
            ("2027-01-30 19:30:00.5-04:30", 1_801_353_600),
            ("2100-03-01T00:00", 4_107_542_400),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "soon",
            "2027",
            "2027-1-31",
            "2027-02-29",
            "2027-13-01",
            "2027-01-00",
            "2027-01-31-1",
            "1969-12-31",
            "2027-01-31T",
            "2027-01-31T25:00:00",
            "2027-01-31T10:00:00+1",
            "2027-01-31T10:00:00Zz",
            "2027-01-31T10:00:00.",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
