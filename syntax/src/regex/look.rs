//! Evaluates anchors, word boundaries and one-character tests from the two characters around a position.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, Look};

use super::error::RegexError;
use super::node::{Node, Test, any_set, char_set, difference, intersection, is_empty};

/// Checks whether the condition holds between these two characters; `None` is the edge of the text.
pub(crate) fn holds(look: Look, before: Option<char>, after: Option<char>) -> bool {
    let ascii = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    let unicode = |c: Option<char>| c.is_some_and(is_word);
    match look {
        Look::Start => before.is_none(),
        Look::End => after.is_none(),
        Look::StartLF => before.is_none_or(|c| c == '\n'),
        Look::EndLF => after.is_none_or(|c| c == '\n'),
        Look::StartCRLF => before.is_none_or(|c| c == '\n' || (c == '\r' && after != Some('\n'))),
        Look::EndCRLF => after.is_none_or(|c| c == '\r' || (c == '\n' && before != Some('\r'))),
        Look::WordAscii => ascii(before) != ascii(after),
        Look::WordAsciiNegate => ascii(before) == ascii(after),
        Look::WordUnicode => unicode(before) != unicode(after),
        Look::WordUnicodeNegate => unicode(before) == unicode(after),
        Look::WordStartAscii => !ascii(before) && ascii(after),
        Look::WordEndAscii => ascii(before) && !ascii(after),
        Look::WordStartUnicode => !unicode(before) && unicode(after),
        Look::WordEndUnicode => unicode(before) && !unicode(after),
        Look::WordStartHalfAscii => !ascii(before),
        Look::WordEndHalfAscii => !ascii(after),
        Look::WordStartHalfUnicode => !unicode(before),
        Look::WordEndHalfUnicode => !unicode(after),
    }
}

fn is_word(c: char) -> bool {
    regex_syntax::is_word_character(c)
}

/// Checks whether the test passes between these two characters.
pub(crate) fn passes(test: &Test, before: Option<char>, after: Option<char>) -> bool {
    let character = if test.ahead { after } else { before };
    match character {
        None => test.edge,
        Some(c) => test
            .set
            .ranges()
            .iter()
            .any(|range| range.start() <= c && c <= range.end()),
    }
}

/// Returns `true` if there is a character and it is in the set.
pub(crate) fn contains(set: &ClassUnicode, character: Option<char>) -> bool {
    character.is_some_and(|c| {
        set.ranges()
            .iter()
            .any(|range| range.start() <= c && c <= range.end())
    })
}

/// Returns the coarsest kinds of characters that none of these sets splits, at most `most` of them.
pub(crate) fn kinds(sets: &[ClassUnicode], most: usize) -> Result<Vec<ClassUnicode>, RegexError> {
    let mut kinds = vec![any_set()];
    for set in sets {
        let split = kinds
            .iter()
            .flat_map(|kind| [intersection(kind, set), difference(kind, set)]);
        kinds = split.filter(|kind| !is_empty(kind)).collect();
        if kinds.len() > most {
            return Err(RegexError::limit(
                "the look-around distinguishes too many kinds of characters",
            ));
        }
    }
    Ok(kinds)
}

/// Collects the sets of characters that a node reads.
pub(crate) fn read_sets(node: &Node, sets: &mut Vec<ClassUnicode>) {
    match node {
        Node::Set(set) => push(sets, set.clone()),
        Node::Concat(parts) | Node::Alt(parts) => parts.iter().for_each(|part| read_sets(part, sets)),
        Node::Repeat { body, .. } => read_sets(body, sets),
        Node::Around(around) => read_sets(&around.body, sets),
        Node::Empty | Node::Look(_) | Node::Test(_) => {}
    }
}

/// Collects the sets of characters that the conditions in a node distinguish.
pub(crate) fn distinctions(node: &Node, sets: &mut Vec<ClassUnicode>) {
    match node {
        Node::Empty | Node::Set(_) => {}
        Node::Concat(parts) | Node::Alt(parts) => parts.iter().for_each(|part| distinctions(part, sets)),
        Node::Repeat { body, .. } => distinctions(body, sets),
        Node::Around(around) => distinctions(&around.body, sets),
        Node::Test(test) => push(sets, test.set.clone()),
        Node::Look(look) => of_look(*look).into_iter().for_each(|set| push(sets, set)),
    }
}

fn push(sets: &mut Vec<ClassUnicode>, set: ClassUnicode) {
    if !is_empty(&set) && !sets.contains(&set) {
        sets.push(set);
    }
}

fn of_look(look: Look) -> Vec<ClassUnicode> {
    match look {
        Look::Start | Look::End => Vec::new(),
        Look::StartLF | Look::EndLF => vec![char_set('\n')],
        Look::StartCRLF | Look::EndCRLF => vec![char_set('\n'), char_set('\r')],
        Look::WordAscii
        | Look::WordAsciiNegate
        | Look::WordStartAscii
        | Look::WordEndAscii
        | Look::WordStartHalfAscii
        | Look::WordEndHalfAscii => vec![ascii_word()],
        Look::WordUnicode
        | Look::WordUnicodeNegate
        | Look::WordStartUnicode
        | Look::WordEndUnicode
        | Look::WordStartHalfUnicode
        | Look::WordEndHalfUnicode => vec![unicode_word()],
    }
}

fn ascii_word() -> ClassUnicode {
    let ranges = [('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
    ClassUnicode::new(ranges.map(|(start, end)| ClassUnicodeRange::new(start, end)))
}

fn unicode_word() -> ClassUnicode {
    let hir = regex_syntax::Parser::new().parse(r"\w");
    match hir.as_ref().map(|hir| hir.kind()) {
        Ok(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(set))) => set.clone(),
        _ => ascii_word(),
    }
}
