//! One sequence on its way: which token comes next, and what the sample will say of itself.
//!
//! ```text
//!   local:    Token Token Token … End
//!   global:   Token Token Restart        attempt 0 failed: back to the prompt
//!             Token Restart              attempt 1
//!             Token Token Token End      attempt 2: accepted, the answer
//!   adaptive: Token Token Token … End    like local, with what others have learned
//!   aligned:  Token Token Restart        an error: back to where it weighs, which may be behind the prompt
//!             Token Token End
//! ```
//!
//! The decode loop owns the model; it asks [`Walk::next`] once for every token and does as the [`Step`] says.
//! All draws are at the place (attempt, position), so a walk that is fed the same rows takes the same steps.
//! Attempts are counted by the trie: see [`Walk::place`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cut::Logs;
use super::global::{Aligned, Independence};
use super::{
    Allowed, Aprad, Ask, Attempt, Ceiling, Chooser, Drawn, Fallback, LawError, LawTag, Mirostat, Part, Place,
    Row, Rule, Sampler, Step, Trie, TypicalAcceptance, Warper, Weight, asked,
};

/// Draws the token.
struct DrawRule;

impl<W: Weight> Rule<W> for DrawRule {
    fn choose<P, C>(&self, part: &P, place: Place, chooser: &mut C) -> Option<u32>
    where
        P: Part<W>,
        C: Chooser<W> + ?Sized,
    {
        part.draw(place, chooser)
    }
}

/// A trie for all walks with one key; see [`Trie`].
type SharedTrie<W> = Arc<Mutex<Trie<W>>>;

#[derive(Clone, Debug)]
enum WalkStage<W> {
    /// Draw from the masked rows.
    Local,
    /// Draw from the masked rows because the attempts ran out.
    Weighted,
    /// Make attempts.
    Attempt {
        trie: SharedTrie<W>,
        attempt: Attempt<W>,
        limit: u32,
        fallback: Fallback,
    },
    /// Propose texts to a chain because the attempts ran out.
    Chain {
        trie: SharedTrie<W>,
        chain: Box<Independence<W>>,
    },
    /// Draw a text that a trie makes likelier to be one of the global law.
    Adaptive {
        trie: SharedTrie<W>,
        attempt: Attempt<W>,
        lost: Lost,
    },
    /// Draw from the model without what is known to end in errors, and go back from errors.
    Aligned { sampler: Box<Aprad<W>>, limit: u32 },
}

/// What becomes of a text that has lost all probability on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// Another is begun.
    Redrawn,
    /// None: its weight is zero.
    GivenUp,
}

/// The sampler of one sequence under a [`Law`](super::Law).
#[derive(Debug)]
pub struct Walk<W = f64> {
    stage: WalkStage<W>,
    local: LawTag,
    ends: Arc<[u32]>,
    /// The attempts that failed.
    failed: u32,
    /// The attempt as [`Place`] counts them.
    number: u32,
    /// Of each token of this attempt.
    logs: Vec<Logs>,
    log_probability: f64,
    log_weight: f64,
    /// What steers the surprise of the text, with the bound on that of the next token.
    mirostat: Option<(Mirostat, Ceiling)>,
    /// Which drafts are accepted without a law.
    lossy: Option<TypicalAcceptance>,
}

impl<W: Weight> Walk<W> {
    /// A walk under the local law, or without a constraint. `ends` are the tokens that end a sequence.
    pub fn local(warper: &Warper, constrained: bool, ends: &[u32]) -> Self {
        let local = match (warper.is_greedy(), constrained, warper.is_filtered()) {
            (true, _, _) => LawTag::Greedy,
            (false, false, false) => LawTag::Raw,
            (false, false, true) => LawTag::RawFiltered,
            (false, true, false) => LawTag::Local,
            (false, true, true) => LawTag::LocalFiltered,
        };
        let mirostat = warper.mirostat();
        Walk {
            mirostat: mirostat.map(|mirostat| (mirostat, mirostat.first())),
            ..Self::at(WalkStage::Local, local, ends.into())
        }
    }

