//! The names and settings of families of models, beyond the comparisons of `torch` with `transformers`.

use crate::bad_models::Folder;
use crate::torch::FAMILIES;
use crate::torch::{Expected, Kind, TOLERANCE, WIDTH, load_family};
use lexiform_engine::{Device, Feed, LoadOptions, Model, ModelFiles, load};
use serde_json::{Map, Value, json};

/// The logits at all positions of a text.
pub(crate) fn rows(mut model: Box<dyn Model>, tokens: &[u32]) -> Vec<f32> {
    model.create_cache(10, 4).unwrap();
    let table: Vec<u32> = (0..10).collect();
    let feed = Feed {
        tokens,
        start: 0,
        table: &table,
        rows: tokens.len(),
        parents: None,
        scale: 1.0,
    };
    let logits = model.forward(&[feed]).unwrap();
    (0..logits.len())
        .flat_map(|row| logits.row(row).to_vec())
        .collect()
}

/// Every family, without those that differ in the type of their weights alone.
fn folders() -> impl Iterator<Item = &'static str> {
    let differs = |family: &&str| !family.ends_with("_bf16");
    FAMILIES.into_iter().filter(differs)
}

/// All objects of a configuration, by their JSON pointers.
fn objects(pointer: &str, value: &Value, found: &mut Vec<String>) {
    if let Value::Object(fields) = value {
        found.push(pointer.to_string());
        for (name, value) in fields {
            objects(&format!("{pointer}/{name}"), value, found);
        }
    }
}

/// Guards against a configuration that makes the loader or the model panic: each field of each family is left
/// out, and replaced by what it should not be. What loads in spite of it must make a pass, or say why not.
#[test]
fn no_configuration_makes_a_model_panic() {
    let junk = json!([null, true, -1, 0, 1, 3, 100, 0.5, 1e99, "x", [], [1], {}]);
    let (mut loaded, mut refused) = (0, 0);
    for family in folders() {
        let folder = Folder::copy_of(family, "junk");
        let text = std::fs::read_to_string(folder.0.join("config.json")).unwrap();
        let whole: Value = serde_json::from_str(&text).unwrap();
        let mut places = Vec::new();
        objects("", &whole, &mut places);
        let mut try_one = |change: &dyn Fn(&mut Map<String, Value>), place: &str| {
            let mut config = whole.clone();
            change(config.pointer_mut(place).unwrap().as_object_mut().unwrap());
            folder.write("config.json", config.to_string().as_bytes());
            match load(&ModelFiles::folder(&folder.0), &LoadOptions::default()) {
                Ok(mut found) => {
                    loaded += 1;
                    pass(&mut *found.model);
                }
                Err(_) => refused += 1,
            }
        };
        for place in &places {
            let fields = whole.pointer(place).unwrap().as_object().unwrap();
            for name in fields.keys() {
                try_one(
                    &|object| {
                        object.remove(name);
                    },
                    place,
                );
                for value in junk.as_array().unwrap() {
                    try_one(
                        &|object| {
                            object.insert(name.clone(), value.clone());
                        },
                        place,
                    );
                }
            }
        }
    }
    assert!(
        loaded > 1000 && refused > 1000,
        "{loaded} loaded, {refused} refused"
    );
}

/// A pass of a prompt and one of a single token, whatever comes of it.
fn pass(model: &mut dyn Model) {
    model.create_cache(10, 4).unwrap();
    let table: Vec<u32> = (0..10).collect();
    for (start, count) in [(0, 20), (20, 1)] {
        let feed = Feed {
            tokens: &vec![5; count],
            start,
            table: &table,
            rows: 1,
            parents: None,
            scale: 1.0,
        };
        if model.forward(&[feed]).is_err() {
            return;
        }
    }
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
