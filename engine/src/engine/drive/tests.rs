//! Tests of drivers whose orders no request produces yet, over a model that reads its prefix back from the
//! blocks it is given.

use super::*;
use crate::config::EngineConfig;
use crate::engine::step::Parts;
use crate::fairness::room::Room;
use crate::metrics::meters::{Meters, Moments};
use crate::model::scripted::ScriptedModel;
use crate::request::law;
use crate::request::{Diagnostics, Sampling};
use crate::sequence::job::Sink;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_law::{Cuts, Fallback, LawTag};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const LETTERS: usize = 26;
const PROMPT: [u32; 5] = [3, 1, 4, 1, 5];

/// Returns the token that the model writes after a text: a letter that depends on all of it.
fn next(text: &[u32]) -> u32 {
    let mix = |sum: u64, &token: &u32| {
        (sum ^ (u64::from(token) + 1))
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(9)
    };
    (text.iter().fold(7, mix) % LETTERS as u64) as u32
}

/// Returns the first tokens of the one text that is likely after the prompt.
fn written(count: usize) -> Vec<u32> {
    let mut text = PROMPT.to_vec();
    (0..count).for_each(|_| text.push(next(&text)));
    text.split_off(PROMPT.len())
}

fn vocabulary() -> Arc<Vocabulary> {
    static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
        let letter = |number: usize| (TokenKind::Text, char::from(b'a' + number as u8).to_string());
        let mut tokens: Vec<_> = (0..LETTERS).map(letter).collect();
        tokens.push((TokenKind::Special, "<end>".to_owned()));
        Arc::new(Vocabulary::new(&tokens, &[LETTERS as u32]).unwrap())
    });
    VOCABULARY.clone()
}

fn core(config: EngineConfig) -> Core {
    let script = |text: &[u32]| {
        let likely = next(text) as usize;
        (0..=LETTERS)
            .map(|token| if token == likely { 90.0 } else { 0.0 })
            .collect()
    };
    let parts = Parts {
        model: Box::new(ScriptedModel::new(LETTERS + 1, 10_000, script)),
        draft: None,
        vocabulary: vocabulary(),
        tokeniser: None,
        config,
        mask_hook: None,
        counted: None,
    };
    Core::new(parts, Arc::<Meters>::default()).unwrap()
}

/// Runs a driver to its end; returns the tokens that its one answer received, and the last event.
fn run(driver: impl Driver + 'static, core: &mut Core) -> (Vec<u32>, Event) {
    let request = Request::new(PROMPT.to_vec(), 1000).ignore_eos(true);
    run_request(request, driver, core)
}

fn run_request(request: Request, driver: impl Driver + 'static, core: &mut Core) -> (Vec<u32>, Event) {
    run_submitted(request, Moments::now(), driver, core)
}

/// Runs a request that was submitted at some moment.
fn run_submitted(
    request: Request,
    moments: Moments,
    driver: impl Driver + 'static,
    core: &mut Core,
) -> (Vec<u32>, Event) {
    let events = begin((request, moments), driver, core);
    for _ in 0..10_000 {
        if core.is_idle() {
            break;
        }
        core.step();
    }
    core.collect();
    assert!(
        core.is_idle() && core.jobs.is_empty(),
        "the request has not ended"
    );
    assert_eq!(core.blocks.used(), 0, "blocks are lost");
    let mut tokens = Vec::new();
    for event in events.try_iter() {
        match event {
            Event::Token { token, .. } => tokens.push(token),
            last => return (tokens, last),
        }
    }
    panic!("no last event");
}

/// Adds a request to the engine; returns the events of its one answer.
fn begin(
    (request, moments): (Request, Moments),
    driver: impl Driver + 'static,
    core: &mut Core,
) -> Receiver<Event> {
    let (sender, events): (_, Receiver<Event>) = channel();
    let sink: Sink = Box::new(move |event| sender.send(event).is_ok());
    let warper = law::warper(&request).unwrap();
    let walk = law::local_walk(&request, &warper, &vocabulary());
    let place = Arc::new(Room::new(1)).take(&None, 1).unwrap();
    let mut sequence = Sequence::new(7, request, (warper, walk), place);
    sequence.report.moments = moments;
    core.take_in(sequence, Job::new(Box::new(driver), vec![sink]));
    events
}

