//! Prompts whose answer stands between two texts: infilling, which code models are trained for.
//!
//! Such a model has three marks, and each family its own names and its own order of the texts:
//!
//! | family | prompt |
//! |---|---|
//! | StarCoder, Granite | `<fim_prefix>` before `<fim_suffix>` after `<fim_middle>` |
//! | Qwen Coder, CodeGemma | the same with `<\|fim_prefix\|>` and so on |
//! | DeepSeek Coder | `<｜fim▁begin｜>` before `<｜fim▁hole｜>` after `<｜fim▁end｜>` |
//! | Code Llama | `▁<PRE>` before `▁<SUF>` after `▁<MID>` |
//! | Codestral | `[SUFFIX]` after `[PREFIX]` before |
//!
//! A model is of the first family whose marks its vocabulary has, all of them as special tokens. The marks
//! of the two texts themselves are text.

use crate::grammars::interest::Interest;
use crate::model::served::ServedModel;
use crate::request::tokenization::{PromptTokenizer, TextKind};
use crate::wire::completion::Prompt;
use crate::wire::error::ApiError;

/// A part of a prompt.
#[derive(Clone, Copy)]
enum Part {
    /// A special token, by its name.
    Mark(&'static str),
    /// The text before the answer.
    Before,
    /// The text after the answer.
    After,
}

use Part::{After, Before, Mark};

/// The prompts of each family.
const FAMILIES: [&[Part]; 5] = [
    &[
        Mark("<fim_prefix>"),
        Before,
        Mark("<fim_suffix>"),
        After,
        Mark("<fim_middle>"),
    ],
    &[
        Mark("<|fim_prefix|>"),
        Before,
        Mark("<|fim_suffix|>"),
        After,
        Mark("<|fim_middle|>"),
    ],
    &[
        Mark("<｜fim▁begin｜>"),
        Before,
        Mark("<｜fim▁hole｜>"),
        After,
        Mark("<｜fim▁end｜>"),
    ],
    &[Mark("▁<PRE>"), Before, Mark("▁<SUF>"), After, Mark("▁<MID>")],
    &[Mark("[SUFFIX]"), After, Mark("[PREFIX]"), Before],
];

/// Returns the tokens of a prompt whose answer stands between `before` and `after`.
///
/// # Errors
/// Fails if the model has no marks for that, if the vocabulary cannot write the texts, or if they are too
/// long.
pub fn prompt(
    served: &ServedModel,
    (before, after): (&Prompt, &str),
    interest: &Interest,
) -> Result<Vec<u32>, ApiError> {
    let tokenizer = &served.text().tokenizer;
    let has_all = |family: &&&[Part]| {
        family.iter().all(|part| match part {
            Mark(name) => tokenizer.special(name).is_some(),
            Before | After => true,
        })
    };
    let Some(family) = FAMILIES.iter().find(has_all) else {
        let message = "suffix: this model was not trained to write between two texts: its vocabulary has no marks such as \
                       <fim_prefix>.";
        return Err(ApiError::invalid(
            "unsupported_parameter",
            Some("suffix".to_owned()),
            message,
        ));
    };
    let mut cutting = PromptTokenizer::of_prompt(served, "prompt", interest);
    cutting.push(tokenizer.opening());
    for part in *family {
        match (part, before) {
            (Mark(name), _) => cutting.push(tokenizer.special(name).as_slice()),
            (Before, Prompt::Text(text)) => cutting.text(text, TextKind::Plain)?,
            (Before, Prompt::Tokens(tokens)) => cutting.push(tokens),
            (After, _) => cutting
                .text(after, TextKind::Plain)
                .map_err(|error| error.about("suffix"))?,
        }
    }
    Ok(cutting.tokens())
}
