//! The flags of the model and its engine, which `serve` and `generate` share, and the loading of the model.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lexiform::vocab::Tokenizer;
use lexiform_engine::{
    Assistant, Device, DrafterKind, Dtype, EngineConfig, LoadOptions, LoadedModel, Model, ModelFiles,
    PassReads, SEVERAL_CARDS, WeightFormat, drafter_kind, load, weight_bytes,
};
use lexiform_law::draft::Retrieval;

use crate::cli::demo;
use crate::cli::drafting::DraftArgs;
use crate::grammars::store::Shelf;
use crate::model::corpus;
use crate::model::served::{self, ServedModel};
use crate::model::source::{self, Located, Place, Stores, Wanted};
use crate::model::template_file;
use crate::model::text::{ModelText, StartError};
use crate::operate::process;

/// The file in a model's folder that defines its tokens.
const TOKENIZER: &str = "tokenizer.json";
/// The number of positions in one block of the cache.
const BLOCK: usize = 16;

/// The memory for keys and values if nothing else is given or known, in MiB.
const CACHE_MIB: usize = 512;
/// The divisor of the free memory that gives the default memory for keys and values.
const CACHE_PART: usize = 4;

/// The model to run, and how it runs.
#[derive(Clone, Debug, clap::Args)]
pub struct ModelArgs {
    /// A GGUF file, a Hugging Face folder, OWNER/NAME or OWNER/NAME:FILE from the Hugging Face cache,
    /// ollama:NAME or ollama:NAME:TAG, or demo, which is built in. Nothing is downloaded; `lexiform models`
    /// lists the available models. By default the model that `cargo xtask serve` has fetched, or else demo
    #[arg(help_heading = "Model", long, env = "LEXIFORM_MODEL", value_name = "MODEL")]
    pub model: Option<PathBuf>,
    /// How it runs.
    #[command(flatten)]
    pub run: RunArgs,
}

