//! The compilers of one vocabulary: one for each key, so that the time of a compile or of a mask tells
//! nothing of what other keys have had compiled.
//!
//! ```text
//!   primed tables ─┬─► compiler of a key ─► its grammars
//!                  └─► compiler of a key ─► its grammars
//! ```
//!
//! Compilers begin with the parts that all schemas have in common, and add what the grammars of their own key
//! compute. The tables of all of them together are bounded: beyond the bound, those that are largest are
//! emptied, and are filled again as they are used.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lexiform::Compiler;
use lexiform_engine::Owner;

/// The memory that the tables of all keys may take together, in bytes.
const TABLE_BYTES: usize = 128 << 20;

/// The compilers of all keys.
pub struct Compilers {
    /// The compiler of requests without a key.
    primed: Compiler,
    of_keys: Mutex<HashMap<Arc<str>, Compiler>>,
    bound: usize,
}

impl Compilers {
    /// Creates the compilers; all begin with the tables of this one.
    pub fn new(primed: Compiler) -> Self {
        Self {
            primed,
            of_keys: Mutex::default(),
            bound: TABLE_BYTES,
        }
    }

    /// Returns the compiler of the key of this name, or the one of requests without a key.
    pub fn of(&self, key: &Owner) -> Compiler {
        let Some(key) = key else {
            return self.primed.clone();
        };
        let mut of_keys = self.locked();
        let compiler = of_keys.entry(key.clone()).or_insert_with(|| self.primed.apart());
        compiler.clone()
    }

    /// Drops the compilers without grammars, and what the largest tables have learned, as long as all of them
    /// together are too large. O(keys with grammars).
    pub fn tidy(&self) {
        let mut of_keys = self.locked();
        // A compile that is running holds a reference, and so does every grammar.
        of_keys.retain(|_, compiler| Arc::strong_count(compiler.tables()) > 1);
        let mut sizes: Vec<(usize, &Compiler)> = of_keys
            .values()
            .map(|compiler| (compiler.tables().own_bytes(), compiler))
            .collect();
        sizes.sort_by_key(|(bytes, _)| *bytes);
        let mut total: usize = sizes.iter().map(|(bytes, _)| bytes).sum();
        while total > self.bound
            && let Some((bytes, compiler)) = sizes.pop()
        {
            compiler.tables().forget();
            total -= bytes;
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Arc<str>, Compiler>> {
        // A panic cannot leave the map half written: each change is a single step.
        self.of_keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexiform::vocab::{TokenKind, Vocabulary};
    use lexiform::{Grammar, MaskRequest, Options, Source};

    fn compilers() -> Compilers {
        let tokens: Vec<(TokenKind, Vec<u8>)> = std::iter::once((TokenKind::Special, b"<end>".to_vec()))
            .chain((0..=255).map(|byte| (TokenKind::Text, vec![byte])))
            .collect();
        let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
        let primed = Compiler::new(vocabulary).primed(&Options::for_generation());
        Compilers::new(primed.expect("the options are the usual ones"))
    }

    /// Compiles a schema and makes masks along a text for a key. Returns the bytes that this added to the
    /// tables of the key.
    fn work(compilers: &Compilers, key: &str) -> (usize, Grammar) {
        let compiler = compilers.of(&Some(key.into()));
        let before = compiler.tables().own_bytes();
        let schema = r#"{"type": "object", "properties": {"pin": {"type": "string", "pattern": "^[a-f]{3,9}$"},
            "size": {"type": "string", "maxLength": 7}}, "required": ["pin", "size"]}"#;
        let options = Options::for_generation();
        let compiled = compiler.compile(Source::JsonSchema(schema), &options);
        let (grammar, _) = compiled.expect("the schema compiles");
        let mut state = grammar.start();
        for byte in br#"{"pin":"abc","size":"a"}"# {
            grammar.mask(state);
            let request = MaskRequest::from(state).within(40);
            grammar.try_mask(request).expect("the grammar is small");
            state = grammar.step_bytes(state, &[*byte]).expect("the text is allowed");
        }
        (compiler.tables().own_bytes() - before, grammar)
    }

    /// Guards against compiles and masks whose time tells what another key has sent: what has to be computed
    /// for a schema is the same whether or not another key had it before.
    #[test]
    fn what_one_key_had_compiled_saves_another_nothing() {
        let (alone, _) = work(&compilers(), "second");
        assert!(alone > 0);
        let compilers = compilers();
        let (first, _kept) = work(&compilers, "first");
        assert_eq!(first, alone);
        assert_eq!(work(&compilers, "first").0, 0, "a key has what it had compiled");
        assert_eq!(work(&compilers, "second").0, alone);
    }

    #[test]
    fn the_largest_tables_are_emptied_and_idle_ones_dropped() {
        let mut compilers = compilers();
        let (bytes, grammar) = work(&compilers, "busy");
        work(&compilers, "idle");
        compilers.tidy();
        assert_eq!(compilers.locked().len(), 1, "nobody has a grammar of the other");
        let busy = compilers.of(&Some("busy".into()));
        assert_eq!(busy.tables().own_bytes(), bytes);
        compilers.bound = bytes - 1;
        compilers.tidy();
        assert_eq!(busy.tables().own_bytes(), 0);
        let state = grammar.start();
        assert!(!grammar.mask(state).is_empty(), "its grammars go on");
    }
}
