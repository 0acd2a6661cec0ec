//! Removes look-around of any length by determinising. The result is exact; the automata must stay small.
//!
//! A *thread* is a place in the expression together with its promises: the lookaheads that it has passed and
//! that the rest of the text must, or must not, still match. The progress of a lookahead is a state of a
//! separate machine for its body followed by anything. Lookbehinds need no promises: their machines run in
//! parallel from the beginning of the text, and only their acceptance is tested.
//!
//! ```text
//!   ^a(?!bc).*$     a ─► { place after the lookahead, must not: "bc…" at 0 }
//!                   b ─► { .*, must not: "bc…" at 1 }       x ─► { .* }     it can no longer match
//!                   c ─► { }                                               here it has matched
//! ```
//!
//! The machine is then minimised and turned back into an expression ([`eliminate`](super::eliminate)).

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use foldhash::{HashMap, HashMapExt};
use regex_syntax::hir::{ClassUnicode, Look};

use super::eliminate::{self, Dfa};
use super::error::RegexError;
use super::language::Language;
use super::look;
use super::node::{Node, Test};

/// The most kinds of characters.
const KINDS: usize = 64;
/// The most places of an expression after its counts are unrolled.
const PLACES: usize = 20_000;
/// The most states of one machine.
const STATES: usize = 1_000;
/// The most threads that are followed in total. Threads dominate the memory of a compilation here, so one
/// with many promises counts as several.
const THREADS: usize = 200_000;
/// The number of promises that weigh as much as another thread.
const PROMISES: usize = 8;

/// Returns the language of the texts that `node` matches as a whole.
pub(crate) fn language(node: &Node) -> Result<Language, RegexError> {
    let mut sets = Vec::new();
    look::distinctions(node, &mut sets);
    look::read_sets(node, &mut sets);
    let alphabet = Rc::new(Alphabet {
        kinds: look::kinds(&sets, KINDS)?,
        work: Cell::new(0),
    });
    let mut machine = Machine::new(node, &alphabet, Role::Whole)?;
    let dfa = machine.explore()?;
    Ok(eliminate::expression(&dfa, &alphabet.kinds))
}

fn too_large() -> RegexError {
    RegexError::limit("the automaton for the look-around is too large")
}

struct Alphabet {
    kinds: Vec<ClassUnicode>,
    /// The weight of the threads followed so far, by all machines.
    work: Cell<usize>,
}

impl Alphabet {
    /// Counts a thread that is followed.
    fn follow(&self, thread: &Thread) -> Result<(), RegexError> {
        let work = self.work.get() + 1 + thread.promises.len() / PROMISES;
        self.work.set(work);
        if work > THREADS { Err(too_large()) } else { Ok(()) }
    }

    /// Returns the edge of the text, as one more kind.
    fn edge(&self) -> usize {
        self.kinds.len()
    }

    /// Returns some character of a kind, or `None` for the edge.
    fn sample(&self, kind: usize) -> Option<char> {
        self.kinds
            .get(kind)
            .and_then(|set| set.ranges().first())
            .map(|range| range.start())
    }
}

/// The step at a place of an expression.
enum PlaceStep {
    Split(Vec<usize>),
    Read(ClassUnicode, usize),
    Look(Look, usize),
    Test(Test, usize),
    Ahead(usize, usize),
    Behind(usize, usize),
    Accept,
}

/// The role of a machine.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// Recognises whole texts.
    Whole,
    /// Recognises a lookahead, from any place; accepts once its expression has matched.
    Ahead,
    /// Recognises a lookbehind, from the beginning; accepts where its expression has just matched.
    Behind,
}

struct Child {
    machine: Machine,
    negative: bool,
    ahead: bool,
}

/// A child, and the state of its machine.
type Promise = (usize, u32);

/// A place, and the promises made on the path to it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Thread {
    place: usize,
    promises: Vec<Promise>,
}

/// A state of a machine.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Snapshot {
    before: usize,
    behinds: Vec<u32>,
    threads: Vec<Thread>,
}

/// The outcome of a state, as far as it is known.
#[derive(PartialEq)]
enum StateVerdict {
    Never,
    Always,
    Open,
}

struct Machine {
    alphabet: Rc<Alphabet>,
    steps: Vec<PlaceStep>,
    children: Vec<Child>,
    start: usize,
    /// The place that reads anything and accepts.
    rest: Option<usize>,
    role: Role,
    snapshots: Vec<Snapshot>,
    known: HashMap<Snapshot, u32>,
    moves: HashMap<(u32, usize), u32>,
}

impl Machine {
    fn new(node: &Node, alphabet: &Rc<Alphabet>, role: Role) -> Result<Self, RegexError> {
        let mut machine = Machine {
            alphabet: alphabet.clone(),
            steps: vec![PlaceStep::Accept],
            children: Vec::new(),
            start: 0,
            rest: None,
            role,
            snapshots: Vec::new(),
            known: HashMap::new(),
            moves: HashMap::new(),
        };
        let mut end = 0;
        if role == Role::Ahead {
            end = machine.place(&Node::anything(), 0)?;
            machine.rest = Some(end);
        }
        let mut start = machine.place(node, end)?;
        if role == Role::Behind {
            start = machine.place(&Node::anything(), start)?;
        }
        machine.start = start;
        Ok(machine)
    }

