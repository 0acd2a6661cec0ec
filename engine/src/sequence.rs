//! One branch of a request in progress: plain data, moved between the scheduler's queues.

mod allowed;
pub(crate) mod amateur;
mod drafts;
pub(crate) mod job;
mod outcome;
pub(crate) mod parts;
pub(crate) mod past;
pub(crate) mod replay;
pub(crate) mod report;
mod rests;
pub(crate) mod steering;
pub(crate) mod tries;
pub(crate) mod watch;

use crate::Grammar;
use crate::blocks::{Blocks, Scope, Table};
use crate::error::EngineError;
use crate::fairness::room::Place;
use crate::grammar::left::Left;
use crate::grammar::outlook::Reading;
use crate::grammar::reply::{Brought, Reply};
use crate::request::driver::{Branch, Look};
use crate::request::law;
use crate::request::{Event, Finish, OnBudget, PreambleBudget, Request};
use crate::sequence::amateur::Amateur;
use crate::sequence::parts::{DraftState, DrawState, GrammarState, TextState};
use crate::sequence::past::{Past, Sparing};
use crate::sequence::report::{Ending, ReportState};
use crate::sequence::steering::Narrowing;
use crate::sequence::tries::SharedTrie;
use crate::speculation::draft;
use lexiform_law::draft::{NodeId, Text};
use lexiform_law::{Walk, Warper};
use std::sync::Arc;
use std::time::Duration;

/// The time after which a grammar task counts as slow, and its sequence begins to cool down.
const SLOW_TASK: Duration = Duration::from_millis(2);
/// The number of consecutive quick grammar tasks after which a slow one is forgiven.
const COOLDOWN: u8 = 16;

/// The activity of a branch in the next pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing: its driver has not ordered anything yet.
    Waiting,
    /// Reads the text into the cache up to its last token.
    Reading,
    /// Draws the next token.
    Drawing,
    /// Continues with given tokens.
    Scoring {
        /// The tokens that are left.
        given: Vec<u32>,
    },
    /// Ranks its row, and draws no token.
    Ranking(Look),
    /// Feeds options below the text, and weighs them.
    Weighing {
        /// The node of the options where the text is.
        root: usize,
        /// The nodes that are fed below it.
        nodes: Vec<usize>,
    },
}

/// The numbers of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BranchId {
    /// The number of the sequence, unique across all branches of all requests.
    pub(crate) number: u64,
    /// The request that it is a branch of.
    pub(crate) job: u64,
    /// The number of the branch in the request.
    pub(crate) branch: Branch,
}

/// A branch of a request with all its state.
pub(crate) struct Sequence {
    pub(crate) id: BranchId,
    pub(crate) request: Request,
    pub(crate) phase: Phase,
    pub(crate) text: TextState,
    /// The second text, if the rows are a contrast.
    pub(crate) amateur: Option<Amateur>,
    pub(crate) grammar: GrammarState,
    pub(crate) draft: DraftState,
    pub(crate) draw: DrawState,
    pub(crate) report: ReportState,
}

impl Sequence {
    /// Returns the first branch of a request.
    pub(crate) fn new(job: u64, mut request: Request, (warper, walk): (Warper, Walk), place: Place) -> Self {
        Sequence {
            id: BranchId {
                number: 0,
                job,
                branch: 0,
            },
            phase: Phase::Waiting,
            text: TextState::new(&request.prompt.tokens),
            amateur: request.sampling.contrast.as_ref().and_then(Amateur::of),
            grammar: GrammarState::new(&request),
            draft: DraftState::new(&mut request),
            draw: DrawState::new(Sparing::of(&request, &warper), warper, walk),
            report: ReportState::new(place),
            request,
        }
    }

    /// Sets the texts that its own may share blocks with, before it has any.
    pub(crate) fn share_within(&mut self, scope: &Scope) {
        self.text.table = Table::of(scope.clone());
        if let Some(amateur) = &mut self.amateur {
            amateur.table = Table::of(scope.clone());
        }
    }

