//! Rows of logits to draw from, and the law that says what must be drawn.

use crate::memory::{Chance, Memory};
use lexiform_kernels::asks::Ask;
use lexiform_kernels::asks::{Sent, serves};
use lexiform_kernels::draw::{Draw, DrawnRow};
use lexiform_kernels::node::{Node, Place as At};
use lexiform_kernels::shapes::DRAWN_BYTES;
use lexiform_law::{Allowed, Distribution, Drawn, History, Law, Part, Place, Row, Seeded, Warper, Warping};

/// Where [`Rows::launches`] has its results.
pub(crate) const OUT: usize = 3;
const TEMPERATURES: [f32; 5] = [1.0, 0.7, 1.6, 0.05, 0.0];

/// The tokens before a row.
#[derive(Default)]
struct Before {
    prompt: Vec<u32>,
    answer: Vec<u32>,
    draft: Vec<u32>,
}

/// Rows of logits and what is asked of each.
pub(crate) struct Rows {
    width: usize,
    pub(crate) logits: Vec<f32>,
    pub(crate) masks: Vec<Vec<u32>>,
    pub(crate) mask_of: Vec<Option<usize>>,
    warpers: Vec<Warper>,
    before: Vec<Before>,
    seeds: Vec<(u64, u32)>,
    places: Vec<Place>,
}

/// Rows of this width: flat ones, peaked ones, ones of few different numbers, some whose lesser logits are no
/// tokens, some of equal logits alone, and some that lie hundreds of nats below their peak.
fn random_logits(width: usize, count: usize, chance: &mut Chance) -> Vec<f32> {
    let number = |row: usize, normal: f32| match row % 6 {
        0 => normal,
        1 => normal * 6.0,
        2 => normal * 30.0,
        3 => 0.0 * normal,
        4 => (normal * 2.0).round() / 2.0,
        _ => normal * 2.5,
    };
    let mut logits: Vec<f32> = (0..count * width)
        .map(|at| number(at / width, chance.normal()))
        .collect();
    for row in logits.chunks_mut(width).skip(1).step_by(5) {
        row[width / 2..].fill(f32::NEG_INFINITY);
        row[0] = 1.0;
    }
    logits
}

/// Masks that leave all, much, little, one token of the rarest, and nothing.
fn random_masks(width: usize, chance: &mut Chance) -> Vec<Vec<u32>> {
    let words = width.div_ceil(32);
    let dense = (0..words).map(|_| chance.bits() as u32).collect();
    let sparse = (0..words).map(|_| match chance.below(9) {
        0 => chance.bits() as u32,
        _ => 0,
    });
    let rare = |(word, every): (usize, usize)| u32::from(word % every == 5 % words) << (word % 32);
    vec![
        dense,
        sparse.collect(),
        (0..words).map(|word| rare((word, 37))).collect(),
        vec![0; words],
        vec![!0; words],
        vec![0xF0F0; words.div_ceil(2)],
    ]
}

/// Filters by rank, alone and together, and none.
fn random_filters(width: usize, chance: &mut Chance) -> Warping {
    let share = |chance: &mut Chance| [0.9, 0.5, 0.99, 0.999, 1e-3, 0.3][chance.below(6)];
    let few = [1, 2, 5, 40, width as u32 / 2 + 1, width as u32, 2 * width as u32];
    let mut warping = Warping::default();
    if chance.below(3) == 0 {
        warping.top_k = Some(few[chance.below(few.len())]);
    }
    if chance.below(2) == 0 {
        warping.top_p = share(chance);
    }
    if chance.below(4) == 0 {
        warping.min_p = [0.05, 1.0, 1e-6, 0.4][chance.below(4)];
    }
    warping
}

/// Penalties and biases, and the tokens that they are for.
fn put_penalties(warping: &mut Warping, width: usize, chance: &mut Chance) -> Before {
    let mut tokens = |most: usize| -> Vec<u32> {
        let range = [width, width.min(4), width + 40][chance.below(3)];
        (0..chance.below(most))
            .map(|_| chance.below(range) as u32)
            .collect()
    };
    let before = Before {
        prompt: tokens(60),
        answer: tokens(90),
        draft: tokens(6),
    };
    let biased = tokens(12);
    if chance.below(3) > 0 {
        warping.repetition_penalty = [1.0, 1.3, 0.8][chance.below(3)];
        warping.frequency_penalty = [0.0, 0.37, -0.2][chance.below(3)];
        warping.presence_penalty = [0.0, 0.6, -0.3][chance.below(3)];
    }
    let bias = |token| match chance.below(6) {
        0 => (token, f32::NEG_INFINITY),
        _ => (token, chance.normal() * 3.0),
    };
    warping.bias = biased.into_iter().map(bias).collect();
    before
}

