//! Internationalised host names: labels of RFC 5891 with the code points of RFC 5892 and the directions of
//! RFC 5893.
//!
//! ```text
//!   name    = plain labels | labels from right to left, and ASCII labels that begin with a letter
//!   label   = ASCII | letters of all scripts, and characters that need certain neighbours with these
//!                   | Japanese with a middle dot, which needs a Japanese letter anywhere in its label
//! ```
//!
//! Where an exact automaton is too large, some valid names are left out rather than invalid ones allowed. The
//! rule of RFC 5893 applies to all labels of a name together, so beside a label from right to left there are
//! only ASCII labels here; and the product of that rule with all scripts has more than 200,000 states, so
//! such a label is in one of five scripts. No small automaton decides which labels in Punycode (`xn--`) are
//! valid: names with them are handled separately (`punycode`). For the same reason two rules are not checked
//! for the other names, as the note says: the length of a label in Punycode, and Normalization Form C.

use lexiform_automata::grammar::{Expression, Part};
use lexiform_automata::idna::NOT_VALID;

use super::hir::own_expression;

/// Characters that are valid although their category would exclude them: a Tibetan sign, the ideographic
/// zero, Cherokee; and digits that must not occur together with those of [`ARABIC`], which only labels from
/// right to left contain here.
const VALID_TOO: &str = r"\u{F0B}\u{3007}\u{13A0}-\u{13F5}\u{6F0}-\u{6F9}";

/// Characters of scripts that are written from right to left.
const RIGHT: &str = r"\u{5D0}-\u{5F4}\u{620}-\u{64A}\u{66E}-\u{66F}\u{671}-\u{6D5}\u{6E5}-\u{6E6}\u{6EE}-\u{6EF}\u{6FA}-\u{710}\u{712}-\u{72F}\u{74D}-\u{7A5}\u{7B1}-\u{7EA}\u{7F4}-\u{7F5}\u{800}-\u{815}\u{81A}\u{824}\u{828}\u{840}-\u{858}\u{860}-\u{88E}\u{8A0}-\u{8C9}\u{FE73}\u{10800}-\u{10A00}\u{10A10}-\u{10A35}\u{10A60}-\u{10AE4}\u{10B00}-\u{10D23}\u{10D30}-\u{10D4F}\u{10D6F}-\u{10D85}\u{10E80}-\u{10EA9}\u{10EB0}-\u{10F45}\u{10F70}-\u{10F81}\u{10FB0}-\u{10FF6}\u{1E800}-\u{1E8C4}\u{1E922}-\u{1E943}\u{1E94B}-\u{1E959}";

/// The characters that separate labels.
const DOT: &str = r".\u{3002}\u{FF0E}\u{FF61}";

/// Scripts that are written from right to left.
const SCRIPTS: &str = r"\p{Hebrew}\p{Arabic}\p{Syriac}\p{Thaana}\p{Nko}";

/// The digits that count as Arabic in RFC 5893, and those that count as European.
const ARABIC: &str = r"\u{660}-\u{669}";
const EUROPEAN: &str = r"0-9\u{6F0}-\u{6F9}";

/// Marks of the canonical combining class 9, after which the joiners may occur.
const VIRAMA: &str = r"\u{94D}\u{9CD}\u{A4D}\u{ACD}\u{B4D}\u{BCD}\u{C4D}\u{CCD}\u{D3B}\u{D3C}\u{D4D}\u{DCA}\u{E3A}\u{EBA}\u{F84}\u{1039}\u{103A}\u{1714}\u{1734}\u{17D2}\u{1A60}\u{1B44}\u{1BAA}\u{1BAB}\u{1BF2}\u{1BF3}\u{2D7F}\u{A806}\u{A8C4}\u{A953}\u{A9C0}\u{AAF6}\u{ABED}";

/// Arabic letters that join what follows them, and those that join only what precedes them.
const JOINS_BOTH: &str = r"\u{620}\u{626}\u{628}\u{62A}-\u{62E}\u{633}-\u{63F}\u{641}-\u{647}\u{649}\u{64A}\u{66E}\u{66F}\u{679}-\u{687}\u{69A}-\u{6BF}\u{6C1}\u{6C2}\u{6CC}\u{6CE}\u{6D0}\u{6D1}\u{6FA}-\u{6FC}\u{6FF}";
const JOINS_BACK: &str = r"\u{622}-\u{625}\u{627}\u{629}\u{62F}-\u{632}\u{648}\u{671}-\u{673}\u{688}-\u{699}\u{6C0}\u{6C3}-\u{6CB}\u{6CD}\u{6CF}\u{6D2}\u{6D3}\u{6D5}\u{6EE}\u{6EF}";

const ASCII: &str = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?";

/// The number of characters from which a label that is not all ASCII has more than 63 in Punycode. Names here
/// are shorter.
const LONG_NAME: u64 = 60;

/// Returns the language that represents `idn-hostname`.
pub(super) fn parts() -> Vec<Part> {
    let plain = format!("(?:{ASCII}|{}|{})", left_to_right(), with_middle_dot());
    let beside = "[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
    let either = format!("(?:{}|{beside})", right_to_left());
    vec![
        Part::Match(own_expression(&format!(
            "(?:{plain}(?:[{DOT}]{plain})*|{either}(?:[{DOT}]{either})*)"
        ))),
        Part::Not(reserved()),
        Part::Units {
            unit: own_expression("(?s:.)"),
            min: 1,
            max: Some(LONG_NAME - 1),
        },
    ]
}

