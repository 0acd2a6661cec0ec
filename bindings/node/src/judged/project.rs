//! Schemas as providers and engines take them, and the values of their answers. Schemas and answers are JSON
//! texts here.

use std::sync::{Arc, OnceLock};

use lexiform::limits::Limits;
use lexiform::project;
use lexiform::project::{Profile, Proof, Receiver, Rejected, Toward};
use lexiform::schema::Options;
use napi::Result;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::error::{call_error, compile_error, problem, rejected_error};

/// A schema as a target takes it.
#[napi]
pub struct Projection {
    source: String,
    projection: Arc<project::Projection>,
    receiver: OnceLock<Receiver>,
}

#[napi]
impl Projection {
    /// Projects a schema to a profile: the name of one, or its JSON.
    #[napi(constructor, catch_unwind)]
    pub fn new(schema: String, profile: String, narrower: bool) -> Result<Projection> {
        let profile = profile_of(&profile)?;
        let toward = if narrower { Toward::Narrower } else { Toward::Wider };
        let (options, limits) = (Options::for_generation(), Limits::default());
        let projected = project::project(&schema, &profile, toward, &options, &limits);
        Ok(Projection {
            projection: Arc::new(projected.map_err(|error| compile_error(&error))?),
            source: schema,
            receiver: OnceLock::new(),
        })
    }

    /// Returns the schema of the target, and everything about it, as JSON.
    #[napi(catch_unwind)]
    pub fn report(&self) -> String {
        let projection = &self.projection;
        let loss = |loss: &project::Loss| json!({"pointer": loss.pointer, "effect": loss.effect.as_str(), "message": loss.message});
        let recoding =
            |recoding: &project::Recoding| json!({"pointer": recoding.pointer, "message": recoding.message});
        let report = json!({
            "schema": projection.schema(),
            "restoredSchema": projection.restored_schema(),
            "unchanged": projection.is_unchanged(),
            "relation": projection.relation().as_str(),
            "proven": projection.proof() == Proof::Proven,
            "losses": projection.losses().iter().map(loss).collect::<Vec<Value>>(),
            "recodings": projection.recodings().iter().map(recoding).collect::<Vec<Value>>(),
        });
        report.to_string()
    }

    /// Restores the value that an answer stands for.
    #[napi(catch_unwind)]
    pub fn restore(&self, answer: String) -> Result<String> {
        let answer = serde_json::from_str(&answer);
        let answer = answer.map_err(|error| rejected_error(&Rejected::NotJson(error.to_string())))?;
        let restored = self.projection.restore(answer, &Limits::default());
        let restored = restored.map_err(|error| rejected_error(&Rejected::NotRestored(error)))?;
        Ok(restored.to_string())
    }

    /// Returns the value of the schema that an answer stands for, or the nearest one.
    #[napi(catch_unwind)]
    pub fn receive(&self, answer: String) -> Result<String> {
        let receiver = match self.receiver.get() {
            Some(known) => known,
            None => {
                let made = Receiver::new(&self.source, self.projection.clone(), &Limits::default());
                let made = made.map_err(|error| compile_error(&error))?;
                self.receiver.get_or_init(|| made)
            }
        };
        let received = receiver
            .receive(&answer)
            .map_err(|rejected| rejected_error(&rejected))?;
        Ok(received.value.to_string())
    }
}

/// Returns everything in a schema that a profile does not take, as JSON.
#[napi(catch_unwind)]
pub(crate) fn schema_refusals(schema: String, profile: String) -> Result<String> {
    let found = project::refusals(&schema, &profile_of(&profile)?, &Limits::default());
    let found = found.map_err(|error| compile_error(&error))?;
    Ok(Value::from(found.iter().map(problem).collect::<Vec<Value>>()).to_string())
}

/// Returns the names of the profiles that come with the library.
#[napi(catch_unwind)]
pub(crate) fn profile_names() -> Vec<String> {
    Profile::names().map(str::to_owned).collect()
}

fn profile_of(text: &str) -> Result<Profile> {
    if let Some(known) = Profile::named(text) {
        return Ok(known);
    }
    if !text.trim_start().starts_with('{') {
        let known: Vec<&str> = Profile::names().collect();
        let message = format!("there is no profile {text:?}; there are {}", known.join(", "));
        return Err(call_error(message));
    }
    Profile::read(text).map_err(|error| compile_error(&error))
}
