//! Expressions that are deep or counted, and whose automata are large.

use super::{Draw, joined, nested};

const LEAVES: [&str; 18] = [
    "a",
    ".",
    "[a-z]",
    "[^a]",
    r"\d",
    r"\w",
    r"\p{L}",
    r"\P{Lu}",
    "é",
    "(a|b)",
    "(?:ab|a)",
    r"\b",
    "^",
    "$",
    "(?=a)",
    "(?!b)",
    r"[\s\S]",
    "(?i:straße)",
];
const POSTFIXES: [&str; 11] = [
    "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "{3,70}", "{0,999}", "{1000}", "{,3}",
];

pub(super) fn source(draw: &mut Draw<'_>) -> String {
    match draw.roll(8) {
        0 => postfixes(draw),
        1 => groups(draw),
        2 => counts(draw),
        3 => far_back(draw),
        4 => wide(draw),
        5 => long(draw),
        6 => looks(draw),
        _ => expression(draw, 5),
    }
}

fn postfixes(draw: &mut Draw<'_>) -> String {
    let kinds: Vec<&str> = (0..draw.few()).map(|_| draw.pick(&POSTFIXES)).collect();
    let group = draw.roll(2) == 1;
    let count = draw.size().min(if group { 2_000 } else { 40_000 });
    if group {
        let after = format!("){}", kinds[0]);
        return nested("(?:", draw.pick(&LEAVES), &after, count);
    }
    let all = (0..count).map(|at| kinds[at % kinds.len()].to_owned());
    format!("{}{}", draw.pick(&LEAVES), joined(all, ""))
}

fn groups(draw: &mut Draw<'_>) -> String {
    let before = draw.pick(&[
        "(", "(?:", "(a|", "(?=", "(?!", "(?<=", "(?<!", "(?i:", "[", "[a&&[", "(?:b", "|(",
    ]);
    let after = match before {
        "[" => "]",
        "[a&&[" => "]]",
        _ => draw.pick(&[")", ")*", ")?", "b)", ")|c", "){2}"]),
    };
    nested(before, draw.pick(&LEAVES), after, draw.size().min(10_000))
}

fn counts(draw: &mut Draw<'_>) -> String {
    let mut body = draw.pick(&LEAVES).to_owned();
    for _ in 0..draw.few() {
        let (low, more) = (draw.size(), draw.size());
        body = match draw.roll(4) {
            0 => format!("(?:{body}){{{low}}}"),
            1 => format!("(?:{body},){{{low},{}}}", low + more),
            2 => format!("(?:{body}|b){{0,{more}}}"),
            _ => format!("(?:{body}?c){{{low},}}"),
        };
    }
    body
}

/// Automata that remember the last letters: two to the power of their number.
fn far_back(draw: &mut Draw<'_>) -> String {
    let alphabet = draw.pick(&["[ab]", ".", r"\w", "(?:a|ab|b)", r"[\s\S]", r"\p{L}"]);
    let letter = draw.pick(&["a", "[ac]", "é", r"\d"]);
    let count = draw.size();
    format!("{alphabet}*{letter}{alphabet}{{{count}}}")
}

fn wide(draw: &mut Draw<'_>) -> String {
    let kind = draw.roll(4);
    let words = (0..draw.size()).map(|at| match kind {
        0 => format!("w{at}"),
        1 => "a".repeat(at % 500),
        2 => format!("[a-z]{{{at}}}x"),
        _ => format!(".*{at}"),
    });
    let postfix = draw.pick(&["", "*", "{0,9}"]);
    format!("({}){postfix}", joined(words, "|"))
}

fn long(draw: &mut Draw<'_>) -> String {
    let kinds: Vec<&str> = (0..draw.few())
        .map(|_| {
            draw.pick(&[
                "a?", "[ab]*", "a", "(?:a|ab)", r"\w{0,9}", "(?=.*a)", "(?!.*b)", r"\b", ".*",
            ])
        })
        .collect();
    joined((0..draw.size()).map(|at| kinds[at % kinds.len()].to_owned()), "")
}

/// Looking around is an intersection in the ECMA dialect.
fn looks(draw: &mut Draw<'_>) -> String {
    let kind = draw.roll(5);
    let looks = (0..draw.size().min(3_000)).map(|at| match kind {
        0 => format!("(?=.*w{at})"),
        1 => format!("(?!.*w{at}$)"),
        2 => format!("(?=(?:.{{{}}})*$)", at + 1),
        3 => format!("(?=[ab]*a[ab]{{{at}}}$)"),
        _ => format!("(?<!w{at})"),
    });
    format!(
        "^{}{}$",
        joined(looks, ""),
        draw.pick(&["[a-z]*", ".*", "[ab]*", "a{0,99}"])
    )
}

fn expression(draw: &mut Draw<'_>, depth: usize) -> String {
    if depth == 0 || draw.is_empty() {
        return draw.pick(&LEAVES).to_owned();
    }
    match draw.roll(5) {
        0 => draw.pick(&LEAVES).to_owned(),
        1 => format!("(?:{}){}", expression(draw, depth - 1), draw.pick(&POSTFIXES)),
        2 => format!(
            "(?:{}|{})",
            expression(draw, depth - 1),
            expression(draw, depth - 1)
        ),
        _ => [expression(draw, depth - 1), expression(draw, depth - 1)].concat(),
    }
}
