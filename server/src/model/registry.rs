//! The models of a service by their names, and which of them are in memory.
//!
//! ```text
//!   name ─► place ─┬─ loaded ─► Arc<ServedModel>, held until the answer ends
//!                  └─ not ────► one load for all who wait ─► room, or an idle model goes
//! ```
//!
//! Two bounds hold for what is in memory: the number of models, and the bytes of their weights. A model that
//! waits for room takes none of it.
//!
//! A model is in use as long as anybody but the registry holds it, and a model in use is never unloaded:
//! what an operator unloads goes when its last answer has ended, and the least recently used model makes
//! room for another one only while it is idle. A model whose engine has ended by itself leaves at once,
//! and the next request loads it again.

mod bounds;
mod loading;
mod state;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::grammars::store::Shelf;
use crate::model::limits::RequestLimits;
use crate::model::served::ServedModel;
use crate::model::text::StartError;
use crate::operate::metrics::Metrics;
use crate::wire::error::ApiError;
pub use bounds::Bounds;
pub use state::{Details, LoadError, Status};
use state::{Loaded, Slot, State};

/// The time between two looks for a model that has come into the memory or left it, or has become idle.
const LOOK: Duration = Duration::from_millis(20);

/// A function that loads a model and starts its engine, with its grammars on this shelf.
pub type Load = Box<dyn Fn(&Arc<Shelf>) -> Result<ServedModel, StartError> + Send + Sync>;

/// A function that returns the bytes which the weights of a model will take.
pub type Weigh = Box<dyn Fn() -> Result<u64, StartError> + Send + Sync>;

/// A model that can be served.
pub struct Offer {
    /// Its name in requests and in what the service reports.
    pub name: String,
    /// Further names that requests may use.
    pub aliases: Vec<String>,
    /// Loads it.
    pub load: Load,
    /// Weighs it, if the memory of all models is bounded.
    pub weigh: Weigh,
}

/// The reasons why models cannot be served together.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Two models, or aliases, have the same name.
    #[error(
        "two models are called '{0}'; name each in a table of the file that --config names: [[models]], name = \"…\""
    )]
    Duplicate(String),
    /// There is no model.
    #[error("there is no model to serve")]
    Empty,
    /// A model can never be loaded.
    #[error("the model '{name}': {error}")]
    Model {
        /// The name of the model.
        name: String,
        /// Why not.
        error: LoadError,
    },
}

/// The place of a model in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(usize);

/// A model with what outlives its time in memory.
struct Entry {
    name: String,
    aliases: Vec<String>,
    /// What loads it, and what weighs it; `None` if it was started elsewhere.
    source: Option<(Load, Weigh)>,
    metrics: Arc<Metrics>,
    limits: RequestLimits,
}

/// All models of a service.
pub struct Registry {
    entries: Vec<Entry>,
    /// The names and aliases.
    places: HashMap<String, Place>,
    slots: Mutex<Vec<Slot>>,
    bounds: Bounds,
    limits: RequestLimits,
    shelf: Arc<Shelf>,
    /// `true` from when no model may be loaded any more.
    stopped: AtomicBool,
}

impl Registry {
    /// Creates a registry of models, none of which is loaded; the first one answers requests that name none.
    ///
    /// # Errors
    /// Fails if there is no model, if two have the same name, or if the memory is bounded and a
    /// model cannot be weighed or is too large by itself.
    pub fn new(
        offers: Vec<Offer>,
        bounds: Bounds,
        limits: RequestLimits,
        shelf: Arc<Shelf>,
    ) -> Result<Self, RegistryError> {
        let entries = offers.into_iter().map(|offer| Entry {
            metrics: Arc::new(Metrics::new(&offer.name)),
            limits: limits.of_one_model(),
            name: offer.name,
            aliases: offer.aliases,
            source: Some((offer.load, offer.weigh)),
        });
        let entries: Vec<Entry> = entries.collect();
        if entries.is_empty() {
            return Err(RegistryError::Empty);
        }
        let mut places = HashMap::new();
        for (place, entry) in entries.iter().enumerate() {
            for name in std::iter::once(&entry.name).chain(&entry.aliases) {
                if places.insert(name.clone(), Place(place)).is_some() {
                    return Err(RegistryError::Duplicate(name.clone()));
                }
            }
        }
        let registry = Self {
            slots: Mutex::new(entries.iter().map(|_| Slot::default()).collect()),
            entries,
            places,
            bounds,
            limits,
            shelf,
            stopped: AtomicBool::new(false),
        };
        for entry in &registry.entries {
            let name = &entry.name;
            registry.weigh(entry).map_err(|error| RegistryError::Model {
                name: name.clone(),
                error,
            })?;
        }
        Ok(registry)
    }