/// How a model runs.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// Where the model runs: cpu, cuda, or cuda:N
    #[arg(help_heading = "Model", long, env = "LEXIFORM_DEVICE", default_value = "cpu")]
    pub device: Device,
    /// Refused unless it is 1: a process uses one card. Hidden; it exists for users who come from servers
    /// that have it.
    #[arg(
        help_heading = "Model",
        long,
        alias = "tensor-parallel",
        env = "LEXIFORM_TENSOR_PARALLEL_SIZE",
        hide = true,
        value_name = "N"
    )]
    #[arg(num_args = 0..=1, default_missing_value = "several", value_parser = one_card)]
    pub tensor_parallel_size: Option<usize>,
    /// The number format of the computation: auto, f32, bf16 or f16; auto is f32 on a CPU and the format of
    /// the files on a GPU
    #[arg(
        help_heading = "Model",
        long,
        env = "LEXIFORM_DTYPE",
        default_value = "auto",
        value_name = "TYPE"
    )]
    pub dtype: Dtype,
    /// The format of the weights in memory: stored, or int8 or fp8, which round them to eight bits: less
    /// memory and faster passes of few tokens, but a different model, as answers report. Needs --device cpu
    /// and f32, or a card whose kernels run the model
    #[arg(
        help_heading = "Model",
        long,
        env = "LEXIFORM_WEIGHTS",
        default_value = "stored",
        value_name = "FORMAT"
    )]
    pub weights: WeightFormat,
    /// Give the same text for the same seed regardless of other requests: a text is computed in the same way
    /// whatever else is in a pass, which makes long prompts slower. Needs --device cpu and f32; requests can
    /// insist on it with "batch_invariant"
    #[arg(help_heading = "Model", long, env = "LEXIFORM_BATCH_INVARIANT")]
    pub batch_invariant: bool,
    /// On an NVIDIA card, run all passes with libtorch, and none with the kernels of this program, if it was
    /// built with kernels
    #[arg(help_heading = "Model", long, env = "LEXIFORM_NO_KERNELS")]
    pub no_kernels: bool,
    /// On an NVIDIA card, start no kernel before the end of the previous one: slower, to measure the gain of
    /// early starts or to rule out their errors. Needs a program that was built with kernels
    #[arg(help_heading = "Model", long, env = "LEXIFORM_NO_DEPENDENT_LAUNCH")]
    pub no_dependent_launch: bool,
    /// On an NVIDIA card, begin no pass before the host has read the draws of the last one: slower, to
    /// measure the gain of the overlap
    #[arg(help_heading = "Model", long, env = "LEXIFORM_NO_OVERLAP")]
    pub no_overlap: bool,
    /// A file with a chat template (Jinja) that replaces the model's own, for chats and responses
    #[arg(
        help_heading = "Model",
        long,
        env = "LEXIFORM_CHAT_TEMPLATE",
        value_name = "FILE"
    )]
    pub chat_template: Option<PathBuf>,
    /// The most tokens of a prompt and its answer together, if fewer than the model has positions; the cache
    /// of keys and values then need not hold a longer text
    #[arg(
        help_heading = "Model",
        long,
        env = "LEXIFORM_MAX_MODEL_LEN",
        value_name = "N"
    )]
    pub max_model_len: Option<NonZeroUsize>,
    /// Threads of the model on a CPU; by default one per core
    #[arg(help_heading = "Model", long, env = "LEXIFORM_THREADS", value_name = "N")]
    pub threads: Option<usize>,
    /// Sequences that are decoded together
    #[arg(
        help_heading = "Batches and memory",
        long,
        env = "LEXIFORM_MAX_BATCH",
        default_value_t = 32,
        value_name = "N"
    )]
    pub max_batch: usize,
    /// Sequences that may be queued; more are refused with status 429
    #[arg(
        help_heading = "Batches and memory",
        long,
        env = "LEXIFORM_QUEUE",
        default_value_t = 256,
        value_name = "N"
    )]
    pub queue: usize,
    /// Tokens that the model reads in one pass, of all sequences together: longer prompts are read in pieces
    #[arg(
        help_heading = "Batches and memory",
        long,
        env = "LEXIFORM_PASS_TOKENS",
        default_value_t = 512,
        value_name = "N"
    )]
    pub pass_tokens: usize,
    /// Tokens of prompts in a pass that also extends other sequences; by default as many as fit. Fewer make
    /// long prompts slower and the other sequences steadier
    #[arg(
        help_heading = "Batches and memory",
        long,
        env = "LEXIFORM_PROMPT_PIECE",
        value_name = "N"
    )]
    pub prompt_piece: Option<usize>,
    /// Memory for keys and values, in MiB, at most what a full batch can use. By default 512, and with
    /// --device cpu a quarter of the memory that is free at start, if that is more, and no more than half of
    /// it. In a container, what the container may still take is free
    #[arg(
        help_heading = "Batches and memory",
        long,
        env = "LEXIFORM_CACHE_MEMORY",
        value_name = "MIB"
    )]
    pub cache_memory: Option<usize>,
    /// Let the requests of all API keys, and without keys of all clients, find each other's prompts in the
    /// cache of keys and values. How many tokens of a prompt were cached, and the time of an answer, then
    /// reveal prompts of other keys
    #[arg(help_heading = "Batches and memory", long, env = "LEXIFORM_SHARE_PROMPTS")]
    pub share_prompts: bool,
    /// What is drafted, and how
    #[command(flatten, next_help_heading = "Drafts")]
    pub drafts: DraftArgs,
}

impl ModelArgs {
    /// Loads the model and starts its engine. `name` is the name of the model in requests.
    ///
    /// # Errors
    /// Fails if a file is missing or broken, or if the device cannot be used.
    pub fn open(&self, name: Option<String>) -> Result<ServedModel, StartError> {
        self.open_with(name, &mut |_| {})
    }

