//! Grammars for the lark parser and in llguidance's dialect: cases of other engines' tests, whole grammars,
//! and cases of our own.

use std::sync::Arc;

use lexiform::error::CompileError;
use lexiform::grammar::{GrammarOptions, Notation};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Grammar, Options, Source};
use serde_json::Value;

use crate::grammars::{at_root, with_deep_stack};
use crate::ratchet::Ratchet;

/// Every byte as a token, and some special tokens.
fn compiler() -> Compiler {
    let bytes = (0..=255).map(|byte| (TokenKind::Text, vec![byte]));
    let special = ["<end>", "<|tool|>"].map(|name| (TokenKind::Special, name.as_bytes().to_vec()));
    // Some tests of other engines name tokens with large numbers.
    let filler = (0..5_000).map(|_| (TokenKind::Unused, Vec::new()));
    let tokens: Vec<_> = bytes.chain(special).chain(filler).collect();
    Compiler::new(Arc::new(Vocabulary::new(&tokens, &[256]).expect("a vocabulary")))
}

fn compile(
    compiler: &Compiler,
    text: &str,
    notation: Notation,
    start: Option<&str>,
) -> Result<Grammar, CompileError> {
    let options = Options {
        grammar: GrammarOptions {
            notation: Some(notation),
            start: start.map(str::to_owned),
            ..GrammarOptions::default()
        },
        ..Options::default()
    };
    compiler
        .compile(Source::Grammar(text), &options)
        .map(|(grammar, _)| grammar)
}

fn accepts(grammar: &Grammar, text: &str) -> bool {
    let state = grammar.step_bytes(grammar.start(), text.as_bytes());
    state.is_some_and(|state| grammar.is_accepting(state))
}

fn texts<'a>(row: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    row[field]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Checks one case: texts that belong, texts that do not, or a grammar that is refused.
fn outcome(compiler: &Compiler, row: &Value) -> Result<(), String> {
    let grammar = row["grammar"].as_str().expect("a grammar");
    let compiled = compile(compiler, grammar, Notation::Llguidance, None);
    let grammar = match (compiled, row["error"].as_str()) {
        (Err(error), Some(_)) if !error.problems.is_empty() => return Ok(()),
        (Ok(_), Some(theirs)) => return Err(format!("compiles; theirs: {theirs}")),
        (Err(error), _) => return Err(format!("refused: {error}")),
        (Ok(grammar), None) => grammar,
    };
    for text in texts(row, "accept") {
        if !accepts(&grammar, text) {
            return Err(format!("does not accept {text:?}"));
        }
    }
    for text in texts(row, "reject") {
        let text = text.strip_prefix("FINAL_REJECT:").unwrap_or(text);
        if accepts(&grammar, text) {
            return Err(format!("accepts {text:?}"));
        }
    }
    Ok(())
}

fn run_cases(file: &str, section: &'static str) {
    let path = at_root(&format!(".data/grammars/cases/{file}"));
    let Ok(rows) = std::fs::read_to_string(&path) else {
        println!("skipped: {section}: .data/grammars/cases/{file} is not there");
        return;
    };
    with_deep_stack(move || {
        let compiler = compiler();
        let mut ratchet = Ratchet::open("lark.json", section);
        for (line, row) in rows.lines().enumerate() {
            let row: Value = serde_json::from_str(row).expect("a row is JSON");
            if row["kind"] != "json_schema" {
                let text = row["grammar"].as_str().expect("a grammar");
                let shown: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let shown: String = shown.chars().take(90).collect();
                ratchet.note(&format!("{}: {shown}", line + 1), outcome(&compiler, &row));
            }
        }
        ratchet.close();
    });
}

#[test]
fn lark_cases_of_xgrammar() {
    run_cases("xgrammar_lark.jsonl", "xgrammar_lark");
}

#[test]
fn lark_cases_of_llguidance() {
    run_cases("llguidance.jsonl", "llguidance");
}

/// The starts of whole grammars that have no rule `start`.
const STARTS: [(&str, &str); 5] = [
    ("lark_common", "NUMBER"),
    ("outlines_common", "NUMBER"),
    ("lark_unicode", "WS"),
    ("lark_python", "file_input"),
    ("lark_python2", "file_input"),
];

