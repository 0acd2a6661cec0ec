//! Keys of states: results that are stored for a state are found again after a restart, so keys depend only
//! on the grammar and the text.

use crate::digested as schemas;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::process::Command;
use std::sync::Arc;

use lexiform::vocab::{ReadLimits, TokenKind, Vocabulary, from_tokenizer_json};
use lexiform::{Compiler, Options, Source};
use lexiform::{Grammar, State};
use lexiform_automata::work::within;
use lexiform_law::draft::Constraint;

/// The number of tokens by which two masks may differ if one of them knows a key that was written.
const FEW: u32 = 4;

/// The number of texts that are written along each grammar, and the length of each in tokens.
const TEXTS: u64 = 3;
const STEPS: usize = 24;

fn vocabulary() -> Arc<Vocabulary> {
    let file = from_tokenizer_json(
        &schemas::read("models/demo/tokenizer.json"),
        &ReadLimits::default(),
    );
    Arc::new(
        file.expect("the demo tokenizer")
            .vocabulary(&[1])
            .expect("a vocabulary"),
    )
}

/// Returns the sources of `grammars/`, and regular expressions, each with its name.
fn others() -> Vec<(String, String)> {
    let names = [
        "ambiguous",
        "csv",
        "json",
        "left_recursive",
        "nullable",
        "s_expression",
        "tool_call",
    ];
    let grammars = names.map(|name| {
        (
            name.to_owned(),
            schemas::read(format!("grammars/{name}/grammar.ebnf")),
        )
    });
    grammars.into()
}

const PATTERNS: [&str; 3] = [
    "(ab|bc|the )*z?",
    "[0-9]{4}-[0-9]{2}(é|ß){1,300}",
    "(th|he|the){3,9}",
];

/// A source with its name.
#[derive(Clone, Debug)]
struct Named {
    name: String,
    text: String,
    read: fn(&str) -> Source<'_>,
}

fn sources() -> Vec<Named> {
    let named = |read: fn(&str) -> Source<'_>| move |(name, text)| Named { name, text, read };
    let schemas = schemas::all()
        .into_iter()
        .map(named(|text| Source::JsonSchema(text)));
    let grammars = others().into_iter().map(named(|text| Source::Ebnf(text)));
    let patterns = PATTERNS.map(|text| (text.to_owned(), text.to_owned()));
    let patterns = patterns.into_iter().map(named(|text| Source::Regex(text)));
    schemas.chain(grammars).chain(patterns).collect()
}

fn compiled(compiler: &Compiler, source: &Named) -> Grammar {
    let source_text = (source.read)(&source.text);
    let compiled = compiler.compile(source_text, &Options::default());
    compiled.expect(&source.name).0
}

/// Returns the states along a text whose tokens are chosen by plain arithmetic.
fn walk(grammar: &Grammar, seed: u64) -> Vec<(Vec<u32>, State)> {
    let (mut state, mut chance, mut text) = (grammar.start(), seed, Vec::new());
    let mut found = vec![(text.clone(), state)];
    for _ in 0..STEPS {
        let tokens: Vec<u32> = grammar.mask(state).iter().collect();
        if tokens.is_empty() {
            break;
        }
        chance = (chance * 1_103_515_245 + 12_345) % (1 << 31);
        text.push(tokens[(chance / 65_536) as usize % tokens.len()]);
        state = grammar
            .step(state, text[text.len() - 1])
            .expect("the mask allows it");
        found.push((text.clone(), state));
    }
    found
}

fn keys(grammar: &Grammar, seed: u64) -> Vec<u64> {
    let states = walk(grammar, seed).into_iter();
    states.map(|(_, state)| grammar.key(state)).collect()
}

/// Returns the keys along all texts of all sources, as text with a line for each source.
fn written(sources: &[Named]) -> String {
    let compiler = Compiler::new(vocabulary());
    let line = |source: &Named| {
        let grammar = compiled(&compiler, source);
        let keys = (0..TEXTS).flat_map(|seed| keys(&grammar, seed));
        let keys: Vec<String> = keys.map(|key| format!("{key:016x}")).collect();
        format!("{} {}\n", source.name.replace('\n', " "), keys.join(" "))
    };
    sources.iter().map(line).collect()
}

