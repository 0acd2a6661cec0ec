//! What families of models are called and mean, beyond what `torch` compares with `transformers`.

use crate::bad_models::Folder;
use crate::torch::{Expected, Kind, TOLERANCE, WIDTH, load_family};
use lexiform_engine::{Device, Feed, LoadOptions, Model, ModelFiles, load};

fn rows(mut model: Box<dyn Model>, tokens: &[u32]) -> Vec<f32> {
    model.create_cache(10, 4).unwrap();
    let table: Vec<u32> = (0..10).collect();
    let feed = Feed {
        tokens,
        start: 0,
        table: &table,
        rows: tokens.len(),
        parents: None,
    };
    let logits = model.forward(&[feed]).unwrap();
    (0..logits.len())
        .flat_map(|row| logits.row(row).to_vec())
        .collect()
}

/// GPT-2 was published without the prefix with which `transformers` saves it.
#[test]
fn names_may_lack_the_prefix() {
    let folder = Folder::copy_of("gpt2", "prefix");
    let bytes = std::fs::read(folder.0.join("model.safetensors")).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let names = String::from_utf8(bytes[8..header].to_vec()).unwrap();
    let names = names.replace("\"transformer.", "\"");
    let length = (names.len() as u64).to_le_bytes();
    folder.write(
        "model.safetensors",
        &[&length, names.as_bytes(), &bytes[header..]].concat(),
    );
    let expected = Expected::read("gpt2");
    let loaded = load(&ModelFiles::folder(&folder.0), &LoadOptions::default()).unwrap();
    let found = rows(loaded.model, &expected.tokens);
    assert_eq!(found.len(), expected.tokens.len() * WIDTH);
    assert!(expected.off(0, &found) < TOLERANCE);
}

/// The factors for long texts would turn what is cached anew; see the reader of ropes.
#[test]
fn a_context_ends_where_its_short_factors_do() {
    let loaded = load_family(Kind::usual("phi4", Device::Cpu));
    assert_eq!(loaded.config.max_positions, 128);
    assert_eq!(loaded.model.max_positions(), 128);
}

#[test]
fn a_model_says_its_family() {
    for (folder, family) in [
        ("phi4", "phi3"),
        ("gemma3", "gemma3_text"),
        ("smollm3", "smollm3"),
    ] {
        assert_eq!(
            load_family(Kind::usual(folder, Device::Cpu)).config.family,
            family
        );
    }
}
