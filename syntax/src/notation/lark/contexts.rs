//! Finds which words may begin at the same place, and gives each text to one of them.
//!
//! The lark parser and llguidance split a text into words before they parse it, and decide between the
//! words that the parser could take. Where a name and a keyword may begin, a text that is both is the
//! keyword. Where a lazy word may begin, it ends as soon as it can, so no other word goes on over its end:
//!
//! ```text
//!   stmt: "if" expr | NAME "=" expr      NAME here: all names but `if`
//!   start: call* TEXT                    TEXT here: all texts in which no head ends
//!   head[lazy]: TEXT "<call>"
//! ```
//!
//! The places are the states of an LR(0) automaton over the rules, together with those that its reductions
//! lead to without reading a word. That is what an LALR parser knows at a place, so words exclude each other
//! where the contextual lexer of the lark parser would decide between them. Where words end,
//! [`longest`](super::longest) finds.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::items::is_terminal;
use super::reading::Dialect;
use super::words::matches_whole;
use crate::notation::tree::{Definition, Ending, Node, NodeKind};
use lexiform_automata::limits::Limits;

/// The most states of the automaton, the most nodes of all states together, and the most steps to find where
/// its reductions lead and which words begin there.
const MOST_STATES: usize = 20_000;
const MOST_NODES: usize = 2_000_000;
const MOST_STEPS: usize = 4_000_000;
/// The most pairs of words of which one may be the beginning of the other.
const MOST_PAIRS: usize = 1 << 20;

/// Returns `true` if a part of a rule is a word, and not made of words.
pub(super) fn is_word(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Name(name) => is_terminal(name),
        NodeKind::Text(text) => !text.is_empty(),
        NodeKind::Seq(_) | NodeKind::Choice(_) | NodeKind::Repeat(..) | NodeKind::TooDeep => false,
        _ => true,
    }
}

/// A word of a rule.
#[derive(Debug)]
pub(super) struct WordUse {
    /// Equal for words that are the same wherever they stand.
    pub(super) symbol: usize,
    /// The text, if the word is one.
    pub(super) text: Option<String>,
    /// `true` if the letters of the text may be in either case.
    is_any_case: bool,
    pub(super) node: Node,
}

impl WordUse {
    /// Returns an ignored text as a word that is no other.
    pub(super) fn ignored(node: Node) -> WordUse {
        WordUse {
            symbol: usize::MAX,
            text: None,
            is_any_case: false,
            node,
        }
    }

    /// Returns `true` if the word takes texts from others.
    fn is_rival(&self, dialect: Dialect) -> bool {
        match dialect {
            Dialect::Lark => self.text.is_some(),
            Dialect::Llguidance => self.is_lazy(),
        }
    }

    /// Returns `true` if texts can be taken from the word.
    fn may_lose(&self, dialect: Dialect) -> bool {
        is_regular(&self.node) && (dialect == Dialect::Llguidance || self.text.is_none())
    }

    fn is_lazy(&self) -> bool {
        matches!(self.node.kind, NodeKind::Word(_, Ending::Soonest))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    Empty,
    Word(usize),
    Call(usize),
}

/// The rules as automata over words and calls.
#[derive(Debug, Default)]
pub(super) struct Graph {
    edges: Vec<Vec<(Edge, usize)>>,
    /// The nodes at which each definition begins and ends; terminals have none.
    ends: Vec<Option<(usize, usize)>>,
    pub(super) names: HashMap<String, usize>,
    pub(super) words: Vec<WordUse>,
    /// The steps that were taken to compare words.
    pub(super) steps: Cell<usize>,
    /// The first use of each symbol.
    firsts: Vec<usize>,
}

/// A state of the automaton: nodes of the graph.
type Nodes = Box<[usize]>;

impl Graph {
    pub(super) fn new(definitions: &[Definition]) -> Graph {
        let mut graph = Graph::default();
        for (index, definition) in definitions.iter().enumerate() {
            graph.names.entry(definition.name.clone()).or_insert(index);
        }
        let mut symbols = HashMap::new();
        for definition in definitions {
            let is_rule = !is_terminal(&definition.name);
            let ends = is_rule.then(|| (graph.node(), graph.node()));
            graph.ends.push(ends);
            if let Some((from, to)) = ends {
                graph.part(&definition.body, from, to, (definitions, &mut symbols));
            }
        }
        graph
    }

    fn node(&mut self) -> usize {
        self.edges.push(Vec::new());
        self.edges.len() - 1
    }

