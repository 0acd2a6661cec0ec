//! Budgets against brute force, which counts the distance to the end (`distance.rs`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lexiform::MaskRequest;
use lexiform::schema::{KeyOrder, Whitespace};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, Options, Source, State};
use lexiform_automata::grammar::{Cfg, ItemOrder, Validator};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::distance::{Distance, ROUNDS, distance};
use super::walk::show;
use super::{BYTES, LETTERS, cases, context_free, json, lower, object_list, open_keys, regular, vocabulary};

/// Budgets are tried up to this one to see which takes nothing away.
const AMPLE: usize = 128;

/// Checks the budgets of a grammar over each of these vocabularies, if it has texts there.
fn check_budgets_of(cfg: &Cfg, vocabularies: [Arc<Vocabulary>; 2]) -> Result<(), TestCaseError> {
    let grammars = vocabularies
        .iter()
        .filter_map(|vocabulary| lower::compile(cfg, vocabulary).ok());
    grammars
        .into_iter()
        .try_for_each(|grammar| check_budgets(&grammar))
}

/// Compares distances and masks within budgets at the states that token sequences of up to three tokens
/// reach.
fn check_budgets(grammar: &Grammar) -> Result<(), TestCaseError> {
    let mut known: HashMap<State, Distance> = HashMap::new();
    let mut open = vec![(grammar.start(), Vec::new())];
    let mut seen = HashSet::new();
    while let Some((state, text)) = open.pop() {
        if text.len() > 6 || seen.len() > 25 || !seen.insert(state) {
            continue;
        }
        check_distance(grammar, state, &text)?;
        for budget in 0..=ROUNDS {
            check_mask(grammar, state, budget, &text, &mut known)?;
        }
        check_least_ample(grammar, state, &text)?;
        let vocabulary = grammar.vocabulary();
        for token in grammar
            .mask(state)
            .iter()
            .filter(|&token| vocabulary.kind(token) == TokenKind::Text)
        {
            let next = grammar.step(state, token).expect("the mask allows it");
            open.push((next, [&text, vocabulary.bytes(token)].concat()));
        }
    }
    Ok(())
}

/// Where a budget first takes no token away, each of them must lead to where the text can be completed in
/// time: budgets that are ample are told without looking at tokens.
fn check_least_ample(grammar: &Grammar, state: State, text: &[u8]) -> Result<(), TestCaseError> {
    let mask = grammar.mask(state);
    let budgets: Vec<usize> = (0..AMPLE).collect();
    let least = budgets.partition_point(|&budget| {
        grammar
            .try_mask(MaskRequest::from(state).within(budget))
            .expect("within the limits")
            != mask
    });
    for token in mask.iter().filter(|_| least < AMPLE) {
        let next = grammar.step(state, token).expect("the mask allows it");
        let (left, text) = (least - 1, show(text));
        prop_assert!(
            grammar.completes_within(next, left),
            "{token} takes more than {left} after {text}"
        );
    }
    Ok(())
}

fn check_distance(grammar: &Grammar, state: State, text: &[u8]) -> Result<(), TestCaseError> {
    let found = grammar.min_completion(state);
    match distance(grammar, state) {
        Distance::Exactly(length) => prop_assert_eq!(found, Some(length), "after {:?}", show(text)),
        Distance::Never => prop_assert_eq!(found, None, "after {:?}", show(text)),
        Distance::Beyond(length) => {
            let further = found.is_none_or(|found| found > length);
            prop_assert!(
                further,
                "{:?} is not beyond {} after {:?}",
                found,
                length,
                show(text)
            );
        }
    }
    Ok(())
}

