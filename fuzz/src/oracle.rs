//! Small languages of all kinds, each compiled for a small vocabulary and compared at every text with the
//! slow judges of the library's tests. The input is the seed of the random numbers there.

// What is shared with the tests is not all used here, and is checked there.
#[allow(dead_code, unused_imports)]
#[path = "../../tests/masks/oracle/context_free.rs"]
mod context_free;
#[allow(dead_code, unused_imports)]
#[path = "../../tests/masks/oracle/json.rs"]
mod json;
#[allow(dead_code, unused_imports)]
#[path = "../../tests/masks/oracle/judge.rs"]
mod judge;
#[allow(dead_code, unused_imports)]
#[path = "../../tests/masks/oracle/lower.rs"]
mod lower;
#[allow(dead_code, unused_imports)]
#[path = "../../tests/masks/oracle/object_list.rs"]
mod object_list;
#[allow(dead_code, unused_imports)]
#[path = "../../tests/masks/oracle/open_keys.rs"]
mod open_keys;
#[allow(dead_code, unused_imports)]
#[path = "../../tests/masks/oracle/regular.rs"]
mod regular;
#[allow(dead_code, unused_imports)]
#[path = "../../tests/masks/oracle/vocabulary.rs"]
mod vocabulary;
#[allow(dead_code, unused_imports)]
#[path = "../../tests/masks/oracle/walk.rs"]
mod walk;

use std::sync::Arc;

use lexiform::error::CompileError;
use lexiform::schema::{KeyOrder, Whitespace};
use lexiform::vocab::Vocabulary;
use lexiform::{Grammar, Options, Source};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::walk::Choices;
use judge::{Judge, Memo};
use walk::{Reach, check_everywhere};

const BYTES: &[u8] = &[b'a', b'b', 0xC3, 0xA9];
const LETTERS: &[u8] = b"abc";
const LISTED: &[u8] = b"ab,:";
const JSON_BYTES: &[u8] = b"\"ab{}[]:,ntrufels\xC3\xA9";
const JSON_PIECES: &[&str] = &[
    "{", "}", "\"a\"", "\"ab", "\":", ",\"", "null", "true", "[", "]", "\"b\":", "é", "\"}", "{\"", ":[]",
];
const REACH: Reach = Reach { bytes: 4, states: 60 };
const DEEP: Reach = Reach {
    bytes: 24,
    states: 60,
};

/// What the random numbers of the tests are drawn from.
struct Numbers(TestRunner);

impl Numbers {
    fn of(input: &[u8]) -> Self {
        // Handing the bytes on as numbers was tried: strategies split what is left, and some draw for ever
        // from the zeros after its end. As a seed they still lead to what covers more.
        let mut choices = Choices::of(input);
        let seed: Vec<u8> = (0..32).map(|_| choices.roll(256) as u8).collect();
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let config = Config {
            failure_persistence: None,
            ..Config::default()
        };
        Numbers(TestRunner::new_with_rng(config, random))
    }

    fn draw<T: std::fmt::Debug>(&mut self, strategy: impl Strategy<Value = T>) -> Option<T> {
        Some(strategy.new_tree(&mut self.0).ok()?.current())
    }

    fn vocabulary(&mut self, bytes: &'static [u8]) -> Option<Arc<Vocabulary>> {
        self.draw(vocabulary::vocabularies(bytes))
    }
}

/// Reads an input as a choice of a test and the numbers that it draws.
pub fn run(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else {
        return;
    };
    let mut numbers = Numbers::of(rest);
    // A strategy may find no value in these numbers.
    let _: Option<()> = match kind % 8 {
        0 => terminal(&mut numbers),
        1 => rules_of_pattern(&mut numbers),
        2 => rules(&mut numbers),
        3 => intersection(&mut numbers),
        4 => count_before(&mut numbers),
        5 => list(&mut numbers),
        6 => schema(&mut numbers),
        _ => objects(&mut numbers),
    };
}

/// A grammar is judged at all texts; an error is right where the language has no text.
fn compare(
    compiled: Result<Grammar, CompileError>,
    judge: impl Judge,
    reach: &Reach,
    shown: &dyn std::fmt::Debug,
) {
    match compiled {
        Ok(grammar) => {
            if let Err(error) = check_everywhere(&grammar, &Memo::new(judge), reach) {
                panic!("finding: {error} in {shown:?}");
            }
        }
        Err(error) => {
            let is_other = error
                .problems
                .iter()
                .any(|it| it.kind == lexiform::error::ProblemKind::Unsupported);
            assert!(
                is_other || !judge.verdict(b"").viable,
                "finding: {error} in {shown:?}"
            );
        }
    }
}

