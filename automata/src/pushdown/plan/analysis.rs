//! Computes which rules can be empty, which can be completed at all, and which begin with themselves.
//!
//! All three are fixed points. The first two are the same search with different usable edges: marks spread
//! from the start of every rule; an edge that calls something not yet known waits for it; a rule whose
//! accepting node is marked wakes its callers. Every edge is visited a bounded number of times, so the passes
//! are linear.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::nfa::{Callee, Edge, Label, Nfa, ObjectListPlan, PropertyPlan};
use crate::error::{Place, Problem, ProblemKind};
use crate::grammar::ItemOrder;
use crate::language::Terminal;
use crate::language::components;
use crate::limits::Cancel;
use crate::pushdown::object::contains::{MOST_DEMANDS, MOST_VECTORS, Stock};

use super::fixed_point::{Answer, Question, Uses, spread};

/// The results of the passes over the automata.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    nullable_rules: Vec<bool>,
    nullable_object_lists: Vec<bool>,
    nullable_terminals: Vec<bool>,
    /// For the accepting node of a left-recursive rule, the nodes at which the rules that began with it
    /// continue.
    pub(crate) left_corners: FxHashMap<u32, Vec<u32>>,
    /// The group of mutually left-recursive rules that each rule is in, if any.
    pub(crate) recursive_group: Vec<Option<u32>>,
}

impl Analysis {
    /// Returns `true` if the callee derives the empty text.
    pub(crate) fn is_nullable(&self, callee: Callee) -> bool {
        match callee {
            Callee::Rule(rule) => self.nullable_rules[rule as usize],
            Callee::Terminal(terminal) => self.nullable_terminals[terminal as usize],
            // No validator accepts the empty text.
            Callee::Validated(_) => false,
            Callee::ObjectList(object_list) => self.nullable_object_lists[object_list as usize],
        }
    }
}

/// Runs all passes and removes everything from the automata that can never be completed.
pub(crate) fn analyse(
    nfa: &mut Nfa,
    terminals: &[Option<Arc<Terminal>>],
    cancel: &Cancel,
) -> Result<Analysis, Problem> {
    check_demands(nfa, terminals)?;
    let uses = Uses::new(nfa);
    let productive = spread(nfa, &uses, terminals, Question::Productive, cancel);
    if !productive.rules[nfa.start as usize] {
        return Err(unproductive(nfa, &productive));
    }
    prune(nfa, &productive);
    // Removed items no longer use anything; including them is harmless.
    let nullable = spread(nfa, &uses, terminals, Question::Nullable, cancel);
    check_items_after_keys(nfa, &nullable.rules)?;
    settle_nullable_items(nfa, &nullable.rules)?;
    let mut analysis = Analysis {
        nullable_rules: nullable.rules,
        nullable_object_lists: nullable.object_lists,
        nullable_terminals: nullable.terminals,
        left_corners: FxHashMap::default(),
        recursive_group: vec![None; nfa.rules.len()],
    };
    find_left_recursion(nfa, &mut analysis)?;
    Ok(analysis)
}

impl ObjectListPlan {
    /// Removes items that cannot be completed.
    fn prune(&mut self, productive: &Answer) {
        for property in &mut self.properties {
            property.ways.retain(|&(rule, _)| productive.rules[rule as usize]);
        }
        self.additional.retain(|additional| {
            productive.rules[additional.item as usize]
                && additional
                    .key
                    .is_none_or(|key| productive.terminals[key as usize])
        });
        if self.order != ItemOrder::Leading {
            self.properties
                .retain(|property| property.required || !property.ways.is_empty());
        } else if let Some(end) = self.cut_at(|property| !property.ways.is_empty()) {
            self.properties.truncate(end);
            self.additional.clear();
        }
    }
}

