//! Forks of the process wait until no thread is inside of the library.
//!
//! A fork copies the memory and one thread. Had another thread a lock of a table at that moment, it would
//! stay locked in the copy for ever. So a fork waits until the work that is under way is done, and work that
//! would begin waits for the fork.
//!
//! ```text
//!   thread 1   enter ─ fill ─ leave                    enter (waits) ─────── fill
//!   thread 2            os.fork: before (waits) ─────► fork ─► after
//! ```
//!
//! Who holds the interpreter all the time need not enter: nobody else can fork meanwhile. There is no lock in
//! this file, so that none can stay locked.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The calls that are inside of the library, in all threads.
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// The forks that wait or happen.
static FORKS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Those of this thread: a handler of a signal may run Python, and even fork, in the middle of a compile.
    static OWN: Cell<u32> = const { Cell::new(0) };
}

/// How long a waiting thread sleeps until it looks again.
const PAUSE: Duration = Duration::from_micros(50);

/// A call that is inside of the library, in the thread that made it.
pub(crate) struct Inside(PhantomData<*const ()>);

/// Begins a call, after the forks that are waiting.
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

/// Waits until no other thread is inside.
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

/// Lets the other threads go on.
#[pyfunction]
fn after_fork_in_parent() {
    FORKS.fetch_sub(1, Ordering::SeqCst);
}

/// In the new process there is one thread, and no fork waits.
#[pyfunction]
fn after_fork_in_child() {
    INSIDE.store(OWN.get(), Ordering::SeqCst);
    FORKS.store(0, Ordering::SeqCst);
}

/// Has these called when the process forks, where it can.
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
