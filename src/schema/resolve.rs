//! Stage 2: references to nodes.
//!
//! A reference may lead anywhere in a document, also to a place that no keyword reads; what stands there is then read as
//! a schema, which may bring further references. When all are resolved, a walk over the keywords that apply "in place"
//! (`$ref`, `allOf`, `not`, …) finds circles without progress, such as `{"$ref": "#"}`.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_json::Value;

use crate::error::{CompileError, Diagnostics, Problem, ProblemKind};
use crate::limits::Limits;

use super::Options;
use super::draft::Draft;
use super::node::{Dependency, Keyword, NodeId, Tree};
use super::parse::{Parsed, Reader, Scope};
use super::uri;

/// Where the URIs of a source lead.
#[derive(Default)]
pub(super) struct Resources<'v> {
    by_uri: HashMap<Rc<str>, (&'v Value, u32)>,
    anchors: HashMap<(Rc<str>, String), (&'v Value, u32)>,
    /// How many resources have a dynamic anchor of a name.
    dynamic: HashMap<String, HashSet<Rc<str>>>,
    /// Documents that the caller gave, until they are referred to.
    documents: HashMap<&'v str, &'v Value>,
}

impl<'v> Resources<'v> {
    pub(super) fn add(&mut self, uri: Rc<str>, value: &'v Value, scope: u32) {
        self.by_uri.entry(uri).or_insert((value, scope));
    }

    pub(super) fn add_anchor(&mut self, uri: &Rc<str>, anchor: &str, value: &'v Value, scope: u32) {
        if value.get("$dynamicAnchor").and_then(Value::as_str) == Some(anchor) {
            self.dynamic
                .entry(anchor.to_owned())
                .or_default()
                .insert(uri.clone());
        }
        self.anchors
            .entry((uri.clone(), anchor.to_owned()))
            .or_insert((value, scope));
    }
}

/// Reads a source and everything that it refers to.
pub(crate) fn read(
    root: &Value,
    documents: &[(String, Value)],
    options: &Options,
    limits: &Limits,
) -> Result<(Parsed, Diagnostics), CompileError> {
    let draft = options.draft;
    let documents = documents
        .iter()
        .map(|(uri, value)| (uri.as_str(), value))
        .collect();
    let resources = Resources {
        documents,
        ..Resources::default()
    };
    let mut reader = Reader::new(limits, options.formats, resources);
    let base: Rc<str> = "".into();
    reader.scopes.push(Scope {
        uri: base.clone(),
        draft,
    });
    reader.resources.add(base, root, 0);
    let start = reader.add_root(root, "", 0);
    reader.read_all();
    let mut next = 0;
    while next < reader.references.len() {
        let target = reader.resolve(next, draft);
        // A reference that leads nowhere has been reported; any target will do for the rest of the walk.
        reader.tree.targets.push(target.unwrap_or(start));
        reader.read_all();
        next += 1;
    }
    if reader.problems.is_empty() {
        reader.problems.extend(circle(&reader.tree));
    }
    let Reader {
        mut problems,
        tree,
        texts,
        mut diagnostics,
        ..
    } = reader;
    if !problems.is_empty() {
        problems.sort_by(|a, b| a.place.cmp(&b.place));
        return Err(CompileError { problems });
    }
    diagnostics.findings.sort_by(|a, b| a.place.cmp(&b.place));
    Ok((
        Parsed {
            tree,
            texts,
            root: start,
        },
        diagnostics,
    ))
}

impl<'v> Reader<'v> {
    fn resolve(&mut self, index: usize, draft: Option<Draft>) -> Option<NodeId> {
        let reference = &self.references[index];
        let (node, keyword, text) = (reference.node, reference.keyword, reference.text.clone());
        let (document, fragment) = uri::split_fragment(&text);
        let base = &self.scopes[self.scope_of[node.index()] as usize].uri;
        let uri = uri::join(base, document);
        let found = self.document(&uri, draft).ok_or_else(|| {
            format!("the document {uri:?} that `{text}` refers to was not given; documents are never fetched")
        });
        let target = found.and_then(|found| self.fragment(&uri, found, fragment.unwrap_or(""), &text));
        match target {
            Ok((value, scope, pointer)) => {
                self.check_dynamic(index, fragment);
                let known = self.known.get(&std::ptr::from_ref(value)).copied();
                Some(known.unwrap_or_else(|| self.add_root(value, &pointer, scope)))
            }
            Err(message) => {
                self.problem(ProblemKind::Reference, node, keyword, message);
                None
            }
        }
    }

    fn document(&mut self, uri: &str, draft: Option<Draft>) -> Option<(&'v Value, u32)> {
        if let Some(&found) = self.resources.by_uri.get(uri) {
            return Some(found);
        }
        let value = *self.resources.documents.get(uri)?;
        let scope = self.scopes.len() as u32;
        let base: Rc<str> = uri.into();
        self.scopes.push(Scope {
            uri: base.clone(),
            draft,
        });
        self.resources.add(base, value, scope);
        self.add_root(value, &format!("{uri}#"), scope);
        self.read_all();
        self.resources.by_uri.get(uri).copied()
    }

    fn fragment(
        &self,
        uri: &str,
        (root, scope): (&'v Value, u32),
        fragment: &str,
        text: &str,
    ) -> Result<(&'v Value, u32, String), String> {
        let fragment =
            uri::percent_decode(fragment).ok_or_else(|| format!("`{text}` is badly percent-encoded"))?;
        if fragment.is_empty() {
            return Ok((root, scope, String::new()));
        }
        if !fragment.starts_with('/') {
            let key = (Rc::from(uri), fragment);
            let found = self.resources.anchors.get(&key);
            let &(value, scope) =
                found.ok_or_else(|| format!("`{text}` refers to an anchor that is nowhere"))?;
            return Ok((value, scope, format!("#{}", key.1)));
        }
        let (mut value, mut scope) = (root, scope);
        for segment in fragment[1..].split('/') {
            let key = segment.replace("~1", "/").replace("~0", "~");
            let next = match value {
                Value::Array(list) => key.parse::<usize>().ok().and_then(|at| list.get(at)),
                Value::Object(map) => map.get(&key),
                _ => None,
            };
            value = next.ok_or_else(|| format!("`{text}` leads nowhere: there is no {key:?}"))?;
            // An `$id` on the way changes the base of what lies below it.
            if let Some(node) = self.known.get(&std::ptr::from_ref(value)) {
                scope = self.scope_of[node.index()];
            }
        }
        Ok((value, scope, fragment))
    }

    /// A dynamic reference is a plain one unless several resources have its anchor.
    fn check_dynamic(&mut self, index: usize, fragment: Option<&str>) {
        let (node, keyword) = (self.references[index].node, self.references[index].keyword);
        let several = fragment
            .and_then(|name| self.resources.dynamic.get(name))
            .is_some_and(|at| at.len() > 1);
        if keyword == "$dynamicRef" && several {
            self.unsupported(
                node,
                keyword,
                "a `$dynamicRef` whose anchor several resources define is not supported",
            );
        }
    }
}

/// The schemas that apply to the same value as a node does, and speak of its parts where they hold.
pub(crate) fn beside(tree: &Tree, id: NodeId) -> Vec<NodeId> {
    let mut next = Vec::new();
    for (_, keyword) in &tree.node(id).keywords {
        match keyword {
            Keyword::Ref(reference) => next.push(tree.target(*reference)),
            Keyword::AllOf(list) | Keyword::AnyOf(list) | Keyword::OneOf(list) => next.extend(list),
            Keyword::If {
                condition,
                then,
                otherwise,
            } => {
                next.push(*condition);
                next.extend(then.iter().chain(otherwise));
            }
            Keyword::Dependent {
                then: Dependency::Schema(child),
                ..
            } => next.push(*child),
            _ => {}
        }
    }
    next
}

/// The schemas that apply to the same value as a node does.
fn in_place(tree: &Tree, id: NodeId) -> Vec<NodeId> {
    let mut next = beside(tree, id);
    for (_, keyword) in &tree.node(id).keywords {
        if let Keyword::Not(child) = keyword {
            next.push(*child);
        }
    }
    next
}

/// Finds a circle of schemas that apply to the same value, in a depth-first walk with its own stack.
fn circle(tree: &Tree) -> Option<Problem> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; tree.nodes.len()];
    for start in (0..tree.nodes.len() as u32).map(NodeId) {
        let mut path: Vec<(NodeId, Vec<NodeId>)> = Vec::new();
        let mut enter = Some(start).filter(|start| marks[start.index()] == Mark::New);
        loop {
            if let Some(node) = enter.take() {
                marks[node.index()] = Mark::Open;
                path.push((node, in_place(tree, node)));
            }
            let Some((node, rest)) = path.last_mut() else {
                break;
            };
            match rest.pop() {
                None => {
                    marks[node.index()] = Mark::Done;
                    path.pop();
                }
                Some(next) if marks[next.index()] == Mark::New => enter = Some(next),
                Some(next) if marks[next.index()] == Mark::Open => {
                    let nodes: Vec<NodeId> = path.iter().map(|(node, _)| *node).collect();
                    return Some(circle_problem(tree, &nodes, next));
                }
                Some(_) => {}
            }
        }
    }
    None
}

fn circle_problem(tree: &Tree, path: &[NodeId], back: NodeId) -> Problem {
    let from = path.iter().position(|&node| node == back).unwrap_or(0);
    let names = path[from..]
        .iter()
        .chain([&back])
        .map(|&node| format!("#{}", tree.pointer(node)));
    let circle = names.collect::<Vec<_>>().join(" -> ");
    let message = format!("the schema refers to itself without progress: {circle}");
    Problem::at_pointer(ProblemKind::Reference, tree.pointer(back), message)
}
