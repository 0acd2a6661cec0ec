//! The options for loading a model: the device, the number types, and the threads.

use super::checkpoint::files::ModelFiles;
use super::device::{Device, Dtype};
use std::fmt;
use std::str::FromStr;

/// The format in which the matrices of a model are kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WeightFormat {
    /// In the numbers that the model computes with, or as the checkpoint stores them if that is exact.
    #[default]
    Stored,
    /// In integers of eight bits with a scale for each row, rounded when they are loaded: half the memory of
    /// bfloat16, and another model, whose law is not that of the checkpoint. The embedding and the routers of
    /// experts stay as they are stored. Supported on the CPU in `f32`, with the engine's own loops, and on a
    /// GPU if the kernels run the model.
    Int8,
    /// In floating-point numbers of eight bits (e4m3) with a scale for each row; otherwise like
    /// [`Int8`](Self::Int8).
    Fp8,
}

impl WeightFormat {
    /// Returns the name of the format, from which it is also parsed.
    pub fn name(self) -> &'static str {
        match self {
            WeightFormat::Stored => "stored",
            WeightFormat::Int8 => "int8",
            WeightFormat::Fp8 => "fp8",
        }
    }
}

impl fmt::Display for WeightFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for WeightFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "stored" => Ok(WeightFormat::Stored),
            "int8" => Ok(WeightFormat::Int8),
            "fp8" => Ok(WeightFormat::Fp8),
            _ => Err(format!(
                "{text:?} is no format of weights; expected stored, int8 or fp8"
            )),
        }
    }
}

/// The layers that a model leaves out when it drafts for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkippedLayers {
    /// These layers, counted from 0: SWIFT ([Xia et al. 2024](https://arxiv.org/abs/2410.06916)) with a set
    /// that was found elsewhere.
    Named(Vec<usize>),
    /// The `count` layers that change the hidden states of a text the least: the dynamic programme of CLaSp
    /// ([Chen et al. 2025](https://arxiv.org/abs/2505.24196)), on the first 512 tokens of the text.
    Likeliest {
        /// The number of layers.
        count: usize,
        /// The tokens of a text like those that will be written.
        text: Vec<u32>,
    },
}

/// Options for loading a model.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The device to compute on.
    pub device: Device,
    /// The number type to compute with.
    pub dtype: Dtype,
    /// The format in which the model's matrices are kept.
    pub weights: WeightFormat,
    /// The threads of one matrix product on the CPU; the process-wide setting of torch.
    pub threads: usize,
    /// On the CPU in f32: `true` to compute matrix products and the small steps between them by the engine's
    /// own loops, which is faster, and `false` to use torch like everywhere else.
    pub fused: bool,
    /// `true` if a row must have the same bits however its text is cut into passes and whatever else is in
    /// them: on the CPU in `f32`, by the engine's own loops. Their products always have this property;
    /// attention of many tokens at once is faster by torch, whose sums depend on the number of tokens.
    pub batch_invariant: bool,
    /// `true` to draw tokens where the model computes, so that rows of logits need not be copied to host
    /// memory. By default this is done only on a GPU.
    pub draws: Option<bool>,
    /// The layers without which the model drafts for itself; `None` if it does not draft.
    pub draft_without: Option<SkippedLayers>,
    /// The folder of an adapter of low rank (LoRA) in the form of Hugging Face's PEFT, which is merged into
    /// the matrices of a model in safetensors. What is not understood of it is refused.
    pub adapter: Option<ModelFiles>,
    /// The files of a head that was trained to draft for the model ([`drafter_kind`](crate::drafter_kind)).
    /// Its matrices are kept in the same format. A model with a head is run by libtorch alone on a GPU.
    pub head: Option<ModelFiles>,
    /// On a GPU: `true` to run passes by the project's own kernels, if they support the model, and `false` to
    /// use only libtorch. An engine that is built without the feature `kernels` refuses `true`; there the
    /// default is `false`.
    pub kernels: bool,
    /// On a GPU: `true` if these kernels may start before the end of the previous one, as far as they do not
    /// depend on it.
    pub dependent_launch: bool,
    /// Called, at most a few times, with how passes are run on a GPU: by the kernels, or why not.
    pub tell: fn(&str),
}

impl Default for LoadOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        LoadOptions {
            device: Device::Cpu,
            dtype: Dtype::Auto,
            weights: WeightFormat::Stored,
            threads: cores.min(8),
            fused: true,
            batch_invariant: false,
            draws: None,
            draft_without: None,
            adapter: None,
            head: None,
            kernels: cfg!(feature = "kernels"),
            dependent_launch: true,
            tell: |_| {},
        }
    }
}
