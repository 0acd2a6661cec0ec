//! Tests of walks that take tokens drawn elsewhere.

use super::*;
use crate::law::{Fallback, History, Law, Seeded, Table, Warping};

fn warper() -> Warper {
    Warper::new(Warping::default(), Law::Local).unwrap()
}

/// Rows are drawn from before it is known whether the text reaches them.
#[test]
fn tokens_drawn_ahead_are_those_of_the_walk() {
    let rows = [[0.1, 0.4, 0.5, 0.0], [0.3, 0.2, 0.1, 0.4], [0.7, 0.1, 0.1, 0.1]];
    let rows = rows.map(|row| Table(row.to_vec()));
    let mask = [0b1011];
    for seed in 0..200 {
        let mut chooser = Seeded::new(seed, 0);
        let (mut walk, mut taken) = (
            Walk::local(&warper(), true, &[3]),
            Walk::local(&warper(), true, &[3]),
        );
        let ahead = [0, 1, 2].map(|more| {
            let part = rows[more as usize].part(Allowed::Words(&mask));
            part.draw(taken.place_after(more), &mut chooser).unwrap()
        });
        for (row, token) in rows.iter().zip(ahead) {
            let step = walk.next(row, Allowed::Words(&mask), &mut chooser);
            let part = row.part(Allowed::Words(&mask));
            let drawn = Drawn {
                token,
                mass: part.mass(),
                log_mass: part.log_mass(),
                log_probability: row.log_probability(token),
                log_kept: part.log_kept(),
            };
            assert_eq!(taken.take(drawn), Some(step.clone()));
            assert_eq!(taken.place(), walk.place());
            if matches!(step, Step::End(_)) {
                break;
            }
        }
        assert_eq!(taken.log_weight(), walk.log_weight());
        assert_eq!(taken.log_probability(), walk.log_probability());
    }
}

#[test]
fn an_attempt_takes_no_token_from_elsewhere() {
    let trie = Arc::new(Mutex::new(Trie::new(&[0], 8, 64)));
    let mut walk = Walk::<f64>::global(trie, 10, Fallback::Fail);
    let drawn = Drawn {
        token: 1,
        mass: 1.0,
        log_mass: 0.0,
        log_probability: 0.0,
        log_kept: 0.0,
    };
    assert_eq!(walk.take(drawn), None);
    assert_eq!(walk.position(), 0);
}

/// Filters before the mask leave no allowed token: it is known after an attempt, and the walk can begin anew
/// under the local law, at places where nobody has drawn.
#[test]
fn a_walk_whose_filters_leave_nothing_can_filter_locally() {
    let warping = Warping {
        top_k: Some(1),
        ..Warping::default()
    };
    let law = Law::Global {
        max_attempts: 10,
        fallback: Fallback::Weighted,
        share_attempts: false,
    };
    let warper = Warper::new(warping, law).unwrap();
    assert_eq!(
        (warper.filters(), warper.cuts_before_mask()),
        (vec!["top_k"], true)
    );
    let logits = [2.0, 1.0, 0.0, 0.0];
    let allowed = Allowed::Words(&[0b1010]);
    let mut chooser = Seeded::new(1, 0);
    let trie = Arc::new(Mutex::new(Trie::new(&[3], 8, 64)));
    let mut walk = Walk::global(trie.clone(), 10, Fallback::Weighted).filtered(&warper);
    assert_eq!(walk.tag(), LawTag::GlobalExactFiltered);
    let row = warper.row(&logits, History::default()).unwrap();
    let step = walk.next(&row, allowed, &mut chooser);
    assert_eq!(step, Step::Stuck(LawError::Exhausted { attempts: 1 }));
    assert!(walk.is_hopeless());
    let others = lock(&trie).attempts();
    walk.filter_locally();
    assert!(!walk.is_hopeless() && walk.is_certain());
    assert_eq!(
        (walk.tag(), walk.place()),
        (LawTag::LocalFiltered, Place::new(others, 0))
    );
    assert_eq!(walk.failed_attempts(), 1);
    let warper = warper.after_mask();
    let row = warper.row(&logits, History::default()).unwrap();
    let Step::Token(drawn) = walk.next(&row, allowed, &mut chooser) else {
        panic!("the filter keeps the likeliest allowed token");
    };
    assert_eq!((drawn.token, walk.log_weight()), (1, drawn.log_kept));
}
