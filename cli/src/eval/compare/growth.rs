//! How engines grow with the vocabulary: the same schemas with several tokenizers.

use std::collections::BTreeMap;
use std::time::Instant;

use super::run::{Entrant, Finished, Plan};
use super::vocabulary::{Named, Scratch, Subject};
use super::{Arena, Args, GROWTH, growth_cases};
use crate::eval::verdict::progress;
use crate::failure::Failure;
use crate::input::tokenizer::TokenizerArgs;

/// The engines with one vocabulary.
pub(super) struct Grown {
    /// The name of the tokenizer.
    pub(super) name: String,
    pub(super) tokens: usize,
    pub(super) engines: Vec<Finished>,
    /// The engines that cannot be used with it, and why.
    pub(super) left_out: BTreeMap<String, String>,
}

/// Walks some of the schemas with each tokenizer; the first is that of the whole comparison.
///
/// # Errors
/// A tokenizer cannot be used.
pub(super) fn measure(args: &Args, arena: &Arena, scratch: &Scratch) -> Result<Vec<Grown>, Failure> {
    let first = (args.tokenizer.clone(), None);
    let others = args
        .tokenizers
        .iter()
        .map(|Named { path, rows }| (TokenizerArgs::of_file(path.clone()), *rows));
    let mut grown = Vec::new();
    for (tokenizer, rows) in std::iter::once(first).chain(others) {
        let subject = Subject::new(&tokenizer, rows, scratch)?;
        let cases = growth_cases(args, &subject)?;
        let began = Instant::now();
        let plan = Plan {
            time: args.time(GROWTH) / (1 + args.tokenizers.len() as u32),
            judge: None,
            threaded: 0,
            clock: &|| began.elapsed(),
        };
        let (mut entrants, left_out) = arena.entrants(&subject);
        let bar = progress(cases.len());
        super::run::run(&mut entrants, &cases, &plan, || bar.inc(1));
        bar.finish_and_clear();
        grown.push(Grown {
            name: subject.name().to_owned(),
            tokens: subject.vocabulary().len(),
            engines: entrants.into_iter().map(Entrant::finish).collect(),
            left_out,
        });
    }
    Ok(grown)
}
