//! Reports how a schema is enforced, assertion by assertion.
//!
//! Nothing that compiles allows a value that the schema forbids. The other direction may fail: a regular set
//! may replace a format that is not regular, and one spelling may replace several equal ones. Each such place
//! is a finding of kind [`Narrowed`](ProblemKind::Narrowed), which the report shows at the keyword; every
//! other assertion is exact.
//!
//! The options may leave out more: objects are [`Closed`](Enforced::Closed) if the schema does not mention
//! further keys.
//!
//! Exactness is about values. Their spellings depend on the [`Options`]; but where values are compared, some
//! of their spellings are left out, mostly of numbers with exponents, and `spellings` determines at which
//! keywords. This is computed only for a report; a compilation does not report it, because almost every
//! schema has integers and hardly any program writes `10e-1`.

mod inclusion;
mod show;
mod spellings;

pub use inclusion::{Inclusion, inclusion};
pub use show::normal_form;

use std::fmt;
use std::rc::Rc;

use foldhash::{HashMap, HashMapExt};

use lexiform_automata::error::{CompileError, Diagnostics, Place, Problem, ProblemKind};
use lexiform_automata::limits::Limits;

use super::forms::Normal;
use super::node::{Keyword, Node, NodeId, Tree, escape_segment};
use super::options::{Options, Whitespace};
use super::resolve::read;
use super::{lower, normal};

/// The entry for the whole schema where white space is [as models write it](Whitespace::Indented).
const INDENTED: &str = "white space is none, one space after `:` and `,`, or a line break with at most eight spaces or tabs for each \
    open bracket (64 where values nest without end)";

/// The way in which an assertion is enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enforced {
    /// Values are allowed exactly if they satisfy the assertion.
    Exact,
    /// Values are allowed exactly if they satisfy the assertion, but not in every spelling that JSON has for
    /// them; the text says which spellings are left out.
    Spelled(&'static str),
    /// Objects that the schema leaves open are closed, because the [`Options`] say so; the text says how.
    Closed(String),
    /// Some values that satisfy the assertion are refused; the text says which.
    Narrower(String),
}

/// One assertion of a schema: a keyword at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assertion {
    /// The JSON pointer of the keyword.
    pub pointer: String,
    /// The keyword. It is empty if the whole schema is `false`, and in the last entry, which describes the
    /// white space if the options leave some of it out.
    pub keyword: String,
    /// How the assertion is enforced.
    pub enforced: Enforced,
}

/// All assertions of a schema that compiles, in the order of the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The assertions.
    pub assertions: Vec<Assertion>,
}

