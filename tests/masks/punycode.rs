//! Host names with labels in Punycode: the validator that decides them, and masks that depend on its answers.

use crate::published;
use std::collections::HashSet;
use std::sync::Arc;

use lexiform::Expected;
use lexiform::MaskRequest;
use lexiform::schema::Whitespace;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Grammar, Options, Source, State};
use lexiform_automata::grammar::Validator;
use serde_json::json;

use published::published;

const SCHEMA: &str = r#"{"type": "string", "format": "hostname"}"#;

/// The bytes that may occur in a body.
const FREE: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789-";

/// A generator of pseudo-random numbers, the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % sides
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.roll(list.len())]
    }

    fn body(&mut self, length: usize) -> String {
        (0..length).map(|_| char::from(self.pick(FREE))).collect()
    }
}

fn vocabulary(longer: &[String]) -> Arc<Vocabulary> {
    let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
    tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    tokens.extend(
        longer
            .iter()
            .map(|text| (TokenKind::Text, text.clone().into_bytes())),
    );
    Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"))
}

fn grammar_over(vocabulary: Arc<Vocabulary>, schema: &str) -> Grammar {
    let mut options = Options::default();
    options.schema.whitespace = Whitespace::Compact;
    let compiled = Compiler::new(vocabulary).compile(Source::JsonSchema(schema), &options);
    compiled.expect("the schema compiles").0
}

fn after(grammar: &Grammar, text: &str) -> State {
    let state = grammar.step_bytes(grammar.start(), text.as_bytes());
    state.unwrap_or_else(|| panic!("{text} is not allowed"))
}

/// Another project's validator, which accepts more than the rules of RFC 5892 and 5893.
fn other_validator(format: &str) -> jsonschema::Validator {
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
    let options = options.should_validate_formats(true);
    options.build(&json!({"format": format})).expect("a schema")
}

fn is_label(body: &str, validators: &[Validator]) -> bool {
    validators
        .iter()
        .any(|validator| validator.accepts(body.as_bytes()))
}

const BOTH: [Validator; 2] = [Validator::LabelFromLeft, Validator::OrderedLabel];

/// A katakana middle dot next to Han of extension A, U+3E3A and U+3614.
const HAN_BEYOND_ITS_TABLE: [&str; 1] = ["vekz6m15h"];

#[test]
fn another_validator_accepts_whatever_this_one_does() {
    let (other, mut dice) = (other_validator("hostname"), Dice(3));
    let mut valid = 0;
    for _ in 0..100_000 {
        let length = 1 + dice.roll(9);
        let body = dice.body(length);
        if is_label(&body, &BOTH) {
            valid += 1;
            let accepted = other.is_valid(&json!(format!("xn--{body}")));
            assert!(accepted || HAN_BEYOND_ITS_TABLE.contains(&&body[..]), "{body}");
        }
    }
    assert!(valid > 10_000, "{valid} of the bodies are valid");
}

/// Decides slowly whether a text is one of the grammar's names, which are short, so that no length limit
/// matters.
fn is_name(name: &str) -> bool {
    let labels: Vec<&str> = name.split('.').collect();
    let bodies: Vec<&str> = labels
        .iter()
        .filter_map(|label| label.strip_prefix("xn--"))
        .collect();
    let mut plain = labels.iter().filter(|label| !label.starts_with("xn--"));
    let is_plain = |label: &&&str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let ends = !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
        ends && label.chars().all(inner) && label.get(2..4) != Some("--")
    };
    let all_plain = plain.clone().all(|label| is_plain(&label));
    let letters_first = plain.all(|label| label.starts_with(|c: char| c.is_ascii_alphabetic()));
    all_plain
        && match bodies.len() {
            0 => true,
            1 if is_label(bodies[0], &[Validator::LabelFromLeft]) => true,
            1 | 2 => {
                letters_first
                    && bodies
                        .iter()
                        .all(|body| is_label(body, &[Validator::OrderedLabel]))
            }
            _ => false,
        }
}

