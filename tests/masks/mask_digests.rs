//! The masks of 200 schemas as digests, so that bindings can show that their masks are the same bit by bit.
//!
//! Along each schema, a text is written with the demo model's tokens, chosen by a generator of plain
//! arithmetic, and every mask on the way goes into a digest. `tests/data/mask_digests.txt` has the digests;
//! `GOLDEN=write` writes it anew. The tests of `bindings/python` compute the same digests from Python and
//! read the same file.

use crate::digested as schemas;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use lexiform::vocab::{ReadLimits, from_tokenizer_json};
use lexiform::{Compiler, Options, Source};
use lexiform::{Grammar, Mask};

const STEPS: usize = 24;
const DIGESTS: &str = "tests/data/mask_digests.txt";

/// Updates Fowler, Noll and Vo's hash (FNV-1a) with the words, byte by byte from the lowest.
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
    let file = from_tokenizer_json(
        &schemas::read("models/demo/tokenizer.json"),
        &ReadLimits::default(),
    );
    let vocabulary = file
        .expect("the demo tokenizer")
        .vocabulary(&[1])
        .expect("a vocabulary");
    let compiler = Compiler::new(Arc::new(vocabulary));
    let mut found = String::new();
    for (name, schema) in schemas::all() {
        let (grammar, _) = compiler
            .compile(Source::JsonSchema(&schema), &Options::default())
            .expect(&name);
        found += &format!("{:016x} {name}\n", along_a_text(&grammar));
    }
    assert_eq!(found.lines().count(), 200);
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "write") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DIGESTS);
        fs::write(path, &found).expect("the digests can be written");
    }
    for (found, recorded) in found.lines().zip(schemas::read(DIGESTS).lines()) {
        assert_eq!(found, recorded);
    }
}
