//! Rewrites a schema into the part of JSON Schema that a target takes, and restores values from its answers.
//!
//! ```text
//!   schema ─check─► already taken: unchanged
//!     │
//!     └─normal forms─► fit ─► open circles, shrink ─► write ─► schema of the target
//!                       │ losses, recodings            │
//!                       ▼                              ├──► what its answers mean ─inclusion─► proof
//!                     report                           └──► restore: answer ─► value
//! ```
//!
//! Providers and engines take a part of JSON Schema each, described by a [`Profile`]. The normal forms of
//! a schema have no combinators any more, so that `allOf`, `oneOf`, `not`, `if`, dependencies and
//! references need no further treatment: what remains are sets of numbers, strings, arrays and objects,
//! which are written with what the target has. Where a constraint cannot be written as it is, this looks
//! for
//!
//! 1. another way to write the same: a small interval of integers as a list, lengths as a pattern, a
//!    format as a pattern, a tuple of equal items as a list;
//! 2. a recoding, which [`Projection::restore`] takes back: `null` for a property that may be absent, a
//!    list of pairs for keys without a name, JSON text in a string for any value, for recursion and for
//!    what lies too deep;
//! 3. a loss, to the side that the caller [wants](Toward): the constraint is dropped, or the values are.
//!
//! The relation between the schema and the restored answers follows from the losses, and [`inclusion`]
//! proves it independently of how the schema was written. Objects are read as
//! [`AdditionalProperties::Closed`] reads them unless the options say otherwise.
//!
//! [`inclusion`]: crate::schema::inclusion
//! [`AdditionalProperties::Closed`]: crate::schema::AdditionalProperties::Closed

mod check;
mod circles;
mod fit;
mod form;
mod live;
mod loss;
mod pattern;
mod profile;
mod proof;
mod restore;
mod shrink;
mod size;
mod write;

pub use loss::{Effect, Loss, Recoding, Toward};
pub use profile::Profile;
pub use proof::{Proof, Relation};
pub use restore::RestoreError;

use std::cell::OnceCell;

use serde_json::Value;

use lexiform_automata::error::{CompileError, Place, Problem, ProblemKind};
use lexiform_automata::limits::Limits;

use crate::schema::{NormalForms, Options, explained, normal_forms, read_json};
use form::{Form, Forms, Reading};
use profile::{References, Root};
use write::write;

/// A schema as a target takes it.
#[derive(Clone, Debug)]
pub struct Projection {
    schema: Value,
    restored: Value,
    forms: Option<Forms>,
    losses: Vec<Loss>,
    recodings: Vec<Recoding>,
    relation: Relation,
    proof: Proof,
}

impl Projection {
    /// Returns the schema that the target takes.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Returns a schema of the values that answers of the target are restored to. It uses all of JSON
    /// Schema.
    pub fn restored_schema(&self) -> &Value {
        &self.restored
    }

    /// Returns `true` if the schema was taken as it is.
    pub fn is_unchanged(&self) -> bool {
        self.forms.is_none()
    }

    /// Returns what the target cannot have, in the order of the source.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Returns what is written in another shape, in the order of the source.
    pub fn recodings(&self) -> &[Recoding] {
        &self.recodings
    }

    /// Returns how the restored answers relate to the values of the schema.
    pub fn relation(&self) -> Relation {
        self.relation
    }

    /// Returns whether the algebra has proven the relation.
    pub fn proof(&self) -> Proof {
        self.proof
    }

    /// Restores the value that an answer of the target stands for. It is not validated.
    ///
    /// # Errors
    /// Fails if something that is recoded is not there in the shape in which it is written.
    pub fn restore(&self, answer: Value, limits: &Limits) -> Result<Value, RestoreError> {
        match &self.forms {
            None => Ok(answer),
            Some(forms) => restore::restore(forms, answer, limits),
        }
    }
}

/// Projects a schema.
///
/// # Examples
///
/// ```
/// use lexiform::limits::Limits;
/// use lexiform::project::{Profile, Relation, Toward, project};
/// use lexiform::schema::Options;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {
///     "name": {"type": "string", "minLength": 1}, "tags": {"additionalProperties": {"type": "string"}, "type": "object"}}});
/// let profile = Profile::named("openai-strict").unwrap();
/// let options = Options::for_generation();
/// let projection = project(&schema.to_string(), &profile, Toward::Wider, &options, &Limits::default())?;
/// assert_eq!(projection.relation(), Relation::Equal);
/// assert_eq!(projection.schema()["required"], json!(["name", "tags"]));
///
/// let answer = json!({"name": null, "tags": {"additional_properties": [{"key": "a", "value": "b"}]}});
/// let value = projection.restore(answer, &Limits::default()).unwrap();
/// assert_eq!(value, json!({"tags": {"a": "b"}}));
/// # Ok::<(), lexiform::error::CompileError>(())
/// ```
///
/// # Errors
/// Fails if the schema does not compile or no value satisfies it, if nothing narrower is left of it, and if
/// the profile has no way to write it.
pub fn project(
    text: &str,
    profile: &Profile,
    toward: Toward,
    options: &Options,
    limits: &Limits,
) -> Result<Projection, CompileError> {
    Projector::new(text, options, limits)?.project(profile, toward, limits)
}

/// A schema in its normal forms, from which projections to any number of targets are written.
pub struct Projector {
    source: Value,
    options: Options,
    normal: NormalForms,
    /// What relations are proven against; `None` if it cannot be written.
    compared: OnceCell<Option<Value>>,
}

