//! The HTTP servers on their listeners, and the steps around every request.

mod http2;
mod secure;

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Server, ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::Method;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::middleware::{Next, from_fn};
use actix_web::{HttpMessage as _, HttpResponse, HttpServer, ResponseError as _, web};
use futures_util::FutureExt as _;
use rustls::ServerConfig;

use crate::operate::audit::Asked;
use crate::operate::cors::Cors;
use crate::operate::keys::Key;
use crate::operate::traces::Parent;
use crate::routes;
use crate::routes::pages;
use crate::routes::state::{About, AppState, RequestId};
use crate::wire::error::{ApiError, ErrorCode};

/// The maximum number of connections to the metrics server.
const METRICS_CONNECTIONS: usize = 64;
/// The maximum length of a request id that is accepted from a client.
const REQUEST_ID_BYTES: usize = 128;

/// The settings of the server on its listener.
#[derive(Clone, Debug)]
pub struct Listening {
    /// The number of threads that serve connections.
    pub workers: usize,
    /// The seconds that running requests have to end after a stop signal.
    pub drain_seconds: u64,
    /// How long a connection without a request is kept.
    pub keep_alive: Duration,
    /// The TLS configuration; with it, the server accepts only HTTPS.
    pub tls: Option<ServerConfig>,
}

/// Where the server listens.
#[derive(Debug)]
pub enum Listener {
    /// An address.
    Tcp(TcpListener),
    /// A socket file, without TLS.
    Unix(UnixListener),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self::Unix(listener)
    }
}

/// Creates the server on a bound listener. It stops when its handle says so, not on signals.
///
/// # Errors
/// Fails if the listener cannot be used.
pub fn server(
    app: Arc<AppState>,
    listener: impl Into<Listener>,
    listening: Listening,
) -> std::io::Result<Server> {
    let offered = app.settings.offered;
    let connections = app.settings.connections.div_ceil(listening.workers.max(1));
    let closing = app.closing().clone();
    let data = web::Data::from(app);
    let application = move || {
        actix_web::App::new()
            .app_data(data.clone())
            .configure(move |config| routes::configure(config, offered))
            .wrap(from_fn(around))
    };
    if let Some(tls) = listening.tls {
        let Listener::Tcp(listener) = listener.into() else {
            let reason = "a socket file is served without TLS";
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, reason));
        };
        let builder = actix_server::ServerBuilder::new()
            .workers(listening.workers)
            .max_concurrent_connections(connections)
            .shutdown_timeout(listening.drain_seconds)
            .disable_signals();
        let keep_alive = listening.keep_alive;
        let settings = http2::Settings { keep_alive, closing };
        return secure::start(builder, listener, secure::Secure { tls, settings }, application);
    }
    let server = HttpServer::new(application)
        .workers(listening.workers)
        .max_connections(connections)
        // A client that closes its side of the connection has disconnected; without this, actix lets its
        // handler run to the end.
        .h1_allow_half_closed(false)
        .keep_alive(listening.keep_alive)
        .shutdown_timeout(listening.drain_seconds)
        .disable_signals();
    let server = match listener.into() {
        Listener::Tcp(listener) => server.listen(listener)?,
        Listener::Unix(listener) => server.listen_uds(listener)?,
    };
    Ok(server.run())
}

/// Creates the server of an address for metrics alone, on a bound listener: monitoring has neither keys nor
/// certificates, and must continue while the main server drains.
///
/// # Errors
/// Fails if the listener cannot be used.
pub fn metrics_server(app: Arc<AppState>, listener: TcpListener) -> std::io::Result<(Server, SocketAddr)> {
    let address = listener.local_addr()?;
    let data = web::Data::from(app);
    let server = HttpServer::new(move || {
        actix_web::App::new()
            .app_data(data.clone())
            .configure(routes::configure_metrics)
    })
    .workers(1)
    .max_connections(METRICS_CONNECTIONS)
    .disable_signals()
    .listen(listener)?;
    Ok((server.run(), address))
}

/// The paths that need no key, besides those of the pages.
const OPEN_PATHS: [&str; 3] = ["/live", "/ready", "/health"];

/// Returns `true` if a path needs no key. Pages contain no more than this repository does, and ask the user
/// for a key.
fn is_open(app: &AppState, path: &str) -> bool {
    OPEN_PATHS.contains(&path) || (app.settings.offered.pages && pages::is_page(path))
}

