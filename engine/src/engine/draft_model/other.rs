//! A small model with a different vocabulary, which drafts text at temperature 0, and tokens that both models
//! [share](super::intersection) at other temperatures.
//!
//! Text is drafted by string-level exact match, SLEM of [Timor et al.
//! 2025](https://arxiv.org/abs/2502.05202):
//!
//! ```text
//!   the text in its tokens ─► its likeliest allowed tokens ─► bytes ─► the model's tokens ─► drafts
//! ```
//!
//! Every token of the model may be drafted this way, including those that the draft model lacks. The draft is
//! the likeliest text: at temperature 0 the model will write it if the two agree. At other temperatures, a
//! random draft by the draft model's probabilities is accepted more often than the likeliest token, but these
//! probabilities are over the draft model's own tokens.

use crate::blocks::Scope;
use crate::config::EngineConfig;
use crate::engine::draft_model::intersection::{Intersection, IntersectionModel, PIECE};
use crate::engine::draft_model::reader::{Passage, Reader};
use crate::engine::draft_model::tokens::{TokenDrafter, drafted};
use crate::engine::draft_model::translation::{CONTEXT_TOKENS, Joined, Translated, Translation};
use crate::engine::grammar_task::GrammarTasks;
use crate::error::EngineError;
use crate::model::Model;
use crate::sampling::Columns;
use crate::sequence::Sequence;
use crate::speculation::draft::{Draft, Source};
use crate::{Grammar, State};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_law::Distribution;
use lexiform_law::draft::Proposal;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The number of likeliest tokens that are tried until the grammar allows one.
const TRIED_TOKENS: usize = 8;
/// The number of work rounds that querying the grammar about one of them may take.
const BRIEF: usize = 1 << 11;

/// The model, its cache, and the texts that it reads.
pub(crate) struct OtherTokens {
    reader: Reader,
    columns: Columns,
    vocabulary: Arc<Vocabulary>,
    translation: Translation,
    texts: HashMap<u64, Translated>,
    intersection: Intersection,
    drafter: TokenDrafter,
}

/// The text being written after the text of a sequence.
struct Writing {
    /// The index of the sequence.
    index: usize,
    id: u64,
    scope: Scope,
    text: Arc<Vec<u32>>,
    unchanged: usize,
    tokens: Vec<u32>,
    bytes: Vec<u8>,
    /// The state of the grammar after these.
    at: Option<(Grammar, State)>,
    /// The maximum number of the model's tokens that are drafted.
    wanted: usize,
    /// `true` if it is written further.
    goes_on: bool,
    /// `true` if, according to the draft model, the text may continue after what was written.
    is_open: bool,
}

impl OtherTokens {
    pub(super) fn new(
        model: Box<dyn Model>,
        (vocabulary, translation): (Arc<Vocabulary>, Translation),
        config: &EngineConfig,
    ) -> Result<Self, EngineError> {
        let mut reader = Reader::new(model, config)?;
        let columns = Columns::new(translation.own(), reader.width());
        reader.leave_out(&columns.left_out(reader.width()));
        Ok(OtherTokens {
            reader,
            columns,
            texts: HashMap::new(),
            intersection: Intersection::new(&vocabulary, translation.own()),
            drafter: TokenDrafter::new(vocabulary.clone(), vocabulary.len(), config),
            vocabulary,
            translation,
        })
    }

    /// Forgets sequences that have ended.
    pub(super) fn retain(&mut self, alive: impl Fn(u64) -> bool) {
        self.texts.retain(|&id, _| alive(id));
        self.reader.retain(alive);
    }

    /// Empties the cache.
    pub(super) fn reset(&mut self, config: &EngineConfig) {
        self.texts.clear();
        self.reader.reset(config);
    }

