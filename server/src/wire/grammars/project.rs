//! `POST /v1/project`: the request, and the answer.

use lexiform::error::Problem;
use lexiform::project::{Profile, Toward};
use lexiform_cli::project::{Document, Judged, Named};
use serde_json::{Value, json};

use crate::wire::error::{ApiError, Diagnosis, Subject};
use crate::wire::fields::{Fields, Ignored, Problems, type_name};

/// The maximum number of targets of a request.
const PROFILES: usize = 16;
/// The maximum number of tools.
const TOOLS: usize = 128;
/// The maximum number of values that are drawn from each side where a relation is not proven.
const MOST_DRAWS: i64 = 1_000;
/// The default of that number: hundreds of texts of a large format take seconds.
const DRAWS: usize = 20;
/// The maximum number of entries of each list of an answer: there may be as many as the schema has parts.
const LISTED: usize = 100;

/// A request to project a schema, or those of tools.
#[derive(Clone, Debug)]
pub struct ProjectRequest {
    /// The schema or the list of tools.
    pub document: Document,
    /// Its schemas.
    pub schemas: Vec<Named>,
    /// `true` if it is a list of tools.
    pub has_tools: bool,
    /// The targets.
    pub profiles: Vec<Profile>,
    /// The side of losses.
    pub toward: Toward,
    /// The values to draw from each side where a relation is not proven.
    pub draws: usize,
    /// The fields that have no effect here.
    pub ignored: Ignored,
}

/// Reads a request.
///
/// # Errors
/// Returns all problems of the body in one error.
pub fn read(body: &[u8]) -> Result<ProjectRequest, ApiError> {
    let mut fields = Fields::root(crate::wire::object(body)?);
    let mut problems = Problems::default();
    let schema = schema(&mut fields, &mut problems);
    let tools = fields.has("tools").then(|| tools(&mut fields, &mut problems));
    let profiles = profiles(&mut fields, &mut problems);
    let words = [("wider", Toward::Wider), ("narrower", Toward::Narrower)];
    let toward = fields.word("toward", &words, &mut problems);
    let draws = fields.integer("draws", 0, MOST_DRAWS, &mut problems);
    fields.ignore(&["model"]);
    fields.finish_strict(&mut problems);
    let has_tools = tools.is_some();
    if schema.is_some() == has_tools {
        problems.invalid("schema", "expected either schema or tools");
    }
    let ignored = problems.check()?;
    let document = Document::new(schema.or(tools).unwrap_or_default());
    let schemas = match has_tools {
        true => document.schemas(),
        false => vec![document.whole()],
    };
    Ok(ProjectRequest {
        document,
        schemas,
        has_tools,
        profiles,
        toward: toward.unwrap_or_default(),
        draws: draws
            .and_then(|draws| usize::try_from(draws).ok())
            .unwrap_or(DRAWS),
        ignored,
    })
}

/// Takes the schema: an object, `true` or `false`.
fn schema(fields: &mut Fields, problems: &mut Problems) -> Option<Value> {
    let schema = fields.take("schema")?;
    if !schema.is_object() && !schema.is_boolean() {
        let found = type_name(&schema);
        problems.invalid("schema", format!("expected a JSON Schema, found {found}"));
    }
    Some(schema)
}

/// Takes the tools, in the shape of any provider. A tool without parameters stays as it is.
fn tools(fields: &mut Fields, problems: &mut Problems) -> Value {
    let tools = fields
        .array_of("tools", TOOLS, "tools", problems)
        .unwrap_or_default();
    let tools = Value::Array(tools);
    let schemas = Document::new(tools.clone()).schemas();
    for (at, tool) in tools.as_array().into_iter().flatten().enumerate() {
        let within = format!("/{at}/");
        let is_known = schemas.iter().any(|named| named.pointer.starts_with(&within));
        let mut names = [tool.get("name"), tool.pointer("/function/name")]
            .into_iter()
            .flatten();
        if !is_known && !names.any(Value::is_string) {
            let expected = "expected a tool as OpenAI, Anthropic, Gemini or MCP write them";
            problems.invalid(format!("tools[{at}]"), expected);
        }
    }
    if !tools.as_array().is_some_and(Vec::is_empty) && schemas.is_empty() {
        problems.invalid("tools", "expected at least one tool with parameters");
    }
    tools
}