    /// Returns another branch of the same request that begins with the first `at` tokens of this one's
    /// answer, and reads them from the same blocks.
    ///
    /// # Errors
    /// Fails if this branch has fewer tokens, or is in the middle of an attempt.
    pub(crate) fn fork(&self, branch: Branch, at: usize, blocks: &mut Blocks) -> Result<Self, EngineError> {
        let mut fork = Sequence {
            id: BranchId { branch, ..self.id },
            request: self.request.clone(),
            phase: Phase::Waiting,
            text: self.text.fork(),
            amateur: None,
            grammar: self.grammar.fork(),
            draft: self.draft.fork(),
            draw: self.draw.fork(&self.request),
            report: self.report.fork(),
        };
        if at != self.generated().len() {
            fork.go_back(at)?;
        }
        fork.text.computed = self.text.computed.min(fork.text.tokens.len() - 1);
        fork.text.table = blocks.fork(&self.text.table, fork.text.computed);
        let answer = fork.generated().len();
        fork.amateur = self.amateur.as_ref().map(|amateur| amateur.fork(answer, blocks));
        Ok(fork)
    }

    /// Rewinds to the first `to` tokens of the answer and releases the blocks of the others. From then on
    /// tokens are drawn from new random numbers.
    ///
    /// # Errors
    /// Fails if the branch has fewer tokens, or is in the middle of an attempt.
    pub(crate) fn rewind(&mut self, to: usize, blocks: &mut Blocks) -> Result<(), EngineError> {
        self.go_back(to)?;
        self.text.computed = self.text.computed.min(self.text.tokens.len() - 1);
        blocks.rewind(&mut self.text.table, self.text.computed);
        if let Some(amateur) = &mut self.amateur {
            amateur.keep((to, to), blocks);
        }
        Ok(())
    }

    fn go_back(&mut self, to: usize) -> Result<(), EngineError> {
        let (tokens, place) = (self.generated().len(), u32::try_from(to).unwrap_or(u32::MAX));
        if to > tokens || to < self.report.emitted() || !self.draw.walk.rewind(place) {
            return Err(EngineError::NoSuchPlace {
                place: to,
                tokens,
                told: self.report.emitted(),
            });
        }
        self.truncate(to);
        Ok(())
    }

    /// Begins with what the attempts of another branch have found; nothing has been drawn yet.
    pub(crate) fn learn(&mut self, from: &SharedTrie) {
        self.draw.learn(from, &self.request);
    }

    /// Continues with these tokens as if they had been drawn.
    ///
    /// # Errors
    /// Fails if the branch is in the middle of an attempt of the global law.
    pub(crate) fn give(&mut self, tokens: Vec<u32>) -> Result<(), EngineError> {
        if !self.draw.walk.is_certain() {
            let place = self.generated().len();
            return Err(EngineError::NoSuchPlace {
                place,
                tokens: place,
                told: self.report.emitted(),
            });
        }
        if !self.report.closed {
            self.phase = Phase::Scoring { given: tokens };
            (self.grammar.is_due, self.grammar.masks) = (true, None);
        }
        Ok(())
    }

    /// Returns `true` if a drawn token waits for its grammar to read it.
    pub(crate) fn has_unread(&self) -> bool {
        self.request.constraints.grammar.is_some() && self.grammar.read < self.text.tokens.len()
    }

    /// Returns the tokens generated so far.
    pub(crate) fn generated(&self) -> &[u32] {
        &self.text.tokens[self.request.prompt.tokens.len()..]
    }

    /// Returns the index of the seed's random stream that it draws from.
    pub(crate) fn stream(&self) -> u32 {
        self.request.sampling.stream.wrapping_add(self.id.branch)
    }

    /// Returns the number of tokens that may still be generated.
    pub(crate) fn remaining(&self) -> usize {
        self.request
            .limits
            .max_tokens
            .saturating_sub(self.generated().len())
    }

    /// Returns the number of tokens that the masks may spend: the remaining ones, and one for the end if that
    /// is not requested. `None` if the masks do not count tokens.
    pub(crate) fn budget(&self) -> Option<usize> {
        let left = self.remaining() + usize::from(self.ends_early());
        let counts =
            self.request.limits.on_budget == OnBudget::Complete && self.request.task.options().is_none();
        counts.then_some(left)
    }

