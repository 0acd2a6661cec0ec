//! The steps that all generating routes share around their own reading of the request: body in, samples
//! submitted, answer out; or an immediate answer, if a route generates only for some of its requests.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use actix_web::http::header::{CACHE_CONTROL, HeaderName, LINK};
use actix_web::web::Bytes;
use actix_web::{HttpResponse, HttpResponseBuilder};
use futures_core::Stream;
use serde_json::Value;

use crate::answer::builder::AnswerBuilder;
use crate::answer::builder::grown::Written;
use crate::answer::stream::EventStream;
use crate::grammars::interest::{Interest, Requester};
use crate::model::running::Running;
use crate::model::served::ServedModel;
use crate::operate::audit::Account;
use crate::routes::handler::{self, ApiRequest, blocking};
use crate::routes::prepare::{Prepare, Prepared, Reply};
use crate::routes::state::AppState;
use crate::wire::error::ApiError;
use crate::wire::fields::Ignored;
use crate::wire::response::Usage;

/// Answers a request that `prepare` reads.
///
/// # Errors
/// Fails if the request is invalid, or if the engine cannot accept it.
pub(crate) async fn generate(asked: ApiRequest, prepare: Prepare) -> Result<HttpResponse, ApiError> {
    let prepare = move |served: &Arc<ServedModel>, body: &[u8], interest: &Interest| {
        Ok(Reply::Generated(Box::new(prepare(served, body, interest)?)))
    };
    reply(asked, prepare).await
}

/// Answers a request that may or may not need the model.
///
/// # Errors
/// Fails if the request is invalid, or if the engine cannot accept it.
pub(crate) async fn reply(asked: ApiRequest, prepare: impl PrepareReply) -> Result<HttpResponse, ApiError> {
    let app = asked.app.clone();
    let mut account = app.open_account(&asked.request)?;
    let requester = handler::requester(&app, &asked.request);
    let answered = run(asked, prepare, &mut account).await;
    match answered {
        Ok((served, Begun::Told(told, ignored))) => {
            account.settle(Ok(Usage::default()));
            Ok(handler::told_answer(served.metrics(), told, &ignored))
        }
        Ok((served, Begun::Running(mut prepared, running))) => {
            prepared.frame.charge(account);
            answer((&app, &served), *prepared, running, requester).await
        }
        Err(error) => {
            account.end(error.code(), Usage::default());
            Err(error)
        }
    }
}

/// A function that reads a request, and stops when its interest is lost.
pub(crate) trait PrepareReply:
    FnOnce(&Arc<ServedModel>, &[u8], &Interest) -> Result<Reply, ApiError> + Send + 'static
{
}

impl<F> PrepareReply for F where
    F: FnOnce(&Arc<ServedModel>, &[u8], &Interest) -> Result<Reply, ApiError> + Send + 'static
{
}

/// The outcome of preparing a request: an answer, or running samples.
enum Begun {
    /// The answer, and the fields that have no effect.
    Told(Value, Ignored),
    /// The prepared request, and its samples in the engine.
    Running(Box<Prepared>, Running),
}

async fn run(
    asked: ApiRequest,
    prepare: impl PrepareReply,
    account: &mut Account,
) -> Result<(Arc<ServedModel>, Begun), ApiError> {
    let app = asked.app.clone();
    app.check_open()?;
    let requester = handler::requester(&app, &asked.request);
    let owner = requester.owner.clone();
    let request = asked.request.clone();
    let body = asked.body().await?;
    account.note("bytes", body.len());
    let prepare = move |served: &Arc<ServedModel>, body: &[u8], interest: &Interest| {
        let begun = Instant::now();
        let mut reply = prepare(served, body, interest)?;
        if let Reply::Generated(prepared) = &mut reply {
            let own = begun.elapsed().saturating_sub(prepared.compiling);
            prepared.frame.spent(own);
        }
        Ok((begun, reply))
    };
    let prepared = handler::with_model((&app, &request), requester, body, account, prepare);
    let (served, (begun, reply)) = prepared.await?;
    let mut prepared = match reply {
        Reply::Told(told, ignored) => return Ok((served, Begun::Told(told, ignored))),
        Reply::Generated(prepared) => prepared,
    };
    let compiled = prepared.compile_begun + prepared.compiling;
    account.spent("template", None, (begun, prepared.compile_begun));
    account.spent("compile", None, (prepared.compile_begun, compiled));
    account.note("grammar", prepared.grammar.clone());
    account.note("grammar_bytes", prepared.source_bytes);
    let mut requests = std::mem::take(&mut prepared.requests);
    for request in &mut requests {
        request.limits.owner.clone_from(&owner);
    }
    let limits = served.limits().shortened(prepared.timeout);
    prepared.frame.keep(&requests);
    let running = Running::start(served.engine(), requests, limits)?;
    Ok((served, Begun::Running(prepared, running)))
}

