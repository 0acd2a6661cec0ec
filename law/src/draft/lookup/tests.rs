//! Compares the index with a scan of all places.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// No constraint.
struct Free;

impl Constraint for Free {
    type State = ();

    fn step(&self, (): (), _token: u32) -> Option<()> {
        Some(())
    }

    fn step_bytes(&self, (): (), _bytes: &[u8]) -> Option<()> {
        Some(())
    }

    fn forced(&self, (): ()) -> Vec<u8> {
        Vec::new()
    }

    fn key(&self, (): ()) -> u64 {
        0
    }

    fn is_accepting(&self, (): ()) -> bool {
        true
    }
}

/// The oracle: scans every place of the text and of the reference.
fn scan(how: PromptLookup, text: &[u32], drafted: &[u32], reference: &[u32]) -> Vec<FoundMatch> {
    let recent: Vec<u32> = text.iter().chain(drafted).copied().collect();
    let reference = &reference[..reference.len().min(how.window)];
    let mut best: BTreeMap<u32, FoundMatch> = BTreeMap::new();
    for length in how.keys().rev() {
        for (tokens, begin, is_reference) in [
            (reference, 0, true),
            (text, text.len().saturating_sub(how.window), false),
        ] {
            let is_behind = |place: &usize| {
                recent.len() >= length && tokens[..*place].ends_with(&recent[recent.len() - length..])
            };
            let places = (begin..tokens.len()).rev().filter(is_behind).take(LOOKED_AT);
            for place in places {
                let suffix = (0..=how.longest.min(place).min(recent.len()))
                    .rev()
                    .find(|&shared| tokens[..place].ends_with(&recent[recent.len() - shared..]));
                let found = FoundMatch {
                    shared: suffix.unwrap(),
                    is_reference,
                    place,
                    token: tokens[place],
                };
                if found.shared >= how.shortest.max(1) {
                    let best = best.entry(found.token).or_insert(found);
                    *best = std::cmp::max_by_key(*best, found, FoundMatch::rank);
                }
            }
        }
        if best.len() >= how.branches.max(1) {
            break;
        }
    }
    let mut best: Vec<FoundMatch> = best.into_values().collect();
    best.sort_by_key(|found| Reverse(found.rank()));
    best.truncate(how.branches.max(1));
    best
}

/// A change to a text.
#[derive(Clone, Debug)]
enum Turn {
    Write(Vec<u32>),
    /// Rewinds by this many 256ths of the answer.
    Rewind(u8),
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        3 => prop::collection::vec(0..4u32, 1..12).prop_map(Turn::Write),
        1 => any::<u8>().prop_map(Turn::Rewind),
    ];
    prop::collection::vec(turn, 1..24)
}

fn how() -> impl Strategy<Value = PromptLookup> {
    (
        1..9usize,
        0..7usize,
        0..4usize,
        prop_oneof![Just(5usize), Just(17), Just(1 << 16)],
    )
        .prop_map(|(longest, shortest, branches, window)| PromptLookup {
            longest,
            shortest,
            branches,
            window,
        })
}

proptest! {
    #[test]
    fn the_index_finds_what_a_scan_finds(
        how in how(),
        prompt in prop::collection::vec(0..4u32, 0..40),
        reference in prop::collection::vec(0..4u32, 0..40),
        drafted in prop::collection::vec(0..4u32, 0..5),
        turns in turns(),
    ) {
        let mut lookup = Lookup::new(how, &prompt, reference.clone());
        let mut answer: Vec<u32> = Vec::new();
        for turn in turns {
            match turn {
                Turn::Write(tokens) => answer.extend(tokens),
                Turn::Rewind(part) => {
                    let kept = answer.len() * usize::from(part) / 256;
                    lookup.rewind(Text { prompt: &prompt, answer: &answer }, prompt.len() + kept);
                    answer.truncate(kept);
                }
            }
            let text = Text { prompt: &prompt, answer: &answer };
            lookup.grow(text);
            let whole = [&prompt[..], &answer].concat();
            for drafted in [&[][..], &drafted] {
                prop_assert_eq!(
                    lookup.find(text, drafted),
                    scan(how, &whole, drafted, &reference),
                );
            }
            prop_assert!(lookup.answer.len() <= 2 * how.window, "it is bounded");
        }
    }
}

fn drafted(lookup: &mut Lookup, prompt: &[u32], answer: &[u32], most: usize) -> Vec<(u32, Origin)> {
    let mut draft: Draft<'_, Free> = Draft::new(None, &[], most);
    lookup.propose(Text { prompt, answer }, &mut draft);
    draft
        .nodes()
        .iter()
        .map(|node| (node.token, node.origin))
        .collect()
}

#[test]
fn a_reference_is_copied_up_to_its_end() {
    let mut lookup = Lookup::new(PromptLookup::default(), &[1], vec![7, 8, 9]);
    assert_eq!(drafted(&mut lookup, &[1], &[], 5), []);
    assert_eq!(
        drafted(&mut lookup, &[1], &[7], 5),
        [(8, Origin::Predicted), (9, Origin::Predicted)]
    );
    // The changed part of the answer is not in the reference; the text after it is.
    assert_eq!(drafted(&mut lookup, &[1], &[7, 5], 5), []);
    assert_eq!(
        drafted(&mut lookup, &[1], &[7, 5, 8], 5),
        [(9, Origin::Predicted)]
    );
}

#[test]
fn of_equal_matches_that_of_the_reference_is_copied_and_of_others_the_longer() {
    let how = PromptLookup {
        longest: 8,
        ..PromptLookup::default()
    };
    let mut lookup = Lookup::new(how, &[4, 5, 1, 2], vec![3, 5, 6]);
    assert_eq!(
        drafted(&mut lookup, &[4, 5, 1, 2], &[5], 1),
        [(6, Origin::Predicted)]
    );
    assert_eq!(
        drafted(&mut lookup, &[4, 5, 1, 2], &[4, 5], 1),
        [(1, Origin::Copied)]
    );
}

/// Guards against rereading the text: a step costs the same for a long text as for a short one. The test
/// counts entries, not time.
#[test]
fn a_text_is_read_once() {
    let prompt: Vec<u32> = (0..10_000).map(|place| place % 97).collect();
    let mut lookup = Lookup::new(PromptLookup::default(), &prompt, Vec::new());
    let clone = lookup.clone();
    assert!(
        Arc::ptr_eq(&lookup.prompt, &clone.prompt),
        "samples share their prompt"
    );
    let answer: Vec<u32> = (0..1_000).map(|place| place % 89).collect();
    for end in 1..=answer.len() {
        let known = lookup.answer.len();
        lookup.grow(Text {
            prompt: &prompt,
            answer: &answer[..end],
        });
        assert_eq!(lookup.answer.len(), known + 1);
    }
}