/// Rejects demands that would take too long to judge at every step.
fn check_demands(nfa: &Nfa, terminals: &[Option<Arc<Terminal>>]) -> Result<(), Problem> {
    for plan in nfa.object_lists.iter().filter(|plan| plan.has_demands()) {
        if plan.demands.len() > MOST_DEMANDS || plan.vectors() > MOST_VECTORS {
            let message =
                format!("the demands of a series have more than {MOST_VECTORS} combinations of counts");
            return Err(Problem::new(ProblemKind::Limit, Place::Whole, message));
        }
        if !Stock::new(plan, terminals, |_| true).keys_are_alike(plan, terminals) {
            let message = "a key that can run out belongs to several items of a series with demands, which is not supported";
            return Err(Problem::new(ProblemKind::Unsupported, Place::Whole, message));
        }
    }
    Ok(())
}

/// Removes edges that call something that cannot be completed, and edges into nodes that lead nowhere.
fn prune(nfa: &mut Nfa, productive: &Answer) {
    let all = [&productive.rules, &productive.terminals, &productive.object_lists];
    if nfa.has_dead_ends || all.iter().any(|holding| holding.contains(&false)) {
        prune_nodes(nfa, productive);
    }
    for object_list in &mut nfa.object_lists {
        object_list.prune(productive);
    }
}

fn prune_nodes(nfa: &mut Nfa, productive: &Answer) {
    let usable = |edge: &Edge| match edge.label {
        Label::Call(Callee::Rule(rule)) => productive.rules[rule as usize],
        Label::Call(Callee::Terminal(terminal)) => productive.terminals[terminal as usize],
        Label::Call(Callee::Validated(validated)) => {
            productive.terminals[nfa.validated[validated as usize].terminal as usize]
        }
        Label::Call(Callee::ObjectList(object_list)) => productive.object_lists[object_list as usize],
        _ => true,
    };
    for edges in &mut nfa.nodes {
        edges.retain(|edge| usable(edge));
    }
    // The edges into each node, as one list sorted by target.
    let mut ends = vec![0usize; nfa.nodes.len() + 1];
    for edge in nfa.nodes.iter().flatten() {
        ends[edge.to as usize] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum;
    }
    let mut into = vec![0u32; sum];
    for (from, edges) in nfa.nodes.iter().enumerate() {
        for edge in edges {
            // The end of each list, counted down, becomes its beginning.
            ends[edge.to as usize] -= 1;
            into[ends[edge.to as usize]] = from as u32;
        }
    }
    let mut live = vec![false; nfa.nodes.len()];
    let mut open: Vec<u32> = nfa.rules.iter().map(|rule| rule.accept).collect();
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut live[node as usize], true) {
            open.extend(&into[ends[node as usize]..ends[node as usize + 1]]);
        }
    }
    for edges in &mut nfa.nodes {
        edges.retain(|edge| live[edge.to as usize]);
    }
}

/// Checks that the item after a key is always empty or never empty, so that a complete key continues in one
/// way.
fn check_items_after_keys(nfa: &Nfa, nullable: &[bool]) -> Result<(), Problem> {
    let keyed = nfa
        .object_lists
        .iter()
        .flat_map(|object_list| &object_list.additional);
    let mut items = keyed
        .filter(|additional| additional.key.is_some())
        .map(|additional| additional.item);
    let goes_on = |rule: u32| {
        let rule = &nfa.rules[rule as usize];
        let edges = &nfa.nodes[rule.start as usize];
        edges
            .iter()
            .any(|edge| edge.label != Label::Empty || edge.to != rule.accept)
    };
    if items.any(|item| nullable[item as usize] && goes_on(item)) {
        let message = "the item after a key must be always empty or never empty";
        return Err(Problem::new(ProblemKind::Unsupported, Place::Whole, message));
    }
    Ok(())
}

