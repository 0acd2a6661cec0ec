//! A suffix automaton over past answers.
//!
//! ```text
//!   answers  a b c $ x b c d      automaton: a state for each set of places that the same tokens lead to
//!   text     … b c                the longest suffix that occurs: "b c", after which came $ and d
//! ```

use super::{Candidate, Context, Predictor};
use crate::draft::Origin;
use foldhash::HashMap;
use smallvec::SmallVec;

/// The most tokens of a text that are matched.
const LONGEST_MATCH: usize = 32;
/// Shorter matches are mostly chance.
const SHORTEST_MATCH: u32 = 2;
/// The number of suffix links along which occurrences are counted, a bound on the time of a token.
const COUNTED: usize = 16;
/// The approximate bytes of a token: at most two states, three edges, and the spare capacity of the vectors.
const TOKEN_BYTES: usize = 2 * (2 * size_of::<SuffixNode>() + 3 * size_of::<(u32, u32)>());

/// The number of the first state.
const ROOT: u32 = 0;

#[derive(Clone, Debug, Default)]
struct SuffixNode {
    /// The state of the longest suffix that occurs at other places.
    link: u32,
    /// The length of the longest text that leads here.
    length: u32,
    /// The approximate number of its occurrences.
    count: u32,
    next: SmallVec<[(u32, u32); 1]>,
}

/// The suffix automaton of several texts (Blumer et al. 1985), growing token by token.
#[derive(Clone, Debug)]
struct Automaton {
    nodes: Vec<SuffixNode>,
    /// The edges of the root, of which there are many.
    first: HashMap<u32, u32>,
    tokens: usize,
}

impl Automaton {
    fn new() -> Automaton {
        Automaton {
            nodes: vec![SuffixNode::default()],
            first: HashMap::default(),
            tokens: 0,
        }
    }

    fn edge(&self, from: u32, token: u32) -> Option<u32> {
        if from == ROOT {
            return self.first.get(&token).copied();
        }
        let mut edges = self.nodes[from as usize].next.iter();
        edges.find(|(known, _)| *known == token).map(|&(_, to)| to)
    }

    fn set_edge(&mut self, from: u32, token: u32, to: u32) {
        if from == ROOT {
            self.first.insert(token, to);
            return;
        }
        let edges = &mut self.nodes[from as usize].next;
        match edges.iter_mut().find(|(known, _)| *known == token) {
            Some((_, known)) => *known = to,
            None => edges.push((token, to)),
        }
    }

    fn add_node(&mut self, node: SuffixNode) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    fn add(&mut self, text: &[u32]) {
        let mut last = ROOT;
        for &token in text {
            last = self.append(last, token);
            self.count(last);
        }
        self.tokens += text.len();
    }

    /// Appends a token and returns the new state.
    fn append(&mut self, last: u32, token: u32) -> u32 {
        let length = self.nodes[last as usize].length + 1;
        if let Some(known) = self.edge(last, token) {
            // The text so far occurs in an earlier one.
            return self.split(last, token, known);
        }
        let state = self.add_node(SuffixNode {
            length,
            ..SuffixNode::default()
        });
        let mut at = last;
        loop {
            match self.edge(at, token) {
                None => self.set_edge(at, token, state),
                Some(known) => {
                    self.nodes[state as usize].link = self.split(at, token, known);
                    return state;
                }
            }
            if at == ROOT {
                return state;
            }
            at = self.nodes[at as usize].link;
        }
    }

    /// Returns the state of the longest text that leads to `from`, extended by the token after it: `known`,
    /// or a part of it.
    fn split(&mut self, from: u32, token: u32, known: u32) -> u32 {
        let length = self.nodes[from as usize].length + 1;
        if self.nodes[known as usize].length == length {
            return known;
        }
        let part = self.add_node(SuffixNode {
            length,
            ..self.nodes[known as usize].clone()
        });
        self.nodes[known as usize].link = part;
        let mut at = from;
        while self.edge(at, token) == Some(known) {
            self.set_edge(at, token, part);
            if at == ROOT {
                break;
            }
            at = self.nodes[at as usize].link;
        }
        part
    }

    fn count(&mut self, state: u32) {
        let mut at = state;
        for _ in 0..COUNTED {
            if at == ROOT {
                return;
            }
            let node = &mut self.nodes[at as usize];
            node.count = node.count.saturating_add(1);
            at = node.link;
        }
    }

    /// Returns the state of the longest suffix that occurs, and its length.
    fn longest(&self, text: impl Iterator<Item = u32>) -> (u32, u32) {
        let (mut at, mut length) = (ROOT, 0);
        for token in text {
            loop {
                if let Some(next) = self.edge(at, token) {
                    (at, length) = (next, length + 1);
                    break;
                }
                if at == ROOT {
                    break;
                }
                at = self.nodes[at as usize].link;
                length = self.nodes[at as usize].length;
            }
        }
        (at, length)
    }
}

/// The tokens that followed the longest suffix of the text in past answers (SAM-Decoding, [Hu et al.
/// 2024](https://arxiv.org/abs/2411.10666); with counts as in SuffixDecoding, [Oliaro et al.
/// 2024](https://arxiv.org/abs/2411.04975)).
///
/// Answers are added when they end. Once they take half of the bytes, a second automaton is begun and the one
/// before the last is dropped: so between half and all of what fits is kept, always including the latest
/// answers.
#[derive(Clone, Debug)]
pub struct Suffixes {
    now: Automaton,
    before: Automaton,
    /// The most tokens of one automaton.
    most: usize,
}

impl Suffixes {
    /// Creates an empty store of at most `bytes` bytes.
    pub fn new(bytes: usize) -> Suffixes {
        Suffixes {
            now: Automaton::new(),
            before: Automaton::new(),
            most: bytes / 2 / TOKEN_BYTES,
        }
    }
}

impl Predictor for Suffixes {
    fn predict(&self, at: &Context<'_>, found: &mut Vec<Candidate>) {
        let mut text: Vec<u32> = at.back().take(LONGEST_MATCH).collect();
        text.reverse();
        let look = |automaton: &Automaton| automaton.longest(text.iter().copied());
        let (now, before) = (look(&self.now), look(&self.before));
        let (automaton, (state, length)) = match now.1 >= before.1 {
            true => (&self.now, now),
            false => (&self.before, before),
        };
        if length < SHORTEST_MATCH {
            return;
        }
        let next = &automaton.nodes[state as usize].next;
        let count = |to: u32| automaton.nodes[to as usize].count.max(1) as f32;
        let all: f32 = next.iter().map(|&(_, to)| count(to)).sum();
        // The longer the match, the smaller the chance of a token that is not known.
        let known = length as f32 / (length as f32 + 1.0);
        let candidate = |&(token, to): &(u32, u32)| Candidate {
            token,
            chance: known * count(to) / all,
            origin: Origin::Suffix,
        };
        let begin = found.len();
        found.extend(next.iter().map(candidate));
        found[begin..].sort_by(|one, other| other.chance.total_cmp(&one.chance));
    }

    fn record(&mut self, answer: &[u32]) {
        let answer = &answer[answer.len().saturating_sub(self.most)..];
        if self.now.tokens + answer.len() > self.most {
            self.before = std::mem::replace(&mut self.now, Automaton::new());
        }
        self.now.add(answer);
    }

    fn bytes(&self) -> usize {
        (self.now.tokens + self.before.tokens) * TOKEN_BYTES
    }
}