#[test]
fn lark_grammars_of_others_are_read() {
    let folder = at_root(".data/grammars/lark");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: lark_grammars_of_others_are_read: .data/grammars/lark is not there");
        return;
    };
    let entries: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    with_deep_stack(move || {
        let compiler = compiler();
        let mut ratchet = Ratchet::open("lark.json", "grammars");
        for path in entries {
            let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
            let text = std::fs::read_to_string(&path).expect("a grammar");
            let start = STARTS.iter().find(|(of, _)| *of == name).map(|(_, start)| *start);
            let compiled = compile(&compiler, &text, Notation::Lark, start);
            ratchet.note(name, compiled.map(drop).map_err(|error| error.to_string()));
        }
        ratchet.close();
    });
}

#[test]
fn texts_belong_as_the_lark_parser_says() {
    let data: Value = serde_json::from_str(include_str!("../data/lark_texts.json")).expect("JSON");
    let (compiler, mut wider, mut all) = (compiler(), 0, 0);
    for case in data["cases"].as_array().expect("a list") {
        let (name, text) = (&case["name"], case["grammar"].as_str().expect("a grammar"));
        let grammar = compile(&compiler, text, Notation::Lark, None);
        let grammar = grammar.unwrap_or_else(|error| panic!("{name}: {error}"));
        for text in texts(case, "accept") {
            assert!(accepts(&grammar, text), "{name}: {text:?} belongs");
            all += 1;
        }
        for text in texts(case, "reject") {
            wider += usize::from(accepts(&grammar, text));
            all += 1;
        }
    }
    // A ratchet: one use of a word stands in two places, at only one of which another word is tried first.
    assert_eq!((wider, all), (WIDER, 1_760));
}

/// The number of texts that are accepted here and not by the lark parser.
const WIDER: usize = 1;

/// A grammar in llguidance's dialect, texts that belong, and texts that do not.
const DIALECT: [(&str, &[&str], &[&str]); 12] = [
    ("start: /[a-z]{2}/ <|tool|>", &[], &["ab"]),
    (
        "start: A & ~B\nA: /[ab]+/\nB: /a+/",
        &["b", "aba"],
        &["a", "aa", "c"],
    ),
    (
        "start: word \"!\"\nword[lazy]: /[a-z]*x/",
        &["ax!", "x!"],
        &["axx!", "a!"],
    ),
    (
        "start: line*\nline[stop=\"\\n\"]: /[^\\n]*/",
        &["", "\n", "a\nb\n"],
        &["a", "a\nb"],
    ),
    (
        "start: (call | text)*\nhead[lazy]: /[^>]*</\ncall: head /[a-z]+/ \">\"\ntext: /[a-z<]+ /",
        &["ab ", "x<ab>", "a x<b>"],
        &["x<1>", "x<", "a< "],
    ),
    (
        "start: a::0\na::_: \"x\" a::incr(_) %if lt(_, 2)\n | \"y\" %if ge(_, 1)",
        &["xy", "xxy"],
        &["y", "xxxy"],
    ),
    (
        "start: %json {\"enum\": [1, \"a\"]} | %regex {\"substring_words\": \"to be\"}",
        &["1", "\"a\"", "to", "to be", " be", ""],
        &["2", "o be"],
    ),
    ("%ignore / /\nstart: \"a\" \"b\"", &["ab", "a b", "ab "], &[" ab"]),
    (
        "%llguidance {\"allow_initial_skip\": true}\n%ignore / /\nstart: \"a\" \"b\"",
        &["ab", " ab"],
        &["a\tb"],
    ),
    (
        "start: %lark { start: x\nx: \"a\"{1,2} } \"b\"",
        &["ab", "aab"],
        &["b", "aaab"],
    ),
    (
        "start: list{\"a\"}\nlist{x}: x (\",\" x)*",
        &["a", "a,a"],
        &["", "a,"],
    ),
    ("start: \"a\"i..\"b\"i", &[], &[]),
];

