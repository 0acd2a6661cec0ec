//! The format `regex`: ECMA-262 patterns in Unicode mode, as far as they are a regular set.
//!
//! Groups nest in patterns without bound, names of groups differ from each other, and bounds of counts and
//! ranges are in order: none of that is regular. The language here has groups inside groups up to a depth,
//! and none of the rest.

use lexiform_automata::grammar::Part;

use super::hir::own_expression;

/// How deep groups may be nested.
const GROUP_DEPTH: usize = 3;

/// The name of a group.
const NAME: &str = "<[A-Za-z_$][A-Za-z0-9_$]*>";

/// Patterns, as languages that intersect.
pub(super) fn parts() -> Vec<Part> {
    // Names of groups differ from each other, which is not regular, so there is one at most.
    let two_names = r".*\(\?<[A-Za-z_$].*\(\?<[A-Za-z_$].*";
    vec![
        Part::Match(own_expression(&expression())),
        Part::Not(own_expression(two_names)),
    ]
}

/// Words that have the patterns among them: all that do not begin with what repeats or closes something.
pub(super) fn wider() -> Vec<Part> {
    vec![Part::Match(own_expression(r"(?:[^*+?)].*)?"))]
}

fn expression() -> String {
    let control = "c[A-Za-z]|[dDsSwWfnrtv0]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}";
    let syntax = r"[\^$\\.*+?()\[\]{}|/]";
    let in_class = format!(r"(?:[^\\\]\-]|\\(?:{control}|b|-|{syntax}))");
    let ranges = "a-z|A-Z|0-9|a-f|A-F";
    let class = format!(r"\[\^?-?(?:{ranges}|{in_class})*-?\]");
    let single = format!(r"(?:[^\^$\\.*+?()\[\]{{}}|/]|\.|\\(?:{control}|{syntax})|{class})");
    let counts: Vec<String> = (0..=9).map(|low| format!("{low},[{low}-9]")).collect();
    let count = format!(r"\{{(?:[0-9]+|[0-9]+,|{})\}}", counts.join("|"));
    let quantifier = format!(r"(?:(?:[*+?]|{count})\??)?");
    let mut group = String::new();
    for depth in (0..GROUP_DEPTH).rev() {
        let body = alternatives(&single, &quantifier, &group);
        // Only the outermost groups have names, which keeps the automaton small.
        let begin = if depth == 0 {
            format!(r"\?:|\?{NAME}")
        } else {
            r"\?:".to_owned()
        };
        group = format!(r"|\((?:{begin})?{body}\){quantifier}|\(\?<?[=!]{body}\)");
    }
    alternatives(&single, &quantifier, &group)
}

/// Alternatives of atoms and groups.
fn alternatives(single: &str, quantifier: &str, group: &str) -> String {
    format!(r"(?:{single}{quantifier}|[\^$|]|\\[bB]{group})*")
}
