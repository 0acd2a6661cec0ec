//! Resolves the URIs of a source: the schemas with an `$id` or an anchor that were read, and the documents
//! that the caller provided.

use std::rc::Rc;

use foldhash::{HashMap, HashSet};
use serde_json::Value;

/// The targets of the URIs of a source.
#[derive(Default)]
pub(crate) struct Resources<'v> {
    by_uri: HashMap<Rc<str>, (&'v Value, u32)>,
    anchors: HashMap<(Rc<str>, String), (&'v Value, u32)>,
    /// The dynamic anchors: their name, the resource that contains them, and the schema.
    dynamic: Vec<(Rc<str>, Rc<str>, *const Value)>,
    /// The names and resources of the dynamic anchors.
    named: HashSet<(Rc<str>, Rc<str>)>,
    /// The documents that the caller provided, by their URI.
    documents: HashMap<&'v str, &'v Value>,
}

impl<'v> Resources<'v> {
    /// Returns the resources with the documents that the caller provided, by their URI.
    pub(crate) fn with_documents(documents: &'v [(String, Value)]) -> Self {
        let documents = documents.iter();
        Resources {
            documents: documents.map(|(uri, value)| (uri.as_str(), value)).collect(),
            ..Resources::default()
        }
    }

    /// Returns the schema of a URI, with its scope.
    pub(crate) fn of_uri(&self, uri: &str) -> Option<(&'v Value, u32)> {
        self.by_uri.get(uri).copied()
    }

    /// Returns the schema of an anchor of a resource, with its scope.
    pub(crate) fn of_anchor(&self, uri: &str, anchor: &str) -> Option<(&'v Value, u32)> {
        self.anchors.get(&(Rc::from(uri), anchor.to_owned())).copied()
    }

    /// Returns the dynamic anchors: their name, the resource that contains them, and the schema.
    pub(crate) fn dynamic(&self) -> &[(Rc<str>, Rc<str>, *const Value)] {
        &self.dynamic
    }

    pub(crate) fn add(&mut self, uri: Rc<str>, value: &'v Value, scope: u32) {
        self.by_uri.entry(uri).or_insert((value, scope));
    }

    /// Returns a document that the caller provided.
    pub(crate) fn given(&self, uri: &str) -> Option<&'v Value> {
        self.documents.get(uri).copied()
    }

    /// Records an anchor that dynamic references look for, once.
    pub(crate) fn add_dynamic(&mut self, uri: &Rc<str>, anchor: &str, value: &'v Value) {
        let anchor: Rc<str> = anchor.into();
        if self.named.insert((anchor.clone(), uri.clone())) {
            self.dynamic
                .push((anchor, uri.clone(), std::ptr::from_ref(value)));
        }
    }

    pub(crate) fn add_anchor(&mut self, uri: &Rc<str>, anchor: &str, value: &'v Value, scope: u32) {
        if value.get("$dynamicAnchor").and_then(Value::as_str) == Some(anchor) {
            self.add_dynamic(uri, anchor, value);
        }
        self.anchors
            .entry((uri.clone(), anchor.to_owned()))
            .or_insert((value, scope));
    }
}