    /// Extends the drafts of these sequences: by text at temperature 0, and by tokens at other temperatures.
    /// Returns the number of passes that this took.
    pub(super) fn propose(
        &mut self,
        sequences: &mut [&mut Sequence],
        grammar_tasks: &GrammarTasks,
        grace: Duration,
    ) -> Result<usize, EngineError> {
        let all = sequences.iter_mut().map(|sequence| &mut **sequence);
        let (mut greedy, mut drawing): (Vec<&mut Sequence>, Vec<&mut Sequence>) =
            all.partition(|sequence| sequence.draw.warper.is_greedy());
        let mut model = IntersectionModel {
            reader: &mut self.reader,
            translation: &self.translation,
            texts: &mut self.texts,
            intersection: &self.intersection,
        };
        let rounds = self
            .drafter
            .propose(&mut model, &mut drawing, grammar_tasks, grace)?;
        Ok(rounds + self.propose_text(&mut greedy, grammar_tasks, grace)?)
    }

    /// Writes on after the texts of these sequences, one token per pass for all of them, and drafts the
    /// result in the model's tokens. Returns the number of passes that this took.
    fn propose_text(
        &mut self,
        sequences: &mut [&mut Sequence],
        grammar_tasks: &GrammarTasks,
        grace: Duration,
    ) -> Result<usize, EngineError> {
        let mut writings = Vec::new();
        for (index, sequence) in sequences.iter_mut().enumerate() {
            writings.extend(self.begin(index, sequence));
        }
        let mut rounds = 0;
        loop {
            let mut passages = Vec::new();
            for writing in writings.iter_mut().filter(|writing| writing.goes_on) {
                let passage = writing.passage();
                let length = passage.text.len() + passage.drafts.len();
                writing.goes_on = self.reader.reaches(length) && self.reader.prepare(&passage);
                passages.extend(Some(passage).filter(|_| writing.goes_on));
            }
            if passages.is_empty() {
                break;
            }
            let (mut logits, rows) = self.reader.forward(&passages)?;
            rounds += 1;
            for row in logits.rows_mut() {
                self.columns.clean(row);
            }
            let going = writings.iter_mut().filter(|writing| writing.goes_on);
            for (writing, row) in going.zip(rows) {
                // All of the text has been read by now.
                writing.unchanged = writing.text.len();
                writing.goes_on = row.is_some_and(|row| {
                    let row = self.columns.of(&logits, row);
                    writing.write(self.translation.own(), row.logits)
                });
            }
        }
        self.draft(sequences, &writings, grammar_tasks, grace);
        Ok(rounds)
    }

    /// Begins to write after a sequence and its drafts, if there is room and all of its text is translated.
    fn begin(&mut self, index: usize, sequence: &mut Sequence) -> Option<Writing> {
        let wanted = sequence.room().min(sequence.draft.reach);
        let wanted = wanted
            .checked_sub(sequence.draft.drafts.len())
            .filter(|&wanted| wanted > 0)?;
        let behind = drafted(sequence, sequence.draft.tip);
        let translated = self.texts.entry(sequence.id.number).or_default();
        let unchanged = sequence.draft.unchanged.min(translated.read());
        let length = sequence.text.tokens.len() + behind.len();
        let text = Joined {
            text: &sequence.text.tokens,
            behind: &behind,
            len: length.min(unchanged + PIECE),
        };
        self.translation.follow(translated, text, unchanged);
        let is_whole = translated.read() == length && self.reader.reaches(translated.tokens.len());
        sequence.draft.unchanged = sequence.text.tokens.len();
        let state = match sequence.draft.tip {
            None => sequence.grammar.state,
            Some(tip) => sequence.draft.drafts[tip].state,
        };
        let at = match (&sequence.request.constraints.grammar, state) {
            (Some(grammar), Some(state)) => Some((grammar.clone(), state)),
            (Some(_), None) => return None,
            (None, _) => None,
        };
        (is_whole && !translated.tokens.is_empty()).then(|| Writing {
            index,
            id: sequence.id.number,
            scope: sequence.text.table.scope().clone(),
            text: translated.tokens.clone(),
            unchanged: translated.take_unchanged(),
            tokens: Vec::new(),
            bytes: Vec::new(),
            at,
            wanted,
            goes_on: true,
            is_open: true,
        })
    }

