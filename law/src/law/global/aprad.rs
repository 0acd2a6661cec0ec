//! Approximately aligned decoding (AprAD): after an error the text goes back only as far as the weight of the
//! error requires.
//!
//! Nothing is masked; tokens are drawn from `P̂`, the model without the prefixes known to end in errors, and
//! an error after the tokens `x₁…xₘ` changes `P̂` to `P̂'`:
//!
//! ```text
//!   x₁ ── x₂ ── … ── xᵢ ── … ── xₘ ✗       keep each xᵢ with probability min(1, P̂'(xᵢ|·) / P̂(xᵢ|·))^h
//!                    └─ yᵢ ── …            at the first that is not kept: another token, in proportion to P̂'
//! ```
//!
//! `h = 1` is the exponent of the paper (Melcer et al. 2024, arXiv 2410.01103). The larger `h`, the further
//! back the text goes.
//!
//! | what the constraint tells | one error removes | `h = 0` |
//! |---|---|---|
//! | that the text is an error ([`next`](Aprad::next), [`reject`](Aprad::reject)): the method of the paper | the text | redraws the last token alone, as backtracking in constrained decoding does |
//! | the mask of each prefix ([`Walk::aligned`](crate::law::Walk::aligned)) | all forbidden tokens after the prefix at once | the local law |
//!
//! With a mask, a prefix is at fault at most once. For a language of twenty texts of three tokens this took
//! 4.3 errors a text, at a distance of 0.044 from the global law, where one token at a time took 44, at 0.55.
//! The bound of a prefix without an error is its allowed mass, too: a text that has passed there has survived
//! it, as an attempt of [`Attempt`](crate::law::Attempt) does.
//!
//! **Approximate**, and tagged so ([`LawTag::Aprad`]): the probability of a text may exceed the global law by
//! a factor of about 2 for each time the sampler went back. It needs few more tokens than the text has, even
//! where errors are so frequent that no sampler of the exact law finishes.
//!
//! Memory: one number for each token written, for at most `capacity` tokens.

use super::trie::{Spot, Trie};
use crate::law::{Allowed, Chooser, Drawn, LawError, LawTag, Part, Place, Purpose, Row, Weight};

/// The outcome of a step at a prefix, where a mask decides what is an error.
pub(in crate::law) enum Aligned<W> {
    /// The text continues with a token.
    Drawn(Drawn<W>),
    /// The token drawn was an error; the text goes back.
    Back {
        /// The number of tokens that are kept.
        kept: usize,
    },
}

/// The sampler of texts of one prompt; it keeps what it has learned of errors for the next text.
#[derive(Clone, Debug)]
pub struct Aprad<W = f64> {
    trie: Trie<W>,
    /// `h`.
    exponent: u32,
    /// The prefixes of the text that have a row, the empty one first.
    nodes: Vec<usize>,
    /// The edge of each token of the text.
    edges: Vec<usize>,
    /// The edge that is not to be taken next, because it was given up in the last step.
    given_up: Option<usize>,
    errors: u32,
}

impl<W: Weight> Aprad<W> {
    /// Creates a sampler that knows no error, with the exponent `h`.
    pub fn new(exponent: u32, capacity: usize) -> Self {
        Aprad {
            trie: Trie::new(&[], u32::MAX, capacity),
            exponent,
            nodes: Vec::new(),
            edges: Vec::new(),
            given_up: None,
            errors: 0,
        }
    }

    /// Returns the tag of its texts.
    pub fn tag(&self) -> LawTag {
        LawTag::Aprad
    }

    /// Returns `true` if no text is left that is not known to be an error.
    pub(in crate::law) fn is_hopeless(&self) -> bool {
        self.trie.is_hopeless()
    }

    /// Returns the number of errors reported.
    pub fn errors(&self) -> u32 {
        self.errors
    }

    /// Begins the next text.
    pub fn begin(&mut self) {
        if let Some(&last) = self.nodes.last() {
            self.trie.report(last);
        }
        self.nodes.clear();
        self.edges.clear();
        self.given_up = None;
    }

