//! The parts of an output: the thought, the content, and the calls of tools, read from one text.
//!
//! ```text
//!   text ─► [ marks that may just begin are held back ] ─► Reasoning | Content | Opened(tool) | Input
//! ```
//!
//! The grammar of the answer ([`crate::grammars::language`]) guarantees that every text has exactly one
//! reading. The reader works on pieces of any length, so streams and whole answers are read by the same code.
//! The frames of calls are defined in the table [`crate::grammars::frames`]. Arguments that are not written
//! as JSON become JSON when the call is complete.

pub mod continued;
mod json;
pub mod judged;
mod output_format;

use std::sync::Arc;

use lexiform_syntax::tags::ArgumentScanner;

use crate::answer::text_buffer::stops::overlap;
use crate::grammars::frames::{self, Frame, Match, Piece};
use crate::grammars::thought::Thought;
use crate::wire::tools::Mode;

use json::{Json, WHITE_SPACE};

pub use output_format::OutputFormat;

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// More of the thought.
    Reasoning(String),
    /// More of the content.
    Content(String),
    /// A call begins, of the tool with this index in the list.
    Opened(usize),
    /// More of the input of the call.
    Input(String),
    /// The call is complete.
    Closed,
}

/// How a shortage of tokens affected free text. Under a constraint an answer is completed in time; free text
/// that had to end, or that replaces a call, is shorter than the model would have written it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// The text ended as the model chose.
    #[default]
    Nothing,
    /// The likeliest token of the model was excluded somewhere; it may have been the beginning of a call.
    Diverted,
    /// The text ended because no token was left.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartAt {
    Start,
    Thought,
    /// After a thought, with the number of line breaks that may still be skipped.
    Gap(usize),
    Content,
    /// Before the first call in this frame.
    Open(Framing),
    /// Before the name of a tool.
    Head(Framing),
    /// Inside the arguments of a function.
    Arguments(Framing, Json),
    /// Inside the arguments of a function that are not written as JSON.
    Framed(Framing),
    /// Inside an input of this tool that ends with the answer.
    Rest(usize),
    /// After the arguments.
    Tail(Framing),
    /// After a call.
    Between(Framing),
    /// After all calls.
    End,
}

/// The index of a frame among the frames of the answer.
type Framing = usize;

/// Reads one answer.
#[derive(Clone, Debug)]
pub struct PartReader {
    reading: Arc<OutputFormat>,
    at: PartAt,
    held: String,
    /// The call whose arguments are not written as JSON.
    call: Option<FramedCall>,
}

/// A call whose arguments are read as a whole.
#[derive(Clone, Debug)]
struct FramedCall {
    tool: usize,
    scanner: ArgumentScanner,
    text: String,
}

impl PartReader {
    /// Creates a reader at the beginning of an answer.
    pub fn new(reading: Arc<OutputFormat>) -> Self {
        let mut reader = Self {
            reading: reading.clone(),
            at: PartAt::Start,
            held: String::new(),
            call: None,
        };
        if !reading.begun.is_empty() {
            // This was read before, and is content alone.
            reader.push(&reading.begun);
        }
        reader
    }

