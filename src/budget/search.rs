//! The fewest tokens among all completions, by a search over the machine and the trie.
//!
//! A place of the search is a configuration and how much of a token has been read; reading on is free, a finished
//! token costs one. Places are found in rounds of equal cost, each round to its end, so that the work behind a token
//! of a completion that was found is part of the work that found it: what is within the bound stays within it on the
//! way to the end.

use rustc_hash::FxHashSet;

use super::{Budget, Place, remember};
use crate::machine::{ConfigId, Stacks};

/// How much work one search may be: each place counts as often as its text can be read, since so much work is a step
/// from there.
const WORK: usize = 1 << 14;

/// What a search found out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    tokens: Option<u64>,
    /// No more rounds can change that; or so many were made.
    rounds: u64,
}

/// Rounds that are made at least, so that a search seldom has to be made again with more.
const ROUNDS: u64 = 4;

impl Budget {
    /// The fewest tokens if they are at most `limit`, or possibly if they are more; `None` if there is no way, or if
    /// finding one is too much work.
    pub(super) fn search(&self, place: Place<'_>, config: ConfigId, limit: u64) -> Option<u64> {
        if let Some(known) = self.searched.get(&config)
            && (known.tokens.is_some() || known.rounds >= limit)
        {
            return known.tokens;
        }
        let found = run(place, config, limit.max(ROUNDS));
        remember(&self.searched, config, found);
        found.tokens
    }
}

/// A configuration, and the children that the token may go on with in the trie.
type Spot = (ConfigId, u32, u32);

/// Searches in a machine of its own, so that nothing is remembered of ways that are not gone.
fn run(place: Place<'_>, config: ConfigId, limit: u64) -> Found {
    let (stacks, config) = &place.machine.stacks().apart_whole(config);
    let config = *config;
    let mut seen: FxHashSet<Spot> = FxHashSet::default();
    let mut round = vec![root(place, config)];
    let mut work = WORK;
    seen.insert(round[0]);
    for tokens in 0..=limit {
        if round.is_empty() || work == 0 {
            let (tokens, rounds) = (None, u64::MAX);
            return Found { tokens, rounds };
        }
        let mut ends = round.iter().filter(|spot| spot.1 == 0);
        if ends.any(|spot| stacks.fringe(spot.0).accepting) {
            let (tokens, rounds) = (Some(tokens), tokens);
            return Found { tokens, rounds };
        }
        if tokens < limit {
            round = after_one_token((place, stacks), round, (&mut seen, &mut work));
        }
    }
    let (tokens, rounds) = (None, limit);
    Found { tokens, rounds }
}

fn root(place: Place<'_>, config: ConfigId) -> Spot {
    (config, 0, place.vocabulary().trie().nodes().len() as u32)
}

/// The places at the beginning of a token that one more token leads to.
fn after_one_token(
    (place, stacks): (Place<'_>, &Stacks),
    mut round: Vec<Spot>,
    (seen, work): (&mut FxHashSet<Spot>, &mut usize),
) -> Vec<Spot> {
    let trie = place.vocabulary().trie();
    let mut next = Vec::new();
    while let Some((config, mut at, end)) = round.pop() {
        *work = work.saturating_sub(stacks.fringe(config).readers.len().max(1));
        if *work == 0 {
            return Vec::new();
        }
        if at == 0 {
            let specials = 0..place.specials.len() as u32;
            let ended = specials.filter_map(|special| stacks.step_special(config, special));
            next.extend(
                ended
                    .map(|config| root(place, config))
                    .filter(|&spot| seen.insert(spot)),
            );
        }
        while at < end {
            let node = trie.nodes()[at as usize];
            if let Some(after) = stacks.step(config, node.byte) {
                if node.count > 0 && seen.insert(root(place, after)) {
                    next.push(root(place, after));
                }
                let deeper = (after, at + 1, node.end);
                if at + 1 < node.end && seen.insert(deeper) {
                    round.push(deeper);
                }
            }
            at = node.end;
        }
    }
    next
}
