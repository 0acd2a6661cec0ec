//! The origins whose pages may send requests to this server: none, unless the operator lists them.

use actix_web::HttpResponse;
use actix_web::http::Method;
use actix_web::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap,
    HeaderValue, ORIGIN, VARY,
};

/// The headers that pages may read besides the default ones.
const EXPOSED: &str = "x-request-id, retry-after, retry-after-ms, x-ratelimit-limit-requests, \
                       x-ratelimit-remaining-requests, x-lexiform-enforced, x-lexiform-budget, x-lexiform-ignored, x-lexiform-stream, \
                       deprecation, link";

/// The allowed origins.
#[derive(Clone, Debug, Default)]
pub struct Cors {
    origins: Vec<String>,
}

impl Cors {
    /// Allows these origins, each as `https://example.org`; `*` allows all.
    pub fn new(origins: Vec<String>) -> Self {
        Self { origins }
    }

    /// Returns the origin that the answer to a request with these headers allows.
    pub fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        let listed = |allowed: &String| allowed == "*" || allowed.as_bytes() == origin.as_bytes();
        self.origins.iter().any(listed).then(|| origin.clone())
    }

    /// Returns the answer to a preflight request, if it is allowed.
    pub fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<HttpResponse> {
        if method != Method::OPTIONS || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return None;
        }
        let origin = self.allowed(headers)?;
        let mut response = HttpResponse::NoContent();
        response
            .insert_header((ACCESS_CONTROL_ALLOW_ORIGIN, origin))
            .insert_header((ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"))
            .insert_header((
                ACCESS_CONTROL_ALLOW_HEADERS,
                "authorization, content-type, x-request-id",
            ))
            .insert_header((ACCESS_CONTROL_MAX_AGE, "600"))
            .insert_header((VARY, "origin"));
        Some(response.finish())
    }

    /// Adds the headers for this origin to an answer.
    pub fn mark(origin: HeaderValue, headers: &mut HeaderMap) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
}
