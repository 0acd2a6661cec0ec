//! The attacks: known ones that once succeeded, with the expected outcome of each, and random members of
//! their families.

use super::sources::{
    calls, counted_items, deep, labels, postfixes, product, prompt, properties, references, required, wide,
};
use crate::traffic::driver::{extended, said};
use crate::traffic::http::CHAT;
use serde_json::{Value, json};

/// The requests of an attack.
#[derive(Clone, Debug)]
pub(crate) enum Sent {
    /// Bodies for a path, all at once.
    Posts(&'static str, Vec<Value>),
    /// The same, but the clients leave after a second.
    Left(&'static str, Vec<Value>),
    /// A body as text, because it is nested deeper than a `Value` can be.
    Text(&'static str, String),
    /// A method and a path without a body.
    Ask(&'static str, &'static str),
    /// A number of connections that each send a number of bytes of a body and then wait.
    Unfinished(usize, usize),
    /// A body sent at one byte a second.
    Dribble,
}

/// The expected outcome of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A client error with a code, soon.
    Refused,
    /// A client error with a code or a good answer, soon.
    Answered,
    /// As `Answered`, but at any time: many requests are sent at once, and may wait for each other or be told
    /// to retry.
    InTurn,
    /// A page or an error with content, and no status of 404.
    Found,
    /// An error with content.
    Explained,
    /// Nothing, since the clients have left: the service stops working for them.
    Abandoned,
    /// The service closes the connection by itself.
    Closed,
}

/// One attack.
#[derive(Clone, Debug)]
pub(crate) struct Attack {
    pub(crate) name: String,
    pub(crate) sent: Sent,
    pub(crate) expected: Expected,
}

fn attack(name: impl Into<String>, sent: Sent, expected: Expected) -> Attack {
    let name = name.into();
    Attack { name, sent, expected }
}

const GRAMMARS: &str = "/v1/grammars";
const LINT: &str = "/v1/grammars/lint";

/// Returns a short request with additional fields.
fn chat(more: Value) -> Value {
    let body = json!({"model": "demo", "max_tokens": 8, "temperature": 0, "messages": said("Go on.")});
    extended(body, more)
}

/// Sends a short request with additional fields.
fn asked(name: impl Into<String>, more: Value, expected: Expected) -> Attack {
    attack(name, Sent::Posts(CHAT, vec![chat(more)]), expected)
}

fn grammar(name: impl Into<String>, source: String, expected: Expected) -> Attack {
    asked(name, json!({"guided_grammar": source}), expected)
}

fn schema(name: impl Into<String>, source: Value, expected: Expected) -> Attack {
    asked(name, json!({"guided_json": source}), expected)
}

/// Sends the same short request `count` times at once.
fn at_once(name: &str, count: usize, more: Value) -> Attack {
    attack(name, Sent::Posts(CHAT, vec![chat(more); count]), Expected::InTurn)
}

/// Returns the attacks that once succeeded, in the order of the report that named them.
pub(crate) fn known() -> Vec<Attack> {
    [
        deep_syntax(),
        deep_schemas(),
        masks(),
        products(),
        sizes(),
        neighbours(),
        connections(),
        fields(),
        small(),
        lists(),
        late(),
    ]
    .concat()
}

fn deep_syntax() -> Vec<Attack> {
    use Expected::{Answered, Refused};
    let of = |operator| {
        let name = format!("1 8,600 of {operator}");
        grammar(name, postfixes(operator, 8_600), Refused)
    };
    let source = postfixes("*", 8_600);
    let format = json!({"type": "grammar", "grammar": {"syntax": "ebnf", "definition": source}});
    let tool = json!({"type": "custom", "custom": {"name": "t", "format": format}});
    let calling = json!({"tools": [tool], "tool_choice": "required"});
    let posted = |path| Sent::Posts(path, vec![json!({"model": "demo", "guided_grammar": source})]);
    vec![
        of("*"),
        of("+"),
        of("{2}"),
        asked("1 the same in a tool", calling, Refused),
        attack("1 the same registered", posted(GRAMMARS), Refused),
        attack("1 the same for lint", posted(LINT), Answered),
    ]
}

fn deep_schemas() -> Vec<Attack> {
    let of = |count: usize| {
        let source = references(&json!({"allOf": ["N"]}), count);
        schema(format!("2 {count} references"), source, Expected::Answered)
    };
    vec![of(1_000), of(8_000)]
}

fn masks() -> Vec<Attack> {
    let of = |number: usize, what: &str, rule: &str, count: usize| {
        let name = format!("{number} {count} {what}");
        grammar(name, calls(rule, count), Expected::Answered)
    };
    vec![
        of(3, "nested loops", "(N \"x\")*", 2_000),
        of(3, "nested loops", "(N \"x\")*", 20_000),
        of(4, "rules of two", "N N | \"\"", 200),
        of(4, "rules of two", "N N | \"\"", 20_000),
    ]
}

fn products() -> Vec<Attack> {
    let of = |keyword: &str, typed: bool, count: usize| {
        let name = format!("5 {count} {keyword}{}", if typed { ", typed" } else { "" });
        schema(name, product(keyword, typed, count), Expected::Answered)
    };
    vec![
        of("oneOf", false, 20),
        of("oneOf", false, 30),
        of("anyOf", true, 12),
        of("anyOf", true, 14),
    ]
}

fn sizes() -> Vec<Attack> {
    use Expected::Refused;
    let prompted = |piece| json!({"messages": said(&prompt(piece, 3_900_000))});
    vec![
        schema("6 100,000 required", required(100_000), Refused),
        schema("6 90,000 properties", properties(90_000), Refused),
        asked("6 a prompt of words", prompted("word "), Refused),
        asked("6 a prompt of blanks", prompted(" "), Refused),
        at_once("6 16 such prompts", 16, prompted("word ")),
    ]
}

fn neighbours() -> Vec<Attack> {
    let heavy = json!({"guided_grammar": calls("(N \"x\")*", 600), "max_tokens": 64});
    let long = json!({"messages": said(&prompt("word ", 1_500)), "max_tokens": 64});
    let many = json!({"n": 16, "stream": true, "max_tokens": 128, "temperature": 1});
    vec![
        at_once("7 8 heavy grammars", 8, heavy),
        at_once("7 8 long prompts", 8, long),
        at_once("7 6 streams of 16", 6, many.clone()),
        at_once("7 20 streams of 16", 20, many),
    ]
}

fn connections() -> Vec<Attack> {
    use Expected::Closed;
    vec![
        attack("8 a byte at a time", Sent::Dribble, Closed),
        attack(
            "8 250 unfinished of 4 MB",
            Sent::Unfinished(250, 4_000_000),
            Closed,
        ),
        attack("8 900 unfinished", Sent::Unfinished(900, 100), Closed),
    ]
}

fn fields() -> Vec<Attack> {
    let refused =
        |name: &str, value: Value| asked(format!("9 {name}"), json!({name: value}), Expected::Refused);
    let format = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "integer"}}});
    vec![
        refused("response_fromat", format),
        refused("guided_regx", json!("a")),
        refused("max_tokns", json!(3)),
        refused("tool_choise", json!("none")),
    ]
}

