//! Whether a text is a word of a regular part, and what makes it one: a search over all ends of all parts,
//! for short texts.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use foldhash::{HashMap, HashMapExt};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use crate::notation::tree::{Definition, Node, NodeKind};
use crate::regex::node as pattern;

/// The deepest nesting that is followed.
const DEEPEST: usize = 200;

/// The longest text that is looked for, in bytes: keywords are shorter.
const LONGEST: usize = 64;

/// Returns whether a text is a word of a part, or `None` if that is not found so simply.
pub(super) fn matches_whole(
    node: &Node,
    text: &str,
    definitions: &[Definition],
    names: &HashMap<String, usize>,
    steps: &Cell<usize>,
) -> Option<bool> {
    if text.len() > LONGEST {
        return None;
    }
    let words = Words {
        text: text.chars().collect(),
        definitions,
        names,
        steps,
        more: None,
    };
    let ends = words.ends(node, &BTreeSet::from([0]), 0)?;
    Some(ends.contains(&words.text.len()))
}

/// Returns the characters with which a text becomes a word of a part, or `None` if that is not found so
/// simply.
pub(super) fn following(
    node: &Node,
    text: &str,
    definitions: &[Definition],
    names: &HashMap<String, usize>,
    steps: &Cell<usize>,
) -> Option<ClassUnicode> {
    if text.len() > LONGEST {
        return None;
    }
    let mut words = Words {
        text: text.chars().collect(),
        definitions,
        names,
        steps,
        more: Some(RefCell::default()),
    };
    words.ends(node, &BTreeSet::from([0]), 0)?;
    let sets = words.more.take()?.into_inner();
    let completes = |c: char| {
        let longer: String = words.text.iter().chain([&c]).collect();
        matches_whole(node, &longer, definitions, names, steps)
    };
    let holds = |set: &ClassUnicode, c: char| {
        let mut ranges = set.ranges().iter();
        ranges.any(|range| range.start() <= c && c <= range.end())
    };
    let mut more = ClassUnicode::empty();
    // Characters that the same sets have are alike.
    let mut known: HashMap<Vec<bool>, bool> = HashMap::new();
    for c in '\0'..='\x7F' {
        let held: Vec<bool> = sets.iter().map(|set| holds(set, c)).collect();
        if !held.contains(&true) {
            continue;
        }
        let is_more = match known.get(&held) {
            Some(&known) => known,
            None => *known.entry(held).or_insert(completes(c)?),
        };
        if is_more {
            more.union(&pattern::char_set(c));
        }
    }
    let ascii = ClassUnicode::new([ClassUnicodeRange::new('\0', '\x7F')]);
    for set in sets {
        let beyond = pattern::difference(&set, &ascii);
        if let Some(first) = beyond.ranges().first()
            && completes(first.start())?
        {
            more.union(&beyond);
        }
    }
    Some(more)
}

struct Words<'a> {
    text: Vec<char>,
    definitions: &'a [Definition],
    names: &'a HashMap<String, usize>,
    /// The steps that were taken for all texts of a grammar.
    steps: &'a Cell<usize>,
    /// The sets that are read after the whole text, if they are wanted.
    more: Option<RefCell<Vec<ClassUnicode>>>,
}

/// The most steps for all texts of a grammar. Terminals that call each other twice at each of many levels
/// take a step for each way to call the last one.
const MOST_STEPS: usize = 10_000_000;

/// Counts a step; returns `false` if there were too many.
pub(super) fn may_go_on(steps: &Cell<usize>) -> bool {
    steps.set(steps.get() + 1);
    steps.get() <= MOST_STEPS
}

/// The places in a text.
type Places = BTreeSet<usize>;

