//! Drafts that are drawn from what stores remember of rows: STAND ([Song et al.
//! 2025](https://arxiv.org/abs/2506.04708)).
//!
//! A token that was drawn must be judged, whatever it is, and whether it is drawn must not depend on it
//! ([`verify`](lexiform_law::verify)). So whether it pays is decided before, by what is known of the row; its
//! grammar is asked about all tokens of the row before one is drawn; and a token after which the draft cannot
//! go on, because the text ends there or the grammar takes long, is the last of its draft.

use crate::grammar::outlook::Outlook;
use crate::speculation::draft::{Draft, Source};
use crate::speculation::draws::Draws;
use crate::speculation::policy::stakes::Before;
use crate::speculation::row::DraftRow;
use crate::speculation::store::Store;
use crate::{Grammar, State};
use lexiform::vocab::Vocabulary;
use lexiform_law::draft::{self, Candidate, Constraint, Here, Node, NodeId, Text};
use std::cell::RefCell;
use std::collections::HashMap;

/// The rounds of work that the grammar may take for a token or a mask. If it takes more, nothing is drawn
/// there.
const ROUNDS: usize = 1 << 11;
/// The most tokens drawn for a pass.
const MOST: usize = 32;
/// The part of forced drafts that is expected to be confirmed.
const FORCED: f64 = 0.95;

/// A grammar that forbids what takes it long to judge.
struct Brief<'a>(&'a Grammar);

impl Constraint for Brief<'_> {
    type State = State;

    fn step(&self, state: State, token: u32) -> Option<State> {
        lexiform::briefly(ROUNDS, || self.0.step(state, token)).flatten()
    }

    fn step_bytes(&self, state: State, bytes: &[u8]) -> Option<State> {
        lexiform::briefly(ROUNDS, || self.0.step_bytes(state, bytes)).flatten()
    }

    fn forced(&self, state: State) -> Vec<u8> {
        lexiform::briefly(ROUNDS, || self.0.forced(state)).unwrap_or_default()
    }

    fn key(&self, state: State) -> u64 {
        lexiform::briefly(ROUNDS, || Constraint::key(self.0, state)).unwrap_or_default()
    }

    fn is_accepting(&self, state: State) -> bool {
        lexiform::briefly(ROUNDS, || self.0.is_accepting(state)).unwrap_or(false)
    }
}

/// Draws drafts after the forced ones, of which there are `forced`, from the nearest store that has a row for
/// which it pays. Returns `true` if there are any.
pub(super) fn draw(outlook: &mut Outlook, forced: usize, vocabulary: &Vocabulary) -> bool {
    let Some(draws) = outlook.draws.clone() else {
        return false;
    };
    let is_forced = |draft: &&Draft| draft.source == Source::Forced;
    if outlook.drafts.iter().take_while(is_forced).count() < forced {
        return false;
    }
    let stores = outlook.stores.clone();
    let mut found = stores
        .iter()
        .map(|store| grow(outlook, &draws, forced, store, vocabulary));
    let Some(found) = found.find(|found| !found.is_empty()) else {
        return false;
    };
    take(outlook, forced, found, vocabulary);
    true
}

/// A token that was drawn, its parent among those, and its source.
type Drawn = (Node<State, DraftRow>, Source);

