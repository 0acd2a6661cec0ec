//! Walks the instances of a schema through an engine, and times every mask.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::cases::{Case, Instance};
use crate::clock::timed;
use crate::engine::{Compiled, Engine};

/// The results of one engine for one schema.
#[derive(Default)]
pub struct Record {
    /// The compiled schema, kept for the second walk; `None` if the engine refused the schema.
    pub compiled: Option<Box<dyn Compiled>>,
    /// The reason for the refusal.
    pub refusal: Option<String>,
    /// The time of the compile, in microseconds.
    pub compile_us: f64,
    /// The time of the first mask, in microseconds.
    pub first_us: f64,
    /// The walk of each instance on the new grammar.
    pub cold: Vec<Walked>,
    /// The second walk of each instance on the same grammar.
    pub warm: Vec<Walked>,
}

/// The progress of an instance.
#[derive(Default)]
pub struct Walked {
    /// The time of the step with each accepted token and the mask after it, in microseconds.
    pub mask_us: Vec<f32>,
    /// `true` if all tokens and then the end were allowed.
    pub accepted: bool,
}

/// Compiles a schema and walks its instances.
pub fn cold(engine: &mut dyn Engine, case: &Case, eos: u32) -> Record {
    let mut record = Record::default();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let (compiled, time) = engine.compile(case);
        record.compile_us = time;
        let compiled = compiled?;
        record.first_us = {
            let mut first = compiled.start();
            timed(|| first.mask()).1
        };
        record.cold = walk_all(&*compiled, case, eos);
        record.compiled = Some(compiled);
        Ok::<(), String>(())
    }));
    record.refusal = outcome.unwrap_or_else(|_| Err("it panicked".to_owned())).err();
    record
}

/// Walks the instances once more on the same grammar.
pub fn warm(record: &mut Record, case: &Case, eos: u32) {
    if let Some(compiled) = &record.compiled {
        let walked = catch_unwind(AssertUnwindSafe(|| walk_all(&**compiled, case, eos)));
        record.warm = walked.unwrap_or_default();
    }
}

fn walk_all(compiled: &dyn Compiled, case: &Case, eos: u32) -> Vec<Walked> {
    case.instances.iter().map(|it| walk(compiled, it, eos)).collect()
}

fn walk(compiled: &dyn Compiled, instance: &Instance, eos: u32) -> Walked {
    let mut walked = Walked::default();
    let mut sequence = compiled.start();
    if !sequence.mask() {
        return walked;
    }
    for &token in &instance.tokens {
        if !sequence.allows(token) && !sequence.takes(token) {
            return walked;
        }
        let (went_on, time) = timed(|| sequence.step(token) && sequence.mask());
        if !went_on {
            return walked;
        }
        walked.mask_us.push(time as f32);
    }
    walked.accepted = sequence.allows(eos);
    walked
}

impl Record {
    /// Returns `true` if the engine judges every instance as the collection does.
    pub fn is_right(&self, case: &Case) -> bool {
        let judged = |(it, walked): (&Instance, &Walked)| it.valid == walked.accepted;
        self.refusal.is_none() && case.instances.iter().zip(&self.cold).all(judged)
    }

    /// Returns `true` if the engine accepted an invalid instance.
    pub fn let_through(&self, case: &Case) -> bool {
        let wrong = |(it, walked): (&Instance, &Walked)| walked.accepted && !it.valid;
        case.instances.iter().zip(&self.cold).any(wrong)
    }
}
