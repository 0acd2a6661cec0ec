//! What can go wrong, by the moment at which it is noticed: before a request is taken ([`Refusal`]), while it
//! runs ([`EngineError`]), or while a model is read from disk ([`LoadError`]).

use crate::request::Conflict;
use std::path::PathBuf;
use std::time::Duration;

use lexiform::error::Exhausted;

/// Why a running request, or the engine itself, could not go on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// What was kept of earlier answers cannot be used.
    #[error(transparent)]
    Drafts(#[from] JournalError),
    /// The corpus to draft from has tokens that the model does not.
    #[error("the corpus of drafts has the token {token}; the vocabulary has {tokens} tokens")]
    Corpus {
        /// Its greatest token.
        token: u32,
        /// The tokens of the vocabulary.
        tokens: usize,
    },
    /// The model returned an error or something that cannot be logits.
    #[error("the model failed: {0}")]
    Model(String),
    /// No allowed token has any probability. With an exact mask and finite logits this does not happen.
    #[error("no allowed token has any probability after {generated} generated tokens")]
    DeadEnd {
        /// Tokens generated before the dead end.
        generated: usize,
    },
    /// The global law rejects and tries again; this is the bound on tries.
    #[error(
        "no sample was accepted in {attempts} attempts; at most {bound:.3e} of the model's mass satisfies the grammar"
    )]
    AttemptsExhausted {
        /// Attempts made.
        attempts: usize,
        /// The trie's upper bound on the probability that a raw sample satisfies the grammar within the
        /// limits.
        bound: f64,
    },
    /// An exact search met a bound before it had found all texts that were asked for.
    #[error("the search met {limit}, which is {allowed}, with {found} of its texts found")]
    SearchExhausted {
        /// The bound: `max_rows` or `max_frontier`.
        limit: &'static str,
        /// Its value.
        allowed: usize,
        /// Texts found by then, which are the likeliest ones and were answers.
        found: usize,
    },
    /// No text that a search found contains all phrases that were asked for.
    #[error("no text was found that contains all {phrases} phrases; the most that one had is {met}")]
    PhrasesMissing {
        /// How many phrases there are.
        phrases: usize,
        /// The most of them that a prefix had.
        met: usize,
    },
    /// The answer needed more tokens than the request allows, and was not to be cut.
    #[error("the answer is not complete after max_tokens, which is {max_tokens}")]
    OutOfTokens {
        /// Tokens asked for.
        max_tokens: usize,
    },
    /// The request did not end by its deadline.
    #[error("the request did not end by its deadline, {} s after it was submitted", allowed.as_secs_f64())]
    Late {
        /// The time from its submission to [`AnswerLimits::deadline`](crate::AnswerLimits::deadline).
        allowed: Duration,
    },
    /// A mask or a step of the grammar would cost more than the limits that the grammar was compiled with
    /// allow.
    #[error(
        "the grammar is too expensive to enforce: a mask takes more than the limit {limit} allows, which is {allowed}"
    )]
    TooExpensive {
        /// The limit's name, as in [`Limits`](lexiform::limits::Limits).
        limit: &'static str,
        /// Its value.
        allowed: usize,
    },
    /// What was asked of a model makes no sense; the loop itself never asks for such a thing.
    #[error("{part} {number} of those asked of the model is malformed: {problem}")]
    Malformed {
        /// What it is: `feed`, `move` or `copy`.
        part: &'static str,
        /// Its number among those of the call.
        number: usize,
        /// What is wrong with it.
        problem: Malformed,
    },
    /// A request wanted to go on from a place of its text that is not there, or that it cannot go back to.
    #[error(
        "there is no going on after token {place} of a text of {tokens} tokens, of which {told} were told"
    )]
    NoSuchPlace {
        /// The place, in tokens of the answer.
        place: usize,
        /// The tokens that there are.
        tokens: usize,
        /// Those that the client has heard of.
        told: usize,
    },
    /// A request wanted more texts under way at once than one request may have.
    #[error("a request may have {limit} texts under way at once")]
    Branches {
        /// [`EngineConfig::max_branches`](crate::EngineConfig::max_branches).
        limit: usize,
    },
    /// A request has answers to give and nothing under way that could become one.
    #[error("the request came to an end without this answer")]
    Unanswered,
    /// A panic in the decode loop; every sequence that ran is failed, the loop goes on with an empty cache.
    #[error("the decode loop panicked: {0}")]
    Panicked(String),
    /// A monitor of the request has no answer, or leaves no token. The other requests are not affected.
    #[error("the monitor {monitor:?} {problem}")]
    Monitor {
        /// Its name in the request.
        monitor: String,
        /// What is wrong.
        problem: MonitorProblem,
    },
    /// The tokens of the draft model are others, and no text of theirs says what the model writes.
    #[error(
        "the draft model cannot read what the model writes: none of its tokens write \"{text}\", which is token {token}"
    )]
    DraftTokens {
        /// A token of the model.
        token: u32,
        /// What it writes.
        text: String,
    },
    /// The configuration cannot work with this model.
    #[error("the engine cannot start: {0}")]
    Config(String),
    /// The engine was stopped, or died of repeated panics.
    #[error("the engine has stopped")]
    Stopped,
}