    /// Creates a registry of one model that has been started.
    pub fn of(served: ServedModel) -> Self {
        let name = served.name().to_owned();
        let entry = Entry {
            name: name.clone(),
            aliases: Vec::new(),
            source: None,
            metrics: served.metrics().clone(),
            limits: served.limits().clone(),
        };
        Self {
            limits: served.limits().clone(),
            shelf: served.grammars().shelf().clone(),
            slots: Mutex::new(vec![Slot::loaded(Arc::new(served), 0)]),
            entries: vec![entry],
            places: HashMap::from([(name, Place(0))]),
            bounds: Bounds::default(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Returns the place of the model that answers requests which name none.
    pub fn first(&self) -> Place {
        Place(0)
    }

    /// Returns the places of all models, in the order of the operator.
    pub fn places(&self) -> impl Iterator<Item = Place> + use<> {
        (0..self.entries.len()).map(Place)
    }

    /// Returns the place of the model with this name or alias; without a name, the first one.
    ///
    /// # Errors
    /// Fails if there is no such model, with the names of those that the client `may_use`.
    pub fn find(&self, name: Option<&str>, may_use: impl Fn(&str) -> bool) -> Result<Place, ApiError> {
        let Some(name) = name else {
            return Ok(self.first());
        };
        let place = self.places.get(name).copied();
        place.ok_or_else(|| self.unknown(name, may_use))
    }

    /// Returns the error for a name that means no model to a client, with those that it `may_use`.
    pub fn unknown(&self, name: &str, may_use: impl Fn(&str) -> bool) -> ApiError {
        let names = self.entries.iter().map(|entry| entry.name.as_str());
        ApiError::unknown_model(name, names.filter(|name| may_use(name)).collect())
    }

    /// Returns the name of a model.
    pub fn name(&self, place: Place) -> &str {
        &self.entry(place).name
    }

    /// Returns the further names of a model.
    pub fn aliases(&self, place: Place) -> &[String] {
        &self.entry(place).aliases
    }

    /// Returns the metrics of a model, which go on when it is loaded again.
    pub fn metrics(&self, place: Place) -> &Arc<Metrics> {
        &self.entry(place).metrics
    }

    /// Returns the limits of one model's requests.
    pub fn limits_of(&self, place: Place) -> &RequestLimits {
        &self.entry(place).limits
    }

    /// Returns the limits of requests that all models share.
    pub fn limits(&self) -> &RequestLimits {
        &self.limits
    }

    /// Returns the shelf with the grammars of all models.
    pub fn shelf(&self) -> &Arc<Shelf> {
        &self.shelf
    }

    /// Returns a model if it is loaded; it then counts as used, and is not unloaded while the value lives.
    pub fn ready(&self, place: Place) -> Option<Arc<ServedModel>> {
        self.slots()[place.0].take_up(Instant::now())
    }

    /// Returns `true` if somebody but the registry holds the model.
    pub fn is_in_use(&self, place: Place) -> bool {
        self.slots()[place.0].is_in_use()
    }

    /// Returns what is known of a model: its state, the reason why its last load failed, and its details
    /// since it was first loaded.
    pub fn told(&self, place: Place) -> (Status, Option<String>, Option<Details>) {
        self.slots()[place.0].told()
    }

    /// Calls a function with each loaded model. Nobody takes up a model meanwhile, so it must be quick.
    pub fn each_loaded(&self, mut look: impl FnMut(Place, &ServedModel)) {
        for (place, slot) in self.slots().iter().enumerate() {
            if let State::Loaded(loaded) = &slot.state {
                look(Place(place), &loaded.served);
            }
        }
    }

    /// Returns `true` if a request could be answered: by a model whose engine runs, or by one that can be
    /// loaded.
    pub fn is_alive(&self) -> bool {
        let is_alive = |(slot, entry): (&Slot, &Entry)| match &slot.state {
            State::Loaded(loaded) => entry.source.is_some() || loaded.served.engine().is_alive(),
            _ => entry.source.is_some(),
        };
        self.slots().iter().zip(&self.entries).any(is_alive)
    }

    /// Unloads a model, at once if it is idle, or else when its last answer has ended; a request that comes
    /// before that keeps it. Blocks while the engine ends its pass.
    pub fn unload(&self, place: Place) -> Status {
        let idle = self.slots()[place.0].leave();
        if let Some(loaded) = idle {
            self.retire(place, loaded);
        }
        self.told(place).0
    }

    /// Unloads the models that have been idle for too long at this time, those that an operator has
    /// unloaded while they were in use, and those whose engines have ended. Blocks while their engines end
    /// their passes.
    pub fn tidy(&self, now: Instant) {
        let idle = self.bounds.idle;
        for place in self.places() {
            let dead = self.slots()[place.0].bury();
            self.tell_of_dead(place, dead.as_ref());
            let gone = self.slots()[place.0].end_if_due(now, idle);
            if let Some(loaded) = gone {
                self.retire(place, loaded);
            }
        }
    }

    /// Ends the engines of all loaded models; their running requests receive an error. Waits for loads that
    /// are under way, which cannot be given up halfway, and begins no others.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        while self.slots().iter().any(|slot| slot.state.changes()) {
            std::thread::sleep(LOOK);
        }
        let mut loaded = Vec::new();
        for slot in self.slots().iter() {
            if let State::Loaded(model) = &slot.state {
                loaded.push(model.served.clone());
            }
        }
        for served in loaded {
            served.engine().stop();
        }
    }

    /// Logs that the engine of a model has ended, if it has.
    fn tell_of_dead(&self, place: Place, dead: Option<&Loaded>) {
        if dead.is_some() {
            tracing::error!(model = self.name(place), "unloaded: {}", LoadError::Died);
        }
    }

    /// Ends the engine of a model that nobody uses, frees its memory, and marks its slot as empty.
    fn retire(&self, place: Place, loaded: Loaded) {
        tracing::info!(model = self.name(place), "unloading the model");
        loaded.served.engine().stop();
        drop(loaded);
        self.slots()[place.0].state = State::default();
    }

    fn entry(&self, place: Place) -> &Entry {
        &self.entries[place.0]
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        // Each change is a single assignment, so a panic leaves nothing half written.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
