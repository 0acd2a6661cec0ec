//! Abandoned queries leave nothing behind: whatever was spent before, the next answer is correct.

use lexiform::MaskRequest;
use lexiform::limits::Limits;
use lexiform::vocab::{TokenKind, Vocabulary};
use lexiform::{Grammar, briefly};
use lexiform_automata::mask::Tables;
use std::sync::Arc;

fn vocabulary() -> Arc<Vocabulary> {
    let single = ('a'..='z').chain([' ']).map(|letter| letter.to_string());
    let longer = ["ab", "cd", "abc", "dab", "ab ", "cdcd"].map(str::to_string);
    let mut tokens: Vec<(TokenKind, String)> =
        single.chain(longer).map(|text| (TokenKind::Text, text)).collect();
    tokens.push((TokenKind::Special, "<end>".to_string()));
    let end = tokens.len() as u32 - 1;
    Arc::new(Vocabulary::new(&tokens, &[end]).unwrap())
}

fn grammar(pattern: &str, grammar_bytes: usize, vocabulary: &Arc<Vocabulary>) -> Grammar {
    let limits = Limits {
        grammar_bytes,
        ..Limits::default()
    };
    let tables = Arc::new(Tables::new(vocabulary.clone(), 1 << 24));
    Grammar::new(
        &lexiform_syntax::regex::lower(pattern, &limits).unwrap(),
        &tables,
        &limits,
    )
    .unwrap()
}

#[test]
fn what_was_given_up_changes_no_later_answer() {
    let vocabulary = vocabulary();
    let patterns = [
        "((ab|cd){1,500} ){40}",
        "(a|b|ab|c(d|cd)*)*z",
        "((ab)*|(a|b){3,20} )*",
        "([a-d]{1,4}( |ab)?){2,9}",
    ];
    for pattern in patterns {
        for bytes in [1 << 16, 64 << 20] {
            for most in [1, 3, 10, 40, 150, 600, 2_500] {
                let (tried, fresh) = (
                    grammar(pattern, bytes, &vocabulary),
                    grammar(pattern, 64 << 20, &vocabulary),
                );
                let (mut state, mut right) = (tried.start(), fresh.start());
                let mut chance = 7_usize;
                for place in 0..60 {
                    let what = format!("{pattern}, {bytes} bytes, {most} rounds, place {place}");
                    for budget in [None, Some(100)] {
                        briefly(most, || {
                            budget.map_or_else(
                                || tried.try_mask(state).is_ok(),
                                |budget| {
                                    tried
                                        .steered_mask(MaskRequest::from(state).within(budget))
                                        .is_ok()
                                },
                            )
                        });
                    }
                    assert_eq!(tried.mask(state).words(), fresh.mask(right).words(), "{what}");
                    let steered = |grammar: &Grammar, state| {
                        grammar
                            .steered_mask(MaskRequest::from(state).within(100))
                            .unwrap()
                            .0
                    };
                    assert_eq!(
                        steered(&tried, state).words(),
                        steered(&fresh, right).words(),
                        "{what}"
                    );
                    let allowed: Vec<u32> = (0..vocabulary.len() as u32 - 1)
                        .filter(|&token| fresh.mask(right).contains(token))
                        .collect();
                    let Some(&token) = allowed.get(chance % allowed.len().max(1)) else {
                        break;
                    };
                    chance = chance.wrapping_mul(1_103_515_245).wrapping_add(12_345) >> 3;
                    briefly(most, || tried.try_step(state, token).is_ok());
                    (state, right) = (
                        tried.step(state, token).expect(&what),
                        fresh.step(right, token).unwrap(),
                    );
                    let mut states = [state];
                    let mut renewed = tried.clone();
                    if place % 16 == 15 && renewed.compact(&mut states) {
                        assert_eq!(
                            renewed.mask(states[0]).words(),
                            fresh.mask(right).words(),
                            "{what}, renewed"
                        );
                    }
                }
            }
        }
    }
}
