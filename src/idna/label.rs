//! Which characters make a label, and in which directions they run.
//!
//! RFC 5892 names the valid characters, and those that are valid between certain neighbours; RFC 5891 what a label may
//! not begin and end with; RFC 5893 how characters of both directions may stand together.

use std::sync::OnceLock;

use regex_syntax::hir::{Class, ClassUnicode, HirKind};
use unicode_bidi::{BidiClass, bidi_class};
use unicode_joining_type::{JoiningType, get_joining_type};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

use super::NOT_VALID;

/// In which directions the characters of a label run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Directions {
    /// None from right to left, so that the labels beside it may be any such.
    LeftToRight,
    /// As RFC 5893 wants it of all labels of a name in which one has characters from right to left.
    Ordered,
}

/// Sets of characters, as they are looked up.
struct Sets {
    valid: ClassUnicode,
    greek: ClassUnicode,
    hebrew: ClassUnicode,
    japanese: ClassUnicode,
}

impl Sets {
    fn get() -> &'static Sets {
        static SETS: OnceLock<Sets> = OnceLock::new();
        SETS.get_or_init(|| Sets {
            // The six behind the bracket are exceptions.
            valid: class(&format!(
                r"[\-[0-9a-z\p{{Ll}}\p{{Lo}}\p{{Lm}}\p{{Mn}}\p{{Mc}}\p{{Nd}}--[{NOT_VALID}]]\u{{6FD}}\u{{6FE}}\u{{F0B}}\u{{3007}}\u{{13A0}}-\u{{13F5}}]"
            )),
            greek: class(r"\p{Greek}"),
            hebrew: class(r"\p{Hebrew}"),
            japanese: class(r"[\p{Hiragana}\p{Katakana}\p{Han}]"),
        })
    }
}

fn class(pattern: &str) -> ClassUnicode {
    let parsed = regex_syntax::parse(pattern).expect("the classes of this file are well formed");
    match parsed.into_kind() {
        HirKind::Class(Class::Unicode(class)) => class,
        kind => unreachable!("a class of many characters, not {kind:?}"),
    }
}

fn has(class: &ClassUnicode, c: char) -> bool {
    let ranges = class.ranges();
    let at = ranges.partition_point(|range| range.end() < c);
    ranges.get(at).is_some_and(|range| range.start() <= c)
}

/// Whether characters are a label, directions left aside.
pub(super) fn is_valid(label: &[char]) -> bool {
    let (Some(&first), Some(&last)) = (label.first(), label.last()) else {
        return false;
    };
    let hyphens = first == '-' || last == '-' || label.get(2..4) == Some(&['-', '-']);
    let places = 0..label.len();
    !hyphens
        && !is_combining_mark(first)
        && places.into_iter().all(|at| is_valid_at(label, at))
        && label.iter().copied().nfc().eq(label.iter().copied())
}

/// Whether a character is valid where it stands.
fn is_valid_at(label: &[char], at: usize) -> bool {
    let sets = Sets::get();
    let before = at.checked_sub(1).map(|before| label[before]);
    let behind = label.get(at + 1).copied();
    let has_any = |first: char, last: char| label.iter().any(|c| (first..=last).contains(c));
    match label[at] {
        '\u{200C}' => before.is_some_and(is_virama) || joins(label, at),
        '\u{200D}' => before.is_some_and(is_virama),
        // The middle dot of Catalan, the keraia, geresh and gershayim, the middle dot of Katakana.
        '\u{B7}' => before == Some('l') && behind == Some('l'),
        '\u{375}' => behind.is_some_and(|c| has(&sets.greek, c)),
        '\u{5F3}' | '\u{5F4}' => before.is_some_and(|c| has(&sets.hebrew, c)),
        '\u{30FB}' => label.iter().any(|&c| has(&sets.japanese, c)),
        // Arabic digits, of which there are two kinds.
        '\u{660}'..='\u{669}' => !has_any('\u{6F0}', '\u{6F9}'),
        '\u{6F0}'..='\u{6F9}' => !has_any('\u{660}', '\u{669}'),
        c => has(&sets.valid, c),
    }
}

fn is_virama(c: char) -> bool {
    canonical_combining_class(c) == 9
}

/// Whether the letters around a place, marks left aside, would be joined there.
fn joins(label: &[char], at: usize) -> bool {
    let joining = |c: &char| get_joining_type(*c);
    let letter = |joining: &JoiningType| *joining != JoiningType::Transparent;
    let before = label[..at].iter().rev().map(joining).find(letter);
    let behind = label[at + 1..].iter().map(joining).find(letter);
    matches!(before, Some(JoiningType::LeftJoining | JoiningType::DualJoining))
        && matches!(behind, Some(JoiningType::RightJoining | JoiningType::DualJoining))
}

/// Whether a label has such directions.
pub(super) fn has_directions(label: &[char], directions: Directions) -> bool {
    use BidiClass::{AL, AN, R};
    let classes: Vec<BidiClass> = label.iter().map(|&c| bidi_class(c)).collect();
    match directions {
        Directions::LeftToRight => !classes.iter().any(|class| matches!(class, R | AL | AN)),
        Directions::Ordered => is_ordered(&classes),
    }
}

/// The six conditions of RFC 5893.
fn is_ordered(classes: &[BidiClass]) -> bool {
    use BidiClass::{AL, AN, BN, CS, EN, ES, ET, L, NSM, ON, R};
    let neutral = |class: &BidiClass| matches!(class, EN | ES | CS | ET | ON | BN | NSM);
    let last = classes.iter().rev().find(|&&class| class != NSM);
    match classes.first() {
        Some(R | AL) => {
            let mut each = classes.iter();
            each.all(|class| matches!(class, R | AL | AN) || neutral(class))
                && matches!(last, Some(R | AL | EN | AN))
                && !(classes.contains(&EN) && classes.contains(&AN))
        }
        Some(L) => {
            let mut each = classes.iter();
            each.all(|class| *class == L || neutral(class)) && matches!(last, Some(L | EN))
        }
        _ => false,
    }
}
