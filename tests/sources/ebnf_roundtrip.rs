//! Round trips: a random grammar that is printed in the dialect and read back is the same grammar.

use lexiform::limits::Limits;
use lexiform_automata::grammar::{Cfg, CfgBuilder, ExprId, RuleId};
use lexiform_syntax::notation::ebnf;
use proptest::prelude::*;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir};

/// A part of a rule, as one would write it.
#[derive(Clone, Debug)]
enum Tree {
    Literal(String),
    Class(bool, Vec<(char, char)>),
    Reference(usize),
    Special(u8),
    Sequence(Vec<Tree>),
    Choice(Vec<Tree>),
    Repeat(Box<Tree>, u32, Option<u32>),
}

const RULES: usize = 4;

fn tree() -> impl Strategy<Value = Tree> {
    let range = (any::<char>(), any::<char>()).prop_map(|(a, b)| if a <= b { (a, b) } else { (b, a) });
    let leaf = prop_oneof![
        any::<String>().prop_map(Tree::Literal),
        "[a-z(){}\\[\\]\"'#/|*]{0,5}".prop_map(Tree::Literal),
        (any::<bool>(), prop::collection::vec(range, 2..4))
            .prop_map(|(not, ranges)| Tree::Class(not, ranges)),
        (0..RULES).prop_map(Tree::Reference),
        any::<u8>().prop_map(Tree::Special),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::Sequence),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Tree::Choice),
            (inner, 0..5_u32, prop::option::of(0..5_u32)).prop_map(|(body, min, more)| Tree::Repeat(
                Box::new(body),
                min,
                more.map(|more| min + more)
            )),
        ]
    })
}

fn escaped(c: char, quote: char, out: &mut String) {
    match c {
        '\n' => out.push_str("\\n"),
        // Other notations have literals in brackets, and no class: a class says these otherwise.
        ' ' | '\'' | '"' if quote == ']' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
        c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        c if c == quote || matches!(c, '\\' | ']' | '[' | '^' | '-' | '#') => out.extend(['\\', c]),
        c => out.push(c),
    }
}

fn print(tree: &Tree, out: &mut String) {
    match tree {
        Tree::Literal(text) => {
            out.push('"');
            text.chars().for_each(|c| escaped(c, '"', out));
            out.push('"');
        }
        Tree::Class(not, ranges) => {
            out.push_str(if *not { "[^" } else { "[" });
            for (start, end) in ranges {
                escaped(*start, ']', out);
                out.push('-');
                escaped(*end, ']', out);
            }
            out.push(']');
        }
        Tree::Reference(rule) => out.push_str(&format!("r{rule}")),
        Tree::Special(number) => out.push_str(&format!("<|{number}|>")),
        Tree::Sequence(parts) => joined(parts, " ", out),
        Tree::Choice(parts) => joined(parts, " | ", out),
        Tree::Repeat(body, min, max) => {
            out.push('(');
            print(body, out);
            out.push(')');
            match (min, max) {
                (0, None) => out.push('*'),
                (1, None) => out.push('+'),
                (0, Some(1)) => out.push('?'),
                (min, None) => out.push_str(&format!("{{{min},}}")),
                (min, Some(max)) if min == max => out.push_str(&format!("{{{min}}}")),
                (min, Some(max)) => out.push_str(&format!("{{{min},{max}}}")),
            }
        }
    }
}

fn joined(parts: &[Tree], between: &str, out: &mut String) {
    out.push('(');
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.push_str(between);
        }
        print(part, out);
    }
    out.push(')');
}

fn build(tree: &Tree, builder: &mut CfgBuilder) -> ExprId {
    match tree {
        Tree::Literal(text) => builder.bytes(text),
        Tree::Class(not, ranges) => {
            let ranges = ranges
                .iter()
                .map(|&(start, end)| ClassUnicodeRange::new(start, end));
            let mut set = ClassUnicode::new(ranges);
            if *not {
                set.negate();
            }
            match set.ranges() {
                [] => builder.never(),
                [one] if one.start() == one.end() => builder.bytes(one.start().to_string()),
                _ => builder.hir(Hir::class(Class::Unicode(set))),
            }
        }
        Tree::Reference(rule) => builder.rule(RuleId(*rule as u32)),
        Tree::Special(number) => builder.special(&format!("<|{number}|>")),
        Tree::Sequence(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| build(part, builder)).collect();
            builder.seq(parts)
        }
        Tree::Choice(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| build(part, builder)).collect();
            builder.choice(parts)
        }
        Tree::Repeat(body, min, max) => {
            let body = build(body, builder);
            builder.repeat(body, *min, *max)
        }
    }
}

fn assert_same(text: &str, read: &Cfg, built: &Cfg) {
    assert_eq!(read.exprs, built.exprs, "{text}");
    assert_eq!(read.regulars, built.regulars, "{text}");
    assert_eq!(read.rules, built.rules, "{text}");
    assert_eq!(read.start, built.start, "{text}");
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(
        trees in prop::collection::vec(tree(), RULES),
        style in prop::sample::select(vec![("::=", ""), ("=", ";"), (":", " /* (( */"), (":=", "\n# \"[")]),
    ) {
        let mut builder = CfgBuilder::new();
        let rules: Vec<_> = (0..RULES).map(|rule| builder.declare(format!("r{rule}"))).collect();
        let mut text = String::new();
        for (rule, tree) in rules.iter().zip(&trees) {
            let body = build(tree, &mut builder);
            builder.define(*rule, body);
            text.push_str(&format!("r{} {} ", rule.0, style.0));
            print(tree, &mut text);
            text.push_str(style.1);
            text.push('\n');
        }
        let read = ebnf::as_written(&text, &Limits::default());
        let read = read.unwrap_or_else(|error| panic!("{text}\n{error}"));
        assert_same(&text, &read, &builder.finish(rules[0]));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z:=|()\\[\\]{}\"'/\\\\#x0-9?*+,;.<> \n-]{0,80}") {
        if let Err(error) = ebnf::lower(&text, &Limits::default()) {
            prop_assert!(!error.problems.is_empty());
        }
    }
}
