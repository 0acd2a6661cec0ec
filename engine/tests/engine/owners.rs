//! What the requests of one owner leave in the engine tells another owner nothing: whatever is counted about
//! a request is the same as if nobody had come before.

use crate::rig::{WIDTH, drafting, generate, grammar, letters, vocabulary, wait_until, wordy_script};
use lexiform_engine::{
    AmateurRows, Contrast, ContrastWith, DraftStores, Engine, EngineConfig, EngineError, Fallback, Feed,
    Flight, Law, Model, Request, Sampling, ScriptedModel, SlotMoves, Speculation,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A model that counts the tokens that it reads.
struct Reading {
    model: ScriptedModel,
    tokens: Arc<AtomicU64>,
}

impl Model for Reading {
    fn vocab_size(&self) -> usize {
        self.model.vocab_size()
    }

    fn max_positions(&self) -> usize {
        self.model.max_positions()
    }

    fn cache_bytes_per_token(&self) -> usize {
        0
    }

    fn create_cache(&mut self, blocks: usize, block_size: usize) -> Result<(), EngineError> {
        self.model.create_cache(blocks, block_size)
    }

    fn submit(&mut self, feeds: &[Feed<'_>]) -> Result<Box<dyn Flight>, EngineError> {
        let tokens: usize = feeds.iter().map(|feed| feed.tokens.len()).sum();
        self.tokens.fetch_add(tokens as u64, Ordering::AcqRel);
        self.model.submit(feeds)
    }

    fn move_slots(&mut self, moves: &[SlotMoves<'_>]) -> Result<(), EngineError> {
        self.model.move_slots(moves)
    }

    fn copy_blocks(&mut self, pairs: &[(u32, u32)]) -> Result<(), EngineError> {
        self.model.copy_blocks(pairs)
    }
}

/// Everything that can be counted about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    cached: usize,
    attempts: usize,
    drafted: usize,
    accepted: usize,
    /// The tokens that the model and the draft model read.
    read: [u64; 2],
}

/// An engine with a draft model, both of which count.
struct Watched {
    engine: Engine,
    read: [Arc<AtomicU64>; 2],
}

impl Watched {
    fn new(shared: bool) -> Self {
        let read = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let model = |number: usize| -> Box<dyn Model> {
            Box::new(Reading {
                model: ScriptedModel::new(WIDTH, 10_000, wordy_script),
                tokens: read[number].clone(),
            })
        };
        let config = EngineConfig {
            share_prompts: shared,
            draft_stores: DraftStores {
                shared,
                ..DraftStores::default()
            },
            // The decode thread computes the masks, so that none is late.
            mask_threads: 0,
            ..drafting()
        };
        let engine = Engine::start(model(0), Some(model(1)), vocabulary(), config).unwrap();
        Watched { engine, read }
    }

    fn count(&self, request: &Request, owner: &str, salt: Option<&str>) -> Counts {
        let read = || [0, 1].map(|number: usize| self.read[number].load(Ordering::Acquire));
        let before = read();
        let request = request
            .clone()
            .owner(Some(owner.into()))
            .cache_salt(salt.map(Into::into));
        let heard = generate(&self.engine, request);
        let outcome = heard.outcome();
        // What the answer leaves is there when the next command is heard.
        wait_until(&self.engine, |stats| stats.running == 0 && stats.blocks_used == 0);
        let after = read();
        Counts {
            cached: outcome.cached_tokens,
            attempts: outcome.attempts,
            drafted: outcome.drafted,
            accepted: outcome.accepted,
            read: [0, 1].map(|number| after[number] - before[number]),
        }
    }
}

/// Requests that fill the caches, one kind each.
fn requests() -> [(&'static str, Request); 5] {
    let prompt = "the quick brown fox jumps over the lazy dog and on";
    let plain = || Request::new(letters(prompt), 24).sampling(Sampling::seeded(7));
    let contrast = ContrastWith {
        amateur: AmateurRows::Prompt(letters(
            "a prompt of another that has more than a block of tokens",
        )),
        contrast: Contrast::beyond(0.0, 0.5),
    };
    let contrasted = Sampling {
        contrast: Some(contrast),
        ..Sampling::seeded(7)
    };
    let drafted = |model, learned| Speculation {
        model,
        learned,
        max_draft: 16,
        ..Speculation::none()
    };
    let attempts = Law::Global {
        share_attempts: true,
        max_attempts: 100_000,
        fallback: Fallback::Fail,
    };
    [
        ("a prompt", plain()),
        ("the prompt of a contrast", plain().sampling(contrasted)),
        ("the draft model", plain().speculation(drafted(true, false))),
        ("drafts", plain().speculation(drafted(false, true))),
        (
            "attempts",
            plain().grammar(grammar("[a-m]{5}")).max_tokens(6).task(attempts),
        ),
    ]
}

/// Returns `true` if a request found what an earlier one of its kind left.
fn is_used(kind: &str, alone: &Counts, again: &Counts) -> bool {
    // A whole block of each of the texts.
    let spared = |model: usize, tokens| again.read[model] + tokens <= alone.read[model];
    match kind {
        "the prompt of a contrast" => spared(0, 90),
        "the draft model" => spared(1, 40),
        "drafts" => again.accepted > alone.accepted,
        "attempts" => again.attempts < alone.attempts,
        _ => again.cached > alone.cached && spared(0, 40),
    }
}

/// Guards against a cache that owners share: a prompt of another owner can be read from it a block at a time.
#[test]
fn nothing_counted_tells_what_another_owner_asked() {
    for (kind, request) in requests() {
        let alone = Watched::new(false).count(&request, "second", None);
        let service = Watched::new(false);
        assert_eq!(service.count(&request, "first", None), alone, "{kind}");
        let again = service.count(&request, "first", None);
        assert!(is_used(kind, &alone, &again), "{kind}: {alone:?} {again:?}");
        assert_eq!(service.count(&request, "second", None), alone, "{kind}");
        assert_eq!(service.count(&request, "second", None), again, "{kind}");
    }
}

/// A salt separates the prompts and attempts of one owner; drafts are separated by owners alone.
#[test]
fn a_salt_separates_the_texts_of_one_owner() {
    for (kind, request) in requests().into_iter().filter(|(kind, _)| *kind != "drafts") {
        let service = Watched::new(false);
        let alone = service.count(&request, "owner", None);
        assert_eq!(service.count(&request, "owner", Some("salt")), alone, "{kind}");
        assert_eq!(service.count(&request, "owner", Some("pepper")), alone, "{kind}");
        let again = service.count(&request, "owner", Some("salt"));
        assert!(is_used(kind, &alone, &again), "{kind}: {alone:?} {again:?}");
        assert_eq!(service.count(&request, "owner", None), again, "{kind}");
        // A salt is part of its owner's: the same one finds nothing of another.
        assert_eq!(service.count(&request, "other", Some("salt")), alone, "{kind}");
    }
}

/// Where owners share, the second finds what the first left, except for attempts.
#[test]
fn owners_that_share_find_what_each_other_left() {
    for (kind, request) in requests().into_iter().filter(|(kind, _)| *kind != "attempts") {
        let service = Watched::new(true);
        let alone = service.count(&request, "first", None);
        let second = service.count(&request, "second", None);
        assert!(is_used(kind, &alone, &second), "{kind}: {alone:?} {second:?}");
        assert_eq!(service.count(&request, "first", Some("salt")).cached, 0, "{kind}");
    }
}
