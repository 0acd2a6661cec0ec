//! From a folder to a model.

use super::checkpoint::Checkpoint;
use super::checkpoint::files::ModelFiles;
use super::config::Config;
use super::decoder::Decoder;
use super::decoder::weights;
use super::layers::layout::Place;
use super::options::LoadOptions;
use crate::error::LoadError;
use crate::model::Model;
use serde_json::Value;
use tch::Kind;

/// What others may want to know of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelConfig {
    /// `model_type` of config.json.
    pub family: String,
    /// Rows of the embedding; may exceed the tokenizer's tokens.
    pub vocab_size: usize,
    /// The longest text.
    pub max_positions: usize,
}

/// A model that is ready for [`Engine::start`](crate::Engine::start).
pub struct LoadedModel {
    /// The model.
    pub model: Box<dyn Model>,
    /// What it is.
    pub config: ModelConfig,
    /// The tokens that end a text, as config.json and generation_config.json say.
    pub eos: Vec<u32>,
}

/// Loads a Hugging Face model folder: config.json and safetensors, in one file or several.
pub fn load(files: &ModelFiles, options: &LoadOptions) -> Result<LoadedModel, LoadError> {
    let device = options.device.open()?;
    let config = Config::read(files)?;
    let eos = eos(files, &config)?;
    let checkpoint = Checkpoint::open(files)?;
    let (embedding, _) = weights::embedding(&checkpoint, &config.family.names);
    let stored = checkpoint.kind(&embedding).unwrap_or(Kind::Float);
    let place = Place {
        device,
        kind: options.dtype.kind(options.device, stored),
    };
    let described = ModelConfig {
        family: config.family.name.to_string(),
        vocab_size: config.vocab as usize,
        max_positions: config.max_positions,
    };
    let model = Decoder::load(&checkpoint, config, place, options)?;
    Ok(LoadedModel {
        model: Box::new(model),
        config: described,
        eos,
    })
}

/// generation_config.json may name more end tokens than config.json.
fn eos(files: &ModelFiles, config: &Config) -> Result<Vec<u32>, LoadError> {
    const GENERATION: &str = "generation_config.json";
    let mut eos = config.eos.clone();
    if files.has(GENERATION) {
        let generation: Value = serde_json::from_str(&files.text(GENERATION)?)
            .map_err(|error| files.malformed(GENERATION, format!("not JSON: {error}")))?;
        let more = match generation.get("eos_token_id") {
            Some(Value::Array(tokens)) => tokens.clone(),
            Some(token) => vec![token.clone()],
            None => Vec::new(),
        };
        eos.extend(
            more.iter()
                .filter_map(|token| u32::try_from(token.as_u64()?).ok()),
        );
    }
    eos.sort_unstable();
    eos.dedup();
    Ok(eos)
}
