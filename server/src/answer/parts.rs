//! The parts of an output: the thought, the content, and the calls of tools, read from one text.
//!
//! ```text
//!   text ─► [ marks that may just begin are held back ] ─► Reasoning | Content | Opened(tool) | Input
//! ```
//!
//! The grammar of the answer ([`crate::grammars::language`]) makes sure that every text has exactly one reading; this is the
//! reader. It works on pieces of any length, so streams and whole answers are read by the same code.

use std::sync::Arc;

use crate::answer::text_buffer::overlap;
use crate::grammars::language::{CALL, END_THINK, Language, THINK, Thought, call_head, call_tail};
use crate::wire::tools::{Calls, Mode};

/// What a piece of an answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// More of the thought.
    Reasoning(String),
    /// More of the content.
    Content(String),
    /// A call of the tool with this place in the list begins.
    Opened(usize),
    /// More of the input of the call.
    Input(String),
    /// The call is complete.
    Closed,
}

/// How the answers of a request are read.
#[derive(Clone, Debug, Default)]
pub struct OutputFormat {
    /// Whether answers may begin with a thought.
    pub thought: Thought,
    /// The calls that they may hold.
    pub calls: Option<Calls>,
}

impl OutputFormat {
    /// How answers of this language are read.
    pub fn of(language: &Language) -> Self {
        Self {
            thought: language.thought,
            calls: language.calls.clone(),
        }
    }

