//! The reports to clients on a compiled grammar: its findings, the enforcement of each keyword, the output of
//! a linter.

use lexiform::error::ProblemKind;
use serde_json::{Value, json};

use super::language::{Finding, Rejected};
use super::store::Compiled;
use crate::wire::error::Diagnosis;
use crate::wire::response::Keyword;

/// The maximum number of findings that one answer lists: a schema may have as many keywords without effect as
/// it has bytes.
const LISTED_FINDINGS: usize = 256;

/// Returns the report on a registered grammar.
pub fn registered(compiled: &Compiled) -> Value {
    json!({"id": &*compiled.id, "object": "grammar", "compile_ms": compiled.micros as f64 / 1000.0,
           "enforced": enforced(compiled), "diagnostics": findings(compiled)})
}

/// Returns the findings that do not stop a compilation.
pub fn findings(compiled: &Compiled) -> Value {
    let all = compiled.findings.iter().take(LISTED_FINDINGS);
    let all = all.map(|finding| Diagnosis::warning(&finding.problem).json());
    Value::Array(all.collect())
}

/// Returns the enforcement of each keyword.
pub fn keywords(keywords: &[Keyword]) -> Value {
    serde_json::to_value(keywords).unwrap_or_default()
}

/// Returns how the grammar relates to its constraint: `exact` if both allow the same; `closed` if the grammar
/// leaves out only the unlisted keys of objects whose schema lists keys and says nothing about others;
/// `narrower` if it leaves out more of what the constraint allows; `partial` if part of the constraint has no
/// effect.
pub fn enforced(compiled: &Compiled) -> &'static str {
    let closes = |finding: &Finding| finding.problem.kind == ProblemKind::Closed;
    let narrows = |finding: &Finding| closes(finding) || finding.problem.kind == ProblemKind::Narrowed;
    match &compiled.findings[..] {
        [] => "exact",
        findings if findings.iter().all(closes) => "closed",
        findings if findings.iter().all(narrows) => "narrower",
        _ => "partial",
    }
}

/// Returns the report of a linter on a constraint that compiles, or does not.
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
