//! Calls the processor as the sampler of mistral.rs does: with the tokens of the prompt and of the answer so
//! far.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor};
use lexiform::{Options, Source, compile};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_mistralrs::GrammarProcessor;
use mistralrs_core::CustomLogitsProcessor;

const TOKENS: [&str; 6] = ["<end>", "ye", "s", "no", "n", "o"];
/// Wider than the vocabulary, like the logits of real models; the last entry, which is no token, is the
/// likeliest.
const LOGITS: [f32; 8] = [0.1, 0.3, 0.9, 0.2, 0.1, 0.4, 0.0, 5.0];
/// Tokens that the grammar would not take.
const PROMPT: [u32; 3] = [4, 4, 2];

fn processor() -> Arc<dyn CustomLogitsProcessor> {
    let tokens = TOKENS.map(|text| (TokenKind::Text, text));
    let vocabulary = Arc::new(Vocabulary::new(&tokens, &[0]).expect("a vocabulary"));
    let (grammar, _) = compile(Source::Regex("yes|no"), &vocabulary, &Options::default()).expect("a grammar");
    Arc::new(GrammarProcessor::new(grammar))
}

/// Returns the tokens that may come after this answer.
fn allowed(processor: &dyn CustomLogitsProcessor, answer: &[u32]) -> Result<Vec<usize>> {
    let context = [&PROMPT[..], answer].concat();
    let row: Vec<f32> = processor
        .apply(&Tensor::new(&LOGITS, &Device::Cpu)?, &context)?
        .to_vec1()?;
    Ok((0..row.len()).filter(|&token| row[token].is_finite()).collect())
}

#[test]
fn each_sequence_of_a_request_is_masked_by_its_own_answer() -> Result<()> {
    let processor = processor();
    assert_eq!(allowed(&*processor, &[])?, [1, 3, 4]);
    // Two sequences of the same request, side by side.
    assert_eq!(allowed(&*processor, &[1])?, [2]);
    assert_eq!(allowed(&*processor, &[4])?, [5]);
    assert_eq!(allowed(&*processor, &[1, 2])?, [0]);
    assert_eq!(allowed(&*processor, &[4, 5])?, [0]);
    // One more sequence after them.
    assert_eq!(allowed(&*processor, &[])?, [1, 3, 4]);
    assert_eq!(allowed(&*processor, &[3])?, [0]);
    Ok(())
}

#[test]
fn the_logits_of_allowed_tokens_stay_as_they_are() -> Result<()> {
    let row: Vec<f32> = processor()
        .apply(&Tensor::new(&LOGITS, &Device::Cpu)?, &PROMPT)?
        .to_vec1()?;
    assert_eq!((row[1], row[3], row[4]), (LOGITS[1], LOGITS[3], LOGITS[4]));
    Ok(())
}

#[test]
fn tokens_that_cannot_come_are_errors_and_so_is_another_request() -> Result<()> {
    let processor = processor();
    allowed(&*processor, &[])?;
    assert!(allowed(&*processor, &[5]).is_err());
    let row = Tensor::new(&LOGITS, &Device::Cpu)?;
    assert!(processor.apply(&row, &PROMPT[..1]).is_err(), "a shorter prompt");
    Ok(())
}