    /// Loads the model and starts its engine with a changed configuration of the engine.
    ///
    /// # Errors
    /// Fails if a file is missing or broken, or if the device cannot be used.
    pub fn open_with(
        &self,
        name: Option<String>,
        change: &mut dyn FnMut(&mut EngineConfig),
    ) -> Result<ServedModel, StartError> {
        let chosen = self.choose(Wanted::ToAnswer)?;
        self.run.load(chosen)?.start(&self.run, name, change)
    }

    /// Finds the model on this disk, and its draft model.
    ///
    /// # Errors
    /// Fails if the named model does not exist, or if this program has no demo model.
    pub fn choose(&self, wanted: Wanted) -> Result<Chosen, StartError> {
        self.run.choose(self.model.as_deref(), wanted)
    }
}

impl RunArgs {
    /// Finds a model on this disk, or the usual one, and its draft model.
    ///
    /// # Errors
    /// Fails if the named model does not exist, or if this program has no demo model.
    pub fn choose(&self, word: Option<&Path>, wanted: Wanted) -> Result<Chosen, StartError> {
        let stores = Stores::of_user();
        let located = match word {
            Some(word) => source::locate(word, wanted, &stores)?,
            None => source::usual(wanted, &stores),
        };
        let draft_files = match (&self.drafts.draft_model, &located.place) {
            (Some(word), _) => Some(files_at(
                &source::locate(word, Wanted::ToDraft, &stores)?.place,
                demo::draft_model,
            )?),
            (None, Place::BuiltIn) if self.drafts.draft_skip.is_none() => demo::draft_model(),
            (None, _) => None,
        };
        let template = self.chat_template.as_deref().map(template_file::read);
        Ok(Chosen {
            files: files_at(&located.place, demo::model)?,
            draft_files,
            adapter: None,
            template: template.transpose()?,
            located,
        })
    }

    /// Loads the model of these files, and its draft model.
    ///
    /// # Errors
    /// Fails if a file is missing or broken, or if the device cannot be used.
    pub fn load(&self, chosen: Chosen) -> Result<Loaded, StartError> {
        let Chosen {
            located,
            files,
            draft_files,
            adapter,
            template,
        } = chosen;
        let text = ModelText::read(&files, template)?;
        // Before the model, which takes longer to load.
        let corpus = corpus::read(
            &self.drafts.draft_corpus,
            self.drafts.draft_corpus_memory,
            &text.tokenizer,
        )?;
        let weight_bytes = self.weigh(&files, draft_files.as_ref())?;
        let skip = self.drafts.draft_skip.as_ref();
        let drafter = draft_files.as_ref().map(drafter_kind).transpose()?;
        let is_head = drafter == Some(DrafterKind::Head);
        let options = LoadOptions {
            draft_without: skip.map(|skip| skip.layers(&text.tokenizer)),
            head: draft_files.clone().filter(|_| is_head),
            adapter,
            ..self.load_options()
        };
        let mut model = load(&files, &options)?;
        let draft = match (model.draft.take(), model.head.take(), draft_files) {
            (Some(draft), _, _) => Some(Assistant::from(draft.model)),
            (None, Some(head), _) => Some(Assistant::Head(head)),
            (None, None, Some(files)) => Some(self.load_assistant(&files, drafter)?),
            (None, None, None) => None,
        };
        Ok(Loaded {
            name: located.name,
            text,
            corpus,
            model,
            draft,
            weight_bytes,
        })
    }

    /// Returns the bytes that the weights of a model and of its draft model will take, without loading them.
    ///
    /// # Errors
    /// Fails if a file is missing or broken, or if the device cannot be used.
    pub fn weigh(&self, files: &ModelFiles, draft_files: Option<&ModelFiles>) -> Result<u64, StartError> {
        let options = self.load_options();
        let (head, draft) = match draft_files {
            Some(files) if drafter_kind(files)? == DrafterKind::Head => (Some(files.clone()), None),
            draft => (None, draft),
        };
        let drafter = draft.map_or(Ok(0), |files| weight_bytes(files, &options))?;
        let own = weight_bytes(files, &LoadOptions { head, ..options })?;
        Ok(own.saturating_add(drafter))
    }

