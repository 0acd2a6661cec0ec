//! Rows of a model after prefixes, what may follow these, and what was paid for them.

use super::models::Model;
use lexiform::MaskRequest;
use lexiform::vocab::{Tokenizer, Vocabulary};
use lexiform::{Grammar, Mask, State};
use lexiform_law::draft::Tokenise;
use lexiform_law::{Distribution, RowError};
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// A grammar, and how long its texts may be.
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) grammar: Grammar,
    pub(crate) vocabulary: Arc<Vocabulary>,
    /// Cuts forced text.
    pub(crate) tokeniser: Arc<dyn Tokenise + Sync>,
    /// The most tokens of a text, the end included.
    pub(crate) longest: usize,
}

impl Task {
    pub(crate) fn new(
        file: &Path,
        grammar: Grammar,
        vocabulary: &Arc<Vocabulary>,
        tokenizer: &Arc<Tokenizer>,
        longest: usize,
    ) -> Task {
        Task {
            name: file
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            grammar,
            vocabulary: vocabulary.clone(),
            tokeniser: Arc::new(tokenizer.clone()),
            longest,
        }
    }

    /// The tokens that end a text.
    pub(crate) fn ends(&self) -> &[u32] {
        self.vocabulary.eos()
    }

    /// The state after a prefix, which must be valid.
    pub(crate) fn state(&self, prefix: &[u32]) -> Option<State> {
        let step = |state, &token: &u32| self.grammar.step(state, token);
        prefix.iter().try_fold(self.grammar.start(), step)
    }

    /// The tokens that some text of the allowed length goes on with.
    pub(crate) fn mask(&self, prefix: &[u32]) -> Option<Arc<Mask>> {
        let state = self.state(prefix)?;
        let left = self.longest.checked_sub(prefix.len())?;
        self.grammar.try_mask(MaskRequest::from(state).within(left)).ok()
    }
}

/// A row after a prefix.
pub(crate) type Row = Rc<Distribution<'static>>;

/// All rows that were ever computed for a task, whoever paid for them: methods that are compared need not
/// compute the same rows again.
pub(crate) struct Memo<'m> {
    model: &'m mut dyn Model,
    vocabulary: Arc<Vocabulary>,
    rows: HashMap<Vec<u32>, Row>,
}

impl<'m> Memo<'m> {
    pub(crate) fn new(model: &'m mut dyn Model, task: &Task) -> Self {
        Memo {
            model,
            vocabulary: task.vocabulary.clone(),
            rows: HashMap::new(),
        }
    }

    /// What of a prefix the model looks at.
    pub(crate) fn context<'p>(&self, prefix: &'p [u32]) -> &'p [u32] {
        self.model.context(prefix)
    }

    pub(crate) fn row(&mut self, prefix: &[u32]) -> Result<Row, Box<dyn Error>> {
        let prefix = self.context(prefix);
        if let Some(row) = self.rows.get(prefix) {
            return Ok(row.clone());
        }
        let logits = self.model.logits(prefix)?;
        let logits = &logits[..self.vocabulary.len()];
        let row: Result<_, RowError> = Distribution::new(logits).map(Distribution::into_owned);
        let row = Rc::new(row?);
        self.rows.insert(prefix.to_vec(), row.clone());
        Ok(row)
    }
}

/// The rows of one request, and what they cost.
pub(crate) struct Rows<'a, 'm> {
    memo: &'a mut Memo<'m>,
    known: HashSet<Vec<u32>>,
    /// Runs of the model.
    pub(crate) passes: usize,
    /// Rows that these yielded.
    pub(crate) rows: usize,
}

impl<'a, 'm> Rows<'a, 'm> {
    pub(crate) fn new(memo: &'a mut Memo<'m>) -> Self {
        Rows {
            memo,
            known: HashSet::new(),
            passes: 0,
            rows: 0,
        }
    }

    pub(crate) fn is_known(&self, prefix: &[u32]) -> bool {
        self.known.contains(prefix)
    }

    /// Computes the rows after these prefixes in one pass, unless all are known.
    pub(crate) fn pass<'p>(&mut self, prefixes: impl IntoIterator<Item = &'p [u32]>) {
        let before = self.known.len();
        self.known.extend(prefixes.into_iter().map(<[u32]>::to_vec));
        self.rows += self.known.len() - before;
        self.passes += usize::from(self.known.len() > before);
    }

    /// The row after a prefix, which takes a pass of its own if it is not known.
    pub(crate) fn row(&mut self, prefix: &[u32]) -> Result<Row, Box<dyn Error>> {
        self.pass([prefix]);
        self.memo.row(prefix)
    }
}
