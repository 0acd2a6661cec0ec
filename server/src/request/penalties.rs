//! The tokens that penalties concern, in the form of the engine.
//!
//! A penalty on a quote, a key or a brace that occurred before makes a model leave out what JSON repeats by
//! its nature. So where the whole answer is JSON, penalties concern its free text alone, unless the request
//! asks for all tokens.

use lexiform_engine::PenaltyScope;

use crate::grammars::language::Language;
use crate::wire::constraint::Source;
use crate::wire::error::ApiError;
use crate::wire::generation::{self as wire, Generation};
use crate::wire::tools::{Callable, Calls, Input, Mode};

/// Returns the tokens that the penalties of a request concern, in an answer of this language.
///
/// # Errors
/// Fails if the request asks for the text of a JSON answer, and its answer may be something else.
pub fn scope(generation: &Generation, language: &Language) -> Result<PenaltyScope, ApiError> {
    let spares = match generation.penalty_scope {
        Some(wire::PenaltyScope::All) => false,
        Some(wire::PenaltyScope::Text) if !may_be_json(language) => {
            let message = "penalty_scope: text requires that the whole answer is JSON: a constraint by a JSON Schema, or \
                           by a grammar of JSON, without tools beside it.";
            let param = Some("penalty_scope".to_owned());
            return Err(ApiError::invalid("invalid_value", param, message.to_owned()));
        }
        Some(wire::PenaltyScope::Text) => true,
        None => is_json(language),
    };
    if !spares {
        return Ok(PenaltyScope::All);
    }
    let preamble = language.thought.preamble(language.marks_of_thought());
    Ok(PenaltyScope::JsonText(preamble))
}

/// Returns `true` if an answer is a JSON text and nothing else, apart from a thought.
fn is_json(language: &Language) -> bool {
    match (&language.calls, &language.content) {
        (Some(calls), _) => is_arguments(calls),
        (None, Some(content)) => matches!(content.source, Source::Schema(_)),
        (None, None) => false,
    }
}

/// Returns `true` if an answer is JSON, or obeys a grammar that may describe JSON.
fn may_be_json(language: &Language) -> bool {
    let content = language.content.as_ref().map(|content| &content.source);
    is_json(language) || language.calls.is_none() && matches!(content, Some(Source::Grammar(..)))
}

/// Returns `true` if an answer consists of the arguments of a tool.
fn is_arguments(calls: &Calls) -> bool {
    let is_json = |tool: &Callable| matches!(tool.input, Input::Arguments(_));
    calls.mode == Mode::Bare && calls.tools.iter().all(is_json)
}
