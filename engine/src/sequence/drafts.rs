//! The drafts that a sequence feeds after its text, how they are selected before the pass, and what the
//! sequence remembers of that.

use super::{Phase, Sequence};
use crate::grammar::masks::Finder;
use crate::grammar::outlook::{Outlook, draft_room};
use crate::request::{Speculation, Verification};
use crate::speculation::class::StateClass;
use crate::speculation::draft::Draft;
use crate::speculation::draws::{Draws, Tempering};
use crate::speculation::policy::Policy;
use crate::speculation::policy::stakes::Odds;
use crate::speculation::store::Store;
use lexiform_law::Seeded;
use lexiform_law::draft::NodeId;
use std::sync::Arc;

/// The maximum number of given tokens that are fed in one pass.
const GIVEN: usize = 64;
/// The number of draws between two checks of the memory of a grammar: the check is cheap but not free.
const RENEWED_EVERY: usize = 16;
/// The number of work rounds that counting the allowed tokens may take.
const BRIEF: usize = 1 << 11;

impl Sequence {
    /// Keeps some of its drafts; the parent of each kept draft must be kept, too.
    pub(crate) fn keep_drafts(&mut self, is_kept: &[bool]) {
        if is_kept.iter().all(|is_kept| *is_kept) {
            return;
        }
        let mut places = Vec::with_capacity(is_kept.len());
        let mut kept = Vec::new();
        for (draft, is_kept) in std::mem::take(&mut self.draft.drafts).into_iter().zip(is_kept) {
            places.push(kept.len());
            if *is_kept {
                let parent = draft.parent.map(|parent| places[parent]);
                kept.push(Draft { parent, ..draft });
            }
        }
        self.draft.drafts = kept;
        if let Some(masks) = &mut self.grammar.masks {
            let mut rows = std::iter::once(true).chain(is_kept.iter().copied());
            masks.retain(|_| rows.next().unwrap_or(true));
        }
    }

    /// Returns the number of tokens that may be drafted.
    pub(crate) fn room(&self) -> usize {
        draft_room(&self.request.speculation, self.remaining())
    }

    /// Records which of the offered drafts are fed.
    pub(crate) fn hear_of_drafts(&mut self, are_fed: &[bool]) {
        self.draft.rests.hear(&self.draft.drafts, are_fed);
    }

    /// Records that `count` drafts are fed in the next pass.
    pub(crate) fn feeds_drafts(&mut self, count: usize) {
        if count > 0 {
            self.draft.rests.end_quiet();
        }
    }

    /// Returns `true` if it has no drafts, and will hardly have any after the next draw. A window of guesses
    /// is fed with every token.
    pub(crate) fn is_quiet(&self) -> bool {
        let drafts = self.request.speculation.drafts();
        self.draft.drafts.is_empty()
            && self.draft.window.is_none()
            && (!drafts || self.draft.rests.is_quiet())
    }

    /// Weighs these nodes below the node of the request's options where the text is; parents come before
    /// their children.
    pub(crate) fn weigh(&mut self, root: usize, nodes: Vec<usize>) {
        if !self.report.closed {
            self.phase = Phase::Weighing { root, nodes };
            (self.grammar.is_due, self.grammar.masks) = (true, None);
        }
    }

    /// Returns the options to feed after the text as drafts: the token of each, and its parent draft.
    pub(super) fn tree(&self) -> Option<Vec<(u32, Option<NodeId>)>> {
        let options = self.request.task.options()?;
        let Phase::Weighing { root, nodes } = &self.phase else {
            return None;
        };
        let draft = |&node: &usize| {
            let parent = options.parent(node);
            let before = (parent != *root).then(|| nodes.binary_search(&parent).ok());
            (options.token(node), before.flatten())
        };
        Some(nodes.iter().map(draft).collect())
    }

    /// Returns the token that lookup would have drafted next, if nothing was drafted.
    pub(crate) fn guess(&self) -> Option<u32> {
        let has_drafts = !self.draft.drafts.iter().all(Draft::is_guess);
        let lookup = self.draft.lookup.as_ref().filter(|_| !has_drafts)?;
        lookup.guess(self.prompt_and_answer())
    }

    /// Records a whole answer in the store of its owner; returns `true` if it is whole and there is a store.
    /// An answer that failed or was cancelled says little about others.
    pub(crate) fn teach_answer(&self) -> bool {
        let store = self.draft.store.as_ref().filter(|_| self.report.is_whole());
        store.inspect(|store| store.record(self.generated())).is_some()
    }

    /// Reports the fate of its drafts to a policy, and lets the policy choose which of the next ones are fed.
    pub(crate) fn consult(&mut self, policy: &mut Policy) {
        policy.hear(&mut self.draft.record);
        if policy.is_to_play(&self.draft.record) {
            let class = self.class();
            policy.play(class, &mut self.draft.record);
        }
    }

