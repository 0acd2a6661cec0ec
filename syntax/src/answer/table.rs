//! The frames of calls: those of each model format, and those that models write whose format is not known.
//!
//! ```text
//!   tags::model_formats (a row for a family of models) ─► frames, as a grammar writes them
//!                                                         └► relaxed: with any white space, and without marks that models forget
//! ```
//!
//! A grammar allows exactly one spelling of a frame. Without a grammar, models also write `{"name":"f"` for
//! `{"name": "f"`, and the models trained on `<tool_call>\n<function=f>` leave the first mark out.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::frames::Piece::{self, Digits, Either, Letters, Mark, Space, Text};
use super::frames::{Frame, OBJECT_END};
use crate::schema::ArgumentStyle;
use crate::tags::model_formats::{
    Call, Calls, FORMATS, HARMONY, HARMONY_CALLS, HARMONY_NEXT, KIMI_K3, KIMI_K3_CALL, KIMI_K3_CALLS,
    KIMI_K3_ENDS, Required,
};

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

type Pieces = Vec<Piece<'static>>;

/// The frames of a format, which live as long as the program.
struct Rows {
    exact: &'static [Frame],
    relaxed: &'static [Frame],
}

/// The frames of all formats, by name.
static ROWS: LazyLock<BTreeMap<&'static str, Rows>> = LazyLock::new(|| {
    let formats = FORMATS.iter().map(|format| {
        let frame = of_call(format.name, &format.call);
        (format.name, vec![of_calls(frame, &format.calls)])
    });
    let harmony = HARMONY_CALLS.iter().map(|call| harmony(of_call(HARMONY.0, call)));
    let others = [(KIMI_K3.0, vec![kimi_k3()]), (HARMONY.0, harmony.collect())];
    let rows = formats.chain(others).map(|(name, frames)| {
        let mut relaxed: Vec<Frame> = frames
            .iter()
            .map(without_ends)
            .map(|frame| relax(&frame))
            .collect();
        relaxed.extend(frames.iter().filter_map(without_first_mark));
        let rows = Rows {
            exact: frames.leak(),
            relaxed: relaxed.leak(),
        };
        (name, rows)
    });
    rows.collect()
});

/// Returns the frames of calls of a model format, as its grammar writes them; `None` if there is no such
/// format.
pub fn frames(name: &str) -> Option<&'static [Frame]> {
    ROWS.get(name).map(|rows| rows.exact)
}

/// Returns the frames of calls of a model format, as its models write them without a constraint.
pub fn relaxed_frames(name: &str) -> Option<&'static [Frame]> {
    ROWS.get(name).map(|rows| rows.relaxed)
}

/// Returns the frame of a call that follows others directly.
fn of_call(name: &'static str, call: &Call) -> Frame {
    let mut pieces = vec![Mark(call.begin)];
    if let Some(after) = call.after_number {
        pieces.extend([Digits, Mark(after)]);
    }
    let (mut head, mut middle, mut is_named) = (Pieces::new(), Pieces::new(), false);
    for piece in pieces {
        match piece {
            Mark(text) if text.contains("{}") => {
                let (before, after) = text.split_once("{}").unwrap_or((text, ""));
                head.extend(mark(before));
                middle.extend(mark(after));
                is_named = true;
            }
            piece if is_named => middle.push(piece),
            piece => head.push(piece),
        }
    }
    Frame {
        name,
        style: call.style,
        excludes: call.excludes,
        head: head.leak(),
        middle: middle.leak(),
        tail: mark(call.end).leak(),
        between: &[Space],
        ..PLAIN
    }
}

/// Returns the frame of calls that are put together in this way.
fn of_calls(frame: Frame, calls: &Calls) -> Frame {
    match calls {
        // A call in plain JSON begins with the name of a tool, so that other objects stay text.
        Calls::Each(trigger) if trigger.starts_with('{') => Frame {
            head: plain(frame.head).leak(),
            ..frame
        },
        Calls::Each(trigger) => Frame {
            head: begun_by(trigger, frame.head).leak(),
            ..frame
        },
        Calls::Section(section) => Frame {
            before: match section.required {
                Required::After(before) => mark(before).leak(),
                Required::Tag | Required::FreeText => &[],
            },
            open: [mark(section.begin), mark(section.after_begin)].concat().leak(),
            between: mark(section.separator).leak(),
            close: mark(section.end).leak(),
            ..frame
        },
    }
}

fn kimi_k3() -> Frame {
    let ((begin, end), (response, message)) = (KIMI_K3_CALLS, KIMI_K3_ENDS);
    Frame {
        open: [mark(response), mark(begin)].concat().leak(),
        between: &[],
        close: [mark(end), mark(message)].concat().leak(),
        ending: [mark(response), mark(message)].concat().leak(),
        ..of_call(KIMI_K3.0, &KIMI_K3_CALL)
    }
}

fn harmony(frame: Frame) -> Frame {
    Frame {
        between: mark(HARMONY_NEXT).leak(),
        ..frame
    }
}

fn mark(text: &'static str) -> Pieces {
    match text {
        "" => Vec::new(),
        text => vec![Mark(text)],
    }
}

