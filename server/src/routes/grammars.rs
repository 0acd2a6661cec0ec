//! `POST /v1/grammars` (compile once, use by its identity) and what can be asked about a grammar: `lint`,
//! `check`, `mask`, `explain`; and `POST /v1/verify`, which checks certificates again.

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
use crate::request::{prompt, told};
use crate::routes::handler::{self, ApiRequest, blocking, json_answer};
use crate::routes::state::AppState;
use crate::wire::constraint::{Constraint, Source};
use crate::wire::error::ApiError;
use crate::wire::grammars::{self, GrammarRequest, Named};

/// Compiles a constraint and keeps it.
///
/// # Errors
/// It does not compile.
pub async fn register(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    answer(asked, |served, asked, interest| {
        let (constraint, compiled) = compiled(served, &asked.grammar, interest)?;
        served
            .grammars()
            .register(&compiled.id, constraint, interest.owner());
        Ok(report::registered(&compiled))
    })
    .await
}

/// A grammar that was registered.
///
/// # Errors
/// There is none of this identity.
pub async fn get(
    app: web::Data<AppState>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let served = app.served.clone();
    let told = blocking(&app, handler::owner(&request), move |interest| {
        let (_, compiled) = compiled(&served, &Named::Id(id.into_inner()), interest)?;
        Ok(report::registered(&compiled))
    });
    Ok(json_answer(&told.await?))
}

/// Says what is wrong with a constraint, or noteworthy; never an error.
///
/// # Errors
/// The request is wrong.
pub async fn lint(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    answer(asked, |served, asked, interest| {
        let constraint = constraint(served, &asked.grammar, interest)?;
        let language = language(constraint);
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

/// Says of texts whether they belong to a grammar, and where they leave it.
///
/// # Errors
/// The request is wrong, or its constraint does not compile.
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

/// Checks texts again as a certificate does, with programs that share no code with the decoder where there
/// are such, and says whether a certificate from before is confirmed.
///
/// # Errors
/// The request is wrong, or its constraint does not compile.
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

/// Says what may come after a prefix.
///
/// # Errors
/// The request is wrong, or its constraint does not compile.
pub async fn mask(asked: ApiRequest) -> Result<HttpResponse, ApiError> {
    answer(asked, |served, asked, interest| {
        let (_, compiled) = compiled(served, &asked.grammar, interest)?;
        let mut mask = inspect::mask(&compiled.grammar, &asked.prefix);
        mask["id"] = json!(&*compiled.id);
        Ok(mask)
    })
    .await
}

/// Says what a constraint means: its shortest text, what every text begins with; of a schema, a sketch, and
/// how each of its assertions is enforced.
///
/// # Errors
/// The request is wrong, or its constraint does not compile.
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
    tell: fn(&ServedModel, &GrammarRequest, &Interest) -> Result<Value, ApiError>,
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
