//! Schemas as providers and engines take them, and the values of their answers.

use std::ffi::c_char;
use std::sync::Arc;

use lexiform::limits::Limits;
use lexiform::project::{Profile, Projection, Proof, Receiver, Rejected, Toward, project};
use lexiform::schema::Options;
use serde_json::{Value, json};

use crate::boundary::{free, guarded, hand_out, handle, string, value};
use crate::options::{self, mistake, text};

/// The handle of a projection. Several threads may use it at the same time.
pub struct ProjectionHandle {
    projection: Arc<Projection>,
    receiver: Receiver,
}

/// Projects a schema to a profile: the name of one, or its JSON. If that fails, the result is null and
/// `problems` receives all problems as JSON.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_project(
    schema: *const c_char,
    len: usize,
    profile: *const c_char,
    profile_len: usize,
    narrower: bool,
    problems: *mut *mut c_char,
) -> *mut ProjectionHandle {
    let projected = guarded(Err(mistake("a mistake of this library")), || {
        // SAFETY: the header demands these many bytes of each.
        let (schema, profile) = unsafe { (text(schema, len)?, text(profile, profile_len)?) };
        projected(schema, profile, narrower)
    });
    match projected {
        Ok(projection) => handle(projection),
        Err(text) => {
            // SAFETY: the header demands that `problems` is null or may be written to.
            unsafe { hand_out(problems, &text) };
            std::ptr::null_mut()
        }
    }
}

fn projected(schema: &str, profile: &str, narrower: bool) -> Result<ProjectionHandle, String> {
    let problems = |error: lexiform::error::CompileError| options::problems(&error);
    let profile = match Profile::named(profile) {
        Some(known) => known,
        None if profile.trim_start().starts_with('{') => Profile::read(profile).map_err(problems)?,
        None => return Err(mistake(&format!("there is no profile {profile:?}"))),
    };
    let toward = if narrower { Toward::Narrower } else { Toward::Wider };
    let limits = Limits::default();
    let projection =
        project(schema, &profile, toward, &Options::for_generation(), &limits).map_err(problems)?;
    let projection = Arc::new(projection);
    let receiver = Receiver::new(schema, projection.clone(), &limits).map_err(problems)?;
    Ok(ProjectionHandle { projection, receiver })
}

/// Frees a projection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_projection_free(projection: *mut ProjectionHandle) {
    // SAFETY: the header demands a handle that was not freed, or null.
    unsafe { free(projection) };
}

/// Returns the schema that the target takes, as JSON.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_projection_schema(projection: *const ProjectionHandle) -> *mut c_char {
    // SAFETY: the header demands a handle or null.
    let projection = unsafe { value(projection) };
    projection.map_or(std::ptr::null_mut(), |handle| {
        string(&handle.projection.schema().to_string())
    })
}

/// Returns how a projection relates to its schema, as JSON.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_projection_report(projection: *const ProjectionHandle) -> *mut c_char {
    // SAFETY: the header demands a handle or null.
    let projection = unsafe { value(projection) };
    projection.map_or(std::ptr::null_mut(), |handle| {
        string(&report(&handle.projection).to_string())
    })
}

fn report(projection: &Projection) -> Value {
    let losses = projection.losses().iter();
    let losses = losses.map(
        |loss| json!({"pointer": loss.pointer, "effect": loss.effect.as_str(), "message": loss.message}),
    );
    let recodings = projection.recodings().iter();
    let recodings =
        recodings.map(|recoding| json!({"pointer": recoding.pointer, "message": recoding.message}));
    json!({
        "unchanged": projection.is_unchanged(),
        "relation": projection.relation().as_str(),
        "proven": projection.proof() == Proof::Proven,
        "losses": losses.collect::<Vec<_>>(),
        "recodings": recodings.collect::<Vec<_>>(),
    })
}

/// Returns the value of the schema that an answer stands for, or the nearest one, as JSON. If there is none,
/// the result is null and `message` receives a message for the model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_projection_receive(
    projection: *const ProjectionHandle,
    answer: *const c_char,
    len: usize,
    message: *mut *mut c_char,
) -> *mut c_char {
    let received = guarded(Err("a mistake of this library".to_owned()), || {
        // SAFETY: the header demands a handle or null, and `len` bytes.
        let (projection, answer) = unsafe { (value(projection), text(answer, len)?) };
        let projection = projection.ok_or("the projection is null")?;
        let rejected = |rejected: Rejected| rejected.message_for_model();
        Ok(projection
            .receiver
            .receive(answer)
            .map_err(rejected)?
            .value
            .to_string())
    });
    match received {
        Ok(value) => string(&value),
        Err(text) => {
            // SAFETY: the header demands that `message` is null or may be written to.
            unsafe { hand_out(message, &text) };
            std::ptr::null_mut()
        }
    }
}