/// Takes the targets: names, or profiles of the client. Default: all that the library knows.
fn profiles(fields: &mut Fields, problems: &mut Problems) -> Vec<Profile> {
    if !fields.has("profiles") {
        return Profile::names().filter_map(Profile::named).collect();
    }
    let given = fields.array_of("profiles", PROFILES, "profiles", problems);
    let given = given.unwrap_or_default().into_iter().enumerate();
    let read = given.filter_map(|(at, profile)| {
        let problem = match &profile {
            Value::String(name) => match Profile::named(name) {
                Some(known) => return Some(known),
                None => {
                    let known: Vec<&str> = Profile::names().collect();
                    format!("there is no such profile; there are {}", known.join(", "))
                }
            },
            Value::Object(_) => match Profile::read(&profile.to_string()) {
                Ok(own) => return Some(own),
                Err(error) => error.to_string(),
            },
            other => format!("expected a name or a profile, found {}", type_name(other)),
        };
        problems.invalid(format!("profiles[{at}]"), problem);
        None
    });
    read.collect()
}

/// Returns the field of a schema of a request, as errors name it.
pub fn param(asked: &ProjectRequest, named: &Named) -> String {
    if !asked.has_tools {
        return "schema".to_owned();
    }
    let segments = named.pointer.split('/').skip(1);
    segments.fold("tools".to_owned(), |path, segment| {
        match segment.bytes().all(|byte| byte.is_ascii_digit()) {
            true => format!("{path}[{segment}]"),
            false => format!("{path}.{segment}"),
        }
    })
}

/// Returns the constraint that an error about a schema names.
pub fn subject<'a>(param: &'a str, named: &'a Named) -> Subject<'a> {
    Subject {
        param,
        name: Some(&named.name),
        is_schema: true,
    }
}

/// Returns the answer for one target: the document as it takes it, and what became of each schema.
pub fn projected(asked: &ProjectRequest, profile: &Profile, judged: &[Judged]) -> Value {
    let mut document = asked.document.clone();
    for one in judged {
        if let Ok(projection) = &one.projection {
            document.replace(&one.named, projection.schema().clone());
        }
    }
    let is_whole = judged.iter().all(|one| one.projection.is_ok());
    let document = is_whole.then(|| document.value().clone());
    let schemas: Vec<Value> = judged.iter().map(|one| told(one, profile)).collect();
    json!({"profile": profile.name, "document": document, "schemas": schemas})
}

/// Returns the whole answer.
pub fn answered(projections: Vec<Value>) -> Value {
    json!({"object": "projections", "projections": projections})
}

/// Returns what became of a schema, with lists of at most so many entries and the numbers of all.
fn told(judged: &Judged, profile: &Profile) -> Value {
    let mut told = judged.json(profile);
    if let Some(map) = told.as_object_mut() {
        // These stand beside the list of schemas.
        map.remove("profile");
        map.remove("schema");
    }
    let diagnoses = |problems: &[Problem]| -> Value {
        let listed = problems.iter().take(LISTED);
        listed.map(|problem| Diagnosis::error(problem).json()).collect()
    };
    told["refused"] = diagnoses(&judged.refused);
    told["counts"] = json!({"refused": judged.refused.len()});
    match &judged.projection {
        Ok(projection) => {
            told["counts"]["losses"] = projection.losses().len().into();
            told["counts"]["recodings"] = projection.recodings().len().into();
            for list in ["losses", "recodings"] {
                if let Some(Value::Array(list)) = told.get_mut(list) {
                    list.truncate(LISTED);
                }
            }
        }
        Err(error) => told["problems"] = diagnoses(&error.problems),
    }
    told
}
