//! The walk of one sequence: draws its next token, and keeps the numbers that the sample will report.
//!
//! ```text
//!   local:    Token Token Token … End
//!   global:   Token Token Restart        attempt 0 failed: back to the prompt
//!             Token Restart              attempt 1
//!             Token Token Token End      attempt 2: accepted, the answer
//!   adaptive: Token Token Token … End    like local, with what others have learned
//!   aligned:  Token Token Restart        an error: back to where it weighs, which may be after the prompt
//!             Token Token End
//! ```
//!
//! The decode loop owns the model; it calls [`Walk::next`] once for every token and does what the [`Step`]
//! says. All draws are at the place (attempt, position), so a walk that is fed the same rows takes the same
//! steps. Attempts are counted by the trie: see [`Walk::place`].

mod filters;

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

/// A trie shared by all walks with one key; see [`Trie`].
type SharedTrie<W> = Arc<Mutex<Trie<W>>>;

#[derive(Clone, Debug)]
enum WalkStage<W> {
    /// Draw from the masked rows.
    Local,
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
    /// Draw from the model without the prefixes known to end in errors, and go back from errors.
    Aligned { sampler: Box<Aprad<W>>, limit: u32 },
}

/// The treatment of a text that has lost all probability on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// Another text is begun.
    Redrawn,
    /// No text is returned: its weight is zero.
    GivenUp,
}

/// The sampler of one sequence under a [`Law`](super::Law).
#[derive(Debug)]
pub struct Walk<W = f64> {
    stage: WalkStage<W>,
    local: LawTag,
    ends: Arc<[u32]>,
    /// The number of attempts that failed.
    failed: u32,
    /// The number of the attempt, as in [`Place`].
    number: u32,
    /// The logs of each token of this attempt.
    logs: Vec<Logs>,
    log_probability: f64,
    log_weight: f64,
    /// The parameters of Mirostat, and the bound for the next token.
    mirostat: Option<(Mirostat, Ceiling)>,
    /// The rule by which drafts are accepted without the exact law.
    lossy: Option<TypicalAcceptance>,
    /// `true` if filters cut its rows before the mask.
    is_filtered: bool,
}

impl<W: Weight> Walk<W> {
    /// Creates a walk under the local law, or without a constraint. `ends` are the tokens that end a
    /// sequence.
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