    /// Draws the next token of the text; `row` is the row of the present prefix.
    ///
    /// # Errors
    /// Nothing is left to draw, or there is no room to remember what is drawn.
    pub fn next<R, C>(&mut self, row: &R, chooser: &mut C) -> Result<Drawn<W>, LawError>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        let node = self.arrive(row)?;
        let token = self.draw((node, row), Allowed::All, chooser)?;
        Ok(drawn(row, Allowed::All, token))
    }

    /// Draws the next token of the text at a known prefix, among those that are allowed there.
    fn draw<R, C>(
        &mut self,
        (node, row): (usize, &R),
        allowed: Allowed<'_>,
        chooser: &mut C,
    ) -> Result<u32, LawError>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        let mut weights = vec![self.trie.rest(node)];
        weights.extend(self.trie.edge_bounds(node));
        if let Some(edge) = self.given_up.take() {
            weights[edge + 1] = W::zero();
        }
        if !weights.iter().any(Weight::is_positive) {
            return Err(LawError::NoMass {
                position: self.edges.len() as u32,
            });
        }
        let place = Place::new(self.errors, self.edges.len() as u32);
        let taken: Vec<u32> = self.trie.edge_tokens(node).collect();
        let branch = match taken.is_empty() {
            true => 0,
            false => chooser.choose(place.to(Purpose::Branch), &weights),
        };
        let edge = match branch.checked_sub(1) {
            Some(edge) => edge,
            None => {
                let words = allowed.without(&taken, row.len());
                let part = row.part(Allowed::Words(&words));
                let token = part.draw(place, chooser).ok_or(LawError::NoMass {
                    position: place.position,
                })?;
                let (share, others) = (part.share(token), part.share_without(token));
                match self.trie.split(node, token, share, others) {
                    Spot::Below { edge, .. } => edge,
                    _ => return Err(self.exhausted()),
                }
            }
        };
        self.edges.push(edge);
        Ok(self.trie.follow(node, edge).0)
    }

    /// Reports that the present text is an error. Returns how many of its tokens are kept; the next one is
    /// drawn again.
    ///
    /// # Errors
    /// No text is left, or there is no room to remember the error.
    pub fn reject<C: Chooser<W> + ?Sized>(&mut self, chooser: &mut C) -> Result<usize, LawError> {
        self.errors += 1;
        let before = self.shares();
        let is_noted = match (self.nodes.last(), self.edges.last()) {
            (Some(&node), Some(&edge)) if self.nodes.len() == self.edges.len() => {
                self.trie.condemn(Spot::Below { node, edge })
            }
            _ => false,
        };
        if !is_noted || self.trie.is_hopeless() {
            return Err(self.exhausted());
        }
        Ok(self.go_back(&before, chooser))
    }

    /// Goes back as far as the shares of its tokens have fallen; returns how many tokens are kept.
    fn go_back<C: Chooser<W> + ?Sized>(&mut self, before: &[W], chooser: &mut C) -> usize {
        let after = self.shares();
        let keeps = |(place, (before, after)): (usize, (&W, &W))| {
            let place = Place::new(self.errors, place as u32).to(Purpose::Survive);
            self.keeps(place, before.clone(), after.clone(), chooser)
        };
        let pairs = before.iter().zip(&after).enumerate();
        let kept = pairs.map(keeps).take_while(|keeps| *keeps).count();
        self.given_up = self.edges.get(kept).copied();
        self.edges.truncate(kept);
        self.nodes.truncate(kept + 1);
        kept
    }

    /// Draws as if there were no mask at a prefix that is new, and then checks whether the mask contains the
    /// token; whether it does or not, no token that is forbidden there is drawn again. The numbers of the
    /// returned token are those of the masked row.
    ///
    /// # Errors
    /// The errors of [`next`](Self::next) and [`reject`](Self::reject), and that there were `limit` errors
    /// before this one.
    pub(in crate::law) fn step<R, C>(
        &mut self,
        row: &R,
        allowed: Allowed<'_>,
        limit: u32,
        chooser: &mut C,
    ) -> Result<Aligned<W>, LawError>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        let spot = self.spot();
        if self.trie.node_at(spot).is_some() {
            let node = self.arrive(row)?;
            let token = self.draw((node, row), allowed, chooser)?;
            return Ok(Aligned::Drawn(drawn(row, allowed, token)));
        }
        let place = Place::new(self.errors, self.edges.len() as u32);
        let token = row.part(Allowed::All).draw(place, chooser);
        let token = token.ok_or(LawError::NoMass {
            position: place.position,
        })?;
        let part = row.part(allowed);
        if !allowed.contains(token) {
            let kept = self.forbid(part.mass(), limit, chooser)?;
            return Ok(Aligned::Back { kept });
        }
        let node = self.trie.visit(spot, part.mass(), 0).ok_or(self.exhausted())?;
        let (share, others) = (part.share(token), part.share_without(token));
        let Spot::Below { edge, .. } = self.trie.split(node, token, share, others) else {
            return Err(self.exhausted());
        };
        self.nodes.push(node);
        self.edges.push(edge);
        Ok(Aligned::Drawn(drawn(row, allowed, token)))
    }

    /// Removes what is forbidden after the present prefix, of which `mass` is left. Returns how many of its
    /// tokens are kept.
    fn forbid<C: Chooser<W> + ?Sized>(
        &mut self,
        mass: W,
        limit: u32,
        chooser: &mut C,
    ) -> Result<usize, LawError> {
        if self.errors >= limit {
            return Err(self.exhausted());
        }
        self.errors += 1;
        // Prefixes without an error have not been reported.
        if let Some(&last) = self.nodes.last() {
            self.trie.report(last);
        }
        let before = self.shares();
        let node = self.trie.visit(self.spot(), mass, 0).ok_or(self.exhausted())?;
        self.trie.report(node);
        match self.trie.is_hopeless() {
            true => Err(self.exhausted()),
            false => Ok(self.go_back(&before, chooser)),
        }
    }

    /// Returns `P̂` of each token of the text.
    fn shares(&self) -> Vec<W> {
        let share = |(&node, &edge): (&usize, &usize)| {
            let bounds = self.trie.edge_bounds(node);
            let all = bounds
                .iter()
                .fold(self.trie.rest(node), |all, bound| all + bound.clone());
            match all.is_positive() {
                true => bounds[edge].clone() / all,
                false => W::zero(),
            }
        };
        self.nodes.iter().zip(&self.edges).map(share).collect()
    }

    fn keeps<C: Chooser<W> + ?Sized>(&self, place: Place, before: W, after: W, chooser: &mut C) -> bool {
        if !after.is_positive() || after >= before {
            return after.is_positive();
        }
        let ratio = after / before;
        let factors = (0..self.exponent).map(|_| ratio.clone());
        let chance = factors.fold(W::one(), |product, ratio| product * ratio);
        chance >= W::one() || chooser.choose(place, &[chance.clone(), W::one() - chance]) == 0
    }

    /// Returns the node of the present text.
    fn arrive<R: Row<W>>(&mut self, row: &R) -> Result<usize, LawError> {
        if self.nodes.len() > self.edges.len() {
            return Ok(self.nodes[self.edges.len()]);
        }
        let spot = self.spot();
        let known = self.trie.node_at(spot);
        let node = known.or_else(|| self.trie.visit(spot, row.part(Allowed::All).mass(), 0));
        let node = node.ok_or(self.exhausted())?;
        self.nodes.push(node);
        Ok(node)
    }

    /// Returns the place of the present text in the trie.
    fn spot(&self) -> Spot {
        match self.edges.len().checked_sub(1) {
            Some(last) => Spot::Below {
                node: self.nodes[last],
                edge: self.edges[last],
            },
            None => Spot::Root,
        }
    }

    fn exhausted(&self) -> LawError {
        LawError::Exhausted {
            attempts: self.errors,
        }
    }
}

/// Returns the report of a token that was drawn from a row, with the numbers of the row under a mask.
fn drawn<W: Weight>(row: &impl Row<W>, allowed: Allowed<'_>, token: u32) -> Drawn<W> {
    let part = row.part(allowed);
    Drawn {
        token,
        mass: part.mass(),
        log_mass: part.log_mass(),
        log_probability: row.log_probability(token),
        log_kept: part.log_kept(),
    }
}
