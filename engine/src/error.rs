//! The errors of the engine, by the moment at which they are noticed: before a request is accepted
//! ([`Refusal`]), while it runs ([`EngineError`]), or while a model is read from disk ([`LoadError`]).

use std::path::PathBuf;
use std::time::Duration;

use lexiform::error::Exhausted;

/// The reason why a running request, or the engine itself, could not continue.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// The stored answers of earlier requests cannot be used.
    #[error(transparent)]
    Drafts(#[from] JournalError),
    /// The corpus to draft from has tokens that the model does not have.
    #[error("the corpus of drafts has the token {token}; the vocabulary has {tokens} tokens")]
    Corpus {
        /// The greatest token of the corpus.
        token: u32,
        /// The number of tokens of the vocabulary.
        tokens: usize,
    },
    /// The model returned an error or something that cannot be logits.
    #[error("the model failed: {0}")]
    Model(String),
    /// No allowed token has any probability. This does not happen with an exact mask and finite logits.
    #[error("no allowed token has any probability after {generated} generated tokens")]
    DeadEnd {
        /// The number of tokens generated before the dead end.
        generated: usize,
    },
    /// Filters that cut before the mask left none of the allowed tokens, in any text that could have become
    /// an answer. Laws about the model, and searches, read it as the filters leave it.
    #[error("{} left no token that the constraint allows, in any text that was tried", filters.join(" and "))]
    FilteredOut {
        /// The filters that were set, by the names of their parameters.
        filters: Vec<&'static str>,
    },
    /// The global law, which rejects samples and tries again, reached its bound on tries.
    #[error("no sample was accepted in {attempts} attempts{}", known(*bound))]
    AttemptsExhausted {
        /// The number of attempts made.
        attempts: usize,
        /// The trie's upper bound on the probability that a raw sample satisfies the grammar within the
        /// limits; 1 if nothing is known.
        bound: f64,
    },
    /// Approximately aligned decoding went back from as many errors as it may.
    #[error("no text was found after going back from {errors} errors")]
    ErrorsExhausted {
        /// The number of errors.
        errors: usize,
    },
    /// An exact search met a bound before it had found all requested texts.
    #[error("the search met {limit}, which is {allowed}, with {found} of its texts found")]
    SearchExhausted {
        /// The name of the bound: `max_rows` or `max_frontier`.
        limit: &'static str,
        /// Its value.
        allowed: usize,
        /// The number of texts found by then. They are the likeliest ones, and were sent as answers.
        found: usize,
    },
    /// A search found fewer texts than answers were requested: within its bounds there are no more, or no
    /// more that differ in what they write.
    #[error("the search found {found} different texts, and no more")]
    FewTexts {
        /// The number of texts found. They were sent as answers.
        found: usize,
    },
    /// No text that a search found contains all requested phrases.
    #[error("no text was found that contains all {phrases} phrases; the most that one had is {met}")]
    PhrasesMissing {
        /// The number of phrases.
        phrases: usize,
        /// The most phrases that a prefix contained.
        met: usize,
    },
    /// The answer needed more tokens than the request allows, and the request does not permit cutting it.
    #[error("the answer is not complete after max_tokens, which is {max_tokens}")]
    OutOfTokens {
        /// The number of tokens that the request allows.
        max_tokens: usize,
    },
    /// The request did not end by its deadline.
    #[error(
        "the request did not end by its deadline, {} s after it was submitted{}",
        allowed.as_secs_f64(),
        in_vain(*attempts)
    )]
    Late {
        /// The time from its submission to [`AnswerLimits::deadline`](crate::AnswerLimits::deadline).
        allowed: Duration,
        /// The number of attempts of the global law that its open answers had made, all of which failed.
        attempts: usize,
    },
    /// A mask or a step of the grammar would cost more than the limits with which the grammar was compiled.
    #[error(
        "the grammar is too expensive to enforce: a mask takes more than the limit {limit} allows, which is {allowed}"
    )]
    TooExpensive {
        /// The limit's name, as in [`Limits`](lexiform::limits::Limits).
        limit: &'static str,
        /// Its value.
        allowed: usize,
    },
    /// A call of the model has a malformed argument. The decode loop itself never makes such a call.
    #[error("{part} {number} of those asked of the model is malformed: {problem}")]
    Malformed {
        /// The kind of the argument: `feed`, `move` or `copy`.
        part: &'static str,
        /// Its index among the arguments of the call.
        number: usize,
        /// The problem with it.
        problem: Malformed,
    },
    /// A request tried to continue from a place of its text that does not exist, or that it cannot go back
    /// to.
    #[error(
        "there is no going on after token {place} of a text of {tokens} tokens, of which {told} were told"
    )]
    NoSuchPlace {
        /// The place, in tokens of the answer.
        place: usize,
        /// The number of tokens of the text.
        tokens: usize,
        /// The number of tokens that were reported to the client.
        told: usize,
    },
    /// A request tried to have more texts in progress at once than one request may have.
    #[error("a request may have {limit} texts under way at once")]
    Branches {
        /// [`EngineConfig::max_branches`](crate::EngineConfig::max_branches).
        limit: usize,
    },
    /// A request still owes answers, but has no text in progress that could become one.
    #[error("the request came to an end without this answer")]
    Unanswered,
    /// The decode loop panicked. Every running sequence fails, and the loop continues with an empty cache.
    #[error("the decode loop panicked: {0}")]
    Panicked(String),
    /// A monitor of the request has no answer, or leaves no token. Other requests are not affected.
    #[error("the monitor {monitor:?} {problem}")]
    Monitor {
        /// The monitor's name in the request.
        monitor: String,
        /// The problem with the monitor.
        problem: MonitorProblem,
    },
    /// The draft model has another vocabulary, and none of its tokens write what a token of the model writes.
    #[error(
        "the draft model cannot read what the model writes: none of its tokens write \"{text}\", which is token {token}"
    )]
    DraftTokens {
        /// A token of the model.
        token: u32,
        /// The text that the token writes.
        text: String,
    },
    /// The configuration cannot work with this model.
    #[error("the engine cannot start: {0}")]
    Config(String),
    /// The operating system has no thread left for the engine.
    #[error(
        "the engine cannot start: no thread for {purpose} ({reason}); allow the process more threads or memory"
    )]
    NoThread {
        /// What the thread is for.
        purpose: &'static str,
        /// The reason of the operating system.
        reason: String,
    },
    /// The engine was stopped, or died of repeated panics.
    #[error("the engine has stopped")]
    Stopped,
}