/// The date since which the `guided_*` fields are deprecated, in the form of RFC 9745: the first day of this
/// server, 2026-11-21.
const DEPRECATED: &str = "@1795219200";
/// The link to the description of the fields that replace them (with the relation of RFC 9745).
const SUCCESSOR: &str = "</docs/>; rel=\"deprecation\"; type=\"text/html\"";

/// Returns the answer. The future, or the body of the stream, owns the samples: when the client disconnects,
/// they are dropped and the engine frees their sequences.
async fn answer(
    (app, served): (&AppState, &ServedModel),
    prepared: Prepared,
    running: Running,
    requester: Requester,
) -> Result<HttpResponse, ApiError> {
    let mut response = HttpResponse::Ok();
    if let Some(enforced) = prepared.enforced {
        response.insert_header((HeaderName::from_static("x-lexiform-enforced"), enforced));
    }
    if prepared.deprecated {
        response.insert_header((HeaderName::from_static("deprecation"), DEPRECATED));
        response.insert_header((LINK, SUCCESSOR));
    }
    if let Some(ignored) = prepared.ignored.header() {
        response.insert_header((HeaderName::from_static(handler::IGNORED), ignored));
    }
    served.metrics().ignored(prepared.ignored.count());
    if !prepared.stream {
        let Written { json, is_steered } = if prepared.frame.weighs() {
            weighed(app, prepared.frame, running, requester).await?
        } else if prepared.frame.is_slow_to_write() {
            let grown = prepared.frame.grown(running).await?;
            blocking(app, requester, move |_| grown.finish()).await?
        } else {
            prepared.frame.collect(running).await?
        };
        if is_steered {
            response.insert_header((HeaderName::from_static("x-lexiform-budget"), "steered"));
        }
        return Ok(response.content_type("application/json").body(json));
    }
    let key = requester.key.as_deref();
    let stream = EventStream::new(prepared.frame, running);
    if !prepared.resumable {
        return Ok(event_stream(response, stream));
    }
    let (id, reader) = app.streams.clone().open(key, stream)?;
    response.insert_header((HeaderName::from_static("x-lexiform-stream"), id));
    Ok(event_stream(response, reader))
}

/// Returns the whole answer, with the values that were possible in it.
async fn weighed(
    app: &AppState,
    frame: AnswerBuilder,
    running: Running,
    requester: Requester,
) -> Result<Written, ApiError> {
    let mut grown = frame.grown(running).await?;
    let found = blocking(app, requester, move |_| {
        grown.find_places();
        Ok(grown)
    });
    let mut grown = found.await?;
    grown.weigh().await?;
    grown.finish()
}

/// Returns an answer whose body is a stream of events.
pub(crate) fn event_stream<S>(mut response: HttpResponseBuilder, body: S) -> HttpResponse
where
    S: Stream<Item = Result<Bytes, Infallible>> + 'static,
{
    response
        .content_type("text/event-stream")
        .insert_header((CACHE_CONTROL, "no-cache"))
        // Proxies such as nginx would otherwise buffer the stream before they pass it on.
        .insert_header((HeaderName::from_static("x-accel-buffering"), "no"))
        .streaming(body)
}
