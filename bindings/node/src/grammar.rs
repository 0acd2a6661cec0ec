//! Grammars: steps, masks, and forced text.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use lexiform::MaskRequest;
use lexiform::error::Diagnostics;
use lexiform::limits::Limits;
use lexiform::schema;
use lexiform::verdict::judge;
use napi::bindgen_prelude::{AsyncTask, Buffer, ObjectFinalize, Uint32ArraySlice};
use napi::{Env, Result, Task};
use napi_derive::napi;
use serde_json::Value;

use crate::batch::Row;
use crate::error::{call_error, compile_error, limit_error, problem};
use crate::explain::{Explanation, assertion};
use crate::external::External;
use crate::judged;
use crate::mask;
use crate::options;
use crate::options::{tokens, whole};
use crate::repair::{Language, RepairTask};
use crate::state::{Shared, State};
use crate::vocabulary::{Vocabulary, count, words};
use crate::watch::Abort;

/// A compiled grammar over one vocabulary.
#[napi(custom_finalize)]
pub struct Grammar {
    pub(crate) shared: Arc<Shared>,
    about: About,
    external: RefCell<External>,
    /// The number of steps taken, after some of which the memory of the grammar is looked at.
    steps: Cell<u32>,
}

/// The source and the limits of a grammar.
pub(crate) struct About {
    /// The schema with its options, for reports; `None` for other sources.
    pub(crate) schema: Option<(String, schema::Options)>,
    pub(crate) limits: Limits,
    pub(crate) diagnostics: Diagnostics,
}

/// The memory of a grammar is looked at after this many steps, because a look costs as much as several of
/// them.
const LOOKED_AFTER: u32 = 64;

/// The bytes of a compiled grammar that has no masks yet: its rules and the terminals that no other grammar
/// shares.
const OVERHEAD: usize = 16 << 10;

impl ObjectFinalize for Grammar {
    fn finalize(self, env: Env) -> Result<()> {
        self.external.into_inner().tell(env, 0);
        Ok(())
    }
}

#[napi]
impl Grammar {
    /// Returns the state in which every sequence begins.
    #[napi(catch_unwind)]
    pub fn start(&self) -> State {
        let grammar = self.shared.current();
        let start = grammar.start();
        State::new(&self.shared, grammar, start)
    }

    /// Returns the state after a token, or `null` if the token may not come next.
    #[napi(catch_unwind)]
    pub fn step(&self, env: Env, state: &State, token: f64, ends: Option<Vec<f64>>) -> Result<Option<State>> {
        let (state, token) = (state.of(&self.shared)?, whole("a token", token)?);
        let ends = state.ends(ends)?;
        let next = state.grammar.step_for(state.inner, token, ends.as_ref());
        Ok(next.map_err(limit_error)?.map(|next| self.kept(env, state, next)))
    }

    /// Returns the state after these bytes, or `null` if no text of the language continues with them.
    #[napi(catch_unwind)]
    pub fn step_bytes(&self, env: Env, state: &State, bytes: &[u8]) -> Result<Option<State>> {
        let state = state.of(&self.shared)?;
        let next = state.grammar.try_step_bytes(state.inner, bytes);
        Ok(next.map_err(limit_error)?.map(|next| self.kept(env, state, next)))
    }

    /// Returns the state after each of these tokens, up to the first one that may not come.
    #[napi(catch_unwind)]
    pub fn walk(&self, state: &State, path: Vec<f64>, ends: Option<Vec<f64>>) -> Result<Vec<State>> {
        let state = state.of(&self.shared)?;
        let (path, ends) = (tokens(&path)?, state.ends(ends)?);
        let states = state.grammar.walk(state.inner, &path, ends.as_ref());
        Ok(states.into_iter().map(|next| state.at(next)).collect())
    }

    /// Writes the mask of the tokens that may come next into a row of an array.
    #[napi(catch_unwind)]
    pub fn fill(
        &self,
        state: &State,
        mut mask: Uint32ArraySlice<'_>,
        row: f64,
        budget: Option<f64>,
        ends: Option<Vec<f64>>,
    ) -> Result<()> {
        let state = state.of(&self.shared)?;
        let (budget, ends) = (budget_of(budget)?, state.ends(ends)?);
        let row = mask::row(&mut mask, words(state.grammar.vocabulary()), row)?;
        let request = MaskRequest::from(state.inner)
            .within(budget)
            .ending(ends.as_ref());
        state.grammar.fill(request, row).map_err(limit_error)
    }

    /// Returns the tokens that may come next, in ascending order.
    #[napi(catch_unwind)]
    pub fn tokens(&self, state: &State, budget: Option<f64>, ends: Option<Vec<f64>>) -> Result<Vec<u32>> {
        let state = state.of(&self.shared)?;
        let (budget, ends) = (budget_of(budget)?, state.ends(ends)?);
        let request = MaskRequest::from(state.inner)
            .within(budget)
            .ending(ends.as_ref());
        Ok(state
            .grammar
            .try_mask(request)
            .map_err(limit_error)?
            .iter()
            .collect())
    }

    /// Returns this state as a row of a batch.
    #[napi(catch_unwind)]
    pub fn row(&self, state: &State, budget: Option<f64>, ends: Option<Vec<f64>>) -> Result<Row> {
        let state = state.of(&self.shared)?;
        Ok(Row(lexiform::BatchRow {
            grammar: state.grammar.clone(),
            state: state.inner,
            budget: budget_of(budget)?,
            ends: state.ends(ends)?,
        }))
    }

    /// Returns `true` if the text so far is complete.
    #[napi(catch_unwind)]
    pub fn is_accepting(&self, state: &State) -> Result<bool> {
        let state = state.of(&self.shared)?;
        Ok(state.grammar.is_accepting(state.inner))
    }

