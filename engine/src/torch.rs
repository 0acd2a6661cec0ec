//! Models on libtorch. This is the only module that names `tch`.
//!
//! ```text
//!   folder ─ files ─┬─ config.json ──────── config, rope ─────────┐
//!                   └─ *.safetensors ────── checkpoint, weights ──┼─► decoder for all families, with layers
//!   device: cpu, cuda ────────────────────────────────────────────┘       attention over the paged cache
//! ```
//!
//! A family (Llama, Mistral and Mixtral, Qwen 2 and 3, Gemma 2 and 3, Phi-3 and 4, OLMo 2, SmolLM, GPT-2) is
//! only a row of a table, which is in `config/family.rs`. `engine/tests/engine/torch.rs` compares tiny random
//! checkpoints (`engine/tests/fixtures/`) with `transformers`.
//!
//! With the feature `kernels`, the project's own kernels (the crate `lexiform-kernels`) run the passes on a
//! GPU where they support the model. Only the module `kernels` knows them; the other modules use them through
//! `passes`.
//!
//! The program links only libtorch's CPU half. Its CUDA half is opened at run time when a GPU is requested,
//! so the same binary runs on both; see [`Device`].

mod bandwidth;
mod checkpoint;
mod config;
mod crew;
mod decoder;
mod device;
mod flight;
mod gguf;
mod head;
#[cfg(feature = "kernels")]
mod kernels;
mod layers;
mod load;
mod loops;
mod options;
#[cfg_attr(
    not(feature = "kernels"),
    allow(dead_code, reason = "kernels make and read the rest")
)]
mod passes;

pub use bandwidth::Bandwidth;
pub use checkpoint::files::ModelFiles;
pub use checkpoint::random::Shape;
pub use config::PassReads;
pub use device::{Device, Dtype, SEVERAL_CARDS};
pub use head::{DrafterKind, drafter_kind};
#[cfg(feature = "kernels")]
pub use kernels::{load, load_launched_by};
#[cfg(not(feature = "kernels"))]
pub use load::load;
pub use load::{LoadedModel, ModelConfig, SelfDraft, describe, weight_bytes};
pub use options::{LoadOptions, SkippedLayers, WeightFormat};
