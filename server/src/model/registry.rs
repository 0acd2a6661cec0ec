//! The models of a service by their names, and which of them are in memory.
//!
//! ```text
//!   name ─► place ─┬─ loaded ─► Arc<ServedModel>, held until the answer ends
//!                  └─ not ────► one load for all who wait ─► room, or an idle model goes
//! ```
//!
//! A model is in use as long as anybody but the registry holds it, and a model in use is never unloaded: what
//! an operator unloads goes when its last answer has ended, and the least recently used model makes room for
//! another one only while it is idle.

mod loading;
mod state;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::grammars::store::Shelf;
use crate::model::limits::RequestLimits;
use crate::model::served::ServedModel;
use crate::model::text::StartError;
use crate::operate::metrics::Metrics;
use crate::wire::error::ApiError;
pub use state::{Details, LoadError, Status};
use state::{Loaded, Slot, State};

/// A function that loads a model and starts its engine, with its grammars on this shelf.
pub type Load = Box<dyn Fn(&Arc<Shelf>) -> Result<ServedModel, StartError> + Send + Sync>;

/// A model that can be served.
pub struct Offer {
    /// Its name in requests and in what the service reports.
    pub name: String,
    /// Further names that requests may use.
    pub aliases: Vec<String>,
    /// Loads it.
    pub load: Load,
}

/// The bounds on what is in memory.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The number of models that may be loaded at a time.
    pub loaded: usize,
    /// The time after which an idle model is unloaded; `None` to keep it.
    pub idle: Option<Duration>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            loaded: usize::MAX,
            idle: None,
        }
    }
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
}

/// The place of a model in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(usize);

/// A model with what outlives its time in memory.
struct Entry {
    name: String,
    aliases: Vec<String>,
    load: Load,
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
}

impl Registry {
    /// Creates a registry of models, none of which is loaded; the first one answers requests that name none.
    ///
    /// # Errors
    /// Fails if there is no model, or if two have the same name.
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
            load: offer.load,
        });
        Self::of_entries(entries.collect(), bounds, limits, shelf)
    }

    /// Creates a registry of one model that has been started.
    ///
    /// # Errors
    /// Never fails: one name is no other's.
    pub fn of(served: ServedModel) -> Result<Self, RegistryError> {
        let limits = served.limits().clone();
        let shelf = served.grammars().shelf().clone();
        let name = served.name().to_owned();
        let metrics = served.metrics().clone();
        let started = Mutex::new(Some(served));
        let load = move |_: &Arc<Shelf>| {
            let started = started.lock().unwrap_or_else(PoisonError::into_inner).take();
            started.ok_or(StartError::NoModel)
        };
        let entry = Entry {
            name,
            aliases: Vec::new(),
            load: Box::new(load),
            metrics,
            limits: limits.clone(),
        };
        let registry = Self::of_entries(vec![entry], Bounds::default(), limits, shelf)?;
        // A model that has been started cannot fail to.
        let _ = registry.load_now(registry.first());
        Ok(registry)
    }

    fn of_entries(
        entries: Vec<Entry>,
        bounds: Bounds,
        limits: RequestLimits,
        shelf: Arc<Shelf>,
    ) -> Result<Self, RegistryError> {
        let mut places = HashMap::new();
        for (place, entry) in entries.iter().enumerate() {
            for name in std::iter::once(&entry.name).chain(&entry.aliases) {
                if places.insert(name.clone(), Place(place)).is_some() {
                    return Err(RegistryError::Duplicate(name.clone()));
                }
            }
        }
        if entries.is_empty() {
            return Err(RegistryError::Empty);
        }
        Ok(Self {
            slots: Mutex::new(entries.iter().map(|_| Slot::default()).collect()),
            entries,
            places,
            bounds,
            limits,
            shelf,
        })
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
        let is_alive = |slot: &Slot| match &slot.state {
            State::Loaded(loaded) => loaded.served.engine().stats().alive,
            _ => true,
        };
        self.slots().iter().any(is_alive)
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

    /// Unloads the models that have been idle for too long at this time, and those that an operator has
    /// unloaded while they were in use. Blocks while their engines end their passes.
    pub fn tidy(&self, now: Instant) {
        let idle = self.bounds.idle;
        for place in self.places() {
            let gone = self.slots()[place.0].end_if_due(now, idle);
            if let Some(loaded) = gone {
                self.retire(place, loaded);
            }
        }
    }

    /// Ends the engines of all loaded models; their running requests receive an error.
    pub fn stop(&self) {
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
