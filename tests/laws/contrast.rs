//! Contrastive decoding against its definition, and with the amateur as the drafter.

use std::collections::BTreeMap;

use lexiform_law::verify::residual;
use lexiform_law::{
    Allowed, Contrast, Contrastive, Distribution, Fallback, History, Law, LawError, LawTag, Part, Place,
    Purpose, Row, RowError, Warper, Warping, law_of,
};
use proptest::prelude::*;

use crate::float::masked;

fn contrastive(contrast: Contrast, temperature: f32, law: Law) -> Contrastive {
    let warping = Warping {
        temperature,
        ..Warping::default()
    };
    Contrastive::new(contrast, warping, law).expect("the parameters are in range")
}

/// The law by its definition: the scores of the allowed tokens that are plausible among them. The second
/// number is how close the closest decision was.
fn definition(
    contrast: Contrast,
    temperature: f32,
    (expert, amateur): (&[f32], &[f32]),
    allowed: Allowed<'_>,
) -> (Vec<f64>, f64) {
    let tokens = || (0..expert.len()).filter(|&token| allowed.contains(token as u32));
    let best = tokens()
        .map(|token| f64::from(expert[token]))
        .fold(f64::NEG_INFINITY, f64::max);
    let above = |token: usize| f64::from(expert[token]) - best - f64::from(contrast.alpha).ln();
    let edge = tokens()
        .map(|token| above(token).abs())
        .fold(f64::INFINITY, f64::min);
    let score = |token: usize| {
        // As one logit in single precision, like every logit of a model.
        let logit = contrast.expert * expert[token] - contrast.amateur * amateur[token];
        f64::from(logit) / f64::from(temperature)
    };
    let kept: Vec<usize> = tokens().filter(|&token| above(token) >= 0.0).collect();
    let peak = kept
        .iter()
        .map(|&token| score(token))
        .fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = kept.iter().map(|&token| (score(token) - peak).exp()).sum();
    let mut law = vec![0.0; expert.len()];
    for token in kept {
        law[token] = (score(token) - peak).exp() / sum;
    }
    (law, edge)
}

/// A pair of rows whose amateur agrees with the expert more or less.
fn pairs() -> impl Strategy<Value = (Vec<f32>, Vec<f32>, Vec<u32>, f32)> {
    (masked(), prop::collection::vec(-3.0f32..3.0, 300), 0.1f32..1.0).prop_map(
        |((expert, mask, temperature), noise, slope)| {
            let expert: Vec<f32> = expert
                .into_iter()
                .map(|logit| logit.clamp(-30.0, 30.0) * 0.2)
                .collect();
            let amateur = expert
                .iter()
                .zip(noise)
                .map(|(logit, noise)| slope * logit + noise);
            let amateur = amateur.collect();
            (expert, amateur, mask, temperature)
        },
    )
}

