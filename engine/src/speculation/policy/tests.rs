//! Decisions under known costs.

use super::*;

/// Returns candidate drafts of one sequence, each of whose tokens has the probability `share` after the
/// previous one.
fn candidates(of: usize, share: f64, count: i32) -> Vec<CandidateDraft> {
    let candidate = |power| CandidateDraft {
        chance: share.powi(power),
        round: 0,
        begins: false,
        is_due: false,
        of,
        node: power as usize - 1,
    };
    (1..=count).map(candidate).collect()
}

/// Returns a pass without drafts.
fn plain(tokens: usize) -> Base {
    Base {
        tokens,
        drawing: tokens,
        prompts: 0,
    }
}

fn micros(cost: f64) -> Duration {
    Duration::from_nanos((1e3 * cost) as u64)
}

/// Returns a policy that knows the cost of passes, in microseconds, and has nothing left to spend on trials.
fn knowing(cost: impl Fn(usize) -> f64) -> Policy {
    let mut policy = Policy::new(Drafting::Measured);
    for _ in 0..300 {
        for tokens in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128] {
            policy.passed(plain(tokens), micros(cost(tokens)));
        }
    }
    policy.trials.alone.saved = Some(0.0);
    policy
}

fn choose(policy: &mut Policy, drawing: usize, candidates: &mut [CandidateDraft]) -> usize {
    policy.choose(plain(drawing), candidates)
}

/// Returns the greatest goodput of any number of candidate drafts, by the definition.
fn oracle(cost: impl Fn(usize) -> f64, drawing: usize, candidates: &[CandidateDraft]) -> f64 {
    let rate = |taken: usize| {
        let gain: f64 = candidates[..taken].iter().map(|candidate| candidate.chance).sum();
        (drawing as f64 + gain) / cost(drawing + taken)
    };
    (0..=candidates.len()).map(rate).fold(0.0, f64::max)
}

#[test]
fn what_is_chosen_brings_nearly_the_most_tokens_a_second() {
    let flat = |_: usize| 1000.0;
    let line = |tokens: usize| 1000.0 + 40.0 * tokens as f64;
    let jump = |tokens: usize| {
        if tokens == 1 {
            1200.0
        } else {
            4000.0 + 100.0 * tokens as f64
        }
    };
    let whole = |tokens: usize| 100.0 * tokens as f64;
    let costs: [&dyn Fn(usize) -> f64; 4] = [&flat, &line, &jump, &whole];
    for cost in costs {
        for drawing in [1, 8, 32] {
            for share in [0.05, 0.3, 0.7, 0.95] {
                let mut candidates: Vec<CandidateDraft> =
                    (0..drawing).flat_map(|of| candidates(of, share, 8)).collect();
                let mut policy = knowing(cost);
                let chosen = choose(&mut policy, drawing, &mut candidates);
                let gain: f64 = candidates[..chosen]
                    .iter()
                    .map(|candidate| candidate.chance)
                    .sum();
                let rate = (drawing as f64 + gain) / cost(drawing + chosen);
                let best = oracle(cost, drawing, &candidates);
                assert!(
                    rate > 0.95 * best,
                    "{drawing}, {share}: {chosen}, {rate} of {best}"
                );
            }
        }
    }
}

#[test]
fn drafts_are_off_where_each_token_costs_as_much_and_all_are_taken_where_tokens_are_free() {
    let mut dear = knowing(|tokens| 100.0 * tokens as f64);
    assert_eq!(choose(&mut dear, 8, &mut candidates(0, 0.9, 8)), 0);
    let mut free = knowing(|_| 100.0);
    assert_eq!(choose(&mut free, 8, &mut candidates(0, 0.9, 8)), 8);
    // One draft does not pay for the jump, eight do.
    let jump = |tokens: usize| if tokens == 1 { 1200.0 } else { 4000.0 };
    assert_eq!(choose(&mut knowing(jump), 1, &mut candidates(0, 0.97, 1)), 0);
    assert_eq!(choose(&mut knowing(jump), 1, &mut candidates(0, 0.97, 8)), 8);
}