/// Splits the first mark after its trigger.
fn begun_by(trigger: &'static str, pieces: &[Piece<'static>]) -> Pieces {
    match pieces {
        [Mark(text), rest @ ..] => {
            let after = text.strip_prefix(trigger).unwrap_or_default();
            [mark(trigger), mark(after), rest.to_vec()].concat()
        }
        pieces => pieces.to_vec(),
    }
}

/// Turns the first mark into text.
fn plain(pieces: &[Piece<'static>]) -> Pieces {
    match pieces {
        [Mark(text), rest @ ..] => [&[Text(text)], rest].concat(),
        pieces => pieces.to_vec(),
    }
}

/// Returns a frame with any white space where the frame has white space, and around the punctuation of JSON.
fn relax(frame: &Frame) -> Frame {
    let spaced = |pieces: &[Piece<'static>]| relaxed(pieces).leak() as &[_];
    let begun = |pieces: &[Piece<'static>]| match pieces {
        [first @ Mark(_), rest @ ..] => [vec![*first], relaxed(rest)].concat().leak() as &[_],
        pieces => match spaced(pieces) {
            [Space, rest @ ..] | rest => rest,
        },
    };
    let ended = |pieces: &[Piece<'static>]| match spaced(&[&[Space], pieces].concat()) {
        [Space] => &[],
        [rest @ .., Space] | rest => rest,
    };
    Frame {
        open: begun(frame.open),
        head: match frame.open {
            [] => begun(frame.head),
            _ => spaced(frame.head),
        },
        middle: spaced(frame.middle),
        tail: ended(frame.tail),
        between: spaced(&[&[Space], frame.between, &[Space]].concat()),
        close: ended(frame.close),
        ..*frame
    }
}

fn relaxed(pieces: &[Piece<'static>]) -> Pieces {
    let mut all = Pieces::new();
    let mut push = |piece| match (all.last(), piece) {
        (Some(Space), Space) | (_, Text("")) => {}
        (_, Text("}")) => all.push(OBJECT_END),
        (_, Text("\"arguments\"" | "\"parameters\"")) => {
            all.push(Either(&["\"arguments\"", "\"parameters\""]))
        }
        _ => all.push(piece),
    };
    for piece in pieces {
        let (Mark(text) | Text(text)) = piece else {
            push(*piece);
            continue;
        };
        for word in words(text) {
            if word.starts_with(is_spaced) || word.starts_with("<|") {
                push(Space);
            }
            push(Text(word.trim()));
            if word.ends_with(is_spaced) || word.ends_with("|>") {
                push(Space);
            }
        }
    }
    all
}

/// Splits a text where models put white space as they like: at white space, around the punctuation of JSON,
/// and around marks such as `<|call|>`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let second = first.len_utf8();
        let after = &rest[second..];
        let mark = rest.find("|>").map(|at| at + 2).into_iter();
        let ends = mark.chain(after.find("<|").map(|at| second + at));
        let ends = ends.chain(after.find(is_spaced).map(|at| second + at));
        let end = match is_spaced(first) {
            true => second,
            false => ends.min().unwrap_or(rest.len()),
        };
        let word = &rest[..end];
        rest = &rest[end..];
        Some(word)
    })
}

fn is_spaced(c: char) -> bool {
    c.is_ascii_whitespace() || "{}:,".contains(c)
}

/// Returns a frame without the ends of the message around it, which are [sections](super::sections) where no
/// grammar requires them.
fn without_ends(frame: &Frame) -> Frame {
    match (frame.open, frame.close, frame.ending) {
        (open @ [_, ..], close @ [_, ..], [_, ..]) => Frame {
            open: &open[1..],
            close: &close[..1],
            ending: &[],
            ..*frame
        },
        _ => *frame,
    }
}

/// Returns a frame without the mark that it begins with, if another one follows it.
fn without_first_mark(frame: &Frame) -> Option<Frame> {
    const SECOND: &str = "<function=";
    let [Mark(first), ..] = frame.head else {
        return None;
    };
    first.ends_with(SECOND).then(|| {
        let frame = relax(frame);
        Frame {
            head: &[Mark(SECOND)],
            tail: &[Space, Text("</function>"), Space, Either(&["</tool_call>", ""])],
            ..frame
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tags::model_formats;

    #[test]
    fn every_format_has_frames_that_begin_with_a_trigger() {
        for name in model_formats() {
            for frame in frames(name)
                .expect("a format")
                .iter()
                .chain(relaxed_frames(name).expect("one"))
            {
                let first = frame.open.iter().chain(frame.head).next();
                assert!(
                    matches!(first, Some(Mark(text) | Text(text)) if !text.is_empty()),
                    "{frame:?}"
                );
                assert!(!frame.tail.is_empty(), "{name}");
            }
        }
        assert!(frames("qwen3_coder").is_none());
    }

    #[test]
    fn a_relaxed_frame_has_white_space_where_models_put_it() {
        let frame = &relaxed_frames("qwen_3").expect("a format")[0];
        let expected = [
            Mark("<tool_call>"),
            Space,
            Text("{"),
            Space,
            Text("\"name\""),
            Space,
            Text(":"),
            Space,
            Text("\""),
        ];
        assert_eq!(frame.head, expected);
        let expected = [Space, OBJECT_END, Space, Text("</tool_call>")];
        assert_eq!(frame.tail, expected);
    }
}
