//! The frames in which models write calls of tools: the text before, between and after the name of a tool
//! and its arguments.
//!
//! ```text
//!   open  head NAME middle ARGUMENTS tail  ( between  head NAME middle ARGUMENTS tail )*  close
//! ```
//!
//! Each family of models was trained on a different frame, and small models often write the frame of another
//! family, or plain JSON, with or without a fenced block. The [table](super::table) lists them; everything
//! else follows from it: the grammar of a call, the text that begins one, and the [reader](super::reader) of
//! an answer. A new frame is a new row.
//!
//! Free text becomes a call at its *trigger*: the first mark of the frame or, in a frame that begins with
//! plain text, the name of one of the tools with the text before it. Until then it is text: an object with
//! another first key, or with an unknown name, triggers nothing.

use std::ops::Range;

use serde_json::Map;

use crate::schema::ArgumentStyle;
use crate::tags::write_arguments;

/// The maximum number of bytes of white space, or of letters after a fence, in one place of a frame. Longer
/// runs do not match; so a model cannot continue them forever, and a stream is not held back for long.
pub const RUN: usize = 16;
/// The maximum length of the name of a tool that is not among those of the request, in bytes.
const NAME: usize = 256;

/// The end of an object that is a call, which models forget.
pub(super) const OBJECT_END: Piece<'static> = Either(&["}", ""]);

/// A tool, as the reader of an answer knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The name.
    pub name: String,
    /// `true` if its input is a text that ends with the answer, and not arguments in a frame.
    pub is_raw: bool,
}

/// A piece of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A mark: a text in which the names of tokens that text cannot produce denote these tokens, if the
    /// model has them.
    Mark(&'a str),
    /// Exactly this text.
    Text(&'a str),
    /// One of these texts, the first that matches.
    Either(&'a [&'a str]),
    /// JSON white space, up to [`RUN`] bytes.
    Space,
    /// Letters and underscores, up to [`RUN`]: the language after a fence.
    Letters,
    /// A number in up to [`RUN`] decimal digits.
    Digits,
}

use Piece::{Digits, Either, Letters, Mark, Space, Text};

/// The form in which a family of models writes calls.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The name of the frame, for display.
    pub name: &'static str,
    /// How the arguments are written.
    pub style: ArgumentStyle,
    /// The texts that no string of the arguments contains.
    pub excludes: &'static [&'static str],
    /// The pieces before `open` in an answer that has nothing but calls.
    pub before: &'static [Piece<'static>],
    /// The pieces before the first call.
    pub open: &'static [Piece<'static>],
    /// The pieces before the name of a tool.
    pub head: &'static [Piece<'static>],
    /// The pieces between the name and the arguments. In a frame that begins with plain text, the first is a
    /// text.
    pub middle: &'static [Piece<'static>],
    /// The pieces after the arguments.
    pub tail: &'static [Piece<'static>],
    /// The pieces between two calls.
    pub between: &'static [Piece<'static>],
    /// The pieces after the last call.
    pub close: &'static [Piece<'static>],
    /// The pieces that end an answer without calls and begin like `open`, if such an answer may end in a
    /// text of its own.
    pub ending: &'static [Piece<'static>],
    /// The pieces between the name of a custom tool and its raw input, which ends with the answer; `None` if
    /// the frame has no place for such input.
    pub raw: Option<&'static [Piece<'static>]>,
}

/// How far a text matches a sequence of pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// The text matches all pieces, with this many bytes.
    Whole(usize),
    /// The text ends before the pieces do.
    Begun,
    /// The text does not match.
    Not,
}

impl Match {
    /// Continues after a whole match, and adds up the lengths.
    fn then(self, next: impl FnOnce(usize) -> Self) -> Self {
        match self {
            Self::Whole(length) => match next(length) {
                Self::Whole(more) => Self::Whole(length + more),
                other => other,
            },
            other => other,
        }
    }
}

/// Matches pieces at the beginning of a text. White space and letters match as far as they extend, so a text
/// that ends in them has only begun.
pub(super) fn read<'p>(pieces: impl IntoIterator<Item = &'p Piece<'p>>, text: &str) -> Match {
    pieces.into_iter().fold(Match::Whole(0), |found, piece| {
        found.then(|at| piece.read(&text[at..]))
    })
}

