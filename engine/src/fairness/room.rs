//! A bounded room that owners share: no owner can fill it for the others.

use crate::fairness::pool::Owner;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The divisor of the limit that gives the amount an owner may have although the room is full.
const FEW_PLACES: usize = 64;

/// A counter of places that are taken and returned.
///
/// Up to its limit the room is open to every owner. Beyond the limit, up to half as much again, there are
/// places for owners that have none, or hardly any. So one owner alone may fill the room without keeping
/// others out.
#[derive(Debug)]
pub struct Room {
    limit: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_owner: HashMap<Owner, usize>,
}

/// The places that an owner has taken, until this is dropped.
#[derive(Debug)]
pub struct Place {
    room: Arc<Room>,
    owner: Owner,
    amount: usize,
}

impl Room {
    /// Creates a room with `limit` places.
    pub fn new(limit: usize) -> Self {
        Room {
            limit,
            taken: Mutex::default(),
        }
    }

    /// Returns the number of places.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the number of places taken.
    pub fn taken(&self) -> usize {
        self.locked().all
    }

    /// Takes `amount` places for an owner. An empty room accepts any amount, even one that is larger than the
    /// room.
    ///
    /// # Errors
    /// There is no room for this owner; the error is the number of places taken already.
    pub fn take(self: &Arc<Self>, owner: &Owner, amount: usize) -> Result<Place, usize> {
        let mut taken = self.locked();
        let theirs = taken.by_owner.get(owner).copied().unwrap_or_default();
        let after = taken.all.saturating_add(amount);
        let few = theirs == 0 || theirs.saturating_add(amount) <= self.limit / FEW_PLACES;
        let most = self.limit.saturating_add(if few { self.limit / 2 } else { 0 });
        if taken.all > 0 && after > most {
            return Err(taken.all);
        }
        taken.all = after;
        *taken.by_owner.entry(owner.clone()).or_default() += amount;
        Ok(Place {
            room: self.clone(),
            owner: owner.clone(),
            amount,
        })
    }

    /// Locks the counts, even after a panic. A panic cannot leave them half changed: nothing in between can
    /// panic.
    fn locked(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.room.locked();
        taken.all = taken.all.saturating_sub(self.amount);
        if let Some(theirs) = taken.by_owner.get_mut(&self.owner) {
            *theirs = theirs.saturating_sub(self.amount);
            if *theirs == 0 {
                taken.by_owner.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: usize) -> Owner {
        Some(name.to_string().into())
    }

    #[test]
    fn one_owner_may_fill_the_room_and_is_in_nobody_s_way() {
        let room = Arc::new(Room::new(128));
        let places: Vec<_> = (0..128).map(|_| room.take(&owner(0), 1)).collect();
        assert!(places.iter().all(Result::is_ok));
        assert_eq!(room.take(&owner(0), 1).err(), Some(128));
        let others: Vec<_> = (1..=64).map(|other| room.take(&owner(other), 1)).collect();
        assert!(others.iter().all(Result::is_ok));
        assert_eq!(
            room.take(&owner(65), 1).err(),
            Some(192),
            "and still it is bounded"
        );
        drop((places, others));
        assert_eq!((room.taken(), room.locked().by_owner.len()), (0, 0));
    }

    #[test]
    fn an_owner_that_has_some_gets_no_more_of_a_full_room() {
        let room = Arc::new(Room::new(128));
        let _most = room.take(&owner(0), 127).expect("it is empty");
        let _few = [(); 3].map(|()| room.take(&owner(1), 1));
        assert_eq!(room.taken(), 129, "of the room, and one of the few");
        assert!(room.take(&owner(2), 65).is_err(), "it is too much");
    }

    #[test]
    fn what_is_larger_than_the_room_may_be_there_alone() {
        let room = Arc::new(Room::new(10));
        let large = room.take(&owner(0), 1000).expect("it is empty");
        assert!(room.take(&owner(1), 1).is_err());
        drop(large);
        assert!(room.take(&owner(1), 1).is_ok());
    }
}
