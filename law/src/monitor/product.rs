//! The intersection of several constraints: masks are intersected, and constraints without one check single
//! tokens.

use std::sync::Arc;

use super::{Coverage, Failure, Monitor, MonitorState};

/// The intersection of some constraints: the texts that all of them allow.
#[derive(Clone, Default)]
pub struct Product {
    parts: Vec<Arc<dyn Monitor>>,
}

impl Product {
    /// Creates the intersection of these constraints. They are checked in this order, and the first refusal
    /// ends the check, so the cheap ones should come first.
    pub fn new(parts: Vec<Arc<dyn Monitor>>) -> Self {
        Product { parts }
    }

    /// Returns the state of the empty text, as the type that reports which part refused.
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

/// The states of some constraints after one text.
#[derive(Clone)]
pub struct ProductState {
    states: Vec<Box<dyn MonitorState>>,
    refused: Option<usize>,
}

impl ProductState {
    /// Returns the number of the part that last refused a token, or had no answer.
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

    /// Narrows by the masks of the parts that have one. The result is exact if all parts are: a part that can
    /// only check single tokens may forbid any token of it.
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

    fn narrow_known(&mut self, words: &mut [u32]) -> bool {
        let narrowed = self.states.iter_mut().map(|state| state.narrow_known(words));
        narrowed.fold(false, |any, one| any | one)
    }

    fn together(&self) -> usize {
        let most = self.states.iter().map(|state| state.together()).max();
        most.unwrap_or(1)
    }

    /// Announces to each part what the parts before it do not refuse. A part that wants no announcement is
    /// asked at once, as it will be anyway.
    fn prepare(&mut self, tokens: &[u32]) -> Result<(), Failure> {
        let mut tokens = tokens.to_vec();
        let Some(last) = self.states.iter().rposition(|state| state.together() > 1) else {
            return Ok(());
        };
        for (part, state) in self.states[..=last].iter_mut().enumerate() {
            let mut failure = None;
            if state.together() > 1 {
                failure = state.prepare(&tokens).err();
            }
            tokens.retain(|&token| {
                failure.is_none()
                    && state.allows(token, None).unwrap_or_else(|error| {
                        failure = Some(error);
                        false
                    })
            });
            if let Some(failure) = failure {
                self.refused = Some(part);
                return Err(failure);
            }
        }
        Ok(())
    }
}
