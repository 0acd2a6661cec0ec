//! The HTTP application: state, middleware, and the loop that serves until it is told to stop.

use std::net::{SocketAddr, TcpListener};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Server, ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::Method;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::middleware::{Next, from_fn};
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, HttpServer, ResponseError as _, web};
use futures_util::FutureExt as _;
use lexiform_engine::Pool;
use rustls::ServerConfig;

use crate::audit::{Account, Audit, InFlight};
use crate::body::{Bodies, BodyLimits};
use crate::cors::Cors;
use crate::error::{ApiError, ErrorCode};
use crate::resume::{Keeping, Streams};
use crate::routes::{self, Offered};
use crate::security::{Key, Keys};
use crate::served::Served;
use crate::traces::{Parent, Trace, Traces};

/// The largest body that is read, unless the operator chooses.
pub const BODY_LIMIT: usize = 4 << 20;
/// Connections at a time, unless the operator chooses.
pub const CONNECTIONS: usize = 2048;
/// Connections of those who read metrics.
const METRICS_CONNECTIONS: usize = 64;
/// Requests that may be prepared at a time although each takes long: more would only make compiles of many clients slow
/// each other.
const LONG_PREPARES: usize = 16;
/// How long a request may keep a thread from those behind it that are to be prepared.
const SLICE: Duration = Duration::from_millis(4);
/// The time between two looks at what grammars have grown to.
const WEIGHED_EVERY: Duration = Duration::from_secs(1);
/// The longest request id that is taken over from a client.
const REQUEST_ID_BYTES: usize = 128;

/// What the operator chose.
pub struct Settings {
    /// The largest body in bytes.
    pub body_limit: usize,
    /// What bodies may take while they arrive.
    pub bodies: BodyLimits,
    /// Connections at a time; more wait until one is closed.
    pub connections: usize,
    /// Who may ask; nobody in particular if there are no keys.
    pub keys: Keys,
    /// Which pages of other origins may ask.
    pub cors: Cors,
    /// Where accounts of requests are written.
    pub audit: Arc<Audit>,
    /// Where traces of requests go.
    pub traces: Arc<Traces>,
    /// What is served beside the API.
    pub offered: Offered,
    /// How much of streams is kept so that they can be resumed.
    pub keeping: Keeping,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            body_limit: BODY_LIMIT,
            bodies: BodyLimits::default(),
            connections: CONNECTIONS,
            keys: Keys::default(),
            cors: Cors::default(),
            audit: Arc::default(),
            traces: Arc::default(),
            offered: Offered {
                pages: true,
                metrics: true,
            },
            keeping: Keeping::default(),
        }
    }
}

/// What all handlers share.
pub struct App {
    /// The model.
    pub served: Arc<Served>,
    /// What the operator chose.
    pub settings: Settings,
    /// The bodies that arrive.
    pub bodies: Arc<Bodies>,
    /// The streams that can be resumed.
    pub streams: Arc<Streams>,
    /// Where requests are prepared.
    pub threads: Pool,
    in_flight: Arc<InFlight>,
    closing: AtomicBool,
}

impl App {
    /// The state of a server for this model.
    pub fn new(served: Arc<Served>, settings: Settings) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8));
        keep_grammars_small(&served);
        Self {
            served,
            bodies: Arc::new(Bodies::new(settings.bodies)),
            streams: Arc::new(Streams::new(settings.keeping)),
            settings,
            threads: Pool::new(cores, LONG_PREPARES).watched(SLICE),
            in_flight: Arc::default(),
            closing: AtomicBool::new(false),
        }
    }

    /// How many requests are being answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// Opens the account of a request that generates.
    ///
    /// # Errors
    /// Its key has nothing left.
    pub fn open_account(&self, request: &HttpRequest) -> Result<Account, ApiError> {
        let extensions = request.extensions();
        let key = extensions.get::<Arc<Key>>();
        let permit = key.map(Key::admit).transpose()?;
        let id = extensions.get::<RequestId>().map_or("", |id| id.0.as_str());
        let path = request.path();
        let account = Account::open(
            self.settings.audit.clone(),
            self.in_flight.clone(),
            permit,
            id,
            path,
        );
        Ok(match self.settings.traces.is_wanted() {
            true => account.traced(self.settings.traces.clone(), Trace::begin(request.headers())),
            false => account,
        })
    }

    /// Takes no more requests; what runs may end.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Takes no more requests, waits until the running ones have ended, and ends the rest when the time is over.
    pub async fn drain(&self, time: Duration) {
        self.close();
        let deadline = Instant::now() + time;
        while self.in_flight() > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.served.patience().stop();
    }

    /// Whether requests are taken.
    ///
    /// # Errors
    /// The server is going down, or its engine has stopped.
    pub fn check_open(&self) -> Result<(), ApiError> {
        let open = !self.closing.load(Ordering::Acquire) && self.served.engine().stats().alive;
        if open {
            Ok(())
        } else {
            Err(ApiError::shutting_down())
        }
    }
}

/// How the server listens.
#[derive(Clone, Debug)]
pub struct Listening {
    /// Threads that serve connections.
    pub workers: usize,
    /// Seconds that running requests have to end after a signal to stop.
    pub drain_seconds: u64,
    /// The certificate, to speak HTTPS alone.
    pub tls: Option<ServerConfig>,
}

