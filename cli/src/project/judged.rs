//! One schema for one target: what the target refuses, and how the projection relates to the schema.

use clap::ValueEnum;
use lexiform::error::{CompileError, Problem};
use lexiform::limits::Limits;
use lexiform::project::{
    Contradiction, Profile, Projection, Projector, Proof, Relation, Tested, Toward, refusals, tested,
};
use lexiform::schema::Options;
use serde_json::{Value, json};

use super::document::Named;
use crate::failure::{Code, Failure};
use crate::input::tokenizer;
use crate::shown::paint::{bad, dim, good};

/// The side of losses, and how relations are tested.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Side {
    /// What to do with a constraint that the target cannot have
    #[arg(long, value_enum, default_value_t)]
    toward: Losing,
    /// The values that are drawn from both sides where the relation cannot be proven
    #[arg(long, value_name = "N", default_value_t = 200)]
    draws: usize,
}

/// What to do with a constraint that the target cannot have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Losing {
    /// Drop the constraint: the target allows more, and answers have to be validated
    #[default]
    Wider,
    /// Drop the values that it is about: the target allows less
    Narrower,
}

impl From<Losing> for Toward {
    fn from(losing: Losing) -> Self {
        match losing {
            Losing::Wider => Toward::Wider,
            Losing::Narrower => Toward::Narrower,
        }
    }
}

/// How schemas are judged.
pub struct Judging {
    /// The side of losses.
    pub toward: Toward,
    /// The values that are drawn from both sides where a relation is not proven.
    pub draws: usize,
    /// How schemas are read.
    pub options: Options,
    /// The limits of each projection, and of each test.
    pub limits: Limits,
}

/// A schema with its projection to one target.
pub struct Judged {
    /// The schema.
    pub named: Named,
    /// What the target does not take.
    pub refused: Vec<Problem>,
    /// The projection, or why there is none.
    pub projection: Result<Projection, CompileError>,
    /// What a test on drawn values found, where the relation is not proven.
    pub tested: Option<Tested>,
}

impl From<Side> for Judging {
    fn from(side: Side) -> Self {
        Judging {
            toward: side.toward.into(),
            draws: side.draws,
            options: Options::for_generation(),
            limits: Limits::default(),
        }
    }
}

impl Judging {
    /// Judges a schema for each of these targets.
    pub fn judge(&self, named: &Named, profiles: &[Profile]) -> Vec<Judged> {
        let text = named.schema.to_string();
        let projector = Projector::new(&text, &self.options, &self.limits);
        let judge = |profile| match &projector {
            Ok(projector) => self.target(named, &text, projector, profile),
            Err(error) => Judged {
                named: named.clone(),
                refused: refusals(&text, profile, &self.limits).unwrap_or_else(|error| error.problems),
                projection: Err(error.clone()),
                tested: None,
            },
        };
        profiles.iter().map(judge).collect()
    }

    /// Judges a schema that compiles.
    pub fn target(&self, named: &Named, text: &str, projector: &Projector, profile: &Profile) -> Judged {
        let refused = projector.refusals(profile, &self.limits);
        let projection = projector.project(profile, self.toward, &self.limits);
        let open = projection.as_ref().ok();
        let open = open.filter(|projection| projection.proof() == Proof::Open && self.draws > 0);
        let test = |projection| tested(text, projection, &self.options, &self.limits, self.draws, 1).ok();
        Judged {
            named: named.clone(),
            refused: refused.unwrap_or_else(|error| error.problems),
            tested: open.and_then(test),
            projection,
        }
    }
}

impl Judged {
    /// Returns the exit code: a projection that drawn values contradict is no answer.
    pub fn code(&self) -> Code {
        let tested = self.tested.as_ref();
        match tested.is_some_and(|tested| !tested.contradictions.is_empty()) {
            true => Code::No,
            false => Code::Fine,
        }
    }

    /// Returns `true` if the target cannot have all of the schema.
    pub fn is_lossy(&self) -> bool {
        self.projection
            .as_ref()
            .map_or(true, |projection| projection.relation() != Relation::Equal)
    }

    /// Returns the failure of a schema that cannot be projected.
    pub(super) fn failure(&self, profile: &Profile) -> Failure {
        let problems = self
            .projection
            .as_ref()
            .err()
            .map_or(&[][..], |error| &error.problems);
        let lines: Vec<String> = problems.iter().map(|problem| format!("  {problem}")).collect();
        Failure::DoesNotCompile {
            text: format!(
                "{} cannot be projected to {}\n{}",
                self.named.name,
                profile.name,
                lines.join("\n")
            ),
            json: json!({"name": self.named.name, "problems": problems.iter().map(problem_json).collect::<Vec<_>>()}),
        }
    }

