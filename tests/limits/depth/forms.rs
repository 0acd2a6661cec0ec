//! Sources that are made deep in one way each.

use std::fmt::Write;

/// What reads a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// `Source::Ebnf`.
    Ebnf,
    /// `Source::Regex`.
    Regex,
    /// `Source::JsonSchema`.
    Schema,
    /// The `pattern` of a schema, given without its quotes.
    Pattern,
}

/// One way to make a source deep.
pub(crate) struct Form {
    /// What is repeated, as a name.
    pub(crate) name: &'static str,
    /// Who reads it.
    pub(crate) reader: Reader,
    /// The source of a depth.
    pub(crate) source: fn(usize) -> String,
    /// From this depth on it takes more time than a test has, though no stack.
    pub(crate) slow: usize,
}

fn around(open: &str, inside: &str, close: &str, depth: usize) -> String {
    [&open.repeat(depth), inside, &close.repeat(depth)].concat()
}

/// A chain of definitions, each made of the next; `wrap` says how, the last one is `end`.
fn chain(root: &str, end: &str, depth: usize, wrap: impl Fn(usize, &str) -> String) -> String {
    let mut text = format!("{{{root}, \"$defs\": {{");
    for at in 0..depth {
        let next = format!("{{\"$ref\": \"#/$defs/a{}\"}}", at + 1);
        write!(text, "\"a{at}\": {}, ", wrap(at, &next)).expect("a String takes all");
    }
    write!(text, "\"a{depth}\": {end}}}}}").expect("a String takes all");
    text
}

fn rules(depth: usize, body: impl Fn(usize) -> String, end: &str) -> String {
    let mut text = "root ::= r0\n".to_owned();
    for at in 0..depth {
        writeln!(text, "r{at} ::= {}", body(at + 1)).expect("a String takes all");
    }
    writeln!(text, "r{depth} ::= {end}").expect("a String takes all");
    text
}

macro_rules! forms {
    ($($reader:ident $(below $slow:literal,)? $name:literal $make:expr;)*) => {
        &[$(Form { name: $name, reader: Reader::$reader, source: $make, slow: [$($slow,)? usize::MAX][0] }),*]
    };
}

const FLAT: &str = r##""$ref": "#/$defs/a0""##;
const CLOSED: &str = r##""$ref": "#/$defs/a0", "unevaluatedProperties": false"##;
const CLOSED_ITEMS: &str = r##""$ref": "#/$defs/a0", "unevaluatedItems": false"##;
const UNIQUE: &str = r##""type": "array", "uniqueItems": true, "items": {"$ref": "#/$defs/a0"}"##;
const ONE_OF: &str = r##""oneOf": [{"$ref": "#/$defs/a0"}, {"$ref": "#/$defs/a1"}, {"$ref": "#/$defs/a2"}]"##;
const CONTAINS: &str = r##""type": "array", "contains": {"$ref": "#/$defs/a0"}, "maxContains": 1"##;
const NOT: &str = r##""not": {"$ref": "#/$defs/a0"}"##;
const LAST: &str = r#"{"properties": {"x": {}}}"#;
const LEAF: &str = r#"{"type": "string", "maxLength": 3}"#;

/// A schema of a chain, by its place there and a reference to the next one.
type Wrap = fn(usize, &str) -> String;

