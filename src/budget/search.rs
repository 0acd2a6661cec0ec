//! The fewest tokens among all completions, by a search over the machine and the trie.
//!
//! A place of the search is a configuration and how much of a token has been read; reading on is free, a finished
//! token costs one. Places are found in rounds of equal cost, each round to its end, so that the work behind a token
//! of a completion that was found is part of the work that found it: what is within the bound stays within it on the
//! way to the end.
//!
//! In a large vocabulary a search is made where no distance in steps is known, and goes as far as one is. From there the
//! completion counts that is spelled, since that is what will be asked for there.

use rustc_hash::FxHashSet;

use super::spell::{Measured, spelled};
use super::{Budget, Place, is_small};
use crate::machine::{ConfigId, NEVER, Stacks, plus};

/// How much work one search may be: each place counts as often as its text can be read, since so much work is a step
/// from there.
const WORK: usize = 1 << 14;

/// What a search found out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    tokens: Option<u64>,
    /// The token that a way with so many begins with.
    first: Option<u32>,
    /// No more rounds can change that; or so many were made.
    rounds: u64,
}

/// Rounds that are made at least, so that a search seldom has to be made again with more.
const ROUNDS: u64 = 4;

impl Budget {
    /// The fewest tokens if they are at most `limit`, or possibly if they are more; `None` if there is no way, or if
    /// finding one is too much work.
    pub(super) fn search(&self, place: Place<'_>, config: ConfigId, limit: u64) -> Option<u64> {
        self.found(place, config, limit).tokens
    }

    /// A token with which a way begins that the search for it finds.
    pub(super) fn first_found(&self, place: Place<'_>, config: ConfigId, limit: u64) -> Option<u32> {
        self.found(place, config, limit).first
    }

    fn found(&self, place: Place<'_>, config: ConfigId, limit: u64) -> Found {
        if let Some(known) = self.searched.get(&config)
            && (known.tokens.is_some() || known.rounds >= limit)
        {
            return *known;
        }
        let found = self.run(place, config, limit.max(ROUNDS));
        self.remember(&self.searched, config, found);
        found
    }

    /// Searches in a machine of its own, so that nothing is remembered of ways that are not gone.
    fn run(&self, place: Place<'_>, config: ConfigId, limit: u64) -> Found {
        let (stacks, config) = &place.machine.stacks().apart_whole(config);
        let spelling = (!is_small(place)).then(|| self.achievable().apart());
        let mut seen: FxHashSet<Spot> = FxHashSet::default();
        let mut round = vec![(root(place, *config), None)];
        let mut work = WORK;
        seen.insert(round[0].0);
        let mut best = (NEVER, None);
        for tokens in 0..=limit {
            let (more, first) = match &spelling {
                Some(shortest) => settled((place, stacks, shortest), &mut round),
                None => accepted(stacks, &round),
            };
            if plus(tokens, more) < best.0 {
                best = (plus(tokens, more), first);
            }
            if best.0 <= tokens + 1 || round.is_empty() || work == 0 {
                return Found::new(best, u64::MAX);
            }
            if tokens < limit {
                round = after_one_token((place, stacks), round, (&mut seen, &mut work));
            }
        }
        match best.0 <= limit {
            true => Found::new(best, limit),
            // Another way may be shorter.
            false => Found::new((NEVER, None), limit),
        }
    }
}

impl Found {
    fn new((tokens, first): (u64, Option<u32>), rounds: u64) -> Found {
        let tokens = (tokens != NEVER).then_some(tokens);
        Found {
            tokens,
            first,
            rounds,
        }
    }
}

/// A configuration, and the children that the token may go on with in the trie.
type Spot = (ConfigId, u32, u32);

/// A place, and the token with which the way to it begins, once one is finished.
type Reached = (Spot, Option<u32>);

/// 0 where the text may end at one of these places, else never; and how the way there begins.
fn accepted(stacks: &Stacks, round: &[Reached]) -> (u64, Option<u32>) {
    let mut ends = round.iter().filter(|(spot, _)| spot.1 == 0);
    match ends.find(|(spot, _)| stacks.fringe(spot.0).accepting) {
        Some(&(_, first)) => (0, first),
        None => (NEVER, None),
    }
}

/// Takes the places away from which a distance is known, and tells the fewest tokens from one of them, and how the way there
/// begins.
fn settled(measured: Measured<'_>, round: &mut Vec<Reached>) -> (u64, Option<u32>) {
    let (_, stacks, shortest) = measured;
    let is_known = |(spot, _): &mut Reached| spot.1 == 0 && shortest.of(stacks, spot.0) != NEVER;
    let known = round.extract_if(.., is_known);
    let known = known.map(|(spot, first)| (spelled(measured, spot.0), first));
    known.min_by_key(|known| known.0).unwrap_or((NEVER, None))
}

fn root(place: Place<'_>, config: ConfigId) -> Spot {
    (config, 0, place.vocabulary().trie().nodes().len() as u32)
}

/// The places at the beginning of a token that one more token leads to.
fn after_one_token(
    (place, stacks): (Place<'_>, &Stacks),
    mut round: Vec<Reached>,
    (seen, work): (&mut FxHashSet<Spot>, &mut usize),
) -> Vec<Reached> {
    let trie = place.vocabulary().trie();
    let mut next = Vec::new();
    while let Some(((config, mut at, end), first)) = round.pop() {
        *work = work.saturating_sub(stacks.fringe(config).readers.len().max(1));
        if *work == 0 {
            return Vec::new();
        }
        if at == 0 {
            for (special, &token) in place.specials.iter().enumerate() {
                let ended = stacks.step_special(config, special as u32);
                let spot = ended.map(|config| root(place, config));
                let spot = spot.filter(|&spot| seen.insert(spot));
                next.extend(spot.map(|spot| (spot, first.or(Some(token)))));
            }
        }
        while at < end {
            let node = trie.nodes()[at as usize];
            if let Some(after) = stacks.step(config, node.byte) {
                if node.count > 0 && seen.insert(root(place, after)) {
                    let token = trie.tokens_at(&node).first().copied();
                    next.push((root(place, after), first.or(token)));
                }
                let deeper = (after, at + 1, node.end);
                if at + 1 < node.end && seen.insert(deeper) {
                    round.push((deeper, first));
                }
            }
            at = node.end;
        }
    }
    next
}
