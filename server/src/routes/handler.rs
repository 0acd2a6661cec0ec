//! The code that handlers share: a request with its body, its requester, and work on threads that may block.

use std::future::Ready;
use std::sync::{Arc, OnceLock};

use actix_web::dev::Payload;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, HttpResponse, web};
use lexiform_engine::{Length, Owner};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::grammars::interest::{Interest, InterestGuard, Requester};
use crate::model::registry::Place;
use crate::model::served::ServedModel;
use crate::operate::audit::Account;
use crate::operate::keys::Key;
use crate::operate::metrics::{Metrics, Phase};
use crate::request::body::{self, Body};
use crate::routes::state::{About, AppState};
use crate::wire::error::ApiError;
use crate::wire::fields::Ignored;
use crate::wire::models;
use crate::wire::response::Usage;

/// The header that names the fields of a request that have no effect on this server.
pub(crate) const IGNORED: &str = "x-lexiform-ignored";

/// A request with a body, and the state that its handler needs to answer it.
pub struct ApiRequest {
    pub(crate) app: web::Data<AppState>,
    pub(crate) request: HttpRequest,
    payload: web::Payload,
}

impl ApiRequest {
    /// Reads the whole body.
    ///
    /// # Errors
    /// Fails if the body is too large, not declared as JSON, or incomplete.
    pub(crate) async fn body(self) -> Result<Body, ApiError> {
        let limit = self.app.settings.body_limit;
        body::read(&self.request, self.payload, (&self.app.bodies, limit)).await
    }
}

impl FromRequest for ApiRequest {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let payload = web::Payload::from_request(request, payload).into_inner();
        let app = request.app_data::<web::Data<AppState>>().cloned();
        let (Some(app), Ok(payload)) = (app, payload) else {
            return std::future::ready(Err(ApiError::internal()));
        };
        let request = request.clone();
        std::future::ready(Ok(Self {
            app,
            request,
            payload,
        }))
    }
}

/// Answers a request that does not use the model: its body in, JSON out.
///
/// # Errors
/// Fails if the request is invalid, or if the server accepts none.
pub(crate) async fn answer_json(
    asked: ApiRequest,
    tell: impl FnOnce(&Arc<ServedModel>, &[u8], &Interest) -> Result<(Value, Ignored), ApiError> + Send + 'static,
) -> Result<HttpResponse, ApiError> {
    let app = asked.app.clone();
    let mut account = app.open_account(&asked.request)?;
    let requester = requester(&app, &asked.request);
    let told = async {
        app.check_open()?;
        let request = asked.request.clone();
        let body = asked.body().await?;
        with_model((&app, &request), requester, body, &mut account, tell).await
    }
    .await;
    account.settle(told.as_ref().map(|_| Usage::default()));
    let (served, (told, ignored)) = told?;
    Ok(told_answer(served.metrics(), told, &ignored))
}

/// What the first look at a request found.
enum Found<T, W> {
    /// Its model is loaded, and the work is done.
    Done(Arc<ServedModel>, T),
    /// Its model has to be loaded first.
    Absent(Place, Body, W),
}

/// Does the work of a request with the model that its body names, which is loaded if it is not in memory.
/// Returns the model too: it is not unloaded as long as that value lives.
///
/// # Errors
/// Fails if there is no such model, the key of the request does not allow it, it cannot be loaded, or the
/// work fails.
pub(crate) async fn with_model<T, W>(
    (app, request): (&AppState, &HttpRequest),
    requester: Requester,
    body: Body,
    account: &mut Account,
    work: W,
) -> Result<(Arc<ServedModel>, T), ApiError>
where
    T: Send + 'static,
    W: FnOnce(&Arc<ServedModel>, &[u8], &Interest) -> Result<T, ApiError> + Send + 'static,
{
    let (registry, about) = (app.models.clone(), Arc::new(OnceLock::new()));
    let told = about.clone();
    let found = blocking(app, requester.clone(), move |interest| {
        let place = registry.find(models::named(&body).as_deref(), |name| {
            interest.rights().model(name).is_ok()
        })?;
        // An error of the work is about this model too.
        let _ = told.set(place);
        interest.rights().model(registry.name(place))?;
        Ok(match registry.ready(place) {
            None => Found::Absent(place, body, work),
            Some(served) => {
                let done = work(&served, &body, interest)?;
                Found::Done(served, done)
            }
        })
    });
    let found = found.await;
    if let Some(place) = about.get().copied() {
        request.extensions_mut().insert(About(place));
        account.note("model", app.models.name(place));
    }
    match found? {
        Found::Done(served, done) => Ok((served, done)),
        Found::Absent(place, body, work) => {
            let served = app.models.load(place, app.models.limits().queue).await?;
            let model = served.clone();
            let done = blocking(app, requester, move |interest| work(&model, &body, interest));
            Ok((served, done.await?))
        }
    }
}

