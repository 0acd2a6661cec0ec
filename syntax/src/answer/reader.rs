//! The parts of an answer: thoughts, content, and the calls of tools, read from one text.
//!
//! ```text
//!   text ─► [ marks that may just begin are held back ] ─► Reasoning | Content | Opened(tool) | Input | Closed
//! ```
//!
//! The same reader serves streams and whole answers, with and without a constraint. A decision waits until
//! all of the text that it depends on is there. Under a grammar every text has exactly one reading. Without
//! one, what does not fit a frame is content, and a call may end where its arguments do.
//!
//! Why not spans of the automaton that masks: its configurations merge what no token can distinguish, which
//! makes masks cheap. Frames and JSON are deterministic: constant work for a byte finds the same spans.

use std::ops::Range;
use std::sync::Arc;

use super::format::{AnswerFormat, CallMode, Thought};
use super::frames::{Called, Frame, Match, Piece, Tool, begins, read};
use super::marks::{Close, Next, first_of, next_mark};
use super::object;
use super::scanner::{JsonScanner, WHITE_SPACE};
use super::sections::SectionKind;
use crate::tags::{ArgumentScanner, ThoughtMarks};

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// More of the thought.
    Reasoning(String),
    /// More of the content.
    Content(String),
    /// A call begins, of the tool with this index; see [`AnswerReader::tool`].
    Opened(usize),
    /// More of the input of the call.
    Input(String),
    /// The call is complete.
    Closed,
}

/// A part of an answer with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanned {
    /// The part.
    pub part: Part,
    /// Its bytes in the text of the answer: for a call that begins, those of the name; for one that ends,
    /// those of the frame behind its input.
    pub span: Range<usize>,
    /// `true` if the text of the part is what these bytes are, and not JSON that was made of it.
    pub is_verbatim: bool,
}

impl Spanned {
    fn of(part: Part, span: Range<usize>) -> Self {
        Self {
            part,
            span,
            is_verbatim: true,
        }
    }

    /// Arguments as JSON that was made of what these bytes write.
    fn made(arguments: String, span: Range<usize>) -> Self {
        Self {
            part: Part::Input(arguments),
            span,
            is_verbatim: false,
        }
    }
}

/// What the reader is reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerPlace {
    /// A thought.
    Reasoning,
    /// Content, or the beginning of the answer before it.
    Content,
    /// The input of this tool, which ends with the answer.
    RawInput(usize),
    /// A call, or the text around it.
    Call,
}

type Framing = usize; // The index of a frame of the format.

#[derive(Clone, Debug)]
enum At {
    Start,
    /// In a section that one of these texts ends.
    Reasoning(Close),
    /// After a thought, with the number of line breaks that may still be skipped.
    Gap(usize),
    /// In content, which one of these texts ends if it is a section.
    Content(Close),
    /// Before the first call in this frame.
    Open(Framing),
    /// Before the name of a tool.
    Head(Framing),
    /// In an object that is a call as a whole, with the bytes of it that were read.
    Object(Framing, Box<JsonScanner>, usize),
    /// Inside arguments that are JSON.
    Arguments(Framing, Box<JsonScanner>),
    /// Inside arguments that are not JSON.
    Framed(Framing, Box<FramedCall>),
    /// Inside an input of this tool that ends with the answer.
    Rest(usize),
    /// After the arguments.
    Tail(Framing),
    /// After an object that is a call as a whole.
    AfterObject(Framing),
    /// After a call.
    Between(Framing),
}

/// A call whose arguments are read as a whole.
#[derive(Clone, Debug)]
struct FramedCall {
    tool: usize,
    scanner: ArgumentScanner,
    text: String,
    begin: usize,
}

/// Reads one answer.
#[derive(Clone, Debug)]
pub struct AnswerReader {
    format: Arc<AnswerFormat>,
    at: At,
    held: String,
    /// The number of bytes before the text that is held.
    offset: usize,
    /// The names of called tools that are not among those of the format.
    unknown: Vec<String>,
    /// `true` once a call has begun.
    has_called: bool,
}

impl AnswerReader {
    /// Creates a reader at the beginning of an answer.
    pub fn new(format: Arc<AnswerFormat>) -> Self {
        Self {
            format,
            at: At::Start,
            held: String::new(),
            offset: 0,
            unknown: Vec::new(),
            has_called: false,
        }
    }