    /// Returns `true` if all of the text was returned in parts.
    fn holds_nothing(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns `true` while the thought is being read.
    pub fn thinks(&self) -> bool {
        self.at == PartAt::Thought || (self.at == PartAt::Start && self.reading.thought.is_open())
    }

    /// Returns `true` if free text ends here and was cut by the shortage of tokens. Text under a constraint
    /// is always whole.
    pub fn is_cut(&self, cut: Cut) -> bool {
        let is_free = match self.at {
            PartAt::Start | PartAt::Thought | PartAt::Gap(_) | PartAt::Content => self.reading.has_free_text,
            PartAt::Rest(tool) => self.reading.is_free_input(tool),
            PartAt::Open(_)
            | PartAt::Head(_)
            | PartAt::Arguments(..)
            | PartAt::Framed(_)
            | PartAt::Tail(_)
            | PartAt::Between(_)
            | PartAt::End => false,
        };
        match cut {
            Cut::Nothing => false,
            // The excluded token may have been the beginning of a call.
            Cut::Diverted => is_free && self.at == PartAt::Content && self.reading.calls.is_some(),
            Cut::Ended => is_free,
        }
    }

    /// Reads more text and returns its parts.
    pub fn push(&mut self, text: &str) -> Vec<Part> {
        self.held.push_str(text);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// Ends the answer and returns the text that was held back.
    pub fn finish(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        if self.at == PartAt::Start && !self.reading.thought.is_open() {
            self.enter_answer(&mut parts);
        }
        let rest = std::mem::take(&mut self.held);
        match self.at {
            PartAt::Thought | PartAt::Start => reasoning(rest, &mut parts),
            PartAt::Content => self.text(rest, &mut parts),
            PartAt::Arguments(..) => input(rest, &mut parts),
            PartAt::Rest(_) => {
                input(rest, &mut parts);
                parts.push(Part::Closed);
            }
            PartAt::Gap(_)
            | PartAt::Open(_)
            | PartAt::Head(_)
            | PartAt::Framed(_)
            | PartAt::Tail(_)
            | PartAt::Between(_)
            | PartAt::End => {}
        }
        parts
    }

    /// Makes one step; returns `false` if more text is needed.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.at {
            PartAt::Start => self.start(parts),
            PartAt::Thought => {
                let ends = self.reading.marks.ends;
                let (before, found) = self.until(ends);
                reasoning(before, parts);
                match found {
                    None => {}
                    Some(0) => (_, self.at) = (self.held.drain(..ends[0].len()), PartAt::Gap(2)),
                    // The mark of a call belongs to the call.
                    Some(_) => self.at = PartAt::Content,
                }
                found.is_some()
            }
            PartAt::Gap(lines) => self.gap(lines, parts),
            PartAt::Content => self.content(parts),
            PartAt::Open(frame) => self.open(frame),
            PartAt::Head(frame) => self.head(frame, parts),
            PartAt::Arguments(frame, json) => self.arguments(frame, json, parts),
            PartAt::Framed(frame) => self.framed(frame, parts),
            PartAt::Rest(_) => {
                input(std::mem::take(&mut self.held), parts);
                false
            }
            PartAt::Tail(frame) => self.tail(frame, parts),
            PartAt::Between(frame) => self.between(frame),
            PartAt::End => false,
        }
    }

    fn start(&mut self, parts: &mut Vec<Part>) -> bool {
        let open = self.reading.marks.open;
        match self.reading.thought {
            Thought::Begun | Thought::Skipped => self.at = PartAt::Thought,
            Thought::None | Thought::Refused => self.enter_answer(parts),
            _ if self.held.starts_with(open) => {
                self.held.drain(..open.len());
                self.at = PartAt::Thought;
            }
            _ if open.starts_with(self.held.as_str()) => return false,
            Thought::Possible | Thought::Required => self.enter_answer(parts),
        }
        true
    }

    /// Begins the answer proper: content, or the middle of the only call.
    fn enter_answer(&mut self, parts: &mut Vec<Part>) {
        let Some(calls) = self
            .reading
            .calls
            .as_ref()
            .filter(|calls| calls.mode == Mode::Bare)
        else {
            self.at = PartAt::Content;
            return;
        };
        // Nothing follows the arguments of the only call, so they are read like raw input.
        debug_assert_eq!(calls.tools.len(), 1);
        parts.push(Part::Opened(0));
        self.at = PartAt::Rest(0);
    }

    fn gap(&mut self, lines: usize, parts: &mut Vec<Part>) -> bool {
        if self.held.is_empty() {
            return false;
        }
        if lines > 0 && self.held.starts_with('\n') {
            self.held.drain(..1);
            self.at = PartAt::Gap(lines - 1);
        } else {
            self.enter_answer(parts);
        }
        true
    }

    fn content(&mut self, parts: &mut Vec<Part>) -> bool {
        let found = frames::find(self.reading.frames, self.reading.tools(), &self.held);
        let at = found.map_or(self.held.len(), |(at, _)| at);
        let rest = self.held.split_off(at);
        let before = std::mem::replace(&mut self.held, rest);
        self.text(before, parts);
        let Some((_, Some(frame))) = found else {
            return false;
        };
        let place = self
            .reading
            .frames
            .iter()
            .position(|other| std::ptr::eq(other, frame));
        self.at = PartAt::Open(place.unwrap_or_default());
        true
    }

