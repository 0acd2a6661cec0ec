//! HTTP/2: connections of [hyper](https://hyper.rs), whose requests the application of actix answers.
//!
//! actix has HTTP/2 of its own, but without a limit on streams and on the size of headers, and without a way
//! to tell clients that the server stops.
//!
//! ```text
//!   connection ─► stream, at most STREAMS ─► request ─► application ─► response, as its body grows
//!       │  all streams have ended, and none began for the time of keep-alive ─► GOAWAY
//!       └─ the server stops ─► GOAWAY: streams end, and none begins
//! ```

use std::cell::Cell;
use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_http::body::{BodySize, BoxBody, MessageBody};
use actix_http::error::PayloadError;
use actix_http::{BoxedPayloadStream, Payload, Request, Response};
use actix_web::dev::Service;
use actix_web::http::header::{HOST, HeaderName, HeaderValue};
use actix_web::http::{Method, Uri, Version};
use futures_util::stream::{self, StreamExt as _};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::CONTENT_LENGTH;
use hyper::http;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// The maximum number of streams of a connection that are open at a time.
const STREAMS: u32 = 100;
/// The maximum size of the headers of a request, in bytes as HTTP/2 counts them.
const HEADER_BYTES: u32 = 64 << 10;
/// The bytes of a body, and of all bodies of a connection, that a client may send before they are read.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
/// The bytes of an answer that wait for a slow client.
const SEND_BUFFER: usize = 64 << 10;
/// Streams that a client may open and reset before they were answered, until the connection is closed.
const RESET_STREAMS: usize = 20;
/// How often a client is asked whether it is still there, and how long it has to answer.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a client that waits for nothing has to leave after it was told to.
const LEAVING: Duration = Duration::from_secs(2);
/// The longest time between two looks at whether a connection is idle.
const LOOK: Duration = Duration::from_millis(500);

/// What all connections have in common.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// How long a connection without a stream is kept.
    pub(super) keep_alive: Duration,
    /// Is cancelled when the server stops.
    pub(super) closing: CancellationToken,
}

/// Serves a connection until it ends.
pub(super) async fn serve<S>(
    io: impl AsyncRead + AsyncWrite + Unpin + 'static,
    peer: Option<SocketAddr>,
    application: Rc<S>,
    settings: &Settings,
) where
    S: Service<Request, Response = Response<BoxBody>, Error = Response<BoxBody>> + 'static,
    S::Future: 'static,
{
    let streams = Rc::new(Streams::default());
    let counted = streams.clone();
    let answer = move |request: http::Request<Incoming>| {
        let stream = counted.clone().open();
        let is_head = request.method() == http::Method::HEAD;
        let called = converted(request, peer).map(|request| application.call(request));
        async move {
            let response = match called {
                Ok(called) => called.await.unwrap_or_else(|refused| refused),
                Err(refused) => refused,
            };
            Ok::<_, Infallible>(answered(response, is_head, stream))
        }
    };
    let connection = Builder::new(Local)
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_BYTES)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(RESET_STREAMS)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .serve_connection(TokioIo::new(io), service_fn(answer));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = settings.closing.cancelled() => None,
        () = streams.idle(settings.keep_alive) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = streams.idle(LEAVING) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!("an HTTP/2 connection ended: {error}");
    }
}

/// Runs the futures of a connection on the thread that serves it.
#[derive(Clone, Copy, Debug)]
struct Local;

impl<F> hyper::rt::Executor<F> for Local
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        actix_web::rt::spawn(future);
    }
}

/// The streams of a connection.
#[derive(Debug)]
struct Streams {
    open: Cell<usize>,
    /// When the last stream ended.
    ended: Cell<Instant>,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            open: Cell::new(0),
            ended: Cell::new(Instant::now()),
        }
    }
}

impl Streams {
    fn open(self: Rc<Self>) -> OpenStream {
        self.open.set(self.open.get() + 1);
        OpenStream(self)
    }

