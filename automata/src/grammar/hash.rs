//! A hash of regular expressions by their structure.
//!
//! [`Hir`] implements `Eq` but not `Hash`. This walk hashes what its equality compares, so that equal
//! expressions land in the same bucket of a map.

use std::hash::{Hash, Hasher};

use regex_syntax::hir::{Class, Hir, HirKind};
use rustc_hash::FxHasher;

/// Returns a hash, equal for equal expressions, and about how many bytes the expression takes.
pub(super) fn of_hir(hir: &Hir) -> (u64, usize) {
    let mut hasher = FxHasher::default();
    let bytes = hash_hir(hir, &mut hasher);
    (hasher.finish(), bytes)
}

/// About the bytes of a node: the node itself and its allocated properties of the subtree.
const NODE_BYTES: usize = size_of::<Hir>() + 96;

fn hash_hir(hir: &Hir, hasher: &mut FxHasher) -> usize {
    let mut bytes = 0;
    let mut open = vec![hir];
    while let Some(hir) = open.pop() {
        bytes += NODE_BYTES;
        std::mem::discriminant(hir.kind()).hash(hasher);
        match hir.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => {
                bytes += literal.0.len();
                literal.0.hash(hasher);
            }
            HirKind::Class(class) => {
                bytes += match class {
                    Class::Unicode(class) => size_of_val(class.ranges()),
                    Class::Bytes(class) => size_of_val(class.ranges()),
                };
                hash_class(class, hasher);
            }
            HirKind::Look(look) => look.as_repr().hash(hasher),
            HirKind::Repetition(repetition) => {
                (repetition.min, repetition.max).hash(hasher);
                open.push(&repetition.sub);
            }
            HirKind::Capture(capture) => open.push(&capture.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                parts.len().hash(hasher);
                open.extend(parts);
            }
        }
    }
    bytes
}

fn hash_class(class: &Class, hasher: &mut FxHasher) {
    match class {
        Class::Unicode(class) => class
            .ranges()
            .iter()
            .for_each(|r| (r.start(), r.end()).hash(hasher)),
        Class::Bytes(class) => class
            .ranges()
            .iter()
            .for_each(|r| (r.start(), r.end()).hash(hasher)),
    }
}
