//! The sections of answers besides calls: thoughts, and the frames of messages.
//!
//! Most models write a thought, if any, before everything else: `<think> … </think>`. Some write each part
//! of a message in a frame: gpt-oss has channels (`analysis`, `commentary`, `final`), and Kimi K3 has
//! elements.

use crate::tags::{ThoughtMarks, thought_marks};

/// The contents of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionKind {
    /// A thought.
    Reasoning,
    /// Content of the answer.
    Content,
    /// Nothing: the text is a frame.
    Frame,
}

/// A part of an answer between two texts.
#[derive(Debug)]
pub struct Section {
    /// What it contains.
    pub kind: SectionKind,
    /// The text that begins it.
    pub open: &'static str,
    /// The texts that end it; none for a frame, which is one text.
    pub close: &'static [&'static str],
}

/// A part of a message, or the frame between two parts.
const fn part(kind: SectionKind, open: &'static str, close: &'static [&'static str]) -> Section {
    Section { kind, open, close }
}

const COHERE: &[Section] = &[part(
    SectionKind::Content,
    "<|START_RESPONSE|>",
    &["<|END_RESPONSE|>"],
)];

const KIMI_K3: &[Section] = &[
    part(
        SectionKind::Content,
        "<|open|>response<|sep|>",
        &["<|close|>response<|sep|>"],
    ),
    part(SectionKind::Frame, "<|close|>response<|sep|>", &[]),
    part(SectionKind::Frame, "<|close|>message<|sep|>", &[]),
];

/// The texts that end a message of gpt-oss.
const HARMONY_ENDS: &[&str] = &["<|end|>", "<|return|>"];

const HARMONY: &[Section] = &[
    part(
        SectionKind::Reasoning,
        "<|channel|>analysis<|message|>",
        HARMONY_ENDS,
    ),
    part(SectionKind::Content, "<|channel|>final<|message|>", HARMONY_ENDS),
    part(
        SectionKind::Content,
        "<|channel|>commentary<|message|>",
        HARMONY_ENDS,
    ),
    part(SectionKind::Frame, "<|start|>assistant", &[]),
    part(SectionKind::Frame, "<|end|>", &[]),
    part(SectionKind::Frame, "<|return|>", &[]),
];

/// Returns the sections of the answers of models whose thoughts have these marks, behind a first thought.
pub fn sections(marks: &ThoughtMarks) -> &'static [Section] {
    let is_of = |name| thought_marks(name).is_ok_and(|of| of.is_some_and(|of| of.open == marks.open));
    let rows: [(&str, &'static [Section]); 3] =
        [("cohere", COHERE), ("kimi_k3", KIMI_K3), ("harmony", HARMONY)];
    let found = rows.into_iter().find(|(name, _)| is_of(name));
    found.map_or(&[], |(_, sections)| sections)
}

/// Returns the marks of a thought at the beginning of an answer that obeys no grammar: without the frames of
/// what comes next, which models write or leave out.
pub fn first_marks(name: &str) -> ThoughtMarks {
    let of_format = thought_marks(name).ok().flatten().unwrap_or_default();
    let ends: &[&str] = match name {
        "kimi_k3" => &["<|close|>think<|sep|>"],
        "harmony" => &["<|end|>"],
        _ => of_format.ends,
    };
    ThoughtMarks { ends, ..of_format }
}
