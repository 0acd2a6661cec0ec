//! Typical acceptance: the accepted drafts, the cases in which the law is unchanged, and the tag in the other
//! cases.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use lexiform_law::draft::{Node, Origin, Proposal};
use lexiform_law::verify::tree;
use lexiform_law::{
    Allowed, Fallback, Law, LawTag, Part, Row, Table, Trie, TypicalAcceptance, Walk, Warper, Warping, Weight,
    law_of,
};

use crate::number::{Cases, Exact, ratio};
use crate::speculation::local;

const TOKENS: usize = 5;

fn siblings(tokens: &[u32], row: Option<&Arc<Table<Exact>>>) -> Vec<Node<(), Table<Exact>>> {
    let node = |&token: &u32| Node {
        token,
        parent: None,
        origin: Origin::Copied,
        proposal: row.map_or(Proposal::Point, |row| Proposal::Sampled(row.clone())),
        chance: None,
        state: None,
    };
    tokens.iter().map(node).collect()
}

/// The law of the first token after these siblings, with the tag of the walk.
fn first(
    row: &Table<Exact>,
    mask: &[u32],
    draft: &[Node<(), Table<Exact>>],
    accepts: Option<TypicalAcceptance>,
) -> (BTreeMap<u32, Exact>, LawTag) {
    let mut tag = LawTag::Raw;
    let law = law_of(|chooser| {
        let plain: Walk<Exact> = local(&[]);
        let mut walk = match accepts {
            Some(accepts) => plain.lossy(accepts),
            None => plain,
        };
        let rows = |_| Ok::<_, Infallible>(Some((row.clone(), Allowed::Words(mask))));
        let Ok(verified) = tree(draft, rows, &mut walk, chooser);
        tag = walk.tag();
        verified.drawn[0].token
    });
    (law, tag)
}

fn cases() -> Vec<(Table<Exact>, [u32; 1])> {
    let mut cases = Cases(31);
    let case = |_| {
        let row = cases.row(TOKENS);
        let likely = (0..TOKENS)
            .max_by(|&one, &other| row[one].cmp(&row[other]))
            .expect("some");
        let mask = 1 << likely | cases.below(1 << TOKENS) as u32;
        (Table(row), [mask])
    };
    (0..60).map(case).collect()
}

fn certain(token: u32) -> BTreeMap<u32, Exact> {
    BTreeMap::from([(token, Exact::one())])
}

/// The threshold by the definition.
fn threshold(shares: &[f64], epsilon: f64, delta: f64) -> f64 {
    let positive = shares.iter().filter(|share| **share > 0.0);
    let entropy: f64 = positive.map(|share| -share * share.ln()).sum();
    epsilon.min(delta * (-entropy).exp())
}

#[test]
fn the_first_typical_sibling_is_accepted_and_else_the_law_is_the_one_without_drafts() {
    let (mut accepted, mut rejected) = (0, 0);
    for (epsilon, delta) in [(0.09, 0.3), (0.4, 10.0)] {
        let accepts = TypicalAcceptance::new(epsilon, delta).expect("in range");
        for (row, mask) in cases() {
            let (without, _) = first(&row, &mask, &[], None);
            let part = row.part(Allowed::Words(&mask));
            let shares: Vec<f64> = (0..TOKENS as u32)
                .map(|token| part.share(token).to_f64())
                .collect();
            let least = threshold(&shares, epsilon, delta);
            for one in 0..TOKENS as u32 {
                let other = (one + 2) % TOKENS as u32;
                let wanted = [one, other]
                    .into_iter()
                    .find(|&token| shares[token as usize] > least);
                for proposals in [None, Some(&Arc::new(row.clone()))] {
                    let draft = siblings(&[one, other], proposals);
                    let (law, tag) = first(&row, &mask, &draft, Some(accepts));
                    assert_eq!(tag, LawTag::Lossy);
                    match wanted {
                        Some(token) => assert_eq!(law, certain(token)),
                        None => assert_eq!(law, without),
                    }
                    accepted += usize::from(wanted.is_some());
                    rejected += usize::from(wanted.is_none());
                }
            }
        }
    }
    assert!(accepted > 200 && rejected > 200, "{accepted} and {rejected}");
}

/// Guards against a law that is given up without being asked to be: without the word, the same drafts change
/// nothing.
#[test]
fn a_walk_that_is_not_lossy_accepts_nothing_by_that_rule() {
    let mut differ = 0;
    for (row, mask) in cases() {
        let draft = siblings(&[0, 1, 2], None);
        let (without, _) = first(&row, &mask, &[], None);
        let (exact, tag) = first(&row, &mask, &draft, None);
        assert_eq!((&exact, tag), (&without, LawTag::Local));
        let (lossy, _) = first(&row, &mask, &draft, Some(TypicalAcceptance::MEDUSA));
        differ += usize::from(lossy != without);
    }
    assert!(differ > 30, "{differ}");
}

#[test]
fn the_global_law_is_not_given_up() {
    let trie: Arc<Mutex<Trie<Exact>>> = Arc::new(Mutex::new(Trie::new(&[4], 9, 1000)));
    let walk = Walk::global(trie, 3, Fallback::Fail);
    let tag = walk.tag();
    assert_eq!(walk.lossy(TypicalAcceptance::MEDUSA).tag(), tag);
    assert_eq!(tag, LawTag::GlobalExact);
}

/// Nothing is left to give up where one token is left, and the tag says what the text is.
#[test]
fn a_greedy_text_stays_one() {
    let greedy = Warping {
        temperature: 0.0,
        ..Warping::default()
    };
    let warper = Warper::new(greedy, Law::Local).expect("in range");
    let walk: Walk = Walk::local(&warper, true, &[4]);
    assert_eq!(walk.lossy(TypicalAcceptance::MEDUSA).tag(), LawTag::Greedy);
}

#[test]
fn a_text_without_a_law_has_no_weight() {
    assert!(!LawTag::Lossy.has_weight() && LawTag::Local.has_weight());
}

#[test]
fn bounds_are_within_their_ranges() {
    for (epsilon, delta, name) in [
        (-0.1, 1.0, "epsilon"),
        (1.1, 1.0, "epsilon"),
        (f64::NAN, 1.0, "epsilon"),
        (0.5, -1.0, "delta"),
        (0.5, f64::NAN, "delta"),
    ] {
        let error = TypicalAcceptance::new(epsilon, delta).expect_err("out of range");
        assert!(error.to_string().starts_with(name), "{error}");
    }
    assert_eq!(TypicalAcceptance::new(0.09, 0.3), Ok(TypicalAcceptance::MEDUSA));
    let certain = Table(vec![ratio(1, 1), ratio(0, 1)]);
    // Even where all is accepted, what cannot be drawn is not.
    let all = TypicalAcceptance::new(0.0, 0.0).expect("in range");
    assert_eq!(
        all.first(&certain.part(Allowed::All), [1, 0].into_iter()),
        Some(0)
    );
}
