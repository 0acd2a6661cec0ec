//! The mask cache of a grammar.
//!
//! A mask is cached under its state, under the equivalent state that represents it for all tokens, and, where
//! known, under the frames that its computation looked at. The frames below those do not matter, so the same
//! mask serves above any of them.
//!
//! ```text
//!   {"a": [{"b": "x│          looked at:    string, property of {, item of [   below: anything
//! ```
//!
//! Each thread has a cache of its own; a mask that another thread computed first is copied.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::mask::{Mask, Stripes};
use crate::pushdown::{FrameId, Machine, Stacks, TokenFacts};

/// The key of a cached mask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    State(u32),
    /// The frames that the computation looked at; see [`Stacks::upper`].
    Frames(Box<[FrameId]>),
}

/// Masks by key, within a bound on their bytes.
#[derive(Debug)]
pub(super) struct Masks {
    known: Stripes<Key, Arc<Mask>>,
}

impl Masks {
    /// Creates an empty cache. When it exceeds `bound` bytes, all masks are dropped.
    pub(super) fn new(bound: usize) -> Masks {
        Masks {
            known: Stripes::new(bound),
        }
    }

    /// Returns the bytes that the masks take.
    pub(super) fn bytes(&self) -> usize {
        self.known.bytes()
    }

    /// Returns the mask of a state that this thread has asked for before.
    pub(super) fn known(&self, state: u32) -> Option<Arc<Mask>> {
        self.known.get(&Key::State(state))
    }

    /// Returns the mask of a state that is not [`known`](Self::known). It is computed if no thread has done
    /// so before; `compute` also returns the lowest height that it looked at.
    pub(super) fn get(
        &self,
        state: u32,
        machine: &Machine,
        facts: &impl TokenFacts,
        compute: impl FnOnce(u32) -> (Mask, u32),
    ) -> Arc<Mask> {
        let (representative, stacks) = (machine.representative(state, facts), machine.stacks());
        let known = (representative != state).then(|| self.known.get(&Key::State(representative)));
        let mask = known.flatten().unwrap_or_else(|| {
            let mask = self.find(representative, stacks, compute);
            self.known.keep(Key::State(representative), mask.clone(), ENTRY);
            mask
        });
        if representative != state {
            self.known.keep(Key::State(state), mask.clone(), ENTRY);
        }
        mask
    }

    /// Finds the mask of a state that is not cached under the state itself.
    fn find(
        &self,
        representative: u32,
        stacks: &Stacks,
        compute: impl FnOnce(u32) -> (Mask, u32),
    ) -> Arc<Mask> {
        let upper = Masks::upper(representative, stacks).map(Key::Frames);
        let keys: SmallVec<[Key; 2]> = upper.chain([Key::State(representative)]).collect();
        let found = keys.iter().find_map(|key| self.known.get(key));
        found
            .or_else(|| self.copy(&keys))
            .unwrap_or_else(|| self.compute(representative, stacks, compute))
    }

    /// Returns the upper frames of a state, for each depth below its top frame that some mask computation
    /// looked at.
    fn upper(representative: u32, stacks: &Stacks) -> impl Iterator<Item = Box<[FrameId]>> {
        let depths = stacks.depths(representative);
        let depths = (0..u64::BITS).filter(move |&depth| depths >> depth & 1 == 1);
        depths.filter_map(move |depth| stacks.upper(representative, depth))
    }

    /// Copies a mask that another thread computed.
    fn copy(&self, keys: &[Key]) -> Option<Arc<Mask>> {
        let (key, found) = keys
            .iter()
            .find_map(|key| Some((key, self.known.elsewhere(key)?)))?;
        let mask = Arc::new(Mask::clone(&found));
        self.keep(key.clone(), &mask);
        Some(mask)
    }

    fn compute(
        &self,
        representative: u32,
        stacks: &Stacks,
        compute: impl FnOnce(u32) -> (Mask, u32),
    ) -> Arc<Mask> {
        let (mask, lowest) = compute(representative);
        let mask = Arc::new(mask);
        let depth = stacks
            .depth(representative, lowest)
            .filter(|&depth| depth < u64::BITS);
        let upper = depth.and_then(|depth| Some((depth, stacks.upper(representative, depth)?)));
        let key = match upper {
            Some((depth, frames)) => {
                stacks.add_depth(representative, depth);
                Key::Frames(frames)
            }
            None => Key::State(representative),
        };
        self.keep(key, &mask);
        mask
    }

    fn keep(&self, key: Key, mask: &Arc<Mask>) {
        let frames = match &key {
            Key::State(_) => 0,
            Key::Frames(frames) => frames.len() * size_of::<FrameId>(),
        };
        self.known
            .keep(key, mask.clone(), mask.words().len() * 4 + frames + ENTRY);
    }
}

