//! The equivalence classes of frames and configurations that tokens cannot tell apart, computed on demand.

use std::sync::{Arc, OnceLock};

use dashmap::DashMap;
use rustc_hash::FxBuildHasher;

use super::suffix::Suffixes;
use crate::pushdown::frame::{FrameId, FrameKey, Frames};
use crate::pushdown::object::key_set::KeySet;
use crate::pushdown::object::progress::Bits;
use crate::pushdown::stack::Stacks;

/// The keys and properties of a list that tokens cannot tell apart.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    /// The keys that tokens contain; `None` if all used keys matter.
    pub(crate) keys: Option<Arc<KeySet>>,
    /// The properties that tokens cannot see from after an item.
    pub(crate) after_item: Bits,
    /// Those of them that tokens cannot see from anywhere before their keys.
    pub(crate) anywhere: Bits,
}

/// The key by which frames are equivalent; the first frame of a class represents all.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// A key in progress, without its text.
    Key(FrameKey),
    /// The suffixes with which a rule may continue, in order.
    Suffixes(Box<[u32]>),
}

/// The maximum number of places of a rule, and of frames of a configuration, that are compared with others.
/// Beyond it, equivalences are rare, and soon a choice is made.
pub(crate) const MANY_PLACES: usize = 64;

/// The equivalence classes of the frames of one grammar, computed on demand.
#[derive(Debug)]
pub(crate) struct Classes {
    /// The suffixes of rules from their nodes on.
    pub(crate) suffixes: Arc<OnceLock<Suffixes>>,
    /// The parts of each object list that tokens cannot see.
    pub(crate) hidden: Arc<[OnceLock<Hidden>]>,
    /// The first and last byte of the keys for which `held` records whether tokens contain them.
    pub(crate) key_edges: Arc<OnceLock<(u8, u8)>>,
    /// For each list of such keys, the list of those that tokens contain.
    pub(crate) held: DashMap<u32, u32, FxBuildHasher>,
    /// The first frame, of keys and rules in progress, in each class.
    pub(crate) first: DashMap<Class, FrameId, FxBuildHasher>,
}

impl Classes {
    /// Creates empty classes for the frames of a grammar.
    pub(crate) fn new(frames: &Frames) -> Classes {
        Classes {
            suffixes: Arc::default(),
            hidden: frames.nfa.object_lists.iter().map(|_| OnceLock::new()).collect(),
            key_edges: Arc::default(),
            held: DashMap::default(),
            first: DashMap::default(),
        }
    }

    /// Returns the classes of the same grammar without the frames that were found. O(1).
    pub(crate) fn fresh(&self) -> Classes {
        Classes {
            suffixes: self.suffixes.clone(),
            hidden: self.hidden.clone(),
            key_edges: self.key_edges.clone(),
            held: DashMap::default(),
            first: DashMap::default(),
        }
    }
}

/// The configurations of a grammar as the tokens of a vocabulary see them.
pub(crate) struct Equivalence<'a, F> {
    pub(crate) stacks: &'a Stacks,
    pub(crate) frames: &'a Frames,
    pub(crate) classes: &'a Classes,
    pub(crate) facts: &'a F,
}

impl<'a, F> Equivalence<'a, F> {
    pub(crate) fn new(stacks: &'a Stacks, classes: &'a Classes, facts: &'a F) -> Equivalence<'a, F> {
        Equivalence {
            stacks,
            frames: &stacks.frames,
            classes,
            facts,
        }
    }
}