proptest! {
    #[test]
    fn a_contrasted_row_is_its_definition(
        (expert, amateur, mask, temperature) in pairs(), alpha in 0.001f32..1.0, beta in -0.9f32..2.0, of_li: bool,
    ) {
        let contrast = if of_li { Contrast::difference(alpha, 1.0 + beta) } else { Contrast::beyond(alpha, beta) };
        let contrastive = contrastive(contrast, temperature, Law::Local);
        let row = contrastive.row(&expert, &amateur, History::default()).expect("the logits are finite");
        let allowed = Allowed::Words(&mask);
        let (law, edge) = definition(contrast, temperature, (&expert, &amateur), allowed);
        prop_assume!(edge > 1e-7);
        let part = row.part(allowed);
        for (token, wanted) in (0..).zip(law) {
            prop_assert!((part.share(token) - wanted).abs() < 1e-9, "token {token}");
        }
        // What is left of the mask by the constraint is told by the weight.
        prop_assert!(part.log_kept() <= part.log_mass() + 1e-12);
    }

    /// A combined row has the same law, with what is plausible decided among all tokens or among those of the
    /// mask.
    #[test]
    fn a_combined_row_has_the_law_of_a_contrasted_one(
        (expert, amateur, mask, temperature) in pairs(), alpha in 0.001f32..1.0, beta in -0.9f32..2.0, is_cut: bool,
    ) {
        let contrast = Contrast::beyond(if is_cut { alpha } else { 0.0 }, beta);
        let mask = Allowed::Words(&mask);
        for (allowed, law) in [(mask, Law::Local), (Allowed::All, Law::Asap { share_attempts: false })] {
            let (_, edge) = definition(contrast, temperature, (&expert, &amateur), allowed);
            prop_assume!(!is_cut || edge > 1e-5);
            let contrastive = contrastive(contrast, temperature, law);
            let wanted = contrastive.row(&expert, &amateur, History::default()).expect("the logits are finite");
            let mut combined = expert.clone();
            contrast.combine(&mut combined, &amateur, allowed).expect("they are alike");
            let warping = Warping { temperature, ..Warping::default() };
            let warper = Warper::new(warping, law).expect("the temperature is in range");
            let row = warper.row(&combined, History::default()).expect("something is plausible");
            let (wanted, part) = (wanted.part(mask), row.part(mask));
            for token in 0..expert.len() as u32 {
                prop_assert!((part.share(token) - wanted.share(token)).abs() < 1e-9, "token {token}");
            }
        }
    }

    /// Under the global law what is plausible is decided before the mask, which may then leave nothing.
    #[test]
    fn the_constraint_is_part_of_the_model_under_the_global_law(
        (expert, amateur, mask, temperature) in pairs(), alpha in 0.01f32..1.0,
    ) {
        let contrast = Contrast::beyond(alpha, 0.5);
        let global = Law::Global { max_attempts: 1, fallback: Fallback::Fail, share_attempts: false };
        let contrastive = contrastive(contrast, temperature, global);
        let row = contrastive.row(&expert, &amateur, History::default()).expect("the logits are finite");
        let (law, edge) = definition(contrast, temperature, (&expert, &amateur), Allowed::All);
        prop_assume!(edge > 1e-7);
        let inside = law.iter().zip(0..).filter(|&(_, token)| Allowed::Words(&mask).contains(token));
        let mass: f64 = inside.map(|(p, _)| p).sum();
        prop_assert!((row.part(Allowed::Words(&mask)).mass() - mass).abs() < 1e-9);
    }

    #[test]
    fn without_an_amateur_the_law_is_the_experts((expert, amateur, mask, _) in pairs()) {
        let contrastive = contrastive(Contrast::beyond(1e-30, 0.0), 1.0, Law::Local);
        let row = contrastive.row(&expert, &amateur, History::default()).expect("the logits are finite");
        let (part, plain) = (row.part(Allowed::Words(&mask)), Distribution::new(&expert).expect("finite"));
        for (token, share) in (0..).zip(plain.part(Allowed::Words(&mask)).shares()) {
            prop_assert!((part.share(token) - share).abs() < 1e-12);
        }
    }
}

/// Guards against a broken row of either model that passes for one in which a token is impossible.
#[test]
fn what_is_not_a_number_stays_so_in_a_combined_row() {
    for alpha in [0.0, 0.5] {
        for (expert, amateur) in [([0.0, f32::NAN], [0.0, 0.0]), ([0.0, 0.0], [0.0, f32::NAN])] {
            let mut combined = expert;
            let contrast = Contrast::beyond(alpha, 0.5);
            contrast
                .combine(&mut combined, &amateur, Allowed::All)
                .expect("they are alike");
            assert!(combined[1].is_nan(), "{alpha}");
        }
    }
}

/// A number of the same size on every machine.
fn noise(seed: u32, token: u32) -> f32 {
    let bits = (seed * 31 + token).wrapping_mul(2_654_435_761) >> 12;
    (bits % 1000) as f32 / 200.0
}

