//! The marks in free text: where a thought or content ends, and what begins there.

use super::format::AnswerFormat;
use super::frames::{Frame, Match, begins, literal};
use super::sections::Section;

/// The texts that end a section; none for text outside of sections.
pub(super) type Close = &'static [&'static str];

/// What comes next in content.
pub(super) enum Next {
    /// More text is needed to tell.
    More,
    /// The end of the section, with its length.
    Close(usize),
    /// The beginning of a section.
    Section(&'static Section),
    /// A call in the frame with this index.
    Frame(usize),
}

/// Returns the first place of a text where content ends that one of the texts of `close` may end, and what
/// comes there.
pub(super) fn next_mark(format: &AnswerFormat, close: Close, text: &str) -> Option<(usize, Next)> {
    let sections = || format.sections.iter();
    let texts = close
        .iter()
        .copied()
        .chain(sections().map(|section| section.open));
    let firsts = texts.filter_map(|text| text.chars().next());
    let firsts: Vec<char> = firsts
        .chain(format.frames.iter().filter_map(Frame::first))
        .collect();
    let next = |at: usize| {
        let rest = &text[at..];
        let mut is_begun = false;
        let mut is_whole = |found: Match| {
            is_begun |= found == Match::Begun;
            matches!(found, Match::Whole(_))
        };
        if let Some(text) = close.iter().find(|text| is_whole(literal(text, rest))) {
            return Some(Next::Close(text.len()));
        }
        let call = begins(format.frames, &format.tools, rest);
        if let Match::Whole(frame) = call {
            return Some(Next::Frame(frame));
        }
        // What begins a call may also end a message.
        if let Some(section) = sections().find(|section| is_whole(literal(section.open, rest))) {
            return match call {
                Match::Begun => Some(Next::More),
                _ => Some(Next::Section(section)),
            };
        }
        (is_begun || call == Match::Begun).then_some(Next::More)
    };
    let places = text.char_indices().filter(|(_, first)| firsts.contains(first));
    places.map(|(at, _)| at).find_map(|at| Some((at, next(at)?)))
}

/// Returns the place of the first of some marks in a text and its index; without one, the length of the text
/// in which no mark may begin.
pub(super) fn first_of(marks: Close, text: &str) -> (usize, Option<usize>) {
    let firsts = |first: char| marks.iter().any(|mark| mark.starts_with(first));
    let places = text
        .char_indices()
        .filter(|(_, first)| firsts(*first))
        .map(|(at, _)| at);
    let found = |at: usize| {
        let matches = || marks.iter().map(|mark| literal(mark, &text[at..]));
        let whole = matches()
            .position(|found| matches!(found, Match::Whole(_)))
            .map(Some);
        let begun = || matches().any(|found| found == Match::Begun).then_some(None);
        Some((at, whole.or_else(begun)?))
    };
    places.into_iter().find_map(found).unwrap_or((text.len(), None))
}
