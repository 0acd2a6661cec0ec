//! The programs of all engines, and what each may use; walks with several vocabularies.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::cases::Case;
use super::environment::Environment;
use super::process::{Bounds, Launch, Process};
use super::run::{Entrant, Finished, OURS, Plan, run};
use super::vocabulary::{Scratch, Subject};
use crate::eval::verdict::progress;
use crate::failure::Failure;
use crate::input::tokenizer::TokenizerArgs;

/// The programs of all engines, and what each may use.
pub(super) struct Arena {
    /// This program, whose worker is Lexiform.
    pub(super) ours: PathBuf,
    /// The other engines.
    pub(super) others: Vec<String>,
    /// What the other engines run in, if there are any.
    pub(super) environment: Option<Environment>,
    pub(super) bounds: Bounds,
    /// The folder for what the workers print besides their answers.
    pub(super) logs: PathBuf,
}

/// The engines with one vocabulary.
pub(super) struct Grown {
    /// The name of the tokenizer.
    pub(super) name: String,
    pub(super) tokens: usize,
    pub(super) engines: Vec<Finished>,
    /// The engines that cannot be used with it, and why.
    pub(super) left_out: BTreeMap<String, String>,
}

impl Arena {
    /// Starts all engines on a vocabulary; those that cannot be used are returned with the reason.
    pub(super) fn entrants(&self, subject: &Subject) -> (Vec<Entrant>, BTreeMap<String, String>) {
        let mut left_out = BTreeMap::new();
        let mut entrants = Vec::new();
        for (name, launch) in self.launches() {
            let process = Process::new(launch, self.bounds, subject.load().clone());
            match Entrant::load(&name, Box::new(process), subject.load()) {
                Ok(entrant) => entrants.push(entrant),
                Err(lost) => drop(left_out.insert(name, lost.to_string())),
            }
        }
        (entrants, left_out)
    }

    fn launches(&self) -> Vec<(String, Launch)> {
        let log = |name: &str| self.logs.join(format!("{name}.log"));
        let ours = Launch {
            program: self.ours.clone(),
            args: ["eval", "compare-worker"].map(str::to_owned).to_vec(),
            log: log(OURS),
        };
        let mut launches = vec![(OURS.to_owned(), ours)];
        let Some(environment) = &self.environment else {
            return launches;
        };
        let others = self
            .others
            .iter()
            .filter(|name| !environment.missing.contains_key(*name));
        launches.extend(others.map(|name| {
            let worker = environment.worker.to_string_lossy().into_owned();
            let launch = Launch {
                program: environment.python.clone(),
                args: vec!["-I".to_owned(), worker, name.clone()],
                log: log(name),
            };
            (name.clone(), launch)
        }));
        launches
    }

    /// Returns the engines that could not be installed.
    pub(super) fn missing(&self) -> BTreeMap<String, String> {
        self.environment
            .as_ref()
            .map_or_else(BTreeMap::new, |it| it.missing.clone())
    }

    /// Walks the same schemas with several tokenizers, which shows how engines grow with the vocabulary.
    ///
    /// # Errors
    /// A tokenizer cannot be used.
    pub(super) fn grown(
        &self,
        tokenizers: &[(TokenizerArgs, Option<usize>)],
        time: Duration,
        scratch: &Scratch,
        read: impl Fn(&Subject) -> Result<Vec<Case>, Failure>,
    ) -> Result<Vec<Grown>, Failure> {
        let mut grown = Vec::new();
        for (tokenizer, rows) in tokenizers {
            let subject = Subject::new(tokenizer, *rows, scratch)?;
            let cases = read(&subject)?;
            let began = Instant::now();
            let plan = Plan {
                time: time / tokenizers.len() as u32,
                judge: None,
                threaded: 0,
                clock: &|| began.elapsed(),
            };
            let (mut entrants, left_out) = self.entrants(&subject);
            let bar = progress(cases.len());
            run(&mut entrants, &cases, &plan, || bar.inc(1));
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
}