    /// Restores an answer of the target.
    pub(super) fn restore(&self, answer: Value) -> Result<Value, Failure> {
        let Ok(projection) = &self.projection else {
            return Err(Failure::message("the schema cannot be projected"));
        };
        projection
            .restore(answer, &Limits::default())
            .map_err(|error| Failure::No {
                text: format!("the answer cannot be restored: {error}"),
                json: json!({"pointer": error.pointer, "message": error.message}),
            })
    }

    /// Returns why the schema does not allow a value, if so.
    pub(super) fn problem(&self, value: &Value) -> Option<String> {
        let schema = &self.named.schema;
        let Ok(validator) = jsonschema::options().should_validate_formats(true).build(schema) else {
            return self.problem_by_grammar(value);
        };
        validator
            .iter_errors(value)
            .next()
            .map(|error| format!("#{}: {error}", error.instance_path()))
    }

    fn problem_by_grammar(&self, value: &Value) -> Option<String> {
        let vocabulary = tokenizer::bytes_only().ok()?;
        let text = self.named.schema.to_string();
        let options = lexiform::Options::default();
        let (grammar, _) =
            lexiform::compile(lexiform::Source::JsonSchema(&text), &vocabulary, &options).ok()?;
        let end = grammar.step_bytes(grammar.start(), value.to_string().as_bytes());
        let is_valid = end.is_some_and(|state| grammar.is_accepting(state));
        (!is_valid).then(|| "it does not belong to the schema".to_owned())
    }

    /// Describes the projection: its relation, what it loses, and what is recoded.
    pub(super) fn in_words(&self) -> String {
        let Ok(projection) = &self.projection else {
            return format!("{}: {}\n", self.named.name, bad("cannot be projected"));
        };
        let mut text = format!("{}: {}\n", self.named.name, self.relation_in_words(projection));
        for loss in projection.losses() {
            text += &line(2, &loss.to_string());
        }
        for recoding in projection.recodings() {
            text += &line(2, &recoding.to_string());
        }
        text
    }

    pub(super) fn relation_in_words(&self, projection: &Projection) -> String {
        if projection.is_unchanged() {
            return good("taken as it is");
        }
        let relation = match projection.relation() {
            Relation::Equal => good("equal"),
            Relation::Neither => "wider in some places, narrower in others".to_owned(),
            other => other.as_str().to_owned(),
        };
        match (projection.proof(), self.tested.as_ref()) {
            (Proof::Proven, _) => format!("{relation}, proven"),
            (Proof::Open, Some(tested)) if tested.contradictions.is_empty() => format!(
                "{relation}, tested on {} values and {} answers",
                tested.values, tested.answers
            ),
            (Proof::Open, Some(tested)) => {
                let first = tested.contradictions.first().map(shown).unwrap_or_default();
                format!(
                    "{}: {first}",
                    bad("a drawn value contradicts that it is {relation}")
                )
            }
            (Proof::Open, None) => format!("{relation}, neither proven nor tested"),
        }
    }

    /// Returns everything about it as JSON.
    pub fn json(&self, profile: &Profile) -> Value {
        let refused: Vec<Value> = self.refused.iter().map(problem_json).collect();
        let mut json = json!({"name": self.named.name, "pointer": self.named.pointer, "profile": profile.name,
            "taken": self.refused.is_empty(), "refused": refused});
        match &self.projection {
            Err(error) => json["problems"] = error.problems.iter().map(problem_json).collect(),
            Ok(projection) => {
                let losses = projection.losses().iter();
                let recodings = projection.recodings().iter();
                json["relation"] = projection.relation().as_str().into();
                json["proven"] = (projection.proof() == Proof::Proven).into();
                json["losses"] = losses
                    .map(|loss| json!({"pointer": loss.pointer, "effect": loss.effect.as_str(), "message": loss.message}))
                    .collect();
                json["recodings"] = recodings
                    .map(|recoding| json!({"pointer": recoding.pointer, "message": recoding.message}))
                    .collect();
                json["schema"] = projection.schema().clone();
                if let Some(tested) = self.tested.as_ref() {
                    json["tested"] = json!({"values": tested.values, "answers": tested.answers, "valid": tested.valid,
                        "contradictions": tested.contradictions.iter().map(shown).collect::<Vec<_>>()});
                }
            }
        }
        json
    }
}

fn problem_json(problem: &Problem) -> Value {
    let place = problem.place.to_string();
    json!({"pointer": place.strip_prefix('#').unwrap_or(&place), "message": problem.message})
}

fn shown(contradiction: &Contradiction) -> String {
    match contradiction {
        Contradiction::Missing(value) => format!("no answer is restored to {value}"),
        Contradiction::Wrong(answer) => format!("the schema does not allow what {answer} is restored to"),
        Contradiction::NotRestored(answer, why) => format!("{answer} cannot be restored: {why}"),
    }
}

/// Formats a line beside what it is about.
pub(super) fn line(indent: usize, text: &str) -> String {
    format!("{:indent$}{}\n", "", dim(text))
}
