//! Drafts save passes and change no token and no probability; if a draft model's tokens are verified by the
//! residual rule, they do not change the law.

use crate::rig::{
    EOS, Heard, PHRASE, WIDTH, cycle_script, drafting, engine, gated, generate, grammar, letters, listen,
    start, vocabulary, wait_until, wordy_script,
};
use lexiform_engine::{
    DraftStores, Draw, Engine, EngineConfig, EngineError, Feed, Flight, Learner, Model, Origin, Reporting,
    Request, Sampling, ScriptedModel, SlotMoves, Speculation, Stats, Verification, Worked,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) const PATTERNS: [&str; 5] = [
    "the quick (brown fox|[0-9]{2,5}) the quick [a-z]{3}",
    "(ab|bc|the )*z?",
    "[a-z]{1,20}",
    "the [0-9] the [0-9] the [0-9] the",
    "(th|he|the|quick){3,9}",
];

/// All sources, verified by drawing once.
fn drawing_once() -> Speculation {
    Speculation {
        verification: Verification::DrawOnce,
        ..Speculation::all()
    }
}

pub(crate) fn sources() -> [Speculation; 5] {
    let none = Speculation {
        verification: Verification::DrawOnce,
        ..Speculation::none()
    };
    let some = Speculation { max_draft: 5, ..none };
    [
        Speculation { forced: true, ..some },
        Speculation { lookup: true, ..some },
        Speculation { model: true, ..some },
        drawing_once(),
        Speculation {
            max_draft: 1,
            ..drawing_once()
        },
    ]
}

pub(crate) fn with_draft_model(
    draft: impl Fn(&[u32]) -> Vec<f32> + Send + 'static,
    config: EngineConfig,
) -> Engine {
    let model = |script| Box::new(ScriptedModel::new(WIDTH, 100_000, script));
    let draft = Box::new(ScriptedModel::new(WIDTH, 100_000, draft));
    Engine::start(model(wordy_script), Some(draft), vocabulary(), config).unwrap()
}

/// Close to [`wordy_script`], not equal to it.
pub(crate) fn nearly_wordy(prefix: &[u32]) -> Vec<f32> {
    let noise = wordy_script(&[prefix, &[1]].concat());
    wordy_script(prefix)
        .iter()
        .zip(noise)
        .map(|(logit, noise)| logit + 0.2 * noise)
        .collect()
}

pub(crate) fn compare(without: &Heard, with: &Heard, what: &str) {
    assert_eq!(
        without.tokens_without_origin(),
        with.tokens_without_origin(),
        "{what}"
    );
    let (without, with) = (without.outcome(), with.outcome());
    assert_eq!(without.log_probability, with.log_probability, "{what}");
    assert_eq!(without.log_weight, with.log_weight, "{what}");
    assert_eq!(
        (without.finish, without.completion_tokens),
        (with.finish, with.completion_tokens),
        "{what}"
    );
}

#[test]
fn no_source_changes_the_answer() {
    let plain = engine(wordy_script);
    let drafting = with_draft_model(nearly_wordy, drafting());
    for pattern in PATTERNS.map(Some).into_iter().chain([None]) {
        for seed in 0..4 {
            for temperature in [0.0, 0.3, 1.0] {
                let request = |speculation| {
                    Request::new(letters("the the "), 30)
                        .grammar(pattern.map(grammar))
                        .sampling(Sampling {
                            temperature,
                            top_p: 0.9,
                            frequency_penalty: 0.1,
                            repetition_penalty: 1.1,
                            ..Sampling::seeded(seed)
                        })
                        .speculation(speculation)
                        .reporting(Reporting {
                            logprobs: Some(2),
                            weigh_end: seed == 1,
                            ..Reporting::default()
                        })
                };
                let without = generate(&plain, request(Speculation::none()));
                for source in sources() {
                    let what = format!("{pattern:?}, seed {seed}, temperature {temperature}, {source:?}");
                    compare(&without, &generate(&drafting, request(source)), &what);
                }
            }
        }
    }
    let stats = wait_until(&drafting, |stats| stats.running == 0);
    assert!(stats.accepted > 0 && stats.accepted < stats.drafted && !stats.draft_model_failed);
    assert_eq!(stats.blocks_used, 0);
}

