//! The routes of a gateway, and the steps around every request.

use std::net::TcpListener;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Server, ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::Method;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::middleware::{Next, from_fn};
use actix_web::{HttpRequest, HttpResponse, HttpServer, Resource, ResponseError as _, Route, web};
use futures_util::FutureExt as _;
use serde_json::json;

use crate::gateway::Gateway;
use crate::gateway::exchange::{self, Exchange};
use crate::gateway::failure::Failure;
use crate::gateway::stream;
use crate::gateway::upstream::HttpClient;
use crate::operate::random;
use crate::wire::chat::projected::Projected;
use crate::wire::error::{ApiError, ErrorCode, enveloped, shortened};

/// The header that says what became of the schemas of a request.
const PROJECTION: HeaderName = HeaderName::from_static("x-lexiform-projection");
/// The maximum length of that header, in characters.
const HEADER_CHARS: usize = 1_000;
/// The routes, as clients are told.
const ROUTES: [&str; 3] = ["POST /v1/chat/completions", "GET /v1/models", "GET /health"];

/// The settings of a gateway on its listener.
#[derive(Clone, Copy, Debug)]
pub struct Listening {
    /// The number of threads that serve connections.
    pub workers: usize,
    /// The maximum number of connections.
    pub connections: usize,
    /// The seconds that running requests have to end after a stop signal.
    pub drain_seconds: u64,
    /// How long a connection without a request is kept.
    pub keep_alive: Duration,
}

/// What a thread that serves connections has: the gateway, and connections of its own to the upstream.
struct Worker {
    gateway: Arc<Gateway>,
    client: HttpClient,
}

/// Creates the server of a gateway on a bound listener. It stops when its handle says so, not on signals.
///
/// # Errors
/// Fails if the listener cannot be used.
pub fn server(gateway: Arc<Gateway>, listener: TcpListener, listening: Listening) -> std::io::Result<Server> {
    let application = move || {
        let client = gateway.upstream.client();
        let worker = Worker {
            gateway: gateway.clone(),
            client,
        };
        actix_web::App::new()
            .app_data(web::Data::new(worker))
            .service(routed("/v1/chat/completions", web::post().to(chat)))
            .service(routed("/v1/models", web::get().to(models)))
            .service(routed("/health", web::get().to(health)))
            .default_service(web::to(unknown))
            .wrap(from_fn(around))
    };
    let server = HttpServer::new(application)
        .workers(listening.workers)
        .max_connections(listening.connections.div_ceil(listening.workers.max(1)))
        // A client that closes its side of the connection has left.
        .h1_allow_half_closed(false)
        .keep_alive(listening.keep_alive)
        .shutdown_timeout(listening.drain_seconds)
        .disable_signals()
        .listen(listener)?;
    Ok(server.run())
}

/// Returns a resource with one route; other methods are refused like other paths.
fn routed(path: &str, route: Route) -> Resource {
    web::resource(path).route(route).default_service(web::to(unknown))
}

async fn chat(
    worker: web::Data<Worker>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Failure> {
    let exchange = Exchange::begin(&worker.gateway, &worker.client, &request, payload).await?;
    let projection = shown(exchange.projections());
    let mut response = match exchange.forwarded().stream {
        true => {
            let reply = exchange.ask(exchange.forwarded().body()).await?;
            stream::respond(exchange, reply)?
        }
        false => HttpResponse::Ok().json(exchange.whole().await?),
    };
    if let Some(projection) = projection {
        response.headers_mut().insert(PROJECTION, projection);
    }
    Ok(response)
}

async fn models(worker: web::Data<Worker>, request: HttpRequest) -> Result<HttpResponse, Failure> {
    let list = exchange::models(&worker.gateway, &worker.client, &request).await?;
    Ok(HttpResponse::Ok().json(list))
}

async fn health(worker: web::Data<Worker>) -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "ok", "profile": worker.gateway.profile()}))
}

async fn unknown(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let (method, path) = (request.method(), request.path());
    Err(match (method, path) {
        (&Method::POST, "/v1/responses" | "/v1/completions") => {
            ApiError::not_forwarded(path, "POST /v1/chat/completions")
        }
        (_, "/v1/chat/completions") => ApiError::wrong_method(method.as_str(), path, "POST"),
        (_, "/v1/models" | "/health") => ApiError::wrong_method(method.as_str(), path, "GET"),
        _ => ApiError::no_route_of_gateway(method.as_str(), path, &ROUTES),
    })
}

/// Returns what became of the schemas, as a header says it; `None` if all are sent on as they are.
fn shown(projections: &[Projected]) -> Option<HeaderValue> {
    let shown: Vec<String> = projections
        .iter()
        .map(|projected| format!("{}={}", projected.param, projected.relation))
        .collect();
    let text: String = shown.join(", ").chars().take(HEADER_CHARS).collect();
    HeaderValue::try_from(text).ok().filter(|text| !text.is_empty())
}

/// Wraps every request: an id, a line in the log, an envelope for every error, and a 500 instead of a panic.
async fn around(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let begun = Instant::now();
    let id = format!("req_{}", random::identity());
    let (method, path) = (request.method().clone(), request.path().to_owned());
    let answer = AssertUnwindSafe(next.call(request)).catch_unwind().await;
    let Ok(answer) = answer else {
        let response = ApiError::internal().error_response();
        return Err(InternalError::from_response("a handler panicked", response).into());
    };
    let mut answer = enveloped(answer?.map_into_boxed_body());
    let code = answer
        .response()
        .extensions()
        .get::<ErrorCode>()
        .map(|code| code.0);
    let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(
        request = id,
        method = method.as_str(),
        path = &*shortened(&path),
        status = answer.status().as_u16(),
        millis,
        code,
        "request"
    );
    if let Ok(id) = HeaderValue::try_from(id) {
        answer
            .headers_mut()
            .insert(HeaderName::from_static("x-request-id"), id);
    }
    Ok(answer)
}