    /// Loads the model of these files as a draft model. Without its own tokenizer it uses the tokenizer of
    /// the main model.
    fn load_assistant(&self, files: &ModelFiles, kind: Option<DrafterKind>) -> Result<Assistant, StartError> {
        let LoadedModel { model, eos, .. } = load(files, &self.load_options())?;
        let tokens = match files.has(TOKENIZER) {
            false => None,
            true => {
                let file = files.text(TOKENIZER)?;
                let tokenizer = Tokenizer::from_bytes(file.as_bytes()).map_err(StartError::DraftTokenizer)?;
                let tokens = served::own_tokens(tokenizer, &eos, model.vocab_size());
                Some(tokens.map_err(StartError::DraftVocabulary)?)
            }
        };
        let mask = match kind {
            Some(DrafterKind::Parallel { mask }) => Some(mask),
            _ => None,
        };
        Ok(Assistant::Model { model, tokens, mask })
    }

    /// Returns the options for loading the model.
    pub fn load_options(&self) -> LoadOptions {
        let defaults = LoadOptions::default();
        let mut options = LoadOptions {
            device: self.device,
            dtype: self.dtype,
            weights: self.weights,
            batch_invariant: self.batch_invariant,
            kernels: defaults.kernels && !self.no_kernels,
            dependent_launch: !self.no_dependent_launch,
            tell: |message| tracing::info!("{message}"),
            ..defaults
        };
        if let Some(threads) = self.threads {
            options.threads = threads;
        }
        options
    }

    /// Returns the sizes of the engine for this model: as much cache as the memory holds, at least one whole
    /// context, and no more than all sequences of a full batch can use.
    pub fn engine_config(&self, model: &dyn Model) -> EngineConfig {
        let most = self.max_model_len.map_or(usize::MAX, NonZeroUsize::get);
        let whole = model.max_positions().min(most).div_ceil(BLOCK).max(1);
        let bytes = model.cache_bytes_per_token().saturating_mul(BLOCK).max(1);
        let fitting = self.cache_mib().saturating_mul(1 << 20) / bytes;
        EngineConfig {
            block_size: BLOCK,
            max_context: most,
            share_prompts: self.share_prompts,
            blocks: fitting.clamp(whole, whole.saturating_mul(self.max_batch.max(1))),
            max_running: self.max_batch,
            max_waiting: self.queue,
            max_step_tokens: self.pass_tokens,
            prompt_piece: self.prompt_piece.unwrap_or(self.pass_tokens),
            drafting: self.drafts.draft_policy.into(),
            draft_stores: self.drafts.stores(),
            lookahead: self.drafts.lookahead(),
            overlap: !self.no_overlap,
            ..EngineConfig::default()
        }
    }

    /// Checks that the model has as many positions as texts may have tokens.
    fn check_length(&self, positions: usize) -> Result<(), StartError> {
        match self.max_model_len.map(NonZeroUsize::get) {
            Some(asked) if asked > positions => Err(StartError::TooLong { asked, positions }),
            _ => Ok(()),
        }
    }

    /// Returns the memory for keys and values, in MiB.
    fn cache_mib(&self) -> usize {
        let free = || match self.device {
            Device::Cpu => process::free_memory(),
            _ => None,
        };
        self.cache_memory.unwrap_or_else(|| usual_cache_mib(free()))
    }
}

/// Returns the memory for keys and values, in MiB, where so many bytes of memory are free: a part of it, or
/// else a fixed size, which half of the memory must hold.
fn usual_cache_mib(free: Option<usize>) -> usize {
    free.map_or(CACHE_MIB, |bytes| {
        let mib = bytes >> 20;
        (mib / CACHE_PART).max(CACHE_MIB.min(mib / 2))
    })
}

