//! What other engines refuse, get wrong or slow down on, with the right answer here and with work that does
//! not grow with the text: the rows of a table of limits measured on peers, and what was found beside them.
//!
//! Work is counted, not timed: the *readings* of a text are the places that a step or a mask looks at, and
//! the bytes of a grammar grow with the states that it finds.

use std::fmt::Write;
use std::sync::Arc;

use lexiform::schema::KeyOrder;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use lexiform::{Grammar, State};

/// All bytes, and tokens that run over the borders of what the grammars below are made of.
fn vocabulary() -> Arc<Vocabulary> {
    let longer = [
        "foobar", "fooend", "aa", "ab", "aab", "bbx", "\"}", "\",\"", "\":", "[[", "]]", "1,", "0,1", "{\"",
        ");", "),",
    ];
    let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
    tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    tokens.extend(longer.map(|token| (TokenKind::Text, token.as_bytes().to_vec())));
    Arc::new(Vocabulary::new(&tokens, &[0]).expect("the vocabulary is well formed"))
}

fn compile(source: Source<'_>) -> Grammar {
    let mut options = Options::default();
    options.schema.key_order = KeyOrder::Any;
    options.limits.source_bytes = 4 << 20;
    let compiled = Compiler::new(vocabulary()).compile(source, &options);
    compiled.unwrap_or_else(|error| panic!("{error}")).0
}

fn ebnf(source: &str) -> Grammar {
    compile(Source::Ebnf(source))
}

fn schema(source: &str) -> Grammar {
    compile(Source::JsonSchema(source))
}

fn at(grammar: &Grammar, text: &str) -> Option<State> {
    grammar.step_bytes(grammar.start(), text.as_bytes())
}

fn accepts(grammar: &Grammar, text: &str) -> bool {
    at(grammar, text).is_some_and(|state| grammar.is_accepting(state))
}

fn allows(grammar: &Grammar, state: State, token: &str) -> bool {
    let token = grammar.vocabulary().token_of(token.as_bytes()).expect("a token");
    let allowed = grammar.mask(state).contains(token);
    assert_eq!(allowed, grammar.allows(state, token));
    allowed
}

/// Reads a text to its end and checks that its second half costs no more than its first: not more readings at
/// any place, nor more memory, but for an eighth by which tables grow in steps.
fn stays_flat(grammar: &Grammar, text: &str) {
    let [first, second] = read_whole(grammar, text);
    assert!(second.readings <= first.readings, "{first:?}, then {second:?}");
    assert!(
        second.bytes <= first.bytes + first.bytes / 8 + 4096,
        "{first:?}, then {second:?}"
    );
}

/// For a text whose halves are not alike: there are never more readings than this, and no byte of the text
/// takes more memory than so many configurations.
fn stays_within(most: usize, grammar: &Grammar, text: &str) {
    for half in read_whole(grammar, text) {
        assert!(half.readings <= most, "{half:?}");
        assert!(half.bytes <= text.len() / 2 * 20 * 800, "{half:?}");
    }
}

/// What half a text costs at most.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    readings: usize,
    bytes: usize,
}

/// Reads a text to its end.
fn read_whole(grammar: &Grammar, text: &str) -> [Cost; 2] {
    let half = text.len() / 2;
    let (mut state, mut costs) = (grammar.start(), [Cost::default(); 2]);
    for (place, byte) in text.bytes().enumerate() {
        let before = grammar.memory_usage();
        state = grammar
            .step_bytes(state, &[byte])
            .unwrap_or_else(|| panic!("refused at byte {place} of {}", text.len()));
        let cost = &mut costs[usize::from(place >= half)];
        cost.readings = cost.readings.max(grammar.explain(state, 0).readings);
        if place % 64 == 0 {
            assert!(!grammar.mask(state).is_empty() || grammar.is_accepting(state));
        }
        cost.bytes += grammar.memory_usage() - before;
    }
    assert!(grammar.is_accepting(state), "the text is whole");
    costs
}