impl Words<'_> {
    /// Returns where the words of a part end that begin at these places.
    fn ends(&self, node: &Node, starts: &Places, depth: usize) -> Option<Places> {
        if depth > DEEPEST || !may_go_on(self.steps) {
            return None;
        }
        let inner = |part: &Node, starts: &Places| self.ends(part, starts, depth + 1);
        match &node.kind {
            NodeKind::Text(text) => Some(self.after(starts, text, |one, other| one == other)),
            NodeKind::AnyCase(text) => Some(self.after(starts, text, |one, other| {
                one.to_lowercase().eq(other.to_lowercase())
            })),
            NodeKind::Set(set) => Some(self.pattern_ends(&pattern::Node::Set(set.clone()), starts, depth)?),
            NodeKind::Pattern(pattern) => self.pattern_ends(&pattern.node, starts, depth),
            NodeKind::Name(name) => {
                let &at = self.names.get(name)?;
                inner(&self.definitions[at].body, starts)
            }
            NodeKind::Seq(parts) => {
                let mut at = starts.clone();
                for part in parts {
                    at = inner(part, &at)?;
                }
                Some(at)
            }
            NodeKind::Choice(parts) => {
                let mut all = Places::new();
                for part in parts {
                    all.extend(inner(part, starts)?);
                }
                Some(all)
            }
            NodeKind::Repeat(body, min, max) => self.repeated(starts, (*min, *max), |at| inner(body, at)),
            NodeKind::Word(body, _) => inner(body, starts),
            _ => None,
        }
    }

    fn after(&self, starts: &Places, text: &str, same: impl Fn(char, char) -> bool) -> Places {
        let fits = |start: usize| {
            let mut at = start;
            for c in text.chars() {
                let Some(&there) = self.text.get(at) else {
                    self.read_after(&pattern::either_case(pattern::char_set(c)));
                    return None;
                };
                same(there, c).then_some(())?;
                at += 1;
            }
            Some(at)
        };
        starts.iter().filter_map(|&start| fits(start)).collect()
    }

    /// Notes a set that is read after the whole text.
    fn read_after(&self, set: &ClassUnicode) {
        let Some(more) = &self.more else { return };
        let mut more = more.borrow_mut();
        if !more.contains(set) {
            more.push(set.clone());
        }
    }

    fn repeated(
        &self,
        starts: &Places,
        (min, max): (u32, Option<u32>),
        round: impl Fn(&Places) -> Option<Places>,
    ) -> Option<Places> {
        let (mut at, mut all) = (starts.clone(), Places::new());
        // More rounds than there are places reach nothing new, and an empty round may be repeated.
        let rounds = (self.text.len() as u32 + 1).max(min.min(64));
        for number in 0..=rounds.min(max.unwrap_or(rounds)) {
            if number >= min {
                all.extend(&at);
            }
            at = round(&at)?;
        }
        Some(all)
    }

    fn pattern_ends(&self, node: &pattern::Node, starts: &Places, depth: usize) -> Option<Places> {
        if depth > DEEPEST || !may_go_on(self.steps) {
            return None;
        }
        let inner = |part: &pattern::Node, starts: &Places| self.pattern_ends(part, starts, depth + 1);
        match node {
            pattern::Node::Empty => Some(starts.clone()),
            pattern::Node::Set(set) => {
                let holds = |at: usize| {
                    let Some(&c) = self.text.get(at) else {
                        self.read_after(set);
                        return None;
                    };
                    let mut ranges = set.ranges().iter();
                    ranges
                        .any(|range| range.start() <= c && c <= range.end())
                        .then_some(at + 1)
                };
                Some(starts.iter().filter_map(|&at| holds(at)).collect())
            }
            pattern::Node::Concat(parts) => {
                let mut at = starts.clone();
                for part in parts {
                    at = inner(part, &at)?;
                }
                Some(at)
            }
            pattern::Node::Alt(parts) => {
                let mut all = Places::new();
                for part in parts {
                    all.extend(inner(part, starts)?);
                }
                Some(all)
            }
            pattern::Node::Repeat { body, min, max } => {
                self.repeated(starts, (*min, *max), |at| inner(body, at))
            }
            pattern::Node::Look(_) | pattern::Node::Test(_) | pattern::Node::Around(_) => None,
        }
    }
}