    /// Returns the number of tokens that the masks may spend after a draft, and whether the limit of the
    /// preamble bounds it.
    pub(crate) fn left_after(&self, node: Option<NodeId>) -> Left {
        let ahead = draft::tokens_to(&self.draft.drafts, node);
        let vocabulary = self.request.constraints.grammar.as_ref().map(Grammar::vocabulary);
        Left::after(self.budget(), self.grammar.preamble.as_ref(), &ahead, vocabulary)
    }

    /// Returns `true` if it can be scheduled: the grammar's results about the last draw are known.
    pub(crate) fn is_ready(&self) -> bool {
        let is_known = !self.grammar.is_due && self.grammar.grammar_task.is_none();
        match self.phase {
            Phase::Waiting => false,
            Phase::Reading => self.unfed() > 0 && !self.report.closed,
            Phase::Drawing | Phase::Scoring { .. } | Phase::Ranking(_) | Phase::Weighing { .. } => {
                is_known && !self.report.closed
            }
        }
    }

    /// Returns `true` if it waits for an order of its driver.
    pub(crate) fn is_idle(&self) -> bool {
        self.phase == Phase::Waiting && !self.report.closed
    }

    /// Returns `true` if its grammar has to be queried about the tokens after the last draw.
    pub(crate) fn asks(&self) -> bool {
        !matches!(self.phase, Phase::Waiting | Phase::Reading)
            && self.grammar.is_due
            && self.grammar.grammar_task.is_none()
            && !self.report.closed
    }

    /// Starts the cooldown after a slow grammar task: passes do not wait for the next ones.
    pub(crate) fn cool_down(&mut self) {
        self.grammar.cooldown = COOLDOWN;
    }

    /// Takes the result of a grammar task, unless it is no longer needed.
    pub(crate) fn hear(&mut self, reply: Reply) {
        if !self
            .grammar
            .grammar_task
            .as_ref()
            .is_some_and(|grammar_task| grammar_task.is(&reply))
        {
            return;
        }
        self.grammar.grammar_task = None;
        self.grammar.cooldown = match reply.took > SLOW_TASK {
            true => COOLDOWN,
            false => self.grammar.cooldown.saturating_sub(1),
        };
        match reply.outcome {
            Err(error) => self.fail(error),
            Ok(Brought {
                inquired: Some(inquired),
                ..
            }) => self.draw.watch.hear(inquired),
            Ok(brought) => {
                self.grammar.masks = brought.masks;
                if let Some(reading) = brought.reading {
                    self.go_on(reading);
                }
            }
        }
    }

    /// Continues with the grammar's reading of the last draw: ends the answer if only its end is left, or if
    /// no tokens remain.
    pub(crate) fn go_on(&mut self, reading: Reading) {
        if reading.renewed {
            self.draw.replay.forget();
        }
        if let Some((grammar, state)) = reading.grammar {
            self.request.constraints.grammar = Some(grammar);
            self.grammar.state = Some(state);
        }
        (self.grammar.read, self.grammar.is_due) = (self.text.tokens.len(), false);
        self.grammar.distance = reading.distance;
        if let Some(is_cut_short) = reading.end {
            if is_cut_short {
                self.draw.steering.note(self.generated().len(), Narrowing::Ended);
            }
            self.report.ended_unasked = true;
            return self.finish(Finish::Stop);
        }
        self.draft.drafts = reading.drafts;
        self.draft.rests.go_on();
        if let Phase::Scoring { given } = &mut self.phase
            && self.draft.drafts.is_empty()
        {
            // The grammar does not allow the next of the given tokens.
            given.clear();
        }
        if self.remaining() == 0 {
            match self.request.limits.on_budget {
                OnBudget::Complete | OnBudget::Cut => self.finish(Finish::Length),
                OnBudget::Fail => self.fail(EngineError::OutOfTokens {
                    max_tokens: self.request.limits.max_tokens,
                }),
            }
        }
    }

    /// Returns the number of tokens that must be fed before the next one can be drawn, or before the branch
    /// is read. The last token of a second text is fed with that of the text, and does not count.
    pub(crate) fn unfed(&self) -> usize {
        let wanted = self.text.tokens.len() - usize::from(self.phase == Phase::Reading);
        wanted.saturating_sub(self.text.computed) + self.amateur_behind()
    }