/// A driver implemented by a function.
struct With<F>(F);

impl<F: FnMut(&Report, &mut Orders) + Send> Driver for With<F> {
    fn next(&mut self, report: &Report, orders: &mut Orders) {
        self.0(report, orders);
    }

    fn leave(&mut self, _: usize, _: &mut Orders) {}

    fn branch_of(&self, _: usize) -> Option<Branch> {
        None
    }
}

/// Returns a stream of pseudorandom numbers.
fn chance() -> impl FnMut(usize) -> usize {
    let mut state = 5_u64;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

/// However branches are forked, rewound and dropped, every branch continues with the text that the model
/// writes after it: the blocks that it reads are its own, whichever branch wrote them.
#[test]
fn branches_that_fork_and_go_back_keep_their_texts() {
    for (block_size, max_running, blocks) in
        [(4, 32, 256), (3, 4, 256), (16, 32, 12), (1, 6, 200), (4, 2, 40)]
    {
        let mut core = core(EngineConfig {
            block_size,
            blocks,
            max_running,
            max_step_tokens: 11,
            ..EngineConfig::default()
        });
        let (mut draw, mut forked, mut rounds) = (chance(), 0, 0);
        let driver = With(move |report: &Report, orders: &mut Orders| {
            let (branch, tokens) = (report.branch, report.tokens);
            rounds += 1;
            match draw(8) {
                0 if forked < 12 => {
                    forked += 1;
                    let (to, at) = (forked, draw(tokens + 1));
                    orders.push_back(Order::Fork { of: branch, to, at });
                    orders.push_back(if draw(2) == 0 {
                        Order::Read(to)
                    } else {
                        Order::Draw(to)
                    });
                    orders.push_back(Order::Draw(branch));
                }
                1 => orders.extend([
                    Order::Rewind {
                        branch,
                        to: draw(tokens + 1),
                    },
                    Order::Draw(branch),
                ]),
                2 if branch > 0 => orders.push_back(Order::Drop(branch)),
                _ if rounds > 600 && branch == 0 => orders.push_back(Order::Finish { branch, answer: 0 }),
                _ => orders.push_back(Order::Draw(branch)),
            }
        });
        let (tokens, last) = run(driver, &mut core);
        assert!(matches!(last, Event::Done(_)), "{last:?}");
        assert_eq!(tokens, written(tokens.len()), "blocks of {block_size}");
        assert!(core.stats.forks > 5);
    }
}

/// Reports of a branch that was rewound cover only the remaining tokens.
#[test]
fn what_is_told_of_a_branch_is_of_its_tokens() {
    let mut core = core(EngineConfig::default());
    let mut seen: Vec<(usize, f64)> = Vec::new();
    let driver = With(move |report: &Report, orders: &mut Orders| {
        let branch = report.branch;
        let known = seen.iter().find(|(tokens, _)| *tokens == report.tokens);
        match known {
            // The same tokens again, after a rewind: the same probability to the bit.
            Some(&(_, before)) => assert_eq!(before, report.log_probability),
            None => seen.push((report.tokens, report.log_probability)),
        }
        match (report.tokens, seen.len()) {
            (9, 10) => {
                seen.push((usize::MAX, 0.0));
                orders.extend([Order::Rewind { branch, to: 4 }, Order::Draw(branch)]);
            }
            (12, _) => orders.push_back(Order::Finish { branch, answer: 0 }),
            _ => orders.push_back(Order::Draw(branch)),
        }
    });
    let (tokens, _) = run(driver, &mut core);
    assert_eq!(tokens, written(12));
}

/// Branches may wait for each other, as particles do at every token.
#[test]
fn branches_may_wait_for_each_other() {
    let mut core = core(EngineConfig::default());
    let mut arrived = 0;
    let driver = With(move |report: &Report, orders: &mut Orders| match report.event {
        BranchEvent::Begun => orders.push_back(Order::Read(0)),
        BranchEvent::Read => {
            orders.extend((1..5).map(|to| Order::Fork { of: 0, to, at: 0 }));
            orders.extend((0..5).map(Order::Draw));
        }
        _ => {
            arrived += 1;
            if arrived == 5 * 6 {
                orders.push_back(Order::Finish { branch: 3, answer: 0 });
            } else if arrived % 5 == 0 {
                orders.extend((0..5).map(Order::Draw));
            }
        }
    });
    assert_eq!(run(driver, &mut core).0, written(6));
    assert_eq!(core.stats.steps, 1 + 6, "they draw together");
}

/// Given tokens count as if they had been drawn, however many passes they take, and the text continues after
/// them.
#[test]
fn given_tokens_are_counted_as_if_they_were_drawn() {
    for (given, max_step_tokens) in [(1, 512), (3, 512), (150, 512), (40, 7)] {
        let text = written(given + 3);
        let mut core = core(EngineConfig {
            max_step_tokens,
            ..EngineConfig::default()
        });
        let mut told = Vec::new();
        let driver = With(move |report: &Report, orders: &mut Orders| {
            let branch = report.branch;
            match (&report.event, report.tokens) {
                (BranchEvent::Begun, _) => orders.extend([
                    Order::Fork { of: 0, to: 1, at: 0 },
                    Order::Draw(0),
                    Order::Draw(1),
                ]),
                // One branch draws the text, and the other is given what the first drew.
                (_, tokens) if branch == 0 && tokens == given => {
                    told.push(report.log_probability);
                }
                (BranchEvent::Drew, 1) if branch == 1 => {
                    orders.push_back(Order::Rewind { branch, to: 0 });
                    orders.push_back(Order::Score {
                        branch,
                        tokens: text[..given].to_vec(),
                    });
                }
                (BranchEvent::Scored, tokens) => {
                    assert_eq!(tokens, given);
                    told.push(report.log_probability);
                    orders.push_back(Order::Draw(branch));
                }
                (_, tokens) if branch == 1 && tokens == given + 3 => {
                    assert!(told.len() < 2 || told[0] == told[1]);
                    orders.push_back(Order::Finish { branch, answer: 0 });
                }
                _ => orders.push_back(Order::Draw(branch)),
            }
        });
        assert_eq!(run(driver, &mut core).0, written(given + 3));
    }
}

/// Given tokens need not be likely; what follows depends on them.
#[test]
fn a_text_goes_on_after_what_it_was_given() {
    let given = vec![9, 9, 2];
    let mut expected = [&PROMPT[..], &given].concat();
    (0..4).for_each(|_| expected.push(next(&expected)));
    let mut core = core(EngineConfig::default());
    let driver = With(
        move |report: &Report, orders: &mut Orders| match (&report.event, report.tokens) {
            (BranchEvent::Begun, _) => orders.push_back(Order::Score {
                branch: 0,
                tokens: given.clone(),
            }),
            (_, 7) => orders.push_back(Order::Finish { branch: 0, answer: 0 }),
            (event, _) => {
                assert!(*event != BranchEvent::Scored || report.log_probability < -200.0);
                orders.push_back(Order::Draw(0));
            }
        },
    );
    assert_eq!(run(driver, &mut core).0, expected[PROMPT.len()..]);
    assert!(core.stats.steps <= 5);
}

#[test]
fn a_token_that_is_not_allowed_ends_what_was_given() {
    let source = lexiform::Source::Regex("[a-d]{2}[x-z]{5}");
    let (grammar, _) = lexiform::compile(source, &vocabulary(), &lexiform::Options::default()).unwrap();
    let mut core = core(EngineConfig::default());
    let driver = With(move |report: &Report, orders: &mut Orders| match report.event {
        BranchEvent::Begun => orders.push_back(Order::Score {
            branch: 0,
            tokens: vec![0, 3, 2, 1],
        }),
        BranchEvent::Scored => {
            assert_eq!(report.tokens, 2);
            orders.push_back(Order::Finish { branch: 0, answer: 0 });
        }
        _ => panic!("{report:?}"),
    });
    let request = Request::new(PROMPT.to_vec(), 20).grammar(Some(grammar));
    assert_eq!(run_request(request, driver, &mut core).0, [0, 3]);
}

#[test]
fn a_driver_that_panics_takes_its_request_away_alone() {
    let mut core = core(EngineConfig {
        max_running: 2,
        ..EngineConfig::default()
    });
    let driver = With(|report: &Report, orders: &mut Orders| {
        assert!(report.tokens < 3, "the test says so");
        let of = report.branch;
        if report.event == BranchEvent::Begun {
            orders.extend((1..5).map(|to| Order::Fork { of, to, at: 0 }));
            orders.extend((1..5).map(Order::Draw));
        }
        orders.push_back(Order::Draw(of));
    });
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(driver, &mut core)));
    assert!(panicked.is_err());
    core.recover("the test says so");
    core.step();
    assert!(core.is_idle() && core.jobs.is_empty() && core.blocks.used() == 0);
    let driver = With(|report: &Report, orders: &mut Orders| match report.tokens {
        4 => orders.push_back(Order::Finish { branch: 0, answer: 0 }),
        _ => orders.push_back(Order::Draw(0)),
    });
    assert_eq!(run(driver, &mut core).0, written(4));
}

