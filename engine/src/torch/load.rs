//! Loads a model from its files.

use super::checkpoint::Checkpoint;
use super::checkpoint::adapter::Adapter;
use super::checkpoint::files::ModelFiles;
use super::config::{Config, PassReads};
use super::decoder::{self, Decoder, weights};
use super::head;
use super::layers::layout::Place;
use super::options::{LoadOptions, WeightFormat};
use super::passes::Planner;
use crate::error::LoadError;
use crate::model::Model;
use crate::model::head::Head;
use serde_json::Value;
use std::sync::Arc;
use tch::Kind;

/// The properties of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelConfig {
    /// The `model_type` of config.json.
    pub family: String,
    /// The number of rows of the embedding; may exceed the tokenizer's tokens.
    pub vocab_size: usize,
    /// The most positions of a text.
    pub max_positions: usize,
    /// The format in which its matrices are kept: in fewer bits than they are stored in, it is another model.
    pub weights: WeightFormat,
}

/// A model that is ready for [`Engine::start`](crate::Engine::start).
pub struct LoadedModel {
    /// The model.
    pub model: Box<dyn Model>,
    /// Its properties.
    pub config: ModelConfig,
    /// The tokens that end a text, according to config.json and generation_config.json.
    pub eos: Vec<u32>,
    /// The bytes of memory that its passes read.
    pub reads: PassReads,
    /// The model without some of its layers, if it is to draft for itself.
    pub draft: Option<SelfDraft>,
    /// The head that was loaded for it.
    pub head: Option<Box<dyn Head>>,
}

/// A model without some of its layers, as a draft model of the whole one. Both share their weights.
pub struct SelfDraft {
    /// The model.
    pub model: Box<dyn Model>,
    /// The layers that it leaves out, in ascending order.
    pub skipped: Vec<usize>,
}

/// Returns the properties of a model from its files, without loading its weights.
///
/// # Errors
/// A file is missing or broken, or the engine cannot run such a model.
pub fn describe(files: &ModelFiles) -> Result<ModelConfig, LoadError> {
    let config = Config::read(files)?;
    let checkpoint = Checkpoint::open(files)?;
    let (embedding, _) = weights::embedding(&checkpoint, &config.family.names);
    if !checkpoint.has(&embedding) {
        // The error names the file that should have it.
        drop(checkpoint.tensor(&embedding, &[config.vocab, config.hidden])?);
    }
    Ok(described(&config, WeightFormat::Stored))
}

/// Returns the bytes that the weights of a model will take in memory, with those of its head, without loading
/// them: the sizes of its matrices in the format in which they are to be kept. Norms and biases, below a
/// hundredth of a model of any size, are left out.
///
/// # Errors
/// A file is missing or broken, the engine cannot run such a model, or the device cannot be used.
pub fn weight_bytes(files: &ModelFiles, options: &LoadOptions) -> Result<u64, LoadError> {
    let device = options.device.open()?;
    let config = Config::read(files)?;
    let checkpoint = Checkpoint::open(files)?;
    let kept = Kept::of(&checkpoint, &config, (device, options));
    kept.bytes(&config, options)
}

/// How the weights of a model are kept.
struct Kept {
    place: Place,
    /// The bytes of a number of a matrix, and of one of the embedding.
    matrix: f64,
    embedding: f64,
}

impl Kept {
    fn of(
        checkpoint: &Checkpoint<'_>,
        config: &Config,
        (device, options): (tch::Device, &LoadOptions),
    ) -> Self {
        let (embedding, _) = weights::embedding(checkpoint, &config.family.names);
        let stored = checkpoint.kind(&embedding).unwrap_or(Kind::Float);
        let place = Place {
            device,
            kind: options.dtype.kind(options.device, stored),
        };
        let as_stored = LoadOptions {
            weights: WeightFormat::Stored,
            ..options.clone()
        };
        let of = |options| decoder::bytes_of_weight((stored, checkpoint.bytes_in_blocks()), place, options);
        Self {
            place,
            matrix: of(options),
            embedding: of(&as_stored),
        }
    }

