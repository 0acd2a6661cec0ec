//! The fields of a head's config.json that no model has.

use crate::error::LoadError;
use crate::torch::checkpoint::files::ModelFiles;
use serde_json::Value;

pub(super) const CONFIG: &str = "config.json";

/// Fields that change the computation in ways that are not supported, with their usual value.
const FIXED: [(&str, bool); 3] = [
    ("norm_before_residual", false),
    ("norm_before_fc", false),
    ("parallel_drafting", false),
];

/// Returns config.json; an empty object if there is none.
pub(super) fn json(files: &ModelFiles) -> Result<Value, LoadError> {
    if !files.has(CONFIG) {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(&files.text(CONFIG)?)
        .map_err(|error| files.malformed(CONFIG, format!("not JSON: {error}")))
}

/// Checks that the fields are absent that would change what is computed.
pub(super) fn check_fixed(files: &ModelFiles, config: &Value) -> Result<(), LoadError> {
    for (name, usual) in FIXED {
        let found = config.get(name).unwrap_or(&Value::Null);
        if !found.is_null() && found.as_bool() != Some(usual) {
            let message = format!("{name} is {found}; expected {usual}, or absent");
            return Err(files.malformed(CONFIG, message));
        }
    }
    Ok(())
}

/// Returns a size that the configuration may give.
pub(super) fn size(files: &ModelFiles, config: &Value, name: &str) -> Result<Option<i64>, LoadError> {
    const MOST: i64 = 1 << 24;
    let Some(found) = config.get(name).filter(|found| !found.is_null()) else {
        return Ok(None);
    };
    let size = found.as_i64().filter(|size| (1..=MOST).contains(size));
    let wrong = || {
        files.malformed(
            CONFIG,
            format!("{name} is {found}; expected an integer from 1 to {MOST}"),
        )
    };
    size.map(Some).ok_or_else(wrong)
}

/// Returns the layers of a model whose inputs an EAGLE-3 head reads: those that it names, or else the third
/// one, the one in the middle and the last but two.
pub(super) fn layers_read(
    files: &ModelFiles,
    config: &Value,
    layers: usize,
) -> Result<Vec<usize>, LoadError> {
    const FIELD: &str = "eagle_aux_hidden_state_layer_ids";
    // One writes the layers whose inputs are read, the other those whose outputs are.
    let inputs = config.get(FIELD).map(|named| (named, 0));
    let outputs = config.get("eagle_config").and_then(|own| own.get(FIELD));
    let named = inputs.or_else(|| outputs.map(|named| (named, 1)));
    let Some((named, add)) = named.filter(|(named, _)| !named.is_null()) else {
        let usual = [2, layers / 2, layers.saturating_sub(3)];
        return match layers {
            ..3 => Err(files.malformed(
                CONFIG,
                format!("the head reads the third layer of a model, and this one has {layers}"),
            )),
            _ => Ok(usual.to_vec()),
        };
    };
    let layer = |value: &Value| {
        let layer = value.as_u64().and_then(|layer| usize::try_from(layer).ok());
        layer
            .map(|layer| layer.saturating_add(add))
            .filter(|&layer| layer <= layers)
    };
    let read: Option<Vec<usize>> = named
        .as_array()
        .and_then(|named| named.iter().map(layer).collect());
    read.filter(|read| !read.is_empty()).ok_or_else(|| {
        let message =
            format!("{FIELD} is {named}; expected a list of layers of the model, which has {layers}");
        files.malformed(CONFIG, message)
    })
}
