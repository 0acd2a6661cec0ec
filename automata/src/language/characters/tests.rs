//! Compares the automata with a slow and obvious reference: regex-automata's NFA, run on whole texts.

use proptest::prelude::*;
use regex_automata::nfa::thompson::{self, pikevm::PikeVM};
use regex_syntax::hir::{Class, Hir, Look};

use super::*;
use crate::limits::Cancel;

const ROOM: usize = 1 << 20;
/// Over bytes, `(?:(?:(?:[^b€]){1,2}){2,4}\s){1,3}` takes more than a megabyte.
const WIDE: usize = 1 << 25;

fn automaton(hir: &Hir, alphabet: Alphabet) -> Result<Automaton, Failure> {
    automaton_within(hir, alphabet, ROOM)
}

fn automaton_within(hir: &Hir, alphabet: Alphabet, bytes: usize) -> Result<Automaton, Failure> {
    let cancel = &Cancel::default();
    Automaton::new(hir, alphabet, Room { bytes, cancel })
}

fn hir(pattern: &str) -> Hir {
    let mut parser = regex_syntax::ParserBuilder::new().utf8(false).build();
    parser.parse(pattern).expect("the test's pattern is well formed")
}

/// A language over bytes, compiled over either alphabet.
struct Spelled {
    classes: Box<[u8; 256]>,
    stride: usize,
    next: Vec<u32>,
    accepting: Vec<bool>,
}

impl Spelled {
    fn new(pattern: &str, alphabet: Alphabet) -> Result<Spelled, Failure> {
        let automaton = automaton_within(&hir(pattern), alphabet, WIDE)?;
        let edge = |target: u32| match target {
            Automaton::DEAD => u32::MAX,
            state => state << 1,
        };
        let bytes = spell(&automaton.next, edge, automaton.letters(), WIDE)?;
        let mut accepting = automaton.accepting;
        accepting.resize(bytes.next.len() / bytes.stride, false);
        Ok(Spelled {
            classes: bytes.classes,
            stride: bytes.stride,
            next: bytes.next,
            accepting,
        })
    }

    fn matches(&self, text: &[u8]) -> bool {
        let mut state = Automaton::START;
        for &byte in text {
            let edge = self.next[state as usize * self.stride + usize::from(self.classes[byte as usize])];
            if edge == u32::MAX {
                return false;
            }
            state = edge >> 1;
        }
        self.accepting[state as usize]
    }
}

fn judge(pattern: &str) -> PikeVM {
    let whole = Hir::concat(vec![Hir::look(Look::Start), hir(pattern), Hir::look(Look::End)]);
    let compiler = &mut thompson::Compiler::new();
    let compiler = compiler.configure(thompson::Config::new().utf8(false));
    PikeVM::new_from_nfa(compiler.build_from_hir(&whole).expect("a small pattern")).expect("a small machine")
}

