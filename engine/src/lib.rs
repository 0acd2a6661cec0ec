//! The decode loop: many requests at once, one model, every answer inside its grammar.
//!
//! ```text
//!   submit ─► waiting ─┐                      ┌────────── mask threads ──────────┐
//!                      ├─► schedule ─► feed ──┤                                  ├─► draw, verify ─► events
//!   decode ◄─ running ─┘      ▲               └─ model: forward over the blocks ─┘         │
//!      └──────────────────────┴────────────────────────────────────────────────────────────┘
//! ```
//!
//! * [`Engine`] is the handle; [`Request`] goes in, [`Event`]s come out.
//! * `step` is the main flow, a page long: propose drafts, schedule, forward, sample, collect. `scheduler` owns the
//!   queues, `blocks` the cache's bookkeeping, `sequence` is plain data.
//! * A request is driven: its `driver` forks branches, lets them draw, gives them up, and says which of them become answers.
//!   A branch is a `sequence`; a `job` holds the driver and the answers' sinks, and `drive` does what is ordered.
//! * [`Model`] is all that the loop knows of a model. [`ScriptedModel`] follows a script and needs no weights; the
//!   libtorch models are in [`torch`], the only module that names `tch`.
//! * What is drawn, and under which law, is the business of the library `lexiform`; this crate is its first user.
//!
//! The loop never draws from anything but a mask of the request's grammar: a request whose mask cannot be had fails.

mod blocks;
mod crew;
mod draft_model;
mod drive;
mod driver;
mod engine;
mod errand;
mod error;
mod given;
mod histogram;
mod job;
mod masks;
mod meters;
mod model;
mod outlook;
mod pace;
mod pool;
mod replay;
mod request;
mod room;
mod sample;
mod scheduler;
mod scripted;
mod sequence;
mod speculate;
mod stats;
mod step;
pub mod torch;
mod tree;
mod tries;
mod write;

pub use engine::{Engine, EngineConfig, Sink, Ticket};
pub use error::{EngineError, LoadError, Malformed, Refusal};
pub use histogram::Histogram;
pub use lexiform::draft::Tokenise;
pub use lexiform::law::{Fallback, LawTag};
pub use lexiform::mask::Mask;
pub use lexiform::{Grammar, State};
#[doc(hidden)]
pub use masks::MaskHook;
pub use meters::{Meters, Times};
pub use model::{Feed, Logits, Model, Numbers, Row, SlotMoves};
pub use pool::{Length, Owner, Pool, Work};
pub use request::{
    Event, Finish, LawChoice, LogprobsOf, OnBudget, Origin, Outcome, Request, Sampling, Speculation, Steered,
    Verification,
};
pub use room::{Place, Room};
pub use scripted::{Script, ScriptedModel};
pub use stats::Stats;
pub use torch::{Device, Dtype, LoadOptions, LoadedModel, ModelFiles, load};