#[test]
fn forced_text_is_written_in_few_passes() {
    let engine = engine(wordy_script);
    let pattern = "the quick [0-9] the quick [0-9] the quick";
    let request = |speculation| {
        Request::new(letters("x"), 60)
            .grammar(Some(grammar(pattern)))
            .sampling(Sampling {
                temperature: 0.1,
                ..Sampling::seeded(2)
            })
            .speculation(speculation)
    };
    let passes = |engine: &Engine, done| {
        wait_until(engine, |stats| stats.requests == done && stats.running == 0).steps
    };
    let without = generate(&engine, request(Speculation::none()));
    let before = passes(&engine, 1);
    let with = generate(
        &engine,
        request(Speculation {
            forced: true,
            max_draft: 16,
            ..Speculation::none()
        }),
    );
    compare(&without, &with, "forced");
    assert!(passes(&engine, 2) - before < before, "{:?}", with.outcome());
    assert!(with.origins().contains(&Origin::Forced));
}

#[test]
fn a_draft_model_that_agrees_is_always_confirmed() {
    let drafting = with_draft_model(wordy_script, drafting());
    let request = Request::new(letters("the "), 41)
        .sampling(Sampling::seeded(4))
        .speculation(Speculation {
            model: true,
            max_draft: 4,
            ..Speculation::none()
        })
        .ignore_eos(true);
    let heard = generate(&drafting, request);
    let outcome = heard.outcome();
    assert_eq!(outcome.accepted, outcome.drafted);
    // One token of the prompt's pass, then nearly five a pass: end tokens are not drafted.
    assert!((28..=32).contains(&outcome.accepted), "{outcome:?}");
}

#[test]
fn the_draft_models_cache_is_given_back_and_may_be_full() {
    let config = EngineConfig {
        blocks: 24,
        block_size: 4,
        ..drafting()
    };
    let drafting = with_draft_model(nearly_wordy, config);
    let request = |seed| {
        Request::new(letters("the "), 40)
            .sampling(Sampling::seeded(seed))
            .speculation(Speculation {
                forced: false,
                lookup: false,
                max_draft: 4,
                ..drawing_once()
            })
            .ignore_eos(true)
    };
    let plain = engine(wordy_script);
    let listeners: Vec<_> = (0..8).map(|seed| listen(&drafting, request(seed))).collect();
    for (seed, listener) in (0..).zip(listeners) {
        let without = request(seed).speculation(Speculation::none());
        compare(&generate(&plain, without), &listener.wait(), "crowded");
    }
}

/// Fails at every pass.
pub(crate) struct Broken;

