//! Requests that branch: many samples of one prompt, the best of them, and the release of their blocks.

use crate::counted::Gate;
use crate::rig::{
    EOS, Heard, PATIENCE, PHRASE, Redraw, WIDTH, cycle_script, drafting, engine, generate, global, grammar,
    letters, start, vocabulary, wait_until, wordy_script,
};
use lexiform_engine::{
    Draw, Engine, EngineConfig, Event, Finish, LawTag, Refusal, Request, Sampling, ScriptedModel, Sink,
    Speculation, Ticket,
};
use std::collections::HashSet;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

type Heards = Vec<(Receiver<Event>, Ticket)>;

fn submit(engine: &Engine, request: Request) -> Heards {
    let pairs = (0..request.task.answers()).map(|_| channel());
    let (senders, receivers): (Vec<_>, Vec<_>) = pairs.unzip();
    let sink = |sender: std::sync::mpsc::Sender<Event>| -> Sink {
        Box::new(move |event| sender.send(event).is_ok())
    };
    let tickets = engine
        .submit_all(request, senders.into_iter().map(sink).collect())
        .unwrap();
    receivers.into_iter().zip(tickets).collect()
}

fn wait((events, _ticket): (Receiver<Event>, Ticket)) -> Heard {
    let mut heard = Heard { events: Vec::new() };
    loop {
        let event = events.recv_timeout(PATIENCE).expect("a last event");
        let is_last = !matches!(event, Event::Token { .. });
        heard.events.push(event);
        if is_last {
            return heard;
        }
    }
}

pub(crate) fn answers(engine: &Engine, request: Request) -> Vec<Heard> {
    submit(engine, request).into_iter().map(wait).collect()
}

/// The answers of a request but for the first, which is cancelled at once.
pub(crate) fn all_but_the_first(engine: &Engine, request: Request) -> Vec<Heard> {
    let mut heards = submit(engine, request);
    let (_, first) = heards.remove(0);
    first.cancel();
    heards.into_iter().map(wait).collect()
}

fn request(prompt: usize, samples: usize, seed: u64) -> Request {
    Request::new(letters("abc ").repeat(prompt)[..prompt].to_vec(), 12)
        .task(Draw {
            answers: samples,
            ..Draw::default()
        })
        .sampling(Sampling::seeded(seed))
}

/// Sample `number` of the request, asked for alone.
fn alone(engine: &Engine, request: &Request, number: usize) -> Heard {
    let sampling = Sampling {
        stream: number as u32,
        ..request.sampling.clone()
    };
    let request = request.clone().answers(1).sampling(sampling);
    generate(engine, request)
}

/// Eight samples that agree, two at a time. The first two write the text token by token; the others draft it
/// from them. Each sample is the one of its seed, and nothing of it is left for the next request.
#[test]
fn samples_draft_from_what_their_siblings_wrote() {
    let text = letters("abcdefghijklmnopqrstuvwxyz");
    let wanted = text.clone();
    // Nearly certain, so that some samples take other tokens now and then and come back.
    let script = move |prefix: &[u32]| {
        let mut row = vec![0.0; WIDTH];
        row[wanted.get(prefix.len() - 1).copied().unwrap_or(EOS) as usize] = 7.0;
        row
    };
    let config = EngineConfig {
        max_running: 2,
        ..drafting()
    };
    let engine = start(script, config);
    let request = |siblings: bool| {
        Request::new(letters("x"), 40)
            .task(Draw {
                answers: 8,
                ..Draw::default()
            })
            .sampling(Sampling::seeded(3))
            .speculation(Speculation {
                siblings,
                max_draft: 16,
                ..Speculation::none()
            })
    };
    let run = |siblings: bool| {
        let before = wait_until(&engine, |stats| stats.running == 0 && stats.blocks_used == 0);
        let heard = answers(&engine, request(siblings));
        let tokens: usize = heard.iter().map(|heard| heard.tokens().len()).sum();
        // The last pass is counted after its answer is told.
        let wanted = before.generated + tokens as u64;
        let after = wait_until(&engine, |stats| {
            stats.running == 0 && stats.blocks_used == 0 && stats.generated >= wanted
        });
        (heard, after.steps - before.steps)
    };
    let (plain, passes) = run(false);
    let (drafted, fewer) = run(true);
    for (number, (plain, drafted)) in plain.iter().zip(&drafted).enumerate() {
        assert_eq!(
            plain.tokens_without_origin(),
            drafted.tokens_without_origin(),
            "{number}"
        );
        assert_eq!(plain.outcome().log_probability, drafted.outcome().log_probability);
    }
    let differ: HashSet<_> = plain.iter().map(Heard::tokens).collect();
    assert!(
        differ.len() > 1,
        "all samples are the same, which would show little"
    );
    let accepted: usize = drafted.iter().map(|heard| heard.outcome().accepted).sum();
    assert!(2 * fewer < passes, "{fewer} passes of {passes}");
    assert!(accepted > 100, "{accepted}");
    // The next request begins from nothing.
    let (_, again) = run(true);
    assert_eq!(again, fewer);
    let alone = request(true).answers(1);
    assert_eq!(answers(&engine, alone)[0].outcome().drafted, 0);
}