impl Projector {
    /// Reads a schema.
    ///
    /// # Errors
    /// Fails if the schema does not compile, and if no value satisfies it.
    pub fn new(text: &str, options: &Options, limits: &Limits) -> Result<Projector, CompileError> {
        let limits = &*limits.begin();
        limits.cancel.unless(Projector::read(text, options, limits))
    }

    fn read(text: &str, options: &Options, limits: &Limits) -> Result<Projector, CompileError> {
        let source = read_json(text, limits)?;
        let normal = normal_forms(text, options, limits)?;
        if !normal.is_live(normal.root) {
            let empty = Problem::at_pointer(ProblemKind::Unsatisfiable, "", "no value satisfies the schema");
            return Err(explained(empty.into(), text, options, limits));
        }
        Ok(Projector {
            source,
            options: options.clone(),
            normal,
            compared: OnceCell::new(),
        })
    }

    /// Returns everything in the schema that a target does not take, with its place.
    ///
    /// # Errors
    /// Fails if it is cancelled.
    pub fn refusals(&self, profile: &Profile, limits: &Limits) -> Result<Vec<Problem>, CompileError> {
        let refused = check::check(&self.source, profile, &limits.cancel);
        limits.cancel.unless(Ok::<_, CompileError>(refused))
    }

    /// Projects the schema to a target.
    ///
    /// # Errors
    /// Fails if nothing narrower is left of it, and if the profile has no way to write it.
    pub fn project(
        &self,
        profile: &Profile,
        toward: Toward,
        limits: &Limits,
    ) -> Result<Projection, CompileError> {
        let limits = &*limits.begin();
        limits.cancel.unless(self.projected(profile, toward, limits))
    }

    fn projected(
        &self,
        profile: &Profile,
        toward: Toward,
        limits: &Limits,
    ) -> Result<Projection, CompileError> {
        let cancel = &limits.cancel;
        if check::check(&self.source, profile, cancel).is_empty() {
            return Ok(unchanged(self.source.clone()));
        }
        let fit::Fitted {
            mut forms,
            mut losses,
            mut recodings,
        } = fit::fit(&self.normal, &self.source, profile, toward, cancel);
        wrap(&mut forms, profile);
        if profile.references != References::Recursive {
            let opened = circles::open(&mut forms);
            recodings.extend(opened.into_iter().map(|_| Recoding {
                pointer: String::new(),
                message: "where the schema refers to itself, a string holds the JSON text".to_owned(),
                is_text: true,
            }));
        }
        let shrunk = shrink::shrink(&mut forms, profile, toward, limits);
        losses.extend(shrunk.losses);
        recodings.extend(shrunk.recodings);
        recodings.dedup();
        let schema = write(&forms, profile, Reading::Target, cancel).ok_or_else(|| nothing_left(&losses))?;
        let problems = check::check(&schema, profile, cancel);
        if !problems.is_empty() {
            return Err(CompileError { problems });
        }
        let restored = write(&forms, &Profile::everything(), Reading::Restored, cancel);
        let restored = restored.unwrap_or(Value::Bool(false));
        let relation = Relation::of(&losses);
        let proof = self.proof(&restored, &losses, limits)?;
        Ok(Projection {
            schema,
            restored,
            forms: Some(forms),
            losses,
            recodings,
            relation,
            proof,
        })
    }

    /// Proves the relation that the losses leave, as far as the algebra of schemas can.
    fn proof(&self, restored: &Value, losses: &[Loss], limits: &Limits) -> Result<Proof, CompileError> {
        let compared = match self.compared.get() {
            Some(compared) => compared,
            None => {
                let compared = proof::compared(&self.source, &self.normal, &self.options, limits);
                limits.cancel.unless(Ok::<_, CompileError>(()))?;
                self.compared.get_or_init(|| compared)
            }
        };
        Ok(match compared {
            Some(compared) => proof::prove(compared, restored, losses, &self.options, limits),
            None => Proof::Open,
        })
    }
}

/// Returns everything in a schema that a target does not take, with its place.
///
/// # Errors
/// Fails if the text is no JSON.
pub fn refusals(text: &str, profile: &Profile, limits: &Limits) -> Result<Vec<Problem>, CompileError> {
    let source = read_json(text, limits)?;
    let refused = check::check(&source, profile, &limits.cancel);
    limits.cancel.unless(Ok::<_, CompileError>(refused))
}

fn unchanged(source: Value) -> Projection {
    Projection {
        schema: source.clone(),
        restored: source,
        forms: None,
        losses: Vec::new(),
        recodings: Vec::new(),
        relation: Relation::Equal,
        proof: Proof::Proven,
    }
}

/// Puts the root into an object if the target takes nothing else.
fn wrap(forms: &mut Forms, profile: &Profile) {
    let root = forms.get(forms.resolved(forms.root));
    forms.is_wrapped = profile.root == Root::Object && !matches!(root, Form::Object(_));
}

fn nothing_left(losses: &[Loss]) -> CompileError {
    let problems = losses.iter().map(|loss| {
        let message = format!(
            "nothing narrower can be written for this target: {}",
            loss.message
        );
        Problem::at_pointer(ProblemKind::Unsupported, loss.pointer.clone(), message)
    });
    let mut problems: Vec<Problem> = problems.collect();
    if problems.is_empty() {
        problems.push(Problem::new(
            ProblemKind::Unsupported,
            Place::Whole,
            "nothing can be written for this target, or it would be too large",
        ));
    }
    CompileError { problems }
}
