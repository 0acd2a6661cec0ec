//! A text that is being drawn: its tokens, the states of the grammar after them, and the walk of its law.

use lexiform_law as law;
use lexiform_law::monitor::{MonitorState as _, ProductState};
use lexiform_law::{Allowed, Ask, Row, Sampler as _, Seeded, Walk};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::setting::Setting;
use crate::error::limit_error;
use crate::state::State;

/// The number of consecutive refused tokens after which a mask is computed. A mask takes as long as some
/// hundreds of steps.
const PATIENCE: usize = 32;

/// The step to take at a prefix.
#[pyclass(frozen, get_all, module = "lexiform")]
pub(crate) struct Step {
    /// "token": append the token and continue. "end": append it; the text is whole. "restart": go back to
    /// the first `kept` tokens of the answer. "stuck": there will be no text.
    kind: &'static str,
    /// The token, if there is one.
    token: Option<u32>,
    /// The number of tokens of the answer that are kept, after "restart".
    kept: Option<usize>,
    /// The log of the probability that the row gave to all allowed tokens.
    log_mass: Option<f64>,
    /// The log of the probability of the token under the warped row, before the mask.
    log_probability: Option<f64>,
    /// The reason why there will be no text.
    reason: Option<String>,
}

#[pymethods]
impl Step {
    fn __repr__(&self) -> String {
        match (self.token, self.kept) {
            (Some(token), _) => format!("<Step {} {token}>", self.kind),
            (None, Some(kept)) => format!("<Step {} after {kept} tokens>", self.kind),
            (None, None) => format!("<Step {}>", self.kind),
        }
    }
}

impl Step {
    /// Returns the step that a walk took to reach a text.
    pub(super) fn of(step: law::Step, text: &Text) -> Step {
        let (mut kept, mut reason) = (None, None);
        let (kind, drawn) = match step {
            law::Step::Token(drawn) => ("token", Some(drawn)),
            law::Step::End(drawn) => ("end", Some(drawn)),
            law::Step::Restart => {
                kept = Some(text.tokens.len());
                ("restart", None)
            }
            law::Step::Stuck(error) => {
                reason = Some(error.to_string());
                ("stuck", None)
            }
        };
        Step {
            kind,
            token: drawn.as_ref().map(|drawn| drawn.token),
            kept,
            log_mass: drawn.as_ref().map(|drawn| drawn.log_mass),
            log_probability: drawn.as_ref().map(|drawn| drawn.log_probability),
            reason,
        }
    }
}

/// A text, and all that draws its next token.
pub(super) struct Text {
    pub(super) walk: Walk,
    chooser: Seeded,
    tokens: Vec<u32>,
    /// The state after each number of tokens, from none on.
    states: Vec<State>,
    /// The state of the monitors after the tokens.
    watch: Option<ProductState>,
    /// `true` if no step follows: the text is whole, or there will be none.
    is_over: bool,
}

impl Text {
    /// Creates the text that has no token yet. Draws depend on `seed`, on `sequence` and on the place of the
    /// token.
    pub(super) fn new(setting: &Setting, walk: Walk, seed: u64, sequence: u32) -> Text {
        Text {
            walk,
            chooser: Seeded::new(seed, sequence),
            tokens: Vec::new(),
            states: vec![setting.start()],
            watch: setting.watch(),
            is_over: false,
        }
    }

    /// Returns a text that continues from here by itself, with the draws of another sequence.
    pub(super) fn fork(&self, sequence: u32) -> Text {
        Text {
            walk: self.walk.fork(),
            chooser: Seeded::new(self.chooser.seed(), sequence),
            tokens: self.tokens.clone(),
            states: self.states.iter().map(|state| state.at(state.state)).collect(),
            watch: self.watch.clone(),
            is_over: self.is_over,
        }
    }

    /// Returns a copy of this text, with the same draws.
    pub(super) fn copy(&self) -> Text {
        self.fork(self.chooser.sequence())
    }

    /// Goes back to the first tokens, of a law under which each token is certain once it is drawn.
    pub(super) fn rewind(&mut self, kept: usize) {
        self.walk.rewind(u32::try_from(kept).unwrap_or(u32::MAX));
        self.keep(kept);
        self.is_over = false;
    }

    /// Returns `true` if no step follows.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Returns the state after the tokens.
    pub(super) fn state(&self) -> &State {
        &self.states[self.states.len() - 1]
    }

    /// Takes a step from the masked row.
    pub(super) fn next(
        &mut self,
        setting: &Setting,
        row: &impl Row<f64>,
        allowed: Allowed<'_>,
    ) -> PyResult<law::Step> {
        self.check()?;
        let step = self.walk.next(row, allowed, &mut self.chooser);
        self.follow(setting, step)
    }