    fn frame(&self, frame: Framing) -> &'static Frame {
        &self.reading.frames[frame]
    }

    /// Passes text on as content. In an answer that has nothing but calls, it belongs to their frame.
    fn text(&self, text: String, parts: &mut Vec<Part>) {
        if !text.is_empty() && !self.reading.is_calls_alone() {
            parts.push(Part::Content(text));
        }
    }

    /// Reads the text before the first call, or the end of an answer without calls, which may begin like it.
    fn open(&mut self, frame: Framing) -> bool {
        let Frame { open, ending, .. } = self.frame(frame);
        match frames::read(*open, &self.held) {
            Match::Not => self.pass(ending, PartAt::End),
            _ => self.pass(open, PartAt::Head(frame)),
        }
    }

    /// Skips these pieces.
    fn pass(&mut self, pieces: &[Piece<'_>], next: PartAt) -> bool {
        let Match::Whole(length) = frames::read(pieces, &self.held) else {
            return false;
        };
        self.held.drain(..length);
        self.at = next;
        true
    }

    fn head(&mut self, frame: Framing, parts: &mut Vec<Part>) -> bool {
        let tools = self.reading.tools();
        let (reading, first) = (self.reading.clone(), self.frame(frame));
        // Frames that begin alike are told apart by what follows the name.
        let alike = |other: &&Frame| other.open == first.open && other.head == first.head;
        let mut frames = reading.frames.iter().filter(alike);
        let Some((tool, length)) = frames.find_map(|frame| frame.call(tools, &self.held)) else {
            return false;
        };
        self.call = ArgumentScanner::new(first.style).map(|scanner| FramedCall {
            tool,
            scanner,
            text: String::new(),
        });
        self.at = match (tools[tool].is_custom(), &self.call) {
            (true, _) => PartAt::Rest(tool),
            (false, Some(_)) => PartAt::Framed(frame),
            (false, None) => PartAt::Arguments(frame, Json::default()),
        };
        self.held.drain(..length);
        parts.push(Part::Opened(tool));
        true
    }

    fn arguments(&mut self, frame: Framing, mut json: Json, parts: &mut Vec<Part>) -> bool {
        let (length, ended) = json.read(&self.held);
        let rest = self.held.split_off(length);
        input(std::mem::replace(&mut self.held, rest), parts);
        self.at = if ended {
            PartAt::Tail(frame)
        } else {
            PartAt::Arguments(frame, json)
        };
        ended
    }

    fn framed(&mut self, frame: Framing, parts: &mut Vec<Part>) -> bool {
        let Some(call) = &mut self.call else {
            return false;
        };
        let (length, ended) = call.scanner.read(&self.held);
        call.text.push_str(&self.held[..length]);
        self.held.drain(..length);
        if ended && let Some(call) = self.call.take() {
            input(self.reading.arguments(call.tool, call.text), parts);
            self.at = PartAt::Tail(frame);
        }
        ended
    }

    fn tail(&mut self, frame: Framing, parts: &mut Vec<Part>) -> bool {
        let space = self.held.len() - self.held.trim_start_matches(WHITE_SPACE).len();
        self.held.drain(..space);
        // White space that the frame begins with is passed already.
        let mut tail = self.frame(frame).tail.to_vec();
        if let Some(Piece::Mark(text) | Piece::Text(text)) = tail.first_mut() {
            *text = text.trim_start_matches(WHITE_SPACE);
        }
        let passed = self.pass(&tail, PartAt::Between(frame));
        if passed {
            parts.push(Part::Closed);
        }
        passed
    }

    /// Reads the end of the calls or the start of another one; the text that ends them may begin like the
    /// separator.
    fn between(&mut self, frame: Framing) -> bool {
        let Frame { close, between, .. } = self.frame(frame);
        match frames::read(*close, &self.held) {
            Match::Whole(_) if close.is_empty() => self.pass(between, PartAt::Head(frame)),
            Match::Whole(_) => self.pass(close, PartAt::End),
            Match::Begun => false,
            Match::Not => self.pass(between, PartAt::Head(frame)),
        }
    }

    /// Takes the text before the first of these marks, and returns its index; or else the text that cannot be
    /// the beginning of one.
    fn until(&mut self, marks: &[&str]) -> (String, Option<usize>) {
        let places = marks.iter().map(|mark| self.held.find(mark)).enumerate();
        let (first, found) = places
            .filter_map(|(mark, at)| at.map(|at| (at, mark)))
            .min()
            .unzip();
        let overlap = |mark: &&str| overlap(self.held.as_bytes(), mark.as_bytes());
        let keep = marks.iter().map(overlap).max().unwrap_or(0);
        let rest = self.held.split_off(first.unwrap_or(self.held.len() - keep));
        (std::mem::replace(&mut self.held, rest), found)
    }
}

