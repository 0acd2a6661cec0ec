//! An engine that makes a pass when the test says so: the tests count passes of the model, not time.

use crate::rig::{PATIENCE, WIDTH, letters, vocabulary, wait_until, wordy_script};
use lexiform_engine::{
    Engine, EngineConfig, EngineError, Event, Feed, Flight, Model, Request, Sampling, ScriptedModel,
    SlotMoves,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// Opens for so many, or for all.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<u64>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self, more: u64) {
        let mut left = self.0.0.lock().unwrap();
        *left = left.saturating_add(more);
        self.0.1.notify_all();
    }

    pub(crate) fn pass(&self) {
        let left = self.0.0.lock().unwrap();
        let mut left = self.0.1.wait_while(left, |left| *left == 0).unwrap();
        *left -= u64::from(*left < u64::MAX);
    }
}

/// A model that makes a pass when the test says so.
struct Stepped {
    model: ScriptedModel,
    gate: Gate,
}

impl Model for Stepped {
    fn vocab_size(&self) -> usize {
        self.model.vocab_size()
    }

    fn max_positions(&self) -> usize {
        self.model.max_positions()
    }

    fn cache_bytes_per_token(&self) -> usize {
        0
    }

    fn create_cache(&mut self, blocks: usize, block_size: usize) -> Result<(), EngineError> {
        self.model.create_cache(blocks, block_size)
    }

    fn submit(&mut self, feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>, EngineError> {
        self.gate.pass();
        self.model.submit(feeds)
    }

    fn move_slots(&mut self, moves: &[SlotMoves<'_>]) -> Result<(), EngineError> {
        self.model.move_slots(moves)
    }

    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> Result<(), EngineError> {
        self.model.copy_blocks(pairs)
    }
}

/// An engine whose passes the test counts.
pub(crate) struct Counted {
    pub(crate) engine: Engine,
    pub(crate) gate: Gate,
}

impl Counted {
    pub(crate) fn new(config: EngineConfig) -> Self {
        Self::with(wordy_script, config)
    }

    pub(crate) fn with(script: impl Fn(&[u32]) -> Vec<f32> + Send + 'static, config: EngineConfig) -> Self {
        let gate = Gate::default();
        let model = Stepped {
            model: ScriptedModel::new(WIDTH, 100_000, script),
            gate: gate.clone(),
        };
        let config = EngineConfig {
            // A pass takes as long as the test waits, and the next must not become shorter for that.
            shared_pass: PATIENCE,
            ..config
        };
        let engine = Engine::start(Box::new(model), None, vocabulary(), config).unwrap();
        Counted { engine, gate }
    }

    /// Makes one pass and waits for its end.
    pub(crate) fn pass(&self) {
        let steps = self.engine.stats().steps;
        self.gate.open(1);
        wait_until(&self.engine, |stats| stats.steps > steps);
    }

    /// Passes until this many tokens of a request were told.
    pub(crate) fn passes_until(&self, told: &AtomicU64, tokens: u64) -> u64 {
        let mut passes = 0;
        while told.load(Ordering::Acquire) < tokens {
            self.pass();
            passes += 1;
            assert!(passes < 10_000, "it starves");
        }
        passes
    }

    /// Submits a request that has no end of its own; how many tokens it has been told.
    pub(crate) fn endless(&self, owner: &str, prompt: usize, tokens: usize) -> Arc<AtomicU64> {
        let prompt: String = owner.chars().chain("abc ".chars().cycle()).take(prompt).collect();
        let request = Request::new(letters(&prompt), tokens)
            .sampling(Sampling::seeded(7))
            .owner(Some(owner.into()))
            .ignore_eos(true);
        self.submit(request)
    }

    /// Submits a request; how many tokens it has been told.
    pub(crate) fn submit(&self, request: Request) -> Arc<AtomicU64> {
        let told = Arc::new(AtomicU64::new(0));
        let count = told.clone();
        let sink = move |event| {
            count.fetch_add(u64::from(matches!(event, Event::Token { .. })), Ordering::AcqRel);
            true
        };
        self.engine.submit(request, Box::new(sink)).unwrap().detach();
        told
    }

    /// Lets the engine come to its end without being counted.
    pub(crate) fn stop(&self) {
        self.gate.open(u64::MAX);
        self.engine.stop();
    }
}
