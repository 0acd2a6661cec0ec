//! The state that all handlers share, and its settings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::{HttpMessage as _, HttpRequest};
use lexiform_engine::Pool;
use tokio_util::sync::CancellationToken;

use crate::answer::resume::{ResumeLimits, Streams};
use crate::model::registry::{Place, Registry};
use crate::operate::audit::{Account, Asked, Audit, InFlight};
use crate::operate::clients::{self, Clients};
use crate::operate::cors::Cors;
use crate::operate::keys::{Key, Keys};
use crate::operate::lines::Lines;
use crate::operate::traces::Traces;
use crate::request::body::{Bodies, BodyLimits};
use crate::wire::error::ApiError;

/// The default for the maximum size of a body.
pub const BODY_LIMIT: usize = 4 << 20;
/// The default for the maximum number of connections.
pub const CONNECTIONS: usize = 2048;
/// The number of long-running requests that may be prepared at a time: more would only make the compilations
/// of many clients slow each other down.
const LONG_PREPARES: usize = 16;
/// How long a request may keep a thread while others wait to be prepared.
const SLICE: Duration = Duration::from_millis(4);
/// The time between two checks of how large grammars have grown, and which models are idle.
const TIDIED_EVERY: Duration = Duration::from_secs(1);
/// The pages that an address serves besides the API.
#[derive(Clone, Copy, Debug)]
pub struct Offered {
    /// `true` to serve the playground and the documentation.
    pub pages: bool,
    /// `true` to serve the metrics.
    pub metrics: bool,
}

/// The settings of the operator.
pub struct Settings {
    /// The maximum size of a body in bytes.
    pub body_limit: usize,
    /// The limits on bodies while they arrive.
    pub bodies: BodyLimits,
    /// The maximum number of connections; further ones wait until one is closed.
    pub connections: usize,
    /// The API keys; without any, requests need no key.
    pub keys: Keys,
    /// The origins whose pages may send requests.
    pub cors: Cors,
    /// How the addresses of clients are found.
    pub clients: Clients,
    /// The audit log of requests.
    pub audit: Arc<Audit>,
    /// The log, if its lines are counted.
    pub log: Option<Lines>,
    /// The exporter of traces.
    pub traces: Arc<Traces>,
    /// The pages that are served besides the API.
    pub offered: Offered,
    /// The limits on streams that are kept so that they can be resumed.
    pub keeping: ResumeLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            body_limit: BODY_LIMIT,
            bodies: BodyLimits::default(),
            connections: CONNECTIONS,
            keys: Keys::default(),
            cors: Cors::default(),
            clients: Clients::default(),
            audit: Arc::default(),
            log: None,
            traces: Arc::default(),
            offered: Offered {
                pages: true,
                metrics: true,
            },
            keeping: ResumeLimits::default(),
        }
    }
}

/// The state that all handlers share.
pub struct AppState {
    /// The models.
    pub models: Arc<Registry>,
    /// The settings of the operator.
    pub settings: Settings,
    /// The bodies that are arriving.
    pub bodies: Arc<Bodies>,
    /// The streams that can be resumed.
    pub streams: Arc<Streams>,
    /// The threads that prepare requests.
    pub threads: Pool,
    in_flight: Arc<InFlight>,
    closing: CancellationToken,
}

impl AppState {
    /// Creates the state of a server for these models.
    ///
    /// # Errors
    /// Fails if the operating system has no thread left.
    pub fn new(models: Arc<Registry>, settings: Settings) -> std::io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8));
        keep_tidy(&models)?;
        Ok(Self {
            models,
            bodies: Arc::new(Bodies::new(settings.bodies)),
            streams: Arc::new(Streams::new(settings.keeping)),
            settings,
            threads: Pool::new(cores, LONG_PREPARES)?.watched(SLICE)?,
            in_flight: Arc::default(),
            closing: CancellationToken::new(),
        })
    }

    /// Returns how many requests are being answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// Returns the address of the client of a request, as the logs have it.
    pub fn client(&self, request: &HttpRequest) -> String {
        clients::shown(
            self.settings
                .clients
                .address(request.peer_addr(), request.headers()),
        )
    }

    /// Opens the account of a request that generates.
    ///
    /// # Errors
    /// Fails if its key has reached a limit.
    pub fn open_account(&self, request: &HttpRequest) -> Result<Account, ApiError> {
        let extensions = request.extensions();
        let asked = Asked {
            id: extensions.get::<RequestId>().map_or("", |id| id.0.as_str()),
            path: request.path(),
            client: &self.client(request),
        };
        let audit = &self.settings.audit;
        let key = extensions.get::<Arc<Key>>();
        let permit = key.map(Key::admit).transpose().inspect_err(|error| {
            audit.refused(&asked, key.map(|key| key.name.as_str()), error.code());
        })?;
        let account = Account::open(audit.clone(), self.in_flight.clone(), permit, &asked);
        let traces = &self.settings.traces;
        Ok(account.traced(traces.clone(), traces.begin(request.headers())))
    }

    /// Stops accepting requests; running ones may end.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Returns the signal that requests are not accepted any more.
    pub fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Stops accepting requests, waits until the running ones have ended, and ends the rest when the time is
    /// over.
    pub async fn drain(&self, time: Duration) {
        self.close();
        let deadline = Instant::now() + time;
        while self.in_flight() > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.models.limits().stop();
    }

    /// Checks whether requests are accepted.
    ///
    /// # Errors
    /// Fails if the server is shutting down, or if the engines of all its models have stopped.
    pub fn check_open(&self) -> Result<(), ApiError> {
        let open = !self.closing.is_cancelled() && self.models.is_alive();
        if open {
            Ok(())
        } else {
            Err(ApiError::shutting_down())
        }
    }
}

/// The identity of a request.
pub(super) struct RequestId(pub(super) String);

/// The model that a request is about, once that is known.
#[derive(Clone, Copy)]
pub(super) struct About(pub(super) Place);

/// Starts a thread that weighs the grammars and unloads idle models from time to time, as long as the models
/// are served: the memory to which a few requests have grown a grammar is freed even if no others follow.
fn keep_tidy(models: &Arc<Registry>) -> std::io::Result<()> {
    let models = Arc::downgrade(models);
    let look = move || {
        while let Some(models) = models.upgrade() {
            models.shelf().weigh_all();
            models.tidy(Instant::now());
            drop(models);
            std::thread::sleep(TIDIED_EVERY);
        }
    };
    let thread = std::thread::Builder::new().name("lexiform-tidy".to_owned());
    thread.spawn(look).map(drop)
}
