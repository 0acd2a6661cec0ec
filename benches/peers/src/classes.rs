//! The cause of a dispute about a token, found by rules over the first refused byte and the text before it.
//!
//! If a rule needs more than the bytes, it queries the engines: a third grammar, of the same schema with keys
//! in the schema's order, shows whether the order of keys is the only cause; a refused byte that is accepted
//! once the white space before it is left out was refused because of the white space.

use std::fmt;

use lexiform::Grammar;
use llguidance::Matcher;

use crate::scan::{Place, Scan};

/// The engine that is the only one to allow a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Lexiform.
    Ours,
    /// llguidance.
    Theirs,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Ours => "Lexiform",
            Side::Theirs => "llguidance",
        })
    }
}

/// The causes of disputes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The token as another split of the text: both languages contain the text.
    Cut,
    /// Keys in another order than the schema's.
    KeyOrder,
    /// A duplicate key.
    DuplicateKey,
    /// The white space that is allowed.
    WhiteSpace,
    /// Escapes of characters that need none.
    Escape,
    /// DEL in strings.
    Delete,
    /// A number with an exponent.
    Exponent,
    /// A number with a fraction.
    Fraction,
    /// The sign of a zero.
    NegativeZero,
    /// The texts that a format allows.
    Format,
    /// Keywords beside a reference.
    Sibling,
    /// The characters that count as white space in patterns.
    Mark,
    /// A token that writes no text.
    Special,
    /// The end of the text.
    End,
    /// The digits of a number.
    Digits,
    /// A character of a string's value.
    Content,
    /// A key.
    Key,
    /// The kind of a value, or the text that may follow it.
    Structure,
    /// A disagreement between our mask and our machine.
    MaskAgainstStep,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Cut => "forced position: both have the text, llguidance wants it cut in one way",
            Class::KeyOrder => "key order: llguidance takes keys in the schema's order only",
            Class::DuplicateKey => "duplicate keys: llguidance takes a key twice",
            Class::WhiteSpace => "white space: unbounded in llguidance, few forms in Lexiform",
            Class::Escape => "escapes: other spellings of the same characters",
            Class::Delete => "DEL: llguidance has none in strings",
            Class::Exponent => "numbers: exponents, which llguidance drops from integers and bounded numbers",
            Class::Fraction => "numbers: fractions of zeros, which llguidance has none of in integers",
            Class::NegativeZero => {
                "numbers: -0 is 0, which llguidance does not write where no less is allowed"
            }
            Class::Format => "formats: to the letter of their RFCs in Lexiform",
            Class::Sibling => "beside $ref: llguidance asserts what drafts up to 7 ignore there",
            Class::Mark => "patterns: U+FEFF is white space in ECMA-262",
            Class::Special => "special tokens",
            Class::Digits => "UNEXPLAINED: digits of a number",
            Class::End => "UNEXPLAINED: whether the text may end",
            Class::Content => "UNEXPLAINED: content of a string",
            Class::Key => "UNEXPLAINED: a key",
            Class::Structure => "UNEXPLAINED: structure",
            Class::MaskAgainstStep => "UNEXPLAINED: mask and steps of Lexiform disagree",
        })
    }
}

impl Class {
    /// Returns `true` if the class explains the dispute.
    pub fn is_explained(self) -> bool {
        self < Class::End
    }
}

/// A byte that one engine refuses.
pub struct Dispute {
    /// The whole text before the byte.
    before: Vec<u8>,
    byte: u8,
    /// The engine that allows the byte.
    side: Side,
}

impl Dispute {
    /// Creates a dispute; `refused` are the bytes of the token up to the refused one.
    pub fn new(text: &[u8], refused: &[u8], side: Side) -> Self {
        let mut before = text.to_vec();
        let (byte, taken) = refused
            .split_last()
            .map_or((0, &[][..]), |(byte, taken)| (*byte, taken));
        before.extend_from_slice(taken);
        Self { before, byte, side }
    }
}

/// The engines that the rules may query, all in their start states.
pub struct Judge {
    /// The grammar whose masks are compared.
    pub grammar: Grammar,
    /// The same grammar with keys in the schema's order.
    pub ordered: Option<Grammar>,
    /// llguidance.
    pub matcher: Matcher,
    /// Both engines with the schema without its formats, if it has any.
    pub plain: Option<(Grammar, Matcher)>,
    /// The grammar with the keywords beside references asserted, if there are any.
    pub siblings: Option<Grammar>,
}

impl Judge {
    /// Returns the class of a dispute.
    pub fn class(&mut self, dispute: &Dispute) -> Class {
        let scan = Scan::of(&dispute.before);
        match scan.place {
            Place::Escape { .. } => return Class::Escape,
            Place::Text { .. } if dispute.byte == b'\\' => return Class::Escape,
            Place::Text { .. } if dispute.byte == 0x7f => return Class::Delete,
            Place::Between | Place::Number | Place::Word if self.is_white_space(dispute) => {
                return Class::WhiteSpace;
            }
            _ => {}
        }
        if dispute.side == Side::Ours && self.is_key_order(dispute) {
            return Class::KeyOrder;
        }
        let class = match scan.place {
            Place::Text { key: true } => key(dispute, &scan),
            Place::Text { key: false } | Place::Escape { .. } => Class::Content,
            Place::Number => number(dispute, &scan),
            Place::Between if matches!(dispute.byte, b'-' | b'0'..=b'9') => Class::Digits,
            Place::Between | Place::Word => Class::Structure,
        };
        match class {
            Class::Digits if self.is_negative_zero(dispute, &scan) => Class::NegativeZero,
            Class::Digits if self.is_exponent(dispute) => Class::Exponent,
            Class::Content if is_mark(dispute) => Class::Mark,
            Class::Content if self.is_format(dispute) => Class::Format,
            Class::Digits | Class::Content | Class::Key | Class::Structure if self.is_sibling(dispute) => {
                Class::Sibling
            }
            class => class,
        }
    }

