//! Walks a compiled grammar by random tokens and compares what it says with what it does.
//!
//! The mask is compared with steps, token by token: they share no walk of the trie. A state that is neither
//! whole nor can go on is a finding, and so is a mask that takes too long. A question that is refused by its
//! limit ends the walk, and so does the time for all questions together.

use lexiform::MaskRequest;
use lexiform::{Grammar, State};

use super::clock::{COMPILE, MASK, Stopwatch, WALK, within};

/// How many tokens a walk takes.
const STEPS: usize = 48;
/// At how many of the first states all tokens are compared; later ones compare some.
const WHOLE: usize = 4;
/// How many tokens are compared at later states.
const SOME: usize = 12;
/// The tokens within which a completion is asked for.
const BUDGET: usize = 40;

/// Choices that depend on a text alone, so that a finding repeats itself.
#[derive(Debug)]
pub struct Choices(u64);

impl Choices {
    /// The choices of this text.
    pub fn of(text: impl AsRef<[u8]>) -> Choices {
        // FNV-1a; the value is never 0, which the generator would keep.
        let hash = text
            .as_ref()
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
        Choices(hash | 1)
    }

    /// A number below `sides` (xorshift).
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides.max(1)
    }
}

/// Walks from the start until the text ends or is long enough.
pub fn walk(grammar: &Grammar, choices: &mut Choices) {
    let (mut state, begun) = (grammar.start(), Stopwatch::start());
    let least = within(COMPILE, "the least completion", || grammar.min_completion(state));
    for step in 0..STEPS {
        let Ok(mask) = within(MASK, "a mask", || grammar.try_mask(state)) else {
            return;
        };
        if grammar.is_finished(state) {
            return;
        }
        let allowed: Vec<u32> = mask.iter().collect();
        assert!(!allowed.is_empty(), "finding: a dead end after {step} tokens");
        compare(grammar, state, step, (choices, begun));
        if begun.is_over(WALK) {
            return;
        }
        drop(within(MASK, "forced text", || grammar.forced(state)));
        if step % 8 == 3 && least.is_some_and(|least| least <= BUDGET) {
            compare_within(grammar, state, &allowed);
        }
        let token = allowed[choices.roll(allowed.len())];
        let Ok(next) = within(MASK, "a step", || grammar.try_step(state, token)) else {
            return;
        };
        state = next.unwrap_or_else(|| panic!("finding: token {token} of the mask does not step"));
    }
}

/// Every bit of the mask is what the step of that token says.
fn compare(grammar: &Grammar, state: State, step: usize, (choices, begun): (&mut Choices, Stopwatch)) {
    let mask = grammar.mask(state);
    let tokens = grammar.vocabulary().len();
    let compared = if step < WHOLE { tokens } else { SOME };
    for at in 0..compared {
        let token = if step < WHOLE { at } else { choices.roll(tokens) } as u32;
        let Ok(steps) = within(MASK, "a step", || grammar.try_step(state, token)) else {
            return;
        };
        if begun.is_over(WALK) {
            return;
        }
        assert_eq!(
            mask.contains(token),
            steps.is_some(),
            "finding: mask and step differ at token {token} after {step} tokens"
        );
    }
}

/// A mask within a budget takes away tokens, and adds none.
fn compare_within(grammar: &Grammar, state: State, allowed: &[u32]) {
    let narrow = within(MASK, "a mask within a budget", || {
        grammar.steered_mask(MaskRequest::from(state).within(BUDGET))
    });
    let Ok((narrow, _)) = narrow else { return };
    for token in narrow.iter() {
        assert!(
            allowed.binary_search(&token).is_ok(),
            "finding: token {token} is allowed within a budget alone"
        );
    }
    let completes = within(COMPILE, "the least completion", || {
        grammar.completes_within(state, BUDGET)
    });
    assert!(
        !completes || !narrow.is_empty(),
        "finding: a text can be completed in {BUDGET} tokens, and its mask says otherwise"
    );
}