#[test]
fn a_prompt_is_read_once_for_all_its_samples() {
    for prompt in [1, 2, 15, 16, 17, 800] {
        let engine = engine(wordy_script);
        let request = request(prompt, 16, 5);
        let heard = answers(&engine, request.clone());
        let stats = wait_until(&engine, |stats| stats.blocks_used == 0);
        assert!(stats.prefilled_tokens <= prompt as u64 + 16, "{stats:?}");
        assert_eq!((stats.forks, stats.requests, stats.failed), (15, 16, 0));
        for (number, heard) in heard.iter().enumerate() {
            assert_eq!(
                heard.text(),
                alone(&engine, &request, number).text(),
                "{prompt} {number}"
            );
        }
        let texts: HashSet<String> = heard.iter().map(Heard::text).collect();
        assert!(texts.len() > 12, "{texts:?}");
    }
}

#[test]
fn neighbouring_seeds_have_no_sample_in_common() {
    let engine = engine(wordy_script);
    let mut texts = HashSet::new();
    for seed in 1..=10 {
        texts.extend(answers(&engine, request(3, 4, seed)).iter().map(Heard::text));
    }
    assert_eq!(texts.len(), 40);
}

/// Where there are fewer places than samples, or fewer blocks than they need, they take turns, and nothing
/// else changes.
#[test]
fn samples_that_find_no_place_wait() {
    let expected: Vec<String> = {
        let engine = engine(wordy_script);
        let request = request(33, 12, 9);
        (0..12)
            .map(|number| alone(&engine, &request, number).text())
            .collect()
    };
    for (max_running, blocks) in [(32, 1024), (3, 1024), (1, 1024), (32, 16), (2, 13)] {
        let config = EngineConfig {
            max_running,
            blocks,
            block_size: 4,
            max_step_tokens: 24,
            ..EngineConfig::default()
        };
        let engine = start(wordy_script, config);
        let heard = answers(&engine, request(33, 12, 9));
        let texts: Vec<String> = heard.iter().map(Heard::text).collect();
        assert_eq!(texts, expected, "{max_running} places, {blocks} blocks");
        wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
    }
}

#[test]
fn who_leaves_takes_only_its_own_sample_away() {
    let request = request(40, 6, 1).max_tokens(250);
    let whole: Vec<String> = {
        let engine = engine(cycle_script);
        (0..6)
            .map(|number| alone(&engine, &request, number).text())
            .collect()
    };
    for leaver in [0, 3] {
        // A gate keeps the texts from their ends until one of them has left.
        let gate = Gate::default();
        let held = gate.clone();
        let engine = engine(move |prefix| {
            held.pass();
            cycle_script(prefix)
        });
        let mut running = submit(&engine, request.clone());
        let (events, ticket) = running.remove(leaver);
        if leaver > 0 {
            // The first leaves before there is anything to hear.
            gate.open(60);
            events.recv_timeout(PATIENCE).unwrap();
        }
        ticket.cancel();
        gate.open(u64::MAX);
        let last = std::iter::from_fn(|| events.recv_timeout(PATIENCE).ok()).last();
        assert!(matches!(last, Some(Event::Done(outcome)) if outcome.finish == Finish::Cancelled));
        let mut expected = whole.clone();
        expected.remove(leaver);
        let texts: Vec<String> = running.into_iter().map(|it| wait(it).text()).collect();
        assert_eq!(texts, expected);
        wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
    }
}

#[test]
fn a_client_that_hears_no_more_ends_its_sample_alone() {
    let engine = engine(wordy_script);
    let (sender, others) = channel();
    let mut sinks: Vec<Sink> = vec![Box::new(|_| false), Box::new(|_| panic!("the test says so"))];
    sinks.push(Box::new(move |event| sender.send(event).is_ok()));
    let _tickets = engine.submit_all(request(5, 3, 2), sinks).unwrap();
    let last = std::iter::from_fn(|| others.recv_timeout(PATIENCE).ok())
        .find(|event| !matches!(event, Event::Token { .. }));
    assert!(matches!(last, Some(Event::Done(_))), "{last:?}");
    wait_until(&engine, |stats| {
        stats.blocks_used == 0 && stats.running == 0 && stats.failed == 2
    });
}

