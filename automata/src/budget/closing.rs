//! One way to the end that fits into a budget, where all of them are too many to be found.
//!
//! Which tokens can still be completed in time is a question for each token, and near the end of an object with many
//! open alternatives the answers cost more than a mask may. So instead of refusing the mask, what is left of it then are
//! the tokens along one completion that fits: fewer than could stay, and each of them leads to where one fits again.

use super::place::Place;
use super::tokens::TokenDistances;
use crate::language::plus;
use crate::mask::Mask;
use crate::pushdown::ConfigId;

/// The tokens of the mask along one completion, end tokens aside, after which the text can be completed with
/// `limit` more. Empty where no completion is known that fits.
pub(super) fn mask(
    distances: &TokenDistances,
    place: Place<'_>,
    config: ConfigId,
    mask: &Mask,
    limit: u64,
) -> Mask {
    let vocabulary = place.vocabulary();
    let mut closing = Mask::empty(vocabulary.len());
    closing.insert_all(vocabulary.eos());
    closing.intersect(mask);
    let text = distances.completion(place, config, plus(limit, 1));
    let along = vocabulary.trie().prefixes(&text).flat_map(|(_, tokens)| tokens);
    for &token in along.chain(place.specials) {
        if mask.contains(token) && distances.allows(place, config, token, limit) {
            closing.insert(token);
        }
    }
    closing
}
