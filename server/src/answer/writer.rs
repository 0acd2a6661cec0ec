//! The trait [`Writer`], one for the shapes of each route, and the pieces of an answer that writers are
//! given.

use serde_json::Value;

use crate::answer::parts::OutputFormat;
use crate::answer::parts::Part;
use crate::answer::sample::Ended;
use crate::model::served::ServedModel;
use crate::wire::error::ApiError;
use crate::wire::fields::Ignored;
use crate::wire::response::{
    Answer, Choice, Confidence, Enforcement, Extension, ParticleText, TokenDetail, TokenLogprob, Told, Usage,
};

/// What all shapes tell of an answer.
#[derive(Clone, Debug)]
pub struct Base {
    /// The identity of the answer; the same for all its chunks.
    pub id: String,
    /// When it was begun, in seconds.
    pub created: u64,
    /// The model.
    pub model: String,
    /// The version of the server, and how the model's weights are kept, if that is not as they are stored.
    pub fingerprint: String,
    /// The format of the model's weights, if they were rounded to it.
    pub weights: Option<&'static str>,
    /// What is enforced.
    pub enforcement: Option<Enforcement>,
    /// The same in short, for the beginning of a stream.
    pub announced: Option<Enforcement>,
    /// The fields of the request that mean nothing here.
    pub ignored: Vec<String>,
}

/// Which part of an answer some JSON is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The first chunk of a sample.
    Beginning,
    /// A chunk in the middle.
    Middle,
    /// The last chunk of a sample, or a whole answer.
    End,
}

/// What was found out about a sample when it had ended.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The texts in it that were checked again.
    pub certificates: Vec<Value>,
    /// How sure the model was of each value, if that was asked for.
    pub fields: Option<Vec<Confidence>>,
    /// The texts that it was drawn from, if that was asked for.
    pub population: Option<Vec<ParticleText>>,
}

impl Base {
    /// Of a new answer, with an identity of this kind, under a constraint if there is one, to a request of
    /// which these fields are ignored.
    pub fn new(
        prefix: &str,
        served: &ServedModel,
        enforcement: Option<Enforcement>,
        ignored: &Ignored,
    ) -> Self {
        let announced = enforcement.as_ref().map(|told| Enforcement {
            grammar: told.grammar.clone(),
            enforced: told.enforced,
            diagnostics: told.diagnostics.clone(),
            enforcement: None,
            unlisted: 0,
        });
        Self {
            id: format!("{prefix}{}", crate::operate::random::identity()),
            created: crate::operate::random::now(),
            model: served.name().to_owned(),
            fingerprint: served.fingerprint().to_owned(),
            weights: served.rounded(),
            enforcement,
            announced,
            ignored: ignored.listed(),
        }
    }

    /// An answer of this kind, or a chunk of one, as JSON.
    pub fn encode<C: Choice>(
        &self,
        (object, stage): (&str, Stage),
        choices: Vec<C>,
        usage: Option<Usage>,
    ) -> String {
        let lexiform = match stage {
            Stage::Beginning => Extension::of(self.announced.as_ref(), self.weights, &self.ignored),
            Stage::Middle => None,
            Stage::End => Extension::of(self.enforcement.as_ref(), self.weights, &self.ignored),
        };
        let answer = Answer {
            id: &self.id,
            object,
            created: self.created,
            model: &self.model,
            system_fingerprint: &self.fingerprint,
            choices,
            usage,
            lexiform,
        };
        answer.to_json()
    }
}

/// A call of a tool, as far as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its identity.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Whether the tool takes raw text.
    pub custom: bool,
    /// What it is called with.
    pub input: String,
}

/// A sample that has ended, whole.
#[derive(Debug)]
pub struct Whole {
    /// Its number.
    pub index: usize,
    /// What the model thought.
    pub reasoning: String,
    /// What it said.
    pub content: String,
    /// What it called.
    pub calls: Vec<Call>,
    /// Log-probabilities of its tokens.
    pub logprobs: Vec<TokenLogprob>,
    /// How it ended.
    pub ended: Ended,
    /// What was found out about it.
    pub findings: Findings,
}

/// The tokens of a sample of a stream that were not told of yet.
#[derive(Debug, Default)]
pub struct PendingTokens {
    /// Their log-probabilities.
    pub logprobs: Vec<TokenLogprob>,
    /// How they came about, if that was asked for.
    pub tokens: Vec<TokenDetail>,
}

/// The end of a sample of a stream.
#[derive(Debug)]
pub struct End {
    /// The sample.
    pub index: usize,
    /// How it ended.
    pub ended: Ended,
    /// The tokens that came with no part.
    pub since: PendingTokens,
    /// The tokens used so far.
    pub usage: Usage,
    /// What was found out about it.
    pub findings: Findings,
}

/// One more part of a sample of a stream.
#[derive(Debug)]
pub struct Piece {
    /// The sample.
    pub index: usize,
    /// The part.
    pub part: Part,
    /// The tokens that came since the last piece.
    pub since: PendingTokens,
    /// The tokens used so far.
    pub usage: Usage,
}

/// The shapes of a route.
pub trait Writer: Send {
    /// The first frames of a stream of so many samples.
    fn opening(&mut self, samples: usize, out: &mut String);
    /// One more part.
    fn piece(&mut self, piece: Piece, out: &mut String);
    /// A sample has ended.
    fn end(&mut self, end: End, out: &mut String);
    /// The last frames of a stream.
    fn closing(&mut self, usage: Usage, out: &mut String);
    /// The frames that tell of an error in the middle of a stream.
    fn failed(&mut self, error: &ApiError, out: &mut String) {
        sse_event(&serde_json::to_string(&error.envelope()).unwrap_or_default(), out);
    }
    /// Whether the whole answer may take long to write, so that it must not be written on a thread that
    /// serves connections.
    fn is_slow(&self) -> bool {
        false
    }
    /// The whole answer.
    fn whole(&self, samples: Vec<Whole>, usage: Usage) -> String;
}

/// What only this server tells of a sample.
pub fn told(ended: &Ended, findings: Findings) -> Told {
    Told {
        sample: ended.sample,
        budget: ended.budget,
        certificates: findings.certificates,
        fields: findings.fields,
        population: findings.population,
    }
}

/// A call that begins.
pub fn opened(reading: &OutputFormat, tool: usize) -> Call {
    let (name, custom) = reading.tool(tool);
    Call {
        id: format!("call_{}", crate::operate::random::identity()),
        name: name.to_owned(),
        custom,
        input: String::new(),
    }
}

/// Writes one event of a stream.
pub fn sse_event(json: &str, out: &mut String) {
    out.push_str("data: ");
    out.push_str(json);
    out.push_str("\n\n");
}
