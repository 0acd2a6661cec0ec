//! The view that a grammar has of a sequence between two draws, as plain data that any thread can work on.
//!
//! ```text
//!   drawn token ─ read ─► state ─ only the end left? ─► finish
//!                                └─► drafts, each with its state ─► masks of all rows of the next pass
//! ```
//!
//! Every step of this may be slow with a hostile grammar, so none of it runs on the decode thread.

use crate::error::EngineError;
use crate::grammar::left::Left;
use crate::grammar::masks::{Bounds, Finder};
use crate::request::{PreambleBudget, Speculation};
use crate::speculation::draft::{Draft, Source, child, path, tokens_to};
use crate::speculation::draws::Draws;
use crate::speculation::store::Store;
use crate::speculation::window;
use crate::{Grammar, Mask, State};
use lexiform::vocab::Vocabulary;
use lexiform_law::draft::{JacobiWindow, Lookup, NodeId, Proposal};
use std::sync::Arc;

/// A sequence, as seen by its grammar.
#[derive(Clone)]
pub(crate) struct Outlook {
    /// The grammar, and its state after the tokens that it has read.
    pub(crate) grammar: Option<(Grammar, State)>,
    /// `true` to replace a grammar that has outgrown its memory.
    pub(crate) renews: bool,
    /// The number of tokens that the grammar has read, those of the prompt included.
    pub(crate) read: usize,
    /// The prompt and the answer so far, the unread tokens included.
    pub(crate) tokens: Arc<Vec<u32>>,
    /// The earlier places of these tokens, if drafts are looked up.
    pub(crate) lookup: Option<Arc<Lookup>>,
    /// The number of the last tokens that were copied, one after another as drafted.
    pub(crate) copied: usize,
    /// The stores of earlier text to draft from, the nearest first.
    pub(crate) stores: Vec<Arc<Store>>,
    /// The probability that a token needs to be drafted from a store.
    pub(crate) least: f32,
    /// How tokens are drawn from the rows of stores; `None` if the likeliest are taken.
    pub(crate) draws: Option<Draws>,
    pub(crate) prompt: usize,
    /// The number of tokens that may still be drawn.
    pub(crate) remaining: usize,
    /// The number of these tokens that the masks may spend, the end included; `None` if the masks do not
    /// count.
    pub(crate) budget: Option<usize>,
    /// The tokens that are left for the preamble after the text, the unread tokens included, if they are
    /// limited.
    pub(crate) preamble: Option<PreambleBudget>,
    /// The number of tokens before which no token ends the text where another one may come.
    pub(crate) min_tokens: usize,
    /// `true` if the text is complete as soon as only its end is left.
    pub(crate) ends_early: bool,
    pub(crate) speculation: Speculation,
    pub(crate) drafts: Vec<Draft>,
    /// Guesses that are fed beside the drafts.
    pub(crate) window: Option<JacobiWindow>,
    /// Tokens with which the sequence continues, whatever their probability.
    pub(crate) given: Vec<u32>,
    /// Options to feed below the text: the token of each node, and the node before it. `None` if no options
    /// are to be weighed.
    pub(crate) options: Option<Vec<(u32, Option<NodeId>)>>,
    /// `true` to find how many tokens complete the text.
    pub(crate) measures: bool,
    pub(crate) finder: Finder,
}

/// The result of reading a drawn token.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// The grammar, or its replacement, and its state now.
    pub(crate) grammar: Option<(Grammar, State)>,
    pub(crate) renewed: bool,
    /// Present if only the end is left; `true` if that is because few tokens of the answer are left.
    pub(crate) end: Option<bool>,
    /// The fewest tokens that complete the text, its end included, if requested and known.
    pub(crate) distance: Option<usize>,
    /// The tokens to feed beyond those of the text.
    pub(crate) drafts: Vec<Draft>,
}

/// The most drafts of one pass, whatever a request allows: a tree numbers its nodes by 16 bits.
pub(crate) const MOST_DRAFTED: usize = 1 << 12;

/// Returns how many tokens may be drafted. The last token of the answer needs no draft: a row after it would
/// be wasted.
pub(crate) fn draft_room(speculation: &Speculation, remaining: usize) -> usize {
    let most = speculation.max_draft.min(MOST_DRAFTED);
    most.min(remaining.saturating_sub(1))
}

impl Outlook {
    /// Returns the number of tokens that the masks may spend after these tokens that are not yet drawn.
    pub(crate) fn left(&self, ahead: &[u32]) -> Left {
        let vocabulary = self.grammar.as_ref().map(|(grammar, _)| grammar.vocabulary());
        Left::after(self.budget, self.preamble.as_ref(), ahead, vocabulary)
    }

    /// Returns the state after all drafts; `None` without a grammar.
    pub(crate) fn tip(&self) -> Option<State> {
        let (_, state) = self.grammar.as_ref()?;
        self.drafts.last().map_or(Some(*state), |draft| draft.state)
    }

