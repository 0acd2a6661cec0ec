//! llguidance in the benchmark's interface, set up as in its own MaskBench runner: one factory with the JSON
//! slices, default limits, forced tokens as masks of one token, and a lexer that all sequences of a schema
//! share.

use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{InferenceCapabilities, SimpleVob, TokEnv};
use llguidance::{Matcher, ParserFactory};
use toktrie_hf_tokenizers::{ByteTokenizer, ByteTokenizerEnv};

use crate::Failure;
use crate::cases::Case;
use crate::clock::timed;
use crate::engine::{Compiled, Engine, Sequence};

/// A factory of parsers for one vocabulary.
pub struct Guidance {
    factory: ParserFactory,
    /// The time taken to create the factory and its slices, in microseconds of this thread.
    pub prime_us: f64,
}

impl Guidance {
    /// Reads a `tokenizer.json`; `eos` ends a sequence.
    ///
    /// # Errors
    /// Fails if llguidance does not understand the file.
    pub fn new(tokenizer: &[u8], eos: u32) -> Result<Self, Failure> {
        let mut tokenizer = ByteTokenizer::from_json_bytes(tokenizer).map_err(plain)?;
        tokenizer.set_eos_token(eos);
        let env: TokEnv = ByteTokenizerEnv::new(tokenizer, None).map_err(plain)?.to_env();
        let slices = SlicedBiasComputer::json_slices();
        let (factory, prime_us) =
            timed(|| ParserFactory::new(&env, InferenceCapabilities::default(), &slices));
        let mut factory = factory.map_err(plain)?;
        factory.quiet();
        Ok(Self { factory, prime_us })
    }

    /// Returns a matcher in its start state, with the time that the compile took.
    pub fn matcher(&self, case: &Case) -> (Result<Matcher, String>, f64) {
        let schema = case.schema.clone();
        let (mut matcher, time) = timed(|| {
            let grammar = TopLevelGrammar::from_json_schema(schema);
            Matcher::new(self.factory.create_parser(grammar))
        });
        // A matcher that failed reports it only in its state.
        let failed = matcher.is_error() || matcher.is_accepting().is_err();
        let reason = failed.then(|| {
            matcher
                .get_error()
                .unwrap_or_else(|| "no reason given".to_owned())
        });
        (reason.map_or(Ok(matcher), Err), time)
    }
}

fn plain(error: impl std::fmt::Display) -> Failure {
    error.to_string().into()
}

impl Engine for Guidance {
    fn compile(&mut self, case: &Case) -> (Result<Box<dyn Compiled>, String>, f64) {
        let (matcher, time) = self.matcher(case);
        (matcher.map(|it| Box::new(it) as Box<dyn Compiled>), time)
    }
}

impl Compiled for Matcher {
    fn start(&self) -> Box<dyn Sequence + '_> {
        // A clone shares the lexer, with everything that other sequences of the schema have cached in it.
        Box::new(Walk {
            matcher: self.clone(),
            mask: None,
        })
    }
}

struct Walk {
    matcher: Matcher,
    mask: Option<SimpleVob>,
}

impl Sequence for Walk {
    fn mask(&mut self) -> bool {
        self.mask = self.matcher.compute_mask_or_eos().ok();
        self.mask.is_some()
    }

    fn step(&mut self, token: u32) -> bool {
        self.matcher.consume_token(token).is_ok()
    }

    fn words(&self) -> &[u32] {
        self.mask.as_ref().map_or(&[], SimpleVob::as_slice)
    }

    /// Checks the token itself: at forced text the mask has one token, though other splits of the text are
    /// valid, too.
    fn takes(&mut self, token: u32) -> bool {
        self.matcher
            .validate_tokens(&[token])
            .is_ok_and(|taken| taken == 1)
    }
}
