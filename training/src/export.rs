//! Model folders: `config.json`, `generation_config.json` and `model.safetensors`, as `transformers` reads them.

use crate::error::{self, Error};
use crate::model::{Model, Shape};
use serde_json::{Map, Value, json};
use std::path::Path;
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