impl Piece<'_> {
    fn read(&self, text: &str) -> Match {
        match self {
            Mark(wanted) | Text(wanted) => literal(wanted, text),
            Either(texts) => {
                let mut found = texts.iter().map(|wanted| literal(wanted, text));
                found.find(|found| *found != Match::Not).unwrap_or(Match::Not)
            }
            Space => run(text, |c| " \t\r\n".contains(c)),
            Letters => run(text, |c| c.is_ascii_alphabetic() || c == '_'),
            // `\d` of a structural tag has the digits of all scripts.
            Digits => match run(text, char::is_numeric) {
                Match::Whole(0) => Match::Not,
                found => found,
            },
        }
    }

    /// Returns a text that matches.
    pub(super) fn shown(&self) -> &str {
        match self {
            Mark(text) | Text(text) => text,
            Either(texts) => texts.first().copied().unwrap_or_default(),
            Space | Letters => "",
            Digits => "0",
        }
    }

    /// Returns the piece as a regular expression.
    fn pattern(&self) -> String {
        match self {
            Mark(text) | Text(text) => regex_syntax::escape(text),
            Either(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| regex_syntax::escape(text)).collect();
                format!("(?:{})", texts.join("|"))
            }
            Space => format!("[ \\t\\r\\n]{{0,{RUN}}}"),
            Letters => format!("[A-Za-z_]{{0,{RUN}}}"),
            Digits => format!("[0-9]{{1,{RUN}}}"),
        }
    }
}

/// Returns `true` if the name of a tool may contain this character.
fn is_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.".contains(c)
}

pub(super) fn literal(wanted: &str, text: &str) -> Match {
    if text.starts_with(wanted) {
        Match::Whole(wanted.len())
    } else if wanted.starts_with(text) {
        Match::Begun
    } else {
        Match::Not
    }
}

fn run(text: &str, is_in: impl Fn(char) -> bool) -> Match {
    let found = text.chars().take(RUN).take_while(|c| is_in(*c));
    let (count, length) = found.fold((0, 0), |(count, length), c| (count + 1, length + c.len_utf8()));
    if length == text.len() && count < RUN {
        Match::Begun
    } else {
        Match::Whole(length)
    }
}

/// Returns a sequence of pieces as a regular expression.
pub fn pattern<'p>(pieces: impl IntoIterator<Item = &'p Piece<'p>>) -> String {
    pieces.into_iter().map(Piece::pattern).collect()
}

