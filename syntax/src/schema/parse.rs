//! Stage 1: converts a JSON value to a keyword tree.
//!
//! The reader keeps a list of schemas that are still to be read instead of recursing, so depth costs no
//! stack. All problems are collected; reading continues after each.
//!
//! ```text
//!   value ──► node ──► one function per group of keywords ──► Keyword
//!               ▲                                               │ subschemas
//!               └───────────────── list ◄───────────────────────┘
//! ```

mod array;
mod combine;
mod constant;
mod number;
mod object;
mod resources;
pub(super) mod source;
mod stray;
mod string;
pub(super) mod uri;

pub use stray::{is_lost_assertion, is_meant_to_assert, is_unknown_format};

pub(super) use resources::Resources;

use std::rc::Rc;

use foldhash::{HashMap, HashMapExt};
use serde_json::{Map, Value};

use crate::suggest;
use lexiform_automata::error::{Diagnostics, Problem, ProblemKind};
use lexiform_automata::limits::{Account, Limits};

use super::decimal::Decimal;
use super::draft::Draft;
use super::findings::bytes_of;
use super::node::{Keyword, Node, NodeId, RefId, Tree, Whole, escape_segment};
use super::options::Formats;
use super::text::Texts;

/// The result of reading a source.
pub(crate) struct Parsed {
    pub(crate) tree: Tree,
    pub(crate) texts: Texts,
    pub(crate) root: NodeId,
    /// The account of the memory of the tree.
    pub(crate) held: Account,
}

/// The part of a document that shares a base URI and a draft.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) uri: Rc<str>,
    /// `None` if the source does not say; then both old and new keywords are understood.
    pub(super) draft: Option<Draft>,
    /// `true` if the metaschema has the validation vocabulary: the keywords that make assertions about a
    /// value.
    pub(super) validates: bool,
}

/// A schema that is still to be read.
struct Job<'v> {
    id: NodeId,
    value: &'v Value,
    /// `true` if the value is a constant that the node must allow, rather than a schema.
    constant: bool,
}

/// A `$ref` before it is resolved.
pub(super) struct Reference {
    pub(super) node: NodeId,
    pub(super) keyword: &'static str,
    pub(super) text: String,
    /// The name of the anchor to look for along the dynamic scope, if the reference is dynamic.
    pub(super) dynamic: Option<Rc<str>>,
}

/// Reads schemas; see the module docs.
pub(super) struct Reader<'v> {
    pub(super) limits: &'v Limits,
    pub(super) formats: Formats,
    pub(super) tree: Tree,
    pub(super) texts: Texts,
    pub(super) problems: Vec<Problem>,
    pub(super) diagnostics: Diagnostics,
    pub(super) scopes: Vec<Scope>,
    /// The scope of each node.
    pub(super) scope_of: Vec<u32>,
    pub(super) references: Vec<Reference>,
    pub(super) resources: Resources<'v>,
    /// The node of each schema value, by its address: the values do not move while the reader lives.
    pub(super) known: HashMap<*const Value, NodeId>,
    todo: Vec<Job<'v>>,
    /// The account of the memory of the tree and of the diagnostics.
    pub(super) held: Account,
    /// The number of bytes of the problems.
    told: usize,
}

/// The approximate number of bytes of a schema and of its entries in the reader's lists, without its pointer
/// and keywords.
const NODE_BYTES: usize = 192;

/// The approximate number of bytes of a keyword; its list may have twice the capacity that it needs.
const KEYWORD_BYTES: usize = 2 * size_of::<(&str, Keyword)>() + 32;

/// The approximate number of bytes of a name in a list and in the table that finds it.
pub(super) const NAME_BYTES: usize = 112;

/// The most bytes of a URI that others are resolved against: each schema with an `$id` creates one.
pub(super) const MOST_URI: usize = 8 << 10;

/// The approximate number of bytes of a scope, without its URI.
const SCOPE_BYTES: usize = 160;

/// The most bytes of problems that are collected, including pointers. By then there are enough to fix.
const MOST_TOLD: usize = 1 << 20;

