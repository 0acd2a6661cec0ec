//! The subset construction: a state is the set of places that the same words lead to.
//!
//! For each state, the places after each class of letters are gathered in one pass over its members. Classes
//! with the same gathered places lead to the same state, which is looked up before anything is closed or
//! sorted: most classes of most states share their places with others.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use regex_syntax::hir::Hir;
use rustc_hash::FxBuildHasher;

use super::automaton::Automaton;
use super::failure::{Failure, Room};
use super::letters::{Alphabet, Letters};
use super::nfa::{NOWHERE, Nfa, Place};

/// The number of steps that are allowed for each byte of room.
const STEPS_PER_BYTE: usize = 4;

impl Automaton {
    /// Compiles an expression, which must match whole words.
    pub fn new(hir: &Hir, alphabet: Alphabet, room: Room<'_>) -> Result<Automaton, Failure> {
        let nfa = Nfa::new(hir, alphabet, room.bytes)?;
        determinise(&nfa, alphabet, room)
    }
}

/// Determinises an automaton. O(states · members · classes), bounded by `room` in memory and in work.
fn determinise(nfa: &Nfa, alphabet: Alphabet, room: Room<'_>) -> Result<Automaton, Failure> {
    let (letters, classes) = Letters::telling_apart(&nfa.sets, alphabet)?;
    let mut subsets = Subsets {
        nfa,
        members: Vec::new(),
        ends: vec![0],
        known: HashTable::new(),
        known_alone: vec![Automaton::DEAD; nfa.places.len()],
        lists: Vec::new(),
        gathered: HashTable::new(),
        alone: vec![Automaton::DEAD; nfa.places.len()],
        seen: vec![0; nfa.places.len()],
        round: 0,
        open: Vec::new(),
        closure: Vec::new(),
        accepting: vec![false],
        room,
        steps: room.bytes.saturating_mul(STEPS_PER_BYTE),
    };
    subsets.ends.push(0);
    let start = match nfa.start {
        NOWHERE => Automaton::DEAD,
        start => subsets.closed(&[start])?,
    };
    let count = letters.count();
    let mut next = Vec::new();
    if nfa.places.len() > LARGE_EXPRESSION {
        // In an expression this large, nearly every place becomes a state. Untouched memory costs nothing.
        next.reserve(nfa.places.len().saturating_mul(count).min(room.bytes / 4));
    }
    next.resize(count, Automaton::DEAD);
    let mut after = After {
        places: vec![Vec::new(); count],
        classes: Vec::new(),
    };
    if start == Automaton::DEAD {
        // Nothing can be read, but the start is still a state of its own.
        subsets.ends.push(0);
        subsets.accepting.push(false);
    }
    let mut state = Automaton::START as usize;
    while state < subsets.accepting.len() {
        subsets.gather(state, &classes, &mut after)?;
        let row = next.len();
        next.resize(row + count, Automaton::DEAD);
        for &class in &after.classes {
            let places = &mut after.places[class as usize];
            next[row + class as usize] = subsets.target(places)?;
            places.clear();
        }
        subsets.pay(next.len() * 4)?;
        state += 1;
    }
    // The table is kept, so its spare capacity is released.
    next.shrink_to_fit();
    Ok(Automaton {
        letters,
        next,
        live: start != Automaton::DEAD,
        accepting: subsets.accepting,
    })
}

/// The number of places above which an expression is usually a long list of words.
const LARGE_EXPRESSION: usize = 4096;

/// The places after a state.
struct After {
    /// The places after each class of letters.
    places: Vec<Vec<u32>>,
    /// The classes after which there may be places, in order. Inside words these are few of many.
    classes: Vec<u16>,
}

struct Subsets<'a> {
    nfa: &'a Nfa,
    /// The members of all states: places that read or accept.
    members: Vec<u32>,
    /// The end of each state's members in `members`, with one more entry at the front.
    ends: Vec<usize>,
    /// The states with several members, keyed by these.
    known: HashTable<u32>,
    /// For each place, the state whose only member it is, or `DEAD`.
    known_alone: Vec<u32>,
    /// The lists of places that were gathered before, concatenated.
    lists: Vec<u32>,
    /// The begin and end of each such list, and the state after it.
    gathered: HashTable<(u32, u32, u32)>,
    /// The state after each single place, or `DEAD`: most letters of literals lead to one place.
    alone: Vec<u32>,
    /// The round in which each place was last visited.
    seen: Vec<u32>,
    round: u32,
    /// Buffers for closing a set of places: those to visit, and those found.
    open: Vec<u32>,
    closure: Vec<u32>,
    accepting: Vec<bool>,
    room: Room<'a>,
    /// The remaining steps.
    steps: usize,
}

