//! The machine on grammars built by hand: the texts that it accepts, and the agreement of masks with steps.

use std::sync::Arc;

use lexiform::limits::Limits;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, State};
use lexiform_automata::grammar::{
    Additional, Cfg, CfgBuilder, ExprId, ItemOrder, ObjectList, Part, Property, Regular, RuleId, Way,
};
use lexiform_automata::mask::Tables;
use proptest::prelude::*;

/// Creates a vocabulary of all single bytes, some longer tokens, and `<eos>`, which is token 0.
fn vocabulary(longer: &[&str]) -> Arc<Vocabulary> {
    let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
    tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    tokens.extend(
        longer
            .iter()
            .map(|token| (TokenKind::Text, token.as_bytes().to_vec())),
    );
    Arc::new(Vocabulary::new(&tokens, &[0]).expect("the vocabulary is well formed"))
}

fn grammar(cfg: &Cfg, longer: &[&str]) -> Grammar {
    let limits = Limits::default();
    let tables = Arc::new(Tables::new(vocabulary(longer), 1 << 20));
    Grammar::new(cfg, &tables, &limits).expect("the grammar compiles")
}

fn build(define: impl FnOnce(&mut CfgBuilder, RuleId) -> ExprId) -> Cfg {
    let mut builder = CfgBuilder::new();
    let start = builder.declare("start");
    let body = define(&mut builder, start);
    builder.define(start, body);
    builder.finish(start)
}

fn accepts(grammar: &Grammar, text: &str) -> bool {
    let end = grammar.step_bytes(grammar.start(), text.as_bytes());
    end.is_some_and(|state| grammar.is_accepting(state))
}

/// Checks at every prefix of the text that each token is in the mask iff the grammar can step over it.
fn masks_agree_with_steps(grammar: &Grammar, text: &str) {
    let mut state = grammar.start();
    for (at, byte) in text.bytes().enumerate() {
        check_mask(grammar, state, &text[..at]);
        state = grammar
            .step_bytes(state, &[byte])
            .unwrap_or_else(|| panic!("{text:?} stops at {at}"));
    }
    check_mask(grammar, state, text);
}

fn check_mask(grammar: &Grammar, state: State, prefix: &str) {
    let mask = grammar.mask(state);
    for token in 0..grammar.vocabulary().len() as u32 {
        let name = String::from_utf8_lossy(grammar.vocabulary().bytes(token)).into_owned();
        assert_eq!(
            mask.contains(token),
            grammar.allows(state, token),
            "token {name:?} after {prefix:?}"
        );
    }
}

fn regular(builder: &mut CfgBuilder, pattern: &str) -> ExprId {
    builder.hir(regex_syntax::parse(pattern).expect("the pattern is well formed"))
}

#[test]
fn left_recursion_is_a_loop() {
    let cfg = build(|b, start| {
        let (again, plus, digit) = (b.rule(start), b.bytes("+"), b.bytes("1"));
        let longer = b.seq([again, plus, digit]);
        b.choice([longer, digit])
    });
    let grammar = grammar(&cfg, &["1+", "+1+", "++", "1+1"]);
    assert!(accepts(&grammar, "1") && accepts(&grammar, "1+1+1"));
    assert!(!accepts(&grammar, "") && !accepts(&grammar, "1+") && !accepts(&grammar, "+1"));
    masks_agree_with_steps(&grammar, "1+1+1");
    let after_one = grammar.step_bytes(grammar.start(), b"1+1").unwrap();
    let after_many = grammar
        .step_bytes(grammar.start(), "1+".repeat(500).as_bytes())
        .unwrap();
    assert_eq!(
        grammar.step_bytes(after_many, b"1"),
        Some(after_one),
        "the stack does not grow with the text"
    );
}

#[test]
fn indirect_and_hidden_left_recursion() {
    // a: b "x" | "y" ;  b: n a "z" | "w" ;  n: "" | "q"
    let mut builder = CfgBuilder::new();
    let [a, b, n] = ["a", "b", "n"].map(|name| builder.declare(name));
    let [x, y, z, w, q] = ["x", "y", "z", "w", "q"].map(|text| builder.bytes(text));
    let (call_a, call_b, call_n) = (builder.rule(a), builder.rule(b), builder.rule(n));
    let bx = builder.seq([call_b, x]);
    let body_a = builder.choice([bx, y]);
    let naz = builder.seq([call_n, call_a, z]);
    let body_b = builder.choice([naz, w]);
    let body_n = builder.optional(q);
    builder.define(a, body_a);
    builder.define(b, body_b);
    builder.define(n, body_n);
    let grammar = grammar(&builder.finish(a), &["yz", "zx", "wx"]);
    for text in ["y", "wx", "yzx", "wxzx", "qyzx", "qqyzxzx", "qqqwxzxzxzx"] {
        assert!(accepts(&grammar, text), "{text}");
    }
    for text in ["", "yx", "yz", "qy", "qqyzx", "wxzxzxq"] {
        assert!(!accepts(&grammar, text), "{text}");
    }
    masks_agree_with_steps(&grammar, "qqyzxzx");
}

