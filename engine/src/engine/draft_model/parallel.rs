//! A small model that was trained to predict several tokens at once: PARD ([An et al.
//! 2025](https://arxiv.org/abs/2504.18583)).
//!
//! ```text
//!   text        t0 … tn ─┬─ mask ─┬─ mask ─┬─ …       one pass
//!   rows of               t n+1    t n+2    t n+3
//! ```
//!
//! Each mask stands for a token that is not known, so the row after it does not depend on what is drafted
//! before. The rows are drawn from one by one, like those of any draft model, or make a
//! [tree](super::trees); the masks are forgotten.

use crate::config::EngineConfig;
use crate::engine::draft_model::reader::{Passage, Reader};
use crate::engine::draft_model::same::SameTokens;
use crate::engine::draft_model::tokens::{TokenModel, drafted};
use crate::engine::draft_model::trees::{TreeModel, TreeNode, depth};
use crate::engine::grammar_task::GrammarTasks;
use crate::error::EngineError;
use crate::model::Model;
use crate::model::logits::Logits;
use crate::sequence::Sequence;
use lexiform::vocab::Vocabulary;
use lexiform_law::draft::NodeId;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The most tokens that are predicted at once. Models are trained for eight, and predict some more.
const AHEAD: usize = 12;

/// The small model and its cache.
pub(crate) struct ParallelTokens {
    tokens: SameTokens,
    mask: u32,
    most: usize,
}

impl ParallelTokens {
    pub(super) fn new(
        model: Box<dyn Model>,
        mask: u32,
        vocabulary: Arc<Vocabulary>,
        config: &EngineConfig,
    ) -> Result<Self, EngineError> {
        if mask as usize >= model.vocab_size() {
            return Err(EngineError::Config(format!(
                "the draft model's token for unknown tokens is {mask}, and it has {} tokens",
                model.vocab_size()
            )));
        }
        Ok(ParallelTokens {
            tokens: SameTokens::new(model, vocabulary, config)?,
            mask,
            most: AHEAD.min(config.max_step_tokens),
        })
    }

    /// Forgets sequences that have ended.
    pub(super) fn retain(&mut self, alive: impl Fn(u64) -> bool) {
        self.tokens.retain(alive);
    }

    /// Empties the cache, whose contents are undefined after a panic.
    pub(super) fn reset(&mut self, config: &EngineConfig) {
        self.tokens.reset(config);
    }

    /// Extends the drafts of these sequences; see [`TokenDrafter::propose`].
    pub(super) fn propose(
        &mut self,
        sequences: &mut [&mut Sequence],
        grammar_tasks: &GrammarTasks,
        grace: Duration,
    ) -> Result<usize, EngineError> {
        let SameTokens { reader, drafter } = &mut self.tokens;
        let mut model = ParallelModel {
            reader,
            mask: self.mask,
            most: self.most,
            found: HashMap::new(),
        };
        drafter.propose_by_rule(&mut model, sequences, grammar_tasks, grace)
    }
}

/// The rows after a text and its masks.
struct Ahead {
    /// The number of drafts before the first row.
    first: usize,
    /// The number of rows.
    count: usize,
    /// The rows, once they are known.
    rows: Vec<f32>,
}

/// The model while it drafts.
struct ParallelModel<'a> {
    reader: &'a mut Reader,
    mask: u32,
    most: usize,
    /// The rows of each sequence.
    found: HashMap<u64, Ahead>,
}

impl TokenModel for ParallelModel<'_> {
    /// A text with its masks, and the number of drafts before the row that is wanted of it.
    type Passage = (Passage, usize);

    fn prepare(&mut self, sequence: &mut Sequence, tip: Option<NodeId>) -> bool {
        let drafts = drafted(sequence, tip).len();
        if let Some(ahead) = self.found.get(&sequence.id.number) {
            return drafts < ahead.first + ahead.count;
        }
        let room = sequence.room().min(sequence.draft.reach);
        let count = room
            .saturating_sub(sequence.draft.drafts.len())
            .clamp(1, self.most);
        let ahead = Ahead {
            first: drafts,
            count,
            rows: Vec::new(),
        };
        self.found.insert(sequence.id.number, ahead);
        let (passage, _) = self.passage(sequence, tip);
        sequence.draft.unchanged = sequence.text.tokens.len();
        self.reader.reaches(passage.text.len() + passage.drafts.len()) && self.reader.prepare(&passage)
    }

    fn passage(&self, sequence: &Sequence, tip: Option<NodeId>) -> (Passage, usize) {
        let mut drafts = drafted(sequence, tip);
        let wanted = drafts.len();
        let count = self.found.get(&sequence.id.number).map_or(1, |ahead| ahead.count);
        drafts.extend(std::iter::repeat_n(self.mask, count - 1));
        let passage = Passage {
            id: sequence.id.number,
            scope: sequence.text.table.scope().clone(),
            text: sequence.text.tokens.clone(),
            unchanged: sequence.draft.unchanged,
            drafts,
            parents: None,
            rows: count,
            scale: sequence.draw.warper.scale(),
        };
        (passage, wanted)
    }

    fn forward(
        &mut self,
        passages: &[(Passage, usize)],
    ) -> Result<(Logits, Vec<Option<usize>>), EngineError> {
        let width = self.reader.width();
        let is_new = |id: u64| self.found.get(&id).is_some_and(|ahead| ahead.rows.is_empty());
        let texts = passages.iter().map(|(passage, _)| passage);
        let new: Vec<&Passage> = texts.filter(|passage| is_new(passage.id)).collect();
        let (logits, firsts) = self.reader.forward(&new)?;
        for (passage, first) in new.iter().zip(firsts) {
            if let (Some(ahead), Some(first)) = (self.found.get_mut(&passage.id), first) {
                let rows = (first..first + ahead.count).flat_map(|row| logits.row(row));
                ahead.rows = rows.copied().collect();
            }
        }
        let (mut values, mut numbers) = (Vec::new(), Vec::new());
        for (passage, wanted) in passages {
            let row = self.row(passage.id, *wanted);
            numbers.push(row.map(|_| values.len() / width));
            values.extend_from_slice(row.unwrap_or_default());
        }
        Ok((Logits::new(values, width), numbers))
    }
}

impl ParallelModel<'_> {
    /// Returns the row after a number of drafts of a sequence.
    fn row(&self, id: u64, drafts: usize) -> Option<&[f32]> {
        let ahead = self.found.get(&id)?;
        let (first, width) = (drafts.checked_sub(ahead.first)?, self.reader.width());
        ahead.rows.get(first * width..(first + 1) * width)
    }
}

impl TreeModel for ParallelModel<'_> {
    fn branch(
        &mut self,
        trees: &[((Passage, usize), &[TreeNode], Vec<usize>)],
    ) -> Result<(Logits, Vec<Option<usize>>), EngineError> {
        let width = self.reader.width();
        let (mut values, mut firsts) = (Vec::new(), Vec::new());
        for ((passage, drafts), nodes, wanted) in trees {
            // The wanted nodes are in one layer.
            let layer = wanted.first().map_or(0, |&node| depth(nodes, node));
            let row = self.row(passage.id, drafts + layer);
            firsts.push(row.map(|_| values.len() / width));
            wanted
                .iter()
                .for_each(|_| values.extend_from_slice(row.unwrap_or_default()));
        }
        Ok((Logits::new(values, width), firsts))
    }
}
