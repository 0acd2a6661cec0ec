//! The rows of a model after prefixes, the tokens that may follow these, and the cost of the rows.

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

/// A grammar, and the maximum length of its texts.
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) grammar: Grammar,
    pub(crate) vocabulary: Arc<Vocabulary>,
    /// The tokenizer for forced text.
    pub(crate) tokeniser: Arc<dyn Tokenise + Sync>,
    /// The maximum number of tokens of a text, including the end.
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

    /// Returns the tokens that end a text.
    pub(crate) fn ends(&self) -> &[u32] {
        self.vocabulary.eos()
    }

    /// Returns the state after a prefix, which must be valid.
    pub(crate) fn state(&self, prefix: &[u32]) -> Option<State> {
        let step = |state, &token: &u32| self.grammar.step(state, token);
        prefix.iter().try_fold(self.grammar.start(), step)
    }

    /// Returns the mask of the tokens after which some text of the allowed length is possible.
    pub(crate) fn mask(&self, prefix: &[u32]) -> Option<Arc<Mask>> {
        let state = self.state(prefix)?;
        let left = self.longest.checked_sub(prefix.len())?;
        self.grammar.try_mask(MaskRequest::from(state).within(left)).ok()
    }
}

/// The row after a prefix.
pub(crate) type Row = Rc<Distribution<'static>>;

/// All rows that were ever computed for a task, whichever method paid for them: the compared methods need not
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

    /// Returns the part of a prefix that the model looks at.
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

/// The rows of one request, and their cost.
pub(crate) struct Rows<'a, 'm> {
    memo: &'a mut Memo<'m>,
    known: HashSet<Vec<u32>>,
    /// The number of runs of the model.
    pub(crate) passes: usize,
    /// The number of rows that these runs yielded.
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

    /// Returns the row after a prefix, which takes a separate pass if it is not known.
    pub(crate) fn row(&mut self, prefix: &[u32]) -> Result<Row, Box<dyn Error>> {
        self.pass([prefix]);
        self.memo.row(prefix)
    }
}