    /// Creates a walk under the global law, of at most `attempts` attempts. The trie must belong to this
    /// model, prompt, warping, constraint and greatest length, and may be shared with other walks of that
    /// key.
    pub fn global(trie: SharedTrie<W>, attempts: u32, fallback: Fallback) -> Self {
        let ends = lock(&trie).ends().clone();
        let (number, attempt) = begin(&mut lock(&trie));
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

    /// Creates a walk that draws a text under the bounds that others over the same trie have left, and adds
    /// its own; see [`Attempt::adaptive`].
    pub fn adaptive(trie: SharedTrie<W>) -> Self {
        Self::drawn_by(trie, Lost::Redrawn, LawTag::Asap)
    }

    /// Creates the walk of a particle whose tokens are drawn in proportion to `p·θ`
    /// ([`TokenProposal::Twisted`](super::TokenProposal)). It is like [`adaptive`](Self::adaptive), but a
    /// text that has lost all probability is not begun again, because its weight is zero.
    pub fn twisted(trie: SharedTrie<W>) -> Self {
        Self::drawn_by(trie, Lost::GivenUp, LawTag::Smc)
    }

    fn drawn_by(trie: SharedTrie<W>, lost: Lost, tag: LawTag) -> Self {
        let ends = lock(&trie).ends().clone();
        let (number, attempt) = begin_adaptive(&mut lock(&trie));
        let stage = WalkStage::Adaptive { trie, attempt, lost };
        Walk {
            number,
            ..Self::at(stage, tag, ends)
        }
    }

    /// Creates a walk under approximately aligned decoding, which goes back at most `errors` times. `ends`
    /// are the tokens that end a sequence. After [`Step::Restart`] it is at [`position`](Self::position),
    /// which may be after the prompt: the tokens before it are kept.
    pub fn aligned(sampler: Aprad<W>, errors: u32, ends: &[u32]) -> Self {
        let stage = WalkStage::Aligned {
            sampler: Box::new(sampler),
            limit: errors,
        };
        Self::at(stage, LawTag::Aprad, ends.into())
    }

    /// Returns a walk that continues from here independently. Its draws must come from another sequence of
    /// the chooser. A fork of a walk that has drawn nothing under the global law begins a new attempt over
    /// the same trie.
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

    /// Goes back to where this attempt had drawn `position` tokens. Returns `false`, and changes nothing, if
    /// it has drawn fewer, or if this is in the middle of an attempt of the global law, which is a sample
    /// only as a whole. Later draws use new random numbers.
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

    /// Drops all but the first `tokens` tokens drawn.
    fn keep(&mut self, tokens: usize) {
        self.logs.truncate(tokens);
        let sum = |(all, kept), one: &Logs| (all + one.token, kept + one.kept);
        (self.log_probability, self.log_weight) = self.logs.iter().fold((0.0, 0.0), sum);
    }

    /// Begins a new attempt, if the stage makes any.
    fn begin(&mut self) {
        match &mut self.stage {
            WalkStage::Attempt { trie, attempt, .. } => (self.number, *attempt) = begin(&mut lock(trie)),
            WalkStage::Adaptive { trie, attempt, .. } => {
                (self.number, *attempt) = begin_adaptive(&mut lock(trie));
            }
            WalkStage::Aligned { sampler, .. } => sampler.begin(),
            WalkStage::Chain { trie, chain } => {
                (self.number, _) = begin(&mut lock(trie));
                chain.begin(self.number);
            }
            WalkStage::Local => (),
        }
    }

    /// Returns the bound on the surprise of the token at this position of the answer; `None` without
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
            is_filtered: false,
        }
    }

    /// Returns this walk with lossy acceptance: it accepts typical drafts, so its text has the tag
    /// [`LawTag::Lossy`] and no exact law. Only the local law can be given up this way; a walk under another
    /// law does not change, and neither does a greedy one, whose law leaves one token to accept.
    #[must_use]
    pub fn lossy(self, accepts: TypicalAcceptance) -> Self {
        let draws = matches!(self.stage, WalkStage::Local) && self.local != LawTag::Greedy;
        Walk {
            lossy: Some(accepts).filter(|_| draws),
            ..self
        }
    }

    /// Returns the law of the sample if it is accepted at the present stage.
    pub fn tag(&self) -> LawTag {
        let tag = match self.stage {
            WalkStage::Attempt { .. } => LawTag::GlobalExact,
            WalkStage::Chain { .. } => LawTag::Mcmc,
            _ if self.lossy.is_some() => LawTag::Lossy,
            _ => self.local,
        };
        match self.is_filtered {
            true => tag.filtered(),
            false => tag,
        }
    }

    /// Returns the number of tokens drawn in this attempt.
    pub fn position(&self) -> u32 {
        self.logs.len() as u32
    }

    /// Returns the place at which the next token is drawn.
    pub fn place(&self) -> Place {
        Place::new(self.number, self.position())
    }

    /// Returns the place of the token that follows `more` further tokens of this attempt. A draw depends on
    /// its place alone, so the rows of a draft can be drawn from all at once, before it is known which of
    /// them the text reaches.
    pub fn place_after(&self, more: u32) -> Place {
        Place::new(self.number, self.position().saturating_add(more))
    }

    /// Returns the step of a token that was drawn elsewhere, from the masked row of this place
    /// ([`place`](Self::place)). Returns `None`, and does nothing, in the middle of an attempt of the global
    /// law, which decides more than a token.
    pub fn take(&mut self, drawn: Drawn<W>) -> Option<Step<W>> {
        if !self.is_certain() {
            return None;
        }
        self.advance(&drawn);
        Some(self.step_of(drawn))
    }

    /// Records the rows of a drafted tree in the trie, under a law that has one; see [`Attempt::harvest`].
    /// Call it before the step at this place.
    ///
    /// # Errors
    /// The first error that `rows` returns.
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
            // The weights of a chain are relative to the frozen trie. A trie of errors does not record masks.
            WalkStage::Chain { .. } | WalkStage::Aligned { .. } | WalkStage::Local => Ok(()),
        }
    }

    /// Draws a token by checking single tokens, when the mask is not fully known; `allowed` is the known mask
    /// and may contain more tokens than are allowed. The token has the local law of the allowed tokens, and
    /// its weight is an estimate of their mass; see [`asked`]. Under a law that draws more than a token, and
    /// with [`Mirostat`], this is [`LawError::NeedsMask`].
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

    /// Returns the tokens that end a sequence.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Returns how many attempts have failed; under approximately aligned decoding, how often the text went
    /// back.
    pub fn failed_attempts(&self) -> u32 {
        self.failed
    }

    /// If the attempts ran out and a chain replaced them: returns how many texts the chain proposes after the
    /// first, and how many it has accepted.
    pub fn moves(&self) -> Option<(u32, u32)> {
        match &self.stage {
            WalkStage::Chain { chain, .. } => Some(chain.moves()),
            _ => None,
        }
    }

    /// Returns `ln P(w)` of the tokens of this attempt under the warped model.
    pub fn log_probability(&self) -> f64 {
        self.log_probability
    }

    /// Returns the log importance weight of the tokens of this attempt, from the tag's law to the global law.
    pub fn log_weight(&self) -> f64 {
        match self.tag() {
            LawTag::Raw | LawTag::GlobalExact | LawTag::GlobalExactFiltered => 0.0,
            _ => self.log_weight,
        }
    }

    /// Returns `ln p` and the log of its factor of the weight, for each token of this attempt.
    pub fn rows(&self) -> Vec<(f64, f64)> {
        self.logs.iter().map(|logs| (logs.token, logs.kept)).collect()
    }

    /// Returns `true` if the tokens are certain as soon as they are drawn; under the global law only
    /// [`Step::End`] makes them certain.
    pub fn is_certain(&self) -> bool {
        matches!(self.stage, WalkStage::Local)
    }

    /// Draws a token from the masked row. Its reported numbers depend on the row, the mask and the token, not
    /// on the rule.
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

    /// Makes no attempts after the present one: if it fails, the fallback takes over with what has been
    /// learned, if there is one. A chain that has taken over proposes no further texts. A caller with a
    /// deadline calls this while there is time for one more text.
    pub fn hurry(&mut self) {
        match &mut self.stage {
            WalkStage::Attempt { limit, fallback, .. } if *fallback != Fallback::Fail => {
                *limit = (*limit).min(self.failed.saturating_add(1));
            }
            WalkStage::Chain { chain, .. } => chain.hurry(),
            _ => (),
        }
    }

    fn fail(&mut self) -> Step<W> {
        let position = self.position();
        self.failed += u32::from(!matches!(self.stage, WalkStage::Chain { .. }));
        self.number = self.number.wrapping_add(1);
        self.keep(0);
        match &self.stage {
            WalkStage::Attempt { .. } => return self.next_attempt(),
            WalkStage::Adaptive {
                lost: Lost::GivenUp, ..
            } => return Step::Stuck(LawError::NoMass { position }),
            WalkStage::Adaptive { trie, .. } if lock(trie).is_hopeless() => return self.exhausted(),
            WalkStage::Adaptive { .. } | WalkStage::Chain { .. } => self.begin(),
            WalkStage::Aligned { .. } | WalkStage::Local => (),
        }
        Step::Restart
    }

    /// Begins the next attempt, or, if there are no more, the text that takes the place of an accepted one.
    fn next_attempt(&mut self) -> Step<W> {
        let WalkStage::Attempt {
            trie,
            limit,
            fallback,
            ..
        } = &self.stage
        else {
            return Step::Restart;
        };
        let (trie, fallback, is_last) = (trie.clone(), *fallback, self.failed >= *limit);
        let is_hopeless = lock(&trie).is_hopeless();
        match fallback {
            _ if is_hopeless => return self.exhausted(),
            _ if !is_last => self.begin(),
            Fallback::Fail => return self.exhausted(),
            Fallback::Weighted => {
                let (number, attempt) = begin_adaptive(&mut lock(&trie));
                self.number = number;
                self.stage = WalkStage::Adaptive {
                    trie,
                    attempt,
                    lost: Lost::Redrawn,
                };
            }
            Fallback::Chain { steps } => {
                // Like an attempt, it has a unique number: other walks that share the trie may have the same
                // seed.
                (self.number, _) = begin(&mut lock(&trie));
                let chain = Box::new(Independence::new(&lock(&trie), steps, self.number));
                self.stage = WalkStage::Chain { trie, chain };
            }
        }
        Step::Restart
    }

    fn exhausted(&self) -> Step<W> {
        let attempts = self.failed;
        Step::Stuck(LawError::Exhausted { attempts })
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
            WalkStage::Chain { chain, .. } => {
                let step = chain.next(row, allowed, chooser);
                step.unwrap_or_else(|| self.exhausted())
            }
            WalkStage::Local => self.masked(row, allowed, rule, chooser),
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
/// each counted its own attempts, a later walk would reuse the draws that the trie has learned from, and the
/// law would change.
fn begin<W: Weight>(trie: &mut Trie<W>) -> (u32, Attempt<W>) {
    let number = trie.attempts();
    (number, Attempt::begin(trie, number))
}

/// Begins a text that does not fail, with the number that the trie gives it.
fn begin_adaptive<W: Weight>(trie: &mut Trie<W>) -> (u32, Attempt<W>) {
    let number = trie.attempts();
    (number, Attempt::adaptive(trie, number))
}

/// Locks the trie. If a walk panicked elsewhere, the trie lacks at worst that walk's last updates, on which
/// no law depends.
fn lock<W>(trie: &SharedTrie<W>) -> MutexGuard<'_, Trie<W>> {
    trie.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
