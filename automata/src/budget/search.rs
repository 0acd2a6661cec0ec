//! Finds the fewest tokens of all completions, by a search over the machine and the trie.
//!
//! A spot of the search is a configuration and the part of a token that has been read; reading a byte is
//! free, a finished token costs one. Spots are found in rounds of equal cost, and each round is completed. In
//! a small vocabulary, a spot is discarded if not even the longest tokens would end within the bound. Since
//! the right bound is not known, the search begins with a small one and increases it until it finds a
//! completion (iterative deepening, Korf 1985).
//!
//! ```text
//!   least: 3 tokens      within 3   ○─○─✕
//!                        within 4   ○─○─○─✕
//!                        within 5   ○─○─○─○─●     found, perhaps out of reach of an unbounded search
//! ```
//!
//! Each search after a token of a completion that was found is part of one of the searches that found it, so
//! its work is within the bound: spots within the bound stay within it on the path to the end.
//!
//! In a large vocabulary, a search is made where no distance in steps is known, and goes as far as spots at
//! which one is. From there, the spelled completion counts, since later queries will use it there.

use dashmap::DashMap;
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::place::Place;
use super::spell::{Measured, NUMBER_BYTES, Spelling};
use super::steps::Steps;
use crate::language::{NEVER, plus};
use crate::pushdown::{ConfigId, Distances, Stacks};
use crate::work::{spend, within};

/// The work limit of one search over a small vocabulary, in rounds, separate from that of the query.
const SMALL_SEARCH: (&str, usize) = ("search", 1 << 24);

/// The total work of the searches from one configuration. Each spot costs as many units as there are parses
/// of its text, since a step from it takes that much work.
const WORK: usize = 1 << 14;

/// The results of the searches from one configuration.
#[derive(Clone, Copy, Debug)]
struct FoundCompletions {
    tokens: Option<u64>,
    /// The first token of the completion with the fewest tokens.
    first: Option<u32>,
    /// The bound of the last search in tokens; the greatest number if a larger bound would change nothing.
    rounds: u64,
    /// The remaining work.
    work: usize,
}

/// The searches of one grammar that were made so far.
#[derive(Debug)]
pub(super) struct Searches {
    found: DashMap<ConfigId, FoundCompletions, FxBuildHasher>,
    /// The maximum number of searches to remember, which affects only speed.
    most: usize,
}

impl Searches {
    /// Creates a cache of at most `most` searches.
    pub(super) fn new(most: usize) -> Searches {
        Searches {
            found: DashMap::default(),
            most,
        }
    }

    /// Returns the bytes that the searches take.
    pub(super) fn bytes(&self) -> usize {
        self.found.len() * NUMBER_BYTES
    }