/// The files of a model and of its draft model.
pub struct Chosen {
    /// The location and the name of the model.
    pub located: Located,
    /// The files of the model.
    pub files: ModelFiles,
    /// The files of its draft model.
    pub draft_files: Option<ModelFiles>,
    /// The folder of an adapter that is merged into the model.
    pub adapter: Option<ModelFiles>,
    /// The chat template that replaces the model's own.
    pub template: Option<String>,
}

/// Returns the files at a place; the files of the built-in model come from `built_in`, if there is one.
fn files_at(place: &Place, built_in: fn() -> Option<ModelFiles>) -> Result<ModelFiles, StartError> {
    match place {
        Place::BuiltIn => built_in().ok_or(StartError::NoModel),
        Place::Disk(path) => Ok(ModelFiles::open(path)?),
    }
}

/// A model that is in memory, without an engine.
pub struct Loaded {
    name: String,
    text: ModelText,
    corpus: Option<Retrieval>,
    model: LoadedModel,
    draft: Option<Assistant>,
    /// The bytes of its weights and of those of its draft model.
    weight_bytes: u64,
}

impl Loaded {
    /// Returns the maximum number of tokens of a text.
    pub fn max_positions(&self) -> usize {
        self.model.model.max_positions()
    }

    /// Returns the bytes of keys and values per token.
    pub fn cache_bytes_per_token(&self) -> usize {
        self.model.model.cache_bytes_per_token()
    }

    /// Returns the bytes that its passes read.
    pub fn reads(&self) -> &PassReads {
        &self.model.reads
    }

    /// Starts its engine, with a changed configuration.
    ///
    /// # Errors
    /// Fails if the tokenizer does not match the model, or if the engine cannot start.
    pub fn start(
        self,
        args: &RunArgs,
        name: Option<String>,
        change: &mut dyn FnMut(&mut EngineConfig),
    ) -> Result<ServedModel, StartError> {
        self.start_beside(&served::grammar_shelf(), args, name, change)
    }

    /// Starts its engine, with a changed configuration, and with its grammars on this shelf.
    ///
    /// # Errors
    /// Fails if the tokenizer does not match the model, or if the engine cannot start.
    pub fn start_beside(
        self,
        shelf: &Arc<Shelf>,
        args: &RunArgs,
        name: Option<String>,
        change: &mut dyn FnMut(&mut EngineConfig),
    ) -> Result<ServedModel, StartError> {
        let weights = self.model.config.weights;
        let LoadedModel { model, eos, .. } = self.model;
        args.check_length(model.max_positions())?;
        let mut config = args.engine_config(model.as_ref());
        config.draft_stores.corpus = self.corpus;
        change(&mut config);
        let name = name.unwrap_or(self.name);
        let served = ServedModel::start_beside(shelf, name, (model, self.draft), self.text, &eos, config)?;
        Ok(served.with_weights(weights, self.weight_bytes))
    }
}

/// Reads the number of cards that are to run one model.
fn one_card(text: &str) -> Result<usize, String> {
    match text {
        "1" => Ok(1),
        _ => Err(SEVERAL_CARDS.to_owned()),
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
        run: RunArgs,
    }

    fn config(flags: &[&str]) -> EngineConfig {
        let flags = Flags::try_parse_from([&["lexiform"], flags].concat()).expect("flags");
        let model = ScriptedModel::new(8, 1_000, |_| vec![0.0; 8]);
        flags.run.engine_config(&model)
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
            flags.run.cache_mib()
        };
        assert_eq!(mib(&["--cache-memory", "7"]), 7);
        assert_eq!(mib(&["--device", "cuda"]), 512);
        for (free, expected) in [
            (None, 512),
            (Some(8 << 10), 2048),
            (Some(1500), 512),
            (Some(600), 300),
        ] {
            assert_eq!(
                usual_cache_mib(free.map(|mib: usize| mib << 20)),
                expected,
                "{free:?}"
            );
        }
        // No more than a full batch of whole contexts takes.
        assert_eq!(
            config(&["--max-batch", "3"]).blocks,
            3 * 1_000_usize.div_ceil(BLOCK)
        );
    }
}