#[test]
fn the_dialect_of_llguidance_has_its_texts() {
    let compiler = compiler();
    for (text, belong, strange) in DIALECT {
        let Ok(grammar) = compile(&compiler, text, Notation::Llguidance, None) else {
            assert!(belong.is_empty() && strange.is_empty(), "{text} is refused");
            continue;
        };
        for belongs in belong {
            assert!(accepts(&grammar, belongs), "{belongs:?} belongs to {text}");
        }
        for stranger in strange {
            assert!(
                !accepts(&grammar, stranger),
                "{stranger:?} does not belong to {text}"
            );
        }
    }
}

#[test]
fn tokens_are_read_as_tokens() {
    let compiler = compiler();
    let grammar = compile(
        &compiler,
        "start: <|tool|> <[97-99]> <[^97]> /b*/",
        Notation::Llguidance,
        None,
    )
    .expect("a grammar");
    let tool = compiler.vocabulary().special("<|tool|>").expect("a token");
    let allowed = |state| grammar.mask(state).iter().collect::<Vec<u32>>();
    assert_eq!(allowed(grammar.start()), [tool]);
    let state = grammar.step(grammar.start(), tool).expect("the token");
    assert_eq!(allowed(state), [97, 98, 99]);
    let state = grammar.step(state, 98).expect("a token of the set");
    let others = allowed(state);
    let steps = |token: &u32| grammar.step(state, *token).is_some();
    assert!(others.iter().all(steps), "a mask has the tokens that step");
    assert_eq!(others.len(), 256, "all bytes but one, and the special token");
    assert!(
        others.contains(&98) && others.contains(&tool) && !others.contains(&97) && !others.contains(&256)
    );
    let state = grammar.step(state, tool).expect("another token");
    assert_eq!(allowed(state), [98, 256]);
}

/// A grammar that is wrong, with the place and some words of each of its problems.
const WRONG: [(&str, &[&str]); 16] = [
    (
        "start: a b\nc: \"x\"",
        &["1, column 8: rule `a`", "1, column 10: rule `b`"],
    ),
    (
        "start: \"a\" )\nb: /[/\nc: \"x",
        &["1, column 12: expected", "2, column 5:", "3, column 4: this `\"`"],
    ),
    ("item: \"a\"", &["there is no rule `start`"]),
    (
        "start: \"a\"\nstart: \"b\"",
        &["2, column 1: rule `start` is defined twice"],
    ),
    ("start: A\nA: B\nB: \"x\" A | \"y\"", &["calls itself"]),
    (
        "start: A\nA: b\nb: \"x\"",
        &["2, column 4: the terminal `A` cannot contain the rule `b`"],
    ),
    (
        "%import common.WSS\nstart: WSS",
        &["1, column 16: `common` has no `WSS`"],
    ),
    ("%import other.X\nstart: X", &["there is no library `other`"]),
    ("%declare X\nstart: X", &["`X` is declared for a program"]),
    ("%foo\nstart: \"a\"", &["1, column 1: unknown directive `%foo`"]),
    ("start: \"b\"..\"a\"", &["comes after its last"]),
    ("start: \"a\"~3..2", &["minimum of a repetition is greater"]),
    (
        "start: t{\"a\"}\nt{x, y}: x y",
        &["1, column 8: `t` is a template with 2 parameters"],
    ),
    ("start: t\nt{x}: x", &["`t` is a template with 1 parameters"]),
    ("start: \"\\q\"", &["1, column 9: `\\q` is no escape"]),
    ("start: start", &["no finite text matches"]),
];

#[test]
fn all_that_is_wrong_is_named_with_its_place() {
    let compiler = compiler();
    for (text, words) in WRONG {
        let error = compile(&compiler, text, Notation::Lark, None);
        let error = error
            .err()
            .unwrap_or_else(|| panic!("{text} compiles"))
            .to_string();
        for part in words {
            assert!(error.contains(part), "{text}: {part}\n{error}");
        }
    }
}

/// Terminals of indentation, with names that are short.
const INDENTED: &str = "N: /\\n[ ]*/\n%ignore \" \"\n%declare INDENT DEDENT\n";

