//! The module `_lexiform`, on which the Python package `lexiform` is built.
//!
//! ```text
//!   Vocabulary ─► Compiler ─► Grammar ─► State, a value          fill, fill_batch, fill_tree ─► int32 buffers of Python
//!                    │           ├─────► Session, for engines
//!                    │           ├─────► Sampler, Particles, Chain: laws over rows of logits
//!                    │           └─────► Repair, the nearest valid text
//!   ChatTokenizer: prompts of chats and their tokens
//!                    └ watch: deadlines, KeyboardInterrupt
//! ```
//!
//! Work that may take long releases the interpreter; work that is known to be short does not, because
//! releasing takes as long as a known mask. No input from Python causes a panic: every error is an exception
//! with a message.
//!
//! Each Python class has a file; `compiler/` holds options by name, the cache of grammars and the
//! cancellation of a compile. Short work is first tried with the interpreter's lock held, within a few rounds
//! of counted work (`lexiform::briefly`).
//!
//! Tests: `bindings/python/tests/test_grammars.py` and `tests/masks/mask_digests.rs` compute the same digests
//! of masks for 200 schemas, `test_processes.py` forks, `test_engines.py` compares sequences with walks from
//! the beginning, and `test_compat_xgrammar.py` compares scripts with a record of xgrammar. stubtest compares
//! the stubs with this module.

mod batch;
mod buffer;
mod chat;
mod compiler;
mod error;
mod fork;
mod grammar;
mod laws;
mod pool;
mod project;
mod session;
mod state;
mod vocabulary;
mod watch;

use pyo3::prelude::*;

/// The content of the module. `fork.rs` relies on the interpreter's lock.
#[pymodule(gil_used = true)]
fn _lexiform(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<buffer::Masks>()?;
    module.add_class::<vocabulary::Vocabulary>()?;
    module.add_class::<chat::ChatTokenizer>()?;
    module.add_class::<compiler::Compiler>()?;
    module.add_class::<grammar::Grammar>()?;
    module.add_class::<state::State>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<session::answers::RawReader>()?;
    module.add_class::<session::answers::Event>()?;
    module.add_class::<grammar::repair::Repair>()?;
    module.add_class::<grammar::repair::Change>()?;
    module.add_class::<grammar::repair::Edit>()?;
    module.add_class::<error::Problem>()?;
    module.add_class::<grammar::explain::Explanation>()?;
    module.add_class::<grammar::explain::Way>()?;
    module.add_class::<grammar::explain::Assertion>()?;
    module.add_function(wrap_pyfunction!(batch::fill_batch, module)?)?;
    module.add_class::<laws::Sampler>()?;
    module.add_class::<laws::Step>()?;
    module.add_class::<laws::Trie>()?;
    module.add_class::<laws::Particles>()?;
    module.add_class::<laws::Chain>()?;
    module.add_function(wrap_pyfunction!(laws::weighted_token::weighted_token, module)?)?;
    module.add_function(wrap_pyfunction!(pool::set_threads, module)?)?;
    module.add_class::<project::RawProjection>()?;
    module.add_class::<project::Remark>()?;
    module.add_function(wrap_pyfunction!(project::project_schema, module)?)?;
    module.add_function(wrap_pyfunction!(project::schema_refusals, module)?)?;
    module.add_function(wrap_pyfunction!(project::profile_names, module)?)?;
    module.add_function(wrap_pyfunction!(compiler::model_tags::model_tag, module)?)?;
    module.add_function(wrap_pyfunction!(compiler::model_tags::model_formats, module)?)?;
    module.add_function(wrap_pyfunction!(compiler::model_tags::recognised_format, module)?)?;
    module.add_function(wrap_pyfunction!(compiler::model_tags::thought_marks, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    fork::register(module)
}
