//! The frames in which models write calls of tools: what stands before, between and behind the name of a tool
//! and its arguments.
//!
//! ```text
//!   open  head NAME middle ARGUMENTS tail  ( between  head NAME middle ARGUMENTS tail )*  close
//! ```
//!
//! Each family of models was trained on a frame of its own, and small models often write the frame of another
//! family, or plain JSON, in a fenced block or not. [`FRAMES`] is the list; everything else follows from it:
//! the grammar of a call ([`lowering`](super::lowering)), the text that begins one, and the reader of an
//! answer ([`answer::parts`](crate::answer::parts)). A new frame is a new row.
//!
//! Free text becomes a call at its *trigger*: the first mark of the frame or, in a frame that begins with
//! plain text, the name of one of the tools with what stands before it. Until then it is text: an object with
//! another first key, or with a name that is no tool's, triggers nothing.

use crate::wire::tools::Callable;

/// Opens a call in the frame of Hermes and Qwen.
pub const CALL: &str = "<tool_call>";
/// Closes it.
pub const END_CALL: &str = "</tool_call>";
/// Opens the calls of Mistral's models.
const TOOL_CALLS: &str = "[TOOL_CALLS]";
/// Opens the calls of Llama 3.
const PYTHON_TAG: &str = "<|python_tag|>";
/// All marks of frames.
pub const FRAME_MARKS: [&str; 4] = [CALL, END_CALL, TOOL_CALLS, PYTHON_TAG];

/// The most bytes of white space, or letters behind a fence, in one place of a frame. Longer runs are no
/// frame; so neither can a model go on with them for ever, nor is a stream held back for long.
pub const RUN: usize = 16;

/// A piece of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A mark: the token of this name where the model has one that text cannot write, or else its text.
    Mark(&'a str),
    /// Exactly this text.
    Text(&'a str),
    /// One of these texts.
    Either(&'a [&'a str]),
    /// White space as JSON has it, up to [`RUN`] bytes.
    Space,
    /// Letters and underscores, up to [`RUN`]: the language behind a fence.
    Letters,
}

use Piece::{Either, Letters, Mark, Space, Text};

/// How a family of models writes calls.
#[derive(Debug)]
pub struct Frame {
    /// Its name, for people.
    pub name: &'static str,
    /// What stands before the first call.
    pub open: &'static [Piece<'static>],
    /// What stands before the name of a tool.
    pub head: &'static [Piece<'static>],
    /// What stands between the name and the arguments. It begins with a text.
    pub middle: &'static [Piece<'static>],
    /// What stands behind the arguments.
    pub tail: &'static [Piece<'static>],
    /// What stands between two calls.
    pub between: &'static [Piece<'static>],
    /// What stands behind the last call.
    pub close: &'static [Piece<'static>],
    /// What stands between the name of a custom tool and its raw input, which ends with the answer; `None`
    /// where the frame has no place for such input.
    pub raw: Option<&'static [Piece<'static>]>,
}

/// Before the name in an object.
const OBJECT: &[Piece<'static>] = &[
    Text("{"),
    Space,
    Text("\"name\""),
    Space,
    Text(":"),
    Space,
    Text("\""),
];
/// Between the name and the arguments in an object.
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
/// Behind the arguments in an object.
const END_OBJECT: &[Piece<'static>] = &[Space, Text("}")];

/// All frames. The first is written where an answer must be a call, and where its text obeys a constraint of
/// its own, with which the others could be confused.
pub const FRAMES: &[Frame] = &[
    Frame {
        name: "hermes",
        open: &[],
        head: &[Mark(CALL), Text("\n{\"name\": \"")],
        middle: &[Text("\", \"arguments\": ")],
        tail: &[Text("}\n"), Mark(END_CALL)],
        between: &[Text("\n")],
        close: &[],
        raw: Some(&[Text("\"}\n")]),
    },
    Frame {
        name: "mistral",
        open: &[Mark(TOOL_CALLS), Space, Text("["), Space],
        head: OBJECT,
        middle: ARGUMENTS,
        tail: END_OBJECT,
        between: &[Text(","), Space],
        close: &[Space, Text("]")],
        raw: None,
    },
    Frame {
        name: "llama",
        open: &[Mark(PYTHON_TAG), Space],
        head: OBJECT,
        middle: ARGUMENTS,
        tail: END_OBJECT,
        between: &[Text(";"), Space],
        close: &[],
        raw: None,
    },
    Frame {
        name: "function",
        open: &[],
        head: &[Text("<function=")],
        middle: &[Text(">"), Space],
        tail: &[Space, Text("</function>")],
        between: &[Text("\n")],
        close: &[],
        raw: None,
    },
    Frame {
        name: "fenced list",
        open: &[Text("```"), Letters, Space, Text("["), Space],
        head: OBJECT,
        middle: ARGUMENTS,
        tail: END_OBJECT,
        between: &[Text(","), Space],
        close: &[Space, Text("]\n```")],
        raw: None,
    },
    Frame {
        name: "fenced object",
        open: &[Text("```"), Letters, Space],
        head: OBJECT,
        middle: ARGUMENTS,
        tail: END_OBJECT,
        between: &[Text("\n")],
        close: &[Text("\n```")],
        raw: None,
    },
    Frame {
        name: "list",
        open: &[Text("["), Space],
        head: OBJECT,
        middle: ARGUMENTS,
        tail: END_OBJECT,
        between: &[Text(","), Space],
        close: &[Space, Text("]")],
        raw: None,
    },
    Frame {
        name: "object",
        open: &[],
        head: OBJECT,
        middle: ARGUMENTS,
        tail: END_OBJECT,
        between: &[Text("\n")],
        close: &[],
        raw: None,
    },
];

/// How far a text goes along pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// It has all of them, in so many bytes.
    Whole(usize),
    /// It ends before they do.
    Begun,
    /// It is none of them.
    Not,
}

