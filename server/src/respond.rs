//! The last step of both generating routes: from a prepared request to the answer.

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, HeaderName};
use lexiform_engine::Request;

use crate::answer::Frame;
use crate::app::App;
use crate::error::ApiError;
use crate::stream::EventStream;
use crate::wire::generation::StreamOptions;
use crate::worker::Running;

/// A request that was checked completely; nothing has been generated yet.
pub(crate) struct Prepared {
    /// The samples.
    pub(crate) requests: Vec<Request>,
    /// The shape of the answer.
    pub(crate) frame: Frame,
    /// How to stream it, if so.
    pub(crate) stream: Option<StreamOptions>,
}

/// Submits the samples and answers. The future that this returns, or the body of the stream, owns them: when the
/// client leaves, they are dropped and the engine frees their sequences.
pub(crate) async fn respond(app: &App, prepared: Prepared) -> Result<HttpResponse, ApiError> {
    let running = Running::start(app.served.engine(), prepared.requests)?;
    match prepared.stream {
        None => {
            let json = prepared.frame.collect(running).await?;
            Ok(HttpResponse::Ok().content_type("application/json").body(json))
        }
        Some(options) => Ok(HttpResponse::Ok()
            .content_type("text/event-stream")
            .insert_header((CACHE_CONTROL, "no-cache"))
            // Proxies of the nginx kind would otherwise collect the stream before they pass it on.
            .insert_header((HeaderName::from_static("x-accel-buffering"), "no"))
            .streaming(EventStream::new(prepared.frame, running, options))),
    }
}
