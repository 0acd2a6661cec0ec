//! The gateway: speaks the API of OpenAI with clients, asks an upstream that takes less of JSON Schema, and
//! answers what the client's own schemas promise.
//!
//! ```text
//!   client ─► server ─► schemas ────── projection, receiver ──┐  (cached by the text of the schema)
//!                │                                            ▼
//!                └────► exchange ─ request, projected ─► upstream ─ answer ─► check ─ valid ───► client
//!                          ▲                                                    │
//!                          └────────── asked again, with the reason ◄───────────┘
//! ```
//!
//! * `upstream` is the connection: time-outs, bounded answers; `events` reads a stream of events.
//! * `schemas` projects schemas, and keeps the projections.
//! * `check` takes an answer back: what is recoded is restored, what does not fit is repaired or rejected.
//! * `exchange` is one request: it asks, checks, and asks again; `stream` does so for a streamed answer.
//! * `server` has the routes.
//!
//! Nothing under a schema and no call of a tool is passed on before it was checked. Other text is passed on
//! as it comes.

mod check;
mod events;
mod exchange;
mod failure;
mod schemas;
pub mod server;
mod stream;
pub mod upstream;

use std::sync::Arc;
use std::time::Duration;

use lexiform::project::Profile;
use tokio::sync::Semaphore;

use crate::gateway::schemas::Schemas;
use crate::gateway::upstream::Upstream;
use crate::request::body::{Bodies, BodyLimits};

/// The limits of a gateway.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How often the upstream is asked again if its answer does not fit.
    pub retries: usize,
    /// The maximum number of requests at a time.
    pub requests: usize,
    /// The maximum size of a request body in bytes.
    pub body_bytes: usize,
    /// The time that reading a request and projecting its schemas may take.
    pub compile: Duration,
    /// The time that a request may take.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            retries: 1,
            requests: 256,
            body_bytes: 4 << 20,
            compile: Duration::from_secs(20),
            answer: Duration::from_secs(600),
        }
    }
}

/// A gateway to one upstream, with the state that all its requests share.
#[derive(Debug)]
pub struct Gateway {
    upstream: Upstream,
    schemas: Schemas,
    limits: Limits,
    bodies: Arc<Bodies>,
    running: Arc<Semaphore>,
    /// The checks and projections that may run at a time: they use processors, and memory.
    working: Arc<Semaphore>,
}

impl Gateway {
    /// Creates a gateway to an upstream that takes what the profile takes.
    pub fn new(upstream: Upstream, profile: Profile, limits: Limits) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            upstream,
            schemas: Schemas::new(profile),
            limits,
            bodies: Arc::new(Bodies::new(BodyLimits::default())),
            running: Arc::new(Semaphore::new(limits.requests)),
            working: Arc::new(Semaphore::new(processors)),
        }
    }

    /// Returns the name of the profile.
    pub fn profile(&self) -> &str {
        self.schemas.profile()
    }
}
