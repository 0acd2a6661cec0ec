//! The brute-force oracle: every bit of every mask equals "some completion exists", judged from the
//! definition of the language by code that shares nothing with the library.
//!
//! ```text
//!   random pattern ─┬─► lexiform: machine, masks ──┐
//!                   │                              ├── equal at every text, by every tokenisation
//!                   └─► judge: derivatives, tables ┘
//! ```
//!
//! The judges are in `oracle/regular.rs` and `oracle/context_free.rs`, and are themselves checked there.

mod budget;
mod context_free;
mod distance;
mod json;
mod judge;
mod lower;
mod object_list;
mod open_keys;
mod regular;
mod spelled;
mod vocabulary;
mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;

use lexiform::error::{CompileError, ProblemKind};
use lexiform::limits::Limits;
use lexiform::schema::{KeyOrder, Whitespace};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, Options, Source, State};
use lexiform_automata::grammar::Cfg;
use lexiform_automata::mask::Tables;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use judge::{Judge, Memo};
use walk::{Reach, check_everywhere, check_portions};

const LETTERS: &[u8] = b"abc";
/// `a`, `b`, and the two bytes of `é`, between which tokens may split.
const BYTES: &[u8] = &[b'a', b'b', 0xC3, 0xA9];
const REACH: Reach = Reach {
    bytes: 4,
    states: 200,
};
/// The reach for tests in which depth does not matter.
const FEW: Reach = Reach { bytes: 3, states: 40 };

/// The reach for schemas, whose texts are longer and of which fewer differ.
const DEEP: Reach = Reach {
    bytes: 24,
    states: 150,
};
const JSON_BYTES: &[u8] = b"\"ab{}[]:,ntrufels\xC3\xA9";
const JSON_PIECES: &[&str] = &[
    "{", "}", "\"a\"", "\"ab", "\":", ",\"", "null", "true", "[", "]", "\"b\":", "é",
];

const KEY_BYTES: &[u8] = b"\"ab{}[]:,\xC3\xA9";
const KEY_PIECES: &[&str] = &[
    "\"a\"",
    "\"b\"",
    "\"a",
    "a\"",
    "\"ab\"",
    ",\"",
    ",\"b",
    "{\"",
    "\":",
    ":[]",
    ":\"\"",
    "\":\"\",\"",
    "{",
    "}",
    "},",
    "é",
];

/// Returns `true` if there are texts but none that tokens write, which [`spelled`] judges.
fn is_of_tokens(error: &CompileError) -> bool {
    error
        .to_string()
        .ends_with("can be written with the tokens of the vocabulary")
}

