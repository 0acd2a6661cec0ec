//! Grammars that are deep, wide, ambiguous, or that call each other many times.

use super::{Draw, joined, nested};

/// What a rule may say of the next one, `N`, and of one further on, `F`.
const CALLS: [&str; 22] = [
    "N",
    "N N | \"\"",
    "(N \"x\")*",
    "N N",
    "N?",
    "N* \"y\"",
    "N+",
    "\"a\" N | N \"b\"",
    "N | F",
    "N F | \"a\"",
    "(N | \"x\"){0,7}",
    "N{3}",
    "(N F)? \"c\"",
    "N? N? N?",
    "F N | N F",
    "[a-c] N | [b-d] F",
    "N \"a\" N \"b\" N",
    "\"(\" N \")\" | F",
    "(N? \"a\"? F?)*",
    "N | N \"a\" | N \"aa\"",
    "(\"a\" | N)* (\"b\" | F)*",
    "/a*/ N | /(a|b)+/",
];
const POSTFIXES: [&str; 9] = [
    "*", "+", "?", "{2}", "{0,2}", "{1,}", "{,3}", "{0,100}", "{7,1000}",
];
const LEAVES: [&str; 12] = [
    "\"a\"",
    "\"\"",
    "[a-z]",
    "[^a]",
    ".",
    "\"abab\"",
    "'x'",
    "#x41",
    "/a+b?/",
    "<|eos|>",
    "[a-zé]",
    "/[ab]{3,9}c/",
];

pub(super) fn source(draw: &mut Draw<'_>) -> String {
    match draw.roll(9) {
        0 => format!("root ::= {}", postfixes(draw)),
        1 => format!("root ::= {}", brackets(draw)),
        2 | 3 => calls(draw),
        4 => random(draw),
        5 => wide(draw),
        6 => long(draw),
        7 => counts(draw),
        _ => {
            // Calls whose last rule is one of the others.
            let core = match draw.roll(3) {
                0 => postfixes(draw),
                1 => brackets(draw),
                _ => expression(draw, 3, 1),
            };
            format!("{} core ::= {core}", calls_to(draw, "core"))
        }
    }
}

/// A leaf behind which postfix operators stand.
fn postfixes(draw: &mut Draw<'_>) -> String {
    let leaf = draw.pick(&LEAVES);
    let kinds: Vec<&str> = (0..draw.few()).map(|_| draw.pick(&POSTFIXES)).collect();
    let all = (0..draw.size()).map(|at| kinds[at % kinds.len()].to_owned());
    format!("{leaf} {}", joined(all, " "))
}

fn brackets(draw: &mut Draw<'_>) -> String {
    let before = draw.pick(&["(", "{ ", "(\"a\" ", "(\"a\" | ", "(", "(("]);
    let after = match (before, draw.pick(&["", "*", "?", "+", "{2}", " \"b\""])) {
        ("{ ", more) => format!(" }}{more}"),
        ("((", more) => format!("){more} \"c\")"),
        (_, more) => format!("){more}"),
    };
    nested(before, draw.pick(&LEAVES), &after, draw.size().min(3_000))
}

/// Rules that each call the next.
fn calls(draw: &mut Draw<'_>) -> String {
    let leaf = draw.pick(&LEAVES);
    calls_to(draw, leaf)
}

fn calls_to(draw: &mut Draw<'_>, last: &str) -> String {
    let kinds: Vec<&str> = (0..1 + draw.roll(3)).map(|_| draw.pick(&CALLS)).collect();
    let (count, further) = (draw.size(), 1 + draw.few());
    let is_ring = draw.roll(6) == 5;
    let name = |at: usize| match at {
        0 => "root".to_owned(),
        at if at < count => format!("r{at}"),
        _ if is_ring => "root".to_owned(),
        _ => last.to_owned(),
    };
    let rules = (0..count).map(|at| {
        let body = kinds[at % kinds.len()];
        let body = body.replace('N', &name(at + 1)).replace('F', &name(at + further));
        format!(
            "{} ::= {body}",
            if at == 0 {
                "root".to_owned()
            } else {
                format!("r{at}")
            }
        )
    });
    let all = joined(rules, "\n");
    let end = if is_ring { " | \"z\"\n" } else { "\n" };
    all + end
}

