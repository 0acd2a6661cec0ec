//! Healed prompts: each is continued in a grammar that begins with what was removed from it.

use lexiform_engine::{OnBudget, Request, Task};

use crate::grammars::interest::Interest;
use crate::grammars::language::Language;
use crate::model::served::ServedModel;
use crate::request::prompt;
use crate::wire::error::ApiError;

/// Heals the prompts of these requests, whose answers are in this language; blocks while grammars compile.
///
/// Free text stays free behind the removed bytes. Under the local law it is cut after `max_tokens`, as it is
/// without healing; the other laws and searches are about whole texts.
///
/// # Errors
/// A grammar does not compile behind the removed bytes, or the interest was lost.
pub fn heal(
    served: &ServedModel,
    language: &Language,
    requests: &mut [Request],
    interest: &Interest,
) -> Result<(), ApiError> {
    for request in requests {
        let prefix = request.heal(served.vocabulary()).to_vec();
        if prefix.is_empty() {
            continue;
        }
        let is_drawn_locally = matches!(&request.task, Task::Draw(draw) if draw.law.is_local());
        if language.is_free() && is_drawn_locally && request.limits.on_budget == OnBudget::Complete {
            request.limits.on_budget = OnBudget::Cut;
        }
        let healed = Language {
            prefix,
            ..language.clone()
        };
        let compiled = prompt::compiled(served, &healed, interest)?;
        request.constraints.grammar = compiled.map(|compiled| compiled.grammar);
    }
    Ok(())
}
