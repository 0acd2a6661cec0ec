//! Draws texts from the masks of a grammar, which reach states that no text of a test suite reaches.

use lexiform::{Grammar, Mask};

/// Draws an allowed token; every other time a short one, so that not all texts consist of long words.
pub(crate) fn draw(grammar: &Grammar, mask: &Mask, random: &mut u64) -> Option<u32> {
    let vocabulary = grammar.vocabulary();
    let tokens: Vec<u32> = mask.iter().filter(|&token| !vocabulary.is_eos(token)).collect();
    let mut any = |tokens: &[u32]| {
        *random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        tokens
            .get((*random >> 33) as usize % tokens.len().max(1))
            .copied()
    };
    let first = any(&tokens)?;
    if any(&[0, 1]) == Some(0) {
        return Some(first);
    }
    let tried = (0..8).filter_map(|_| any(&tokens)).chain([first]);
    tried.min_by_key(|&token| vocabulary.bytes(token).len())
}
