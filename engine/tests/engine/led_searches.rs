//! Searches that are guided by more than likelihood: by the texts of other groups, phrases, and the distance
//! to the end.

use crate::rig::wait_until;
use crate::searches::{
    CASES, END, Listed, SALTS, agrees, answers, beam, begins, engine, found, request, row, texts,
};
use lexiform_engine::{EngineConfig, EngineError, LawTag, Search};

/// Groups with lists: each selects after the others, whose tokens cost more.
fn listed_groups(
    texts: &[(Vec<u32>, f64)],
    (groups, width): (usize, usize),
    (diversity, penalty): (f64, f64),
    salt: u64,
) -> Vec<(Vec<u32>, f64)> {
    let begins = begins(texts);
    let mut listed: Vec<Listed> = (0..groups).map(|_| Listed::new()).collect();
    while listed.iter().any(|group| !group.beams.is_empty()) {
        let mut taken: Vec<u32> = Vec::new();
        for group in &mut listed {
            let cost = |token: u32| diversity * taken.iter().filter(|&&other| other == token).count() as f64;
            let tokens = group.step((width, penalty), &begins, salt, cost);
            taken.extend(tokens);
        }
    }
    let mut found: Vec<(Vec<u32>, f64)> = Vec::new();
    for round in 0..width {
        let mut of_round: Vec<_> = listed
            .iter()
            .filter_map(|group| group.finished.get(round))
            .collect();
        of_round.sort_by(|one, other| other.1.total_cmp(&one.1));
        for text in of_round {
            if !found.contains(text) {
                found.push(text.clone());
            }
        }
    }
    found
}

#[test]
fn groups_of_beams_find_what_lists_of_candidates_find() {
    for salt in 0..SALTS {
        let engine = engine(salt, EngineConfig::default());
        for (pattern, max_tokens) in CASES {
            let texts = texts(pattern, max_tokens, salt);
            for (width, groups, diversity, length_penalty) in [
                (2, 2, 1.0, 0.0),
                (6, 3, 0.5, 1.0),
                (4, 2, 0.0, 0.0),
                (3, 1, 9.0, 0.0),
            ] {
                let mut expected = listed_groups(
                    &texts,
                    (groups, width / groups),
                    (diversity, length_penalty),
                    salt,
                );
                // Prefixes that are equally likely may change the later texts of a group.
                let answers = groups;
                expected.truncate(answers);
                let search = Search::DiverseBeam {
                    width,
                    groups,
                    diversity,
                    length_penalty,
                };
                let heard = self::answers(&engine, request(search, pattern, max_tokens, answers));
                for (heard, (text, score)) in heard.iter().zip(&expected) {
                    let (tokens, own, _) = found(heard, LawTag::DiverseBeam);
                    assert_eq!(&tokens, text, "{pattern} {width} {groups} {diversity} {salt}");
                    assert!((own - score).abs() < 1e-4);
                }
                wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
            }
        }
    }
}

/// Two groups with a strong penalty never begin alike.
#[test]
fn a_strong_penalty_makes_groups_differ_from_the_first_token_on() {
    let engine = engine(1, EngineConfig::default());
    let search = Search::DiverseBeam {
        width: 4,
        groups: 4,
        diversity: 100.0,
        length_penalty: 0.0,
    };
    let heard = answers(&engine, request(search, "[a-d]{4}", 5, 4));
    let firsts: std::collections::BTreeSet<u32> = heard.iter().map(|heard| heard.tokens()[0]).collect();
    assert_eq!(firsts.len(), 4);
}

pub(crate) fn containing(width: usize, phrases: &[&[u32]]) -> Search {
    Search::DynamicBeam {
        width,
        length_penalty: 0.0,
        must_contain: phrases.iter().map(|phrase| phrase.to_vec()).collect(),
    }
}

fn contains(text: &[u32], phrases: &[&[u32]]) -> bool {
    phrases
        .iter()
        .all(|phrase| text.windows(phrase.len()).any(|window| window == *phrase))
}

