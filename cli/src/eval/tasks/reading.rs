//! Reads the answer out of a text in which a model may have written more than that.
//!
//! ```text
//!   text ── without thoughts ──┬─► the last whole JSON object or array, in a code fence or in prose
//!                              └─► prose: what follows "####", "answer is", "answer:" or "\boxed{"
//! ```
//!
//! A model that is free to write prose would otherwise be judged by its habits and not by its answer. The
//! same reading applies to every way of asking.

use lexiform::verdict::{find_twice, pointer};
use serde_json::{Deserializer, Value};

use super::decimal::{Decimal, first_in, last_in};

/// The type of JSON value that a task asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Object,
    Array,
}

/// The tags between which models think.
const THOUGHTS: [&str; 4] = ["</think>", "</thinking>", "</reasoning>", "</scratchpad>"];

/// The words after which models state an answer, in lower case.
const INTRODUCTIONS: [&str; 5] = ["####", "answer is", "answer:", "answer**:", "\\boxed{"];

/// A JSON value within a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Json {
    pub(super) value: Value,
    /// The first key that an object has twice: its place and the key.
    pub(super) twice: Option<(String, String)>,
    /// `true` if nothing else is in the text.
    pub(super) is_whole: bool,
}

/// Returns the text after the last thought.
pub(super) fn after_thoughts(text: &str) -> &str {
    let ends = THOUGHTS
        .iter()
        .filter_map(|tag| Some(text.rfind(tag)? + tag.len()));
    text[ends.max().unwrap_or(0)..].trim()
}

/// Returns the last JSON object or array of a text that is not part of another one of its type. A value
/// that is cut off at the end of the text is none, nor are its parts.
pub(super) fn last_json(text: &str, shape: Shape) -> Option<Json> {
    let mut last = None;
    let mut at = 0;
    while let Some(found) = text[at..].find(['{', '[']) {
        let start = at + found;
        let mut values = Deserializer::from_str(&text[start..]).into_iter::<Value>();
        at = start + 1;
        match values.next() {
            Some(Ok(value)) if value.is_object() == (shape == Shape::Object) => {
                at = start + values.byte_offset();
                last = Some((value, start..at));
            }
            Some(Err(error)) if error.is_eof() => break,
            _ => {}
        }
    }
    let (value, range) = last?;
    let spelled = text[range].as_bytes();
    let twice = find_twice(spelled).map(|it| (pointer(spelled, it.offset), it.key));
    let is_whole = spelled.len() == text.trim().len();
    Some(Json {
        value,
        twice,
        is_whole,
    })
}

/// Returns the number that a text states: the first one after the last introduction, otherwise the last
/// one.
pub(super) fn number(text: &str) -> Option<Decimal> {
    introduced(text).and_then(first_in).or_else(|| last_in(text))
}

/// Returns what a text states: what stands after the last introduction, otherwise its last line; without
/// quotes, marks and the full stop around it.
pub(super) fn statement(text: &str) -> &str {
    let stated = introduced(text).unwrap_or_else(|| text.trim_end().rsplit('\n').next().unwrap_or_default());
    let line = stated.trim().lines().next().unwrap_or_default();
    line.trim_matches(|it: char| it.is_whitespace() || "\"'`*.,:“”‘’{}$".contains(it))
}

/// Returns the choice that a text states, in any case: the first one after the last introduction, otherwise
/// the last one. Choices stand as words of their own, and the longest of those at one place is meant.
pub(super) fn choice<'a>(text: &str, choices: &[&'a str]) -> Option<&'a str> {
    let stated = introduced(text).and_then(|stated| {
        let places = choices
            .iter()
            .filter_map(|it| Some((places(stated, it).next()?, it)));
        places.min_by_key(|((start, end), _)| (*start, usize::MAX - end))
    });
    let last = || {
        let places = choices
            .iter()
            .filter_map(|it| Some((places(text, it).last()?, it)));
        places.max_by_key(|((start, end), _)| (*end, usize::MAX - start))
    };
    stated.or_else(last).map(|(_, choice)| *choice)
}

/// Returns where words stand in a text, in any case and not within longer words; offsets are those of the
/// text in lower case.
fn places(text: &str, words: &str) -> impl Iterator<Item = (usize, usize)> {
    let (text, words) = (text.to_lowercase(), words.to_lowercase());
    let within = |it: char| it.is_alphanumeric() || it == '_';
    let free = text.match_indices(&words).filter(|(start, _)| {
        let end = start + words.len();
        end > *start && !text[..*start].ends_with(within) && !text[end..].starts_with(within)
    });
    let free: Vec<_> = free.map(|(start, _)| (start, start + words.len())).collect();
    free.into_iter()
}