    /// Returns the fewest tokens if they are at most `limit`, and possibly if they are more; `None` if there
    /// is no completion or if finding one is too much work.
    pub(super) fn tokens(&self, about: (Place<'_>, &Steps), config: ConfigId, limit: u64) -> Option<u64> {
        self.find(about, config, limit).tokens
    }

    /// Returns the first token of the completion that the search finds.
    pub(super) fn first(&self, about: (Place<'_>, &Steps), config: ConfigId, limit: u64) -> Option<u32> {
        self.find(about, config, limit).first
    }

    fn find(&self, about: (Place<'_>, &Steps), config: ConfigId, limit: u64) -> FoundCompletions {
        let known = self.found.get(&config).map(|known| *known);
        if let Some(known) = known
            && (known.tokens.is_some() || known.rounds >= limit)
        {
            return known;
        }
        let deepen = || self.deepen(about, config, (known, limit));
        // For a small vocabulary all distances come from searches, which bound their own work.
        let found = match about.0.is_small() {
            true => within(SMALL_SEARCH, deepen).unwrap_or(FoundCompletions::new(None, u64::MAX, 0)),
            false => deepen(),
        };
        if self.found.len() >= self.most {
            self.found.clear();
        }
        self.found.insert(config, found);
        found
    }

    /// Searches with increasing bounds, in a separate machine, so that nothing is cached for paths that are
    /// not taken. The result does not depend on earlier queries.
    fn deepen(
        &self,
        (place, steps): (Place<'_>, &Steps),
        config: ConfigId,
        (known, limit): (Option<FoundCompletions>, u64),
    ) -> FoundCompletions {
        let (stacks, config) = &place.machine.stacks().apart_whole(config);
        let search = CompletionSearch {
            place,
            stacks,
            at_least: steps.at_least.apart(),
            stride: steps.stride,
            spelling: (!place.is_small()).then(|| (steps.achievable().apart(), Spelling::new(self.most))),
        };
        let (searched, mut work) = known.map_or((0, WORK), |known| (known.rounds + 1, known.work));
        let mut rounds = search.least(*config).max(searched);
        if search.spelling.is_some() {
            (rounds, work) = (limit.max(ROUNDS), WORK);
        }
        while rounds <= limit.max(ROUNDS) {
            spend(1);
            match search.run(*config, rounds, &mut work) {
                Outcome::Beyond => rounds += 1,
                Outcome::Never => return FoundCompletions::new(None, u64::MAX, work),
                Outcome::Found(tokens, first) => {
                    return FoundCompletions::new(Some((tokens, first)), u64::MAX, work);
                }
            }
        }
        FoundCompletions::new(None, limit.max(ROUNDS), work)
    }
}

impl FoundCompletions {
    fn new(way: Option<(u64, Option<u32>)>, rounds: u64, work: usize) -> FoundCompletions {
        FoundCompletions {
            tokens: way.map(|(tokens, _)| tokens),
            first: way.and_then(|(_, first)| first),
            rounds,
            work,
        }
    }
}

/// The smallest bound of a search in tokens, so that searches seldom have to be repeated with a larger one.
const ROUNDS: u64 = 4;

/// The outcome of a search within a bound.
enum Outcome {
    /// The fewest tokens, and the first token of that completion.
    Found(u64, Option<u32>),
    /// Any completion takes more tokens than the bound.
    Beyond,
    /// There is no completion, or finding one is too much work.
    Never,
}

/// The context of a search.
struct CompletionSearch<'a> {
    place: Place<'a>,
    stacks: &'a Stacks,
    at_least: Distances,
    stride: u64,
    /// The distances and spelled completions, if searches stop at spots where these are known.
    spelling: Option<(Distances, Spelling)>,
}

impl CompletionSearch<'_> {
    /// Returns a lower bound on the number of tokens of all completions.
    fn least(&self, config: ConfigId) -> u64 {
        match self.at_least.of(self.stacks, config) {
            // In languages with large counts, an unknown distance does not mean that there is no completion.
            NEVER => 0,
            steps => steps.div_ceil(self.stride),
        }
    }

    /// Searches the completions of at most `bound` tokens, with the remaining work.
    fn run(&self, config: ConfigId, bound: u64, work: &mut usize) -> Outcome {
        let mut seen: FxHashSet<Spot> = FxHashSet::default();
        let mut round = vec![(root(self.place, config), None)];
        let mut given_up = false;
        seen.insert(round[0].0);
        let mut best = (NEVER, None);
        for tokens in 0..=bound {
            let (more, first) = match &self.spelling {
                Some((shortest, spelling)) => {
                    settled(spelling, (self.place, self.stacks, shortest), &mut round)
                }
                None => accepted(self.stacks, &round),
            };
            if plus(tokens, more) < best.0 {
                best = (plus(tokens, more), first);
            }
            if best.0 <= tokens + 1 || round.is_empty() || *work == 0 {
                break;
            }
            if tokens < bound {
                round = after_one_token((self.place, self.stacks), round, (&mut seen, work));
                given_up |= self.give_up(&mut round, bound - tokens - 1);
            }
        }
        let is_all = *work == 0 || round.is_empty() && !given_up;
        match best.0 {
            NEVER if is_all => Outcome::Never,
            tokens if tokens <= bound || is_all => Outcome::Found(tokens, best.1),
            // Another completion may be shorter.
            _ => Outcome::Beyond,
        }
    }

    /// Removes the spots from which no completion takes at most `left` tokens. Returns `true` if there were
    /// any. With spelled completions, none is removed: the path to a known distance may lead through such a
    /// spot.
    fn give_up(&self, round: &mut Vec<Reached>, left: u64) -> bool {
        let before = round.len();
        if self.spelling.is_none() {
            round.retain(|(spot, _)| self.least(spot.0) <= left);
        }
        round.len() < before
    }
}

/// A configuration, and the range of children in the trie with which the token may continue.
type Spot = (ConfigId, u32, u32);

/// A spot, and the first token of the path to it, once one is finished.
type Reached = (Spot, Option<u32>);

/// Returns 0 and the first token of the path if the text may end at one of these spots, otherwise [`NEVER`].
fn accepted(stacks: &Stacks, round: &[Reached]) -> (u64, Option<u32>) {
    let mut ends = round.iter().filter(|(spot, _)| spot.1 == 0);
    match ends.find(|(spot, _)| stacks.closure(spot.0).accepting) {
        Some(&(_, first)) => (0, first),
        None => (NEVER, None),
    }
}

/// Removes the spots from which a distance is known, and returns the fewest tokens from any of them with the
/// first token of the path there.
fn settled(spelling: &Spelling, measured: Measured<'_>, round: &mut Vec<Reached>) -> (u64, Option<u32>) {
    let (_, stacks, shortest) = measured;
    let is_known = |(spot, _): &mut Reached| spot.1 == 0 && shortest.of(stacks, spot.0) != NEVER;
    let known = round.extract_if(.., is_known);
    let known = known.map(|(spot, first)| (spelling.tokens(measured, spot.0), first));
    known.min_by_key(|known| known.0).unwrap_or((NEVER, None))
}

fn root(place: Place<'_>, config: ConfigId) -> Spot {
    (config, 0, place.vocabulary().trie().nodes().len() as u32)
}

/// Returns the spots at token boundaries that one more token leads to.
fn after_one_token(
    (place, stacks): (Place<'_>, &Stacks),
    mut round: Vec<Reached>,
    (seen, work): (&mut FxHashSet<Spot>, &mut usize),
) -> Vec<Reached> {
    let trie = place.vocabulary().trie();
    let mut next = Vec::new();
    while let Some(((config, mut at, end), first)) = round.pop() {
        spend(1);
        *work = work.saturating_sub(stacks.closure(config).readers.len().max(1));
        if *work == 0 {
            return Vec::new();
        }
        if at == 0 {
            for (special, token) in place.specials.first_tokens() {
                let ended = stacks.step_special(config, special);
                let spot = ended.map(|config| root(place, config));
                let spot = spot.filter(|&spot| seen.insert(spot));
                next.extend(spot.map(|spot| (spot, first.or(Some(token)))));
            }
        }
        while at < end {
            spend(1);
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