impl Frame {
    /// Returns the mark that the frame begins with, if there is one.
    pub fn mark(&self) -> Option<&'static str> {
        match self.open.iter().chain(self.head).next() {
            Some(Mark(mark)) => Some(mark),
            _ => None,
        }
    }

    /// Returns the character that the frame begins with.
    pub(super) fn first(&self) -> Option<char> {
        match self.open.iter().chain(self.head).next() {
            Some(Mark(text) | Text(text)) => text.chars().next(),
            _ => None,
        }
    }

    /// Returns `true` if calls of a tool with raw input, or of another one, can be written in the frame.
    pub fn takes(&self, is_raw: bool) -> bool {
        !is_raw || self.raw.is_some()
    }

    /// Returns the pieces between the name of a tool and its input.
    pub fn before_input(&self, is_raw: bool) -> &'static [Piece<'static>] {
        match self.raw {
            Some(raw) if is_raw => raw,
            _ => self.middle,
        }
    }

    /// Returns the text that closes the name of a tool, which distinguishes `get` from `get_weather`.
    fn name_end(&self) -> &'static str {
        match self.middle.first() {
            Some(Text(text) | Mark(text)) => text.get(..1).unwrap_or_default(),
            _ => "",
        }
    }

    /// Returns the texts that begin a call of these tools, as a regular expression; `None` if the frame has
    /// a place for none of them.
    pub fn trigger(&self, tools: &[Tool]) -> Option<String> {
        let names: Vec<String> = tools
            .iter()
            .filter(|tool| self.takes(tool.is_raw))
            .map(|tool| regex_syntax::escape(&tool.name))
            .collect();
        if names.is_empty() {
            return None;
        }
        Some(match self.mark() {
            Some(mark) => regex_syntax::escape(mark),
            // The opening pieces may be missing: then another frame begins here.
            None => format!(
                "{}(?:{}){}",
                pattern(self.head),
                names.join("|"),
                regex_syntax::escape(self.name_end())
            ),
        })
    }

    /// Returns the ends of a text, as regular expressions, after which this frame would be the end of
    /// another one of these: a fence turns an object into a fenced object.
    pub fn not_behind(&self, frames: &[Frame]) -> Vec<String> {
        let longer = |other: &&Frame| other.head == self.head && other.open.len() > self.open.len();
        let before = frames.iter().filter(longer).filter_map(|other| {
            let before = other.open.strip_suffix(self.open)?;
            other.mark().is_none().then(|| pattern(before))
        });
        before.collect()
    }

    /// Checks whether a call of one of these tools begins at the start of this text.
    pub(super) fn begins(&self, tools: &[Tool], text: &str) -> Match {
        if let Some(mark) = self.mark() {
            return literal(mark, text);
        }
        let name_end = [Text(self.name_end())];
        read(self.open.iter().chain(self.head), text).then(|at| {
            let named = tools.iter().filter(|tool| self.takes(tool.is_raw));
            best(named.map(|tool| read([&Text(&tool.name)].into_iter().chain(&name_end), &text[at..])))
        })
    }

    /// Reads the beginning of a call, up to its input, in a text after the opening pieces.
    pub(super) fn call(&self, tools: &[Tool], text: &str) -> Called {
        let head = match read(self.head, text) {
            Match::Whole(head) => head,
            Match::Begun => return Called::Begun,
            Match::Not => return Called::Not,
        };
        // The name ends where no more of a name follows: `get` is not `get_weather`.
        let rest = &text[head..];
        let length = match rest.find(|c: char| !is_in_name(c)) {
            Some(0) => return Called::Not,
            Some(length) => length,
            None if rest.len() > NAME => return Called::Not,
            None => return Called::Begun,
        };
        let name = head..head + length;
        let tool = tools.iter().find(|tool| tool.name == text[name.clone()]);
        let pieces = match tool {
            Some(tool) if self.takes(tool.is_raw) => self.before_input(tool.is_raw),
            Some(_) => return Called::Not,
            None => self.middle,
        };
        match read(pieces, &text[name.end..]) {
            Match::Whole(length) => Called::Whole {
                length: name.end + length,
                name,
            },
            Match::Begun => Called::Begun,
            Match::Not => Called::Not,
        }
    }

    /// Returns the length of the text before the object that a call is, if the call is one and the text
    /// begins with it.
    pub(super) fn object(&self, text: &str) -> Match {
        let Some(at) = self.head.iter().position(|piece| *piece == Text("{")) else {
            return Match::Not;
        };
        read(&self.head[..at], text).then(|length| match literal("{", &text[length..]) {
            Match::Whole(_) => Match::Whole(0),
            other => other,
        })
    }

    /// Returns the pieces after the object that a call is.
    pub(super) fn after_object(&self) -> &'static [Piece<'static>] {
        let end = self.tail.iter().position(|piece| *piece == OBJECT_END);
        end.map_or(&[], |at| &self.tail[at + 1..])
    }

    /// Returns the frame as a model may be shown it, with words for the name and the arguments.
    pub fn shown(&self) -> String {
        let shown = |pieces: &[Piece<'_>]| pieces.iter().map(Piece::shown).collect::<String>();
        let arguments = match self.style {
            ArgumentStyle::Json => "ARGUMENTS".to_owned(),
            style => write_arguments(style, &Map::from_iter([("KEY".to_owned(), "VALUE".into())])),
        };
        let [open, head, middle] = [self.open, self.head, self.middle].map(shown);
        let [tail, close] = [self.tail, self.close].map(shown);
        [&open, &head, "NAME", &middle, &arguments, &tail, &close].concat()
    }
}

/// The beginning of a call in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Called {
    /// The text has all of it.
    Whole {
        /// The bytes of the name.
        name: Range<usize>,
        /// The number of bytes before the input.
        length: usize,
    },
    /// The text ends before it does.
    Begun,
    /// The text is something else.
    Not,
}

/// Returns the longest of several matches.
fn best(matches: impl Iterator<Item = Match>) -> Match {
    let rank = |found: &Match| match found {
        Match::Whole(length) => (2, *length),
        Match::Begun => (1, 0),
        Match::Not => (0, 0),
    };
    matches.max_by_key(rank).unwrap_or(Match::Not)
}

