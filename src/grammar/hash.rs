//! A hash of regular languages by their structure.
//!
//! [`Hir`] compares but does not hash; this walk hashes what its equality looks at, so that equal languages meet in
//! the same bucket of a map.

use std::hash::{Hash, Hasher};

use regex_syntax::hir::{Class, Hir, HirKind};
use rustc_hash::FxHasher;

use super::{Part, Regular};

impl Regular {
    /// A hash that equal languages share. It depends on the structure alone, so it is the same in every process.
    pub fn structure_hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        for part in &self.parts {
            match part {
                Part::Match(expression) => (1u8, expression.structure_hash()).hash(&mut hasher),
                Part::Not(expression) => (2u8, expression.structure_hash()).hash(&mut hasher),
                Part::Units { unit, min, max } => (min, max, unit.structure_hash()).hash(&mut hasher),
            }
        }
        hasher.finish()
    }
}

/// The same for one expression, and about how many bytes it takes.
pub(super) fn of_hir(hir: &Hir) -> (u64, usize) {
    let mut hasher = FxHasher::default();
    let bytes = hash_hir(hir, &mut hasher);
    (hasher.finish(), bytes)
}

/// About the bytes of a node: itself, and what it says of the whole below it, which is allocated.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_structures_hash_alike_and_others_apart() {
        let of = |pattern: &str| {
            let hir = regex_syntax::parse(pattern).expect("the pattern is well formed");
            Regular {
                parts: vec![Part::Match(hir.into())],
            }
            .structure_hash()
        };
        assert_eq!(of("a[bc]{2,3}|d"), of("a[bc]{2,3}|d"));
        let all = ["a", "b", "ab", "a|b", "a*", "a+", "[a-c]", "[a-d]", "(a)"].map(of);
        let distinct: std::collections::HashSet<u64> = all.into_iter().collect();
        assert!(
            distinct.len() >= 8,
            "the patterns differ, so nearly all hashes should"
        );
    }
}
