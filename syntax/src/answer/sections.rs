//! The sections of answers besides calls: thoughts, and the frames of messages.
//!
//! Most models write a thought, if any, before everything else: `<think> … </think>`. Some write each part
//! of a message in a frame: gpt-oss has channels (`analysis`, `commentary`, `final`), and Kimi K3 has
//! elements.

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
    /// `true` if it may occur anywhere outside of other sections, and not only at the beginning of an
    /// answer.
    pub is_anywhere: bool,
}

/// A thought that may only begin an answer.
const fn thought(open: &'static str, close: &'static [&'static str]) -> Section {
    Section {
        kind: SectionKind::Reasoning,
        open,
        close,
        is_anywhere: false,
    }
}

/// A part of a message, or the frame between two parts.
const fn part(kind: SectionKind, open: &'static str, close: &'static [&'static str]) -> Section {
    Section {
        kind,
        open,
        close,
        is_anywhere: true,
    }
}

/// The sections of models that think between the marks of Qwen and DeepSeek.
pub const THINK: &[Section] = &[thought("<think>", &["</think>"])];

const COHERE: &[Section] = &[
    thought("<|START_THINKING|>", &["<|END_THINKING|>"]),
    part(SectionKind::Content, "<|START_RESPONSE|>", &["<|END_RESPONSE|>"]),
];

const MINIMAX_M3: &[Section] = &[thought("<mm:think>", &["</mm:think>"])];

const KIMI_K3: &[Section] = &[
    thought("<|open|>think<|sep|>", &["<|close|>think<|sep|>"]),
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

/// Returns the sections of the answers of a model format; those with [`THINK`] if the name is none.
pub fn sections(name: &str) -> &'static [Section] {
    match name {
        "cohere" => COHERE,
        "minimax_m3" => MINIMAX_M3,
        "kimi_k3" => KIMI_K3,
        "harmony" => HARMONY,
        _ => THINK,
    }
}
