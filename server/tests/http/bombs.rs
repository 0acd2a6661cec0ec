//! Constraints that bring other servers down, one by one: each is answered, or refused with a reason, and the
//! next request works. The letters are the themes of the complaints that were collected about such servers:
//!
//! | | theme |
//! |---|---|
//! | A1, A2, A3 | a bad schema kills the server, or the one after it does, or the matcher fails in the middle |
//! | B1 | a compile without an end |
//! | C1 | whitespace until the budget is used up |
//! | D1, D3 | keywords that are dropped; counts that are unrolled |

use serde_json::{Value, json};

use super::service::Service;

/// What must come of a constraint.
#[derive(Clone)]
enum Verdict {
    /// It is refused with this code.
    Refused(&'static str),
    /// The model, which says this, is held to it.
    Obeyed(&'static str, &'static str),
    /// It is refused because of a limit, or less is allowed than it says and that is told. Which it is may
    /// change with the compiler; what counts is that it is one of them.
    Bounded,
}
use Verdict::{Bounded, Obeyed, Refused};

fn nested(count: usize, open: &str, core: &str, close: &str) -> Value {
    json!(format!("{}{core}{}", open.repeat(count), close.repeat(count)))
}

fn conditions(count: usize) -> Value {
    let one = |number: usize| {
        json!({"if": {"properties": {format!("k{number}"): {"const": 1}}, "required": [format!("k{number}")]},
               "then": {"required": [format!("r{number}")]}, "else": {"required": [format!("s{number}")]}})
    };
    json!({"allOf": (0..count).map(one).collect::<Vec<_>>()})
}

fn optional(count: usize) -> Value {
    let property = |number: usize| (format!("k{number}"), json!({"type": "integer"}));
    let properties: serde_json::Map<String, Value> = (0..count).map(property).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

/// Pairs of rules that double the text at each level: the grammar is small and its only text has 2^60
/// letters.
fn doubling() -> Value {
    let rules = (0..60).map(|level| format!("a{level} ::= a{} a{}\n", level + 1, level + 1));
    json!(format!(
        "root ::= a0 | \"x\"\n{}a60 ::= \"x\"",
        rules.collect::<String>()
    ))
}

/// Choices in every part of a conjunction: written out, they are 4^14.
fn product() -> Value {
    let part = |number: usize| {
        let choice = |value: usize| json!({"properties": {format!("p{number}_{value}"): {"const": value}}});
        json!({"anyOf": (0..4).map(choice).collect::<Vec<_>>()})
    };
    json!({"allOf": (0..14).map(part).collect::<Vec<_>>()})
}

fn values(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("value {number}")).collect()
}

/// Values that are no pattern of a few kilobytes any more, and that share neither beginnings nor ends.
fn long_values(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("{number:05} {} {number}", "(.*)+ value".repeat(7)))
        .collect()
}

const LONG_VALUE: &str =
    "07777 (.*)+ value(.*)+ value(.*)+ value(.*)+ value(.*)+ value(.*)+ value(.*)+ value 7777";

/// A bomb: its theme, the field that takes it, the constraint, and what must come of it.
type Bomb = (&'static str, &'static str, Value, Verdict);

const LIMIT: &str = "grammar_too_complex";
const SCHEMA: &str = "invalid_json_schema";
const GRAMMAR: &str = "invalid_grammar";
const EMPTY: &str = "unsatisfiable_schema";

/// What makes others fall over.
fn malformed() -> Vec<Bomb> {
    let cycle =
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
    let none = json!({"type": "integer", "minimum": 5, "maximum": 4});
    let deep_schema = nested(5_000, "{\"not\":", "{}", "}");
    let left = json!("root ::= root \"a\" | \"b\"");
    let nul = Obeyed("zzz", "a\u{0}b");
    vec![
        ("A1 class", "guided_regex", json!("[a-"), Refused(GRAMMAR)),
        ("A1 NUL", "guided_regex", json!("a\u{0}b"), nul),
        (
            "A1 groups",
            "guided_regex",
            nested(20_000, "(", "a", ")"),
            Refused(LIMIT),
        ),
        (
            "A1 rules",
            "ebnf",
            nested(20_000, "(", "\"a\"", ")"),
            Refused(LIMIT),
        ),
        ("A1 schemas", "guided_json", deep_schema, Refused(LIMIT)),
        (
            "A1 half a pair",
            "guided_json",
            json!("{\"const\":\"\\ud800\"}"),
            Refused(SCHEMA),
        ),
        ("A1 cycle", "guided_json", cycle, Refused(SCHEMA)),
        ("A1 left recursion", "ebnf", left, Obeyed("baa", "baa")),
        ("A3 no end", "ebnf", json!("root ::= \"a\" root"), Refused(EMPTY)),
        ("A3 no value", "guided_json", none, Refused(EMPTY)),
    ]
}

