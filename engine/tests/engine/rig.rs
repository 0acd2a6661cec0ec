//! A small vocabulary, scripts to follow, and a listener that collects the events of a request.

use lexiform::Grammar;
use lexiform::limits::Limits;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_automata::mask::Tables;
use lexiform_engine::{
    Drafting, Draw, Engine, EngineConfig, EngineError, Event, Fallback, Law, Origin, Outcome, Request,
    ScriptedModel, Stats, Task, Ticket,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

pub(crate) const PHRASE: &str = "the quick brown fox jumps over the lazy dog";
/// Longer than the vocabulary, as the logits of real models are.
pub(crate) const WIDTH: usize = 48;
pub(crate) const EOS: u32 = 43;
/// Only there so that a hang becomes a failure: a machine that is busy is none.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The letters, a space, digits, some longer tokens, an end token and a hole.
pub(crate) fn vocabulary() -> Arc<Vocabulary> {
    static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
        let single = "abcdefghijklmnopqrstuvwxyz 0123456789"
            .chars()
            .map(|letter| letter.to_string());
        let longer = ["th", "he", "the", "quick", "ab", "bc"].map(str::to_string);
        let mut tokens: Vec<(TokenKind, String)> = single
            .chain(longer)
            .map(|bytes| (TokenKind::Text, bytes))
            .collect();
        tokens.push((TokenKind::Special, "<end>".to_string()));
        tokens.push((TokenKind::Unused, String::new()));
        Arc::new(Vocabulary::new(&tokens, &[EOS]).unwrap())
    });
    VOCABULARY.clone()
}

/// The texts that a pattern matches from end to end.
pub(crate) fn grammar(pattern: &str) -> Grammar {
    grammar_over(&vocabulary(), pattern)
}

pub(crate) fn grammar_over(vocabulary: &Arc<Vocabulary>, pattern: &str) -> Grammar {
    compiled(vocabulary, pattern, Limits::default())
}

/// The same, which may find so many bytes before another takes its place.
pub(crate) fn grammar_within(grammar_bytes: usize, pattern: &str) -> Grammar {
    let limits = Limits {
        grammar_bytes,
        ..Limits::default()
    };
    compiled(&vocabulary(), pattern, limits)
}

fn compiled(vocabulary: &Arc<Vocabulary>, pattern: &str, limits: Limits) -> Grammar {
    let tables = Arc::new(Tables::new(vocabulary.clone(), 1 << 24));
    Grammar::new(
        &lexiform_syntax::regex::lower(pattern, &limits).unwrap(),
        &tables,
        &limits,
    )
    .unwrap()
}

/// The global law with at most so many attempts, or an error.
pub(crate) const fn global(max_attempts: u32) -> Law {
    Law::Global {
        share_attempts: false,
        max_attempts,
        fallback: Fallback::Fail,
    }
}

/// Changes to what a request draws.
pub(crate) trait Redraw {
    /// Draws from another law.
    fn law(self, law: Law) -> Self;
    /// Wants this number of answers.
    fn answers(self, answers: usize) -> Self;
    /// Wants the best of this number of candidates.
    fn best_of(self, candidates: impl Into<Option<usize>>) -> Self;
    /// Learns from the attempts of other requests, or does not.
    fn share_attempts(self, shares: bool) -> Self;
}

impl Redraw for Request {
    fn law(mut self, law: Law) -> Self {
        drawn(&mut self).law = law;
        self
    }

    fn answers(mut self, number: usize) -> Self {
        match &mut self.task {
            Task::Draw(draw) => draw.answers = number,
            Task::Search { answers, .. } => *answers = number,
            Task::Weigh(_) => panic!("what is weighed has one answer"),
        }
        self
    }

    fn best_of(mut self, candidates: impl Into<Option<usize>>) -> Self {
        drawn(&mut self).best_of = candidates.into();
        self
    }

    fn share_attempts(mut self, shares: bool) -> Self {
        match &mut drawn(&mut self).law {
            Law::Global { share_attempts, .. } | Law::Asap { share_attempts } => *share_attempts = shares,
            law => panic!("{law:?} has no attempts"),
        }
        self
    }
}

fn drawn(request: &mut Request) -> &mut Draw {
    match &mut request.task {
        Task::Draw(draw) => draw,
        task => panic!("{task:?} draws nothing"),
    }
}

/// A text, one token a letter.
pub(crate) fn letters(text: &str) -> Vec<u32> {
    let vocabulary = vocabulary();
    let token = |byte: u8| (0..EOS).find(|&token| vocabulary.bytes(token) == [byte]).unwrap();
    text.bytes().map(token).collect()
}

pub(crate) fn text_of(tokens: &[u32]) -> String {
    let vocabulary = vocabulary();
    String::from_utf8(
        tokens
            .iter()
            .flat_map(|&token| vocabulary.bytes(token).to_vec())
            .collect(),
    )
    .unwrap()
}

fn peaked(token: u32) -> Vec<f32> {
    (0..WIDTH as u32)
        .map(|other| if other == token { 9.0 } else { 0.0 })
        .collect()
}