    /// Takes a step by trying one token after the other: the monitors are asked about each, and the grammar
    /// too if there is no mask.
    pub(super) fn next_asked(
        &mut self,
        setting: &Setting,
        row: &impl Row<f64>,
        mask: Option<Allowed<'_>>,
    ) -> PyResult<law::Step> {
        self.check()?;
        let budget = setting.budget(&self.tokens);
        let mut words = mask.unwrap_or(Allowed::All).to_words(row.len()).into_owned();
        if let Some(watch) = &mut self.watch {
            watch.narrow_known(&mut words);
        }
        let mut asking = Asking {
            setting,
            state: &self.states[self.states.len() - 1],
            is_masked: mask.is_some(),
            watch: self.watch.as_mut(),
            width: row.len(),
            budget,
            refused: 0,
            failure: None,
        };
        let allowed = Allowed::Words(&words);
        let step = self.walk.next_asked(row, allowed, &mut asking, &mut self.chooser);
        if let Some(error) = asking.failure {
            self.walk.rewind(self.tokens.len() as u32);
            return Err(error);
        }
        self.follow(setting, step)
    }

    fn check(&self) -> PyResult<()> {
        match self.is_over {
            true => Err(PyValueError::new_err("the text has ended; no step follows")),
            false => Ok(()),
        }
    }

    /// Goes where the walk went. If that fails, the text has ended.
    fn follow(&mut self, setting: &Setting, step: law::Step) -> PyResult<law::Step> {
        self.is_over = true;
        match &step {
            law::Step::Token(drawn) | law::Step::End(drawn) => {
                let (state, ends) = (self.state(), setting.ends());
                let next = state.grammar().step_for(state.state, drawn.token, ends);
                let next = next.map_err(limit_error)?;
                // The mask allowed it.
                let next = next.map(|next| state.kept(next));
                self.states.extend(next);
                if let (Some(watch), Some(monitors)) = (&mut self.watch, &setting.monitors) {
                    monitors.advance(watch, drawn.token)?;
                }
                self.tokens.push(drawn.token);
            }
            law::Step::Restart => self.keep(self.walk.position() as usize),
            law::Step::Stuck(_) => {}
        }
        self.is_over = matches!(step, law::Step::End(_) | law::Step::Stuck(_));
        Ok(step)
    }

    fn keep(&mut self, tokens: usize) {
        self.tokens.truncate(tokens);
        self.states.truncate(tokens + 1);
    }
}

/// Answers whether a token may follow a text, by a step of its grammar and by its monitors.
struct Asking<'a> {
    setting: &'a Setting,
    state: &'a State,
    /// `true` if only tokens are drawn that the grammar allows.
    is_masked: bool,
    watch: Option<&'a mut ProductState>,
    width: usize,
    budget: Option<usize>,
    refused: usize,
    failure: Option<PyErr>,
}

impl Asking<'_> {
    fn may_come(&mut self, token: u32) -> PyResult<bool> {
        let left = match self.budget {
            Some(0) => return Ok(false),
            budget => budget.map(|budget| budget - 1),
        };
        if !self.is_masked {
            let grammar = self.state.grammar();
            let next = grammar.step_for(self.state.state, token, self.setting.ends());
            let next = next.map_err(limit_error)?;
            let fits = |next| left.is_none_or(|left| grammar.completes_within(next, left));
            if !next.is_some_and(fits) {
                return Ok(false);
            }
        }
        match (&mut self.watch, &self.setting.monitors) {
            (Some(watch), Some(monitors)) => monitors.allows(watch, token, left),
            _ => Ok(true),
        }
    }

    /// Returns the tokens that the monitors are known to allow at most, if they have said so.
    fn known(&mut self) -> Option<Vec<u32>> {
        let watch = self.watch.as_mut()?;
        let mut words = Allowed::All.to_words(self.width).into_owned();
        watch.narrow_known(&mut words).then_some(words)
    }
}

impl Ask for Asking<'_> {
    fn allows(&mut self, token: u32) -> bool {
        let answer = self.may_come(token);
        self.refused += 1;
        answer.unwrap_or_else(|error| {
            self.failure.get_or_insert(error);
            false
        })
    }

    fn narrow(&mut self) -> Option<Vec<u32>> {
        if self.failure.is_some() {
            // Nothing can be drawn, so that no more tokens are tried.
            return Some(Vec::new());
        }
        if self.refused != PATIENCE || self.is_masked {
            return (self.refused == 1).then(|| self.known()).flatten();
        }
        Some(match self.setting.mask(self.state, self.budget) {
            Ok(mask) => mask.words().to_vec(),
            Err(error) => {
                self.failure = Some(error);
                Vec::new()
            }
        })
    }
}
