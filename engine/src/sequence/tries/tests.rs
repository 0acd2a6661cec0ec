//! Tests of who shares which trie.

use super::*;
use crate::request::{Draw, Verification};
use lexiform::vocab::TokenKind;
use lexiform_law::Law;

/// Returns a vocabulary, and a language over it.
fn language() -> (Arc<Vocabulary>, Grammar) {
    let vocabulary =
        Arc::new(Vocabulary::new(&[(TokenKind::Text, "a"), (TokenKind::Special, "$")], &[1]).unwrap());
    let options = lexiform::Options::default();
    let (grammar, _) = lexiform::compile(lexiform::Source::Regex("a*"), &vocabulary, &options).unwrap();
    (vocabulary, grammar)
}

/// Returns a request of an owner with a prompt of its own.
fn request(owner: &str, prompt: u32) -> Request {
    let owner = (!owner.is_empty()).then(|| Arc::from(owner));
    Request::new(vec![prompt], 5)
        .owner(owner)
        .task(Law::Asap { share_attempts: true })
}

/// Guards against a request that learns, by the number of its attempts, what another owner has asked.
#[test]
fn owners_do_not_share_tries() {
    let (vocabulary, grammar) = language();
    let mut tries = Tries::default();
    let mut shared = |owner| tries.shared(&request(owner, 0), &grammar, &vocabulary);
    let (one, other, nobody) = (shared("one"), shared("other"), shared(""));
    assert!(!Arc::ptr_eq(&one, &other) && !Arc::ptr_eq(&one, &nobody));
    assert!(Arc::ptr_eq(&one, &shared("one")));
    assert!(Arc::ptr_eq(&nobody, &shared("")));
    let salted = request("one", 0).cache_salt(Some("salt".into()));
    let mut found = || tries.shared(&salted, &grammar, &vocabulary);
    let first = found();
    assert!(!Arc::ptr_eq(&first, &one) && Arc::ptr_eq(&first, &found()));
}

#[test]
fn an_owner_does_not_push_out_the_tries_of_another() {
    let (vocabulary, grammar) = language();
    let mut tries = Tries::default();
    let quiet: Vec<SharedTrie> = (0..3)
        .map(|prompt| tries.shared(&request("quiet", prompt), &grammar, &vocabulary))
        .collect();
    for prompt in 0..100 {
        tries.shared(&request("busy", prompt), &grammar, &vocabulary);
    }
    assert_eq!(tries.recent.len(), KEPT_TRIES);
    for (prompt, trie) in (0..).zip(&quiet) {
        assert!(Arc::ptr_eq(
            trie,
            &tries.shared(&request("quiet", prompt), &grammar, &vocabulary)
        ));
    }
    // Of its own tries, the busy owner keeps the last.
    let last = tries.recent.iter().filter(|(key, _)| key.prompt == [99]).count();
    assert_eq!(last, 1);
}

/// The tries of one request hold no more together than the one trie of a request without a seed.
#[test]
fn tries_of_answers_share_the_capacity() {
    let (_, grammar) = language();
    let draw = Draw {
        law: Law::Asap {
            share_attempts: false,
        },
        answers: 16,
        ..Draw::default()
    };
    let mut request = Request::new(vec![0], 5).grammar(grammar).task(draw);
    let whole = law::capacity(&request);
    request.speculation.verification = Verification::DrawOnce;
    assert_eq!(law::capacity(&request), whole / 16);
}
