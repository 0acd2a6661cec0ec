//! Internationalised host names: labels of RFC 5891 with the code points of RFC 5892.
//!
//! Whole rules are left out rather than their exceptions let in: labels in Punycode (`xn--`), whose validity hangs on
//! what they decode to; characters that are valid between certain neighbours only; scripts written from right to left,
//! for which all labels of a name have to be looked at together. Exact automata for the last two were tried: their
//! product has more than 200,000 states.

use crate::grammar::Part;

use super::hir;

/// Code points whose category would make them letters, marks or digits of labels, but which are unstable under
/// NFKC and case folding, ignorable, old Hangul, or exceptions (RFC 5892, 2.2 to 2.9). Computed from the Unicode Character
/// Database by those rules; ranges run over code points that are out anyway.
const NOT_VALID: &str = r"\u{AA}-\u{BA}\u{133}\u{140}\u{149}\u{17F}\u{1C6}-\u{1CC}\u{1F3}\u{2B0}-\u{2B8}\u{2E0}-\u{2E4}\u{340}-\u{341}\u{343}-\u{345}\u{34F}\u{374}\u{37A}\u{3D0}-\u{3D6}\u{3F0}-\u{3F2}\u{3F5}\u{587}\u{640}\u{660}-\u{669}\u{675}-\u{678}\u{6F0}-\u{6F9}\u{7FA}\u{958}-\u{95F}\u{9DC}-\u{9DF}\u{A33}\u{A36}\u{A59}-\u{A5B}\u{A5E}\u{B5C}-\u{B5D}\u{E33}\u{EB3}\u{EDC}-\u{EDD}\u{F43}\u{F4D}\u{F52}\u{F57}\u{F5C}\u{F69}\u{F73}\u{F75}-\u{F79}\u{F81}\u{F93}\u{F9D}\u{FA2}\u{FA7}\u{FAC}\u{FB9}\u{10FC}\u{1100}-\u{11FF}\u{13F8}-\u{13FD}\u{17B4}-\u{17B5}\u{180B}-\u{180F}\u{1C80}-\u{1C88}\u{1D2C}-\u{1D2E}\u{1D30}-\u{1D3A}\u{1D3C}-\u{1D4D}\u{1D4F}-\u{1D6A}\u{1D78}\u{1D9B}-\u{1DBF}\u{1E9A}-\u{1E9B}\u{1F71}\u{1F73}\u{1F75}\u{1F77}\u{1F79}\u{1F7B}\u{1F7D}-\u{1FA7}\u{1FB2}-\u{1FB4}\u{1FB7}-\u{1FC4}\u{1FC7}\u{1FD3}\u{1FE3}\u{1FF2}-\u{1FF4}\u{1FF7}-\u{2149}\u{2C7C}-\u{2C7D}\u{2D6F}\u{302E}-\u{303B}\u{309F}\u{30FF}\u{3131}-\u{318E}\u{A69C}-\u{A69D}\u{A770}\u{A7F2}-\u{A7F4}\u{A7F8}-\u{A7F9}\u{A960}-\u{A97C}\u{AB5C}-\u{AB5F}\u{AB69}-\u{ABBF}\u{D7B0}-\u{FA0D}\u{FA10}\u{FA12}\u{FA15}-\u{FA1E}\u{FA20}\u{FA22}\u{FA25}-\u{FA26}\u{FA2A}-\u{FB1D}\u{FB1F}-\u{FE0F}\u{FE70}-\u{FE72}\u{FE74}-\u{FFDC}\u{10781}-\u{107BA}\u{1D165}-\u{1D7FF}\u{1EE00}-\u{1FBF9}\u{2F800}-\u{2FA1D}\u{E0100}-\u{E01EF}";

/// Valid although their category would not make them so: Tibetan and Sindhi signs, the ideographic zero, Cherokee.
const VALID_TOO: &str = r"\u{6FD}\u{6FE}\u{F0B}\u{3007}\u{13A0}-\u{13F5}";

/// Characters of scripts that are written from right to left.
const RIGHT: &str = r"\u{5D0}-\u{5F4}\u{620}-\u{64A}\u{66E}-\u{66F}\u{671}-\u{6D5}\u{6E5}-\u{6E6}\u{6EE}-\u{6EF}\u{6FA}-\u{710}\u{712}-\u{72F}\u{74D}-\u{7A5}\u{7B1}-\u{7EA}\u{7F4}-\u{7F5}\u{800}-\u{815}\u{81A}\u{824}\u{828}\u{840}-\u{858}\u{860}-\u{88E}\u{8A0}-\u{8C9}\u{FE73}\u{10800}-\u{10A00}\u{10A10}-\u{10A35}\u{10A60}-\u{10AE4}\u{10B00}-\u{10D23}\u{10E80}-\u{10EA9}\u{10EB0}-\u{10F45}\u{10F70}-\u{10F81}\u{10FB0}-\u{10FF6}\u{1E800}-\u{1E8C4}\u{1E922}-\u{1E943}\u{1E94B}-\u{1E959}";

/// The characters that separate labels.
const DOT: &str = r".\u{3002}\u{FF0E}\u{FF61}";

/// The language that stands for `idn-hostname`.
pub(super) fn parts() -> Vec<Part> {
    let letters = r"0-9a-z\p{Ll}\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{Nd}";
    let valid = format!(r"[[{letters}]--[{NOT_VALID}{RIGHT}]]");
    let last = format!(r"[{valid}{VALID_TOO}]");
    let first = format!(r"[{last}--[\p{{M}}]]");
    let ascii = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
    let label = format!(r"(?:{ascii}|{first}(?:[{last}\-]*{last})?)");
    vec![
        Part::Match(hir(&format!("{label}(?:[{DOT}]{label})*"))),
        // Two hyphens in the third and fourth place are reserved.
        Part::Not(hir(&format!("(?:|.*[{DOT}])[^{DOT}]{{2}}--.*"))),
        Part::Units {
            unit: hir("(?s:.)"),
            min: 1,
            // A label of more characters, if one is not ASCII, has more than 63 in Punycode.
            max: Some(59),
        },
    ]
}