fn small() -> Vec<Attack> {
    use Expected::{Answered, Explained, Found, Refused};
    let nested = Sent::Text(CHAT, deep("{\"a\":", "1", "}", 100_000));
    let items = json!({"type": "array", "items": {"type": "integer"}, "minItems": 1_000_000_000_000_u64});
    vec![
        attack("10 /docs/../x", Sent::Ask("GET", "/docs/../x"), Explained),
        attack("10 HEAD /live", Sent::Ask("HEAD", "/live"), Found),
        attack("10 /docs", Sent::Ask("GET", "/docs"), Found),
        attack("10 /favicon.ico", Sent::Ask("GET", "/favicon.ico"), Found),
        attack("10 deep JSON", nested, Refused),
        schema("10 items of a trillion", items, Answered),
    ]
}

/// Lists and objects that take long to count, or to mask.
fn lists() -> Vec<Attack> {
    use Expected::Answered;
    let any_order = json!({"guided_json": wide(300), "key_order": "any", "max_tokens": 2_500});
    let counts =
        json!({"guided_grammar": "root ::= ((\"a\" | \"b\"){1,300} \"c\"?){1,300}", "max_tokens": 400});
    let enumerated = json!({"guided_json": {"enum": labels(4_000, 8)}});
    vec![
        schema("11 20..21 of 80", counted_items(80), Answered),
        asked("11 300 keys in any order", any_order, Expected::InTurn),
        asked("11 counts in counts", counts, Expected::InTurn),
        asked("11 4,000 labels", enumerated, Answered),
        asked(
            "11 a tool without parameters",
            tool_without_parameters(),
            Answered,
        ),
    ]
}