    /// A walk under the global law, of at most `attempts` attempts. The trie must belong to this model,
    /// prompt, warping, constraint and greatest length, and may be shared with other walks of that key.
    pub fn global(trie: SharedTrie<W>, attempts: u32, fallback: Fallback) -> Self {
        let (number, attempt, ends) = {
            let mut trie = lock(&trie);
            let (number, attempt) = begin(&mut trie);
            (number, attempt, trie.ends().clone())
        };
        let stage = WalkStage::Attempt {
            trie,
            attempt,
            limit: attempts,
            fallback,
        };
        Walk {
            number,
            ..Self::at(stage, LawTag::GlobalWeighted, ends)
        }
    }

    /// A walk that draws a text under the bounds that others over the same trie have left, and leaves its
    /// own; see [`Attempt::adaptive`].
    pub fn adaptive(trie: SharedTrie<W>) -> Self {
        Self::drawn_by(trie, Lost::Redrawn, LawTag::Asap)
    }

    /// A walk of a particle whose tokens are drawn in proportion to `p·θ`, as [`Twisted`](super::Twisted)
    /// does: the same as [`adaptive`](Self::adaptive), but a text that has lost all probability is not begun
    /// anew, because its weight is zero.
    pub fn twisted(trie: SharedTrie<W>) -> Self {
        Self::drawn_by(trie, Lost::GivenUp, LawTag::Smc)
    }

    fn drawn_by(trie: SharedTrie<W>, lost: Lost, tag: LawTag) -> Self {
        let (number, attempt, ends) = {
            let mut trie = lock(&trie);
            let number = trie.attempts();
            (number, Attempt::adaptive(&mut trie, number), trie.ends().clone())
        };
        let stage = WalkStage::Adaptive { trie, attempt, lost };
        Walk {
            number,
            ..Self::at(stage, tag, ends)
        }
    }

    /// A walk under approximately aligned decoding, which goes back at most `errors` times. `ends` are the
    /// tokens that end a sequence. After [`Step::Restart`] it is at [`position`](Self::position), which may
    /// be behind the prompt: the tokens before it are kept.
    pub fn aligned(sampler: Aprad<W>, errors: u32, ends: &[u32]) -> Self {
        let stage = WalkStage::Aligned {
            sampler: Box::new(sampler),
            limit: errors,
        };
        Self::at(stage, LawTag::Aprad, ends.into())
    }