/// About the bytes of one more key for a cached mask.
const ENTRY: usize = 64;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::grammar::{Cfg, CfgBuilder};
    use crate::limits::Limits;
    use crate::mask::STRIPES;
    use crate::mask::Tables;
    use crate::matcher::Grammar;
    use crate::matcher::State;
    use crate::vocab::{TokenKind, Vocabulary};

    /// The grammar `list ::= "[" item* "]"  item ::= "a" | list`: nested lists of letters.
    fn nested() -> Cfg {
        let mut builder = CfgBuilder::new();
        let list = builder.declare("list");
        let alternatives = [builder.bytes("a"), builder.rule(list)];
        let item = builder.choice(alternatives);
        let parts = [
            builder.bytes("["),
            builder.repeat(item, 0, None),
            builder.bytes("]"),
        ];
        let body = builder.seq(parts);
        builder.define(list, body);
        builder.finish(list)
    }

    /// The grammar `list ::= "(" item ("," item)* ")" | "[" item (";" item)* "]"  item ::= "'" [a-z]* "'" |
    /// list`.
    fn two_lists() -> Cfg {
        let mut builder = CfgBuilder::new();
        let list = builder.declare("list");
        let item = builder.declare("item");
        let letters = regex_syntax::parse("[a-z]*").expect("it is well formed");
        let word = [builder.bytes("'"), builder.hir(letters), builder.bytes("'")];
        let alternatives = [builder.seq(word), builder.rule(list)];
        let body = builder.choice(alternatives);
        builder.define(item, body);
        let lists = [("(", ",", ")"), ("[", ";", "]")].map(|(first, comma, last)| {
            let further = [builder.bytes(comma), builder.rule(item)];
            let further = builder.seq(further);
            let parts = [
                builder.bytes(first),
                builder.rule(item),
                builder.repeat(further, 0, None),
                builder.bytes(last),
            ];
            builder.seq(parts)
        });
        let body = builder.choice(lists);
        builder.define(list, body);
        builder.finish(list)
    }

    fn grammar() -> Grammar {
        grammar_of(&nested(), &["[", "]", "a", "a]", "]]"])
    }

    fn grammar_of(cfg: &Cfg, tokens: &[&str]) -> Grammar {
        let end = (TokenKind::Special, b"<end>".to_vec());
        let tokens = tokens
            .iter()
            .map(|text| (TokenKind::Text, text.as_bytes().to_vec()));
        let tokens: Vec<_> = std::iter::once(end).chain(tokens).collect();
        let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
        let tables = Arc::new(Tables::new(vocabulary, 1 << 20));
        Grammar::new(cfg, &tables, &Limits::default()).expect("the test's grammar compiles")
    }

    fn after(grammar: &Grammar, text: &str) -> State {
        let state = grammar.step_bytes(grammar.start(), text.as_bytes());
        state.expect("the text begins a word")
    }

    /// Returns the mask of a state from `masks`, and counts the masks that were computed.
    fn ask(grammar: &Grammar, masks: &Masks, state: State, computed: &AtomicUsize) -> Arc<Mask> {
        let inner = &grammar.inner;
        let compute = |representative| {
            computed.fetch_add(1, Ordering::Relaxed);
            grammar.compute_mask(State(representative))
        };
        let machine = &inner.machine;
        let known = masks.known(state.0);
        known.unwrap_or_else(|| masks.get(state.0, machine, inner.tables.facts(), compute))
    }

    #[test]
    fn what_one_thread_finds_no_other_computes() {
        let (grammar, masks, computed) = (grammar(), Masks::new(1 << 20), AtomicUsize::new(0));
        let state = after(&grammar, "[a");
        let first = ask(&grammar, &masks, state, &computed);
        std::thread::scope(|scope| {
            for _ in 0..2 * STRIPES {
                scope.spawn(|| assert_eq!(ask(&grammar, &masks, state, &computed), first));
            }
        });
        assert_eq!(computed.into_inner(), 1);
    }

    #[test]
    fn beyond_the_bound_all_are_dropped_and_found_again() {
        let bound = 3 * (4 + 2 * ENTRY);
        let (grammar, masks, computed) = (grammar(), Masks::new(bound), AtomicUsize::new(0));
        let states: Vec<State> = (0..20).map(|depth| after(&grammar, &"[".repeat(depth))).collect();
        let all = || {
            states
                .iter()
                .map(|&state| ask(&grammar, &masks, state, &computed))
        };
        let first: Vec<_> = all().inspect(|_| assert!(masks.bytes() <= bound)).collect();
        let before = computed.load(Ordering::Relaxed);
        assert!(all().eq(first), "masks do not hang on what is remembered");
        assert!(computed.load(Ordering::Relaxed) > before, "some were dropped");
    }

    #[test]
    fn a_mask_serves_wherever_the_frames_lie_that_it_was_found_from() {
        let (grammar, masks, computed) = (grammar(), Masks::new(1 << 20), AtomicUsize::new(0));
        let mask = |depth: usize| {
            let state = after(&grammar, &format!("{}a", "[".repeat(depth)));
            ask(&grammar, &masks, state, &computed)
        };
        // At depth 1 the first `]` may end the text, at depth 2 the second; deeper, no token reaches the end.
        let (one, two, deep) = (mask(1), mask(2), mask(3));
        assert_ne!(
            one, two,
            "the text may end with the last bracket, so that no token has two"
        );
        assert_eq!(two, deep);
        let before = computed.load(Ordering::Relaxed);
        assert!((4..30).all(|depth| mask(depth) == deep));
        assert!(
            computed.load(Ordering::Relaxed) <= before + 1,
            "the same mask serves all of them"
        );
    }

    #[test]
    fn callers_that_are_looked_into_are_told_apart() {
        let tokens = ["(", ")", "[", "]", ",", ";", "a", "'", "',", "';"];
        let (grammar, masks, computed) = (
            grammar_of(&two_lists(), &tokens),
            Masks::new(1 << 20),
            AtomicUsize::new(0),
        );
        let allowed = |text: &str| {
            let mask = ask(&grammar, &masks, after(&grammar, text), &computed);
            let allowed = mask.iter().map(|token| tokens[token as usize - 1]);
            allowed.collect::<Vec<_>>()
        };
        for _ in 0..2 {
            assert_eq!(allowed("('a"), ["a", "'", "',"]);
            assert_eq!(allowed("['a"), ["a", "'", "';"]);
            assert_eq!(allowed("[('a"), ["a", "'", "',"]);
        }
    }
}
