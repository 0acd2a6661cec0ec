//! The engine's measurements match the events. Nothing here depends on durations.

use crate::rig::{cycle_script, engine, generate, grammar, letters, wait_until};
use lexiform_engine::{Request, Sampling, Speculation};

fn request(speculation: Speculation) -> Request {
    Request::new(letters("abc abc "), 40)
        .grammar(Some(grammar("(abc )*d")))
        .sampling(Sampling::seeded(1))
        .speculation(speculation)
}

#[test]
fn every_pass_mask_and_gap_is_counted_once() {
    let engine = engine(cycle_script);
    let heard = generate(&engine, request(Speculation::none()));
    let stats = wait_until(&engine, |stats| stats.running == 0 && stats.requests == 1);
    let (passes, meters) = (stats.steps, engine.meters());
    assert_eq!(
        passes,
        heard.tokens().len() as u64,
        "one token a pass, the first with the prompt"
    );
    assert_eq!(meters.pass_tokens.count(), passes);
    assert_eq!(
        meters.pass_tokens.sum() as u64,
        8 + passes - 1,
        "the last token is never fed"
    );
    assert_eq!(meters.masks.count(), passes);
    assert_eq!(meters.mask_waits.count(), passes);
    assert_eq!(meters.gaps.count(), passes - 1);
    let times = heard.outcome().times;
    assert!(meters.gaps.sum() <= times.decode.as_secs_f64() + 1e-9);
    assert_eq!((stats.drafts, stats.accepted_at), (0, Vec::new()));
    assert!(stats.block_size > 0);
}

#[test]
fn drafts_are_counted_by_place() {
    let engine = engine(cycle_script);
    generate(&engine, request(Speculation::all()));
    let stats = wait_until(&engine, |stats| stats.running == 0 && stats.requests == 1);
    assert!(stats.drafts > 0 && stats.accepted > 0, "{stats:?}");
    assert_eq!(stats.accepted_at.iter().sum::<u64>(), stats.accepted);
    assert!(stats.accepted_at.is_sorted_by(|first, then| first >= then));
    assert!(stats.accepted_at[0] <= stats.drafts);
    let fed = engine.meters().pass_tokens.sum() as u64;
    assert!(fed >= 8 + stats.drafted, "drafts are fed: {fed} {stats:?}");
}