/// Draws tokens after the forced drafts from a store.
fn grow(
    outlook: &Outlook,
    draws: &Draws,
    forced: usize,
    store: &Store,
    vocabulary: &Vocabulary,
) -> Vec<Drawn> {
    let (prompt, answer) = outlook.tokens.split_at(outlook.prompt);
    let drafts = outlook.drafts[..forced].iter().map(|draft| draft.token);
    let answer: Vec<u32> = answer.iter().copied().chain(drafts).collect();
    let text = Text {
        prompt,
        answer: &answer,
    };
    // The last of the tokens that are left is never drafted.
    let room = outlook.room().saturating_sub(outlook.drafts.len());
    let room = room.min(outlook.remaining.saturating_sub(forced + 1)).min(MOST);
    let at = outlook.after(forced);
    let brief = at.map(|(grammar, _)| Brief(grammar));
    let at = brief.as_ref().zip(at.map(|(_, state)| state));
    let mut draft: draft::Draft<'_, Brief<'_>, DraftRow> = draft::Draft::new(at, vocabulary.eos(), room);
    let ledger = RefCell::new(Ledger::after(forced, outlook.drafts.len() > forced));
    let weigh = |here: Here<'_, Brief<'_>>, candidates: &[Candidate]| {
        let first = outlook.drafts[..forced].iter().map(|draft| draft.token);
        let ahead: Vec<u32> = first.chain(here.path.iter().copied()).collect();
        let left = outlook.left(&ahead);
        let bounds = match here.at.filter(|_| left.tokens().is_some()) {
            None => None,
            Some((grammar, state)) => {
                let find = || outlook.finder.bounds(grammar.0, state, (left, false));
                match lexiform::briefly(ROUNDS, find) {
                    Some(Ok(bounds)) => Some(bounds),
                    _ => return Vec::new(),
                }
            }
        };
        let is_allowed = |token: u32| {
            let is_inside = bounds.as_ref().is_none_or(|bounds| bounds.mask.contains(token));
            is_inside && !vocabulary.is_eos(token)
        };
        let weights = draws.tempering.weights(candidates, store.scale(), is_allowed);
        match ledger.borrow_mut().pays(draws, here.path, candidates, &weights) {
            true => weights,
            false => Vec::new(),
        }
    };
    let mut first = draws.place;
    first.position = first.position.saturating_add(forced as u32);
    store.draw(text, &mut draft, (first, draws.chooser), weigh);
    let sources = ledger.into_inner().sources;
    let source = |node: &Node<State, DraftRow>| {
        let path = draft.path(node.parent).into_iter();
        let path: Vec<u32> = path.map(|node| draft.nodes()[node].token).collect();
        sources.get(&path).copied()
    };
    let nodes = draft.nodes().iter();
    nodes
        .filter_map(|node| Some((node.clone(), source(node)?)))
        .collect()
}

/// What is known of the draft before the next draw.
struct Ledger {
    before: Before,
    /// `true` if a copy competes.
    is_copied: bool,
    /// The source of the tokens that are drawn after each path.
    sources: HashMap<Vec<u32>, Source>,
}

impl Ledger {
    fn after(forced: usize, is_copied: bool) -> Self {
        let chance = FORCED.powi(forced as i32);
        Ledger {
            before: Before {
                fed: forced,
                drawn: 0,
                tokens: forced as f64 * chance,
                chance,
            },
            is_copied,
            sources: HashMap::new(),
        }
    }

    /// Returns `true` if it pays to draw a token with these weights after a path, and counts it as drawn.
    fn pays(&mut self, draws: &Draws, path: &[u32], candidates: &[Candidate], weights: &[f64]) -> bool {
        let likeliest = candidates
            .iter()
            .zip(weights)
            .filter(|(_, weight)| **weight > 0.0);
        let likeliest = likeliest.max_by(|one, other| one.1.total_cmp(other.1));
        let Some((best, _)) = likeliest else {
            return false;
        };
        let (source, chance) = draws.expects(best);
        let is_beaten = self.is_copied && path.is_empty() && draws.copied >= chance;
        if is_beaten || !draws.stakes.pays(self.before, chance) {
            return false;
        }
        self.sources.insert(path.to_vec(), source);
        let likely = self.before.chance * chance;
        self.before = Before {
            fed: self.before.fed + 1,
            drawn: self.before.drawn + 1,
            tokens: self.before.tokens + likely,
            chance: likely,
        };
        true
    }
}

/// Adds tokens that were drawn to the drafts, all but those below one after which the draft cannot go on.
fn take(outlook: &mut Outlook, forced: usize, found: Vec<Drawn>, vocabulary: &Vocabulary) {
    // The draft of each token, if the draft goes on after it.
    let mut places: Vec<Option<NodeId>> = Vec::with_capacity(found.len());
    for (node, source) in found {
        let parent = match node.parent {
            None => forced.checked_sub(1),
            Some(parent) => match places[parent] {
                None => {
                    places.push(None);
                    continue;
                }
                parent => parent,
            },
        };
        let at = outlook.drafts.len();
        let draft = Draft {
            token: node.token,
            parent,
            source,
            state: node.state,
            proposal: node.proposal,
            is_last: false,
        };
        let push = || outlook.push(draft.clone(), vocabulary);
        let goes_on = matches!(lexiform::briefly(ROUNDS, push), Some(Ok(true)));
        if !goes_on {
            outlook.drafts.truncate(at);
            outlook.drafts.push(Draft {
                state: None,
                is_last: true,
                ..draft
            });
        }
        places.push(goes_on.then_some(at));
    }
}