/// Returns the index of the frame in which a call begins at the start of a text.
pub(super) fn begins(frames: &[Frame], tools: &[Tool], text: &str) -> Match {
    let found = |frame: &Frame| frame.begins(tools, text);
    match frames
        .iter()
        .position(|frame| matches!(found(frame), Match::Whole(_)))
    {
        Some(frame) => Match::Whole(frame),
        None if frames.iter().any(|frame| found(frame) == Match::Begun) => Match::Begun,
        None => Match::Not,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::table::{FRAME_MARKS, FRAMES};

    fn tools() -> Vec<Tool> {
        let tool = |name: &str, is_raw| Tool {
            name: name.to_owned(),
            is_raw,
        };
        vec![tool("get", false), tool("get_time", false), tool("sql", true)]
    }

    /// Returns where a call begins in a text, and in which frame; without one, where one may begin.
    fn found(text: &str) -> Option<(usize, Option<&'static str>)> {
        let places = text.char_indices().map(|(at, _)| at);
        let found = |at: usize| match begins(FRAMES, &tools(), &text[at..]) {
            Match::Whole(frame) => Some((at, Some(FRAMES[frame].name))),
            Match::Begun => Some((at, None)),
            Match::Not => None,
        };
        places.into_iter().find_map(found)
    }

    #[test]
    fn a_call_begins_where_its_trigger_is_whole() {
        let table = [
            ("<tool_call>", Some((0, Some("hermes")))),
            ("so [TOOL_CALLS]", Some((3, Some("mistral")))),
            ("<|python_tag|>", Some((0, Some("llama")))),
            ("<function=get>", Some((0, Some("function")))),
            ("a {\"name\": \"get\"", Some((2, Some("object")))),
            ("{ \"name\":\n\"get_time\"", Some((0, Some("object")))),
            ("[{\"name\":\"get\"", Some((0, Some("list")))),
            ("[ [{\"name\":\"get\"", Some((2, Some("list")))),
            ("```json\n{\"name\": \"get\"", Some((0, Some("fenced object")))),
            ("````\n{\"name\": \"get\"", Some((1, Some("fenced object")))),
            ("``` [{\"name\": \"get\"", Some((0, Some("fenced list")))),
        ];
        for (text, expected) in table {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn text_that_may_begin_a_call_is_held_and_other_text_is_not() {
        let table = [
            ("{\"name\": \"ge", Some((0, None))),
            ("x ```js", Some((2, None))),
            ("a <", Some((2, None))),
            ("{\"name\": \"got\"", None),
            ("{\"name\": \"sql\"", None),
            ("{\"title\": \"get\"", None),
            ("{\"name\": 3", None),
            ("```json\n{\"a\"", None),
            ("<function=other>", None),
            ("1 < 2", None),
            ("[1", None),
        ];
        for (text, expected) in table {
            assert_eq!(found(text), expected, "{text}");
        }
        let long = format!("{{{}\"name\"", " ".repeat(RUN + 1));
        assert_eq!(found(&long), None, "white space is bounded");
    }

    #[test]
    fn a_frame_is_told_from_the_end_of_a_longer_one() {
        let count = |name: &str| {
            let frame = FRAMES.iter().find(|frame| frame.name == name);
            frame.expect("a frame").not_behind(FRAMES).len()
        };
        assert_eq!(
            ["object", "list", "fenced object", "hermes"].map(count),
            [3, 1, 0, 0]
        );
    }

    /// Guards against a frame that cannot be distinguished from free text: every trigger ends with a mark or
    /// a name.
    #[test]
    fn every_frame_has_a_trigger() {
        for frame in FRAMES {
            assert!(
                frame.mark().is_some() || !frame.name_end().is_empty(),
                "{}",
                frame.name
            );
            assert!(
                matches!(frame.middle.first(), Some(Text(text)) if !text.is_empty()),
                "{}",
                frame.name
            );
            let marks = [frame.open, frame.head, frame.tail, frame.between, frame.close];
            let unknown = marks.into_iter().flatten().find(|piece| match piece {
                Mark(mark) => !FRAME_MARKS.contains(mark),
                _ => false,
            });
            assert_eq!(unknown, None, "{}: marks of frames are listed", frame.name);
        }
        assert_eq!(
            FRAMES[1].trigger(&tools()[2..]),
            None,
            "only the first takes raw input"
        );
    }
}
