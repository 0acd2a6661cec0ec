//! Markov chain Monte Carlo: a text is cut, its rest is drawn again, and the new text is accepted or not.

use std::sync::{Mutex, MutexGuard, PoisonError};

use lexiform_law as law;
use lexiform_law::{Allowed, Cuts, Law, LogWeight, Seeded};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments;
use super::setting::{Common, Logits, Setting, row_of};
use super::text::{Step, Text};
use crate::fork;
use crate::grammar::Grammar;

/// Changes an answer step by step, so that its law nears that of the model under the condition of the
/// grammar.
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct Chain {
    setting: Setting,
    link: Mutex<Link>,
}

/// The present text of a chain, and the one that is proposed to it.
struct Link {
    chain: law::Chain<LogWeight>,
    now: Option<Text>,
    drawing: Option<Text>,
    /// Whether the last whole proposal was accepted.
    accepted: Option<bool>,
    seed: u64,
    /// The number of proposals begun. Each draws with a sequence of its own, and sequence 0 decides about
    /// cuts and moves.
    proposals: u32,
}

#[pymethods]
impl Chain {
    /// Creates a chain that has no text yet. Texts are cut where `cuts` says: "restart" (at the beginning),
    /// "uniform" or "priority" (where tokens are unlikely). All draws depend on `seed`. The other arguments
    /// are those of `Sampler`.
    #[new]
    #[pyo3(signature = (grammar, *, cuts = "restart", seed = 0, prompt = None, max_tokens = None, ends = None, **warping))]
    fn new(
        grammar: &Bound<'_, Grammar>,
        cuts: &str,
        seed: u64,
        prompt: Option<Vec<u32>>,
        max_tokens: Option<u32>,
        ends: Option<&Bound<'_, PyAny>>,
        warping: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Chain> {
        let cuts = arguments::cuts(cuts)?;
        let common = Common {
            grammar,
            prompt,
            max_tokens,
            ends,
            warping,
            monitors: None,
        };
        let setting = Setting::new(common, Law::Mcmc { steps: 1, cuts })?;
        Ok(Chain {
            setting,
            link: Mutex::new(Link::new(cuts, seed)),
        })
    }

    /// Begins to propose a text, and returns how many tokens of the present one it keeps: none for the first.
    /// The rows that `next` needs are those after these tokens and the ones drawn since.
    fn propose(&self) -> PyResult<usize> {
        self.lock().propose(&self.setting)
    }

    /// Draws the next token of the proposed text, given the model's row after the tokens so far: float32, one
    /// for each token of the vocabulary. After "end" the text is whole, and `accepted` tells whether it is
    /// the present one now. After "stuck" it cannot become whole, and is not accepted. `amateur` is the row
    /// of the other model, with `contrast_beta`.
    #[pyo3(signature = (logits, *, amateur = None))]
    fn next(
        &self,
        py: Python<'_>,
        logits: &Bound<'_, PyAny>,
        amateur: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Step> {
        let (model, amateur) = (row_of(logits)?, amateur.map(row_of).transpose()?);
        let _inside = fork::enter(py);
        py.detach(|| {
            let logits = Logits {
                model: &model,
                amateur: amateur.as_deref(),
            };
            self.lock().next(&self.setting, logits)
        })
    }

    /// The tokens of the present text, which is empty before the first was accepted.
    #[getter]
    fn text(&self) -> Vec<u32> {
        let link = self.lock();
        link.now
            .as_ref()
            .map_or_else(Vec::new, |text| text.tokens().to_vec())
    }

    /// Whether the last proposal was accepted; `None` while a text is proposed, and before the first.
    #[getter]
    fn accepted(&self) -> Option<bool> {
        self.lock().accepted
    }

    /// The number of texts proposed after the first.
    #[getter]
    fn steps(&self) -> u32 {
        self.lock().chain.steps()
    }

    /// The number of them that were accepted.
    #[getter]
    fn moves(&self) -> u32 {
        self.lock().chain.moves()
    }

    /// The log of the probability of the present text under the warped model; `None` if there is no text.
    #[getter]
    fn log_probability(&self) -> Option<f64> {
        let link = self.lock();
        link.now.as_ref().map(|text| text.walk.log_probability())
    }

    /// The law of the present text: "mcmc", or "mcmc-filtered" where filters cut the rows.
    #[getter]
    fn law(&self) -> &'static str {
        self.setting.tag(law::LawTag::Mcmc).as_str()
    }
}

impl Chain {
    fn lock(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    fn new(cuts: Cuts, seed: u64) -> Link {
        Link {
            chain: law::Chain::new(cuts),
            now: None,
            drawing: None,
            accepted: None,
            seed,
            proposals: 0,
        }
    }

    fn chooser(&self) -> Seeded {
        Seeded::new(self.seed, 0)
    }

    fn propose(&mut self, setting: &Setting) -> PyResult<usize> {
        // One whose last step failed is over; it was never accepted.
        if self.drawing.as_ref().is_some_and(|text| !text.is_over()) {
            let message = "the text that is proposed is not whole: pass its rows to next until its end";
            return Err(PyValueError::new_err(message));
        }
        self.proposals = self.proposals.wrapping_add(1);
        let kept = self.chain.cut(&mut self.chooser());
        self.drawing = Some(match &self.now {
            Some(now) => {
                let mut text = now.fork(self.proposals);
                text.rewind(kept);
                text
            }
            None => Text::new(setting, setting.local_walk(), self.seed, self.proposals),
        });
        self.accepted = None;
        Ok(kept)
    }

    fn next(&mut self, setting: &Setting, logits: Logits<'_>) -> PyResult<Step> {
        let Some(text) = &mut self.drawing else {
            return Err(PyValueError::new_err("no text is proposed: call propose"));
        };
        let row = setting.row(logits, text.tokens())?;
        let mask = setting.mask(text.state(), setting.budget(text.tokens()))?;
        let step = text.next(setting, &row, Allowed::Words(mask.words()))?;
        let (is_whole, is_lost) = (
            matches!(step, law::Step::End(_)),
            matches!(step, law::Step::Stuck(_)),
        );
        let step = Step::of(step, text);
        if is_whole || is_lost {
            self.judge(is_whole);
        }
        Ok(step)
    }

    /// Ends a proposal, of a text that is whole or cannot become so.
    fn judge(&mut self, is_whole: bool) {
        let Some(text) = self.drawing.take() else { return };
        let mut chooser = self.chooser();
        let is_accepted = match is_whole {
            true => {
                let rows = text.walk.rows().into_iter();
                let rows = rows.map(|(token, mass)| (LogWeight::from_ln(token), LogWeight::from_ln(mass)));
                let tokens = text.tokens().to_vec();
                self.chain.propose(tokens, rows.collect(), &mut chooser)
            }
            false => {
                self.chain.reject();
                false
            }
        };
        if is_accepted {
            self.now = Some(text);
        }
        self.accepted = Some(is_accepted);
    }
}
