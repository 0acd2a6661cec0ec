//! Compares the dialects and the removal of look-around with a matcher that uses none of the optimizations.

use proptest::prelude::*;
use regex_syntax::hir::{ClassUnicode, Look};

use super::node::{Around, Node, Test, char_set};
use super::*;
use lexiform_automata::error::ProblemKind;
use lexiform_automata::grammar::Part;
use lexiform_automata::language::{Terminal, TerminalError};

/// A compiled language, or `None` if it is empty.
struct Language(Option<Terminal>);

impl Language {
    fn new(regular: &Regular) -> Self {
        Language::within(regular, &Limits::default()).expect("a language within the limits")
    }

    fn within(regular: &Regular, limits: &Limits) -> Result<Self, TerminalError> {
        match Terminal::new(regular, limits) {
            Ok(terminal) => Ok(Language(Some(terminal))),
            Err(TerminalError::Empty) => Ok(Language(None)),
            Err(error) => Err(error),
        }
    }

    fn has(&self, text: &str) -> bool {
        self.0
            .as_ref()
            .is_some_and(|terminal| terminal.matches_from(terminal.start(), text.as_bytes()))
    }
}

fn found(pattern: &str) -> Language {
    Language::new(&ecma(pattern, &Limits::default()).unwrap_or_else(|error| panic!("{pattern}: {error}")))
}

fn matched(pattern: &str) -> Language {
    Language::new(&rust(pattern, &Limits::default()).unwrap_or_else(|error| panic!("{pattern}: {error}")))
}

fn check(language: &Language, name: &str, accepted: &[&str], rejected: &[&str]) {
    for text in accepted {
        assert!(language.has(text), "{name} should have {text:?}");
    }
    for text in rejected {
        assert!(!language.has(text), "{name} should not have {text:?}");
    }
}

fn refused(pattern: &str) -> String {
    ecma(pattern, &Limits::default()).expect_err(pattern).to_string()
}

#[test]
fn patterns_are_found_anywhere_unless_anchored() {
    check(&found("b+"), "b+", &["b", "abba", "\nb"], &["", "a"]);
    check(&found("^b"), "^b", &["b", "ba"], &["ab", "", "a\nb"]);
    check(&found("^a|b$"), "^a|b$", &["a", "ax", "xb"], &["xa", "bx", ""]);
    check(&found("(^a)?b"), "(^a)?b", &["ab", "b", "xab"], &["a", ""]);
    check(&found("x(^a|b)"), "x(^a|b)", &["xb", "axb"], &["xa", "a"]);
    check(&found("a$b|c^"), "a$b|c^", &[], &["ab", "c", "", "a"]);
    check(
        &found("^(?:a|)(?:$|b)"),
        "optional",
        &["", "a", "ab", "bx"],
        &["c", "ac"],
    );
    check(&found(""), "empty", &["", "x"], &[]);
}

#[test]
fn word_boundaries_and_looks_at_one_character_may_be_anywhere() {
    check(
        &found(r"\bfoo\b"),
        "foo",
        &["foo", "a foo.", "ä foo"],
        &["foox", "_foo", "fo"],
    );
    check(&found(r"\Bo"), "Bo", &["fo", "foo"], &["o", " o"]);
    check(
        &found("^(?:(?!-)[a-z-]+(?<!-)[.])+x$"),
        "labels",
        &["a.x", "a-b.c.x"],
        &["-a.x", "a-.x", "x", "a..x"],
    );
    check(&found("a(?=b|$)"), "a(?=b|$)", &["a", "ca", "abc"], &["ac", "b"]);
    check(
        &found("(?<![0-9])1(?!1)"),
        "1",
        &["1", "a1b", "110 1"],
        &["11", "91", "2"],
    );
    check(&matched(r"(?m)^a$\n^b$"), "lines", &["a\nb"], &["ab", "a\n", "b"]);
    check(&matched(r"(?mR)a$\r\n^b"), "CRLF", &["a\r\nb"], &["a\nb"]);
    check(&matched(r"\b{start}é\b{end}\s?"), "é", &["é", "é "], &["éa"]);
}

