//! Chooses the layers that a decoder can best do without: the dynamic programme of CLaSp
//! ([Chen et al. 2025](https://arxiv.org/abs/2505.24196)).
//!
//! ```text
//!   h(i)      what the first i layers make of a text
//!   g(i, j)   the same with j of them skipped:   layer i run on g(i−1, j)    or    g(i−1, j−1) as it is,
//!             whichever is closer in direction to h(i)
//! ```
//!
//! For each `g(i, j)`, only the best way to it is kept, as if no other could lead to a better end. That is
//! exact if layers add independent vectors to the text, and nearly so in trained models; trying all sets
//! would take a pass each. The programme takes at most `layers · (skipped + 1)` runs of a layer.
//!
//! The paper chooses again after every verification, from the last token. Here layers are chosen once, from a
//! text, so that a draft's cache has the entries that its layers need.

use std::rc::Rc;

/// The best way to skip some number of layers.
struct SkipWay<S> {
    state: Rc<S>,
    skipped: Vec<usize>,
}

/// Returns the layers to skip, in ascending order. `begin` is the input of the first of `layers` layers,
/// `run` returns the output of a layer for an input, and `likeness` returns the similarity of two of these,
/// larger for more similar ones.
///
/// # Errors
/// The errors of `run` and of `likeness`. If there are fewer than `skipped` layers, all are skipped.
pub(super) fn choose<S, E>(
    (layers, skipped): (usize, usize),
    begin: S,
    mut run: impl FnMut(usize, &S) -> Result<S, E>,
    mut likeness: impl FnMut(&S, &S) -> Result<f64, E>,
) -> Result<Vec<usize>, E> {
    let none = SkipWay {
        state: Rc::new(begin),
        skipped: Vec::new(),
    };
    // Indexed by the number of skipped layers.
    let mut ways = vec![none];
    for layer in 0..layers {
        let ran = ways.iter().map(|way| run(layer, &way.state));
        let ran = ran.collect::<Result<Vec<S>, E>>()?;
        let mut next: Vec<SkipWay<S>> = Vec::with_capacity(ways.len() + 1);
        for (way, state) in ways.iter().zip(ran) {
            next.push(SkipWay {
                state: Rc::new(state),
                skipped: way.skipped.clone(),
            });
        }
        let whole = next.first().map(|whole| whole.state.clone());
        for (count, way) in (1..=skipped).zip(ways) {
            let without = SkipWay {
                skipped: [&way.skipped[..], &[layer]].concat(),
                ..way
            };
            match (next.get(count), &whole) {
                (Some(with), Some(whole)) => {
                    if likeness(&without.state, whole)? > likeness(&with.state, whole)? {
                        next[count] = without;
                    }
                }
                _ => next.push(without),
            }
        }
        ways = next;
    }
    Ok(ways.pop().map_or_else(Vec::new, |way| way.skipped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    type Vector = Vec<f64>;

    fn cosine(one: &Vector, other: &Vector) -> f64 {
        let dot = |one: &Vector, other: &Vector| -> f64 {
            let products = one.iter().zip(other).map(|(one, other)| one * other);
            products.sum()
        };
        dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
    }

    /// A model as a function from a layer and its input to its output.
    struct Layers<'r> {
        count: usize,
        begin: Vector,
        run: &'r dyn Fn(usize, &Vector) -> Vector,
    }

    impl Layers<'_> {
        /// Returns how similar the output is to that of the whole model if these layers are skipped.
        fn likeness(&self, skipped: &[usize]) -> f64 {
            let made = |skipped: &[usize]| {
                let kept = (0..self.count).filter(|layer| !skipped.contains(layer));
                kept.fold(self.begin.clone(), |state, layer| (self.run)(layer, &state))
            };
            cosine(&made(skipped), &made(&[]))
        }

        /// Returns all sets of `count` layers.
        fn sets(&self, count: usize) -> Vec<Vec<usize>> {
            let sets = (0_u32..1 << self.count).filter(|set| set.count_ones() as usize == count);
            let layers = |set: u32| (0..self.count).filter(|layer| set >> layer & 1 == 1).collect();
            sets.map(layers).collect()
        }

        fn chosen(&self, count: usize) -> Vec<usize> {
            let run = |layer: usize, state: &Vector| Ok::<_, Infallible>((self.run)(layer, state));
            let like = |one: &Vector, other: &Vector| Ok(cosine(one, other));
            let Ok(chosen) = choose((self.count, count), self.begin.clone(), run, like);
            chosen
        }
    }

    /// Returns numbers between -1 and 1 that look random.
    fn number(seed: u32, place: usize) -> f64 {
        let mixed = (place as u32).wrapping_mul(2_654_435_761) ^ seed.wrapping_mul(40_503);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(2_246_822_519);
        f64::from(mixed >> 8) / f64::from(1 << 23) - 1.0
    }

    /// Layers that add vectors in independent directions: the choice is the best of all sets, which are all
    /// tried.
    #[test]
    fn the_best_of_all_sets_is_chosen() {
        for seed in 1..30 {
            for count in 1..8 {
                let add = |layer: usize, state: &Vector| {
                    let mut state = state.clone();
                    state[layer + 1] += 1.5 * number(seed, layer);
                    state
                };
                let mut begin = vec![0.0; count + 1];
                begin[0] = 1.0;
                let layers = Layers {
                    count,
                    begin,
                    run: &add,
                };
                for skipped in 0..=count + 1 {
                    let chosen = layers.chosen(skipped);
                    let skipped = skipped.min(count);
                    assert_eq!(chosen.len(), skipped);
                    assert!(chosen.is_sorted());
                    let likeness = layers.likeness(&chosen);
                    let sets = layers.sets(skipped);
                    let best = sets.iter().map(|set| layers.likeness(set)).fold(-1.0, f64::max);
                    assert!(likeness >= best - 1e-12, "{seed}, {count}: {chosen:?}");
                }
            }
        }
    }

    /// If layers depend on each other, the choice is not always the best one, but better than a random set.
    /// With two layers, all sets were tried.
    #[test]
    fn layers_that_depend_on_each_other_are_chosen_well() {
        let (mut better, mut all) = (0, 0);
        for seed in 1..60 {
            let mix = |layer: usize, state: &Vector| -> Vector {
                let weight = |to: usize, from: usize| 0.5 * number(seed, 9 * layer + 3 * to + from);
                let sum = |to: usize| (0..3).map(|from| weight(to, from) * state[from]).sum::<f64>();
                (0..3).map(|to| state[to] + sum(to).tanh()).collect()
            };
            let layers = |count| Layers {
                count,
                begin: vec![1.0, 0.5, -0.25],
                run: &mix,
            };
            let two = layers(2);
            let found = two.likeness(&two.chosen(1));
            assert!(found >= two.likeness(&[0]).max(two.likeness(&[1])) - 1e-12);
            let six = layers(6);
            let found = six.likeness(&six.chosen(3));
            let sets = six.sets(3);
            all += sets.len();
            better += sets
                .iter()
                .filter(|set| six.likeness(set) > found + 1e-12)
                .count();
        }
        assert!(better * 8 < all, "{better} of {all} sets are better");
    }
}