/// Returns the model that the query of a request names, or the first one; loads it if it is not in memory.
///
/// # Errors
/// Fails if there is no such model, the key of the request does not allow it, or it cannot be loaded.
pub(crate) async fn model_of_query(
    app: &AppState,
    request: &HttpRequest,
    requester: &Requester,
) -> Result<Arc<ServedModel>, ApiError> {
    let query = web::Query::<models::ModelQuery>::from_query(request.query_string());
    let query = query.map_err(|error| {
        let message = format!("the query: {error}; it may only name a model, as ?model=NAME");
        ApiError::invalid("invalid_value", Some("model".to_owned()), message)
    })?;
    let may_use = |name: &str| requester.rights.model(name).is_ok();
    let place = app.models.find(query.model.as_deref(), may_use)?;
    request.extensions_mut().insert(About(place));
    requester.rights.model(app.models.name(place))?;
    match app.models.ready(place) {
        Some(served) => Ok(served),
        None => app.models.load(place, app.models.limits().queue).await,
    }
}

/// Returns an answer with this JSON, which names the fields of its request that have no effect here.
pub(crate) fn told_answer(metrics: &Metrics, mut told: Value, ignored: &Ignored) -> HttpResponse {
    metrics.ignored(ignored.count());
    let Some(header) = ignored.header() else {
        return json_answer(&told);
    };
    told["lexiform"] = json!({"ignored": ignored.listed()});
    let mut answer = json_answer(&told);
    if let Ok(header) = HeaderValue::from_str(&header) {
        answer
            .headers_mut()
            .insert(HeaderName::from_static(IGNORED), header);
    }
    answer
}

/// Returns the metrics of the first model, with which everything is counted that is not known to be about
/// another one.
fn first_metrics(app: &AppState) -> &Metrics {
    app.models.metrics(app.models.first())
}

/// Returns an answer with this JSON.
pub(crate) fn json_answer(told: &Value) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/json")
        .body(told.to_string())
}

/// Counts a client that disconnects while its request is prepared: then the future that owns this value is
/// dropped.
struct Leaving<'a>(Option<&'a AppState>);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(app) = self.0 {
            first_metrics(app).abandoned(Phase::Prepare);
        }
    }
}

/// Returns the requester: the owner of the key, or else the client at an address, however many connections it
/// has.
pub(crate) fn requester(app: &AppState, request: &HttpRequest) -> Requester {
    let key = request.extensions().get::<Arc<Key>>().cloned();
    let rights = key.as_ref().map(|key| key.rights.clone()).unwrap_or_default();
    let key: Owner = key.map(|key| Arc::from(key.name.as_str()));
    let client = || app.settings.clients.owner(request.peer_addr(), request.headers());
    Requester {
        owner: key.clone().or_else(client),
        key,
        rights,
    }
}

/// Runs CPU-bound work (reading, compiling) on a thread that may block. A panic in it becomes a 500 of this
/// request alone. The request waits no longer than the operator allows. If its client disconnects or its time
/// is over, work that has not begun never starts, and running work notices through its interest, so that a
/// crowd that sends expensive schemas and disconnects costs nothing.
///
/// # Errors
/// Returns the error of the work, or fails if it panicked, took too long, or found no room among those that
/// wait for a thread.
pub(crate) async fn blocking<T: Send + 'static>(
    app: &AppState,
    requester: Requester,
    work: impl FnOnce(&Interest) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let limits = app.models.limits();
    let room = limits.prepare(&requester.owner)?;
    let limit = limits.prepare;
    let owner = requester.owner.clone();
    let wanted = InterestGuard::asked(requester);
    let interest = wanted.interest();
    let work = move || match interest.is_lost() {
        true => Err(ApiError::nobody_waits()),
        false => lexiform::unless_cancelled(&interest.cancel(), || work(&interest))
            .unwrap_or_else(|| Err(ApiError::nobody_waits())),
    };
    let mut leaving = Leaving(Some(app));
    let (sender, done) = oneshot::channel();
    let work = move || {
        let _room = room;
        // The receiver is gone if the client has disconnected.
        let _ = sender.send(work());
    };
    app.threads.start(owner, Length::Short, Box::new(work));
    let ended = tokio::time::timeout(limit, done).await;
    leaving.0 = None;
    let Ok(done) = ended else {
        return Err(ApiError::compile_timed_out(limit.as_secs_f64()));
    };
    done.unwrap_or_else(|_| {
        first_metrics(app).panicked();
        Err(ApiError::internal())
    })
}
