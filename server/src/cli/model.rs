//! The flags of the model and its engine, which `serve` and `generate` share, and loading what they name.

use std::path::PathBuf;

use lexiform_engine::{Device, Dtype, EngineConfig, LoadOptions, LoadedModel, Model, ModelFiles, load};

use crate::cli::demo;
use crate::model::served::ServedModel;
use crate::model::text::{ModelText, StartError};
use crate::operate::process;

/// Positions in one block of the cache.
const BLOCK: usize = 16;

/// Memory for keys and values where nothing else is said or known, in MiB.
const CACHE_MIB: usize = 512;
/// The part of the free memory that keys and values take by default.
const CACHE_PART: usize = 4;

/// Which model, and how it runs. Shared by `serve` and `generate`.
#[derive(Clone, Debug, clap::Args)]
pub struct ModelArgs {
    /// A model folder in Hugging Face layout; without it, the demo model that is built into this program
    #[arg(long, env = "LEXIFORM_MODEL", value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// A small model with the same tokenizer that drafts ahead; it never changes what is written, only how fast
    #[arg(long, env = "LEXIFORM_DRAFT_MODEL", value_name = "DIR")]
    pub draft_model: Option<PathBuf>,
    /// Where the model runs: cpu, cuda, or cuda:N
    #[arg(long, env = "LEXIFORM_DEVICE", default_value = "cpu")]
    pub device: Device,
    /// What numbers to compute with: auto, f32, bf16 or f16; auto is f32 on a CPU and what the files hold on a GPU
    #[arg(long, env = "LEXIFORM_DTYPE", default_value = "auto", value_name = "TYPE")]
    pub dtype: Dtype,
    /// Threads of the model on a CPU; by default one for each core
    #[arg(long, env = "LEXIFORM_THREADS", value_name = "N")]
    pub threads: Option<usize>,
    /// Sequences that are decoded together
    #[arg(long, env = "LEXIFORM_MAX_BATCH", default_value_t = 32, value_name = "N")]
    pub max_batch: usize,
    /// Sequences that may wait; more are refused with status 429
    #[arg(long, env = "LEXIFORM_QUEUE", default_value_t = 256, value_name = "N")]
    pub queue: usize,
    /// Tokens that the model reads in one pass, of all sequences together: longer prompts are read in pieces
    #[arg(long, env = "LEXIFORM_PASS_TOKENS", default_value_t = 512, value_name = "N")]
    pub pass_tokens: usize,
    /// Tokens of prompts in a pass beside sequences that are being written; by default as many as are left of it. Fewer
    /// make long prompts slower and the others steadier
    #[arg(long, env = "LEXIFORM_PROMPT_PIECE", value_name = "N")]
    pub prompt_piece: Option<usize>,
    /// Memory for keys and values, in MiB, at most what a full batch could use. By default 512, and with --device cpu a
    /// quarter of the memory that is free at start, if that is more
    #[arg(long, env = "LEXIFORM_CACHE_MEMORY", value_name = "MIB")]
    pub cache_memory: Option<usize>,
}

impl ModelArgs {
    /// Loads the model and starts its engine. `name` is what requests will call it.
    ///
    /// # Errors
    /// A file is missing or broken, or the device cannot be used.
    pub fn open(&self, name: Option<String>) -> Result<ServedModel, StartError> {
        let files = match &self.model {
            Some(folder) => ModelFiles::folder(folder),
            None => demo::model().ok_or(StartError::NoModel)?,
        };
        let draft_files = match (&self.draft_model, &self.model) {
            (Some(folder), _) => Some(ModelFiles::folder(folder)),
            (None, None) => demo::draft_model(),
            (None, Some(_)) => None,
        };
        let text = ModelText::read(&files)?;
        let LoadedModel { model, eos, .. } = load(&files, &self.load_options())?;
        let draft = match draft_files {
            Some(files) => Some(load(&files, &self.load_options())?.model),
            None => None,
        };
        let config = self.engine_config(model.as_ref());
        ServedModel::start(
            name.unwrap_or_else(|| self.default_name()),
            model,
            draft,
            text,
            &eos,
            config,
        )
    }

    /// The name of the folder, or `demo`.
    fn default_name(&self) -> String {
        let folder = self.model.as_ref().and_then(|folder| folder.canonicalize().ok());
        let name = folder.as_ref().and_then(|folder| folder.file_name());
        match (name, &self.model) {
            (Some(name), _) => name.to_string_lossy().into_owned(),
            (None, Some(_)) => "model".to_owned(),
            (None, None) => "demo".to_owned(),
        }
    }

    fn load_options(&self) -> LoadOptions {
        let mut options = LoadOptions {
            device: self.device,
            dtype: self.dtype,
            ..LoadOptions::default()
        };
        if let Some(threads) = self.threads {
            options.threads = threads;
        }
        options
    }

    /// The sizes of the engine for this model: as much cache as the memory holds, at least one whole context, and no
    /// more than all sequences of a full batch could use.
    pub fn engine_config(&self, model: &dyn Model) -> EngineConfig {
        let whole = model.max_positions().div_ceil(BLOCK).max(1);
        let bytes = model.cache_bytes_per_token().saturating_mul(BLOCK).max(1);
        let fitting = self.cache_mib().saturating_mul(1 << 20) / bytes;
        EngineConfig {
            block_size: BLOCK,
            blocks: fitting.clamp(whole, whole.saturating_mul(self.max_batch.max(1))),
            max_running: self.max_batch,
            max_waiting: self.queue,
            max_step_tokens: self.pass_tokens,
            prompt_piece: self.prompt_piece.unwrap_or(self.pass_tokens),
            ..EngineConfig::default()
        }
    }

    /// The memory for keys and values, in MiB.
    fn cache_mib(&self) -> usize {
        let free = || match self.device {
            Device::Cpu => process::free_memory(),
            _ => None,
        };
        let part = || free().map_or(0, |bytes| (bytes / CACHE_PART) >> 20);
        self.cache_memory.unwrap_or_else(|| part().max(CACHE_MIB))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use lexiform_engine::ScriptedModel;

    use super::*;

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        model: ModelArgs,
    }

    fn config(flags: &[&str]) -> EngineConfig {
        let flags = Flags::try_parse_from([&["lexiform"], flags].concat()).expect("flags");
        let model = ScriptedModel::new(8, 1_000, |_| vec![0.0; 8]);
        flags.model.engine_config(&model)
    }

    #[test]
    fn a_pass_and_its_prompts_are_as_large_as_asked_for() {
        let sizes = |flags: &[&str]| {
            let config = config(flags);
            (config.max_step_tokens, config.prompt_piece)
        };
        assert_eq!(sizes(&[]), (512, 512));
        assert_eq!(sizes(&["--pass-tokens", "2048"]), (2048, 2048));
        assert_eq!(
            sizes(&["--pass-tokens", "2048", "--prompt-piece", "128"]),
            (2048, 128)
        );
    }

    #[test]
    fn the_cache_is_what_is_asked_for_or_a_part_of_what_is_free() {
        let mib = |flags: &[&str]| {
            let flags = Flags::try_parse_from([&["lexiform"], flags].concat()).expect("flags");
            flags.model.cache_mib()
        };
        assert_eq!(mib(&["--cache-memory", "7"]), 7);
        assert_eq!(mib(&["--device", "cuda"]), 512);
        assert!(mib(&[]) >= 512);
        // No more than a full batch of whole contexts takes.
        assert_eq!(
            config(&["--max-batch", "3"]).blocks,
            3 * 1_000_usize.div_ceil(BLOCK)
        );
    }
}
