//! `GET /v1/models` and `GET /v1/models/{id}`, and the loading and unloading of a model by an operator.

use std::sync::Arc;

use actix_web::http::header::{HeaderMap, HeaderName, ORIGIN};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};

use crate::model::registry::{Place, Registry, Status};
use crate::operate::keys::Key;
use crate::routes::state::{About, AppState};
use crate::wire::error::ApiError;
use crate::wire::models::{CardDetails, ModelCard, ModelList};

/// Headers of requests that a browser or a proxy sends for somebody else.
const FOR_OTHERS: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "sec-fetch-site"];

/// Lists the models that are served and that the key of the request may use.
pub async fn list(app: web::Data<AppState>, request: HttpRequest) -> HttpResponse {
    let models = &app.models;
    let usable = models
        .places()
        .filter(|place| may_use(&request, models.name(*place)));
    HttpResponse::Ok().json(ModelList {
        object: "list",
        data: usable.map(|place| card(models, place)).collect(),
    })
}

/// Returns one model.
///
/// # Errors
/// Fails if it is not served here, or not to this key.
pub async fn get(
    app: web::Data<AppState>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let models = &app.models;
    let may_use = |name: &str| may_use(&request, name);
    let place = models.find(Some(&id), may_use)?;
    match may_use(models.name(place)) {
        true => Ok(HttpResponse::Ok().json(card(models, place))),
        false => Err(models.unknown(&id, may_use)),
    }
}

/// Returns `true` if the key of a request, where there is one, may use this model.
fn may_use(request: &HttpRequest, model: &str) -> bool {
    let extensions = request.extensions();
    let key = extensions.get::<Arc<Key>>();
    key.is_none_or(|key| key.rights.model(model).is_ok())
}

/// Loads a model, and answers when it is loaded.
///
/// # Errors
/// Fails if there is no such model, the client may not load models, or the load fails.
pub async fn load(
    app: web::Data<AppState>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let place = operated(&app, &request, &id)?;
    app.check_open()?;
    let loaded = app.models.load(place, app.models.limits().answer).await?;
    // Until it is described, so that nothing unloads it.
    let answer = HttpResponse::Ok().json(card(&app.models, place));
    drop(loaded);
    Ok(answer)
}

/// Unloads a model: at once if it is idle, or else when its last answer has ended.
///
/// # Errors
/// Fails if there is no such model, the client may not unload models, or the model is being loaded.
pub async fn unload(
    app: web::Data<AppState>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let place = operated(&app, &request, &id)?;
    let models = app.models.clone();
    // The engine ends its pass first.
    let status = web::block(move || models.unload(place)).await;
    if status.map_err(|_| ApiError::internal())? == Status::Loading {
        return Err(ApiError::model_busy(app.models.name(place)));
    }
    Ok(HttpResponse::Ok().json(card(&app.models, place)))
}

/// Returns the model that an operator names.
fn operated(app: &AppState, request: &HttpRequest, id: &str) -> Result<Place, ApiError> {
    check_operator(app, request)?;
    let place = app.models.find(Some(id), |_| true)?;
    request.extensions_mut().insert(About(place));
    Ok(place)
}

/// Checks whether the client may load and unload models: with keys, whether its key may; without them,
/// whether it is a program of this machine that asks for nobody else.
fn check_operator(app: &AppState, request: &HttpRequest) -> Result<(), ApiError> {
    if let Some(key) = request.extensions().get::<Arc<Key>>() {
        return key.rights.operating();
    }
    let (peer, headers) = (request.peer_addr(), request.headers());
    let client = app.settings.clients.address(peer, headers);
    let is_here = client.is_none_or(|address| address.is_loopback());
    // A page in a browser of this machine is no operator, and a proxy that is not trusted could say that it
    // asks for one.
    if is_here && !is_for_others(headers) {
        return Ok(());
    }
    Err(ApiError::not_operator(
        "Without API keys, only programs on the machine of the service load and unload models; give the service \
         --api-keys, and the key of an operator 'operator = true'.",
    ))
}

fn is_for_others(headers: &HeaderMap) -> bool {
    let others = FOR_OTHERS.into_iter().map(HeaderName::from_static);
    others.chain([ORIGIN]).any(|name| headers.contains_key(name))
}

fn card(models: &Registry, place: Place) -> ModelCard<'_> {
    let (status, error, details) = models.told(place);
    ModelCard {
        id: models.name(place),
        aliases: models.aliases(place),
        state: status.word(),
        error,
        object: "model",
        created: details.map_or(0, |details| details.created),
        owned_by: "lexiform",
        details: details.map(|details| CardDetails {
            max_model_len: details.max_context,
            weights: details.weights,
            weight_bytes: details.weight_bytes,
            tool_format: details.tool_format,
            batch_invariant: details.batch_invariant,
        }),
    }
}