    /// A walk that goes on from here by itself. Its draws must come from another sequence of the chooser. One
    /// that has drawn nothing under the global law begins an attempt of its own over the same trie.
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut fork = Walk {
            stage: self.stage.clone(),
            ends: self.ends.clone(),
            logs: self.logs.clone(),
            ..*self
        };
        if self.logs.is_empty() && !matches!(self.stage, WalkStage::Chain { .. }) {
            fork.begin();
        }
        fork
    }

    /// Goes back to the place where this attempt had drawn `position` tokens; false, and nothing changed, if
    /// it has not, or if this is in the middle of an attempt of the global law, which is a sample only as a
    /// whole. What is drawn from then on is drawn from new random numbers.
    pub fn rewind(&mut self, position: u32) -> bool {
        let drawn = self.logs.len();
        if position as usize > drawn || position > 0 && !self.is_certain() {
            return false;
        }
        self.number = self.number.wrapping_add(1);
        self.begin();
        self.keep(position as usize);
        if let (Some(ceiling), Some((_, current))) = (self.ceiling_at(position), &mut self.mirostat) {
            *current = ceiling;
        }
        true
    }

    /// Forgets all but the first tokens of what was drawn.
    fn keep(&mut self, tokens: usize) {
        self.logs.truncate(tokens);
        let sum = |(all, kept), one: &Logs| (all + one.token, kept + one.kept);
        (self.log_probability, self.log_weight) = self.logs.iter().fold((0.0, 0.0), sum);
    }

    /// Begins an attempt of its own, if it makes any.
    fn begin(&mut self) {
        match &mut self.stage {
            WalkStage::Attempt { trie, attempt, .. } => (self.number, *attempt) = begin(&mut lock(trie)),
            WalkStage::Adaptive { trie, attempt, .. } => {
                let mut trie = lock(trie);
                self.number = trie.attempts();
                *attempt = Attempt::adaptive(&mut trie, self.number);
            }
            WalkStage::Aligned { sampler, .. } => sampler.begin(),
            WalkStage::Chain { trie, chain } => {
                (self.number, _) = begin(&mut lock(trie));
                chain.begin(self.number);
            }
            WalkStage::Local | WalkStage::Weighted => (),
        }
    }

    /// The bound on the surprise of the token at this position of what was drawn; `None` without
    /// [`Mirostat`].
    pub fn ceiling_at(&self, position: u32) -> Option<Ceiling> {
        let (mirostat, _) = self.mirostat?;
        let drawn = self.logs.iter().take(position as usize);
        Some(drawn.fold(mirostat.first(), |ceiling, logs| mirostat.next(ceiling, *logs)))
    }

    fn at(stage: WalkStage<W>, local: LawTag, ends: Arc<[u32]>) -> Self {
        Walk {
            stage,
            local,
            ends,
            failed: 0,
            number: 0,
            logs: Vec::new(),
            log_probability: 0.0,
            log_weight: 0.0,
            mirostat: None,
            lossy: None,
        }
    }

    /// The same walk, which accepts drafts that are typical, so that its text has no law but the tag
    /// [`LawTag::Lossy`]. Only the local law is given up so; a walk under another stays as it is, and so does
    /// a greedy one, whose law leaves one token to accept.
    #[must_use]
    pub fn lossy(self, accepts: TypicalAcceptance) -> Self {
        let draws = matches!(self.stage, WalkStage::Local) && self.local != LawTag::Greedy;
        Walk {
            lossy: Some(accepts).filter(|_| draws),
            ..self
        }
    }

    /// The law of the sample if it is accepted at the present stage.
    pub fn tag(&self) -> LawTag {
        match self.stage {
            WalkStage::Attempt { .. } => LawTag::GlobalExact,
            WalkStage::Chain { .. } => LawTag::Mcmc,
            _ if self.lossy.is_some() => LawTag::Lossy,
            _ => self.local,
        }
    }

    /// The number of tokens drawn in this attempt.
    pub fn position(&self) -> u32 {
        self.logs.len() as u32
    }

    /// Where the next token is drawn.
    pub fn place(&self) -> Place {
        Place::new(self.number, self.position())
    }

    /// Where the token is drawn that follows `more` further tokens of this attempt. A draw depends on its
    /// place alone, so the rows of a draft can be drawn from all at once, before it is known which of them
    /// the text reaches.
    pub fn place_after(&self, more: u32) -> Place {
        Place::new(self.number, self.position().saturating_add(more))
    }

    /// The step of a token that was drawn elsewhere, from the masked row of this place
    /// ([`place`](Self::place)); `None`, and nothing done, in the middle of an attempt of the global law,
    /// which decides more than a token.
    pub fn take(&mut self, drawn: Drawn<W>) -> Option<Step<W>> {
        if !self.is_certain() {
            return None;
        }
        self.advance(&drawn);
        Some(self.step_of(drawn))
    }

    /// Teaches the trie, under a law that has one, what the rows of a drafted tree say; see
    /// [`Attempt::harvest`]. To be asked before the step at this place.
    ///
    /// # Errors
    /// The first that `rows` returns.
    pub fn harvest<'m, R, E>(
        &mut self,
        tree: &[(Option<usize>, u32)],
        rows: impl FnMut(Option<usize>) -> Result<Option<(R, Allowed<'m>)>, E>,
    ) -> Result<(), E>
    where
        R: Row<W>,
    {
        match &mut self.stage {
            WalkStage::Attempt { trie, attempt, .. } | WalkStage::Adaptive { trie, attempt, .. } => {
                attempt.harvest(&mut lock(trie), tree, rows)
            }
            // The weights of a chain are those of the trie as it was. What is known of errors is not of
            // masks.
            WalkStage::Chain { .. } | WalkStage::Aligned { .. } | WalkStage::Local | WalkStage::Weighted => {
                Ok(())
            }
        }
    }

    /// The step of a token that is asked about, in place of being in a mask that nobody knows; `allowed` is
    /// what is known, and may hold more. The token is of the local law of what is allowed, and its weight is
    /// an estimate of the mass of that; see [`asked`]. Under a law that draws more than a token, and with
    /// [`Mirostat`], this is [`LawError::NeedsMask`].
    pub fn next_asked<R, C>(
        &mut self,
        row: &R,
        allowed: Allowed<'_>,
        ask: &mut (impl Ask + ?Sized),
        chooser: &mut C,
    ) -> Step<W>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        if !self.is_certain() || self.mirostat.is_some() {
            return Step::Stuck(LawError::NeedsMask);
        }
        let position = self.position();
        let Some(drawn) = asked(row, allowed, ask, self.place(), chooser) else {
            return Step::Stuck(LawError::NoMass { position });
        };
        self.advance(&drawn);
        self.step_of(drawn)
    }

    /// The tokens that end a sequence.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// How many attempts have failed; under approximately aligned decoding, how often the text went back.
    pub fn failed_attempts(&self) -> u32 {
        self.failed
    }

    /// Where the attempts ran out and a chain took their place: how many texts it proposes after the first,
    /// and how many it has accepted.
    pub fn moves(&self) -> Option<(u32, u32)> {
        match &self.stage {
            WalkStage::Chain { chain, .. } => Some(chain.moves()),
            _ => None,
        }
    }

    /// `ln P(w)` of the tokens of this attempt under the warped model.
    pub fn log_probability(&self) -> f64 {
        self.log_probability
    }

    /// The log importance weight of the tokens of this attempt, from the tag's law to the global law.
    pub fn log_weight(&self) -> f64 {
        match self.tag() {
            LawTag::Raw | LawTag::GlobalExact => 0.0,
            _ => self.log_weight,
        }
    }

    /// `ln p` and the log of its factor of the weight, for each token of this attempt.
    pub fn rows(&self) -> Vec<(f64, f64)> {
        self.logs.iter().map(|logs| (logs.token, logs.kept)).collect()
    }

    /// Whether the tokens are certain as they are drawn; under the global law only [`Step::End`] makes them
    /// so.
    pub fn is_certain(&self) -> bool {
        matches!(self.stage, WalkStage::Local | WalkStage::Weighted)
    }

    /// A token from the masked row. What is told of it depends on the row, the mask and the token, not on the
    /// rule.
    fn masked<R, C>(&self, row: &R, allowed: Allowed<'_>, rule: &impl Rule<W>, chooser: &mut C) -> Step<W>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        let part = row.part_under(allowed, self.mirostat.map(|(_, ceiling)| ceiling));
        let place = self.place();
        let token = match self.lossy {
            Some(accepts) => rule.choose_lossy(&part, accepts, place, chooser),
            None => rule.choose(&part, place, chooser),
        };
        let Some(token) = token else {
            return Step::Stuck(LawError::NoMass {
                position: place.position,
            });
        };
        let log_probability = row.log_probability(token);
        let (mass, log_mass, log_kept) = (part.mass(), part.log_mass(), part.log_kept());
        let drawn = Drawn {
            token,
            mass,
            log_mass,
            log_probability,
            log_kept,
        };
        self.step_of(drawn)
    }

    fn step_of(&self, drawn: Drawn<W>) -> Step<W> {
        if self.ends.contains(&drawn.token) {
            Step::End(drawn)
        } else {
            Step::Token(drawn)
        }
    }

    fn advance(&mut self, drawn: &Drawn<W>) {
        let weight = match &self.stage {
            WalkStage::Adaptive { attempt, .. } => attempt.factor().ln(),
            _ => drawn.log_kept,
        };
        let logs = Logs {
            token: drawn.log_probability,
            mass: drawn.log_mass,
            kept: weight,
        };
        self.logs.push(logs);
        if let Some((mirostat, ceiling)) = &mut self.mirostat {
            *ceiling = mirostat.next(*ceiling, logs);
        }
        self.log_probability += drawn.log_probability;
        self.log_weight += weight;
    }

    fn fail(&mut self) -> Step<W> {
        let position = self.position();
        self.failed += u32::from(!matches!(self.stage, WalkStage::Chain { .. }));
        self.number = self.number.wrapping_add(1);
        self.logs.clear();
        self.log_probability = 0.0;
        self.log_weight = 0.0;
        if let WalkStage::Chain { .. } = &self.stage {
            self.begin();
            return Step::Restart;
        }
        if let WalkStage::Adaptive {
            lost: Lost::GivenUp, ..
        } = &self.stage
        {
            return Step::Stuck(LawError::NoMass { position });
        }
        if let WalkStage::Adaptive { trie, .. } = &self.stage {
            let is_hopeless = lock(trie).is_hopeless();
            self.begin();
            return match is_hopeless {
                true => Step::Stuck(LawError::Exhausted {
                    attempts: self.failed,
                }),
                false => Step::Restart,
            };
        }
        let WalkStage::Attempt {
            trie: shared,
            attempt,
            limit,
            fallback,
        } = &mut self.stage
        else {
            return Step::Restart;
        };
        let mut trie = lock(shared);
        if self.failed < *limit && !trie.is_hopeless() {
            (self.number, *attempt) = begin(&mut trie);
            return Step::Restart;
        }
        if *fallback == Fallback::Fail || trie.is_hopeless() {
            return Step::Stuck(LawError::Exhausted {
                attempts: self.failed,
            });
        }
        // Like an attempt, it has its number for itself: others that share the trie may have the same seed.
        (self.number, _) = begin(&mut trie);
        let next = match *fallback {
            Fallback::Chain { steps } => {
                let chain = Box::new(Independence::new(&trie, steps, self.number));
                Some((chain, shared.clone()))
            }
            _ => None,
        };
        drop(trie);
        self.stage = match next {
            Some((chain, trie)) => WalkStage::Chain { trie, chain },
            None => WalkStage::Weighted,
        };
        Step::Restart
    }
}

