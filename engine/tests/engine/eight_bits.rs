//! Weights in eight bits: the resulting model equals one whose checkpoint has the rounded weights, and is
//! near the one that was rounded.

use crate::bad_models::Folder;
use crate::torch::FAMILIES;
use lexiform::vocab::Tokenizer;
use lexiform_engine::{Dtype, Feed, LoadError, LoadOptions, ModelFiles, WeightFormat, load};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The rows of logits of a text that is read in one pass.
fn logits(folder: &Path, weights: WeightFormat, tokens: &[u32]) -> Vec<f32> {
    let options = LoadOptions {
        threads: 2,
        weights,
        ..LoadOptions::default()
    };
    let mut model = load(&ModelFiles::folder(folder), &options).unwrap().model;
    model.create_cache(64, 4).unwrap();
    let table: Vec<u32> = (0..64).collect();
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

/// A tensor of a checkpoint.
struct Stored {
    name: String,
    shape: Vec<usize>,
    values: Vec<f32>,
}

/// Those of all files of a checkpoint.
fn stored(folder: &Path) -> Vec<Stored> {
    files(folder).iter().flat_map(|file| stored_in(file)).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    all.filter(|file| file.extension().is_some_and(|end| end == "safetensors"))
        .collect()
}

fn stored_in(file: &Path) -> Vec<Stored> {
    let bytes = std::fs::read(file).unwrap();
    let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Map<String, Value> = serde_json::from_slice(&bytes[8..end]).unwrap();
    let tensors = header.into_iter().filter(|(name, _)| name != "__metadata__");
    let read = |(name, told): (String, Value)| {
        let numbers = |name: &str| -> Vec<usize> { serde_json::from_value(told[name].clone()).unwrap() };
        let place = numbers("data_offsets");
        let data = &bytes[end + place[0]..end + place[1]];
        let values = match told["dtype"].as_str() {
            Some("F32") => data
                .chunks(4)
                .map(|number| f32::from_le_bytes(number.try_into().unwrap()))
                .collect(),
            Some("BF16") => data
                .chunks(2)
                .map(|number| f32::from_bits(u32::from(u16::from_le_bytes(number.try_into().unwrap())) << 16))
                .collect(),
            other => panic!("{name} is in {other:?}"),
        };
        let shape = numbers("shape");
        Stored { name, shape, values }
    };
    tensors.map(read).collect()
}

impl Stored {
    /// Whether rows are multiplied with it, and it is no router.
    fn is_rounded(&self) -> bool {
        let is_table = ["embed_tokens", "wte", "wpe"]
            .iter()
            .any(|table| self.name.contains(table));
        self.shape.len() == 2 && !is_table && !self.name.ends_with(".gate.weight")
    }

    /// Rounds it to what eight bits hold: by row, or by column where matrices lie the other way.
    fn round(&mut self, format: WeightFormat, transposed: bool) {
        let [rows, columns] = self.shape[..] else {
            return;
        };
        let at = |output: usize, input: usize| match transposed {
            true => input * columns + output,
            false => output * columns + input,
        };
        let (outputs, inputs) = if transposed {
            (columns, rows)
        } else {
            (rows, columns)
        };
        for output in 0..outputs {
            let most = (0..inputs)
                .map(|input| self.values[at(output, input)].abs())
                .fold(0.0, f32::max);
            let scale = most
                / if format == WeightFormat::Int8 {
                    127.0
                } else {
                    448.0
                };
            assert!(scale > 0.0, "{} has a row of zeros", self.name);
            for input in 0..inputs {
                let value = &mut self.values[at(output, input)];
                *value = scale * nearest(format, *value / scale);
            }
        }
    }
}

/// The nearest number of eight bits. Those of fp8 are multiples of a sixteenth of the power of two above
/// them, at least of 2⁻⁹.
fn nearest(format: WeightFormat, number: f32) -> f32 {
    let unit = match format {
        WeightFormat::Int8 => 1.0,
        _ => 2.0_f32.powi((number.abs().log2().floor() as i32).max(-6) - 3),
    };
    unit * (number / unit).round_ties_even()
}

/// The same model with a checkpoint in `f32` that holds the rounded weights; a head of its own, where the
/// embedding was the head.
fn rounded(family: &str, format: WeightFormat) -> Folder {
    let folder = Folder::copy_of(family, &format!("eight-bits-{family}-{format}"));
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(folder.0.join("config.json")).unwrap()).unwrap();
    config["tie_word_embeddings"] = json!(false);
    folder.write("config.json", config.to_string().as_bytes());
    let mut tensors = stored(&folder.0);
    if !tensors.iter().any(|tensor| tensor.name == "lm_head.weight") {
        let is_embedding =
            |tensor: &&Stored| tensor.name.contains("embed_tokens") || tensor.name.contains("wte");
        let embedding = tensors.iter().find(is_embedding).unwrap();
        let (shape, values) = (embedding.shape.clone(), embedding.values.clone());
        let mut head = Stored {
            name: "lm_head.weight".to_owned(),
            shape,
            values,
        };
        head.round(format, false);
        tensors.push(head);
    }
    let is_transposed = family.starts_with("gpt2");
    for tensor in tensors
        .iter_mut()
        .filter(|tensor| tensor.is_rounded() && tensor.name != "lm_head.weight")
    {
        tensor.round(format, is_transposed);
    }
    for head in tensors
        .iter_mut()
        .filter(|tensor| tensor.name == "lm_head.weight")
    {
        // A second time changes nothing.
        head.round(format, false);
    }
    files(&folder.0)
        .iter()
        .for_each(|file| std::fs::remove_file(file).unwrap());
    // Of a checkpoint in several files.
    drop(std::fs::remove_file(
        folder.0.join("model.safetensors.index.json"),
    ));
    write(&folder, &tensors);
    folder
}