/// Returns what stands after the last introduction, if something does.
fn introduced(text: &str) -> Option<&str> {
    // Lower case in ASCII alone, which keeps every offset.
    let lower = text.to_ascii_lowercase();
    let ends = INTRODUCTIONS
        .iter()
        .filter_map(|words| Some(lower.rfind(words)? + words.len()));
    let rest = &text[ends.max()?..];
    rest.contains(char::is_alphanumeric).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(text: &str) -> Option<Value> {
        last_json(text, Shape::Object).map(|it| it.value)
    }

    #[test]
    fn json_is_found_in_prose_and_fences() {
        let wanted = Some(json!({"a": {"b": 1}}));
        for text in [
            r#"{"a": {"b": 1}}"#,
            "Here it is:\n```json\n{\"a\": {\"b\": 1}}\n```\nI hope {that} helps [1].",
            r#"First {"a": 2}, but no: {"a": {"b": 1}}"#,
            r#"{"a": [broken {"a": {"b": 1}} "#,
            r#"[{"a": {"b": 1}}]"#,
        ] {
            assert_eq!(object(text), wanted, "{text}");
        }
        let list = last_json("the list is {\"x\": [1, 2]}", Shape::Array).expect("a list");
        assert_eq!((list.value, list.is_whole), (json!([1, 2]), false));
        assert!(
            last_json(" {\"a\": 1}\n", Shape::Object)
                .expect("an object")
                .is_whole
        );
    }

    #[test]
    fn what_is_not_json_is_not_read() {
        for text in [
            "",
            "{",
            "{'a': 1}",
            "{\"a\": NaN}",
            "{\"a\": 1,}",
            "{\"a\": {\"b\": 1}",
            "42",
            "\"{}",
        ] {
            assert_eq!(object(text).filter(|it| *it != json!({})), None, "{text}");
        }
    }

    // Every opening bracket begins an attempt; depth bounds how far each of them reads.
    #[test]
    fn deep_and_long_texts_are_read_in_time() {
        assert_eq!(object(&"[".repeat(100_000)), None);
        assert_eq!(object(&"{\"a\":".repeat(50_000)), None);
        let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
        assert!(object(&deep).is_some_and(|it| it.pointer("/a/a/a").is_some()));
    }

    #[test]
    fn a_key_that_stands_twice_is_named() {
        let twice = |text: &str| last_json(text, Shape::Object).expect("an object").twice;
        assert_eq!(twice(r#"see: {"a": 1, "b": 2}"#), None);
        let found = twice(r#"see: {"a": {"b": 1, "\u0062": 2}}"#);
        assert_eq!(found, Some(("/a".to_owned(), "b".to_owned())));
    }

    #[test]
    fn thoughts_are_left_out() {
        assert_eq!(after_thoughts("<think>{\"a\": 1}</think>\n no "), "no");
        assert_eq!(after_thoughts("  plain "), "plain");
    }

    #[test]
    fn a_number_is_read_where_it_is_stated() {
        for (text, wanted) in [
            ("2 + 2 = 4\n#### 1,234", "1234"),
            ("The answer is 42. I checked it in 2 ways.", "42"),
            ("Answer: **-7** apples, not 8", "-7"),
            ("So we get \\boxed{0.5} for 3 people", "0.5"),
            ("first 1, then 5", "5"),
            ("The answer is: see above, 9", "9"),
            ("it was 6. The answer is ", "6"),
        ] {
            assert_eq!(number(text), Decimal::parse(wanted), "{text}");
        }
        assert_eq!(number("none"), None);
    }

    #[test]
    fn a_statement_has_no_marks_around_it() {
        for (text, wanted) in [
            ("Let me see.\nThe answer is \"yajo\".", "yajo"),
            ("**Answer:** `nk`", "nk"),
            ("step\nyajo\n", "yajo"),
            ("", ""),
        ] {
            assert_eq!(statement(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_choice_is_the_last_one_that_stands_alone() {
        let choices = ["ball", "red ball", "positive", "N/A"];
        for (text, wanted) in [
            ("I think Positive.", Some("positive")),
            ("Alice gets the red ball", Some("red ball")),
            ("positively", None),
            ("positive at first, but n/a in the end", Some("N/A")),
            ("The answer is positive, since the ball", Some("positive")),
            ("the ball? The answer is red ball, not ball", Some("red ball")),
            ("", None),
        ] {
            assert_eq!(choice(text, &choices), wanted, "{text}");
        }
    }
}