/// Returns `true` if a name begins with this text: one of these continuations of its last label makes it a
/// name.
fn begins_a_name(text: &str) -> bool {
    let (before, last) = text
        .rsplit_once('.')
        .map_or(("", text), |(before, last)| (before, last));
    let before = if before.is_empty() && !text.starts_with('.') {
        String::new()
    } else {
        format!("{before}.")
    };
    let mut ways = vec![last.to_owned(), format!("{last}a")];
    if "xn--".starts_with(last) {
        ways.push("xn--9ca".into());
    }
    if let Some(body) = last.strip_prefix("xn--") {
        // That every body can be completed is a theorem, which the library's own tests sample.
        ways = match body.bytes().all(|byte| FREE.contains(&byte)) {
            true => vec!["xn--9ca".into()],
            false => Vec::new(),
        };
    }
    ways.iter().any(|way| is_name(&format!("{before}{way}")))
}

/// Returns whether a text in JSON begins a name, and whether it is one.
fn verdict(text: &str) -> (bool, bool) {
    let Some(rest) = text.strip_prefix('"') else {
        return (text.is_empty(), false);
    };
    match rest.split_once('"') {
        None => (begins_a_name(rest), false),
        Some((name, behind)) => {
            let whole = behind.is_empty() && is_name(name);
            (whole, whole)
        }
    }
}

/// Checks every token at every state that token sequences reach against names that are decided by brute
/// force.
fn check_everywhere(grammar: &Grammar, begin: &str, longest: usize, most: usize) -> usize {
    let mut open = std::collections::VecDeque::from([(after(grammar, begin), begin.to_owned())]);
    let mut seen = HashSet::new();
    while let Some((state, text)) = open.pop_front() {
        if text.len() > longest || seen.len() >= most || !seen.insert(text.clone()) {
            continue;
        }
        let mask = grammar.mask(state);
        assert_eq!(grammar.is_accepting(state), verdict(&text).1, "{text}");
        for token in 1..grammar.vocabulary().len() as u32 {
            let Ok(piece) = std::str::from_utf8(grammar.vocabulary().bytes(token)) else {
                assert!(!mask.contains(token), "{text} and no text");
                continue;
            };
            // Upper case is like lower case, and other spellings of JSON are not tested here.
            if piece
                .bytes()
                .any(|byte| byte.is_ascii_uppercase() || byte == b'\\')
            {
                continue;
            }
            let next = format!("{text}{piece}");
            let viable = verdict(&next).0;
            assert_eq!(mask.contains(token), viable, "mask of {piece:?} after {text}");
            assert_eq!(
                grammar.allows(state, token),
                viable,
                "step of {piece:?} after {text}"
            );
            if viable && (piece.len() > 1 || b"a9c-.\"".contains(&piece.as_bytes()[0])) {
                open.push_back((grammar.step(state, token).expect("the mask allows it"), next));
            }
        }
    }
    seen.len()
}

fn pieces() -> Vec<String> {
    let pieces = [
        "xn--",
        "n--",
        "--",
        "9ca",
        "ca",
        "-9",
        "ca.",
        "9ca.",
        "a.9ca",
        "9ca\"",
        "a\"",
        ".xn--",
        "9ca.xn--9ca\"",
        "c.c",
        "xn--9ca.a",
        "4db",
        "db.",
        "9.1",
        ".1",
        "xn--4dbrk0ce.",
        "a-9ca.x",
        "zz",
        "hello-txk\"",
    ];
    pieces.map(str::to_owned).to_vec()
}

#[test]
fn masks_are_what_brute_force_finds() {
    let grammar = grammar_over(vocabulary(&pieces()), SCHEMA);
    let mut states = 0;
    for begin in [
        "",
        "\"xn--",
        "\"a.xn--9",
        "\"xn--4dbrk0ce.",
        "\"xn--9ca.xn--",
        "\"1.xn--9ca.",
        "\"xn--9ca.xn--9ca.",
    ] {
        states += check_everywhere(&grammar, begin, begin.len() + 6, 250);
    }
    assert!(states > 1000, "{states}");
}

/// Returns tokens as tokenizers have them: all pairs, many of them with the text after a body.
fn pairs() -> Vec<String> {
    let mut pairs = Vec::new();
    for &first in FREE {
        for &second in FREE {
            let pair = format!("{}{}", char::from(first), char::from(second));
            pairs.extend(["", ".", "\"", ".a", ".xn--", ".com\""].map(|behind| format!("{pair}{behind}")));
        }
    }
    pairs
}

