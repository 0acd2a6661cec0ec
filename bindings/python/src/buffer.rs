//! Masks in the memory of Python objects: rows of 32-bit words in an array, written in place. Looking up the
//! memory of a numpy array takes 0.4 µs, twice the time of a known mask; [`Masks`] does it once for many
//! calls.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// An array of masks whose memory was looked up once; a look-up takes longer than writing a known mask. It is
/// accepted wherever an array of masks is. The array cannot be resized while this exists.
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct Masks(Memory);

#[pymethods]
impl Masks {
    /// Creates the masks of an array of int32 with one or more rows, sharing its memory.
    #[new]
    fn new(array: &Bound<'_, PyAny>) -> PyResult<Masks> {
        Ok(Masks(Memory::of(array)?))
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.0.rows
    }

    /// The number of 32-bit words of one row.
    #[getter]
    fn words(&self) -> usize {
        self.0.width
    }

    fn __repr__(&self) -> String {
        format!("<Masks of {} rows, {} words each>", self.0.rows, self.0.width)
    }
}

/// The memory of a contiguous, writable array of int32.
struct Memory {
    buffer: PyBuffer<i32>,
    rows: usize,
    width: usize,
}

impl Memory {
    fn of(mask: &Bound<'_, PyAny>) -> PyResult<Memory> {
        let buffer = match PyBuffer::<i32>::get(mask) {
            Ok(buffer) => buffer,
            Err(_) if is_tensor(mask)? => {
                let array = mask.call_method0("numpy")?;
                PyBuffer::get(&array).map_err(|_| wrong_type(mask))?
            }
            Err(_) => return Err(wrong_type(mask)),
        };
        if has_other_order(&buffer) {
            return Err(wrong_type(mask));
        }
        let (rows, width) = match *buffer.shape() {
            [words] => (1, words),
            [rows, words] => (rows, words),
            ref shape => {
                let message = format!("the mask has {} dimensions; it must have one or two", shape.len());
                return Err(PyValueError::new_err(message));
            }
        };
        match () {
            () if !buffer.is_c_contiguous() => Err(PyValueError::new_err("the mask is not contiguous")),
            () if buffer.readonly() => Err(PyValueError::new_err("the mask cannot be written")),
            () => Ok(Memory { buffer, rows, width }),
        }
    }
}

/// The rows of an array of masks, `width` words each.
pub(crate) struct Words<'a> {
    memory: Held<'a>,
}

/// Memory that was looked up by one call or is held by a [`Masks`].
enum Held<'a> {
    ByCall(Memory),
    ByMasks(&'a Memory),
}

impl<'a> Words<'a> {
    /// Returns the words of an array with one or more rows. Torch tensors on the CPU share their memory with
    /// the array that they return.
    ///
    /// # Errors
    /// A `TypeError` if the object does not share its memory or holds a type other than int32, and a
    /// `ValueError` if it has another shape, is not writable, or its rows do not have `width` words.
    pub(crate) fn of(mask: &'a Bound<'_, PyAny>, width: usize) -> PyResult<Words<'a>> {
        let words = match mask.cast::<Masks>() {
            Ok(masks) => Words {
                memory: Held::ByMasks(&masks.get().0),
            },
            Err(_) => Words {
                memory: Held::ByCall(Memory::of(mask)?),
            },
        };
        let given = words.memory().width;
        if given == width {
            return Ok(words);
        }
        let message = format!("the mask has {given} words for each row; the vocabulary needs {width}");
        Err(PyValueError::new_err(message))
    }

    fn memory(&self) -> &Memory {
        match &self.memory {
            Held::ByCall(memory) => memory,
            Held::ByMasks(memory) => memory,
        }
    }

    /// Returns the number of a row, if there is such a row.
    pub(crate) fn row(&self, number: usize) -> PyResult<usize> {
        if number < self.rows() {
            return Ok(number);
        }
        let message = format!(
            "row {number} is outside of the mask, which has {} rows",
            self.rows()
        );
        Err(PyIndexError::new_err(message))
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.memory().rows
    }

    /// Returns the words of one row, which must exist.
    pub(crate) fn one(&mut self, number: usize) -> &mut [u32] {
        let width = self.memory().width;
        &mut self.all()[number * width..(number + 1) * width]
    }

    /// Returns the words of all rows.
    #[expect(unsafe_code, reason = "only the exporter of a buffer owns its memory")]
    pub(crate) fn all(&mut self) -> &mut [u32] {
        let memory = self.memory();
        let count = memory.rows * memory.width;
        if count == 0 {
            return &mut [];
        }
        // SAFETY: the buffer stays exported, and its memory in place, while this value lives. It is
        // contiguous, writable and has `count` items of four bytes with their alignment; `PyBuffer` checked
        // the items, and `Memory::of` the rest. Every bit pattern is a `u32`. The caller of the Python
        // function has to ensure that nothing else reads or writes the mask at the same time, as with every
        // function that writes to an array without the interpreter's lock.
        unsafe { std::slice::from_raw_parts_mut(memory.buffer.buf_ptr().cast(), count) }
    }
}

/// Returns `true` if the bytes of each item are in the opposite of this machine's byte order.
fn has_other_order(buffer: &PyBuffer<i32>) -> bool {
    match buffer.format().to_bytes().first() {
        Some(b'>' | b'!') => cfg!(target_endian = "little"),
        Some(b'<') => cfg!(target_endian = "big"),
        _ => false,
    }
}

fn is_tensor(mask: &Bound<'_, PyAny>) -> PyResult<bool> {
    let module = mask.get_type().module()?;
    Ok(module.to_str()?.split('.').next() == Some("torch"))
}

fn wrong_type(mask: &Bound<'_, PyAny>) -> PyErr {
    let described = match (mask.getattr_opt("dtype"), mask.get_type().name()) {
        (Ok(Some(dtype)), _) => format!("of {dtype}"),
        (_, Ok(name)) => format!("of type {name}"),
        _ => "something else".to_owned(),
    };
    PyTypeError::new_err(format!(
        "a mask is an array of int32 with one or two dimensions that shares its memory, such as numpy's or a tensor of torch on the CPU; this one is {described}"
    ))
}

/// Returns the integers of an array or a sequence.
pub(crate) fn integers(object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    let py = object.py();
    if let Ok(buffer) = PyBuffer::<i64>::get(object) {
        return buffer.to_vec(py);
    }
    if let Ok(buffer) = PyBuffer::<i32>::get(object) {
        return Ok(buffer.to_vec(py)?.into_iter().map(i64::from).collect());
    }
    match is_tensor(object)? {
        true => object.call_method0("tolist")?.extract(),
        false => object.extract(),
    }
}
