//! Repairs, compared with a search over all valid texts.

use std::sync::Arc;

use lexiform::limits::Cancel;
use lexiform::repair::{Costs, Repair, RepairError, RepairLimits};
use lexiform::schema::Whitespace;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, Options, Source, compile};
use lexiform_syntax::schema;

fn grammar(source: Source<'_>) -> Grammar {
    let vocabulary = Arc::new(Vocabulary::new(&[(TokenKind::Text, "<eos>")], &[0]).expect("a vocabulary"));
    let options = Options {
        schema: schema::Options {
            whitespace: Whitespace::Compact,
            ..schema::Options::default()
        },
        ..Options::default()
    };
    compile(source, &vocabulary, &options).expect("it compiles").0
}

fn is_valid(grammar: &Grammar, text: &str) -> bool {
    let state = grammar.step_bytes(grammar.start(), text.as_bytes());
    state.is_some_and(|state| grammar.is_accepting(state))
}

/// Returns all valid texts over these characters with at most this many of them.
fn texts(grammar: &Grammar, alphabet: &str, longest: usize) -> Vec<String> {
    let (mut open, mut texts) = (vec![(String::new(), grammar.start())], Vec::new());
    for length in 0..=longest {
        let mut next = Vec::new();
        for (text, state) in open {
            for c in alphabet.chars().filter(|_| length < longest) {
                let longer = format!("{text}{c}");
                if let Some(state) = grammar.step_bytes(state, c.to_string().as_bytes()) {
                    next.push((longer, state));
                }
            }
            if grammar.is_accepting(state) {
                texts.push(text);
            }
        }
        open = next;
    }
    texts
}

/// Returns the cost of the edits between two texts, by the table of Wagner and Fischer.
fn distance(from: &str, to: &str, costs: &Costs) -> u64 {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let [insert, delete, substitute] = [costs.insert, costs.delete, costs.substitute].map(u64::from);
    let mut row: Vec<u64> = (0..=to.len() as u64).map(|count| count * insert).collect();
    for old in &from {
        let mut next = vec![row[0] + delete];
        for (at, new) in to.iter().enumerate() {
            let replaced = row[at] + if old == new { 0 } else { substitute };
            next.push(replaced.min(row[at + 1] + delete).min(next[at] + insert));
        }
        row = next;
    }
    row[to.len()]
}

const COSTS: [(u32, u32, u32); 4] = [(1, 1, 1), (1, 2, 3), (3, 1, 2), (2, 3, 1)];

/// Returns random texts over an alphabet that is larger than the language's.
fn random_texts(alphabet: &str, longest: usize, count: u64) -> Vec<String> {
    let letters: Vec<char> = alphabet.chars().chain("x€".chars()).collect();
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    (0..count)
        .map(|_| {
            (0..next(longest + 1))
                .map(|_| letters[next(letters.len())])
                .collect()
        })
        .collect()
}

/// Compares repairs of random texts with all valid texts.
fn check(source: Source<'_>, alphabet: &str, (longest, most): (usize, usize)) {
    let grammar = grammar(source);
    let valid = texts(&grammar, alphabet, most);
    for text in random_texts(alphabet, longest, 60) {
        for (insert, delete, substitute) in COSTS {
            let costs = Costs {
                insert,
                delete,
                substitute,
            };
            let repair =
                Repair::of_text(&grammar, &text, &costs, &RepairLimits::default()).expect("a repair");
            let nearest = valid.iter().map(|other| distance(&text, other, &costs)).min();
            assert_eq!(
                Some(repair.cost),
                nearest,
                "{source:?} {text:?} {costs:?} {repair:?}"
            );
            assert_eq!(
                distance(&text, &repair.text, &costs),
                repair.cost,
                "{text:?} {repair:?}"
            );
            assert!(is_valid(&grammar, &repair.text), "{repair:?}");
            assert_eq!(edited(&text, &repair), repair.text);
        }
    }
}

/// Returns a text after its edits.
fn edited(text: &str, repair: &Repair) -> String {
    let mut edited = text.to_owned();
    for edit in repair.edits.iter().rev() {
        assert!(edited[edit.offset..].starts_with(&edit.removed));
        edited.replace_range(edit.offset..edit.offset + edit.removed.len(), &edit.inserted);
    }
    edited
}