/// Takes random tokens until the text ends, and returns its value.
fn random_walk(
    grammar: &Grammar,
    mut state: State,
    mut text: Vec<u8>,
    dice: &mut Dice,
    eager: bool,
) -> String {
    for _ in 0..400 {
        let allowed: Vec<u32> = grammar.mask(state).iter().collect();
        assert!(!allowed.is_empty(), "nothing follows {}", text.escape_ascii());
        let ends = allowed.iter().copied().find(|&token| {
            let bytes = grammar.vocabulary().bytes(token);
            grammar.vocabulary().is_eos(token) || eager && bytes == b"\""
        });
        let token = ends.unwrap_or_else(|| dice.pick(&allowed));
        state = grammar.step(state, token).expect("the mask allows it");
        if grammar.is_finished(state) {
            return serde_json::from_slice(&text).expect("a string of JSON");
        }
        text.extend_from_slice(grammar.vocabulary().bytes(token));
    }
    panic!("a name has no end: {}", text.escape_ascii());
}

fn check_walks(grammar: &Grammar, walks: usize) {
    let (other, mut dice) = (other_validator("hostname"), Dice(5));
    for walk in 0..walks {
        let length = dice.roll(50);
        let begin = format!("\"{}xn--{}", dice.pick(&["", "www.", "1."]), dice.body(length));
        let state = after(grammar, &begin);
        let name = random_walk(
            grammar,
            state,
            begin.clone().into_bytes(),
            &mut dice,
            walk % 2 == 0,
        );
        assert!(name.len() <= 253 && is_name(&name), "{begin}: {name}");
        assert!(other.is_valid(&json!(name)), "{begin}: {name}");
    }
}

#[test]
fn random_walks_end_in_valid_names() {
    check_walks(&grammar_over(vocabulary(&pairs()), SCHEMA), 100);
}

#[test]
fn random_walks_over_a_published_vocabulary_end_in_valid_names() {
    let Some((vocabulary, _)) = published("random_walks_over_a_published_vocabulary", "llama3_1") else {
        return;
    };
    check_walks(&grammar_over(vocabulary, SCHEMA), 40);
}

/// The text after the free room of a body is the one ending that fits every text there.
#[test]
fn a_body_that_is_full_has_one_ending() {
    let grammar = grammar_over(vocabulary(&pairs()), SCHEMA);
    let mut dice = Dice(9);
    for _ in 0..20 {
        let mut text = format!("\"xn--{}", dice.body(51));
        loop {
            let state = after(&grammar, &text);
            let mask = grammar.mask(state);
            for token in 1..grammar.vocabulary().len() as u32 {
                assert_eq!(
                    mask.contains(token),
                    grammar.allows(state, token),
                    "{token} after {text}"
                );
            }
            let goes_on = |byte: &&u8| grammar.step_bytes(state, &[**byte]).is_some();
            let next: Vec<u8> = FREE.iter().filter(goes_on).copied().collect();
            match next[..] {
                [] => break,
                [only] => text.push(char::from(only)),
                _ => panic!("{} ways to go on after {text}", next.len()),
            }
        }
        assert_eq!(text.len(), "\"xn--".len() + 59);
        assert!(is_name(&text[1..]), "{text}");
    }
}

#[test]
fn names_in_punycode_are_as_long_as_names_may_be() {
    let grammar = grammar_over(vocabulary(&[]), SCHEMA);
    let accepts = |name: &str| {
        let end = grammar.step_bytes(grammar.start(), format!("\"{name}\"").as_bytes());
        end.is_some_and(|state| grammar.is_accepting(state))
    };
    let label = |length: usize| "a".repeat(length);
    let before = format!("{}.{}.", label(63), label(30));
    let behind = format!(".{}.{}", label(63), label(30));
    assert!(accepts(&format!("{before}xn--9ca{behind}")));
    assert!(!accepts(&format!("a{before}xn--9ca{behind}")), "a label of 64");
    assert!(
        !accepts(&format!("a.{before}xn--9ca{behind}")),
        "too much before it"
    );
    assert!(!accepts(&format!("{before}xn--9ca.{behind}")), "an empty label");
    let (before, between) = (format!("{}.", label(41)), format!(".{}.", label(41)));
    let two = |before: &str| format!("{before}xn--9ca{between}xn--4dbrk0ce.{}", label(41));
    assert!(accepts(&two(&before)));
    assert!(!accepts(&two(&format!("b{before}"))));
    assert!(
        !accepts("xn--9ca.xn--9ca.xn--9ca"),
        "three such labels are refused"
    );
}