    /// Returns the number of tokens of the second text that must be fed before the rest of the text.
    pub(crate) fn amateur_behind(&self) -> usize {
        let answer = self.generated().len();
        self.amateur.as_ref().map_or(0, |amateur| amateur.behind(answer))
    }

    /// Returns the number of blocks of its cache.
    pub(crate) fn blocks(&self) -> usize {
        let amateur = self
            .amateur
            .as_ref()
            .map_or(0, |amateur| amateur.table.blocks().len());
        self.text.table.blocks().len() + amateur
    }

    /// Returns the number of blocks that its texts need beyond those that they have.
    pub(crate) fn missing_blocks(&self, blocks: &Blocks) -> usize {
        let answer = self.generated().len();
        let own = blocks.missing(&self.text.table, self.text.tokens.len());
        let amateur = self.amateur.as_ref();
        own + amateur.map_or(0, |it| blocks.missing(&it.table, it.len(answer)))
    }

    /// Returns the number of tokens that a draft takes in a pass.
    pub(crate) fn draft_cost(&self) -> usize {
        1 + usize::from(self.amateur.is_some())
    }

    /// Takes over what other sequences have computed of the texts since they were admitted or sat out.
    pub(crate) fn extend(&mut self, blocks: &mut Blocks) {
        let known = blocks.extend(&mut self.text.table, &self.text.tokens);
        self.text.computed = self.text.computed.max(known);
        let answer = &self.text.tokens[self.request.prompt.tokens.len()..];
        if let Some(amateur) = &mut self.amateur {
            amateur.extend(answer, blocks);
        }
    }

    /// Records how many tokens of the text and of a second text are computed, after the tokens of a pass were
    /// taken. `left` is the text of an attempt that failed: what it computed stays in the cache under its
    /// tokens, and the sequence continues after what both have in common.
    pub(crate) fn commit(
        &mut self,
        (computed, second): (usize, Option<usize>),
        left: Option<&[u32]>,
        blocks: &mut Blocks,
    ) {
        let prompt = self.request.prompt.tokens.len();
        let text = left.unwrap_or(&self.text.tokens);
        // The last token is always fed again for its row, including an accepted draft that had none.
        let unfed = usize::from(left.is_none());
        self.text.computed = computed.min(text.len() - unfed);
        blocks.commit(&mut self.text.table, text, self.text.computed);
        if let Some((amateur, computed)) = self.amateur.as_mut().zip(second) {
            amateur.computed = computed.min(amateur.len(text.len() - prompt) - unfed);
            amateur.commit(&text[prompt..], blocks);
        }
        let Some(left) = left else { return };
        let pairs = left.iter().zip(self.text.tokens.iter());
        let same = pairs.take_while(|(one, other)| one == other).count();
        self.text.computed = self.text.computed.min(same).min(self.text.tokens.len() - 1);
        blocks.rewind(&mut self.text.table, self.text.computed);
        let answer = (same.saturating_sub(prompt), self.generated().len());
        if let Some(amateur) = &mut self.amateur {
            amateur.keep(answer, blocks);
        }
    }

    /// Reserves blocks for the next `feed` tokens of the text and these drafts, and for the same after a
    /// second text, of which at most `piece` tokens are fed before them. Returns `false` if there are not
    /// enough.
    pub(crate) fn reserve(
        &mut self,
        (feed, drafts): (usize, usize),
        piece: usize,
        blocks: &mut Blocks,
    ) -> bool {
        let behind = self.amateur_behind().min(piece);
        if let Some(amateur) = &mut self.amateur {
            let from = amateur.computed;
            let more = if behind > 0 { behind } else { 1 + drafts };
            if !blocks.reserve(&mut amateur.table, from, from + more) {
                return false;
            }
        }
        let from = self.text.computed;
        feed == 0 || blocks.reserve(&mut self.text.table, from, from + feed + drafts)
    }

    /// Returns `true` if the text is complete as soon as only its end is left: then the end's probability is
    /// not requested.
    pub(crate) fn ends_early(&self) -> bool {
        law::ends_unasked(&self.request) && self.draw.walk.is_certain()
    }

