//! Folders that are no head for the model: refused by the file, the tensor or the field, and what to do.

use crate::head_rows::{folder, options};
use lexiform_engine::{DrafterKind, ModelFiles, drafter_kind, load};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The tensors of a safetensors file: the type, the shape and the data of each.
type Tensors = BTreeMap<String, (String, Vec<u64>, Vec<u8>)>;

fn read(file: &Path) -> Tensors {
    let bytes = std::fs::read(file).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let (header, data) = bytes[8..].split_at(length);
    let header: BTreeMap<String, Value> = serde_json::from_slice(header).unwrap();
    let tensor = |(name, told): (String, Value)| {
        let numbers = |field: &str| -> Vec<u64> {
            let numbers = told[field].as_array().unwrap().iter();
            numbers.map(|number| number.as_u64().unwrap()).collect()
        };
        let range = numbers("data_offsets");
        let data = data[range[0] as usize..range[1] as usize].to_vec();
        (
            name,
            (told["dtype"].as_str().unwrap().to_owned(), numbers("shape"), data),
        )
    };
    header.into_iter().map(tensor).collect()
}

fn write(file: &Path, tensors: &Tensors) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, (dtype, shape, bytes)) in tensors {
        let range = [data.len(), data.len() + bytes.len()];
        header.insert(
            name.clone(),
            json!({"dtype": dtype, "shape": shape, "data_offsets": range}),
        );
        data.extend(bytes);
    }
    let header = Value::Object(header).to_string();
    let length = (header.len() as u64).to_le_bytes();
    std::fs::write(file, [&length[..], header.as_bytes(), &data].concat()).unwrap();
}

/// A change of a head's tensors or of its configuration.
type Change = fn(&mut Tensors, &mut Value);

/// The error for a copy of a head that was changed.
fn refused(number: usize, name: &str, change: Change) -> String {
    let copy = std::env::temp_dir().join(format!("lexiform-heads-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&copy).unwrap();
    let file = match name {
        "medusa" => "medusa_lm_head.safetensors",
        _ => "model.safetensors",
    };
    let mut tensors = read(&folder(name).join(file));
    let config = std::fs::read_to_string(folder(name).join("config.json")).unwrap();
    let mut config = serde_json::from_str(&config).unwrap();
    change(&mut tensors, &mut config);
    write(&copy.join(file), &tensors);
    std::fs::write(copy.join("config.json"), config.to_string()).unwrap();
    let error = loaded_from(&copy);
    std::fs::remove_dir_all(&copy).unwrap();
    error.replace(&*copy.to_string_lossy(), "DIR")
}

fn loaded_from(copy: &PathBuf) -> String {
    let mut options = options(true, None);
    options.head = Some(ModelFiles::folder(copy));
    match load(&ModelFiles::folder(folder("target")), &options) {
        Ok(_) => "loaded".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_head_that_does_not_fit_is_refused_by_name() {
    let cases: [(&str, Change, &str); 13] = [
        ("eagle", |_, _| {}, "loaded"),
        (
            "eagle",
            |_, config| config["hidden_size"] = 24.into(),
            "DIR/config.json: hidden_size is 24, and that of the model 16: the head was trained for another model",
        ),
        (
            "eagle3",
            |_, config| config["vocab_size"] = 128.into(),
            "DIR/config.json: vocab_size is 128, and that of the model 96: the head was trained for another model",
        ),
        (
            "eagle",
            |_, config| config["num_hidden_layers"] = 2.into(),
            "DIR/config.json: num_hidden_layers is 2; expected 1",
        ),
        (
            "eagle",
            |tensors, _| drop(tensors.remove("layers.0.mlp.up_proj.weight")),
            "DIR/model.safetensors: there is no tensor \"layers.0.mlp.up_proj.weight\" (expected with shape [24, 16])",
        ),
        (
            "eagle",
            |tensors, _| {
                let scale = tensors["layers.0.post_attention_layernorm.weight"].clone();
                tensors.insert("layers.0.input_layernorm.weight".to_owned(), scale);
            },
            "DIR/model.safetensors: tensor \"layers.0.input_layernorm.weight\" belongs to no head that is known",
        ),
        (
            "eagle3",
            |tensors, _| tensors.get_mut("fc.weight").unwrap().1 = vec![48, 16],
            "DIR/model.safetensors: tensor \"fc.weight\" has shape [48, 16], but config.json implies [16, 48]",
        ),
        (
            "eagle3",
            |tensors, _| drop(tensors.remove("d2t")),
            "DIR/model.safetensors: there is no tensor \"d2t\", which says what the 64 tokens of the head are of the \
             96 of the model",
        ),
        (
            "eagle3",
            |tensors, _| tensors.get_mut("d2t").unwrap().2[0] = 200,
            "DIR/model.safetensors: tensor \"d2t\": column 0 is token 200, and the model has 96",
        ),
        (
            "eagle3",
            |_, config| config["norm_before_residual"] = true.into(),
            "DIR/config.json: norm_before_residual is true; expected false, or absent",
        ),
        (
            "eagle3",
            |_, config| config["eagle_aux_hidden_state_layer_ids"] = json!([2, 3, 8]),
            "DIR/config.json: eagle_aux_hidden_state_layer_ids is [2,3,8]; expected a list of layers of the model, \
             which has 7",
        ),
        (
            "medusa",
            |_, config| config["medusa_num_heads"] = 5.into(),
            "DIR/config.json: medusa_num_heads is 5, and there are tensors of 3 networks",
        ),
        (
            "medusa",
            |tensors, _| drop(tensors.remove("1.0.linear.bias")),
            "DIR/medusa_lm_head.safetensors: there is no tensor \"1.0.linear.bias\" (expected with shape [16])",
        ),
    ];
    for (number, (name, change, wanted)) in cases.into_iter().enumerate() {
        assert_eq!(refused(number, name, change), wanted);
    }
}

#[test]
fn what_drafts_is_known_by_its_files() {
    let kind = |name: &str| drafter_kind(&ModelFiles::folder(folder(name))).unwrap();
    assert_eq!(kind("target"), DrafterKind::Model);
    assert_eq!(kind("pard"), DrafterKind::Parallel { mask: 95 });
    assert_eq!(["eagle", "eagle3", "medusa"].map(kind), [DrafterKind::Head; 3]);
    assert!(loaded_from(&folder("target")).ends_with("expected a head: the tensors of EAGLE or Medusa"));
    let copy = std::env::temp_dir().join(format!("lexiform-heads-{}-bin", std::process::id()));
    std::fs::create_dir_all(&copy).unwrap();
    std::fs::write(copy.join("config.json"), "{}").unwrap();
    std::fs::write(copy.join("pytorch_model.bin"), "").unwrap();
    let error = drafter_kind(&ModelFiles::folder(&copy)).unwrap_err().to_string();
    std::fs::remove_dir_all(&copy).unwrap();
    let wanted =
        "pytorch_model.bin: weights are read from safetensors only; convert the file with `python -c";
    assert!(error.contains(wanted), "{error}");
}