    /// Returns how many tokens may be drafted.
    pub(crate) fn room(&self) -> usize {
        draft_room(&self.speculation, self.remaining)
    }

    /// Reads the unread tokens, if there are any. A grammar that has outgrown its memory is replaced first,
    /// if requested.
    pub(crate) fn read(&mut self) -> Result<Reading, EngineError> {
        let mut reading = Reading {
            grammar: None,
            renewed: false,
            end: None,
            distance: None,
            drafts: Vec::new(),
        };
        if let Some((grammar, state)) = &mut self.grammar {
            reading.renewed = self.renews && grammar.compact(std::slice::from_mut(state));
            let unread = &self.tokens[self.read..];
            for &token in unread {
                *state = Finder::step(grammar, *state, token)?;
            }
            if !unread.is_empty() {
                self.read = self.tokens.len();
                if self.ends_early && self.only_the_end_is_left(0)? {
                    reading.end = Some(self.bounds(0)?.is_some_and(|bounds| bounds.is_steered()));
                }
            }
        }
        if let (true, Some((grammar, state))) = (self.measures, &self.grammar) {
            reading.distance = grammar.try_min_completion(*state)?;
        }
        reading.grammar.clone_from(&self.grammar);
        Ok(reading)
    }

    /// Returns the number of tokens between the text and what follows a draft, which is counted from 1, or
    /// the text for 0.
    fn depth(&self, drafts: usize) -> usize {
        path(&self.drafts, drafts.checked_sub(1)).len()
    }

    /// Returns the grammar, and its state after a draft, counted from 1, or after the text for 0.
    pub(crate) fn after(&self, drafts: usize) -> Option<(&Grammar, State)> {
        let (grammar, state) = self.grammar.as_ref()?;
        let state = match drafts.checked_sub(1) {
            None => Some(*state),
            Some(last) => self.drafts[last].state,
        };
        Some((grammar, state?))
    }

    /// Returns the tokens that may come after a draft, counted from 1, or after the text for 0.
    pub(crate) fn bounds(&self, drafts: usize) -> Result<Option<Bounds>, EngineError> {
        let depth = self.depth(drafts);
        let goes_on = self.tokens.len() - self.prompt + depth < self.min_tokens;
        let left = self.left(&tokens_to(&self.drafts, drafts.checked_sub(1)));
        let find = |(grammar, state)| self.finder.bounds(grammar, state, (left, goes_on));
        self.after(drafts).map(find).transpose()
    }

    /// Returns `true` if a draft, counted from 1, is only a guess.
    pub(crate) fn is_guess(&self, drafts: usize) -> bool {
        let draft = drafts.checked_sub(1).and_then(|draft| self.drafts.get(draft));
        draft.is_some_and(Draft::is_guess)
    }

    /// Returns the bounds where the grammar has no state: they allow no token. `None` without a grammar.
    pub(crate) fn nothing(&self) -> Option<Bounds> {
        let (grammar, _) = self.grammar.as_ref()?;
        Some(Bounds::nothing(grammar.vocabulary().len()))
    }

    /// Checks whether the grammar leaves only the end, within the answer's tokens, after a draft.
    fn only_the_end_is_left(&self, drafts: usize) -> Result<bool, EngineError> {
        let Some((grammar, _)) = self
            .after(drafts)
            .filter(|(grammar, state)| grammar.is_accepting(*state))
        else {
            return Ok(false);
        };
        // With `min_tokens`, the mask may lack them where other tokens are left.
        let ends = grammar.vocabulary().eos();
        let is_end = |mask: &Mask| mask.count() == ends.len() && ends.iter().all(|&end| mask.contains(end));
        Ok(self.bounds(drafts)?.is_some_and(|bounds| is_end(&bounds.mask)))
    }

    /// Appends a drafted token, and returns `true`, unless the token would be wasted: an end token, one after
    /// which only the end is left (the draw that confirms it ends the text), or one too many for the answer's
    /// tokens.
    pub(crate) fn push(&mut self, draft: Draft, vocabulary: &Vocabulary) -> Result<bool, EngineError> {
        let above = path(&self.drafts, draft.parent);
        let too_many = self.drafts.len() >= self.room() || above.len() + 1 >= self.remaining;
        if too_many || vocabulary.is_eos(draft.token) {
            return Ok(false);
        }
        let state = draft.state;
        self.drafts.push(draft);
        let left = self.left(&tokens_to(&self.drafts, Some(self.drafts.len() - 1)));
        let counted = self.grammar.as_ref().zip(state).zip(left.tokens());
        let too_far =
            counted.is_some_and(|(((grammar, _), state), budget)| !grammar.completes_within(state, budget));
        if too_far || self.ends_early && self.only_the_end_is_left(self.drafts.len())? {
            self.drafts.pop();
            return Ok(false);
        }
        Ok(true)
    }

