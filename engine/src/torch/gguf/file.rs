//! An open model in GGUF files: its keys, and its tensors by their names in a Hugging Face folder.

use super::architecture::{Architecture, NAMES};
use super::blocks::BlockFormat;
use super::container::{self, Entry};
use super::metadata::Metadata;
use crate::error::LoadError;
use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, LoadError>;

/// The largest number of files that a model is split into.
const MOST_PARTS: i64 = 1 << 10;

/// A file of a model.
#[derive(Debug)]
struct ModelPart {
    path: PathBuf,
    file: File,
}

/// A model in GGUF files.
#[derive(Debug)]
pub(crate) struct Gguf {
    parts: Vec<ModelPart>,
    pub(super) metadata: Metadata,
    /// The tensors, each with the number of the part that has it.
    tensors: HashMap<String, (usize, Entry)>,
    pub(crate) architecture: &'static Architecture,
}

/// The rows of a tensor as they are stored, in the order of a Hugging Face folder.
pub(crate) struct Rows {
    pub(crate) format: BlockFormat,
    pub(crate) bytes: Vec<u8>,
    /// `true` if each number is one more than in a folder.
    pub(crate) is_one_more: bool,
}

impl Gguf {
    /// Opens a file, and the others that the model is split into.
    ///
    /// # Errors
    /// The file cannot be read, is broken, or has an architecture that the engine does not support.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (part, container) = opened(path)?;
        let metadata = container.metadata;
        let name = metadata
            .text("general.architecture")
            .map(Option::unwrap_or_default);
        let name = name.map_err(|problem| malformed(path, problem))?;
        let architecture = Architecture::of(name).ok_or_else(|| LoadError::Unsupported {
            file: path.to_owned(),
            what: "general.architecture",
            found: name.to_owned(),
            supported: NAMES,
        })?;
        let own = container.tensors.into_iter();
        let mut model = Gguf {
            parts: vec![part],
            tensors: own.map(|(name, entry)| (name, (0, entry))).collect(),
            metadata,
            architecture,
        };
        model.open_others(path)?;
        Ok(model)
    }

    /// Opens the other parts of a split model.
    fn open_others(&mut self, first: &Path) -> Result<()> {
        let count = self.read(self.metadata.integer("split.count"))?.unwrap_or(0);
        if count <= 1 {
            return Ok(());
        }
        let number = self.read(self.metadata.integer("split.no"))?.unwrap_or(0);
        if count > MOST_PARTS || number != 0 {
            let found = format!("part {} of {count}", number + 1);
            return Err(self.unsupported("a split file", &found, "the first of at most 1024 parts"));
        }
        for other in 1..count {
            let path = part_path(first, other + 1, count).ok_or_else(|| {
                self.malformed(format!(
                    "it is the first of {count} parts; expected a name that ends with -00001-of-{count:05}.gguf"
                ))
            })?;
            let (part, container) = opened(&path)?;
            self.parts.push(part);
            for (name, entry) in container.tensors {
                let at = self.parts.len() - 1;
                if self.tensors.insert(name.clone(), (at, entry)).is_some() {
                    return Err(malformed(
                        &path,
                        format!("tensor {name:?} is in another part, too"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the path of the first file.
    pub(crate) fn path(&self) -> &Path {
        &self.parts[0].path
    }

    /// Finds the tensor with this name in a Hugging Face folder.
    fn found(&self, name: &str) -> Option<(usize, &Entry, Option<usize>, String)> {
        let place = self.architecture.place(name)?;
        let (part, entry) = self.tensors.get(&place.name)?;
        Some((*part, entry, place.expert, place.name))
    }

    /// Returns the format of the tensor with this name in a Hugging Face folder.
    pub(crate) fn format(&self, name: &str) -> Option<BlockFormat> {
        self.found(name).map(|(_, entry, ..)| entry.format)
    }

    /// Returns the mean number of bytes of a weight, over all tensors.
    pub(crate) fn bytes_of_weight(&self) -> f64 {
        let sums = self
            .tensors
            .values()
            .fold((0.0, 0.0), |(bytes, weights), (_, entry)| {
                let count: i64 = entry.shape.iter().product();
                (bytes + entry.length as f64, weights + count as f64)
            });
        sums.0 / sums.1.max(1.0)
    }

    /// Reads the tensor with this name in a Hugging Face folder, which must have this shape there. Matrices
    /// are stored as `[out, in]` whatever the folder has.
    ///
    /// # Errors
    /// The tensor is missing, has another shape, or cannot be read.
    pub(crate) fn rows(&self, name: &str, shape: &[i64]) -> Result<Rows> {
        let Some((part, entry, expert, own)) = self.found(name) else {
            return Err(LoadError::MissingTensor {
                file: self.path().to_owned(),
                tensor: name.to_owned(),
                expected: shape.to_vec(),
            });
        };
        let of_expert = &entry.shape[usize::from(expert.is_some() && entry.shape.len() > 1)..];
        if of_expert != shape {
            return Err(LoadError::WrongShape {
                file: self.parts[part].path.clone(),
                tensor: own,
                found: of_expert.to_vec(),
                expected: shape.to_vec(),
            });
        }
        let mut bytes = match expert {
            None => self.bytes(part, entry.start, entry.length)?,
            Some(expert) => {
                let experts = entry.shape[0] as u64;
                let each = entry.length / experts;
                if expert as u64 >= experts {
                    return Err(self.malformed(format!("tensor {own:?} has no expert {expert}")));
                }
                self.bytes(part, entry.start + expert as u64 * each, each)?
            }
        };
        if let Some(heads) = self.paired_heads(&own)? {
            bytes = unpaired(&bytes, shape[0], heads).ok_or_else(|| {
                self.malformed(format!("tensor {own:?} has {} rows for {heads} heads", shape[0]))
            })?;
        }
        Ok(Rows {
            format: entry.format,
            bytes,
            is_one_more: self.architecture.norms_plus_one && own.contains("norm"),
        })
    }

    fn paired_heads(&self, own: &str) -> Result<Option<i64>> {
        let integer = |key: &str| self.read(self.metadata.integer_of_layers(&self.key(key)));
        let queries = integer("attention.head_count")?.unwrap_or(1);
        let keys = integer("attention.head_count_kv")?.unwrap_or(queries);
        Ok(self.architecture.paired_heads(own, [queries, keys]))
    }

    /// Reads the numbers of the tensor with this name in the file, of which there must be `count`.
    pub(super) fn numbers(&self, own: &str, count: usize) -> Result<Vec<f32>> {
        let Some((part, entry)) = self.tensors.get(own) else {
            return Err(self.malformed(format!("the tensor {own} is missing")));
        };
        if entry.shape != [count as i64] {
            return Err(LoadError::WrongShape {
                file: self.parts[*part].path.clone(),
                tensor: own.to_owned(),
                found: entry.shape.clone(),
                expected: vec![count as i64],
            });
        }
        let mut numbers = Vec::new();
        let bytes = self.bytes(*part, entry.start, entry.length)?;
        entry.format.widen(&bytes, &mut numbers);
        Ok(numbers)
    }

    fn bytes(&self, part: usize, start: u64, length: u64) -> Result<Vec<u8>> {
        let ModelPart { path, file } = &self.parts[part];
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, start)
            .map_err(|source| LoadError::Unreadable {
                file: path.clone(),
                source,
            })?;
        Ok(bytes)
    }

    /// Returns the shape of a tensor by its name in the file.
    pub(super) fn shape(&self, own: &str) -> Option<&[i64]> {
        self.tensors.get(own).map(|(_, entry)| entry.shape.as_slice())
    }

    /// Returns a key with the prefix of the architecture.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture.name)
    }

    /// Adds the file to an error of reading the metadata.
    pub(super) fn read<T>(&self, found: std::result::Result<T, String>) -> Result<T> {
        found.map_err(|problem| self.malformed(problem))
    }

    pub(super) fn malformed(&self, problem: impl Into<String>) -> LoadError {
        malformed(self.path(), problem)
    }

    pub(super) fn unsupported(&self, what: &'static str, found: &str, supported: &'static str) -> LoadError {
        LoadError::Unsupported {
            file: self.path().to_owned(),
            what,
            found: found.to_owned(),
            supported,
        }
    }
}

fn malformed(path: &Path, problem: impl Into<String>) -> LoadError {
    LoadError::Malformed {
        file: path.to_owned(),
        message: problem.into(),
    }
}

/// Opens a file and reads its header.
fn opened(path: &Path) -> Result<(ModelPart, container::Container)> {
    let unreadable = |source| LoadError::Unreadable {
        file: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    let read = container::read(BufReader::with_capacity(1 << 16, &file), size);
    let container = read.map_err(|problem| malformed(path, problem))?;
    let part = ModelPart {
        path: path.to_owned(),
        file,
    };
    Ok((part, container))
}

/// Returns the path of another part beside the first one.
fn part_path(first: &Path, number: i64, count: i64) -> Option<PathBuf> {
    let name = first.file_name()?.to_str()?;
    let stem = name.strip_suffix(&format!("-00001-of-{count:05}.gguf"))?;
    Some(first.with_file_name(format!("{stem}-{number:05}-of-{count:05}.gguf")))
}

/// Reorders rows that are in pairs within each head to the order of a folder: the first ones of all pairs,
/// then the second ones.
fn unpaired(bytes: &[u8], rows: i64, heads: i64) -> Option<Vec<u8>> {
    let (rows, heads) = (usize::try_from(rows).ok()?, usize::try_from(heads).ok()?);
    if heads == 0 || !rows.is_multiple_of(2 * heads) || !bytes.len().is_multiple_of(rows) {
        return None;
    }
    let (size, each) = (rows / heads, bytes.len() / rows);
    let mut out = Vec::with_capacity(bytes.len());
    for head in 0..heads {
        for half in 0..2 {
            for pair in 0..size / 2 {
                let row = head * size + 2 * pair + half;
                out.extend_from_slice(&bytes[row * each..(row + 1) * each]);
            }
        }
    }
    Some(out)
}
