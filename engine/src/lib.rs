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
//! * `engine/step` is the main flow, a page long: propose drafts, schedule, forward, sample, collect.
//!   `scheduler` owns the queues, `blocks` the blocks of the cache, and one thread owns the model. `sequence`
//!   is plain data.
//! * A driver runs each request: its `request/driver` forks branches, lets them draw, drops them, and decides
//!   which of them become answers. A branch is a `sequence`; a `sequence/job` holds the driver and the
//!   answers' sinks, and `engine/drive` carries out the driver's orders.
//! * [`Model`] is the loop's only interface to a model. [`ScriptedModel`] follows a script and needs no
//!   weights; the libtorch models are in [`torch`], the only module that names `tch`.
//! * The library `lexiform` decides what is drawn, and under which law; this crate is its first user.
//!
//! The loop never draws from anything but a mask of the request's grammar: a request whose mask cannot be
//! computed fails.

mod blocks;
mod config;
mod engine;
mod error;
mod fairness;
mod grammar;
mod metrics;
mod model;
mod request;
mod sampling;
mod scheduler;
mod sequence;
mod speculation;
pub mod torch;

pub use config::{DraftShape, DraftStores, Drafting, EngineConfig, Learner, Lookahead};
pub use engine::draft_model::{Assistant, OwnTokens};
pub use engine::{Engine, Ticket};
pub use error::{Conflict, EngineError, JournalError, LoadError, Malformed, MonitorProblem, Refusal};
pub use fairness::pool::{Length, Owner, Pool, Work};
pub use fairness::room::{Place, Room};
#[doc(hidden)]
pub use grammar::masks::MaskHook;
pub use lexiform::Mask;
pub use lexiform::{Grammar, State};
pub use lexiform_law::draft::Tokenise;
pub use lexiform_law::draft::Union;
pub use lexiform_law::{
    Contrast, Cuts, Fallback, Law, LawTag, Mirostat, MirostatVersion, Resampling, TokenProposal,
    TypicalAcceptance,
};
pub use metrics::histogram::Histogram;
pub use metrics::meters::{Meters, Times};
pub use metrics::stats::Stats;
pub use model::flight::{Ask, Drawing, Flight, Landed};
pub use model::head::{Head, HeadFeed, HeadRows};
pub use model::logits::{Logits, Numbers, Row};
pub use model::scripted::{Script, ScriptedModel};
pub use model::{Feed, Model, SlotMoves};
pub use request::options::{MOST_OPTION_TOKENS, Options, OptionsError, Weighed};
pub use request::{
    AmateurRows, AnswerLimits, Candidate, Candidates, Constraints, ContrastWith, Contrasted, Diagnostics,
    Drafted, Draw, Event, Fate, Feature, Finish, LogprobsOf, Method, OnBudget, Origin, Outcome, Particle,
    PenaltyScope, Preamble, PreambleLimit, PreambleTokens, Prompt, Reporting, Request, Sampling, Search,
    Speculation, Steered, SteeredPreamble, Task, Tilt, Verification, Watched, Weigh, conflicts, support,
};
pub use sequence::job::Sink;
pub use speculation::class::{JsonReader, StateClass};
pub use speculation::policy::{CountedTime, Worked};
pub use torch::{
    Bandwidth, Device, DrafterKind, Dtype, LoadOptions, LoadedModel, ModelConfig, ModelFiles, PassReads,
    SEVERAL_CARDS, SelfDraft, Shape, SkippedLayers, WeightFormat, describe, drafter_kind, load, weight_bytes,
};
