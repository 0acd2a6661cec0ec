//! What answers at which path.

pub mod chat;
pub mod completions;
pub mod decisions;
pub mod grammars;
pub mod models;
pub mod operations;
pub mod pages;
pub mod responses;
pub mod tokens;

use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, Resource};

use crate::app::App;
use crate::error::ApiError;

/// Names all routes. Whatever is not named is a 404 or a 405 in the same envelope as every other error.
pub fn configure(config: &mut ServiceConfig, pages: bool) {
    if pages {
        config
            .service(get("/").route(web::get().to(pages::playground)))
            .service(get("/openapi.json").route(web::get().to(pages::openapi)))
            .service(pages::documentation());
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
        .service(get("/v1/grammars/{id}").route(web::get().to(grammars::get)))
        .service(get("/v1/models").route(web::get().to(models::list)))
        .service(get("/v1/models/{id:.*}").route(web::get().to(models::get)))
        .service(get("/health").route(web::get().to(operations::ready)))
        .service(get("/ready").route(web::get().to(operations::ready)))
        .service(get("/live").route(web::get().to(operations::live)))
        .service(get("/version").route(web::get().to(operations::version)))
        .service(get("/metrics").route(web::get().to(operations::metrics)))
        .default_service(web::to(unknown));
}

fn post(path: &str) -> Resource {
    web::resource(path).default_service(web::to(async |request: HttpRequest| {
        wrong_method(&request, "POST")
    }))
}

fn get(path: &str) -> Resource {
    web::resource(path).default_service(web::to(async |request: HttpRequest| {
        wrong_method(&request, "GET")
    }))
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

/// Runs work for the processor on a thread that may block. A panic in it is a 500 of this request alone.
///
/// # Errors
/// The work's own error, or a panic in it.
pub(crate) async fn blocking<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    web::block(work).await.unwrap_or_else(|_| {
        app.served.metrics().panicked();
        Err(ApiError::internal())
    })
}