/// What is wrong with a monitor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MonitorProblem {
    /// It has failed or panicked.
    #[error("failed: {0}")]
    Failed(String),
    /// It takes too long.
    #[error("did not answer within {} s", allowed.as_secs_f64())]
    Slow {
        /// The time for the tokens of one pass,
        /// [`Constraints::monitor_time`](crate::Constraints::monitor_time).
        allowed: Duration,
    },
    /// It allows none of the tokens that the grammar and the other monitors allow.
    #[error("allows no token that the other constraints allow, after {generated} generated tokens")]
    Refused {
        /// Tokens generated before.
        generated: usize,
    },
}

/// What is wrong with a part of what was asked of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A tree of drafts hangs below a token of the text that is fed with it.
    #[error("{nodes} of its {tokens} tokens are nodes of a tree, which leaves no text")]
    NoText {
        /// Tokens fed.
        tokens: usize,
        /// Those of them that are nodes.
        nodes: usize,
    },
    /// A node comes after its parent.
    #[error("node {node} names {parent} as its parent; expected 0 for the text, or a node before it")]
    Parent {
        /// The node, counted from 1.
        node: usize,
        /// What it names.
        parent: u16,
    },
    /// More rows than there are tokens of which one may want rows.
    #[error("it wants {rows} rows; there are {most}")]
    Rows {
        /// Rows wanted.
        rows: usize,
        /// The most that it could have wanted.
        most: usize,
    },
    /// The table ends before the last slot.
    #[error("its table of {blocks} blocks does not cover {slots} slots")]
    ShortTable {
        /// Blocks of the table.
        blocks: usize,
        /// Slots that are named or fed.
        slots: usize,
    },
    /// A token at a position that the model does not have.
    #[error("it ends at position {end}; the model has {limit}")]
    TooLong {
        /// One more than the last position.
        end: usize,
        /// [`Model::max_positions`](crate::Model::max_positions).
        limit: usize,
    },
    /// Slots move towards the text, and keep their order.
    #[error("it names slot {slot}; expected slots in ascending order, and this one not before {free}")]
    Order {
        /// The slot.
        slot: usize,
        /// The first that could have stood in its place.
        free: usize,
    },
    /// A block that the cache does not have.
    #[error("it names block {block} of a cache of {blocks}")]
    NoBlock {
        /// The block.
        block: u32,
        /// Blocks of the cache.
        blocks: usize,
    },
    /// A block that one copy writes to is also read, or written to by another.
    #[error("block {block} is overwritten while it is used")]
    Overwritten {
        /// The block.
        block: u32,
    },
}

impl From<Exhausted> for EngineError {
    fn from(exhausted: Exhausted) -> Self {
        EngineError::TooExpensive {
            limit: exhausted.limit,
            allowed: exhausted.allowed,
        }
    }
}

/// Why a request is not taken. Nothing was queued.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The waiting queue is full; try again later.
    #[error("{waiting} requests are waiting already; the limit is {limit}")]
    Busy {
        /// Requests that wait.
        waiting: usize,
        /// [`EngineConfig::max_waiting`](crate::EngineConfig::max_waiting).
        limit: usize,
    },
    /// A model needs at least one token to predict from.
    #[error("the prompt has no tokens")]
    EmptyPrompt,
    /// Prompt and answer together do not fit.
    #[error("{prompt} prompt tokens and {max_tokens} to generate exceed the context of {limit} tokens")]
    TooLong {
        /// Tokens of the prompt.
        prompt: usize,
        /// Tokens asked for.
        max_tokens: usize,
        /// [`Engine::max_context`](crate::Engine::max_context).
        limit: usize,
    },
    /// No text of the grammar is as short as the answer has to be.
    #[error("max_tokens is {max_tokens}, but {}", shortest(*.least))]
    TooFew {
        /// Tokens asked for.
        max_tokens: usize,
        /// The fewest tokens of a complete answer; `None` where the vocabulary cannot write any, `usize::MAX`
        /// where they are more than can be counted.
        least: Option<usize>,
    },
    /// A token of the prompt that the model does not have.
    #[error("prompt token {place} is {token}, but the model knows only {len} tokens")]
    UnknownToken {
        /// Index into the prompt.
        place: usize,
        /// The token.
        token: u32,
        /// Tokens the model has.
        len: usize,
    },
    /// The grammar was compiled for another vocabulary than the engine's, so its masks would mean other
    /// tokens.
    #[error("the grammar was compiled for another vocabulary")]
    OtherVocabulary,
    /// A value that makes no sense, named.
    #[error("{name} is {value}, but must be {expected}")]
    Invalid {
        /// The field.
        name: &'static str,
        /// What was given.
        value: String,
        /// What is accepted.
        expected: &'static str,
    },
    /// Settings of the request cannot be honoured together.
    #[error("{}: {}", .0.field, .0.reason)]
    Conflict(Conflict),
    /// The text may depend on other requests, which the request did not want.
    #[error("batch_invariant cannot be promised: {because}")]
    DependsOnOthers {
        /// Why.
        because: &'static str,
    },
    /// The engine was stopped, or died.
    #[error("the engine has stopped")]
    Stopped,
}