#[test]
fn texts_are_compared_at_the_least_cost() {
    let texts = random_texts("abé", 12, 60);
    for (from, to) in texts.iter().zip(texts.iter().rev()) {
        for (insert, delete, substitute) in COSTS {
            let costs = Costs {
                insert,
                delete,
                substitute,
            };
            let told = Repair::between(from, to, &costs, &RepairLimits::default()).expect("a comparison");
            assert_eq!(
                told.cost,
                distance(from, to, &costs),
                "{from:?} {to:?} {costs:?} {told:?}"
            );
            assert_eq!((&told.text, &edited(from, &told)), (to, to), "{from:?} {told:?}");
        }
    }
}

#[test]
fn a_comparison_tells_what_was_changed() {
    let costs = Costs {
        insert: 7,
        delete: 5,
        substitute: 3,
    };
    let told = Repair::between("kitten sits", "sitten sit now", &costs, &RepairLimits::default());
    let told = told.expect("a comparison");
    let edits: Vec<(usize, &str, &str)> = (told.edits.iter())
        .map(|edit| (edit.offset, &edit.removed[..], &edit.inserted[..]))
        .collect();
    assert_eq!(edits, [(0, "k", "s"), (10, "s", " now")]);
    assert_eq!(told.cost, 3 + 3 + 3 * 7);
}

#[test]
fn comparisons_have_limits_too() {
    let compare = |from: &str, to: &str, limits: &RepairLimits| {
        Repair::between(from, to, &Costs::default(), limits).map(|repair| repair.cost)
    };
    let limits = RepairLimits {
        text_bytes: 8,
        nodes: 3,
        ..RepairLimits::default()
    };
    let long = RepairError::TextTooLong { bytes: 9, limit: 8 };
    assert_eq!(compare("a", "123456789", &limits), Err(long.clone()));
    assert_eq!(compare("123456789", "a", &limits), Err(long));
    let pairs = RepairError::TooManyPairs { pairs: 4, limit: 3 };
    assert_eq!(compare("_ab_", "_cd_", &limits), Err(pairs));
    assert_eq!(compare("_ab_", "_abc_", &limits), Ok(1));
    let cancel = RepairLimits {
        cancel: Cancel::when(|| true),
        ..RepairLimits::default()
    };
    assert_eq!(compare("ab", "cd", &cancel), Err(RepairError::Cancelled));
}

#[test]
fn regular_expressions_are_repaired_at_the_least_cost() {
    check(Source::Regex("(ab|ba)*c?"), "abc", (5, 8));
    check(Source::Regex("a{3,5}|b"), "ab", (6, 6));
    check(Source::Regex("é(ab)*ü|日本"), "éüab日本", (4, 6));
    check(Source::Regex("[a-c€]{2}[^a]"), "abcéx€", (4, 3));
}

