//! From a folder to a model.

use super::checkpoint::Checkpoint;
use super::checkpoint::files::ModelFiles;
use super::config::{Config, PassReads};
use super::decoder::{self, Decoder, shape, weights};
use super::device::{self, Device};
use super::kernels::launcher::Launcher;
use super::kernels::shapes::{BLOCK_SIZE, Format};
use super::kernels::stream::Stream;
use super::layers::layout::Place;
use super::options::{LoadOptions, WeightFormat};
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
    /// How its matrices are kept: in fewer bits than they are stored in, it is another model.
    pub weights: WeightFormat,
}

/// A model that is ready for [`Engine::start`](crate::Engine::start).
pub struct LoadedModel {
    /// The model.
    pub model: Box<dyn Model>,
    /// What it is.
    pub config: ModelConfig,
    /// The tokens that end a text, as config.json and generation_config.json say.
    pub eos: Vec<u32>,
    /// What a pass of it reads of memory.
    pub reads: PassReads,
    /// The model without some of its layers, if that is to draft for it.
    pub draft: Option<SelfDraft>,
}

/// A model without some of its layers, as a draft model of the whole one. Both share their weights.
pub struct SelfDraft {
    /// The model.
    pub model: Box<dyn Model>,
    /// The layers that it leaves out, in ascending order.
    pub skipped: Vec<usize>,
}

/// What a model is, from its configuration alone: no weights are loaded.
///
/// # Errors
/// The configuration is missing or broken, or of a model that the engine cannot run.
pub fn describe(files: &ModelFiles) -> Result<ModelConfig, LoadError> {
    Ok(described(&Config::read(files)?, WeightFormat::Stored))
}

fn described(config: &Config, weights: WeightFormat) -> ModelConfig {
    ModelConfig {
        family: config.family.name.to_string(),
        vocab_size: config.vocab as usize,
        max_positions: config.max_positions,
        weights,
    }
}

/// Loads a Hugging Face model folder: config.json and safetensors, in one file or several. On a card, passes are run by the kernels
/// of [`kernels`](super::kernels) where they serve the model.
///
/// # Errors
/// A file is missing or broken, or the device cannot be used.
pub fn load(files: &ModelFiles, options: &LoadOptions) -> Result<LoadedModel, LoadError> {
    load_with(files, options, |config, place| card(options, config, place))
}

/// The same, with passes that this launcher runs, on the device of the options: how passes by plan are tested on a processor.
///
/// # Errors
/// As [`load`].
pub fn load_launched_by(
    files: &ModelFiles,
    options: &LoadOptions,
    launcher: Box<dyn Launcher>,
) -> Result<LoadedModel, LoadError> {
    load_with(files, options, |_, _| Ok(launcher))
}

fn load_with(
    files: &ModelFiles,
    options: &LoadOptions,
    launcher: impl FnOnce(&Config, Place) -> Result<Box<dyn Launcher>, String>,
) -> Result<LoadedModel, LoadError> {
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
    let described = described(&config, options.weights);
    let number = decoder::bytes_of_weight(stored, place, options);
    let reads = config.reads(number, place.kind.elt_size_in_bytes());
    let launcher = launcher(&config, place);
    let no_kernels = launcher.as_ref().err().map(String::as_str);
    let mut model = Decoder::load(&checkpoint, config, place, options, no_kernels)?;
    let draft = options.draft_without.as_ref();
    let draft = draft.map(|skipped| model.skipping(skipped)).transpose()?;
    if let Ok(launcher) = launcher {
        model = model.launched_by(launcher);
    }
    Ok(LoadedModel {
        draft: draft.map(|(model, skipped)| SelfDraft {
            model: Box::new(model),
            skipped,
        }),
        model: Box::new(model),
        config: described,
        eos,
        reads,
    })
}

/// The card of the options as a launcher, if it and the kernels serve this model; if not, why, which is told, or nothing where nobody
/// asked for kernels. Whether the blocks of the cache are those of the kernels is not known yet.
fn card(options: &LoadOptions, config: &Config, place: Place) -> Result<Box<dyn Launcher>, String> {
    let Device::Cuda(number) = options.device else {
        return Err(String::new());
    };
    if !options.kernels {
        return Err(" without kernels".to_owned());
    }
    let format = match options.weights {
        WeightFormat::Stored => None,
        WeightFormat::Int8 => Some(Format::Int8),
        WeightFormat::Fp8 => Some(Format::Fp8),
    };
    let opened = shape::shape(config, place.kind, BLOCK_SIZE, format).map_err(|why| why.to_string());
    let opened = opened.and_then(|_| {
        let folder = device::folder_of("libcublas.so.13");
        Stream::open(number, folder.as_deref(), options.dependent_launch, format)
            .map_err(|why| why.to_string())
    });
    match opened {
        Ok(stream) => Ok(Box::new(stream)),
        Err(why) => {
            (options.tell)(&format!("passes are run by libtorch alone: {why}"));
            Err(format!(": {why}"))
        }
    }
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