/// The ways to combine a schema with the next one that a chain has.
fn wraps() -> Vec<(&'static str, Wrap)> {
    vec![
        ("ref", |_, next| next.to_owned()),
        ("allOf", |_, next| format!(r#"{{"allOf": [{next}]}}"#)),
        ("anyOf", |_, next| format!(r#"{{"anyOf": [{next}]}}"#)),
        ("anyOf two", |_, next| {
            format!(r#"{{"anyOf": [{next}, {{"type": "null"}}]}}"#)
        }),
        ("oneOf", |_, next| format!(r#"{{"oneOf": [{next}]}}"#)),
        ("oneOf two", |_, next| {
            format!(r#"{{"oneOf": [{next}, {{"type": "null"}}]}}"#)
        }),
        ("not", |_, next| format!(r#"{{"not": {next}}}"#)),
        ("if", |_, next| {
            format!(r#"{{"if": {next}, "then": {{"maxProperties": 9}}}}"#)
        }),
        ("then", |_, next| {
            format!(r#"{{"if": {{"required": ["q"]}}, "then": {next}}}"#)
        }),
        ("else", |_, next| {
            format!(r#"{{"if": {{"required": ["q"]}}, "else": {next}}}"#)
        }),
        ("dependentSchemas", |_, next| {
            format!(r#"{{"dependentSchemas": {{"q": {next}}}}}"#)
        }),
        ("items", |_, next| {
            format!(r#"{{"type": "array", "items": {next}}}"#)
        }),
        ("items min", |_, next| {
            format!(r#"{{"type": "array", "items": {next}, "minItems": 1}}"#)
        }),
        ("prefixItems", |_, next| {
            format!(r#"{{"type": "array", "prefixItems": [{next}], "minItems": 1}}"#)
        }),
        ("contains", |_, next| {
            format!(r#"{{"type": "array", "contains": {next}}}"#)
        }),
        ("properties", |_, next| {
            format!(r#"{{"type": "object", "properties": {{"x": {next}}}}}"#)
        }),
        ("required", |_, next| {
            format!(
                r#"{{"type": "object", "properties": {{"x": {next}}}, "required": ["x"], "additionalProperties": false}}"#
            )
        }),
        ("additionalProperties", |_, next| {
            format!(r#"{{"type": "object", "additionalProperties": {next}}}"#)
        }),
        ("patternProperties", |_, next| {
            format!(r#"{{"type": "object", "patternProperties": {{"^a": {next}}}}}"#)
        }),
        ("propertyNames", |_, next| {
            format!(r#"{{"propertyNames": {next}}}"#)
        }),
        ("unevaluatedProperties", |_, next| {
            format!(r#"{{"unevaluatedProperties": {next}}}"#)
        }),
        ("unevaluatedItems", |_, next| {
            format!(r#"{{"unevaluatedItems": {next}}}"#)
        }),
        ("allOf closed", |at, next| {
            format!(
                r#"{{"allOf": [{next}], "properties": {{"k{at}": true}}, "unevaluatedProperties": false}}"#
            )
        }),
        ("unique items", |_, next| {
            format!(r#"{{"type": "array", "items": {next}, "uniqueItems": true}}"#)
        }),
    ]
}

/// Schemas in which each definition refers to the next, under roots that ask different things of them.
pub(crate) fn chains(depth: usize) -> Vec<(String, String)> {
    let mut sources = Vec::new();
    for (root_name, root) in [
        ("flat", FLAT),
        ("closed", CLOSED),
        ("closed items", CLOSED_ITEMS),
        ("unique", UNIQUE),
        ("oneOf", ONE_OF),
        ("contains", CONTAINS),
        ("not", NOT),
    ] {
        for (name, wrap) in wraps() {
            for (end_name, end) in [("object", LAST), ("string", LEAF)] {
                let depth = depth.max(3);
                sources.push((
                    format!("{root_name}/{name}/{end_name}"),
                    chain(root, end, depth, wrap),
                ));
            }
        }
    }
    sources
}

/// Schemas written inside each other.
pub(crate) fn nested(depth: usize) -> Vec<(String, String)> {
    let mut sources = Vec::new();
    for (name, wrap) in wraps() {
        for (end_name, end) in [("object", LAST), ("string", LEAF)] {
            let whole = wrap(0, "\u{1}");
            let (open, close) = whole.split_once('\u{1}').expect("there is a place");
            sources.push((
                format!("nested {name}/{end_name}"),
                around(open, end, close, depth),
            ));
        }
    }
    sources
}

/// All other ways.
pub(crate) fn forms() -> impl Iterator<Item = &'static Form> {
    [grammars(), expressions(), patterns(), schemas()]
        .into_iter()
        .flatten()
}

fn grammars() -> &'static [Form] {
    forms! {
        Ebnf "groups" |n| format!("root ::= {}", around("(", "\"a\"", ")", n));
        Ebnf "braces" |n| format!("root ::= {}", around("{", "\"a\"", "}", n));
        Ebnf "repeated groups" |n| format!("root ::= {}", around("(", "\"a\"", ")*", n));
        Ebnf "groups with parts" |n| format!("root ::= {}", around("(\"b\" ", "\"a\"", " | \"c\")+", n));
        Ebnf "calls in groups" |n| format!("root ::= {}", around("(root ", "\"a\"", " | \"c\")?", n));
        Ebnf "stars" |n| format!("root ::= \"a\"{}", "*".repeat(n));
        Ebnf "pluses" |n| format!("root ::= \"a\"{}", "+".repeat(n));
        Ebnf "questions" |n| format!("root ::= \"a\"{}", "?".repeat(n));
        Ebnf "counts" |n| format!("root ::= \"a\"{}", "{2}".repeat(n));
        Ebnf "counts of one" |n| format!("root ::= \"a\"{}", "{1}".repeat(n));
        Ebnf "open counts" |n| format!("root ::= \"a\"{}", "{0,2}".repeat(n));
        Ebnf "stars of a class" |n| format!("root ::= [a-z]{}", "*".repeat(n));
        Ebnf "counts of a class" |n| format!("root ::= [a-z]{}", "{2}".repeat(n));
        Ebnf "mixed postfixes" |n| format!("root ::= root \"a\"{} \"b\" | \"c\"", "*?+".repeat(n / 3 + 1));
        Ebnf "postfixes of a call" |n| format!("root ::= r{} \"b\" | \"c\" r ::= root \"x\" | \"y\"", "*?".repeat(n / 2 + 1));
        Ebnf "comments" |n| format!("root ::= {} \"a\"", "(* ".repeat(n) + "*)");
        Ebnf "alternatives" |n| format!("root ::= \"a\"{}", " | \"b\"".repeat(n));
        Ebnf "alternatives with calls" |n| format!("root ::= \"a\"{}", " | \"b\" root \"c\"".repeat(n));
        Ebnf "parts" |n| format!("root ::= \"a\"{}", " \"b\"".repeat(n));
        Ebnf "empty alternatives" |n| format!("root ::= {}", " |".repeat(n));
        Ebnf "unclosed" |n| format!("root ::= {}", "(".repeat(n));
        Ebnf "unopened" |n| format!("root ::= \"a\" {}", ")".repeat(n));
        Ebnf "negated class" |n| format!("root ::= [{}]", "^a-z".repeat(n));
        Ebnf "rules" |n| rules(n, |next| format!("r{next}"), "\"z\"");
        Ebnf "rules of a text" |n| rules(n, |next| format!("\"a\" r{next}"), "\"z\"");
        Ebnf "rules around" |n| rules(n, |next| format!("\"(\" r{next} \")\" | \"x\""), "\"z\" | r0");
        Ebnf "repeated rules" |n| rules(n, |next| format!("(r{next} \"x\")*"), "\"z\"");
        Ebnf "rules in circle" |n| rules(n, |next| format!("r{next} \"x\" | \"y\""), "\"z\" | r0");
        Ebnf below 30, "rules twice" |n| rules(n, |next| format!("r{next} r{next} | \"\""), "\"z\"");
        Ebnf "optional rules" |n| rules(n, |next| format!("r{next}? \"a\""), "\"z\"");
        Ebnf "rules of groups" |n| rules(n / 100 + 1, |next| around("(\"a\" ", &format!("r{next}"), ")?", 100), "\"z\"");
        Ebnf "expression groups" |n| format!("root ::= /{}/", around("(", "a", ")", n));
        Ebnf "expression stars" |n| format!("root ::= /a{}/", "*".repeat(n));
        Ebnf "expressions in groups" |n| format!("root ::= {}", around("(", &format!("/{}/", around("(", "a", ")*", n.min(240))), ")*", n));
    }
}

fn expressions() -> &'static [Form] {
    forms! {
        Regex "groups" |n| around("(", "a", ")", n);
        Regex "repeated groups" |n| around("(?:", "a", ")*", n);
        Regex "counted groups" |n| around("(?:b", "a", "){0,2}", n);
        Regex "flags" |n| around("(?i:", "a", ")", n);
        Regex "stars" |n| format!("a{}", "*".repeat(n));
        Regex "pluses" |n| format!("a{}", "+".repeat(n));
        Regex "counts" |n| format!("a{}", "{2}".repeat(n));
        Regex "counts of a group" |n| format!("(?:ab|c){}", "{0,2}".repeat(n));
        Regex "classes" |n| around("[", "a", "]", n);
        Regex "class intersections" |n| format!("[{}a]", "a&&".repeat(n));
        Regex "class differences" |n| format!("[{}a]", "a--".repeat(n));
        Regex "class intersections inside" |n| around("[a&&", "a", "]", n);
        Regex "negated classes" |n| around("[^", "a", "]", n);
        Regex "alternatives" |n| format!("a{}", "|ab".repeat(n));
        Regex "anchors" |n| format!("a{}", "$".repeat(n));
        Regex "boundaries" |n| format!("a{}", r"\b".repeat(n));
        Regex "words" |n| format!("a{}", r"\b a".repeat(n));
        Regex "boundaries in groups" |n| around(r"(?:\b", "a", " )*", n);
        Regex "flags in a row" |n| format!("a{}", "(?i)".repeat(n));
    }
}

fn patterns() -> &'static [Form] {
    forms! {
        Pattern "groups" |n| around("(", "a", ")", n);
        Pattern "repeated groups" |n| around("(?:", "a", ")*", n);
        Pattern "groups with alternatives" |n| around("(b", "a", "|c)+", n);
        Pattern "lookaheads" |n| around("(?=", "ab", ")", n);
        Pattern "negative lookaheads" |n| around("(?!", "ab", ")", n);
        Pattern "lookaheads from the start" |n| around("^(?=a", "ab", ")", n);
        Pattern "denied lookaheads from the start" |n| around("^(?!", "ab", ")$", n);
        Pattern "lookbehinds" |n| around("(?<=", "ab", ")", n);
        Pattern "negative lookbehinds" |n| around("(?<!", "ab", ")", n);
        Pattern "lookaheads in groups" |n| around("(?:(?=ab)", "ab", ")*", n);
        Pattern "lookaheads in a row" |n| format!("^{}ab$", "(?=ab)".repeat(n));
        Pattern "denied in a row" |n| format!("^{}ab$", "(?!ba)".repeat(n));
        Pattern "lookbehinds in a row" |n| format!("^ab{}$", "(?<=ab)".repeat(n));
        Pattern "a text behind lookaheads" |n| format!("^(?:(?!ab)c?[a-c])*{}$", "xyz".repeat(n / 3));
        Pattern "ways behind lookaheads" |n| format!("^(?:(?!ab)c?[a-c])*{}$", "(?:x|yz)".repeat(n / 3));
        Pattern "optional texts behind lookaheads" |n| format!("^(?:(?!ab)c?[a-c])*{}$", "(?:xy)?".repeat(n / 3));
        Pattern "boundaries between texts" |n| format!("^{}$", r"(?:a\\b b)?".repeat(n / 3));
        Pattern "anchors" |n| format!("{}a", "^".repeat(n));
        Pattern "boundaries in groups" |n| around(r"(?:\\b", "a", " )*", n);
        Pattern "boundaries in a row" |n| format!("a{}", r"\\b a".repeat(n));
        Pattern "optional" |n| format!("^{}$", "a?".repeat(n));
        Pattern "alternatives" |n| format!("a{}", "|b".repeat(n));
    }
}

fn schemas() -> &'static [Form] {
    forms! {
        Schema "arrays" |n| around("[", "", "]", n);
        Schema "objects" |n| around(r#"{"a":"#, "1", "}", n);
        Schema "const of arrays" |n| format!(r#"{{"const": {}}}"#, around("[", "", "]", n));
        Schema "enum of objects" |n| format!(r#"{{"enum": [{}]}}"#, around(r#"{"a":"#, "1", "}", n));
        Schema "not const" |n| format!(r#"{{"type": "array", "not": {{"const": {}}}}}"#, around("[", "1", "]", n));
        Schema "unique constants" |n| {
            let deep = around("[", "1", "]", n);
            format!(r#"{{"type": "array", "uniqueItems": true, "items": {{"enum": [{deep}, [{deep}]]}}}}"#)
        };
        Schema "default" |n| format!(r#"{{"default": {}}}"#, around("[", "", "]", n));
        Schema "definitions" |n| around(r#"{"$defs":{"a":"#, "true", "}}", n);
        Schema "unknown" |n| around(r#"{"x-a":"#, "true", "}", n);
        Schema below 10_000, "many in allOf" |n| format!(r#"{{"allOf": [true{}]}}"#, r#", {"maxLength": 5}"#.repeat(n));
        Schema below 10_000, "many in anyOf" |n| format!(r#"{{"anyOf": [true{}]}}"#, r#", {"maxLength": 5}"#.repeat(n));
        Schema "circle of items" |n| {
            chain(FLAT, r##"{"$ref": "#/$defs/a0"}"##, n, |_, next| format!(r#"{{"type": "array", "items": {next}, "minItems": 1}}"#))
        };
        Schema "circle of properties" |n| {
            chain(FLAT, r##"{"$ref": "#/$defs/a0"}"##, n, |_, next| format!(r#"{{"type": "object", "properties": {{"x": {next}}}}}"#))
        };
        Schema "identifiers" |n| around(r#"{"$id": "a/b", "items": "#, "true", "}", n);
        Schema "dynamic references" |n| {
            let mut text = r#"{"$id": "http://t/root", "$dynamicAnchor": "n", "$ref": "d0", "$defs": {"#.to_owned();
            for at in 0..n {
                write!(
                    text,
                    r##""d{at}": {{"$id": "d{at}", "$dynamicAnchor": "m{at}", "properties": {{"x": {{"$ref": "d{}"}}, "y": {{"$dynamicRef": "#m{at}"}}}}}}, "##,
                    at + 1
                )
                .expect("a String takes all");
            }
            write!(text, r##""d{n}": {{"$id": "d{n}", "$dynamicAnchor": "n", "properties": {{"y": {{"$dynamicRef": "#n"}}}}}}}}}}"##).expect("a String takes all");
            text
        };
        Schema "recursive references" |n| {
            let open = r#"{"$recursiveAnchor": true, "properties": {"x": "#;
            format!(r#"{{"$schema": "https://json-schema.org/draft/2019-09/schema", "properties": {{"y": {}}}}}"#, around(open, r##"{"$recursiveRef": "#"}"##, "}}", n))
        };
        Schema "digits" |n| format!(r#"{{"multipleOf": 1e-{}}}"#, "9".repeat(n.min(30)));
        Schema "long numbers" |n| format!(r#"{{"type": "number", "minimum": 0.{}1}}"#, "0".repeat(n));
    }
}
