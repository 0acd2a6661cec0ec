//! Model folders: `config.json`, `generation_config.json` and `model.safetensors`, as `transformers` reads
//! them.

use crate::error::{self, Error};
use crate::model::{EMBEDDING, Model, Shape};
use crate::tokenizer::SPECIAL;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use tch::{Device, Kind, Tensor};

/// Writes `model` with its weights as bf16.
pub(crate) fn save(model: &Model, folder: &Path) -> Result<(), Error> {
    write_json(&folder.join("config.json"), &model.shape.config())?;
    let generation = json!({
        "eos_token_id": crate::tokenizer::END, "pad_token_id": crate::tokenizer::PAD, "do_sample": false,
    });
    write_json(&folder.join("generation_config.json"), &generation)?;
    error::write(
        &folder.join("model.safetensors"),
        &safetensors(model, Kind::BFloat16)?,
    )
}

/// Writes the weights alone, as f32, for training to go on from.
pub(crate) fn save_checkpoint(model: &Model, path: &Path) -> Result<(), Error> {
    error::write(path, &safetensors(model, Kind::Float)?)
}

/// Reads the model of a folder.
pub(crate) fn load(folder: &Path) -> Result<Model, Error> {
    let path = folder.join("config.json");
    let config: Value = serde_json::from_slice(&error::read(&path)?)?;
    let shape = Shape::from_config(&config).ok_or_else(|| Error::content(&path, "no Llama configuration"))?;
    load_weights(shape, &folder.join("model.safetensors"))
}

/// Reads weights, of any kind of number, into a model of the given shape.
pub(crate) fn load_weights(shape: Shape, path: &Path) -> Result<Model, Error> {
    let found = Tensor::read_safetensors(path).map_err(|reason| Error::content(path, reason))?;
    let mut weights = Vec::new();
    for (name, size) in shape.parameters() {
        match found
            .iter()
            .find(|(found, tensor)| *found == name && tensor.size() == size)
        {
            Some((_, tensor)) => weights.push(tensor.to_device(Device::Cpu).to_kind(Kind::Float)),
            None => {
                return Err(Error::content(
                    path,
                    format!("holds no tensor {name} of size {size:?}"),
                ));
            }
        }
    }
    Ok(Model::with_weights(shape, weights))
}

/// Reads weights that may know fewer tokens: a special token that is new begins as the mean of the others.
pub(crate) fn load_grown(shape: Shape, path: &Path) -> Result<Model, Error> {
    let found = Tensor::read_safetensors(path).map_err(|reason| Error::content(path, reason))?;
    let embedding = found.iter().find(|(name, _)| name == EMBEDDING);
    let known = embedding.map_or(shape.vocabulary, |(_, rows)| rows.size()[0]);
    let mut model = load_weights(
        Shape {
            vocabulary: known,
            ..shape
        },
        path,
    )?;
    let rows = &model.weights[0];
    let mean = rows
        .narrow(0, 0, SPECIAL.len() as i64)
        .mean_dim([0i64].as_slice(), true, Kind::Float);
    let new = mean.expand([(shape.vocabulary - known).max(0), shape.width], false);
    model.weights[0] = Tensor::cat(&[rows, &new], 0);
    Ok(Model::with_weights(shape, model.weights))
}

/// The mean of several weights, each counted as much as is said with it: what training did at random cancels
/// out.
pub(crate) fn average(shape: Shape, parts: &[(f64, PathBuf)]) -> Result<Model, Error> {
    let total: f64 = parts.iter().map(|part| part.0).sum();
    let mut sum: Vec<Tensor> = Vec::new();
    for (share, path) in parts {
        let model = load_grown(shape, path)?;
        let scaled = model.weights.iter().map(|weight| weight * (share / total));
        sum = match sum.is_empty() {
            true => scaled.collect(),
            false => sum
                .iter()
                .zip(scaled)
                .map(|(before, more)| before + more)
                .collect(),
        };
    }
    Ok(Model::with_weights(shape, sum))
}

fn write_json(path: &Path, value: &Value) -> Result<(), Error> {
    error::write(path, (serde_json::to_string_pretty(value)? + "\n").as_bytes())
}

/// The safetensors file: the length of a JSON header, the header, and the numbers one tensor after another.
fn safetensors(model: &Model, kind: Kind) -> Result<Vec<u8>, Error> {
    let (name_of_kind, width) = if kind == Kind::BFloat16 {
        ("BF16", 2)
    } else {
        ("F32", 4)
    };
    let mut header = Map::new();
    // `transformers` refuses files that do not say which library's layout they follow.
    header.insert("__metadata__".to_owned(), json!({"format": "pt"}));
    let mut numbers = Vec::new();
    for ((name, size), tensor) in model.shape.parameters().into_iter().zip(&model.weights) {
        let tensor = tensor.detach().to_kind(kind).contiguous();
        let begin = numbers.len();
        numbers.resize(begin + tensor.numel() * width, 0);
        tensor.f_copy_data_u8(&mut numbers[begin..], tensor.numel())?;
        let place = json!({"dtype": name_of_kind, "shape": size, "data_offsets": [begin, numbers.len()]});
        header.insert(name, place);
    }
    let mut header = serde_json::to_vec(&Value::Object(header))?;
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok([&(header.len() as u64).to_le_bytes()[..], &header, &numbers].concat())
}