impl Report {
    /// Returns `true` if every assertion is enforced exactly: all values of the schema can be written,
    /// perhaps only in some spellings, except for keys that the options leave out.
    pub fn is_exact(&self) -> bool {
        let narrower = |assertion: &Assertion| matches!(assertion.enforced, Enforced::Narrower(_));
        !self.assertions.iter().any(narrower)
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.enforced {
            Enforced::Exact => write!(f, "#{}: exact", self.pointer),
            Enforced::Spelled(how) => write!(f, "#{}: exact for values; {how}", self.pointer),
            Enforced::Closed(how) => write!(f, "#{}: closed: {how}", self.pointer),
            Enforced::Narrower(why) => write!(f, "#{}: narrower: {why}", self.pointer),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.assertions
            .iter()
            .try_for_each(|assertion| writeln!(f, "{assertion}"))
    }
}

/// Reports how each assertion of a schema is enforced.
///
/// ```
/// use lexiform::limits::Limits;
/// use lexiform_syntax::schema;
/// let text = r#"{"minimum": 3, "format": "hostname"}"#;
/// let report = schema::report(text, &schema::Options::default(), &Limits::default()).unwrap();
/// assert!(report.assertions[0].to_string().starts_with("#/minimum: exact for values; "));
/// assert!(report.assertions[1].to_string().starts_with("#/format: narrower"));
/// ```
///
/// # Errors
/// Returns an error if the schema does not compile; see [`lower`](super::lower).
pub fn report(text: &str, options: &Options, limits: &Limits) -> Result<Report, CompileError> {
    let limits = &*limits.begin();
    limits.cancel.unless(reported(text, options, limits))
}

fn reported(text: &str, options: &Options, limits: &Limits) -> Result<Report, CompileError> {
    let (parsed, mut diagnostics) = read(text, options, limits)?;
    let sources = parsed.tree.nodes.len();
    let forms = normal::normalise(parsed, options, limits)?;
    let (_, notes) = lower::grammar(&forms, options, limits)?;
    forms
        .notes
        .iter()
        .cloned()
        .chain(notes)
        .for_each(|note| diagnostics.push(note));
    let mut assertions = Vec::new();
    let mut held = limits.cancel.account();
    for index in 0..sources {
        let pointers: usize = assertions.last().map_or(0, |last: &Assertion| last.pointer.len());
        if !held.grow(size_of::<Assertion>() + pointers) || limits.cancel.is_asked() {
            break;
        }
        add_assertions(&forms.tree, NodeId(index as u32), &mut assertions);
    }
    let mut report = Report { assertions };
    let spelled = spellings::left_out(&forms, sources, options);
    for assertion in &mut report.assertions {
        if let Some(how) = spelled.get(&assertion.pointer) {
            assertion.enforced = Enforced::Spelled(how);
        }
    }
    let notes: Vec<&Problem> = diagnostics.findings.iter().filter(|note| is_less(note)).collect();
    if !notes.is_empty()
        && held.grow(
            report
                .assertions
                .iter()
                .map(|known| known.pointer.len() + 96)
                .sum(),
        )
    {
        apply(&notes, &mut report);
    }
    let takes_white_space = |normal: &Rc<Normal>| !normal.arrays.is_empty() || !normal.objects.is_empty();
    if options.whitespace == Whitespace::Indented && forms.normals.iter().any(takes_white_space) {
        report.assertions.push(Assertion {
            pointer: String::new(),
            keyword: String::new(),
            enforced: Enforced::Spelled(INDENTED),
        });
    }
    Ok(report)
}

/// Returns `true` if a finding says that fewer values are allowed than the source says, including because of
/// an option.
fn is_less(finding: &Problem) -> bool {
    matches!(finding.kind, ProblemKind::Narrowed | ProblemKind::Closed)
}

/// Returns the findings of the kind [`Narrowed`](ProblemKind::Narrowed).
pub(super) fn narrowed(diagnostics: &Diagnostics) -> impl Iterator<Item = &Problem> {
    let findings = diagnostics.findings.iter();
    findings.filter(|finding| finding.kind == ProblemKind::Narrowed)
}

/// Applies findings to the assertions that they concern: the keyword itself, or one of the schema that the
/// finding names. There may be as many findings as assertions.
fn apply(notes: &[&Problem], report: &mut Report) {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    let mut multiples = Vec::new();
    for (at, assertion) in report.assertions.iter().enumerate() {
        places.entry(assertion.pointer.clone()).or_default().push(at);
        multiples.extend((assertion.keyword == "multipleOf").then_some(at));
    }
    for note in notes {
        let Place::Pointer(place) = &note.place else {
            continue;
        };
        let enforced = match note.kind {
            ProblemKind::Closed => Enforced::Closed(note.message.clone()),
            _ => Enforced::Narrower(note.message.clone()),
        };
        let is_below = |&&at: &&usize| {
            let rest = report.assertions[at].pointer.strip_prefix(place.as_str());
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let about: Vec<usize> = match places.get(place) {
            Some(exactly) => exactly.clone(),
            None => multiples.iter().filter(is_below).copied().collect(),
        };
        for &at in &about {
            report.assertions[at].enforced = enforced.clone();
        }
        if about.is_empty() {
            places.insert(place.clone(), vec![report.assertions.len()]);
            report.assertions.push(Assertion {
                pointer: place.clone(),
                keyword: String::new(),
                enforced,
            });
        }
    }
}

/// Adds the assertions of one schema. Schemas that represent constants make no assertions.
fn add_assertions(tree: &Tree, id: NodeId, assertions: &mut Vec<Assertion>) {
    let node: &Node = tree.node(id);
    for (name, keyword) in node.keywords.iter() {
        if name.is_empty() && !matches!(keyword, Keyword::Never) {
            continue;
        }
        for name in names(name, keyword) {
            let pointer = match name {
                "" => tree.pointer(id),
                name => tree.keyword_pointer(id, &escape_segment(name)),
            };
            if !assertions
                .iter()
                .rev()
                .take(64)
                .any(|known| known.pointer == pointer)
            {
                assertions.push(Assertion {
                    pointer,
                    keyword: name.to_owned(),
                    enforced: Enforced::Exact,
                });
            }
        }
    }
}

/// Returns the keywords of the source from which one keyword of the tree was made.
fn names(name: &'static str, keyword: &Keyword) -> Vec<&'static str> {
    match keyword {
        Keyword::Properties(keys) => {
            let parts = [
                (!keys.named.is_empty(), "properties"),
                (!keys.patterns.is_empty(), "patternProperties"),
                (keys.additional.is_some(), "additionalProperties"),
            ];
            parts
                .iter()
                .filter(|(there, _)| *there)
                .map(|(_, name)| *name)
                .collect()
        }
        _ => vec![name],
    }
}
