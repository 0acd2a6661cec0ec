//! The pages for people: the playground at `/`, and the OpenAPI document with Swagger UI at `/docs/`. All of it is built
//! into the program, so the pages work without a network.

use std::sync::Arc;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, LOCATION};
use actix_web::{HttpRequest, HttpResponse, web};
use utoipa_swagger_ui::{Config, Url};

use crate::wire::error::ApiError;

/// The OpenAPI document.
pub const OPENAPI: &str = include_str!("../pages/openapi.json");
/// The playground, one file.
const PLAYGROUND: &str = include_str!("../pages/playground.html");
/// The icon of the pages.
const ICON: &str = include_str!("../pages/favicon.svg");
/// The page may ask the server that it came from, and nobody else.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The playground.
pub async fn playground() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((HeaderName::from_static("x-content-type-options"), "nosniff"))
        .body(PLAYGROUND)
}

/// The OpenAPI document.
pub async fn openapi() -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(OPENAPI)
}

/// The icon that browsers ask for.
pub async fn icon() -> HttpResponse {
    HttpResponse::Ok()
        .content_type("image/svg+xml")
        .insert_header((CACHE_CONTROL, "public, max-age=86400"))
        .body(ICON)
}

/// Sends whoever left out the last slash to the documentation, whose links are relative.
pub async fn to_documentation() -> HttpResponse {
    HttpResponse::PermanentRedirect()
        .insert_header((LOCATION, "/docs/"))
        .finish()
}

/// A file of Swagger UI, which reads the document.
///
/// # Errors
/// There is no such file.
pub async fn documentation(request: HttpRequest, file: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let config = Config::new([Url::new("Lexiform", "/openapi.json")]);
    let found = utoipa_swagger_ui::serve(&file, Arc::new(config));
    match found.map_err(|_| ApiError::internal())? {
        Some(file) => Ok(HttpResponse::Ok()
            .content_type(file.content_type)
            .body(file.bytes.into_owned())),
        None => Err(ApiError::unknown_route(request.method().as_str(), request.path())),
    }
}
