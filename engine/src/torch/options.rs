//! How a model is loaded: where it computes, in what numbers, with how many threads.

use super::device::{Device, Dtype};
use std::fmt;
use std::str::FromStr;

/// How the matrices of a model are kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WeightFormat {
    /// In the numbers that the model computes with, or as the checkpoint holds them where that is exact.
    #[default]
    Stored,
    /// In whole numbers of eight bits with a scale for each row, rounded when they are loaded: half the
    /// memory of bfloat16, and another model, whose law is not that of the checkpoint. The embedding and the
    /// routers of experts stay as they are stored. On the CPU in `f32`, with loops of our own, and on a card
    /// where its kernels run the model.
    Int8,
    /// In floating-point numbers of eight bits (e4m3) with a scale for each row; the same in all else.
    Fp8,
}

impl WeightFormat {
    /// Its name, which it is read from.
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

/// Which layers a model leaves out where it drafts for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkippedLayers {
    /// These, counted from 0: SWIFT ([Xia et al. 2024](https://arxiv.org/abs/2410.06916)) with a set that was
    /// found elsewhere.
    Named(Vec<usize>),
    /// So many, which change the hidden states of a text the least: the dynamic programme of CLaSp
    /// ([Chen et al. 2025](https://arxiv.org/abs/2505.24196)), on the first 512 tokens of the text.
    Likeliest {
        /// How many.
        count: usize,
        /// Tokens of a text like those that will be written.
        text: Vec<u32>,
    },
}

/// How to load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Where to compute.
    pub device: Device,
    /// What numbers to compute with.
    pub dtype: Dtype,
    /// How its matrices are kept.
    pub weights: WeightFormat,
    /// The threads of one matrix product on the CPU; the process-wide setting of torch.
    pub threads: usize,
    /// On the CPU in f32: whether the small steps between matrix products are done by loops of our own, which
    /// is faster, or by torch like everywhere else.
    pub fused: bool,
    /// Whether a row has the same bits in any company, however its text is cut into passes and whatever else
    /// is in them: on the CPU in `f32`, by loops of our own. Products are computed so in any case; attention
    /// of many tokens at once is faster by torch, whose sums depend on how many they are.
    pub batch_invariant: bool,
    /// Whether tokens are drawn where the model computes, so that rows of logits need not come to memory; if
    /// nothing is said, on a graphics card.
    pub draws: Option<bool>,
    /// The layers without which the model drafts for itself; `None` if it does not.
    pub draft_without: Option<SkippedLayers>,
    /// On a graphics card: whether passes are run by kernels of our own, where they serve the model, or by
    /// libtorch alone. An engine that is built without the feature `kernels` refuses a model that is to be
    /// run by them; there this is false where nothing is said.
    pub kernels: bool,
    /// On a graphics card: whether these kernels may start before the end of the one ahead, as far as they do
    /// not depend on it.
    pub dependent_launch: bool,
    /// Told, at most a few times, how passes are run on a card: by the kernels, or why not.
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
            kernels: cfg!(feature = "kernels"),
            dependent_launch: true,
            tell: |_| {},
        }
    }
}