impl Rows {
    /// Random rows of this width, with random masks, temperatures, filters, penalties and biases.
    pub(crate) fn random(width: usize, count: usize, chance: &mut Chance) -> Self {
        let logits = random_logits(width, count, chance);
        let masks = random_masks(width, chance);
        let pick = |row: usize| (row % 7 != 6).then_some(row % 7 % masks.len());
        let (mut warpers, mut before) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let mut warping = match chance.below(3) {
                0 => Warping::default(),
                _ => random_filters(width, chance),
            };
            warping.temperature = TEMPERATURES[chance.below(TEMPERATURES.len())];
            before.push(match chance.below(3) {
                0 => put_penalties(&mut warping, width, chance),
                _ => Before::default(),
            });
            warpers.push(Warper::new(warping, Law::Local).unwrap());
        }
        Rows {
            width,
            logits,
            mask_of: (0..count).map(pick).collect(),
            warpers,
            before,
            seeds: (0..count).map(|row| (chance.bits(), (row % 3) as u32)).collect(),
            places: (0..count)
                .map(|row| Place::new(chance.bits() as u32 % 9, row as u32))
                .collect(),
            masks,
        }
    }

    /// What is not finite in some rows, masked or not.
    pub(crate) fn break_some(&mut self, chance: &mut Chance) {
        for row in self.logits.chunks_mut(self.width).step_by(3) {
            let at = chance.below(row.len());
            row[at] = [f32::NAN, f32::INFINITY, -f32::NAN][chance.below(3)];
        }
    }

    fn len(&self) -> usize {
        self.places.len()
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.logits[row * self.width..][..self.width]
    }

    fn ask(&self, row: usize) -> Ask<'_> {
        let Before {
            prompt,
            answer,
            draft,
        } = &self.before[row];
        Ask {
            row,
            allowed: self.mask_of[row].map_or(Allowed::All, |mask| Allowed::Words(&self.masks[mask])),
            warper: &self.warpers[row],
            history: History {
                prompt,
                answer,
                draft,
            },
            seeded: Seeded::new(self.seeds[row].0, self.seeds[row].1),
            place: self.places[row],
        }
    }

    /// The launches of the kernels, and their buffers.
    pub(crate) fn launches(&self) -> (Vec<Node<usize>>, Vec<Memory>) {
        let asks: Vec<Ask<'_>> = (0..self.len()).map(|row| self.ask(row)).collect();
        assert!(asks.iter().all(|ask| serves(ask, self.width)));
        let sent = Sent::new(&asks, self.width);
        let draw = Draw {
            logits: At::start(0),
            asked: At::start(1),
            sent: &sent,
            room: At::start(2),
            out: At::start(OUT),
            width: self.width,
        };
        // What nobody has written is not a number.
        let room = vec![0xff; Draw::<usize>::room(&sent, self.width)];
        let buffers = vec![
            Memory::f32(&self.logits),
            Memory::of_bytes(&sent.bytes),
            Memory::of_bytes(&room),
            Memory::zeros(self.len() * DRAWN_BYTES),
        ];
        (draw.nodes(), buffers)
    }

    /// The rows that are not what the library draws, and how many were left to the host.
    pub(crate) fn compare(&self, out: &Memory) -> (Vec<String>, usize) {
        let bytes = out.bytes();
        let rows = bytes.as_chunks::<DRAWN_BYTES>().0;
        let (mut wrong, mut left) = (Vec::new(), 0);
        for (row, bytes) in rows.iter().enumerate() {
            let found = DrawnRow::read(bytes);
            left += usize::from(!found.is_drawn);
            if let Err(why) = self.compare_one(row, &found) {
                let warping = self.warpers[row].warping();
                wrong.push(format!("row {row} of {}, {warping:?}: {why}", self.width));
            }
        }
        (wrong, left)
    }

    fn compare_one(&self, row: usize, found: &DrawnRow) -> Result<(), String> {
        let ask = self.ask(row);
        let drawn = found.drawn(ask.warper.scale());
        let Ok(law) = ask.warper.row(self.row(row), ask.history) else {
            return drawn.is_none().then_some(()).ok_or("is no law".to_owned());
        };
        let law: Distribution<'_> = law;
        let part = law.part(ask.allowed);
        let token = part.draw(ask.place, &mut ask.seeded.clone());
        let Some(drawn) = drawn else {
            // Nothing is allowed, or too little for sums relative to the peak of the row.
            let is_little = token.is_none() || part.log_kept() < -400.0;
            return is_little.then_some(()).ok_or("was left to the host".to_owned());
        };
        let known = Drawn {
            token: token.ok_or("was drawn")?,
            mass: part.mass(),
            log_mass: part.log_mass(),
            log_probability: law.log_probability(drawn.token),
            log_kept: part.log_kept(),
        };
        let others = part.share_without(drawn.token);
        match drawn == known && found.share_of_others().to_bits() == others.to_bits() {
            true => Ok(()),
            false => Err(format!("{drawn:?} and {found:?}, not {known:?} and {others}")),
        }
    }
}
