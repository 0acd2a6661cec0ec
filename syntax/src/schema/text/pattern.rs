//! The format `regex`: ECMA-262 patterns in Unicode mode, as far as they are a regular set.
//!
//! Groups nest in patterns without bound, names of groups are distinct, and bounds of counts and ranges are
//! in order: none of this is regular. The language here allows nested groups up to a certain depth, and none
//! of the rest.

use lexiform_automata::grammar::Part;

use super::hir::own_expression;

/// The deepest nesting of groups.
const GROUP_DEPTH: usize = 3;

/// The name of a group.
const NAME: &str = "<[A-Za-z_$][A-Za-z0-9_$]*>";

/// Returns the patterns, as an intersection of languages.
pub(super) fn parts() -> Vec<Part> {
    // Names of groups must be distinct, which is not regular, so at most one is allowed.
    let two_names = r".*\(\?<[A-Za-z_$].*\(\?<[A-Za-z_$].*";
    vec![
        Part::Match(own_expression(&expression())),
        Part::Not(own_expression(two_names)),
    ]
}

/// Returns a superset of the patterns: all texts that do not begin with a quantifier or a closing
/// parenthesis.
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

/// Returns alternatives of atoms and groups.
fn alternatives(single: &str, quantifier: &str, group: &str) -> String {
    format!(r"(?:{single}{quantifier}|[\^$|]|\\[bB]{group})*")
}