#[test]
fn longer_look_around_where_it_cuts_the_text_at_one_place() {
    check(
        &found("^(?!tmp|.*secret)[a-z]+$"),
        "no tmp",
        &["a", "tm", "atmp"],
        &["tmp", "tmpx", "asecret", ""],
    );
    check(
        &found(r"^(?=.*\d)(?=.*[A-Z]).{2,}$"),
        "password",
        &["A1", "xx1B"],
        &["A", "1b", "AB", ""],
    );
    check(
        &found("^[a-z](?!bc)[a-z]*$"),
        "a(?!bc)",
        &["a", "xbd"],
        &["xbc", "xbcd"],
    );
    check(
        &found("^[a-z]+(?<!foo|bar)$"),
        "not foo",
        &["fo", "xfoox"],
        &["foo", "xbar"],
    );
    check(
        &found("^((?!ab).)*$"),
        "tempered",
        &["", "a", "ba", "aa"],
        &["ab", "xabx", "\n"],
    );
    check(
        &found(r"a(?=\.(b|c))"),
        "open",
        &["a.b", "xa.cx"],
        &["a", "a.", "ab"],
    );
    check(&found("(?<=ab)c"), "behind", &["abc", "xabcx"], &["c", "bc"]);
    check(&found("^(?!(?!a))"), "twice", &["a", "ab"], &["", "b"]);
}

#[test]
fn look_around_anywhere_through_an_automaton() {
    check(
        &found("foo(?!bar)"),
        "foo(?!bar)",
        &["foo", "foobarfoo", "xfooba"],
        &["foobar", "fo", "foobarx"],
    );
    check(
        &found("(?<!not )ok"),
        "not ok",
        &["ok", "no ok", "not okok"],
        &["not ok", "x"],
    );
    check(
        &found("^(?:a(?=bc)|bc(?<=abc)|x)*$"),
        "both",
        &["abc", "x", "", "abcxabc"],
        &["a", "ab", "bc"],
    );
    check(
        &found("^((?!mode)(?!Mode).)*x$"),
        "tempered",
        &["x", "modx", "xx"],
        &["modex", "aModex", ""],
    );
    let scoped = r"^@(a(?:(?!.*--)[a-]*a)?)/(a(?:(?!.*--)[a-]*a)?)$";
    check(
        &found(scoped),
        "scoped",
        &["@a/a", "@a-a/a", "@aa/a-a-a"],
        &["@a--a/a", "@a-a/a--a", "@a-/a"],
    );
    check(
        &found("^(?:[a-z]{1,30}[.]){1,9}(?![0-9]*$)[a-z0-9-]+$"),
        "no number",
        &["a.b", "a.1b"],
        &["a.1", "a"],
    );
    check(
        &found("(?=a)(?!ab)..|^(?!a).$"),
        "alternatives",
        &["ac", "b", "xax"],
        &["ab", "a", "bb"],
    );
    assert!(refused("^.*(?=a(?<=ba))x*a.(?!b)").contains("inside a lookbehind"));
}

#[test]
fn a_counted_class_costs_no_states() {
    let regular = ecma("^[a-z]{1,5000}$", &Limits::default()).unwrap();
    assert!(matches!(
        regular.parts[..],
        [Part::Units {
            min: 1,
            max: Some(5000),
            ..
        }]
    ));
    let regular = ecma("^(?=.{1,255}$)[a-z.]+$", &Limits::default()).unwrap();
    assert!(matches!(
        regular.parts[..],
        [
            Part::Match(_),
            Part::Units {
                min: 1,
                max: Some(255),
                ..
            }
        ]
    ));
    check(
        &Language::new(&regular),
        "255",
        &["a", &"a".repeat(255)],
        &["", &"a".repeat(256), "A"],
    );
}

