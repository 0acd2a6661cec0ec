//! The arms: what is generated, under which law, and whether with drafts.

use lexiform::{Compiler, Options, Source};
use lexiform_cli::failure::Failure;
use lexiform_engine::{Fallback, Grammar, Law, OnBudget, Request, Sampling, Speculation};

use crate::model::served::ServedModel;

/// A list that is longer than any answer, so that all answers under it have as many tokens as free text.
const LIST: &str = include_str!("../../../../benches/engine/throughput.schema.json");
/// A record, which any model can complete within some forty tokens: laws concern whole texts.
const RECORD: &str = r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
    "age": {"type": "integer", "minimum": 0, "maximum": 150}}, "required": ["name", "age"], "additionalProperties": false}"#;

/// The number of attempts of an answer under the global law after which it is drawn by the local law and
/// weighted. A model that does not write records without a constraint, especially one with random weights,
/// would try forever.
const MAX_ATTEMPTS: u32 = 16;

/// The constraint of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Constraint {
    Nothing,
    List,
    Record,
}

/// One way of generating answers.
#[derive(Debug)]
pub(super) struct Arm {
    pub(super) name: &'static str,
    /// The arm with which its speed is compared.
    pub(super) baseline: Option<&'static str>,
    constraint: Constraint,
    is_drafted: bool,
    is_filtered: bool,
    law: Law,
}

/// All arms, each after its baseline.
pub(super) const ARMS: [Arm; 6] = [
    Arm {
        name: "free",
        baseline: None,
        constraint: Constraint::Nothing,
        is_drafted: false,
        is_filtered: false,
        law: Law::Local,
    },
    Arm {
        name: "filtered",
        baseline: Some("free"),
        constraint: Constraint::Nothing,
        is_drafted: false,
        is_filtered: true,
        law: Law::Local,
    },
    Arm {
        name: "schema",
        baseline: Some("free"),
        constraint: Constraint::List,
        is_drafted: false,
        is_filtered: false,
        law: Law::Local,
    },
    Arm {
        name: "drafts",
        baseline: Some("schema"),
        constraint: Constraint::List,
        is_drafted: true,
        is_filtered: false,
        law: Law::Local,
    },
    Arm {
        name: "local",
        baseline: Some("free"),
        constraint: Constraint::Record,
        is_drafted: false,
        is_filtered: false,
        law: Law::Local,
    },
    Arm {
        name: "global",
        baseline: Some("local"),
        constraint: Constraint::Record,
        is_drafted: false,
        is_filtered: false,
        law: Law::Global {
            share_attempts: false,
            max_attempts: MAX_ATTEMPTS,
            fallback: Fallback::Weighted,
        },
    },
];

/// The compiled constraints.
pub(super) struct Constraints {
    list: Grammar,
    record: Grammar,
}

impl Constraints {
    pub(super) fn compile(served: &ServedModel) -> Result<Self, Failure> {
        let options = Options::default();
        let failed =
            |error: &dyn std::fmt::Display| Failure::Unable(format!("cannot compile a schema: {error}"));
        let compiler = Compiler::new(served.vocabulary().clone())
            .primed(&options)
            .map_err(|error| failed(&error))?;
        let compile = |schema| {
            let compiled = compiler.compile(Source::JsonSchema(schema), &options);
            compiled
                .map(|(grammar, _)| grammar)
                .map_err(|error| failed(&error))
        };
        Ok(Constraints {
            list: compile(LIST)?,
            record: compile(RECORD)?,
        })
    }
}

impl Arm {
    /// Returns `true` if every pass advances every answer, so that the bytes read by a pass are known: not
    /// under the global law, whose attempts restart.
    pub(super) fn is_steady(&self) -> bool {
        self.law == Law::Local
    }

    /// Returns `true` if the arm can be measured at this temperature: the global law has no likeliest token.
    pub(super) fn takes(&self, temperature: f64) -> bool {
        self.is_steady() || temperature > 0.0
    }

    /// Returns a request of this arm.
    pub(super) fn request(
        &self,
        constraints: &Constraints,
        prompt: Vec<u32>,
        tokens: usize,
        temperature: f64,
        seed: u64,
    ) -> Request {
        let grammar = match self.constraint {
            Constraint::Nothing => None,
            Constraint::List => Some(constraints.list.clone()),
            Constraint::Record => Some(constraints.record.clone()),
        };
        let request = Request::new(prompt, tokens)
            .task(self.law)
            .sampling(Sampling {
                temperature: temperature as f32,
                seed,
                top_p: if self.is_filtered { 0.9 } else { 1.0 },
                frequency_penalty: if self.is_filtered { 0.2 } else { 0.0 },
                ..Sampling::default()
            })
            .speculation(match self.is_drafted {
                true => Speculation {
                    learned: false,
                    ..Speculation::all()
                },
                false => Speculation::none(),
            })
            .on_budget(match self.constraint {
                Constraint::List => OnBudget::Cut,
                Constraint::Nothing | Constraint::Record => OnBudget::Complete,
            });
        match grammar {
            Some(grammar) => request.grammar(grammar),
            None => request.ignore_eos(true),
        }
    }
}