#[test]
fn what_is_due_is_taken_and_comes_first() {
    let mut policy = knowing(|tokens| 100.0 * tokens as f64);
    let mut candidates = candidates(0, 0.9, 4);
    (candidates[2].is_due, candidates[3].is_due) = (true, true);
    assert_eq!(choose(&mut policy, 8, &mut candidates), 2);
    assert!(candidates[0].is_due && candidates[1].is_due);
}

#[test]
fn passes_of_the_draft_model_are_paid_for() {
    let mut policy = knowing(|_| 100.0);
    let mut in_rounds = candidates(0, 0.5, 4);
    in_rounds
        .iter_mut()
        .zip(1..)
        .for_each(|(candidate, round)| candidate.round = round);
    policy.drafted((10, 0), Duration::from_micros(10));
    assert_eq!(choose(&mut policy, 1, &mut in_rounds.clone()), 4);
    policy.drafted((1000, 0), Duration::from_millis(200));
    (0..200).for_each(|_| policy.drafted((1, 0), Duration::from_micros(200)));
    assert_eq!(choose(&mut policy, 1, &mut in_rounds), 0);
}

/// Guards against spreading the cost of a long prompt, which the draft model reads once for each text, over
/// passes that need no reading.
#[test]
fn what_it_takes_to_read_a_text_is_paid_for_by_those_who_begin() {
    let mut policy = knowing(|_| 100.0);
    policy.drafted((1, 1), Duration::from_millis(30));
    (0..100).for_each(|_| policy.drafted((1, 0), Duration::from_micros(2)));
    let mut in_rounds = candidates(0, 0.9, 4);
    let rounds = in_rounds.iter_mut().zip(1..);
    rounds.for_each(|(candidate, round)| candidate.round = round);
    assert_eq!(choose(&mut policy, 1, &mut in_rounds.clone()), 4);
    in_rounds[0].begins = true;
    assert_eq!(choose(&mut policy, 1, &mut in_rounds), 0);
}

/// Lets a policy decide about candidate drafts that come true `share` of the time, where each token of a pass
/// costs `each` microseconds in addition to `fixed`. Returns the microseconds per token, and the number of
/// drafts fed.
fn live(policy: &mut Policy, passes: usize, (fixed, each): (f64, f64), share: f64) -> (f64, usize) {
    let (mut spent, mut tokens, mut fed) = (0.0, 0.0, 0);
    for _ in 0..passes {
        let mut candidates = candidates(0, share, 4);
        let taken = choose(policy, 4, &mut candidates);
        let cost = fixed + each * (4 + taken) as f64;
        let pass = Base {
            tokens: 4 + taken,
            ..plain(4)
        };
        policy.passed(pass, micros(cost));
        spent += cost;
        tokens += 4.0
            + candidates[..taken]
                .iter()
                .map(|candidate| candidate.chance)
                .sum::<f64>();
        fed += taken;
    }
    (spent / tokens, fed)
}

/// Guards against drafts that continue where they do not pay, and against exploration that costs more than it
/// may.
#[test]
fn trials_cost_less_than_one_in_a_hundred() {
    for (fixed, each) in [(0.0, 100.0), (400.0, 100.0), (1000.0, 50.0)] {
        let mut policy = Policy::new(Drafting::Measured);
        // The start has some extra passes.
        live(&mut policy, 200, (fixed, each), 0.01);
        let (cost, fed) = live(&mut policy, 20_000, (fixed, each), 0.01);
        let without = (fixed + 4.0 * each) / 4.0;
        assert!(cost < 1.01 * without, "{cost} and {without}");
        assert!(fed > 0, "nothing is tried");
    }
}

/// Guards against a policy that, once it has turned drafts down, never notices that they have begun to pay.
#[test]
fn drafts_come_back_when_tokens_become_cheap() {
    let mut policy = Policy::new(Drafting::Measured);
    live(&mut policy, 3000, (0.0, 100.0), 0.9);
    let (_, fed) = live(&mut policy, 1000, (0.0, 100.0), 0.9);
    assert!(fed < 200, "{fed} drafts that lose");
    // The same cost in total as before, and none per token.
    live(&mut policy, 3000, (400.0, 0.0), 0.9);
    let (_, fed) = live(&mut policy, 100, (400.0, 0.0), 0.9);
    assert!(fed > 250, "{fed} drafts of 400 that win");
}

