//! What answers at which path.

pub mod chat;
pub mod completions;
pub mod decisions;
pub mod grammars;
pub mod models;
pub mod operations;
pub mod pages;
pub mod responses;
pub mod streams;
pub mod tokens;

use std::future::Ready;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::web::{self, ServiceConfig};
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, HttpResponse, Resource, Route, guard};
use lexiform_engine::Length;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::app::App;
use crate::body::{self, Body};
use crate::error::ApiError;
use crate::flight::{Asker, Interest, Wanted};
use crate::metrics::Phase;
use crate::security::Key;
use crate::served::Served;
use crate::shelf::Owner;
use crate::wire::fields::Ignored;
use crate::wire::response::Usage;

/// The header that names the fields of a request that mean nothing to this server.
pub(crate) const IGNORED: &str = "x-lexiform-ignored";

/// What the operator has an address serve beside the API.
#[derive(Clone, Copy, Debug)]
pub struct Offered {
    /// The playground and the documentation.
    pub pages: bool,
    /// The metrics.
    pub metrics: bool,
}

/// Names the routes of an address for metrics alone, which asks nobody for a key: what monitoring reads, and the probes.
pub fn configure_metrics(config: &mut ServiceConfig) {
    config
        .service(get("/metrics").route(reading().to(operations::metrics)))
        .service(get("/live").route(reading().to(operations::live)))
        .service(get("/ready").route(reading().to(operations::ready)))
        .default_service(web::to(unknown));
}

/// Names all routes. Whatever is not named is a 404 or a 405 in the same envelope as every other error.
pub fn configure(config: &mut ServiceConfig, offered: Offered) {
    if offered.metrics {
        config.service(get("/metrics").route(reading().to(operations::metrics)));
    }
    if offered.pages {
        config
            .service(get("/").route(reading().to(pages::playground)))
            .service(get("/openapi.json").route(reading().to(pages::openapi)))
            .service(web::resource("/docs").route(reading().to(pages::to_documentation)))
            .service(web::resource("/docs/{file:.*}").route(reading().to(pages::documentation)))
            .service(web::resource("/favicon.ico").route(reading().to(pages::icon)));
    }
    config
        .service(post("/v1/chat/completions").route(web::post().to(chat::create)))
        .service(post("/v1/completions").route(web::post().to(completions::create)))
        .service(post("/v1/responses").route(web::post().to(responses::create)))
        .service(post("/v1/decisions").route(web::post().to(decisions::create)))
        .service(post("/tokenize").route(web::post().to(tokens::tokenize)))
        .service(post("/detokenize").route(web::post().to(tokens::detokenize)))
        .service(post("/v1/grammars").route(web::post().to(grammars::register)))
        .service(post("/v1/grammars/lint").route(web::post().to(grammars::lint)))
        .service(post("/v1/grammars/check").route(web::post().to(grammars::check)))
        .service(post("/v1/grammars/mask").route(web::post().to(grammars::mask)))
        .service(post("/v1/grammars/explain").route(web::post().to(grammars::explain)))
        .service(post("/v1/verify").route(web::post().to(grammars::verify)))
        .service(get("/v1/grammars/{id}").route(reading().to(grammars::get)))
        .service(get("/v1/streams/{id}").route(reading().to(streams::get)))
        .service(get("/v1/models").route(reading().to(models::list)))
        .service(get("/v1/models/{id:.*}").route(reading().to(models::get)))
        .service(get("/health").route(reading().to(operations::ready)))
        .service(get("/ready").route(reading().to(operations::ready)))
        .service(get("/live").route(reading().to(operations::live)))
        .service(get("/version").route(reading().to(operations::version)))
        .default_service(web::to(unknown));
}

fn post(path: &str) -> Resource {
    web::resource(path).default_service(web::to(async |request: HttpRequest| {
        wrong_method(&request, "POST")
    }))
}

fn get(path: &str) -> Resource {
    web::resource(path).default_service(web::to(async |request: HttpRequest| {
        wrong_method(&request, "GET, HEAD")
    }))
}

/// A route that is read: by GET, and by HEAD, whose answer is the same without its body.
fn reading() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}

