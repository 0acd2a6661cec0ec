//! The frames of arguments in a text: where each begins and ends, and where all of them end.

use crate::schema::ArgumentStyle;
use crate::schema::frame::{AfterKey, Close, Frame, unescaped};

use super::error::ArgumentError;

/// The most values that may contain each other.
const DEPTH: usize = 100;
/// The most bytes of the text before a value, or of its end: what is longer is none.
const HEADER: usize = 1 << 16;
/// The white space between frames.
pub(super) const WHITE_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// What the text before a value says about its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing.
    Nothing,
    /// It is a string.
    Text,
    /// It is JSON, but not a string.
    Json,
    /// It is an array of values in frames.
    List,
    /// It is an object of values in frames.
    Dict,
}

/// An argument, or a value inside one.
#[derive(Clone, Debug)]
pub(super) struct Item<'t> {
    pub(super) name: String,
    pub(super) told: Told,
    /// The text between the frame's beginning and its end.
    pub(super) text: &'t str,
    /// The values in frames inside of it.
    pub(super) items: Vec<Item<'t>>,
}

/// The next part of a text of arguments, with its length.
enum Token {
    Open(usize, String, Told),
    Text(usize),
    Close(usize),
    /// The text must be longer to tell.
    More,
    /// The text does not continue with an argument.
    End,
}

/// A scanner that finds the end of the arguments of a call in a text that arrives in pieces.
#[derive(Clone, Debug)]
pub struct ArgumentScanner {
    frame: Frame,
    depth: usize,
    /// `true` inside the text of a value.
    is_inside: bool,
}

impl ArgumentScanner {
    /// Creates a scanner at the beginning of arguments in this style; `None` for JSON, which has no frames.
    pub fn new(style: ArgumentStyle) -> Option<ArgumentScanner> {
        Frame::of(style).map(ArgumentScanner::of)
    }

    fn of(frame: Frame) -> ArgumentScanner {
        ArgumentScanner {
            frame,
            depth: 0,
            is_inside: false,
        }
    }

    /// Reads more text: returns how many bytes of it belong to the arguments, and `true` if they end there.
    /// The rest must be passed again, with more text after it, unless they end. White space before the end
    /// does not belong to them.
    pub fn read(&mut self, text: &str) -> (usize, bool) {
        let mut at = 0;
        loop {
            let token = self.next(&text[at..]);
            match token {
                Token::More => return (at, false),
                Token::End => return (at, true),
                Token::Open(length, ..) | Token::Text(length) | Token::Close(length) => at += length,
            }
            self.pass(&token);
        }
    }

    fn pass(&mut self, token: &Token) {
        match token {
            Token::Open(_, _, told) => {
                self.depth += 1;
                self.is_inside = !matches!(told, Told::List | Told::Dict);
            }
            Token::Close(_) => {
                self.depth = self.depth.saturating_sub(1);
                self.is_inside = false;
            }
            Token::Text(_) | Token::More | Token::End => {}
        }
    }

    fn next(&self, text: &str) -> Token {
        match self.is_inside {
            true => self.inside(text),
            false => self.between(text),
        }
    }

    /// Reads inside a value: up to the mark of its end.
    fn inside(&self, text: &str) -> Token {
        let mark = self.frame.close.mark();
        match text.find(mark) {
            Some(0) => match self.close(text) {
                // Where ends have names, the mark also begins an inner value.
                Token::End => self.open(text, 0),
                token => token,
            },
            Some(at) => Token::Text(at),
            None => match text.len() - beginning(text, mark) {
                0 => Token::More,
                length => Token::Text(length),
            },
        }
    }

    /// Reads after the end of a value, or before the first one.
    fn between(&self, text: &str) -> Token {
        let inner = text.trim_start_matches(WHITE_SPACE);
        let space = text.len() - inner.len();
        let after_space = |token| match token {
            Token::Close(length) => Token::Close(space + length),
            token => token,
        };
        match self.close(inner) {
            Token::End => self.open(inner, space),
            Token::Close(_) if self.depth == 0 => Token::End,
            token => after_space(token),
        }
    }

