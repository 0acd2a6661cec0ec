//! Checks a schema against a profile, keyword by keyword.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use lexiform_automata::error::{Problem, ProblemKind};
use lexiform_automata::limits::{Account, Cancel};

use crate::schema::escape_segment;

use super::pattern;
use super::profile::{Beside, ConstantKind, NumberKeyword, Prefix, Profile, References, RestRule, Root};
use super::size::{Size, schemas_within};

/// The keywords that say nothing about values and that every target takes.
const NOTES: [&str; 3] = ["title", "description", "$defs"];

/// Returns everything in a schema that the target does not take, with its place. If it is cancelled, the
/// result is not used.
pub(super) fn check(schema: &Value, profile: &Profile, cancel: &Cancel) -> Vec<Problem> {
    let mut checking = Checking {
        profile,
        document: schema,
        problems: Vec::new(),
        held: cancel.account(),
        has_references: HashMap::new(),
    };
    checking.root();
    let mut open = vec![(String::new(), schema)];
    // The pointers of all places may be many times as long as the schema.
    let mut held = cancel.account();
    while let Some((pointer, schema)) = open.pop() {
        if cancel.is_asked() {
            break;
        }
        match schema {
            Value::Object(map) => {
                checking.schema(&pointer, map);
                let within = schemas_within(map).into_iter().rev();
                let within = within.take_while(|(segment, _)| held.grow(pointer.len() + segment.len()));
                open.extend(within.map(|(segment, inner)| (format!("{pointer}{segment}"), inner)));
            }
            _ if profile.any => {}
            _ => checking.add(&pointer, "", "the target takes no schemas `true` and `false`"),
        }
    }
    if profile.references != References::Recursive && has_circle(schema) {
        checking.add("", "$ref", "the target takes no schema that refers to itself");
    }
    let size = Size::of(schema);
    if let Some(excess) = size.excess(&profile.limits) {
        let problem = Problem::at_pointer(ProblemKind::Limit, "", excess.describe(&size, &profile.limits));
        checking.problems.push(problem);
    }
    checking.problems
}

/// Returns `true` if some reference of a document leads into a circle.
pub(super) fn has_circle(document: &Value) -> bool {
    let pointers = |schema: &Value| {
        let mut found = Vec::new();
        let mut open = vec![schema];
        while let Some(next) = open.pop() {
            let Value::Object(map) = next else { continue };
            if let Some(Value::String(reference)) = map.get("$ref") {
                found.push(reference.strip_prefix('#').unwrap_or_default().to_owned());
            }
            let within = schemas_within(map).into_iter();
            let within = within.filter(|(segment, _)| {
                !segment.starts_with("/$defs/") && !segment.starts_with("/definitions/")
            });
            open.extend(within.map(|(_, inner)| inner));
        }
        found
    };
    let mut known: HashMap<String, Vec<String>> = Default::default();
    let mut open = vec![String::new()];
    while let Some(pointer) = open.pop() {
        if let (false, Some(schema)) = (known.contains_key(&pointer), document.pointer(&pointer)) {
            let further = pointers(schema);
            open.extend(further.iter().cloned());
            known.insert(pointer, further);
        }
    }
    // A walk in depth finds a schema that is still being visited.
    let mut states: HashMap<&str, bool> = Default::default();
    let mut path: Vec<(&str, usize)> = vec![("", 0)];
    states.insert("", false);
    while let Some((at, next)) = path.last_mut() {
        let Some(to) = known.get(*at).and_then(|further| further.get(*next)) else {
            states.insert(at, true);
            path.pop();
            continue;
        };
        *next += 1;
        match states.get(&**to) {
            Some(false) => return true,
            Some(true) => {}
            None => {
                states.insert(to, false);
                path.push((to, 0));
            }
        }
    }
    false
}

struct Checking<'p> {
    profile: &'p Profile,
    document: &'p Value,
    problems: Vec<Problem>,
    held: Account,
    /// Whether there are references in what a reference leads to, by its pointer.
    has_references: HashMap<String, bool>,
}