fn terminal(numbers: &mut Numbers) -> Option<()> {
    let (vocabulary, pattern) = (numbers.vocabulary(BYTES)?, numbers.draw(regular::patterns())?);
    compare(
        lower::compile(&lower::terminal(&pattern), &vocabulary),
        pattern.language(),
        &REACH,
        &pattern,
    );
    Some(())
}

fn rules_of_pattern(numbers: &mut Numbers) -> Option<()> {
    let (vocabulary, pattern) = (numbers.vocabulary(BYTES)?, numbers.draw(regular::patterns())?);
    compare(
        lower::compile(&lower::expressions(&pattern), &vocabulary),
        pattern.language(),
        &REACH,
        &pattern,
    );
    Some(())
}

fn rules(numbers: &mut Numbers) -> Option<()> {
    let (vocabulary, rules) = (
        numbers.vocabulary(LETTERS)?,
        numbers.draw(context_free::grammars_with_classes())?,
    );
    let source = rules.source();
    let cfg = lexiform_syntax::notation::ebnf::lower(&source, &lexiform::limits::Limits::default());
    let cfg = cfg.unwrap_or_else(|error| panic!("finding: {error} in {source}"));
    match lower::compile(&cfg, &vocabulary) {
        Ok(grammar) => compare(Ok(grammar), rules.productions(), &REACH, &source),
        Err(error) => assert!(
            !rules.productions().is_productive(),
            "finding: {error} in {source}"
        ),
    }
    Some(())
}

fn intersection(numbers: &mut Numbers) -> Option<()> {
    let (vocabulary, parts) = (numbers.vocabulary(BYTES)?, numbers.draw(regular::parts())?);
    let regular = lower::regular(&parts);
    let cfg = lower::grammar_of(|builder| {
        let regular = builder.add_regular(regular);
        builder.regular(regular)
    });
    compare(
        lower::compile(&cfg, &vocabulary),
        regular::intersection(&parts),
        &REACH,
        &parts,
    );
    Some(())
}

fn count_before(numbers: &mut Numbers) -> Option<()> {
    let vocabulary = numbers.vocabulary(BYTES)?;
    let (counted, pattern) = (
        numbers.draw(regular::counts())?,
        numbers.draw(regular::patterns())?,
    );
    let language = regular::Re::seq(counted.language(), pattern.language());
    let cfg = lower::count_before(counted.clone(), &pattern);
    compare(
        lower::compile(&cfg, &vocabulary),
        language,
        &REACH,
        &(counted, pattern),
    );
    Some(())
}

fn list(numbers: &mut Numbers) -> Option<()> {
    let vocabulary = numbers.vocabulary(LISTED)?;
    let list = numbers.draw(object_list::lists())?;
    compare(
        lower::compile(&list.grammar(), &vocabulary),
        list.language(),
        &REACH,
        &list,
    );
    Some(())
}

fn json_grammar(
    source: &str,
    vocabulary: &Arc<Vocabulary>,
    order: KeyOrder,
) -> Result<Grammar, CompileError> {
    let mut options = Options::default();
    options.schema.key_order = order;
    options.schema.whitespace = Whitespace::Compact;
    lexiform::compile(Source::JsonSchema(source), vocabulary, &options).map(|(grammar, _)| grammar)
}

fn schema(numbers: &mut Numbers) -> Option<()> {
    let vocabulary = numbers.draw(vocabulary::vocabularies_of(JSON_BYTES, JSON_PIECES))?;
    let schema = numbers.draw(json::schemas())?;
    let order = if numbers.draw(proptest::bool::ANY)? {
        KeyOrder::Any
    } else {
        KeyOrder::Schema
    };
    let source = schema.source();
    compare(
        json_grammar(&source, &vocabulary, order),
        schema.language(order),
        &DEEP,
        &source,
    );
    Some(())
}

fn objects(numbers: &mut Numbers) -> Option<()> {
    let vocabulary = numbers.draw(vocabulary::vocabularies_of(JSON_BYTES, JSON_PIECES))?;
    let objects = numbers.draw(proptest::prop_oneof![
        open_keys::objects(),
        open_keys::objects_of_objects()
    ])?;
    let source = objects.source();
    compare(
        json_grammar(&source, &vocabulary, KeyOrder::Any),
        objects,
        &DEEP,
        &source,
    );
    Some(())
}
