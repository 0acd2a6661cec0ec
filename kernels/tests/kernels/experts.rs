//! Mixtures of experts against loops in `f64`: who goes where, the products of every expert, and their sums.

use super::{Buffers, Case, Expected, Type};
use crate::memory::{Chance, Memory, narrow, widen};
use lexiform_kernels::experts::{List, Mixture, Room, Routed};
use lexiform_kernels::node::Place;
use lexiform_kernels::products::Before;

/// What differs between the cases.
#[derive(Clone, Copy)]
struct Sizes {
    tokens: usize,
    experts: usize,
    chosen: usize,
    hidden: usize,
    inner: usize,
    is_normalised: bool,
    /// Rows from this one on are padding.
    padding: usize,
    blocks: usize,
}

pub(super) fn cases() -> Vec<Case> {
    let sizes = |[tokens, experts, chosen]: [usize; 3], [hidden, inner]: [usize; 2], blocks: usize| Sizes {
        tokens,
        experts,
        chosen,
        hidden,
        inner,
        is_normalised: true,
        padding: tokens,
        blocks,
    };
    let of_all = |sizes: Sizes| Sizes {
        is_normalised: false,
        ..sizes
    };
    let padded = |sizes: Sizes, padding: usize| Sizes { padding, ..sizes };
    let all = [
        // Chunks of 16 pairs, the last of each expert not full; a last group of 16 rows.
        sizes([40, 3, 2], [80, 48], 2),
        // A second slice of columns, which not all warps have some of; rows of padding.
        padded(of_all(sizes([9, 6, 3], [592, 16], 3)), 7),
        sizes([1, 8, 2], [64, 16], 3),
        sizes([17, 2, 1], [32, 528], 5),
        // More experts than a warp has lanes, and than a block has threads.
        of_all(sizes([12, 40, 8], [32, 16], 2)),
        padded(sizes([20, 300, 4], [16, 16], 3), 18),
        // Stages are used again, by experts whose weights are read for several chunks.
        sizes([37, 2, 2], [1040, 32], 1),
        // More pairs than are sorted in one go.
        of_all(sizes([260, 5, 4], [16, 16], 2)),
    ];
    let numbered = all.into_iter().zip(51..);
    numbered
        .map(|(sizes, seed)| case(sizes, &Numbers::random(&sizes, &mut Chance::new(seed))))
        .collect()
}

/// Tokens together, and the last of them alone. What is expected first is what they come to.
pub(super) fn company() -> (Case, Case) {
    let all = Sizes {
        tokens: 40,
        experts: 5,
        chosen: 3,
        hidden: 592,
        inner: 48,
        is_normalised: false,
        padding: 40,
        blocks: 3,
    };
    let alone = Sizes {
        tokens: 1,
        padding: 1,
        blocks: 2,
        ..all
    };
    let numbers = Numbers::random(&all, &mut Chance::new(71));
    let last = |rows: &[u16], width: usize| rows[rows.len() - width..].to_vec();
    let of_last = Numbers {
        scores: last(&numbers.scores, all.experts),
        ups: numbers.ups.clone(),
        downs: numbers.downs.clone(),
        normed: last(&numbers.normed, all.hidden),
        x: last(&numbers.x, all.hidden),
    };
    (case(all, &numbers), case(alone, &of_last))
}

/// What a router may say: numbers some of which are equal, and an expert that nobody chooses while there are
/// others.
fn scores(sizes: &Sizes, chance: &mut Chance) -> Vec<u16> {
    let row = |token: usize| {
        let scores = (0..sizes.experts).map(|expert| match (token % 3, expert) {
            (_, 2) if sizes.experts > sizes.chosen => f32::NEG_INFINITY,
            // Equal ones, zeros of both signs among them.
            (0, _) if token > 0 => [0.0, -0.0, 0.5, -1.0][chance.below(4)],
            _ => chance.normal() * 2.0,
        });
        scores.map(narrow).collect::<Vec<u16>>()
    };
    (0..sizes.tokens).flat_map(row).collect()
}

/// The experts of a row of scores, each with its share, by falling score.
fn chosen(scores: &[u16], sizes: &Sizes) -> Vec<(usize, f64)> {
    let scores: Vec<f64> = scores.iter().map(|&score| f64::from(widen(score))).collect();
    let mut order: Vec<usize> = (0..scores.len()).collect();
    // Zeros of both signs are equal, and of equal ones the least number stays first.
    order.sort_by(|&one, &other| scores[other].partial_cmp(&scores[one]).unwrap());
    order.truncate(sizes.chosen);
    let mass = |score: f64| (score - scores[order[0]]).exp();
    let whole: f64 = match sizes.is_normalised {
        true => order.iter().map(|&expert| mass(scores[expert])).sum(),
        false => scores.iter().map(|&score| mass(score)).sum(),
    };
    let shares = order.iter().map(|&expert| (expert, mass(scores[expert]) / whole));
    shares.collect()
}

