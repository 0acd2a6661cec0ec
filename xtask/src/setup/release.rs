//! The release of libtorch that this project is built with, and its sets of files.

/// The one version that tch 0.24 supports.
pub(super) const TORCH_VERSION: &str = "2.11.0";

/// A set of files of libtorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    /// Runs on any machine: 0.5 GB.
    Cpu,
    /// With the CUDA libraries: 3.9 GB.
    Cuda,
}

impl Files {
    /// Returns the name of the set in folder names and messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Files::Cpu => "cpu",
            Files::Cuda => "cuda",
        }
    }
}