fn reasoning(text: String, parts: &mut Vec<Part>) {
    if !text.is_empty() {
        parts.push(Part::Reasoning(text));
    }
}

fn input(text: String, parts: &mut Vec<Part>) {
    if !text.is_empty() {
        parts.push(Part::Input(text));
    }
}

#[cfg(test)]
mod tests {
    use lexiform::limits::Limits;
    use lexiform::schema;
    use lexiform::tags::ArgumentReader;

    use super::*;
    use crate::grammars::frames::FRAMES;
    use crate::grammars::tool_format::ToolFormat;
    use crate::wire::constraint::{Constraint, Source};
    use crate::wire::tools::{Callable, Calls, Input};

    fn reading(mode: Mode) -> Arc<OutputFormat> {
        let schema = Constraint::new(Source::Schema("{}".to_owned()), "tools");
        let tools = vec![
            Callable {
                name: "f".to_owned(),
                input: Input::Arguments(schema),
            },
            Callable {
                name: "s".to_owned(),
                input: Input::Raw(None),
            },
        ];
        let calls = Calls {
            tools,
            mode,
            parallel: true,
        };
        Arc::new(OutputFormat {
            thought: Thought::Possible,
            calls: Some(calls),
            frames: FRAMES,
            has_free_text: true,
            ..OutputFormat::default()
        })
    }

    /// Joins neighbouring parts of one kind.
    fn joined(parts: Vec<Part>) -> Vec<Part> {
        let mut out: Vec<Part> = Vec::new();
        for part in parts {
            match (out.last_mut(), part) {
                (Some(Part::Content(before)), Part::Content(more))
                | (Some(Part::Reasoning(before)), Part::Reasoning(more))
                | (Some(Part::Input(before)), Part::Input(more)) => before.push_str(&more),
                (_, part) => out.push(part),
            }
        }
        out
    }

