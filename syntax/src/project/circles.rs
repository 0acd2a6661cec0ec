//! Definitions that refer to themselves, and how they are opened for targets that take none.

use std::collections::HashSet;

use super::form::{DefinitionId, Form, FormId, Forms, Reading};

/// Returns the definitions that are written inside of themselves.
pub(super) fn within_themselves(forms: &Forms, reading: Reading) -> Vec<DefinitionId> {
    let graph = Graph::of(forms, reading);
    let back = graph.back_links(forms);
    let mut found: Vec<DefinitionId> = back.into_iter().map(|(_, to)| to).collect();
    found.sort();
    found.dedup();
    found
}

/// Returns, for each definition, whether it refers to no other.
pub(super) fn leaves(forms: &Forms, reading: Reading) -> Vec<bool> {
    Graph::of(forms, reading)
        .links
        .iter()
        .map(Vec::is_empty)
        .collect()
}

/// Writes every reference that closes a circle as JSON text. Returns those references.
pub(super) fn open(forms: &mut Forms) -> Vec<FormId> {
    let graph = Graph::of(forms, Reading::Target);
    let back: Vec<FormId> = graph
        .back_links(forms)
        .into_iter()
        .map(|(link, _)| link)
        .collect();
    for &link in &back {
        forms.recode_as_text(link);
    }
    back
}

/// The references of each definition, and of the root.
struct Graph {
    root: Vec<(FormId, DefinitionId)>,
    links: Vec<Vec<(FormId, DefinitionId)>>,
}

impl Graph {
    fn of(forms: &Forms, reading: Reading) -> Graph {
        let links = forms
            .definitions
            .iter()
            .map(|definition| links(forms, definition.form, reading));
        Graph {
            links: links.collect(),
            root: links_of_root(forms, reading),
        }
    }

    /// Returns the references that lead to a definition that is being visited, in a walk in depth from the
    /// root.
    fn back_links(&self, forms: &Forms) -> Vec<(FormId, DefinitionId)> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut states = vec![State::New; forms.definitions.len()];
        let mut back = Vec::new();
        let mut path: Vec<(Option<DefinitionId>, usize)> = vec![(None, 0)];
        while let Some((at, next)) = path.last_mut() {
            let links = at.map_or(&self.root, |at| &self.links[at.index()]);
            let Some(&(link, to)) = links.get(*next) else {
                if let Some(at) = at {
                    states[at.index()] = State::Done;
                }
                path.pop();
                continue;
            };
            *next += 1;
            match states[to.index()] {
                State::Open => back.push((link, to)),
                State::Done => {}
                State::New => {
                    states[to.index()] = State::Open;
                    path.push((Some(to), 0));
                }
            }
        }
        back
    }
}

fn links_of_root(forms: &Forms, reading: Reading) -> Vec<(FormId, DefinitionId)> {
    match forms.get(forms.root) {
        Form::Definition(definition) => vec![(forms.root, *definition)],
        _ => links(forms, forms.root, reading),
    }
}

/// Returns the references that a form contains outside of other definitions.
fn links(forms: &Forms, from: FormId, reading: Reading) -> Vec<(FormId, DefinitionId)> {
    let mut seen = HashSet::from([from]);
    let mut open = vec![from];
    let mut found = Vec::new();
    while let Some(id) = open.pop() {
        if let Form::Definition(definition) = forms.get(id) {
            found.push((id, *definition));
            continue;
        }
        let mut parts = forms.parts(id);
        if reading == Reading::Restored {
            parts.extend(forms.hidden_parts(id));
        }
        open.extend(parts.into_iter().rev().filter(|&part| seen.insert(part)));
    }
    found
}