fn check_mask(
    grammar: &Grammar,
    state: State,
    budget: usize,
    text: &[u8],
    known: &mut HashMap<State, Distance>,
) -> Result<(), TestCaseError> {
    let mask = grammar
        .try_mask(MaskRequest::from(state).within(budget))
        .expect("within the limits");
    for token in 0..grammar.vocabulary().len() as u32 {
        let expected = match grammar.step(state, token) {
            None => Some(false),
            Some(_) if budget == 0 => Some(false),
            Some(next) if grammar.is_finished(next) => Some(true),
            Some(next) => match *known.entry(next).or_insert_with(|| distance(grammar, next)) {
                Distance::Exactly(length) => Some(length < budget),
                Distance::Never => Some(false),
                Distance::Beyond(length) => (length + 1 >= budget).then_some(false),
            },
        };
        if let Some(expected) = expected {
            let bytes = format!(
                "{token} {} {:?} {:?}",
                show(grammar.vocabulary().bytes(token)),
                grammar.vocabulary().kind(token),
                grammar.step(state, token).map(|next| distance(grammar, next))
            );
            prop_assert_eq!(
                mask.contains(token),
                expected,
                "{} after {:?} within {}",
                bytes,
                show(text),
                budget
            );
        }
    }
    Ok(())
}

/// A vocabulary that lacks tokens for some of its bytes.
fn gappy(letters: &'static [u8]) -> impl Strategy<Value = Arc<Vocabulary>> {
    let letter = prop::sample::select(letters.to_vec());
    let tokens = prop::collection::vec(prop::collection::vec(letter, 1..=3), 1..6);
    tokens.prop_map(|tokens| {
        let text = tokens.into_iter().map(|bytes| (TokenKind::Text, bytes));
        let specials =
            ["<end>", vocabulary::NAMED].map(|name| (TokenKind::Special, name.as_bytes().to_vec()));
        let all: Vec<_> = specials.into_iter().chain(text).collect();
        Arc::new(Vocabulary::new(&all, &[0]).expect("a vocabulary"))
    })
}