/// A few rules at random.
fn random(draw: &mut Draw<'_>) -> String {
    let count = draw.few();
    let rules = (0..count).map(|at| format!("r{at} ::= {}", expression(draw, 4, count)));
    joined(rules.collect::<Vec<_>>().into_iter(), "\n")
}

fn expression(draw: &mut Draw<'_>, depth: usize, rules: usize) -> String {
    if depth == 0 || draw.is_empty() {
        return draw.pick(&LEAVES).to_owned();
    }
    match draw.roll(6) {
        0 => draw.pick(&LEAVES).to_owned(),
        1 if rules > 1 => format!("r{}", draw.roll(rules)),
        2 => format!(
            "({}){}",
            expression(draw, depth - 1, rules),
            draw.pick(&POSTFIXES)
        ),
        3 => parts(draw, depth, rules, " | "),
        _ => parts(draw, depth, rules, " "),
    }
}

fn parts(draw: &mut Draw<'_>, depth: usize, rules: usize, between: &str) -> String {
    let parts: Vec<String> = (0..2 + draw.roll(3))
        .map(|_| expression(draw, depth - 1, rules))
        .collect();
    format!("({})", parts.join(between))
}

/// Many alternatives.
fn wide(draw: &mut Draw<'_>) -> String {
    let kind = draw.roll(5);
    let alternatives = (0..draw.size()).map(|at| match kind {
        0 => format!("\"w{at}\""),
        1 => format!("\"{}\"", "a".repeat(at % 400)),
        2 => format!("\"a\" r{}", at % 7),
        3 => format!("[a-z]{{{at}}} \"x\""),
        _ => format!("/(a|b)*{at}/"),
    });
    let helpers = (0..7).map(|at| format!("r{at} ::= \"b\" r{} | \"{at}\"", (at + 3) % 7));
    let postfix = draw.pick(&["", "*", "+", "{0,20}"]);
    format!(
        "root ::= ({}){postfix}\n{}",
        joined(alternatives, " | "),
        joined(helpers, "\n")
    )
}

/// A long sequence.
fn long(draw: &mut Draw<'_>) -> String {
    let kinds: Vec<&str> = (0..draw.few())
        .map(|_| {
            draw.pick(&[
                "\"a\"?",
                "[ab]*",
                "\"a\"",
                "(\"a\" | \"ab\")",
                "[a-z]{0,9}",
                "r?",
                "r*",
                "r",
            ])
        })
        .collect();
    let parts = (0..draw.size()).map(|at| kinds[at % kinds.len()].to_owned());
    let sequence = joined(parts, " ");
    format!(
        "root ::= {sequence}\nr ::= {}",
        draw.pick(&[
            "\"a\" r \"b\" | \"\"",
            "r \"a\" | \"b\"",
            "\"x\"",
            "r r | \"a\" | \"\""
        ])
    )
}

/// Counts within counts.
fn counts(draw: &mut Draw<'_>) -> String {
    let mut body = draw.pick(&LEAVES).to_owned();
    for _ in 0..draw.few() {
        let (low, more) = (draw.size(), draw.size());
        body = match draw.roll(4) {
            0 => format!("({body}){{{low}}}"),
            1 => format!("({body} \",\"){{{low},{}}}", low + more),
            2 => format!("({body} | \"b\"){{,{more}}}"),
            _ => format!("({body}? r){{{low},}}"),
        };
    }
    format!("root ::= {body}\nr ::= \"q\" r \"p\" | [a-d]{{0,9}}")
}
