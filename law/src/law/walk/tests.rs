//! Tests of walks that take tokens drawn elsewhere.

use super::*;
use crate::law::{Fallback, Law, Seeded, Table, Warping};

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
