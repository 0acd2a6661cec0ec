//! What the tests of all readers ask: which texts a grammar accepts, and why it is refused.

use std::sync::Arc;

use lexiform_automata::error::CompileError;
use lexiform_automata::grammar::Cfg;
use lexiform_automata::limits::Limits;
use lexiform_automata::mask::Tables;
use lexiform_automata::matcher::Grammar;
use lexiform_automata::vocab::{TokenKind, Vocabulary};

/// A reader of a notation.
pub(crate) type Lower = fn(&str, &Limits) -> Result<Cfg, CompileError>;

/// The special token that grammars may name.
pub(crate) const THINK: u32 = 257;

/// Compiles a grammar for the tokens of all single bytes, `<eos>` and `<think>`.
pub(crate) fn machine(lower: Lower, text: &str) -> Grammar {
    let cfg = lower(text, &Limits::default()).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let mut tokens: Vec<_> = (0..=255u8).map(|byte| (TokenKind::Text, vec![byte])).collect();
    tokens.push((TokenKind::Special, b"<eos>".to_vec()));
    tokens.push((TokenKind::Special, b"<think>".to_vec()));
    let vocabulary = Vocabulary::new(&tokens, &[256]).expect("a vocabulary");
    let tables = Arc::new(Tables::new(Arc::new(vocabulary), 1 << 24));
    Grammar::new(&cfg, &tables, &Limits::default()).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Returns whether a grammar accepts a sequence of tokens.
pub(crate) fn accepts(grammar: &Grammar, tokens: impl IntoIterator<Item = u32>) -> bool {
    let mut state = grammar.start();
    for token in tokens {
        match grammar.step(state, token) {
            Some(next) => state = next,
            None => return false,
        }
    }
    grammar.is_accepting(state)
}

/// Checks the texts that each grammar accepts and rejects.
pub(crate) fn check(lower: Lower, table: &[(&str, &[&str], &[&str])]) {
    for (text, accepted, rejected) in table {
        let grammar = machine(lower, text);
        for (texts, expected) in [(accepted, true), (rejected, false)] {
            for word in *texts {
                let is = accepts(&grammar, word.bytes().map(u32::from));
                assert_eq!(is, expected, "{text}\non {word:?}");
            }
        }
    }
}

/// Returns the problems of a grammar with their places.
pub(crate) fn problems(lower: Lower, text: &str) -> Vec<String> {
    let error = lower(text, &Limits::default()).expect_err(text);
    error.problems.iter().map(ToString::to_string).collect()
}

/// Checks the beginnings of the messages for grammars that are refused.
pub(crate) fn check_refused(lower: Lower, table: &[(&str, &[&str])]) {
    let mut wrong = Vec::new();
    for (text, expected) in table {
        let found = problems(lower, text);
        let mut both = found.iter().zip(*expected);
        if found.len() != expected.len() || !both.all(|(found, expected)| found.starts_with(expected)) {
            wrong.push(format!("{text}\n{found:#?}\n{expected:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Lowers a grammar on a thread whose stack is half of the default.
fn lower_on_small_stack(lower: Lower, text: String) -> Result<Cfg, CompileError> {
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let thread = small.spawn(move || lower(&text, &Limits::default()));
    thread.expect("a thread").join().expect("it ends")
}

/// Checks that a reader survives texts that are deep or large. `rule` writes a rule with a name and a body,
/// `open` and `close` are brackets, `part` is a text, and `operators` are those that may be repeated.
pub(crate) fn check_size(
    lower: Lower,
    rule: fn(&str, &str) -> String,
    (open, close): (&str, &str),
    part: &str,
    operators: &[&str],
) {
    let deep = |depth: usize| format!("{}{part}{}", open.repeat(depth), close.repeat(depth));
    lower_on_small_stack(lower, rule("root", &deep(250))).expect("250 levels");
    for text in [deep(251), deep(100_000), open.repeat(100_000)] {
        let found = problems(lower, &rule("root", &text));
        assert!(found[0].contains("`nesting`"), "{found:?}");
    }
    for operator in operators {
        let text = rule("root", &format!("{part}{}", operator.repeat(50_000)));
        if let Err(error) = lower_on_small_stack(lower, text) {
            assert!(
                error.problems[0].message.contains("`nesting`"),
                "{operator}: {error}"
            );
        }
    }
    let many: Vec<String> = (0..10_000).map(|n| rule(&format!("r{n}"), part)).collect();
    let many = rule("root", part) + &many.concat();
    assert_eq!(
        lower(&many, &Limits::default()).expect("many rules").rules.len(),
        10_001
    );
    assert!(problems(lower, &" ".repeat(Limits::default().source_bytes + 1))[0].contains("`source_bytes`"));
    assert!(problems(lower, " \n\t")[0].contains("empty"));
}

/// The signs that mean something in some notation.
const SIGNS: [&str; 30] = [
    "\n", " ", "é", "\\", "\"", "'", "(", ")", "[", "]", "{", "}", "<", ">", "|", "/", "-", "*", "+", "?",
    ",", ";", ".", "#", "!", "&", "^", "=", "1", "x41",
];

/// Checks that a reader survives any text. It reads ten thousand of them, which are made of these fragments
/// and of [`SIGNS`] at random between the beginning and the end of a rule.
pub(crate) fn check_random(lower: Lower, (begin, end): (&str, &str), fragments: &[&str]) {
    let limits = Limits {
        repeat: 20,
        ..Limits::default()
    };
    let (mut seed, mut accepted) = (1_u64, 0);
    let mut below = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % bound
    };
    let fragments = [fragments, &SIGNS].concat();
    for _ in 0..10_000 {
        let mut text = begin.to_owned();
        for _ in 0..below(10) {
            text.push_str(fragments[below(fragments.len())]);
        }
        accepted += usize::from(lower(&(text + end), &limits).is_ok());
    }
    assert!(accepted > 500, "only {accepted} texts are grammars");
}
