//! The GGUF container: a header with key-value pairs and a table of tensors, followed by the data.
//!
//! ```text
//!   "GGUF" │ u32 version │ u64 tensors │ u64 keys
//!   keys: text, u32 type, value … │ tensors: text, u32 n, u64[n], u32 type, u64 offset …
//!   padding to `general.alignment` (32) │ data
//! ```
//!
//! All numbers are little-endian. No claim of a header is trusted before it is compared with the file: counts
//! and lengths with the remaining bytes, tensors with the data and with each other.
//!
//! The crates that read this format include the code to run models (`candle-core` with 90 crates) or an arena
//! that maps the file (`ggus`), where a file that is truncated while it is mapped ends the process with a
//! signal. These 300 lines are all that is needed here.

use super::blocks::BlockFormat;
use super::metadata::{Metadata, Value};
use std::collections::HashMap;
use std::io::Read;

/// The first bytes of a file.
const MAGIC: [u8; 4] = *b"GGUF";
/// The supported versions. The first version counted in 32 bits and is no longer written.
const VERSIONS: std::ops::RangeInclusive<u32> = 2..=3;
/// The most bytes of a header. A model with 262,144 tokens has a header of 12 MB.
const MOST_HEADER: u64 = 512 << 20;
/// The most dimensions of a tensor.
const MOST_DIMENSIONS: u32 = 4;
/// The most items of a list; the largest vocabularies have 2^18 tokens.
const MOST_ITEMS: u64 = 1 << 23;
/// The most bytes of the name of a key or a tensor.
const MOST_NAME: u64 = 1 << 16;
/// The alignment of the data if no key gives it.
const ALIGNMENT: u64 = 32;

/// A tensor of the table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Its dimensions with the longest stride first, as in all formats but GGUF.
    pub(crate) shape: Vec<i64>,
    pub(crate) format: BlockFormat,
    /// The offset of its bytes in the file.
    pub(crate) start: u64,
    pub(crate) length: u64,
}

/// The content of a file.
#[derive(Debug, Default)]
pub(crate) struct Container {
    pub(crate) metadata: Metadata,
    pub(crate) tensors: HashMap<String, Entry>,
}

/// Reads the header of a file of `size` bytes.
///
/// # Errors
/// A sentence that names the problem and its place.
pub(crate) fn read(from: impl Read, size: u64) -> Result<Container, String> {
    let mut reader = HeaderReader { from, at: 0, size };
    if reader.array::<4>()? != MAGIC {
        return Err("it does not begin with \"GGUF\"".to_owned());
    }
    let version = reader.u32()?;
    if !VERSIONS.contains(&version) {
        return Err(format!(
            "it is of version {version}; versions {} and {} are read",
            VERSIONS.start(),
            VERSIONS.end()
        ));
    }
    let (tensors, keys) = (reader.u64()?, reader.u64()?);
    let metadata = reader.metadata(keys)?;
    let named = reader.tensors(tensors)?;
    let alignment = match metadata.integer("general.alignment")? {
        None => ALIGNMENT,
        Some(alignment) => u64::try_from(alignment)
            .ok()
            .filter(|alignment| alignment.is_power_of_two() && *alignment <= 1 << 20)
            .ok_or_else(|| format!("general.alignment is {alignment}; expected a power of two"))?,
    };
    let data = reader.at.next_multiple_of(alignment);
    let tensors = placed(named, data, size, alignment)?;
    Ok(Container { metadata, tensors })
}

/// A tensor as it is in the table, with its offset in the data.
struct Named {
    name: String,
    shape: Vec<i64>,
    format: BlockFormat,
    offset: u64,
}

/// Checks the tensors against the file and against each other.
fn placed(named: Vec<Named>, data: u64, size: u64, alignment: u64) -> Result<HashMap<String, Entry>, String> {
    let mut places = Vec::with_capacity(named.len());
    let mut tensors = HashMap::with_capacity(named.len());
    for Named {
        name,
        shape,
        format,
        offset,
    } in named
    {
        let length = format
            .bytes_of(&shape)
            .map_err(|problem| format!("tensor {name:?}: {problem}"))?;
        if !offset.is_multiple_of(alignment) {
            return Err(format!(
                "tensor {name:?}: its offset {offset} is no multiple of the alignment, {alignment}"
            ));
        }
        let start = data
            .checked_add(offset)
            .filter(|start| start.checked_add(length).is_some_and(|end| end <= size));
        let Some(start) = start else {
            return Err(format!(
                "tensor {name:?}: {length} bytes at {offset} of the data; the file ends after {} bytes of data",
                size.saturating_sub(data)
            ));
        };
        places.push((start, start + length, name.clone()));
        let entry = Entry {
            shape,
            format,
            start,
            length,
        };
        if tensors.insert(name.clone(), entry).is_some() {
            return Err(format!("tensor {name:?} is there twice"));
        }
    }
    places.sort_unstable();
    for pair in places.windows(2) {
        if pair[0].1 > pair[1].0 {
            return Err(format!("tensors {:?} and {:?} overlap", pair[0].2, pair[1].2));
        }
    }
    Ok(tensors)
}

