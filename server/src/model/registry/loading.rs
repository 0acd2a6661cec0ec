//! The loading of a model: one load for all who wait, within the bounds on what is in memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::state::{LoadError, Loaded, Outcome, Slot, State};
use super::{Entry, LOOK, Place, Registry};
use crate::model::served::ServedModel;
use crate::model::text::StartError;
use crate::wire::error::ApiError;

/// What a request finds.
enum Found {
    /// The model.
    Loaded(Arc<ServedModel>),
    /// A load that is under way.
    Loading(watch::Receiver<Outcome>),
    /// A model that is leaving the memory: it can be loaded in a moment.
    Retiring,
    /// No model is loaded any more.
    Stopped,
}

/// What there is for a model that is to be loaded.
enum Room {
    /// Enough: the model counts against the bounds from now on.
    Enough,
    /// As much as this idle model leaves, at least.
    Idle(Place, Loaded),
    /// Not enough, whichever idle models leave.
    None,
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
                Found::Stopped => return Err(ApiError::shutting_down()),
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
        let has_room = self.slots()[place.0].state.room().is_some();
        match has_room {
            true => ApiError::model_loading(self.name(place), within.as_secs_f64()),
            false => LoadError::NoRoom(self.bounds).told(self.name(place)),
        }
    }

    /// Loads the models for which there is room beside those before them, in their order, on this thread.
    ///
    /// # Errors
    /// Fails if one of them cannot be loaded.
    pub fn load_first(&self) -> Result<(), LoadError> {
        for place in self.places() {
            let bytes = self.weigh(self.entry(place))?;
            let is_admitted = {
                let slots = self.slots();
                self.bounds
                    .admit(bytes, slots.iter().filter_map(|slot| slot.state.room()))
            };
            if is_admitted {
                self.load_now(place)?;
            }
        }
        Ok(())
    }

    /// Loads a model on this thread, if it is not in memory.
    ///
    /// # Errors
    /// Fails if it cannot be loaded.
    pub fn load_now(&self, place: Place) -> Result<(), LoadError> {
        let (sender, outcome) = watch::channel(None);
        let state = State::Loading { room: None, outcome };
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
        let dead = self.slots()[place.0].bury();
        self.tell_of_dead(place, dead.as_ref());
        drop(dead);
        let mut slots = self.slots();
        let slot = &mut slots[place.0];
        if let Some(served) = slot.take_up(Instant::now()) {
            return Found::Loaded(served);
        }
        match &slot.state {
            State::Loading { outcome, .. } => return Found::Loading(outcome.clone()),
            State::Retiring(_) => return Found::Retiring,
            _ if self.stopped.load(Ordering::Acquire) => return Found::Stopped,
            State::Unloaded(_) | State::Loaded(_) => {}
        }
        let (sender, outcome) = watch::channel(None);
        slot.state = State::Loading {
            room: None,
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
        let bytes = self.weigh(self.entry(place));
        let bytes = bytes.and_then(|bytes| self.make_room(place, bytes, (within, is_wanted)).map(|()| bytes));
        let loaded = bytes.and_then(|bytes| Ok((Arc::new(self.read(place)?), bytes)));
        let mut slots = self.slots();
        let slot = &mut slots[place.0];
        match &loaded {
            Ok((served, bytes)) => *slot = Slot::loaded(served.clone(), *bytes),
            // That others use the memory says nothing about this model.
            Err(LoadError::NoRoom(_) | LoadError::Stopped) => slot.state = State::default(),
            Err(error) => slot.state = State::Unloaded(Some(error.clone())),
        }
        loaded.map(|(served, _)| served)
    }

    /// Returns the bytes of a model's weights; 0 if there is no bound on those, or if it cannot be loaded.
    pub(super) fn weigh(&self, entry: &Entry) -> Result<u64, LoadError> {
        let (Some(memory), Some((_, weigh))) = (self.bounds.memory, &entry.source) else {
            return Ok(0);
        };
        match guarded(weigh)? {
            bytes if bytes > memory => Err(LoadError::TooLarge { bytes, memory }),
            bytes => Ok(bytes),
        }
    }

    /// Waits until the model may be loaded, and unloads idle models, those first that were not used for
    /// the longest time, if that makes enough room. Gives up when the time is over, when nobody waits any
    /// more, or when the service ends.
    fn make_room(
        &self,
        place: Place,
        bytes: u64,
        (within, is_wanted): (Duration, impl Fn() -> bool),
    ) -> Result<(), LoadError> {
        let deadline = Instant::now() + within;
        loop {
            if self.stopped.load(Ordering::Acquire) {
                return Err(LoadError::Stopped);
            }
            match self.take_room(place, bytes) {
                Room::Enough => return Ok(()),
                Room::Idle(idle, loaded) => self.retire(idle, loaded),
                Room::None if Instant::now() >= deadline || !is_wanted() => {
                    return Err(LoadError::NoRoom(self.bounds));
                }
                Room::None => std::thread::sleep(LOOK),
            }
        }
    }

    /// Counts a model with so many bytes of weights against the bounds if there is room. Otherwise takes the
    /// idle model out of its slot that was not used for the longest time, if all idle ones leave enough.
    fn take_room(&self, place: Place, bytes: u64) -> Room {
        let mut slots = self.slots();
        if self
            .bounds
            .admit(bytes, slots.iter().filter_map(|slot| slot.state.room()))
        {
            if let State::Loading { room, .. } = &mut slots[place.0].state {
                *room = Some(bytes);
            }
            return Room::Enough;
        }
        let busy = slots.iter().filter(|slot| slot.idle_since().is_none());
        if !self
            .bounds
            .admit(bytes, busy.filter_map(|slot| slot.state.room()))
        {
            return Room::None;
        }
        let idle = slots.iter().enumerate();
        let idle = idle.filter_map(|(place, slot)| Some((slot.idle_since()?, place)));
        let Some((_, place)) = idle.min() else {
            return Room::None;
        };
        match slots[place].end_if(|_| true) {
            Some(loaded) => Room::Idle(Place(place), loaded),
            None => Room::None,
        }
    }

    /// Loads the model.
    fn read(&self, place: Place) -> Result<ServedModel, LoadError> {
        let entry = self.entry(place);
        let (load, _) = entry.source.as_ref().ok_or(LoadError::Once)?;
        tracing::info!(model = entry.name, "loading the model");
        let served = guarded(|| load(&self.shelf)).inspect_err(|error| {
            tracing::error!(model = entry.name, "the model cannot be loaded: {error}");
        })?;
        let served = served.with_metrics(entry.metrics.clone());
        Ok(served.with_limits(entry.limits.clone()))
    }
}

/// Runs a step of a load, which may panic.
fn guarded<T>(step: impl FnOnce() -> Result<T, StartError>) -> Result<T, LoadError> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(done) => done.map_err(|error| LoadError::Failed(Arc::new(error))),
        Err(_) => Err(LoadError::Panicked),
    }
}
