//! `POST /v1/grammars` and its subroutes: a constraint in any of its fields, and the queries of it.

pub mod project;
pub mod repair;

use serde_json::{Value, json};

use super::constraint::writing::Writing;
use super::constraint::{self, Constraint};
use super::fields::{Fields, Ignored, Problems};
use crate::wire::error::ApiError;

/// The maximum number of texts to check in a request.
const TEXTS: usize = 256;
/// A constraint, or the identity of a registered one.
#[derive(Clone, Debug)]
pub enum Named {
    /// The constraint itself.
    Constraint(Constraint),
    /// The identity.
    Id(String),
}

/// A query of a grammar.
#[derive(Clone, Debug)]
pub struct GrammarRequest {
    /// The grammar.
    pub grammar: Named,
    /// The texts to check.
    pub texts: Vec<String>,
    /// The prefix for a mask.
    pub prefix: String,
    /// A certificate to check again.
    pub certificate: Option<Certificate>,
    /// The fields that have no effect here.
    pub ignored: Ignored,
}

/// The statements of a certificate that can be checked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The hash of the text.
    pub output_sha256: String,
    /// `true` if the text is valid.
    pub valid: bool,
    /// The identity of the grammar.
    pub grammar: Option<String>,
    /// The hash of the model's tokenizer.
    pub tokenizer_sha256: Option<String>,
}

/// Reads a query.
///
/// # Errors
/// Returns all problems of the body in one error.
pub fn read(body: &[u8]) -> Result<GrammarRequest, ApiError> {
    let mut fields = Fields::root(super::object(body)?);
    let mut problems = Problems::default();
    let names = Names::read(&mut fields, &mut problems);
    let prefix = fields.string("prefix", &mut problems).unwrap_or_default();
    let texts = texts(&mut fields, &mut problems);
    let certificate = certificate(&mut fields, &mut problems);
    if certificate.is_some() && texts.len() != 1 {
        problems.invalid("text", "expected the text that the certificate was issued for");
    }
    fields.ignore(&["model"]);
    fields.finish_strict(&mut problems);
    let grammar = names.one(&mut problems);
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

/// The forms in which a body may name a grammar.
struct Names {
    id: Option<String>,
    constraint: Option<Constraint>,
}

impl Names {
    fn read(fields: &mut Fields, problems: &mut Problems) -> Self {
        let id = fields.string("grammar_id", problems);
        let mut constraint = constraint::fields::read(fields, problems);
        Writing::read(fields, problems).settle(constraint.as_mut(), problems);
        Self { id, constraint }
    }

    /// Returns the one grammar that is named. Called once all fields are known: a misspelled field may have
    /// named it.
    fn one(self, problems: &mut Problems) -> Option<Named> {
        match (self.id, self.constraint) {
            (Some(id), None) => Some(Named::Id(id)),
            (None, Some(constraint)) => Some(Named::Constraint(constraint)),
            _ => {
                let expected = "expected either a constraint (response_format, structured_outputs, ebnf …) or grammar_id";
                problems.invalid("grammar_id", expected);
                None
            }
        }
    }
}

/// Takes a certificate in the form of an answer; its fields besides the claim are ignored.
fn certificate(fields: &mut Fields, problems: &mut Problems) -> Option<Certificate> {
    let mut inner = fields.object("certificate", problems)?;
    let output_sha256 = inner.string("output_sha256", problems);
    let valid = inner.boolean("valid", problems);
    let grammar = inner.string("grammar", problems);
    let tokenizer_sha256 = inner.string("tokenizer_sha256", problems);
    // These include the fields that `verify` itself returns: its answers can be sent back as they are.
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
            "expected 'output_sha256' and 'valid' of a certificate",
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

/// Returns the result of checking a text again, compared with the certificate if there is one.
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
