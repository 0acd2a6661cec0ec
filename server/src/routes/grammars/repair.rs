//! `POST /v1/repair`: the valid text that is nearest to a given one, without any model.

use actix_web::HttpResponse;
use lexiform::limits::Cancel;
use lexiform::repair::{RepairError, RepairLimits};

use super::compiled;
use crate::routes::handler::{self, ApiRequest};
use crate::wire::error::ApiError;
use crate::wire::grammars::repair::{read, told};

/// The longest text that is repaired, in bytes.
const TEXT_BYTES: usize = 64 << 10;
/// The pairs of a place in the text and a state of the grammar that a search looks at: some 50 MB.
const NODES: usize = 1 << 18;

/// Repairs a text.
///
/// # Errors
/// The request is wrong, its constraint does not compile, or the nearest valid text is too far away.
pub async fn create(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    handler::answer_json(asked, |served, body, interest| {
        let asked = read(body)?;
        let (_, compiled) = compiled(served, &asked.grammar, interest)?;
        let limits = RepairLimits {
            text_bytes: TEXT_BYTES,
            nodes: NODES,
            cancel: Cancel::when({
                let interest = interest.clone();
                move || interest.is_lost()
            }),
        };
        match compiled.grammar.repair(&asked.text, &asked.costs, &limits) {
            Ok(repair) => Ok((told(&compiled.id, &repair), asked.ignored)),
            Err(RepairError::Cancelled) => Err(ApiError::nobody_waits()),
            Err(error) => Err(ApiError::repair(&error)),
        }
    })
    .await
}
