//! The worker of Lexiform: it answers the questions of [`protocol`](super::protocol) in a process of its
//! own, as `python/worker.py` does for the other engines.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lexiform::schema::{self, KeyOrder};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Compiler, Grammar, Mask, Options, Source, State};

use super::process::resident_kib;
use super::protocol::{Answer, Judged, Loaded, Question, VocabularyFile, Walk, sum, to_hex};
use crate::eval::clock::timed;
use crate::eval::panics::{caught, quietly};
use crate::failure::{Code, Failure, Outcome};

/// The time of one thread in a slice that two threads are compared in, and the most walks in it.
const SLICE: Duration = Duration::from_millis(8);
const MOST_WALKS: u128 = 1_000_000;

/// The engine, and the schema that was judged last.
#[derive(Default)]
pub(super) struct Worker {
    ready: Option<Ready>,
    judged: Option<(Grammar, Vec<Vec<u32>>)>,
}

struct Ready {
    compiler: Compiler,
    options: Options,
    /// The tokens by which masks are compared.
    comparable: Vec<u32>,
}

/// Answers the questions on standard input until it ends.
///
/// # Errors
/// Standard input or output cannot be used.
pub(super) fn run() -> Outcome {
    let lost = |error: std::io::Error| Failure::Unable(format!("the worker: {error}"));
    quietly(|| answer_all(std::io::stdin().lock(), std::io::stdout().lock())).map_err(lost)?;
    Ok(Code::Fine)
}

fn answer_all(questions: impl BufRead, mut answers: impl Write) -> std::io::Result<()> {
    let mut worker = Worker::default();
    for line in questions.lines() {
        let question = serde_json::from_str(&line?).map_err(std::io::Error::from)?;
        let answer = serde_json::to_string(&worker.answer(&question)).map_err(std::io::Error::from)?;
        writeln!(answers, "{answer}")?;
        answers.flush()?;
    }
    Ok(())
}

impl Worker {
    /// Answers a question; a panic of the engine is a refusal.
    pub(super) fn answer(&mut self, question: &Question) -> Answer {
        let answer = caught(|| self.try_answer(question)).and_then(|answer| answer);
        answer.unwrap_or_else(|reason| Answer::Refused { reason })
    }

    fn try_answer(&mut self, question: &Question) -> Result<Answer, String> {
        match question {
            Question::Load { vocabulary, .. } => self.load(vocabulary).map(Answer::Loaded),
            Question::Judge {
                schema,
                instances,
                check,
            } => self.judge(schema, instances, *check).map(Answer::Judged),
            Question::Mask { instance, position } => {
                let (grammar, comparable) = (self.grammar()?, &self.ready()?.comparable);
                let words = self
                    .at(*instance, *position)?
                    .map(|state| to_hex(&compared(&grammar.mask(state), comparable)));
                Ok(Answer::Mask { words })
            }
            Question::Takes {
                instance,
                position,
                tokens,
            } => {
                let (grammar, state) = (self.grammar()?, self.at(*instance, *position)?);
                let takes = |token: &u32| state.is_some_and(|state| grammar.allows(state, *token));
                Ok(Answer::Takes {
                    taken: tokens.iter().map(takes).collect(),
                })
            }
            Question::Complete {
                instance,
                position,
                token,
                most,
                ..
            } => {
                let (grammar, state) = (self.grammar()?, self.at(*instance, *position)?);
                let next = state.and_then(|state| grammar.step(state, *token));
                let rest = next.and_then(|state| shortest(grammar, state, most.saturating_sub(1)));
                Ok(Answer::Completed {
                    tokens: rest.map(|rest| [&[*token], &rest[..]].concat()),
                })
            }
            Question::Threads {} => Ok(Answer::Threads {
                ratio: Some(self.threads()?),
            }),
        }
    }