    /// Returns `true` if a sign is allowed that only a zero may follow, or if a zero already has its sign.
    fn is_negative_zero(&self, dispute: &Dispute, scan: &Scan) -> bool {
        let takes = |digit: u8| self.takes_behind(dispute, digit);
        dispute.side == Side::Ours
            && match (
                dispute.byte,
                &dispute.before[scan.began.min(dispute.before.len())..],
            ) {
                (b'-', _) => takes(b'0') && !(b'1'..=b'9').any(takes),
                (b'0', b"-") | (_, b"-0") => true,
                _ => false,
            }
    }

    /// Returns `true` if the byte is a digit after which we accept an exponent.
    fn is_exponent(&self, dispute: &Dispute) -> bool {
        dispute.side == Side::Ours
            && dispute.byte.is_ascii_digit()
            && (self.takes_behind(dispute, b'e') || self.takes_behind(dispute, b'E'))
    }

    /// Returns `true` if we accept the byte and another one after it.
    fn takes_behind(&self, dispute: &Dispute, byte: u8) -> bool {
        let text = [&dispute.before[..], &[dispute.byte, byte]].concat();
        self.grammar.step_bytes(self.grammar.start(), &text).is_some()
    }

    /// Returns `true` if the engine that refuses the byte accepts it without formats.
    fn is_format(&mut self, dispute: &Dispute) -> bool {
        let text = [&dispute.before[..], &[dispute.byte]].concat();
        let Some((grammar, matcher)) = &mut self.plain else {
            return false;
        };
        match dispute.side {
            Side::Theirs => grammar.step_bytes(grammar.start(), &text).is_some(),
            Side::Ours => takes_bytes(matcher, &self.grammar, &text),
        }
    }

    /// Returns `true` if we refuse the byte, too, once the keywords beside references are asserted.
    fn is_sibling(&self, dispute: &Dispute) -> bool {
        let text = [&dispute.before[..], &[dispute.byte]].concat();
        let takes = |grammar: &Grammar| grammar.step_bytes(grammar.start(), &text).is_some();
        dispute.side == Side::Ours && self.siblings.as_ref().is_some_and(|siblings| !takes(siblings))
    }

    fn is_white_space(&mut self, dispute: &Dispute) -> bool {
        const WHITE: [u8; 4] = [b' ', b'\n', b'\r', b'\t'];
        if WHITE.contains(&dispute.byte) {
            return true;
        }
        let kept = dispute.before.trim_ascii_end();
        if kept.len() == dispute.before.len() {
            return false;
        }
        ["", " "].iter().any(|space| {
            let text = [kept, space.as_bytes(), &[dispute.byte]].concat();
            self.refuser_takes(dispute, &text)
        })
    }

    fn refuser_takes(&mut self, dispute: &Dispute, text: &[u8]) -> bool {
        match dispute.side {
            Side::Theirs => self.grammar.step_bytes(self.grammar.start(), text).is_some(),
            Side::Ours => takes_bytes(&mut self.matcher, &self.grammar, text),
        }
    }

    fn is_key_order(&self, dispute: &Dispute) -> bool {
        let text = [&dispute.before[..], &[dispute.byte]].concat();
        let takes = |ordered: &Grammar| ordered.step_bytes(ordered.start(), &text).is_some();
        self.ordered.as_ref().is_some_and(|ordered| !takes(ordered))
    }
}

/// Returns `true` if the byte is part of a byte order mark.
fn is_mark(dispute: &Dispute) -> bool {
    const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];
    let text = [&dispute.before[..], &[dispute.byte]].concat();
    (1..=3).any(|length| text.ends_with(&MARK[..length]))
}

/// Returns `true` if llguidance accepts a text from its start state, byte by byte.
fn takes_bytes(matcher: &mut Matcher, grammar: &Grammar, text: &[u8]) -> bool {
    let vocabulary = grammar.vocabulary();
    let tokens: Option<Vec<u32>> = text.iter().map(|byte| vocabulary.token_of_byte(*byte)).collect();
    let Some(tokens) = tokens else { return false };
    let taken = matcher.validate_tokens(&tokens);
    taken.is_ok_and(|taken| taken == tokens.len())
}

fn key(dispute: &Dispute, scan: &Scan) -> Class {
    let mut spelling = dispute.before[scan.began + 1..].to_vec();
    if dispute.byte != b'"' {
        spelling.push(dispute.byte);
    }
    if dispute.side == Side::Theirs && scan.has_key_from(&spelling) {
        Class::DuplicateKey
    } else {
        Class::Key
    }
}

fn number(dispute: &Dispute, scan: &Scan) -> Class {
    let digits = &dispute.before[scan.began..];
    let has = |wanted: &[u8]| digits.iter().chain([&dispute.byte]).any(|it| wanted.contains(it));
    // The known causes are spellings that llguidance lacks; spellings that only llguidance has remain
    // unexplained.
    if dispute.side == Side::Theirs {
        Class::Digits
    } else if has(b"eE") {
        Class::Exponent
    } else if has(b".") {
        Class::Fraction
    } else {
        Class::Digits
    }
}