    /// Adds a part between two nodes. Recurses as deep as the part nests.
    fn part(
        &mut self,
        part: &Node,
        from: usize,
        to: usize,
        (definitions, symbols): (&[Definition], &mut HashMap<String, usize>),
    ) {
        if is_word(part) {
            let word = self.word(part, definitions, symbols);
            self.edges[from].push((Edge::Word(word), to));
            return;
        }
        match &part.kind {
            NodeKind::Seq(parts) => {
                let mut at = from;
                for part in parts {
                    let next = self.node();
                    self.part(part, at, next, (definitions, symbols));
                    at = next;
                }
                self.edges[at].push((Edge::Empty, to));
            }
            NodeKind::Choice(parts) => {
                for part in parts {
                    self.part(part, from, to, (definitions, symbols));
                }
            }
            NodeKind::Repeat(body, min, max) => {
                let (inner, after) = (self.node(), self.node());
                self.edges[from].push((Edge::Empty, inner));
                self.part(body, inner, after, (definitions, symbols));
                self.edges[after].push((Edge::Empty, to));
                if *max != Some(1) {
                    self.edges[after].push((Edge::Empty, inner));
                }
                if *min == 0 {
                    self.edges[from].push((Edge::Empty, to));
                }
            }
            NodeKind::Name(name) => {
                if let Some(&callee) = self.names.get(name) {
                    self.edges[from].push((Edge::Call(callee), to));
                }
            }
            _ => self.edges[from].push((Edge::Empty, to)),
        }
    }

    fn word(
        &mut self,
        node: &Node,
        definitions: &[Definition],
        symbols: &mut HashMap<String, usize>,
    ) -> usize {
        let word = self.words.len();
        let (key, text) = match &node.kind {
            NodeKind::Text(text) => (format!("text {text}"), Some((text.clone(), false))),
            NodeKind::AnyCase(text) => (format!("any case {text}"), Some((text.clone(), true))),
            NodeKind::Name(name) => {
                let body = self.names.get(name).map(|&at| &definitions[at].body);
                let text = body.and_then(fixed_text);
                // A terminal that is a text is that text.
                let key = match &text {
                    Some((text, true)) => format!("any case {text}"),
                    Some((text, false)) => format!("text {text}"),
                    None => format!("name {name}"),
                };
                (key, text)
            }
            _ => (format!("use {word}"), None),
        };
        let is_any_case = text.as_ref().is_some_and(|(_, is_any_case)| *is_any_case);
        let text = text.map(|(text, _)| text);
        let new = symbols.len();
        let symbol = *symbols.entry(key).or_insert(new);
        if symbol == new {
            self.firsts.push(word);
        }
        self.words.push(WordUse {
            symbol,
            text,
            is_any_case,
            node: node.clone(),
        });
        word
    }

    pub(super) fn has_rivals(&self, dialect: Dialect) -> bool {
        let mut rivals = self.words.iter().map(|word| word.is_rival(dialect));
        rivals.any(|is_rival| is_rival) && self.words.iter().any(|word| word.text.is_none())
    }

    /// Returns the words that take texts from each word, or `None` if there are too many.
    pub(super) fn beaten_by(
        &self,
        contexts: &[Vec<usize>],
        dialect: Dialect,
    ) -> Option<Vec<BTreeSet<usize>>> {
        let mut beaten_by: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.words.len()];
        let mut steps = 0;
        for context in contexts {
            let rivals = context.iter().copied();
            let rivals: Vec<usize> = rivals
                .filter(|&word| self.words[word].is_rival(dialect))
                .collect();
            let takers = context.iter().filter(|&&word| self.words[word].may_lose(dialect));
            for &word in takers {
                steps += rivals.len();
                if steps > MOST_STEPS {
                    return None;
                }
                let symbol = self.words[word].symbol;
                let others = rivals.iter().filter(|&&rival| self.words[rival].symbol != symbol);
                beaten_by[word].extend(others);
            }
        }
        Some(beaten_by)
    }