/// Returns the decimal number that was rounded to this one of single precision: 1e-5, and not
/// 9.99999974738e-6.
fn decimal(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

/// A reader of the header, byte by byte.
struct HeaderReader<R> {
    from: R,
    at: u64,
    size: u64,
}

impl<R: Read> HeaderReader<R> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        if self.at + bytes.len() as u64 > MOST_HEADER {
            return Err(format!("its header is longer than {MOST_HEADER} bytes"));
        }
        self.from.read_exact(bytes).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => format!("it ends within its header, at byte {}", self.size),
            _ => format!("at byte {}: {error}", self.at),
        })?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }

    /// Checks that `count` items of at least `each` bytes fit into the rest of the file.
    fn count(&self, count: u64, each: u64, what: &str) -> Result<usize, String> {
        let left = self.size.saturating_sub(self.at).min(MOST_HEADER) / each;
        match usize::try_from(count) {
            Ok(number) if count <= left => Ok(number),
            _ => Err(format!(
                "at byte {}: it claims {count} {what}; at most {left} fit into what is left of it",
                self.at
            )),
        }
    }

    fn text(&mut self, most: u64, what: &str) -> Result<String, String> {
        let (at, length) = (self.at, self.u64()?);
        if length > most {
            return Err(format!(
                "at byte {at}: {what} of {length} bytes; expected at most {most}"
            ));
        }
        let mut bytes = vec![0; self.count(length, 1, "bytes of text")?];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| format!("at byte {at}: {what} is not UTF-8"))
    }

    fn metadata(&mut self, keys: u64) -> Result<Metadata, String> {
        // Each has a key, its type and at least one byte.
        let keys = self.count(keys, 13, "keys")?;
        let mut metadata = HashMap::new();
        for _ in 0..keys {
            let key = self.text(MOST_NAME, "a key")?;
            let kind = self.u32()?;
            let value = self
                .value(kind)
                .map_err(|problem| format!("the value of {key:?}: {problem}"))?;
            if metadata.insert(key.clone(), value).is_some() {
                return Err(format!("the key {key:?} is there twice"));
            }
        }
        Ok(Metadata(metadata))
    }

    fn value(&mut self, kind: u32) -> Result<Value, String> {
        Ok(match kind {
            0 | 2 | 4 | 10 => Value::Unsigned(self.integer(kind)? as u64),
            1 | 3 | 5 | 11 => Value::Signed(self.integer(kind)?),
            6 => Value::Float(decimal(f32::from_le_bytes(self.array()?))),
            7 => Value::Bool(self.integer(kind)? != 0),
            8 => Value::Text(self.text(MOST_HEADER, "a text")?),
            9 => self.list()?,
            12 => Value::Float(f64::from_le_bytes(self.array()?)),
            _ => return Err(format!("at byte {}: there is no type {kind}", self.at)),
        })
    }

    fn integer(&mut self, kind: u32) -> Result<i64, String> {
        Ok(match kind {
            0 | 7 => i64::from(u8::from_le_bytes(self.array()?)),
            1 => i64::from(i8::from_le_bytes(self.array()?)),
            2 => i64::from(u16::from_le_bytes(self.array()?)),
            3 => i64::from(i16::from_le_bytes(self.array()?)),
            4 => i64::from(u32::from_le_bytes(self.array()?)),
            5 => i64::from(i32::from_le_bytes(self.array()?)),
            _ => i64::from_le_bytes(self.array()?),
        })
    }

    fn list(&mut self) -> Result<Value, String> {
        let (kind, length) = (self.u32()?, self.u64()?);
        if length > MOST_ITEMS {
            return Err(format!("a list of {length} items; expected at most {MOST_ITEMS}"));
        }
        Ok(match kind {
            0..=5 | 7 | 10 | 11 => {
                let length = self.count(length, 1, "integers")?;
                let numbers = (0..length).map(|_| self.integer(kind));
                Value::Integers(numbers.collect::<Result<_, _>>()?)
            }
            6 | 12 => {
                let length = self.count(length, 4, "numbers")?;
                let numbers = (0..length).map(|_| match kind {
                    6 => self.array().map(f32::from_le_bytes),
                    _ => self.array().map(|bytes| f64::from_le_bytes(bytes) as f32),
                });
                Value::Floats(numbers.collect::<Result<_, _>>()?)
            }
            8 => {
                let length = self.count(length, 8, "texts")?;
                let texts = (0..length).map(|_| self.text(MOST_HEADER, "a text"));
                Value::Texts(texts.collect::<Result<_, _>>()?)
            }
            9 => return Err(format!("at byte {}: lists of lists are not read", self.at)),
            _ => return Err(format!("at byte {}: there is no type {kind}", self.at)),
        })
    }

    fn tensors(&mut self, tensors: u64) -> Result<Vec<Named>, String> {
        // Each has a name, the number of dimensions, at least one dimension, the type and the offset.
        let tensors = self.count(tensors, 32, "tensors")?;
        (0..tensors).map(|_| self.tensor()).collect()
    }

    fn tensor(&mut self) -> Result<Named, String> {
        let name = self.text(MOST_NAME, "the name of a tensor")?;
        let dimensions = self.u32()?;
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
            return Err(format!(
                "tensor {name:?} has {dimensions} dimensions; expected 1 to {MOST_DIMENSIONS}"
            ));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            let size = self.u64()?;
            let size = i64::try_from(size).ok().filter(|size| *size > 0);
            shape.push(size.ok_or_else(|| format!("tensor {name:?} has a dimension without a size"))?);
        }
        shape.reverse();
        let kind = self.u32()?;
        let format = BlockFormat::of_number(kind).map_err(|problem| format!("tensor {name:?}: {problem}"))?;
        Ok(Named {
            name,
            shape,
            format,
            offset: self.u64()?,
        })
    }
}
