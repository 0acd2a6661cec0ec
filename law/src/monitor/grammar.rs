//! A grammar as a constraint: it has the mask of every state, and can also check single tokens.

use super::{Coverage, Failure, Monitor, MonitorState};
use lexiform_automata::error::Exhausted;
use lexiform_automata::matcher::{Grammar, MaskRequest, State};

/// The number of tokens between two checks of a grammar's memory, which are cheap but not free.
const RENEWED_EVERY: usize = 16;

/// A grammar after a text.
struct GrammarState {
    grammar: Grammar,
    state: State,
    read: usize,
}

impl Monitor for Grammar {
    fn start(&self) -> Box<dyn MonitorState> {
        Box::new(GrammarState {
            grammar: self.clone(),
            state: Grammar::start(self),
            read: 0,
        })
    }
}

impl MonitorState for GrammarState {
    fn fork(&self) -> Box<dyn MonitorState> {
        Box::new(GrammarState {
            grammar: self.grammar.clone(),
            state: self.state,
            read: self.read,
        })
    }

    fn allows(&mut self, token: u32, left: Option<usize>) -> Result<bool, Failure> {
        let next = self.grammar.try_step(self.state, token)?;
        Ok(next.is_some_and(|next| left.is_none_or(|left| self.grammar.completes_within(next, left))))
    }

    fn advance(&mut self, token: u32) -> Result<(), Failure> {
        let next = self.grammar.try_step(self.state, token)?;
        self.state =
            next.ok_or_else(|| Failure(format!("token {token} does not come next in the grammar")))?;
        self.read += 1;
        if self.read.is_multiple_of(RENEWED_EVERY) {
            // A grammar that has outgrown its memory is replaced by another.
            self.grammar.compact(std::slice::from_mut(&mut self.state));
        }
        Ok(())
    }

    fn narrow(&mut self, words: &mut [u32], left: Option<usize>) -> Result<Coverage, Failure> {
        let mask = self
            .grammar
            .try_mask(MaskRequest::from(self.state).within(left))?;
        let of = mask.words().iter().copied().chain(std::iter::repeat(0));
        words.iter_mut().zip(of).for_each(|(word, of)| *word &= of);
        Ok(Coverage::Exact)
    }
}

impl From<Exhausted> for Failure {
    fn from(exhausted: Exhausted) -> Self {
        Failure(exhausted.to_string())
    }
}