    /// Returns the name of a tool, and `true` if its input is a text. The indices after those of the format
    /// are tools that the answer calls and the format does not have.
    pub fn tool(&self, index: usize) -> (&str, bool) {
        match self.format.tools.get(index) {
            Some(tool) => (&tool.name, tool.is_raw),
            None => {
                let name = self.unknown.get(index.wrapping_sub(self.format.tools.len()));
                (name.map_or("", String::as_str), false)
            }
        }
    }

    /// Returns `true` if all of the text was returned in parts.
    pub fn holds_nothing(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns what is being read.
    pub fn place(&self) -> AnswerPlace {
        match self.at {
            At::Reasoning(_) => AnswerPlace::Reasoning,
            At::Start if self.format.thought == Thought::Begun => AnswerPlace::Reasoning,
            // No grammar has text behind the calls.
            At::Content(_) if self.has_called && self.format.is_constrained => AnswerPlace::Call,
            At::Start | At::Gap(_) | At::Content(_) => AnswerPlace::Content,
            At::Rest(tool) => AnswerPlace::RawInput(tool),
            _ => AnswerPlace::Call,
        }
    }

    /// Reads more text and returns its parts.
    pub fn push(&mut self, text: &str) -> Vec<Spanned> {
        self.held.push_str(text);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// Ends the answer and returns the text that was held back.
    pub fn finish(&mut self) -> Vec<Spanned> {
        let mut parts = Vec::new();
        if matches!(self.at, At::Start) && self.format.thought != Thought::Begun {
            self.enter_answer(&mut parts);
        }
        let is_lenient = !self.format.is_constrained;
        let length = self.held.len();
        match &self.at {
            At::Reasoning(_) | At::Start => self.emit(length, Part::Reasoning, &mut parts),
            At::Content(_) => self.text(length, &mut parts),
            At::Arguments(_, json) => {
                let is_whole = is_lenient && json.is_outside();
                self.emit(length, Part::Input, &mut parts);
                self.closed_if(is_whole, &mut parts);
            }
            At::Rest(_) => {
                self.emit(length, Part::Input, &mut parts);
                self.closed_if(true, &mut parts);
            }
            At::Framed(_, call) if is_lenient => {
                let (text, span) = (call.text.clone() + &self.held, call.begin..self.offset + length);
                parts.extend((!text.is_empty()).then(|| Spanned::of(Part::Input(text), span)));
            }
            At::Tail(_) | At::AfterObject(_) => self.closed_if(is_lenient, &mut parts),
            At::Between(_) if self.held.trim_matches(WHITE_SPACE).is_empty() => {}
            At::Open(_) | At::Head(_) | At::Object(..) | At::Between(_) if is_lenient => {
                self.text(length, &mut parts);
            }
            _ => {}
        }
        self.held.clear();
        parts
    }

    fn closed_if(&mut self, is_closed: bool, parts: &mut Vec<Spanned>) {
        let span = self.offset..self.offset;
        parts.extend(is_closed.then(|| Spanned::of(Part::Closed, span)));
    }

    /// Makes one step; returns `false` if more text is needed.
    fn step(&mut self, parts: &mut Vec<Spanned>) -> bool {
        match std::mem::replace(&mut self.at, At::Start) {
            At::Start => self.start(parts),
            At::Reasoning(close) => self.reasoning(close, parts),
            At::Gap(lines) => self.gap(lines, parts),
            At::Content(close) => self.content(close, parts),
            At::Open(frame) => self.open(frame, parts),
            At::Head(frame) => self.head(frame, parts),
            At::Object(frame, json, read) => self.object(frame, json, read, parts),
            At::Arguments(frame, json) => self.arguments(frame, json, parts),
            At::Framed(frame, call) => self.framed(frame, call, parts),
            At::Rest(tool) => {
                self.emit(self.held.len(), Part::Input, parts);
                self.wait(At::Rest(tool))
            }
            At::Tail(frame) => self.tail(frame, parts),
            At::AfterObject(frame) => self.end_call(self.frame(frame).after_object(), frame, parts),
            At::Between(frame) => self.between(frame),
        }
    }

    /// Waits for more text in this state.
    fn wait(&mut self, at: At) -> bool {
        self.at = at;
        false
    }

    /// Goes on in this state.
    fn enter(&mut self, at: At) -> bool {
        self.at = at;
        true
    }

    /// Removes the first bytes of the text that is held, and returns them with their place.
    fn take(&mut self, length: usize) -> (String, Range<usize>) {
        let rest = self.held.split_off(length);
        let text = std::mem::replace(&mut self.held, rest);
        let begin = self.offset;
        self.offset += length;
        (text, begin..self.offset)
    }

    /// Passes the first bytes on as a part.
    fn emit(&mut self, length: usize, part: fn(String) -> Part, parts: &mut Vec<Spanned>) {
        let (text, span) = self.take(length);
        if !text.is_empty() {
            parts.push(Spanned::of(part(text), span));
        }
    }

    /// Passes the first bytes on as content. In an answer that has nothing but calls, they belong to their
    /// frame.
    fn text(&mut self, length: usize, parts: &mut Vec<Spanned>) {
        match self.format.mode {
            CallMode::Required => drop(self.take(length)),
            CallMode::Auto | CallMode::Bare => self.emit(length, Part::Content, parts),
        }
    }

    fn start(&mut self, parts: &mut Vec<Spanned>) -> bool {
        let ThoughtMarks { open, ends } = self.format.marks;
        match self.format.thought {
            Thought::None => {
                self.enter_answer(parts);
                return true;
            }
            Thought::Begun => return self.enter(At::Reasoning(ends)),
            Thought::Possible => {}
        }
        // Without a constraint, models put white space before the mark.
        let space = match self.format.is_constrained {
            true => 0,
            false => self.held.len() - self.held.trim_start_matches(WHITE_SPACE).len(),
        };
        let text = &self.held[space..];
        if text.starts_with(open) {
            self.take(space + open.len());
            return self.enter(At::Reasoning(ends));
        }
        if open.starts_with(text) {
            return self.wait(At::Start);
        }
        self.enter_answer(parts);
        true
    }

    /// Begins the answer proper: content, or the middle of the only call.
    fn enter_answer(&mut self, parts: &mut Vec<Spanned>) {
        self.at = match self.format.mode {
            CallMode::Bare => {
                let span = self.offset..self.offset;
                parts.push(Spanned::of(Part::Opened(0), span));
                // Nothing follows the arguments of the only call, so they are read like raw input.
                At::Rest(0)
            }
            CallMode::Auto | CallMode::Required => At::Content(&[]),
        };
    }

    fn reasoning(&mut self, close: Close, parts: &mut Vec<Spanned>) -> bool {
        let (at, found) = first_of(close, &self.held);
        self.emit(at, Part::Reasoning, parts);
        match found {
            None => self.wait(At::Reasoning(close)),
            // The mark of a call belongs to the call.
            Some(mark) if self.is_of_call(close[mark]) => self.enter(At::Content(&[])),
            Some(mark) => {
                self.take(close[mark].len());
                self.enter(At::Gap(2))
            }
        }
    }

    /// Returns `true` if a call begins with this mark, or with what it begins with.
    fn is_of_call(&self, mark: &str) -> bool {
        let mut frames = self.format.frames.iter().filter_map(Frame::mark);
        frames.any(|first| mark.starts_with(first) || first.starts_with(mark))
    }

    fn gap(&mut self, lines: usize, parts: &mut Vec<Spanned>) -> bool {
        if self.held.is_empty() {
            return self.wait(At::Gap(lines));
        }
        if lines > 0 && self.held.starts_with('\n') {
            self.take(1);
            self.at = At::Gap(lines - 1);
        } else {
            self.enter_answer(parts);
        }
        true
    }

    fn content(&mut self, close: Close, parts: &mut Vec<Spanned>) -> bool {
        let found = next_mark(&self.format, close, &self.held);
        let at = found.as_ref().map_or(self.held.len(), |(at, _)| *at);
        self.text(at, parts);
        match found {
            None | Some((_, Next::More)) => self.wait(At::Content(close)),
            Some((_, Next::Close(length))) => {
                self.take(length);
                self.enter(At::Content(&[]))
            }
            Some((_, Next::Frame(frame))) => self.enter(At::Open(frame)),
            Some((_, Next::Section(section))) => {
                self.take(section.open.len());
                self.enter(match section.kind {
                    SectionKind::Reasoning => At::Reasoning(section.close),
                    SectionKind::Content => At::Content(section.close),
                    SectionKind::Frame => At::Content(close),
                })
            }
        }
    }

    fn frame(&self, frame: Framing) -> &'static Frame {
        &self.format.frames[frame]
    }

    /// Treats what only looked like a call as content.
    fn not_a_call(&mut self, parts: &mut Vec<Spanned>) -> bool {
        let first = self.held.chars().next().map_or(0, char::len_utf8);
        self.text(first, parts);
        self.enter(At::Content(&[]))
    }

    /// Reads the text before the first call, or the end of an answer without calls, which may begin like it.
    fn open(&mut self, framing: Framing, parts: &mut Vec<Spanned>) -> bool {
        let frame = self.frame(framing);
        let next = match read(frame.open, &self.held) {
            Match::Whole(length) => (length, At::Head(framing)),
            Match::Begun => return self.wait(At::Open(framing)),
            Match::Not if frame.ending.is_empty() => return self.not_a_call(parts),
            Match::Not => match read(frame.ending, &self.held) {
                Match::Whole(length) => (length, At::Content(&[])),
                Match::Begun => return self.wait(At::Open(framing)),
                Match::Not => return self.not_a_call(parts),
            },
        };
        self.take(next.0);
        self.enter(next.1)
    }

    /// Returns the call at the beginning of a text, in a frame that begins like this one. Such frames are
    /// told apart by what follows the name.
    fn called(&self, framing: Framing, text: &str) -> (Called, Framing) {
        let first = self.frame(framing);
        let alike = |frame: &&(usize, &Frame)| frame.1.open == first.open && frame.1.head == first.head;
        let mut found = (Called::Not, framing);
        let frames: Vec<(usize, &Frame)> = self.format.frames.iter().enumerate().collect();
        for (index, frame) in frames.iter().filter(alike) {
            match frame.call(&self.format.tools, text) {
                Called::Not => {}
                Called::Begun => found = (Called::Begun, framing),
                whole => return (whole, *index),
            }
        }
        found
    }

    fn head(&mut self, framing: Framing, parts: &mut Vec<Spanned>) -> bool {
        let (called, framing) = self.called(framing, &self.held);
        let (name, length) = match called {
            Called::Whole { name, length } => (name, length),
            Called::Begun => return self.wait(At::Head(framing)),
            Called::Not => {
                return match self.frame(framing).object(&self.held) {
                    Match::Whole(length) => self.enter(At::Object(framing, Box::default(), length)),
                    Match::Begun => self.wait(At::Head(framing)),
                    Match::Not => self.not_a_call(parts),
                };
            }
        };
        let span = self.offset + name.start..self.offset + name.end;
        let tool = self.index(self.held[name].to_owned());
        self.take(length);
        parts.push(Spanned::of(Part::Opened(tool), span));
        let is_raw = self.format.tools.get(tool).is_some_and(|tool| tool.is_raw);
        self.enter(match ArgumentScanner::new(self.frame(framing).style) {
            _ if is_raw => At::Rest(tool),
            None => At::Arguments(framing, Box::default()),
            Some(scanner) => At::Framed(
                framing,
                Box::new(FramedCall {
                    tool,
                    scanner,
                    text: String::new(),
                    begin: self.offset,
                }),
            ),
        })
    }

    /// Returns the index of a called tool; one that the format does not have is added to the unknown ones.
    fn index(&mut self, name: String) -> usize {
        self.has_called = true;
        let known = self.format.tools.iter().map(|tool: &Tool| &tool.name);
        let mut names = known.chain(&self.unknown);
        if let Some(index) = names.position(|known| *known == name) {
            return index;
        }
        self.unknown.push(name);
        self.format.tools.len() + self.unknown.len() - 1
    }

    /// Reads a call that is an object whose members have another order than the frame.
    fn object(
        &mut self,
        framing: Framing,
        mut json: Box<JsonScanner>,
        read: usize,
        parts: &mut Vec<Spanned>,
    ) -> bool {
        let more = &self.held.as_bytes()[read..];
        let end = more.iter().position(|&byte| {
            json.step(byte);
            json.is_outside()
        });
        let Some(end) = end.map(|at| read + at + 1) else {
            let read = self.held.len();
            return self.wait(At::Object(framing, json, read));
        };
        let begin = self.held[..end].find('{').unwrap_or(0);
        let Some((name, arguments)) = object::call(&self.held[begin..end]) else {
            // All of it is passed on: what is inside would be read again from each mark in it.
            self.text(end, parts);
            return self.enter(At::Content(&[]));
        };
        let tool = self.index(name);
        let (_, span) = self.take(end);
        parts.push(Spanned::of(Part::Opened(tool), span.clone()));
        parts.push(Spanned::made(arguments, span));
        self.enter(At::AfterObject(framing))
    }

    fn arguments(&mut self, framing: Framing, mut json: Box<JsonScanner>, parts: &mut Vec<Spanned>) -> bool {
        let (length, ended) = json.read_value(&self.held);
        self.emit(length, Part::Input, parts);
        match ended {
            true => self.enter(At::Tail(framing)),
            false => self.wait(At::Arguments(framing, json)),
        }
    }

    fn framed(&mut self, framing: Framing, mut call: Box<FramedCall>, parts: &mut Vec<Spanned>) -> bool {
        let (length, ended) = call.scanner.read(&self.held);
        call.text += &self.take(length).0;
        if !ended {
            return self.wait(At::Framed(framing, call));
        }
        let style = self.frame(framing).style;
        let input = self.format.json_arguments(call.tool, style, call.text);
        let span = call.begin..self.offset;
        parts.push(Spanned::made(input, span));
        self.enter(At::Tail(framing))
    }

    fn tail(&mut self, framing: Framing, parts: &mut Vec<Spanned>) -> bool {
        let space = self.held.len() - self.held.trim_start_matches(WHITE_SPACE).len();
        self.take(space);
        // White space that the frame begins with is passed already.
        let mut tail = self.frame(framing).tail.to_vec();
        if let Some(Piece::Mark(text) | Piece::Text(text)) = tail.first_mut() {
            *text = text.trim_start_matches(WHITE_SPACE);
        }
        match self.end_call(&tail, framing, parts) {
            true => true,
            false => self.wait(At::Tail(framing)),
        }
    }

    /// Reads the end of a call, which may be missing where no grammar requires it.
    fn end_call(&mut self, pieces: &[Piece<'_>], framing: Framing, parts: &mut Vec<Spanned>) -> bool {
        let length = match read(pieces, &self.held) {
            Match::Whole(length) => length,
            Match::Begun => return self.wait(At::AfterObject(framing)),
            Match::Not => 0,
        };
        let (_, span) = self.take(length);
        parts.push(Spanned::of(Part::Closed, span));
        self.enter(At::Between(framing))
    }

    /// Reads the end of the calls or the start of another one; the text that ends them may begin like the
    /// separator.
    fn between(&mut self, framing: Framing) -> bool {
        let frame = self.frame(framing);
        if !frame.close.is_empty() {
            match read(frame.close, &self.held) {
                Match::Whole(length) => {
                    self.take(length);
                    return self.enter(At::Content(&[]));
                }
                Match::Begun => return self.wait(At::Between(framing)),
                Match::Not => {}
            }
        }
        let (length, next) = match read(frame.between, &self.held) {
            Match::Whole(length) => (length, self.next_call(framing, &self.held[length..])),
            Match::Begun => return self.wait(At::Between(framing)),
            Match::Not => return self.enter(At::Content(&[])),
        };
        match next {
            None => self.wait(At::Between(framing)),
            Some(At::Content(close)) => self.enter(At::Content(close)),
            Some(at) => {
                self.take(length);
                self.enter(at)
            }
        }
    }

    /// Returns the state before the next call in a text after the separator of calls, or that of content;
    /// `None` if more text is needed to tell.
    fn next_call(&self, framing: Framing, text: &str) -> Option<At> {
        if text.is_empty() {
            return None;
        }
        if self.frame(framing).open.is_empty() {
            return match begins(self.format.frames, &self.format.tools, text) {
                Match::Whole(frame) => Some(At::Open(frame)),
                Match::Begun => None,
                Match::Not => Some(At::Content(&[])),
            };
        }
        match (self.called(framing, text).0, self.frame(framing).object(text)) {
            (Called::Whole { .. }, _) | (_, Match::Whole(_)) => Some(At::Head(framing)),
            (Called::Begun, _) | (_, Match::Begun) => None,
            (Called::Not, Match::Not) => Some(At::Content(&[])),
        }
    }
}
