//! Makes a config.json from the keys and the tensors of a GGUF file.

use super::architecture::{Kind, REFUSED};
use super::file::Gguf;
use crate::error::LoadError;
use serde_json::{Map, Value, json};

type Result<T> = std::result::Result<T, LoadError>;

const ROPES: &str = "none, linear, yarn, longrope";

/// Returns the text of config.json.
pub(super) fn config(file: &Gguf) -> Result<String> {
    refuse_unknown(file)?;
    let mut config = fields(file)?;
    let turned = heads(file, &mut config)?;
    experts(file, &mut config);
    windows(file, &mut config)?;
    ropes(file, &mut config, turned)?;
    scale(file, &mut config);
    biases(file, &mut config);
    config.insert("eos_token_id".to_owned(), json!(super::text::ends(file)?));
    Ok(Value::Object(config).to_string())
}

fn refuse_unknown(file: &Gguf) -> Result<()> {
    let refused: Vec<String> = REFUSED
        .iter()
        .map(|key| file.key(key))
        .filter(|key| file.metadata.has(key))
        .collect();
    match refused.is_empty() {
        true => Ok(()),
        false => Err(file.unsupported("a key", &refused.join(", "), "models without it")),
    }
}

/// Returns the fields that are the same numbers under other names.
fn fields(file: &Gguf) -> Result<Map<String, Value>> {
    let architecture = file.architecture;
    let mut config = Map::new();
    for &(key, field, kind) in architecture.fields.iter().copied().flatten() {
        let key = file.key(key);
        let found = match kind {
            Kind::Number => file.read(file.metadata.number(&key))?.map(|number| json!(number)),
            Kind::Needed | Kind::Integer => file
                .read(file.metadata.integer_of_layers(&key))?
                .map(|number| json!(number)),
        };
        match (found, kind) {
            (Some(found), _) => drop(config.insert(field.to_owned(), found)),
            (None, Kind::Needed) => return Err(file.malformed(format!("the key {key} is missing"))),
            (None, _) => {}
        }
    }
    let vocab = file
        .shape("token_embd.weight")
        .and_then(|shape| shape.first().copied());
    let vocab = vocab.ok_or_else(|| file.malformed("the tensor token_embd.weight is missing"))?;
    config.insert("vocab_size".to_owned(), json!(vocab));
    config.insert("model_type".to_owned(), json!(architecture.model_type));
    let tied = file.shape("output.weight").is_none();
    config.insert("tie_word_embeddings".to_owned(), json!(tied));
    Ok(config)
}

/// Returns how many numbers of a head are rotated. Keys and values must have the same size.
fn heads(file: &Gguf, config: &mut Map<String, Value>) -> Result<i64> {
    let integer = |key: &str| file.read(file.metadata.integer_of_layers(&file.key(key)));
    let count = integer("attention.head_count")?.unwrap_or(1).max(1);
    let share = integer("embedding_length")?.unwrap_or(0) / count;
    let size = integer("attention.key_length")?.unwrap_or(share);
    if let Some(values) = integer("attention.value_length")?.filter(|values| *values != size) {
        let found = format!("{size} and {values}");
        return Err(file.unsupported("the sizes of keys and values", &found, "equal ones"));
    }
    let turned = integer("rope.dimension_count")?.unwrap_or(size);
    if turned != size {
        let part = turned as f64 / size.max(1) as f64;
        config.insert("partial_rotary_factor".to_owned(), json!(part));
    }
    Ok(turned)
}

/// Adds the layers that attend only to a window: all except every n-th, or those of a list.
fn windows(file: &Gguf, config: &mut Map<String, Value>) -> Result<()> {
    if !config.contains_key("sliding_window") {
        return Ok(());
    }
    let key = file.key("attention.sliding_window_pattern");
    if let Ok(Some(layers)) = file.metadata.integers(&key) {
        let kinds = layers.iter().map(|windowed| match windowed {
            0 => "full_attention",
            _ => "sliding_attention",
        });
        let kinds: Vec<&str> = kinds.collect();
        config.insert("layer_types".to_owned(), json!(kinds));
    } else if let Some(every) = file.read(file.metadata.integer(&key))? {
        config.insert("sliding_window_pattern".to_owned(), json!(every));
    }
    Ok(())
}

