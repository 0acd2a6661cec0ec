//! Regular languages judged by Brzozowski's derivatives: the language after a byte is computed from its
//! definition.
//!
//! [`Re`] is kept free of empty parts, so that a derivative is [`Re::Never`] exactly where no completion
//! exists. Intersections and complements need a search through the derivatives, of which there are finitely
//! many. Nothing is shared with the library, and no bound on the length of completions is needed.

use std::collections::BTreeSet;
use std::rc::Rc;

use proptest::prelude::*;

use super::judge::{Judge, Verdict};
use super::vocabulary::NAMED_MARK;

/// A regular language over bytes. Only the functions below build one; they keep `Never` out of every larger
/// term.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Re {
    Never,
    Empty,
    Byte(u8, u8),
    Seq(Rc<Re>, Rc<Re>),
    Alt(BTreeSet<Re>),
    Repeat(Rc<Re>, u32, Option<u32>),
    /// Stands at the top only, as does `Not` below it.
    And(BTreeSet<Re>),
    Not(Rc<Re>),
}

impl Re {
    pub(crate) fn text(text: &str) -> Re {
        text.bytes()
            .rev()
            .fold(Re::Empty, |rest, byte| Re::seq(Re::Byte(byte, byte), rest))
    }

    pub(crate) fn seq(first: Re, second: Re) -> Re {
        match (first, second) {
            (Re::Never, _) | (_, Re::Never) => Re::Never,
            (Re::Empty, other) | (other, Re::Empty) => other,
            (first, second) => Re::Seq(Rc::new(first), Rc::new(second)),
        }
    }

    pub(crate) fn all(parts: impl IntoIterator<Item = Re>) -> Re {
        let parts: Vec<Re> = parts.into_iter().collect();
        parts
            .into_iter()
            .rev()
            .fold(Re::Empty, |rest, part| Re::seq(part, rest))
    }

    pub(crate) fn any(parts: impl IntoIterator<Item = Re>) -> Re {
        let mut set = BTreeSet::new();
        for part in parts {
            match part {
                Re::Never => {}
                Re::Alt(inner) => set.extend(inner),
                other => drop(set.insert(other)),
            }
        }
        match set.len() {
            0 => Re::Never,
            1 => set.pop_first().expect("one part"),
            _ => Re::Alt(set),
        }
    }

    pub(crate) fn repeat(part: Re, min: u32, max: Option<u32>) -> Re {
        match part {
            _ if max == Some(0) => Re::Empty,
            Re::Never if min == 0 => Re::Empty,
            Re::Never => Re::Never,
            Re::Empty => Re::Empty,
            part => Re::Repeat(Rc::new(part), min, max),
        }
    }

    fn nullable(&self) -> bool {
        match self {
            Re::Never | Re::Byte(..) => false,
            Re::Empty => true,
            Re::Seq(first, second) => first.nullable() && second.nullable(),
            Re::Alt(parts) => parts.iter().any(Re::nullable),
            Re::Repeat(part, min, _) => *min == 0 || part.nullable(),
            Re::And(parts) => parts.iter().all(Re::nullable),
            Re::Not(part) => !part.nullable(),
        }
    }

    /// What may follow `byte` in a text of the language.
    fn after(&self, byte: u8) -> Re {
        match self {
            Re::Never | Re::Empty => Re::Never,
            Re::Byte(low, high) => match (low..=high).contains(&&byte) {
                true => Re::Empty,
                false => Re::Never,
            },
            Re::Seq(first, second) => {
                let within = Re::seq(first.after(byte), (**second).clone());
                let beyond = if first.nullable() {
                    second.after(byte)
                } else {
                    Re::Never
                };
                Re::any([within, beyond])
            }
            Re::Alt(parts) => Re::any(parts.iter().map(|part| part.after(byte))),
            Re::Repeat(part, min, max) => {
                let rest = Re::repeat((**part).clone(), min.saturating_sub(1), max.map(|max| max - 1));
                Re::seq(part.after(byte), rest)
            }
            Re::And(parts) => Re::And(parts.iter().map(|part| part.after(byte)).collect()),
            Re::Not(part) => Re::Not(Rc::new(part.after(byte))),
        }
    }

    fn after_all(&self, text: &[u8]) -> Re {
        text.iter()
            .fold(self.clone(), |language, &byte| language.after(byte))
    }
}

