//! The thread pool of the package.

use std::sync::{Arc, Mutex, PoisonError};

use lexiform::Pool;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The thread pool, created on first use.
static POOL: Mutex<Option<Arc<Pool>>> = Mutex::new(None);

/// The most threads that are started by default.
const MOST: usize = 8;

/// Returns the thread pool for batches and trees.
pub(crate) fn pool() -> Arc<Pool> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let new = || {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Arc::new(Pool::new(cores.min(MOST), std::process::id))
    };
    pool.get_or_insert_with(new).clone()
}

/// Sets how many threads `fill_batch` and `fill_tree` may use; with one, they use the calling thread alone.
/// The default is the number of cores, at most eight.
#[pyfunction]
pub(crate) fn set_threads(threads: usize) -> PyResult<()> {
    if threads == 0 {
        return Err(PyValueError::new_err("there must be one thread at least"));
    }
    *POOL.lock().unwrap_or_else(PoisonError::into_inner) =
        Some(Arc::new(Pool::new(threads, std::process::id)));
    Ok(())
}