/// Removes the lower bound of repetitions without a separator whose item may be empty: the missing items are
/// empty ones.
fn settle_nullable_items(nfa: &mut Nfa, nullable: &[bool]) -> Result<(), Problem> {
    for object_list in &mut nfa.object_lists {
        let is_empty =
            |property: &PropertyPlan| property.ways.iter().any(|&(rule, _)| nullable[rule as usize]);
        let property = object_list.properties.iter().any(is_empty);
        let additional = object_list
            .additional
            .iter()
            .any(|additional| additional.key.is_none() && nullable[additional.item as usize]);
        if !(property || additional) {
            continue;
        }
        if object_list.separator.is_some() || object_list.has_demands() {
            let message = "an item of a series with a separator must not be empty";
            return Err(Problem::new(ProblemKind::Unsupported, Place::Whole, message));
        }
        for property in &mut object_list.properties {
            property.required &= !is_empty(property);
        }
        if additional {
            object_list.min = 0;
        }
    }
    Ok(())
}

/// Returns the innermost reason why the start rule cannot be completed: a rule that matches nothing, or a
/// cycle of rules.
fn unproductive(nfa: &Nfa, productive: &Answer) -> Problem {
    let mut path = Vec::new();
    let mut seen = FxHashSet::default();
    let mut next = Some(nfa.start);
    while let Some(rule) = next
        && seen.insert(rule)
    {
        path.push(rule);
        next = blocking_rule(nfa, productive, rule);
    }
    let circle = path.iter().position(|&rule| Some(rule) == next);
    let names = |rules: &[u32]| -> Vec<String> {
        let names = rules.iter().map(|&rule| &nfa.rules[rule as usize].name);
        names.filter(|name| !name.is_empty()).cloned().collect()
    };
    let (blamed, circle) = match circle {
        Some(from) => (names(&path[from..]), true),
        None => (names(&path).pop().into_iter().collect(), false),
    };
    let Some(name) = blamed.first() else {
        return Problem::new(ProblemKind::Unsatisfiable, Place::Whole, "no text can match");
    };
    let message = match (&blamed[..], circle) {
        (_, false) => format!("no text matches `{name}`"),
        ([_], true) => format!("no finite text matches `{name}`: every alternative needs `{name}` again"),
        (more, true) => {
            let more: Vec<String> = more[1..]
                .iter()
                .take(MOST_NAMED)
                .map(|name| format!("`{name}`"))
                .collect();
            format!(
                "no finite text matches `{name}`: it needs {}, which needs `{name}` again",
                more.join(", which needs ")
            )
        }
    };
    Problem::new(ProblemKind::Unsatisfiable, Place::Rule(name.clone()), message)
}

/// The maximum number of rules of a cycle that are named.
const MOST_NAMED: usize = 8;

/// Returns some rule that this one calls and that cannot be completed either.
fn blocking_rule(nfa: &Nfa, productive: &Answer, rule: u32) -> Option<u32> {
    let mut seen = FxHashSet::default();
    let mut open = vec![nfa.rules[rule as usize].start];
    while let Some(node) = open.pop() {
        if !seen.insert(node) {
            continue;
        }
        for edge in &nfa.nodes[node as usize] {
            match edge.label {
                Label::Call(Callee::Rule(callee)) if !productive.rules[callee as usize] => {
                    return Some(callee);
                }
                Label::Call(Callee::ObjectList(object_list))
                    if !productive.object_lists[object_list as usize] =>
                {
                    let mut items = nfa.object_lists[object_list as usize].items();
                    return items.find(|&item| !productive.rules[item as usize]);
                }
                _ => open.push(edge.to),
            }
        }
    }
    None
}

/// Returns the nodes that are reached from `start` before anything is read.
pub(crate) fn leading_nodes(nfa: &Nfa, analysis: &Analysis, start: u32) -> Vec<u32> {
    let mut found = Vec::new();
    find_leading_nodes(nfa, analysis, start, &mut found);
    found
}