/// What takes others minutes, or for ever.
fn expensive() -> Vec<Bomb> {
    let states = json!("(a|b)*a(a|b){24}");
    let hidden = json!({"type": "string", "pattern": "^(a|b)*a(a|b){18}$", "maxLength": 1_000_000});
    let counts = json!("((a{1000}){1000}){1000}");
    let many = Refused("invalid_value");
    vec![
        ("B1 states", "guided_regex", states, Refused(LIMIT)),
        ("B1 in a schema", "guided_json", hidden, Refused(LIMIT)),
        ("B1 counts", "guided_regex", counts, Refused(LIMIT)),
        ("B1 product", "guided_json", product(), Bounded),
        ("B1 conditions", "guided_json", conditions(24), Bounded),
        (
            "B1 backtracking",
            "guided_regex",
            json!("(x+x+)+y"),
            Obeyed("xxxxy", "xxxxy"),
        ),
        ("B1 doubling", "ebnf", doubling(), Obeyed("x", "x")),
        (
            "B1 values",
            "guided_choice",
            json!(values(4_000)),
            Obeyed("value 77", "value 77"),
        ),
        (
            "B1 long values",
            "guided_choice",
            json!(long_values(10_000)),
            Obeyed(LONG_VALUE, LONG_VALUE),
        ),
        ("B1 no values", "guided_choice", json!([]), many),
    ]
}

/// What others unroll, or drop.
fn counted() -> Vec<Bomb> {
    let long = json!({"type": "string", "maxLength": 1_000_000_000, "pattern": "^b*$"});
    let many = json!({"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 1_000_000_000});
    let far = json!({"$ref": "http://example.org/s"});
    let two = "{\"k7\":1,\"k299\":2}";
    vec![
        ("D1 the net", "guided_json", far, Refused(SCHEMA)),
        ("D3 items", "guided_json", many, Obeyed("[1,1]", "[1,1]")),
        ("D3 letters", "guided_json", long, Obeyed("\"bbb\"", "\"bbb\"")),
        (
            "D3 repetitions",
            "guided_regex",
            json!("b{3,1000000000}"),
            Obeyed("bbbb", "bbbb"),
        ),
        ("D3 properties", "guided_json", optional(300), Obeyed(two, two)),
    ]
}

#[test]
fn every_bomb_is_answered_or_refused_and_the_next_request_works() {
    let service = Service::start();
    for (theme, field, value, verdict) in [malformed(), expensive(), counted()].concat() {
        let said = if let Obeyed(said, _) = &verdict {
            *said
        } else {
            "x"
        };
        let answer = service.chat(&format!("echo {said}"), json!({field: value, "max_tokens": 200}));
        match verdict {
            Refused(code) => {
                assert_eq!(answer.status, 400, "{theme}: {}", answer.text());
                assert_eq!(answer.error_code(), code, "{theme}: {}", answer.text());
                assert!(answer.body.len() < 20_000, "{theme}: the error repeats its cause");
            }
            Bounded if answer.status == 200 => {
                assert_eq!(answer.header("x-lexiform-enforced"), Some("narrower"), "{theme}");
            }
            Bounded => assert_eq!(answer.error_code(), LIMIT, "{theme}"),
            Obeyed(_, text) => {
                assert_eq!(answer.status, 200, "{theme}: {}", answer.text());
                assert_eq!(answer.json()["choices"][0]["message"]["content"], text, "{theme}");
            }
        }
        // A2: what was compiled before decides nothing about what comes after.
        let next = service.chat("echo yes", json!({"guided_choice": ["yes", "no"]}));
        assert_eq!(
            next.json()["choices"][0]["message"]["content"],
            "yes",
            "after {theme}"
        );
    }
}

/// C1: a model that wants nothing but line breaks is not given the whole budget for them.
#[test]
fn whitespace_without_an_end_is_cut() {
    let service = Service::start();
    let schema = json!({"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]});
    let lines = format!("echo {}", "\n".repeat(400));
    let answer = service.chat(&lines, json!({"guided_json": schema, "max_tokens": 4_000}));
    let content = answer.json()["choices"][0]["message"]["content"].clone();
    let content = content.as_str().unwrap_or_default();
    let blanks = content.chars().filter(|letter| letter.is_whitespace()).count();
    assert!(blanks < 100, "{content:?}");
    assert_eq!(
        serde_json::from_str::<Value>(content)
            .ok()
            .map(|value| value["a"].clone()),
        Some(json!(1))
    );
}