/// What the amateur drafts and the contrast judges has the law of the contrast; judged by the expert alone it
/// has not.
#[test]
fn drafts_of_the_amateur_leave_the_contrast_alone() {
    let contrastive = contrastive(Contrast::difference(0.1, 1.0), 1.0, Law::Local);
    let mask = [0b110111];
    let allowed = Allowed::Words(&mask);
    let mut failures = 0;
    for seed in 0..100 {
        let expert: Vec<f32> = (0..6).map(|token| noise(seed, token)).collect();
        let amateur: Vec<f32> = (0..6)
            .map(|token| 0.5 * expert[token as usize] + noise(seed + 1000, token))
            .collect();
        let row = contrastive
            .row(&expert, &amateur, History::default())
            .expect("the logits are finite");
        let (plain, drafter) = (
            Distribution::new(&expert).expect("finite"),
            Distribution::new(&amateur).expect("finite"),
        );
        let at = Place::new(0, 0);
        let judged = |target: &Distribution<'_>| -> BTreeMap<u32, f64> {
            law_of(|chooser| {
                let proposal = drafter.part(allowed);
                let drafted = proposal
                    .draw(at.to(Purpose::Draft), chooser)
                    .expect("a token is allowed");
                residual(&target.part(allowed), [(drafted, proposal)], at, chooser)
                    .expect("a token is allowed")
                    .token
            })
        };
        let (law, _) = definition(Contrast::difference(0.1, 1.0), 1.0, (&expert, &amateur), allowed);
        let distance = |found: BTreeMap<u32, f64>| -> f64 {
            let of = |token: u32| found.get(&token).copied().unwrap_or(0.0);
            (0..)
                .zip(&law)
                .map(|(token, wanted)| (of(token) - wanted).abs())
                .sum()
        };
        assert!(distance(judged(&row)) < 1e-12);
        failures += usize::from(distance(judged(&plain)) > 1e-3);
    }
    assert!(failures > 90, "the mutant fails only {failures} times");
}

#[test]
fn a_walk_says_that_the_rows_were_cut() {
    for (temperature, constrained, tag) in [
        (1.0, true, LawTag::LocalFiltered),
        (1.0, false, LawTag::RawFiltered),
        (0.0, true, LawTag::Greedy),
    ] {
        let contrastive = contrastive(Contrast::beyond(0.1, 0.5), temperature, Law::Local);
        assert_eq!(contrastive.walk(constrained, &[]).tag(), tag);
    }
    // Without chance, the token of the best score among the plausible ones: the last is not.
    let greedy = contrastive(Contrast::difference(0.1, 1.0), 0.0, Law::Local);
    let row = greedy
        .row(&[2.0, 1.5, -9.0], &[3.0, 0.5, -20.0], History::default())
        .expect("finite");
    assert_eq!(row.part(Allowed::All).shares(), [0.0, 1.0, 0.0]);
}

#[test]
fn what_cannot_be_contrasted_is_refused() {
    let contrastive = contrastive(Contrast::beyond(0.1, 0.5), 1.0, Law::Local);
    let refused =
        |expert: &[f32], amateur: &[f32]| contrastive.row(expert, amateur, History::default()).err();
    let none = f32::NEG_INFINITY;
    assert_eq!(
        refused(&[0.0, 1.0], &[0.0]),
        Some(RowError::Unlike {
            expert: 2,
            amateur: 1
        })
    );
    // Columns that are no tokens, to either model.
    assert_eq!(refused(&[0.0, none], &[0.0, none]), None);
    assert_eq!(refused(&[0.0, none], &[0.0, 3.0]), None);
    assert_eq!(
        refused(&[0.0, 1.0], &[0.0, none]),
        Some(RowError::NotFinite {
            token: 1,
            value: f32::INFINITY
        })
    );
    assert!(matches!(
        refused(&[0.0, 1.0], &[f32::NAN, 0.0]),
        Some(RowError::NotFinite { token: 0, .. })
    ));
    for (wanted, contrast) in [
        ("alpha", Contrast::beyond(-0.1, 0.5)),
        ("alpha", Contrast::beyond(1.5, 0.5)),
        ("expert", Contrast::beyond(0.1, -2.0)),
        ("expert", Contrast::beyond(0.1, -1.0)),
        ("amateur", Contrast::difference(0.1, 0.0)),
    ] {
        match Contrastive::new(contrast, Warping::default(), Law::Local) {
            Err(LawError::OutOfRange { name, .. }) => assert_eq!(name, wanted),
            other => panic!("not refused: {other:?}"),
        }
    }
}