impl Judge for Re {
    fn verdict(&self, text: &[u8]) -> Verdict {
        // No pattern names the special token, and `.` is not meant to match its mark.
        let named = text.iter().any(|byte| NAMED_MARK.as_bytes().contains(byte));
        let rest = if named { Re::Never } else { self.after_all(text) };
        Verdict {
            viable: rest.is_inhabited(),
            accepted: rest.nullable(),
        }
    }
}

impl Re {
    /// Whether some text of the language is one of these words after another; `None` where that would take
    /// too many steps to find out.
    pub(crate) fn is_spelled_by(&self, words: &[Vec<u8>]) -> Option<bool> {
        let (mut seen, mut open) = (BTreeSet::from([self.clone()]), vec![self.clone()]);
        while let Some(language) = open.pop() {
            if language.nullable() {
                return Some(true);
            }
            let next = words.iter().map(|word| language.after_all(word));
            open.extend(next.filter(|next| *next != Re::Never && seen.insert(next.clone())));
            if seen.len() > 300 {
                return None;
            }
        }
        Some(false)
    }

    /// What may follow a text.
    pub(crate) fn rest(&self, text: &[u8]) -> Re {
        self.after_all(text)
    }

    /// Whether there is any word.
    fn is_inhabited(&self) -> bool {
        if !matches!(self, Re::And(_) | Re::Not(_)) {
            return *self != Re::Never;
        }
        let mut seen = BTreeSet::new();
        let mut open = vec![self.clone()];
        while let Some(language) = open.pop() {
            if language.nullable() {
                return true;
            }
            if seen.insert(language.clone()) {
                open.extend(language.kinds().into_iter().map(|byte| language.after(byte)));
            }
        }
        false
    }

    /// One byte of each kind that the language may tell apart.
    fn kinds(&self) -> BTreeSet<u8> {
        let mut kinds = BTreeSet::from([0]);
        self.add_kinds(&mut kinds);
        kinds
    }

    fn add_kinds(&self, kinds: &mut BTreeSet<u8>) {
        match self {
            Re::Never | Re::Empty => {}
            Re::Byte(low, high) => kinds.extend([*low, high.saturating_add(1)]),
            Re::Seq(first, second) => {
                first.add_kinds(kinds);
                second.add_kinds(kinds);
            }
            Re::Alt(parts) | Re::And(parts) => parts.iter().for_each(|part| part.add_kinds(kinds)),
            Re::Repeat(part, ..) | Re::Not(part) => part.add_kinds(kinds),
        }
    }
}

/// A pattern that can be printed as a regular expression and read as a language.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Chars(Vec<char>),
    Dot,
    Seq(Vec<Pattern>),
    Alt(Vec<Pattern>),
    Repeat(Box<Pattern>, u32, Option<u32>),
}

impl Pattern {
    pub(crate) fn source(&self) -> String {
        match self {
            Pattern::Chars(chars) if chars.len() == 1 => chars[0].to_string(),
            Pattern::Chars(chars) => format!("[{}]", chars.iter().collect::<String>()),
            Pattern::Dot => ".".to_owned(),
            Pattern::Seq(parts) => parts.iter().map(Pattern::source).collect(),
            Pattern::Alt(parts) => {
                let parts: Vec<String> = parts.iter().map(Pattern::source).collect();
                format!("(?:{})", parts.join("|"))
            }
            Pattern::Repeat(part, min, max) => format!("(?:{}){}", part.source(), count(*min, *max)),
        }
    }

    pub(crate) fn language(&self) -> Re {
        match self {
            Pattern::Chars(chars) => Re::any(chars.iter().map(|it| Re::text(&it.to_string()))),
            Pattern::Dot => any_character(),
            Pattern::Seq(parts) => Re::all(parts.iter().map(Pattern::language)),
            Pattern::Alt(parts) => Re::any(parts.iter().map(Pattern::language)),
            Pattern::Repeat(part, min, max) => Re::repeat(part.language(), *min, *max),
        }
    }
}

fn count(min: u32, max: Option<u32>) -> String {
    match (min, max) {
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (0, Some(1)) => "?".to_owned(),
        (min, None) => format!("{{{min},}}"),
        (min, Some(max)) if min == max => format!("{{{min}}}"),
        (min, Some(max)) => format!("{{{min},{max}}}"),
    }
}

