//! The schemas of MaskBench's development part that are not handled right in any key order, each with its reason. An entry that is no
//! longer true fails the test; `lexiform eval maskbench` says whether there are others.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lexiform::Grammar;
use lexiform::compile::{Compiler, Options, Source};
use lexiform::error::ProblemKind;
use lexiform::schema::KeyOrder;
use lexiform::vocab::{TokenKind, Vocabulary};
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

/// What becomes of an entry: `right`, `refused`, `narrower` (a valid instance is refused, and a finding says so), or worse.
fn outcome(compiler: &Compiler, entry: &Value) -> &'static str {
    let mut options = Options::default();
    options.schema.key_order = KeyOrder::Any;
    let Ok((grammar, found)) = compiler.compile(Source::JsonSchema(&entry["schema"].to_string()), &options)
    else {
        return "refused";
    };
    let mut findings = found.findings.iter();
    let narrower = findings.any(|finding| finding.kind == ProblemKind::Narrowed);
    for test in entry["tests"].as_array().into_iter().flatten() {
        match (test["valid"] == true, accepts(&grammar, &test["data"])) {
            (true, false) if narrower => return "narrower",
            (true, false) => return "a valid instance is refused without a finding",
            (false, true) => return "an invalid instance is accepted",
            _ => {}
        }
    }
    "right"
}

#[test]
fn what_remains_of_maskbench_fails_for_the_reasons_that_are_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = std::fs::read_to_string(root.join("tests/data/maskbench_remaining.json")).expect("the list");
    let listed: BTreeMap<String, String> = serde_json::from_str(&listed).expect("names and reasons");
    let Ok(text) = std::fs::read_to_string(root.join(".data/maskbench/dev.jsonl")) else {
        println!("skipped: what remains of maskbench: .data/maskbench is not there");
        return;
    };
    let compiler = compiler();
    let mut seen = 0;
    for line in text.lines() {
        let name = line
            .strip_prefix("{\"name\":\"")
            .and_then(|rest| rest.split('"').next());
        let Some(reason) = name.and_then(|name| listed.get(name)) else {
            continue;
        };
        let entry: Value = serde_json::from_str(line).expect("a line is JSON");
        let expected = reason.split(':').next();
        assert_eq!(Some(outcome(&compiler, &entry)), expected, "{}", entry["name"]);
        seen += 1;
    }
    assert_eq!(
        seen,
        listed.len(),
        "the list names schemas that are not in the collection"
    );
}
