//! A small model with the tokens of the main one: it reads the same texts, and its rows are used unchanged.

use crate::config::EngineConfig;
use crate::engine::draft_model::reader::{Passage, Reader};
use crate::engine::draft_model::tokens::{TokenDrafter, TokenModel, drafted};
use crate::engine::grammar_task::GrammarTasks;
use crate::error::EngineError;
use crate::model::Model;
use crate::model::logits::Logits;
use crate::sequence::Sequence;
use crate::speculation::draft::parents;
use lexiform::vocab::Vocabulary;
use lexiform_law::draft::NodeId;
use std::sync::Arc;
use std::time::Duration;

/// The small model and its cache.
pub(crate) struct SameTokens {
    pub(super) reader: Reader,
    pub(super) drafter: TokenDrafter,
}

impl SameTokens {
    pub(super) fn new(
        model: Box<dyn Model>,
        vocabulary: Arc<Vocabulary>,
        config: &EngineConfig,
    ) -> Result<Self, EngineError> {
        let mut reader = Reader::new(model, config)?;
        let drafter = TokenDrafter::new(vocabulary, reader.width(), config);
        reader.leave_out(&drafter.left_out(reader.width()));
        Ok(SameTokens { reader, drafter })
    }

    /// Forgets sequences that have ended.
    pub(super) fn retain(&mut self, alive: impl Fn(u64) -> bool) {
        self.reader.retain(alive);
    }

    /// Empties the cache, whose contents are undefined after a panic.
    pub(super) fn reset(&mut self, config: &EngineConfig) {
        self.reader.reset(config);
    }

    /// Returns the number of tokens that the model can read.
    pub(super) fn context(&self) -> usize {
        self.reader.context()
    }

    /// Returns the rows after the text of each sequence and after each of its drafts.
    pub(super) fn rows(
        &mut self,
        sequences: &mut [&mut Sequence],
    ) -> Result<Vec<Vec<Vec<f32>>>, EngineError> {
        let passage = |sequence: &&mut Sequence| Passage {
            id: sequence.id.number,
            scope: sequence.text.table.scope().clone(),
            text: sequence.text.tokens.clone(),
            unchanged: sequence.draft.unchanged,
            drafts: sequence.draft.drafts.iter().map(|draft| draft.token).collect(),
            parents: parents(&sequence.draft.drafts),
            rows: 1 + sequence.draft.drafts.len(),
            scale: 1.0,
        };
        let passages = sequences.iter().map(passage).collect();
        let mut rows = self.reader.rows(passages)?;
        for row in rows.iter_mut().flatten() {
            self.drafter.columns.clean(row);
        }
        for sequence in sequences.iter_mut() {
            sequence.draft.unchanged = sequence.text.tokens.len();
        }
        Ok(rows)
    }

    /// Extends the drafts of these sequences; see [`TokenDrafter::propose`].
    pub(super) fn propose(
        &mut self,
        sequences: &mut [&mut Sequence],
        grammar_tasks: &GrammarTasks,
        grace: Duration,
    ) -> Result<usize, EngineError> {
        self.drafter
            .propose(&mut self.reader, sequences, grammar_tasks, grace)
    }
}

impl TokenModel for Reader {
    type Passage = Passage;

    fn prepare(&mut self, sequence: &mut Sequence, tip: Option<NodeId>) -> bool {
        let passage = self.passage(sequence, tip);
        if !self.reaches(passage.text.len() + passage.drafts.len()) {
            return false;
        }
        sequence.draft.unchanged = sequence.text.tokens.len();
        Reader::prepare(self, &passage)
    }

    fn passage(&self, sequence: &Sequence, tip: Option<NodeId>) -> Passage {
        Passage {
            id: sequence.id.number,
            scope: sequence.text.table.scope().clone(),
            text: sequence.text.tokens.clone(),
            unchanged: sequence.draft.unchanged,
            drafts: drafted(sequence, tip),
            parents: None,
            rows: 1,
            scale: sequence.draw.warper.scale(),
        }
    }

    fn forward(&mut self, passages: &[Passage]) -> Result<(Logits, Vec<Option<usize>>), EngineError> {
        Reader::forward(self, passages)
    }
}
