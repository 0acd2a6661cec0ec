//! Stage 2: resolves references to nodes.
//!
//! A reference may lead anywhere in a document, even to a place that no keyword reads; the value there is
//! then read as a schema, which may contain further references. After all are resolved, a walk over the
//! keywords that apply "in place" (`$ref`, `allOf`, `not`, …) finds cycles without progress, such as
//! `{"$ref": "#"}`.

mod dynamic;
mod metaschema;

use std::rc::Rc;

use foldhash::{HashMap, HashMapExt};
use serde_json::Value;

use lexiform_automata::error::{CompileError, Diagnostics, Place, Problem, ProblemKind};
use lexiform_automata::limits::Limits;

use super::draft::Draft;
use super::node::{Keyword, NodeId, RefId, Tree};
use super::options::Options;
use super::parse::{MOST_URI, Parsed, Reader, Resources, Scope, is_lost_assertion, source, uri};

/// Reads a text and everything that it refers to into a keyword tree with resolved references: stages 0 to 2.
pub(super) fn read(
    text: &str,
    options: &Options,
    limits: &Limits,
) -> Result<(Parsed, Diagnostics), CompileError> {
    let mut held = limits.cancel.account();
    let texts = std::iter::once(text).chain(options.documents.iter().map(|(_, text)| &**text));
    let texts = texts.filter(|text| text.len() <= limits.source_bytes);
    if !held.grow(texts.map(source::bytes_of_value).sum()) {
        limits.cancel.unless(Ok::<_, CompileError>(()))?;
    }
    let root = source::read(text, limits)?;
    let documents = documents(options, limits)?;
    keyword_tree(&root, &documents, options, limits)
}

fn documents(options: &Options, limits: &Limits) -> Result<Vec<(String, serde_json::Value)>, CompileError> {
    let mut values = Vec::with_capacity(options.documents.len());
    let mut problems = Vec::new();
    for (uri, text) in &options.documents {
        match source::read(text, limits) {
            Ok(value) => values.push((uri.clone(), value)),
            Err(problem) => {
                let message = format!("document {uri:?}: {problem}");
                problems.push(Problem::new(problem.kind, Place::Whole, message));
            }
        }
    }
    if problems.is_empty() {
        Ok(values)
    } else {
        Err(CompileError { problems })
    }
}

/// Returns the keyword tree of a value and of everything that it refers to.
fn keyword_tree(
    root: &Value,
    documents: &[(String, Value)],
    options: &Options,
    limits: &Limits,
) -> Result<(Parsed, Diagnostics), CompileError> {
    let draft = options.draft;
    let resources = Resources::with_documents(documents);
    let mut reader = Reader::new(limits, options.formats, resources);
    let base: Rc<str> = "".into();
    reader.scopes.push(Scope {
        uri: base.clone(),
        draft,
        validates: true,
    });
    reader.resources.add(base, root, 0);
    let start = reader.add_root(root, "", 0);
    reader.read_all();
    let mut next = 0;
    while next < reader.references.len() && !limits.cancel.is_asked() {
        let target = reader.resolve(next, draft);
        // A reference without a target has been reported; any target will do for the rest of the walk.
        reader.tree.targets.push(target.unwrap_or(start));
        reader.read_all();
        next += 1;
    }
    // If the compilation is cancelled, the result is not used, and some references may be unresolved.
    limits.cancel.unless(Ok::<_, CompileError>(()))?;
    let mut root = start;
    if reader.problems.is_empty() {
        root = reader.settle_dynamic(start);
    }
    if reader.problems.is_empty() {
        reader.problems.extend(circle(&reader.tree));
    }
    let Reader {
        mut problems,
        tree,
        texts,
        mut diagnostics,
        held,
        ..
    } = reader;
    if !problems.is_empty() {
        // A user who fixes the schema also wants to know about misspelt keywords, although they alone would
        // not stop the compilation.
        problems.extend(diagnostics.findings.into_iter().filter(is_lost_assertion));
        problems.sort_by(|a, b| a.place.cmp(&b.place));
        return Err(CompileError { problems });
    }
    diagnostics.findings.sort_by(|a, b| a.place.cmp(&b.place));
    let parsed = Parsed {
        tree,
        texts,
        root,
        held,
    };
    Ok((parsed, diagnostics))
}

