//! The driver against engines that are played: by scripts, and by Lexiform's own worker with other schemas.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use lexiform::vocab::{TokenKind, Vocabulary};

use super::arena::Arena;
use super::cases::{Case, Instance};
use super::dispute::{Blame, Judge, Judgement, Side};
use super::environment::{self, PEERS, default_folder};
use super::findings::Findings;
use super::place::Place;
use super::process::{Bounds, Lost, Peer};
use super::protocol::{Answer, Judged, Loaded, Question, Walk};
use super::run::{Entrant, OURS, Plan, run};
use super::vocabulary::{Scratch, Subject};
use super::worker::Worker;
use super::worker::tests::loaded;
use crate::input::tokenizer::{TokenizerArgs, bytes_only};

/// An engine that answers as a function does.
struct Played<F>(F);

impl<F: FnMut(&Question) -> Result<Answer, Lost>> Peer for Played<F> {
    fn ask(&mut self, question: &Question) -> Result<Answer, Lost> {
        (self.0)(question)
    }
}

fn played(name: &str, answer: impl FnMut(&Question) -> Result<Answer, Lost> + 'static) -> Entrant {
    Entrant::new(name, Box::new(Played(answer)), Loaded::default())
}

/// An engine that is Lexiform's worker, but reads another schema than the one that it is given.
fn other_schema(name: &str, schema: Option<&'static str>) -> Entrant {
    let mut worker: Worker = loaded(name);
    played(name, move |question| {
        let mut question = question.clone();
        if let (Question::Judge { schema: given, .. }, Some(schema)) = (&mut question, schema) {
            *given = schema.to_owned();
        }
        Ok(worker.answer(&question))
    })
}

fn case(name: &str, schema: &str, instances: &[(&str, bool)]) -> Case {
    let instance = |(text, valid): &(&str, bool)| Instance {
        valid: *valid,
        tokens: text.bytes().map(u32::from).collect(),
    };
    Case {
        name: name.to_owned(),
        schema: schema.to_owned(),
        keywords: ["enum".to_owned()].into(),
        instances: instances.iter().map(instance).collect(),
    }
}

fn accepted(question: &Question) -> Result<Answer, Lost> {
    let Question::Judge { instances, .. } = question else {
        return Ok(Answer::Threads { ratio: None });
    };
    let walk = Walk {
        accepted: true,
        ..Walk::default()
    };
    Ok(Answer::Judged(Judged {
        walks: vec![walk; instances.len()],
        ..Judged::default()
    }))
}

fn plan<'a>(judge: Option<&'a Judge>, clock: &'a dyn Fn() -> Duration) -> Plan<'a> {
    Plan {
        time: Duration::from_secs(60),
        judge,
        threaded: 0,
        clock,
    }
}

fn numbered(count: usize) -> Vec<Case> {
    let numbered = |number: usize| case(&format!("case {number}"), "{}", &[(&number.to_string(), true)]);
    (0..count).map(numbered).collect()
}

#[test]
fn engines_take_turns_at_going_first() {
    let order = Rc::new(RefCell::new(String::new()));
    let engine = |name: &'static str| {
        let order = order.clone();
        played(name, move |question| {
            order.borrow_mut().push_str(name);
            accepted(question)
        })
    };
    let mut engines = [engine("a"), engine("b"), engine("c")];
    run(&mut engines, &numbered(4), &plan(None, &|| Duration::ZERO), || {});
    assert_eq!(*order.borrow(), "abcbcacababc");
}

#[test]
fn an_engine_that_fails_has_refused_the_schema_and_is_asked_about_the_next() {
    let mut failures = vec![
        Err(Lost::Time { seconds: 10.0 }),
        Err(Lost::Ended {
            last_line: "Segmentation fault".to_owned(),
        }),
        Ok(Answer::Takes { taken: Vec::new() }),
        Ok(Answer::Judged(Judged::default())),
        Ok(Answer::Refused {
            reason: "`not` is not supported".to_owned(),
        }),
    ]
    .into_iter();
    let engine = played("weak", move |question| {
        failures.next().unwrap_or_else(|| accepted(question))
    });
    let mut engines = [engine];
    run(&mut engines, &numbered(6), &plan(None, &|| Duration::ZERO), || {});
    let tally = &engines[0].tally;
    assert_eq!(
        (tally.all.asked, tally.all.refused, tally.lost, tally.right),
        (6, 5, 4, 1)
    );
    let reasons = tally.reasons.report();
    let reasons: Vec<&String> = reasons.as_object().expect("an object").keys().collect();
    assert_eq!(reasons.len(), 5, "{reasons:?}");
    assert!(
        reasons
            .iter()
            .any(|reason| *reason == "the process ended: Segmentation fault"),
        "{reasons:?}"
    );
}