    fn load(&mut self, path: &Path) -> Result<Loaded, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let file: VocabularyFile = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        drop(text);
        let tokens = tokens_of(&file);
        let before = resident();
        let options = options();
        let (compiler, once_us) = timed(|| {
            let vocabulary = Vocabulary::new(&tokens, &[file.eos]).map_err(|error| error.to_string())?;
            let compiler = Compiler::new(Arc::new(vocabulary)).primed(&options);
            compiler.map_err(|error| error.to_string())
        });
        let compiler = compiler?;
        let comparable = comparable(compiler.vocabulary());
        self.ready = Some(Ready {
            compiler,
            options,
            comparable,
        });
        const LOOKS: u32 = 10_000;
        Ok(Loaded {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            resident: resident().saturating_sub(before),
            once_us,
            clock_us: (0..LOOKS).map(|_| timed(|| ()).1).sum::<f64>() / f64::from(LOOKS),
            call_us: 0.0,
        })
    }

    fn judge(&mut self, schema: &str, instances: &[Vec<u32>], check: bool) -> Result<Judged, String> {
        self.judged = None;
        let ready = self.ready()?;
        // Nothing is known but what was computed once for the vocabulary.
        let compiler = ready.compiler.fresh();
        let (compiled, compile_us) = timed(|| compiler.compile(Source::JsonSchema(schema), &ready.options));
        let (grammar, _) = compiled.map_err(|error| error.to_string())?;
        let (_, first_us) = timed(|| grammar.mask(grammar.start()));
        let mut walks: Vec<Walk> = instances.iter().map(|tokens| walk(&grammar, tokens)).collect();
        for (known, tokens) in walks.iter_mut().zip(instances) {
            known.warm = walk(&grammar, tokens).cold;
        }
        for (known, tokens) in walks.iter_mut().zip(instances).filter(|_| check) {
            known.masks = sums(&grammar, tokens, &ready.comparable);
        }
        self.judged = Some((grammar, instances.to_vec()));
        Ok(Judged {
            compile_us,
            first_us,
            walks,
            resident: resident(),
        })
    }

    fn ready(&self) -> Result<&Ready, String> {
        self.ready
            .as_ref()
            .ok_or_else(|| "no vocabulary was loaded".to_owned())
    }

    fn grammar(&self) -> Result<&Grammar, String> {
        let judged = self.judged.as_ref().map(|(grammar, _)| grammar);
        judged.ok_or_else(|| "no schema was judged".to_owned())
    }

    /// Returns the state after so many tokens of an instance; `None` if they are refused.
    fn at(&self, instance: usize, position: usize) -> Result<Option<State>, String> {
        let grammar = self.grammar()?;
        let instances = self.judged.as_ref().map_or(&[][..], |(_, instances)| instances);
        let tokens = instances.get(instance).and_then(|tokens| tokens.get(..position));
        let tokens = tokens.ok_or_else(|| format!("instance {instance} has no token {position}"))?;
        Ok(tokens
            .iter()
            .try_fold(grammar.start(), |state, token| grammar.step(state, *token)))
    }

    /// Returns what two threads get done where one gets 1 done, as the time on the wall tells.
    fn threads(&self) -> Result<f64, String> {
        let grammar = self.grammar()?;
        let instances = self.judged.as_ref().map_or(&[][..], |(_, instances)| instances);
        let walk = |times: u32| {
            for tokens in (0..times).flat_map(|_| instances) {
                let mut state = Some(grammar.start());
                for token in tokens {
                    state = state.and_then(|state| grammar.step(state, *token));
                    let Some(state) = state else { break };
                    std::hint::black_box(grammar.mask(state));
                }
            }
        };
        let wall = |threads: usize, times: u32| {
            let began = Instant::now();
            std::thread::scope(|scope| {
                (0..threads).for_each(|_| drop(scope.spawn(|| walk(times))));
            });
            began.elapsed()
        };
        // The first walk does work that no later one does. Slices are long beside the start of a thread.
        wall(1, 1);
        let once = wall(1, 16).max(Duration::from_micros(1));
        let times = (16 * SLICE.as_nanos() / once.as_nanos()).clamp(1, MOST_WALKS) as u32;
        let best = |threads| {
            (0..5)
                .map(|_| wall(threads, times).as_secs_f64())
                .fold(f64::MAX, f64::min)
        };
        Ok(2.0 * best(1) / best(2).max(1e-9))
    }
}