#[test]
fn a_terminal_gives_back_what_a_literal_needs() {
    let grammar = ebnf(r#"s ::= [a-z]+ "end""#);
    assert!(accepts(&grammar, "fooend") && accepts(&grammar, "endendend") && !accepts(&grammar, "foo"));
    let state = at(&grammar, "fooend").expect("allowed");
    assert!(allows(&grammar, state, "fooend") && !allows(&grammar, state, "1,"));
}

#[test]
fn alternatives_that_begin_alike_stay_open() {
    let grammar = ebnf(r#"s ::= "foo" "bar" | "foobaz""#);
    assert!(allows(&grammar, grammar.start(), "foobar") && accepts(&grammar, "foobar"));
    assert!(accepts(&grammar, "foobaz") && !accepts(&grammar, "fooba"));
    let grammar = ebnf(r#"s ::= ("aaa" | "a"+ "b"+ "z" | "b"+ "x")+"#);
    assert!(accepts(&grammar, "aaabbx") && accepts(&grammar, "aabz") && !accepts(&grammar, "aabbx"));
    let state = at(&grammar, "aaa").expect("allowed");
    assert!(allows(&grammar, state, "bbx") && allows(&grammar, state, "aab"));
    let grammar = ebnf(r#"s ::= "a"* "ab""#);
    assert!(accepts(&grammar, "aab") && accepts(&grammar, "ab") && !accepts(&grammar, "aa"));
    assert!(allows(&grammar, grammar.start(), "aab"));
}

#[test]
fn recursion_and_ambiguity_cost_the_same_at_any_length() {
    stays_flat(&ebnf(r#"l ::= "a" l | """#), &"a".repeat(6_000));
    stays_flat(&ebnf(r#"l ::= l "a" | """#), &"a".repeat(6_000));
    stays_flat(&ebnf(r#"s ::= s s | "a""#), &"a".repeat(3_000));
    stays_flat(&ebnf(r#"s ::= "(" s ")" s | """#), &"()".repeat(3_000));
}

/// Where a rule calls itself in the middle, a letter may stand at any depth: the stacks of all depths are one
/// set, which one more letter makes larger by one.
#[test]
fn ambiguity_that_nests_costs_the_same_at_any_length() {
    for source in [
        r#"s ::= s s s | "a""#,
        r#"s ::= s s s | s s | "a" | "aa" | """#,
        r#"s ::= "a" s s s | "a" | """#,
        r#"s ::= "a" s+ s | "a""#,
        r#"s ::= (s s "a")*"#,
        r#"s ::= s* "a" | s "a" s"#,
        r#"s ::= "a" s "a" | "a" s | "a""#,
        r#"s ::= t*  t ::= u+  u ::= v*  v ::= "a" s? | "a""#,
    ] {
        let grammar = ebnf(source);
        stays_flat(&grammar, &"a".repeat(1_501));
        let state = at(&grammar, &"a".repeat(101)).expect("any odd number of letters");
        assert!(grammar.explain(state, 0).readings <= 4, "{source}");
        assert!(
            allows(&grammar, state, "aa") && !allows(&grammar, state, "ab"),
            "{source}"
        );
    }
    let grammar = ebnf(r#"s ::= s s | s s s | "a" | ("a" | "b") tail?  tail ::= "b"* | [b]*"#);
    stays_flat(&grammar, &"abbba".repeat(600));
}

/// A long token can be split between loops of loops in as many ways as there are subsets of its letters. All
/// ways come to the same places; walking each of them would not end.
#[test]
fn a_token_that_can_be_split_in_many_ways_is_walked_once() {
    let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
    tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    for length in 2..=60 {
        for letter in ["c", "d", ".c", "(c"] {
            tokens.push((TokenKind::Text, letter.repeat(length).into_bytes()));
            tokens.push((
                TokenKind::Text,
                format!("{}{letter}", "c".repeat(length)).into_bytes(),
            ));
        }
    }
    let vocabulary = Vocabulary::new(&tokens, &[0]);
    let compiler = Compiler::new(Arc::new(vocabulary.expect("the vocabulary is well formed")));
    let source = r#"s ::= a (x | y)*  x ::= ("." a | b? (a | [0-9]))+  y ::= "(" ((b | ".")? s)+ ")"  a ::= [cd]  b ::= [-=]"#;
    // Each way by itself would be more than any number of rounds.
    let mut options = Options::default();
    options.limits.mask_work = 1 << 24;
    let grammar = compiler.compile(Source::Ebnf(source), &options);
    let grammar = grammar.unwrap_or_else(|error| panic!("{error}")).0;
    for text in ["", "c", "c(d", "c(d(c.c", "c(d)c1"] {
        let state = at(&grammar, text).expect("allowed");
        let mask = grammar.mask(state);
        for token in 0..grammar.vocabulary().len() as u32 {
            assert_eq!(
                mask.contains(token),
                grammar.allows(state, token),
                "{token} behind {text:?}"
            );
        }
    }
}

/// Where the middle of a text is cannot be known; each letter may be behind it. The stacks are many, the
/// frames few.
#[test]
fn palindromes_cost_the_same_at_any_length() {
    let grammar = ebnf(r#"p ::= "a" p "a" | "b" p "b" | "a"? | "b""#);
    stays_within(5, &grammar, &format!("{}{}", "ab".repeat(500), "ba".repeat(500)));
    stays_within(5, &grammar, &"a".repeat(1_000));
    assert!(accepts(&grammar, "abaaba") && accepts(&grammar, "abababa") && !accepts(&grammar, "abab"));
    let state = at(&grammar, "abab").expect("it may go on");
    assert!(allows(&grammar, state, "aab") && !allows(&grammar, state, "bbx"));
    let marked = ebnf(r#"p ::= "a" p "a" | "b" p "b" | ",""#);
    stays_within(2, &marked, &format!("{},{}", "ab".repeat(500), "ba".repeat(500)));
}

#[test]
fn operators_of_every_kind_cost_the_same_at_any_length() {
    let grammar = ebnf(r#"e ::= e "+" e | e "*" e | e "?" e ":" e | "-" e | e "!" | "(" e ")" | [0-9]+"#);
    stays_within(4, &grammar, &format!("{}1", "1+2*-3!+".repeat(500)));
    stays_within(4, &grammar, &format!("{}1", "1?2:".repeat(500)));
    let nested = [("1?", ":1"), ("(", ")"), ("-(1+", "!)*1")];
    for (open, close) in nested {
        stays_within(
            4,
            &grammar,
            &format!("{}1{}", open.repeat(500), close.repeat(500)),
        );
    }
    assert!(!accepts(&grammar, "1+") && !accepts(&grammar, "1?2") && at(&grammar, "1:").is_none());
    let dangling = ebnf(r#"s ::= "if " s | "if " s " else " s | "x""#);
    stays_within(
        3,
        &dangling,
        &format!("{}x{}", "if ".repeat(500), " else x".repeat(500)),
    );
    assert!(!accepts(&dangling, "if x else x else x"));
}

#[test]
fn recursion_that_hides_costs_the_same_at_any_length() {
    // Behind what may be empty, through other rules, and in circles of rules that may all be empty.
    stays_flat(&ebnf(r#"s ::= x s "a" | "a"  x ::= """#), &"a".repeat(3_000));
    stays_flat(&ebnf(r#"s ::= x? s "a" | "a"  x ::= "b""#), &"a".repeat(3_000));
    stays_flat(
        &ebnf(r#"a ::= b "a" | "a"  b ::= a | c  c ::= b "b" | """#),
        &format!("{}a", "ab".repeat(1_500)),
    );
    let circle = ebnf(r#"x ::= y x | "a"?  y ::= x | z*  z ::= x y | "b"?"#);
    stays_flat(&circle, &"aab".repeat(1_000));
    assert!(accepts(&circle, "") && at(&circle, "c").is_none());
}

/// Parts of a grammar that each have white space of their own.
#[test]
fn hundreds_of_parts_with_their_own_white_space() {
    let parts: Vec<String> = (0..300).map(|part| format!("part{part}")).collect();
    let rules = parts.iter().enumerate().map(|(part, name)| {
        let space = char::from_u32(0x1000 + part as u32).expect("a character");
        format!("{name} ::= \"{name}(\" ws{part} ([a-z]+ ws{part} (\",\" ws{part})?)* \")\"\nws{part} ::= [ {space}]*\n")
    });
    let grammar = ebnf(&format!(
        "root ::= ({})*\n{}",
        parts.join(" | "),
        rules.collect::<String>()
    ));
    let own = char::from_u32(0x1000 + 299).expect("a character");
    assert!(accepts(&grammar, &format!("part299({own}a{own},b)part0( a)")));
    assert!(!accepts(&grammar, &format!("part298({own}a)")));
    stays_flat(&grammar, &"part7( foo, bar )".repeat(200));
}

#[test]
fn long_arrays_and_deep_nesting_are_read() {
    let numbers = format!("[{}0]", "1,".repeat(11_000));
    stays_flat(
        &schema(r#"{"type": "array", "items": {"type": "integer"}}"#),
        &numbers,
    );
    let deep = schema(r##"{"type": "array", "items": {"$ref": "#"}}"##);
    stays_flat(&deep, &format!("{}{}", "[".repeat(2_000), "]".repeat(2_000)));
    assert!(accepts(
        &schema("true"),
        &format!("{}1{}", "[".repeat(2_000), "]".repeat(2_000))
    ));
}

fn properties(count: usize, required: bool) -> (String, String) {
    let (mut schema, mut text) = (String::new(), String::new());
    for index in 0..count {
        let comma = if index > 0 { "," } else { "" };
        write!(schema, "{comma}\"p{index}\": {{\"type\": \"integer\"}}").expect("strings grow");
        // The last comes first.
        write!(text, "{comma}\"p{}\":{index}", count - 1 - index).expect("strings grow");
    }
    let names: Vec<String> = (0..count).map(|index| format!("\"p{index}\"")).collect();
    let required = if required { names.join(",") } else { String::new() };
    let schema = format!(
        "{{\"type\": \"object\", \"properties\": {{{schema}}}, \"required\": [{required}], \"additionalProperties\": false}}"
    );
    (schema, format!("{{{text}}}"))
}

#[test]
fn thousands_of_properties_in_any_order() {
    for (count, required) in [(500, false), (501, false), (3_000, false), (3_000, true)] {
        let (source, text) = properties(count, required);
        let grammar = schema(&source);
        // Only the first keys and a whole object of the smaller ones: every key is a new set of those that
        // are left.
        let head = &text[..text.len().min(2_000)];
        let state = at(&grammar, head).unwrap_or_else(|| panic!("{count} properties"));
        assert!(!grammar.mask(state).is_empty());
        assert_eq!(accepts(&grammar, "{}"), !required);
        let twice = r#"{"p7":1,"p7""#;
        assert!(at(&grammar, twice).is_none(), "no key twice");
    }
    let (source, _) = properties(10_000, true);
    let grammar = schema(&source);
    assert!(allows(&grammar, grammar.start(), "{\"") && !accepts(&grammar, "{}"));
}

#[test]
fn thousands_of_alternatives() {
    let objects: Vec<String> = (0..2_500)
        .map(|index| {
            format!(
                r#"{{"type": "object", "properties": {{"kind": {{"const": "k{index}"}}, "v": {{"type": "integer"}}}}, "required": ["kind", "v"]}}"#
            )
        })
        .collect();
    let grammar = schema(&format!(r#"{{"anyOf": [{}]}}"#, objects.join(",")));
    assert!(
        accepts(&grammar, r#"{"kind": "k2499", "v": 1}"#)
            && !accepts(&grammar, r#"{"kind": "k2500", "v": 1}"#)
    );
    let words: Vec<String> = (0..20_000).map(|index| format!("\"word{index}\"")).collect();
    let grammar = schema(&format!(r#"{{"enum": [{}]}}"#, words.join(",")));
    assert!(accepts(&grammar, "\"word19999\"") && !accepts(&grammar, "\"word20000\""));
    let grammar = ebnf(&format!("s ::= {}", words[..5_000].join(" | ")));
    assert!(accepts(&grammar, "word4999") && !accepts(&grammar, "word5000"));
    let rules: String = (0..70_000).fold(String::new(), |mut rules, index| {
        writeln!(rules, "r{index} ::= \"{}\" r{}", index % 10, index + 1).expect("strings grow");
        rules
    });
    let grammar = ebnf(&format!("{rules}r70000 ::= \"end\""));
    assert!(at(&grammar, "012345678901").is_some() && at(&grammar, "02").is_none());
}

#[test]
fn patterns_with_lengths() {
    let password =
        r#"{"type": "string", "pattern": "^.*[0-9].*[a-z].*[A-Z].*$", "minLength": 8, "maxLength": 2000}"#;
    let grammar = schema(password);
    stays_flat(&grammar, &format!("\"1aB{}\"", "x".repeat(1_900)));
    let state = at(&grammar, "\"1a23456").expect("allowed");
    assert!(!allows(&grammar, state, "\"}") && !accepts(&grammar, "\"1a234567\""));
    let full = format!("\"{}1a", "x".repeat(1_997));
    let state = at(&grammar, &full).expect("one character is left, and it can be a capital letter");
    assert!(!allows(&grammar, state, "aa") && at(&grammar, &format!("{full}b")).is_none());
    let email = r#"{"type": "string", "format": "email", "pattern": "@example\\.com$", "minLength": 20}"#;
    let grammar = schema(email);
    assert!(accepts(&grammar, "\"somebody.else@example.com\"") && !accepts(&grammar, "\"me@example.com\""));
    assert!(!accepts(&grammar, "\"somebody.else@example.org\""));
    let counted = r#"{"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 1000000000}"#;
    stays_flat(&schema(counted), &format!("[{}0]", "1,".repeat(3_000)));
}

#[test]
fn values_and_keys_are_compared_as_written_in_full() {
    let grammar = schema(r#"{"const": 9007199254740993}"#);
    assert!(accepts(&grammar, "9007199254740993") && !accepts(&grammar, "9007199254740992"));
    let grammar = schema(r#"{"type": "integer", "minimum": 9007199254740993}"#);
    assert!(!accepts(&grammar, "9007199254740992") && accepts(&grammar, "123456789012345678901234567890"));
    let aliased = r#"{"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}}"#;
    let grammar = schema(aliased);
    assert!(accepts(&grammar, r#"{"a": 1, "b": "x"}"#));
    assert!(
        !accepts(&grammar, r#"{"a": 1, "\u0061": "x"}"#),
        "no key twice, however it is spelled"
    );
}

/// A mask found on one way must not be taken for that of another after a rollback: what may follow `)`
/// depends on how the text began, though the terminal stands in the same place.
#[test]
fn a_mask_belongs_to_its_state_whatever_was_asked_before() {
    let grammar = ebnf(r#"s ::= "1" x ";" | "2" x ","  x ::= [)(]+"#);
    let one = at(&grammar, "1)").expect("allowed");
    assert!(allows(&grammar, one, ");") && !allows(&grammar, one, "),"));
    let two = at(&grammar, "2)").expect("allowed");
    assert!(!allows(&grammar, two, ");") && allows(&grammar, two, "),"));
    assert!(
        allows(&grammar, one, ");") && !allows(&grammar, one, "),"),
        "and back again"
    );
    let union = r#"{"anyOf": [
        {"type": "object", "properties": {"t": {"const": "A"}, "s": {"type": "string"}}, "required": ["t", "s"], "additionalProperties": false},
        {"type": "object", "properties": {"t": {"const": "B"}, "s": {"type": "string"}, "n": {"type": "integer"}}, "required": ["t", "s", "n"], "additionalProperties": false}]}"#;
    let grammar = schema(union);
    for (text, ends, goes_on) in [
        (r#"{"t":"A","s":"x"#, true, false),
        (r#"{"t":"B","s":"x"#, false, true),
    ] {
        let state = at(&grammar, text).expect("allowed");
        assert_eq!(
            (allows(&grammar, state, "\"}"), allows(&grammar, state, "\",\"")),
            (ends, goes_on),
            "{text}"
        );
    }
}
