//! Owners and their stores, their files across restarts, and the corpus.

use super::*;
use crate::error::JournalError;
use lexiform::vocab::TokenKind;

fn owner(name: &str) -> Owner {
    Some(name.into())
}

fn stores(bytes: usize, owners: usize, shared: bool) -> Stores {
    let config = DraftStores {
        bytes,
        owners,
        shared,
        ..DraftStores::default()
    };
    Stores::open(config, Drafting::Measured, &vocabulary(3)).unwrap()
}

fn vocabulary(count: usize) -> Vocabulary {
    let tokens = ["a", "b", "cc", "d"].map(|text| (TokenKind::Text, text));
    let tokens = &tokens[..count];
    Vocabulary::new(tokens, &[0]).unwrap()
}

#[test]
fn answers_are_learned_again_after_a_restart() {
    let folder = std::env::temp_dir().join(format!("lexiform-stores-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let config = DraftStores {
        bytes: 1 << 16,
        folder: Some(folder.clone()),
        ..DraftStores::default()
    };
    let answer: Vec<u32> = (0..40).map(|token| token % 3).collect();
    let mut stores = Stores::open(config.clone(), Drafting::Measured, &vocabulary(3)).unwrap();
    for _ in 0..2000 {
        stores.of(&owner("a")).unwrap().record(&answer);
        stores.ended();
    }
    assert!(stores.bytes() <= 1 << 16, "{}", stores.bytes());
    stores.close();
    assert_eq!(stores.unsaved(), 0);
    let mut stores = Stores::open(config.clone(), Drafting::Measured, &vocabulary(3)).unwrap();
    let mut draft: Draft<'_, Grammar> = Draft::new(None, &[], 4);
    let text = Text {
        prompt: &[],
        answer: &[0, 1, 2],
    };
    stores
        .of(&owner("b"))
        .unwrap()
        .offer(text, (None, 0.0), &mut draft);
    assert_eq!(draft.nodes().len(), 0);
    stores
        .of(&owner("a"))
        .unwrap()
        .offer(text, (None, 0.0), &mut draft);
    assert_eq!(draft.nodes()[0].token, 0);
    // The file of an owner is removed with its store.
    let mut few = Stores::open(
        DraftStores {
            owners: 1,
            ..config.clone()
        },
        Drafting::Measured,
        &vocabulary(3),
    )
    .unwrap();
    few.of(&owner("b")).unwrap().record(&[0, 1, 2, 0]);
    few.close();
    let mut stores = Stores::open(config.clone(), Drafting::Measured, &vocabulary(3)).unwrap();
    assert_eq!(
        stores
            .recent
            .iter()
            .map(|(owner, _)| owner.clone())
            .collect::<Vec<_>>(),
        [owner("b")]
    );
    stores.close();
    let error = Stores::open(config, Drafting::Measured, &vocabulary(4))
        .err()
        .unwrap();
    let is_other = matches!(error, EngineError::Drafts(JournalError::OtherVocabulary { .. }));
    assert!(is_other, "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn owners_have_stores_of_their_own_unless_they_share() {
    let mut apart = stores(1 << 16, 8, false);
    let (one, other) = (apart.of(&owner("a")).unwrap(), apart.of(&owner("b")).unwrap());
    assert!(!Arc::ptr_eq(&one, &other));
    assert!(Arc::ptr_eq(&one, &apart.of(&owner("a")).unwrap()));
    let mut shared = stores(1 << 16, 8, true);
    let (one, other) = (shared.of(&owner("a")).unwrap(), shared.of(&None).unwrap());
    assert!(Arc::ptr_eq(&one, &other));
    assert!(stores(0, 8, false).of(&None).is_none());
}

#[test]
fn the_owner_who_was_not_served_for_longest_gives_way() {
    let mut stores = stores(1 << 16, 2, false);
    let first = stores.of(&owner("a")).unwrap();
    stores.of(&owner("b"));
    stores.of(&owner("a"));
    stores.of(&owner("c"));
    assert!(Arc::ptr_eq(&first, &stores.of(&owner("a")).unwrap()));
    assert_eq!(stores.recent.len(), 2);
    assert!(stores.bytes() <= 2 << 16);
}

/// Returns what a store offers after a text.
fn offered(store: &Store, answer: &[u32]) -> Vec<u32> {
    let mut draft: Draft<'_, Grammar> = Draft::new(None, &[], 4);
    let text = Text { prompt: &[], answer };
    store.offer(text, (None, 0.0), &mut draft);
    draft.nodes().iter().map(|node| node.token).collect()
}

#[test]
fn all_owners_draft_from_one_corpus_whose_bytes_are_counted_once() {
    let corpus = Retrieval::of_texts([vec![0, 1, 2], vec![1, 0, 1, 2, 0]]).unwrap();
    let with = |bytes: usize| DraftStores {
        bytes,
        corpus: Some(corpus.clone()),
        ..DraftStores::default()
    };
    for bytes in [1 << 16, 0] {
        let mut stores = Stores::open(with(bytes), Drafting::Measured, &vocabulary(3)).unwrap();
        assert_eq!(stores.corpus_bytes(), 9 * Retrieval::TOKEN_BYTES);
        stores.of(&owner("a"));
        assert_eq!(stores.bytes(), 0);
        for name in ["a", "b"] {
            let store = stores.of(&owner(name)).unwrap();
            assert_eq!(store.learns(), bytes > 0);
            assert_eq!(offered(&store, &[0, 1]), [2, 0], "{bytes}");
            // Learned answers come before the operator's corpus, and stay with their owner.
            (0..4).for_each(|_| store.record(&[2, 0, 1, 1]));
            let expected = if bytes > 0 { 1 } else { 2 };
            assert_eq!(offered(&store, &[2, 0, 1])[0], expected);
            assert!(stores.bytes() <= 2 * bytes);
        }
    }
    let others = DraftStores {
        learners: vec![Learner::Suffixes],
        ..with(0)
    };
    assert!(
        Stores::open(others, Drafting::Measured, &vocabulary(3))
            .unwrap()
            .of(&None)
            .is_none()
    );
    let error = Stores::open(with(0), Drafting::Measured, &vocabulary(2))
        .err()
        .unwrap();
    assert_eq!(error, EngineError::Corpus { token: 2, tokens: 2 });
}

/// Where a text can continue in two ways, the default tree has both; SVIP's chain takes the likelier way and
/// ends there.
#[test]
fn svip_drafts_chains_that_end_where_they_are_unsure() {
    for (drafting, expected) in [(Drafting::Measured, vec![2, 1, 0, 0]), (Drafting::Svip, vec![2])] {
        let config = DraftStores {
            bytes: 1 << 16,
            learners: vec![Learner::Suffixes],
            ..DraftStores::default()
        };
        let mut stores = Stores::open(config, drafting, &vocabulary(3)).unwrap();
        let store = stores.of(&None).unwrap();
        for last in [2, 2, 2, 1, 1] {
            store.record(&[0, 1, last, 0]);
        }
        let mut found = offered(&store, &[0, 1]);
        found.sort_unstable();
        let mut expected = expected;
        expected.sort_unstable();
        assert_eq!(found, expected, "{drafting:?}");
    }
}

struct Broken;

impl Predictor for Broken {
    fn predict(&self, _: &Context<'_>, _: &mut Vec<Candidate>) {
        panic!("of a predictor, on purpose")
    }

    fn record(&mut self, _: &[u32]) {
        panic!("of a predictor, on purpose")
    }

    fn bytes(&self) -> usize {
        7
    }
}

#[test]
fn a_predictor_that_panics_is_given_up_and_counted_once() {
    let count = Arc::new(AtomicU64::new(0));
    let store = Store::new(Box::new(Broken), None, count.clone());
    let mut draft: Draft<'_, Grammar> = Draft::new(None, &[], 4);
    store.offer(Text::default(), (None, 0.0), &mut draft);
    store.record(&[1]);
    store.offer(Text::default(), (None, 0.0), &mut draft);
    assert_eq!(draft.nodes().len(), 0);
    assert_eq!((count.load(Ordering::Relaxed), store.bytes()), (1, 0));
    let store = Store::new(Box::new(Broken), None, count.clone());
    store.record(&[1]);
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

/// A predictor that proposes every token of a small vocabulary.
struct Anything;

impl Predictor for Anything {
    fn predict(&self, _: &Context<'_>, found: &mut Vec<Candidate>) {
        let candidate = |token| Candidate {
            token,
            chance: 0.3,
            origin: lexiform_law::draft::Origin::Suffix,
        };
        found.extend((1..4).map(candidate));
    }

    fn bytes(&self) -> usize {
        7
    }
}

/// Guards against giving up a store because a grammar took longer than its bound allows: that unwinds, too.
#[test]
fn a_grammar_whose_work_is_bounded_is_no_panic_of_a_predictor() {
    let vocabulary = Arc::new(vocabulary(4));
    let source = lexiform::Source::Regex("(b|cc|d){2,40}");
    let (grammar, _) = lexiform::compile(source, &vocabulary, &lexiform::Options::default()).unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let store = Store::new(Box::new(Anything), None, count.clone());
    let offer = || {
        let mut draft = Draft::new(Some((&grammar, grammar.start())), &[], 4);
        store.offer(Text::default(), (None, 0.0), &mut draft);
        draft.nodes().len()
    };
    assert_eq!(
        lexiform::briefly(0, offer),
        None,
        "the first state takes some work"
    );
    assert_eq!((count.load(Ordering::Relaxed), store.bytes()), (0, 7));
    assert_eq!(offer(), 3);
}
