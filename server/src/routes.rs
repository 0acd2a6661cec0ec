//! The HTTP routes, with a file per endpoint.
//!
//! `state` is the state that all handlers share, `handler` the code that they share; `prepare` and `respond`
//! implement every route that generates; `server` listens, and wraps every request.

pub mod chat;
pub mod completions;
pub mod decisions;
pub mod grammars;
pub(crate) mod handler;
pub mod models;
pub mod operations;
pub mod pages;
pub mod prepare;
pub mod respond;
pub mod responses;
pub mod server;
pub mod state;
pub mod streams;
pub mod tokens;

use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, Resource, Route, guard};

use crate::routes::state::Offered;
use crate::wire::error::ApiError;

/// Registers the routes of an address for metrics alone, which requires no key: the metrics and the probes.
pub fn configure_metrics(config: &mut ServiceConfig) {
    config
        .service(get("/metrics").route(reading().to(operations::metrics)))
        .service(get("/live").route(reading().to(operations::live)))
        .service(get("/ready").route(reading().to(operations::ready)))
        .service(get("/health").route(reading().to(operations::ready)))
        .default_service(web::to(unknown));
}

/// Registers all routes. Any other path or method is a 404 or a 405 in the same envelope as every other
/// error.
pub fn configure(config: &mut ServiceConfig, offered: Offered) {
    if offered.metrics {
        config.service(get("/metrics").route(reading().to(operations::metrics)));
    }
    if offered.pages {
        config
            .service(get("/").route(reading().to(pages::playground)))
            .service(get("/openapi.json").route(reading().to(pages::openapi)))
            .service(web::resource("/docs").route(reading().to(pages::to_documentation)))
            .service(web::resource("/docs/").route(reading().to(pages::documentation)))
            .service(web::resource("/pages/{file:.*}").route(reading().to(pages::file)))
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
        .service(post("/v1/repair").route(web::post().to(grammars::repair::create)))
        .service(post("/v1/project").route(web::post().to(grammars::project::create)))
        .service(post("/v1/grammars/lint").route(web::post().to(grammars::lint)))
        .service(post("/v1/grammars/check").route(web::post().to(grammars::check)))
        .service(post("/v1/grammars/mask").route(web::post().to(grammars::mask)))
        .service(post("/v1/grammars/explain").route(web::post().to(grammars::explain)))
        .service(post("/v1/verify").route(web::post().to(grammars::verify)))
        .service(get("/v1/grammars/{id}").route(reading().to(grammars::get)))
        .service(get("/v1/streams/{id}").route(reading().to(streams::get)))
        .service(get("/v1/models").route(reading().to(models::list)))
        .service(post("/v1/models/{id:.*}/load").route(web::post().to(models::load)))
        .service(post("/v1/models/{id:.*}/unload").route(web::post().to(models::unload)))
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

/// Returns a route for reading: by GET, and by HEAD, whose answer is the same without its body.
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
