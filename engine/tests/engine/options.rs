//! Options that are weighed as one tree: each has the probability that it has alone, however the tree is
//! split into passes, and all tokenizations of one together have the sum of theirs.

use crate::rig::{
    EOS, WIDTH, drafting, engine, generate, grammar, letters, start, vocabulary, wait_until, wordy_script,
};
use lexiform_engine::{
    Engine, EngineConfig, Event, Finish, Mirostat, MirostatVersion, Options, OptionsError, Outcome,
    Reporting, Request, Sampling, Task, Weigh, Weighed,
};
use std::sync::Arc;

fn canonical(texts: &[&str]) -> Options {
    let sequences: Vec<Vec<u32>> = texts.iter().map(|text| letters(text)).collect();
    Options::canonical(&sequences).expect("few options")
}

fn request(options: Options) -> Request {
    Request::new(letters("the quick"), options.longest() + 1)
        .task(Weigh {
            options: Arc::new(options),
            likeliest: None,
        })
        .sampling(Sampling::seeded(1))
}

fn weigh(engine: &Engine, request: Request) -> (Vec<Weighed>, Outcome) {
    let heard = generate(engine, request);
    assert_eq!(heard.events.len(), 1, "nothing is drawn: {:?}", heard.events);
    let outcome = heard.outcome().clone();
    assert_eq!((outcome.finish, outcome.log_weight), (Finish::Stop, None));
    (outcome.options.clone().expect("options"), outcome)
}

/// `ln p` of each token of a text after the prompt, and of the end, under a script.
fn logs(script: impl Fn(&[u32]) -> Vec<f32>, prompt: &[u32], tokens: &[u32]) -> (f64, f64) {
    let mut prefix = prompt.to_vec();
    let mut sum = 0.0;
    let log = |row: &[f32], token: u32| {
        let vocabulary = 43 + 1;
        let mass: f64 = row[..vocabulary]
            .iter()
            .map(|logit| f64::from(*logit).exp())
            .sum();
        f64::from(row[token as usize]) - mass.ln()
    };
    for &token in tokens {
        sum += log(&script(&prefix), token);
        prefix.push(token);
    }
    (sum, log(&script(&prefix), EOS))
}

fn near(found: f64, expected: f64, what: &str) {
    let same = found == expected || (found - expected).abs() < 1e-9;
    assert!(same, "{what}: {found}, not {expected}");
}

/// Texts of all kinds: with common beginnings, one inside another, far from each other, long ones.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "a",
        "ab",
        "abc",
        "abd",
        "b",
        "the lazy dog",
        "the lazy fox",
        "the",
        "q",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.extend((0..60).map(|number: u32| format!("option {:03}", number * 37 % 1000)));
    texts.push(format!("{} z", "abc".repeat(20)));
    texts.push(format!("{}q z", "abc".repeat(20)));
    texts
}

#[test]
fn an_option_has_the_probability_that_it_has_alone() {
    let texts = texts();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let prompt = letters("the quick");
    let hole_is_nothing = |prefix: &[u32]| {
        let mut row = wordy_script(prefix);
        row[44 - 1 + 1..].fill(f32::NEG_INFINITY);
        row
    };
    for (max_step_tokens, blocks) in [(512, 1024), (64, 1024), (17, 1024), (9, 12), (3, 1024), (2, 1024)] {
        let config = EngineConfig {
            max_step_tokens,
            blocks,
            ..drafting()
        };
        let engine = start(hole_is_nothing, config);
        for weigh_end in [false, true] {
            let request = request(canonical(&texts)).reporting(Reporting {
                weigh_end,
                ..Reporting::default()
            });
            let (weighed, outcome) = weigh(&engine, request);
            assert_eq!(outcome.prompt_tokens, 9);
            assert_eq!(outcome.completion_tokens, canonical(&texts).tokens());
            for (text, weighed) in texts.iter().zip(weighed) {
                let (tokens, end) = logs(hole_is_nothing, &prompt, &letters(text));
                let expected = tokens + if weigh_end { end } else { 0.0 };
                near(weighed.log_probability, expected, text);
                near(weighed.log_share, expected, text);
            }
        }
        let stats = wait_until(&engine, |stats| stats.blocks_used == 0);
        assert_eq!((stats.failed, stats.panics), (0, 0), "{stats:?}");
    }
}