/// The JSON object that is being read as a schema.
#[derive(Clone, Copy)]
pub(super) struct Site<'v> {
    pub(super) id: NodeId,
    pub(super) map: &'v Map<String, Value>,
    pub(super) draft: Option<Draft>,
}

impl Site<'_> {
    /// Returns `true` if a keyword that was introduced in a draft is a keyword here.
    fn since(&self, draft: Draft) -> bool {
        self.draft.is_none_or(|here| here >= draft)
    }

    /// Returns `true` if a keyword that was last valid in a draft is a keyword here.
    fn until(&self, draft: Draft) -> bool {
        self.draft.is_none_or(|here| here <= draft)
    }
}

impl<'v> Reader<'v> {
    pub(super) fn new(limits: &'v Limits, formats: Formats, resources: Resources<'v>) -> Self {
        Reader {
            limits,
            formats,
            tree: Tree::default(),
            texts: Texts::new(&limits.cancel),
            problems: Vec::new(),
            diagnostics: Diagnostics::default(),
            scopes: Vec::new(),
            scope_of: Vec::new(),
            references: Vec::new(),
            resources,
            known: HashMap::new(),
            todo: Vec::new(),
            held: limits.cancel.account(),
            told: 0,
        }
    }

    /// Adds a schema that has no enclosing schema: the root of a document, or the target of a reference to a
    /// place that no keyword reads.
    pub(super) fn add_root(&mut self, value: &'v Value, pointer: &str, scope: u32) -> NodeId {
        self.add(None, pointer, value, scope, false)
    }

    fn add(
        &mut self,
        parent: Option<NodeId>,
        segment: impl Into<Box<str>>,
        value: &'v Value,
        scope: u32,
        constant: bool,
    ) -> NodeId {
        let id = NodeId(self.tree.nodes.len() as u32);
        let segment = segment.into();
        self.held.grow(NODE_BYTES + segment.len());
        self.tree.nodes.push(Node {
            parent,
            segment,
            keywords: Rc::default(),
        });
        self.scope_of.push(scope);
        if !constant {
            self.known.insert(std::ptr::from_ref(value), id);
        }
        self.todo.push(Job { id, value, constant });
        id
    }

    /// Adds a subschema below a keyword.
    pub(super) fn child(&mut self, site: Site<'v>, segment: impl Into<Box<str>>, value: &'v Value) -> NodeId {
        let scope = self.scope_of[site.id.index()];
        self.add(Some(site.id), segment, value, scope, false)
    }

    /// Reads all schemas that were added.
    pub(super) fn read_all(&mut self) {
        while let Some(Job { id, value, constant }) = self.todo.pop() {
            if self.limits.cancel.is_asked() {
                return;
            }
            if constant {
                self.read_constant(id, value);
                continue;
            }
            match value {
                Value::Bool(true) => {}
                Value::Bool(false) => self.push(id, "", Keyword::Never),
                Value::Object(map) => self.read_object(id, value, map),
                _ => {
                    let message = format!("a schema must be an object or a boolean, not {}", describe(value));
                    self.problem_at(ProblemKind::Invalid, id, None, message);
                }
            }
        }
    }

    fn read_object(&mut self, id: NodeId, value: &'v Value, map: &'v Map<String, Value>) {
        // Most schemas have no name and refer to nothing; scanning their keys finds this out faster than
        // looking up each keyword.
        let refers = map.keys().any(|key| key.starts_with('$') || key == "id");
        if refers {
            self.enter_scope(id, value, map);
        }
        let draft = self.scopes[self.scope_of[id.index()] as usize].draft;
        let site = Site { id, map, draft };
        if refers
            && draft.is_some_and(|draft| draft <= Draft::D7)
            && let Some(reference) = map.get("$ref")
        {
            // Until draft 7, all keywords beside a reference are ignored.
            self.reference(site, "$ref", reference);
            return;
        }
        for (key, value) in map {
            self.read_keyword(site, key, value);
        }
    }

