//! Queries of a compiled grammar without a model: whether a text belongs to it and where it leaves it, what
//! may follow a prefix, and its shortest text.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use lexiform::{Expected, Way};
use lexiform::{Grammar, State};
use serde_json::{Value, json};

/// The number of states that the search for the shortest text may visit.
const LOOKED_AT: usize = 4_096;
/// The maximum number of tokens that an answer lists.
const LISTED_TOKENS: usize = 64;
/// The maximum number of continuations that an answer lists.
const LISTED_WAYS: usize = 32;

/// Checks whether a text belongs to a grammar, and where it leaves the grammar.
pub fn check(grammar: &Grammar, text: &str) -> Value {
    match walk(grammar, text) {
        Err(at) => {
            let before = &text.as_bytes()[..at];
            json!({"valid": false, "complete": false, "at": at, "expected": expected(grammar, before),
                   "message": format!("the text leaves the grammar at byte {at}")})
        }
        Ok(state) if grammar.is_accepting(state) => json!({"valid": true, "complete": true, "at": null}),
        Ok(_) => json!({"valid": false, "complete": false, "at": text.len(),
                        "expected": expected(grammar, text.as_bytes()),
                        "message": "the text is the beginning of one that belongs to the grammar"}),
    }
}

/// Returns the state after a text, or the byte at which it leaves the grammar. Where a mark is allowed, its
/// name is read as the mark.
///
/// # Errors
/// Returns the byte offset if the text leaves the grammar.
pub fn walk(grammar: &Grammar, text: &str) -> Result<State, usize> {
    let vocabulary = grammar.vocabulary();
    let (mut state, mut at) = (grammar.start(), 0);
    while let Some(byte) = text.as_bytes().get(at) {
        let rest = &text.as_bytes()[at..];
        let marks = grammar.specials().iter().copied();
        let mut marks = marks.filter(|mark| rest.starts_with(vocabulary.bytes(*mark)));
        let marked = marks.find_map(|mark| Some((grammar.step(state, mark)?, vocabulary.bytes(mark).len())));
        let (next, length) = match marked.filter(|(_, length)| *length > 0) {
            Some(marked) => marked,
            None => (grammar.step_bytes(state, &[*byte]).ok_or(at)?, 1),
        };
        (state, at) = (next, at + length);
    }
    Ok(state)
}

/// Returns the bytes that may follow, as readable ranges.
fn expected(grammar: &Grammar, before: &[u8]) -> Vec<String> {
    let Some(state) = grammar.step_bytes(grammar.start(), before) else {
        return Vec::new();
    };
    let mut ranges: Vec<(u8, u8)> = Vec::new();
    for byte in 0..=255_u8 {
        if grammar.step_bytes(state, &[byte]).is_none() {
            continue;
        }
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == byte => *last = byte,
            _ => ranges.push((byte, byte)),
        }
    }
    ranges.into_iter().map(range).collect()
}

fn range((first, last): (u8, u8)) -> String {
    match first == last {
        true => one(first),
        false => format!("{}-{}", one(first), one(last)),
    }
}

fn one(byte: u8) -> String {
    if byte.is_ascii_graphic() {
        char::from(byte).to_string()
    } else {
        format!("0x{byte:02x}")
    }
}

/// Returns the tokens and continuations that may follow a prefix.
pub fn mask(grammar: &Grammar, prefix: &str) -> Value {
    let state = match walk(grammar, prefix) {
        Ok(state) => state,
        Err(at) => return json!({"possible": false, "at": at, "allowed": 0, "tokens": []}),
    };
    let vocabulary = grammar.vocabulary();
    let mask = grammar.mask(state);
    let token = |id: u32| {
        let text = String::from_utf8_lossy(vocabulary.bytes(id)).into_owned();
        json!({"id": id, "text": text})
    };
    let ends = grammar.is_accepting(state);
    let tokens = mask.iter().filter(|id| !vocabulary.is_eos(*id));
    json!({
        "possible": true, "complete": ends, "allowed": mask.count(), "vocabulary": vocabulary.len(),
        "forced": String::from_utf8_lossy(&grammar.forced(state)),
        "bytes": expected(grammar, prefix.as_bytes()),
        "ways": ways(grammar, state),
        "tokens": tokens.take(LISTED_TOKENS).map(token).collect::<Vec<_>>(),
    })
}