#[test]
fn context_free_grammars_are_repaired_at_the_least_cost() {
    check(
        Source::Ebnf(r#"s ::= "" | "(" s ")" s | "[" s "]" s"#),
        "()[]",
        (5, 8),
    );
    check(Source::Ebnf(r#"e ::= e "+" e | "a""#), "a+", (6, 9));
    check(
        Source::Ebnf(r#"p ::= "a" p "a" | "b" p "b" | "c""#),
        "abc",
        (5, 9),
    );
}

#[test]
fn schemas_are_repaired_at_the_least_cost() {
    let list = r#"{"type": "array", "items": {"enum": [1, "b"]}, "maxItems": 2}"#;
    check(Source::JsonSchema(list), r#"[]1"b,.0eE+-\u62"#, (5, 9));
    // Keys that must differ, of which there are few.
    let keys = r#"{"type": "object", "patternProperties": {"^[aé]$": {"const": true}}, "additionalProperties": false,
                   "minProperties": 1}"#;
    check(Source::JsonSchema(keys), r#"{}"aé:true,\019E6"#, (5, 15));
    let required = r#"{"type": "object", "properties": {"k": {"type": "boolean"}}, "required": ["k"],
                       "additionalProperties": false}"#;
    check(Source::JsonSchema(required), r#"{}"k:truefals"#, (8, 11));
}

#[test]
fn what_models_write_is_repaired_as_a_reader_would() {
    let grammar = grammar(Source::JsonSchema(r#"{"type": "object"}"#));
    for (text, cost, repaired) in [
        (r#"{"a":1}"#, 0, Some(r#"{"a":1}"#)),
        (r#"{"a":1,}"#, 1, None),
        (r#"{'a':1}"#, 2, None),
        (r#"{a:1}"#, 2, Some(r#"{"a":1}"#)),
        (r#"{"a":[1,{"b":"c"#, 3, None),
        (r#"{"a":True}"#, 1, Some(r#"{"a":true}"#)),
        (r#"{"a":None}"#, 2, None),
        (r#"{"a" 1 "b":2}"#, 2, None),
        ("", 2, Some("{}")),
        // A key must not occur twice.
        (r#"{"a":1,"a":2}"#, 1, None),
        (r#"{"a":1,"a":2,"a":3}"#, 2, None),
        // One key, with quotation marks in it.
        (r#"{'a':1,'a':2}"#, 2, None),
    ] {
        let repair =
            Repair::of_text(&grammar, text, &Costs::default(), &RepairLimits::default()).expect("a repair");
        assert_eq!(repair.cost, cost, "{text} {repair:?}");
        assert!(is_valid(&grammar, &repair.text));
        if let Some(repaired) = repaired {
            assert_eq!(repair.text, repaired);
        }
    }
}

const PERSON: &str = r#"{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"},
    "city": {"type": "string"}}, "required": ["name", "age", "city"], "additionalProperties": false}"#;

/// Creates a grammar with white space, as the command line and the service do.
fn grammar_of(schema: &str) -> Grammar {
    let vocabulary = Arc::new(Vocabulary::new(&[(TokenKind::Text, "<eos>")], &[0]).expect("a vocabulary"));
    compile(Source::JsonSchema(schema), &vocabulary, &Options::default())
        .expect("it compiles")
        .0
}

/// Returns the JSON that a text becomes, and the kinds of changes with their pointers.
fn as_json(grammar: &Grammar, text: &str) -> (String, Vec<String>) {
    let repair =
        Repair::of_json(grammar, text, &Costs::default(), &RepairLimits::default()).expect("a repair");
    assert!(is_valid(grammar, &repair.text), "{text} {repair:?}");
    assert_eq!(edited(text, &repair), repair.text);
    assert_eq!(
        distance(text, &repair.text, &Costs::default()),
        repair.cost,
        "{text} {repair:?}"
    );
    let changes = repair
        .changes
        .iter()
        .map(|change| format!("{} {}", change.kind.name(), change.pointer));
    let changes = changes.map(|change| change.trim_end().to_owned()).collect();
    (repair.text, changes)
}

const MARIA: &str = r#"{"name": "Maria", "age": 34, "city": "Vienna"}"#;

/// The given text, the repaired text, and the reported changes.
const VALUES: &[(&str, &str, &[&str])] = &[
    (MARIA, MARIA, &[]),
    // A valid instance in another key order.
    (
        r#"{"city": "Vienna", "age": 34, "name": "Maria"}"#,
        MARIA,
        &["reordered"],
    ),
    (
        "```json\n{\"name\": \"Maria\", \"age\": 34, \"city\": \"Vienna\"}\n```",
        MARIA,
        &["around", "around"],
    ),
    (
        r#"Here is the JSON: {"name": "Maria", "age": 34, "city": "Vienna"} Hope this helps!"#,
        MARIA,
        &["around", "around"],
    ),
    (
        r#"{"name": "Maria", "age": 34, "city": "Vienna", "height": 170}"#,
        MARIA,
        &["dropped /height"],
    ),
    (
        r#"{"name": "Maria", "born": {"year": 1992}, "age": 34, "city": "Vienna"}"#,
        MARIA,
        &["dropped /born"],
    ),
    (
        "{name: Maria Keller, age: 34, city: Vienna}",
        r#"{"name": "Maria Keller", "age": 34, "city": "Vienna"}"#,
        &["respelled /name", "respelled /city"],
    ),
    (
        "{'name': 'Maria', 'age': 34, 'city': 'Vienna',}",
        MARIA,
        &["respelled /name", "respelled /city"],
    ),
    (
        r#"{"name": "Maria", "age": "34", "city": "Vienna"}"#,
        MARIA,
        &["respelled /age"],
    ),
    (
        r#"{"name": "Maria", "age": 34 years, "city": "Vienna"}"#,
        MARIA,
        &["respelled /age"],
    ),
    // A value that does not fit is not replaced by another value with its digits.
    (
        r#"{"name": "Maria", "age": 34.5, "city": "Vienna"}"#,
        r#"{"name": "Maria","age":0, "city": "Vienna"}"#,
        &["dropped /age", "added"],
    ),
    (
        r#"{"name": "Maria", "age": 34, "city": "Vie"#,
        r#"{"name": "Maria", "age": 34, "city": "Vie"}"#,
        &["respelled /city", "added"],
    ),
    (
        r#"{"name": "Maria", "age": 3"#,
        r#"{"name": "Maria", "age": 3,"city":""}"#,
        &["added", "added"],
    ),
    (
        r#"{"name": "Maria", "a"#,
        r#"{"name": "Maria", "age":0,"city":""}"#,
        &["added", "added", "added"],
    ),
    (
        r#"{"name": "Maria", "name": "Eva", "age": 34, "city": "Vienna"}"#,
        MARIA,
        &["dropped /name"],
    ),
    (
        r#"{"name": "Maria "Mia" Keller", "age": 34, "city": "Vienna"}"#,
        r#"{"name": "Maria \"Mia\" Keller", "age": 34, "city": "Vienna"}"#,
        &["respelled /name"],
    ),
];

#[test]
fn values_of_json_are_kept_whole_or_dropped_whole() {
    let person = grammar_of(PERSON);
    for &(text, repaired, changes) in VALUES {
        let (found, done) = as_json(&person, text);
        assert_eq!(found, repaired, "{text}");
        assert_eq!(done, changes, "{text}");
    }
}

#[test]
fn literals_of_other_languages_and_nested_values_are_read() {
    let grammar = grammar_of(
        r#"{"type": "object", "properties": {"ok": {"type": "boolean"}, "note": {"type": ["string", "null"]},
            "tags": {"type": "array", "items": {"enum": ["red", "blue"]}}, "kind": {"enum": ["one", "other"]},
            "place": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x", "y"],
            "additionalProperties": false}}, "additionalProperties": false}"#,
    );
    for (text, repaired) in [
        ("{'ok': True, 'note': None}", r#"{"ok": true, "note": null}"#),
        (
            r#"{"tags": ["red", "green", "blue"]}"#,
            r#"{"tags": ["red", "blue"]}"#,
        ),
        (
            r#"{"place": {"y": 1.50, "x": .5}, "ok": false}"#,
            r#"{"ok": false, "place": {"x": 0.5, "y": 1.50}}"#,
        ),
        (r#"{"kind": "ot"#, r#"{"kind": "other"}"#),
        (r#"{"tags": ["red", "bl"#, r#"{"tags": ["red", "blue"]}"#),
        (r#"{"ok": tr"#, r#"{"ok": true}"#),
        (r#"{"ok": "true", "note": 34}"#, r#"{"ok": true, "note": "34"}"#),
        (
            r#"{"place": {"x": 1}, "ok": yes}"#,
            r#"{"place": {"x": 1,"y":0}}"#,
        ),
    ] {
        assert_eq!(as_json(&grammar, text).0, repaired, "{text}");
    }
}

#[test]
fn a_key_of_an_open_object_is_kept() {
    let open =
        grammar_of(r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}"#);
    assert_eq!(
        as_json(&open, r#"{"b": [1, {"c": x}], "a": 1,}"#).0,
        r#"{"a": 1, "b": [1, {"c": "x"}]}"#
    );
    let any = grammar_of("true");
    for (text, repaired) in [
        ("yes", "\"yes\""),
        ("I have 3 [cats]", "[\"cats\"]"),
        ("[1, 2", "[1, 2]"),
        ("True", "true"),
    ] {
        assert_eq!(as_json(&any, text).0, repaired, "{text}");
    }
}

#[test]
fn a_text_without_a_value_that_fits_is_repaired_by_its_characters() {
    let grammar = grammar_of(r#"{"enum": ["approve", "reject"]}"#);
    assert_eq!(
        as_json(&grammar, "aprove"),
        ("\"approve\"".to_owned(), Vec::new())
    );
    assert_eq!(
        as_json(&grammar, "\"approve"),
        ("\"approve\"".to_owned(), vec!["respelled".to_owned()])
    );
}

#[test]
fn hostile_texts_end_within_the_limits() {
    let grammar = grammar_of("true");
    let limits = RepairLimits {
        nodes: 1 << 13,
        ..RepairLimits::default()
    };
    let many_keys: String = (0..9_000)
        .map(|number| format!("\"k{}\": 1, ", 9_000 - number))
        .collect();
    for text in [
        "[".repeat(100_000),
        "{a:".repeat(50_000),
        format!("{{{many_keys}"),
        "\"".repeat(100_000),
        "{\"".repeat(60_000),
    ] {
        match Repair::of_json(&grammar, &text, &Costs::default(), &limits) {
            Ok(repair) => assert!(is_valid(&grammar, &repair.text)),
            Err(error) => assert!(
                matches!(error, RepairError::TooFar { .. } | RepairError::Exhausted(_)),
                "{error}"
            ),
        }
    }
    let cancelled = RepairLimits {
        cancel: Cancel::when(|| true),
        ..RepairLimits::default()
    };
    let long = format!("{{{many_keys}");
    assert_eq!(
        Repair::of_json(&grammar, &long, &Costs::default(), &cancelled),
        Err(RepairError::Cancelled)
    );
}

#[test]
fn of_equal_repairs_the_one_that_keeps_more_is_taken() {
    let words = grammar(Source::Regex("\"[a-z ]*\""));
    let repair = Repair::of_text(
        &words,
        "maria keller",
        &Costs::default(),
        &RepairLimits::default(),
    )
    .expect("a repair");
    assert_eq!((&repair.text[..], repair.cost), ("\"maria keller\"", 2));
    let month = grammar(Source::Regex("[0-9]{4}-[0-9]{2}"));
    let repair =
        Repair::of_text(&month, "2026/7", &Costs::default(), &RepairLimits::default()).expect("a repair");
    assert_eq!((&repair.text[..], repair.cost), ("2026-07", 2));
}

/// Without the bound on missing text, all ways to insert a text of this length would be tried everywhere.
#[test]
fn what_is_cut_off_is_completed_however_much_is_missing() {
    let names: Vec<String> = (0..20).map(|number| format!("\"property_{number}\"")).collect();
    let properties: Vec<String> = names
        .iter()
        .map(|name| format!("{name}: {{\"type\": \"integer\"}}"))
        .collect();
    let schema = format!(
        r#"{{"type": "object", "properties": {{{}}}, "required": [{}], "additionalProperties": false}}"#,
        properties.join(","),
        names.join(",")
    );
    let grammar = grammar(Source::JsonSchema(&schema));
    let repair = Repair::of_text(
        &grammar,
        r#"{"property_0":12"#,
        &Costs::default(),
        &RepairLimits::default(),
    );
    let repair = repair.expect("a repair");
    assert!(
        repair.cost > 250 && is_valid(&grammar, &repair.text),
        "{repair:?}"
    );
}

#[test]
fn limits_are_named() {
    let grammar = grammar(Source::JsonSchema("true"));
    let limits = |text_bytes, nodes| RepairLimits {
        text_bytes,
        nodes,
        ..RepairLimits::default()
    };
    let refused = |text: &str, costs: &Costs, limits: &RepairLimits| {
        Repair::of_text(&grammar, text, costs, limits).expect_err("refused")
    };
    let unit = Costs::default();
    assert_eq!(
        refused("[1]", &unit, &limits(2, 100)),
        RepairError::TextTooLong { bytes: 3, limit: 2 }
    );
    let far = refused("]]]]]]]]", &unit, &limits(100, 5));
    assert!(matches!(far, RepairError::TooFar { limit: 5, .. }), "{far}");
    let free = Costs { insert: 0, ..unit };
    assert_eq!(
        refused("[1]", &free, &limits(9, 9)),
        RepairError::Cost {
            name: "insert",
            value: 0
        }
    );
    let cancel = RepairLimits {
        cancel: Cancel::when(|| true),
        ..RepairLimits::default()
    };
    assert_eq!(refused("[1", &unit, &cancel), RepairError::Cancelled);
}

/// A repair works on a copy: the grammar itself has as many states as before.
#[test]
fn the_grammar_does_not_grow() {
    let grammar = grammar(Source::JsonSchema("true"));
    let before = grammar.memory_usage();
    Repair::of_text(&grammar, "{[}]", &Costs::default(), &RepairLimits::default()).expect("a repair");
    assert_eq!(grammar.memory_usage(), before);
}