/// Guards against copies that are recognised as continued only where they were fed.
#[test]
fn a_guess_that_was_right_goes_on() {
    let (mut record, policy) = (Record::default(), Policy::new(Drafting::Measured));
    let chance = |record: &Record| policy.candidates(0, &[copied()], record)[0].chance;
    let new = chance(&record);
    record.guessed(true);
    record.verified(&[], &[]);
    let running = chance(&record);
    assert!(running > new + 0.1, "{running} and {new}");
    record.guessed(false);
    assert!(chance(&record) < running);
}

/// Guards against tokens of stores that are taken to be as likely beside a copy that runs as without it, and
/// against stores that are distrusted because copies were right.
#[test]
fn beside_a_copy_that_runs_a_store_has_little_chance() {
    use crate::speculation::draft::{Confidence, Source};
    let learned = Draft {
        source: Source::Learned(lexiform_law::draft::Origin::Recycled, Confidence::of(Some(0.4))),
        ..copied()
    };
    let (mut record, mut records) = (Record::default(), Records::default());
    let alone = records.chances(&record, std::slice::from_ref(&learned))[0];
    assert!(alone > 0.2, "{alone}");
    let both = [copied(), learned.clone()];
    for _ in 0..200 {
        record.verified(&both, &[0]);
        records.hear(&mut record);
    }
    let beside = records.chances(&record, &both);
    assert!(beside[0] > 0.9 && beside[0] + beside[1] < 1.0, "{beside:?}");
    assert!(beside[1] < 0.1, "{beside:?}");
    let after = records.chances(&record, &[learned])[0];
    assert!((after - alone).abs() < 1e-9, "{after} in place of {alone}");
}

/// Guards against copies that begin small again because what a store had added to their end was refused, and
/// against runs that go on after a refused copy.
#[test]
fn what_a_store_adds_to_a_copy_does_not_end_it() {
    use crate::speculation::draft::{Confidence, Source};
    let below = |parent, source| Draft {
        parent,
        source,
        ..copied()
    };
    let learned = Source::Learned(lexiform_law::draft::Origin::Recycled, Confidence::of(None));
    let drafts = [
        below(None, Source::Predicted),
        below(Some(0), Source::Predicted),
        below(Some(1), learned),
        below(Some(0), learned),
    ];
    let copied_after = |accepted: &[usize]| {
        let mut record = Record::default();
        record.verified(&drafts, accepted);
        record.verified(&[], &[]);
        record.copied()
    };
    assert_eq!(copied_after(&[0, 1]), 2, "the store was wrong");
    assert_eq!(copied_after(&[0, 1, 2]), 3, "the store was right");
    assert_eq!(copied_after(&[0]), 0, "the copy was wrong");
    assert_eq!(
        copied_after(&[0, 3]),
        0,
        "the copy was wrong, and the store right"
    );
    assert_eq!(copied_after(&[]), 0);
}

fn copied() -> Draft {
    Draft {
        token: 0,
        parent: None,
        source: crate::speculation::draft::Source::Copied,
        state: None,
        proposal: lexiform_law::draft::Proposal::Point,
        is_last: false,
    }
}

/// Guards against giving room to a descendant of a sampled token instead of to its sibling: whether the
/// sibling is judged would then depend on the token, because a token that ends the text has no descendants.
#[test]
fn sampled_drafts_are_bet_on_in_the_order_in_which_they_were_drawn() {
    let row = lexiform_law::Distribution::new(&[0.0, 0.0]).expect("a row");
    let row = std::sync::Arc::new(crate::speculation::row::DraftRow::Model(row.into_owned()));
    let drafts = |proposal: lexiform_law::draft::Proposal<crate::speculation::row::DraftRow>| -> Vec<Draft> {
        let draft = |node: usize| Draft {
            parent: (node >= 3).then_some(0),
            source: crate::speculation::draft::Source::Model,
            proposal: proposal.clone(),
            ..copied()
        };
        (0..6).map(draft).collect()
    };
    let policy = Policy::new(Drafting::Measured);
    let falls = |drafts: &[Draft]| {
        let candidates = policy.candidates(0, drafts, &Record::default());
        candidates.is_sorted_by(|one, other| one.chance >= other.chance)
    };
    assert!(falls(&drafts(lexiform_law::draft::Proposal::Independent(row))));
    assert!(!falls(&drafts(lexiform_law::draft::Proposal::Point)));
}

