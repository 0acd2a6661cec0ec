//! The weights of a checkpoint, read tensor by tensor, by their names in a Hugging Face folder.
//!
//! They are in [safetensors] or in [GGUF](crate::torch::gguf), and an [adapter] may be merged into them. The
//! bytes of a tensor are read when it is requested, so at most one of them is in memory twice.

pub(crate) mod adapter;
pub(crate) mod files;
pub(crate) mod random;
mod safetensors;

use self::adapter::Adapter;
use self::files::ModelFiles;
use self::random::RandomWeights;
use self::safetensors::{Safetensors, kind_of};
use crate::error::{LoadError, in_one_line};
use crate::torch::gguf::blocks::BlockFormat;
use crate::torch::gguf::file::Gguf;
use tch::{Kind, TchError, Tensor};

/// The file that is named where there are no files of weights.
const SINGLE: &str = safetensors::SINGLE;

/// All tensors of a model, by name.
pub(crate) struct Checkpoint<'a> {
    files: &'a ModelFiles,
    source: TensorSource<'a>,
    adapter: Option<Adapter<'a>>,
}

/// The source of the tensors.
enum TensorSource<'a> {
    Safetensors(Safetensors<'a>),
    Gguf(&'a Gguf),
    /// Random weights that are not stored.
    Random(RandomWeights),
}

/// A matrix as a checkpoint stores it.
pub(crate) enum StoredMatrix {
    /// Numbers of a type that torch supports.
    Numbers(Tensor),
    /// Blocks with few bits per number: their format, and the bytes of the rows.
    Blocks(BlockFormat, Vec<u8>),
}

impl<'a> Checkpoint<'a> {
    pub(crate) fn open(files: &'a ModelFiles) -> Result<Self, LoadError> {
        let source = if files.is_random() {
            TensorSource::Random(RandomWeights::default())
        } else if let Some(gguf) = files.gguf() {
            TensorSource::Gguf(gguf)
        } else {
            TensorSource::Safetensors(Safetensors::open(files)?)
        };
        Ok(Checkpoint {
            files,
            source,
            adapter: None,
        })
    }

    /// Merges an adapter into the tensors that are read.
    ///
    /// # Errors
    /// The matrices are not laid out as adapters of Hugging Face have them.
    pub(crate) fn with_adapter(self, adapter: Option<Adapter<'a>>) -> Result<Self, LoadError> {
        let found = match &self.source {
            TensorSource::Safetensors(_) => return Ok(Checkpoint { adapter, ..self }),
            TensorSource::Gguf(_) => "GGUF",
            TensorSource::Random(_) => "random weights",
        };
        match adapter {
            None => Ok(self),
            Some(adapter) => Err(adapter.unfit(found)),
        }
    }

    /// Checks that all of the adapter was merged into tensors that were read.
    ///
    /// # Errors
    /// The adapter changes something else.
    pub(crate) fn check_merged(&self) -> Result<(), LoadError> {
        self.adapter.as_ref().map_or(Ok(()), Adapter::check_merged)
    }

    /// Returns the adapter, if it changes the tensor with this name.
    fn adapter_of(&self, name: &str) -> Option<&Adapter<'a>> {
        self.adapter.as_ref().filter(|adapter| adapter.changes(name))
    }

    /// Returns `true` if there is a tensor with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        match &self.source {
            TensorSource::Random(_) => true,
            TensorSource::Gguf(gguf) => gguf.format(name).is_some(),
            TensorSource::Safetensors(stored) => stored.entries.contains_key(name),
        }
    }

    /// Returns the type of the tensor with this name; for blocks, the smallest type that holds their numbers.
    pub(crate) fn kind(&self, name: &str) -> Option<Kind> {
        match &self.source {
            TensorSource::Random(_) => Some(random::KIND),
            TensorSource::Gguf(gguf) => gguf.format(name).map(|format| match format {
                BlockFormat::F32 => Kind::Float,
                BlockFormat::F16 => Kind::Half,
                _ => Kind::BFloat16,
            }),
            TensorSource::Safetensors(stored) => {
                let entry = stored.entries.get(name)?;
                kind_of(&entry.dtype).map(|(kind, _)| kind)
            }
        }
    }

    /// Returns the names of all tensors; none if they are not stored as safetensors.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let stored = match &self.source {
            TensorSource::Safetensors(stored) => Some(&stored.entries),
            TensorSource::Gguf(_) | TensorSource::Random(_) => None,
        };
        stored.into_iter().flatten().map(|(name, _)| name.as_str())
    }

    /// Returns how many numbers all tensors have; 0 if they are not stored as safetensors.
    pub(crate) fn numbers(&self) -> u64 {
        let sizes = self.names().filter_map(|name| self.shape(name));
        sizes
            .map(|shape| {
                shape
                    .iter()
                    .fold(1, |all: u64, size| all.saturating_mul(size.unsigned_abs()))
            })
            .fold(0, u64::saturating_add)
    }

    /// Returns the shape of a tensor that is stored as safetensors.
    pub(crate) fn shape(&self, name: &str) -> Option<&[i64]> {
        match &self.source {
            TensorSource::Safetensors(stored) => stored.entries.get(name).map(|entry| entry.shape.as_slice()),
            TensorSource::Gguf(_) | TensorSource::Random(_) => None,
        }
    }

    /// Reads a vector of 64-bit integers that is stored as safetensors.
    pub(crate) fn integers(&self, name: &str, len: i64) -> Result<Vec<i64>, LoadError> {
        match &self.source {
            TensorSource::Safetensors(stored) => stored.integers(name, len),
            TensorSource::Gguf(_) | TensorSource::Random(_) => Err(self
                .files
                .malformed(SINGLE, format!("tensor {name:?}: expected safetensors"))),
        }
    }

    /// Returns `true` if matrices are stored as `[out, in]`, whatever the family does.
    pub(crate) fn is_by_outputs(&self) -> bool {
        matches!(self.source, TensorSource::Gguf(_))
    }

    /// Returns the mean number of bytes of a weight, if weights are stored in blocks.
    pub(crate) fn bytes_in_blocks(&self) -> Option<f64> {
        match &self.source {
            TensorSource::Gguf(gguf) => Some(gguf.bytes_of_weight()),
            TensorSource::Random(_) | TensorSource::Safetensors(_) => None,
        }
    }

    /// Reads a tensor, which must have this shape, in numbers of a type that torch supports.
    pub(crate) fn tensor(&self, name: &str, shape: &[i64]) -> Result<Tensor, LoadError> {
        match &self.source {
            TensorSource::Random(random) => {
                let made = random.tensor(name, shape);
                made.map_err(|error| {
                    self.files
                        .malformed(SINGLE, format!("tensor {name:?}: {}", in_one_line(&error)))
                })
            }
            TensorSource::Safetensors(stored) => match self.adapter_of(name) {
                None => stored.tensor(name, shape),
                Some(adapter) => adapter.merge(name, stored.tensor(name, shape)?),
            },
            TensorSource::Gguf(_) => match self.matrix(name, shape)? {
                StoredMatrix::Numbers(tensor) => Ok(tensor),
                StoredMatrix::Blocks(format, bytes) => {
                    let mut numbers = Vec::new();
                    format.widen(&bytes, &mut numbers);
                    self.made(
                        name,
                        Tensor::f_from_slice(&numbers).and_then(|numbers| numbers.f_view(shape)),
                    )
                }
            },
        }
    }

    /// Reads a tensor of this shape as it is stored.
    pub(crate) fn matrix(&self, name: &str, shape: &[i64]) -> Result<StoredMatrix, LoadError> {
        let TensorSource::Gguf(gguf) = &self.source else {
            return self.tensor(name, shape).map(StoredMatrix::Numbers);
        };
        let rows = gguf.rows(name, shape)?;
        let kind = match rows.format {
            BlockFormat::F32 => Kind::Float,
            BlockFormat::F16 => Kind::Half,
            BlockFormat::Bf16 => Kind::BFloat16,
            format => return Ok(StoredMatrix::Blocks(format, rows.bytes)),
        };
        let numbers = Tensor::f_from_data_size(&rows.bytes, shape, kind);
        let numbers = match rows.is_one_more {
            true => numbers.and_then(|numbers| numbers.f_to_kind(Kind::Float)?.f_sub_scalar(1.0)),
            false => numbers,
        };
        self.made(name, numbers).map(StoredMatrix::Numbers)
    }

    fn made(&self, name: &str, made: Result<Tensor, TchError>) -> Result<Tensor, LoadError> {
        made.map_err(|error| {
            self.files
                .malformed("", format!("tensor {name:?}: {}", in_one_line(&error)))
        })
    }
}