    fn add(&mut self, step: PlaceStep) -> Result<usize, RegexError> {
        if self.steps.len() >= PLACES {
            return Err(too_large());
        }
        self.steps.push(step);
        Ok(self.steps.len() - 1)
    }

    /// Adds the places of `node` before `next`, and returns the first one.
    fn place(&mut self, node: &Node, next: usize) -> Result<usize, RegexError> {
        match node {
            Node::Empty => Ok(next),
            Node::Set(set) => self.add(PlaceStep::Read(set.clone(), next)),
            Node::Look(look) => self.add(PlaceStep::Look(*look, next)),
            Node::Test(test) => self.add(PlaceStep::Test(test.clone(), next)),
            Node::Concat(parts) => parts
                .iter()
                .rev()
                .try_fold(next, |next, part| self.place(part, next)),
            Node::Alt(parts) => {
                let starts: Result<Vec<_>, _> = parts.iter().map(|part| self.place(part, next)).collect();
                self.add(PlaceStep::Split(starts?))
            }
            Node::Repeat { body, min, max } => self.place_repeat(body, *min, *max, next),
            Node::Around(around) => {
                let role = if around.ahead { Role::Ahead } else { Role::Behind };
                let machine = Machine::new(&around.body, &self.alphabet, role)?;
                // A lookbehind runs from the beginning of the text, which the machine of a lookahead has not
                // seen.
                if self.role != Role::Whole && self.role != role {
                    let message = "a lookahead inside a lookbehind, or the reverse, is not supported";
                    return Err(RegexError::unsupported(around.column, message));
                }
                self.children.push(Child {
                    machine,
                    negative: around.negative,
                    ahead: around.ahead,
                });
                let child = self.children.len() - 1;
                self.add(if around.ahead {
                    PlaceStep::Ahead(child, next)
                } else {
                    PlaceStep::Behind(child, next)
                })
            }
        }
    }

    fn place_repeat(
        &mut self,
        body: &Node,
        min: u32,
        max: Option<u32>,
        next: usize,
    ) -> Result<usize, RegexError> {
        let mut at = next;
        match max {
            None => {
                at = self.add(PlaceStep::Split(vec![next]))?;
                let again = self.place(body, at)?;
                self.steps[at] = PlaceStep::Split(vec![again, next]);
            }
            Some(max) => {
                for _ in min..max {
                    let body = self.place(body, at)?;
                    at = self.add(PlaceStep::Split(vec![body, next]))?;
                }
            }
        }
        (0..min).try_fold(at, |at, _| self.place(body, at))
    }

    fn intern(&mut self, mut snapshot: Snapshot) -> Result<u32, RegexError> {
        prune(&mut snapshot.threads);
        let decided = self.rest.is_some_and(|rest| {
            snapshot
                .threads
                .iter()
                .any(|thread| thread.place == rest && thread.promises.is_empty())
        });
        if decided {
            snapshot
                .threads
                .retain(|thread| Some(thread.place) == self.rest && thread.promises.is_empty());
        }
        if decided || snapshot.threads.is_empty() {
            // The characters before no longer matter; forgetting them keeps the number of states small.
            (snapshot.before, snapshot.behinds) = (0, Vec::new());
        }
        if let Some(&id) = self.known.get(&snapshot) {
            return Ok(id);
        }
        if self.snapshots.len() >= STATES {
            return Err(too_large());
        }
        let id = self.snapshots.len() as u32;
        self.snapshots.push(snapshot.clone());
        self.known.insert(snapshot, id);
        Ok(id)
    }

    fn verdict(&self, id: u32) -> StateVerdict {
        match self.snapshots[id as usize].threads.as_slice() {
            [] => StateVerdict::Never,
            [only] if Some(only.place) == self.rest && only.promises.is_empty() => StateVerdict::Always,
            _ => StateVerdict::Open,
        }
    }

    /// Returns the initial state at a place of the text after a character of this kind.
    fn initial(&mut self, before: usize) -> Result<u32, RegexError> {
        let edge = self.alphabet.edge();
        let mut behinds = Vec::new();
        for child in &mut self.children {
            behinds.push(if child.ahead {
                0
            } else {
                child.machine.initial(edge)?
            });
        }
        let threads = vec![Thread {
            place: self.start,
            promises: Vec::new(),
        }];
        self.intern(Snapshot {
            before,
            behinds,
            threads,
        })
    }

