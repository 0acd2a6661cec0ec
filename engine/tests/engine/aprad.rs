//! Approximately aligned decoding, against the law of its sampler.

use crate::laws::{agrees, engine, request, script, shares};
use crate::rig::generate;
use lexiform_engine::{EngineConfig, EngineError, Law, LawTag, Refusal, Speculation};
use lexiform_law::{Aprad, Every, Table, law_of};
use std::collections::BTreeMap;

/// The law of approximately aligned decoding with this exponent, from the sampler itself over the model's
/// rows.
fn aligned(exponent: u32) -> BTreeMap<String, f64> {
    let is_error = |text: &[u32]| match text {
        [0, rest @ ..] => rest.contains(&1),
        _ => false,
    };
    law_of(|chooser: &mut Every<f64>| {
        let mut sampler = Aprad::new(exponent, 1000);
        let mut text = Vec::new();
        while text.len() < 3 {
            let row = script(&[&[0], &text[..]].concat());
            let row = Table(row.into_iter().map(|log| f64::from(log.exp())).collect());
            text.push(sampler.next(&row, chooser).expect("there is a text").token);
            if is_error(&text) {
                text.truncate(sampler.reject(chooser).expect("there is a text"));
            }
        }
        text.iter().map(u32::to_string).collect::<String>()
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
        matches!(
            heard.failure(),
            Some(EngineError::AttemptsExhausted { attempts: 1, .. })
        )
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
