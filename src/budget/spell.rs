//! One shortest completion, cut into the fewest tokens.
//!
//! Of the shortest completions that with the smallest bytes is taken. Behind its first token it goes on as the one of
//! the place reached there, so following it token by token gives what was promised. Inside JSON it is what closes the
//! text: `"}]}` is four bytes and, in most vocabularies, one or two tokens.

use super::{Budget, Place};
use crate::machine::{ConfigId, NEVER, Shortest, Stacks};

/// Longer completions are not spelled: they are far from the end in any vocabulary.
const LONGEST: u64 = 1 << 12;

/// One step of a completion.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Byte(u8),
    Special,
}

impl Budget {
    /// The tokens of that completion; [`NEVER`] where it is too long or cannot be written.
    pub(super) fn spelled(&self, place: Place<'_>, config: ConfigId) -> u64 {
        if let Some(known) = self.spelled.get(&config) {
            return *known;
        }
        let tokens = spelled((place, place.machine.stacks(), self.achievable()), config);
        self.remember(&self.spelled, config, tokens);
        tokens
    }

    /// The bytes of that completion, up to its first special token.
    pub(super) fn spelled_bytes(&self, place: Place<'_>, config: ConfigId) -> Vec<u8> {
        let steps = completion((place, place.machine.stacks(), self.achievable()), config);
        let steps = steps.unwrap_or_default();
        let bytes = steps.iter().map_while(|step| match step {
            Step::Byte(byte) => Some(*byte),
            Step::Special => None,
        });
        bytes.collect()
    }
}

/// A machine, which may be a copy of the grammar's, and the distances in it.
pub(super) type Measured<'a> = (Place<'a>, &'a Stacks, &'a Shortest);

/// The tokens of the completion that is spelled; [`NEVER`] where it is too long or cannot be written.
pub(super) fn spelled(measured: Measured<'_>, config: ConfigId) -> u64 {
    let (place, stacks, shortest) = measured;
    match shortest.of(stacks, config) {
        NEVER => NEVER,
        length if length > LONGEST => NEVER,
        _ => completion(measured, config).map_or(NEVER, |steps| fewest(place, &steps)),
    }
}

fn completion((place, stacks, shortest): Measured<'_>, mut config: ConfigId) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut length = shortest.of(stacks, config);
    while length > 0 {
        let closer = |next: &ConfigId| shortest.of(stacks, *next) < length;
        let bytes = (0..=u8::MAX).filter(|&byte| place.vocabulary().token_of_byte(byte).is_some());
        let mut ways = bytes.filter_map(|byte| Some((Step::Byte(byte), stacks.step(config, byte)?)));
        let byte = ways.find(|(_, next)| closer(next));
        let specials = 0..place.specials.len() as u32;
        let mut ways = specials.filter_map(|special| stacks.step_special(config, special));
        let special = || ways.find(|next| closer(next)).map(|next| (Step::Special, next));
        let (step, next) = byte.or_else(special)?;
        steps.push(step);
        config = next;
        length = shortest.of(stacks, config);
    }
    Some(steps)
}

/// The fewest tokens that write these steps, from the end.
fn fewest(place: Place<'_>, steps: &[Step]) -> u64 {
    let bytes: Vec<u8> = steps
        .iter()
        .map(|step| match step {
            Step::Byte(byte) => *byte,
            Step::Special => 0,
        })
        .collect();
    let mut best = vec![NEVER; steps.len() + 1];
    best[steps.len()] = 0;
    for at in (0..steps.len()).rev() {
        if steps[at] == Step::Special {
            best[at] = best[at + 1].saturating_add(1);
            continue;
        }
        let run = steps[at..]
            .iter()
            .take_while(|step| **step != Step::Special)
            .count();
        for (length, _) in place.vocabulary().trie().prefixes(&bytes[at..at + run]) {
            best[at] = best[at].min(best[at + length].saturating_add(1));
        }
    }
    best[0]
}
