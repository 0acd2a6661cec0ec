//! `POST /v1/project`: schemas and tools as providers and engines take them, without any model.

use actix_web::HttpResponse;
use lexiform::error::{CompileError, Place, Problem, ProblemKind};
use lexiform::project::Projector;
use lexiform::schema::Options;
use lexiform_cli::project::{Judged, Judging};
use serde_json::Value;

use crate::grammars::interest::Interest;
use crate::model::served::ServedModel;
use crate::operate::metrics::GrammarKind;
use crate::routes::handler::{ApiRequest, answer_json};
use crate::wire::error::ApiError;
use crate::wire::grammars::project::{ProjectRequest, answered, param, projected, read, subject};

/// The maximum length of all schemas of an answer, in bytes: definitions that a target does not have are
/// written wherever they are used.
const PROJECTED_BYTES: usize = 16 << 20;

/// Projects a schema, or the schemas of tools.
///
/// # Errors
/// Fails if the request is invalid, if a schema does not compile, or if the answer would be too large. A
/// schema that cannot be written for a target is no error.
pub async fn create(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    answer_json(asked, |served, body, interest| {
        let asked = read(body)?;
        let field = if asked.has_tools { "tools" } else { "schema" };
        interest.rights().constraint(field, GrammarKind::Schema)?;
        Ok((projections(served, &asked, interest)?, asked.ignored))
    })
    .await
}

fn projections(served: &ServedModel, asked: &ProjectRequest, interest: &Interest) -> Result<Value, ApiError> {
    let judging = Judging {
        toward: asked.toward,
        draws: asked.draws,
        options: Options::for_generation(),
        limits: served.grammars().limits(interest),
    };
    let texts: Vec<String> = asked
        .schemas
        .iter()
        .map(|named| named.schema.to_string())
        .collect();
    let projectors = projectors(asked, &texts, &judging)?;
    let mut bytes = 0;
    let mut told = Vec::new();
    for profile in &asked.profiles {
        let mut judged = Vec::new();
        for ((named, text), projector) in asked.schemas.iter().zip(&texts).zip(&projectors) {
            let one = judging.target(named, text, projector, profile);
            check_ended(asked, &one)?;
            bytes += one
                .projection
                .as_ref()
                .map_or(0, |projection| projection.schema().to_string().len());
            if bytes > PROJECTED_BYTES {
                let message = format!(
                    "what is written for all targets has more bytes than the limit `projected_bytes`, {PROJECTED_BYTES}"
                );
                let problem = Problem::new(ProblemKind::Limit, Place::Whole, message);
                return Err(ApiError::constraint(
                    &subject(&param(asked, named), named),
                    &problem.into(),
                ));
            }
            judged.push(one);
        }
        told.push(projected(asked, profile, &judged));
    }
    Ok(answered(told))
}

/// Reads all schemas.
///
/// # Errors
/// Returns the problems of all schemas that do not compile.
fn projectors(
    asked: &ProjectRequest,
    texts: &[String],
    judging: &Judging,
) -> Result<Vec<Projector>, ApiError> {
    let params: Vec<String> = asked.schemas.iter().map(|named| param(asked, named)).collect();
    let (mut read, mut errors): (Vec<Projector>, Vec<(usize, CompileError)>) = Default::default();
    for (at, text) in texts.iter().enumerate() {
        match Projector::new(text, &judging.options, &judging.limits) {
            Ok(projector) => read.push(projector),
            Err(error) => errors.push((at, error)),
        }
    }
    let told = errors
        .iter()
        .map(|(at, error)| (subject(&params[*at], &asked.schemas[*at]), error));
    match errors.is_empty() {
        true => Ok(read),
        false => Err(ApiError::constraints(&told.collect::<Vec<_>>())),
    }
}

/// Checks that a projection ended by itself.
///
/// # Errors
/// Fails if it was cancelled, or if there was no memory for it.
fn check_ended(asked: &ProjectRequest, judged: &Judged) -> Result<(), ApiError> {
    let Err(error) = &judged.projection else {
        return Ok(());
    };
    let is_early = |problem: &Problem| matches!(problem.kind, ProblemKind::Cancelled | ProblemKind::Busy);
    match error.problems.iter().any(is_early) {
        true => Err(ApiError::constraint(
            &subject(&param(asked, &judged.named), &judged.named),
            error,
        )),
        false => Ok(()),
    }
}
