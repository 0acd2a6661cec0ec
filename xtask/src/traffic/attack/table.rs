//! The attacks: known ones that once succeeded, with the expected outcome of each, and random members of
//! their families.

use super::sources::{calls, deep, postfixes, product, prompt, properties, references, required};
use serde_json::{Value, json};

/// The requests of an attack.
#[derive(Clone, Debug)]
pub(crate) enum Sent {
    /// Bodies for a path, all at once.
    Posts(&'static str, Vec<Value>),
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
    Attack {
        name: name.into(),
        sent,
        expected,
    }
}

const CHAT: &str = "/v1/chat/completions";
const GRAMMARS: &str = "/v1/grammars";
const LINT: &str = "/v1/grammars/lint";

/// Returns a short request with additional fields.
fn chat(more: Value) -> Value {
    let mut body = json!({"model": "demo", "max_tokens": 8, "temperature": 0, "messages": [{"role": "user", "content": "Go on."}]});
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    body
}

fn grammar(name: impl Into<String>, source: String, expected: Expected) -> Attack {
    attack(
        name,
        Sent::Posts(CHAT, vec![chat(json!({"guided_grammar": source}))]),
        expected,
    )
}

fn schema(name: impl Into<String>, source: Value, expected: Expected) -> Attack {
    attack(
        name,
        Sent::Posts(CHAT, vec![chat(json!({"guided_json": source}))]),
        expected,
    )
}

/// Sends the same body `count` times at once.
fn at_once(name: &str, count: usize, body: Value) -> Attack {
    attack(name, Sent::Posts(CHAT, vec![body; count]), Expected::InTurn)
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
    ]
    .concat()
}

fn deep_syntax() -> Vec<Attack> {
    use Expected::Refused;
    let mut all: Vec<Attack> = ["*", "+", "{2}"]
        .map(|operator| {
            grammar(
                format!("1 8,600 of {operator}"),
                postfixes(operator, 8_600),
                Refused,
            )
        })
        .into();
    let source = postfixes("*", 8_600);
    let tool = json!({"type": "custom", "custom": {"name": "t", "format": {"type": "grammar", "grammar": {"syntax": "ebnf", "definition": source}}}});
    let calling = chat(json!({"tools": [tool], "tool_choice": "required"}));
    all.push(attack(
        "1 the same in a tool",
        Sent::Posts(CHAT, vec![calling]),
        Refused,
    ));
    let body = json!({"model": "demo", "guided_grammar": source});
    all.push(attack(
        "1 the same registered",
        Sent::Posts(GRAMMARS, vec![body.clone()]),
        Refused,
    ));
    all.push(attack(
        "1 the same for lint",
        Sent::Posts(LINT, vec![body]),
        Expected::Answered,
    ));
    all
}

fn deep_schemas() -> Vec<Attack> {
    let holder = json!({"allOf": ["N"]});
    let of = |count: usize| {
        schema(
            format!("2 {count} references"),
            references(&holder, count),
            Expected::Answered,
        )
    };
    vec![of(1_000), of(8_000)]
}

fn masks() -> Vec<Attack> {
    use Expected::Answered;
    let stars = |count: usize| {
        grammar(
            format!("3 {count} nested loops"),
            calls("(N \"x\")*", count),
            Answered,
        )
    };
    let twos = |count: usize| {
        grammar(
            format!("4 {count} rules of two"),
            calls("N N | \"\"", count),
            Answered,
        )
    };
    vec![stars(2_000), stars(20_000), twos(200), twos(20_000)]
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
    let prompted = |text: &str| json!({"model": "demo", "max_tokens": 8, "messages": [{"role": "user", "content": text}]});
    let words = prompt("word ", 3_900_000);
    vec![
        schema("6 100,000 required", required(100_000), Refused),
        schema("6 90,000 properties", properties(90_000), Refused),
        attack(
            "6 a prompt of words",
            Sent::Posts(CHAT, vec![prompted(&words)]),
            Refused,
        ),
        attack(
            "6 a prompt of blanks",
            Sent::Posts(CHAT, vec![prompted(&prompt(" ", 3_900_000))]),
            Refused,
        ),
        at_once("6 16 such prompts", 16, prompted(&words)),
    ]
}

