//! Policies other than the default: the drafts that they feed, and texts that do not depend on them.

use crate::drafting::{nearly_wordy, with_draft_model};
use crate::rig::{
    EOS, Heard, WIDTH, drafting, engine, generate, grammar, letters, vocabulary, wait_until, wordy_script,
};
use lexiform_engine::{
    Drafting, Engine, EngineConfig, Request, Sampling, ScriptedModel, Speculation, Verification, Worked,
};
use std::time::Duration;

const POLICIES: [Drafting; 3] = [Drafting::Svip, Drafting::Ucb1, Drafting::Exp3];

fn config(policy: Drafting) -> EngineConfig {
    EngineConfig {
        drafting: policy,
        ..drafting()
    }
}

fn request(pattern: Option<&str>, seed: u64, speculation: Speculation) -> Request {
    Request::new(letters("the the "), 30)
        .grammar(pattern.map(grammar))
        .sampling(Sampling {
            temperature: 0.7,
            ..Sampling::seeded(seed)
        })
        .speculation(speculation)
}

#[test]
fn no_policy_changes_the_text_of_a_seed() {
    let plain = engine(wordy_script);
    let all = Speculation {
        verification: Verification::DrawOnce,
        ..Speculation::all()
    };
    let patterns = [
        None,
        Some("the quick (brown fox|[0-9]{2,5}) the quick [a-z]{3}"),
        Some("(th|he|the|quick){3,9}"),
    ];
    for policy in POLICIES {
        let other = with_draft_model(nearly_wordy, config(policy));
        for pattern in patterns {
            for seed in 0..12 {
                let without = generate(&plain, request(pattern, seed, Speculation::none()));
                let with = generate(&other, request(pattern, seed, all));
                let what = format!("{policy:?}, {pattern:?}, seed {seed}");
                assert_eq!(
                    without.tokens_without_origin(),
                    with.tokens_without_origin(),
                    "{what}"
                );
                let probability = |heard: &Heard| heard.outcome().log_probability;
                assert_eq!(probability(&without), probability(&with), "{what}");
            }
        }
        let stats = wait_until(&other, |stats| stats.running == 0 && stats.blocks_used == 0);
        assert!(
            stats.accepted > 0 && !stats.draft_model_failed,
            "{policy:?}: {stats:?}"
        );
    }
}

/// A model that is as sure as is said, and a draft model that is the same.
fn as_sure(logit: f32, policy: Drafting) -> Engine {
    let script = move |prefix: &[u32]| {
        let mut row = vec![0.0; WIDTH];
        row[prefix.len() % 20] = logit;
        row[EOS as usize] = f32::NEG_INFINITY;
        row
    };
    let model = || Box::new(ScriptedModel::new(WIDTH, 1000, script));
    Engine::start(model(), Some(model()), vocabulary(), config(policy)).unwrap()
}

#[test]
fn svip_ends_drafts_where_the_draft_model_is_unsure() {
    let drafted = |logit: f32, policy: Drafting| {
        let engine = as_sure(logit, policy);
        let speculation = Speculation {
            model: true,
            max_draft: 8,
            verification: Verification::DrawOnce,
            ..Speculation::none()
        };
        let request = Request::new(letters("x"), 40)
            .sampling(Sampling::seeded(1))
            .speculation(speculation);
        let heard = generate(&engine, request);
        let stats = wait_until(&engine, |stats| stats.running == 0 && stats.generated >= 40);
        heard.outcome().drafted as f64 / stats.steps as f64
    };
    // With a logit of 9 the entropy is 0.06 nats, with one of 3 it is 3.
    assert!(drafted(9.0, Drafting::Svip) > 6.0);
    let (unsure, all) = (drafted(3.0, Drafting::Svip), drafted(3.0, Drafting::Always));
    assert!(unsure <= 1.0 && all > 2.0, "{unsure} and {all}");
}

/// A draft model that is always wrong, where each token of a pass costs as much as the first: bandits leave
/// it out but for what they try. Two of six arms have it, so that who chose evenly would feed a third of what
/// there is.
#[test]
fn bandits_leave_out_sources_that_lose() {
    let wrong = |prefix: &[u32]| {
        let mut row = wordy_script(prefix);
        row.iter_mut().for_each(|logit| *logit *= -8.0);
        row
    };
    let cost = |worked| match worked {
        Worked::Pass { decoded, .. } => Duration::from_micros(100 * decoded as u64),
        Worked::DraftPass(_) => Duration::from_micros(1),
    };
    let drafted = |policy: Drafting| {
        let model = Box::new(ScriptedModel::new(WIDTH, 1000, wordy_script));
        let draft = Box::new(ScriptedModel::new(WIDTH, 1000, wrong));
        let config = config(policy);
        let engine = Engine::start_counted(model, Some(draft), vocabulary(), config, Box::new(cost)).unwrap();
        let speculation = Speculation {
            model: true,
            max_draft: 4,
            verification: Verification::DrawOnce,
            ..Speculation::none()
        };
        let mut drafted = 0;
        for seed in 0..6 {
            let request = Request::new(letters("the "), 400)
                .sampling(Sampling {
                    temperature: 0.1,
                    ..Sampling::seeded(seed)
                })
                .speculation(speculation)
                .ignore_eos(true);
            drafted += generate(&engine, request).outcome().drafted;
        }
        drafted
    };
    let all = drafted(Drafting::Always);
    for policy in [Drafting::Ucb1, Drafting::Exp3] {
        let some = drafted(policy);
        assert!(some > 0 && some < all / 4, "{policy:?}: {some} of {all}");
    }
}