/// Guards against keys that depend on earlier compiles, on the texts that were read before, or on the threads
/// that read them, as the numbers of states do.
#[test]
fn keys_of_two_compilations_are_the_same() {
    let sources = sources();
    let one = Compiler::new(vocabulary());
    let other = Compiler::new(vocabulary())
        .primed(&Options::default())
        .expect("it is primed");
    let backwards: HashMap<String, Grammar> = (sources.iter().rev())
        .map(|source| (source.name.clone(), compiled(&other, source)))
        .collect();
    let mut renumbered = 0;
    for source in &sources {
        let (first, second) = (compiled(&one, source), &backwards[&source.name]);
        // Other texts come first, on several threads at once, some of which compute keys.
        std::thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || {
                    for seed in (0..2).map(|text| 1000 + 7 * thread + text) {
                        let last = walk(second, seed).pop().expect("a state").1;
                        if thread > 0 {
                            second.key(last);
                        }
                    }
                });
            }
        });
        for seed in 0..TEXTS {
            let (before, after) = (walk(&first, seed), walk(second, seed));
            for ((text, state), (_, same)) in before.into_iter().zip(after) {
                renumbered += usize::from(state != same);
                assert_eq!(first.key(state), second.key(same), "{} {text:?}", source.name);
            }
        }
        let renewed = second.fresh();
        assert_eq!(keys(&first, 1), keys(&renewed, 1), "{}", source.name);
    }
    assert!(renumbered > 1000, "only {renumbered} states have other numbers");
}

/// The environment variable that requests this program's keys in a child process.
const IN_A_CHILD: &str = "LEXIFORM_STATE_KEYS_IN_A_CHILD";

#[test]
fn keys_of_two_processes_are_the_same() {
    let sources = sources();
    let sources = &sources[..sources.len().min(60)];
    if std::env::var_os(IN_A_CHILD).is_some() {
        print!("{}", written(sources));
        return;
    }
    let program = std::env::current_exe().expect("this program");
    let child = Command::new(program)
        .args([
            "--exact",
            "state_keys::keys_of_two_processes_are_the_same",
            "--nocapture",
        ])
        .env(IN_A_CHILD, "1")
        .output()
        .expect("it runs");
    let child = String::from_utf8(child.stdout).expect("text");
    let own = written(sources);
    assert_eq!(own.lines().count(), sources.len());
    for line in own.lines() {
        assert!(child.contains(line), "a process of its own does not find {line}");
    }
}

/// Guards against rows that are found where they were not learned. What an object remembers of free keys is
/// left out of a key, so two of its states may share one; nearly the same may follow them.
#[test]
fn states_share_keys_only_where_nearly_the_same_follows() {
    let compiler = Compiler::new(vocabulary());
    // By the content of a grammar, which the key of its start tells: some sources are other spellings of the
    // same.
    let mut starts: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let (mut states, mut sharing) = (0, 0);
    for source in sources() {
        let grammar = compiled(&compiler, &source);
        let mut by_key: HashMap<u64, State> = HashMap::new();
        let mut seen: BTreeSet<u32> = BTreeSet::new();
        for (text, state) in (0..TEXTS).flat_map(|seed| walk(&grammar, seed)) {
            if !seen.insert(state.to_u32()) {
                continue;
            }
            states += 1;
            let Some(other) = by_key.insert(grammar.key(state), state) else {
                continue;
            };
            sharing += 1;
            let (one, other) = (grammar.mask(state), grammar.mask(other));
            let words = || one.words().iter().zip(other.words());
            let in_one: u32 = words().map(|(one, other)| (one ^ other).count_ones()).sum();
            let in_any: u32 = words().map(|(one, other)| (one | other).count_ones()).sum();
            let what = format!("{} {text:?}: {in_one} of {in_any}", source.name);
            // Those that would make a key the same as one that was written.
            assert!(in_one <= FEW.max(in_any / 100), "{what}");
        }
        starts
            .entry(grammar.key(grammar.start()))
            .or_default()
            .extend(by_key.keys());
    }
    let all: Vec<u64> = starts.values().flatten().copied().collect();
    let distinct: BTreeSet<u64> = all.iter().copied().collect();
    assert_eq!(
        distinct.len(),
        all.len(),
        "states of different grammars share a key"
    );
    assert!(states > 5000 && 50 * sharing < states, "{sharing} of {states}");
}

/// Creates a vocabulary of single bytes, and an end token.
fn letters() -> Arc<Vocabulary> {
    let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
    tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"))
}

fn key_after(source: Source<'_>, text: &str) -> u64 {
    let options = Options::default();
    let (grammar, _) = Compiler::new(letters())
        .compile(source, &options)
        .expect("it compiles");
    let state = grammar.step_bytes(grammar.start(), text.as_bytes());
    grammar.key(state.unwrap_or_else(|| panic!("{text} belongs to it")))
}