/// Collects the leading nodes from `start` into a list, which is cleared first.
fn find_leading_nodes(nfa: &Nfa, analysis: &Analysis, start: u32, found: &mut Vec<u32>) {
    found.clear();
    found.push(start);
    // Usually there are few nodes; nearly all rules begin with one.
    let mut seen = FxHashSet::default();
    let mut at = 0;
    while at < found.len() {
        for edge in &nfa.nodes[found[at] as usize] {
            let passes = match edge.label {
                Label::Empty => true,
                Label::Call(callee) => analysis.is_nullable(callee),
                _ => false,
            };
            if !passes {
                continue;
            }
            if found.len() == LOOKED_THROUGH {
                seen.extend(&*found);
            }
            let is_new = match found.len() {
                ..LOOKED_THROUGH => !found.contains(&edge.to),
                _ => seen.insert(edge.to),
            };
            if is_new {
                found.push(edge.to);
            }
        }
        at += 1;
    }
}

/// The length from which lists are no longer searched linearly.
const LOOKED_THROUGH: usize = 16;

/// The rules that a rule or an object list begins with; usually one or none.
type Leading = SmallVec<[u32; 2]>;

/// Finds groups of rules that begin with each other, and turns "begins with" into "continues after".
///
/// Inside a group, a leading call is not a call: the automaton of the caller begins where the callee begins,
/// and when the callee is complete, it continues after the call. The group thus becomes a loop, and no stack
/// can grow without reading (the left-corner construction, Rosenkrantz and Lewis 1970).
fn find_left_recursion(nfa: &Nfa, analysis: &mut Analysis) -> Result<(), Problem> {
    let rules = nfa.rules.len();
    let mut calls: Vec<(u32, u32, u32)> = Vec::new();
    let mut graph = vec![Leading::new(); rules + nfa.object_lists.len()];
    let mut leading = Vec::new();
    for (rule, edges) in nfa.rules.iter().zip(0..) {
        find_leading_nodes(nfa, analysis, rule.start, &mut leading);
        for &node in &leading {
            for edge in &nfa.nodes[node as usize] {
                match edge.label {
                    Label::Call(Callee::Rule(callee)) => {
                        calls.push((edges, callee, edge.to));
                        graph[edges as usize].push(callee);
                    }
                    Label::Call(Callee::ObjectList(object_list)) => {
                        graph[edges as usize].push(rules as u32 + object_list)
                    }
                    _ => {}
                }
            }
        }
    }
    for (index, object_list) in nfa.object_lists.iter().enumerate() {
        let unkeyed = object_list
            .additional
            .iter()
            .filter(|additional| additional.key.is_none());
        let properties = object_list.properties.iter().flat_map(|property| &property.ways);
        let leading = properties
            .map(|&(rule, _)| rule)
            .chain(unkeyed.map(|additional| additional.item));
        graph[rules + index].extend(leading);
    }
    let component = components(&graph);
    for (caller, callee, to) in calls {
        if component[caller as usize] == component[callee as usize] {
            let group = component[caller as usize];
            analysis.recursive_group[caller as usize] = Some(group);
            analysis.recursive_group[callee as usize] = Some(group);
            let accept = nfa.rules[callee as usize].accept;
            analysis.left_corners.entry(accept).or_default().push(to);
        }
    }
    refuse_recursive_object_lists(nfa, &graph, &component)
}

fn refuse_recursive_object_lists(nfa: &Nfa, graph: &[Leading], component: &[u32]) -> Result<(), Problem> {
    let rules = nfa.rules.len();
    for object_list in rules..graph.len() {
        let own = component[object_list];
        if let Some(&item) = graph[object_list]
            .iter()
            .find(|&&item| component[item as usize] == own)
        {
            let through = (0..rules).find(|&rule| component[rule] == own && !nfa.rules[rule].name.is_empty());
            let name = nfa.rules[through.unwrap_or(item as usize)].name.clone();
            let message = "the rule begins with a counted repetition of itself, which is not supported; move the repetition to its end";
            let place = match name.is_empty() {
                true => Place::Whole,
                false => Place::Rule(name),
            };
            return Err(Problem::new(ProblemKind::Unsupported, place, message));
        }
    }
    Ok(())
}
