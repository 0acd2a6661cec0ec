//! The frames in which models write calls of tools: the text before, between and after the name of a tool and
//! its arguments.
//!
//! ```text
//!   open  head NAME middle ARGUMENTS tail  ( between  head NAME middle ARGUMENTS tail )*  close
//! ```
//!
//! Each family of models was trained on a different frame, and small models often write the frame of another
//! family, or plain JSON, with or without a fenced block. [`FRAMES`] is the list; everything else follows
//! from it: the grammar of a call ([`lowering`](super::lowering)), the text that begins one, and the reader
//! of an answer ([`answer::parts`](crate::answer::parts)). A new frame is a new row.
//!
//! Free text becomes a call at its *trigger*: the first mark of the frame or, in a frame that begins with
//! plain text, the name of one of the tools with the text before it. Until then it is text: an object with
//! another first key, or with an unknown name, triggers nothing.

use lexiform::schema::ArgumentStyle;
use lexiform_syntax::tags::write_arguments;
use serde_json::Map;

use crate::wire::tools::Callable;

/// The mark that opens a call in the frame of Hermes and Qwen.
pub const CALL: &str = "<tool_call>";
/// The mark that closes a call in the frame of Hermes and Qwen.
pub const END_CALL: &str = "</tool_call>";
/// The mark that opens the calls of Mistral's models.
const TOOL_CALLS: &str = "[TOOL_CALLS]";
/// The mark that opens the calls of Llama 3.
const PYTHON_TAG: &str = "<|python_tag|>";
/// All marks of frames.
pub const FRAME_MARKS: [&str; 4] = [CALL, END_CALL, TOOL_CALLS, PYTHON_TAG];

/// The maximum number of bytes of white space, or of letters after a fence, in one place of a frame. Longer
/// runs do not match; so a model cannot continue them forever, and a stream is not held back for long.
pub const RUN: usize = 16;

/// A piece of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A mark: a text in which the names of tokens that text cannot produce denote these tokens, if the model
    /// has them.
    Mark(&'a str),
    /// Exactly this text.
    Text(&'a str),
    /// One of these texts.
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
#[derive(Debug)]
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
    /// The pieces that end an answer without calls and begin like `open`, if such an answer may end in a text
    /// of its own.
    pub ending: &'static [Piece<'static>],
    /// The pieces between the name of a custom tool and its raw input, which ends with the answer; `None` if
    /// the frame has no place for such input.
    pub raw: Option<&'static [Piece<'static>]>,
}

