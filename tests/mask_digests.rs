//! The masks of 200 schemas in numbers, so that bindings can show that theirs are the same bit by bit.
//!
//! Along each schema a text is written by the demo model's tokens, chosen by a generator of plain arithmetic, and every mask on
//! the way goes into a digest. `tests/data/mask_digests.txt` holds the digests; `GOLDEN=write` writes it anew. The tests of
//! `bindings/python` compute the same digests from Python and read the same file.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use lexiform::compile::{Compiler, Options, Source};
use lexiform::vocab::{ReadLimits, from_tokenizer_json};
use lexiform::{Grammar, Mask};
use serde_json::Value;

const SCHEMAS: usize = 200;
const STEPS: usize = 24;
const DIGESTS: &str = "tests/data/mask_digests.txt";

fn read(path: impl AsRef<Path>) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The schemas of the corpus that compile, and then those of the demo model's held-out texts; each with its name.
fn schemas() -> Vec<(String, String)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let folders = fs::read_dir(corpus)
        .expect("schemas/")
        .map(|entry| entry.expect("an entry"));
    let mut names: Vec<String> = folders
        .map(|entry| entry.file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    names.retain(|name| {
        !Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("schemas")
            .join(name)
            .join("expected_error.txt")
            .exists()
    });
    let corpus = names.into_iter().map(|name| {
        let schema = read(format!("schemas/{name}/schema.json"));
        (name, schema)
    });
    let mut schemas: Vec<(String, String)> = corpus.collect();
    for (line, text) in read("models/demo/heldout.jsonl").lines().enumerate() {
        let held_out: Value = serde_json::from_str(text).expect("a line of JSON");
        let schema = held_out["schema"].to_string();
        if !schemas.iter().any(|(_, known)| *known == schema) {
            schemas.push((format!("heldout {}", line + 1), schema));
        }
    }
    schemas.truncate(SCHEMAS);
    schemas
}

/// Fowler, Noll and Vo's hash (FNV-1a) of the words, byte by byte from the lowest.
fn digest(mask: &Mask, digest: u64) -> u64 {
    let bytes = mask.words().iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(digest, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn along_a_text(grammar: &Grammar) -> u64 {
    let (mut state, mut chance, mut all) = (grammar.start(), 1_u64, 0xcbf2_9ce4_8422_2325);
    for _ in 0..STEPS {
        let mask = grammar.mask(state);
        all = digest(&mask, all);
        let tokens: Vec<u32> = mask.iter().collect();
        if tokens.is_empty() {
            break;
        }
        chance = (chance * 1_103_515_245 + 12_345) % (1 << 31);
        let token = tokens[(chance / 65_536) as usize % tokens.len()];
        state = grammar.step(state, token).expect("the mask allows it");
    }
    all
}

#[test]
fn masks_are_those_of_the_record() {
    let file = from_tokenizer_json(&read("models/demo/tokenizer.json"), &ReadLimits::default());
    let vocabulary = file
        .expect("the demo tokenizer")
        .vocabulary(&[1])
        .expect("a vocabulary");
    let compiler = Compiler::new(Arc::new(vocabulary));
    let mut found = String::new();
    for (name, schema) in schemas() {
        let (grammar, _) = compiler
            .compile(Source::JsonSchema(&schema), &Options::default())
            .expect(&name);
        found += &format!("{:016x} {name}\n", along_a_text(&grammar));
    }
    assert_eq!(found.lines().count(), SCHEMAS);
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "write") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DIGESTS);
        fs::write(path, &found).expect("the digests can be written");
    }
    for (found, recorded) in found.lines().zip(read(DIGESTS).lines()) {
        assert_eq!(found, recorded);
    }
}