    /// Returns, for each word, the symbols of the words that may begin at every place where it may; none if
    /// there are too many words to compare all with each other.
    pub(super) fn everywhere(&self, contexts: &[Vec<usize>]) -> Vec<Vec<u64>> {
        let symbols = self.words.iter().map(|word| word.symbol + 1).max().unwrap_or(0);
        if self.words.len().saturating_mul(symbols) > MOST_PAIRS {
            return vec![Vec::new(); self.words.len()];
        }
        let mut everywhere: Vec<Option<Vec<u64>>> = vec![None; self.words.len()];
        for context in contexts {
            let mut here = vec![0u64; symbols.div_ceil(64)];
            for &word in context {
                let symbol = self.words[word].symbol;
                here[symbol / 64] |= 1 << (symbol % 64);
            }
            for &word in context {
                match &mut everywhere[word] {
                    None => everywhere[word] = Some(here.clone()),
                    Some(common) => common
                        .iter_mut()
                        .zip(&here)
                        .for_each(|(common, here)| *common &= here),
                }
            }
        }
        everywhere.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Returns a use of each word with one of these symbols.
    pub(super) fn rivals(&self, symbols: &[u64]) -> Vec<&WordUse> {
        let is_held = |symbol: usize| {
            symbols
                .get(symbol / 64)
                .is_some_and(|word| word >> (symbol % 64) & 1 == 1)
        };
        let held = self
            .firsts
            .iter()
            .enumerate()
            .filter(|&(symbol, _)| is_held(symbol));
        held.map(|(_, &word)| &self.words[word]).collect()
    }

    /// Returns what a word must not be.
    pub(super) fn exceptions(
        &self,
        word: usize,
        rivals: &BTreeSet<usize>,
        dialect: Dialect,
        definitions: &[Definition],
    ) -> Vec<Node> {
        let this = &self.words[word];
        let at = this.node.at;
        match dialect {
            Dialect::Lark => {
                let rivals = rivals.iter().map(|&it| &self.words[it]);
                let texts = rivals.filter_map(|it| Some((it.text.as_deref()?, it.is_any_case)));
                let texts: BTreeSet<(&str, bool)> = texts.collect();
                // A text in any letter case takes all of its spellings, if it is a word as it is written.
                let taken = texts.into_iter().filter(|(text, _)| {
                    matches_whole(&this.node, text, definitions, &self.names, &self.steps).unwrap_or(true)
                });
                let taken = taken.map(|(text, is_any_case)| match is_any_case {
                    true => Node::leaf(at, NodeKind::AnyCase(text.to_owned())),
                    false => Node::text(at, text),
                });
                let taken: Vec<Node> = taken.collect();
                match taken.is_empty() {
                    true => Vec::new(),
                    false => vec![Node::choice(at, taken).not(at)],
                }
            }
            Dialect::Llguidance => {
                let bodies = rivals
                    .iter()
                    .filter_map(|&rival| match &self.words[rival].node.kind {
                        NodeKind::Word(body, Ending::Soonest) => Some(body),
                        _ => None,
                    });
                let longer = bodies.map(|body| {
                    // Two lazy words may end at the same place.
                    let more = anything(at).repeat(u32::from(this.is_lazy()), None, at);
                    Node::seq(at, vec![Node::clone(body), more]).not(at)
                });
                longer.collect()
            }
        }
    }

    /// Returns the words that may begin at each place, or `None` if there are too many places.
    pub(super) fn contexts(&self, start: &str, limits: &Limits) -> Option<Vec<Vec<usize>>> {
        let mut automaton = Automaton::new(self, *self.names.get(start)?)?;
        automaton.explore(limits)?;
        automaton.find_reductions(limits)?;
        automaton.contexts()
    }
}

/// Returns the text of a terminal that is one, and whether its letters may be in either case.
fn fixed_text(body: &Node) -> Option<(String, bool)> {
    match &body.kind {
        NodeKind::Text(text) => Some((text.clone(), false)),
        NodeKind::AnyCase(text) => Some((text.clone(), true)),
        NodeKind::Word(body, Ending::AsWritten) => fixed_text(body),
        _ => None,
    }
}

/// Returns `true` if a word is a regular language, of which a part can be taken away.
fn is_regular(word: &Node) -> bool {
    !matches!(
        word.kind,
        NodeKind::Special(_) | NodeKind::Tokens(_) | NodeKind::Grammar(_)
    )
}

pub(super) fn anything(at: usize) -> Node {
    super::parser::set(at, '\0', char::MAX)
}

/// The LR(0) automaton of a graph.
struct Automaton<'a> {
    graph: &'a Graph,
    states: Vec<Nodes>,
    known: HashMap<Nodes, usize>,
    /// The state after a word's symbol, or after a rule.
    after_word: Vec<BTreeMap<usize, usize>>,
    after_rule: Vec<BTreeMap<usize, usize>>,
    /// The states that each state leads to by reductions alone.
    reductions: Vec<BTreeSet<usize>>,
    /// The number of nodes of all states.
    nodes: usize,
}

