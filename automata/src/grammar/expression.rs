//! A regular expression that many share.
//!
//! Expressions keep their hashes, and all compiles of a process share the expressions of formats: copies
//! took a sixth of a compile. Together with tables that keep no state twice (`language/characters/`,
//! `language/product/word_tree.rs`), sharing made compiles two fifths faster.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use regex_syntax::hir::Hir;

use super::hash;

/// A regular expression, shared by all that speak of it. That of a format such as `date-time` has thousands
/// of nodes, stands in a schema in many places, and is looked up again and again; copies cost nothing and its
/// hash is found once.
#[derive(Clone)]
pub struct Expression(Arc<SharedHir>);

struct SharedHir {
    hir: Hir,
    /// The hash, and about how many bytes it takes.
    hash: OnceLock<(u64, usize)>,
}

impl Expression {
    /// A hash that equal expressions share. It depends on the structure alone, so it is the same in every
    /// process. O(size of the expression) when first asked for.
    pub fn structure_hash(&self) -> u64 {
        self.measured().0
    }

    fn measured(&self) -> (u64, usize) {
        *self.0.hash.get_or_init(|| hash::of_hir(&self.0.hir))
    }

    /// About how many bytes it takes, if nobody shares it.
    #[doc(hidden)]
    pub fn own_bytes(&self) -> usize {
        match Arc::strong_count(&self.0) {
            1 => self.bytes(),
            _ => 0,
        }
    }

    /// About how many bytes it takes.
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
