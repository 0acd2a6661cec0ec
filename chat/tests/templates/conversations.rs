//! Generated conversations: shapes, and the contents of their fields.

use lexiform_chat::{ChatTemplate, Conversation, Ending, Prompt, TemplateError};
use serde_json::{Map, Value, json};

use super::families::Family;

/// The number of fields with contents.
const FIELDS: usize = 14;

/// Numbers from a number (SplitMix64).
struct Random(u64);

impl Random {
    fn new(number: u64, purpose: u64) -> Self {
        Self(
            number
                .wrapping_mul(2)
                .wrapping_add(purpose)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15),
        )
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// Which messages and tools a conversation has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    has_system: bool,
    has_tools: bool,
    has_call: bool,
    turns: usize,
    ending: Ending,
    free_role: bool,
}

impl Shape {
    /// Returns the shape of this number.
    pub(crate) fn of(family: &Family, number: u64) -> Self {
        let mut random = Random::new(number, 0);
        let has_tools = random.below(2) == 0;
        Self {
            has_system: family.takes_system && random.below(2) == 0,
            has_tools,
            has_call: has_tools && random.below(2) == 0,
            turns: random.below(3),
            ending: *random.of(&[Ending::Answer, Ending::Answer, Ending::Nothing, Ending::Open]),
            free_role: random.below(6) == 0,
        }
    }

    /// Returns the shape with all messages that the family takes.
    pub(crate) fn plain(family: &Family) -> Self {
        Self {
            has_system: family.takes_system,
            has_tools: true,
            has_call: false,
            turns: 1,
            ending: Ending::Answer,
            free_role: false,
        }
    }

    /// Returns the conversation of this shape with these contents.
    pub(crate) fn conversation(&self, contents: &Contents) -> Made {
        let text = |field: usize| contents.texts[field].as_str();
        let mut messages = Vec::new();
        if self.has_system {
            messages.push(json!({"role": "system", "content": text(0)}));
        }
        for turn in 0..=self.turns {
            messages.push(json!({"role": "user", "content": text(1 + 2 * turn)}));
            if turn < self.turns || self.ending == Ending::Open {
                messages.push(json!({"role": "assistant", "content": text(2 + 2 * turn)}));
            }
        }
        if self.has_call && self.ending != Ending::Open {
            messages.push(json!({"role": "assistant", "content": text(7), "tool_calls": [
                {"type": "function", "id": text(8), "function": {"name": text(9), "arguments": {text(10): [text(11), 1, true]}}}]}));
            messages
                .push(json!({"role": "tool", "name": text(9), "tool_call_id": text(8), "content": text(12)}));
        }
        if self.free_role && self.ending == Ending::Answer {
            messages.push(json!({"role": text(13), "content": text(12)}));
        }
        let tool = json!({"type": "function", "function": {"name": text(9), "description": text(13), "parameters":
            {"type": "object", "properties": {text(10): {"type": "string", "enum": [text(11), "a"]}}, "required": [text(10)]}}});
        let arguments = json!({"reasoning_effort": text(13), "controls": {text(8): text(12)}});
        Made {
            messages,
            tools: if self.has_tools { vec![tool] } else { Vec::new() },
            arguments: arguments.as_object().cloned().unwrap_or_default(),
            ending: self.ending,
        }
    }
}

/// A conversation that owns its parts.
pub(crate) struct Made {
    pub(crate) messages: Vec<Value>,
    pub(crate) tools: Vec<Value>,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) ending: Ending,
}

impl Made {
    /// The time that templates see.
    pub(crate) const NOW: u64 = 1_700_000_000;

    pub(crate) fn render(&self, template: &ChatTemplate) -> Result<Prompt, TemplateError> {
        template.render(&Conversation {
            messages: &self.messages,
            ending: self.ending,
            tools: &self.tools,
            schema: None,
            arguments: &self.arguments,
            arguments_name: "chat_template_kwargs",
            now: Self::NOW,
        })
    }
}

/// The contents of all fields.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    texts: Vec<String>,
}

impl Contents {
    /// Returns the texts of the fields.
    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Returns the number of fields.
    pub(crate) fn count(&self) -> usize {
        self.texts.len()
    }

    /// Returns contents of words, blanks and punctuation, which spell no mark.
    pub(crate) fn of_words(number: u64) -> Self {
        const WORDS: [&str; 22] = [
            "the", " the", "cat", " ", "  ", "\n", "\n\n", "é", "日本", "'s", "12", ".", "!\n", "\t",
            " \"a\"", "🙂", "e\u{301}", "-", "(x)", "x = y;", " i", "\\",
        ];
        let mut random = Random::new(number, 1);
        let text = |field: usize, random: &mut Random| {
            let words = 1 + random.below(6);
            let words: String = (0..words).map(|_| *random.of(&WORDS)).collect();
            let more = random.of(&WORDS);
            format!("{words}{field}{more}")
        };
        Self {
            texts: (0..FIELDS).map(|field| text(field, &mut random)).collect(),
        }
    }

    /// Returns contents of fragments of the marks, cut at random places. In half of the cases one mark is cut
    /// once, and the fields begin and end with its halves.
    pub(crate) fn of_fragments(family: &Family, number: u64) -> Self {
        const OTHER: [&str; 12] = [
            " ",
            "\n",
            "a",
            "\u{338}",
            "\u{2581}",
            "|>",
            "<|",
            "\"",
            "\\",
            "role",
            "\u{FDD0}",
            "x\u{200d}",
        ];
        let mut random = Random::new(number, 1);
        let marks: Vec<&String> = family.control.iter().chain(&family.literals).collect();
        let halves = halves_of(&mut random, &marks);
        let is_split = random.below(2) == 0;
        let text = |field: usize, random: &mut Random| {
            let piece = |random: &mut Random| -> String {
                match random.below(4) {
                    0 => (*random.of(&OTHER)).to_owned(),
                    1 => (*random.of(&marks)).clone(),
                    _ => {
                        let (before, after) = halves_of(random, &marks);
                        if random.below(2) == 0 { before } else { after }
                    }
                }
            };
            let (before, after) = (piece(random), piece(random));
            match is_split {
                true => format!("{}{before}{field}{after}{}", halves.1, halves.0),
                false => format!("{before}{}{field}{after}", piece(random)),
            }
        };
        Self {
            texts: (0..FIELDS).map(|field| text(field, &mut random)).collect(),
        }
    }

    /// Returns the contents without the marks: all characters but blanks, digits and the texts that the
    /// template looks for become an `x`.
    pub(crate) fn without_marks(&self, family: &Family) -> Self {
        let harmless = |text: &String| {
            let mut out = String::new();
            let mut rest = text.as_str();
            while let Some(c) = rest.chars().next() {
                let literal = family
                    .literals
                    .iter()
                    .filter(|literal| rest.starts_with(*literal));
                if let Some(literal) = literal.max_by_key(|literal| literal.len()) {
                    out.push_str(literal);
                    rest = &rest[literal.len()..];
                    continue;
                }
                out.push(if c.is_whitespace() || c.is_ascii_digit() {
                    c
                } else {
                    'x'
                });
                rest = &rest[c.len_utf8()..];
            }
            out
        };
        Self {
            texts: self.texts.iter().map(harmless).collect(),
        }
    }
}

fn halves_of(random: &mut Random, marks: &[&String]) -> (String, String) {
    let mark = *random.of(marks);
    halves(mark, random)
}

fn halves(mark: &str, random: &mut Random) -> (String, String) {
    let at = random.below(mark.chars().count() + 1);
    (mark.chars().take(at).collect(), mark.chars().skip(at).collect())
}