/// Makes the server on a bound listener. It stops when its handle says so, not on signals.
///
/// # Errors
/// The listener cannot be used.
pub fn server(
    app: Arc<App>,
    listener: TcpListener,
    listening: Listening,
) -> std::io::Result<(Server, SocketAddr)> {
    let address = listener.local_addr()?;
    let offered = app.settings.offered;
    let connections = app.settings.connections.div_ceil(listening.workers.max(1));
    let data = web::Data::from(app);
    let server = HttpServer::new(move || {
        actix_web::App::new()
            .app_data(data.clone())
            .configure(move |config| routes::configure(config, offered))
            .wrap(from_fn(around))
    })
    .workers(listening.workers)
    .max_connections(connections)
    // A client that closes its side of the connection is gone; without this, actix lets its handler run to the end.
    .h1_allow_half_closed(false)
    .shutdown_timeout(listening.drain_seconds)
    .disable_signals();
    let server = match listening.tls {
        Some(tls) => server.listen_rustls_0_23(listener, tls)?,
        None => server.listen(listener)?,
    };
    Ok((server.run(), address))
}

/// Makes the server of an address for metrics alone, on a bound listener: monitoring has neither keys nor certificates,
/// and must go on while the other drains.
///
/// # Errors
/// The listener cannot be used.
pub fn metrics_server(app: Arc<App>, listener: TcpListener) -> std::io::Result<(Server, SocketAddr)> {
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

/// The identity of a request.
struct RequestId(String);

/// The paths that are answered to everybody.
const OPEN: [&str; 2] = ["/live", "/ready"];

/// Around every request: an id, the key, the counters, a line in the log, and a 500 in place of a panic.
async fn around(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let Some(app) = request.app_data::<web::Data<App>>().cloned() else {
        return Ok(next.call(request).await?.map_into_boxed_body());
    };
    let seen = Seen {
        begun: Instant::now(),
        id: request_id(&request),
        // So that lines of the log can be found from a trace.
        trace: Parent::of(request.headers()).map(|parent| parent.trace),
        method: request.method().clone(),
        path: request.path().to_owned(),
        origin: app.settings.cors.allowed(request.headers()),
    };
    let mut key = None;
    let answered = match admit(&app, &request, &seen, &mut key) {
        Ok(None) => AssertUnwindSafe(next.call(request)).catch_unwind().await,
        Ok(Some(early)) => {
            let answer = request.into_response(early);
            return Ok(seen.finish(&app, None, answer));
        }
        Err(error) => {
            let answer = request.into_response(error.error_response());
            return Ok(seen.finish(&app, None, answer));
        }
    };
    if let Ok(answer) = answered {
        let answer = crate::error::enveloped(answer?.map_into_boxed_body());
        return Ok(seen.finish(&app, key.as_deref(), answer));
    }
    app.served.metrics().panicked();
    app.served.metrics().answered(500, seen.begun.elapsed());
    let mut response = ApiError::internal().error_response();
    response
        .headers_mut()
        .insert(HeaderName::from_static("x-request-id"), seen.id);
    Err(InternalError::from_response("a handler panicked", response).into())
}

/// Checks the key of a request and notes whose it is, or answers at once.
fn admit(
    app: &App,
    request: &ServiceRequest,
    seen: &Seen,
    key: &mut Option<Arc<Key>>,
) -> Result<Option<HttpResponse>, ApiError> {
    if let Some(early) = app.settings.cors.preflight(request.method(), request.headers()) {
        return Ok(Some(early));
    }
    if !OPEN.contains(&request.path()) {
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

/// What is known of a request before it is answered.
struct Seen {
    begun: Instant,
    id: HeaderValue,
    trace: Option<String>,
    method: Method,
    path: String,
    origin: Option<HeaderValue>,
}

impl Seen {
    /// Marks an answer, counts it and writes its line.
    fn finish(
        self,
        app: &App,
        key: Option<&Key>,
        mut answer: ServiceResponse<BoxBody>,
    ) -> ServiceResponse<BoxBody> {
        let status = answer.status().as_u16();
        let code = answer
            .response()
            .extensions()
            .get::<ErrorCode>()
            .map(|code| code.0);
        app.served.metrics().answered(status, self.begun.elapsed());
        if let Some(code) = code {
            app.served.metrics().refused(code);
        }
        let id = self.id.to_str().unwrap_or_default();
        let (method, path) = (self.method.as_str(), crate::error::shortened(&self.path));
        let millis = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(
            request = id,
            trace = self.trace.as_deref(),
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

/// The client's id of the request, if it is short and harmless, or a new one.
fn request_id(request: &ServiceRequest) -> HeaderValue {
    let harmless = |value: &&HeaderValue| {
        value.len() <= REQUEST_ID_BYTES && value.as_bytes().iter().all(|byte| byte.is_ascii_graphic())
    };
    let given = request.headers().get("x-request-id").filter(harmless).cloned();
    let made = || HeaderValue::from_str(&format!("req_{}", crate::chance::identity()));
    given
        .or_else(|| made().ok())
        .unwrap_or_else(|| HeaderValue::from_static("req"))
}

/// Has the grammars weighed from time to time, as long as the model is served: what a few requests made one grow to does
/// not stay until others ask for theirs.
fn keep_grammars_small(served: &Arc<Served>) {
    let served = Arc::downgrade(served);
    let look = move || {
        while let Some(served) = served.upgrade() {
            served.grammars().weigh_all();
            drop(served);
            std::thread::sleep(WEIGHED_EVERY);
        }
    };
    let thread = std::thread::Builder::new().name("lexiform-weigh".to_owned());
    thread.spawn(look).expect("the operating system has threads");
}
