//! The enforcement of the constraints of a request: what its answer reports, and what `strict: true` refuses.
//!
//! ```text
//!   finding of the compile    in the answer               strict: true
//!   less is allowed           narrower                    accepted: whatever is written is valid
//!   an open object is closed  closed                      accepted: the request asks for it, or does not mind
//!   a keyword has no effect   ignored                     refused, if it was meant to assert something
//!   an unknown format         ignored                     accepted: to JSON Schema it is a remark
//!   an unknown metaschema     ignored                     refused: its keywords may mean something else
//! ```
//!
//! The compiler refuses whatever it understands and cannot enforce, strict or not; so what is left to refuse
//! has no meaning in the draft of the schema. Clients send `strict: true` by default, with schemas full of
//! annotations for other programs (`discriminator`, `nullable`, `format: "phone"`), which therefore must
//! pass.
//!
//! # Why `strict: true` does not refuse everything that is not exact
//!
//! If less is allowed than the schema says, every answer is still valid. Annotations and unknown formats
//! assert nothing in JSON Schema either. The answer reports all of these.

use lexiform::error::{CompileError, Place, Problem, ProblemKind};
use lexiform::limits::Limits;
use lexiform::schema::Enforced;
use lexiform_syntax::schema;

use crate::grammars::interest::Interest;
use crate::grammars::language::{Language, Rejected};
use crate::grammars::lowering::schema_options;
use crate::grammars::report;
use crate::grammars::store::Compiled;
use crate::wire::constraint::{Constraint, Source};
use crate::wire::error::ApiError;
use crate::wire::generation::Extent;
use crate::wire::response::{Enforcement, Keyword};

/// The maximum number of keywords that one answer lists.
const LISTED_KEYWORDS: usize = 4_096;

/// Returns the report of an answer in a language on its enforcement.
///
/// # Errors
/// Fails if the interest was lost.
pub fn report(
    language: &Language,
    compiled: &Compiled,
    extent: Extent,
    interest: &Interest,
) -> Result<Enforcement, ApiError> {
    let mut keywords = match extent {
        Extent::Inexact => inexact(language, compiled),
        Extent::Whole => whole(language, compiled, interest)?,
    };
    let unlisted = keywords.len().saturating_sub(LISTED_KEYWORDS);
    keywords.truncate(LISTED_KEYWORDS);
    Ok(Enforcement {
        grammar: compiled.id.to_string(),
        enforced: report::enforced(compiled),
        diagnostics: report::findings(compiled),
        enforcement: (extent == Extent::Whole || !keywords.is_empty()).then_some(keywords),
        unlisted,
    })
}

/// Returns all keywords of all constraints.
///
/// # Errors
/// Fails if the interest was lost.
pub fn whole(
    language: &Language,
    compiled: &Compiled,
    interest: &Interest,
) -> Result<Vec<Keyword>, ApiError> {
    let limits = Limits {
        cancel: interest.cancel(),
        ..Limits::default()
    };
    let mut keywords = Vec::new();
    for constraint in language.constraints() {
        let told = all_of(constraint, &limits, &mut keywords);
        told.map_err(|error| ApiError::constraint(&constraint.subject(), &error))?;
    }
    let ignored = inexact(language, compiled);
    keywords.extend(ignored.into_iter().filter(|keyword| keyword.status == IGNORED));
    Ok(keywords)
}

const IGNORED: &str = "ignored";

/// Returns the findings of the compiler.
fn inexact(language: &Language, compiled: &Compiled) -> Vec<Keyword> {
    let constraints: Vec<&Constraint> = language.constraints().collect();
    let findings = compiled.findings.iter().filter_map(|finding| {
        let problem = &finding.problem;
        let Place::Pointer(path) = &problem.place else {
            return None;
        };
        Some(Keyword {
            param: constraints.get(finding.constraint)?.param.clone(),
            path: path.clone(),
            keyword: problem.keyword().map(str::to_owned),
            status: match problem.kind {
                ProblemKind::Narrowed => "narrower",
                ProblemKind::Closed => "closed",
                _ => IGNORED,
            },
            how: Some(problem.message.clone()),
        })
    });
    findings.collect()
}

fn all_of(constraint: &Constraint, limits: &Limits, keywords: &mut Vec<Keyword>) -> Result<(), CompileError> {
    let exact = |path: String, keyword: Option<String>| Keyword {
        param: constraint.param.clone(),
        path,
        keyword,
        status: "exact",
        how: None,
    };
    match &constraint.source {
        Source::Schema(text) => {
            let report = schema::report(text, &schema_options(constraint), limits)?;
            keywords.extend(report.assertions.into_iter().map(|assertion| {
                let keyword = Some(assertion.keyword).filter(|keyword| !keyword.is_empty());
                let exact = exact(assertion.pointer, keyword);
                match assertion.enforced {
                    Enforced::Exact => exact,
                    Enforced::Spelled(how) => Keyword {
                        how: Some(how.to_owned()),
                        ..exact
                    },
                    Enforced::Closed(how) => Keyword {
                        status: "closed",
                        how: Some(how),
                        ..exact
                    },
                    Enforced::Narrower(how) => Keyword {
                        status: "narrower",
                        how: Some(how),
                        ..exact
                    },
                }
            }));
        }
        Source::Tags(form) => {
            for inner in form.contents() {
                all_of(inner, limits, keywords)?;
            }
        }
        Source::Regex(_) | Source::Grammar(..) | Source::Choice(_) | Source::Extract(..) => {
            keywords.push(exact(String::new(), None))
        }
    }
    Ok(())
}

/// Returns the problems for which `strict: true` refuses a language that compiles, by constraint.
pub fn unkept(language: &Language, compiled: &Compiled) -> Vec<Rejected> {
    let strict = language.constraints().enumerate();
    let strict = strict.filter(|(_, constraint)| constraint.strict);
    let rejected = strict.map(|(place, constraint)| {
        let found = compiled.findings.iter();
        let found = found
            .filter(|finding| finding.constraint == place && schema::is_lost_assertion(&finding.problem));
        let problems = found.map(|finding| Problem {
            message: format!("{} (rejected because of strict: true)", finding.problem.message),
            ..finding.problem.clone()
        });
        Rejected {
            constraint: constraint.clone(),
            error: CompileError {
                problems: problems.collect(),
            },
        }
    });
    rejected
        .filter(|rejected| !rejected.error.problems.is_empty())
        .collect()
}
