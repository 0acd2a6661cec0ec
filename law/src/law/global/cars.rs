//! Attempts at the global law: constrained adaptive rejection sampling, thinned.
//!
//! The published algorithm draws from the *raw* row at a prefix it has not seen, and fails if the token is
//! not allowed. Masking there instead would favour prefixes with little allowed mass. The thinned form masks
//! and makes up for it:
//!
//! ```text
//!   arrive at u, sent there with held = θ(u) as it was then (1 if u was not visited)
//!     now ← m(u) at a first visit, else rest + Σ p·θ(child)
//!     survive with probability now / held, else fail              (at the root: held = now, nothing to survive)
//!     draw x in proportion to p(x|u)·θ(ux);  held ← θ(ux)
//! ```
//!
//! By induction `Pr[reach u] = P(u) · held(u) / θ₀(ε)`: surviving multiplies by now/held, drawing by
//! `p(x|u)·θ(ux)/now`. A complete sequence has held = 1, so it is returned with probability `P(w)/θ₀(ε)`:
//! accepted samples have the global law, whatever the trie had learned before, and are independent of one
//! another. No token that the mask forbids is ever drawn, so none has to be removed from the model's cache.
//!
//! Sequences longer than the trie's greatest length are invalid: at the last position only ending tokens are
//! possible. **Without surviving** ([`Attempt::adaptive`]) this is adaptive sampling with approximate
//! expected futures (ASAp; Park et al. 2024, arXiv 2405.21047): every attempt yields a text, the first has
//! the local law, and their laws approach the global one as the trie grows, though not monotonically. The
//! product of the now/held that were not used for surviving is the importance weight of such a text, proper
//! for any trie.
//!
//! Several attempts over one trie may be under way at once, because a change to the trie between two steps of
//! an attempt only lowers `now`. Their *results* must be used in the order in which the attempts began:
//! taking the first to end would favour short sequences.

use std::sync::Arc;

use super::control::Control;
use super::trie::{Spot, Trie};
use crate::law::{Allowed, Chooser, Drawn, Part, Place, Purpose, Row, Step, Weight};

/// The use of the now/held of each step.
#[derive(Clone, Debug)]
enum Thinning<W> {
    /// The probability with which the attempt survives.
    Always,
    /// A factor of the weight.
    Never,
    /// A factor of the weight down to a level, and below it the probability of surviving.
    Controlled(Control<W>),
}

/// One attempt; the decode loop calls [`next`](Self::next) at every prefix until it ends or fails.
#[derive(Clone, Debug)]
pub struct Attempt<W> {
    number: u32,
    pub(super) time: u64,
    pub(super) position: u32,
    held: W,
    pub(super) spot: Spot,
    deepest: Option<usize>,
    thinning: Thinning<W>,
    /// The now/held of the last step.
    factor: W,
    /// The now/held of the first step.
    first: W,
    _in_flight: Arc<()>,
}

/// The state of the trie at the prefix where an attempt arrives.
struct Arrival<W> {
    node: Option<usize>,
    mass: W,
    /// The allowed mass on tokens without an edge.
    rest: W,
    /// `p·θ` of every edge.
    edges: Vec<W>,
    now: W,
}

impl<W: Weight> Attempt<W> {
    /// Begins an attempt; its number separates its draws from those of other attempts at the same sequence.
    pub fn begin(trie: &mut Trie<W>, number: u32) -> Self {
        let (_in_flight, time) = trie.begin();
        Attempt {
            number,
            time,
            position: 0,
            held: W::one(),
            spot: Spot::Root,
            deepest: None,
            thinning: Thinning::Always,
            factor: W::one(),
            first: W::one(),
            _in_flight,
        }
    }

    /// Begins an attempt that does not fail: see the module documentation.
    pub fn adaptive(trie: &mut Trie<W>, number: u32) -> Self {
        Attempt {
            thinning: Thinning::Never,
            ..Attempt::begin(trie, number)
        }
    }

    /// Begins an attempt under rejection control at this level, from 0 (nothing fails, and the text has its
    /// importance weight) to 1 (texts fail, and their weights are equal). The [`weight`](Self::weight) of its
    /// text is proper at every level: see `control`.
    pub fn controlled(trie: &mut Trie<W>, number: u32, level: W) -> Self {
        Attempt {
            thinning: Thinning::Controlled(Control::new(level)),
            ..Attempt::begin(trie, number)
        }
    }

    /// Returns the factor that the last step contributed to the importance weight. If attempts may fail, it
    /// is the probability with which the step survived.
    pub fn factor(&self) -> &W {
        &self.factor
    }

