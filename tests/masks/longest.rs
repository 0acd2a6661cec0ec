//! Words that end where a lexer that takes the longest match ends them, against a reader of all splits.

use std::sync::Arc;

use lexiform::limits::Limits;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, MaskRequest, State};
use lexiform_automata::grammar::{Cfg, CfgBuilder, ExprId, Expression, Longest, Part, Regular};
use lexiform_automata::mask::Tables;

/// A kind of word: its expression, and the words with which a lexer would go on.
type Word = (&'static str, &'static str);

const NAME: Word = ("[ab]+", "[ab]+");
const NUMBER: Word = ("1+", "1+(?:<1+)?");
const LESS: Word = ("<", "<|<=");
/// `ab` where a name may begin in its place.
const KEYWORD: Word = ("ab", "[ab]+");
/// No longer word begins with it.
const EQUALS: Word = ("=", "=");
/// A word that a gap makes longer, and that therefore ends anywhere.
const TEXT: Word = ("b[ab ]*", "b[ab ]*");

/// A grammar over words, of which two may touch only where no longer word begins with the first.
///
/// ```text
///   item: NAME | NUMBER NUMBER | LESS item | LESS EQUALS | KEYWORD item item
///   start: NAME item TEXT?
/// ```
fn written() -> Cfg {
    let mut builder = CfgBuilder::new();
    let gap = builder.bytes(" ");
    let ignored = builder.repeat(gap, 0, None);
    let mut word = |(words, longer): Word| {
        let expression = |pattern: &str| -> Expression {
            regex_syntax::parse(pattern)
                .expect("the test's pattern is well formed")
                .into()
        };
        let regular = builder.add_regular(Regular {
            longest: Some(Longest {
                longer: expression(longer),
                gaps: vec![b' '],
            }),
            ..Regular::of(vec![Part::Match(expression(words))])
        });
        let regular = builder.regular(regular);
        builder.seq([regular, ignored])
    };
    let [name, number, less, equals] = [NAME, NUMBER, LESS, EQUALS].map(&mut word);
    let [keyword, text] = [KEYWORD, TEXT].map(&mut word);
    let (start, item) = (builder.declare("start"), builder.declare("item"));
    let inner: ExprId = builder.rule(item);
    let compared = builder.seq([less, inner]);
    let paired = builder.seq([keyword, inner, inner]);
    let numbers = builder.seq([number, number]);
    let limit = builder.seq([less, equals]);
    let body = builder.choice([name, numbers, compared, limit, paired]);
    builder.define(item, body);
    let more = builder.repeat(text, 0, Some(1));
    let body = builder.seq([name, inner, more]);
    builder.define(start, body);
    builder.finish(start)
}

fn grammar(longer: &[&str]) -> Grammar {
    let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
    tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    let longer = longer
        .iter()
        .map(|token| (TokenKind::Text, token.as_bytes().to_vec()));
    tokens.extend(longer);
    let vocabulary = Vocabulary::new(&tokens, &[0]).expect("the vocabulary is well formed");
    let tables = Arc::new(Tables::new(Arc::new(vocabulary), 1 << 20));
    Grammar::new(&written(), &tables, &Limits::default()).expect("the grammar compiles")
}

/// Returns `true` if the words of an expression include a text. The expressions are few, so they are read by
/// hand.
fn is_word(pattern: &str, text: &str) -> bool {
    let all = |text: &str, of: &str| text.chars().all(|c| of.contains(c));
    match pattern {
        "[ab]+" => !text.is_empty() && all(text, "ab"),
        "1+" => !text.is_empty() && all(text, "1"),
        "1+(?:<1+)?" => text.split('<').count() <= 2 && text.split('<').all(|part| is_word("1+", part)),
        "<" => text == "<",
        "<|<=" => text == "<" || text == "<=",
        "=" => text == "=",
        "ab" => text == "ab",
        "b[ab ]*" => text.starts_with('b') && all(text, "ab "),
        _ => unreachable!("no other expression is used"),
    }
}