impl EngineError {
    /// Returns a function that reports that there is no thread for this purpose.
    pub(crate) fn no_thread(purpose: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |error| EngineError::NoThread {
            purpose,
            reason: error.to_string(),
        }
    }

    /// Returns `true` if an answer of a search failed only because there are fewer texts than answers: the
    /// others are texts.
    pub fn found_others(&self) -> bool {
        match *self {
            EngineError::FewTexts { found } | EngineError::SearchExhausted { found, .. } => found > 0,
            _ => false,
        }
    }
}

/// The problem with a monitor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MonitorProblem {
    /// The monitor failed or panicked.
    #[error("failed: {0}")]
    Failed(String),
    /// The monitor takes too long.
    #[error("did not answer within {} s", allowed.as_secs_f64())]
    Slow {
        /// The time for the tokens of one pass,
        /// [`Constraints::monitor_time`](crate::Constraints::monitor_time).
        allowed: Duration,
    },
    /// The program that the monitor asks has no answer.
    #[error("has no answer from its host: {reason}")]
    Host {
        /// What went wrong.
        reason: String,
        /// `true` if the answer did not come in time.
        is_late: bool,
    },
    /// The monitor allows none of the tokens that the grammar and the other monitors allow.
    #[error("allows no token that the other constraints allow, after {generated} generated tokens")]
    Refused {
        /// The number of tokens generated before.
        generated: usize,
    },
}

