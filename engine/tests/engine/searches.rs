//! Searches, compared with a list of all texts of small models.
//!
//! The model writes letters `a` to `d` and ends; its rows depend on the whole prefix, and no two texts are
//! equally likely. The slow, obvious way is to list all texts of the grammar with their probabilities, or to
//! follow the paper of a search literally with lists.

use crate::cautious::cautious;
use crate::led_searches::{a_star, containing};
use crate::rig::{Heard, grammar_over, wait_until};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform_engine::{
    Diagnostics, Engine, EngineConfig, EngineError, Event, LawTag, Request, Sampling, ScriptedModel, Search,
    Sink, Task,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::channel;
use std::sync::{Arc, LazyLock};

pub(crate) const LETTERS: u32 = 4;
pub(crate) const END: u32 = 4;
const PROMPT: u32 = 0;

pub(crate) fn vocabulary() -> Arc<Vocabulary> {
    static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
        let tokens = ["a", "b", "c", "d"].map(|letter| (TokenKind::Text, letter));
        let tokens = [&tokens[..], &[(TokenKind::Special, "$")]].concat();
        Arc::new(Vocabulary::new(&tokens, &[END]).unwrap())
    });
    VOCABULARY.clone()
}

/// The model's row after an answer, of probabilities: some rows are sure of themselves and some are not.
pub(crate) fn row(answer: &[u32], salt: u64) -> Vec<f64> {
    let mix = |state: u64, token: u64| {
        let state = (state ^ token.wrapping_add(0x9e37_79b9)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        state ^ (state >> 29)
    };
    let state = answer
        .iter()
        .fold(mix(7, salt), |state, &token| mix(state, u64::from(token) + 1));
    let sharpness = 1.0 + (state % 5) as f64;
    let weight = |token: u64| (sharpness * (mix(state, token + 11) % 1_000) as f64 / 1_000.0).exp();
    let weights: Vec<f64> = (0..=u64::from(END)).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

pub(crate) fn engine(salt: u64, config: EngineConfig) -> Engine {
    let script = move |prefix: &[u32]| row(&prefix[1..], salt).iter().map(|p| p.ln() as f32).collect();
    let model = ScriptedModel::new(END as usize + 1, 1_000, script);
    Engine::start(Box::new(model), None, vocabulary(), config).unwrap()
}

/// Grammars over the letters with a budget of tokens, the end included.
pub(crate) const CASES: [(&str, usize); 4] = [
    ("[ab]{1,3}c?", 5),
    ("(ab|cd|a|d)*", 6),
    ("[a-d]{0,4}", 5),
    ("a[a-d]{4}|bb?|c(d|dd|ddd)", 4),
];

/// All texts of at most `max_tokens` tokens with their end, and `ln P` of each, the likeliest first.
pub(crate) fn texts(pattern: &str, max_tokens: usize, salt: u64) -> Vec<(Vec<u32>, f64)> {
    let grammar = grammar_over(&vocabulary(), pattern);
    let mut texts = Vec::new();
    let mut prefixes = vec![(Vec::new(), 0.0, grammar.start())];
    while let Some((prefix, total, state)) = prefixes.pop() {
        let row = row(&prefix, salt);
        for token in grammar.mask(state).iter() {
            let total: f64 = total + row[token as usize].ln();
            if token == END {
                texts.push((prefix.clone(), total));
            } else if prefix.len() + 2 <= max_tokens {
                let longer = [&prefix[..], &[token]].concat();
                prefixes.push((longer, total, grammar.step(state, token).unwrap()));
            }
        }
    }
    texts.sort_by(|one, other| other.1.total_cmp(&one.1));
    texts
}

/// Which prefixes can still become one of the texts: what masks leave.
pub(crate) fn begins(texts: &[(Vec<u32>, f64)]) -> HashMap<Vec<u32>, bool> {
    let mut begins = HashMap::new();
    for (text, _) in texts {
        for length in 0..=text.len() {
            *begins.entry(text[..length].to_vec()).or_insert(false) |= length == text.len();
        }
    }
    begins
}

pub(crate) fn request(search: Search, pattern: &str, max_tokens: usize, answers: usize) -> Request {
    Request::new(vec![PROMPT], max_tokens)
        .task(Task::Search { search, answers })
        .grammar(Some(grammar_over(&vocabulary(), pattern)))
        .sampling(Sampling::seeded(1))
}

pub(crate) fn answers(engine: &Engine, request: Request) -> Vec<Heard> {
    let (senders, events): (Vec<_>, Vec<_>) = (0..request.task.answers()).map(|_| channel()).unzip();
    let sink = |sender: std::sync::mpsc::Sender<Event>| -> Sink {
        Box::new(move |event| sender.send(event).is_ok())
    };
    let _tickets = engine
        .submit_all(request, senders.into_iter().map(sink).collect())
        .unwrap();
    let heard = events.iter().map(|events| Heard {
        events: events.iter().collect(),
    });
    heard.collect()
}

/// Text, score and rows of an answer.
pub(crate) fn found(heard: &Heard, tag: LawTag) -> (Vec<u32>, f64, usize) {
    let outcome = heard.outcome();
    assert_eq!((outcome.law, outcome.log_weight), (tag, None));
    let Some(Diagnostics::Search { score, rows, .. }) = outcome.diagnostics else {
        panic!("{outcome:?}");
    };
    (heard.tokens(), score, rows)
}

/// Runs a search and compares its texts and scores with those expected; the rows that it took.
pub(crate) fn agrees(engine: &Engine, request: Request, tag: LawTag, expected: &[(Vec<u32>, f64)]) -> usize {
    let told = format!("{:?} {}", request.task, request.limits.max_tokens);
    let heard = answers(engine, request);
    let mut rows = 0;
    for (number, heard) in heard.iter().enumerate() {
        let Some((text, score)) = expected.get(number) else {
            assert!(heard.failure().is_some(), "{told}: {heard:?}");
            continue;
        };
        let (tokens, own, so_many) = found(heard, tag);
        assert_eq!(&tokens, text, "{told}: answer {number}, {expected:?}");
        assert!((own - score).abs() < 1e-4, "{told}: {own} {score}");
        rows = so_many;
    }
    wait_until(engine, |stats| stats.blocks_used == 0 && stats.running == 0);
    rows
}

pub(crate) const SALTS: u64 = 4;

pub(crate) fn beam(width: usize, length_penalty: f64) -> Search {
    Search::Beam {
        width,
        length_penalty,
        patience: None,
    }
}

fn best_first(width: usize, length_penalty: f64) -> Search {
    Search::BestFirstBeam {
        width,
        length_penalty,
    }
}

pub(crate) const EXACT: Search = Search::KBest {
    max_rows: 10_000,
    max_frontier: 10_000,
};

/// Beam search with lists: after every token the candidates of all beams are sorted, and ends among the first
/// `width` are finished. `penalty` is asked for the token's cost in the group. Finished texts with scores,
/// the best first.
pub(crate) struct Listed {
    pub(crate) beams: Vec<(Vec<u32>, f64)>,
    pub(crate) finished: Vec<(Vec<u32>, f64)>,
}

impl Listed {
    pub(crate) fn new() -> Self {
        Listed {
            beams: vec![(Vec::new(), 0.0)],
            finished: Vec::new(),
        }
    }

    pub(crate) fn step(
        &mut self,
        (width, penalty): (usize, f64),
        begins: &HashMap<Vec<u32>, bool>,
        salt: u64,
        cost: impl Fn(u32) -> f64,
    ) -> Vec<u32> {
        let mut candidates = Vec::new();
        for (prefix, total) in self.beams.drain(..) {
            let row = row(&prefix, salt);
            for token in 0..=END {
                let longer = [&prefix[..], &[token]].concat();
                let is_allowed = match token {
                    END => begins[&prefix],
                    _ => begins.contains_key(&longer),
                };
                if is_allowed {
                    let total = total + row[token as usize].ln();
                    candidates.push((total - cost(token), longer, total));
                }
            }
        }
        candidates.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut taken = Vec::new();
        for (number, (_, mut text, total)) in candidates.into_iter().enumerate() {
            if self.beams.len() == width {
                break;
            }
            let tokens = text.len();
            match *text.last().unwrap() {
                END if number >= width => continue,
                END => {
                    taken.push(END);
                    text.pop();
                    self.finished.push((text, total / (tokens as f64).powf(penalty)));
                }
                token => {
                    taken.push(token);
                    self.beams.push((text, total));
                }
            }
        }
        self.finished.sort_by(|one, other| other.1.total_cmp(&one.1));
        taken
    }
}

fn listed(texts: &[(Vec<u32>, f64)], width: usize, penalty: f64, salt: u64) -> Vec<(Vec<u32>, f64)> {
    let begins = begins(texts);
    let mut listed = Listed::new();
    while !listed.beams.is_empty() {
        listed.step((width, penalty), &begins, salt, |_| 0.0);
    }
    listed.finished.truncate(width);
    listed.finished
}

#[test]
fn beams_find_what_lists_of_candidates_find() {
    for salt in 0..SALTS {
        let engine = engine(salt, EngineConfig::default());
        for (pattern, max_tokens) in CASES {
            let texts = texts(pattern, max_tokens, salt);
            for (width, penalty) in [(1, 0.0), (2, 0.0), (3, 1.0), (4, 0.5)] {
                let expected = listed(&texts, width, penalty, salt);
                let request = request(beam(width, penalty), pattern, max_tokens, width);
                agrees(&engine, request, LawTag::Beam, &expected);
            }
        }
    }
}

/// The same texts as beam search, never from more rows; from less than two thirds where texts are long and
/// one is wanted.
#[test]
fn best_first_beams_find_the_texts_of_beams_in_fewer_rows() {
    let mut rows = BTreeMap::new();
    for salt in 0..SALTS {
        let engine = engine(salt, EngineConfig::default());
        for (pattern, max_tokens) in CASES {
            let texts = texts(pattern, max_tokens, salt);
            for (width, penalty) in [(2, 0.0), (4, 0.0), (4, 1.0), (6, 0.5)] {
                for answers in [1, 2] {
                    let mut expected = listed(&texts, width, penalty, salt);
                    expected.truncate(answers);
                    let request = |search| request(search, pattern, max_tokens, answers);
                    let of_beams = agrees(&engine, request(beam(width, penalty)), LawTag::Beam, &expected);
                    let of_best = agrees(
                        &engine,
                        request(best_first(width, penalty)),
                        LawTag::BestFirstBeam,
                        &expected,
                    );
                    assert!(
                        of_best <= of_beams,
                        "{pattern} {width} {penalty}: {of_best} {of_beams}"
                    );
                    let sums: &mut (usize, usize) = rows.entry(("short", penalty > 0.0)).or_default();
                    *sums = (sums.0 + of_beams, sums.1 + of_best);
                }
            }
        }
        for width in [4, 8, 16] {
            let request = |search| request(search, "[a-d]{0,40}", 41, 1);
            let of_beams = found(&answers(&engine, request(beam(width, 0.0)))[0], LawTag::Beam);
            let (text, score, of_beams) = of_beams;
            let of_best = agrees(
                &engine,
                request(best_first(width, 0.0)),
                LawTag::BestFirstBeam,
                &[(text, score)],
            );
            let sums = rows.entry(("long", false)).or_default();
            *sums = (sums.0 + of_beams, sums.1 + of_best);
        }
    }
    println!(
        "rows of beams and of best-first beams, by length of the texts and whether there is a penalty: {rows:?}"
    );
    let (of_beams, of_best) = rows[&("long", false)];
    assert!(3 * of_best < 2 * of_beams, "{rows:?}");
}

#[test]
fn exact_search_finds_the_likeliest_texts_of_all() {
    let mut rows = (0, 0);
    for salt in 0..SALTS {
        let engine = engine(salt, EngineConfig::default());
        for (pattern, max_tokens) in CASES {
            let texts = texts(pattern, max_tokens, salt);
            for answers in [1, 3, 12] {
                let expected = &texts[..answers.min(texts.len())];
                let request = |search| request(search, pattern, max_tokens, answers);
                let own = agrees(&engine, request(EXACT), LawTag::KBest, expected);
                // Beams wide enough for all texts are as exact.
                let wide = agrees(&engine, request(beam(400, 0.0)), LawTag::Beam, expected);
                assert!(own <= wide);
                rows = (rows.0 + own, rows.1 + wide);
            }
        }
    }
    println!("rows of exact search, and of beams that are wide enough: {rows:?}");
    assert!(4 * rows.0 < 3 * rows.1, "{rows:?}");
}

/// With few branches prefixes are given up and computed again, and of long rows only a part is known at
/// first.
#[test]
fn exact_search_in_a_small_cache_finds_the_same() {
    let narrow = EngineConfig {
        blocks: 24,
        block_size: 2,
        max_running: 3,
        ..EngineConfig::default()
    };
    for salt in 0..SALTS {
        let engine = engine(salt, narrow.clone());
        for (pattern, max_tokens) in CASES {
            let texts = texts(pattern, max_tokens, salt);
            let request = request(EXACT, pattern, max_tokens, 9);
            agrees(&engine, request, LawTag::KBest, &texts[..9.min(texts.len())]);
        }
    }
}

/// Of a row with more allowed tokens than are known at first, the others come to light as the bound of the
/// rest demands.
#[test]
fn exact_search_finds_what_is_not_among_the_first_tokens_of_a_row() {
    let weight = |prefix: &[u32], token: u32| {
        let sum: u32 = prefix
            .iter()
            .skip(1)
            .zip(1..)
            .map(|(&token, place)| (token + 3) * place)
            .sum();
        1.0 + f64::from((sum * 31 + token * 17) % 41)
    };
    let row = move |prefix: &[u32]| -> Vec<f64> {
        let weights: Vec<f64> = (0..crate::rig::WIDTH as u32)
            .map(|token| weight(prefix, token))
            .collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| (weight / sum).ln()).collect()
    };
    let script = move |prefix: &[u32]| row(prefix).into_iter().map(|ln| ln as f32).collect();
    let engine = crate::rig::start(script, EngineConfig::default());
    let grammar = crate::rig::grammar("[i-z]{2}x?");
    let mut expected = Vec::new();
    let mut prefixes = vec![(vec![PROMPT], 0.0, grammar.start())];
    while let Some((prefix, total, state)) = prefixes.pop() {
        // Holes are no tokens: the law is that of the others.
        let holes: f64 = (crate::rig::EOS + 1..crate::rig::WIDTH as u32)
            .map(|hole| row(&prefix)[hole as usize].exp())
            .sum();
        for token in grammar.mask(state).iter() {
            let total: f64 = total + row(&prefix)[token as usize] - (1.0 - holes).ln();
            match token {
                crate::rig::EOS => expected.push((prefix[1..].to_vec(), total)),
                _ => prefixes.push((
                    [&prefix[..], &[token]].concat(),
                    total,
                    grammar.step(state, token).unwrap(),
                )),
            }
        }
    }
    expected.sort_by(|one, other| other.1.total_cmp(&one.1));
    let wide = request(EXACT, "a", 4, 60).grammar(Some(grammar));
    let heard = answers(&engine, wide);
    for (heard, (_, total)) in heard.iter().zip(&expected) {
        let (text, score, _) = found(heard, LawTag::KBest);
        assert!((score - total).abs() < 1e-4, "{score} {total}");
        // Some are equally likely.
        let own = expected
            .iter()
            .find(|other| other.0 == text)
            .expect("a text of the grammar");
        assert!((own.1 - total).abs() < 1e-4);
    }
    let texts: std::collections::BTreeSet<Vec<u32>> = heard.iter().map(Heard::tokens).collect();
    assert_eq!(texts.len(), 60);
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

#[test]
fn exact_search_ends_at_its_bounds_with_what_it_has_found() {
    let (pattern, max_tokens) = CASES[1];
    let engine = engine(2, EngineConfig::default());
    let texts = texts(pattern, max_tokens, 2);
    for (max_rows, max_frontier, limit) in [(6, 1_000, "max_rows"), (1_000, 2, "max_frontier")] {
        let search = Search::KBest {
            max_rows,
            max_frontier,
        };
        let heard = answers(&engine, request(search, pattern, max_tokens, 12));
        let whole = heard.iter().filter(|heard| heard.failure().is_none()).count();
        assert!(whole < 12);
        for (number, heard) in heard.iter().enumerate() {
            match heard.failure() {
                None => assert_eq!(heard.tokens(), texts[number].0),
                Some(error) => assert!(
                    matches!(error, EngineError::SearchExhausted { limit: met, found, .. } if *met == limit && *found == whole),
                    "{error:?}"
                ),
            }
        }
        wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
    }
}

/// A budget takes prefixes away that could not be completed: all answers are whole, and say where the tokens
/// left mattered.
#[test]
fn what_cannot_be_completed_in_time_is_no_part_of_a_search() {
    let pattern = "a[a-d]{6}|bcd";
    let engine = engine(3, EngineConfig::default());
    let texts = texts(pattern, 4, 3);
    assert_eq!(texts.len(), 1);
    for (search, tag) in [
        (beam(3, 0.0), LawTag::Beam),
        (best_first(3, 0.0), LawTag::BestFirstBeam),
        (EXACT, LawTag::KBest),
    ] {
        let request = request(search, pattern, 4, 1);
        let heard = answers(&engine, request.clone());
        let steered = heard[0].outcome().steered.expect("a letter that was not allowed");
        assert_eq!((steered.from, steered.max_tokens), (Some(0), 4));
        agrees(&engine, request, tag, &texts);
    }
}

/// Without a grammar texts end where the model ends them, or are as long as they may be.
#[test]
fn searches_need_no_grammar() {
    let engine = engine(0, EngineConfig::default());
    let all = texts("[a-d]*", 3, 0);
    // Two letters and no end within two tokens.
    let mut cut: Vec<(Vec<u32>, f64)> = Vec::new();
    for (first, second) in (0..LETTERS).flat_map(|first| (0..LETTERS).map(move |second| (first, second))) {
        let total = row(&[], 0)[first as usize].ln() + row(&[first], 0)[second as usize].ln();
        cut.push((vec![first, second], total));
    }
    cut.extend(all.into_iter().filter(|(text, _)| text.len() < 2));
    cut.sort_by(|one, other| other.1.total_cmp(&one.1));
    for (search, tag) in [
        (beam(30, 0.0), LawTag::Beam),
        (best_first(30, 0.0), LawTag::BestFirstBeam),
        (EXACT, LawTag::KBest),
    ] {
        let free = request(search, "a", 2, 5).grammar(None);
        agrees(&engine, free, tag, &cut[..5]);
    }
}

/// Prefixes that wait for each other give their places to those that they wait for, whoever has the others.
#[test]
fn many_searches_in_a_small_batch_all_end() {
    let engine = engine(
        3,
        EngineConfig {
            max_running: 4,
            max_waiting: 1_024,
            blocks: 64,
            block_size: 2,
            ..EngineConfig::default()
        },
    );
    let (pattern, max_tokens) = CASES[1];
    let searches = [beam(6, 0.0), best_first(6, 1.0), EXACT, beam(3, 1.0)];
    let listeners: Vec<_> = (0..16)
        .map(|number| {
            crate::rig::listen(
                &engine,
                request(searches[number % 4].clone(), pattern, max_tokens, 1),
            )
        })
        .collect();
    for listener in listeners {
        assert!(listener.wait().failure().is_none());
    }
    wait_until(&engine, |stats| stats.blocks_used == 0 && stats.running == 0);
}

#[test]
fn who_leaves_a_search_takes_all_of_it_along() {
    let engine = engine(0, EngineConfig::default());
    for search in [beam(8, 1.0), best_first(8, 1.0), EXACT] {
        for _ in 0..10 {
            let free = request(search.clone(), "a", 40, 1).grammar(None);
            crate::rig::listen(&engine, free).cancel();
        }
    }
    wait_until(&engine, |stats| {
        stats.blocks_used == 0 && stats.running == 0 && stats.waiting == 0
    });
}

#[test]
fn numbers_that_a_search_cannot_have_are_refused_by_name() {
    let engine = engine(
        0,
        EngineConfig {
            max_branches: 65,
            ..EngineConfig::default()
        },
    );
    let diverse = |width, groups, diversity| Search::DiverseBeam {
        width,
        groups,
        diversity,
        length_penalty: 0.0,
    };
    let exact = |max_rows, max_frontier| Search::KBest {
        max_rows,
        max_frontier,
    };
    let impatient = Search::Beam {
        width: 2,
        length_penalty: 0.0,
        patience: Some(0.0),
    };
    for (search, name) in [
        (beam(1, 0.0), "search.width"),
        (beam(33, 0.0), "search.width"),
        (beam(2, -1.0), "search.length_penalty"),
        (best_first(2, f64::NAN), "search.length_penalty"),
        (impatient, "search.patience"),
        (diverse(4, 3, 1.0), "search.groups"),
        (diverse(4, 0, 1.0), "search.groups"),
        (diverse(4, 2, -1.0), "search.diversity"),
        (containing(3, &[]), "search.must_contain"),
        (containing(3, &[&[]]), "search.must_contain"),
        (containing(3, &[&[99]]), "search.must_contain"),
        (containing(1, &[&[1]]), "search.width"),
        (a_star(2, f64::INFINITY, 0), "search.distance_weight"),
        (a_star(2, 1.0, 17), "search.look_ahead"),
        (a_star(20, 1.0, 0), "search.width"),
        (cautious(0, 0.0, 1.0), "search.trials"),
        (cautious(17, 0.0, 1.0), "search.trials"),
        (cautious(2, -1.0, 1.0), "search.low_entropy"),
        (cautious(2, 1.0, 0.5), "search.high_entropy"),
        (exact(0, 1), "search.max_rows"),
        (exact(1, 0), "search.max_frontier"),
    ] {
        match engine.check(&request(search, "a*", 5, 2)) {
            Err(refusal) => assert_eq!(refusal.field(), Some(name)),
            Ok(()) => panic!("{name}"),
        }
    }
}
