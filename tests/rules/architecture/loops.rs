//! Loops of queries pay for their rounds, so that every query ends with its allowance, and is cancelled when
//! nobody waits for its answer.
//!
//! A `for` goes through what is there. A `while` or `loop` finds its own end, so it pays in its body, by a
//! call of `spend`, of a cancellation or of a query; or it is listed here with what bounds it.

use super::source::{Function, SourceFile, all_sources};

/// The rooms whose loops answer queries to a compiled grammar.
const ROOMS: [&str; 7] = [
    "automata/src/pushdown",
    "automata/src/mask",
    "automata/src/budget",
    "automata/src/matcher",
    "automata/src/language/attributes",
    "src/repair/json/write.rs",
    "src/repair/between.rs",
];

/// What a loop pays with.
const PAYS: [&str; 4] = ["spend(", "is_asked()", ".ask(", ".ask_once("];

/// What bounds a loop that does not pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// It visits each part of a grammar once, and once for a grammar.
    Parts,
    /// It goes along a number, a list or a text that is there.
    Given,
    /// It calls a function of its file that pays.
    Calls(&'static str),
}

/// The functions with loops that do not pay, each with what bounds them.
const BOUNDED: &[(&str, &str, Bound)] = &[
    ("automata/src/pushdown.rs", "place_of", Bound::Parts),
    ("automata/src/pushdown/describe.rs", "rules", Bound::Given),
    ("automata/src/pushdown/describe.rs", "fixed_text", Bound::Given),
    ("automata/src/pushdown/describe.rs", "shortest_word", Bound::Parts),
    (
        "automata/src/pushdown/distance/bare.rs",
        "bare_progress",
        Bound::Given,
    ),
    ("automata/src/pushdown/distance/free.rs", "new", Bound::Parts),
    ("automata/src/pushdown/distance/list.rs", "fill", Bound::Given),
    (
        "automata/src/pushdown/equivalence/frames.rs",
        "without_properties",
        Bound::Given,
    ),
    (
        "automata/src/pushdown/intern/index.rs",
        "first_place",
        Bound::Given,
    ),
    (
        "automata/src/pushdown/multibyte_step.rs",
        "step_bytes",
        Bound::Given,
    ),
    (
        "automata/src/pushdown/object/count_table.rs",
        "reach",
        Bound::Given,
    ),
    ("automata/src/pushdown/object/key_frame.rs", "taken", Bound::Given),
    (
        "automata/src/pushdown/plan/analysis.rs",
        "prune_nodes",
        Bound::Parts,
    ),
    (
        "automata/src/pushdown/plan/analysis.rs",
        "unproductive",
        Bound::Parts,
    ),
    (
        "automata/src/pushdown/plan/analysis.rs",
        "blocking_rule",
        Bound::Parts,
    ),
    (
        "automata/src/pushdown/plan/analysis.rs",
        "find_leading_nodes",
        Bound::Parts,
    ),
    (
        "automata/src/pushdown/plan/fixed_point.rs",
        "after_text",
        Bound::Parts,
    ),
    ("automata/src/pushdown/stack.rs", "upper", Bound::Given),
    ("automata/src/mask/skip/closed.rs", "find", Bound::Parts),
    ("automata/src/mask/walk.rs", "walk", Bound::Calls("leave")),
    ("automata/src/mask/walk.rs", "run", Bound::Calls("enter")),
    ("automata/src/mask/walk/level.rs", "next_child", Bound::Given),
    ("automata/src/matcher.rs", "follow_forced", Bound::Given),
    ("automata/src/matcher/walk.rs", "new", Bound::Given),
    (
        "automata/src/language/attributes/shortest_words.rs",
        "lengths",
        Bound::Calls("layer"),
    ),
];

/// A loop that finds its own end.
struct Loop {
    line: usize,
    body: String,
}

/// Returns the loops of a file that find their own ends. The code is formatted, so a loop ends at the first
/// brace in the column in which it begins.
fn loops(code: &str) -> Vec<Loop> {
    let lines: Vec<&str> = code.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let begins = |line: &str| {
        let line = line.trim_start();
        let line = line
            .split_once(": ")
            .filter(|(label, _)| label.starts_with('\''))
            .map_or(line, |it| it.1);
        line.starts_with("while ") || line == "loop {"
    };
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| begins(line)) {
        let rest = lines[at + 1..].iter();
        let length = rest
            .take_while(|rest| !(rest.trim() == "}" && indent(rest) == indent(line)))
            .count();
        found.push(Loop {
            line: at + 1,
            body: lines[at..=at + length].join("\n"),
        });
    }
    found
}

fn pays(code: &str) -> bool {
    PAYS.iter().any(|pays| code.contains(pays))
}

/// Returns the name of the function that a line is in.
fn function_at(functions: &[Function], line: usize) -> &str {
    let before = functions.iter().filter(|function| function.line <= line);
    before
        .max_by_key(|function| function.line)
        .map_or("", |function| &function.name)
}

/// Returns the code of the functions with this name.
fn code_of(file: &SourceFile, name: &str) -> String {
    let functions = file.functions();
    let lines = file.product().lines().enumerate();
    let own = lines.filter(|(at, _)| function_at(&functions, at + 1) == name);
    own.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

#[test]
fn loops_of_queries_pay_for_their_rounds() {
    let (mut problems, mut used) = (Vec::new(), Vec::new());
    let is_queried = |file: &SourceFile| ROOMS.iter().any(|room| file.path.starts_with(room));
    for file in all_sources().filter(is_queried) {
        let functions = file.functions();
        for Loop { line, body } in loops(file.product()) {
            if pays(&body) {
                continue;
            }
            let name = function_at(&functions, line);
            let Some(&(_, _, bound)) = BOUNDED
                .iter()
                .find(|(path, of, _)| *path == file.path && *of == name)
            else {
                problems.push(format!(
                    "{}:{line}: a loop of `{name}` pays for none of its rounds",
                    file.path
                ));
                continue;
            };
            used.push((file.path.clone(), name.to_owned()));
            if let Bound::Calls(called) = bound
                && !(body.contains(called) && pays(&code_of(&file, called)))
            {
                problems.push(format!(
                    "{}:{line}: it does not call `{called}`, or that does not pay",
                    file.path
                ));
            }
        }
    }
    let is_used = |path: &str, name: &str| used.iter().any(|used| used.0 == path && used.1 == name);
    let unused = BOUNDED.iter().filter(|(path, name, _)| !is_used(path, name));
    problems.extend(unused.map(|(path, name, _)| format!("{path}: `{name}` has no loop that does not pay")));
    super::assert_none(&problems);
}

#[test]
fn a_loop_ends_where_its_column_ends() {
    let code = "fn f() {\n    while let Some(x) = open.pop() {\n        if x {\n            spend(1);\n        }\n    }\n    'outer: loop {\n    }\n}\n";
    let found: Vec<(usize, bool)> = loops(code)
        .iter()
        .map(|found| (found.line, pays(&found.body)))
        .collect();
    assert_eq!(found, [(2, true), (7, false)]);
}
