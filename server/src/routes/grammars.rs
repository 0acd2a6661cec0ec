//! `POST /v1/grammars` (compile once, use by identity) and the queries of a grammar: `lint`, `check`, `mask`,
//! `explain`; and `POST /v1/verify`, which checks certificates again.

pub mod project;
pub mod repair;

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Value, json};

use crate::answer::certificate::Certifier;
use crate::grammars::interest::Interest;
use crate::grammars::language::Language;
use crate::grammars::store::Compiled;
use crate::grammars::{enforcement, inspect, report};
use crate::model::served::ServedModel;
use crate::request::{permission, prompt, told};
use crate::routes::handler::{self, ApiRequest, blocking, json_answer};
use crate::routes::state::AppState;
use crate::wire::constraint::{Constraint, Source};
use crate::wire::error::ApiError;
use crate::wire::grammars::{self, GrammarRequest, Named};

/// Compiles a constraint and registers it.
///
/// # Errors
/// Fails if it does not compile.
pub async fn register(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    answer(asked, |served, asked, interest| {
        let (constraint, compiled) = compiled(served, &asked.grammar, interest)?;
        served
            .grammars()
            .register(&compiled.id, constraint, interest.requester());
        Ok(report::registered(&compiled))
    })
    .await
}

/// Returns a registered grammar, as it is compiled for the first model, or for the one that the query names.
///
/// # Errors
/// Fails if there is none with this identity, or no such model.
pub async fn get(
    app: web::Data<AppState>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let requester = handler::requester(&app, &request);
    let served = handler::model_of_query(&app, &request, &requester).await?;
    let told = blocking(&app, requester, move |interest| {
        let (_, compiled) = compiled(&served, &Named::Id(id.into_inner()), interest)?;
        Ok(report::registered(&compiled))
    });
    Ok(json_answer(&told.await?))
}

/// Reports the problems of a constraint and its findings; a constraint that does not compile is not an error.
///
/// # Errors
/// Fails if the request is invalid.
pub async fn lint(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    answer(asked, |served, asked, interest| {
        let constraint = constraint(served, &asked.grammar, interest)?;
        let language = language(constraint);
        permission::check_language(&language, interest)?;
        let compiled = served.grammars().get(&language, interest, served.metrics());
        let compiled = compiled.ok_or_else(ApiError::nobody_waits)?;
        let compiled = compiled.and_then(|compiled| {
            let unkept = enforcement::unkept(&language, &compiled).pop();
            unkept.map_or(Ok(compiled), |unkept| Err(Arc::new(unkept)))
        });
        Ok(report::lint(compiled.as_ref().map_err(Arc::as_ref)))
    })
    .await
}

/// Reports whether texts belong to a grammar, and where they leave it.
///
/// # Errors
/// Fails if the request is invalid, or if its constraint does not compile.
pub async fn check(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    answer(asked, |served, asked, interest| {
        let (_, compiled) = compiled(served, &asked.grammar, interest)?;
        let results = asked
            .texts
            .iter()
            .map(|text| inspect::check(&compiled.grammar, text));
        Ok(json!({"id": &*compiled.id, "results": results.collect::<Vec<_>>()}))
    })
    .await
}

/// Checks texts again as a certificate does, where possible with programs that share no code with the
/// decoder, and reports whether an earlier certificate is confirmed.
///
/// # Errors
/// Fails if the request is invalid, or if its constraint does not compile.
pub async fn verify(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    answer(asked, |served, asked, interest| {
        let (constraint, compiled) = compiled(served, &asked.grammar, interest)?;
        let certifier = Certifier::new(&language(constraint), &compiled, served);
        let certificates = asked.texts.iter().filter_map(|text| certifier.text(text));
        let results =
            certificates.map(|checked| grammars::verified(checked.certificate, asked.certificate.as_ref()));
        Ok(json!({"id": &*compiled.id, "results": results.collect::<Vec<_>>()}))
    })
    .await
}

/// Reports what may follow a prefix.
///
/// # Errors
/// Fails if the request is invalid, or if its constraint does not compile.
pub async fn mask(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    answer(asked, |served, asked, interest| {
        let (_, compiled) = compiled(served, &asked.grammar, interest)?;
        let mut mask = inspect::mask(&compiled.grammar, &asked.prefix);
        mask["id"] = json!(&*compiled.id);
        Ok(mask)
    })
    .await
}

/// Explains a constraint: its shortest text and the common beginning of all texts; for a schema, also a
/// sketch and the enforcement of each of its assertions.
///
/// # Errors
/// Fails if the request is invalid, or if its constraint does not compile.
pub async fn explain(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    answer(asked, |served, asked, interest| {
        let (constraint, compiled) = compiled(served, &asked.grammar, interest)?;
        let (mut sketch, mut assertions) = (None, None);
        if let Source::Schema(text) = &constraint.source {
            let short = Some(text).filter(|text| text.len() <= told::SKETCHED);
            let schema = short.and_then(|text| serde_json::from_str::<Value>(text).ok());
            sketch = schema.map(|schema| lexiform_syntax::schema::sketch::sketch(&schema));
            let keywords = enforcement::whole(&language(constraint.clone()), &compiled, interest)?;
            assertions = Some(report::keywords(&keywords));
        }
        let grammar = &compiled.grammar;
        let shortest = inspect::shortest(grammar);
        let mut told = report::registered(&compiled);
        told["object"] = json!("grammar.explanation");
        told["satisfiable"] = json!(true);
        told["sketch"] = json!(sketch);
        told["assertions"] = json!(assertions);
        told["begins_with"] = json!(String::from_utf8_lossy(&grammar.forced(grammar.start())));
        told["may_be_empty"] = json!(grammar.is_accepting(grammar.start()));
        told["shortest"] = json!(shortest);
        Ok(told)
    })
    .await
}

async fn answer(
    asked: ApiRequest,
    tell: fn(&Arc<ServedModel>, &GrammarRequest, &Interest) -> Result<Value, ApiError>,
) -> Result<HttpResponse, ApiError> {
    handler::answer_json(asked, move |served, body, interest| {
        let asked = grammars::read(body)?;
        Ok((tell(served, &asked, interest)?, asked.ignored))
    })
    .await
}

fn constraint(served: &ServedModel, named: &Named, interest: &Interest) -> Result<Constraint, ApiError> {
    match named {
        Named::Constraint(constraint) => Ok(constraint.clone()),
        Named::Id(id) => prompt::registered(served, id, interest),
    }
}

fn language(constraint: Constraint) -> Language {
    Language {
        content: Some(constraint),
        ..Language::default()
    }
}

fn compiled(
    served: &ServedModel,
    named: &Named,
    interest: &Interest,
) -> Result<(Constraint, Compiled), ApiError> {
    let constraint = constraint(served, named, interest)?;
    prompt::check_sources(std::iter::once(&constraint))?;
    let compiled = prompt::compiled(served, &language(constraint.clone()), interest)?;
    Ok((constraint, compiled.ok_or_else(ApiError::internal)?))
}
