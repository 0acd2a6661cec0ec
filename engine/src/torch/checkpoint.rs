//! The weights of a checkpoint, read tensor by tensor.
//!
//! A safetensors file is the length of a header, the header (JSON: type, shape and place of every tensor) and the data:
//!
//! ```text
//!   u64 n │ { "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, … } (n bytes) │ data
//! ```
//!
//! Large checkpoints are several such files and an index that says which tensor is in which. Only headers are read up
//! front; a tensor's bytes are read when it is asked for, so no more than one of them is in memory twice.

pub(crate) mod files;
pub(crate) mod random;

use self::files::ModelFiles;
use self::random::RandomWeights;
use crate::error::LoadError;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Seek, SeekFrom};
use tch::{Kind, Tensor};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// Real headers are below a few megabytes.
const MAX_HEADER: u64 = 64 << 20;

struct Entry {
    file: String,
    dtype: String,
    shape: Vec<i64>,
    start: u64,
    length: usize,
}

/// All tensors of a model, by name.
pub(crate) struct Checkpoint<'a> {
    files: &'a ModelFiles,
    entries: HashMap<String, Entry>,
    /// The file to name when a tensor is missing.
    main: &'static str,
    /// Where all tensors come from that nobody has stored.
    random: Option<RandomWeights>,
}

impl<'a> Checkpoint<'a> {
    pub(crate) fn open(files: &'a ModelFiles) -> Result<Self, LoadError> {
        if files.is_random() {
            return Ok(Checkpoint {
                files,
                entries: HashMap::new(),
                main: SINGLE,
                random: Some(RandomWeights::default()),
            });
        }
        let sharded = files.has(INDEX);
        let main = if sharded { INDEX } else { SINGLE };
        let parts = if sharded {
            shards(files)?
        } else {
            BTreeSet::from([SINGLE.to_string()])
        };
        let mut checkpoint = Checkpoint {
            files,
            entries: HashMap::new(),
            main,
            random: None,
        };
        for part in parts {
            checkpoint.read_header(&part)?;
        }
        Ok(checkpoint)
    }

    /// Whether there is a tensor of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.random.is_some() || self.entries.contains_key(name)
    }

    /// The type of the tensor of this name.
    pub(crate) fn kind(&self, name: &str) -> Option<Kind> {
        if self.random.is_some() {
            return Some(random::KIND);
        }
        kind_of(&self.entries.get(name)?.dtype).map(|(kind, _)| kind)
    }

    /// A tensor, which must have this shape.
    pub(crate) fn tensor(&self, name: &str, shape: &[i64]) -> Result<Tensor, LoadError> {
        if let Some(random) = &self.random {
            let made = random.tensor(name, shape);
            return made.map_err(|error| self.files.malformed(SINGLE, format!("tensor {name:?}: {error}")));
        }
        let Some(entry) = self.entries.get(name) else {
            let file = self.files.path(self.main);
            return Err(LoadError::MissingTensor {
                file,
                tensor: name.to_string(),
                expected: shape.to_vec(),
            });
        };
        let file = &entry.file;
        if entry.shape != shape {
            return Err(LoadError::WrongShape {
                file: self.files.path(file),
                tensor: name.to_string(),
                found: entry.shape.clone(),
                expected: shape.to_vec(),
            });
        }
        let Some((kind, _)) = kind_of(&entry.dtype) else {
            return Err(LoadError::Unsupported {
                file: self.files.path(file),
                what: "a weight's type",
                found: format!("{} of {name}", entry.dtype),
                supported: "F32, BF16, F16, F64",
            });
        };
        let mut bytes = vec![0; entry.length];
        let mut source = self.files.source(file)?;
        let read = source
            .seek(SeekFrom::Start(entry.start))
            .and_then(|_| source.read_exact(&mut bytes));
        read.map_err(|source| self.files.unreadable(file, source))?;
        Tensor::f_from_data_size(&bytes, shape, kind)
            .map_err(|error| self.files.malformed(file, format!("tensor {name:?}: {error}")))
    }

    fn read_header(&mut self, file: &str) -> Result<(), LoadError> {
        let unreadable = |source| self.files.unreadable(file, source);
        let malformed = |message: String| self.files.malformed(file, message);
        let mut source = self.files.source(file)?;
        let size = source.seek(SeekFrom::End(0)).map_err(unreadable)?;
        source.rewind().map_err(unreadable)?;
        let mut length = [0; 8];
        if size < 8 {
            return Err(malformed(format!(
                "{size} bytes are too few for a safetensors file"
            )));
        }
        source.read_exact(&mut length).map_err(unreadable)?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER || length > size - 8 {
            let limit = MAX_HEADER.min(size - 8);
            return Err(malformed(format!(
                "the header claims {length} bytes, at most {limit} are possible"
            )));
        }
        let mut header = vec![0; length as usize];
        source.read_exact(&mut header).map_err(unreadable)?;
        let header: Value = serde_json::from_slice(&header)
            .map_err(|error| malformed(format!("the header is not JSON: {error}")))?;
        let tensors = header
            .as_object()
            .ok_or_else(|| malformed("the header is not a JSON object".to_string()))?;
        for (name, description) in tensors.iter().filter(|(name, _)| *name != "__metadata__") {
            let entry = entry(file, description, size - 8 - length, 8 + length);
            let entry = entry.map_err(|message| malformed(format!("tensor {name:?}: {message}")))?;
            self.entries.insert(name.clone(), entry);
        }
        Ok(())
    }
}