#[cfg(test)]
mod tests {
    use super::{average, load, load_grown, load_weights, save, save_checkpoint};
    use crate::eval;
    use crate::model::{Model, Shape};
    use crate::prompt::Prompt;
    use crate::tokenizer;
    use std::path::{Path, PathBuf};

    const SMALL: Shape = Shape {
        layers: 1,
        width: 16,
        heads: 2,
        key_heads: 1,
        hidden: 24,
        vocabulary: 40,
    };

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("lexiform-training-{}-{name}", std::process::id()))
    }

    fn demo() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn a_model_reads_back() {
        tch::set_num_threads(1);
        let folder = scratch("folder");
        let model = Model::new(SMALL, 5);
        save(&model, &folder).expect("a scratch folder can be written");
        save_checkpoint(&model, &folder.join("exact.safetensors")).expect("a scratch folder can be written");
        let rounded = load(&folder).expect("what was written can be read");
        let exact =
            load_weights(SMALL, &folder.join("exact.safetensors")).expect("what was written can be read");
        for ((whole, exact), rounded) in model.weights.iter().zip(&exact.weights).zip(&rounded.weights) {
            assert_eq!(whole, exact);
            let apart = (whole - rounded).abs().max().double_value(&[]);
            assert!(apart < 0.01, "bf16 is {apart} off");
        }
        std::fs::remove_dir_all(folder).expect("a scratch folder can be removed");
    }

    #[test]
    fn an_average_lies_between_and_new_tokens_are_like_the_old() {
        let paths = [3, 4].map(|seed| {
            let path = scratch(&format!("part-{seed}.safetensors"));
            save_checkpoint(&Model::new(SMALL, seed), &path).expect("a scratch file can be written");
            (seed as f64, path)
        });
        let grown = Shape {
            vocabulary: SMALL.vocabulary + 2,
            ..SMALL
        };
        let mixed = average(grown, &paths).expect("both can be read");
        let [first, second] = paths.clone().map(|(share, path)| {
            load_grown(grown, &path).expect("a part can be read").weights[1].shallow_clone() * (share / 7.0)
        });
        assert!(mixed.weights[1].allclose(&(first + second), 1e-5, 1e-6, false));
        let rows = &mixed.weights[0];
        let old = rows
            .narrow(0, 0, 6)
            .mean_dim([0i64].as_slice(), false, tch::Kind::Float);
        assert!(rows.get(SMALL.vocabulary).allclose(&old, 1e-5, 1e-6, false));
        for (_, path) in paths {
            std::fs::remove_file(path).expect("a scratch file can be removed");
        }
    }

    #[test]
    fn a_missing_tensor_is_named() {
        let path = scratch("other.safetensors");
        save_checkpoint(&Model::new(SMALL, 5), &path).expect("a scratch file can be written");
        let error = load_weights(Shape { layers: 2, ..SMALL }, &path)
            .map(|_| ())
            .expect_err("a layer is missing");
        assert!(
            error
                .to_string()
                .contains("model.layers.1.input_layernorm.weight"),
            "{error}"
        );
        std::fs::remove_file(path).expect("a scratch file can be removed");
    }

    #[test]
    fn the_shipped_model_answers_a_first_request() {
        tch::set_num_threads(1);
        let model = load(&demo()).expect("the demo model is in the repository");
        let tokenizer = tokenizer::open(&demo()).expect("its tokenizer too");
        let prompt = Prompt::of(
            "Ada Lovelace is 36 years old and lives in London.",
            Some("{name:string,age:integer,city:string}".to_owned()),
        )
        .render();
        let answer =
            eval::answer(&model, &tokenizer, &prompt, 60).expect("the prompt can be cut into tokens");
        assert_eq!(answer, r#"{"name":"Ada Lovelace","age":36,"city":"London"}"#);
    }

    #[test]
    fn the_shipped_draft_shares_the_vocabulary() {
        let draft = load(&demo().join("draft")).expect("the draft model is in the repository");
        assert_eq!(draft.shape, Shape::DRAFT);
        let read =
            |folder: PathBuf| std::fs::read(folder.join("tokenizer.json")).expect("there is a tokenizer");
        assert_eq!(read(demo()), read(demo().join("draft")));
    }
}
