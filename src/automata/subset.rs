//! The subset construction: a state is the set of places that the same words lead to.
//!
//! For each state, the places behind each class of letters are gathered in one pass over its members. Classes behind
//! which the same places were gathered lead to the same state, which is looked up before anything is closed or sorted:
//! most classes of most states are of that kind.

use rustc_hash::FxHashMap;

use super::letters::{Alphabet, Letters};
use super::nfa::{NOWHERE, Nfa, Place};
use super::{Automaton, Failure, Room};

/// The steps that may be taken for each byte of room.
const STEPS_PER_BYTE: usize = 4;

/// The deterministic automaton. O(states · members · classes), bounded by `room` in memory and in work.
pub(super) fn determinise(nfa: &Nfa, alphabet: Alphabet, room: Room<'_>) -> Result<Automaton, Failure> {
    let (letters, classes) = Letters::telling_apart(&nfa.sets, alphabet)?;
    let mut subsets = Subsets {
        nfa,
        members: Vec::new(),
        ends: vec![0],
        known: FxHashMap::default(),
        gathered: FxHashMap::default(),
        alone: vec![Automaton::DEAD; nfa.places.len()],
        seen: vec![0; nfa.places.len()],
        round: 0,
        open: Vec::new(),
        closure: Vec::new(),
        accepting: vec![false],
        held: 0,
        room,
        steps: room.bytes.saturating_mul(STEPS_PER_BYTE),
    };
    subsets.known.insert(Box::default(), Automaton::DEAD);
    subsets.ends.push(0);
    let start = match nfa.start {
        NOWHERE => Automaton::DEAD,
        start => subsets.closed(&[start])?,
    };
    let count = letters.count();
    let mut next = vec![Automaton::DEAD; count];
    let mut behind: Vec<Vec<u32>> = vec![Vec::new(); count];
    if start == Automaton::DEAD {
        // Nothing can be read: the start is a state of its own all the same.
        subsets.ends.push(0);
        subsets.accepting.push(false);
    }
    let mut state = Automaton::START as usize;
    while state < subsets.accepting.len() {
        subsets.gather(state, &classes, &mut behind)?;
        for places in &mut behind {
            next.push(subsets.target(places)?);
            places.clear();
        }
        subsets.pay(next.len() * 4)?;
        state += 1;
    }
    Ok(Automaton {
        letters,
        next,
        live: start != Automaton::DEAD,
        accepting: subsets.accepting,
    })
}

struct Subsets<'a> {
    nfa: &'a Nfa,
    /// The members of all states: the places that read or accept.
    members: Vec<u32>,
    /// Where the members of each state end; one more in front.
    ends: Vec<usize>,
    known: FxHashMap<Box<[u32]>, u32>,
    /// The states behind places that were gathered before.
    gathered: FxHashMap<Box<[u32]>, u32>,
    /// The state behind each place alone, or one of `DEAD`: most letters of literals lead to one place.
    alone: Vec<u32>,
    /// The round in which a place was last met.
    seen: Vec<u32>,
    round: u32,
    /// The places that are still to be closed, and those that were found, while a state is.
    open: Vec<u32>,
    closure: Vec<u32>,
    accepting: Vec<bool>,
    /// The places that the tables hold as keys.
    held: usize,
    room: Room<'a>,
    /// The steps that are left.
    steps: usize,
}

impl Subsets<'_> {
    /// Puts the places behind each class of letters into its list.
    fn gather(&mut self, state: usize, classes: &[Vec<u16>], behind: &mut [Vec<u32>]) -> Result<(), Failure> {
        let mut steps = 0;
        for &member in &self.members[self.ends[state]..self.ends[state + 1]] {
            if let Place::Read { set, next } = self.nfa.places[member as usize] {
                let classes = &classes[set as usize];
                steps += classes.len();
                for &class in classes {
                    behind[class as usize].push(next);
                }
            }
        }
        self.work(steps)
    }

    /// The state of these places.
    fn target(&mut self, places: &[u32]) -> Result<u32, Failure> {
        match *places {
            [] => return Ok(Automaton::DEAD),
            [place] => {
                // No place is dead, so that none of them leads to the dead state.
                if self.alone[place as usize] == Automaton::DEAD {
                    self.alone[place as usize] = self.closed(places)?;
                }
                return Ok(self.alone[place as usize]);
            }
            _ => {}
        }
        if let Some(&known) = self.gathered.get(places) {
            return Ok(known);
        }
        let state = self.closed(places)?;
        self.held += places.len();
        self.gathered.insert(places.into(), state);
        Ok(state)
    }

    /// The state of all places that these lead to without reading.
    fn closed(&mut self, places: &[u32]) -> Result<u32, Failure> {
        self.round += 1;
        // Lists that are made anew for each state would cost more than what is in them.
        let (mut open, mut members) = (std::mem::take(&mut self.open), std::mem::take(&mut self.closure));
        members.clear();
        open.clear();
        open.extend(places);
        let mut steps = 0;
        while let Some(place) = open.pop() {
            steps += 1;
            if std::mem::replace(&mut self.seen[place as usize], self.round) == self.round {
                continue;
            }
            match self.nfa.places[place as usize] {
                Place::Split { first, last } => {
                    let ways = &self.nfa.ways[first as usize..last as usize];
                    open.extend(ways);
                    steps += ways.len();
                }
                _ => members.push(place),
            }
        }
        members.sort_unstable();
        self.open = open;
        let state = self.work(steps).map(|()| self.number(&members));
        self.closure = members;
        state
    }

    /// The number of the state that has these members.
    fn number(&mut self, members: &[u32]) -> u32 {
        if let Some(&known) = self.known.get(members) {
            return known;
        }
        let state = self.accepting.len() as u32;
        let accepts = |&place: &u32| matches!(self.nfa.places[place as usize], Place::Accept);
        self.accepting.push(members.iter().any(accepts));
        self.members.extend(members);
        self.held += members.len();
        self.ends.push(self.members.len());
        self.known.insert(members.into(), state);
        state
    }

    fn work(&mut self, steps: usize) -> Result<(), Failure> {
        self.steps = self.steps.checked_sub(steps).ok_or(Failure::Limit)?;
        Ok(())
    }

    /// Fails where the table of so many bytes, or the sets, do not fit.
    fn pay(&self, table: usize) -> Result<(), Failure> {
        let full = table.max((self.members.len() + self.held) * 4) > self.room.bytes;
        match full || self.room.cancel.is_asked() {
            true => Err(Failure::Limit),
            false => Ok(()),
        }
    }
}