/// A slow engine must not take the time of the others, and what it is asked about must be spread over the
/// file.
#[test]
fn a_slow_engine_leaves_out_schemas_evenly() {
    let now = Rc::new(Cell::new(Duration::ZERO));
    let asked = Rc::new(RefCell::new(Vec::new()));
    let (clock, seen) = (now.clone(), asked.clone());
    let slow = played("slow", move |question| {
        clock.set(clock.get() + Duration::from_secs(10));
        if let Question::Judge { instances, .. } = question {
            seen.borrow_mut().push(
                instances[0]
                    .iter()
                    .map(|byte| char::from(*byte as u8))
                    .collect::<String>(),
            );
        }
        accepted(question)
    });
    let fast = played(OURS, accepted);
    let mut engines = [fast, slow];
    let read = || now.get();
    let time = Duration::from_secs(50);
    let plan = Plan {
        time,
        ..plan(None, &read)
    };
    run(&mut engines, &numbered(20), &plan, || {});
    assert_eq!(*asked.borrow(), ["0", "3", "7", "11", "15", "19"]);
    assert_eq!(engines.each_ref().map(|engine| engine.tally.all.asked), [20, 6]);
    assert!(now.get() <= time + Duration::from_secs(10), "{:?}", now.get());
}

/// Lexiform reads the schema; another engine takes more texts, and a third fewer.
#[test]
fn a_disagreement_is_explained_by_a_text() {
    let schema = r#"{"enum": ["a", "b"]}"#;
    let cases = [case("letters", schema, &[(r#""a""#, true)])];
    let judge = Judge::new(bytes_only().expect("a vocabulary"));
    let mut engines = [
        other_schema(OURS, None),
        other_schema("wide", Some(r#"{"enum": ["a", "b", "c"]}"#)),
        other_schema("narrow", Some(r#"{"enum": ["a"]}"#)),
        other_schema("same", None),
    ];
    run(
        &mut engines,
        &cases,
        &plan(Some(&judge), &|| Duration::ZERO),
        || {},
    );
    let disputes = |at: usize| &engines[at].tally.disputes;
    let counts = |at: usize| (disputes(at).masks, disputes(at).different, disputes(at).looked_at);
    assert_eq!(
        [counts(1), counts(2), counts(3)],
        [(4, 1, 1), (4, 1, 1), (4, 0, 0)]
    );
    let wide = &disputes(1).kinds[&(Side::Theirs, Place::Text)];
    let whole = wide.examples[0].whole.as_ref().expect("a text");
    assert_eq!(whole.0, r#""c""#);
    assert!(matches!(whole.1, Judgement::Invalid(_)), "{whole:?}");
    let narrow = &disputes(2).kinds[&(Side::Ours, Place::Text)];
    let whole = narrow.examples[0].whole.clone().expect("a text");
    assert_eq!(whole, (r#""b""#.to_owned(), Judgement::Valid));
    assert_eq!((wide.tokens, narrow.tokens, narrow.masks), (1, 1, 1));
}

/// White space that Lexiform does not write is no disagreement about which value may come.
#[test]
fn a_byte_behind_white_space_that_one_engine_alone_takes_is_about_white_space() {
    // A space may come after `[`, but not before `]`.
    let schema = r#"{"type": "array", "items": {"type": "integer"}}"#;
    let cases = [case("empty", schema, &[("[]", true)])];
    let tokens = ["[", "]", " ]", " "].map(|text| (TokenKind::Text, text.as_bytes()));
    let ends = (TokenKind::Special, &b"<end>"[..]);
    let vocabulary = Arc::new(Vocabulary::new(&[&tokens[..], &[ends]].concat(), &[4]).expect("a vocabulary"));
    let judge = Judge::new(vocabulary);
    let mut case = cases[0].clone();
    case.instances[0].tokens = vec![0, 1];
    // The mask after `[`: Lexiform has `]`, the other one ` ]` as well.
    let masks = |after: u32| {
        played(OURS, move |question| {
            let words = super::protocol::to_hex(&[after]);
            Ok(match question {
                Question::Judge { .. } => Answer::Judged(Judged {
                    walks: vec![Walk {
                        masks: vec!["start".to_owned(), words],
                        ..Walk::default()
                    }],
                    ..Judged::default()
                }),
                Question::Mask { .. } => Answer::Mask { words: Some(words) },
                _ => Answer::Completed {
                    tokens: Some(vec![2]),
                },
            })
        })
    };
    let mut engines = [masks(0b0010), masks(0b0110)];
    run(
        &mut engines,
        &[case],
        &plan(Some(&judge), &|| Duration::ZERO),
        || {},
    );
    let tally = &engines[1].tally.disputes.kinds[&(Side::Theirs, Place::Space)];
    assert_eq!(tally.tokens, 1);
    assert_eq!(tally.examples[0].blame(Side::Theirs, Place::Space), Blame::Choice);
    assert_eq!(
        tally.examples[0].whole,
        Some(("[ ]".to_owned(), Judgement::Valid))
    );
}

#[test]
fn the_report_says_who_is_wrong_and_how_to_repeat_it() {
    let cases = [case(
        "letters",
        r#"{"enum": ["a"]}"#,
        &[(r#""a""#, true), (r#""b""#, false)],
    )];
    let mut engines = [
        other_schema(OURS, None),
        other_schema("wide", Some(r#"{"enum": ["a", "b"]}"#)),
    ];
    let judge = Judge::new(bytes_only().expect("a vocabulary"));
    run(
        &mut engines,
        &cases,
        &plan(Some(&judge), &|| Duration::ZERO),
        || {},
    );
    let engines = engines.map(Entrant::finish);
    let report = Findings {
        engines: &engines,
        schemas: 1,
        seconds: 10.0,
        mebibytes: 1024,
        left_out: &BTreeMap::from([("xgrammar".to_owned(), "no wheel".to_owned())]),
        growth: &[],
        vocabulary: "bytes",
        repeat: &|engine, case| format!("compare {engine} {case}"),
    }
    .report();
    let answer = |question: &str| {
        let found = report.answers.iter().find(|answer| answer.question == question);
        found.map(|answer| answer.answer.clone()).unwrap_or_default()
    };
    assert_eq!(answer("Which engines are missing?"), "xgrammar (no wheel).");
    assert_eq!(
        answer("Who accepts invalid instances?"),
        "lexiform on none of 1 schemas; wide on 1 of 1."
    );
    let failed: Vec<_> = report
        .failures
        .iter()
        .map(|it| format!("{} | {} | {}", it.what, it.reason, it.command))
        .collect();
    assert_eq!(
        failed,
        ["wide: invalid instance accepted | invalid instance 1 accepted | compare wide letters"]
    );
    assert_eq!(report.figures["wide"]["invalid_accepted"], 1);
    assert_eq!(report.figures[OURS]["right"], 1);
}

/// Every engine that is installed on this machine, on a schema that all of them can read.
#[test]
fn real_engines_judge_a_schema() {
    let Some(folder) = default_folder().filter(|folder| environment::is_made(folder)) else {
        eprintln!("skipped: real engines: `lexiform eval compare` has not installed them on this machine");
        return;
    };
    let scratch = Scratch::new().expect("a folder");
    let subject = Subject::new(&TokenizerArgs::default(), None, &scratch).expect("the demo tokenizer");
    let environment = environment::prepare("python3", &folder, scratch.path(), &PEERS, |_| {});
    let arena = Arena {
        ours: "/nowhere/lexiform".into(),
        others: PEERS.map(str::to_owned).to_vec(),
        environment: Some(environment.expect("it is made")),
        bounds: Bounds {
            seconds: 60.0,
            seconds_to_load: 120.0,
            mebibytes: 4096,
        },
        logs: scratch.path().to_owned(),
    };
    let (mut engines, left_out) = arena.entrants(&subject);
    // Lexiform's worker is this program, which is a test.
    assert_eq!(left_out.keys().collect::<Vec<_>>(), [OURS]);
    let schema = r#"{"type": "object", "properties": {"a": {"enum": ["x", "y"]}},
        "required": ["a"], "additionalProperties": false}"#;
    let mut case = case("letters", schema, &[]);
    case.instances = [(r#"{"a": "x"}"#, true), (r#"{"a": "z"}"#, false)]
        .map(|(text, valid)| Instance {
            valid,
            tokens: subject.tokenizer().encode(text).expect("tokens"),
        })
        .to_vec();
    let judge = Judge::new(subject.vocabulary().clone());
    run(
        &mut engines,
        &[case],
        &plan(Some(&judge), &|| Duration::ZERO),
        || {},
    );
    let right: Vec<_> = engines
        .iter()
        .map(|engine| (engine.name.as_str(), engine.tally.right))
        .collect();
    assert_eq!(right, PEERS.map(|peer| (peer, 1)));
    let tallies = || engines.iter().map(|engine| &engine.tally);
    assert!(tallies().all(|tally| tally.times.warm.count() > 4 && tally.loaded.clock_us > 0.0));
}