    /// The name of a tool.
    pub fn tool(&self, place: usize) -> (&str, bool) {
        let tool = self.calls.as_ref().and_then(|calls| calls.tools.get(place));
        tool.map_or(("", false), |tool| (tool.name.as_str(), tool.is_custom()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    Thought,
    /// Behind a thought, with the line breaks that may still be passed over.
    Gap(usize),
    Content,
    Head,
    /// Inside the arguments of a function.
    Arguments(usize, Json),
    /// Inside an input that ends with the answer.
    Rest,
    Tail(usize),
}

/// Where a reader stands in a JSON text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Json {
    depth: u32,
    quoted: bool,
    escaped: bool,
}

impl Json {
    /// How many bytes of `text` still belong to the value, and whether it ended: at a bracket that it did not open.
    fn read(&mut self, text: &str) -> (usize, bool) {
        for (at, byte) in text.bytes().enumerate() {
            match (self.quoted, byte) {
                (true, _) if self.escaped => self.escaped = false,
                (true, b'\\') => self.escaped = true,
                (_, b'"') => self.quoted = !self.quoted,
                (false, b'{' | b'[') => self.depth += 1,
                (false, b'}' | b']') if self.depth == 0 => return (at, true),
                (false, b'}' | b']') => self.depth -= 1,
                _ => {}
            }
        }
        (text.len(), false)
    }
}

/// Reads one answer.
#[derive(Clone, Debug)]
pub struct PartReader {
    reading: Arc<OutputFormat>,
    at: At,
    held: String,
}

impl PartReader {
    /// At the beginning of an answer.
    pub fn new(reading: Arc<OutputFormat>) -> Self {
        Self {
            reading,
            at: At::Start,
            held: String::new(),
        }
    }

    /// Whether the thought is being read.
    pub fn thinks(&self) -> bool {
        self.at == At::Thought || (self.at == At::Start && self.reading.thought == Thought::Begun)
    }

    /// Reads more text.
    pub fn push(&mut self, text: &str) -> Vec<Part> {
        self.held.push_str(text);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// Ends the answer: what was held back comes out.
    pub fn finish(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        if self.at == At::Start && self.reading.thought != Thought::Begun {
            self.enter_answer(&mut parts);
        }
        let rest = std::mem::take(&mut self.held);
        match self.at {
            At::Thought | At::Start => reasoning(rest, &mut parts),
            At::Content => content(rest, &mut parts),
            At::Arguments(..) => input(rest, &mut parts),
            At::Rest => {
                input(rest, &mut parts);
                parts.push(Part::Closed);
            }
            At::Gap(_) | At::Head | At::Tail(_) => {}
        }
        parts
    }

    /// Makes one step; `false` when more text is needed.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.at {
            At::Start => self.start(parts),
            At::Thought => {
                let (before, found) = self.until(END_THINK);
                reasoning(before, parts);
                if found {
                    self.at = At::Gap(2);
                }
                found
            }
            At::Gap(lines) => self.gap(lines, parts),
            At::Content => self.content(parts),
            At::Head => self.head(parts),
            At::Arguments(tool, json) => self.arguments(tool, json, parts),
            At::Rest => {
                input(std::mem::take(&mut self.held), parts);
                false
            }
            At::Tail(tool) => self.tail(tool, parts),
        }
    }

    fn start(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.reading.thought {
            Thought::Begun => self.at = At::Thought,
            Thought::Possible if self.held.starts_with(THINK) => {
                self.held.drain(..THINK.len());
                self.at = At::Thought;
            }
            Thought::Possible if THINK.starts_with(self.held.as_str()) => return false,
            Thought::Possible | Thought::None => self.enter_answer(parts),
        }
        true
    }

    /// The answer proper begins: with content, or in the middle of the only call.
    fn enter_answer(&mut self, parts: &mut Vec<Part>) {
        let Some(calls) = self
            .reading
            .calls
            .as_ref()
            .filter(|calls| calls.mode == Mode::Bare)
        else {
            self.at = At::Content;
            return;
        };
        // There is nothing after the arguments of the only call, so they are read like raw input.
        debug_assert_eq!(calls.tools.len(), 1);
        parts.push(Part::Opened(0));
        self.at = At::Rest;
    }

    fn gap(&mut self, lines: usize, parts: &mut Vec<Part>) -> bool {
        if self.held.is_empty() {
            return false;
        }
        if lines > 0 && self.held.starts_with('\n') {
            self.held.drain(..1);
            self.at = At::Gap(lines - 1);
        } else {
            self.enter_answer(parts);
        }
        true
    }

    fn content(&mut self, parts: &mut Vec<Part>) -> bool {
        if self.reading.calls.is_none() {
            content(std::mem::take(&mut self.held), parts);
            return false;
        }
        let (before, found) = self.until(CALL);
        content(before, parts);
        if found {
            self.held.insert_str(0, CALL);
            self.at = At::Head;
        }
        found
    }

    fn head(&mut self, parts: &mut Vec<Part>) -> bool {
        let tools = self.reading.calls.iter().flat_map(|calls| &calls.tools);
        let heads: Vec<(String, bool)> = tools.map(|tool| (call_head(tool), tool.is_custom())).collect();
        let held = self.held.trim_start_matches('\n');
        let found = heads.iter().position(|(head, _)| held.starts_with(head.as_str()));
        let Some(tool) = found else {
            return false;
        };
        let (head, custom) = &heads[tool];
        self.held = held[head.len()..].to_owned();
        parts.push(Part::Opened(tool));
        self.at = if *custom {
            At::Rest
        } else {
            At::Arguments(tool, Json::default())
        };
        true
    }

    fn arguments(&mut self, tool: usize, mut json: Json, parts: &mut Vec<Part>) -> bool {
        let (length, ended) = json.read(&self.held);
        let rest = self.held.split_off(length);
        input(std::mem::replace(&mut self.held, rest), parts);
        self.at = if ended {
            At::Tail(tool)
        } else {
            At::Arguments(tool, json)
        };
        ended
    }

    fn tail(&mut self, tool: usize, parts: &mut Vec<Part>) -> bool {
        let calls = self.reading.calls.as_ref();
        let tail = calls
            .and_then(|calls| calls.tools.get(tool))
            .map_or_else(String::new, call_tail);
        if !self.held.starts_with(&tail) {
            return false;
        }
        self.held.drain(..tail.len());
        parts.push(Part::Closed);
        self.at = At::Head;
        true
    }

    /// Takes the text before a mark, and the mark; or what cannot be the beginning of the mark.
    fn until(&mut self, mark: &str) -> (String, bool) {
        if let Some(at) = self.held.find(mark) {
            let rest = self.held.split_off(at + mark.len());
            let mut before = std::mem::replace(&mut self.held, rest);
            before.truncate(at);
            return (before, true);
        }
        let keep = overlap(&self.held, mark);
        let rest = self.held.split_off(self.held.len() - keep);
        (std::mem::replace(&mut self.held, rest), false)
    }
}

fn reasoning(text: String, parts: &mut Vec<Part>) {
    if !text.is_empty() {
        parts.push(Part::Reasoning(text));
    }
}

fn content(text: String, parts: &mut Vec<Part>) {
    if !text.is_empty() {
        parts.push(Part::Content(text));
    }
}

fn input(text: String, parts: &mut Vec<Part>) {
    if !text.is_empty() {
        parts.push(Part::Input(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::constraint::{Constraint, Source};
    use crate::wire::tools::{Callable, Input};

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
        })
    }

    /// Neighbouring pieces of one kind, joined.
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