fn wrong_method(request: &HttpRequest, allow: &'static str) -> Result<HttpResponse, ApiError> {
    Err(ApiError::wrong_method(
        request.method().as_str(),
        request.path(),
        allow,
    ))
}

async fn unknown(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    Err(ApiError::unknown_route(request.method().as_str(), request.path()))
}

/// A request with a body, and what its handler needs to answer it.
pub struct Asked {
    pub(crate) app: web::Data<App>,
    pub(crate) request: HttpRequest,
    payload: web::Payload,
}

impl Asked {
    /// The whole body.
    ///
    /// # Errors
    /// It is too large, not declared as JSON, or broken off.
    pub(crate) async fn body(self) -> Result<Body, ApiError> {
        let limit = self.app.settings.body_limit;
        body::read(&self.request, self.payload, (&self.app.bodies, limit)).await
    }
}

impl FromRequest for Asked {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let payload = web::Payload::from_request(request, payload).into_inner();
        let app = request.app_data::<web::Data<App>>().cloned();
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

/// Answers a request that asks nothing of the model: its body in, JSON out.
///
/// # Errors
/// The request is wrong, or the server takes none.
pub(crate) async fn tell(
    asked: Asked,
    tell: impl FnOnce(&Served, &[u8], &Interest) -> Result<(Value, Ignored), ApiError> + Send + 'static,
) -> Result<HttpResponse, ApiError> {
    let app = asked.app.clone();
    let mut account = app.open_account(&asked.request)?;
    let owner = owner(&asked.request);
    let told = async {
        app.check_open()?;
        let body = asked.body().await?;
        let served = app.served.clone();
        blocking(&app, owner, move |interest| tell(&served, &body, interest)).await
    }
    .await;
    account.settle(told.as_ref().map(|_| Usage::default()));
    let (mut told, ignored) = told?;
    app.served.metrics().ignored(ignored.count());
    let Some(header) = ignored.header() else {
        return Ok(json_answer(&told));
    };
    told["lexiform"] = json!({"ignored": ignored.listed()});
    let mut answer = json_answer(&told);
    if let Ok(header) = HeaderValue::from_str(&header) {
        answer
            .headers_mut()
            .insert(HeaderName::from_static(IGNORED), header);
    }
    Ok(answer)
}

fn json_answer(told: &Value) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/json")
        .body(told.to_string())
}

/// Counts a client that leaves while its request is prepared: then the future that holds this is dropped.
struct Leaving<'a>(Option<&'a App>);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(app) = self.0 {
            app.served.metrics().abandoned(Phase::Prepare);
        }
    }
}

/// Who asks: the owner of the key, or whoever is at the other end of the connection.
pub(crate) fn owner(request: &HttpRequest) -> Asker {
    let key = request.extensions().get::<Arc<Key>>().cloned();
    let owner: Owner = key.map(|key| Arc::from(key.name.as_str()));
    let peer = || request.peer_addr().map(|peer| Arc::from(peer.to_string()));
    Asker {
        share: owner.clone().or_else(peer),
        owner,
    }
}

/// Runs work for the processor on a thread that may block: reading, compiling. A panic in it is a 500 of this request
/// alone. Nobody waits for it longer than the operator allows. When its client leaves or its time is over, work that has
/// not begun never does, and work that runs is told by its interest, so that a crowd that sends expensive schemas and
/// goes away costs nothing.
///
/// # Errors
/// The work's own error, a panic in it, the end of the time, or no room among those who wait for a thread.
pub(crate) async fn blocking<T: Send + 'static>(
    app: &App,
    asker: Asker,
    work: impl FnOnce(&Interest) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let patience = app.served.patience();
    let room = patience.prepare(&asker.share)?;
    let limit = patience.prepare;
    let share = asker.share.clone();
    let wanted = Wanted::asked(asker);
    let interest = wanted.interest();
    let work = move || match interest.is_lost() {
        true => Err(ApiError::nobody_waits()),
        false => work(&interest),
    };
    let mut leaving = Leaving(Some(app));
    let (sender, done) = oneshot::channel();
    let work = move || {
        let _room = room;
        // Nobody listens when the client has left.
        let _ = sender.send(work());
    };
    app.threads.start(share, Length::Short, Box::new(work));
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
