//! Learned drafts after a restart. Another process would have the same state numbers, so here another
//! compiler compiles other grammars first, and other threads read them.

use crate::rig::{EOS, WIDTH, letters, start, vocabulary, wait_until, wordy_script};
use crate::rig::{drafting, generate};
use lexiform::{Compiler, Options, Source};
use lexiform_engine::{DraftStores, Engine, EngineConfig, Learner, Request, Sampling, Speculation};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Fixed text and lists of words in which the place in the grammar says what comes, and the last tokens do
/// not.
const PATTERN: &str =
    "name (anna|bert|carl) role (chef|cook) name (dora|emil|finn) role (maid|mate) [a-z]{3,9}";
/// What is compiled by somebody else before.
const OTHERS: [&str; 3] = ["(ab|bc|the )*z?", "the [0-9] the [0-9]", "[a-z]{1,20}"];

/// Writes what the grammar allows, and likes some words better.
fn script(prefix: &[u32]) -> Vec<f32> {
    let mut row = wordy_script(&prefix[prefix.len().saturating_sub(2)..]);
    row.truncate(WIDTH);
    row[EOS as usize] = 9.0;
    row
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("lexiform-restarts-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn engine(folder: &Path, learner: Learner, mask_threads: usize) -> Engine {
    let config = EngineConfig {
        draft_stores: DraftStores {
            learners: vec![learner],
            folder: Some(folder.to_owned()),
            ..DraftStores::default()
        },
        mask_threads,
        // What is drafted must not depend on how busy the machine is.
        mask_grace: Duration::from_secs(60),
        ..drafting()
    };
    start(script, config)
}

/// Answers of these seeds with a grammar that is compiled behind others: the tokens of each, and how many of
/// them were drafted.
fn answers(engine: &Engine, seeds: std::ops::Range<u64>, others: &[&str]) -> Vec<(Vec<u32>, usize)> {
    let compiler = Compiler::new(vocabulary());
    let compiled = |pattern| {
        let compiled = compiler.compile(Source::Regex(pattern), &Options::default());
        compiled.expect("it compiles").0
    };
    for other in others {
        let other = compiled(other);
        other
            .step_bytes(other.start(), b"the")
            .map(|state| other.mask(state));
    }
    let grammar = compiled(PATTERN);
    let answer = |seed| {
        let request = Request::new(letters("x"), 80)
            .grammar(Some(grammar.clone()))
            .sampling(Sampling {
                temperature: 0.7,
                ..Sampling::seeded(seed)
            })
            .speculation(Speculation {
                learned: true,
                max_draft: 8,
                ..Speculation::none()
            });
        let requests = engine.stats().requests;
        let heard = generate(engine, request);
        wait_until(engine, |stats| stats.running == 0 && stats.requests > requests);
        (heard.tokens(), heard.outcome().accepted)
    };
    seeds.map(answer).collect()
}

/// Guards against rows that are kept under numbers of states, which are others in the next process, or not
/// kept at all.
#[test]
fn rows_are_found_again_after_a_restart() {
    for learner in [
        Learner::StateKeyed,
        Learner::Recycling,
        Learner::NGrams,
        Learner::Trigram,
    ] {
        let (one, other, empty) = (Folder::new("one"), Folder::new("other"), Folder::new("empty"));
        let staying = engine(&one.0, learner, 1);
        let taught = answers(&staying, 0..30, &[]);
        let without = answers(&staying, 100..120, &[]);

        let first = engine(&other.0, learner, 0);
        assert_eq!(answers(&first, 0..30, &OTHERS), taught);
        first.stop();
        let second = engine(&other.0, learner, 3);
        assert!(second.notices().is_empty(), "{:?}", second.notices());
        let with = answers(&second, 100..120, &OTHERS[1..]);
        assert_eq!(with, without, "{learner:?}");

        let new = answers(&engine(&empty.0, learner, 1), 100..120, &[]);
        let texts = |answers: &[(Vec<u32>, usize)]| -> Vec<Vec<u32>> {
            answers.iter().map(|(text, _)| text.clone()).collect()
        };
        assert_eq!(texts(&new), texts(&with));
        // Within an answer or two a new store knows most of what there is to know here.
        let accepted = |answers: &[(Vec<u32>, usize)]| answers[..2].iter().map(|it| it.1).sum::<usize>();
        let (new, with) = (accepted(&new), accepted(&with));
        assert!(
            new < with,
            "{learner:?}: {new} without what was kept, {with} with"
        );
    }
}

/// What nobody reads is said and left out; answers go on.
#[test]
fn rows_of_a_drafter_that_is_off_are_left_out_with_a_message() {
    let folder = Folder::new("off");
    let first = engine(&folder.0, Learner::Recycling, 1);
    answers(&first, 0..3, &[]);
    first.stop();
    let second = engine(&folder.0, Learner::StateKeyed, 1);
    let notices = second.notices().to_vec();
    assert!(
        notices.len() == 1 && notices[0].contains("`recycling 1`") && notices[0].contains("was left out"),
        "{notices:?}"
    );
    answers(&second, 3..6, &[]);
    second.stop();
    // It has taken the place of what was there.
    assert!(engine(&folder.0, Learner::StateKeyed, 1).notices().is_empty());
}