/// Returns a configuration with this many cases, or as many as `PROPTEST_CASES` requests.
fn cases(usual: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        },
        None => ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(usual)
        },
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn regular_expressions_as_one_terminal(
        pattern in regular::patterns(),
        vocabulary in vocabulary::vocabularies(BYTES),
    ) {
        let grammar = lower::compile(&lower::terminal(&pattern), &vocabulary).expect("no pattern is empty");
        check_everywhere(&grammar, &Memo::new(pattern.language()), &REACH)?;
    }

    #[test]
    fn regular_expressions_as_rules(
        pattern in regular::patterns(),
        vocabulary in vocabulary::vocabularies(BYTES),
    ) {
        let grammar = lower::compile(&lower::expressions(&pattern), &vocabulary).expect("no pattern is empty");
        check_everywhere(&grammar, &Memo::new(pattern.language()), &REACH)?;
    }

    #[test]
    fn context_free_grammars(rules in context_free::grammars(), vocabulary in vocabulary::vocabularies(LETTERS)) {
        let productions = rules.productions();
        match lower::compile(&lower::rules(&rules), &vocabulary) {
            Ok(grammar) => check_everywhere(&grammar, &Memo::new(productions), &REACH)?,
            Err(error) => {
                prop_assert!(!productions.is_productive(), "{}", error);
                prop_assert_eq!(error.problems[0].kind, ProblemKind::Unsatisfiable);
            }
        }
    }

    #[test]
    fn intersections_complements_and_counts(
        parts in regular::parts(),
        vocabulary in vocabulary::vocabularies(BYTES),
    ) {
        let language = regular::intersection(&parts);
        let regular = lower::regular(&parts);
        let cfg = lower::grammar_of(|builder| {
            let regular = builder.add_regular(regular);
            builder.regular(regular)
        });
        match lower::compile(&cfg, &vocabulary) {
            Ok(grammar) => check_everywhere(&grammar, &Memo::new(language), &REACH)?,
            Err(error) => prop_assert!(!language.verdict(b"").viable || is_of_tokens(&error), "{}", error),
        }
    }

    /// The text after a counted language may begin with its units, so a token may leave the language early
    /// where continuing would break a bound.
    #[test]
    fn counts_before_patterns(
        counted in regular::counts(),
        pattern in regular::patterns(),
        vocabulary in vocabulary::vocabularies(BYTES),
    ) {
        let language = regular::Re::seq(counted.language(), pattern.language());
        let cfg = lower::count_before(counted, &pattern);
        match lower::compile(&cfg, &vocabulary) {
            Ok(grammar) => check_everywhere(&grammar, &Memo::new(language), &REACH)?,
            Err(error) => prop_assert!(!language.verdict(b"").viable || is_of_tokens(&error), "{}", error),
        }
    }

    #[test]
    fn lists(list in object_list::lists(), vocabulary in vocabulary::vocabularies(b"ab,:")) {
        let language = list.language();
        match lower::compile(&list.grammar(), &vocabulary) {
            Ok(grammar) => check_everywhere(&grammar, &Memo::new(language), &REACH)?,
            // Keys that can run out, some of which belong to several items, cannot be counted against
            // demands.
            Err(error) if error.problems[0].kind == ProblemKind::Unsupported => {}
            Err(error) => prop_assert!(!language.verdict(b"").viable || is_of_tokens(&error), "{}", error),
        }
    }

    /// Checks the languages through the front ends: patterns and grammars as text.
    #[test]
    fn sources_as_text(
        pattern in regular::patterns(),
        rules in context_free::grammars_with_classes(),
        letters in vocabulary::vocabularies(LETTERS),
        bytes in vocabulary::vocabularies(BYTES),
    ) {
        let cfg = lexiform_syntax::regex::lower(&pattern.source(), &Limits::default()).expect("a pattern");
        let grammar = lower::compile(&cfg, &bytes).expect("no pattern is empty");
        check_everywhere(&grammar, &Memo::new(pattern.language()), &FEW)?;
        let source = rules.source();
        let cfg = lexiform_syntax::notation::ebnf::lower(&source, &Limits::default());
        let cfg = cfg.map_err(|error| TestCaseError::fail(format!("{error} in\n{source}")))?;
        if let Ok(grammar) = lower::compile(&cfg, &letters) {
            check_everywhere(&grammar, &Memo::new(rules.productions()), &FEW)?;
        }
    }

    /// Whether regular parts are terminals or rules makes no difference to masks, forced texts, ends, or
    /// whether there is a grammar at all.
    #[test]
    fn regular_parts_of_grammars_as_terminals_and_as_rules(
        rules in context_free::grammars_with_classes(),
        letters in vocabulary::vocabularies(LETTERS),
    ) {
        let source = rules.source();
        let limits = Limits::default();
        let laid = lexiform_syntax::notation::ebnf::lower(&source, &limits).expect("a grammar");
        let written = lexiform_syntax::notation::ebnf::as_written(&source, &limits).expect("a grammar");
        match (lower::compile(&laid, &letters), lower::compile(&written, &letters)) {
            (Ok(laid), Ok(written)) => check_same(&laid, &written)?,
            (Err(laid), Err(written)) => prop_assert_eq!(laid.to_string(), written.to_string()),
            (laid, written) => prop_assert!(false, "{:?} and {:?} of\n{}", laid.err(), written.err(), source),
        }
    }

    #[test]
    fn json_schemas(
        schema in json::schemas(),
        vocabulary in vocabulary::vocabularies_of(JSON_BYTES, JSON_PIECES),
        order in prop_oneof![Just(KeyOrder::Schema), Just(KeyOrder::Any)],
    ) {
        let mut options = Options::default();
        options.schema.key_order = order;
        options.schema.whitespace = Whitespace::Compact;
        let source = schema.source();
        let compiled = lexiform::compile(Source::JsonSchema(&source), &vocabulary, &options);
        let (grammar, _) = compiled.map_err(|error| TestCaseError::fail(format!("{error} in {source}")))?;
        check_everywhere(&grammar, &Memo::new(schema.language(order)), &DEEP)?;
    }

    /// Checks keys that may be anything but must differ, with the text that tokens write after and before
    /// them.
    #[test]
    fn objects_with_open_keys(
        objects in prop_oneof![open_keys::objects(), open_keys::objects_of_objects()],
        vocabulary in vocabulary::vocabularies_of(KEY_BYTES, KEY_PIECES),
    ) {
        let mut options = Options::default();
        options.schema.key_order = KeyOrder::Any;
        options.schema.whitespace = Whitespace::Compact;
        let source = objects.source();
        let compiled = lexiform::compile(Source::JsonSchema(&source), &vocabulary, &options);
        let (grammar, _) = compiled.map_err(|error| TestCaseError::fail(format!("{error} in {source}")))?;
        check_everywhere(&grammar, &Memo::new(objects), &DEEP)?;
    }

    /// A text leads to the same masks whether it is read at once, token by token or byte by byte.
    #[test]
    fn texts_are_read_alike_in_any_portions(
        objects in open_keys::objects_of_objects(),
        rules in context_free::grammars(),
        vocabulary in vocabulary::vocabularies_of(KEY_BYTES, KEY_PIECES),
        letters in vocabulary::vocabularies(LETTERS),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
    ) {
        let mut options = Options::default();
        options.schema.key_order = KeyOrder::Any;
        let source = objects.source();
        let compiled = lexiform::compile(Source::JsonSchema(&source), &vocabulary, &options);
        let (grammar, _) = compiled.map_err(|error| TestCaseError::fail(format!("{error} in {source}")))?;
        check_portions(&grammar, &choices)?;
        // Grammars without any text are refused; `context_free_grammars` covers them.
        if let Ok(grammar) = lower::compile(&lower::rules(&rules), &letters) {
            check_portions(&grammar, &choices)?;
        }
    }

    /// Tests the comparison itself: a grammar of another language is not accepted for this one.
    #[test]
    fn another_language_is_noticed(one in regular::patterns(), other in regular::patterns()) {
        let (expected, found) = (Memo::new(one.language()), Memo::new(other.language()));
        let letters = BYTES.iter().map(|&byte| vec![byte]);
        let texts = (0..3).fold(vec![Vec::new()], |texts: Vec<Vec<u8>>, _| {
            let longer = |text: &Vec<u8>| letters.clone().map(|byte| [&text[..], &byte].concat()).collect::<Vec<_>>();
            texts.iter().flat_map(longer).chain([Vec::new()]).collect()
        });
        let differs = texts.iter().any(|text| expected.verdict(text) != found.verdict(text));
        prop_assume!(differs);
        let end = std::iter::once((TokenKind::Special, b"<eos>".to_vec()));
        let tokens: Vec<_> = end.chain(letters.map(|byte| (TokenKind::Text, byte))).collect();
        let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
        let grammar = lower::compile(&lower::terminal(&other), &vocabulary).expect("no pattern is empty");
        prop_assert!(check_everywhere(&grammar, &expected, &REACH).is_err(), "{:?} passed for {:?}", other, one);
    }

    /// Grammars that share tables, and tables without room, give the same answers as grammars on their own.
    #[test]
    fn sharing_and_forgetting_change_nothing(
        patterns in prop::collection::vec(regular::patterns(), 2..4),
        vocabulary in vocabulary::vocabularies(BYTES),
        room in prop::sample::select(vec![0usize, 300, 1 << 20]),
    ) {
        let tables = Arc::new(Tables::new(vocabulary, room));
        let limits = Limits { grammar_bytes: room, ..Limits::default() };
        let grammars: Vec<Grammar> = patterns
            .iter()
            .map(|pattern| Grammar::new(&lower::terminal(pattern), &tables, &limits).expect("no pattern is empty"))
            .collect();
        for (grammar, pattern) in grammars.iter().zip(&patterns).chain(grammars.iter().zip(&patterns)) {
            check_everywhere(grammar, &Memo::new(pattern.language()), &FEW)?;
        }
    }

    /// After any mix of steps, forks and rollbacks, a mask equals that of a fresh grammar at the same text.
    #[test]
    fn history_changes_nothing(
        rules in context_free::grammars(),
        vocabulary in vocabulary::vocabularies(LETTERS),
        moves in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 1..40),
    ) {
        let cfg = lower::rules(&rules);
        // Grammars without any text are refused; `context_free_grammars` covers them.
        let Ok(grammar) = lower::compile(&cfg, &vocabulary) else { return Ok(()) };
        let mut visited = vec![(grammar.start(), Vec::new())];
        for (from, token) in moves {
            // Continuing from an older state is a rollback; continuing twice from the same state is a fork.
            let (state, path) = from.get(&visited).clone();
            let allowed: Vec<u32> = grammar.mask(state).iter().collect();
            if allowed.is_empty() {
                continue;
            }
            let token = *token.get(&allowed);
            let next = grammar.step(state, token).expect("the mask allows it");
            visited.push((next, [&path[..], &[token]].concat()));
            check_fresh(&cfg, &grammar, visited.last().expect("just pushed"))?;
        }
        for visit in &visited {
            check_fresh(&cfg, &grammar, visit)?;
        }
    }

    /// Threads that discover the states of one grammar together get the same masks as a single thread.
    #[test]
    fn threads_agree(rules in context_free::grammars(), vocabulary in vocabulary::vocabularies(LETTERS)) {
        let cfg = lower::rules(&rules);
        let Ok(grammar) = lower::compile(&cfg, &vocabulary) else { return Ok(()) };
        let alone = explored(&grammar, false);
        let shared = lower::compile(&cfg, &vocabulary).expect("it compiled before");
        let together = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|at| {
                let shared = &shared;
                scope.spawn(move || explored(shared, at % 2 == 1))
            }).collect();
            threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect::<Vec<_>>()
        });
        for seen in together {
            prop_assert_eq!(&seen, &alone);
        }
    }
}