impl Match {
    /// The same, with what follows behind a whole match.
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

/// Reads pieces at the beginning of a text. White space and letters are read as far as they go, so a text
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
        }
    }

    /// What it is to a regular expression.
    fn pattern(&self) -> String {
        match self {
            Mark(text) | Text(text) => regex::escape(text),
            Either(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| regex::escape(text)).collect();
                format!("(?:{})", texts.join("|"))
            }
            Space => format!("[ \\t\\r\\n]{{0,{RUN}}}"),
            Letters => format!("[A-Za-z_]{{0,{RUN}}}"),
        }
    }
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

/// The regular expression of some pieces.
pub fn pattern<'p>(pieces: impl IntoIterator<Item = &'p Piece<'p>>) -> String {
    pieces.into_iter().map(Piece::pattern).collect()
}

impl Frame {
    /// The mark that it begins with, if it begins with one.
    fn mark(&self) -> Option<&'static str> {
        match self.open.iter().chain(self.head).next() {
            Some(Mark(mark)) => Some(mark),
            _ => None,
        }
    }

    /// Whether it has a place for calls of this tool.
    pub fn takes(&self, tool: &Callable) -> bool {
        !tool.is_custom() || self.raw.is_some()
    }

    /// What stands between the name of a tool and what it is called with.
    pub fn before_input(&self, tool: &Callable) -> &'static [Piece<'static>] {
        match self.raw {
            Some(raw) if tool.is_custom() => raw,
            _ => self.middle,
        }
    }

    /// What closes the name of a tool, which tells `get` from `get_weather`.
    fn name_end(&self) -> &'static str {
        match self.middle.first() {
            Some(Text(text)) => text.get(..1).unwrap_or_default(),
            _ => "",
        }
    }

    /// The texts that begin a call of these tools, as a regular expression; `None` where it has a place for
    /// none of them.
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
            // What it opens with may be missing: then it is another frame that begins here.
            None => format!(
                "{}(?:{}){}",
                pattern(self.head),
                names.join("|"),
                regex::escape(self.name_end())
            ),
        })
    }

    /// The ends of a text, as regular expressions, behind which this frame would be the end of another one: a
    /// fence makes a fenced object of an object.
    pub fn not_behind(&self) -> Vec<String> {
        let longer = |other: &&Frame| other.head == self.head && other.open.len() > self.open.len();
        let before = FRAMES.iter().filter(longer).filter_map(|other| {
            let before = other.open.strip_suffix(self.open)?;
            other.mark().is_none().then(|| pattern(before))
        });
        before.collect()
    }

    /// Whether a call of one of these tools begins with this text.
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

    /// The tool that is called by a text behind what the frame opens with, by its place in the list, and how
    /// far it is to the input.
    pub fn call(&self, tools: &[Callable], text: &str) -> Option<(usize, usize)> {
        tools.iter().enumerate().find_map(|(place, tool)| {
            let name = [Text(&tool.name)];
            let pieces = self.head.iter().chain(&name).chain(self.before_input(tool));
            match read(pieces, text) {
                Match::Whole(length) if self.takes(tool) => Some((place, length)),
                _ => None,
            }
        })
    }
}

/// The farthest of several matches.
fn best(matches: impl Iterator<Item = Match>) -> Match {
    let rank = |found: &Match| match found {
        Match::Whole(length) => (2, *length),
        Match::Begun => (1, 0),
        Match::Not => (0, 0),
    };
    matches.max_by_key(rank).unwrap_or(Match::Not)
}

/// The first place of a text at which a call begins, or may begin when more text comes: then without a frame.
pub fn find<'f>(frames: &'f [Frame], tools: &[Callable], text: &str) -> Option<(usize, Option<&'f Frame>)> {
    let begins = |at: usize| {
        let found = |frame: &&Frame| matches!(frame.begins(tools, &text[at..]), Match::Whole(_));
        if let Some(frame) = frames.iter().find(found) {
            return Some((at, Some(frame)));
        }
        let begun = |frame: &Frame| frame.begins(tools, &text[at..]) == Match::Begun;
        frames.iter().any(begun).then_some((at, None))
    };
    let places = text.char_indices().filter(|(_, first)| "<[{`".contains(*first));
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

    /// Where a call begins in a text, and in which frame.
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

    /// Guards against a frame that could not be told from free text: every trigger ends with a mark or a
    /// name.
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
