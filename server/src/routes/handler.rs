//! The code that handlers share: a request with its body, its requester, and work on threads that may block.

use std::future::Ready;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, HttpResponse, web};
use lexiform_engine::{Length, Owner};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::grammars::interest::{Interest, InterestGuard, Requester};
use crate::model::served::ServedModel;
use crate::operate::keys::Key;
use crate::operate::metrics::Phase;
use crate::request::body::{self, Body};
use crate::routes::state::AppState;
use crate::wire::error::ApiError;
use crate::wire::fields::Ignored;
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
    tell: impl FnOnce(&ServedModel, &[u8], &Interest) -> Result<(Value, Ignored), ApiError> + Send + 'static,
) -> Result<HttpResponse, ApiError> {
    let app = asked.app.clone();
    let mut account = app.open_account(&asked.request)?;
    let requester = requester(&app, &asked.request);
    let told = async {
        app.check_open()?;
        let body = asked.body().await?;
        let served = app.served.clone();
        blocking(&app, requester, move |interest| tell(&served, &body, interest)).await
    }
    .await;
    account.settle(told.as_ref().map(|_| Usage::default()));
    let (told, ignored) = told?;
    Ok(told_answer(&app, told, &ignored))
}

/// Returns an answer with this JSON, which names the fields of its request that have no effect here.
pub(crate) fn told_answer(app: &AppState, mut told: Value, ignored: &Ignored) -> HttpResponse {
    app.served.metrics().ignored(ignored.count());
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
            app.served.metrics().abandoned(Phase::Prepare);
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
    let limits = app.served.limits();
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
        app.served.metrics().panicked();
        Err(ApiError::internal())
    })
}