const PHRASES: [&[&[u32]]; 3] = [&[&[1, 0]], &[&[3], &[0, 0]], &[&[2, 3, 2]]];

/// Beams that are wide enough find the likeliest texts of those that contain the phrases, and narrow ones
/// only such texts.
#[test]
fn searches_with_phrases_find_texts_that_contain_them() {
    let mut told = 0;
    for salt in 0..SALTS {
        let engine = engine(salt, EngineConfig::default());
        for (pattern, max_tokens) in CASES {
            let texts = texts(pattern, max_tokens, salt);
            for phrases in PHRASES {
                let with: Vec<_> = texts
                    .iter()
                    .filter(|(text, _)| contains(text, phrases))
                    .cloned()
                    .collect();
                let wide = request(containing(400, phrases), pattern, max_tokens, 4);
                let expected = &with[..with.len().min(4)];
                if with.is_empty() {
                    for heard in answers(&engine, wide) {
                        let missing = |error: &EngineError| matches!(error, EngineError::PhrasesMissing { phrases: so_many, met } if *so_many == phrases.len() && met < so_many);
                        assert!(heard.failure().is_some_and(missing), "{heard:?}");
                    }
                    continue;
                }
                agrees(&engine, wide, LawTag::DynamicBeam, expected);
                for width in [2, 4, 8] {
                    for heard in answers(
                        &engine,
                        request(containing(width, phrases), pattern, max_tokens, 2),
                    ) {
                        match heard.failure() {
                            None => {
                                assert!(contains(&heard.tokens(), phrases), "{heard:?}");
                                assert!(with.iter().any(|(text, _)| *text == heard.tokens()));
                                told += 1;
                            }
                            // A narrow search may find nothing, and says so.
                            Some(error) => assert!(matches!(
                                error,
                                EngineError::PhrasesMissing { .. } | EngineError::FewTexts { found: 1 }
                            )),
                        }
                    }
                }
                wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
            }
        }
    }
    println!("answers of narrow searches with their phrases: {told}");
    assert!(told > 150, "{told}");
}

/// The likeliest text lacks the phrase, and plain beams of the same width have none that contains it.
#[test]
fn banks_keep_prefixes_that_have_begun_a_phrase() {
    let mut without = 0;
    for salt in 0..12 {
        let engine = engine(salt, EngineConfig::default());
        let phrase: &[&[u32]] = &[&[3, 1, 3]];
        let (pattern, max_tokens) = ("[a-d]{0,8}", 9);
        let plain = answers(&engine, request(beam(4, 0.0), pattern, max_tokens, 4));
        without += usize::from(!plain.iter().any(|heard| contains(&heard.tokens(), phrase)));
        let heard = answers(&engine, request(containing(4, phrase), pattern, max_tokens, 1));
        assert!(contains(&heard[0].tokens(), phrase), "{heard:?}");
    }
    assert!(without > 8, "{without}");
}

pub(crate) fn a_star(width: usize, distance_weight: f64, look_ahead: usize) -> Search {
    Search::AStarEsque {
        width,
        length_penalty: 0.0,
        distance_weight,
        look_ahead,
        must_contain: Vec::new(),
        must_not_contain: Vec::new(),
    }
}

/// Clauses of phrases, and phrases that are forbidden.
type Formula<'a> = (&'a [&'a [&'a [u32]]], &'a [&'a [u32]]);

fn obeying(width: usize, look_ahead: usize, (clauses, forbidden): Formula<'_>) -> Search {
    let list = |phrases: &[&[u32]]| phrases.iter().map(|phrase| phrase.to_vec()).collect();
    Search::AStarEsque {
        width,
        length_penalty: 0.0,
        distance_weight: 0.5,
        look_ahead,
        must_contain: clauses.iter().map(|clause| list(clause)).collect(),
        must_not_contain: list(forbidden),
    }
}