/// The problem with an argument of a call of the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The feed has no token of the text. A tree of drafts needs one as its root.
    #[error("{nodes} of its {tokens} tokens are nodes of a tree, which leaves no text")]
    NoText {
        /// The number of tokens fed.
        tokens: usize,
        /// The number of these tokens that are nodes.
        nodes: usize,
    },
    /// A node does not come after its parent.
    #[error("node {node} names {parent} as its parent; expected 0 for the text, or a node before it")]
    Parent {
        /// The node, counted from 1.
        node: usize,
        /// The parent that the node names.
        parent: u16,
    },
    /// The feed wants more rows than it has tokens that can give rows.
    #[error("it wants {rows} rows; there are {most}")]
    Rows {
        /// The number of rows wanted.
        rows: usize,
        /// The largest number of rows that it could want.
        most: usize,
    },
    /// The block table ends before the last slot.
    #[error("its table of {blocks} blocks does not cover {slots} slots")]
    ShortTable {
        /// The number of blocks of the table.
        blocks: usize,
        /// The number of slots that are named or fed.
        slots: usize,
    },
    /// A token is at a position that the model does not have.
    #[error("it ends at position {end}; the model has {limit}")]
    TooLong {
        /// One more than the last position.
        end: usize,
        /// [`Model::max_positions`](crate::Model::max_positions).
        limit: usize,
    },
    /// The slots to move are not in ascending order, or one would move away from the text.
    #[error("it names slot {slot}; expected slots in ascending order, and this one not before {free}")]
    Order {
        /// The slot.
        slot: usize,
        /// The first slot that would be valid here.
        free: usize,
    },
    /// A block is named that the cache does not have.
    #[error("it names block {block} of a cache of {blocks}")]
    NoBlock {
        /// The block.
        block: u32,
        /// The number of blocks of the cache.
        blocks: usize,
    },
    /// A block that one copy writes to is also read or written by another.
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

/// The reason why a request is not accepted. Nothing was queued.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The waiting queue is full; try again later.
    #[error("{waiting} requests are waiting already; the limit is {limit}")]
    Busy {
        /// The number of requests that wait.
        waiting: usize,
        /// [`EngineConfig::max_waiting`](crate::EngineConfig::max_waiting).
        limit: usize,
    },
    /// The prompt is empty; a model needs at least one token to predict from.
    #[error("the prompt has no tokens")]
    EmptyPrompt,
    /// The prompt and the answer together exceed the context.
    #[error("{prompt} prompt tokens and {max_tokens} to generate exceed the context of {limit} tokens")]
    TooLong {
        /// The number of tokens of the prompt.
        prompt: usize,
        /// The number of tokens requested.
        max_tokens: usize,
        /// [`Engine::max_context`](crate::Engine::max_context).
        limit: usize,
    },
    /// Every text of the grammar is longer than the answer may be.
    #[error("max_tokens is {max_tokens}, but {}", shortest(*.least))]
    TooFew {
        /// The number of tokens requested.
        max_tokens: usize,
        /// The fewest tokens of a complete answer; `None` if the vocabulary cannot write any, `usize::MAX` if
        /// the number is too large to count.
        least: Option<usize>,
    },
    /// The prompt has a token that the model does not have.
    #[error("prompt token {place} is {token}, but the model knows only {len} tokens")]
    UnknownToken {
        /// Index into the prompt.
        place: usize,
        /// The token.
        token: u32,
        /// The number of tokens that the model has.
        len: usize,
    },
    /// The grammar was compiled for another vocabulary than the engine's, so its masks would refer to other
    /// tokens.
    #[error("the grammar was compiled for another vocabulary")]
    OtherVocabulary,
    /// A field has an invalid value.
    #[error("{name} is {value}, but must be {expected}")]
    Invalid {
        /// The field.
        name: &'static str,
        /// The value given.
        value: String,
        /// The values that are accepted.
        expected: &'static str,
    },
    /// Settings of the request cannot be honoured together.
    #[error("{}: {}", .0.field, .0.reason)]
    Conflict(Conflict),
    /// The text may depend on other requests, but the request requires that it does not.
    #[error("batch_invariant cannot be promised: {because}")]
    DependsOnOthers {
        /// The reason.
        because: &'static str,
    },
    /// The engine was stopped, or died.
    #[error("the engine has stopped")]
    Stopped,
}