#[test]
fn options_take_as_few_passes_as_their_tree_has_pieces() {
    let texts: Vec<String> = (0..1000).map(|number| format!("{number:03}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let engine = engine(wordy_script);
    let options = canonical(&texts);
    assert_eq!(options.tokens(), 1110);
    let (weighed, _) = weigh(&engine, request(options));
    // The prompt and the 110 inner nodes of the tree. A pass is counted after its answer is told.
    assert_eq!(wait_until(&engine, |stats| stats.steps >= 1).steps, 1);
    let sum: f64 = weighed.iter().map(|weighed| weighed.log_probability.exp()).sum();
    assert!(sum < 1.0, "{sum}");
    let longer: Vec<String> = (0..1000).map(|number| format!("{number:03} x")).collect();
    let longer: Vec<&str> = longer.iter().map(String::as_str).collect();
    let before = engine.stats().steps;
    weigh(&engine, request(canonical(&longer)));
    // 2110 inner nodes, 511 a pass, and what lies between is fed again.
    let ended = wait_until(&engine, |stats| stats.steps >= before + 5 && stats.running == 0);
    assert_eq!(ended.steps - before, 5);
}

/// Under a grammar the shares are those of the local law, here computed by hand: the sum over the allowed
/// tokens.
#[test]
fn shares_are_of_what_the_grammar_allows() {
    let engine = engine(wordy_script);
    let prompt = letters("the quick");
    let texts = ["ab", "ac", "b", "bq", "zz", "a"];
    // The first letter is a or b, the second b, c or q; nothing else, and no longer tokens.
    let of_places: [&[u32]; 2] = [&letters("ab"), &letters("bcq")];
    let request = request(canonical(&texts)).grammar(Some(grammar("[ab][bcq]")));
    let (weighed, _) = weigh(&engine, request);
    let longer = vocabulary().token_of(b"ab").expect("a token");
    for (text, weighed) in texts.iter().zip(&weighed) {
        let (mut prefix, mut share, tokens) = (prompt.clone(), 0.0, letters(text));
        for (place, token) in tokens.iter().enumerate() {
            let row = wordy_script(&prefix);
            let mut allowed = of_places[place].to_vec();
            if place == 0 {
                // `ab` and `bc` are tokens, too.
                allowed.extend([longer, vocabulary().token_of(b"bc").expect("a token")]);
            }
            let mass: f64 = allowed
                .iter()
                .map(|token| f64::from(row[*token as usize]).exp())
                .sum();
            share += match allowed.contains(token) {
                true => f64::from(row[*token as usize]) - mass.ln(),
                false => f64::NEG_INFINITY,
            };
            prefix.push(*token);
        }
        near(weighed.log_share, share, text);
        assert_eq!(weighed.log_probability.is_finite(), *text != "zz", "{text}");
    }
}

/// A bias, a temperature and penalties are part of the law that is told, as they are of what is drawn.
#[test]
fn what_is_told_is_what_would_be_drawn() {
    let engine = engine(wordy_script);
    let sampling = Sampling {
        temperature: 0.7,
        presence_penalty: 0.5,
        frequency_penalty: 0.25,
        repetition_penalty: 1.1,
        logit_bias: vec![(3, 1.5)],
        ..Sampling::seeded(4)
    };
    // What is drawn says its own probability; the same text as an option has the same.
    let drawn = Request::new(letters("the quick"), 12)
        .sampling(sampling.clone())
        .ignore_eos(true);
    let heard = generate(&engine, drawn);
    let (tokens, expected) = (heard.tokens(), heard.outcome().log_probability);
    assert!(!tokens.contains(&EOS) && tokens.len() == 12);
    let others: Vec<Vec<u32>> = (1..=12).map(|end| tokens[..end].to_vec()).collect();
    let (weighed, _) = weigh(
        &engine,
        request(Options::canonical(&others).expect("twelve")).sampling(sampling),
    );
    near(weighed[11].log_probability, expected, "all twelve");
    for (event, pair) in heard.events[1..].iter().zip(weighed.windows(2)) {
        if let Event::Token { log_share, .. } = event {
            let share = pair[1].log_share - pair[0].log_share;
            assert!((f64::from(*log_share) - share).abs() < 1e-5);
        }
    }
}

#[test]
fn all_tokenisations_of_a_text_are_summed() {
    let engine = engine(wordy_script);
    let (prompt, vocabulary) = (letters("the quick"), vocabulary());
    let texts = ["the", "abc", "abcabc", "q", "quick", "thethe x", ""];
    let options = Options::all_tokenisations(&texts, &vocabulary).expect("short texts");
    let request = request(options).reporting(Reporting {
        weigh_end: true,
        ..Reporting::default()
    });
    let (weighed, _) = weigh(&engine, request);
    let script = |prefix: &[u32]| {
        let mut row = wordy_script(prefix);
        row[44..].fill(f32::NEG_INFINITY);
        row
    };
    for (text, weighed) in texts.iter().zip(&weighed) {
        // Every sequence of tokens that writes the text, by trying them all.
        let (mut sum, mut open, mut found) = (0.0, vec![Vec::new()], 0);
        while let Some(tokens) = open.pop() {
            let written: Vec<u8> = tokens
                .iter()
                .flat_map(|token| vocabulary.bytes(*token))
                .copied()
                .collect();
            if written == text.as_bytes() {
                let (log, end) = logs(script, &prompt, &tokens);
                (sum, found) = (sum + (log + end).exp(), found + 1);
            } else if text.as_bytes().starts_with(&written) {
                open.extend((0..EOS).map(|token| [&tokens[..], &[token]].concat()));
            }
        }
        near(weighed.log_probability, f64::ln(sum), text);
        assert_eq!(found, vocabulary.tokenisations(text.as_bytes()).count());
    }
    let long = "the".repeat(40);
    assert!(matches!(
        Options::all_tokenisations(&["a", &long], &vocabulary),
        Err(OptionsError::TooManyTokenisations { option: 1, .. })
    ));
    assert_eq!(
        Options::all_tokenisations(&["a", "A"], &vocabulary),
        Err(OptionsError::Unwritable { option: 1 })
    );
}

/// The oracle weighs every span of a text.
#[test]
fn the_likeliest_spans_of_a_text_are_found_without_weighing_all() {
    let mut state = 5_u64;
    let mut below = move |sides: usize| {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % sides
    };
    // Sharper than the script, so that there is something to be left out; flat, so that there is not.
    for (sharpness, length) in [(3.0, 120), (1.0, 60), (0.0, 12)] {
        let script = move |prefix: &[u32]| {
            wordy_script(prefix)
                .iter()
                .map(|logit| logit * sharpness)
                .collect()
        };
        let text: Vec<u32> = (0..length).map(|_| below(37) as u32).collect();
        let spans = |longest: usize| {
            let spans = (0..text.len()).flat_map(|begin| (begin + 1..=text.len()).map(move |end| begin..end));
            spans
                .filter(|span| span.len() <= longest)
                .map(|span| text[span].to_vec())
                .collect::<Vec<_>>()
        };
        let sequences = spans(12);
        for max_step_tokens in [512, 20, 3] {
            let config = EngineConfig {
                max_step_tokens,
                ..drafting()
            };
            let engine = start(script, config);
            let all = request(Options::canonical(&sequences).expect("spans")).reporting(Reporting {
                weigh_end: true,
                ..Reporting::default()
            });
            let (mut weighed, _) = weigh(&engine, all.clone());
            weighed.sort_by(|one, other| other.log_probability.total_cmp(&one.log_probability));
            let steps = wait_until(&engine, |stats| stats.requests == 1 && stats.running == 0).steps;
            for (done, count) in [(2, 1), (3, 5)] {
                let before = engine.stats().steps;
                let few = likeliest(all.clone(), count);
                let (found, outcome) = weigh(&engine, few);
                assert_eq!(found.len(), count);
                for (found, expected) in found.iter().zip(&weighed) {
                    near(found.log_probability, expected.log_probability, "the same rank");
                    // Spans that stand in the text twice are equally likely.
                    assert_eq!(sequences[found.option], sequences[expected.option]);
                }
                let ended = wait_until(&engine, |stats| stats.requests == done && stats.running == 0);
                let took = ended.steps - before;
                assert!(
                    sharpness < 2.0 || max_step_tokens > 20 || took * 4 < steps,
                    "{took} of {steps}"
                );
                assert!(outcome.completion_tokens > 0);
            }
        }
    }
}

/// Wants this number of the likeliest alone.
fn likeliest(mut request: Request, count: usize) -> Request {
    let Task::Weigh(weigh) = &mut request.task else {
        panic!("nothing is weighed");
    };
    weigh.likeliest = Some(count);
    request
}

#[test]
fn what_means_nothing_with_options_is_refused() {
    let engine = engine(wordy_script);
    let good = request(canonical(&["abc"]));
    let refused = |request: Request, field: &str| {
        let refused = engine.check(&request).expect_err(field);
        assert_eq!(refused.field(), Some(field));
    };
    assert_eq!(engine.check(&good), Ok(()));
    let mut short = good.clone();
    short.limits.max_tokens = 2;
    refused(short, "max_tokens");
    let mut steered = good.clone();
    steered.sampling.mirostat = Some(Mirostat {
        version: MirostatVersion::Two,
        tau: 5.0,
        eta: 0.1,
    });
    refused(steered, "mirostat_mode");
    refused(likeliest(good, 0), "likeliest");
    let several = Options::all_tokenisations(&["abc"], &vocabulary()).expect("a short text");
    refused(likeliest(request(several), 1), "likeliest");
    let with_end = Options::canonical(&[vec![1, EOS]]).expect("one");
    refused(request(with_end), "options");
    let unknown = Options::canonical(&[vec![WIDTH as u32]]).expect("one");
    refused(request(unknown), "options");
}
