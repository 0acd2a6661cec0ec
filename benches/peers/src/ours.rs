//! Lexiform in the benchmark's interface.

use std::sync::Arc;

use lexiform::{Compiler, Mask, Options, Source};
use lexiform::schema::{self, KeyOrder};
use lexiform::vocab::Vocabulary;
use lexiform::{Grammar, State};

use crate::Failure;
use crate::cases::Case;
use crate::clock::timed;
use crate::engine::{Compiled, Engine, Sequence};

/// A compiler that is primed with JSON and has seen no schema.
pub struct Ours {
    compiler: Compiler,
    options: Options,
    /// The time taken by priming, in microseconds of this thread.
    pub prime_us: f64,
}

impl Ours {
    /// Primes a compiler.
    ///
    /// # Errors
    /// Never fails with options that compile, such as these.
    pub fn new(vocabulary: Arc<Vocabulary>, key_order: KeyOrder) -> Result<Self, Failure> {
        let options = Options {
            schema: schema::Options {
                key_order,
                ..schema::Options::default()
            },
            ..Options::default()
        };
        let (compiler, prime_us) = timed(|| Compiler::new(vocabulary).primed(&options));
        Ok(Self {
            compiler: compiler?,
            options,
            prime_us,
        })
    }

    /// Returns the memory of everything that all grammars of the vocabulary share, in bytes.
    pub fn bytes(&self) -> usize {
        self.compiler.tables().bytes()
    }

    /// Returns the grammar of a schema, with the time that the compile took.
    pub fn grammar(&self, case: &Case) -> (Result<Grammar, String>, f64) {
        let compiler = self.compiler.fresh();
        let (compiled, time) = timed(|| compiler.compile(Source::JsonSchema(&case.text), &self.options));
        let grammar = compiled.map(|(grammar, _)| grammar);
        (grammar.map_err(|error| error.to_string()), time)
    }
}

impl Engine for Ours {
    fn compile(&mut self, case: &Case) -> (Result<Box<dyn Compiled>, String>, f64) {
        let (grammar, time) = self.grammar(case);
        (grammar.map(|it| Box::new(it) as Box<dyn Compiled>), time)
    }
}

impl Compiled for Grammar {
    fn start(&self) -> Box<dyn Sequence + '_> {
        // Cloning the grammar would make all threads update one reference count.
        Box::new(Walk {
            grammar: self,
            state: Grammar::start(self),
            mask: None,
        })
    }
}

struct Walk<'g> {
    grammar: &'g Grammar,
    state: State,
    mask: Option<Arc<Mask>>,
}

impl Sequence for Walk<'_> {
    fn mask(&mut self) -> bool {
        self.mask = Some(self.grammar.mask(self.state));
        true
    }

    fn step(&mut self, token: u32) -> bool {
        let next = self.grammar.step(self.state, token);
        self.state = next.unwrap_or(self.state);
        next.is_some()
    }

    fn words(&self) -> &[u32] {
        self.mask.as_ref().map_or(&[], |mask| mask.words())
    }

    fn takes(&mut self, token: u32) -> bool {
        self.grammar.allows(self.state, token)
    }
}
