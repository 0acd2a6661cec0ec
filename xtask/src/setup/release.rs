//! Which release of libtorch this project is built with, and which of its files.

/// The one version that tch 0.24 pairs with.
pub(super) const TORCH_VERSION: &str = "2.11.0";

/// Which files of libtorch are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    /// What runs on any machine: 0.5 GB.
    Cpu,
    /// With the CUDA libraries: 3.9 GB.
    Cuda,
}

impl Files {
    /// What they are called in names of folders and in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Files::Cpu => "cpu",
            Files::Cuda => "cuda",
        }
    }
}