    /// Records `$schema`, `$id` and the anchors of a schema, which later references may name.
    fn enter_scope(&mut self, id: NodeId, value: &'v Value, map: &'v Map<String, Value>) {
        let mut scope = self.scope_of[id.index()];
        let outer = self.scopes[scope as usize].clone();
        let (base, draft) = (outer.uri.clone(), outer.draft);
        let is_root = self.tree.node(id).parent.is_none();
        let declared = map.get("$schema").and_then(Value::as_str);
        let (mut new_draft, mut validates) = (draft, outer.validates);
        if let Some(text) = declared
            && (is_root || map.contains_key("$id") || map.contains_key("id"))
        {
            let declared = self.declared_draft(id, text);
            (new_draft, validates) = (declared.0.or(draft), declared.1);
        }
        let hidden = map.contains_key("$ref") && new_draft.is_some_and(|draft| draft <= Draft::D7);
        let keyword = if new_draft == Some(Draft::D4) { "id" } else { "$id" };
        let name = map.get(keyword).and_then(Value::as_str).filter(|_| !hidden);
        let (document, fragment) = name.map_or(("", None), uri::split_fragment);
        if new_draft != draft || validates != outer.validates || !document.is_empty() {
            if base.len() + document.len() > MOST_URI {
                let message = format!("a URI longer than {MOST_URI} bytes is not supported");
                return self.problem(ProblemKind::Limit, id, keyword, message);
            }
            let uri: Rc<str> = uri::join(&base, document).into();
            self.held.grow(2 * uri.len() + SCOPE_BYTES);
            scope = self.scopes.len() as u32;
            self.scopes.push(Scope {
                uri: uri.clone(),
                draft: new_draft,
                validates,
            });
            self.scope_of[id.index()] = scope;
            if !document.is_empty() {
                self.resources.add(uri, value, scope);
            }
        }
        let uri = self.scopes[scope as usize].uri.clone();
        let anchors = [
            fragment,
            map.get("$anchor").and_then(Value::as_str),
            map.get("$dynamicAnchor").and_then(Value::as_str),
        ];
        for anchor in anchors
            .into_iter()
            .flatten()
            .filter(|anchor| !anchor.is_empty() && !hidden)
        {
            self.resources.add_anchor(&uri, anchor, value, scope);
        }
        if map.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
            self.resources.add_dynamic(&uri, "", value);
        }
    }

    /// Returns the draft of a metaschema, and whether its keywords make assertions about values.
    fn declared_draft(&mut self, id: NodeId, text: &str) -> (Option<Draft>, bool) {
        if let Some(draft) = Draft::named(text) {
            return (Some(draft), true);
        }
        if let Some(given) = self.resources.given(uri::split_fragment(text).0) {
            let draft = given
                .get("$schema")
                .and_then(Value::as_str)
                .and_then(Draft::named);
            let used = |name: &str| name.ends_with("/vocab/validation");
            let vocabularies = given.get("$vocabulary").and_then(Value::as_object);
            let validates = vocabularies.is_none_or(|list| list.keys().any(|name| used(name)));
            return (draft, validates);
        }
        let message = format!("unknown metaschema `{text}`; the schema is read as draft 2020-12");
        self.note(id, "$schema", message);
        (None, true)
    }

    fn read_keyword(&mut self, site: Site<'v>, key: &'v str, value: &'v Value) {
        match key {
            _ if is_validation(key) && !self.scopes[self.scope_of[site.id.index()] as usize].validates => {
                self.note_unknown(site.id, key);
            }
            "type" => self.types(site, value),
            "enum" | "const" => self.values(site, key, value),
            "$ref" => self.reference(site, "$ref", value),
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" => self.combinator(site, key, value),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
                self.number_keyword(site, key, value);
            }
            "minLength" | "maxLength" | "pattern" | "format" => self.string_keyword(site, key, value),
            "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "minItems" | "maxItems"
            | "uniqueItems" | "contains" | "minContains" | "maxContains" => {
                self.array_keyword(site, key, value)
            }
            "properties"
            | "patternProperties"
            | "additionalProperties"
            | "unevaluatedProperties"
            | "required"
            | "minProperties"
            | "maxProperties"
            | "propertyNames"
            | "dependencies"
            | "dependentRequired"
            | "dependentSchemas" => self.object_keyword(site, key, value),
            "$defs" | "definitions" => self.definitions(site, key, value),
            "$dynamicRef" if site.since(Draft::D2020) => self.reference(site, "$dynamicRef", value),
            "$recursiveRef" if site.since(Draft::D2019) && site.until(Draft::D2019) => {
                self.reference(site, "$recursiveRef", value);
            }
            _ if is_annotation(key) => {}
            _ => self.note_unknown(site.id, key),
        }
    }

    fn types(&mut self, site: Site<'v>, value: &'v Value) {
        let names: Vec<&Value> = match value {
            Value::String(_) => vec![value],
            Value::Array(list) => list.iter().collect(),
            _ => Vec::new(),
        };
        let mut types = super::node::Types::default();
        let good = names
            .iter()
            .all(|name| name.as_str().is_some_and(|name| types.add(name)));
        if names.is_empty() || !good {
            return self.invalid(site.id, "type", bad_type(value, &names));
        }
        let whole = if site.draft == Some(Draft::D4) {
            Whole::Spelling
        } else {
            Whole::Value
        };
        self.push(site.id, "type", Keyword::Type { types, whole });
    }

    fn definitions(&mut self, site: Site<'v>, key: &str, value: &'v Value) {
        let Some(map) = value.as_object() else {
            return self.invalid(
                site.id,
                key,
                format!("`{key}` must be an object of schemas, not {}", describe(value)),
            );
        };
        for (name, value) in map {
            // An entry that is not a schema can only be a container for schemas; it is read when a reference
            // leads to it.
            if value.is_object() || value.is_boolean() {
                self.child(site, ["/", key, "/", &escape_segment(name)].concat(), value);
            }
        }
    }

    fn reference(&mut self, site: Site<'v>, keyword: &'static str, value: &'v Value) {
        let Some(text) = value.as_str() else {
            return self.invalid(
                site.id,
                keyword,
                format!("`{keyword}` must be a URI reference, not {}", describe(value)),
            );
        };
        self.held.grow(2 * size_of::<Reference>() + text.len());
        let id = RefId(self.references.len() as u32);
        self.references.push(Reference {
            node: site.id,
            keyword,
            text: text.to_owned(),
            dynamic: None,
        });
        self.push(site.id, keyword, Keyword::Ref(id));
    }

    pub(super) fn push(&mut self, id: NodeId, name: &'static str, keyword: Keyword) {
        self.held.grow(KEYWORD_BYTES);
        Rc::make_mut(&mut self.tree.nodes[id.index()].keywords).push((name, keyword));
    }

    pub(super) fn problem(&mut self, kind: ProblemKind, id: NodeId, key: &str, message: impl Into<String>) {
        self.problem_at(kind, id, Some(&escape_segment(key)), message);
    }

    /// Reports a problem of a schema or of a part of it, unless there are too many.
    pub(super) fn problem_at(
        &mut self,
        kind: ProblemKind,
        id: NodeId,
        part: Option<&str>,
        message: impl Into<String>,
    ) {
        if self.told > MOST_TOLD {
            return;
        }
        let pointer = match part {
            Some(part) => self.tree.keyword_pointer(id, part),
            None => self.tree.pointer(id),
        };
        let problem = Problem::at_pointer(kind, pointer, message);
        self.told += bytes_of(&problem);
        self.problems.push(problem);
    }

    pub(super) fn invalid(&mut self, id: NodeId, key: &str, message: impl Into<String>) {
        self.problem(ProblemKind::Invalid, id, key, message);
    }

    pub(super) fn unsupported(&mut self, id: NodeId, key: &str, message: impl Into<String>) {
        self.problem(ProblemKind::Unsupported, id, key, message);
    }

    /// Adds a finding that does not stop the compilation.
    pub(super) fn note(&mut self, id: NodeId, key: &str, message: impl Into<String>) {
        self.note_as(ProblemKind::Unsupported, id, key, message);
    }

    pub(super) fn note_as(&mut self, kind: ProblemKind, id: NodeId, key: &str, message: impl Into<String>) {
        if self.limits.cancel.is_asked() {
            return;
        }
        let pointer = self.tree.keyword_pointer(id, &escape_segment(key));
        let finding = Problem::at_pointer(kind, pointer, message);
        if self.held.grow(bytes_of(&finding)) {
            self.diagnostics.push(finding);
        }
    }

    pub(super) fn note_unknown(&mut self, id: NodeId, key: &str) {
        let draft = self.scopes[self.scope_of[id.index()] as usize].draft;
        self.note(id, key, unknown_keyword(key, draft));
    }

    /// Reads a keyword whose value is a count.
    pub(super) fn count(&mut self, site: Site<'v>, key: &str, value: &'v Value) -> Option<u64> {
        let count = decimal(value).and_then(|number| number.to_u64());
        if count.is_none() {
            self.invalid(
                site.id,
                key,
                format!("`{key}` must be a non-negative integer, not {}", describe(value)),
            );
        }
        count
    }
}

