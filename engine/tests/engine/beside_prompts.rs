//! Drafts while every pass also reads a piece of a prompt: they are fed where they pay and left out where
//! they do not, as without prompts.

use crate::drafting::{looking_up, mostly_copied};
use crate::rig::{WIDTH, gated, letters, listen, vocabulary};
use lexiform_engine::{Engine, EngineConfig, Request, ScriptedModel, Speculation, Worked};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What each token of a prompt costs, in microseconds, drafts or not.
const OF_PROMPT: u64 = 40;
/// The most tokens of prompts of a pass.
const PIECE: usize = 16;
/// Prompts that are read one after the other beside the answers, more than there are passes.
const PROMPTS: usize = 600;

/// What passes that wrote something have cost without their prompts, how many there were, and how many of
/// them read a prompt.
#[derive(Default)]
struct Spent {
    cost: AtomicU64,
    passes: AtomicU64,
    beside: AtomicU64,
}

impl Spent {
    /// A pass that costs so much, and so much for each token; what it takes with its prompts.
    fn pay(&self, (pass, token): (u64, u64), worked: Worked) -> u64 {
        let (decoded, prompts) = match worked {
            Worked::Pass { decoded, prompts } => (decoded as u64, prompts as u64),
            Worked::DraftPass(_) => (0, 0),
        };
        let cost = pass + token * decoded;
        if decoded > 0 {
            self.cost.fetch_add(cost, Ordering::AcqRel);
            self.passes.fetch_add(1, Ordering::AcqRel);
            self.beside.fetch_add(u64::from(prompts > 0), Ordering::AcqRel);
        }
        cost + OF_PROMPT * prompts
    }
}

/// So many answers of 400 tokens, and beside them pieces of prompts of other lengths; what passes cost
/// without those, and the texts.
fn beside_prompts(answers: u64, costs: (u64, u64), speculation: Speculation) -> (f64, Vec<Vec<u32>>) {
    let (all_are_there, script) = gated(mostly_copied);
    let spent = Arc::new(Spent::default());
    let paying = spent.clone();
    let counted = move |worked| Duration::from_micros(paying.pay(costs, worked));
    let config = EngineConfig {
        // The pass after the last one of a prompt reads none of the next one.
        max_running: answers as usize + 2,
        prompt_piece: PIECE,
        max_waiting: 2 * PROMPTS,
        ..EngineConfig::default()
    };
    let model = Box::new(ScriptedModel::new(WIDTH, 100_000, script));
    let engine = Engine::start_counted(model, None, vocabulary(), config, Box::new(counted)).unwrap();
    let heard: Vec<_> = (0..answers)
        .map(|seed| listen(&engine, looking_up(seed, speculation)))
        .collect();
    let prompt = |number: usize| {
        // Each begins in another way, so that none is in the cache.
        let text = format!("{number} {}", "z".repeat(number * 37 % 61));
        Request::new(letters(&text), 1)
    };
    let prompts: Vec<_> = (0..PROMPTS)
        .map(|number| listen(&engine, prompt(number)))
        .collect();
    all_are_there.store(true, Ordering::Release);
    let texts: Vec<_> = heard.into_iter().map(|heard| heard.wait().tokens()).collect();
    drop(prompts);
    engine.stop();
    let (passes, beside) = (
        spent.passes.load(Ordering::Acquire),
        spent.beside.load(Ordering::Acquire),
    );
    assert!(
        10 * beside > 9 * passes,
        "{beside} of {passes} passes read a prompt"
    );
    (spent.cost.load(Ordering::Acquire) as f64, texts)
}

/// Guards against a policy that hears nothing of passes with prompts: it would never draft here. One that
/// takes the time of prompts for what a pass costs in any case would draft everywhere.
#[test]
fn what_pays_does_not_depend_on_the_prompts_beside() {
    let lookup = Speculation {
        lookup: true,
        max_draft: 8,
        ..Speculation::none()
    };
    for (answers, costs, pays) in [
        (1, (100, 1), true),
        (8, (1000, 1), true),
        (1, (0, 100), false),
        (8, (0, 100), false),
        (32, (100, 100), false),
    ] {
        let (without, texts) = beside_prompts(answers, costs, Speculation::none());
        let (with, drafted) = beside_prompts(answers, costs, lookup);
        assert_eq!(texts, drafted);
        let what = format!("{answers} answers, {costs:?}: {with} and {without}");
        match pays {
            true => assert!(with < 0.7 * without, "{what}"),
            // With the passes that are spent on finding out.
            false => assert!(with < 1.04 * without, "{what}"),
        }
    }
}