    /// Returns `true` if a token that ends the sequence was taken.
    #[napi(catch_unwind)]
    pub fn is_finished(&self, state: &State) -> Result<bool> {
        let state = state.of(&self.shared)?;
        Ok(state.grammar.is_finished(state.inner))
    }

    /// Returns the bytes that every completion continues with.
    #[napi(catch_unwind)]
    pub fn forced(&self, state: &State) -> Result<Buffer> {
        let state = state.of(&self.shared)?;
        Ok(state.grammar.forced(state.inner).into())
    }

    /// Returns the fewest tokens that complete the sequence, including its end.
    #[napi(catch_unwind)]
    pub fn min_completion(&self, state: &State) -> Result<Option<u32>> {
        let state = state.of(&self.shared)?;
        let fewest = state.grammar.try_min_completion(state.inner);
        Ok(fewest.map_err(limit_error)?.map(count))
    }

    /// Explains the possible continuations: at most `most` of them.
    #[napi(catch_unwind)]
    pub fn explain(&self, state: &State, most: f64) -> Result<Explanation> {
        let (state, most) = (state.of(&self.shared)?, whole("the number of ways", most)?);
        Ok(state.grammar.explain(state.inner, most as usize).into())
    }

    /// Returns as JSON how each assertion of the schema is enforced.
    #[napi(catch_unwind)]
    pub fn report(&self) -> Result<String> {
        let Some((text, options)) = &self.about.schema else {
            return Err(call_error("only grammars of schemas have a report"));
        };
        let report = schema::report(text, options, &self.about.limits);
        let report = report.map_err(|error| compile_error(&error))?;
        Ok(report
            .assertions
            .into_iter()
            .map(assertion)
            .collect::<Value>()
            .to_string())
    }

    /// Returns the verdict on a text as JSON.
    #[napi(catch_unwind)]
    pub fn validate(&self, text: String) -> Result<String> {
        judged::check_length(&text, &self.about.limits)?;
        let is_json = self.about.schema.is_some();
        let verdict = judge(&self.shared.current().fresh(), text.as_bytes(), is_json);
        Ok(judged::told(&verdict, &text, is_json).to_string())
    }

    /// Returns the nearest valid text and what leads to it, as JSON.
    #[napi(catch_unwind)]
    pub fn repair(&self, text: String, options: Option<String>) -> Result<String> {
        self.repair_task(text, options.as_deref(), None)?.compute()
    }

    /// Finds the nearest valid text on another thread.
    #[napi(catch_unwind)]
    pub fn repair_async(
        &self,
        text: String,
        options: Option<String>,
        abort: &Abort,
    ) -> Result<AsyncTask<RepairTask>> {
        let task = self.repair_task(text, options.as_deref(), Some(abort))?;
        Ok(AsyncTask::new(task))
    }

    /// The findings of the compile, as JSON.
    #[napi(getter, catch_unwind)]
    pub fn findings(&self) -> String {
        let findings = self.about.diagnostics.findings.iter();
        findings.map(problem).collect::<Value>().to_string()
    }

    /// The special tokens and marks that may occur in texts of the language.
    #[napi(getter, catch_unwind)]
    pub fn specials(&self) -> Vec<u32> {
        self.shared.current().specials().to_vec()
    }

    /// The approximate number of bytes of the masks and states found so far.
    #[napi(getter, catch_unwind)]
    pub fn memory(&self) -> f64 {
        self.shared.current().memory_usage() as f64
    }

    /// The vocabulary of the masks.
    #[napi(getter, catch_unwind)]
    pub fn vocabulary(&self) -> Vocabulary {
        Vocabulary(self.shared.current().vocabulary().clone())
    }

    /// The number of 32-bit words of one row of a mask.
    #[napi(getter, catch_unwind)]
    pub fn words(&self) -> u32 {
        count(words(self.shared.current().vocabulary()))
    }
}

impl Grammar {
    pub(crate) fn new(env: Env, grammar: lexiform::Grammar, about: About) -> Grammar {
        let grammar = Grammar {
            shared: Shared::new(grammar),
            about,
            external: RefCell::default(),
            steps: Cell::new(0),
        };
        grammar.tell(env);
        grammar
    }

    /// Tells the garbage collector how much memory the grammar has.
    fn tell(&self, env: Env) {
        let text = self.about.schema.as_ref().map_or(0, |(text, _)| text.len());
        let bytes = OVERHEAD + text + self.shared.current().memory_usage();
        self.external.borrow_mut().tell(env, bytes);
    }

    /// Returns a state that follows another one, in the grammar in which it continues.
    fn kept(&self, env: Env, state: &State, next: lexiform::State) -> State {
        let steps = self.steps.get();
        self.steps.set(steps.wrapping_add(1));
        let is_looked_at = steps.is_multiple_of(LOOKED_AFTER);
        let renewed = is_looked_at.then(|| state.renewed(next)).flatten();
        if is_looked_at {
            self.tell(env);
        }
        renewed.unwrap_or_else(|| state.at(next))
    }

    fn repair_task(&self, text: String, options: Option<&str>, abort: Option<&Abort>) -> Result<RepairTask> {
        let grammar = self.shared.current();
        let language = match self.about.schema {
            Some(_) => Language::Json(grammar),
            None => Language::Texts(grammar),
        };
        Ok(RepairTask::new(language, text, options::repair(options)?, abort))
    }
}

/// Returns a budget of tokens.
///
/// # Errors
/// It is no whole number.
pub(crate) fn budget_of(budget: Option<f64>) -> Result<Option<usize>> {
    let budget = budget.map(|budget| whole("a budget", budget)).transpose()?;
    Ok(budget.map(|budget| budget as usize))
}
