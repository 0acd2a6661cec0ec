//! `POST /v1/grammars` and its parts: a constraint in any of the fields that requests know, and what is asked about it.

use lexiform::error::ProblemKind;
use serde_json::{Value, json};

use super::constraint::{self, Constraint};
use super::fields::{Fields, Ignored, Problems};
use super::response::Keyword;
use crate::error::{ApiError, Diagnosis};
use crate::grammars::Compiled;
use crate::language::{Finding, Rejected};

/// The most texts that one request may have checked.
const TEXTS: usize = 256;
/// The most findings that one answer lists: a schema may hold as many keywords without effect as it has bytes.
const LISTED_FINDINGS: usize = 256;

/// A constraint, or the identity of one that was registered.
#[derive(Clone, Debug)]
pub enum Named {
    /// The constraint itself.
    Constraint(Constraint),
    /// The identity.
    Id(String),
}

/// A question about a grammar.
#[derive(Clone, Debug)]
pub struct GrammarRequest {
    /// Which one.
    pub grammar: Named,
    /// Texts to be checked.
    pub texts: Vec<String>,
    /// The beginning behind which a mask is asked for.
    pub prefix: String,
    /// A certificate to be checked again.
    pub certificate: Option<Certificate>,
    /// The fields that mean nothing here.
    pub ignored: Ignored,
}

/// What a certificate says that can be checked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The hash of the text.
    pub output_sha256: String,
    /// Whether it obeys.
    pub valid: bool,
    /// The identity of the grammar.
    pub grammar: Option<String>,
    /// The hash of the model's tokenizer.
    pub tokenizer_sha256: Option<String>,
}

/// Reads a question.
///
/// # Errors
/// All problems of the body, in one error.
pub fn read(body: &[u8]) -> Result<GrammarRequest, ApiError> {
    let mut fields = Fields::root(super::object(body)?);
    let mut problems = Problems::default();
    let id = fields.string("grammar_id", &mut problems);
    let constraint = constraint::read(&mut fields, &mut problems);
    let prefix = fields.string("prefix", &mut problems).unwrap_or_default();
    let texts = texts(&mut fields, &mut problems);
    let certificate = certificate(&mut fields, &mut problems);
    if certificate.is_some() && texts.len() != 1 {
        problems.invalid("text", "expected the one text that the certificate is about");
    }
    fields.ignore(&["model"]);
    fields.finish_strict(&mut problems);
    let grammar = match (id, constraint) {
        (Some(id), None) => Some(Named::Id(id)),
        (None, Some(constraint)) => Some(Named::Constraint(constraint)),
        _ => {
            let expected =
                "expected either a constraint (response_format, structured_outputs, ebnf …) or grammar_id";
            problems.invalid("grammar_id", expected);
            None
        }
    };
    let ignored = problems.check()?;
    let grammar = grammar.ok_or_else(ApiError::internal)?;
    Ok(GrammarRequest {
        grammar,
        texts,
        prefix,
        certificate,
        ignored,
    })
}

/// A certificate as an answer holds it; what is said in it beside its claim is passed over.
fn certificate(fields: &mut Fields, problems: &mut Problems) -> Option<Certificate> {
    let mut inner = fields.object("certificate", problems)?;
    let output_sha256 = inner.string("output_sha256", problems);
    let valid = inner.boolean("valid", problems);
    let grammar = inner.string("grammar", problems);
    let tokenizer_sha256 = inner.string("tokenizer_sha256", problems);
    // What `verify` itself tells is among them: its answers can be sent back as they are.
    inner.ignore(&[
        "verified_by",
        "independent",
        "compiler",
        "same_tokenizer",
        "confirms",
        "same_grammar",
    ]);
    inner.finish(problems);
    let (Some(output_sha256), Some(valid)) = (output_sha256, valid) else {
        problems.invalid(
            "certificate",
            "expected 'output_sha256' and 'valid', as an answer tells them",
        );
        return None;
    };
    Some(Certificate {
        output_sha256,
        valid,
        grammar,
        tokenizer_sha256,
    })
}

/// What came of checking a text again, held against the certificate if there is one.
pub fn verified(mut fresh: Value, claimed: Option<&Certificate>) -> Value {
    let same = |claimed: &Certificate| {
        fresh["output_sha256"] == claimed.output_sha256.as_str() && fresh["valid"] == claimed.valid
    };
    let confirms = claimed.map(same);
    let same_grammar = claimed.and_then(|claimed| Some(fresh["grammar"] == claimed.grammar.as_deref()?));
    let tokenizer = claimed.and_then(|claimed| claimed.tokenizer_sha256.as_deref());
    let same_tokenizer = tokenizer.map(|claimed| fresh["tokenizer_sha256"] == claimed);
    fresh["same_tokenizer"] = json!(same_tokenizer);
    fresh["confirms"] = json!(confirms);
    fresh["same_grammar"] = json!(same_grammar);
    fresh
}

fn texts(fields: &mut Fields, problems: &mut Problems) -> Vec<String> {
    let items = fields.array("texts", problems).unwrap_or_default();
    let one = fields.string("text", problems);
    let all: Vec<String> = items
        .iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect();
    if all.len() != items.len() || all.len() > TEXTS {
        problems.invalid("texts", format!("expected up to {TEXTS} texts"));
    }
    all.into_iter().chain(one).collect()
}

/// A registered grammar.
pub fn registered(compiled: &Compiled) -> Value {
    json!({"id": &*compiled.id, "object": "grammar", "compile_ms": compiled.micros as f64 / 1000.0,
           "enforced": enforced(compiled), "diagnostics": findings(compiled)})
}

/// What does not stop a compile.
pub fn findings(compiled: &Compiled) -> Value {
    let all = compiled.findings.iter().take(LISTED_FINDINGS);
    let all = all.map(|finding| Diagnosis::warning(&finding.problem).json());
    Value::Array(all.collect())
}

/// How each keyword is enforced.
pub fn keywords(keywords: &[Keyword]) -> Value {
    serde_json::to_value(keywords).unwrap_or_default()
}

/// How a constraint stands to what may be written under it: `exact`, where both are the same; `narrower`, where some of
/// what it allows is not written; `partial`, where some of what it says has no effect.
pub fn enforced(compiled: &Compiled) -> &'static str {
    let narrows = |finding: &Finding| finding.problem.kind == ProblemKind::Narrowed;
    match &compiled.findings[..] {
        [] => "exact",
        findings if findings.iter().all(narrows) => "narrower",
        _ => "partial",
    }
}

/// What a linter says of a constraint that compiles, or does not.
pub fn lint(compiled: Result<&Compiled, &Rejected>) -> Value {
    match compiled {
        Ok(compiled) => json!({"valid": true, "satisfiable": true, "id": &*compiled.id,
                               "enforced": enforced(compiled), "diagnostics": findings(compiled)}),
        Err(rejected) => {
            let problems = &rejected.error.problems;
            let unsatisfiable = problems
                .iter()
                .any(|problem| problem.kind == ProblemKind::Unsatisfiable);
            let all = problems.iter().map(|problem| Diagnosis::error(problem).json());
            json!({"valid": false, "satisfiable": if unsatisfiable { json!(false) } else { Value::Null },
                   "id": null, "enforced": "none", "diagnostics": all.collect::<Vec<_>>()})
        }
    }
}