    /// Continues with the grammar that replaces one that has outgrown its memory, if the sequence has not
    /// begun. A running sequence does so when its grammar reads.
    pub(crate) fn renew_grammar(&mut self) {
        if self.report.place.is_none() || self.grammar.grammar_task.is_some() {
            return;
        }
        if let Some((grammar, state)) = self
            .request
            .constraints
            .grammar
            .as_mut()
            .zip(self.grammar.state.as_mut())
        {
            grammar.compact(std::slice::from_mut(state));
        }
    }

    /// Rewinds as far as its walk did: to the prompt if an attempt failed.
    pub(crate) fn restart(&mut self) {
        self.truncate(self.draw.walk.position() as usize);
    }

    /// Returns the tokens as the prompt and the answer.
    pub(crate) fn prompt_and_answer(&self) -> Text<'_> {
        let (prompt, answer) = self.text.tokens.split_at(self.request.prompt.tokens.len());
        Text { prompt, answer }
    }

    /// Returns the text before its rows, as far as penalties concern it.
    pub(crate) fn past(&self) -> Past<'_> {
        let prompt = self.request.prompt.tokens.len();
        Past::new(&self.text.tokens, prompt, self.draw.sparing.as_deref())
    }

    /// Appends a token to the answer.
    pub(crate) fn push(&mut self, token: u32) {
        Arc::make_mut(&mut self.text.tokens).push(token);
        self.read_preamble(&[token]);
        if let Some(mut lookup) = self.draft.lookup.take() {
            Arc::make_mut(&mut lookup).grow(self.prompt_and_answer());
            self.draft.lookup = Some(lookup);
        }
    }

    /// Counts the tokens of the preamble among these, which the answer goes on with.
    fn read_preamble(&mut self, tokens: &[u32]) {
        let grammar = self.request.constraints.grammar.as_ref();
        if let Some((budget, grammar)) = self.grammar.preamble.as_mut().zip(grammar) {
            tokens
                .iter()
                .for_each(|&token| budget.read(token, grammar.vocabulary()));
        }
    }

    /// Removes all but the first `to` tokens of the answer. The grammar reads those again.
    pub(crate) fn truncate(&mut self, to: usize) {
        let prompt = self.request.prompt.tokens.len();
        if let Some(mut lookup) = self.draft.lookup.take() {
            Arc::make_mut(&mut lookup).rewind(self.prompt_and_answer(), prompt + to);
            self.draft.lookup = Some(lookup);
        }
        Arc::make_mut(&mut self.text.tokens).truncate(prompt + to);
        self.draft.unchanged = self.draft.unchanged.min(prompt + to);
        self.grammar.state = self.request.constraints.grammar.as_ref().map(Grammar::start);
        (
            self.grammar.read,
            self.grammar.is_due,
            self.grammar.masks,
            self.grammar.grammar_task,
        ) = (prompt, true, None, None);
        self.grammar.preamble = self.request.limits.preamble.map(PreambleBudget::new);
        if self.grammar.preamble.is_some() {
            let tokens = self.text.tokens.clone();
            self.read_preamble(&tokens[prompt..]);
        }
        self.draft.drafts.clear();
        self.draw.watch.forget();
        // A text that is not as it was has not been scored.
        self.draw.tilt = 0.0;
        self.report.truncate(to);
        self.draw.steering.truncate(to);
    }

    /// Returns the tokens that were not reported yet, for an answer that has received `heard` tokens.
    ///
    /// # Errors
    /// Fails if other tokens than those are left.
    pub(crate) fn take_events(&mut self, heard: usize) -> Result<Vec<Event>, EngineError> {
        if heard != self.report.emitted() {
            return Err(EngineError::NoSuchPlace {
                place: heard,
                tokens: self.generated().len(),
                told: self.report.emitted(),
            });
        }
        Ok(self.report.take_events())
    }

    /// Ends the sequence: its text is complete, or has reached its maximum length.
    pub(crate) fn finish(&mut self, finish: Finish) {
        self.report.end(Ending::Finished(finish));
    }

    pub(crate) fn fail(&mut self, error: EngineError) {
        self.report.end(Ending::Failed(error));
    }
}