impl Subsets<'_> {
    /// Collects the places after each class of letters.
    fn gather(&mut self, state: usize, classes: &[Vec<u16>], after: &mut After) -> Result<(), Failure> {
        let members = &self.members[self.ends[state]..self.ends[state + 1]];
        let mut steps = 0;
        after.classes.clear();
        for &member in members {
            if let Place::Read { set, next } = self.nfa.places[member as usize] {
                let classes = &classes[set as usize];
                steps += classes.len();
                for &class in classes {
                    after.places[class as usize].push(next);
                }
                if members.len() == 1 {
                    after.classes.extend(classes);
                }
            }
        }
        if members.len() > 1 {
            after.classes.extend(0..after.places.len() as u16);
        }
        self.work(steps)
    }

    /// Returns the state of these places.
    fn target(&mut self, places: &[u32]) -> Result<u32, Failure> {
        match *places {
            [] => return Ok(Automaton::DEAD),
            [place] => {
                // A target is never the dead state here, since every place has a completion.
                if self.alone[place as usize] == Automaton::DEAD {
                    self.alone[place as usize] = match self.nfa.places[place as usize] {
                        Place::Split { .. } => self.closed(places)?,
                        _ => self.number(places),
                    };
                }
                return Ok(self.alone[place as usize]);
            }
            _ => {}
        }
        let list = |lists: &[u32], &(first, last, _): &(u32, u32, u32)| {
            FxBuildHasher.hash_one(&lists[first as usize..last as usize])
        };
        let hash = FxBuildHasher.hash_one(places);
        let lists = &self.lists;
        let same = |&(first, last, _): &(u32, u32, u32)| lists[first as usize..last as usize] == *places;
        if let Some(&(.., known)) = self.gathered.find(hash, same) {
            return Ok(known);
        }
        let state = self.closed(places)?;
        let first = self.lists.len() as u32;
        self.lists.extend(places);
        let entry = (first, self.lists.len() as u32, state);
        self.gathered
            .insert_unique(hash, entry, |entry| list(&self.lists, entry));
        Ok(state)
    }

    /// Returns the state of all places that these lead to without reading.
    fn closed(&mut self, places: &[u32]) -> Result<u32, Failure> {
        self.round += 1;
        // Allocating new lists for each state would cost more than filling them.
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

    /// Returns the number of the state with these members.
    fn number(&mut self, members: &[u32]) -> u32 {
        match *members {
            [] => Automaton::DEAD,
            // Inside words a state is one place, and an `enum` has hundreds of thousands of them.
            [only] => {
                if self.known_alone[only as usize] == Automaton::DEAD {
                    self.known_alone[only as usize] = self.add(members);
                }
                self.known_alone[only as usize]
            }
            _ => {
                let of = |state: u32| &self.members[self.ends[state as usize]..self.ends[state as usize + 1]];
                let hash = FxBuildHasher.hash_one(members);
                if let Some(&known) = self.known.find(hash, |&state| of(state) == members) {
                    return known;
                }
                let state = self.add(members);
                let of = |state: u32| &self.members[self.ends[state as usize]..self.ends[state as usize + 1]];
                self.known
                    .insert_unique(hash, state, |&state| FxBuildHasher.hash_one(of(state)));
                state
            }
        }
    }

    /// Adds a state.
    fn add(&mut self, members: &[u32]) -> u32 {
        let state = self.accepting.len() as u32;
        let accepts = |&place: &u32| matches!(self.nfa.places[place as usize], Place::Accept);
        self.accepting.push(members.iter().any(accepts));
        self.members.extend(members);
        self.ends.push(self.members.len());
        state
    }

    fn work(&mut self, steps: usize) -> Result<(), Failure> {
        self.steps = self.steps.checked_sub(steps).ok_or(Failure::Limit)?;
        Ok(())
    }

    /// Returns an error if a table of `table` bytes, or the sets, do not fit.
    fn pay(&self, table: usize) -> Result<(), Failure> {
        // The hash tables hold no copies, but the limit counts their entries as if they did.
        let full = table.max((2 * self.members.len() + self.lists.len()) * 4) > self.room.bytes;
        match full || self.room.cancel.is_asked() {
            true => Err(Failure::Limit),
            false => Ok(()),
        }
    }
}
