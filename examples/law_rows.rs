//! Two laws over the same rows of logits: masking each row, and conditioning the whole text.
//!
//! `cargo run --example law_rows`. The model writes `a` with probability 0.9 and `b` with 0.1, each time; the
//! constraint allows `aa` and `bb` followed by the end, and the end is likely only after `b`. The local law
//! chooses `a` nine times in ten, because it masks one row at a time; the global law accounts for how likely
//! the model is to finish each text.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

use lexiform::law::{
    Allowed, Fallback, History, Law, Sampler as _, Seeded, Step, Trie, Walk, Warper, Warping,
};
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, Options, Source, compile};

const TOKENS: [(TokenKind, &str); 3] = [
    (TokenKind::Special, "<end>"),
    (TokenKind::Text, "a"),
    (TokenKind::Text, "b"),
];
const TEXTS: u32 = 4_000;

/// Returns the logits of the scripted model after a text: for `<end>`, `a` and `b`.
fn logits(text: &[u32]) -> [f32; 3] {
    let probabilities: [f32; 3] = match text {
        [1, 1] => [0.01, 0.9, 0.09],
        [2, 2] => [0.9, 0.09, 0.01],
        _ => [0.0, 0.9, 0.1],
    };
    probabilities.map(f32::ln)
}

/// Returns one text of a walk, drawn with the numbers of a seed.
fn text(grammar: &Grammar, warper: &Warper, mut walk: Walk, sequence: u32) -> Result<String, Box<dyn Error>> {
    let mut chooser = Seeded::new(7, sequence);
    let mut tokens: Vec<u32> = Vec::new();
    let mut states = vec![grammar.start()];
    loop {
        let state = states[states.len() - 1];
        let row = logits(&tokens);
        let history = History {
            prompt: &[],
            answer: &tokens,
            draft: &[],
        };
        let row = warper.row(&row, history)?;
        let mask = grammar.mask(state);
        match walk.next(&row, Allowed::Words(mask.words()), &mut chooser) {
            Step::Token(drawn) => {
                states.push(grammar.step(state, drawn.token).ok_or("the mask allowed it")?);
                tokens.push(drawn.token);
            }
            Step::End(_) => return Ok(tokens.iter().map(|token| TOKENS[*token as usize].1).collect()),
            // The attempt failed; the next one takes that into account.
            Step::Restart => {
                tokens.clear();
                states.truncate(1);
            }
            Step::Stuck(error) => return Err(error.into()),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let vocabulary = Arc::new(Vocabulary::new(&TOKENS, &[0])?);
    let (grammar, _notes) = compile(Source::Regex("aa|bb"), &vocabulary, &Options::default())?;

    let warping = Warping::default();
    let local = Warper::new(warping.clone(), Law::Local)?;
    let attempts = 1_000;
    let law = Law::Global {
        share_attempts: false,
        max_attempts: attempts,
        fallback: Fallback::Fail,
    };
    let global = Warper::new(warping, law)?;
    let trie = Arc::new(Mutex::new(Trie::new(&[0], 16, 1_000)));

    let mut counts: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    for sequence in 0..TEXTS {
        let walk = Walk::local(&local, true, &[0]);
        counts.entry(text(&grammar, &local, walk, sequence)?).or_default()[0] += 1;
        let walk = Walk::global(trie.clone(), attempts, Fallback::Fail);
        counts
            .entry(text(&grammar, &global, walk, sequence)?)
            .or_default()[1] += 1;
    }
    // The exact shares: local 0.9 and 0.1; global 0.81 · 0.01 and 0.01 · 0.9, divided by their sum, which is
    // 0.474 and 0.526.
    for (text, [local, global]) in counts {
        let share = |count: u32| f64::from(count) / f64::from(TEXTS);
        println!("{text}: local {:.3}, global {:.3}", share(local), share(global));
    }
    Ok(())
}