    /// Turns the given tokens into drafts, as far as the grammar and the tokens left allow them.
    pub(crate) fn take_given(&mut self) -> Result<(), EngineError> {
        for (number, token) in std::mem::take(&mut self.given)
            .into_iter()
            .enumerate()
            .take(self.remaining)
        {
            let is_allowed = self
                .bounds(number)?
                .is_none_or(|bounds| bounds.mask.contains(token));
            if !is_allowed {
                break;
            }
            let state = match self.grammar.as_ref().zip(self.tip()) {
                Some(((grammar, _), state)) if !grammar.vocabulary().is_eos(token) => {
                    Some(Finder::step(grammar, state, token)?)
                }
                _ => None,
            };
            self.drafts.push(Draft {
                token,
                parent: number.checked_sub(1),
                source: Source::Given,
                state,
                proposal: Proposal::Point,
                is_last: false,
            });
            if self.grammar.is_some() && state.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Turns the options into drafts, including those that the grammar forbids: a forbidden one has no state,
    /// and no token is allowed after it.
    pub(crate) fn take_options(&mut self) -> Result<(), EngineError> {
        for (token, parent) in self.options.take().unwrap_or_default() {
            let state = match self.after(parent.map_or(0, |parent| parent + 1)) {
                Some((grammar, state)) => grammar.try_step(state, token)?,
                None => None,
            };
            self.drafts.push(Draft {
                token,
                parent,
                source: Source::Given,
                state,
                proposal: Proposal::Point,
                is_last: false,
            });
        }
        Ok(())
    }

    /// Feeds the guesses of the window below the drafts, sharing the tokens that are drafted already. Forced
    /// text replaces guesses.
    ///
    /// No token is drawn after a guess, so a guess may be a token that the grammar forbids or cannot judge
    /// within its limits. Where the grammar can judge it, the row after it gives the likeliest of the tokens
    /// that may come there.
    pub(crate) fn take_guesses(&mut self) {
        let Some(mut window) = self.window.take() else {
            return;
        };
        window::know_forced(&mut window, &self.drafts);
        for branch in window.branches() {
            let mut node = None;
            for token in branch {
                node = child(&self.drafts, node, token).or_else(|| self.push_guess(node, token));
                if node.is_none() {
                    return;
                }
            }
        }
    }

    fn push_guess(&mut self, parent: Option<NodeId>, token: u32) -> Option<NodeId> {
        if self.drafts.len() >= MOST_DRAFTED {
            return None;
        }
        let before = self.after(parent.map_or(0, |parent| parent + 1));
        self.drafts.push(Draft {
            token,
            parent,
            source: Source::Guessed,
            state: before.and_then(|(grammar, state)| grammar.step(state, token)),
            proposal: Proposal::Point,
            is_last: true,
        });
        Some(self.drafts.len() - 1)
    }

    /// Appends drafts below a draft, each below the previous one, up to the first that the grammar forbids or
    /// after which there is nothing to draft or to draw.
    pub(crate) fn extend_along(
        &mut self,
        mut parent: Option<NodeId>,
        drafts: impl Iterator<Item = Draft>,
        vocabulary: &Vocabulary,
    ) -> Result<(), EngineError> {
        for draft in drafts {
            let is_allowed = match self.after(parent.map_or(0, |parent| parent + 1)) {
                Some((grammar, state)) => grammar.try_step(state, draft.token)?.is_some(),
                None => true,
            };
            let node = self.drafts.len();
            if !is_allowed || !self.extend(vec![Draft { parent, ..draft }], vocabulary)? {
                break;
            }
            parent = Some(node);
        }
        Ok(())
    }

    /// Appends tokens that a draft model proposes as siblings below one of the drafts. Returns `true` if
    /// there is something to draft or to draw after the first. Of the others, those are kept after which
    /// there is something to draw, and all that were sampled: a rule needs to know every draw, in the order
    /// in which they were drawn.
    pub(crate) fn extend(
        &mut self,
        candidates: Vec<Draft>,
        vocabulary: &Vocabulary,
    ) -> Result<bool, EngineError> {
        let mut goes_on = false;
        for (number, candidate) in candidates.into_iter().enumerate() {
            let state = match self.after(candidate.parent.map_or(0, |parent| parent + 1)) {
                Some((grammar, state)) => Some(Finder::step(grammar, state, candidate.token)?),
                None => None,
            };
            let draft = Draft {
                state,
                is_last: false,
                ..candidate.clone()
            };
            let is_taken = self.push(draft, vocabulary)?;
            goes_on |= number == 0 && is_taken;
            if !is_taken && candidate.proposal.is_sampled() {
                self.drafts.push(candidate);
            }
        }
        Ok(goes_on)
    }
}