#[test]
fn a_driver_that_forks_without_bound_is_stopped() {
    let mut core = core(EngineConfig {
        max_branches: 40,
        max_running: 8,
        ..EngineConfig::default()
    });
    let mut forked = 0;
    let driver = With(move |report: &Report, orders: &mut Orders| {
        forked += 1;
        let (of, to) = (report.branch, forked);
        orders.extend([Order::Fork { of, to, at: 0 }, Order::Draw(of), Order::Draw(to)]);
    });
    let (_, last) = run(driver, &mut core);
    assert_eq!(last, Event::Failed(EngineError::Branches { limit: 40 }));
}

#[test]
fn what_cannot_be_done_ends_the_request_with_its_reason() {
    let ordered: [fn(&Report) -> Vec<Order>; 4] = [
        |report| {
            vec![Order::Rewind {
                branch: 0,
                to: report.tokens + 1,
            }]
        },
        |report| {
            vec![Order::Fork {
                of: 0,
                to: 1,
                at: report.tokens + 1,
            }]
        },
        // Emitted tokens cannot be taken back.
        |_| {
            vec![
                Order::Emit { branch: 0, answer: 0 },
                Order::Rewind { branch: 0, to: 0 },
            ]
        },
        // An answer cannot continue from a text other than the one it received.
        |_| {
            let fork = Order::Fork { of: 0, to: 1, at: 0 };
            vec![
                fork,
                Order::Emit { branch: 0, answer: 0 },
                Order::Emit { branch: 1, answer: 0 },
            ]
        },
    ];
    for ordered in ordered {
        let mut core = core(EngineConfig::default());
        let driver = With(move |report: &Report, orders: &mut Orders| match report.tokens {
            0..3 => orders.push_back(Order::Draw(report.branch)),
            _ => orders.extend(ordered(report)),
        });
        let (_, last) = run(driver, &mut core);
        assert!(
            matches!(last, Event::Failed(EngineError::NoSuchPlace { .. })),
            "{last:?}"
        );
    }
}