#[test]
fn ecma_classes_and_escapes() {
    check(
        &found(r"^\d\w\s$"),
        r"\d\w\s",
        &["1a\u{feff}", "0_\u{2029}", "9Z\u{a0}"],
        &["١a ", "1é ", "1a\u{180e}"],
    );
    check(
        &found(r"^.$"),
        ".",
        &["x", "😀", "\u{85}"],
        &["\n", "\r", "\u{2028}", "\u{2029}", ""],
    );
    check(&found(r"^[]$"), "[]", &[], &["", "a"]);
    check(&found(r"^[^]$"), "[^]", &["\n", "a", "😀"], &["", "ab"]);
    check(
        &found(r"^\cA\x41\u0042\u{43}\ud83d\ude00\/\-\0$"),
        "escapes",
        &["\u{1}ABC😀/-\0"],
        &["ABC"],
    );
    check(
        &found(r"^[\b\-\]\w-.]$"),
        "class",
        &["\u{8}", "-", "]", "a", "."],
        &[",", "\\"],
    );
    check(
        &found(r"^[\ud83d\udca9-\ud83d\udcab\ud800]$"),
        "pairs",
        &["💩", "💪", "💫"],
        &["💨", "a"],
    );
    check(
        &found(r"^\p{Lu}\p{Script=Greek}\P{L}\p{Cs}?$"),
        "properties",
        &["Äα1"],
        &["äα1", "Aa1", "Aαb"],
    );
    check(
        &found(r"^[^\D\p{Nd}x]?[\p{digit}]$"),
        "digit",
        &["4", "৪"],
        &["44", "x4"],
    );
    check(
        &found("^(?<year>a)(?<ñ>b)(?:c)*?d{1,}?$"),
        "groups",
        &["abd", "abccdd"],
        &["ab", "d"],
    );
    check(&found("^x{,2}]}$"), "braces", &["x{,2}]}"], &["x", "xx"]);
    check(&found("^(?=a)*b$"), "repeated lookahead", &["b"], &["ab"]);
}

#[test]
fn errors_name_the_column() {
    for (pattern, message) in [
        (r"(a)\1", "backreferences are not supported at column 4"),
        (r"\k<a>", "backreferences are not supported at column 1"),
        ("é(b", "unclosed `(` at column 2"),
        ("a)", "unmatched `)` at column 2"),
        ("[a", "unclosed `[` at column 1"),
        (
            "a[z-a]",
            "the first character of a range comes after its last at column 3",
        ),
        (
            r"[\p{L}-z]",
            "a property cannot be the end of a range at column 2",
        ),
        (
            r"[a-\P{L}]",
            "a property cannot be the end of a range at column 2",
        ),
        ("a**", "`*` has nothing to repeat at column 3"),
        ("{2}", "`{…}` has nothing to repeat at column 1"),
        (
            "a{3,2}",
            "the minimum of a repetition is greater than its maximum at column 2",
        ),
        (r"a\Z", "unknown escape `\\Z` at column 2"),
        (r"\p{Nonsense}", "unknown Unicode property `Nonsense` at column 1"),
        (r"\p{Lu}\p{[a]|.}", "unknown Unicode property `[a]|.` at column 7"),
        ("(?i:a)", "groups that change flags are not supported at column 1"),
        ("(?<a>x)(?<a>y)", "group name `a` is used twice at column 11"),
        ("^*", "an assertion cannot be repeated at column 1"),
        ("\\", "a backslash must be followed by a character at column 1"),
    ] {
        assert_eq!(refused(pattern), message, "{pattern}");
    }
    let error = rust("ab(?=c)", &Limits::default()).unwrap_err();
    assert_eq!((error.column, error.kind), (Some(3), ProblemKind::Unsupported));
}