/// Adds the fields of experts: a model with experts belongs to another family, or has fields that a folder
/// needs and a GGUF file omits.
fn experts(file: &Gguf, config: &mut Map<String, Value>) {
    let count = config.get("num_experts").and_then(Value::as_i64).unwrap_or(0);
    match file.architecture.with_experts {
        Some(family) if count > 0 => drop(config.insert("model_type".to_owned(), json!(family))),
        Some(_) => {
            config.remove("num_experts");
            // A folder calls models of the Llama family with a window Mistral.
            if config.contains_key("sliding_window") {
                config.insert("model_type".to_owned(), json!("mistral"));
            }
        }
        None => drop(config.insert("norm_topk_prob".to_owned(), json!(true))),
    }
}

fn ropes(file: &Gguf, config: &mut Map<String, Value>, turned: i64) -> Result<()> {
    let number = |key: &str| file.read(file.metadata.number(&file.key(key)));
    let original = number("rope.scaling.original_context_length")?;
    let context = config.get("max_position_embeddings").cloned().unwrap_or_default();
    // One factor for each pair: those of Llama 3 for all texts, those of Phi 3 for short ones.
    for (tensor, original) in [
        ("rope_freqs.weight", None),
        ("rope_factors_short.weight", original),
    ] {
        if file.shape(tensor).is_none() {
            continue;
        }
        let factors = file.numbers(tensor, (turned as usize / 2).max(1))?;
        let attention = number("rope.scaling.attn_factor")?;
        let attention = attention.or((tensor == "rope_freqs.weight").then_some(1.0));
        let mut rope = Map::new();
        rope.insert("rope_type".to_owned(), json!("longrope"));
        rope.insert("short_factor".to_owned(), json!(factors));
        rope.insert(
            "original_max_position_embeddings".to_owned(),
            original.map_or(context.clone(), |original| json!(original)),
        );
        if let Some(attention) = attention {
            rope.insert("attention_factor".to_owned(), json!(attention));
        }
        config.insert("rope_scaling".to_owned(), Value::Object(rope));
        return Ok(());
    }
    let kind = file.read(file.metadata.text(&file.key("rope.scaling.type")))?;
    let factor = number("rope.scaling.factor")?.or(number("rope.scale_linear")?);
    let mut rope = Map::new();
    match kind.unwrap_or(if factor.is_some() { "linear" } else { "none" }) {
        "none" | "longrope" => return Ok(()),
        kind @ ("linear" | "yarn") => drop(rope.insert("rope_type".to_owned(), json!(kind))),
        other => return Err(file.unsupported("rope.scaling.type", other, ROPES)),
    }
    for (field, found) in [
        ("factor", factor),
        ("original_max_position_embeddings", original),
        ("beta_fast", number("rope.scaling.yarn_beta_fast")?),
        ("beta_slow", number("rope.scaling.yarn_beta_slow")?),
    ] {
        if let Some(found) = found {
            rope.insert(field.to_owned(), json!(found));
        }
    }
    config.insert("rope_scaling".to_owned(), Value::Object(rope));
    Ok(())
}

/// Adds the number by whose root products of queries and keys are divided, in architectures that need it in a
/// folder and do not store it in GGUF.
fn scale(file: &Gguf, config: &mut Map<String, Value>) {
    let Some(layers) = file.architecture.scaled_by_share else {
        return;
    };
    let integer = |name: &str| config.get(name).and_then(Value::as_i64);
    let share = integer("hidden_size").zip(integer("num_attention_heads"));
    let share = share.map(|(hidden, heads)| hidden / heads.max(1));
    let scalar = match integer("num_hidden_layers") == Some(layers) {
        true => share,
        false => integer("head_dim").or(share),
    };
    config.insert("query_pre_attn_scalar".to_owned(), json!(scalar));
}

/// Adds the fields of biases, which exist if there is a tensor of them.
fn biases(file: &Gguf, config: &mut Map<String, Value>) {
    for (tensor, field) in [
        ("blk.0.attn_q.bias", "attention_bias"),
        ("blk.0.ffn_up.bias", "mlp_bias"),
    ] {
        config.insert(field.to_owned(), json!(file.shape(tensor).is_some()));
    }
}