/// Wraps every request: an id, the key, the counters, a line in the log, and a 500 instead of a panic.
async fn around(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let Some(app) = request.app_data::<web::Data<AppState>>().cloned() else {
        return Ok(next.call(request).await?.map_into_boxed_body());
    };
    let seen = SeenRequest {
        begun: Instant::now(),
        id: request_id(&request),
        // This makes it possible to find the lines of the log from a trace.
        trace: Parent::of(request.headers()).map(|parent| parent.trace.to_string()),
        method: request.method().clone(),
        path: request.path().to_owned(),
        origin: app.settings.cors.allowed(request.headers()),
        client: app.client(request.request()),
    };
    let mut key = None;
    let answered = match admit(&app, &request, &seen, &mut key) {
        Ok(None) => AssertUnwindSafe(next.call(request)).catch_unwind().await,
        Ok(Some(early)) => {
            let answer = request.into_response(early);
            return Ok(seen.finish(&app, None, answer));
        }
        Err(error) => {
            app.settings.audit.refused(&seen.asked(), None, error.code());
            let answer = request.into_response(error.error_response());
            return Ok(seen.finish(&app, None, answer));
        }
    };
    if let Ok(answer) = answered {
        let answer = crate::wire::error::enveloped(answer?.map_into_boxed_body());
        return Ok(seen.finish(&app, key.as_deref(), answer));
    }
    let metrics = app.models.metrics(app.models.first());
    metrics.panicked();
    metrics.answered(500, seen.begun.elapsed());
    let mut response = ApiError::internal().error_response();
    response
        .headers_mut()
        .insert(HeaderName::from_static("x-request-id"), seen.id);
    Err(InternalError::from_response("a handler panicked", response).into())
}

/// Checks the key of a request and records its owner, or returns an immediate answer.
fn admit(
    app: &AppState,
    request: &ServiceRequest,
    seen: &SeenRequest,
    key: &mut Option<Arc<Key>>,
) -> Result<Option<HttpResponse>, ApiError> {
    if let Some(early) = app.settings.cors.preflight(request.method(), request.headers()) {
        return Ok(Some(early));
    }
    if !is_open(app, request.path()) {
        *key = app.settings.keys.check(request.headers())?;
    }
    let id = seen.id.to_str().unwrap_or_default().to_owned();
    let mut extensions = request.extensions_mut();
    extensions.insert(RequestId(id));
    if let Some(key) = key {
        extensions.insert(key.clone());
    }
    Ok(None)
}

/// The facts about a request that are known before it is answered.
struct SeenRequest {
    begun: Instant,
    id: HeaderValue,
    trace: Option<String>,
    method: Method,
    path: String,
    origin: Option<HeaderValue>,
    client: String,
}

impl SeenRequest {
    fn asked(&self) -> Asked<'_> {
        Asked {
            id: self.id.to_str().unwrap_or_default(),
            path: &self.path,
            client: &self.client,
        }
    }

    /// Adds the headers to an answer, counts it and writes its line in the log.
    fn finish(
        self,
        app: &AppState,
        key: Option<&Key>,
        mut answer: ServiceResponse<BoxBody>,
    ) -> ServiceResponse<BoxBody> {
        let status = answer.status().as_u16();
        let code = answer
            .response()
            .extensions()
            .get::<ErrorCode>()
            .map(|code| code.0);
        let about = answer.request().extensions().get::<About>().map(|about| about.0);
        // What is about no model is counted with the first.
        let metrics = app.models.metrics(about.unwrap_or_else(|| app.models.first()));
        metrics.answered(status, self.begun.elapsed());
        if let Some(code) = code {
            metrics.refused(code);
        }
        let id = self.id.to_str().unwrap_or_default();
        let (method, path) = (self.method.as_str(), crate::wire::error::shortened(&self.path));
        let millis = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(
            request = id,
            trace = self.trace.as_deref(),
            client = self.client,
            key = key.map(|key| key.name.as_str()),
            model = about.map(|about| app.models.name(about)),
            method,
            path = &*path,
            status,
            millis,
            code,
            "request"
        );
        let headers = answer.headers_mut();
        headers.insert(HeaderName::from_static("x-request-id"), self.id);
        for (name, left_name, left) in [
            (
                "x-ratelimit-limit-requests",
                "x-ratelimit-remaining-requests",
                key.and_then(Key::requests_left),
            ),
            (
                "x-ratelimit-limit-tokens",
                "x-ratelimit-remaining-tokens",
                key.and_then(Key::tokens_left),
            ),
        ] {
            if let Some((limit, left)) = left {
                headers.insert(HeaderName::from_static(name), HeaderValue::from(limit));
                headers.insert(HeaderName::from_static(left_name), HeaderValue::from(left));
            }
        }
        if let Some(origin) = self.origin {
            Cors::mark(origin, headers);
        }
        answer
    }
}

/// Returns the client's id of the request if it is short and harmless, or else a new one.
fn request_id(request: &ServiceRequest) -> HeaderValue {
    let harmless = |value: &&HeaderValue| {
        value.len() <= REQUEST_ID_BYTES && value.as_bytes().iter().all(|byte| byte.is_ascii_graphic())
    };
    let given = request.headers().get("x-request-id").filter(harmless).cloned();
    let made = || HeaderValue::from_str(&format!("req_{}", crate::operate::random::identity()));
    given
        .or_else(|| made().ok())
        .unwrap_or_else(|| HeaderValue::from_static("req"))
}