#[test]
fn what_is_too_large_is_refused_by_name() {
    let deep = |n: usize| format!("{}a{}", "(".repeat(n), ")".repeat(n));
    check(&found(&deep(250)), "deep", &["a"], &["b"]);
    assert!(refused(&deep(251)).contains("`nesting`"));
    assert!(refused(&"(".repeat(100_000)).contains("`nesting`"));
    assert!(refused("(((ab{1000}){1000}){1000})").contains("`regular_states`"));
    assert!(refused("x(ab){1000000}").contains("`regular_states`"));
    assert!(refused("a{99999999999}").contains("too large"));
    assert!(refused(&"a".repeat((1 << 20) + 1)).contains("`source_bytes`"));
    check(
        &found(&r"\b[^b]?".repeat(60)),
        "boundaries",
        &["a", " a"],
        &["", " "],
    );
    assert!(refused(&"(^)?a".repeat(5000)).contains("steps"));
    assert!(refused(&format!("(^)?({})", "a?".repeat(20_000))).contains("`regular_states`"));
    assert!(refused(&r"\p{L}".repeat(100_000)).contains("ranges"));
    assert!(
        rust(&r"\pL".repeat(100_000), &Limits::default())
            .is_err_and(|e| e.message.contains("`source_bytes`"))
    );
    let many: String = (0x100..0x2_0000).step_by(2).filter_map(char::from_u32).collect();
    check(
        &found(&format!("^[^{many}]$")),
        "a long class",
        &["a", "ı"],
        &["İ", "aa"],
    );
    let strict = Limits {
        nesting: 3,
        ..Limits::default()
    };
    assert!(ecma("((((a))))", &strict).is_err());
    assert!(rust("((((a))))", &strict).is_err_and(|error| error.kind == ProblemKind::Limit));
}

/// Returns the places where a match of `node` that begins at `at` may end, directly from the definition.
fn ends(node: &Node, text: &[char], at: usize) -> Vec<usize> {
    let before = at.checked_sub(1).map(|at| text[at]);
    let after = text.get(at).copied();
    let if_holds = |holds: bool| if holds { vec![at] } else { Vec::new() };
    match node {
        Node::Empty => vec![at],
        Node::Set(_) if after.is_none() => Vec::new(),
        Node::Set(set) => {
            let test = Test {
                ahead: true,
                set: set.clone(),
                edge: false,
            };
            if look::passes(&test, before, after) {
                vec![at + 1]
            } else {
                Vec::new()
            }
        }
        Node::Concat(parts) => parts
            .iter()
            .fold(vec![at], |starts, part| all_ends(part, text, &starts)),
        Node::Alt(parts) => union(parts.iter().map(|part| ends(part, text, at))),
        Node::Repeat { body, min, max } => {
            let mut now = vec![at];
            for _ in 0..*min {
                now = all_ends(body, text, &now);
            }
            let mut all = now.clone();
            for _ in *min..max.unwrap_or(min + text.len() as u32 + 1) {
                now = all_ends(body, text, &now);
                all.extend(&now);
            }
            union([all])
        }
        Node::Look(look) => if_holds(look::holds(*look, before, after)),
        Node::Test(test) => if_holds(look::passes(test, before, after)),
        Node::Around(around) => {
            let found = if around.ahead {
                !ends(&around.body, text, at).is_empty()
            } else {
                (0..=at).any(|start| ends(&around.body, text, start).contains(&at))
            };
            if_holds(found != around.negative)
        }
    }
}

fn all_ends(node: &Node, text: &[char], starts: &[usize]) -> Vec<usize> {
    union(starts.iter().map(|&at| ends(node, text, at)))
}

fn union(ends: impl IntoIterator<Item = Vec<usize>>) -> Vec<usize> {
    let all: std::collections::BTreeSet<usize> = ends.into_iter().flatten().collect();
    all.into_iter().collect()
}

const ALPHABET: [char; 3] = ['a', '-', '\n'];

