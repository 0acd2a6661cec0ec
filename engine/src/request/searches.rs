//! Searches for likely texts: one pure strategy each, and one driver for all of them.
//!
//! ```text
//!   Search ─► strategy (beam, k_best, …) ─ Next ─► Searcher ─ Orders ─► loop
//!                 ▲                                    │
//!                 └── Tree: prefixes, their rows ◄─────┴────── Report ──┘
//! ```
//!
//! A strategy sees a tree of prefixes and the model's rows for those that it requested; it knows nothing of
//! branches, passes and answers. The masks of the branches allow only what can be completed within the
//! answer's tokens, so every prefix of a search can become a text. One search draws instead of ranking, and
//! has a separate driver (`cntp`).
//!
//! Tests: `engine/tests/engine/searches.rs`, `led_searches.rs` and `cautious.rs` compare every search with a
//! list of all texts. `request/searches/tests.rs` counts branches and fed tokens.

mod a_star_esque;
mod beam;
mod best_first_beam;
mod cntp;
mod diverse_beam;
mod dynamic_beam;
mod k_best;
mod phrases;
mod searcher;
mod strategy;
mod tree;

use crate::request::driver::Driver;
use crate::request::search::Search;
use a_star_esque::AStarEsque;
use beam::Beam;
use best_first_beam::BestFirstBeam;
use cntp::{Caution, Cntp};
use diverse_beam::DiverseBeam;
use dynamic_beam::DynamicBeam;
use k_best::KBest;
use lexiform::vocab::Vocabulary;
use phrases::{Clauses, Phrases};
use searcher::Searcher;
use std::sync::Arc;
use strategy::Strategy;

/// Returns the driver of a search for `answers` answers of at most `longest` tokens.
pub(crate) fn driver(
    search: &Search,
    (answers, longest): (usize, usize),
    vocabulary: &Arc<Vocabulary>,
) -> Box<dyn Driver> {
    driver_within(search.branches(answers), search, (answers, longest), vocabulary)
}

/// Like [`driver()`], with at most `most` branches at a time.
fn driver_within(
    most: usize,
    search: &Search,
    (answers, longest): (usize, usize),
    vocabulary: &Arc<Vocabulary>,
) -> Box<dyn Driver> {
    fn boxed(
        strategy: impl Strategy + 'static,
        (sizes, vocabulary): ((usize, usize, usize), &Arc<Vocabulary>),
    ) -> Box<dyn Driver> {
        Box::new(Searcher::new(strategy, sizes, vocabulary.clone()))
    }
    let sizes = ((answers, longest, most), vocabulary);
    match *search {
        Search::Beam {
            width,
            length_penalty,
            patience,
        } => boxed(Beam::new((width, length_penalty, patience), answers), sizes),
        Search::BestFirstBeam {
            width,
            length_penalty,
        } => boxed(BestFirstBeam::new(width, length_penalty, answers), sizes),
        Search::DiverseBeam {
            width,
            groups,
            diversity,
            length_penalty,
        } => boxed(
            DiverseBeam::new((width, groups), (diversity, length_penalty), answers),
            sizes,
        ),
        Search::KBest {
            max_rows,
            max_frontier,
        } => boxed(KBest::new(max_rows, max_frontier, answers), sizes),
        Search::DynamicBeam {
            width,
            length_penalty,
            ref must_contain,
        } => {
            let phrases = Phrases::new(must_contain, vocabulary.clone());
            boxed(DynamicBeam::new((width, length_penalty), phrases, answers), sizes)
        }
        Search::AStarEsque {
            width,
            length_penalty,
            distance_weight,
            look_ahead,
            ref must_contain,
            ref must_not_contain,
        } => {
            let ahead = (distance_weight, look_ahead);
            let clauses = Clauses::new((must_contain, must_not_contain), vocabulary.clone());
            boxed(
                AStarEsque::new((width, length_penalty), ahead, clauses, answers),
                sizes,
            )
        }
        Search::Cntp {
            trials,
            low_entropy: low,
            high_entropy: high,
            trial_tokens: longest,
        } => {
            let caution = Caution {
                trials,
                low,
                high,
                longest,
            };
            Box::new(Cntp::new(caution, vocabulary.clone(), answers))
        }
    }
}

#[cfg(test)]
mod tests;
