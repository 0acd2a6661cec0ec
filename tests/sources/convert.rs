//! Grammars printed in other notations: each has the texts of its source, read by the reader of its
//! notation.

use std::path::Path;
use std::sync::Arc;

use lexiform::grammar::{GrammarOptions, Notation, convert};
use lexiform::limits::Limits;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, State};
use lexiform_automata::mask::Tables;
use lexiform_syntax::{notation, schema};

/// What notations cannot say.
const UNSAID: [(Notation, &str); 7] = [
    (Notation::Iso, "cannot contain a set of"),
    (Notation::Iso, "cannot contain a line break"),
    (Notation::Lark, "the special token"),
    (Notation::XGrammar, "the special token"),
    (Notation::W3c, "the special token"),
    (Notation::Iso, "the special token"),
    (Notation::Abnf, "the special token"),
];

/// What no notation can say: in Lark, words end as a lexer ends them.
const LONGEST: &str = "a word that ends only where no longer word begins";

/// The special tokens of the grammars.
const SPECIALS: [&str; 3] = ["<eos>", "<|tool_call|>", "<|end|>"];

/// The notations that grammars are printed in.
fn targets() -> impl Iterator<Item = Notation> {
    Notation::all().filter(|notation| *notation != Notation::Pest)
}

fn options(notation: Notation) -> GrammarOptions {
    GrammarOptions {
        notation: Some(notation),
        ..GrammarOptions::default()
    }
}

fn printed(text: &str, from: Notation, to: Notation) -> Result<String, String> {
    let schema = schema::Options::default();
    let printed = convert(text, to, &options(from), &schema, &Limits::default());
    printed.map_err(|error| error.to_string())
}

/// Compiles a grammar for a vocabulary of all single bytes and some special tokens.
fn machine(text: &str, notation: Notation) -> Grammar {
    let mut tokens: Vec<_> = (0..=255u8).map(|byte| (TokenKind::Text, vec![byte])).collect();
    tokens.extend(SPECIALS.map(|name| (TokenKind::Special, name.as_bytes().to_vec())));
    let vocabulary = Vocabulary::new(&tokens, &[256]).expect("the vocabulary is well formed");
    let tables = Arc::new(Tables::new(Arc::new(vocabulary), 1 << 24));
    let (schema, limits) = (schema::Options::default(), Limits::default());
    let cfg = notation::lower(text, &options(notation), &schema, &limits);
    let grammar = cfg.and_then(|cfg| Grammar::new(&cfg, &tables, &limits));
    grammar.unwrap_or_else(|error| panic!("as {notation}: {error}\n{text}"))
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

/// A grammar and one that was printed from it.
struct Pair<'a> {
    one: &'a Grammar,
    other: Grammar,
    printed: &'a str,
}

impl Pair<'_> {
    /// Checks that both grammars have the same beginnings of a text, and that it belongs to both or to
    /// neither.
    fn compare(&self, tokens: &[u32], what: &dyn Fn() -> String) {
        let mut states = (Some(self.one.start()), Some(self.other.start()));
        for (at, &token) in tokens.iter().enumerate() {
            let step = |grammar: &Grammar, state: Option<State>| grammar.step(state?, token);
            states = (step(self.one, states.0), step(&self.other, states.1));
            let is_same = states.0.is_some() == states.1.is_some();
            assert!(
                is_same,
                "{}: at {at} of {}\n{}",
                what(),
                shown(tokens),
                self.printed
            );
        }
        let ends = |grammar: &Grammar, state: Option<State>| state.is_some_and(|it| grammar.is_accepting(it));
        let is_same = ends(self.one, states.0) == ends(&self.other, states.1);
        assert!(is_same, "{}: on {}\n{}", what(), shown(tokens), self.printed);
    }

    /// Compares beginnings of texts of the first grammar, some with a token that it may not have.
    fn compare_drawn(&self, numbers: &mut Numbers, what: &dyn Fn() -> String) {
        for _ in 0..60 {
            let (mut tokens, mut state) = (Vec::new(), self.one.start());
            for _ in 0..numbers.below(60) {
                let allowed: Vec<u32> = (0..self.one.vocabulary().len() as u32)
                    .filter(|&token| token != 256 && self.one.allows(state, token))
                    .collect();
                let Some(&token) = allowed.get(numbers.below(allowed.len())) else {
                    break;
                };
                let Some(next) = self.one.step(state, token) else {
                    break;
                };
                tokens.push(token);
                state = next;
            }
            self.compare(&tokens, what);
            if !tokens.is_empty() {
                let at = numbers.below(tokens.len());
                let other = tokens[numbers.below(tokens.len())];
                tokens.insert(at, other);
                self.compare(&tokens, what);
                tokens[at] = b"aA0 \n\"'()-_,"[numbers.below(12)].into();
                self.compare(&tokens, what);
            }
        }
    }
}

fn shown(tokens: &[u32]) -> String {
    let bytes: Vec<u8> = tokens
        .iter()
        .filter_map(|&token| u8::try_from(token).ok())
        .collect();
    format!("{:?}", String::from_utf8_lossy(&bytes))
}

