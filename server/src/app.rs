//! The HTTP application: state, middleware, and the loop that serves until it is told to stop.

use std::net::{SocketAddr, TcpListener};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Server, ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::middleware::{Next, from_fn};
use actix_web::{HttpServer, ResponseError as _, web};
use futures_util::FutureExt as _;

use crate::error::ApiError;
use crate::routes;
use crate::served::Served;

/// The largest body that is read, unless the operator chooses.
pub const BODY_LIMIT: usize = 4 << 20;
/// Connections of each worker; more wait until one is closed. With the body limit, this bounds what bodies can hold.
const CONNECTIONS: usize = 1024;
/// Threads of each worker that prepare requests: more would only make compiles of many clients slow each other.
const BLOCKING_THREADS: usize = 8;
/// The longest request id that is taken over from a client.
const REQUEST_ID_BYTES: usize = 128;

/// What all handlers share.
pub struct App {
    /// The model.
    pub served: Arc<Served>,
    /// The largest body in bytes.
    pub body_limit: usize,
    closing: AtomicBool,
}

impl App {
    /// The state of a server for this model.
    pub fn new(served: Arc<Served>, body_limit: usize) -> Self {
        Self {
            served,
            body_limit,
            closing: AtomicBool::new(false),
        }
    }

    /// Takes no more requests; what runs may end.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
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
#[derive(Clone, Copy, Debug)]
pub struct Listening {
    /// Threads that serve connections.
    pub workers: usize,
    /// Seconds that running requests have to end after a signal to stop.
    pub drain_seconds: u64,
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
    let data = web::Data::from(app);
    let server = HttpServer::new(move || {
        actix_web::App::new()
            .app_data(data.clone())
            .configure(routes::configure)
            .wrap(from_fn(around))
    })
    .workers(listening.workers)
    .max_connections(CONNECTIONS)
    .worker_max_blocking_threads(BLOCKING_THREADS)
    // A client that closes its side of the connection is gone; without this, actix lets its handler run to the end.
    .h1_allow_half_closed(false)
    .shutdown_timeout(listening.drain_seconds)
    .disable_signals()
    .listen(listener)?
    .run();
    Ok((server, address))
}

/// Around every request: an id, the counters, and a 500 in place of a panic.
async fn around(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let begun = Instant::now();
    let id = request_id(&request);
    let app = request.app_data::<web::Data<App>>().cloned();
    let name = HeaderName::from_static("x-request-id");
    let answered = AssertUnwindSafe(next.call(request)).catch_unwind().await;
    let metrics = app.as_ref().map(|app| app.served.metrics());
    match answered {
        Ok(answer) => {
            let mut answer = answer?.map_into_boxed_body();
            answer.headers_mut().insert(name, id);
            if let Some(metrics) = metrics {
                metrics.answered(answer.status().as_u16(), begun.elapsed());
            }
            Ok(answer)
        }
        Err(_) => {
            if let Some(metrics) = metrics {
                metrics.panicked();
                metrics.answered(500, begun.elapsed());
            }
            let mut response = ApiError::internal().error_response();
            response.headers_mut().insert(name, id);
            Err(InternalError::from_response("a handler panicked", response).into())
        }
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