impl Checking<'_> {
    fn add(&mut self, pointer: &str, keyword: &str, message: impl Into<String>) {
        let pointer = match keyword {
            "" => pointer.to_owned(),
            keyword => format!("{pointer}/{}", escape_segment(keyword)),
        };
        let message = message.into();
        if self
            .held
            .grow(size_of::<Problem>() + pointer.len() + message.len())
        {
            let problem = Problem::at_pointer(ProblemKind::Unsupported, pointer, message);
            self.problems.push(problem);
        }
    }

    fn root(&mut self) {
        if self.profile.root == Root::Object && self.document.get("type") != Some(&Value::from("object")) {
            self.add("", "type", "the root must have `\"type\": \"object\"`");
        }
        if self.profile.root == Root::Object && self.document.get("anyOf").is_some() {
            self.add("", "anyOf", "the root must be no `anyOf`");
        }
    }

    fn schema(&mut self, pointer: &str, map: &Map<String, Value>) {
        if let Some(reference) = map.get("$ref") {
            self.reference(pointer, map, reference);
            return;
        }
        if map.contains_key("anyOf") {
            if !self.profile.union {
                self.add(pointer, "anyOf", "the target takes no `anyOf`");
            }
            self.only(pointer, map, &["anyOf"]);
            return;
        }
        let types = match map.get("type") {
            Some(Value::String(name)) => vec![name.as_str()],
            Some(Value::Array(list)) if self.profile.types => list.iter().filter_map(Value::as_str).collect(),
            Some(Value::Array(_)) => {
                self.add(pointer, "type", "the target takes one type only");
                return;
            }
            _ => return self.untyped(pointer, map),
        };
        let mut allowed = vec!["type", "enum"];
        if self.profile.constants.r#const {
            allowed.push("const");
        }
        for name in types {
            allowed.extend(self.of_type(pointer, name, map));
        }
        self.constants(pointer, map);
        self.counts(pointer, map);
        self.only(pointer, map, &allowed);
    }

    fn counts(&mut self, pointer: &str, map: &Map<String, Value>) {
        let Some(most) = self.profile.limits.counts else {
            return;
        };
        for keyword in ["minLength", "maxLength", "minItems", "maxItems"] {
            if map
                .get(keyword)
                .and_then(Value::as_u64)
                .is_some_and(|count| count > most)
            {
                self.add(
                    pointer,
                    keyword,
                    format!("the target takes counts of at most {most}"),
                );
            }
        }
    }

    fn untyped(&mut self, pointer: &str, map: &Map<String, Value>) {
        let is_listed = map.contains_key("enum") || map.contains_key("const");
        if !is_listed && !self.profile.any {
            self.add(pointer, "", "a `type` is missing");
        }
        self.constants(pointer, map);
        let allowed: &[&str] = match self.profile.constants.r#const {
            true => &["enum", "const"],
            false => &["enum"],
        };
        self.only(pointer, map, allowed);
    }

    /// Reports every keyword that is not among these.
    fn only(&mut self, pointer: &str, map: &Map<String, Value>, allowed: &[&str]) {
        for keyword in map.keys().filter(|keyword| !allowed.contains(&keyword.as_str())) {
            let is_note = NOTES.contains(&keyword.as_str()) && (keyword != "$defs" || pointer.is_empty());
            if !is_note {
                self.add(
                    pointer,
                    keyword,
                    format!("the target does not take `{keyword}` here"),
                );
            }
        }
    }

    fn reference(&mut self, pointer: &str, map: &Map<String, Value>, reference: &Value) {
        let target = reference.as_str().and_then(|text| text.strip_prefix('#'));
        let is_there = target.is_some_and(|target| {
            (target.is_empty() || target.starts_with("/$defs/")) && self.document.pointer(target).is_some()
        });
        if self.profile.references == References::None {
            self.add(pointer, "$ref", "the target takes no references");
        } else if self.profile.references == References::Leaves
            && is_there
            && self.has_reference(target.unwrap_or_default())
        {
            self.add(
                pointer,
                "$ref",
                "the target takes no references to what has references",
            );
        } else if !is_there {
            self.add(
                pointer,
                "$ref",
                "the target takes references to `$defs` of the same schema only",
            );
        }
        let allowed: &[&str] = &["$ref"];
        match self.profile.beside_reference || pointer.is_empty() {
            true => self.only(pointer, map, allowed),
            false => {
                for keyword in map.keys().filter(|keyword| *keyword != "$ref") {
                    self.add(pointer, keyword, "the target takes nothing beside `$ref`");
                }
            }
        }
    }

    fn has_reference(&mut self, target: &str) -> bool {
        if let Some(&known) = self.has_references.get(target) {
            return known;
        }
        let found = self.finds_reference(target);
        self.has_references.insert(target.to_owned(), found);
        found
    }

    fn finds_reference(&self, target: &str) -> bool {
        let mut open: Vec<&Value> = self.document.pointer(target).into_iter().collect();
        while let Some(next) = open.pop() {
            let Value::Object(map) = next else { continue };
            if map.contains_key("$ref") {
                return true;
            }
            open.extend(schemas_within(map).into_iter().map(|(_, inner)| inner));
        }
        false
    }

    fn constants(&mut self, pointer: &str, map: &Map<String, Value>) {
        let listed = map.get("enum").and_then(Value::as_array).into_iter().flatten();
        let kinds = &self.profile.constants.kinds;
        let unknown = listed
            .chain(map.get("const"))
            .find(|value| !kinds.contains(&ConstantKind::of(value)));
        if let Some(value) = unknown {
            let keyword = if map.contains_key("enum") { "enum" } else { "const" };
            let message = format!("the target takes no constants like {value}");
            self.add(pointer, keyword, message);
        }
    }

    /// Checks the keywords of one type, and returns those that are taken.
    fn of_type(&mut self, pointer: &str, name: &str, map: &Map<String, Value>) -> Vec<&'static str> {
        match name {
            "string" => self.string(pointer, map),
            "integer" => self
                .profile
                .integer
                .iter()
                .map(|keyword| NumberKeyword::name(*keyword))
                .collect(),
            "number" => self
                .profile
                .number
                .iter()
                .map(|keyword| NumberKeyword::name(*keyword))
                .collect(),
            "array" => self.array(pointer, map),
            "object" => self.object(pointer, map),
            _ => Vec::new(),
        }
    }

    fn string(&mut self, pointer: &str, map: &Map<String, Value>) -> Vec<&'static str> {
        let rules = &self.profile.string;
        let mut taken = Vec::new();
        let has_lengths = map.contains_key("minLength") || map.contains_key("maxLength");
        if rules.lengths {
            taken.extend(["minLength", "maxLength"]);
        }
        let format = map.get("format").and_then(Value::as_str);
        match format {
            Some(format) if !rules.formats.iter().any(|known| known == format) => {
                self.add(
                    pointer,
                    "format",
                    format!("the target does not know the format `{format}`"),
                );
            }
            _ => {}
        }
        taken.push("format");
        let is_beside = |what: Beside| {
            self.profile
                .string
                .pattern
                .as_ref()
                .is_none_or(|rules| rules.beside.contains(&what))
        };
        let (besides_format, besides_lengths) = (is_beside(Beside::Format), is_beside(Beside::Lengths));
        if let Some(rules) = &self.profile.string.pattern {
            taken.push("pattern");
            if let Some(Value::String(text)) = map.get("pattern") {
                let is_printed = !rules.anchored || text.starts_with('^') && text.ends_with('$');
                let is_taken =
                    pattern::is_taken(text, rules) || is_printed && pattern::is_printed(text, rules);
                if !is_taken {
                    self.add(
                        pointer,
                        "pattern",
                        "the target reads this pattern in another way, or not at all",
                    );
                }
                if format.is_some() && !besides_format {
                    self.add(pointer, "format", "the target takes no format beside a pattern");
                }
            }
            if has_lengths && rules_conflict(map) && !besides_lengths && self.profile.string.lengths {
                self.add(
                    pointer,
                    "pattern",
                    "the target takes no lengths beside a pattern or format",
                );
            }
        }
        taken
    }

    fn array(&mut self, pointer: &str, map: &Map<String, Value>) -> Vec<&'static str> {
        let rules = &self.profile.array;
        let mut taken = vec!["items", "minItems"];
        if rules.most {
            taken.push("maxItems");
        }
        if rules.unique {
            taken.push("uniqueItems");
        }
        let is_fixed = rules.prefix == Prefix::Fixed;
        let (least, prefix) = (rules.least, rules.prefix);
        if prefix != Prefix::None {
            taken.push("prefixItems");
        }
        let has_prefix = map.contains_key("prefixItems");
        let length = map
            .get("prefixItems")
            .and_then(Value::as_array)
            .map(|list| list.len() as u64);
        let count = |keyword: &str| map.get(keyword).and_then(Value::as_u64);
        let is_whole =
            !map.contains_key("items") && count("minItems") == length && count("maxItems") == length;
        if is_fixed && has_prefix && !is_whole {
            self.add(
                pointer,
                "prefixItems",
                "the target takes all items of a tuple and no others",
            );
        }
        let min = map.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        if least.is_some_and(|least| min > least) {
            self.add(
                pointer,
                "minItems",
                format!("the target takes a `minItems` of at most {}", least.unwrap_or(0)),
            );
        }
        let is_empty = map.get("maxItems").and_then(Value::as_u64) == Some(0);
        if !map.contains_key("items") && !has_prefix && !is_empty {
            self.add(pointer, "", "`items` is missing");
        }
        taken
    }

    fn object(&mut self, pointer: &str, map: &Map<String, Value>) -> Vec<&'static str> {
        let rules = &self.profile.object;
        let mut taken = vec!["properties", "required", "additionalProperties"];
        if rules.counts {
            taken.extend(["minProperties", "maxProperties"]);
        }
        let (rest, is_optional) = (rules.rest, rules.optional);
        if rest == RestRule::Patterns {
            taken.push("patternProperties");
        }
        let properties = map.get("properties").and_then(Value::as_object);
        let is_alone = properties.is_none_or(Map::is_empty);
        let is_closed = map.get("additionalProperties") == Some(&Value::Bool(false));
        let may_be_open = match rest {
            RestRule::Never => false,
            RestRule::Alone => is_alone,
            RestRule::Any | RestRule::Patterns => true,
        };
        if !is_closed && !may_be_open {
            self.add(
                pointer,
                "additionalProperties",
                "`additionalProperties` must be there and be false",
            );
        }
        let required: Vec<&str> = map
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let all: HashSet<&str> = required.iter().copied().collect();
        let missing = properties
            .into_iter()
            .flat_map(Map::keys)
            .find(|name| !all.contains(name.as_str()));
        if let Some(name) = missing.filter(|_| !is_optional) {
            self.add(
                pointer,
                "required",
                format!(
                    "every property must be required, and {} is not",
                    Value::from(name.as_str())
                ),
            );
        }
        let is_unlisted = |name: &str| properties.is_none_or(|properties| !properties.contains_key(name));
        let unlisted = required.into_iter().find(|name| is_unlisted(name));
        if let Some(name) = unlisted.filter(|_| !may_be_open) {
            self.add(
                pointer,
                "required",
                format!("{} is required and not among the properties", Value::from(name)),
            );
        }
        taken
    }
}

fn rules_conflict(map: &Map<String, Value>) -> bool {
    map.contains_key("pattern") || map.contains_key("format")
}
