//! Explains in plain words why a text is no JSON, and where.

use serde::de::IgnoredAny;

/// Returns the place of the first mistake, in bytes, and its description; `None` if the text is JSON.
pub fn mistake(text: &str) -> Option<(usize, String)> {
    let error = serde_json::from_str::<IgnoredAny>(text).err()?;
    if error.is_eof() {
        let end = text.trim_end().len();
        return Some((end, cut_short(&error.to_string(), end == 0).to_owned()));
    }
    let offset = offset(text, error.line(), error.column());
    let message = error.to_string();
    let message = message
        .rsplit_once(" at line ")
        .map_or(message.as_str(), |(message, _)| message);
    let comes_after_comma = text[..offset].trim_end().ends_with(',');
    let words = match text[offset..].chars().next() {
        Some(']' | '}') if comes_after_comma => "a comma before the closing bracket".to_owned(),
        found => in_words(message, found),
    };
    Some((offset, words))
}

/// Returns the offset of a mistake. The reader counts columns in bytes, from one; a mistake at a line break
/// is in column 0 of the next line.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let mut offset = (before + column).saturating_sub(1).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

fn cut_short(message: &str, is_empty: bool) -> &'static str {
    let parsing = |what: &str| message.contains(what);
    match () {
        () if is_empty => "there is nothing in it",
        () if parsing("a list") => "it ends within an array; `]` is missing",
        () if parsing("an object") => "it ends within an object; `}` is missing",
        () if parsing("a string") => "it ends within a string; `\"` is missing",
        () => "it ends where a value should stand",
    }
}

fn in_words(message: &str, found: Option<char>) -> String {
    let words = match (message, found) {
        ("expected value" | "key must be a string", Some('\'')) => "strings stand in double quotes",
        ("expected value" | "key must be a string", Some('/' | '#')) => "JSON has no comments",
        ("trailing characters", _) => "the value ends before this, and nothing may follow",
        ("key must be a string", _) => "a key in double quotes must stand here",
        ("expected `:`", _) => "`:` is missing after the key",
        ("expected `,` or `]`", _) => "`,` or `]` is missing",
        ("expected `,` or `}`", _) => "`,` or `}` is missing",
        ("expected ident", _) => "not `true`, `false` or `null`",
        ("expected value", _) => "a value must stand here",
        ("invalid number", _) => "not a number of JSON",
        ("invalid escape", _) => {
            "no escape of JSON: after `\\` come one of `\"\\/bfnrt` or `u` and four digits"
        }
        (control, _) if control.starts_with("control character") => {
            "a control character within a string; a line break is written as `\\n`"
        }
        (other, _) => other,
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_found_where_they_are() {
        for (text, offset, words) in [
            ("", 0, "there is nothing in it"),
            (" \n", 0, "there is nothing in it"),
            ("{\"a\":\n", 5, "it ends where a value should stand"),
            ("{\"a\": 1\n ", 7, "it ends within an object; `}` is missing"),
            ("[1, 2", 5, "it ends within an array; `]` is missing"),
            ("{\"a", 3, "it ends within a string; `\"` is missing"),
            ("{\n  'a': 1}", 4, "strings stand in double quotes"),
            ("[1,]", 3, "a comma before the closing bracket"),
            ("{\"ä\": x}", 7, "a value must stand here"),
            ("{} {}", 3, "the value ends before this, and nothing may follow"),
            ("{\"a\" 1}", 5, "`:` is missing after the key"),
            ("[1 2]", 3, "`,` or `]` is missing"),
            ("// a\n1", 0, "JSON has no comments"),
        ] {
            assert_eq!(mistake(text), Some((offset, words.to_owned())), "{text:?}");
        }
        assert_eq!(mistake("{\"a\": [1, null]}"), None);
    }
}
