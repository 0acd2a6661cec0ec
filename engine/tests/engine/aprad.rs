//! Approximately aligned decoding, against the law of its sampler.

use crate::laws::{END, agrees, engine, request, script, shares};
use crate::rig::generate;
use lexiform_engine::{EngineConfig, EngineError, Law, LawTag, Refusal, Speculation};
use lexiform_law::{Allowed, Aprad, Every, Sampler, Step, Table, Walk, law_of};
use std::collections::BTreeMap;

/// The tokens that may follow a text of the fixture.
fn allowed(text: &[u32]) -> [u32; 1] {
    match text {
        [_, _, _] => [0b100],
        [0, ..] => [0b001],
        _ => [0b011],
    }
}

/// The law of approximately aligned decoding with this exponent, from the sampler itself over the model's
/// rows.
fn aligned(exponent: u32) -> BTreeMap<String, f64> {
    law_of(|chooser: &mut Every<f64>| {
        let mut walk = Walk::aligned(Aprad::new(exponent, 1000), 1000, &[END]);
        let mut text = Vec::new();
        loop {
            let row = script(&[&[0], &text[..]].concat());
            let row = Table(row.into_iter().map(|log| f64::from(log.exp())).collect());
            match walk.next(&row, Allowed::Words(&allowed(&text)), chooser) {
                Step::Token(drawn) => text.push(drawn.token),
                Step::Restart => text.truncate(walk.position() as usize),
                Step::End(_) => return text.iter().map(u32::to_string).collect::<String>(),
                Step::Stuck(error) => panic!("{error}"),
            }
        }
    })
}

/// An error is noticed where the grammar does not allow a token, and the text goes back as far as the sampler
/// says.
#[test]
fn going_back_from_errors_has_the_law_of_its_sampler() {
    let engine = engine(EngineConfig::default());
    for exponent in [0, 1, 3] {
        let law = Law::Aprad {
            exponent,
            max_errors: 1000,
        };
        let count = 2000;
        let expected = aligned(exponent);
        let expected: Vec<(&str, f64)> = expected
            .iter()
            .map(|(text, share)| (text.as_str(), *share))
            .collect();
        agrees(
            &shares(&engine, |seed| request(law, seed), count),
            &expected,
            count,
        );
        let drafted = |seed| request(law, seed).speculation(Speculation::all());
        agrees(&shares(&engine, drafted, count), &expected, count);
        let outcomes = (0..50).map(|seed| generate(&engine, request(law, seed)).outcome().clone());
        let back = outcomes.filter(|outcome| {
            assert_eq!((outcome.law, outcome.log_weight), (LawTag::Aprad, None));
            outcome.attempts > 1
        });
        assert!(back.count() > 10);
    }
    let law = |exponent| aligned(exponent)["000"];
    assert!(
        law(0) > 2.0 * law(1),
        "a larger exponent is nearer to the global law"
    );
}

#[test]
fn going_back_is_bounded() {
    let engine = engine(EngineConfig::default());
    let law = |exponent, max_errors| Law::Aprad { exponent, max_errors };
    let failed = (0..50).filter(|&seed| {
        let heard = generate(&engine, request(law(1, 1), seed));
        matches!(heard.failure(), Some(EngineError::ErrorsExhausted { errors: 1 }))
    });
    assert!(failed.count() > 0);
    for (law, name) in [(law(1, 0), "max_attempts"), (law(17, 1), "aprad_exponent")] {
        let refused = engine.check(&request(law, 1));
        assert!(
            matches!(&refused, Err(Refusal::Invalid { name: found, .. }) if *found == name),
            "{refused:?}"
        );
    }
}
