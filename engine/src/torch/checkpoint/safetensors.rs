//! Files of safetensors.
//!
//! A file consists of the length of a header, the header (JSON: type, shape and place of every tensor) and
//! the data:
//!
//! ```text
//!   u64 n │ { "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, … } (n bytes) │ data
//! ```
//!
//! Large checkpoints consist of several such files and an index that says which tensor is in which file. Only
//! the headers are read in advance.

use super::files::ModelFiles;
use crate::error::{LoadError, in_one_line};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Seek, SeekFrom};
use tch::{Kind, Tensor};

/// The file of a checkpoint that is not cut into several.
pub(super) const SINGLE: &str = "model.safetensors";
/// The file of a published Medusa head.
const MEDUSA: &str = "medusa_lm_head.safetensors";
const INDEX: &str = "model.safetensors.index.json";
/// The largest header that is read. Real headers are below a few megabytes.
const MAX_HEADER: u64 = 64 << 20;

/// A tensor of a file.
pub(super) struct TensorEntry {
    file: String,
    pub(super) dtype: String,
    pub(super) shape: Vec<i64>,
    start: u64,
    length: usize,
}

/// The tensors of safetensors files, by name.
pub(super) struct Safetensors<'a> {
    files: &'a ModelFiles,
    pub(super) entries: HashMap<String, TensorEntry>,
    /// The file that is named when a tensor is missing.
    main: &'static str,
}

impl<'a> Safetensors<'a> {
    /// Reads the headers of the files of a checkpoint.
    pub(super) fn open(files: &'a ModelFiles) -> Result<Self, LoadError> {
        let sharded = files.has(INDEX);
        let main = match () {
            () if sharded => INDEX,
            () if !files.has(SINGLE) && files.has(MEDUSA) => MEDUSA,
            () => SINGLE,
        };
        let parts = if sharded {
            shards(files)?
        } else {
            BTreeSet::from([main.to_string()])
        };
        Self::of(files, main, parts)
    }

    /// Reads the headers of these files. `main` is named where a tensor is missing.
    pub(super) fn of(
        files: &'a ModelFiles,
        main: &'static str,
        parts: BTreeSet<String>,
    ) -> Result<Self, LoadError> {
        let mut stored = Safetensors {
            files,
            entries: HashMap::new(),
            main,
        };
        for part in parts {
            stored.read_header(&part)?;
        }
        Ok(stored)
    }

    /// Reads a tensor, which must have this shape.
    pub(super) fn tensor(&self, name: &str, shape: &[i64]) -> Result<Tensor, LoadError> {
        let entry = self.entry(name, shape)?;
        let Some((kind, _)) = kind_of(&entry.dtype) else {
            return Err(self.wrong_type(name, entry, "F32, BF16, F16, F64"));
        };
        Tensor::f_from_data_size(&self.bytes(entry)?, shape, kind).map_err(|error| {
            self.files
                .malformed(&entry.file, format!("tensor {name:?}: {}", in_one_line(&error)))
        })
    }

    /// Reads a vector of 64-bit integers.
    pub(super) fn integers(&self, name: &str, len: i64) -> Result<Vec<i64>, LoadError> {
        const BYTES: usize = 8;
        let entry = self.entry(name, &[len])?;
        if entry.dtype != "I64" || entry.length as i64 != len * BYTES as i64 {
            return Err(self.wrong_type(name, entry, "I64"));
        }
        let bytes = self.bytes(entry)?;
        let numbers = bytes.as_chunks::<BYTES>().0.iter();
        Ok(numbers.map(|number| i64::from_le_bytes(*number)).collect())
    }

    /// Returns the tensor with this name, which must have this shape.
    fn entry(&self, name: &str, shape: &[i64]) -> Result<&TensorEntry, LoadError> {
        let Some(entry) = self.entries.get(name) else {
            let file = self.files.path(self.main);
            return Err(LoadError::MissingTensor {
                file,
                tensor: name.to_string(),
                expected: shape.to_vec(),
            });
        };
        match entry.shape == shape {
            true => Ok(entry),
            false => Err(LoadError::WrongShape {
                file: self.files.path(&entry.file),
                tensor: name.to_string(),
                found: entry.shape.clone(),
                expected: shape.to_vec(),
            }),
        }
    }

    fn wrong_type(&self, name: &str, entry: &TensorEntry, supported: &'static str) -> LoadError {
        LoadError::Unsupported {
            file: self.files.path(&entry.file),
            what: "a weight's type",
            found: format!("{} of {name}", entry.dtype),
            supported,
        }
    }

    fn bytes(&self, entry: &TensorEntry) -> Result<Vec<u8>, LoadError> {
        let file = &entry.file;
        let mut bytes = vec![0; entry.length];
        let mut source = self.files.reader(file)?;
        let read = source
            .seek(SeekFrom::Start(entry.start))
            .and_then(|_| source.read_exact(&mut bytes));
        read.map_err(|source| self.files.unreadable(file, source))?;
        Ok(bytes)
    }

    fn read_header(&mut self, file: &str) -> Result<(), LoadError> {
        let unreadable = |source| self.files.unreadable(file, source);
        let malformed = |message: String| self.files.malformed(file, message);
        let mut source = self.files.reader(file)?;
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

/// Returns the files that the index names.
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

/// Parses the description of one tensor; `available` bytes of data follow the header, which ends at `data`.
fn entry(file: &str, description: &Value, available: u64, data: u64) -> Result<TensorEntry, String> {
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
    Ok(TensorEntry {
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

/// Returns the kind and the size in bytes of one number.
pub(super) fn kind_of(dtype: &str) -> Option<(Kind, i64)> {
    match dtype {
        "F64" => Some((Kind::Double, 8)),
        "F32" => Some((Kind::Float, 4)),
        "BF16" => Some((Kind::BFloat16, 2)),
        "F16" => Some((Kind::Half, 2)),
        _ => None,
    }
}