/// Generates patterns over a few characters of one to four bytes.
fn patterns() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("a".to_owned()),
        Just("bé".to_owned()),
        Just("[a-cé-€]".to_owned()),
        Just("[^b€]".to_owned()),
        Just(r"\s".to_owned()),
        Just("[\u{d7ff}-\u{e000}😀]".to_owned()),
        Just("(?s:.)".to_owned()),
        Just("[^\u{0}-\u{10ffff}]".to_owned()),
        Just(String::new()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            (inner.clone(), 0u32..3, 0u32..3)
                .prop_map(|(body, min, more)| format!("(?:{body}){{{min},{}}}", min + more)),
            (inner, prop_oneof![Just("*"), Just("+"), Just("?"), Just("{2,}")])
                .prop_map(|(body, sign)| format!("(?:{body}){sign}")),
        ]
    })
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop_oneof![
        8 => prop::sample::select(vec!["a", "b", "bé", "c", "é", "€", "😀", " ", "\u{d7ff}", "\u{e000}", "\u{10ffff}"])
            .prop_map(|it| it.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(letter, 0..6).prop_map(|letters| letters.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn words_are_those_of_the_expression_by_either_alphabet(
        pattern in patterns(),
        texts in prop::collection::vec(texts(), 12)
    ) {
        let judge = judge(&pattern);
        let chars = Spelled::new(&pattern, Alphabet::Chars).expect("small, and text");
        let bytes = Spelled::new(&pattern, Alphabet::Bytes).expect("small");
        for text in texts {
            let expected = judge.is_match(&mut judge.create_cache(), &text);
            prop_assert_eq!(chars.matches(&text), expected, "{} over characters, {:?}", pattern, text);
            prop_assert_eq!(bytes.matches(&text), expected, "{} over bytes, {:?}", pattern, text);
        }
    }
}

#[test]
fn what_is_small_over_characters_may_be_large_over_bytes() {
    let pattern = r"(?:(?:(?:[^b€]){1,2}){2,4}\s){1,3}";
    for alphabet in [Alphabet::Chars, Alphabet::Bytes] {
        let spelled = Spelled::new(pattern, alphabet).expect("there is room for it");
        assert!(spelled.matches("aé ".as_bytes()) && !spelled.matches("a€ ".as_bytes()));
    }
}

#[test]
fn what_is_no_text_is_had_over_bytes_alone() {
    for pattern in [
        r"(?-u:\xff)",
        r"(?-u:[\x80-\xff])a",
        r"(?-u:\xc3)(?:(?-u:\xa9)|x)",
    ] {
        assert_eq!(
            automaton(&hir(pattern), Alphabet::Chars).err(),
            Some(Failure::NotText),
            "{pattern}"
        );
        assert!(automaton(&hir(pattern), Alphabet::Bytes).is_ok(), "{pattern}");
    }
    assert!(Spelled::new(r"(?-u:[\x00-\x7f])", Alphabet::Chars).is_ok_and(|it| it.matches(b"x")));
}

#[test]
fn more_than_256_classes_of_characters_are_had_over_bytes() {
    let apart: String = ('\u{4e00}'..'\u{4f00}').map(|c| format!("{c}{c}|")).collect();
    assert_eq!(
        Spelled::new(&apart, Alphabet::Chars).err(),
        Some(Failure::NotText)
    );
    let bytes = Spelled::new(&apart, Alphabet::Bytes).expect("small");
    assert!(bytes.matches("\u{4e07}\u{4e07}".as_bytes()) && !bytes.matches("\u{4e07}\u{4e08}".as_bytes()));
}

#[test]
fn all_bytes_may_be_letters_of_their_own_and_256_characters_may_not() {
    let letters: Vec<u32> = (0..256).collect();
    let bytes = Letters::single(&letters, Alphabet::Bytes).expect("there are no others");
    assert_eq!(bytes.count(), 256);
    let fewer = Letters::single(&letters[1..], Alphabet::Bytes).expect("255 and one of others");
    assert_eq!(fewer.count(), 256);
    assert_eq!(
        Letters::single(&letters, Alphabet::Chars).err(),
        Some(Failure::NotText)
    );
    assert!(Letters::single(&letters[1..], Alphabet::Chars).is_ok());
}

#[test]
fn look_around_is_refused() {
    let looking = Hir::concat(vec![Hir::look(Look::WordUnicode), Hir::literal(*b"a")]);
    assert_eq!(automaton(&looking, Alphabet::Chars).err(), Some(Failure::Look));
}

#[test]
fn room_bounds_memory_and_work() {
    // These have 2^20 states, a hundred million places, and few states with many members each.
    for pattern in [
        "(?:a|b)*a(?:a|b){20}",
        "(?:(?:(?:ab){500}){500}){500}",
        "(?:a?b?){3000}(?:a?b?){3000}",
    ] {
        assert_eq!(
            automaton(&hir(pattern), Alphabet::Chars).err(),
            Some(Failure::Limit),
            "{pattern}"
        );
    }
}

#[test]
fn an_empty_class_has_no_word() {
    let none = Hir::class(Class::Unicode(regex_syntax::hir::ClassUnicode::empty()));
    let automaton = automaton(&none, Alphabet::Chars).expect("small");
    assert!(!automaton.accepts(Automaton::START));
    assert_eq!(automaton.next(Automaton::START, 0), Automaton::DEAD);
}

#[test]
fn copies_of_a_class_are_one_edge_each() {
    let words = automaton(&hir(r"(?:\S+\s+){0,99}\S+"), Alphabet::Chars).expect("small");
    assert_eq!(words.letters().count(), 2);
    assert!(words.accepting.len() < 310, "{}", words.accepting.len());
}