    /// Waits until no stream has been open for this time, which begins now at the earliest.
    async fn idle(&self, time: Duration) {
        let begun = Instant::now();
        loop {
            let left = match self.open.get() {
                0 => (self.ended.get().max(begun) + time).saturating_duration_since(Instant::now()),
                _ => LOOK,
            };
            if left.is_zero() {
                return;
            }
            sleep(left.min(LOOK)).await;
        }
    }
}

/// A stream that is open until this value is dropped.
#[derive(Debug)]
struct OpenStream(Rc<Streams>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.ended.set(Instant::now());
    }
}

/// Converts a request, or returns the answer to one that actix cannot represent.
fn converted(
    request: http::Request<Incoming>,
    peer: Option<SocketAddr>,
) -> Result<Request, Response<BoxBody>> {
    let (head, body) = request.into_parts();
    let body: BoxedPayloadStream = Box::pin(payload(body));
    let mut converted = Request::with_payload(Payload::from(body));
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let refused = || Response::bad_request();
    let to = converted.head_mut();
    to.method = Method::from_bytes(head.method.as_str().as_bytes()).map_err(|_| refused())?;
    to.uri = target.parse::<Uri>().map_err(|_| refused())?;
    to.version = Version::HTTP_2;
    to.peer_addr = peer;
    for (name, value) in &head.headers {
        let name = HeaderName::from_bytes(name.as_str().as_bytes()).map_err(|_| refused())?;
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| refused())?;
        to.headers.append(name, value);
    }
    if let Some(authority) = head.uri.authority() {
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| refused())?;
        to.headers.insert(HOST, host);
    }
    Ok(converted)
}

/// Returns the data of a body.
fn payload(body: Incoming) -> impl stream::Stream<Item = Result<Bytes, PayloadError>> {
    let frames = stream::unfold(body, |mut body| async move {
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await?;
        Some((frame, body))
    });
    frames.filter_map(|frame| async move {
        match frame {
            Ok(frame) => frame.into_data().ok().map(Ok),
            Err(error) => Some(Err(PayloadError::Incomplete(Some(std::io::Error::other(error))))),
        }
    })
}

/// Converts a response. Its stream is open until its body has been sent.
fn answered(response: Response<BoxBody>, is_head: bool, stream: OpenStream) -> http::Response<AppBody> {
    let (response, body) = response.into_parts();
    let size = body.size();
    let status = http::StatusCode::from_u16(response.status().as_u16());
    let mut answer = http::Response::new(AppBody {
        body: (!is_head).then(|| Box::pin(body)),
        size,
        _stream: stream,
    });
    *answer.status_mut() = status.unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = answer.headers_mut();
    for (name, value) in response.headers() {
        let name = http::HeaderName::from_bytes(name.as_str().as_bytes());
        let value = http::HeaderValue::from_bytes(value.as_bytes());
        if let (Ok(name), Ok(value)) = (name, value)
            && !OF_HTTP1.contains(&name.as_str())
        {
            headers.append(name, value);
        }
    }
    if let BodySize::Sized(bytes) = size {
        headers.insert(CONTENT_LENGTH, bytes.into());
    }
    answer
}

/// Headers about the connection, which HTTP/2 does not have.
const OF_HTTP1: [&str; 5] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// The body of a response.
struct AppBody {
    body: Option<Pin<Box<BoxBody>>>,
    size: BodySize,
    _stream: OpenStream,
}

impl Body for AppBody {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        Poll::Ready(match ready!(body.as_mut().poll_next(context)) {
            Some(Ok(data)) => Some(Ok(Frame::data(data))),
            Some(Err(error)) => Some(Err(error.to_string().into())),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none() || matches!(self.size, BodySize::Sized(0))
    }

    fn size_hint(&self) -> SizeHint {
        match self.size {
            BodySize::Sized(size) => SizeHint::with_exact(size),
            BodySize::None | BodySize::Stream => SizeHint::default(),
        }
    }
}
