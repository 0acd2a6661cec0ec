//! The server over TLS, which speaks HTTP/2 with clients that offer it, and HTTP/1.1 with all others.

use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Duration;

use actix_http::body::{BoxBody, MessageBody};
use actix_http::error::DispatchError;
use actix_http::{HttpService, Request, Response};
use actix_server::ServerBuilder;
use actix_service::{
    IntoServiceFactory, Service, ServiceFactory, ServiceFactoryExt as _, always_ready, fn_factory, map_config,
};
use actix_tls::accept::rustls_0_23::{Acceptor, AcceptorService, TlsStream};
use actix_web::dev::{AppConfig, Server, ServiceResponse};
use actix_web::rt::net::TcpStream;
use futures_util::future::LocalBoxFuture;
use rustls::ServerConfig;

use super::http2::{self, Settings};

/// The protocols that are offered, the preferred one first.
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";
/// How long a client has to take the end of its connection.
const DISCONNECT: Duration = Duration::from_secs(1);

/// What the server needs besides its listener and its application.
#[derive(Debug)]
pub(super) struct Secure {
    /// The certificate, and which clients are accepted.
    pub(super) tls: ServerConfig,
    /// What connections have in common.
    pub(super) settings: Settings,
}

/// Starts the server on a bound listener. Each of its threads has an application of its own.
///
/// # Errors
/// Fails if the listener cannot be used.
pub(super) fn start<F, I, S, B>(
    builder: ServerBuilder,
    listener: TcpListener,
    secure: Secure,
    application: F,
) -> std::io::Result<Server>
where
    F: Fn() -> I + Send + Clone + 'static,
    I: IntoServiceFactory<S, Request>,
    S: ServiceFactory<
            Request,
            Config = AppConfig,
            Response = ServiceResponse<B>,
            Error = actix_web::Error,
            InitError = (),
        > + 'static,
    S::Service: 'static,
    S::Future: 'static,
    B: MessageBody + 'static,
{
    let address = listener.local_addr()?;
    let stopping = builder.graceful_shutdown_signal();
    let Secure { mut tls, settings } = secure;
    tls.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    let acceptor = Acceptor::new(tls);
    let connections = move || {
        let answering = || {
            map_config(application().into_factory(), |()| AppConfig::default())
                .map(|answer: ServiceResponse<B>| Response::from(answer.map_into_boxed_body()))
                .map_err(|error| Response::from(error.error_response()))
        };
        let stopping = stopping.clone();
        let http1 = HttpService::build()
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .secure()
            .local_addr(address)
            .keep_alive(settings.keep_alive)
            .client_disconnect_timeout(DISCONNECT)
            // A client that closes its side of the connection has disconnected.
            .h1_allow_half_closed(false)
            .h1(answering());
        let (acceptor, http2, settings) = (acceptor.clone(), answering(), settings.clone());
        fn_factory(move || {
            let (http1, http2) = (http1.new_service(()), http2.new_service(()));
            let acceptor = ServiceFactory::<TcpStream>::new_service(&acceptor, ());
            let settings = settings.clone();
            async move {
                Ok::<_, ()>(Connections(Rc::new(Parts {
                    acceptor: acceptor.await?,
                    http1: http1.await?,
                    http2: Rc::new(http2.await?),
                    settings,
                })))
            }
        })
    };
    Ok(builder.listen("lexiform-tls", listener, connections)?.run())
}

/// The connections that a thread serves.
struct Connections<H, A>(Rc<Parts<H, A>>);

struct Parts<H, A> {
    acceptor: AcceptorService,
    http1: H,
    /// The application, which HTTP/2 calls itself.
    http2: Rc<A>,
    settings: Settings,
}

impl<H, A> Service<TcpStream> for Connections<H, A>
where
    H: Service<(TlsStream<TcpStream>, Option<SocketAddr>), Response = (), Error = DispatchError> + 'static,
    A: Service<Request, Response = Response<BoxBody>, Error = Response<BoxBody>> + 'static,
    A::Future: 'static,
{
    type Response = ();
    type Error = ();
    type Future = LocalBoxFuture<'static, Result<(), ()>>;

    always_ready!();

    fn call(&self, stream: TcpStream) -> Self::Future {
        let parts = self.0.clone();
        Box::pin(async move { parts.serve(stream).await })
    }
}

impl<H, A> Parts<H, A>
where
    H: Service<(TlsStream<TcpStream>, Option<SocketAddr>), Response = (), Error = DispatchError>,
    A: Service<Request, Response = Response<BoxBody>, Error = Response<BoxBody>> + 'static,
    A::Future: 'static,
{
    /// Serves a connection in the protocol that its client prefers.
    async fn serve(&self, stream: TcpStream) -> Result<(), ()> {
        let peer = stream.peer_addr().ok();
        let accepted = self.acceptor.call(stream).await;
        let stream = accepted.map_err(|error| tracing::debug!("a handshake of TLS failed: {error:?}"))?;
        if stream.get_ref().1.alpn_protocol() == Some(HTTP2) {
            http2::serve(stream, peer, self.http2.clone(), &self.settings).await;
            return Ok(());
        }
        let ended = self.http1.call((stream, peer)).await;
        ended.map_err(|error| tracing::debug!("a connection ended: {error}"))
    }
}