/// Returns the bytes of memory that this process holds.
fn resident() -> u64 {
    resident_kib("/proc/self/status") * 1024
}

/// Returns the options that read a schema as its specification does.
pub(super) fn options() -> Options {
    Options {
        schema: schema::Options {
            key_order: KeyOrder::Any,
            ..schema::Options::default()
        },
        ..Options::default()
    }
}

fn tokens_of(file: &VocabularyFile) -> Vec<(TokenKind, Vec<u8>)> {
    let mut tokens: Vec<(TokenKind, Vec<u8>)> = file
        .tokens
        .iter()
        .map(|text| match text.as_str() {
            "" => (TokenKind::Unused, Vec::new()),
            // The characters of the file are bytes.
            text => (TokenKind::Text, text.chars().map(|it| it as u8).collect()),
        })
        .collect();
    if let Some(end) = tokens.get_mut(file.eos as usize) {
        *end = (TokenKind::Special, b"<end>".to_vec());
    }
    tokens
}

/// Returns the tokens by which masks are compared: those of text, and the end.
pub(super) fn comparable(vocabulary: &Vocabulary) -> Vec<u32> {
    let mut words = vec![0_u32; vocabulary.len().div_ceil(32)];
    for token in 0..vocabulary.len() as u32 {
        if vocabulary.kind(token) == TokenKind::Text || vocabulary.is_eos(token) {
            words[token as usize / 32] |= 1 << (token % 32);
        }
    }
    words
}

fn compared(mask: &Mask, comparable: &[u32]) -> Vec<u32> {
    mask.words()
        .iter()
        .zip(comparable)
        .map(|(mask, kept)| mask & kept)
        .collect()
}

/// Walks an instance; the times are those of a first walk.
fn walk(grammar: &Grammar, tokens: &[u32]) -> Walk {
    let mut walked = Walk::default();
    let mut state = grammar.start();
    let mut mask = grammar.mask(state);
    for &token in tokens {
        if !mask.contains(token) {
            return walked;
        }
        let (next, time) = timed(|| {
            let next = grammar.step(state, token)?;
            Some((next, grammar.mask(next)))
        });
        let Some(next) = next else { return walked };
        walked.cold.push((time * 1000.0).round() / 1000.0);
        (state, mask) = next;
    }
    walked.accepted = grammar.vocabulary().eos().iter().any(|eos| mask.contains(*eos));
    walked
}

fn sums(grammar: &Grammar, tokens: &[u32], comparable: &[u32]) -> Vec<String> {
    let mut state = grammar.start();
    let mut sums = vec![sum(&compared(&grammar.mask(state), comparable))];
    for &token in tokens {
        let Some(next) = grammar.step(state, token) else {
            break;
        };
        state = next;
        sums.push(sum(&compared(&grammar.mask(state), comparable)));
    }
    sums
}