impl<'v> Reader<'v> {
    fn resolve(&mut self, index: usize, draft: Option<Draft>) -> Option<NodeId> {
        let reference = &self.references[index];
        let (node, keyword, text) = (reference.node, reference.keyword, reference.text.clone());
        let (document, fragment) = uri::split_fragment(&text);
        let base = &self.scopes[self.scope_of[node.index()] as usize].uri;
        if base.len() + document.len() > MOST_URI {
            let message = format!("a URI longer than {MOST_URI} bytes is not supported");
            self.problem(ProblemKind::Limit, node, keyword, message);
            return None;
        }
        let uri = uri::join(base, document);
        let found = self
            .document(&uri, draft)
            .ok_or_else(|| format!("the document {uri:?} was not provided, and documents are never fetched"));
        let target = found.and_then(|found| self.fragment(&uri, found, fragment.unwrap_or("")));
        match target {
            Ok((value, scope, pointer)) => {
                self.note_dynamic(index, fragment, value);
                let known = self.known.get(&std::ptr::from_ref(value)).copied();
                Some(known.unwrap_or_else(|| self.add_root(value, &pointer, scope)))
            }
            Err(reason) => {
                let message = format!("`{keyword}` target `{text}` not found: {reason}");
                self.problem(ProblemKind::Reference, node, keyword, message);
                None
            }
        }
    }

    fn document(&mut self, uri: &str, draft: Option<Draft>) -> Option<(&'v Value, u32)> {
        if let Some(found) = self.resources.of_uri(uri) {
            return Some(found);
        }
        let given = self.resources.given(uri);
        let value = given.or_else(|| metaschema::named(uri))?;
        let scope = self.scopes.len() as u32;
        let base: Rc<str> = uri.into();
        self.scopes.push(Scope {
            uri: base.clone(),
            draft,
            validates: true,
        });
        self.resources.add(base, value, scope);
        self.add_root(value, &format!("{uri}#"), scope);
        self.read_all();
        self.resources.of_uri(uri)
    }

