//! Free text before an answer, of which only so many tokens are allowed.

use crate::rig::{Heard, Redraw, engine, generate, global, grammar, letters, wordy_script};
use lexiform::Grammar;
use lexiform_engine::{
    Event, OnBudget, Preamble, PreambleLimit, PreambleTokens, Refusal, Request, Sampling, Speculation,
    SteeredPreamble,
};

/// A text between `q` and `z` or `jo`, of which the second begins what comes after it, and one of a few
/// answers.
const PATTERN: &str = "(q[a-h]*(z(x|yy)uu|jo+k))|(x|yy)uu";

const MARKS: Preamble = Preamble {
    open: "q",
    close: &["z", "jo"],
    is_open: false,
};

fn request((pattern, preamble): (&str, Preamble), (most, max_tokens): (usize, usize), seed: u64) -> Request {
    let grammar = grammar(pattern);
    let limit = PreambleLimit::new(&grammar, preamble, most).expect("a limit");
    Request::new(letters("go "), max_tokens)
        .grammar(Some(grammar))
        .preamble(limit)
        .sampling(Sampling::seeded(seed))
}

/// The tokens of the text before the answer.
fn counted(preamble: Preamble, heard: &Heard) -> usize {
    let vocabulary = crate::rig::vocabulary();
    let mut tokens = PreambleTokens::new(preamble);
    for token in heard.tokens() {
        tokens.read(vocabulary.bytes(token));
    }
    tokens.count()
}

/// What may come after these tokens, found the slow way; and whether the limit of the text excludes anything
/// that `max_tokens` does not.
fn allowed(grammar: &Grammar, tokens: &[u32], (most, max_tokens): (usize, usize)) -> (Vec<u32>, bool) {
    let vocabulary = grammar.vocabulary();
    let text: Vec<u8> = tokens
        .iter()
        .flat_map(|&token| vocabulary.bytes(token).to_vec())
        .collect();
    let text = String::from_utf8(text).expect("letters");
    let state = tokens.iter().fold(grammar.start(), |state, &token| {
        grammar.step(state, token).expect("a step")
    });
    let is_inside = text.starts_with('q') && !text.contains('z') && !text.contains("jo");
    let begun = grammar.step_bytes(grammar.start(), b"q").expect("a step");
    let rest = grammar.min_completion(begun).expect("a completion");
    let all = max_tokens + 1 - tokens.len();
    // The mark is the first token of the answer.
    let left = (most + rest).saturating_sub(tokens.len().saturating_sub(1));
    let fits = |token: u32, left: usize| match grammar.step(state, token) {
        _ if vocabulary.is_eos(token) => left >= 1,
        Some(next) => left >= 2 && grammar.completes_within(next, left - 1),
        None => false,
    };
    let within = |left: usize| -> Vec<u32> {
        let mask = grammar.mask(state);
        mask.iter().filter(|&token| fits(token, left)).collect()
    };
    match is_inside && left < all {
        true => (within(left), within(left).len() < within(usize::MAX).len()),
        false => (within(all), false),
    }
}

/// Every token is drawn from the model's row, restricted to what the slow definition allows, with and
/// without drafts; and the answer says from where the limit narrowed it.
#[test]
fn a_limit_restricts_the_law_token_by_token_and_says_from_where() {
    let (engine, whole) = (engine(wordy_script), grammar(PATTERN));
    let (mut steered, mut longest) = (0, 0);
    for most in 0..5 {
        for seed in 0..12 {
            for speculation in [Speculation::none(), Speculation::all()] {
                let limits = (most, 40);
                let heard = generate(
                    &engine,
                    request((PATTERN, MARKS), limits, seed).speculation(speculation),
                );
                let (tokens, mut from) = (heard.tokens(), None::<u32>);
                for (number, event) in heard.events.iter().enumerate() {
                    let Event::Token { token, log_share, .. } = event else {
                        continue;
                    };
                    let (allowed, is_narrowed) = allowed(&whole, &tokens[..number], limits);
                    from = from.or(is_narrowed.then_some(number as u32));
                    let row = wordy_script(&[letters("go "), tokens[..number].to_vec()].concat());
                    let mass: f64 = allowed
                        .iter()
                        .map(|&token| f64::from(row[token as usize]).exp())
                        .sum();
                    let share = f64::from(row[*token as usize]) - mass.ln();
                    assert!(allowed.contains(token), "{:?} at {number}", heard.text());
                    assert!(
                        (share - f64::from(*log_share)).abs() < 1e-4,
                        "{share} {log_share}"
                    );
                }
                let told = heard.outcome().steered.and_then(|steered| steered.preamble);
                let expected = from.map(|from| SteeredPreamble {
                    from,
                    max_tokens: most as u32,
                });
                assert_eq!(told, expected, "{:?}", heard.text());
                assert!(counted(MARKS, &heard) <= most, "{:?}", heard.text());
                steered += usize::from(told.is_some());
                longest = longest.max(counted(MARKS, &heard));
            }
        }
    }
    assert!(steered > 10 && longest == 4, "{steered} {longest}");
}

/// The shortest answer behind the text always has room: whatever the model would write, an answer is whole.
#[test]
fn the_text_never_takes_the_room_of_the_answer() {
    let greedy = engine(|prefix| {
        let likely = if prefix.len() <= 3 { "q" } else { "a" };
        let likely = letters(likely)[0] as usize;
        (0..crate::rig::WIDTH)
            .map(|token| if token == likely { 9.0 } else { 0.0 })
            .collect()
    });
    let pattern = "q[a-h]*zx{30}y";
    for max_tokens in 33..45 {
        for most in [0, 3, 5, 100] {
            for speculation in [Speculation::none(), Speculation::all()] {
                let asked = request((pattern, MARKS), (most, max_tokens), 0).sampling(Sampling::default());
                let heard = generate(&greedy, asked.speculation(speculation));
                let text = "a".repeat(most.min(max_tokens - 33));
                assert_eq!(heard.text(), format!("q{text}z{}y", "x".repeat(30)));
            }
        }
    }
    let short = request((pattern, MARKS), (100, 32), 0);
    let refusal = greedy.check(&short).expect_err("a refusal");
    assert_eq!(
        refusal,
        Refusal::TooFew {
            max_tokens: 32,
            least: Some(33)
        }
    );
}

/// A limit holds where answers may be cut, under laws over whole texts, and for a text that the prompt
/// began.
#[test]
fn a_limit_holds_under_every_treatment_and_law() {
    let engine = engine(wordy_script);
    let begun = Preamble {
        is_open: true,
        ..MARKS
    };
    for seed in 0..6 {
        for (pattern, preamble) in [(PATTERN, MARKS), ("[a-h]*(z(x|yy)uu|jo+k)", begun)] {
            let asked = |most| request((pattern, preamble), (most, 40), seed);
            for most in 0..3 {
                let cut = generate(&engine, asked(most).on_budget(OnBudget::Cut));
                assert!(counted(preamble, &cut) <= most, "{:?}", cut.text());
                let whole = generate(&engine, asked(most).law(global(2_000)));
                assert!(counted(preamble, &whole) <= most, "{:?}", whole.text());
            }
        }
    }
    let mut free = Request::new(letters("go "), 9);
    free.limits.preamble = Some(PreambleLimit::new(&grammar(PATTERN), MARKS, 3).expect("a limit"));
    let refusal = engine.check(&free).expect_err("a refusal");
    assert!(
        refusal.to_string().contains("absent without a grammar"),
        "{refusal}"
    );
}
