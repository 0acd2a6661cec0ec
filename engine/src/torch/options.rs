//! How a model is loaded: where it computes, in what numbers, with how many threads.

use super::device::{Device, Dtype};

/// How to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Where to compute.
    pub device: Device,
    /// What numbers to compute with.
    pub dtype: Dtype,
    /// The threads of one matrix product on the CPU; the process-wide setting of torch.
    pub threads: usize,
    /// On the CPU in f32: whether the small steps between matrix products are done by loops of our own, which is
    /// faster, or by torch like everywhere else.
    pub fused: bool,
    /// Whether tokens are drawn where the model computes, so that rows of logits need not come to memory; if nothing is
    /// said, on a graphics card.
    pub draws: Option<bool>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        LoadOptions {
            device: Device::Cpu,
            dtype: Dtype::Auto,
            threads: cores.min(8),
            fused: true,
            draws: None,
        }
    }
}