#[test]
fn ambiguity_and_nullable_rules_do_not_die() {
    // s: s s | "a" | ""
    let cfg = build(|b, start| {
        let (s, a, empty) = (b.rule(start), b.bytes("a"), b.empty());
        let two = b.seq([s, s]);
        b.choice([two, a, empty])
    });
    let grammar = grammar(&cfg, &["aa", "aaa"]);
    assert!(accepts(&grammar, "") && accepts(&grammar, &"a".repeat(60)));
    masks_agree_with_steps(&grammar, "aaaaa");
}

#[test]
fn right_recursion_does_not_grow_the_stack() {
    let cfg = build(|b, start| {
        let (a, again) = (b.bytes("a"), b.rule(start));
        let more = b.seq([a, again]);
        b.optional(more)
    });
    let grammar = grammar(&cfg, &[]);
    let one = grammar.step_bytes(grammar.start(), b"a").unwrap();
    assert_eq!(grammar.step_bytes(one, "a".repeat(1000).as_bytes()), Some(one));
}

#[test]
fn nesting_is_counted_exactly() {
    let cfg = build(|b, start| {
        let (open, inner, close) = (b.bytes("("), b.rule(start), b.bytes(")"));
        let nested = b.seq([open, inner, close]);
        b.optional(nested)
    });
    let grammar = grammar(&cfg, &["((", "))", "()", ")))"]);
    assert!(accepts(
        &grammar,
        &format!("{}{}", "(".repeat(400), ")".repeat(400))
    ));
    assert!(!accepts(&grammar, "(()"));
    masks_agree_with_steps(&grammar, "((()))");
}

#[test]
fn what_cannot_be_completed_is_cut_away() {
    // "a" never | "b"
    let mut builder = CfgBuilder::new();
    let (start, never) = (builder.declare("start"), builder.declare("never"));
    let (a, b, call) = (builder.bytes("a"), builder.bytes("b"), builder.rule(never));
    let dead = builder.seq([a, call]);
    let body = builder.choice([dead, b]);
    builder.define(start, body);
    let again = builder.seq([a, call]);
    builder.define(never, again);
    let cfg = builder.finish(start);
    let live = grammar(&cfg, &[]);
    assert!(live.step_bytes(live.start(), b"a").is_none());
    let only_dead = Cfg { start: never, ..cfg };
    let tables = Arc::new(Tables::new(vocabulary(&[]), 1 << 20));
    let error = Grammar::new(&only_dead, &tables, &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("never"), "{error}");
}

/// `{"a":1,…}`: properties a (required), b, c, and other keys that end with a quote.
fn object(order: ItemOrder, min: u64, max: Option<u64>) -> Cfg {
    build(|b, _| {
        let separator = b.bytes(",");
        let value = regular(b, "[0-9]{1,3}");
        let properties = [("\"a\":", true), ("\"b\":", false), ("\"c\":", false)].map(|(key, required)| {
            let key = b.bytes(key);
            Property::new(b.seq([key, value]), required)
        });
        let any = Part::Match(regex_syntax::parse("\"[a-z]*\"").unwrap().into());
        let listed = Part::Not(regex_syntax::parse("\"[abc]\"").unwrap().into());
        let key = b.add_regular(Regular::of(vec![any, listed]));
        let colon = b.bytes(":");
        let item = b.seq([colon, value]);
        let key = Some(key);
        let additional = vec![Additional { key, item, meets: 0 }];
        let body = b.object_list(ObjectList {
            properties: properties.into(),
            additional,
            taken: vec![],
            separator,
            order,
            min,
            max,
            demands: vec![],
        });
        let (open, close) = (b.bytes("{"), b.bytes("}"));
        b.seq([open, body, close])
    })
}

const OBJECT_TOKENS: [&str; 12] = [
    "{\"",
    "\":",
    ",\"",
    "\"a\"",
    "\"x\"",
    "\"x\":1",
    "x\":1,\"",
    "\"ab\":12}",
    "1}",
    "{}",
    "b\":2,\"c",
    "x\":1,\"x\"",
];