    #[test]
    fn no_way_of_cutting_an_answer_changes_its_parts() {
        let text = "<think>hm <b</think>\n\nLook: <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"}\\\"]\"}}\n\
                    </tool_call>\n<tool_call>\n{\"name\": \"s\"}\nSELECT </tool_call>;";
        let expected = vec![
            Part::Reasoning("hm <b".to_owned()),
            Part::Content("Look: ".to_owned()),
            Part::Opened(0),
            Part::Input("{\"a\": \"}\\\"]\"}".to_owned()),
            Part::Closed,
            Part::Opened(1),
            Part::Input("SELECT </tool_call>;".to_owned()),
            Part::Closed,
        ];
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let mut reader = PartReader::new(reading(Mode::Auto));
                let mut parts = reader.push(&text[..first]);
                parts.extend(reader.push(&text[first..second]));
                parts.extend(reader.push(&text[second..]));
                parts.extend(reader.finish());
                assert_eq!(joined(parts), expected);
            }
        }
    }

    /// Two calls in each frame, with the text that may precede them.
    #[test]
    fn no_way_of_cutting_a_frame_changes_its_calls() {
        let call = "{\"name\": \"f\", \"arguments\": {\"a\": \"]<}\"} }";
        let texts = [
            format!("{call}\n{call}"),
            format!("[ {call}, {call}]"),
            format!("```json\n{call}\n{call}\n```"),
            format!("```\n[{call},\n{call} ]\n```"),
            format!("[TOOL_CALLS] [{call}, {call}]"),
            format!("<|python_tag|>{call}; {call}"),
            "<function=f>{\"a\": \"]<}\"}</function>\n<function=f>{\"a\": \"]<}\"} </function>".to_owned(),
        ];
        let expected: Vec<Part> = std::iter::once(Part::Content("{\"name\": \"g\"} [1] ".to_owned()))
            .chain([(), ()].into_iter().flat_map(|()| {
                let arguments = Part::Input("{\"a\": \"]<}\"}".to_owned());
                [Part::Opened(0), arguments, Part::Closed]
            }))
            .collect();
        for text in texts {
            let text = format!("{{\"name\": \"g\"}} [1] {text}");
            for cut in 0..=text.len() {
                let mut reader = PartReader::new(reading(Mode::Auto));
                let mut parts = reader.push(&text[..cut]);
                parts.extend(reader.push(&text[cut..]));
                parts.extend(reader.finish());
                assert_eq!(joined(parts), expected, "{text}");
            }
        }
    }

    /// A reader of calls in a format, whose tool `f` takes any text as `a`.
    fn reading_format(format: ToolFormat) -> Arc<OutputFormat> {
        let schema = "{\"properties\": {\"a\": {\"type\": \"string\"}}}";
        let style = format.frames()[0].style;
        let (options, limits) = (schema::Options::for_generation(), Limits::default());
        let reader = ArgumentReader::new(style, schema, &options, &limits).expect("a schema");
        Arc::new(OutputFormat {
            frames: format.frames(),
            readers: [Some(reader), None].into_iter().collect(),
            ..(*reading(Mode::Auto)).clone()
        })
    }

    /// Two calls in formats whose arguments are no JSON, or whose frames begin alike.
    #[test]
    fn no_way_of_cutting_a_format_changes_its_calls() {
        let deep = "<tool_call>\n<function=f>\n<parameter=a>\n]<}</function>\n</parameter>\n</function>\n</tool_call>";
        let glm = "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>]<}</function></arg_value>\n</tool_call>";
        let cohere = "<cofl:tool_call id=\"7\" name=\"f\"><cofl:value name=\"a\" type=\"raw\">]<}</function></cofl:value>\
                      </cofl:tool_call>";
        let m3 = "]<]minimax[>[<invoke name=\"f\">\n]<]minimax[>[<a>]<}</function>]<]minimax[>[</a>]<]minimax[>[</invoke>\n";
        let harmony =
            " to=functions.f<|channel|>commentary json<|message|>{\"a\":\"]<}</function>\"}<|call|>";
        let texts = [
            ("qwen_3_coder", format!("{deep}\n{deep}")),
            ("glm_4_7", format!("{glm}\n{glm}")),
            (
                "cohere",
                format!("<cofl:tool_calls>{cohere}{cohere}</cofl:tool_calls>"),
            ),
            (
                "minimax_m3",
                format!("]<]minimax[>[<tool_call>\n{m3}{m3}]<]minimax[>[</tool_call>"),
            ),
            ("harmony", format!("{harmony}<|start|>assistant{harmony}")),
        ];
        let call = || {
            let arguments = Part::Input("{\"a\":\"]<}</function>\"}".to_owned());
            [Part::Opened(0), arguments, Part::Closed]
        };
        let said = Part::Content("<tool> ] <".to_owned());
        let expected: Vec<Part> = [said].into_iter().chain(call()).chain(call()).collect();
        for (format, text) in texts {
            let reading = reading_format(ToolFormat::Of(format));
            let text = format!("<tool> ] <{text}");
            for cut in (0..=text.len()).filter(|&cut| text.is_char_boundary(cut)) {
                let mut reader = PartReader::new(reading.clone());
                let mut parts = reader.push(&text[..cut]);
                parts.extend(reader.push(&text[cut..]));
                parts.extend(reader.finish());
                assert_eq!(joined(parts), expected, "{format}, {cut}: {text}");
            }
        }
    }

    #[test]
    fn a_text_that_only_looks_like_a_mark_is_content() {
        let mut reader = PartReader::new(reading(Mode::Auto));
        let mut parts = reader.push("<thin");
        parts.extend(reader.push("g> a <tool"));
        parts.extend(reader.finish());
        assert_eq!(joined(parts), vec![Part::Content("<thing> a <tool".to_owned())]);
    }

    #[test]
    fn a_bare_call_is_all_input() {
        let mut reader = PartReader::new(reading(Mode::Auto));
        let mut bare = (*reading(Mode::Bare)).clone();
        bare.calls.as_mut().expect("calls").tools.truncate(1);
        reader.reading = Arc::new(bare);
        let mut parts = reader.push("{\"a\":1}");
        parts.extend(reader.finish());
        let expected = vec![Part::Opened(0), Part::Input("{\"a\":1}".to_owned()), Part::Closed];
        assert_eq!(joined(parts), expected);
    }
}
