//! The pages for people: the playground at `/`, and the OpenAPI document with Swagger UI at `/docs/`. All of it is built
//! into the program, so the pages work without a network.

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderName};
use utoipa_swagger_ui::SwaggerUi;

/// The OpenAPI document.
pub const OPENAPI: &str = include_str!("../pages/openapi.json");
/// The playground, one file.
const PLAYGROUND: &str = include_str!("../pages/playground.html");
/// The page may ask the server that it came from, and nobody else.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
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

/// Swagger UI, which reads the document.
pub fn documentation() -> SwaggerUi {
    let url = utoipa_swagger_ui::Url::new("Lexiform", "/openapi.json");
    let config = utoipa_swagger_ui::Config::new([url]);
    SwaggerUi::new("/docs/{_:.*}").config(config)
}