/// The files that the index names.
fn shards(files: &ModelFiles) -> Result<BTreeSet<String>, LoadError> {
    let index: Value = serde_json::from_str(&files.text(INDEX)?)
        .map_err(|error| files.malformed(INDEX, format!("not JSON: {error}")))?;
    let map = index.get("weight_map").and_then(Value::as_object);
    let map = map.ok_or_else(|| files.malformed(INDEX, "expected an object \"weight_map\""))?;
    let shard = |(tensor, file): (&String, &Value)| {
        let plain = |name: &&str| !name.contains(['/', '\\']) && name.ends_with(".safetensors");
        let name = file.as_str().filter(plain).map(ToString::to_string);
        let message =
            || format!("{tensor:?} is in {file}; expected the name of a safetensors file beside the index");
        name.ok_or_else(|| files.malformed(INDEX, message()))
    };
    map.iter().map(shard).collect()
}

/// One tensor's description; `available` bytes of data follow the header, which ends at `data`.
fn entry(file: &str, description: &Value, available: u64, data: u64) -> Result<Entry, String> {
    let dtype = description
        .get("dtype")
        .and_then(Value::as_str)
        .ok_or("expected a string \"dtype\"")?;
    let shape = integers(description, "shape")?;
    let offsets = integers(description, "data_offsets")?;
    let &[begin, end] = offsets.as_slice() else {
        return Err("expected two \"data_offsets\"".to_string());
    };
    if begin > end || end as u64 > available {
        return Err(format!(
            "its data is at {begin}..{end}, but the file holds {available} bytes of data"
        ));
    }
    let count = shape
        .iter()
        .try_fold(1i64, |count, &size| count.checked_mul(size));
    if let Some((_, bytes)) = kind_of(dtype)
        && count.and_then(|count| count.checked_mul(bytes)) != Some(end - begin)
    {
        return Err(format!(
            "{} bytes do not hold {dtype} of shape {shape:?}",
            end - begin
        ));
    }
    let (file, dtype) = (file.to_string(), dtype.to_string());
    Ok(Entry {
        file,
        dtype,
        shape,
        start: data + begin as u64,
        length: (end - begin) as usize,
    })
}

fn integers(description: &Value, name: &str) -> Result<Vec<i64>, String> {
    let integer = |value: &Value| value.as_u64().and_then(|value| i64::try_from(value).ok());
    let values = description.get(name).and_then(Value::as_array);
    let integers = values.and_then(|values| values.iter().map(integer).collect());
    integers.ok_or_else(|| format!("expected a list of integers {name:?}"))
}

/// The kind and the bytes of one number.
fn kind_of(dtype: &str) -> Option<(Kind, i64)> {
    match dtype {
        "F64" => Some((Kind::Double, 8)),
        "F32" => Some((Kind::Float, 4)),
        "BF16" => Some((Kind::BFloat16, 2)),
        "F16" => Some((Kind::Half, 2)),
        _ => None,
    }
}
