//! `POST /v1/repair`: the valid text that is nearest to a given one, without any model; or a text that the
//! model writes to replace it.

use std::sync::Arc;

use actix_web::HttpResponse;
use lexiform::limits::Cancel;
use lexiform::repair::{Repair, RepairError, RepairLimits};
use serde_json::Value;

use super::compiled;
use crate::grammars::interest::Interest;
use crate::model::served::ServedModel;
use crate::routes::handler::ApiRequest;
use crate::routes::prepare::{self, Reply};
use crate::routes::respond;
use crate::wire::constraint::Source;
use crate::wire::error::ApiError;
use crate::wire::grammars::repair::{RepairRequest, read, told};

/// The maximum length of a text to repair, in bytes.
const TEXT_BYTES: usize = 64 << 10;
/// The maximum number of pairs of a place in the text and a state of the grammar that a search visits: some
/// 50 MB.
const NODES: usize = 1 << 18;

/// Repairs a text.
///
/// # Errors
/// Fails if the request is invalid, its constraint does not compile, the nearest valid text is too far away,
/// or the engine cannot accept the text that the model is to rewrite.
pub async fn create(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    respond::reply(asked, reply).await
}

fn reply(served: &Arc<ServedModel>, body: &[u8], interest: &Interest) -> Result<Reply, ApiError> {
    let mut asked = read(body)?;
    let Some(rewrite) = asked.rewrite.take() else {
        let told = nearest(served, &asked, interest)?;
        return Ok(Reply::Told(told, asked.ignored));
    };
    let (bytes, limit) = (asked.text.len(), TEXT_BYTES);
    if bytes > limit {
        return Err(ApiError::repair(&RepairError::TextTooLong { bytes, limit }));
    }
    let prepared = prepare::rewrite(served, asked, rewrite, interest)?;
    Ok(Reply::Generated(Box::new(prepared)))
}

fn nearest(served: &ServedModel, asked: &RepairRequest, interest: &Interest) -> Result<Value, ApiError> {
    let (constraint, compiled) = compiled(served, &asked.grammar, interest)?;
    let limits = RepairLimits {
        text_bytes: TEXT_BYTES,
        nodes: NODES,
        cancel: Cancel::when({
            let interest = interest.clone();
            move || interest.is_lost()
        }),
    };
    let repaired = match constraint.source {
        Source::Schema(_) => Repair::of_json(&compiled.grammar, &asked.text, &asked.costs, &limits),
        _ => Repair::of_text(&compiled.grammar, &asked.text, &asked.costs, &limits),
    };
    match repaired {
        Ok(repair) => Ok(told(&compiled.id, &repair)),
        Err(RepairError::Cancelled) => Err(ApiError::nobody_waits()),
        Err(error) => Err(ApiError::repair(&error)),
    }
}