    /// Drafts the written text, as far as the grammar allows it in the model's tokens.
    fn draft(
        &self,
        sequences: &mut [&mut Sequence],
        writings: &[Writing],
        grammar_tasks: &GrammarTasks,
        grace: Duration,
    ) {
        let written = writings.iter().filter(|writing| !writing.bytes.is_empty());
        let work = |writing: &&Writing| {
            let sequence = &*sequences[writing.index];
            let (mut outlook, vocabulary) = (grammar_tasks.outlook(sequence), self.vocabulary.clone());
            let recent = recent(sequence);
            let mut tokens = self.translation.drafted(&recent, &writing.bytes, writing.is_open);
            tokens.truncate(writing.wanted);
            let tip = sequence.draft.tip;
            let work = move || {
                let first = outlook.drafts.len();
                outlook.extend_along(tip, tokens.into_iter().map(of_model), &vocabulary)?;
                Ok(outlook.drafts.split_off(first))
            };
            (sequence.request.limits.owner.clone(), work)
        };
        // Without a grammar nothing can take long.
        let (slow, quick): (Vec<&Writing>, Vec<&Writing>) = written.partition(|writing| writing.at.is_some());
        let mut found: Vec<_> = quick.iter().map(|writing| work(writing).1().ok()).collect();
        found.extend(grammar_tasks.together(slow.iter().map(work).collect(), grace));
        for (writing, found) in quick.into_iter().chain(slow).zip(found) {
            let sequence = &mut *sequences[writing.index];
            match found {
                Some(drafts) => sequence.draft.drafts.extend(drafts),
                None => sequence.cool_down(),
            }
        }
    }
}

/// Returns the last tokens of a sequence and of its drafts up to the tip.
fn recent(sequence: &Sequence) -> Vec<u32> {
    let tokens = &sequence.text.tokens[sequence.text.tokens.len().saturating_sub(CONTEXT_TOKENS)..];
    let drafts = drafted(sequence, sequence.draft.tip);
    tokens.iter().copied().chain(drafts).collect()
}

/// Returns a draft whose position is not known yet.
fn of_model(token: u32) -> Draft {
    Draft {
        parent: None,
        token,
        source: Source::Model,
        state: None,
        proposal: Proposal::Point,
        is_last: true,
    }
}

impl Writing {
    fn passage(&self) -> Passage {
        Passage {
            id: self.id,
            scope: self.scope.clone(),
            text: self.text.clone(),
            unchanged: self.unchanged,
            drafts: self.tokens.clone(),
            parents: None,
            rows: 1,
            scale: 1.0,
        }
    }

    /// Writes the likeliest token of a row that the grammar allows; returns `true` if another one is to
    /// follow. If nothing is allowed, or the draft model prefers to end, nothing is written.
    fn write(&mut self, own: &Vocabulary, row: &[f32]) -> bool {
        let Ok(row) = Distribution::new(row) else {
            return false;
        };
        for (token, _) in row.top(TRIED_TOKENS) {
            if own.kind(token) != TokenKind::Text {
                match &self.at {
                    // The grammar may require more.
                    Some((grammar, state)) if !grammar.is_accepting(*state) => continue,
                    _ => {
                        self.is_open = false;
                        return false;
                    }
                }
            }
            let bytes = own.bytes(token);
            if let Some((grammar, state)) = &mut self.at {
                let next = lexiform::briefly(BRIEF, || grammar.try_step_bytes(*state, bytes));
                match next {
                    Some(Ok(Some(next))) => *state = next,
                    Some(Ok(None)) => continue,
                    Some(Err(_)) | None => return false,
                }
            }
            self.tokens.push(token);
            self.bytes.extend(bytes);
            // One more than needed, since the last one is left open.
            return self.tokens.len() <= self.wanted;
        }
        false
    }
}
