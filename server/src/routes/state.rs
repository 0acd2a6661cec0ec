//! The state that all handlers share, and what the operator chose for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actix_web::{HttpMessage as _, HttpRequest};
use lexiform_engine::Pool;

use crate::answer::resume::{ResumeLimits, Streams};
use crate::model::served::ServedModel;
use crate::operate::audit::{Account, Audit, InFlight};
use crate::operate::cors::Cors;
use crate::operate::keys::{Key, Keys};
use crate::operate::traces::{Recording, Traces};
use crate::request::body::{Bodies, BodyLimits};
use crate::wire::error::ApiError;

/// The largest body that is read, unless the operator chooses.
pub const BODY_LIMIT: usize = 4 << 20;
/// Connections at a time, unless the operator chooses.
pub const CONNECTIONS: usize = 2048;
/// Requests that may be prepared at a time although each takes long: more would only make compiles of many
/// clients slow each other.
const LONG_PREPARES: usize = 16;
/// How long a request may keep a thread from those behind it that are to be prepared.
const SLICE: Duration = Duration::from_millis(4);
/// The time between two looks at what grammars have grown to.
const WEIGHED_EVERY: Duration = Duration::from_secs(1);
/// What the operator has an address serve beside the API.
#[derive(Clone, Copy, Debug)]
pub struct Offered {
    /// The playground and the documentation.
    pub pages: bool,
    /// The metrics.
    pub metrics: bool,
}

/// What the operator chose.
pub struct Settings {
    /// The largest body in bytes.
    pub body_limit: usize,
    /// What bodies may take while they arrive.
    pub bodies: BodyLimits,
    /// Connections at a time; more wait until one is closed.
    pub connections: usize,
    /// Who may ask; nobody in particular if there are no keys.
    pub keys: Keys,
    /// Which pages of other origins may ask.
    pub cors: Cors,
    /// Where accounts of requests are written.
    pub audit: Arc<Audit>,
    /// Where traces of requests go.
    pub traces: Arc<Traces>,
    /// What is served beside the API.
    pub offered: Offered,
    /// How much of streams is kept so that they can be resumed.
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
            audit: Arc::default(),
            traces: Arc::default(),
            offered: Offered {
                pages: true,
                metrics: true,
            },
            keeping: ResumeLimits::default(),
        }
    }
}

/// What all handlers share.
pub struct AppState {
    /// The model.
    pub served: Arc<ServedModel>,
    /// What the operator chose.
    pub settings: Settings,
    /// The bodies that arrive.
    pub bodies: Arc<Bodies>,
    /// The streams that can be resumed.
    pub streams: Arc<Streams>,
    /// Where requests are prepared.
    pub threads: Pool,
    in_flight: Arc<InFlight>,
    closing: AtomicBool,
}

impl AppState {
    /// The state of a server for this model.
    pub fn new(served: Arc<ServedModel>, settings: Settings) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8));
        keep_grammars_small(&served);
        Self {
            served,
            bodies: Arc::new(Bodies::new(settings.bodies)),
            streams: Arc::new(Streams::new(settings.keeping)),
            settings,
            threads: Pool::new(cores, LONG_PREPARES).watched(SLICE),
            in_flight: Arc::default(),
            closing: AtomicBool::new(false),
        }
    }

    /// How many requests are being answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// Opens the account of a request that generates.
    ///
    /// # Errors
    /// Its key has nothing left.
    pub fn open_account(&self, request: &HttpRequest) -> Result<Account, ApiError> {
        let extensions = request.extensions();
        let key = extensions.get::<Arc<Key>>();
        let permit = key.map(Key::admit).transpose()?;
        let id = extensions.get::<RequestId>().map_or("", |id| id.0.as_str());
        let path = request.path();
        let account = Account::open(
            self.settings.audit.clone(),
            self.in_flight.clone(),
            permit,
            id,
            path,
        );
        Ok(match self.settings.traces.is_wanted() {
            true => account.traced(self.settings.traces.clone(), Recording::begin(request.headers())),
            false => account,
        })
    }

    /// Takes no more requests; what runs may end.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Takes no more requests, waits until the running ones have ended, and ends the rest when the time is
    /// over.
    pub async fn drain(&self, time: Duration) {
        self.close();
        let deadline = Instant::now() + time;
        while self.in_flight() > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.served.limits().stop();
    }

    /// Whether requests are taken.
    ///
    /// # Errors
    /// The server is going down, or its engine has stopped.
    pub fn check_open(&self) -> Result<(), ApiError> {
        let open = !self.closing.load(Ordering::Acquire) && self.served.engine().stats().alive;
        if open {
            Ok(())
        } else {
            Err(ApiError::shutting_down())
        }
    }
}

/// The identity of a request.
pub(super) struct RequestId(pub(super) String);

/// Has the grammars weighed from time to time, as long as the model is served: what a few requests made one
/// grow to does not stay until others ask for theirs.
fn keep_grammars_small(served: &Arc<ServedModel>) {
    let served = Arc::downgrade(served);
    let look = move || {
        while let Some(served) = served.upgrade() {
            served.grammars().weigh_all();
            drop(served);
            std::thread::sleep(WEIGHED_EVERY);
        }
    };
    let thread = std::thread::Builder::new().name("lexiform-weigh".to_owned());
    thread.spawn(look).expect("the operating system has threads");
}
