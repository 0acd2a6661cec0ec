//! Models on libtorch. The only module that names `tch`.
//!
//! ```text
//!   folder ─ files ─┬─ config.json ──────── config, rope ─────────┐
//!                   └─ *.safetensors ────── checkpoint, weights ──┼─► decoder: one for all families, of layers
//!   device: cpu, cuda ────────────────────────────────────────────┘       attention over the paged cache
//! ```
//!
//! A family (Llama, Mistral and Mixtral, Qwen 2 and 3, Gemma 2 and 3, Phi-3 and 4, OLMo 2, SmolLM, GPT-2) is
//! a row of a table and nothing else; the table is in `config/family.rs`. `engine/tests/engine/torch.rs`
//! compares tiny random checkpoints (`engine/tests/fixtures/`) with `transformers`.
//!
//! With the feature `kernels`, passes on a card are run by kernels of our own (the crate `lexiform-kernels`)
//! where they serve the model. They are known to the room `kernels` alone, which the others meet in `passes`.
//!
//! The program links libtorch's CPU half only. Its CUDA half is opened at run time when a GPU is asked for,
//! so the same binary runs on both; see [`Device`].

mod bandwidth;
mod checkpoint;
mod config;
mod crew;
mod decoder;
mod device;
mod flight;
mod gguf;
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
#[cfg(feature = "kernels")]
pub use kernels::{load, load_launched_by};
#[cfg(not(feature = "kernels"))]
pub use load::load;
pub use load::{LoadedModel, ModelConfig, SelfDraft, describe};
pub use options::{LoadOptions, SkippedLayers, WeightFormat};