impl<'a> Automaton<'a> {
    fn new(graph: &'a Graph, start: usize) -> Option<Automaton<'a>> {
        let (first, _) = graph.ends[start]?;
        let mut automaton = Automaton {
            graph,
            states: Vec::new(),
            known: HashMap::new(),
            after_word: Vec::new(),
            after_rule: Vec::new(),
            reductions: Vec::new(),
            nodes: 0,
        };
        automaton.state(vec![first]);
        Some(automaton)
    }

    /// Returns the state of these nodes and all that they lead to without reading a word.
    fn state(&mut self, kernel: Vec<usize>) -> usize {
        let nodes = self.closure(kernel);
        if let Some(&known) = self.known.get(&nodes) {
            return known;
        }
        let new = self.states.len();
        self.nodes += nodes.len();
        self.known.insert(nodes.clone(), new);
        self.states.push(nodes);
        self.after_word.push(BTreeMap::new());
        self.after_rule.push(BTreeMap::new());
        self.reductions.push(BTreeSet::new());
        new
    }

    fn closure(&self, kernel: Vec<usize>) -> Nodes {
        let mut seen: BTreeSet<usize> = kernel.iter().copied().collect();
        let mut open = kernel;
        while let Some(node) = open.pop() {
            for &(edge, to) in &self.graph.edges[node] {
                let next = match edge {
                    Edge::Empty => Some(to),
                    Edge::Call(rule) => self.graph.ends[rule].map(|(first, _)| first),
                    Edge::Word(_) => None,
                };
                open.extend(next.filter(|&next| seen.insert(next)));
            }
        }
        seen.into_iter().collect()
    }

    fn is_too_large(&self) -> bool {
        self.states.len() > MOST_STATES || self.nodes > MOST_NODES
    }

    fn explore(&mut self, limits: &Limits) -> Option<()> {
        let mut at = 0;
        while at < self.states.len() {
            if self.is_too_large() || limits.cancel.is_asked() {
                return None;
            }
            let (mut words, mut rules) = (BTreeMap::new(), BTreeMap::new());
            for &node in &self.states[at] {
                for &(edge, to) in &self.graph.edges[node] {
                    match edge {
                        Edge::Word(word) => {
                            let symbol = self.graph.words[word].symbol;
                            words.entry(symbol).or_insert_with(Vec::new).push(to);
                        }
                        Edge::Call(rule) => rules.entry(rule).or_insert_with(Vec::new).push(to),
                        Edge::Empty => {}
                    }
                }
            }
            for (symbol, kernel) in words {
                let next = self.state(kernel);
                self.after_word[at].insert(symbol, next);
                if self.is_too_large() {
                    return None;
                }
            }
            for (rule, kernel) in rules {
                let next = self.state(kernel);
                self.after_rule[at].insert(rule, next);
                if self.is_too_large() {
                    return None;
                }
            }
            at += 1;
        }
        Some(())
    }

    /// Finds, for each rule that is called at a state, the states at which it ends: from there a reduction
    /// leads to the state after the rule.
    fn find_reductions(&mut self, limits: &Limits) -> Option<()> {
        let mut steps = 0;
        for called_at in 0..self.states.len() {
            if limits.cancel.is_asked() {
                return None;
            }
            let calls: Vec<(usize, usize)> =
                self.after_rule[called_at].iter().map(|(&a, &b)| (a, b)).collect();
            for (rule, after) in calls {
                let Some((first, last)) = self.graph.ends[rule] else {
                    continue;
                };
                let mut seen = HashSet::new();
                let mut open = VecDeque::from([(called_at, first)]);
                while let Some((state, node)) = open.pop_front() {
                    steps += 1;
                    if steps > MOST_STEPS {
                        return None;
                    }
                    if node == last {
                        self.reductions[state].insert(after);
                    }
                    for &(edge, to) in &self.graph.edges[node] {
                        let next = match edge {
                            Edge::Empty => Some(state),
                            Edge::Word(word) => {
                                let symbol = self.graph.words[word].symbol;
                                self.after_word[state].get(&symbol).copied()
                            }
                            Edge::Call(rule) => self.after_rule[state].get(&rule).copied(),
                        };
                        let next = next.map(|state| (state, to));
                        open.extend(next.filter(|&next| seen.insert(next)));
                    }
                }
            }
        }
        Some(())
    }

    /// Returns the words that may begin at the start, and after each word, or `None` if that takes too many
    /// steps.
    fn contexts(&self) -> Option<Vec<Vec<usize>>> {
        let mut steps = 0;
        let after = self.after_word.iter().flat_map(BTreeMap::values).copied();
        let places: BTreeSet<usize> = after.chain([0]).collect();
        let mut contexts = BTreeSet::new();
        for place in places {
            let (mut seen, mut open) = (BTreeSet::from([place]), vec![place]);
            while let Some(state) = open.pop() {
                steps += self.states[state].len() + self.reductions[state].len();
                if steps > MOST_STEPS {
                    return None;
                }
                open.extend(
                    self.reductions[state]
                        .iter()
                        .copied()
                        .filter(|&next| seen.insert(next)),
                );
            }
            let nodes = seen.iter().flat_map(|&state| self.states[state].iter());
            let edges = nodes.flat_map(|&node| &self.graph.edges[node]);
            let words = edges.filter_map(|&(edge, _)| match edge {
                Edge::Word(word) => Some(word),
                _ => None,
            });
            contexts.insert(words.collect::<BTreeSet<usize>>().into_iter().collect());
        }
        Some(contexts.into_iter().collect())
    }
}
