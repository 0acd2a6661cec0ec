//! Shared regular expressions.
//!
//! Expressions cache their hashes, and all compiles of a process share the expressions of formats: copying
//! them took a sixth of a compile. Together with tables that store no state twice (`language/characters/`,
//! `language/product/word_tree.rs`), sharing made compiles two fifths faster.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use regex_syntax::hir::Hir;

use super::hash;

/// A shared regular expression. The expression of a format such as `date-time` has thousands of nodes, occurs
/// in many places of a schema, and is looked up again and again. A clone costs nothing, and the hash is
/// computed once.
#[derive(Clone)]
pub struct Expression(Arc<SharedHir>);

struct SharedHir {
    hir: Hir,
    /// The hash of the expression, and about how many bytes it takes.
    hash: OnceLock<(u64, usize)>,
}

impl Expression {
    /// Returns a hash of the expression; equal expressions have equal hashes. The hash depends on the
    /// structure alone, so it is the same in every process. The first call is O(size of the expression).
    pub fn structure_hash(&self) -> u64 {
        self.measured().0
    }

    fn measured(&self) -> (u64, usize) {
        *self.0.hash.get_or_init(|| hash::of_hir(&self.0.hir))
    }

    /// Returns about how many bytes the expression takes, or 0 if it is shared.
    #[doc(hidden)]
    pub fn own_bytes(&self) -> usize {
        match Arc::strong_count(&self.0) {
            1 => self.bytes(),
            _ => 0,
        }
    }

    /// Returns about how many bytes the expression takes.
    #[doc(hidden)]
    pub fn bytes(&self) -> usize {
        self.measured().1
    }
}

impl From<Hir> for Expression {
    fn from(hir: Hir) -> Expression {
        Expression(Arc::new(SharedHir {
            hir,
            hash: OnceLock::new(),
        }))
    }
}

impl Deref for Expression {
    type Target = Hir;

    fn deref(&self) -> &Hir {
        &self.0.hir
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.structure_hash() == other.structure_hash() && self.0.hir == other.0.hir
    }
}

impl Eq for Expression {}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hir.fmt(f)
    }
}