/// Returns where a word and the gaps after it may end, if it begins here.
fn ends(text: &str, from: usize, (words, longer): Word) -> Vec<usize> {
    let mut found = Vec::new();
    for end in from + 1..=text.len() {
        let (word, rest) = (&text[from..end], &text[end..]);
        let goes_on = rest.chars().next().is_some_and(|next| {
            let with = |c: char| is_word(longer, &format!("{word}{c}"));
            with(next) && !with(' ')
        });
        if is_word(words, word) && !goes_on {
            let gaps = rest.len() - rest.trim_start_matches(' ').len();
            found.extend(end..=end + gaps);
        }
    }
    found
}

/// Returns where an item that begins here may end.
fn items(text: &str, from: usize) -> Vec<usize> {
    let mut found = ends(text, from, NAME);
    for at in ends(text, from, NUMBER) {
        found.extend(ends(text, at, NUMBER));
    }
    for at in ends(text, from, LESS) {
        found.extend(items(text, at));
        found.extend(ends(text, at, EQUALS));
    }
    for at in ends(text, from, KEYWORD) {
        for at in items(text, at) {
            found.extend(items(text, at));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Reads all splits of a text into words.
fn belongs(text: &str) -> bool {
    let items = ends(text, 0, NAME).into_iter().flat_map(|at| items(text, at));
    let mut ways = items.flat_map(|at| [vec![at], ends(text, at, TEXT)].concat());
    ways.any(|end| end == text.len())
}

const LETTERS: [char; 6] = ['a', 'b', '1', '<', '=', ' '];

/// Returns all texts of up to so many letters.
fn texts(most: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut at = 0;
    while let Some(text) = all.get(at).cloned() {
        at += 1;
        if text.len() < most {
            all.extend(LETTERS.map(|letter| format!("{text}{letter}")));
        }
    }
    all
}

#[test]
fn texts_belong_as_all_splits_say() {
    let grammar = grammar(&[]);
    let mut accepted = 0;
    for text in texts(6) {
        let end = grammar.step_bytes(grammar.start(), text.as_bytes());
        let is_accepted = end.is_some_and(|state| grammar.is_accepting(state));
        assert_eq!(is_accepted, belongs(&text), "{text:?}");
        accepted += usize::from(is_accepted);
    }
    assert!(accepted > 200, "{accepted} texts belong");
}

fn check(grammar: &Grammar, state: State, prefix: &str) {
    let mask = grammar.mask(state);
    let tokens = 0..grammar.vocabulary().len() as u32;
    for token in tokens {
        let name = grammar.vocabulary().bytes(token).escape_ascii();
        assert_eq!(
            mask.contains(token),
            grammar.allows(state, token),
            "token {name} after {prefix:?}"
        );
    }
    assert!(mask.iter().next().is_some(), "{prefix:?} is a dead end");
}

#[test]
fn masks_agree_with_steps_and_lead_nowhere_dead() {
    let longer = texts(4);
    let longer: Vec<&str> = longer
        .iter()
        .map(String::as_str)
        .filter(|text| text.len() > 1)
        .collect();
    let grammar = grammar(&longer);
    for prefix in texts(4) {
        if let Some(state) = grammar.step_bytes(grammar.start(), prefix.as_bytes()) {
            check(&grammar, state, &prefix);
        }
    }
}

/// Walks from a state with so many tokens by the last allowed token, and checks that the text ends.
fn walk(grammar: &Grammar, mut state: State, mut budget: usize, prefix: &str) {
    loop {
        let request = MaskRequest::from(state).within(budget);
        let mask = grammar.try_mask(request).expect("within the limits");
        let token = mask.iter().last();
        let token = token.unwrap_or_else(|| panic!("nothing fits into {budget} after {prefix:?}"));
        state = grammar.step(state, token).expect("the mask allows it");
        budget -= 1;
        if grammar.is_finished(state) {
            return;
        }
    }
}

#[test]
fn budgets_keep_their_promise() {
    let grammar = grammar(&["ab", "a ", "<1", " ab", "1 1", "b a"]);
    for prefix in texts(4) {
        let Some(state) = grammar.step_bytes(grammar.start(), prefix.as_bytes()) else {
            continue;
        };
        let least = grammar.min_completion(state).expect("every byte is a token");
        for budget in least..least + 3 {
            walk(&grammar, state, budget.max(1), &prefix);
        }
    }
}
