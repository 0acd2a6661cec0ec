//! What several constraints allow together: masks are intersected, and who has none is asked.

use std::sync::Arc;

use super::{Coverage, Failure, Monitor, MonitorState};

/// The texts of all of some constraints.
#[derive(Clone, Default)]
pub struct Product {
    parts: Vec<Arc<dyn Monitor>>,
}

impl Product {
    /// What all of these allow. They are asked in this order, and the first no ends it: the cheap ones go
    /// first.
    pub fn new(parts: Vec<Arc<dyn Monitor>>) -> Self {
        Product { parts }
    }

    /// The state of the empty text, as the type that tells who refused.
    pub fn begin(&self) -> ProductState {
        ProductState {
            states: self.parts.iter().map(|part| part.start()).collect(),
            refused: None,
        }
    }
}

impl Monitor for Product {
    fn start(&self) -> Box<dyn MonitorState> {
        Box::new(self.begin())
    }
}

/// Some constraints after one text.
#[derive(Clone)]
pub struct ProductState {
    states: Vec<Box<dyn MonitorState>>,
    refused: Option<usize>,
}

impl ProductState {
    /// The number of the part that said no, or had no answer, last.
    pub fn last_refusal(&self) -> Option<usize> {
        self.refused
    }
}

impl MonitorState for ProductState {
    fn fork(&self) -> Box<dyn MonitorState> {
        Box::new(self.clone())
    }

    fn allows(&mut self, token: u32, left: Option<usize>) -> Result<bool, Failure> {
        for (part, state) in self.states.iter_mut().enumerate() {
            let answer = state.allows(token, left);
            if answer != Ok(true) {
                self.refused = Some(part);
                return answer;
            }
        }
        Ok(true)
    }

    fn advance(&mut self, token: u32) -> Result<(), Failure> {
        for (part, state) in self.states.iter_mut().enumerate() {
            state.advance(token).inspect_err(|_| self.refused = Some(part))?;
        }
        Ok(())
    }

    /// The masks of those that have one. It is exact if all are: who can only be asked may forbid any token
    /// of it.
    fn narrow(&mut self, words: &mut [u32], left: Option<usize>) -> Result<Coverage, Failure> {
        let mut kinds = Vec::with_capacity(self.states.len());
        for (part, state) in self.states.iter_mut().enumerate() {
            let kind = state.narrow(words, left);
            kinds.push(kind.inspect_err(|_| self.refused = Some(part))?);
        }
        let is = |wanted| kinds.iter().all(|&kind| kind == wanted);
        Ok(match (is(Coverage::Exact), is(Coverage::Ask)) {
            (true, _) => Coverage::Exact,
            (_, true) => Coverage::Ask,
            _ => Coverage::Over,
        })
    }
}