    /// Reads the end of a value; `End` if the text does not begin with one.
    fn close(&self, text: &str) -> Token {
        let (mark, named) = match self.frame.close {
            Close::Text(mark) => (mark, None),
            Close::Named(mark, after) => (mark, Some(after)),
        };
        let Some(rest) = text.strip_prefix(mark) else {
            return if mark.starts_with(text) {
                Token::More
            } else {
                Token::End
            };
        };
        let Some(after) = named else {
            return Token::Close(mark.len());
        };
        if !rest.starts_with("</") {
            return if "</".starts_with(rest) {
                Token::More
            } else {
                Token::End
            };
        }
        match header_end(rest, after) {
            Ok(at) => Token::Close(mark.len() + at + after.len()),
            Err(token) => token,
        }
    }

    /// Reads the text before a value, up to the value.
    fn open(&self, text: &str, space: usize) -> Token {
        let open = self.frame.open;
        // An item without a name begins like one with a name, and the other way round.
        let open = self
            .frame
            .item
            .map_or(open, |item| if item.len() < open.len() { item } else { open });
        let Some(rest) = text.strip_prefix(open) else {
            return if open.starts_with(text) {
                Token::More
            } else {
                Token::End
            };
        };
        if self.depth >= DEPTH {
            return Token::End;
        }
        let end = match self.frame.after_key {
            AfterKey::Text(end) | AfterKey::Texts(_, end) => end,
            AfterKey::IsString | AfterKey::Kind => "\">",
            AfterKey::Type => "\"<|sep|>",
        };
        let at = match header_end(rest, end) {
            Ok(at) => at,
            Err(token) => return token,
        };
        let length = space + open.len() + at + end.len();
        match header(self.frame.after_key, &rest[..at]) {
            Some((name, told)) => Token::Open(length, name, told),
            None => Token::End,
        }
    }
}

/// Returns the place of the end of a header in a text, or the token for a text that has none.
fn header_end(text: &str, end: &str) -> Result<usize, Token> {
    match text.find(end) {
        Some(at) if at + end.len() <= HEADER => Ok(at),
        None if text.len() <= HEADER => Err(Token::More),
        Some(_) | None => Err(Token::End),
    }
}

/// Returns the name in the text before a value, and what the text says about the value.
fn header(after_key: AfterKey, text: &str) -> Option<(String, Told)> {
    let is_json = |kind: &str| match kind {
        "string" | "true" => Told::Text,
        _ => Told::Json,
    };
    Some(match after_key {
        AfterKey::Text(_) => (text.to_owned(), Told::Nothing),
        AfterKey::Texts(first, _) => {
            let (name, space) = text.split_once(first)?;
            space.trim_matches(WHITE_SPACE).is_empty().then_some(())?;
            (name.to_owned(), Told::Nothing)
        }
        AfterKey::IsString => {
            let (name, kind) = text.split_once("\" string=\"")?;
            (name.to_owned(), is_json(kind))
        }
        AfterKey::Type => {
            let (name, kind) = text.split_once("\" type=\"")?;
            (name.to_owned(), is_json(kind))
        }
        AfterKey::Kind => {
            let (name, kind) = match text.strip_prefix(" name=\"") {
                Some(named) => named.split_once("\" type=\"")?,
                None => ("", text.strip_prefix(" type=\"")?),
            };
            let told = match kind {
                "raw" => Told::Text,
                "list" => Told::List,
                "dict" => Told::Dict,
                _ => Told::Json,
            };
            (unescaped(name), told)
        }
    })
}

/// Returns the length of the longest end of a text that a mark begins with.
fn beginning(text: &str, mark: &str) -> usize {
    let longest = mark.len().saturating_sub(1).min(text.len());
    let ends = (1..=longest).rev();
    let is_end = |length: &usize| text.as_bytes().ends_with(&mark.as_bytes()[..*length]);
    ends.into_iter().find(is_end).unwrap_or(0)
}

