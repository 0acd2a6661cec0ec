//! The masks of many sequences in one call, on the threads of the package.

use std::sync::{Arc, Mutex, PoisonError};

use lexiform::{BatchRow, Pool};
use napi::Result;
use napi::bindgen_prelude::{ClassInstance, Uint32ArraySlice};
use napi_derive::napi;

use crate::error::call_error;
use crate::mask;
use crate::options::whole;
use crate::vocabulary::{count, words};

/// One row of a batch.
#[napi]
pub struct Row(pub(crate) BatchRow);

/// The thread pool, created on first use.
static POOL: Mutex<Option<Arc<Pool>>> = Mutex::new(None);

/// The most threads that are started by default.
const MOST: usize = 8;

fn pool() -> Arc<Pool> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let new = || {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Arc::new(Pool::new(cores.min(MOST), std::process::id))
    };
    pool.get_or_insert_with(new).clone()
}

/// Sets how many threads `fillBatch` may use; with one, it uses the calling thread alone.
#[napi(catch_unwind)]
pub(crate) fn set_threads(threads: f64) -> Result<()> {
    let threads = whole("the number of threads", threads)? as usize;
    if threads == 0 {
        return Err(call_error("there must be one thread at least"));
    }
    *POOL.lock().unwrap_or_else(PoisonError::into_inner) =
        Some(Arc::new(Pool::new(threads, std::process::id)));
    Ok(())
}

/// Writes the masks of many sequences into the rows of one array, each into the row of its number, and
/// returns the numbers of those that would cost more than the limits of their grammars allow.
#[napi(catch_unwind)]
pub(crate) fn fill_batch(
    rows: Vec<ClassInstance<'_, Row>>,
    numbers: Vec<f64>,
    mut mask: Uint32ArraySlice<'_>,
) -> Result<Vec<u32>> {
    let Some(first) = rows.first() else {
        return Ok(Vec::new());
    };
    let width = words(first.0.grammar.vocabulary());
    let mask = mask::all(&mut mask);
    let mut is_taken = vec![false; mask::rows(mask, width)?];
    let mut batch = Vec::with_capacity(rows.len());
    for (row, number) in rows.iter().zip(numbers) {
        let (index, count) = (whole("a row", number)? as usize, is_taken.len());
        if words(row.0.grammar.vocabulary()) != width {
            let message = format!("the vocabulary of row {number} has another size than that of the first");
            return Err(call_error(message));
        }
        let is_taken = is_taken
            .get_mut(index)
            .ok_or_else(|| mask::outside(index, count))?;
        if std::mem::replace(is_taken, true) {
            return Err(call_error(format!("row {number} is given twice")));
        }
        batch.push((index, row.0.clone()));
    }
    let refused = pool().fill_rows(batch, width, mask);
    Ok(refused.into_iter().map(|(number, _)| count(number)).collect())
}