/// Returns a shortest text that completes a state, as tokens without the end; `None` if it has more than
/// `most` tokens or is too costly to find.
pub(super) fn shortest(grammar: &Grammar, mut state: State, most: usize) -> Option<Vec<u32>> {
    let mut written = Vec::new();
    let mut budget = grammar.try_min_completion(state).ok()??;
    while budget > 1 && written.len() < most {
        let request = lexiform::MaskRequest::from(state).within(budget);
        let mask = grammar.try_mask(request).ok()?;
        let token = mask.iter().find(|token| !grammar.vocabulary().is_eos(*token))?;
        state = grammar.step(state, token)?;
        written.push(token);
        budget -= 1;
    }
    grammar.is_accepting(state).then_some(written)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::input::tokenizer::bytes_only;

    /// A worker with a vocabulary of bytes.
    pub(in crate::eval::compare) fn loaded(name: &str) -> Worker {
        let mut tokens: Vec<String> = (0..=255_u8).map(|byte| char::from(byte).to_string()).collect();
        tokens.push(String::new());
        let file = serde_json::to_string(&VocabularyFile { eos: 256, tokens }).expect("a file");
        let path = std::env::temp_dir().join(format!("lexiform-worker-{}-{name}", std::process::id()));
        std::fs::write(&path, file).expect("a place for the file");
        let mut worker = Worker::default();
        let load = Question::Load {
            tokenizer: path.clone(),
            vocabulary: path,
        };
        assert!(matches!(worker.answer(&load), Answer::Loaded(_)));
        worker
    }

    fn judge(schema: &str, texts: &[&str]) -> Question {
        Question::Judge {
            schema: schema.to_owned(),
            instances: texts
                .iter()
                .map(|text| text.bytes().map(u32::from).collect())
                .collect(),
            check: true,
        }
    }

    #[test]
    fn a_schema_is_judged_and_its_masks_are_summed() {
        let mut worker = loaded("judge");
        let Answer::Judged(judged) = worker.answer(&judge(r#"{"enum": ["a", "b"]}"#, &[r#""a""#, r#""c""#]))
        else {
            panic!("the schema is refused");
        };
        let [right, wrong] = &judged.walks[..] else {
            panic!("two walks")
        };
        assert!(right.accepted && !wrong.accepted);
        assert_eq!((right.cold.len(), right.warm.len(), right.masks.len()), (3, 3, 4));
        assert_eq!((wrong.cold.len(), wrong.masks.len()), (1, 2));
        assert_eq!(right.masks[..2], wrong.masks[..2]);
        let Answer::Mask { words: Some(words) } = worker.answer(&Question::Mask {
            instance: 0,
            position: 3,
        }) else {
            panic!("no mask")
        };
        let words = super::super::protocol::from_hex(&words).expect("a mask");
        assert_eq!(words, [0, 0, 0, 0, 0, 0, 0, 0, 1], "only the end is allowed");
        assert_eq!(right.masks[3], sum(&words));
    }

    #[test]
    fn a_text_is_completed_the_shortest_way() {
        let mut worker = loaded("complete");
        let schema = r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#;
        worker.answer(&judge(schema, &[r#"{"n": 1}"#]));
        let complete = Question::Complete {
            instance: 0,
            position: 0,
            token: u32::from(b'{'),
            prefer: Vec::new(),
            most: 64,
        };
        let Answer::Completed { tokens: Some(tokens) } = worker.answer(&complete) else {
            panic!("it is not completed")
        };
        let text: Vec<u8> = tokens.iter().map(|token| *token as u8).collect();
        assert_eq!(String::from_utf8_lossy(&text), r#"{"n":0}"#);
    }

    #[test]
    fn what_cannot_be_answered_is_refused_with_its_reason() {
        let mut worker = Worker::default();
        let refused = |reason: &str| Answer::Refused {
            reason: reason.to_owned(),
        };
        assert_eq!(
            worker.answer(&Question::Threads {}),
            refused("no schema was judged")
        );
        assert_eq!(
            worker.answer(&judge("{}", &[])),
            refused("no vocabulary was loaded")
        );
        let mut worker = loaded("refuse");
        assert!(matches!(
            worker.answer(&judge(r#"{"type": 7}"#, &[])),
            Answer::Refused { .. }
        ));
        worker.answer(&judge("{}", &["1"]));
        let far = Question::Mask {
            instance: 0,
            position: 9,
        };
        assert_eq!(worker.answer(&far), refused("instance 0 has no token 9"));
    }

    #[test]
    fn only_text_and_the_end_are_compared() {
        let vocabulary = bytes_only().expect("a vocabulary");
        assert_eq!(
            comparable(&vocabulary),
            [
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                1
            ]
        );
    }
}