/// Returns the longer names, which consist of ASCII labels only: these need not be counted together. Counting
/// the characters of each label, whatever they are, takes an automaton of more than 16 MB.
pub(super) fn long() -> Vec<Part> {
    let label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
    vec![
        Part::Match(own_expression(&format!("{label}(?:[{DOT}]{label})*"))),
        Part::Not(reserved()),
        Part::Units {
            unit: own_expression("(?s:.)"),
            min: LONG_NAME,
            max: Some(253),
        },
    ]
}

/// Matches names with two hyphens in the third and fourth place of a label, which are reserved.
fn reserved() -> Expression {
    own_expression(&format!("(?:|.*[{DOT}])[^{DOT}]{{2}}--.*"))
}

/// Returns a superset of the names: all texts of characters that a label in any script may contain.
pub(super) fn wider() -> Vec<Part> {
    vec![Part::Match(own_expression(r"[A-Za-z0-9.\-\u{80}-\u{10FFFF}]+"))]
}

/// Returns the letters, digits and marks of labels, without those written from right to left.
fn valid() -> String {
    let letters = r"0-9a-z\p{Ll}\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{Nd}";
    format!(r"[[[{letters}]--[{NOT_VALID}{RIGHT}]]{VALID_TOO}]")
}

fn left_to_right() -> String {
    let valid = valid();
    // A middle dot between two l, a keraia before a Greek letter, a joiner after a virama.
    let greek = format!(r"\u{{375}}[\p{{Greek}}&&{valid}]");
    let (dotted, joined) = (r"l(?:\u{B7}l)+", format!(r"[{VIRAMA}][\u{{200C}}\u{{200D}}]"));
    let first = format!(r"(?:[{valid}--\p{{M}}]|{greek}|{dotted})");
    let more = format!("(?:{valid}|{greek}|{dotted}|{joined})");
    format!(r"{first}(?:(?:{more}|-)*{more})?")
}

/// Returns labels with a katakana middle dot, which requires a Japanese letter anywhere in its label.
fn with_middle_dot() -> String {
    let letter = format!(
        r"[[\p{{Hiragana}}\p{{Katakana}}\p{{Han}}]&&[{}--\p{{M}}]]",
        valid()
    );
    let char = format!(r"[a-z0-9\u{{30FB}}\u{{30FC}}{letter}]");
    format!(r"(?:{letter}|{char}[{char}\-]*{letter})(?:[{char}\-]*{char})?")
}

/// Returns labels that satisfy rules 1 to 4 of RFC 5893.
fn right_to_left() -> String {
    let letter =
        format!(r"[[[{SCRIPTS}]&&[{RIGHT}]&&[\p{{Lo}}\p{{Lm}}\p{{Nd}}]--[{NOT_VALID}]]\u{{6FD}}\u{{6FE}}]");
    let mark = format!(r"[[\p{{Mn}}&&[{SCRIPTS}\u{{64B}}-\u{{655}}\u{{670}}]]--[{NOT_VALID}]]");
    // The two marks of Hebrew occur after a Hebrew letter or point; for the direction they are letters
    // themselves.
    let hebrew = r"[\u{5D0}-\u{5EA}\u{5EF}-\u{5F2}][\u{591}-\u{5BD}]*[\u{5F3}\u{5F4}]";
    let joined = format!(
        r"[{JOINS_BOTH}](?:{mark}*\u{{200C}}{mark}*[{JOINS_BOTH}])*{mark}*\u{{200C}}{mark}*[{JOINS_BOTH}{JOINS_BACK}]"
    );
    let letters = format!("(?:{letter}|{hebrew}|{joined})");
    let label = |digits: &str| {
        let end = format!("(?:{letters}|[{digits}]){mark}*");
        format!(r"{letters}{mark}*(?:(?:{letters}|{mark}|[{digits}]|-)*{end})?")
    };
    // Digits of one kind only.
    format!("(?:{}|{})", label(EUROPEAN), label(ARABIC))
}

#[cfg(test)]
mod tests {
    use regex_syntax::hir::{Class, HirKind};
    use unicode_bidi::{BidiClass, bidi_class};

    use super::*;

    /// The ranges of scripts were taken from one version of Unicode; this compares them with the data of a
    /// crate.
    #[test]
    fn characters_from_right_to_left_are_told_from_others() {
        let parsed = regex_syntax::parse(&valid()).expect("a class");
        let HirKind::Class(Class::Unicode(class)) = parsed.into_kind() else {
            panic!("a class of characters");
        };
        let chars = class
            .ranges()
            .iter()
            .flat_map(|range| range.start()..=range.end());
        let from_right = |c: &char| matches!(bidi_class(*c), BidiClass::R | BidiClass::AL | BidiClass::AN);
        let wrong: Vec<String> = chars
            .filter(from_right)
            .map(|c| format!("U+{:04X}", u32::from(c)))
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