fn obeys(text: &[u32], (clauses, forbidden): Formula<'_>) -> bool {
    let has = |phrase: &&[u32]| contains(text, &[phrase]);
    clauses.iter().all(|clause| clause.iter().any(has)) && !forbidden.iter().any(has)
}

const FORMULAS: [Formula<'_>; 4] = [
    (&[&[&[1, 0], &[2]]], &[]),
    (&[], &[&[0, 0], &[3]]),
    (&[&[&[1]], &[&[0, 2], &[3]]], &[&[1, 1]]),
    (&[&[&[2, 3, 2], &[1, 2, 1]]], &[&[0]]),
];

/// Beams that are wide enough find the likeliest texts of those that obey a formula of phrases, and narrow
/// ones only such texts.
#[test]
fn searches_with_formulas_find_texts_that_obey_them() {
    let mut told = 0;
    let config = EngineConfig {
        max_branches: 1 << 14,
        ..EngineConfig::default()
    };
    for salt in 0..SALTS.min(4) {
        let engine = engine(salt, config.clone());
        for (pattern, max_tokens) in CASES {
            let texts = texts(pattern, max_tokens, salt);
            for formula in FORMULAS {
                let with: Vec<_> = texts
                    .iter()
                    .filter(|(text, _)| obeys(text, formula))
                    .cloned()
                    .collect();
                let wide = request(obeying(400, 1, formula), pattern, max_tokens, 4);
                if !with.is_empty() {
                    agrees(&engine, wide, LawTag::AStarEsque, &with[..with.len().min(4)]);
                } else if !formula.0.is_empty() {
                    let missing = |error: &EngineError| matches!(error, EngineError::PhrasesMissing { .. });
                    let heard = answers(&engine, wide);
                    assert!(
                        heard.iter().all(|heard| heard.failure().is_some_and(missing)),
                        "{heard:?}"
                    );
                }
                for (width, ahead) in [(2, 0), (4, 2)] {
                    let narrow = request(obeying(width, ahead, formula), pattern, max_tokens, 2);
                    for heard in answers(&engine, narrow)
                        .iter()
                        .filter(|heard| heard.failure().is_none())
                    {
                        assert!(obeys(&heard.tokens(), formula), "{heard:?}");
                        told += 1;
                    }
                }
                wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
            }
        }
    }
    assert!(told > 100, "{told}");
}

/// A clause is met by prefixes that plain beams of the same width have lost.
#[test]
fn prefixes_that_meet_a_clause_do_not_compete_with_likelier_ones() {
    let (mut without, mut with) = (0, 0);
    for salt in 0..12 {
        let engine = engine(salt, EngineConfig::default());
        let formula: Formula<'_> = (&[&[&[3, 1, 3], &[1, 3, 1]]], &[&[0, 0]]);
        let (pattern, max_tokens) = ("[a-d]{0,8}", 9);
        let plain = answers(&engine, request(beam(4, 0.0), pattern, max_tokens, 4));
        without += usize::from(!plain.iter().any(|heard| obeys(&heard.tokens(), formula)));
        let heard = answers(&engine, request(obeying(4, 1, formula), pattern, max_tokens, 1));
        with += usize::from(heard[0].failure().is_none() && obeys(&heard[0].tokens(), formula));
    }
    assert!(without > 8 && with == 12, "{without} {with}");
}