#[test]
fn a_driver_that_orders_nothing_ends_its_request() {
    for count in [0, 4] {
        let mut core = core(EngineConfig::default());
        let driver = With(move |report: &Report, orders: &mut Orders| {
            if report.tokens < count {
                orders.push_back(Order::Draw(report.branch));
            }
        });
        let (_, last) = run(driver, &mut core);
        assert_eq!(last, Event::Failed(EngineError::Unanswered));
    }
    let mut core = core(EngineConfig::default());
    let driver = With(|report: &Report, orders: &mut Orders| orders.push_back(Order::Drop(report.branch)));
    assert_eq!(run(driver, &mut core).1, Event::Failed(EngineError::Unanswered));
}

/// A request that fills the cache alone ends with what it has, instead of blocking the engine.
#[test]
fn more_branches_than_the_cache_holds_take_turns() {
    let mut core = core(EngineConfig {
        block_size: 2,
        blocks: 14,
        max_running: 16,
        ..EngineConfig::default()
    });
    let mut ended = 0;
    let driver = With(
        move |report: &Report, orders: &mut Orders| match (&report.event, report.tokens) {
            (BranchEvent::Begun, _) => orders.push_back(Order::Read(0)),
            (BranchEvent::Read, _) => {
                orders.extend((1..10).map(|to| Order::Fork { of: 0, to, at: 0 }));
                orders.extend((0..10).map(Order::Draw));
            }
            (_, 15) => {
                ended += 1;
                orders.push_back(match ended {
                    10 => Order::Finish {
                        branch: report.branch,
                        answer: 0,
                    },
                    _ => Order::Drop(report.branch),
                });
            }
            _ => orders.push_back(Order::Draw(report.branch)),
        },
    );
    assert_eq!(run(driver, &mut core).0, written(15));
    assert!(core.stats.steps > 15);
}