impl<W: Weight> Sampler<W> for Walk<W> {
    fn next<R, C>(&mut self, row: &R, allowed: Allowed<'_>, chooser: &mut C) -> Step<W>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        self.next_by(row, allowed, &DrawRule, chooser)
    }

    fn next_by<R, C>(
        &mut self,
        row: &R,
        allowed: Allowed<'_>,
        rule: &impl Rule<W>,
        chooser: &mut C,
    ) -> Step<W>
    where
        R: Row<W>,
        C: Chooser<W> + ?Sized,
    {
        let step = match &mut self.stage {
            WalkStage::Attempt { trie, attempt, .. } | WalkStage::Adaptive { trie, attempt, .. } => {
                attempt.next(&mut lock(trie), row, allowed, chooser)
            }
            WalkStage::Aligned { sampler, limit } => match sampler.step(row, allowed, *limit, chooser) {
                Ok(Aligned::Drawn(drawn)) => self.step_of(drawn),
                Ok(Aligned::Back { kept }) => {
                    self.failed = self.failed.saturating_add(1);
                    self.keep(kept);
                    return Step::Restart;
                }
                Err(why) => Step::Stuck(why),
            },
            WalkStage::Chain { chain, .. } => chain.next(row, allowed, chooser).unwrap_or_else(|| {
                let attempts = self.failed;
                Step::Stuck(LawError::Exhausted { attempts })
            }),
            _ => self.masked(row, allowed, rule, chooser),
        };
        match &step {
            Step::Token(drawn) | Step::End(drawn) => self.advance(drawn),
            Step::Restart => return self.fail(),
            Step::Stuck(_) => {}
        }
        step
    }
}

/// Begins an attempt with the number that the trie gives it. Walks with the same seed may share a trie: if
/// each counted its own attempts, the draws of a later one would be those that taught the trie, and the law
/// would be another.
fn begin<W: Weight>(trie: &mut Trie<W>) -> (u32, Attempt<W>) {
    let number = trie.attempts();
    (number, Attempt::begin(trie, number))
}

/// A walk that panicked elsewhere leaves the trie at worst without its last lessons, which no law depends on.
fn lock<W>(trie: &SharedTrie<W>) -> MutexGuard<'_, Trie<W>> {
    trie.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
