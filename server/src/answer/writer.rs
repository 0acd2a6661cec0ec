//! The trait [`Writer`], implemented for the shapes of each route, and the pieces of an answer that writers
//! receive.

use serde_json::Value;

use crate::answer::parts::OutputFormat;
use crate::answer::parts::Part;
use crate::answer::sample::Ended;
use crate::model::served::ServedModel;
use crate::wire::error::ApiError;
use crate::wire::fields::Ignored;
use crate::wire::response::{
    Answer, Choice, Confidence, Enforcement, Extension, ParticleText, Support, TokenDetail, TokenLogprob,
    Told, Usage,
};

/// The fields that all shapes of an answer share.
#[derive(Clone, Debug)]
pub struct Base {
    /// The identity of the answer; all its chunks have the same one.
    pub id: String,
    /// The time at which the answer was begun, in seconds.
    pub created: u64,
    /// The name of the model.
    pub model: String,
    /// The version of the server, and the format of the model's weights in memory if it differs from the
    /// stored one.
    pub fingerprint: String,
    /// The format of the model's weights, if they were rounded to it.
    pub weights: Option<&'static str>,
    /// The constraint that is enforced, if there is one.
    pub enforcement: Option<Enforcement>,
    /// A short form of `enforcement`, for the beginning of a stream.
    pub announced: Option<Enforcement>,
    /// The fields of the request that have no effect here.
    pub ignored: Vec<String>,
}

/// The part of an answer that a piece of JSON represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The first chunk of a sample.
    Beginning,
    /// A chunk in the middle.
    Middle,
    /// The last chunk of a sample, or a whole answer.
    End,
}

/// The findings about a sample that has ended.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The certificates of the texts that were checked again.
    pub certificates: Vec<Value>,
    /// The model's confidence in each value, if the request asks for it.
    pub fields: Option<Vec<Confidence>>,
    /// The texts that the sample was drawn from, if the request asks for them.
    pub population: Option<Vec<ParticleText>>,
    /// How far the other samples support this one, if it was chosen among them.
    pub support: Option<Support>,
}

impl Base {
    /// Creates the base of a new answer, with an identity that begins with this prefix, its constraint if
    /// there is one, and the ignored fields of its request.
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

    /// Encodes an answer of this kind, or a chunk of one, as JSON.
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
    /// The identity of the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// `true` if the tool takes raw text.
    pub custom: bool,
    /// The input of the call.
    pub input: String,
}

/// A sample that has ended, whole.
#[derive(Debug)]
pub struct Whole {
    /// The index of the sample.
    pub index: usize,
    /// The thought of the model.
    pub reasoning: String,
    /// The content of the answer.
    pub content: String,
    /// The calls of the answer.
    pub calls: Vec<Call>,
    /// The log-probabilities of its tokens.
    pub logprobs: Vec<TokenLogprob>,
    /// How the sample ended.
    pub ended: Ended,
    /// The findings about the sample.
    pub findings: Findings,
}

/// The tokens of a sample of a stream that were not reported yet.
#[derive(Debug, Default)]
pub struct PendingTokens {
    /// The log-probabilities of the tokens.
    pub logprobs: Vec<TokenLogprob>,
    /// How the tokens were chosen, if the request asks for it.
    pub tokens: Vec<TokenDetail>,
}

/// The end of a sample of a stream.
#[derive(Debug)]
pub struct End {
    /// The index of the sample.
    pub index: usize,
    /// How the sample ended.
    pub ended: Ended,
    /// The tokens that came with no part.
    pub since: PendingTokens,
    /// The tokens used so far.
    pub usage: Usage,
    /// The findings about the sample.
    pub findings: Findings,
}

/// One more part of a sample of a stream.
#[derive(Debug)]
pub struct Piece {
    /// The index of the sample.
    pub index: usize,
    /// The part.
    pub part: Part,
    /// The tokens that came since the last piece.
    pub since: PendingTokens,
    /// The tokens used so far.
    pub usage: Usage,
}

/// A writer of the shapes of a route.
pub trait Writer: Send {
    /// Writes the first frames of a stream of at most this many samples.
    fn opening(&mut self, samples: usize, out: &mut String);
    /// Writes the first frames of a sample, before its other frames.
    fn begin(&mut self, _index: usize, _out: &mut String) {}
    /// Writes one more part.
    fn piece(&mut self, piece: Piece, out: &mut String);
    /// Writes the end of a sample.
    fn end(&mut self, end: End, out: &mut String);
    /// Writes the last frames of a stream.
    fn closing(&mut self, usage: Usage, out: &mut String);
    /// Writes the frames that report an error in the middle of a stream.
    fn failed(&mut self, error: &ApiError, out: &mut String) {
        sse_event(&serde_json::to_string(&error.envelope()).unwrap_or_default(), out);
    }
    /// Returns `true` if the whole answer may take long to write and must not be written on a thread that
    /// serves connections.
    fn is_slow(&self) -> bool {
        false
    }
    /// Writes the whole answer.
    fn whole(&self, samples: Vec<Whole>, usage: Usage) -> String;
}

/// Returns the fields about a sample that are specific to this server.
pub fn told(ended: &Ended, findings: Findings) -> Told {
    Told {
        sample: ended.sample,
        budget: ended.budget,
        certificates: findings.certificates,
        fields: findings.fields,
        population: findings.population,
        support: findings.support,
    }
}

/// Returns a call that begins.
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