/// Both formats accept the same names, and an international label may not occur beside a label in Punycode.
#[test]
fn international_names_may_be_in_punycode_too() {
    let grammar = grammar_over(vocabulary(&[]), r#"{"type": "string", "format": "idn-hostname"}"#);
    let accepts = |name: &str| {
        let end = grammar.step_bytes(grammar.start(), format!("\"{name}\"").as_bytes());
        end.is_some_and(|state| grammar.is_accepting(state))
    };
    assert!(
        accepts("xn--ihqwcrb4cv8a8dqg056pqjye") && accepts("münchen.de") && accepts("www.xn--mnchen-3ya.de")
    );
    assert!(!accepts("xn--mnchen-3ya.münchen") && !accepts("xn--hello-txk"));
}

/// Walks that always take the worst token end in time.
fn check_budgets(grammar: &Grammar, begin: &str, sampled: usize) {
    let start = after(grammar, begin);
    let least = grammar.min_completion(start).expect("every byte is a token");
    for more in [0, 2, 9] {
        let (mut state, mut text, mut budget) = (start, begin.as_bytes().to_vec(), least + more);
        loop {
            let allowed: Vec<u32> = grammar
                .try_mask(MaskRequest::from(state).within(budget))
                .expect("within the limits")
                .iter()
                .collect();
            assert!(
                !allowed.is_empty(),
                "nothing within {budget} after {}",
                text.escape_ascii()
            );
            let step = (allowed.len() / sampled).max(1);
            let needed = |token: u32| {
                let next = grammar.step(state, token).expect("the mask allows it");
                let needed = grammar.min_completion(next).expect("every byte is a token");
                assert!(
                    needed < budget,
                    "{needed} more than {budget} after {}",
                    text.escape_ascii()
                );
                needed
            };
            let token = allowed
                .iter()
                .copied()
                .step_by(step)
                .max_by_key(|&token| needed(token));
            let token = token.expect("some token is allowed");
            state = grammar.step(state, token).expect("the mask allows it");
            budget -= 1;
            if grammar.is_finished(state) {
                break;
            }
            text.extend_from_slice(grammar.vocabulary().bytes(token));
        }
        let name: String = serde_json::from_slice(&text).expect("a string of JSON");
        assert!(is_name(&name), "{name}");
    }
}

const BEGINNINGS: [&str; 6] = [
    "\"xn-",
    "\"xn--",
    "\"www.xn--hello-",
    "\"xn--m--nchen--3ya-",
    "\"xn--0123456789012345678901234567890123456789abcd",
    "\"xn--0123456789012345678901234567890123456789abcdefghij",
];

#[test]
fn budgets_are_kept_inside_of_bodies() {
    let grammar = grammar_over(vocabulary(&pairs()), SCHEMA);
    BEGINNINGS
        .iter()
        .for_each(|begin| check_budgets(&grammar, begin, 40));
}

#[test]
fn budgets_are_kept_over_a_published_vocabulary() {
    let Some((vocabulary, _)) = published("budgets_are_kept_over_a_published_vocabulary", "llama3_1") else {
        return;
    };
    let grammar = grammar_over(vocabulary, SCHEMA);
    BEGINNINGS
        .iter()
        .for_each(|begin| check_budgets(&grammar, begin, 5));
}

#[test]
fn people_are_told_how_a_body_goes_on() {
    let grammar = grammar_over(vocabulary(&[]), SCHEMA);
    let told = grammar.explain(after(&grammar, "\"xn--hello-"), 10);
    assert!(!told.may_end);
    for way in &told.ways {
        let Expected::Word { shortest, begun } = &way.expected else {
            panic!("a word, not {:?}", way.expected);
        };
        assert!(*begun && is_name(&format!("xn--hello-{}", String::from_utf8_lossy(shortest))));
        assert_eq!(way.bytes, [(b'-', b'-'), (b'0', b'9'), (b'a', b'z')]);
    }
}