fn tokens_of(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

/// Prints a grammar in all notations, and these grammars in our own, and compares all of them with it.
/// Returns the number of notations that can say it.
fn check(name: &str, text: &str, from: Notation, texts: &[String]) -> usize {
    let one = machine(text, from);
    let (mut numbers, mut said) = (Numbers(7), 0);
    for to in targets() {
        let printed_text = match printed(text, from, to) {
            Ok(text) => text,
            Err(error) => {
                let mut known = UNSAID.iter();
                let is_known = known.any(|(notation, what)| *notation == to && error.contains(what));
                assert!(is_known || error.contains(LONGEST), "{name} to {to}: {error}");
                continue;
            }
        };
        said += 1;
        let again = printed(&printed_text, to, Notation::Ebnf);
        let again = again.unwrap_or_else(|error| panic!("{name} to {to} and back: {error}\n{printed_text}"));
        for (notation, printed) in [(to, &printed_text), (Notation::Ebnf, &again)] {
            let what = || format!("{name} to {to}, read as {notation}");
            let pair = Pair {
                one: &one,
                other: machine(printed, notation),
                printed,
            };
            for text in texts {
                let mut tokens = tokens_of(text);
                pair.compare(&tokens, &what);
                if !tokens.is_empty() {
                    tokens.remove(numbers.below(tokens.len()));
                    pair.compare(&tokens, &what);
                }
            }
            pair.compare_drawn(&mut numbers, &what);
        }
    }
    said
}

#[test]
fn grammars_mean_the_same_in_all_notations() {
    let folders = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("grammars"));
    let (mut found, mut said) = (0, 0);
    for folder in folders.expect("the folder of grammars").flatten() {
        let read = |file: &str| std::fs::read_to_string(folder.path().join(file));
        let mut texts = Vec::new();
        for file in ["accept.txt", "reject.txt"] {
            let lines = read(file).unwrap_or_default();
            texts.extend(
                lines
                    .lines()
                    .map(|line| serde_json::from_str::<String>(line).expect("a JSON string")),
            );
        }
        for notation in Notation::all() {
            if let Ok(text) = read(&format!("grammar.{notation}")) {
                let here = check(&folder.file_name().to_string_lossy(), &text, notation, &texts);
                found += usize::from(here > 0);
                said += here;
            }
        }
    }
    assert!(
        found > 15 && said > 7 * found,
        "{found} grammars, {said} in other notations"
    );
}

/// Constructs that no grammar of `grammars/` has.
#[test]
fn constructs_of_all_notations_are_written_out() {
    let cases: [(Notation, &str); 15] = [
        (
            Notation::Ebnf,
            "root ::= (\"a\" | \"b\" \"c\"+){2,4} [x-z]{3,} | \"\" | \"'\\\"\\\\\" start\nstart ::= .? \"x\"{,2}",
        ),
        (
            Notation::Ebnf,
            "a-b ::= a_b{3} | \"\\n\\r\\t\\0\\u{1F600}\"?\na_b ::= /[^a-y]+|é*/i | (a-b \"(\")*",
        ),
        (
            Notation::Ebnf,
            "r ::= ((\"a\"+ \"b\"?)+ [^\\]\\-^\\\\#\"/&~|]){1,3} Token Token ::= [0-35] (\"z\" | \"\")",
        ),
        (
            Notation::Ebnf,
            "root ::= (\"a\"{0} \"b\" | [a-b]{2} | /x{2,3}y{0}/)* ((\"c\"* | \"d\")+)?",
        ),
        (
            Notation::Gbnf,
            "root ::= a root_2 \nroot_2 ::= [\\x41-\\u00e9] | .\na ::= \"\" | root",
        ),
        (
            Notation::Lark,
            "start: \"if\" NAME | NAME \"=\" NAME\nNAME: /[a-z]+/\n%ignore \";\"",
        ),
        (
            Notation::Lark,
            "start: _l{A} \"b\"i~2..3\n_l{x}: x (\",\" x)*\nA: /a.*?b/ | \"x\"\n",
        ),
        (
            Notation::Lark,
            "start: /(?=a)[ab]+(?<!b)/ [\"-\"] WORD\n%import common.WORD",
        ),
        (
            Notation::Llguidance,
            "start: A & /[ab]{2}/ | t | r::0\nA: ~/ab/\nt[stop=\"\\n\"]: /[ab]*/\nr::_: \"c\" r::incr(_) %if lt(_, 3) | \"\"",
        ),
        (
            Notation::XGrammar,
            "root ::= TagDispatch((\"<a>\", a), excludes=(\"<\\/s>\",)) \nroot_x ::= a\na ::= Substring(\"x\", \"y\") Regex(\"^a.[^b]$\")",
        ),
        (
            Notation::W3c,
            "A ::= ([a-z]* - ([a-z]* 'x' [a-z]*)) #x22 B - 'q' C?\nB ::= 'q' | '\"' | [a-c]?\nC ::= '(' A ')'",
        ),
        (
            Notation::Iso,
            "a b = 'x' - 'y' | { \"'\" }-, [ c ] ; c = 3 * [ 'z' ], 2 * d; d = ('p' | 'q' | '') - 'q';",
        ),
        (
            Notation::Abnf,
            "a = 1*2DIGIT / \"if\" / %s\"If\" *( a-b ) [ %x22.27.0A ]\nA-B = %xE9-FF 2*%x61 / ALPHA",
        ),
        (
            Notation::Pest,
            "a = { k ~ (!(\"*/\") ~ ANY)* ~ \"*/\" } k = @{ !\"if\" ~ ASCII_ALPHA+ | ^\"no\" }\nWHITESPACE = { \" \" }",
        ),
        (
            Notation::Pest,
            "a = { SOI ~ (\"a\" | \"ab\")* ~ (NEWLINE | EOI) }",
        ),
    ];
    for (index, (from, text)) in cases.into_iter().enumerate() {
        let texts = [
            "", "a", "if", "if x", "ab*/", "xb", "\"q", "''zzzpp", "1if", "aab\n",
        ];
        check(&format!("case {index}"), text, from, &texts.map(str::to_owned));
    }
}