    /// Returns the threads that read a character or accept, when the next character is of this kind.
    fn closed(&mut self, id: u32, next: usize) -> Result<Vec<Thread>, RegexError> {
        let Snapshot {
            before,
            behinds,
            threads,
        } = self.snapshots[id as usize].clone();
        let (left, right) = (self.alphabet.sample(before), self.alphabet.sample(next));
        let mut seen: BTreeSet<Thread> = BTreeSet::new();
        let mut stack = threads;
        let mut waiting = Vec::new();
        while let Some(thread) = stack.pop() {
            if !seen.insert(thread.clone()) {
                continue;
            }
            self.alphabet.follow(&thread)?;
            let at = |place: usize| Thread {
                place,
                promises: thread.promises.clone(),
            };
            match &self.steps[thread.place] {
                PlaceStep::Read(..) | PlaceStep::Accept => waiting.push(thread),
                PlaceStep::Split(places) => stack.extend(places.iter().map(|&place| at(place))),
                PlaceStep::Look(look, place) if look::holds(*look, left, right) => stack.push(at(*place)),
                PlaceStep::Test(test, place) if look::passes(test, left, right) => stack.push(at(*place)),
                PlaceStep::Look(..) | PlaceStep::Test(..) => {}
                &PlaceStep::Behind(child, place) => {
                    let state = behinds[child];
                    let child = &mut self.children[child];
                    if child.machine.accepts(state, next)? != child.negative {
                        stack.push(at(place));
                    }
                }
                &PlaceStep::Ahead(child, place) => {
                    let state = self.children[child].machine.initial(before)?;
                    let mut thread = at(place);
                    if !thread.promises.contains(&(child, state)) {
                        thread.promises.push((child, state));
                        thread.promises.sort_unstable();
                    }
                    stack.push(thread);
                }
            }
        }
        Ok(waiting)
    }

    /// Returns the state after one more character of this kind.
    fn step(&mut self, id: u32, kind: usize) -> Result<u32, RegexError> {
        if let Some(&known) = self.moves.get(&(id, kind)) {
            return Ok(known);
        }
        let sample = self.alphabet.sample(kind);
        let mut threads = Vec::new();
        for thread in self.closed(id, kind)? {
            let PlaceStep::Read(set, place) = &self.steps[thread.place] else {
                continue;
            };
            let (reads, place) = (look::contains(set, sample), *place);
            if reads && let Some(promises) = self.kept(&thread.promises, kind)? {
                threads.push(Thread { place, promises });
            }
        }
        let mut behinds = self.snapshots[id as usize].behinds.clone();
        for (state, child) in behinds.iter_mut().zip(&mut self.children) {
            if !child.ahead {
                *state = child.machine.step(*state, kind)?;
            }
        }
        let to = self.intern(Snapshot {
            before: kind,
            behinds,
            threads,
        })?;
        self.moves.insert((id, kind), to);
        Ok(to)
    }

    /// Returns the promises that are still open after one more character, or `None` if one is broken.
    fn kept(&mut self, promises: &[Promise], kind: usize) -> Result<Option<Vec<Promise>>, RegexError> {
        let mut open = Vec::new();
        for &(child, state) in promises {
            let Child {
                machine, negative, ..
            } = &mut self.children[child];
            let state = machine.step(state, kind)?;
            match machine.verdict(state) {
                StateVerdict::Open => open.push((child, state)),
                StateVerdict::Never if *negative => {}
                StateVerdict::Always if !*negative => {}
                StateVerdict::Never | StateVerdict::Always => return Ok(None),
            }
        }
        open.sort_unstable();
        open.dedup();
        Ok(Some(open))
    }

    /// Checks whether a state accepts before a character of this kind.
    fn accepts(&mut self, id: u32, next: usize) -> Result<bool, RegexError> {
        'threads: for thread in self.closed(id, next)? {
            if !matches!(self.steps[thread.place], PlaceStep::Accept) {
                continue;
            }
            for (child, state) in thread.promises {
                let Child {
                    machine, negative, ..
                } = &mut self.children[child];
                if machine.accepts(state, next)? == *negative {
                    continue 'threads;
                }
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Builds the automaton of all states that are reachable from the beginning of the text.
    fn explore(&mut self) -> Result<Dfa, RegexError> {
        let edge = self.alphabet.edge();
        let first = self.initial(edge)?;
        let (mut moves, mut accepting) = (Vec::new(), Vec::new());
        let mut id = first;
        while (id as usize) < self.snapshots.len() {
            let row: Result<Vec<_>, _> = (0..edge).map(|kind| self.step(id, kind)).collect();
            moves.push(row?.into_iter().map(|to| to as usize).collect());
            accepting.push(self.accepts(id, edge)?);
            id += 1;
        }
        Ok(Dfa { moves, accepting })
    }
}

/// Drops threads whose promises include all promises of another thread at the same place.
fn prune(threads: &mut Vec<Thread>) {
    threads.sort_unstable_by_key(|thread| (thread.place, thread.promises.len()));
    let mut kept: Vec<Thread> = Vec::new();
    for thread in threads.drain(..) {
        let same_place = kept.iter().rev().take_while(|known| known.place == thread.place);
        let asks_no_less = |known: &Thread| {
            known
                .promises
                .iter()
                .all(|promise| thread.promises.contains(promise))
        };
        if !same_place.into_iter().any(asks_no_less) {
            kept.push(thread);
        }
    }
    kept.sort_unstable();
    *threads = kept;
}