/// Returns every text of at most four characters over the alphabet.
fn short_texts() -> Vec<Vec<char>> {
    let mut texts = vec![Vec::new()];
    let mut longest = texts.clone();
    for _ in 0..4 {
        let longer = longest
            .iter()
            .flat_map(|text: &Vec<char>| ALPHABET.map(|c| [&text[..], &[c]].concat()));
        longest = longer.collect();
        texts.extend(longest.iter().cloned());
    }
    texts
}

fn set() -> impl Strategy<Value = ClassUnicode> {
    prop::sample::select(vec!["a", "-", "\n", "a-", "-\n"]).prop_map(|members: &str| {
        let mut set = ClassUnicode::empty();
        members.chars().for_each(|c| set.union(&char_set(c)));
        set
    })
}

/// Generates nodes, with look-around over more than one character only if `around` is set.
fn node(around: bool) -> impl Strategy<Value = Node> {
    let looks = vec![
        Look::Start,
        Look::End,
        Look::StartLF,
        Look::EndLF,
        Look::StartCRLF,
        Look::EndCRLF,
        Look::WordAscii,
        Look::WordAsciiNegate,
        Look::WordStartHalfUnicode,
        Look::WordEndUnicode,
    ];
    let test = (any::<bool>(), set(), any::<bool>()).prop_map(|(ahead, set, edge)| Test { ahead, set, edge });
    let leaf = prop_oneof![
        4 => set().prop_map(Node::Set),
        1 => prop::sample::select(looks).prop_map(Node::Look),
        1 => test.prop_map(Node::Test),
        1 => Just(Node::Empty),
    ];
    leaf.prop_recursive(4, 12, 3, move |inner| {
        let looking =
            (any::<bool>(), any::<bool>(), inner.clone()).prop_map(move |(ahead, negative, body)| {
                if around {
                    Node::Around(Around {
                        ahead,
                        negative,
                        body: Box::new(body),
                        column: 1,
                    })
                } else {
                    body
                }
            });
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(Node::concat),
            2 => prop::collection::vec(inner.clone(), 2..3).prop_map(Node::alt),
            2 => (inner, 0..3_u32, prop::option::of(0..2_u32))
                .prop_map(|(body, min, more)| Node::repeat(body, min, more.map(|more| min + more))),
            1 => looking,
        ]
    })
}

/// Compares a search with its definition on every short text.
fn agrees(node: &Node) -> Result<bool, TestCaseError> {
    let regular = match whole::search(node.clone(), 5_000) {
        Ok(regular) => regular,
        Err(error) => {
            prop_assert!(matches!(
                error.kind,
                ProblemKind::Limit | ProblemKind::Unsupported
            ));
            return Ok(false);
        }
    };
    // Some random expressions are exponential for every automaton; they prove nothing here.
    let limits = Limits {
        regular_states: 5_000,
        regular_bytes: 4 << 20,
        ..Limits::default()
    };
    let Ok(language) = Language::within(&regular, &limits) else {
        return Ok(false);
    };
    for text in short_texts() {
        let expected = (0..=text.len()).any(|at| !ends(node, &text, at).is_empty());
        let string: String = text.iter().collect();
        prop_assert_eq!(language.has(&string), expected, "{:?} of {:?}", string, node);
    }
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn conditions_on_neighbours_are_resolved_exactly(node in node(false)) {
        agrees(&node)?;
    }

    #[test]
    fn look_around_is_exact_or_refused(before in set(), first in node(true), second in node(true)) {
        agrees(&Node::concat([Node::Look(Look::Start), Node::Set(before), first.clone(), second.clone()]))?;
        agrees(&Node::concat([first, second, Node::Look(Look::End)]))?;
    }

    #[test]
    fn no_pattern_makes_the_parser_panic(pattern in r"[a-c()\[\]{}|^$.*+?\\0-9,:=!<>dwsbBpPuxkc-]{0,24}") {
        for regular in [ecma(&pattern, &Limits::default()), rust(&pattern, &Limits::default())] {
            if let Err(error) = regular {
                prop_assert!(!error.message.is_empty());
            }
        }
    }
}
