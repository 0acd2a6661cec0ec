//! The loading of a model: one load for all who wait, within the bound on loaded models.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::state::{Details, LoadError, Loaded, Outcome, State};
use super::{Place, Registry};
use crate::model::served::ServedModel;
use crate::wire::error::ApiError;

/// The time between two looks for a model that has become idle.
const LOOK: Duration = Duration::from_millis(20);

/// What a request finds.
enum Found {
    /// The model.
    Loaded(Arc<ServedModel>),
    /// A load that is under way.
    Loading(watch::Receiver<Outcome>),
    /// A model that is leaving the memory: it can be loaded in a moment.
    Retiring,
}

impl Registry {
    /// Returns a model, and loads it first if it is not in memory. All who wait for a model share one load,
    /// which goes on when some of them leave.
    ///
    /// # Errors
    /// Fails if the load fails, or takes longer than this.
    pub async fn load(
        self: &Arc<Self>,
        place: Place,
        within: Duration,
    ) -> Result<Arc<ServedModel>, ApiError> {
        let deadline = tokio::time::Instant::now() + within;
        loop {
            let mut outcome = match self.find_or_begin(place, within) {
                Found::Loaded(served) => return Ok(served),
                Found::Loading(outcome) => outcome,
                Found::Retiring if tokio::time::Instant::now() >= deadline => {
                    return Err(self.late(place, within));
                }
                Found::Retiring => {
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
            };
            let ended = tokio::time::timeout_at(deadline, outcome.wait_for(Option::is_some)).await;
            let Ok(ended) = ended else {
                return Err(self.late(place, within));
            };
            // The sender is dropped after it has sent.
            return match ended.as_deref() {
                Ok(Some(Ok(served))) => Ok(served.clone()),
                Ok(Some(Err(error))) => Err(error.told(self.name(place))),
                _ => Err(ApiError::internal()),
            };
        }
    }

    /// Returns the error of a request that has waited for a model for this long.
    fn late(&self, place: Place, within: Duration) -> ApiError {
        let has_room = self.slots()[place.0].state.takes_room();
        match has_room {
            true => ApiError::model_loading(self.name(place), within.as_secs_f64()),
            false => self.no_room().told(self.name(place)),
        }
    }

    fn no_room(&self) -> LoadError {
        LoadError::NoRoom {
            loaded: self.bounds.loaded,
        }
    }

    /// Loads a model on this thread, if it is not in memory.
    ///
    /// # Errors
    /// Fails if it cannot be loaded.
    pub fn load_now(&self, place: Place) -> Result<(), LoadError> {
        let (sender, outcome) = watch::channel(None);
        let state = State::Loading {
            has_room: false,
            outcome,
        };
        match &mut self.slots()[place.0].state {
            slot @ State::Unloaded(_) => *slot = state,
            _ => return Ok(()),
        }
        let loaded = self.bring_in(place, Duration::ZERO, || true);
        let told = loaded.as_ref().map(|_| ()).map_err(LoadError::clone);
        sender.send_replace(Some(loaded));
        told
    }

    /// Returns the model, or the load of it that is under way; begins one if there is none.
    fn find_or_begin(self: &Arc<Self>, place: Place, within: Duration) -> Found {
        let mut slots = self.slots();
        let slot = &mut slots[place.0];
        if let Some(served) = slot.take_up(Instant::now()) {
            return Found::Loaded(served);
        }
        match &slot.state {
            State::Loading { outcome, .. } => return Found::Loading(outcome.clone()),
            State::Retiring => return Found::Retiring,
            State::Unloaded(_) | State::Loaded(_) => {}
        }
        let (sender, outcome) = watch::channel(None);
        slot.state = State::Loading {
            has_room: false,
            outcome: outcome.clone(),
        };
        let registry = self.clone();
        let load = move || {
            // The registry itself holds one receiver.
            let loaded = registry.bring_in(place, within, || sender.receiver_count() > 1);
            sender.send_replace(Some(loaded));
        };
        let thread = std::thread::Builder::new().name("lexiform-load".to_owned());
        if let Err(error) = thread.spawn(load) {
            tracing::error!("no thread to load a model: {error}");
            slot.state = State::default();
        }
        Found::Loading(outcome)
    }

    /// Makes room and loads the model of a slot that is marked as loading; the slot has the outcome
    /// afterwards.
    fn bring_in(
        &self,
        place: Place,
        within: Duration,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Arc<ServedModel>, LoadError> {
        let loaded = self.make_room(place, within, is_wanted);
        let loaded = loaded.and_then(|()| self.read(place)).map(Arc::new);
        let mut slots = self.slots();
        let slot = &mut slots[place.0];
        slot.state = match &loaded {
            Ok(served) => {
                slot.details = Some(Details::from(&**served));
                State::Loaded(Loaded {
                    served: served.clone(),
                    used: Instant::now(),
                    leaves: false,
                })
            }
            // That others use the memory says nothing about this model.
            Err(LoadError::NoRoom { .. }) => State::default(),
            Err(error) => State::Unloaded(Some(error.clone())),
        };
        loaded
    }

    /// Waits until the model may be loaded, and unloads the model that was not used for the longest time if
    /// it is idle. Gives up when the time is over, or when nobody waits any more.
    fn make_room(
        &self,
        place: Place,
        within: Duration,
        is_wanted: impl Fn() -> bool,
    ) -> Result<(), LoadError> {
        let deadline = Instant::now() + within;
        loop {
            if self.take_room(place) {
                return Ok(());
            }
            if let Some((idle, loaded)) = self.least_recently_used() {
                self.retire(idle, loaded);
            } else if Instant::now() >= deadline || !is_wanted() {
                return Err(self.no_room());
            } else {
                std::thread::sleep(LOOK);
            }
        }
    }

    /// Counts the model against the bound if there is room.
    fn take_room(&self, place: Place) -> bool {
        let mut slots = self.slots();
        let taken = slots.iter().filter(|slot| slot.state.takes_room()).count();
        match &mut slots[place.0].state {
            State::Loading { has_room, .. } if taken < self.bounds.loaded => {
                *has_room = true;
                true
            }
            _ => false,
        }
    }

    /// Takes the idle model that was not used for the longest time out of its slot.
    fn least_recently_used(&self) -> Option<(Place, Loaded)> {
        let mut slots = self.slots();
        let idle = slots.iter().enumerate().filter_map(|(place, slot)| {
            let since = slot.idle_since()?;
            Some((since, place))
        });
        let (_, place) = idle.min()?;
        let loaded = slots[place].end_if(|_| true)?;
        Some((Place(place), loaded))
    }

    /// Loads the model.
    fn read(&self, place: Place) -> Result<ServedModel, LoadError> {
        let entry = self.entry(place);
        tracing::info!(model = entry.name, "loading the model");
        let loaded = catch_unwind(AssertUnwindSafe(|| (entry.load)(&self.shelf)));
        let served = match loaded {
            Ok(loaded) => loaded.map_err(|error| LoadError::Failed(Arc::new(error))),
            Err(_) => Err(LoadError::Panicked),
        };
        let served = served.inspect_err(|error| {
            tracing::error!(model = entry.name, "the model cannot be loaded: {error}");
        })?;
        let served = served.with_metrics(entry.metrics.clone());
        Ok(served.with_limits(entry.limits.clone()))
    }
}
