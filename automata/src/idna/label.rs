//! The rules for the characters of a label and for their directions.
//!
//! RFC 5892 lists the valid characters, and those that are valid between certain neighbours; RFC 5891 says
//! what a label may not begin and end with; RFC 5893 says how characters of both directions may be combined.

use std::sync::OnceLock;

use regex_syntax::hir::{Class, ClassUnicode, HirKind};
use unicode_bidi::{BidiClass, bidi_class};
use unicode_joining_type::{JoiningType, get_joining_type};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

/// Code points that would be letters, marks or digits of labels by their category, but that are unstable
/// under NFKC and case folding, ignorable, old Hangul, or exceptions (RFC 5892, 2.2 to 2.9). Computed from
/// the Unicode Character Database by those rules; ranges may include code points that are excluded anyway.
pub const NOT_VALID: &str = r"\u{AA}-\u{BA}\u{133}\u{140}\u{149}\u{17F}\u{1C6}-\u{1CC}\u{1F3}\u{2B0}-\u{2B8}\u{2E0}-\u{2E4}\u{340}-\u{341}\u{343}-\u{345}\u{34F}\u{374}\u{37A}\u{3D0}-\u{3D6}\u{3F0}-\u{3F2}\u{3F5}\u{587}\u{640}\u{660}-\u{669}\u{675}-\u{678}\u{6F0}-\u{6F9}\u{7FA}\u{958}-\u{95F}\u{9DC}-\u{9DF}\u{A33}\u{A36}\u{A59}-\u{A5B}\u{A5E}\u{B5C}-\u{B5D}\u{E33}\u{EB3}\u{EDC}-\u{EDD}\u{F43}\u{F4D}\u{F52}\u{F57}\u{F5C}\u{F69}\u{F73}\u{F75}-\u{F79}\u{F81}\u{F93}\u{F9D}\u{FA2}\u{FA7}\u{FAC}\u{FB9}\u{10FC}\u{1100}-\u{11FF}\u{13F8}-\u{13FD}\u{17B4}-\u{17B5}\u{180B}-\u{180F}\u{1C80}-\u{1C88}\u{1D2C}-\u{1D2E}\u{1D30}-\u{1D3A}\u{1D3C}-\u{1D4D}\u{1D4F}-\u{1D6A}\u{1D78}\u{1D9B}-\u{1DBF}\u{1E9A}-\u{1E9B}\u{1F71}\u{1F73}\u{1F75}\u{1F77}\u{1F79}\u{1F7B}\u{1F7D}-\u{1FA7}\u{1FB2}-\u{1FB4}\u{1FB7}-\u{1FC4}\u{1FC7}\u{1FD3}\u{1FE3}\u{1FF2}-\u{1FF4}\u{1FF7}-\u{2149}\u{2C7C}-\u{2C7D}\u{2D6F}\u{302E}-\u{303B}\u{309F}\u{30FF}\u{3131}-\u{318E}\u{A69C}-\u{A69D}\u{A770}\u{A7F2}-\u{A7F4}\u{A7F8}-\u{A7F9}\u{A960}-\u{A97C}\u{AB5C}-\u{AB5F}\u{AB69}-\u{ABBF}\u{D7B0}-\u{FA0D}\u{FA10}\u{FA12}\u{FA15}-\u{FA1E}\u{FA20}\u{FA22}\u{FA25}-\u{FA26}\u{FA2A}-\u{FB1D}\u{FB1F}-\u{FE0F}\u{FE70}-\u{FE72}\u{FE74}-\u{FFDC}\u{10781}-\u{107BA}\u{1CCF0}-\u{1CCF9}\u{1D165}-\u{1D7FF}\u{1E030}-\u{1E06D}\u{1EE00}-\u{1FBF9}\u{2F800}-\u{2FA1D}\u{E0100}-\u{E01EF}";

/// The directions of the characters of a label.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Directions {
    /// No character runs from right to left, so other labels without right-to-left characters may be next to
    /// it.
    LeftToRight,
    /// The directions that RFC 5893 requires of all labels of a name in which one has right-to-left
    /// characters.
    Ordered,
}

/// The character sets that the rules look up.
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
            // The six characters after the inner bracket are exceptions.
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

/// Returns `true` if the characters are a valid label, ignoring directions.
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

/// Returns `true` if the character at this position is valid there.
fn is_valid_at(label: &[char], at: usize) -> bool {
    let sets = Sets::get();
    let before = at.checked_sub(1).map(|before| label[before]);
    let after = label.get(at + 1).copied();
    let has_any = |first: char, last: char| label.iter().any(|c| (first..=last).contains(c));
    match label[at] {
        '\u{200C}' => before.is_some_and(is_virama) || joins(label, at),
        '\u{200D}' => before.is_some_and(is_virama),
        // The middle dot of Catalan, the keraia, geresh and gershayim, the middle dot of Katakana.
        '\u{B7}' => before == Some('l') && after == Some('l'),
        '\u{375}' => after.is_some_and(|c| has(&sets.greek, c)),
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

/// Returns `true` if the letters on both sides of a position, ignoring marks, would be joined there.
fn joins(label: &[char], at: usize) -> bool {
    let joining = |c: &char| get_joining_type(*c);
    let letter = |joining: &JoiningType| *joining != JoiningType::Transparent;
    let before = label[..at].iter().rev().map(joining).find(letter);
    let after = label[at + 1..].iter().map(joining).find(letter);
    matches!(before, Some(JoiningType::LeftJoining | JoiningType::DualJoining))
        && matches!(after, Some(JoiningType::RightJoining | JoiningType::DualJoining))
}

/// Returns `true` if a label has these directions.
pub(super) fn has_directions(label: &[char], directions: Directions) -> bool {
    use BidiClass::{AL, AN, R};
    let classes: Vec<BidiClass> = label.iter().map(|&c| bidi_class(c)).collect();
    match directions {
        Directions::LeftToRight => !classes.iter().any(|class| matches!(class, R | AL | AN)),
        Directions::Ordered => is_ordered(&classes),
    }
}

/// Checks the six conditions of RFC 5893.
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
