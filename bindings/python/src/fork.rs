//! Makes a fork of the process wait until no thread is inside the library.
//!
//! A fork copies the memory and one thread. If another thread held the lock of a table at that moment, the
//! lock would stay locked in the copy forever. So a fork waits until the work that is under way is done, and
//! new work waits for the fork.
//!
//! ```text
//!   thread 1   enter ─ fill ─ leave                    enter (waits) ─────── fill
//!   thread 2            os.fork: before (waits) ─────► fork ─► after
//! ```
//!
//! Work that holds the interpreter throughout need not enter: no other thread can fork meanwhile. This file
//! has no lock, so that none can stay locked.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The number of calls inside the library, in all threads.
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// The number of forks that wait or are under way.
static FORKS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The calls of this thread: a signal handler may run Python, and even fork, in the middle of a compile.
    static OWN: Cell<u32> = const { Cell::new(0) };
}

/// The time that a waiting thread sleeps before it checks again.
const PAUSE: Duration = Duration::from_micros(50);

/// A call inside the library, in the thread that made it.
pub(crate) struct Inside(PhantomData<*const ()>);

/// Begins a call, after any waiting forks.
pub(crate) fn enter(py: Python<'_>) -> Inside {
    loop {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        if FORKS.load(Ordering::SeqCst) == 0 || OWN.get() > 0 {
            OWN.set(OWN.get() + 1);
            return Inside(PhantomData);
        }
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        py.detach(|| {
            while FORKS.load(Ordering::SeqCst) > 0 {
                std::thread::sleep(PAUSE);
            }
        });
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        OWN.set(OWN.get() - 1);
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits until no other thread is inside the library.
#[pyfunction]
fn before_fork(py: Python<'_>) {
    FORKS.fetch_add(1, Ordering::SeqCst);
    let own = OWN.get();
    py.detach(|| {
        while INSIDE.load(Ordering::SeqCst) > own {
            std::thread::sleep(PAUSE);
        }
    });
}

/// Lets the other threads continue.
#[pyfunction]
fn after_fork_in_parent() {
    FORKS.fetch_sub(1, Ordering::SeqCst);
}

/// Resets the counters in the new process, which has one thread and no waiting fork.
#[pyfunction]
fn after_fork_in_child() {
    INSIDE.store(OWN.get(), Ordering::SeqCst);
    FORKS.store(0, Ordering::SeqCst);
}

/// Registers these functions to run when the process forks, if the platform can fork.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let os = py.import("os")?;
    if !os.hasattr("register_at_fork")? {
        return Ok(());
    }
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?)?;
    os.call_method("register_at_fork", (), Some(&hooks))?;
    Ok(())
}