/// The pieces before the name in an object.
const OBJECT: &[Piece<'static>] = &[
    Text("{"),
    Space,
    Text("\"name\""),
    Space,
    Text(":"),
    Space,
    Text("\""),
];
/// The pieces between the name and the arguments in an object.
const ARGUMENTS: &[Piece<'static>] = &[
    Text("\""),
    Space,
    Text(","),
    Space,
    Either(&["\"arguments\"", "\"parameters\""]),
    Space,
    Text(":"),
    Space,
];
/// The pieces after the arguments in an object.
const END_OBJECT: &[Piece<'static>] = &[Space, Text("}")];

/// A frame without pieces, around JSON.
const PLAIN: Frame = Frame {
    name: "",
    style: ArgumentStyle::Json,
    excludes: &[],
    before: &[],
    open: &[],
    head: &[],
    middle: &[],
    tail: &[],
    between: &[],
    close: &[],
    ending: &[],
    raw: None,
};

/// All frames of models whose format is not known. The first is used if an answer must be a call, and if its
/// text is under a constraint, which could be confused with the others.
pub const FRAMES: &[Frame] = &[
    Frame {
        name: "hermes",
        head: &[Mark(CALL), Text("\n{\"name\": \"")],
        middle: &[Text("\", \"arguments\": ")],
        tail: &[Text("}\n"), Mark(END_CALL)],
        between: &[Text("\n")],
        raw: Some(&[Text("\"}\n")]),
        ..PLAIN
    },
    Frame {
        name: "mistral",
        open: &[Mark(TOOL_CALLS), Space, Text("["), Space],
        head: OBJECT,
        middle: ARGUMENTS,
        tail: END_OBJECT,
        between: &[Text(","), Space],
        close: &[Space, Text("]")],
        ..PLAIN
    },
    Frame {
        name: "llama",
        open: &[Mark(PYTHON_TAG), Space],
        head: OBJECT,
        middle: ARGUMENTS,
        tail: END_OBJECT,
        between: &[Text(";"), Space],
        ..PLAIN
    },
    Frame {
        name: "function",
        head: &[Text("<function=")],
        middle: &[Text(">"), Space],
        tail: &[Space, Text("</function>")],
        between: &[Text("\n")],
        ..PLAIN
    },
    Frame {
        name: "fenced list",
        open: &[Text("```"), Letters, Space, Text("["), Space],
        head: OBJECT,
        middle: ARGUMENTS,
        tail: END_OBJECT,
        between: &[Text(","), Space],
        close: &[Space, Text("]\n```")],
        ..PLAIN
    },
    Frame {
        name: "fenced object",
        open: &[Text("```"), Letters, Space],
        head: OBJECT,
        middle: ARGUMENTS,
        tail: END_OBJECT,
        between: &[Text("\n")],
        close: &[Text("\n```")],
        ..PLAIN
    },
    Frame {
        name: "list",
        open: &[Text("["), Space],
        head: OBJECT,
        middle: ARGUMENTS,
        tail: END_OBJECT,
        between: &[Text(","), Space],
        close: &[Space, Text("]")],
        ..PLAIN
    },
    Frame {
        name: "object",
        head: OBJECT,
        middle: ARGUMENTS,
        tail: END_OBJECT,
        between: &[Text("\n")],
        ..PLAIN
    },
];

/// How far a text matches a sequence of pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
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
pub fn read<'p>(pieces: impl IntoIterator<Item = &'p Piece<'p>>, text: &str) -> Match {
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
                let begun = found.clone().any(|found| found == Match::Begun);
                let whole = found.find(|found| matches!(found, Match::Whole(_)));
                whole.unwrap_or(if begun { Match::Begun } else { Match::Not })
            }
            Space => run(text, |byte| b" \t\r\n".contains(&byte)),
            Letters => run(text, |byte| byte.is_ascii_alphabetic() || byte == b'_'),
            Digits => match run(text, |byte| byte.is_ascii_digit()) {
                Match::Whole(0) => Match::Not,
                found => found,
            },
        }
    }

    /// Returns a text that matches.
    fn shown(&self) -> &str {
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
            Mark(text) | Text(text) => regex::escape(text),
            Either(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| regex::escape(text)).collect();
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

fn literal(wanted: &str, text: &str) -> Match {
    if text.starts_with(wanted) {
        Match::Whole(wanted.len())
    } else if wanted.starts_with(text) {
        Match::Begun
    } else {
        Match::Not
    }
}

fn run(text: &str, is_in: impl Fn(u8) -> bool) -> Match {
    let length = text.bytes().take(RUN).take_while(|byte| is_in(*byte)).count();
    if length == text.len() && length < RUN {
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
    fn first(&self) -> Option<char> {
        match self.open.iter().chain(self.head).next() {
            Some(Mark(text) | Text(text)) => text.chars().next(),
            _ => None,
        }
    }

    /// Returns `true` if calls of this tool can be written in the frame.
    pub fn takes(&self, tool: &Callable) -> bool {
        !tool.is_custom() || self.raw.is_some()
    }

    /// Returns the pieces between the name of a tool and its input.
    pub fn before_input(&self, tool: &Callable) -> &'static [Piece<'static>] {
        match self.raw {
            Some(raw) if tool.is_custom() => raw,
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

    /// Returns the texts that begin a call of these tools, as a regular expression; `None` if the frame has a
    /// place for none of them.
    pub fn trigger(&self, tools: &[Callable]) -> Option<String> {
        let names: Vec<String> = tools
            .iter()
            .filter(|tool| self.takes(tool))
            .map(|tool| regex::escape(&tool.name))
            .collect();
        if names.is_empty() {
            return None;
        }
        Some(match self.mark() {
            Some(mark) => regex::escape(mark),
            // The opening pieces may be missing: then another frame begins here.
            None => format!(
                "{}(?:{}){}",
                pattern(self.head),
                names.join("|"),
                regex::escape(self.name_end())
            ),
        })
    }

    /// Returns the ends of a text, as regular expressions, after which this frame would be the end of another
    /// one: a fence turns an object into a fenced object.
    pub fn not_behind(&self) -> Vec<String> {
        let longer = |other: &&Frame| other.head == self.head && other.open.len() > self.open.len();
        let before = FRAMES.iter().filter(longer).filter_map(|other| {
            let before = other.open.strip_suffix(self.open)?;
            other.mark().is_none().then(|| pattern(before))
        });
        before.collect()
    }

    /// Checks whether a call of one of these tools begins at the start of this text.
    fn begins(&self, tools: &[Callable], text: &str) -> Match {
        if let Some(mark) = self.mark() {
            return literal(mark, text);
        }
        let name_end = [Text(self.name_end())];
        read(self.open.iter().chain(self.head), text).then(|at| {
            let named = tools.iter().filter(|tool| self.takes(tool));
            best(named.map(|tool| read([&Text(&tool.name)].into_iter().chain(&name_end), &text[at..])))
        })
    }

    /// Returns the tool that is called in a text after the opening pieces, by its index, and the offset of
    /// its input.
    pub fn call(&self, tools: &[Callable], text: &str) -> Option<(usize, usize)> {
        let Match::Whole(head) = read(self.head, text) else {
            return None;
        };
        // The name ends where no more of a name follows: `get` is not `get_weather`.
        let rest = &text[head..];
        let name = &rest[..rest.find(|c: char| !is_in_name(c))?];
        let place = tools
            .iter()
            .position(|tool| tool.name == name && self.takes(tool))?;
        match read(self.before_input(&tools[place]), &rest[name.len()..]) {
            Match::Whole(length) => Some((place, head + name.len() + length)),
            Match::Begun | Match::Not => None,
        }
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

/// Returns the longest of several matches.
fn best(matches: impl Iterator<Item = Match>) -> Match {
    let rank = |found: &Match| match found {
        Match::Whole(length) => (2, *length),
        Match::Begun => (1, 0),
        Match::Not => (0, 0),
    };
    matches.max_by_key(rank).unwrap_or(Match::Not)
}

/// Returns the first place of a text where a call begins; or, without a frame, where one may begin once more
/// text follows.
pub fn find<'f>(frames: &'f [Frame], tools: &[Callable], text: &str) -> Option<(usize, Option<&'f Frame>)> {
    let begins = |at: usize| {
        let found = |frame: &&Frame| matches!(frame.begins(tools, &text[at..]), Match::Whole(_));
        if let Some(frame) = frames.iter().find(found) {
            return Some((at, Some(frame)));
        }
        let begun = |frame: &Frame| frame.begins(tools, &text[at..]) == Match::Begun;
        frames.iter().any(begun).then_some((at, None))
    };
    let firsts: Vec<char> = frames.iter().filter_map(Frame::first).collect();
    let places = text.char_indices().filter(|(_, first)| firsts.contains(first));
    places.map(|(at, _)| at).find_map(begins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::constraint::{Constraint, Source};
    use crate::wire::tools::Input;

    fn tools() -> Vec<Callable> {
        let arguments = || Input::Arguments(Constraint::new(Source::Schema("{}".to_owned()), "tools"));
        let tool = |name: &str, input| Callable {
            name: name.to_owned(),
            input,
        };
        vec![
            tool("get", arguments()),
            tool("get_time", arguments()),
            tool("sql", Input::Raw(None)),
        ]
    }

    /// Returns where a call begins in a text, and in which frame.
    fn found(text: &str) -> Option<(usize, Option<&'static str>)> {
        find(FRAMES, &tools(), text).map(|(at, frame)| (at, frame.map(|frame| frame.name)))
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
            frame.expect("a frame").not_behind().len()
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
