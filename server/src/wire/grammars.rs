//! `POST /v1/grammars` and its parts: a constraint in any of the fields that requests know, and what is asked
//! about it.

pub mod repair;

use serde_json::{Value, json};

use super::constraint::writing::Writing;
use super::constraint::{self, Constraint};
use super::fields::{Fields, Ignored, Problems};
use crate::wire::error::ApiError;

/// The most texts that one request may have checked.
const TEXTS: usize = 256;
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
    /// The prefix after which a mask is asked for.
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

/// The ways in which a body may name a grammar.
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

    /// The one grammar that is named. Asked once all fields are known: a misspelled field may have named it.
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