    /// Returns the class of the text's current state.
    fn class(&mut self) -> StateClass {
        let Some((grammar, state)) = self.request.constraints.grammar.as_ref().zip(self.grammar.state) else {
            return StateClass::Text;
        };
        let answer = &self.text.tokens[self.request.prompt.tokens.len()..];
        let reader = self.draft.record.standing.follow(answer, grammar.vocabulary());
        // The mask is needed for the pass in any case; one that takes long is computed elsewhere.
        reader.class(None, || lexiform::briefly(BRIEF, || grammar.mask(state).count()))
    }

    /// Returns the stores that it drafts from: that of its siblings, which is closer, and that of earlier
    /// answers.
    fn drafted_from(&self) -> impl Iterator<Item = &Arc<Store>> {
        let store = self
            .draft
            .store
            .iter()
            .filter(|_| self.request.speculation.learned);
        self.draft
            .siblings
            .iter()
            .chain(store)
            .filter(|_| self.draft.rests.looks_up())
    }

    /// Returns the stores that learn from its rows.
    pub(crate) fn teaches(&self) -> impl Iterator<Item = &Arc<Store>> {
        let stores = self.draft.siblings.iter().chain(&self.draft.store);
        stores.filter(|store| store.learns())
    }

    /// Returns how tokens that were sampled are verified. At temperature 0 all ways are equivalent, and the
    /// global law's draws involve more than the choice of a token.
    pub(crate) fn verification(&self) -> Verification {
        let by_residual = self.draw.walk.is_certain() && !self.is_asked() && !self.is_watched();
        match by_residual && !self.draw.warper.is_greedy() {
            true => self.request.speculation.verification,
            false => Verification::DrawOnce,
        }
    }

    /// Returns `true` if tokens are drawn from the rows of stores.
    pub(crate) fn draws_drafts(&self) -> bool {
        let samples = self.request.speculation.sampled && self.phase == Phase::Drawing;
        // Guesses share the nodes of drafts, and the work on them would depend on what was drawn.
        let samples = samples && self.draft.window.is_none();
        samples && self.verification() != Verification::DrawOnce
    }

    /// Returns how tokens are drawn from the rows of stores, given the odds of all sequences.
    fn draws(&self, odds: &Odds) -> Option<Draws> {
        let tempering = self
            .draws_drafts()
            .then(|| Tempering::new(self.draw.warper.warping()));
        let tempering = tempering?.ok()?;
        let (chances, copied) = self.draft.record.odds(&odds.drawn, &odds.copied);
        Some(Draws {
            tempering,
            chooser: Seeded::new(self.request.sampling.seed, self.stream()),
            place: Draws::first(self.draw.walk.place_after(0), self.draft.drafted),
            stakes: odds.stakes.clone(),
            chances,
            copied,
        })
    }

    /// Returns what the grammar work needs to know about it; stores offer drafts that are at least this
    /// likely, or draw them by these odds.
    pub(crate) fn outlook(&self, finder: Finder, (least, odds): (f32, &Odds)) -> Outlook {
        let given = match &self.phase {
            Phase::Scoring { given } => &given[..],
            _ => &[],
        };
        Outlook {
            grammar: self.request.constraints.grammar.clone().zip(self.grammar.state),
            renews: self.generated().len().is_multiple_of(RENEWED_EVERY),
            read: self.grammar.read,
            tokens: self.text.tokens.clone(),
            lookup: self.draft.lookup.clone().filter(|_| self.draft.rests.looks_up()),
            copied: self.draft.record.copied(),
            stores: self.drafted_from().cloned().collect(),
            least,
            draws: self.draws(odds),
            prompt: self.request.prompt.tokens.len(),
            remaining: self.remaining(),
            budget: self.budget(),
            preamble: self.grammar.preamble.clone(),
            min_tokens: self.request.limits.min_tokens,
            ends_early: self.ends_early()
                && given.is_empty()
                && !matches!(self.phase, Phase::Weighing { .. }),
            window: self.draft.window.clone().filter(|_| self.phase == Phase::Drawing),
            given: given.iter().copied().take(GIVEN).collect(),
            options: self.tree(),
            speculation: match self.phase {
                Phase::Ranking(_) | Phase::Weighing { .. } => Speculation::none(),
                _ => Speculation {
                    forced: self.request.speculation.forced && self.draft.rests.drafts_forced(),
                    ..self.request.speculation
                },
            },
            drafts: self.draft.drafts.clone(),
            measures: matches!(&self.phase, Phase::Ranking(look) if look.distance),
            finder,
        }
    }
}