/// Returns the continuations of a text, each with its kind and its place in the source.
fn ways(grammar: &Grammar, state: State) -> Vec<Value> {
    let way = |way: Way| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (expected, text, begun) = match &way.expected {
            Expected::Text(bytes) => ("text", Some(text(bytes)), None),
            Expected::Bytes => ("bytes", None, None),
            Expected::Word { shortest, begun } => ("word", Some(text(shortest)), Some(*begun)),
            Expected::Key { shortest, begun } => ("key", Some(text(shortest)), Some(*begun)),
            Expected::Special(name) => ("special", Some(name.clone()), None),
        };
        let bytes: Vec<String> = way.bytes.into_iter().map(range).collect();
        json!({"expected": expected, "text": text, "begun": begun, "bytes": bytes, "rules": way.rules})
    };
    let told = grammar.explain(state, LISTED_WAYS);
    told.ways.into_iter().map(way).collect()
}

/// Returns the shortest text of a grammar in bytes, if the search finds one within its bounds; of several,
/// the most readable.
pub fn shortest(grammar: &Grammar) -> Option<String> {
    let mut search = StateSearch::from(grammar.start());
    while let Some((state, text)) = search.nearest() {
        if grammar.is_accepting(state) {
            return String::from_utf8(text).ok();
        }
        // Forced text is on every path, so it is one step.
        let forced = grammar.forced(state);
        if !forced.is_empty() {
            if let Some(next) = grammar.step_bytes(state, &forced) {
                search.reach(next, [text.as_slice(), &forced].concat());
            }
            continue;
        }
        for byte in readable_first() {
            if search.lengths.len() >= LOOKED_AT {
                return None;
            }
            if let Some(next) = grammar.step_bytes(state, &[byte]) {
                search.reach(next, [text.as_slice(), &[byte]].concat());
            }
        }
    }
    None
}

/// A search for states in the order of the number of bytes that lead there.
struct StateSearch {
    /// The entries to visit, by length and then by age, with the index of their state and text.
    queue: BinaryHeap<Reverse<(usize, usize)>>,
    reached: Vec<(State, Vec<u8>)>,
    /// The fewest bytes known to lead to each state.
    lengths: HashMap<State, usize>,
}

impl StateSearch {
    fn from(start: State) -> Self {
        let mut search = Self {
            queue: BinaryHeap::new(),
            reached: Vec::new(),
            lengths: HashMap::new(),
        };
        search.reach(start, Vec::new());
        search
    }

    /// Records a text that leads to a state, unless one as short is known.
    fn reach(&mut self, state: State, text: Vec<u8>) {
        if self.lengths.get(&state).is_some_and(|known| *known <= text.len()) {
            return;
        }
        self.lengths.insert(state, text.len());
        self.queue.push(Reverse((text.len(), self.reached.len())));
        self.reached.push((state, text));
    }

    /// Returns the nearest state that was not visited yet, and the text that leads there.
    fn nearest(&mut self) -> Option<(State, Vec<u8>)> {
        while let Some(Reverse((length, place))) = self.queue.pop() {
            let (state, text) = &mut self.reached[place];
            // A shorter text may have been found since.
            if self.lengths.get(&*state) == Some(&length) {
                return Some((*state, std::mem::take(text)));
            }
        }
        None
    }
}

/// Returns all bytes, the most readable ones first.
fn readable_first() -> impl Iterator<Item = u8> {
    let liked = |byte: &u8| byte.is_ascii_alphanumeric();
    let others = (0..=255_u8).filter(move |byte| !liked(byte));
    (b'a'..=b'z').chain(b'0'..=b'9').chain(b'A'..=b'Z').chain(others)
}
