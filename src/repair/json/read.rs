//! Reads JSON as people and models write it.
//!
//! Beyond JSON, it accepts comments, trailing and missing commas, `=` for `:`, keys without quotes, other
//! quotation marks, quotation marks and line breaks within strings, words without quotes, and missing
//! brackets at the end. Nothing is an error: anything that is not a value is left out.

use std::ops::Range;

/// The deepest nesting of brackets; the reader and the writer recurse. Anything deeper is left out.
const MOST_BRACKETS: usize = 128;

/// A value with its range of bytes in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Read {
    pub(super) value: Value,
    pub(super) span: Range<usize>,
}

/// A value. White space is stored as its range, so that it can be written again where the grammar allows it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// The members in their order, and the white space before the closing bracket.
    Object(Vec<Member>, Range<usize>),
    /// The items with the white space before each, and the white space before the closing bracket.
    Array(Vec<(Range<usize>, Read)>, Range<usize>),
    /// A text in quotation marks.
    Text(Text),
    /// A word without quotation marks: a number, a literal, or a text. `cut` is `true` if the text ends with
    /// it.
    Word { word: String, cut: bool },
}

/// A text in quotation marks; `cut` is `true` if the text ends before the closing mark.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Text {
    pub(super) content: String,
    pub(super) cut: bool,
}

/// A member of an object; `value` is `None` if it has no value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) space: Range<usize>,
    pub(super) key: Text,
    pub(super) key_span: Range<usize>,
    pub(super) value_space: Range<usize>,
    pub(super) value: Option<Read>,
    pub(super) end: usize,
}

/// Returns at most `most` values that the text may be meant to contain: those in brackets, the longest first,
/// and then the whole text.
pub(super) fn candidates(text: &str, most: usize) -> Vec<Read> {
    let mut found = in_brackets(text, 0, ['{', '[']);
    // A bracket in the prose may have swallowed the object.
    if found
        .first()
        .is_some_and(|first| text[first.span.start..].starts_with('['))
    {
        found.extend(in_brackets(text, 0, ['{', '{']).into_iter().take(1));
    }
    found.sort_by_key(|read| std::cmp::Reverse(read.span.len()));
    found.truncate(most - 1);
    found.extend(alone(text));
    found
}

/// Returns the values that begin with one of these brackets, one after the other.
fn in_brackets(text: &str, from: usize, open: [char; 2]) -> Vec<Read> {
    let (mut at, mut found) = (from, Vec::new());
    while let Some(next) = text[at..].find(open) {
        let mut reader = JsonReader { text, at: at + next };
        found.extend(reader.value(0));
        at = reader.at.max(at + next + 1);
    }
    found
}

/// Returns the text as one value without brackets; the lines of a fence are not part of it.
fn alone(text: &str) -> Option<Read> {
    let fence = |line: &str| line.trim_start().starts_with("```");
    let mut start = text.len() - text.trim_start().len();
    let mut end = text.trim_end().len();
    if start < end && fence(&text[start..end]) {
        start = text[start..end].find('\n').map_or(end, |line| start + line + 1);
        end = text[start..end].rfind("```").map_or(end, |at| start + at);
    }
    let body = text.get(start..end)?;
    let start = start + (body.len() - body.trim_start().len());
    let body = body.trim();
    let first = body.chars().next()?;
    let mut reader = JsonReader {
        text: &text[..start + body.len()],
        at: start,
    };
    let value = match closing(first) {
        Some(_) => Value::Text(reader.text(Role::Value)),
        None => Value::Word {
            word: body.to_owned(),
            cut: true,
        },
    };
    Some(Read {
        value,
        span: start..start + body.len(),
    })
}

/// The role of a text in quotation marks.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// A key. The colon after it may be missing.
    Key,
    Value,
}

impl Role {
    /// Returns the characters that may follow such a text.
    fn behind(self) -> &'static str {
        match self {
            Role::Key => ",;}]:/={[-0123456789",
            Role::Value => ",;}]:/=",
        }
    }
}

/// Returns the closing quotation mark for an opening one.
fn closing(open: char) -> Option<char> {
    match open {
        '"' | '\'' | '`' => Some(open),
        '“' | '„' => Some('”'),
        '‘' => Some('’'),
        _ => None,
    }
}

struct JsonReader<'t> {
    text: &'t str,
    at: usize,
}