fn rounded(value: f64) -> f64 {
    f64::from(widen(narrow(value as f32)))
}

fn dot(row: &[u16], x: &[f64]) -> f64 {
    row.iter().zip(x).map(|(w, x)| f64::from(widen(*w)) * x).sum()
}

/// Random weights and rows.
struct Numbers {
    scores: Vec<u16>,
    /// `[experts, 2 · inner, hidden]`.
    ups: Vec<u16>,
    /// `[experts, hidden, inner]`.
    downs: Vec<u16>,
    normed: Vec<u16>,
    x: Vec<u16>,
}

impl Numbers {
    fn random(sizes: &Sizes, chance: &mut Chance) -> Self {
        let Sizes {
            tokens,
            experts,
            hidden,
            inner,
            ..
        } = *sizes;
        Numbers {
            scores: scores(sizes, chance),
            ups: chance.numbers(experts * 2 * inner * hidden, 1.5 / (hidden as f32).sqrt()),
            downs: chance.numbers(experts * hidden * inner, 2.0 / (inner as f32).sqrt()),
            normed: chance.numbers(tokens * hidden, 1.0),
            x: chance.numbers(tokens * hidden, 1.0),
        }
    }

    /// What comes through the gates of an expert, and what it finds, for a token.
    fn pass(&self, sizes: &Sizes, token: usize, expert: usize) -> [Vec<f64>; 2] {
        let (hidden, inner) = (sizes.hidden, sizes.inner);
        let x = &self.normed[token * hidden..][..hidden];
        let x: Vec<f64> = x.iter().map(|&x| f64::from(widen(x))).collect();
        let ups = &self.ups[expert * 2 * inner * hidden..][..2 * inner * hidden];
        let up: Vec<f64> = ups.chunks(hidden).map(|row| rounded(dot(row, &x))).collect();
        let through = |(gate, up): (&f64, &f64)| rounded(rounded(gate / (1.0 + (-gate).exp())) * up);
        let gated: Vec<f64> = up[..inner].iter().zip(&up[inner..]).map(through).collect();
        let downs = &self.downs[expert * hidden * inner..][..hidden * inner];
        let found = downs.chunks(inner).map(|row| rounded(dot(row, &gated)));
        [found.collect(), gated]
    }

    /// What two passes leave in `x`, in shares, and of pairs.
    fn expected(&self, sizes: &Sizes) -> (Vec<f64>, Vec<f64>, Vec<Pair>) {
        let hidden = sizes.hidden;
        let mut x: Vec<f64> = self.x.iter().map(|&x| f64::from(widen(x))).collect();
        let (mut shares, mut pairs) = (vec![0.0; sizes.tokens * sizes.chosen], Vec::new());
        for token in 0..sizes.padding {
            let scores = &self.scores[token * sizes.experts..][..sizes.experts];
            let mut sum = vec![0.0; hidden];
            for (rank, (expert, share)) in chosen(scores, sizes).into_iter().enumerate() {
                let [found, gated] = self.pass(sizes, token, expert);
                for (sum, found) in sum.iter_mut().zip(&found) {
                    *sum += share * found;
                }
                let number = token * sizes.chosen + rank;
                shares[number] = share;
                pairs.push(Pair {
                    expert,
                    number,
                    gated,
                    found,
                });
            }
            for (x, sum) in x[token * hidden..].iter_mut().zip(sum) {
                *x = rounded(rounded(*x + sum) + sum);
            }
        }
        (x, shares, pairs)
    }
}

/// A token with one of its experts.
struct Pair {
    expert: usize,
    /// Of the token, times how many experts each has, with the rank of this one.
    number: usize,
    gated: Vec<f64>,
    found: Vec<f64>,
}

