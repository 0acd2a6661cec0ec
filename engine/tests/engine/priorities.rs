//! Priorities and deadlines order the requests of one owner, and cost other owners nothing. The tests count
//! passes.

use crate::counted::Counted;
use crate::rig::{Redraw, engine, generate, letters, wait_until, wordy_script};
use lexiform_engine::{EngineConfig, EngineError, Event, Request, Sampling};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn request(owner: &str, priority: i32, prompt: usize, tokens: usize) -> Request {
    let prompt: String = owner.chars().chain("abc ".chars().cycle()).take(prompt).collect();
    Request::new(letters(&prompt), tokens)
        .sampling(Sampling::seeded(7))
        .owner(Some(owner.into()))
        .priority(priority)
        .ignore_eos(true)
}

fn one_place() -> EngineConfig {
    EngineConfig {
        max_running: 1,
        ..EngineConfig::default()
    }
}

fn of(told: &AtomicU64) -> u64 {
    told.load(Ordering::Acquire)
}

#[test]
fn a_higher_priority_takes_the_place_of_a_lower_one_of_its_owner() {
    let counted = Counted::new(one_place());
    let low = counted.submit(request("h", -1, 8, 40));
    counted.passes_until(&low, 5);
    let equal = counted.submit(request("h", -1, 8, 5));
    (0..5).for_each(|_| counted.pass());
    assert_eq!((of(&low), of(&equal)), (10, 0), "an equal one waits");
    let high = counted.submit(request("h", 1, 8, 10));
    let passes = counted.passes_until(&high, 10);
    assert!(passes <= 11, "{passes} passes for 10 tokens");
    assert!(of(&low) <= 11, "{low:?}");
    counted.passes_until(&low, 40);
    counted.passes_until(&equal, 5);
    assert_eq!(counted.engine.stats().preemptions, 1);
}

/// Whoever has to make room changes nothing of what is written.
#[test]
fn a_request_that_was_overtaken_has_the_text_that_it_has_alone() {
    let counted = Counted::new(one_place());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let events = heard.clone();
    let sink = move |event| {
        if let Event::Token { token, .. } = event {
            events.lock().unwrap().push(token);
        }
        true
    };
    let low = request("h", 0, 8, 30);
    counted
        .engine
        .submit(low.clone(), Box::new(sink))
        .unwrap()
        .detach();
    for priority in 1..5 {
        (0..3).for_each(|_| counted.pass());
        let high = counted.submit(request("h", priority, 20, 2));
        counted.passes_until(&high, 2);
    }
    counted.gate.open(u64::MAX);
    wait_until(&counted.engine, |stats| stats.running + stats.waiting == 0);
    let expected = generate(&engine(wordy_script), low).tokens();
    assert_eq!(*heard.lock().unwrap(), expected);
}

#[test]
fn those_who_wait_are_admitted_by_priority_and_then_by_deadline() {
    let counted = Counted::new(one_place());
    let ended = Arc::new(Mutex::new(Vec::new()));
    let busy = counted.submit(request("h", 9, 8, 20));
    counted.passes_until(&busy, 1);
    let soon = Instant::now() + Duration::from_secs(3_000);
    let later = Some(soon + Duration::from_secs(1));
    let waiting = [
        ("last", -5, Some(soon)),
        ("no deadline", 0, None),
        ("later", 0, later),
        ("first", 3, None),
        ("soon", 0, Some(soon)),
    ];
    for (name, priority, deadline) in waiting {
        let request = request("h", priority, 8, 2).deadline(deadline);
        let ended = ended.clone();
        let sink = move |event| {
            if matches!(event, Event::Done(_)) {
                ended.lock().unwrap().push(name);
            }
            true
        };
        counted.engine.submit(request, Box::new(sink)).unwrap().detach();
    }
    counted.gate.open(u64::MAX);
    wait_until(&counted.engine, |stats| stats.running + stats.waiting == 0);
    let expected = ["first", "soon", "later", "no deadline", "last"];
    assert_eq!(*ended.lock().unwrap(), expected);
}