/// Grammars of many words, and with much indentation.
fn hostile_words() -> Vec<String> {
    let many = |part: &str, count: usize| part.repeat(count);
    vec![
        // Terminals that call each other twice at each of many levels.
        (0..60)
            .map(|at| format!("T{at}: T{} T{0}?\n", at + 1))
            .collect::<String>()
            + "T60: \"a\"\nstart: T0 \"if\" | \"aa\" | /a+/\n%ignore \" \"",
        // Each of many words may begin where each other may.
        format!(
            "start: {} /b/\n%ignore \" \"",
            (0..60_000).map(|at| format!("\"a{at}\" | ")).collect::<String>()
        ),
        format!(
            "start: {} /b/\n%ignore \" \"",
            (0..500)
                .map(|at| format!("\"a{at}\" | /a{at}[a-z]*/ | "))
                .collect::<String>()
        ),
        // Indentation: a long chain of rules, many ways to go on, and many nested counts and blocks.
        (0..5_000)
            .map(|at| format!("r{at}: r{} \"a\" | N\n", at + 1))
            .collect::<String>()
            + &format!("r5000: N INDENT r0 DEDENT\nstart: r0\n{INDENTED}"),
        format!(
            "start: {} N INDENT start DEDENT\n{INDENTED}",
            many("(\"a\" | N)? ", 20_000)
        ),
        format!(
            "start: N INDENT {} \"a\" N {} DEDENT\n{INDENTED}",
            many("(", 200),
            many(")~8", 200)
        ),
        format!(
            "start: {} \"a\" N {}\n{INDENTED}",
            many("N INDENT ", 2_000),
            many(" DEDENT", 2_000)
        ),
        format!(
            "start: {} \"a\" N INDENT start DEDENT\n{INDENTED}",
            many("(N | ", 100) + &many(")*", 100)
        ),
    ]
}

#[test]
fn hostile_grammars_end() {
    let compiler = compiler();
    let many = |part: &str, count: usize| part.repeat(count);
    let sources = [
        format!("start: {}", many("(", 100_000)),
        format!("start: {}", many("[", 100_000)),
        format!("start: \"a\"{}", many("?", 10_000)),
        format!("start: {}\"a\"{}", many("(", 190), many(")?*+~2..3", 190)),
        format!("start: A\nA: {}\"a\"{}", many("(", 190), many(")?*+", 190)),
        format!(
            "start: {}\"a\"{}\n%ignore \" \"",
            many("(\"b\" | ", 190),
            many(")", 190)
        ),
        format!("start: {}", many("t{", 190) + "\"a\"" + &many("}", 190)) + "\nt{x}: x \"b\" x?",
        format!("start: t{{{}\nt{{x}}: x", many("t{", 50_000)),
        "start: t{\"a\"}\nt{x}: t{t{x}} | x".to_owned(),
        "start: p::0\np::_: \"a\" p::incr(_) | \"b\"".to_owned(),
        format!("start: {}", many("%lark { start: ", 1_000)),
        (0..10_000)
            .map(|at| format!("r{at}: r{} \"a\" | \"b\"\n", (at + 1) % 10_000))
            .collect::<String>()
            + "start: r0",
        format!("start: /{}/", many("(a|b)*", 5_000)),
        many("%import common.WS\n", 2_000) + "start: WS",
        format!("start: {}", many("\"a\" | ", 50_000)),
        // A state for each alternative, each of which may begin all of them.
        format!(
            "start: /x/ {}",
            (0..20_000)
                .map(|at| format!("| \"a{at}\" start"))
                .collect::<String>()
        ),
        format!(
            "start: /x+/ {}",
            (0..40_000)
                .map(|at| format!("| \"{at}\" | /{at}/"))
                .collect::<String>()
        ),
        (0..60_000)
            .map(|at| format!("r{at}: \"b\"\n"))
            .collect::<String>()
            + "start: r0",
        format!("%declare {}\n", many("X ", 100_000))
            + &(0..50_000).map(|at| format!("r{at}:\n")).collect::<String>(),
        format!(
            "start: {}\nA: B B B B B\nB: C C C C C\nC: D D D D D\nD: /[a-z]{{9}}/",
            many("(A & ~\"x\") ", 5_000)
        ),
        format!("start: \"{}\"i", many("k", 100_000)),
    ];
    for source in sources.into_iter().chain(hostile_words()) {
        for notation in [Notation::Lark, Notation::Llguidance] {
            drop(compile(&compiler, &source, notation, None));
        }
    }
}