/// Returns a JSON number exactly.
pub(super) fn decimal(value: &Value) -> Option<Decimal> {
    match value {
        Value::Number(number) => Decimal::parse(number.as_str()),
        _ => None,
    }
}

/// Describes a value for messages.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.len() <= 40 => format!("{text:?}"),
        Value::String(_) => "a string".into(),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}

/// Returns the message for a `type` with a name that is not the name of a type.
fn bad_type(value: &Value, names: &[&Value]) -> String {
    let unknown = |name: &&&Value| !name.as_str().is_some_and(|name| TYPES.contains(&name));
    match names.iter().find(unknown) {
        Some(Value::String(name)) if name.len() <= 40 => {
            let meant = suggest::nearest(name, TYPES.iter().copied());
            let meant = meant.map_or(String::new(), |meant| format!("; did you mean {meant:?}?"));
            format!("unknown type {name:?}{meant} (types: {})", TYPES.join(", "))
        }
        Some(name) => format!("`type` must name types, not {}", describe(name)),
        None if value.is_array() => "`type` must name at least one type".to_owned(),
        None => format!(
            "`type` must be a type name or an array of type names, not {}",
            describe(value)
        ),
    }
}

/// Returns the message that a keyword has no effect, with the keyword that was probably meant.
fn unknown_keyword(key: &str, draft: Option<Draft>) -> String {
    match stray::meant(key) {
        Some(meant) if meant == key => match draft {
            Some(draft) => format!("`{key}` is not a keyword of {draft} and has no effect"),
            None => format!("`{key}` is not a keyword of JSON Schema and has no effect"),
        },
        Some(meant) => format!("unknown keyword `{key}` has no effect; did you mean `{meant}`?"),
        None => format!("unknown keyword `{key}` has no effect"),
    }
}

/// The types of JSON Schema.
const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Checks whether a keyword belongs to the validation vocabulary, which a metaschema may leave out.
fn is_validation(key: &str) -> bool {
    matches!(
        key,
        "type"
            | "enum"
            | "const"
            | "minimum"
            | "maximum"
            | "exclusiveMinimum"
            | "exclusiveMaximum"
            | "multipleOf"
            | "minLength"
            | "maxLength"
            | "pattern"
            | "minItems"
            | "maxItems"
            | "uniqueItems"
            | "minContains"
            | "maxContains"
            | "minProperties"
            | "maxProperties"
            | "required"
            | "dependentRequired"
    )
}

/// Checks whether a keyword describes a value without constraining it.
fn is_annotation(key: &str) -> bool {
    matches!(
        key,
        "$schema"
            | "$id"
            | "id"
            | "$anchor"
            | "$dynamicAnchor"
            | "$recursiveAnchor"
            | "$comment"
            | "$vocabulary"
            | "title"
            | "description"
            | "default"
            | "example"
            | "examples"
            | "deprecated"
            | "readOnly"
            | "writeOnly"
            | "contentEncoding"
            | "contentMediaType"
            | "contentSchema"
    )
}
