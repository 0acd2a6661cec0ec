//! Questions about a schema itself: whether everything in it has an effect, how each assertion is enforced,
//! and what the compiler made of it.

use clap::ValueEnum;
use lexiform::Options;
use lexiform::error::{CompileError, Place, ProblemKind};
use lexiform::limits::Limits;
use lexiform::schema::{AdditionalProperties, Enforced, Refuse, Report};
use lexiform_syntax::schema;
use serde_json::{Value, json};

use super::judged::By;
use crate::input::source::Loaded;
use crate::shown::paint::{dim, good, note};

/// The flags of `lexiform check` that concern only schemas.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct SchemaArgs {
    /// Refuse misspelt keywords and those of another draft, as `strict: true` does in the API
    #[arg(long, requires = "schema")]
    strict: bool,
    /// Refuse a schema unless all of it is enforced exactly: nothing narrower than it says, no unknown
    /// format, and --strict
    #[arg(long, requires = "schema")]
    exact: bool,
    /// Judge the JSON value of a text, whatever the order of its keys and its white space
    #[arg(long, requires = "schema")]
    value: bool,
    /// Report for every assertion how it is enforced
    #[arg(long, requires = "schema")]
    report: bool,
    /// Print a form of the schema that the compiler works with
    #[arg(long, value_enum, value_name = "FORM", requires = "schema")]
    show: Option<PrintedForm>,
}

/// A form of a schema between its text and its grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PrintedForm {
    /// The values that each part allows, as unions of plain conjunctions
    NormalForm,
}

impl SchemaArgs {
    /// Returns which compilable schemas are refused.
    pub(super) fn refuse(&self) -> Refuse {
        match (self.exact, self.strict) {
            (true, _) => Refuse::Inexact,
            (_, true) => Refuse::Ineffective,
            _ => Refuse::Nothing,
        }
    }

    /// Returns what a text is judged by.
    pub(super) fn by(&self) -> By {
        if self.value { By::Value } else { By::Spelling }
    }

    /// Computes the requested forms and reports, and finds the open objects.
    ///
    /// # Errors
    /// The schema does not compile.
    pub(super) fn about(&self, source: &Loaded, options: &Options) -> Result<About, CompileError> {
        let (text, options, limits) = (source.text(), &options.schema, &options.limits);
        let normal_form = self
            .show
            .map(|PrintedForm::NormalForm| schema::normal_form(text, options, limits));
        let report = self.report.then(|| schema::report(text, options, limits));
        Ok(About {
            normal_form: normal_form.transpose()?,
            report: report.transpose()?,
            open: open_objects(source, options, limits),
        })
    }
}

/// Returns the objects that would be closed if a model wrote them, by their JSON pointers.
fn open_objects(source: &Loaded, options: &schema::Options, limits: &Limits) -> Vec<String> {
    if !source.is_schema() || options.additional_properties == AdditionalProperties::Closed {
        return Vec::new();
    }
    let closed = schema::Options {
        additional_properties: AdditionalProperties::Closed,
        ..options.clone()
    };
    let found = schema::lower(source.text(), &closed, limits).map(|(_, found)| found.findings);
    let closed = found.unwrap_or_default().into_iter();
    let closed = closed.filter(|finding| finding.kind == ProblemKind::Closed);
    let pointers = closed.filter_map(|finding| match finding.place {
        Place::Pointer(pointer) => Some(pointer.strip_suffix("/properties").unwrap_or(&pointer).to_owned()),
        _ => None,
    });
    pointers.collect()
}

/// The answers about a schema.
pub(super) struct About {
    normal_form: Option<String>,
    report: Option<Report>,
    open: Vec<String>,
}

/// The most open objects that are named in the text output.
const NAMED: usize = 5;

impl About {
    pub(super) fn text(&self) -> String {
        let mut text = self.normal_form.clone().unwrap_or_default();
        if let Some(report) = &self.report {
            text += &report_text(report);
        }
        text + &self.open_in_words()
    }

    fn open_in_words(&self) -> String {
        if self.open.is_empty() {
            return String::new();
        }
        let named: Vec<String> = self
            .open
            .iter()
            .take(NAMED)
            .map(|pointer| format!("#{pointer}"))
            .collect();
        let more = match self.open.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (objects, are) = if self.open.len() == 1 {
            ("the object", "is")
        } else {
            ("objects", "are")
        };
        format!(
            "  {} {objects} at {}{more} {are} open: further keys are valid, and `generate` and the service write none; \
             \"additionalProperties\": false forbids them\n",
            note("note:"),
            named.join(", "),
        )
    }

    pub(super) fn add_to(&self, object: &mut Value) {
        if let Some(form) = &self.normal_form {
            object["normal_form"] = json!(form);
        }
        if !self.open.is_empty() {
            object["open_objects"] = json!(self.open);
        }
        if let Some(report) = &self.report {
            object["exact"] = json!(report.is_exact());
            let assertions = report.assertions.iter().map(|assertion| {
                let (enforced, how) = match &assertion.enforced {
                    Enforced::Exact => ("exact", None),
                    Enforced::Spelled(how) => ("exact", Some((*how).to_owned())),
                    Enforced::Closed(how) => ("closed", Some(how.clone())),
                    Enforced::Narrower(how) => ("narrower", Some(how.clone())),
                };
                json!({"pointer": assertion.pointer, "keyword": assertion.keyword, "enforced": enforced, "how": how})
            });
            object["report"] = assertions.collect();
        }
    }
}

/// Formats every assertion with how it is enforced. Spellings of a number that are never written are no fault
/// of the schema, so they are mentioned in small print below.
fn report_text(report: &Report) -> String {
    let all = report.assertions.len();
    let count =
        |less: fn(&Enforced) -> bool| report.assertions.iter().filter(|it| less(&it.enforced)).count();
    let narrower = count(|enforced| matches!(enforced, Enforced::Narrower(_)));
    let closed = count(|enforced| matches!(enforced, Enforced::Closed(_)));
    let mut text = match (narrower, closed) {
        (0, 0) => format!("  {all} assertions, {}\n", good("all enforced exactly")),
        (0, _) => format!("  {all} assertions, {}\n", note(format!("{closed} closed"))),
        _ => format!(
            "  {all} assertions, {}\n",
            note(format!("{narrower} narrower than they say"))
        ),
    };
    let mut remarks: Vec<&str> = Vec::new();
    for assertion in &report.assertions {
        let pointer = &assertion.pointer;
        text += &match &assertion.enforced {
            Enforced::Exact => format!("  #{pointer}: {}\n", good("exact")),
            Enforced::Closed(how) => format!("  #{pointer}: {}: {how}\n", note("closed")),
            Enforced::Narrower(how) => format!("  #{pointer}: {}: {how}\n", note("narrower")),
            Enforced::Spelled(how) => {
                let known = remarks.iter().position(|remark| remark == how);
                let number = known.unwrap_or_else(|| {
                    remarks.push(how);
                    remarks.len() - 1
                });
                format!(
                    "  #{pointer}: {} {}\n",
                    good("exact"),
                    dim(format!("[{}]", number + 1))
                )
            }
        };
    }
    for (number, remark) in remarks.iter().enumerate() {
        let remark = format!(
            "[{}] every value can be written; of its spellings: {remark}",
            number + 1
        );
        text += &format!("  {}\n", dim(remark));
    }
    text
}