/// What is learned of the values of one object serves the next one, whatever its free keys are; which of the
/// listed members were written, how many items, and how much of a text, tell states apart.
#[test]
fn free_keys_that_were_written_are_left_out_and_nothing_else() {
    let free = Source::JsonSchema(r#"{"additionalProperties": {"enum": ["x", "y"]}}"#);
    assert_eq!(key_after(free, r#"{"a":""#), key_after(free, r#"{"b":""#));
    assert_eq!(
        key_after(free, r#"{"a":"x","b":""#),
        key_after(free, r#"{"c":"y","d":""#)
    );
    let listed = Source::JsonSchema(
        r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}},
        "additionalProperties": false, "maxProperties": 2}"#,
    );
    let bounded = Source::JsonSchema(r#"{"type": "array", "items": {"const": 1}, "maxItems": 9}"#);
    let counted = Source::Regex("(?:ab){2,90}");
    for (source, one, other) in [
        (free, r#"{"a"#, r#"{"b"#),
        (free, r#"{"a":"x"#, r#"{"a":"y"#),
        (free, r#"{"a":"#, r#"{"a":"x","b":"#),
        (listed, r#"{"a":1,"#, r#"{"b":1,"#),
        (bounded, "[1,1", "[1,1,1"),
        (counted, "abab", "ababab"),
    ] {
        let same = key_after(source, one) == key_after(source, other);
        // An object without bounds forgets how many members it has.
        let is_forgotten = one == r#"{"a":"#;
        assert_eq!(same, is_forgotten, "{source:?} {one} {other}");
    }
}

/// Rows are kept under these keys. Where they change, raise the number in the name under which `StateKeyed`
/// keeps them (`law/src/draft/predict/keyed.rs`): what was kept is then left out with a message, in the place
/// of never being found.
#[test]
fn keys_are_those_of_the_record() {
    let schema = r#"{"properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer"}}, "required": ["name"]}"#;
    let found = [
        (Source::Regex("(ab|cd)*"), "abc"),
        (Source::Ebnf(r#"root ::= "a" root "b" | "c""#), "aaac"),
        (Source::JsonSchema(schema), r#"{"name":"Mar"#),
        (Source::JsonSchema(schema), r#"{"name":"M","age":3,"more":[{"x"#),
        (Source::JsonSchema(r#"{"format": "idn-hostname"}"#), r#""a.b"#),
    ];
    let found = found.map(|(source, text)| key_after(source, text));
    let recorded = [
        "e7bb4a72e51bb1fb",
        "e8a47d3a45753c19",
        "2b4901fb6791fe2e",
        "94544f9f3cebeeca",
        "6f392b79b9e86de3",
    ];
    assert_eq!(found.map(|key| format!("{key:016x}")), recorded);
}

/// Compiles a grammar over single bytes.
fn of_bytes(source: Source<'_>) -> Grammar {
    let mut tokens = vec![(TokenKind::Special, b"<eos>".to_vec())];
    tokens.extend((0..=255u8).map(|byte| (TokenKind::Text, vec![byte])));
    let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
    let compiled = lexiform::compile(source, &vocabulary, &Options::default());
    compiled.expect("it compiles").0
}

/// Returns the rounds that a key takes, up to some thousands.
fn rounds(grammar: &Grammar, state: State) -> usize {
    let stacks = grammar.machine().stacks();
    let costs = |rounds: usize| within(("rounds", rounds), || stacks.name(state.to_u32())).is_ok();
    (0..5000).find(|&rounds| costs(rounds)).unwrap_or(usize::MAX)
}

/// A key is computed once, and its callers have theirs, so in a text that continues it costs the same at any
/// depth, and then nothing.
#[test]
fn a_name_costs_a_few_rounds_at_any_depth_and_then_none() {
    for (source, piece) in [
        (Source::JsonSchema("true"), r#"[{"a":"#),
        (Source::Ebnf(r#"root ::= "(" root ")" root | "x""#), "("),
        (
            Source::JsonSchema(r#"{"additionalProperties": {"type": "integer"}}"#),
            "",
        ),
    ] {
        let grammar = of_bytes(source);
        let mut state = grammar.start();
        rounds(&grammar, state);
        let (mut most, mut all) = (0, 0);
        for number in 0..400 {
            let piece = match piece {
                "" => format!(
                    r#"{}"key {number}":{number}"#,
                    if number == 0 { "{" } else { "," }
                ),
                piece => piece.to_owned(),
            };
            state = grammar.step_bytes(state, piece.as_bytes()).expect("it goes on");
            let cost = rounds(&grammar, state);
            (most, all) = (most.max(cost), all + cost);
            assert_eq!(rounds(&grammar, state), 0);
        }
        assert!(
            most <= 40 && all <= 400 * 20,
            "{source:?}: {most} at most, {all} in all"
        );
    }
}

/// The first key computed deep in a text pays once for everything below it.
#[test]
fn a_deep_text_is_named_from_the_bottom_without_recursion() {
    let grammar = of_bytes(Source::Ebnf(r#"root ::= "(" root ")" root | "x""#));
    let deep = "(".repeat(100_000);
    let mut state = grammar.start();
    for piece in deep.as_bytes().chunks(64) {
        state = grammar.step_bytes(state, piece).expect("it goes on");
    }
    let stacks = grammar.machine().stacks();
    let name = stacks.name(state.to_u32());
    assert_eq!(within(("rounds", 0), || stacks.name(state.to_u32())), Ok(name));
    assert!(stacks.count() > 100_000, "{}", stacks.count());
}
