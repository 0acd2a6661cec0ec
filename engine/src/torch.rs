//! Models on libtorch. The only module that names `tch`.
//!
//! ```text
//!   folder ─ files ─┬─ config.json ──────── config, rope ─┐
//!                   └─ *.safetensors ────── checkpoint ───┼─► llama: one decoder for Llama, Mistral, Qwen2, Qwen3
//!   device: cpu, cuda ────────────────────────────────────┘       attention over the paged cache
//! ```
//!
//! The program links libtorch's CPU half only. Its CUDA half is opened at run time when a GPU is asked for, so the same
//! binary runs on both; see [`Device`].

mod attention;
mod cache;
mod checkpoint;
mod config;
mod device;
mod files;
mod fused;
mod home;
mod kernel;
mod llama;
mod load;
mod rope;
mod together;
mod upload;

pub use device::{Device, Dtype};
pub use files::ModelFiles;
pub use load::{LoadOptions, LoadedModel, ModelConfig, load};
