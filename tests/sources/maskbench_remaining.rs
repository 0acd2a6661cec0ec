//! The schemas of MaskBench's development part that are not handled right, each with its reason: in any key
//! order, and in that of the schema, where instances that write their keys in another order are listed by the
//! collection. It lists those that a plain walk finds; behind branches and patterns there are more, which our
//! list calls `exception`: the instance breaks the order of one `properties`. Where it is only our order of
//! several that it breaks, the list says `order`. Whatever else fails, fails the test, and so does an entry
//! that is no longer true.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lexiform::Grammar;
use lexiform::error::ProblemKind;
use lexiform::schema::KeyOrder;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Options, Source};
use serde_json::Value;

fn compiler() -> Compiler {
    let eos = (TokenKind::Text, b"<eos>".to_vec());
    let bytes = (0..=255u8).map(|byte| (TokenKind::Text, vec![byte]));
    let tokens: Vec<_> = std::iter::once(eos).chain(bytes).collect();
    Compiler::new(Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary")))
}

/// A value as Python's `json.dumps` spaces it, which is how the collection's instances are written.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(list) => format!("[{}]", list.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let entry =
                |(key, value): (&String, &Value)| format!("{}: {}", Value::from(key.as_str()), spaced(value));
            format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}

fn accepts(grammar: &Grammar, value: &Value) -> bool {
    let end = grammar.step_bytes(grammar.start(), spaced(value).as_bytes());
    end.is_some_and(|state| grammar.is_accepting(state))
}

/// What becomes of an entry: what of it is wrong, and the valid instances that are refused.
#[derive(Default)]
struct Outcome {
    /// `refused`, `narrower` (a valid instance is refused, and a finding says so), or worse; nothing where
    /// all is right.
    wrong: Option<&'static str>,
    refused: BTreeSet<usize>,
}

fn outcome(compiler: &Compiler, entry: &Value, key_order: KeyOrder) -> Outcome {
    let mut options = Options::default();
    options.schema.key_order = key_order;
    let schema = entry["schema"].to_string();
    let Ok((grammar, found)) = compiler.compile(Source::JsonSchema(&schema), &options) else {
        return Outcome {
            wrong: Some("refused"),
            refused: BTreeSet::new(),
        };
    };
    let mut findings = found.findings.iter();
    let narrower = findings.any(|finding| finding.kind == ProblemKind::Narrowed);
    let mut outcome = Outcome::default();
    for (at, test) in entry["tests"].as_array().into_iter().flatten().enumerate() {
        match (test["valid"] == true, accepts(&grammar, &test["data"])) {
            (true, false) => {
                outcome.refused.insert(at);
                outcome.wrong = Some(match narrower {
                    true => "narrower",
                    false => "a valid instance is refused without a finding",
                });
            }
            (false, true) => {
                outcome.wrong = Some("an invalid instance is accepted");
                return outcome;
            }
            _ => {}
        }
    }
    outcome
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Names and reasons; what is before the colon of a reason is the outcome.
fn listed(file: &str) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(root().join("tests/data").join(file)).expect("the list");
    serde_json::from_str(&text).expect("names and reasons")
}

fn data(test: &str, file: &str) -> Option<String> {
    let text = std::fs::read_to_string(root().join(".data/maskbench").join(file)).ok();
    if text.is_none() {
        println!("skipped: {test}: .data/maskbench is not there");
    }
    text
}

fn name(line: &str) -> &str {
    let name = line
        .strip_prefix("{\"name\":\"")
        .and_then(|rest| rest.split('"').next());
    name.expect("a line begins with its name")
}

#[test]
fn what_remains_of_maskbench_fails_for_the_reasons_that_are_listed() {
    let listed = listed("maskbench_remaining.json");
    let Some(text) = data("what remains of maskbench", "dev.jsonl") else {
        return;
    };
    let mut compiler = compiler();
    let mut seen = 0;
    for line in text.lines() {
        compiler = compiler.fresh();
        let entry: Value = serde_json::from_str(line).expect("a line is JSON");
        let outcome = outcome(&compiler, &entry, KeyOrder::Any);
        let reason = listed.get(name(line));
        seen += usize::from(reason.is_some());
        let expected = reason.and_then(|reason| reason.split(':').next());
        assert_eq!(outcome.wrong, expected, "{}", name(line));
    }
    assert_eq!(
        seen,
        listed.len(),
        "the list names schemas that are not in the collection"
    );
}

#[test]
fn in_the_order_of_the_schema_only_the_order_of_keys_is_wrong_besides() {
    let (in_any, in_this) = (
        listed("maskbench_remaining.json"),
        listed("maskbench_remaining_schema_order.json"),
    );
    let test = "what remains of maskbench in the order of the schema";
    let Some((text, exceptions)) = data(test, "dev.jsonl").zip(data(test, "property_order_exceptions.tsv"))
    else {
        return;
    };
    let mut exempt: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for line in exceptions.lines() {
        let mut fields = line.split('\t');
        let (name, at) = (fields.next().expect("a name"), fields.next().expect("an index"));
        exempt
            .entry(name)
            .or_default()
            .insert(at.parse().expect("an index"));
    }
    let (mut compiler, mut right, mut seen) = (compiler(), 0, 0);
    for line in text.lines() {
        compiler = compiler.fresh();
        let entry: Value = serde_json::from_str(line).expect("a line is JSON");
        let name = name(line);
        let outcome = outcome(&compiler, &entry, KeyOrder::Schema);
        let Some(wrong) = outcome.wrong else {
            right += 1;
            continue;
        };
        assert_ne!(wrong, "an invalid instance is accepted", "{name}");
        let others = |at: &usize| exempt.get(name).is_none_or(|exempt| !exempt.contains(at));
        let unexplained = outcome.refused.iter().any(others);
        match (in_any.contains_key(name), in_this.contains_key(name)) {
            (true, _) => {}
            (false, listed) => {
                assert_eq!(unexplained, listed, "{name}: refused {:?}", outcome.refused);
                seen += usize::from(listed);
            }
        }
    }
    assert_eq!(
        seen,
        in_this.len(),
        "an entry of the list is right, or not in the collection"
    );
    println!("{right} schemas are right in the order of the schema");
}