/// The lists of these pairs, which lie in the order of tokens; NaN is left.
fn lists(mixture: &Mixture, sizes: &Sizes, pairs: &[Pair]) -> Vec<f64> {
    let mut order: Vec<&Pair> = pairs.iter().collect();
    order.sort_by_key(|pair| (pair.expert, pair.number));
    let counts = (0..mixture.experts).map(|expert| pairs.iter().filter(|pair| pair.expert == expert).count());
    let counts: Vec<usize> = counts.collect();
    let before = |expert: usize, of: fn(usize) -> usize| {
        counts[..expert].iter().map(|&count| of(count)).sum::<usize>()
    };
    let chunks = |count: usize| count.div_ceil(16);
    let list = |list: List, room: usize| {
        let mut numbers: Vec<f64> = match list {
            List::Choices => pairs.iter().map(|pair| pair.expert as f64).collect(),
            List::Places => {
                let place = |pair: &Pair| order.iter().position(|other| other.number == pair.number);
                pairs.iter().map(|pair| place(pair).unwrap() as f64).collect()
            }
            List::Owners => order
                .iter()
                .map(|pair| (pair.number / sizes.chosen) as f64)
                .collect(),
            List::Firsts => (0..=mixture.experts)
                .map(|expert| before(expert, |count| count) as f64)
                .collect(),
            List::Chunks => (0..=mixture.experts)
                .map(|expert| before(expert, chunks) as f64)
                .collect(),
            List::ExpertsOf => {
                let each = counts.iter().enumerate();
                each.flat_map(|(expert, &count)| vec![expert as f64; chunks(count)])
                    .collect()
            }
        };
        // Rows of padding go nowhere; what nobody needs of the others is left.
        let rest = match list {
            List::Choices | List::Places => -1.0,
            _ => f64::NAN,
        };
        numbers.resize(room, rest);
        numbers
    };
    mixture
        .lists(sizes.tokens)
        .into_iter()
        .flat_map(|(name, room)| list(name, room))
        .collect()
}

/// Numbers behind those that a launch may write.
const BEHIND: usize = 64;

/// Where what is computed on the way lies.
fn room(room: Room) -> Place<usize> {
    Place::start(room as usize)
}

fn case(sizes: Sizes, numbers: &Numbers) -> Case {
    let mixture = Mixture {
        experts: sizes.experts,
        chosen: sizes.chosen,
        inner: sizes.inner,
        is_normalised: sizes.is_normalised,
        layers: vec![true],
    };
    let mut buffers = Buffers::default();
    for (room, bytes) in mixture.rooms(sizes.tokens, sizes.hidden) {
        buffers.add(match room {
            Room::Scores => Memory::bf16(&numbers.scores),
            _ => Memory::of_bytes(&vec![0xff; bytes + 4 * BEHIND]),
        });
    }
    let x = buffers.add(Memory::bf16(&numbers.x));
    let normed = buffers.add(Memory::bf16(&numbers.normed));
    let slots = (0..sizes.tokens).map(|token| if token < sizes.padding { 5 } else { -1 });
    let arrived = buffers.add(Memory::zeros(4));
    let routed = Routed {
        mixture: &mixture,
        norm: Before {
            scale: normed,
            out: normed,
            wanted: None,
            eps: 0.0,
        },
        router: normed,
        ups: buffers.add(Memory::bf16(&numbers.ups)),
        downs: buffers.add(Memory::bf16(&numbers.downs)),
        slots: buffers.add(Memory::i32(&slots.collect::<Vec<_>>())),
        arrived,
        x,
        room,
        hidden: sizes.hidden,
        tokens: sizes.tokens,
        multiprocessors: sizes.blocks,
    };
    // Twice, since a layer finds the lists and counts as the one before left them.
    let nodes = [routed.nodes(), routed.nodes()].concat();
    Case {
        name: format!(
            "{} tokens by {} of {} experts, {} and {} wide, on {} blocks",
            sizes.tokens, sizes.chosen, sizes.experts, sizes.hidden, sizes.inner, sizes.blocks
        ),
        nodes,
        rounds: 1,
        expected: expected(numbers, &mixture, &sizes, (x, arrived)),
        buffers: buffers.0,
    }
}

/// All that two passes leave.
fn expected(
    numbers: &Numbers,
    mixture: &Mixture,
    sizes: &Sizes,
    (x, arrived): (Place<usize>, Place<usize>),
) -> Vec<Expected> {
    let (sums, shares, mut pairs) = numbers.expected(sizes);
    let lists = lists(mixture, sizes, &pairs);
    pairs.sort_by_key(|pair| (pair.expert, pair.number));
    let gated = pairs.iter().flat_map(|pair| pair.gated.iter().copied());
    let found = pairs.iter().flat_map(|pair| pair.found.iter().copied());
    let of_pairs = sizes.tokens * sizes.chosen;
    let and_rest = |numbers: Vec<f64>, rest: usize| {
        let count = numbers.len().max(rest);
        [numbers, vec![f64::NAN; count + BEHIND]].concat()[..count + BEHIND].to_vec()
    };
    [
        (x, sums, Type::Bf16),
        (arrived, vec![0.0], Type::I32),
        (room(Room::Shares), and_rest(shares, 0), Type::F32),
        (room(Room::Lists), and_rest(lists, 0), Type::I32),
        (
            room(Room::Gated),
            and_rest(gated.collect(), of_pairs * sizes.inner),
            Type::Bf16,
        ),
        (
            room(Room::Products),
            and_rest(found.collect(), of_pairs * sizes.hidden),
            Type::Bf16,
        ),
    ]
    .map(|(place, numbers, type_)| Expected {
        buffer: place.buffer,
        numbers,
        type_,
    })
    .into()
}
