//! The schemas of requests as the upstream takes them, kept by their texts.
//!
//! Applications send the same few schemas with every request, and projecting one takes milliseconds, with
//! the proof of what is lost. What is kept is bounded by its memory: the schema that was not used for the
//! longest time goes first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lexiform::error::CompileError;
use lexiform::limits::{Cancel, Limits};
use lexiform::project::{Profile, Projection, Proof, Received, Receiver, Rejected, Toward, project};
use lexiform::schema::Options;
use serde_json::Value;

use crate::wire::chat::projected::{Part, Projected};

/// The memory of all schemas that are kept.
const KEPT_BYTES: usize = 256 << 20;
/// What a schema takes besides its text, its projection and its grammar.
const ENTRY_BYTES: usize = 1024;
/// How often the text of a schema is in what is kept of it: the schema, its normal forms, its projection.
const COPIES: usize = 32;
/// The maximum number of losses, and of recodings, that are told of one schema.
const TOLD: usize = 64;

/// The maximum number of strings of one answer that are taken as values although they hold no JSON text.
const MOST_STRINGS: usize = 16;

/// A schema as the upstream takes it.
#[derive(Debug)]
pub(super) struct KnownSchema {
    receiver: Receiver,
    bytes: usize,
}

/// The schemas that were projected to a profile.
#[derive(Debug)]
pub(super) struct Schemas {
    profile: Profile,
    kept: Mutex<Kept>,
}

/// The schemas by their texts, with the time at which each was used last.
#[derive(Debug, Default)]
struct Kept {
    schemas: HashMap<String, (u64, Arc<KnownSchema>)>,
    bytes: usize,
    uses: u64,
}

impl Schemas {
    /// Creates an empty set of schemas.
    pub(super) fn new(profile: Profile) -> Self {
        Self {
            profile,
            kept: Mutex::default(),
        }
    }

    /// Returns the name of the profile.
    pub(super) fn profile(&self) -> &str {
        &self.profile.name
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a schema that is kept.
    pub(super) fn find(&self, text: &str) -> Option<Arc<KnownSchema>> {
        self.kept().find(text)
    }

    /// Returns a schema, which is projected unless it is kept.
    ///
    /// # Errors
    /// Fails if it does not compile, or if the profile has no way to write it.
    pub(super) fn known(&self, text: &str, cancel: &Cancel) -> Result<Arc<KnownSchema>, CompileError> {
        if let Some(known) = self.find(text) {
            return Ok(known);
        }
        let limits = Limits {
            cancel: cancel.clone(),
            ..Limits::default()
        };
        let options = Options::for_generation();
        let projection = project(text, &self.profile, Toward::Wider, &options, &limits)?;
        // The limits of a receiver outlive this request.
        let receiver = Receiver::new(text, Arc::new(projection), &Limits::default())?;
        let bytes = receiver.memory_usage() + COPIES * text.len() + ENTRY_BYTES;
        let known = Arc::new(KnownSchema { receiver, bytes });
        self.kept().keep(text, known.clone(), KEPT_BYTES);
        Ok(known)
    }
}

impl Kept {
    fn find(&mut self, text: &str) -> Option<Arc<KnownSchema>> {
        self.uses += 1;
        let (used, known) = self.schemas.get_mut(text)?;
        *used = self.uses;
        Some(known.clone())
    }

    fn keep(&mut self, text: &str, known: Arc<KnownSchema>, most: usize) {
        self.uses += 1;
        self.bytes += known.bytes;
        if let Some((_, old)) = self.schemas.insert(text.to_owned(), (self.uses, known)) {
            self.bytes -= old.bytes;
        }
        while self.bytes > most {
            let oldest = self.schemas.iter().min_by_key(|(_, (used, _))| *used);
            let Some(text) = oldest.map(|(text, _)| text.clone()) else {
                return;
            };
            if let Some((_, old)) = self.schemas.remove(&text) {
                self.bytes -= old.bytes;
            }
        }
    }
}

impl KnownSchema {
    fn projection(&self) -> &Projection {
        self.receiver.projection()
    }

    /// Returns the schema that the upstream takes.
    pub(super) fn schema(&self) -> &Value {
        self.projection().schema()
    }

    /// Takes a text of the upstream back.
    ///
    /// Where a string has to hold the JSON text of a value and does not, it is taken as the value itself, if
    /// the schema allows that. The places of such strings are the second value.
    ///
    /// # Errors
    /// Fails if there is no value of the schema near it.
    pub(super) fn receive(&self, text: &str) -> Result<(Received, Vec<String>), Rejected> {
        let (mut taken, mut places) = (text.to_owned(), Vec::new());
        loop {
            let error = match self.receiver.receive(&taken) {
                Ok(received) => return Ok((received, places)),
                Err(error) => error,
            };
            let place = match &error {
                Rejected::NotRestored(problem) => problem.pointer.clone(),
                _ => return Err(error),
            };
            if places.len() == MOST_STRINGS || places.contains(&place) {
                return Err(error);
            }
            taken = string_as_value(&taken, &place).ok_or(error)?;
            places.push(place);
        }
    }

    /// Returns what became of the schema in this field; `None` if it is sent on as it is.
    pub(super) fn told(&self, param: &str) -> Option<Projected> {
        let projection = self.projection();
        if projection.is_unchanged() {
            return None;
        }
        let losses = projection.losses().iter().take(TOLD).map(|loss| Part {
            path: loss.pointer.clone(),
            message: format!("{}: {}", loss.effect.as_str(), loss.message),
        });
        let recodings = projection.recodings().iter().take(TOLD).map(|recoding| Part {
            path: recoding.pointer.clone(),
            message: recoding.message.clone(),
        });
        Some(Projected {
            param: param.to_owned(),
            relation: projection.relation().as_str(),
            proven: projection.proof() == Proof::Proven,
            losses: losses.collect(),
            recodings: recodings.collect(),
        })
    }
}

/// Returns an answer in which the string at a place holds the JSON text of itself; `None` without a string.
fn string_as_value(answer: &str, place: &str) -> Option<String> {
    let mut answer: Value = serde_json::from_str(answer).ok()?;
    let found = answer.pointer_mut(place).filter(|found| found.is_string())?;
    *found = Value::String(found.to_string());
    Some(answer.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_that_was_used_least_recently_goes_first() {
        let schemas = Schemas::new(Profile::named("openai-strict").expect("a profile"));
        let text =
            |name: &str| format!(r#"{{"type":"object","properties":{{"{name}":{{"type":"string"}}}}}}"#);
        let known = schemas.known(&text("a"), &Cancel::default()).expect("a schema");
        assert!(Arc::ptr_eq(
            &known,
            &schemas.known(&text("a"), &Cancel::default()).expect("it is kept")
        ));
        assert!(
            known
                .told("x")
                .is_some_and(|told| told.relation == "equal" && told.proven)
        );
        let (mut kept, most) = (Kept::default(), 2 * known.bytes);
        for name in ["a", "b"] {
            kept.keep(name, known.clone(), most);
        }
        assert!(kept.find("a").is_some());
        kept.keep("c", known.clone(), most);
        assert!(kept.find("b").is_none() && kept.find("a").is_some() && kept.find("c").is_some());
        kept.keep("c", known.clone(), most);
        assert_eq!(kept.bytes, most);
    }
}