/// The search of the paper with lists. The distance of a prefix is that of the nearest text which it begins.
fn listed_a_star(
    texts: &[(Vec<u32>, f64)],
    (width, weight, ahead): (usize, f64, usize),
    (max_tokens, salt): (usize, u64),
) -> Vec<(Vec<u32>, f64)> {
    let begins = begins(texts);
    let next = |prefix: &[u32]| -> Vec<(u32, f64)> {
        let row = row(prefix, salt);
        let allowed = |&token: &u32| match token {
            END => begins[prefix],
            _ => begins.contains_key(&[prefix, &[token]].concat()),
        };
        let mut next: Vec<(u32, f64)> = (0..=END)
            .filter(allowed)
            .map(|token| (token, row[token as usize].ln()))
            .collect();
        next.sort_by(|one, other| other.1.total_cmp(&one.1));
        next
    };
    let distance = |prefix: &[u32]| {
        let longer = texts.iter().filter(|(text, _)| text.starts_with(prefix));
        longer
            .map(|(text, _)| text.len() + 1 - prefix.len())
            .min()
            .unwrap()
    };
    let promise = |prefix: &[u32], total: f64| {
        let (mut text, mut total) = (prefix.to_vec(), total);
        for _ in 0..ahead {
            let (token, own) = next(&text)[0];
            total += own;
            if token == END {
                return total;
            }
            text.push(token);
        }
        total - weight * distance(&text) as f64
    };
    let (mut beams, mut finished) = (vec![(Vec::new(), 0.0)], Vec::new());
    for _ in 0..max_tokens {
        let mut all = Vec::new();
        for (prefix, total) in &beams {
            all.extend(
                next(prefix)
                    .into_iter()
                    .map(|(token, own)| ([&prefix[..], &[token]].concat(), total + own)),
            );
        }
        all.sort_by(|one: &(Vec<u32>, f64), other| other.1.total_cmp(&one.1));
        let mut candidates = Vec::new();
        for (number, (mut text, total)) in all.into_iter().enumerate() {
            if candidates.len() == 2 * width {
                break;
            }
            match (text.last() == Some(&END), number < width) {
                (true, true) => {
                    text.pop();
                    finished.push((text, total));
                }
                (true, false) => (),
                (false, _) => candidates.push((promise(&text, total), text, total)),
            }
        }
        candidates.sort_by(|one, other| other.0.total_cmp(&one.0));
        candidates.truncate(width);
        beams = candidates
            .into_iter()
            .map(|(_, text, total)| (text, total))
            .collect();
    }
    finished.sort_by(|one: &(Vec<u32>, f64), other| other.1.total_cmp(&one.1));
    finished
}

#[test]
fn look_ahead_finds_what_lists_of_candidates_find() {
    for salt in 0..SALTS {
        let engine = engine(salt, EngineConfig::default());
        for (pattern, max_tokens) in CASES {
            let texts = texts(pattern, max_tokens, salt);
            for (width, weight, ahead) in [(1, 0.0, 0), (2, 1.0, 0), (2, 0.5, 1), (3, 2.0, 3), (1, 5.0, 2)] {
                let mut expected = listed_a_star(&texts, (width, weight, ahead), (max_tokens, salt));
                expected.truncate(width);
                // Fewer texts than beams may be found.
                let answers = expected.len().max(1);
                if expected.is_empty() {
                    continue;
                }
                let request = request(
                    a_star(width, weight, ahead),
                    pattern,
                    max_tokens,
                    answers.min(width),
                );
                agrees(&engine, request, LawTag::AStarEsque, &expected);
            }
        }
    }
}

/// After `a` the grammar wants eleven letters more; greedy beams of width 1 pay for them where `a` is likely.
#[test]
fn a_price_of_the_distance_leads_to_texts_that_are_soon_complete() {
    let pattern = "a[a-d]{11}|[bcd]";
    let length = |search: Search, salt| {
        let engine = engine(salt, EngineConfig::default());
        let heard = answers(&engine, request(search, pattern, 13, 1));
        (heard[0].tokens().len(), heard[0].outcome().log_probability)
    };
    let salt = (0..50)
        .find(|&salt| length(beam(1, 0.0), salt).0 == 12)
        .expect("a model that begins with an a");
    let (short, likelier) = length(a_star(1, 1.0, 0), salt);
    assert_eq!(short, 1);
    assert!(likelier > length(beam(1, 0.0), salt).1);
}