#[test]
fn members_in_listed_order() {
    let grammar = grammar(&object(ItemOrder::Listed, 0, None), &OBJECT_TOKENS);
    for text in [
        r#"{"a":1}"#,
        r#"{"a":1,"c":2}"#,
        r#"{"a":1,"b":2,"c":3,"x":4,"y":5}"#,
        r#"{"a":1,"ab":12}"#,
    ] {
        assert!(accepts(&grammar, text), "{text}");
        masks_agree_with_steps(&grammar, text);
    }
    for text in [
        "{}",
        r#"{"b":1}"#,
        r#"{"a":1,"c":2,"b":1}"#,
        r#"{"a":1,"x":1,"x":2}"#,
        r#"{"a":1,}"#,
        r#"{"x":1,"a":1}"#,
    ] {
        assert!(!accepts(&grammar, text), "{text}");
    }
}

#[test]
fn members_in_any_order_and_no_key_twice() {
    let grammar = grammar(&object(ItemOrder::Any, 0, None), &OBJECT_TOKENS);
    for text in [
        r#"{"a":1}"#,
        r#"{"x":1,"c":2,"a":3,"y":4}"#,
        r#"{"c":1,"b":2,"a":3}"#,
    ] {
        assert!(accepts(&grammar, text), "{text}");
        masks_agree_with_steps(&grammar, text);
    }
    for text in [
        "{}",
        r#"{"b":1}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"a":1,"x":1,"x":2}"#,
        r#"{"x":1,"x":2,"a":1}"#,
    ] {
        assert!(!accepts(&grammar, text), "{text}");
    }
}

const KEYS: [&str; 6] = ["a", "ab", "abc", "b", "ba", "c"];

/// An alternative: for each key whether it is allowed, is required, and has its own value.
type Alternative = [(bool, bool, bool); 6];

fn alternatives() -> impl Strategy<Value = Vec<Alternative>> {
    let key = (
        prop::bool::weighted(0.6),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.3),
    );
    prop::collection::vec(prop::array::uniform6(key), 1..40)
}