impl Model for Broken {
    fn vocab_size(&self) -> usize {
        WIDTH
    }
    fn max_positions(&self) -> usize {
        1000
    }
    fn cache_bytes_per_token(&self) -> usize {
        0
    }
    fn create_cache(&mut self, _blocks: usize, _block_size: usize) -> Result<(), EngineError> {
        Ok(())
    }
    fn submit(&mut self, _feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>, EngineError> {
        Err(EngineError::Model("broken".to_string()))
    }
    fn move_slots(&mut self, _moves: &[SlotMoves<'_>]) -> Result<(), EngineError> {
        Ok(())
    }
    fn copy_blocks(&mut self, _pairs: &[(u32, u32)]) -> Result<(), EngineError> {
        Ok(())
    }
}

#[test]
fn a_draft_model_that_fails_is_given_up() {
    let model = Box::new(ScriptedModel::new(WIDTH, 1000, cycle_script));
    let engine = Engine::start(model, Some(Box::new(Broken)), vocabulary(), drafting()).unwrap();
    let request = Request::new(letters("abc "), 12).speculation(Speculation::all());
    assert_eq!(generate(&engine, request).text(), "abc abc abc ");
    assert!(wait_until(&engine, |stats| stats.running == 0).draft_model_failed);
}

/// An engine whose passes cost what is said, and that drafts as far as that pays; the cost of all passes so
/// far.
fn counting(
    script: impl Fn(&[u32]) -> Vec<f32> + Send + 'static,
    draft: Option<Box<dyn Model>>,
    cost: impl Fn(Worked) -> u64 + Send + 'static,
) -> (Engine, Arc<AtomicU64>) {
    let spent = Arc::new(AtomicU64::new(0));
    let sum = spent.clone();
    let counted = move |worked| {
        sum.fetch_add(cost(worked), Ordering::AcqRel);
        Duration::from_micros(cost(worked))
    };
    let model = Box::new(ScriptedModel::new(WIDTH, 100_000, script));
    let config = EngineConfig::default();
    let engine = Engine::start_counted(model, draft, vocabulary(), config, Box::new(counted)).unwrap();
    (engine, spent)
}

/// What each token of a pass costs, beside the pass itself.
fn line(pass: u64, token: u64) -> impl Fn(Worked) -> u64 + Copy {
    move |worked| match worked {
        Worked::Pass { decoded, .. } => pass + token * decoded as u64,
        Worked::DraftPass(sequences) => (pass + token * sequences as u64) / 10,
    }
}

/// Writes what it has written before, mostly.
pub(crate) fn mostly_copied(prefix: &[u32]) -> Vec<f32> {
    let mut row = wordy_script(prefix);
    row.iter_mut().for_each(|logit| *logit *= 0.1);
    row[letters("abcdefgh")[prefix.len() % 8] as usize] = 6.0;
    row
}

pub(crate) fn looking_up(seed: u64, speculation: Speculation) -> Request {
    Request::new(letters(&"abcdefgh".repeat(4)), 400)
        .sampling(Sampling::seeded(seed))
        .speculation(speculation)
        .ignore_eos(true)
}

/// Guards against drafts where they lose, and against their absence where they win.
#[test]
fn drafts_are_fed_where_they_pay() {
    let lookup = Speculation {
        lookup: true,
        max_draft: 8,
        ..Speculation::none()
    };
    for (answers, (pass, token), pays) in [
        (1, (100, 1), true),
        (8, (1000, 1), true),
        (1, (0, 100), false),
        (8, (0, 100), false),
        (32, (100, 100), false),
    ] {
        let cost = |speculation| {
            let (all_are_there, script) = gated(mostly_copied);
            let (engine, spent) = counting(script, None, line(pass, token));
            let heard: Vec<_> = (0..answers)
                .map(|seed| listen(&engine, looking_up(seed, speculation)))
                .collect();
            all_are_there.store(true, Ordering::Release);
            let texts: Vec<_> = heard.into_iter().map(|heard| heard.wait().tokens()).collect();
            engine.stop();
            (spent.load(Ordering::Acquire) as f64, texts)
        };
        let (without, texts) = cost(Speculation::none());
        let (with, drafted) = cost(lookup);
        assert_eq!(texts, drafted);
        let what = format!("{answers} answers, {pass} and {token}: {with} and {without}");
        match pays {
            true => assert!(with < 0.7 * without, "{what}"),
            // With the passes that are spent on finding out.
            false => assert!(with < 1.04 * without, "{what}"),
        }
    }
}

/// Guards against a text that depends on how many drafts a pass may have: the costs change all the time, so
/// the drafts do.
#[test]
fn the_text_of_a_seed_does_not_depend_on_what_pays() {
    let passes = AtomicU64::new(0);
    let erratic = move |worked| {
        let pass = passes.fetch_add(1, Ordering::AcqRel);
        let each = [1, 1000][(pass / 7 % 2) as usize];
        line(300, each)(worked)
    };
    let draft = Box::new(ScriptedModel::new(WIDTH, 100_000, nearly_wordy));
    let (engine, _) = counting(wordy_script, Some(draft), erratic);
    let plain = self::engine(wordy_script);
    for pattern in PATTERNS.map(Some).into_iter().chain([None]) {
        for seed in 0..6 {
            for source in sources() {
                let request = |speculation| {
                    Request::new(letters("the the "), 30)
                        .grammar(pattern.map(grammar))
                        .sampling(Sampling {
                            temperature: 0.3,
                            ..Sampling::seeded(seed)
                        })
                        .speculation(speculation)
                        .reference(letters("the quick fox the 123 the"))
                };
                let without = generate(&plain, request(Speculation::none()));
                let with = generate(&engine, request(source));
                compare(&without, &with, &format!("{pattern:?}, {seed}, {source:?}"));
            }
        }
    }
    let stats = wait_until(&engine, |stats| stats.running == 0);
    assert!(stats.accepted > 0 && stats.drafted > stats.accepted);
}

/// A draft model is not asked where its passes cost more than they save.
#[test]
fn a_draft_model_drafts_where_it_pays() {
    let drafted = |pass: u64| {
        let cost = move |worked| match worked {
            Worked::Pass { .. } => 1000,
            Worked::DraftPass(_) => pass,
        };
        let draft = Box::new(ScriptedModel::new(WIDTH, 100_000, wordy_script));
        let (engine, _) = counting(wordy_script, Some(draft), cost);
        let request = Request::new(letters("the "), 400)
            .sampling(Sampling::seeded(4))
            .speculation(Speculation {
                model: true,
                max_draft: 4,
                ..Speculation::none()
            })
            .ignore_eos(true);
        let outcome = generate(&engine, request).outcome().clone();
        engine.stop();
        outcome.drafted
    };
    let (cheap, dear) = (drafted(100), drafted(2000));
    assert!(cheap > 250, "{cheap} at a tenth of a pass");
    assert!(dear < 40, "{dear} at two passes");
}

/// The answer repeats a text that the prompt does not have, and says which of its tokens came from there.
#[test]
fn a_reference_is_drafted_from() {
    let text = letters(&PHRASE.repeat(2));
    let wanted = text.clone();
    let script = move |prefix: &[u32]| {
        let mut row = vec![0.0; WIDTH];
        row[wanted.get(prefix.len() - 1).copied().unwrap_or(EOS) as usize] = 9.0;
        row
    };
    let engine = engine(script);
    let request = |reference| // What the first answer taught would be drafted, too.
        Request::new(letters("x"), 100).speculation(Speculation {
            learned: false,
            ..Speculation::all()
        }).reference(reference);
    let mut edited = text.clone();
    edited[30] = letters("z")[0];
    let without = generate(&engine, request(Vec::new()));
    let with = generate(&engine, request(edited));
    assert_eq!(without.tokens(), text);
    assert_eq!(with.tokens(), text);
    let (without, with) = (without.outcome(), with.outcome());
    assert_eq!(
        (without.accepted_predictions, without.rejected_predictions),
        (0, 0)
    );
    assert!(
        with.accepted_predictions > 60 && with.rejected_predictions > 0,
        "{with:?}"
    );
    assert!(with.accepted_predictions <= with.accepted && with.accepted > without.accepted);
}

/// Drafts that are trees save passes and change nothing: a token that any branch has is confirmed by the one
/// draw, and its keys and values are moved to where the text goes on.
#[test]
fn trees_of_drafts_change_no_text() {
    // The model goes on after "ab" in three ways, by what stands before.
    let script = |prefix: &[u32]| {
        let mut row = wordy_script(prefix);
        row.iter_mut().for_each(|logit| *logit *= 0.05);
        let ways = ["abcab", "abxyab", "abq ab"].map(letters);
        let way = &ways[prefix.len() / 5 % 3];
        row[way[prefix.len() % way.len()] as usize] = 6.0;
        row
    };
    let config = |block_size, max_step_tokens| EngineConfig {
        block_size,
        max_step_tokens,
        ..drafting()
    };
    let (mut confirmed, mut in_branches) = (0, 0);
    for (number, (block_size, max_step_tokens)) in
        [(16, 512), (3, 512), (1, 30), (5, 7)].into_iter().enumerate()
    {
        let engine = start(script, config(block_size, max_step_tokens));
        for seed in 0..12 {
            for pattern in [None, Some("[a-z ]{10,80}"), Some("(ab[cxq][ya-z ]?){3,20}")] {
                let request = |branches| {
                    Request::new(letters("abcabxyabq abcabxyabq ab"), 60)
                        .task(Draw {
                            answers: 1,
                            ..Draw::default()
                        })
                        .grammar(pattern.map(grammar))
                        .sampling(if seed == 0 {
                            Sampling::default()
                        } else {
                            Sampling::seeded(seed)
                        })
                        .speculation(Speculation {
                            forced: branches > 0,
                            lookup: branches > 0,
                            max_draft: 9 * usize::from(branches > 0),
                            branches,
                            ..Speculation::none()
                        })
                        .reporting(Reporting {
                            logprobs: Some(2),
                            ..Reporting::default()
                        })
                };
                let without = generate(&engine, request(0));
                let chain = generate(&engine, request(1));
                let tree = generate(&engine, request(3));
                let what = format!("engine {number}, seed {seed}, {pattern:?}");
                assert_eq!(
                    without.tokens_without_origin(),
                    chain.tokens_without_origin(),
                    "{what}"
                );
                assert_eq!(
                    without.tokens_without_origin(),
                    tree.tokens_without_origin(),
                    "{what}"
                );
                let (plain, drafted) = (without.outcome(), tree.outcome());
                assert_eq!(plain.log_probability, drafted.log_probability, "{what}");
                assert_eq!(plain.log_weight, drafted.log_weight, "{what}");
                confirmed += chain.outcome().accepted;
                in_branches += drafted.accepted;
            }
        }
        wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
    }
    assert!(in_branches > 0 && confirmed > 0, "{in_branches} and {confirmed}");
}

/// What one answer wrote is drafted in the next one of the same owner, and of nobody else; the text of a seed
/// is the same.
#[test]
fn earlier_answers_are_drafted_from() {
    let text = letters("abcdefghijklmnopqrstuvwxyz");
    let wanted = text.clone();
    let script = move |prefix: &[u32]| {
        let mut row = vec![0.0; WIDTH];
        row[wanted.get(prefix.len() - 1).copied().unwrap_or(EOS) as usize] = 9.0;
        row
    };
    let engine = engine(script);
    let request = |owner: &str| {
        Request::new(letters("x"), 100)
            .speculation(Speculation {
                learned: true,
                max_draft: 16,
                ..Speculation::none()
            })
            .owner(Some(owner.into()))
    };
    let passes = |owner| {
        let Stats {
            steps: before,
            generated,
            ..
        } = engine.stats();
        let heard = generate(&engine, request(owner));
        assert_eq!(heard.tokens(), text);
        // The last pass is counted after its answer is told.
        let after = wait_until(&engine, |stats| stats.running == 0 && stats.generated > generated);
        (after.steps - before, heard.outcome().accepted)
    };
    let (first, accepted) = passes("one");
    assert_eq!((first, accepted), (27, 0));
    let (second, accepted) = passes("one");
    assert!(
        second < 8 && accepted > 20,
        "{second} passes, {accepted} accepted"
    );
    assert_eq!(passes("other"), (27, 0));
    assert!(engine.stats().draft_store_bytes > 0);
    let unlearned = request("one").speculation(Speculation::none());
    assert_eq!(generate(&engine, unlearned).outcome().drafted, 0);
}

/// Guards against answers that are dropped before anything is learned of them: suffixes learn of whole
/// answers alone.
#[test]
fn an_answer_that_came_before_is_drafted_as_a_whole() {
    let config = EngineConfig {
        draft_stores: DraftStores {
            learners: vec![Learner::Suffixes],
            ..DraftStores::default()
        },
        ..drafting()
    };
    let engine = start(cycle_script, config);
    let request = || {
        Request::new(letters("abc"), 40).speculation(Speculation {
            learned: true,
            max_draft: 8,
            ..Speculation::none()
        })
    };
    let first = generate(&engine, request());
    assert_eq!(first.outcome().accepted, 0);
    wait_until(&engine, |stats| stats.draft_store_bytes > 0);
    let again = generate(&engine, request());
    assert_eq!(again.tokens(), first.tokens());
    assert!(again.outcome().accepted >= 20, "{:?}", again.outcome());
}