impl JsonReader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn takes(&mut self, one: char) -> bool {
        let is_there = self.peek() == Some(one);
        self.at += if is_there { one.len_utf8() } else { 0 };
        is_there
    }

    /// Skips white space and comments, and returns their range.
    fn space(&mut self) -> Range<usize> {
        let start = self.at;
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start().len();
            let comment = match rest.get(..2) {
                _ if blank > 0 => blank,
                Some("//") => rest.find('\n').unwrap_or(rest.len()),
                Some("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
                _ => break,
            };
            self.at += comment;
        }
        start..self.at
    }

    /// Reads the value that begins here, if there is one. Values that are nested too deeply are skipped.
    fn value(&mut self, depth: usize) -> Option<Read> {
        let start = self.at;
        let value = match self.peek()? {
            ',' | '}' | ']' | ':' | ';' => return None,
            '{' | '[' if depth == MOST_BRACKETS => {
                self.at = self.text.len();
                return None;
            }
            '{' => self.object(depth),
            '[' => self.array(depth),
            quote if closing(quote).is_some() => Value::Text(self.text(Role::Value)),
            _ => self.word(),
        };
        Some(Read {
            value,
            span: start..self.at,
        })
    }

    fn object(&mut self, depth: usize) -> Value {
        self.at += 1;
        let mut members = Vec::new();
        loop {
            let mut space = self.space();
            while self.takes(',') || self.takes(';') {
                space = self.space();
            }
            match self.peek() {
                None => return Value::Object(members, space),
                Some('}') => {
                    self.at += 1;
                    return Value::Object(members, space);
                }
                Some(':' | '=' | ']' | '{' | '[') => self.at += 1,
                Some(_) => members.push(self.member(space, depth)),
            }
        }
    }

    fn member(&mut self, space: Range<usize>, depth: usize) -> Member {
        let start = self.at;
        let is_quoted = self.peek().and_then(closing).is_some();
        let key = match is_quoted {
            true => self.text(Role::Key),
            false => self.bare_key(),
        };
        let key_span = start..self.at;
        let before = self.at;
        self.space();
        let has_colon = self.takes(':') || self.takes('=');
        self.takes('>');
        let value_space = self.space();
        let begins_a_value = |c: char| closing(c).is_some() || c.is_ascii_alphanumeric() || "{[-".contains(c);
        let has_value = has_colon || (is_quoted && self.peek().is_some_and(begins_a_value));
        let value = has_value.then(|| self.value(depth + 1)).flatten();
        if !has_value {
            self.at = before;
        }
        let end = self.at;
        Member {
            space,
            key,
            key_span,
            value_space,
            value,
            end,
        }
    }

    fn bare_key(&mut self) -> Text {
        let rest = &self.text[self.at..];
        let length = rest
            .find([':', '=', ',', ';', '}', ']', '{', '[', '\n'])
            .unwrap_or(rest.len());
        // A key is never empty, so that the reader makes progress.
        let length = length.max(rest.chars().next().map_or(0, char::len_utf8));
        let content = rest[..length].trim_end();
        self.at += content.len().max(1);
        let cut = self.at == self.text.len();
        Text {
            content: content.to_owned(),
            cut,
        }
    }

    fn array(&mut self, depth: usize) -> Value {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            let mut space = self.space();
            while self.takes(',') || self.takes(';') {
                space = self.space();
            }
            match self.peek() {
                None => return Value::Array(items, space),
                Some(']') => {
                    self.at += 1;
                    return Value::Array(items, space);
                }
                Some('}' | ':') => self.at += 1,
                Some(_) => items.extend(self.value(depth + 1).map(|value| (space, value))),
            }
        }
    }

    /// Reads a word up to a comma, a bracket or the end of the line.
    fn word(&mut self) -> Value {
        let rest = &self.text[self.at..];
        let length = rest.find([',', '}', ']', '\n']).unwrap_or(rest.len());
        let word = rest[..length].trim_end();
        // A comment ends a word, too.
        let word = word.split(" //").next().unwrap_or(word).trim_end();
        self.at += word.len().max(1);
        Value::Word {
            word: word.to_owned(),
            cut: self.at == self.text.len(),
        }
    }

    /// Reads a text in quotation marks. A mark closes it only if it is followed by a character that may
    /// follow the text, by another quotation mark, or by the end of the line; a key may be closed by a
    /// different mark than the one that opened it.
    fn text(&mut self, role: Role) -> Text {
        let open = self.peek().unwrap_or('"');
        let close = closing(open).unwrap_or(open);
        self.at += open.len_utf8();
        let mut content = String::new();
        while let Some(c) = self.peek() {
            self.at += c.len_utf8();
            let is_other = role == Role::Key && matches!(c, '"' | '\'') && self.next_is(':');
            match c {
                '\\' => self.escape(&mut content),
                c if is_other || (c == close && self.is_closing(role)) => {
                    return Text { content, cut: false };
                }
                c => content.push(c),
            }
        }
        Text { content, cut: true }
    }

    fn next_is(&self, one: char) -> bool {
        self.text[self.at..].trim_start().starts_with(one)
    }

    fn is_closing(&self, role: Role) -> bool {
        let rest = &self.text[self.at..];
        let next = rest.trim_start();
        let is_end_of_line = rest[..rest.len() - next.len()].contains('\n');
        let may_follow = |c: char| role.behind().contains(c) || closing(c).is_some();
        is_end_of_line || next.chars().next().is_none_or(may_follow)
    }

    fn escape(&mut self, content: &mut String) {
        let Some(c) = self.peek() else {
            return;
        };
        self.at += c.len_utf8();
        match c {
            'n' => content.push('\n'),
            'r' => content.push('\r'),
            't' => content.push('\t'),
            'b' => content.push('\u{8}'),
            'f' => content.push('\u{c}'),
            'u' => match self.unicode() {
                Some(c) => content.push(c),
                None => content.push_str("\\u"),
            },
            '"' | '\'' | '\\' | '/' | '`' => content.push(c),
            c => content.extend(['\\', c]),
        }
    }

    /// Decodes four hexadecimal digits, or two groups of four.
    fn unicode(&mut self) -> Option<char> {
        let first = self.digits(self.at)?;
        if let Some(c) = char::from_u32(first) {
            self.at += 4;
            return Some(c);
        }
        let second = self
            .text
            .get(self.at + 4..)?
            .strip_prefix("\\u")
            .and_then(|_| self.digits(self.at + 6))?;
        let pair = char::decode_utf16([u16::try_from(first).ok()?, u16::try_from(second).ok()?]).next()?;
        self.at += 10;
        pair.ok()
    }

    fn digits(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats a value in a short form.
    fn shown(read: &Read) -> String {
        match &read.value {
            Value::Object(members, _) => {
                let members = members.iter().map(|member| {
                    let value = member.value.as_ref().map_or("-".to_owned(), shown);
                    format!("{}:{value}", member.key.content)
                });
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            Value::Array(items, _) => {
                let items = items.iter().map(|(_, item)| shown(item));
                format!("[{}]", items.collect::<Vec<_>>().join(","))
            }
            Value::Text(text) => format!("{:?}", text.content),
            Value::Word { word, .. } => format!("<{word}>"),
        }
    }

    #[test]
    fn what_models_write_is_read() {
        for (text, expected) in [
            (r#"{"a": 1, "b": [true, null]}"#, "{a:<1>,b:[<true>,<null>]}"),
            (r#"{'a': 'x', b: "y",}"#, r#"{a:"x",b:"y"}"#),
            ("```json\n{\"a\": 1}\n```", "{a:<1>}"),
            (r#"Sure! {"a": {"b": 1}} Bye."#, "{a:{b:<1>}}"),
            (
                r#"{a: Maria Keller, b = True, "c" 3}"#,
                "{a:<Maria Keller>,b:<True>,c:<3>}",
            ),
            (
                r#"{"a": "He said "hi" to me", "b": 'It's'}"#,
                r#"{a:"He said \"hi\" to me",b:"It's"}"#,
            ),
            (r#"{"a": "x" "b": "y" // no"#, r#"{a:"x",b:"y"}"#),
            ("{\"a\": [1, 2\n  \"b\": 3", "{a:[<1>,<2>,\"b\",<3>]}"),
            (r#"{"a": "x", lives in Vienna}"#, r#"{a:"x",lives in Vienna:-}"#),
            (r#"{"a": "\u00e9\ud83d\ude00\d\'"}"#, r#"{a:"é😀\\d'"}"#),
            (r#"{“a”: ‘b’ /* c */}"#, r#"{a:"b"}"#),
            (r#"{'a": 1}"#, "{a:<1>}"),
            ("[[],{},,]", "[[],{}]"),
            ("yes", "<yes>"),
            ("```\n'yes'\n```", r#""yes""#),
        ] {
            assert_eq!(shown(&candidates(text, 5)[0]), expected, "{text}");
        }
    }

    #[test]
    fn a_bracket_of_the_prose_hides_no_object() {
        let found = candidates("see [1 for this: {\"a\": 1}", 5);
        assert!(found.iter().any(|read| shown(read) == "{a:<1>}"), "{found:?}");
    }

    #[test]
    fn hostile_texts_are_read_in_one_walk() {
        for text in [
            "[".repeat(100_000),
            "{a:".repeat(50_000),
            "\"".repeat(100_000),
            "{\"".repeat(50_000),
            "{=".repeat(50_000),
        ] {
            assert!(candidates(&text, 5).len() <= 5);
        }
    }
}