/// Runs a request of which less than a quarter of the time is left; the model nearly always writes another
/// letter than the grammar allows, and there are more texts than attempts.
fn run_late(law: Law, driver: impl Driver + 'static) -> Outcome {
    let options = lexiform::Options::default();
    let source = lexiform::Source::Regex("[ab]{40}");
    let (grammar, _) = lexiform::compile(source, &vocabulary(), &options).unwrap();
    let request = Request::new(PROMPT.to_vec(), 50)
        .task(law)
        .grammar(grammar)
        .sampling(Sampling::seeded(1))
        .deadline(Instant::now() + Duration::from_secs(1000));
    let moments = Moments::submitted_before(Duration::from_secs(3100));
    let (tokens, last) = run_submitted(request, moments, driver, &mut core(EngineConfig::default()));
    let Event::Done(outcome) = last else {
        panic!("{last:?}")
    };
    assert_eq!((tokens.len(), outcome.finish), (40, Finish::Stop));
    outcome
}

/// Attempts that go on until the deadline would leave no time for the text that takes their place: in the
/// last quarter of the time, the present attempt is the last.
#[test]
fn attempts_end_while_there_is_time_for_a_text_in_their_place() {
    for (fallback, tag) in [
        (Fallback::Weighted, LawTag::GlobalWeighted),
        (Fallback::Chain { steps: 1_000_000 }, LawTag::Mcmc),
    ] {
        let law = Law::Global {
            max_attempts: 1_000_000,
            fallback,
            share_attempts: false,
        };
        let outcome = run_late(law, Samples::new(1, false));
        assert_eq!(outcome.law, tag);
        assert!(outcome.attempts <= 2, "{} attempts", outcome.attempts);
        assert_eq!(outcome.log_weight.is_some(), tag.has_weight());
    }
}

#[test]
fn a_chain_ends_with_the_text_where_it_is_while_there_is_time() {
    let (steps, cuts) = (1_000_000, Cuts::Restart);
    let outcome = run_late(
        Law::Mcmc { steps, cuts },
        Chains::new(steps, cuts, [Seeded::new(1, 0)]),
    );
    let Some(Diagnostics::Chain { steps, .. }) = outcome.diagnostics else {
        panic!("{outcome:?}")
    };
    assert!(steps <= 1, "{steps}");
}

/// Whoever waits in vain is told what was tried.
#[test]
fn a_request_whose_time_is_over_tells_its_attempts() {
    let mut core = core(EngineConfig::default());
    let options = lexiform::Options::default();
    let source = lexiform::Source::Regex("[ab]{40}");
    let (grammar, _) = lexiform::compile(source, &vocabulary(), &options).unwrap();
    let law = Law::Global {
        max_attempts: 1_000_000,
        fallback: Fallback::Fail,
        share_attempts: false,
    };
    let request = Request::new(PROMPT.to_vec(), 50)
        .task(law)
        .grammar(grammar)
        .sampling(Sampling::seeded(1));
    let events = begin((request, Moments::now()), Samples::new(1, false), &mut core);
    while core
        .scheduler
        .all()
        .all(|sequence| sequence.draw.walk.failed_attempts() < 3)
    {
        core.step();
    }
    let over = Some(Instant::now());
    core.scheduler
        .all()
        .for_each(|sequence| sequence.request.limits.deadline = over);
    core.step();
    let last = events.try_iter().last();
    let Some(Event::Failed(error @ EngineError::Late { attempts, .. })) = last else {
        panic!("{last:?}")
    };
    assert!(attempts >= 3, "{attempts}");
    assert!(error.to_string().ends_with(" attempts was accepted"), "{error}");
}
