//! What a request asks for, against what its API key allows.

use crate::grammars::interest::Interest;
use crate::grammars::language::Language;
use crate::wire::error::ApiError;
use crate::wire::generation::{Generation, Task};

/// Checks the law or the search; the model was checked before it was loaded.
///
/// # Errors
/// Fails if the key does not allow one of them.
pub fn check(generation: &Generation, interest: &Interest) -> Result<(), ApiError> {
    let rights = interest.rights();
    match &generation.task {
        Task::Draw(law) => rights.law(law.name()),
        Task::Search(search) => rights.search(search.param(), search.word()),
    }
}

/// Checks the kinds of the constraints of an answer.
///
/// # Errors
/// Fails if the key does not allow one of them.
pub fn check_language(language: &Language, interest: &Interest) -> Result<(), ApiError> {
    let mut kinds = language.kinds();
    kinds.try_for_each(|(field, kind)| interest.rights().constraint(field, kind))
}
