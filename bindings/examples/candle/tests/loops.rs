//! Loops with made-up logits: the text written belongs to the grammar, however it is sampled.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor};
use candle_transformers::generation::{LogitsProcessor, Sampling};
use lexiform::{Options, Source, compile};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_candle::Constrained;

const TOKENS: [&str; 6] = ["<end>", "ye", "s", "no", "n", "o"];
/// Wider than the vocabulary, like the logits of real models; the last entry, which is no token, is the
/// likeliest.
const LOGITS: [f32; 8] = [0.1, 0.3, 0.9, 0.2, 0.1, 0.4, 0.0, 5.0];

fn constrained() -> Constrained {
    let tokens = TOKENS.map(|text| (TokenKind::Text, text));
    let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
    let (grammar, _) = compile(Source::Regex("yes|no"), &vocabulary, &Options::default()).expect("a grammar");
    Constrained::new(grammar)
}

fn written(sampling: Sampling, seed: u64) -> Result<String> {
    let mut sampler = LogitsProcessor::from_sampling(seed, sampling);
    let (mut sequence, mut text) = (constrained(), String::new());
    while !sequence.is_finished() {
        let logits = Tensor::new(&LOGITS, &Device::Cpu)?;
        match sequence.choose(&mut sampler, &logits)? {
            0 => {}
            token => text.push_str(TOKENS[token as usize]),
        }
    }
    Ok(text)
}

#[test]
fn greedy_and_sampled_texts_are_of_the_grammar() -> Result<()> {
    assert_eq!(written(Sampling::ArgMax, 0)?, "yes");
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..50 {
        seen.insert(written(Sampling::All { temperature: 1.0 }, seed)?);
        assert!(
            ["yes", "no"].contains(
                &written(
                    Sampling::TopK {
                        k: 3,
                        temperature: 2.0
                    },
                    seed
                )?
                .as_str()
            )
        );
        assert!(
            ["yes", "no"].contains(
                &written(
                    Sampling::TopP {
                        p: 0.8,
                        temperature: 1.0
                    },
                    seed
                )?
                .as_str()
            )
        );
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["no", "yes"]);
    Ok(())
}

#[test]
fn a_fork_goes_on_by_itself_and_nothing_comes_after_the_end() -> Result<()> {
    let mut sampler = LogitsProcessor::from_sampling(0, Sampling::ArgMax);
    let logits = Tensor::new(&LOGITS, &Device::Cpu)?;
    let mut sequence = constrained();
    assert_eq!(sequence.choose(&mut sampler, &logits)?, 1);
    let mut fork = sequence.clone();
    assert_eq!(
        (
            fork.choose(&mut sampler, &logits)?,
            fork.choose(&mut sampler, &logits)?
        ),
        (2, 0)
    );
    assert!(fork.is_finished() && !sequence.is_finished());
    assert!(fork.choose(&mut sampler, &logits).is_err());
    Ok(())
}

/// The reason why logits are masked: `sample_f` does not call its function in greedy decoding.
#[test]
fn changed_probabilities_are_not_asked_for_in_greedy_decoding() -> Result<()> {
    let mut sampler = LogitsProcessor::from_sampling(0, Sampling::ArgMax);
    let logits = Tensor::new(&LOGITS, &Device::Cpu)?;
    let token = sampler.sample_f(&logits, |probabilities| probabilities.fill(0.0))?;
    assert_eq!(token, 7, "the function was not called");
    Ok(())
}