/// Guards against a cost that goes unnoticed because it falls on the next pass.
#[test]
fn what_drafts_cost_the_next_pass_is_counted_as_theirs() {
    let fed = |after: f64| {
        let mut policy = Policy::new(Drafting::Measured);
        let (mut fed, mut had_drafts) = (0, false);
        for pass in 0..4000 {
            // There are drafts in every other pass.
            let mut candidates = candidates(0, 0.9, 2 * (pass % 2));
            let taken = choose(&mut policy, 4, &mut candidates);
            let cost = 1000.0 + 20.0 * taken as f64 + if had_drafts { after } else { 0.0 };
            had_drafts = taken > 0;
            let pass = Base {
                tokens: 4 + taken,
                ..plain(4)
            };
            policy.passed(pass, micros(cost));
            fed += taken;
        }
        fed
    };
    assert!(fed(0.0) > 3600, "{}", fed(0.0));
    assert!(fed(800.0) < 200, "{}", fed(800.0));
}

/// Drafts are left out only if they could not pay: where no number of drafts of a chance is chosen, they are
/// not worth finding, and where some are, they are.
#[test]
fn what_is_not_worth_finding_would_not_be_fed() {
    let costs: [&dyn Fn(usize) -> f64; 3] = [
        &|tokens| 1000.0 + 40.0 * tokens as f64,
        &|tokens| if tokens == 1 { 1200.0 } else { 4000.0 },
        &|tokens| 100.0 * tokens as f64,
    ];
    for cost in costs {
        for drawing in [1, 8, 32] {
            let mut policy = knowing(cost);
            policy.last = plain(drawing);
            policy.passes = 1;
            let least = policy.least_chance();
            let mut unlikely: Vec<CandidateDraft> = (0..drawing)
                .flat_map(|of| candidates(of, 1.0, 2))
                .map(|candidate| CandidateDraft {
                    chance: 0.9 * least,
                    ..candidate
                })
                .collect();
            assert_eq!(
                choose(&mut policy, drawing, &mut unlikely),
                0,
                "{drawing}, {least}"
            );
            for chance in (1..=20).map(|twentieth| f64::from(twentieth) / 20.0) {
                let candidate = |candidate| CandidateDraft { chance, ..candidate };
                let mut alike: Vec<CandidateDraft> = (0..drawing)
                    .flat_map(|of| candidates(of, 1.0, 8))
                    .map(candidate)
                    .collect();
                let chosen = choose(&mut policy, drawing, &mut alike);
                assert!(
                    chosen == 0 || chance >= least,
                    "{drawing}: {chosen} of {chance}, and {least}"
                );
            }
        }
    }
    assert_eq!(Policy::new(Drafting::Measured).least_chance(), 0.0);
    let mut now_and_then = knowing(|tokens| 100.0 * tokens as f64);
    (now_and_then.last, now_and_then.passes) = (plain(8), 64);
    assert_eq!(now_and_then.least_chance(), 0.0);
}

/// The microseconds of a pass by its decoded tokens.
type Cost<'a> = &'a dyn Fn(usize) -> f64;

const FLAT: Cost<'_> = &|_| 1000.0;
const LINE: Cost<'_> = &|tokens| 1000.0 + 40.0 * tokens as f64;
const JUMP: Cost<'_> = &|tokens| {
    if tokens == 1 {
        1200.0
    } else {
        4000.0 + 100.0 * tokens as f64
    }
};
const WHOLE: Cost<'_> = &|tokens| 100.0 * tokens as f64;

/// The prompts that passes also read, and what the policy learns of them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Traffic {
    WithoutPrompts,
    /// A prompt in each pass, of lengths without a pattern.
    WithPrompts,
    /// A prompt in each pass that the policy does not know of: it charges prompts to drafts.
    Hidden,
}

/// The microseconds of each prompt token.
const OF_PROMPT: f64 = 30.0;