/// Compares two grammars at all texts of a few tokens.
fn check_same(one: &Grammar, other: &Grammar) -> Result<(), TestCaseError> {
    let mut open = vec![(one.start(), other.start(), Vec::new())];
    let mut seen = 0;
    while let Some((state, same, path)) = open.pop() {
        prop_assert_eq!(one.mask(state), other.mask(same), "after {:?}", path);
        prop_assert_eq!(one.forced(state), other.forced(same), "after {:?}", path);
        seen += 1;
        if seen > FEW.states || path.len() == 3 {
            continue;
        }
        for token in one.mask(state).iter() {
            let next = (one.step(state, token), other.step(same, token));
            let (Some(state), Some(same)) = next else {
                return Err(TestCaseError::fail(format!("{token} is allowed after {path:?}")));
            };
            open.push((state, same, [&path[..], &[token]].concat()));
        }
    }
    Ok(())
}

/// Compares a state with that of a fresh grammar.
fn check_fresh(cfg: &Cfg, grammar: &Grammar, (state, path): &(State, Vec<u32>)) -> Result<(), TestCaseError> {
    let fresh = lower::compile(cfg, grammar.vocabulary()).expect("it compiled before");
    let same = path
        .iter()
        .try_fold(fresh.start(), |state, &token| fresh.step(state, token));
    let same = same.ok_or_else(|| TestCaseError::fail(format!("a fresh grammar refuses {path:?}")))?;
    let (expected, mask) = (fresh.mask(same), grammar.mask(*state));
    prop_assert_eq!(expected.words(), mask.words(), "after {:?}", path);
    prop_assert_eq!(
        fresh.is_accepting(same),
        grammar.is_accepting(*state),
        "after {:?}",
        path
    );
    prop_assert_eq!(fresh.forced(same), grammar.forced(*state), "after {:?}", path);
    Ok(())
}

/// Returns the masks after all token sequences of up to three tokens, visited in either order.
fn explored(grammar: &Grammar, backwards: bool) -> BTreeMap<Vec<u32>, Vec<u32>> {
    let mut masks = BTreeMap::new();
    let mut open = vec![(grammar.start(), Vec::new())];
    while let Some((state, path)) = open.pop() {
        let mask = grammar.mask(state);
        let mut next: Vec<u32> = if path.len() < 3 {
            mask.iter().collect()
        } else {
            Vec::new()
        };
        if backwards {
            next.reverse();
        }
        for token in next {
            let state = grammar.step(state, token).expect("the mask allows it");
            open.push((state, [&path[..], &[token]].concat()));
        }
        masks.insert(path, mask.words().to_vec());
    }
    masks
}