fn neighbours() -> Vec<Attack> {
    let heavy = chat(json!({"guided_grammar": calls("(N \"x\")*", 600), "max_tokens": 64}));
    let long =
        chat(json!({"messages": [{"role": "user", "content": prompt("word ", 1_500)}], "max_tokens": 64}));
    let many = chat(json!({"n": 16, "stream": true, "max_tokens": 128, "temperature": 1}));
    vec![
        at_once("7 8 heavy grammars", 8, heavy),
        at_once("7 8 long prompts", 8, long),
        at_once("7 6 streams of 16", 6, many.clone()),
        at_once("7 20 streams of 16", 20, many),
    ]
}

fn connections() -> Vec<Attack> {
    vec![
        attack("8 a byte at a time", Sent::Dribble, Expected::Closed),
        attack(
            "8 250 unfinished of 4 MB",
            Sent::Unfinished(250, 4_000_000),
            Expected::Closed,
        ),
        attack("8 900 unfinished", Sent::Unfinished(900, 100), Expected::Closed),
    ]
}

fn fields() -> Vec<Attack> {
    let refused = |name: &str, more: Value| {
        attack(
            format!("9 {name}"),
            Sent::Posts(CHAT, vec![chat(more)]),
            Expected::Refused,
        )
    };
    let format = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "integer"}}});
    vec![
        refused("response_fromat", json!({"response_fromat": format})),
        refused("guided_regx", json!({"guided_regx": "a"})),
        refused("max_tokns", json!({"max_tokns": 3})),
        refused("tool_choise", json!({"tool_choise": "none"})),
    ]
}

fn small() -> Vec<Attack> {
    vec![
        attack(
            "10 /docs/../x",
            Sent::Ask("GET", "/docs/../x"),
            Expected::Explained,
        ),
        attack("10 HEAD /live", Sent::Ask("HEAD", "/live"), Expected::Found),
        attack("10 /docs", Sent::Ask("GET", "/docs"), Expected::Found),
        attack(
            "10 /favicon.ico",
            Sent::Ask("GET", "/favicon.ico"),
            Expected::Found,
        ),
        attack(
            "10 deep JSON",
            Sent::Text(CHAT, deep("{\"a\":", "1", "}", 100_000)),
            Expected::Refused,
        ),
        schema(
            "10 items of a trillion",
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 1_000_000_000_000_u64}),
            Expected::Answered,
        ),
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
            let (operator, count) = (
                dice.pick(&["*", "+", "?", "{2}", "{0,3}", "*?+", "{1,}"]),
                dice.size(40_000),
            );
            grammar(
                format!("f1 {count} of {operator}"),
                postfixes(operator, count),
                Answered,
            )
        }
        1 => {
            let holders = [
                r#"{"allOf":["N"]}"#,
                r#"{"anyOf":["N","N"]}"#,
                r#"{"not":"N"}"#,
                r#"{"if":"N","then":"N"}"#,
                r#"{"properties":{"a":"N"}}"#,
                r#"{"oneOf":["N",{"type":"null"}]}"#,
                r#"{"items":"N"}"#,
                r#"{"dependentSchemas":{"a":"N"}}"#,
            ];
            let (holder, count) = (dice.pick(&holders), dice.size(10_000));
            let holder_value = serde_json::from_str(holder).unwrap_or_default();
            schema(
                format!("f2 {count} of {holder}"),
                references(&holder_value, count),
                Answered,
            )
        }
        2 => {
            let bodies = [
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
            let (body, count) = (dice.pick(&bodies), dice.size(20_000));
            grammar(format!("f3 {count} of {body}"), calls(body, count), Answered)
        }
        3 => {
            let (keyword, typed, count) = (dice.pick(&["anyOf", "oneOf"]), dice.roll(2) == 1, dice.size(60));
            schema(
                format!("f5 {count} {keyword}, typed: {typed}"),
                product(keyword, typed, count),
                Answered,
            )
        }
        _ => {
            let (before, after) =
                [("(", ")*"), ("((", ")|\"b\")"), ("{", "}"), ("(\"a\"? ", ")+")][dice.roll(4)];
            let count = dice.size(5_000);
            grammar(
                format!("f10 {count} of {before}"),
                format!("root ::= {}", deep(before, "\"a\"", after, count)),
                Answered,
            )
        }
    }
}

/// The number of families.
pub(crate) const FAMILIES: usize = 5;