/// Words that a validator tells, of which it names one completion each: there may be shorter ones.
#[test]
fn budgets_of_validated_words() {
    let cfg = lower::grammar_of(|builder| {
        let parts = [
            builder.bytes("<"),
            builder.validated(Validator::LabelFromLeft),
            builder.bytes(">"),
        ];
        builder.seq(parts)
    });
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    let vocabularies: [Vec<Vec<u8>>; 2] = [
        texts(&["<", ">", "9", "c", "a", "-", "9ca", "ca>", "-9"]),
        texts(&["<", ">", "z", "ca", "c"]),
    ];
    for texts in vocabularies {
        let end = (TokenKind::Special, b"<end>".to_vec());
        let tokens: Vec<_> = std::iter::once(end)
            .chain(texts.into_iter().map(|text| (TokenKind::Text, text)))
            .collect();
        let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
        let grammar = lower::compile(&cfg, &vocabulary).expect("there are words");
        check_budgets(&grammar).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Each of nine open lists can end in three ways, and a way to the end takes one of them for each: more ways
/// than are searched where those are not given up that are too long already.
#[test]
fn budgets_of_many_ways() {
    let source = format!(
        r#"
        r0 ::= r1 r0 ("ab" | {} | r0) | "c"
        r1 ::= "cc" | "ab" | "ab" r1 | "b"
        "#,
        vocabulary::NAMED
    );
    let texts = ["a", "b", "c", "abc", "aba", "ccb", "bbb", "ab"];
    let texts = texts.map(|text| (TokenKind::Text, text.as_bytes().to_vec()));
    let specials = ["<end>", vocabulary::NAMED].map(|name| (TokenKind::Special, name.as_bytes().to_vec()));
    let tokens: Vec<_> = specials.into_iter().chain(texts).collect();
    let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
    let compiled = lexiform::compile(Source::Ebnf(&source), &vocabulary, &Options::default());
    let (grammar, _) = compiled.expect("there are texts");
    for open in 1..=9 {
        let text = [b"a", "b".repeat(open).as_bytes()].concat();
        let state = grammar.step_bytes(grammar.start(), &text);
        let state = state.expect("the text goes on");
        check_distance(&grammar, state, &text).unwrap_or_else(|error| panic!("{error}"));
        for budget in 0..=ROUNDS {
            let checked = check_mask(&grammar, state, budget, &text, &mut HashMap::new());
            checked.unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

/// A vocabulary of these tokens and an end, padded.
fn large(texts: &[&str]) -> Arc<Vocabulary> {
    large_without(texts, &[])
}

/// The same without tokens for these bytes alone.
fn large_without(texts: &[&str], missing: &[u8]) -> Arc<Vocabulary> {
    let texts = texts
        .iter()
        .map(|text| (TokenKind::Text, text.as_bytes().to_vec()));
    let end = (TokenKind::Special, b"<end>".to_vec());
    let tokens: Vec<_> = std::iter::once(end).chain(texts).collect();
    vocabulary::padded_without(&Vocabulary::new(&tokens, &[0]).expect("a vocabulary"), missing)
}

/// Checks that from wherever the first tokens of a vocabulary lead within a budget the text can be completed
/// within it, for budgets of so many tokens more than the least one.
fn check_all_walks(grammar: &Grammar, tokens: u32, more: usize) {
    let least = grammar.min_completion(grammar.start()).expect("there are texts");
    let mut open: Vec<_> = (least..=least + more)
        .map(|budget| (grammar.start(), budget, Vec::new()))
        .collect();
    let mut seen = HashSet::new();
    while let Some((state, budget, text)) = open.pop() {
        if grammar.is_finished(state) || !seen.insert((state, budget)) {
            continue;
        }
        let mask = grammar
            .try_mask(MaskRequest::from(state).within(budget))
            .expect("within the limits");
        assert!(
            !mask.is_empty(),
            "nothing is allowed after {:?} within {budget}",
            show(&text)
        );
        for token in (0..tokens).filter(|&token| mask.contains(token)) {
            let next = grammar.step(state, token).expect("the mask allows it");
            let text = [&text, grammar.vocabulary().bytes(token)].concat();
            open.push((next, budget - 1, text));
        }
    }
}

/// Lists in which a token would be too many, if it were judged by another that comes to the same place.
#[test]
fn all_walks_through_lists_end_in_time() {
    let texts = ["a", "b", ",", ":", ",a", ":b", "aab", ",b"];
    let vocabulary = large(&texts);
    type Texts = &'static [&'static str];
    type Keyed = &'static [(&'static str, &'static str)];
    let lists: [(Texts, Keyed, Texts, u64); 6] = [
        (&[], &[("a|b:", "a")], &[], 2),
        (&[], &[("a", "a"), ("b:", "a")], &[], 2),
        (&[], &[("b:|a", "ab")], &[], 2),
        (&[], &[("ab:|a", "a")], &["ab:"], 1),
        (&["[ab]+", "[ab]+"], &[("a", "a"), ("a:|b:", "a")], &[], 2),
        (&["a,b|bb", "ab"], &[("a", "bb")], &[], 2),
    ];
    for (members, rest, taken, min) in lists {
        for order in [ItemOrder::Listed, ItemOrder::Any] {
            let grammar = lower::compile(&object_list::list(members, rest, taken, min, order), &vocabulary);
            check_all_walks(&grammar.expect("there are texts"), texts.len() as u32 + 1, 4);
        }
    }
}

/// Objects in which a token is both the beginning of a named key and of another.
#[test]
fn all_walks_through_objects_end_in_time() {
    let texts = [
        "\"",
        "a",
        "b",
        "{",
        "}",
        ":",
        ",",
        "\"a\":",
        "\"a",
        "\":\"\",\"",
        "a\":\"\"",
        ":\"\"",
    ];
    let vocabulary = large(&texts);
    let objects = [
        r#"{"properties":{"a":{"const":"aaaa"}},"additionalProperties":{"const":""},"minProperties":2}"#,
        r#"{"properties":{"a":{"const":"aaaa"},"ab":{"const":""}},"required":["ab"],"additionalProperties":{"const":""}}"#,
        r#"{"additionalProperties":{"const":""},"minProperties":3}"#,
    ];
    for object in objects {
        for order in [KeyOrder::Schema, KeyOrder::Any] {
            let mut options = Options::default();
            options.schema.key_order = order;
            options.schema.whitespace = Whitespace::Compact;
            let schema = format!("{{\"type\":\"object\",{}", &object[1..]);
            let compiled = lexiform::compile(Source::JsonSchema(&schema), &vocabulary, &options);
            let (grammar, _) = compiled.unwrap_or_else(|error| panic!("{error} in {schema}"));
            check_all_walks(&grammar, texts.len() as u32 + 1, 1);
        }
    }
}

/// Where no completion can be spelled byte by byte, a search finds one; of hundreds of tokens that a key may
/// go on with, that is judged with which the way begins.
#[test]
fn all_walks_that_are_searched_end_in_time() {
    let texts = ["{\"", "a", "\":\"\"}", "{", "}", "\""];
    let schema = r#"{"type":"object","propertyNames":{"minLength":1},"additionalProperties":{"const":""},"minProperties":1}"#;
    let mut options = Options::default();
    options.schema.whitespace = Whitespace::Compact;
    let vocabulary = large_without(&texts, b":");
    let compiled = lexiform::compile(Source::JsonSchema(schema), &vocabulary, &options);
    let (grammar, _) = compiled.expect("the schema compiles");
    assert_eq!(grammar.min_completion(grammar.start()), Some(4));
    check_all_walks(&grammar, vocabulary.len() as u32, 0);
}

/// A key may begin with more tokens than are judged one by one. The shortest text is not the one of the
/// fewest tokens, so that the way is searched, and that with which it begins is judged whatever its number.
#[test]
fn all_walks_that_are_searched_among_many_end_in_time() {
    let letters = (b'A'..=b'Z').chain(b'a'..=b'z').chain(*b"{}:\"");
    let letters = letters.map(|byte| vec![byte]);
    let end = (TokenKind::Special, b"<end>".to_vec());
    let pieces = ["{\"", "abcd\":\"\"}"].map(|text| text.as_bytes().to_vec());
    let tokens = letters.chain(pieces).map(|text| (TokenKind::Text, text));
    let tokens: Vec<_> = std::iter::once(end).chain(tokens).collect();
    let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
    let keys = "^([A-Za-xz][A-Z]{2}|y[a-z]{4})$";
    let schema = format!(
        r#"{{"type":"object","propertyNames":{{"pattern":"{keys}"}},"additionalProperties":{{"const":""}},"minProperties":1}}"#
    );
    let mut options = Options::default();
    options.schema.whitespace = Whitespace::Compact;
    let compiled = lexiform::compile(Source::JsonSchema(&schema), &vocabulary, &options);
    let (grammar, _) = compiled.expect("the schema compiles");
    assert_eq!(grammar.min_completion(grammar.start()), Some(4));
    check_all_walks(&grammar, vocabulary.len() as u32, 5);
}

/// Searches that end before they find anything: what can be completed within some tokens can be within more
/// of them, whatever was asked before.
#[test]
fn more_tokens_are_enough_where_fewer_are() {
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let pieces = [
        "\": \"", "\",", "\"}", "\", \"", "}}", "]}", "\"]", "{\"", "[\"", ": ", ", ", "the", "name", "type",
        "id", "in", "er", "on", "at", "re", "\": {\"", "\": [", "\": ", "null", "true", "false", "00", "10",
    ];
    let pieces = pieces.map(|piece| piece.as_bytes().to_vec());
    let tokens = bytes.chain(pieces).map(|text| (TokenKind::Text, text));
    let end = (TokenKind::Special, b"<end>".to_vec());
    let tokens: Vec<_> = std::iter::once(end).chain(tokens).collect();
    let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
    let schema = r#"{"type": "object", "properties": {
        "name": {"type": "string", "minLength": 8}, "type": {"enum": ["thing", "other", "reins"]},
        "id": {"type": "integer", "minimum": 1000},
        "in": {"type": "array", "items": {"type": "string", "minLength": 3}, "minItems": 3}},
        "required": ["name", "type", "id", "in"]}"#;
    let mut options = Options::default();
    options.schema.key_order = KeyOrder::Any;
    let compiled = lexiform::compile(Source::JsonSchema(schema), &vocabulary, &options);
    let (grammar, _) = compiled.expect("the schema compiles");
    let text = br#"{"type": "reins", "in": ["abcdef", "ab{", "some"],"id": 1069."#;
    let state = grammar.step_bytes(grammar.start(), text);
    let state = state.expect("the text goes on");
    let least = grammar.min_completion(state).expect("there is a way");
    for more in [0, 1, 2, 3, 6, 9] {
        // One that was asked nothing else says the same.
        let fresh = grammar.fresh();
        let adopted = fresh.adopt(&grammar, state).expect("it is the same grammar");
        let mask = fresh
            .try_mask(MaskRequest::from(adopted).within(least + more))
            .expect("within the limits");
        assert!(
            !mask.is_empty(),
            "nothing is allowed with {more} more than {least}"
        );
        assert_eq!(
            grammar
                .try_mask(MaskRequest::from(state).within(least + more))
                .expect("within the limits"),
            mask,
            "{more} more"
        );
        assert!(grammar.completes_within(state, least + more));
    }
    assert!(!grammar.completes_within(state, least - 1));
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn budgets_of_context_free_grammars(
        rules in context_free::grammars(),
        vocabulary in vocabulary::vocabularies(LETTERS),
    ) {
        if let Ok(grammar) = lower::compile(&lower::rules(&rules), &vocabulary) {
            check_budgets(&grammar)?;
        }
    }

    #[test]
    fn budgets_without_a_token_for_every_byte(rules in context_free::grammars(), vocabulary in gappy(LETTERS)) {
        if let Ok(grammar) = lower::compile(&lower::rules(&rules), &vocabulary) {
            check_budgets(&grammar)?;
        }
    }

    #[test]
    fn budgets_of_patterns_with_counts(
        parts in regular::parts(),
        vocabulary in vocabulary::vocabularies(super::BYTES),
        gappy in gappy(super::BYTES),
    ) {
        let regular = lower::regular(&parts);
        let cfg = lower::grammar_of(|builder| {
            let regular = builder.add_regular(regular);
            builder.regular(regular)
        });
        for vocabulary in [vocabulary, gappy] {
            if let Ok(grammar) = lower::compile(&cfg, &vocabulary) {
                check_budgets(&grammar)?;
            }
        }
    }

    /// A token may leave a counted language early where going on would break its bound.
    #[test]
    fn budgets_of_counts_before_patterns(
        counted in regular::counts(),
        pattern in regular::patterns(),
        vocabulary in vocabulary::vocabularies(BYTES),
    ) {
        let cfg = lower::count_before(counted, &pattern);
        if let Ok(grammar) = lower::compile(&cfg, &vocabulary) {
            check_budgets(&grammar)?;
        }
    }

    #[test]
    fn budgets_of_lists(
        list in object_list::lists(),
        vocabulary in vocabulary::vocabularies(b"ab,:"),
        gappy in gappy(b"ab,:"),
    ) {
        check_budgets_of(&list.grammar(), [vocabulary, gappy])?;
    }

    #[test]
    fn budgets_of_json_schemas(
        schema in json::schemas(),
        vocabulary in vocabulary::vocabularies_of(super::JSON_BYTES, super::JSON_PIECES),
    ) {
        let mut options = Options::default();
        options.schema.whitespace = Whitespace::Compact;
        let source = schema.source();
        let compiled = lexiform::compile(Source::JsonSchema(&source), &vocabulary, &options);
        let (grammar, _) = compiled.map_err(|error| TestCaseError::fail(format!("{error} in {source}")))?;
        check_budgets(&grammar)?;
    }

    /// Any walk inside the masks ends in time, however badly it chooses.
    #[test]
    fn every_walk_within_a_budget_ends_in_time(
        rules in context_free::grammars(),
        vocabulary in vocabulary::vocabularies(LETTERS),
        walk in walks(),
    ) {
        check_walk(&lower::rules(&rules), &vocabulary, &walk)?;
    }

    /// The same where what must still be written hangs on the keys that were.
    #[test]
    fn every_walk_through_a_list_ends_in_time(
        list in object_list::lists(),
        vocabulary in vocabulary::vocabularies(b"ab,:"),
        gappy in gappy(b"ab,:"),
        walk in walks(),
    ) {
        for vocabulary in [vocabulary, gappy] {
            check_walk(&list.grammar(), &vocabulary, &walk)?;
        }
    }

    /// The same with keys of which there is no end.
    #[test]
    fn every_walk_through_an_object_ends_in_time(
        objects in prop_oneof![open_keys::objects(), open_keys::objects_of_objects()],
        order in prop::sample::select(vec![KeyOrder::Schema, KeyOrder::Any]),
        vocabulary in vocabulary::vocabularies_of(super::KEY_BYTES, super::KEY_PIECES),
        walk in walks(),
    ) {
        let mut options = Options::default();
        options.schema.key_order = order;
        let source = objects.source();
        let vocabulary = vocabulary::padded(&vocabulary);
        let compiled = lexiform::compile(Source::JsonSchema(&source), &vocabulary, &options);
        let (grammar, _) = compiled.map_err(|error| TestCaseError::fail(format!("{error} in {source}")))?;
        check_walk_of(&grammar, &walk)?;
    }
}

/// How many tokens a walk has more than it needs, and how it chooses among those that it may write.
fn walks() -> impl Strategy<Value = (usize, Vec<prop::sample::Index>)> {
    (
        0usize..12,
        prop::collection::vec(any::<prop::sample::Index>(), 60),
    )
}

/// Walks through a grammar over a vocabulary, and over one so large that completions are not searched.
fn check_walk(
    cfg: &Cfg,
    vocabulary: &Arc<Vocabulary>,
    walk: &(usize, Vec<prop::sample::Index>),
) -> Result<(), TestCaseError> {
    for vocabulary in [vocabulary, &vocabulary::padded(vocabulary)] {
        if let Ok(grammar) = lower::compile(cfg, vocabulary) {
            check_walk_of(&grammar, walk)?;
        }
    }
    Ok(())
}

/// Writes what the masks within a budget allow until the text is complete.
fn check_walk_of(
    grammar: &Grammar,
    (more, choices): &(usize, Vec<prop::sample::Index>),
) -> Result<(), TestCaseError> {
    let mut state = grammar.start();
    let Some(least) = grammar.min_completion(state) else {
        return Ok(());
    };
    let mut budget = (least + more).min(choices.len());
    if budget < least {
        return Ok(());
    }
    let mut written = Vec::new();
    for choice in choices {
        let allowed: Vec<u32> = grammar
            .try_mask(MaskRequest::from(state).within(budget))
            .expect("within the limits")
            .iter()
            .collect();
        let text = || show(&written);
        prop_assert!(
            !allowed.is_empty(),
            "nothing is allowed after {:?} within {}",
            text(),
            budget
        );
        let token = *choice.get(&allowed);
        state = grammar.step(state, token).expect("the mask allows it");
        written.extend(grammar.vocabulary().bytes(token));
        budget -= 1;
        if grammar.is_finished(state) {
            break;
        }
    }
    prop_assert!(grammar.is_finished(state));
    Ok(())
}

/// A grammar of which brute force meets so many states that they would use up the memory of one that counts
/// them all.
#[test]
fn budgets_where_brute_force_meets_many_states() {
    use context_free::Rules;
    use context_free::Term::{Alt, Class, Named, Plus, Rule, Seq, Text};
    let rules = Rules(vec![
        Plus(Box::new(Rule(1))),
        Alt(vec![
            Seq(vec![Rule(2), Seq(vec![Rule(0), Class("[ab]", "ab")]), Named]),
            Text("c"),
        ]),
        Alt(vec![Rule(3), Alt(vec![Text(""), Named])]),
        Alt(vec![
            Seq(vec![Text("cc"), Rule(2), Plus(Box::new(Text("a")))]),
            Text("a"),
        ]),
    ]);
    let specials = ["<end>", vocabulary::NAMED].map(|name| (TokenKind::Special, name));
    let texts = ["aac", "c", "aa", "a"].map(|text| (TokenKind::Text, text));
    let tokens: Vec<_> = specials.into_iter().chain(texts).collect();
    let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
    let grammar = lower::compile(&lower::rules(&rules), &vocabulary).expect("it has texts");
    check_budgets(&grammar).expect("as brute force has it");
}