fn tool_without_parameters() -> Value {
    let tool = json!({"type": "function", "function": {"name": "ping"}});
    json!({"tools": [tool], "tool_choice": "required", "max_tokens": 60})
}

/// Work for clients that have left.
fn late() -> Vec<Attack> {
    let left = |name: &str, more: Value, count: usize| {
        attack(
            name,
            Sent::Left(CHAT, vec![chat(more); count]),
            Expected::Abandoned,
        )
    };
    let wide = json!({"guided_json": wide(300), "key_order": "any", "max_tokens": 2_500});
    let search = json!({"guided_json": {"type": "object"}, "law": "global", "n": 16, "max_tokens": 400});
    let long = json!({"messages": said(&prompt("word ", 1_500)), "max_tokens": 400, "n": 8});
    vec![
        left(
            "12 20..21 of 80, left",
            json!({"guided_json": counted_items(80)}),
            6,
        ),
        left(
            "12 1,000 nested loops, left",
            json!({"guided_grammar": calls("(N \"x\")*", 1_000)}),
            6,
        ),
        left("12 300 keys, left", wide, 6),
        left("12 a law of many tries, left", search, 2),
        left("12 long prompts, left", long, 6),
    ]
}

/// Random numbers from a seed, the same on every machine.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.roll(list.len())]
    }

    /// Returns a size up to `most`, on a scale of powers of two.
    fn size(&mut self, most: usize) -> usize {
        let most = most >> self.roll(8);
        1 + most / 2 + self.roll(most / 2 + 1)
    }
}

/// Returns a random member of a family. The service decides whether it is too large.
pub(crate) fn member(family: usize, dice: &mut Dice) -> Attack {
    use Expected::Answered;
    match family {
        0 => {
            let operator = dice.pick(&["*", "+", "?", "{2}", "{0,3}", "*?+", "{1,}"]);
            let count = dice.size(40_000);
            let name = format!("f1 {count} of {operator}");
            grammar(name, postfixes(operator, count), Answered)
        }
        1 => {
            let (holder, count) = (dice.pick(&HOLDERS), dice.size(10_000));
            let name = format!("f2 {count} of {holder}");
            let holder = serde_json::from_str(holder).unwrap_or_default();
            schema(name, references(&holder, count), Answered)
        }
        2 => {
            let (body, count) = (dice.pick(&BODIES), dice.size(20_000));
            grammar(format!("f3 {count} of {body}"), calls(body, count), Answered)
        }
        3 => {
            let (keys, order) = (dice.size(600), dice.pick(&["any", "schema"]));
            let fields = json!({"guided_json": wide(keys), "key_order": order, "max_tokens": 3 * keys});
            asked(
                format!("f11 {keys} keys, order {order}"),
                fields,
                Expected::InTurn,
            )
        }
        4 => {
            let items = dice.size(200);
            schema(format!("f11 items of {items}"), counted_items(items), Answered)
        }
        5 => {
            let (keyword, typed, count) = (dice.pick(&["anyOf", "oneOf"]), dice.roll(2) == 1, dice.size(60));
            let name = format!("f5 {count} {keyword}, typed: {typed}");
            schema(name, product(keyword, typed, count), Answered)
        }
        _ => {
            let pairs = [("(", ")*"), ("((", ")|\"b\")"), ("{", "}"), ("(\"a\"? ", ")+")];
            let ((before, after), count) = (pairs[dice.roll(4)], dice.size(5_000));
            let source = deep(before, "\"a\"", after, count);
            grammar(
                format!("f10 {count} of {before}"),
                format!("root ::= {source}"),
                Answered,
            )
        }
    }
}

/// The number of families.
pub(crate) const FAMILIES: usize = 7;

/// Schemas that hold another one.
const HOLDERS: [&str; 8] = [
    r#"{"allOf":["N"]}"#,
    r#"{"anyOf":["N","N"]}"#,
    r#"{"not":"N"}"#,
    r#"{"if":"N","then":"N"}"#,
    r#"{"properties":{"a":"N"}}"#,
    r#"{"oneOf":["N",{"type":"null"}]}"#,
    r#"{"items":"N"}"#,
    r#"{"dependentSchemas":{"a":"N"}}"#,
];

/// Bodies of rules that call another one.
const BODIES: [&str; 9] = [
    "(N \"x\")*",
    "N N | \"\"",
    "N? N?",
    "N | N \"a\"",
    "\"a\" N \"b\" | N",
    "(N | \"y\"){0,9}",
    "N+ N*",
    "[a-c] N | [b-d] N",
    "(N \"x\")? N",
];