    /// Returns the bytes of the weights, with those of the head.
    fn bytes(&self, config: &Config, options: &LoadOptions) -> Result<u64, LoadError> {
        // A rounded output layer is another matrix than the embedding, also where the checkpoint has one.
        let is_beside = !config.tied || options.weights != WeightFormat::Stored;
        let own = config.weights(self.matrix, is_beside.then_some(self.embedding));
        let head = match &options.head {
            None => 0,
            Some(head) => Checkpoint::open(head)?.numbers() * self.place.kind.elt_size_in_bytes() as u64,
        };
        Ok((own as u64).saturating_add(head))
    }
}

fn described(config: &Config, weights: WeightFormat) -> ModelConfig {
    ModelConfig {
        family: config.family.name.to_string(),
        vocab_size: config.vocab as usize,
        max_positions: config.max_positions,
        weights,
    }
}

/// Loads a model: a Hugging Face folder (config.json and safetensors, in one file or several), or GGUF. This
/// engine is built without kernels, so libtorch runs all passes on a GPU.
///
/// # Errors
/// A file is missing or broken, the device cannot be used, or the options require kernels.
#[cfg(not(feature = "kernels"))]
pub fn load(files: &ModelFiles, options: &LoadOptions) -> Result<LoadedModel, LoadError> {
    let asked = [
        (options.kernels, "passes by kernels"),
        (!options.dependent_launch, "kernels that start one after another"),
    ];
    if let Some((_, what)) = asked.into_iter().find(|&(is_asked, _)| is_asked) {
        let feature = "kernels";
        return Err(LoadError::NotBuilt { what, feature });
    }
    load_with(files, options, |_, place| match place.device {
        tch::Device::Cuda(_) => {
            let why = "this program was built without the feature `kernels`";
            (options.tell)(&format!("passes are run by libtorch alone: {why}"));
            Err(format!(": {why}"))
        }
        _ => Err(String::new()),
    })
}

/// Loads a model whose passes are planned by the result of `planner`, or not planned for the reason that it
/// returns.
pub(super) fn load_with(
    files: &ModelFiles,
    options: &LoadOptions,
    planner: impl FnOnce(&Config, Place) -> Result<Arc<dyn Planner>, String>,
) -> Result<LoadedModel, LoadError> {
    let device = options.device.open()?;
    let config = Config::read(files)?;
    let eos = eos(files, &config)?;
    let adapter = options.adapter.as_ref().map(Adapter::open).transpose()?;
    if let Some(adapter) = adapter.as_ref().filter(|_| config.family.names.transposed) {
        return Err(adapter.unfit(config.family.name));
    }
    let checkpoint = Checkpoint::open(files)?.with_adapter(adapter)?;
    let kept = Kept::of(&checkpoint, &config, (device, options));
    let place = kept.place;
    let described = described(&config, options.weights);
    let reads = config.reads(kept.matrix, place.kind.elt_size_in_bytes());
    let planner = planner(&config, place);
    let no_kernels = planner.as_ref().err().map(String::as_str);
    let mut model = Decoder::load(&checkpoint, config, place, options, no_kernels)?;
    checkpoint.check_merged()?;
    if let Ok(planner) = planner {
        model = model.planned_by(planner);
    }
    let draft = options.draft_without.as_ref();
    let draft = draft.map(|skipped| model.skipping(skipped)).transpose()?;
    let head = options.head.as_ref();
    let head = head.map(|files| head::load(files, &model, options.weights));
    let head = match head.transpose()? {
        None => None,
        Some((head, states)) => {
            model = model.keeping(states);
            Some(head)
        }
    };
    Ok(LoadedModel {
        head,
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

/// Returns the end tokens; generation_config.json may name more of them than config.json.
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
