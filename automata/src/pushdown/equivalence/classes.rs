//! Which frame and which configuration stand for all that tokens cannot tell from them, as far as that was
//! asked.

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
    /// The keys that tokens hold; `None` where all that were used matter.
    pub(crate) keys: Option<Arc<KeySet>>,
    /// The members that are not seen from after an item.
    pub(crate) behind_item: Bits,
    /// Those of them that are not seen from anywhere before their keys.
    pub(crate) anywhere: Bits,
}

/// The key by which frames are equivalent; the first frame of a class represents all.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// A key in progress, without its text.
    Key(FrameKey),
    /// The suffixes with which a rule may go on, in order.
    Suffixes(Box<[u32]>),
}

/// Rules in more places at once than this are not compared with others, and configurations of more frames:
/// they are seldom like one, and soon a choice is made.
pub(crate) const MANY_PLACES: usize = 64;

/// The equivalence classes of the frames of one grammar, as far as they were found.
#[derive(Debug)]
pub(crate) struct Classes {
    /// What is left of rules from their nodes on.
    pub(crate) suffixes: Arc<OnceLock<Suffixes>>,
    /// What tokens cannot see of each series.
    pub(crate) hidden: Arc<[OnceLock<Hidden>]>,
    /// The bytes with which the keys begin and end of which it is known whether tokens hold them.
    pub(crate) key_edges: Arc<OnceLock<(u8, u8)>>,
    /// For lists of such keys those that tokens hold.
    pub(crate) held: DashMap<u32, u32, FxBuildHasher>,
    /// The first frames of keys and rules in progress of which no more is seen than this.
    pub(crate) first: DashMap<Class, FrameId, FxBuildHasher>,
}

impl Classes {
    /// Nothing is known yet of the frames of a grammar.
    pub(crate) fn new(frames: &Frames) -> Classes {
        Classes {
            suffixes: Arc::default(),
            hidden: frames.nfa.series.iter().map(|_| OnceLock::new()).collect(),
            key_edges: Arc::default(),
            held: DashMap::default(),
            first: DashMap::default(),
        }
    }

    /// The same grammar without the frames that were found. O(1).
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