fn write(folder: &Folder, tensors: &[Stored]) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for tensor in tensors {
        let first = data.len();
        data.extend(tensor.values.iter().flat_map(|value| value.to_le_bytes()));
        let told = json!({"dtype": "F32", "shape": tensor.shape, "data_offsets": [first, data.len()]});
        header.insert(tensor.name.clone(), told);
    }
    let header = Value::Object(header).to_string();
    let length = (header.len() as u64).to_le_bytes();
    folder.write("model.safetensors", &[&length, header.as_bytes(), &data].concat());
}

/// The root of the mean square of a difference, as a share of that of what is differed from.
fn off(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let squares =
        |numbers: &mut dyn Iterator<Item = f32>| numbers.map(|number| f64::from(number).powi(2)).sum::<f64>();
    let difference = squares(&mut found.iter().zip(expected).map(|(one, other)| one - other));
    (difference / squares(&mut expected.iter().copied())).sqrt()
}

#[test]
fn a_model_in_eight_bits_is_the_one_whose_checkpoint_is_rounded() {
    let tokens: Vec<u32> = (0..24).map(|number| (number * 37) % 90).collect();
    // Its configuration is in two parts; it is another name for gemma3.
    for family in FAMILIES.into_iter().filter(|family| *family != "gemma3_images") {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(family);
        let unrounded = logits(&fixture, WeightFormat::Stored, &tokens);
        for (format, most) in [(WeightFormat::Int8, 0.1), (WeightFormat::Fp8, 0.3)] {
            let found = logits(&fixture, format, &tokens);
            let expected = logits(&rounded(family, format).0, WeightFormat::Stored, &tokens);
            let wrong = off(&found, &expected);
            assert!(wrong < 1e-5, "{family}, {format}: off by {wrong}");
            // It is another model than the one that was rounded, and not far from it.
            let rounding = off(&found, &unrounded);
            assert!(
                (1e-4..most).contains(&rounding),
                "{family}, {format}: rounding moves logits by {rounding}"
            );
        }
    }
}

/// What rounding does to a model that was trained; the figure is in benches/record.
#[test]
fn the_demo_model_in_eight_bits_says_nearly_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/demo");
    let tokenizer = Tokenizer::from_bytes(&std::fs::read(folder.join("tokenizer.json")).unwrap()).unwrap();
    let text = "Ada Lovelace is 36 years old and lives in London. Order 4711 from 12 March 2024: three lamps at 19.90 each.";
    let tokens = tokenizer.encode(text).unwrap();
    let stored = logits(&folder, WeightFormat::Stored, &tokens);
    let rounded = [WeightFormat::Int8, WeightFormat::Fp8].map(|format| logits(&folder, format, &tokens));
    let width = stored.len() / tokens.len();
    let likeliest = |row: &[f32]| (0..width).max_by(|&one, &other| row[one].total_cmp(&row[other]));
    for (rounded, most) in rounded.into_iter().zip([0.05, 0.15]) {
        let rows = stored.chunks(width).zip(rounded.chunks(width));
        let same = rows
            .filter(|(one, other)| likeliest(one) == likeliest(other))
            .count();
        let off = off(&rounded, &stored);
        println!(
            "{} rows: logits off by {off:.4}, the likeliest token the same in {same}",
            tokens.len()
        );
        assert!((1e-4..most).contains(&off), "{off}");
        assert!(same * 10 >= tokens.len() * 9, "{same} of {}", tokens.len());
    }
}

/// Guards against a choice that is silently without effect.
#[test]
fn torch_refuses_what_only_our_loops_can_do() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/llama2");
    let by_loops = LoadOptions::default();
    let int8 = LoadOptions {
        weights: WeightFormat::Int8,
        ..by_loops.clone()
    };
    let invariant = LoadOptions {
        batch_invariant: true,
        ..by_loops
    };
    let fp8 = LoadOptions {
        weights: WeightFormat::Fp8,
        ..int8.clone()
    };
    for (options, names) in [
        (int8, "weights in int8"),
        (fp8, "weights in fp8"),
        (invariant, "batch-invariant passes"),
    ] {
        let by_torch = LoadOptions {
            fused: false,
            ..options.clone()
        };
        let in_half = LoadOptions {
            dtype: Dtype::Bf16,
            ..options.clone()
        };
        for refused in [by_torch, in_half] {
            match load(&ModelFiles::folder(&folder), &refused) {
                Err(LoadError::Unavailable { what, .. }) => assert_eq!(what, names),
                Err(other) => panic!("{other}"),
                Ok(_) => panic!("{refused:?} was taken"),
            }
        }
        assert!(load(&ModelFiles::folder(&folder), &options).is_ok());
    }
}
