//! Passes by the kernels of [`lexiform_kernels`], on the tensors of a decoder: the feature `kernels` of this
//! crate.
//!
//! ```text
//!   options, config ─ shape ─► a stream of the GPU, or a launcher of a test ─► planner
//!   tensors of a decoder ─ planner ─► planned: plans with their addresses ─┬─ moving: copies in the caches
//!                                                                          └─ draws: tokens from rows
//! ```
//!
//! The kernels know addresses, and the other modules know the interface in [`passes`](super::passes); only
//! this module knows both.

mod conversions;
mod draws;
mod moving;
mod planned;
mod shape;

use self::planned::Planned;
use super::checkpoint::files::ModelFiles;
use super::config::Config;
use super::device::{self, Device};
use super::layers::layout::Place;
use super::load::{LoadedModel, load_with};
use super::loops::matrix::{Matrix, Rounding};
use super::options::{LoadOptions, WeightFormat};
use super::passes::{Held, Passes, Planner};
use crate::error::LoadError;
use lexiform_kernels::card::stream::Stream;
use lexiform_kernels::launcher::{Launcher, SharedLauncher};
use lexiform_kernels::shapes::{BLOCK_SIZE, Format};
use std::sync::{Arc, Mutex, PoisonError};

/// Loads a model: a Hugging Face folder (config.json and safetensors, in one file or several), or GGUF. On a
/// GPU, the kernels run the passes if they support the model.
///
/// # Errors
/// A file is missing or broken, or the device cannot be used.
pub fn load(files: &ModelFiles, options: &LoadOptions) -> Result<LoadedModel, LoadError> {
    load_with(files, options, |config, place| card(options, config, place))
}

/// Loads a model whose passes `launcher` runs, on the device of the options. Tests use it to run passes by
/// plan on a CPU.
///
/// # Errors
/// The same as for [`load`].
pub fn load_launched_by(
    files: &ModelFiles,
    options: &LoadOptions,
    launcher: Box<dyn Launcher>,
) -> Result<LoadedModel, LoadError> {
    load_with(files, options, |_, _| Ok(Launched::planner(launcher)))
}

/// Returns the GPU of the options, if it and the kernels support this model. If not, returns the reason,
/// which is also reported through `tell`, or an empty one if kernels were not requested. Whether the cache
/// has blocks of the kernels' size is not known yet.
fn card(options: &LoadOptions, config: &Config, place: Place) -> Result<Arc<dyn Planner>, String> {
    let Device::Cuda(number) = options.device else {
        return Err(String::new());
    };
    if !options.kernels {
        return Err(" without kernels".to_owned());
    }
    let format = match options.weights {
        WeightFormat::Stored => None,
        WeightFormat::Int8 => Some(Format::Int8),
        WeightFormat::Fp8 => Some(Format::Fp8),
    };
    let opened = shape::shape(config, place.kind, BLOCK_SIZE, format).map_err(|why| why.to_string());
    let opened = opened.and_then(|_| {
        let folder = device::folder_of("libcublas.so.13");
        Stream::open(number, folder.as_deref(), options.dependent_launch, format)
            .map_err(|why| why.to_string())
    });
    match opened {
        Ok(stream) => Ok(Launched::planner(Box::new(stream))),
        Err(why) => {
            (options.tell)(&format!("passes are run by libtorch alone: {why}"));
            Err(format!(": {why}"))
        }
    }
}

/// A planner of passes that a launcher runs.
struct Launched(SharedLauncher);

impl Launched {
    fn planner(launcher: Box<dyn Launcher>) -> Arc<dyn Planner> {
        Arc::new(Launched(Arc::new(Mutex::new(launcher))))
    }
}

impl Planner for Launched {
    fn name(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).name()
    }

    fn plan(&self, held: &Held<'_>) -> Result<Box<dyn Passes>, String> {
        let head = held.head.matrix();
        let shape = shape::shape(held.config, held.kind, held.block_size, head.and_then(format));
        let shape = shape.map_err(|why| why.to_string())?;
        let head = head.ok_or("the processor multiplies by loops of its own")?;
        let Matrix::Stored(embedding) = held.embedding else {
            return Err("the embedding is in blocks".to_owned());
        };
        let planned = Planned::new(held, (embedding, head), shape, self.0.clone());
        Ok(Box::new(planned.map_err(|error| error.to_string())?))
    }
}

/// Returns the kernels' name for the format of a matrix, if it is in eight bits.
fn format(matrix: &Matrix) -> Option<Format> {
    match matrix {
        Matrix::Stored(_) | Matrix::Blocks(_) | Matrix::Stacked(_) => None,
        Matrix::Rounded(rounded) => Some(match rounded.rounding {
            Rounding::Int8 => Format::Int8,
            Rounding::Fp8 => Format::Fp8,
        }),
    }
}