/// Writes [`PHRASE`], by position, then ends.
pub(crate) fn phrase_script(prefix: &[u32]) -> Vec<f32> {
    let next = PHRASE.get(prefix.len()..prefix.len() + 1);
    peaked(next.map_or(EOS, |letter| letters(letter)[0]))
}

/// Writes `abc ` over and over.
pub(crate) fn cycle_script(prefix: &[u32]) -> Vec<f32> {
    peaked(letters("abc ")[prefix.len() % 4])
}

/// Arbitrary logits that depend on every token of the prefix.
pub(crate) fn wordy_script(prefix: &[u32]) -> Vec<f32> {
    let mix = |state: u64, next: u32| {
        (state ^ u64::from(next))
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(23)
    };
    let state = prefix
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |state, &token| mix(state, token));
    (0..WIDTH as u32)
        .map(|token| (mix(mix(state, token), 7) >> 40) as f32 / (1 << 22) as f32)
        .collect()
}

pub(crate) fn start(script: impl Fn(&[u32]) -> Vec<f32> + Send + 'static, config: EngineConfig) -> Engine {
    Engine::start(
        Box::new(ScriptedModel::new(WIDTH, 100_000, script)),
        None,
        vocabulary(),
        config,
    )
    .unwrap()
}

/// All drafts are fed, whatever passes cost, and no pass does without a mask that is late, so that passes can
/// be counted however busy the machine is.
pub(crate) fn drafting() -> EngineConfig {
    EngineConfig {
        drafting: Drafting::Always,
        mask_grace: PATIENCE,
        ..EngineConfig::default()
    }
}

pub(crate) fn engine(script: impl Fn(&[u32]) -> Vec<f32> + Send + 'static) -> Engine {
    start(script, drafting())
}

pub(crate) fn generate(engine: &Engine, request: Request) -> Heard {
    listen(engine, request).wait()
}

pub(crate) fn listen(engine: &Engine, request: Request) -> Listener {
    let (sender, events) = channel();
    let ticket = engine
        .submit(request, Box::new(move |event| sender.send(event).is_ok()))
        .unwrap();
    Listener { events, ticket }
}

/// A script whose first pass waits until all requests are there, and what says that they are: how many share
/// the next passes must not depend on the machine.
pub(crate) fn gated(script: fn(&[u32]) -> Vec<f32>) -> (Arc<AtomicBool>, impl Fn(&[u32]) -> Vec<f32> + Send) {
    let all_are_there = Arc::new(AtomicBool::new(false));
    let gate = all_are_there.clone();
    let gated = move |prefix: &[u32]| {
        while !gate.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_micros(100));
        }
        script(prefix)
    };
    (all_are_there, gated)
}

/// Polls the engine until its figures are as wanted.
pub(crate) fn wait_until(engine: &Engine, wanted: impl Fn(&Stats) -> bool) -> Stats {
    let begun = Instant::now();
    loop {
        let stats = engine.stats();
        if wanted(&stats) {
            return stats;
        }
        assert!(begun.elapsed() < PATIENCE, "{stats:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Collects the events of one request.
pub(crate) struct Listener {
    events: Receiver<Event>,
    ticket: Ticket,
}

impl Listener {
    /// Waits for the last event.
    pub(crate) fn wait(self) -> Heard {
        let _ticket = self.ticket;
        Heard {
            events: collect(&self.events),
        }
    }

    pub(crate) fn cancel(self) -> Heard {
        self.ticket.cancel();
        Heard {
            events: collect(&self.events),
        }
    }
}

fn collect(receiver: &Receiver<Event>) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let event = receiver.recv_timeout(PATIENCE).expect("a last event");
        let last = !matches!(event, Event::Token { .. });
        events.push(event);
        if last {
            return events;
        }
    }
}

/// All that one request heard.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) events: Vec<Event>,
}

impl Heard {
    pub(crate) fn tokens(&self) -> Vec<u32> {
        let token = |event: &Event| match event {
            Event::Token { token, .. } => Some(*token),
            _ => None,
        };
        self.events.iter().filter_map(token).collect()
    }

    pub(crate) fn text(&self) -> String {
        text_of(&self.tokens())
    }

    pub(crate) fn origins(&self) -> Vec<Origin> {
        let origin = |event: &Event| match event {
            Event::Token { origin, .. } => Some(*origin),
            _ => None,
        };
        self.events.iter().filter_map(origin).collect()
    }

    /// The token events as if nothing had been drafted.
    pub(crate) fn tokens_without_origin(&self) -> Vec<Event> {
        let mut events = self.events.clone();
        events.retain(|event| matches!(event, Event::Token { .. }));
        for event in &mut events {
            if let Event::Token { origin, .. } = event {
                *origin = Origin::Sampled;
            }
        }
        events
    }

    pub(crate) fn outcome(&self) -> &Outcome {
        match self.events.last() {
            Some(Event::Done(outcome)) => outcome,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn failure(&self) -> Option<&EngineError> {
        match self.events.last() {
            Some(Event::Failed(error)) => Some(error),
            _ => None,
        }
    }
}