/// Any character but the line feed, as UTF-8 defines them (Unicode, table 3-7).
fn any_character() -> Re {
    let rows: [&[(u8, u8)]; 10] = [
        &[(0x00, 0x09)],
        &[(0x0B, 0x7F)],
        &[(0xC2, 0xDF), (0x80, 0xBF)],
        &[(0xE0, 0xE0), (0xA0, 0xBF), (0x80, 0xBF)],
        &[(0xE1, 0xEC), (0x80, 0xBF), (0x80, 0xBF)],
        &[(0xED, 0xED), (0x80, 0x9F), (0x80, 0xBF)],
        &[(0xEE, 0xEF), (0x80, 0xBF), (0x80, 0xBF)],
        &[(0xF0, 0xF0), (0x90, 0xBF), (0x80, 0xBF), (0x80, 0xBF)],
        &[(0xF1, 0xF3), (0x80, 0xBF), (0x80, 0xBF), (0x80, 0xBF)],
        &[(0xF4, 0xF4), (0x80, 0x8F), (0x80, 0xBF), (0x80, 0xBF)],
    ];
    Re::any(
        rows.iter()
            .map(|row| Re::all(row.iter().map(|&(low, high)| Re::Byte(low, high)))),
    )
}

/// Random patterns over `a`, `b` and a character of two bytes, which tokens may cut.
pub(crate) fn patterns() -> impl Strategy<Value = Pattern> {
    let letters = prop::sample::subsequence(vec!['a', 'b', 'é'], 1..=3);
    let leaf = prop_oneof![6 => letters.prop_map(Pattern::Chars), 1 => Just(Pattern::Dot)];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let counts = (0u32..3, prop::option::of(0u32..3));
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Pattern::Seq),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Pattern::Alt),
            (inner, counts).prop_map(|(part, (min, more))| Pattern::Repeat(
                Box::new(part),
                min,
                more.map(|more| min + more)
            )),
        ]
    })
}

/// One operand of an intersection.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Match(Pattern),
    Not(Pattern),
    /// A run of units, counted.
    Units(Pattern, u32, Option<u32>),
}

impl Operand {
    pub(crate) fn language(&self) -> Re {
        match self {
            Operand::Match(pattern) => pattern.language(),
            Operand::Not(pattern) => Re::Not(Rc::new(pattern.language())),
            Operand::Units(unit, min, max) => Re::repeat(unit.language(), *min, *max),
        }
    }
}

/// The language of an intersection.
pub(crate) fn intersection(operands: &[Operand]) -> Re {
    Re::And(operands.iter().map(Operand::language).collect())
}

/// Random counts. The unit is a prefix code, as it must be.
pub(crate) fn counts() -> impl Strategy<Value = Operand> {
    let one = |chars: &[char]| Pattern::Chars(chars.to_vec());
    let units = vec![
        one(&['a', 'b', 'é']),
        one(&['a']),
        Pattern::Alt(vec![
            one(&['a']),
            Pattern::Seq(vec![one(&['b']), one(&['a', 'b'])]),
        ]),
        Pattern::Dot,
    ];
    let unit = (prop::sample::select(units), 0u32..4, prop::option::of(0u32..3));
    unit.prop_map(|(unit, min, more)| Operand::Units(unit, min, more.map(|more| min + more)))
}

/// Random intersections.
pub(crate) fn parts() -> impl Strategy<Value = Vec<Operand>> {
    let other = prop_oneof![2 => patterns().prop_map(Operand::Match), 1 => patterns().prop_map(Operand::Not)];
    (prop::collection::vec(other, 0..3), prop::option::of(counts())).prop_map(|(mut parts, unit)| {
        parts.extend(unit);
        parts
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The judge is judged: regex-automata agrees with it on every short text.
    #[test]
    fn the_judge_agrees_with_regex_automata(pattern in patterns()) {
        let source = format!("^(?:{})$", pattern.source());
        let regex = regex_automata::dfa::regex::Regex::new(&source).expect("a pattern");
        let language = pattern.language();
        for text in super::judge::texts(&["a", "b", "é"], 5) {
            let text = text.as_bytes();
            let accepted = regex.is_match(text);
            prop_assert_eq!(language.verdict(text).accepted, accepted, "{} on {:?}", source, text);
            let viable = (0..=text.len()).all(|cut| language.verdict(&text[..cut]).viable);
            prop_assert!(viable || !accepted, "{} can go on to {:?}", source, text);
        }
    }
}