/// Returns how many of eight drafts for each sequence a policy feeds after more than a thousand passes, and
/// the goodput as a fraction of the best possible one, prompts aside.
fn settled(cost: Cost<'_>, (drawing, share): (usize, f64), traffic: Traffic) -> (usize, f64) {
    let mut policy = Policy::new(Drafting::Measured);
    let mut candidates: Vec<CandidateDraft> = (0..drawing).flat_map(|of| candidates(of, share, 8)).collect();
    let of = |pass: usize| 1 + pass.wrapping_mul(0x9e37_79b9) % 499;
    for pass in 0..1500 {
        let prompts = if traffic == Traffic::WithoutPrompts {
            0
        } else {
            of(pass)
        };
        let told = if traffic == Traffic::WithPrompts {
            prompts
        } else {
            0
        };
        let base = Base {
            prompts: told,
            ..plain(drawing)
        };
        let tokens = drawing + policy.choose(base, &mut candidates);
        let took = cost(tokens) + OF_PROMPT * prompts as f64;
        policy.passed(Base { tokens, ..base }, micros(took));
    }
    (policy.trials.alone.saved, policy.trials.beside.saved) = (Some(0.0), Some(0.0));
    let prompts = usize::from(traffic == Traffic::WithPrompts);
    let taken = policy.choose(
        Base {
            prompts,
            ..plain(drawing)
        },
        &mut candidates,
    );
    let gain: f64 = candidates[..taken].iter().map(|candidate| candidate.chance).sum();
    let rate = (drawing as f64 + gain) / cost(drawing + taken);
    (taken, rate / oracle(cost, drawing, &candidates))
}

/// Guards against a policy that learns nothing while prompts are read, which with many answers is nearly
/// always, and against one that counts the time of prompts as that of drafts or as a fixed cost: the former
/// would feed no drafts, and the latter all.
#[test]
fn a_prompt_in_every_pass_changes_no_choice() {
    let mut misled = 0;
    for cost in [FLAT, LINE, JUMP, WHOLE] {
        for (drawing, share) in [(1, 0.3), (1, 0.95), (8, 0.05), (8, 0.7), (64, 0.3), (64, 0.9)] {
            let of = |traffic| settled(cost, (drawing, share), traffic);
            let (without, with, hidden) = (
                of(Traffic::WithoutPrompts),
                of(Traffic::WithPrompts),
                of(Traffic::Hidden),
            );
            let what = format!("{drawing}, {share}: {without:?} without, {with:?} with");
            assert!(without.1 > 0.94 && with.1 > 0.94, "{what}");
            assert_eq!(with.0 == 0, without.0 == 0, "{what}");
            misled += usize::from(hidden.1 < 0.94);
        }
    }
    assert!(
        misled >= 4,
        "prompts that nobody speaks of mislead {misled} of 24"
    );
}

/// Passes with prompts do not cost the same as those without: where prompts fill what a GPU computes at once,
/// drafts have a cost that are free without prompts.
#[test]
fn passes_with_prompts_have_costs_of_their_own() {
    let mut policy = Policy::new(Drafting::Measured);
    let cost = |tokens: usize| (10.0 * tokens as f64).max(1000.0);
    for pass in 0..3000 {
        for prompts in [0, 100 + pass * 37 % 300] {
            let base = Base { prompts, ..plain(8) };
            let tokens = 8 + policy.choose(base, &mut candidates(0, 0.2, 8));
            policy.passed(Base { tokens, ..base }, micros(cost(tokens + prompts)));
        }
    }
    (policy.trials.alone.saved, policy.trials.beside.saved) = (Some(0.0), Some(0.0));
    assert_eq!(policy.choose(plain(8), &mut candidates(0, 0.95, 8)), 8);
    let beside = Base {
        prompts: 200,
        ..plain(8)
    };
    assert_eq!(policy.choose(beside, &mut candidates(0, 0.95, 8)), 0);
    let seconds = |drafts| policy.cost(beside, drafts).expect("it was seen");
    let each = (seconds(8) - seconds(0)) / 8.0 / 1e-6;
    assert!((7.0..13.0).contains(&each), "{each} us for a draft");
}