/// Returns the arguments in a whole text.
///
/// # Errors
/// Fails if the text is something else.
pub(super) fn items(frame: Frame, text: &str) -> Result<Vec<Item<'_>>, ArgumentError> {
    let mut scanner = ArgumentScanner::of(frame);
    let mut done = Vec::new();
    let mut open: Vec<(Item<'_>, usize)> = Vec::new();
    let mut at = 0;
    loop {
        let token = scanner.next(&text[at..]);
        match &token {
            Token::Open(length, name, told) => {
                at += length;
                let item = Item {
                    name: name.clone(),
                    told: *told,
                    text: "",
                    items: Vec::new(),
                };
                open.push((item, at));
            }
            Token::Text(length) => at += length,
            Token::Close(length) => {
                let Some((mut item, begin)) = open.pop() else {
                    return Err(ArgumentError::Frame(at));
                };
                item.text = &text[begin..at];
                at += length;
                let around = open.last_mut().map_or(&mut done, |(outer, _)| &mut outer.items);
                around.push(item);
            }
            Token::More | Token::End => {
                let rest = text[at..].trim_matches(WHITE_SPACE);
                return match open.is_empty() && rest.is_empty() {
                    true => Ok(done),
                    false if open.len() >= DEPTH => Err(ArgumentError::Depth),
                    false => Err(ArgumentError::Frame(at)),
                };
            }
        }
        scanner.pass(&token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of frames of a style, and texts that are none.
    fn fragments(style: ArgumentStyle) -> Vec<&'static str> {
        let mut all = vec![
            "",
            " ",
            "\n",
            "a",
            "1",
            "<",
            "</",
            ">",
            "\"",
            "]<",
            "é",
            "</function>",
        ];
        all.extend(match style {
            ArgumentStyle::Json => &[][..],
            ArgumentStyle::QwenXml => &["<parameter=", "a>", "</parameter>"],
            ArgumentStyle::MinimaxXml => &["<parameter name=\"", "a\">", "</parameter>"],
            ArgumentStyle::DeepseekXml => &[
                "<｜DSML｜parameter name=\"",
                "a\" string=\"true\">",
                "</｜DSML｜parameter>",
            ],
            ArgumentStyle::DeepseekV41Xml => &[
                "<｜DSML｜ parameter name=\"",
                "a\" string=\"false\">",
                "</｜DSML｜ parameter>",
            ],
            ArgumentStyle::GlmXml => &["<arg_key>", "a</arg_key>", "<arg_value>", "</arg_value>"],
            ArgumentStyle::KimiK3Xml => &[
                "<|open|>argument key=\"",
                "a\" type=\"string\"<|sep|>",
                "<|close|>argument<|sep|>",
            ],
            ArgumentStyle::CohereXml => &[
                "<cofl:value",
                " name=\"a\"",
                " type=\"dict\">",
                " type=\"raw\">",
                "</cofl:value>",
            ],
            ArgumentStyle::MinimaxM3Xml => &["]<]minimax[>[", "<a>", "<item>", "</a>"],
        });
        all
    }

    /// Whatever a model writes, and wherever it is cut, is scanned alike, and reading it ends.
    #[test]
    fn no_way_of_cutting_arguments_changes_their_end() {
        let mut state = 1_u32;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % below
        };
        for style in ArgumentStyle::ALL {
            let Some(frame) = Frame::of(style) else {
                continue;
            };
            let fragments = fragments(style);
            for _ in 0..4_000 {
                let count = random(14);
                let text: String = (0..count).map(|_| fragments[random(fragments.len())]).collect();
                let whole = ArgumentScanner::of(frame).read(&text);
                let mut cut = random(text.len() + 1);
                while !text.is_char_boundary(cut) {
                    cut -= 1;
                }
                let mut scanner = ArgumentScanner::of(frame);
                let (first, ended) = scanner.read(&text[..cut]);
                let found = match ended {
                    true => (first, true),
                    false => {
                        let (more, ended) = scanner.read(&text[first..]);
                        (first + more, ended)
                    }
                };
                assert_eq!(found, whole, "{style:?}, {cut}: {text:?}");
                if let Ok(items) = items(frame, &text) {
                    assert!(!whole.1 || items.is_empty() || whole.0 > 0, "{text:?}");
                }
            }
        }
    }
}