/// Returns objects that have most properties in common and differ in the allowed keys and in the number of
/// the alternative in some values.
fn object_of(alternatives: &[Alternative], order: ItemOrder) -> Cfg {
    build(|b, _| {
        let (separator, open, close) = (b.bytes(","), b.bytes("{"), b.bytes("}"));
        let objects = alternatives.iter().enumerate().map(|(number, keys)| {
            let properties = keys.iter().zip(KEYS).filter(|((may, ..), _)| *may);
            let properties = properties.map(|(&(_, must, own), key)| {
                let (key, value) = (format!("\"{key}\":"), if own { number % 10 } else { 1 });
                let (key, value) = (b.bytes(key), b.bytes(value.to_string()));
                Property::new(b.seq([key, value]), must)
            });
            let properties = properties.collect();
            let body = b.object_list(ObjectList {
                properties,
                additional: vec![],
                taken: vec![],
                separator,
                order,
                min: 0,
                max: None,
                demands: vec![],
            });
            b.seq([open, body, close])
        });
        let objects: Vec<ExprId> = objects.collect();
        b.choice(objects)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    /// Masks look ahead through all alternatives at once if there are many, and steps never do.
    #[test]
    fn many_objects_with_members_in_common(
        alternatives in alternatives(),
        order in prop::sample::select(vec![ItemOrder::Any, ItemOrder::Listed]),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 12),
    ) {
        let tokens = ["{\"", "\":1", "\":1,\"", "\"a\":1,\"b", "a\":", "{\"ab\":1,\"a\":1", "1}", "{}", "abc\":1}", "ba", "2,\""];
        let grammar = grammar(&object_of(&alternatives, order), &tokens);
        let mut state = grammar.start();
        let mut text = String::new();
        for pick in picks {
            check_mask(&grammar, state, &text);
            let allowed: Vec<u32> = grammar.mask(state).iter().filter(|&token| token != 0).collect();
            if allowed.is_empty() {
                break;
            }
            let token = *pick.get(&allowed);
            text += &String::from_utf8_lossy(grammar.vocabulary().bytes(token));
            state = grammar.step(state, token).expect("masks hold what can be stepped over");
        }
    }
}

#[test]
fn counts_of_items_leave_no_dead_end() {
    let grammar = grammar(&object(ItemOrder::Any, 2, Some(2)), &OBJECT_TOKENS);
    assert!(accepts(&grammar, r#"{"a":1,"x":2}"#) && accepts(&grammar, r#"{"c":1,"a":2}"#));
    assert!(!accepts(&grammar, r#"{"a":1}"#));
    let after = grammar.step_bytes(grammar.start(), br#"{"x":1,"#).unwrap();
    assert!(
        grammar.step_bytes(after, b"\"b").is_none(),
        "only the required key can follow"
    );
    masks_agree_with_steps(&grammar, r#"{"x":1,"a":2}"#);
}

#[test]
fn finite_keys_run_out() {
    let cfg = build(|b, _| {
        let key = Regular::of(vec![Part::Match(
            regex_syntax::parse("\"(a|ab)\"").unwrap().into(),
        )]);
        let (key, item, separator) = (b.add_regular(key), b.bytes(":1"), b.bytes(","));
        let key = Some(key);
        let additional = vec![Additional { key, item, meets: 0 }];
        b.object_list(ObjectList {
            properties: vec![],
            additional,
            taken: vec![],
            separator,
            order: ItemOrder::Any,
            min: 0,
            max: None,
            demands: vec![],
        })
    });
    let grammar = grammar(&cfg, &["\"a\"", "ab", "\":1,\"a"]);
    assert!(accepts(&grammar, "") && accepts(&grammar, r#""ab":1,"a":1"#));
    let both = grammar.step_bytes(grammar.start(), br#""ab":1,"a":1"#).unwrap();
    assert!(grammar.step_bytes(both, b",").is_none());
    let first = grammar.step_bytes(grammar.start(), br#""a":1,"a"#).unwrap();
    assert!(grammar.step_bytes(first, b"\"").is_none() && grammar.step_bytes(first, b"b").is_some());
    masks_agree_with_steps(&grammar, r#""a":1,"ab":1"#);
}

#[test]
fn a_large_count_is_a_register() {
    let cfg = build(|b, _| {
        let ab = b.bytes("ab");
        b.repeat(ab, 3, Some(1_000_000_000))
    });
    let grammar = grammar(&cfg, &["abab", "ba"]);
    assert!(accepts(&grammar, &"ab".repeat(3)) && accepts(&grammar, &"ab".repeat(1000)));
    assert!(!accepts(&grammar, "abab") && !accepts(&grammar, "ababa"));
    masks_agree_with_steps(&grammar, "abababab");
}

#[test]
fn special_tokens_match_only_their_name() {
    let cfg = build(|b, _| {
        let (text, special) = (b.bytes("<eos>"), b.special("<eos>"));
        b.seq([special, text])
    });
    let grammar = grammar(&cfg, &[]);
    assert_eq!(grammar.mask(grammar.start()).iter().collect::<Vec<_>>(), [0]);
    let after = grammar.step(grammar.start(), 0).unwrap();
    assert!(!grammar.mask(after).contains(0) && !grammar.is_finished(after));
    let end = grammar.step_bytes(after, b"<eos>").unwrap();
    assert!(grammar.is_finished(grammar.step(end, 0).unwrap()));
}

#[test]
fn forced_text_is_what_every_completion_shares() {
    let cfg = build(|b, _| {
        let (one, two) = (b.bytes("{\"name\":1"), b.bytes("{\"nation\":1"));
        b.choice([one, two])
    });
    let grammar = grammar(&cfg, &[]);
    assert_eq!(grammar.forced(grammar.start()), b"{\"na");
    let after = grammar.step_bytes(grammar.start(), b"{\"nat").unwrap();
    assert_eq!(grammar.forced(after), b"ion\":1");
}

#[test]
fn a_key_may_be_the_whole_item() {
    use lexiform::{Compiler, Options, Source};

    let schema = r#"{"type": "array", "items": {"type": "string"}, "uniqueItems": true}"#;
    let tokens = [
        "ab",
        "a\",",
        "a\", \"",
        "ab\"]",
        "b\", \"a\"]",
        "b\", \"ab\", \"",
        "\"]",
    ];
    let compiled =
        Compiler::new(vocabulary(&tokens)).compile(Source::JsonSchema(schema), &Options::default());
    let (grammar, _) = compiled.expect("the schema compiles");
    masks_agree_with_steps(&grammar, r#"["ab", "a", "b"]"#);
    assert!(!accepts(&grammar, r#"["ab", "a", "ab"]"#));
}

/// Two definitions of a required property that write the same text are one rule, which is settled once.
#[test]
fn a_member_with_two_ways_that_write_the_same_can_be_completed() {
    let cfg = build(|b, _| {
        let (item, separator) = (b.bytes("b"), b.bytes(","));
        let ways = vec![Way { item, meets: 0 }; 2];
        b.object_list(ObjectList {
            properties: vec![Property { ways, required: true }],
            additional: vec![],
            taken: vec![],
            separator,
            order: ItemOrder::Listed,
            min: 0,
            max: None,
            demands: vec![],
        })
    });
    let grammar = grammar(&cfg, &[]);
    assert_eq!(grammar.min_completion(grammar.start()), Some(2));
}
