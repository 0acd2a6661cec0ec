//! The web pages: the playground at `/`, the description of the API at `/docs/`, and the files that both use.
//! All of them are built into the program, so the pages work without a network.
//!
//! ```text
//!   /                   playground/index.html ─┐
//!   /docs/              docs/index.html ───────┼─► /pages/… styles and modules, as they stand in `server/src/pages`
//!   /openapi.json       what /docs/ shows      ┘
//! ```
//!
//! The pages contain nothing secret and are served without a key, even if the server requires keys: a page
//! asks the user for a key.

use std::sync::LazyLock;

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, HeaderName, IF_NONE_MATCH, LOCATION,
};
use actix_web::{HttpRequest, HttpResponse, web};

use crate::operate::digest::sha256;
use crate::wire::error::ApiError;

/// The OpenAPI document.
pub const OPENAPI: &str = include_str!("../pages/openapi.json");

/// The content security policy: pages run their own scripts and connect to their own server only.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A built-in file.
struct PageFile {
    /// Its path below `/pages/`.
    path: &'static str,
    kind: &'static str,
    text: &'static str,
    /// The entity tag, which identifies the version of the file.
    tag: String,
}

macro_rules! files {
    ($($kind:ident $path:literal),* $(,)?) => {
        vec![$(PageFile::new($path, $kind, include_str!(concat!("../pages/", $path)))),*]
    };
}

/// All files; the two pages come first.
static FILES: LazyLock<Vec<PageFile>> = LazyLock::new(|| {
    files![
        HTML "playground/index.html",
        HTML "docs/index.html",
        SCRIPT "api.js",
        SCRIPT "dom.js",
        STYLE "theme.css",
        SCRIPT "answer/branches.js",
        SCRIPT "answer/chart.js",
        SCRIPT "answer/detail.js",
        SCRIPT "answer/drafts.js",
        SCRIPT "answer/run.js",
        SCRIPT "answer/tokens.js",
        SCRIPT "answer/view.js",
        STYLE "docs/docs.css",
        SCRIPT "docs/docs.js",
        SCRIPT "docs/schema_view.js",
        SCRIPT "playground/editor.js",
        SCRIPT "playground/examples.js",
        SCRIPT "playground/form.js",
        SCRIPT "playground/link.js",
        SCRIPT "playground/history.js",
        SCRIPT "playground/lint.js",
        SCRIPT "playground/main.js",
        SCRIPT "playground/places.js",
        STYLE "playground/playground.css",
        SCRIPT "playground/projections.js",
        SCRIPT "playground/prompt.js",
        SCRIPT "playground/request.js",
        SCRIPT "playground/snippets.js",
        SCRIPT "playground/tabs.js",
    ]
});

impl PageFile {
    fn new(path: &'static str, kind: &'static str, text: &'static str) -> Self {
        let digest = sha256(text.as_bytes());
        Self {
            path,
            kind,
            text,
            tag: format!("\"{}\"", &digest[..16]),
        }
    }

    /// Returns the file, unless the client already has it.
    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let is_known = self.is_known(request);
        let mut response = match is_known {
            true => HttpResponse::NotModified(),
            false => HttpResponse::Ok(),
        };
        // Browsers revalidate the file every time, and it is sent only if the program has changed.
        response
            .insert_header((ETAG, self.tag.as_str()))
            .insert_header((CACHE_CONTROL, "no-cache"))
            .insert_header((HeaderName::from_static("x-content-type-options"), "nosniff"));
        if self.kind == HTML {
            response.insert_header((CONTENT_SECURITY_POLICY, POLICY));
        }
        match is_known {
            true => response.finish(),
            false => response.content_type(self.kind).body(self.text),
        }
    }

    fn is_known(&self, request: &HttpRequest) -> bool {
        let known = request.headers().get(IF_NONE_MATCH);
        let known = known.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut tags = known.split(',').map(|tag| tag.trim().trim_start_matches("W/"));
        tags.any(|tag| tag == self.tag || tag == "*")
    }
}

fn answer(request: &HttpRequest, path: &str) -> Result<HttpResponse, ApiError> {
    let file = FILES.iter().find(|file| file.path == path);
    let file = file.ok_or_else(|| ApiError::unknown_route(request.method().as_str(), request.path()))?;
    Ok(file.answer(request))
}

/// Returns `true` if a path belongs to a page or to one of its files, which need no key.
pub fn is_page(path: &str) -> bool {
    let below = path.strip_prefix("/pages/");
    let is_file = below.is_some_and(|below| FILES.iter().any(|file| file.path == below));
    is_file || ["/", "/docs", "/docs/", "/openapi.json", "/favicon.ico"].contains(&path)
}

/// Serves the playground.
///
/// # Errors
/// Never fails: the file is built in.
pub async fn playground(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    answer(&request, "playground/index.html")
}

/// Serves the description of the API.
///
/// # Errors
/// Never fails: the file is built in.
pub async fn documentation(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    answer(&request, "docs/index.html")
}

/// Serves a file that the pages use.
///
/// # Errors
/// Fails if there is no such file.
pub async fn file(request: HttpRequest, path: web::Path<String>) -> Result<HttpResponse, ApiError> {
    answer(&request, &path)
}

/// Serves the OpenAPI document.
pub async fn openapi(request: HttpRequest) -> HttpResponse {
    static DOCUMENT: LazyLock<PageFile> = LazyLock::new(|| PageFile::new("", "application/json", OPENAPI));
    DOCUMENT.answer(&request)
}

/// Serves the icon that browsers request.
pub async fn icon(request: HttpRequest) -> HttpResponse {
    static ICON: LazyLock<PageFile> =
        LazyLock::new(|| PageFile::new("", "image/svg+xml", include_str!("../pages/favicon.svg")));
    ICON.answer(&request)
}

/// Redirects a path without the final slash to the documentation.
pub async fn to_documentation() -> HttpResponse {
    HttpResponse::PermanentRedirect()
        .insert_header((LOCATION, "/docs/"))
        .finish()
}