    fn fragment(
        &self,
        uri: &str,
        (root, scope): (&'v Value, u32),
        fragment: &str,
    ) -> Result<(&'v Value, u32, String), String> {
        let fragment = uri::percent_decode(fragment).ok_or("its percent-encoding is invalid")?;
        if fragment.is_empty() {
            return Ok((root, scope, String::new()));
        }
        if !fragment.starts_with('/') {
            let found = self.resources.of_anchor(uri, &fragment);
            let (value, scope) = found.ok_or_else(|| format!("no schema has the anchor {fragment:?}"))?;
            return Ok((value, scope, format!("#{fragment}")));
        }
        // An `$id` on the way changes the base of everything below it, and the `$schema` of the document
        // changes its draft.
        let scope_within = |value: &Value, scope: u32| {
            let node = self.known.get(&std::ptr::from_ref(value));
            node.map_or(scope, |node| self.scope_of[node.index()])
        };
        let (mut value, mut scope) = (root, scope_within(root, scope));
        for segment in fragment[1..].split('/') {
            let key = super::node::plain_segment(segment);
            let next = match value {
                Value::Array(list) => key.parse::<usize>().ok().and_then(|at| list.get(at)),
                Value::Object(map) => map.get(&*key),
                _ => None,
            };
            value = next.ok_or_else(|| format!("there is no {key:?}"))?;
            scope = scope_within(value, scope);
        }
        Ok((value, scope, fragment))
    }

    /// Records whether a reference is dynamic: it is a plain one unless its target has a dynamic anchor of
    /// the same name.
    fn note_dynamic(&mut self, index: usize, fragment: Option<&str>, target: &Value) {
        let name = match self.references[index].keyword {
            "$dynamicRef" => {
                fragment.filter(|name| target.get("$dynamicAnchor").is_some_and(|own| own == name))
            }
            "$recursiveRef" => (target.get("$recursiveAnchor") == Some(&Value::Bool(true))).then_some(""),
            _ => None,
        };
        self.references[index].dynamic = name.map(Rc::from);
    }

    /// Replaces dynamic references by plain ones; see [`dynamic`].
    fn settle_dynamic(&mut self, root: NodeId) -> NodeId {
        let mut numbers: HashMap<Rc<str>, u32> = HashMap::new();
        let mut anchors = dynamic::Anchors::default();
        for (name, uri, value) in self.resources.dynamic() {
            let next = numbers.len() as u32;
            let resource = *numbers.entry(uri.clone()).or_insert(next);
            if let Some(&node) = self.known.get(value) {
                anchors.of.entry(resource).or_default().push((name.clone(), node));
            }
        }
        let mut with: HashMap<&Rc<str>, usize> = HashMap::new();
        for (name, ..) in self.resources.dynamic() {
            *with.entry(name).or_default() += 1;
        }
        let several = |name: &Rc<str>| with.get(name).is_some_and(|&count| count > 1);
        for (index, reference) in self.references.iter().enumerate() {
            if let Some(name) = reference.dynamic.as_ref().filter(|name| several(name)) {
                anchors.references.insert(RefId(index as u32), name.clone());
            }
        }
        if anchors.references.is_empty() {
            return root;
        }
        for scope in &self.scope_of {
            let next = numbers.len() as u32;
            let uri = self.scopes[*scope as usize].uri.clone();
            anchors.resource.push(*numbers.entry(uri).or_insert(next));
        }
        let tree = std::mem::take(&mut self.tree);
        match dynamic::resolve(tree, root, &anchors, self.limits) {
            Some((tree, root)) => {
                self.tree = tree;
                root
            }
            None => {
                let message = "dynamic references resolve to too many combinations of schema resources";
                self.problems
                    .push(Problem::at_pointer(ProblemKind::Limit, "", message));
                root
            }
        }
    }
}

/// Returns the schemas that apply to the same value as a node.
fn in_place(tree: &Tree, id: NodeId) -> Vec<NodeId> {
    let mut next = tree.beside(id);
    for (_, keyword) in tree.node(id).keywords.iter() {
        if let Keyword::Not(child) = keyword {
            next.push(*child);
        }
    }
    next
}

/// Finds a cycle of schemas that apply to the same value, in a depth-first walk with an explicit stack.
fn circle(tree: &Tree) -> Option<Problem> {
    #[derive(Clone, Copy, PartialEq)]
    enum VisitMark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![VisitMark::New; tree.nodes.len()];
    for start in (0..tree.nodes.len() as u32).map(NodeId) {
        let mut path: Vec<(NodeId, Vec<NodeId>)> = Vec::new();
        let mut enter = Some(start).filter(|start| marks[start.index()] == VisitMark::New);
        loop {
            if let Some(node) = enter.take() {
                marks[node.index()] = VisitMark::Open;
                path.push((node, in_place(tree, node)));
            }
            let Some((node, rest)) = path.last_mut() else {
                break;
            };
            match rest.pop() {
                None => {
                    marks[node.index()] = VisitMark::Done;
                    path.pop();
                }
                Some(next) if marks[next.index()] == VisitMark::New => enter = Some(next),
                Some(next) if marks[next.index()] == VisitMark::Open => {
                    let nodes: Vec<NodeId> = path.iter().map(|(node, _)| *node).collect();
                    return Some(circle_problem(tree, &nodes, next));
                }
                Some(_) => {}
            }
        }
    }
    None
}

/// The most schemas of a cycle that are named, and the most bytes of each name.
const MOST_NAMED: usize = 12;
const NAMED_LENGTH: usize = 1 << 10;

fn circle_problem(tree: &Tree, path: &[NodeId], back: NodeId) -> Problem {
    let from = path.iter().position(|&node| node == back).unwrap_or(0);
    let name = |&node: &NodeId| format!("#{}", tree.short_pointer(node, NAMED_LENGTH));
    let mut names: Vec<String> = path[from..].iter().take(MOST_NAMED).map(name).collect();
    if path.len() - from > MOST_NAMED {
        names.push("…".into());
    }
    names.push(name(&back));
    let circle = names.join(" -> ");
    let message = format!("circular reference: {circle}");
    Problem::at_pointer(ProblemKind::Reference, tree.pointer(back), message)
}