/// Two settings of a request that cannot be honoured together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The field to blame.
    pub field: &'static str,
    /// The reason, as a sentence about the field without its name.
    pub reason: String,
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

fn known(bound: f64) -> String {
    match bound < 1.0 {
        true => format!("; at most {bound:.3e} of the model's mass satisfies the grammar"),
        false => String::new(),
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

/// The reason why a model folder could not be loaded. Every variant names the file and what was expected of
/// it.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file is missing or cannot be read.
    #[error("{}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file is there but is not what it should be.
    #[error("{}: {message}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// A message that names what was expected, what was found, and the place.
        message: String,
    },
    /// The engine does not support this kind of model.
    #[error("{}: {what} is {found:?}; supported: {supported}", file.display())]
    Unsupported {
        /// The file that names the kind.
        file: PathBuf,
        /// The property, for example `model_type`.
        what: &'static str,
        /// Its value.
        found: String,
        /// The supported values.
        supported: &'static str,
    },
    /// A weight is in none of the checkpoint's files.
    #[error("{}: there is no tensor {tensor:?} (expected with shape {expected:?})", file.display())]
    MissingTensor {
        /// The checkpoint file, or its index.
        file: PathBuf,
        /// The name of the tensor.
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
    /// The model cannot draft for itself with these layers skipped.
    #[error("layers to skip in drafts: {message}")]
    Skipped {
        /// The reason.
        message: String,
    },
    /// The requested device is not available.
    #[error("device {device}: {message}")]
    Device {
        /// The requested device.
        device: String,
        /// The reason why it cannot be used.
        message: String,
    },
    /// An option is not available for the way in which the model computes.
    #[error("{what} need {needs}; this one computes in {found}")]
    Unavailable {
        /// The option that was chosen.
        what: &'static str,
        /// The requirement of the option.
        needs: &'static str,
        /// How the model computes instead.
        found: String,
    },
    /// The engine was built without the feature that an option needs.
    #[error("{what} need an engine that is built with the feature `{feature}`; this one is not")]
    NotBuilt {
        /// The option that was chosen.
        what: &'static str,
        /// The feature of the crate.
        feature: &'static str,
    },
}

/// Returns what libtorch says of an error in one line: without the stack of its calls, and in plain words if
/// memory is short.
pub(crate) fn in_one_line(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let wanted = line.split_once("you tried to allocate ");
    match wanted.and_then(|(_, rest)| rest.split(' ').next()) {
        Some(bytes) => format!("there is not enough memory: {bytes} bytes more are needed"),
        None => line.to_owned(),
    }
}

/// Returns what was tried by the deadline, as the end of a sentence.
fn in_vain(attempts: usize) -> String {
    match attempts {
        0 => String::new(),
        _ => format!("; none of {attempts} attempts was accepted"),
    }
}

/// The reason why a folder of stored answers cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The folder cannot be read or created.
    #[error("the folder of drafts {path} cannot be used: {problem}")]
    Folder {
        /// The folder.
        path: String,
        /// The error of the operating system.
        problem: String,
    },
    /// A file of the folder belongs to another model.
    #[error("{path} was written with another vocabulary; name another folder for the drafts of this model")]
    OtherVocabulary {
        /// The file.
        path: String,
    },
}