impl Refusal {
    /// The field of the request that is to blame, where there is one.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Refusal::EmptyPrompt | Refusal::UnknownToken { .. } => Some("prompt"),
            Refusal::TooLong { .. } | Refusal::TooFew { .. } => Some("max_tokens"),
            Refusal::OtherVocabulary => Some("grammar"),
            Refusal::Invalid { name, .. } => Some(name),
            Refusal::Conflict(conflict) => Some(conflict.field),
            Refusal::DependsOnOthers { .. } => Some("batch_invariant"),
            Refusal::Busy { .. } | Refusal::Stopped => None,
        }
    }
}

fn shortest(least: Option<usize>) -> String {
    match least {
        Some(usize::MAX) => {
            "the shortest answer that the grammar allows is longer than any that can be counted".to_string()
        }
        Some(least) => format!("the shortest answer that the grammar allows takes {least}"),
        None => "the model's tokens can write no answer that the grammar allows".to_string(),
    }
}

/// Why a model folder could not be loaded. Every variant names the file and what was expected of it.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file is missing or cannot be read.
    #[error("{}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file is there but is not what it should be.
    #[error("{}: {message}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What was expected and what was found, with the place.
        message: String,
    },
    /// The model is of a kind that the engine does not run.
    #[error("{}: {what} is {found:?}; supported: {supported}", file.display())]
    Unsupported {
        /// The file that says so.
        file: PathBuf,
        /// The property, for example `model_type`.
        what: &'static str,
        /// Its value.
        found: String,
        /// The values that work.
        supported: &'static str,
    },
    /// A weight is not in any of the checkpoint's files.
    #[error("{}: there is no tensor {tensor:?} (expected with shape {expected:?})", file.display())]
    MissingTensor {
        /// The checkpoint file, or its index.
        file: PathBuf,
        /// The name looked for.
        tensor: String,
        /// Its shape.
        expected: Vec<i64>,
    },
    /// A weight has another shape than the configuration implies.
    #[error("{}: tensor {tensor:?} has shape {found:?}, but config.json implies {expected:?}", file.display())]
    WrongShape {
        /// The checkpoint file.
        file: PathBuf,
        /// The tensor.
        tensor: String,
        /// The shape in the file.
        found: Vec<i64>,
        /// The shape expected.
        expected: Vec<i64>,
    },
    /// The model cannot draft for itself without these layers.
    #[error("layers to skip in drafts: {message}")]
    Skipped {
        /// Why not.
        message: String,
    },
    /// The device asked for is not there.
    #[error("device {device}: {message}")]
    Device {
        /// The device asked for.
        device: String,
        /// Why it cannot be used.
        message: String,
    },
    /// A choice that there is not where the model computes.
    #[error("{what} need {needs}; this one computes in {found}")]
    Unavailable {
        /// What was chosen.
        what: &'static str,
        /// What there must be.
        needs: &'static str,
        /// What there is.
        found: String,
    },
    /// A choice that this engine was built without.
    #[error("{what} need an engine that is built with the feature `{feature}`; this one is not")]
    NotBuilt {
        /// What was chosen.
        what: &'static str,
        /// The feature of the crate.
        feature: &'static str,
    },
}

/// Why a folder of kept answers cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or made.
    #[error("the folder of drafts {path} cannot be used: {problem}")]
    Folder {
        /// The folder.
        path: String,
        /// What the system says.
        problem: String,
    },
    /// A file of it is of another model.
    #[error("{path} was written with another vocabulary; name another folder for the drafts of this model")]
    OtherVocabulary {
        /// The file.
        path: String,
    },
}