    /// Returns the importance weight of a text under rejection control ([`controlled`](Self::controlled)),
    /// and `None` for other texts: their weight is the product of their factors or, if attempts may fail, the
    /// factor of the first step for all of them.
    pub fn weight(&self) -> Option<W> {
        match &self.thinning {
            Thinning::Controlled(control) => Some(self.first.clone() * control.weight()),
            Thinning::Always | Thinning::Never => None,
        }
    }

    /// Takes the step at the current prefix: [`Step::Token`], [`Step::End`], or [`Step::Restart`] if the
    /// attempt failed. `trie` is the one that the attempt began with.
    pub fn next<R, C>(
        &mut self,
        trie: &mut Trie<W>,
        row: &R,
        allowed: Allowed<'_>,
        chooser: &mut C,
    ) -> Step<W>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        let mut words = trie.possible(allowed, self.position, row.len());
        let known = trie.node_at(self.spot);
        for token in known.iter().flat_map(|&node| trie.edge_tokens(node)) {
            crate::law::row::remove(&mut words, token);
        }
        let part = row.part(Allowed::Words(&words));
        let arrival = self.arrive(trie, known, &part);
        self.factor = arrival.now.clone() / self.held.clone();
        if self.position == 0 {
            self.first = self.factor.clone();
        }
        let step = match self.survives(&arrival, chooser) {
            true => self.draw(trie, row, &part, &arrival, chooser),
            false => Step::Restart,
        };
        self.position += 1;
        if let (Some(node), Step::End(_) | Step::Restart) = (self.deepest, &step) {
            trie.report(node);
        }
        step
    }

    fn arrive(&mut self, trie: &mut Trie<W>, known: Option<usize>, part: &impl Part<W>) -> Arrival<W> {
        let arrival = match known {
            Some(node) => {
                let now = trie.revisit(node, self.time);
                let (mass, rest, edges) = (trie.mass_at(node), trie.rest(node), trie.edge_bounds(node));
                Arrival {
                    node: known,
                    mass,
                    rest,
                    edges,
                    now,
                }
            }
            None => {
                let mass = part.mass();
                let node = trie.visit(self.spot, mass.clone(), self.time);
                Arrival {
                    node,
                    mass: mass.clone(),
                    rest: mass.clone(),
                    edges: Vec::new(),
                    now: mass,
                }
            }
        };
        self.deepest = arrival.node.or(self.deepest);
        arrival
    }

    fn survives<C: Chooser<W> + ?Sized>(&mut self, arrival: &Arrival<W>, chooser: &mut C) -> bool {
        let now = arrival.now.clone();
        if !now.is_positive() {
            return false;
        }
        if self.position == 0 || now >= self.held {
            return true;
        }
        let place = self.place().to(Purpose::Survive);
        match &mut self.thinning {
            Thinning::Never => true,
            Thinning::Always => chooser.choose(place, &[now.clone(), self.held.clone() - now]) == 0,
            Thinning::Controlled(control) => control.survives(self.factor.clone(), place, chooser),
        }
    }

    fn draw<R, C>(
        &mut self,
        trie: &mut Trie<W>,
        row: &R,
        part: &impl Part<W>,
        arrival: &Arrival<W>,
        chooser: &mut C,
    ) -> Step<W>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        let token = match self.branch(arrival, chooser) {
            Some((node, edge)) => {
                self.spot = Spot::Below { node, edge };
                let (token, held) = trie.follow(node, edge);
                self.held = held;
                token
            }
            None => {
                let Some(token) = part.draw(self.place(), chooser) else {
                    return Step::Restart;
                };
                self.held = W::one();
                self.spot = match arrival.node {
                    Some(node) if !trie.ends().contains(&token) => {
                        trie.split(node, token, part.share(token), part.share_without(token))
                    }
                    _ => Spot::Untracked,
                };
                token
            }
        };
        let log_mass = arrival.mass.ln();
        let log_probability = row.log_probability(token);
        let drawn = Drawn {
            token,
            mass: arrival.mass.clone(),
            log_mass,
            log_probability,
            log_kept: log_mass,
        };
        if trie.ends().contains(&token) {
            Step::End(drawn)
        } else {
            Step::Token(drawn)
        }
    }

    /// Draws one of the known continuations, or `None` for the tokens without an edge.
    fn branch<C: Chooser<W> + ?Sized>(
        &self,
        arrival: &Arrival<W>,
        chooser: &mut C,
    ) -> Option<(usize, usize)> {
        let node = arrival.node.filter(|_| !arrival.edges.is_empty())?;
        let mut weights = vec![arrival.rest.clone()];
        weights.extend_from_slice(&arrival.edges);
        let chosen = chooser.choose(self.place().to(Purpose::Branch), &weights);
        chosen.checked_sub(1).map(|edge| (node, edge))
    }

    fn place(&self) -> Place {
        Place::new(self.number, self.position)
    }
}