#[test]
fn the_best_of_many_are_those_that_the_model_likes_best() {
    let engine = engine(wordy_script);
    for seed in 0..8 {
        let candidates: Vec<(f64, String)> = (0..7)
            .map(|number| {
                let heard = alone(&engine, &request(6, 7, seed), number);
                let outcome = heard.outcome();
                (
                    outcome.log_probability / outcome.completion_tokens as f64,
                    heard.text(),
                )
            })
            .collect();
        let mut best = candidates.clone();
        best.sort_by(|one, other| other.0.total_cmp(&one.0));
        let request = request(6, 2, seed).best_of(Some(7));
        let heard = answers(&engine, request);
        for (heard, (_, text)) in heard.iter().zip(&best) {
            assert_eq!(&heard.text(), text, "{seed} {best:?} {:?}", heard.outcome());
            assert_eq!(heard.outcome().law, LawTag::BestOf);
        }
        wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
    }
}

#[test]
fn cancelled_best_answers_leave_nothing_behind() {
    let engine = engine(|prefix| {
        std::thread::sleep(Duration::from_millis(1));
        wordy_script(prefix)
    });
    let request = request(20, 2, 3).best_of(Some(5));
    let mut running = submit(&engine, request);
    wait_until(&engine, |stats| stats.generated > 3);
    let (first, ticket) = running.remove(0);
    ticket.cancel();
    assert!(matches!(first.recv_timeout(PATIENCE), Ok(Event::Done(_))));
    let (_, ticket) = running.remove(0);
    ticket.cancel();
    wait_until(&engine, |stats| {
        stats.blocks_used == 0 && stats.running == 0 && stats.waiting == 0
    });
}

#[test]
fn what_makes_no_sense_is_refused() {
    let config = EngineConfig {
        max_branches: 8,
        ..EngineConfig::default()
    };
    let engine = start(wordy_script, config);
    let refused = |samples: usize, best_of, sinks: usize| {
        let sinks = (0..sinks).map(|_| -> Sink { Box::new(|_| true) }).collect();
        let request = request(3, samples, 0).best_of(best_of);
        match engine.submit_all(request, sinks) {
            Err(Refusal::Invalid { name, .. }) => name,
            other => panic!("{:?}", other.map(|tickets| tickets.len())),
        }
    };
    assert_eq!(refused(0, None, 0), "answers");
    assert_eq!(refused(9, None, 9), "answers");
    assert_eq!(refused(2, None, 3), "answers");
    assert_eq!(refused(2, Some(1), 2), "best_of");
    assert_eq!(refused(2, Some(9), 2), "best_of");
}

/// Samples of the global law learn from each other's attempts, and each is still what the law says.
#[test]
fn samples_of_the_global_law_share_what_their_attempts_learn() {
    let engine = engine(wordy_script);
    let request = |samples| {
        request(4, samples, 11)
            .law(global(1000))
            .grammar(Some(grammar("[ab]{0,3}c|zz")))
    };
    let attempts = |heard: &[Heard]| heard.iter().map(|heard| heard.outcome().attempts).sum::<usize>();
    let together = answers(&engine, request(100));
    let apart: Vec<Heard> = (0..100)
        .map(|number| alone(&engine, &request(1), number))
        .collect();
    assert!(
        together
            .iter()
            .all(|heard| heard.outcome().law == LawTag::GlobalExact)
    );
    assert!(
        3 * attempts(&together) < attempts(&apart),
        "{} and {}",
        attempts(&together),
        attempts(&apart)
    );
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

/// Prompts that begin alike and come at once are computed once: the others wait for the pass that does.
#[test]
fn equal_prompts_in_one_pass_are_computed_once() {
    let model = ScriptedModel::new(WIDTH, 100_000, |prefix: &[u32]| {
        std::thread::sleep(Duration::from_micros(500));
        wordy_script(prefix)
    });
    let engine = Engine::start(Box::new(model), None, vocabulary(), EngineConfig::default()).unwrap();
    // One that runs meanwhile, so that the others are all there when they are admitted.
    let first = submit(&engine, Request::new(letters(PHRASE), 400).max_tokens(400));
    let running: Vec<Heards> = (0..8)
        .map(|seed| submit(&engine, request(320, 1, seed)))
        .collect();
    let texts: Vec<String> = running.into_iter().flatten().map(|it| wait(it).text()).collect();
    drop(first);
    let stats = wait_until(&engine, |stats| stats.running == 0);
    assert!(
        stats.prefilled_tokens < 320 + PHRASE.len() as u64 + 8 * 16,
        "{stats:?}"
    );
    assert_eq!(texts.len(), 8);
}