/// Guards against owners who push others out by calling all of theirs urgent.
#[test]
fn priorities_take_nothing_from_other_owners() {
    let counted = Counted::new(EngineConfig {
        max_running: 4,
        blocks: 64,
        block_size: 4,
        ..EngineConfig::default()
    });
    let light: Vec<_> = (0..2)
        .map(|_| counted.submit(request("l", i32::MIN, 8, 60)))
        .collect();
    counted.pass();
    counted.pass();
    for _ in 0..16 {
        counted.submit(request("h", i32::MAX, 12, 40));
    }
    let before: u64 = light.iter().map(|told| of(told)).sum();
    (0..30).for_each(|_| counted.pass());
    let gained = light.iter().map(|told| of(told)).sum::<u64>() - before;
    assert!(gained >= 2 * 30 - 2, "{gained}");
    counted.stop();
}

/// Where the cache is full, blocks of a lower priority are those of a higher one.
#[test]
fn a_higher_priority_takes_the_blocks_of_a_lower_one_of_its_owner() {
    let counted = Counted::new(EngineConfig {
        blocks: 32,
        block_size: 4,
        ..EngineConfig::default()
    });
    let low: Vec<_> = (0..2).map(|_| counted.submit(request("h", 0, 50, 60))).collect();
    for low in &low {
        counted.passes_until(low, 2);
    }
    let high = counted.submit(request("g", 0, 100, 20));
    (0..5).for_each(|_| counted.pass());
    assert_eq!(of(&high), 0, "another owner waits");
    let high = counted.submit(request("h", 1, 100, 20));
    let passes = counted.passes_until(&high, 20);
    assert!(passes <= 24, "{passes} passes for 20 tokens");
    for low in &low {
        counted.passes_until(low, 60);
    }
}

/// Guards against a long prompt behind which an urgent one waits until it is read.
#[test]
fn a_higher_priority_does_not_wait_for_a_prompt_of_a_lower_one() {
    let counted = Counted::new(EngineConfig {
        max_step_tokens: 16,
        ..EngineConfig::default()
    });
    let low = counted.submit(request("h", 0, 800, 5));
    (0..3).for_each(|_| counted.pass());
    let high = counted.submit(request("h", 1, 8, 5));
    let passes = counted.passes_until(&high, 5);
    assert!(passes <= 6, "{passes} passes for 5 tokens");
    counted.passes_until(&low, 5);
}

#[test]
fn a_request_ends_at_its_deadline_whether_it_runs_or_waits() {
    let counted = Counted::new(one_place());
    let failed = Arc::new(Mutex::new(Vec::new()));
    for name in ["runs", "waits"] {
        let request = request("h", 0, 8, 5_000)
            .answers(2)
            .deadline(Some(Instant::now() + Duration::from_millis(300)));
        let sink = |failed: Arc<Mutex<Vec<_>>>| {
            let sink = move |event| {
                if let Event::Failed(error) = event {
                    failed.lock().unwrap().push((name, error));
                }
                true
            };
            Box::new(sink) as lexiform_engine::Sink
        };
        let sinks = vec![sink(failed.clone()), sink(failed.clone())];
        let tickets = counted.engine.submit_all(request, sinks).unwrap();
        tickets.into_iter().for_each(lexiform_engine::Ticket::detach);
    }
    let fine = counted.submit(request("h", 0, 8, 5));
    counted.gate.open(2);
    std::thread::sleep(Duration::from_millis(310));
    counted.passes_until(&fine, 5);
    let failed = failed.lock().unwrap();
    let mut names: Vec<_> = failed.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(names, ["runs", "runs", "waits", "waits"]);
    for (_, error) in failed.iter() {
        let EngineError::Late { allowed, .. } = error else {
            panic!("{error:?}")
        };
        assert!(*allowed <= Duration::from_millis(300), "{allowed:?}");
    }
    let stats = wait_until(&counted.engine, |stats| stats.running + stats.waiting == 0);
    assert_eq!((stats.failed, stats.blocks_used), (4, 0));
}
