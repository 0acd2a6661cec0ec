//! Rows of logits to draw from, and the law that says what must be drawn.

use crate::memory::{Chance, Memory};
use lexiform::law::{Allowed, Distribution, Drawn, History, Law, Part, Place, Row, Seeded, Warper, Warping};
use lexiform_engine::kernels::draw::{Draw, DrawnRow};
use lexiform_engine::kernels::node::Place as At;
use lexiform_engine::kernels::shapes::DRAWN_BYTES;

/// Where [`Rows::draw`] has its results.
pub(crate) const OUT: usize = 9;
const TEMPERATURES: [f32; 4] = [1.0, 0.7, 1.6, 0.05];

/// Rows of logits and what is asked of each.
pub(crate) struct Rows {
    width: usize,
    pub(crate) logits: Vec<f32>,
    pub(crate) masks: Vec<Vec<u32>>,
    pub(crate) mask_of: Vec<Option<usize>>,
    warpers: Vec<Warper>,
    seeds: Vec<(u64, u32)>,
    places: Vec<Place>,
}

impl Rows {
    /// Rows of this width: flat ones, peaked ones, some whose lesser logits are no tokens, and some that lie hundreds of nats
    /// below their peak; masks that leave all, much, little, one token of the rarest, and nothing.
    pub(crate) fn random(width: usize, count: usize, chance: &mut Chance) -> Self {
        let words = width.div_ceil(32);
        let spread = |row: usize| [1.0, 6.0, 60.0, 0.0][row % 4];
        let mut logits: Vec<f32> = (0..count * width)
            .map(|at| chance.normal() * spread(at / width))
            .collect();
        for row in logits.chunks_mut(width).skip(1).step_by(5) {
            row[width / 2..].fill(f32::NEG_INFINITY);
            row[0] = 1.0;
        }
        let dense = (0..words).map(|_| chance.bits() as u32).collect();
        let sparse = (0..words).map(|_| match chance.below(9) {
            0 => chance.bits() as u32,
            _ => 0,
        });
        let rare = (0..words).map(|word| u32::from(word % 37 == 5 % words) << (word % 32));
        let masks = vec![
            dense,
            sparse.collect(),
            rare.collect(),
            vec![0; words],
            vec![!0; words],
            vec![0xF0F0; words / 2],
        ];
        let pick = |row: usize| (row % 7 != 6).then_some(row % 7 % masks.len());
        let warping = |row: usize| Warping {
            temperature: TEMPERATURES[row % 4],
            ..Warping::default()
        };
        Rows {
            width,
            logits,
            mask_of: (0..count).map(pick).collect(),
            warpers: (0..count)
                .map(|row| Warper::new(warping(row / 3), Law::Local).unwrap())
                .collect(),
            seeds: (0..count).map(|row| (chance.bits(), (row % 3) as u32)).collect(),
            places: (0..count)
                .map(|row| Place::new(chance.bits() as u32 % 9, row as u32))
                .collect(),
            masks,
        }
    }

    fn len(&self) -> usize {
        self.places.len()
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.logits[row * self.width..][..self.width]
    }

    fn allowed(&self, row: usize) -> Allowed<'_> {
        self.mask_of[row].map_or(Allowed::All, |mask| Allowed::Words(&self.masks[mask]))
    }

    /// The buffers of the kernels, and their launches.
    pub(crate) fn draw(&self) -> (Draw<usize>, Vec<Memory>) {
        let (rows, blocks) = (self.len(), self.width.div_ceil(32));
        let masks = self.masks.iter().flat_map(|mask| {
            let mut mask = mask.clone();
            mask.resize(blocks, 0);
            mask
        });
        let mask_of = self.mask_of.iter();
        let mask_of: Vec<i32> = mask_of.map(|mask| mask.map_or(-1, |mask| mask as i32)).collect();
        let scales: Vec<f64> = self.warpers.iter().map(Warper::scale).collect();
        let seeds: Vec<u64> = self.seeds.iter().map(|&(seed, _)| seed).collect();
        let places = self.places.iter().zip(&self.seeds);
        let places = places.flat_map(|(place, &(_, sequence))| [place.position, place.attempt, sequence]);
        let buffers = vec![
            Memory::f32(&self.logits),
            Memory::f32(&vec![f32::NAN; rows]),
            Memory::f64(&vec![f64::NAN; rows * blocks]),
            Memory::f64(&vec![f64::NAN; rows * blocks]),
            Memory::u32(&masks.collect::<Vec<_>>()),
            Memory::i32(&mask_of),
            Memory::f64(&scales),
            Memory::u64(&seeds),
            Memory::u32(&places.collect::<Vec<_>>()),
            Memory::zeros(rows * DRAWN_BYTES),
        ];
        let draw = Draw {
            logits: At::start(0),
            peaks: At::start(1),
            whole: At::start(2),
            allowed: At::start(3),
            masks: At::start(4),
            mask_of: At::start(5),
            scales: At::start(6),
            seeds: At::start(7),
            places: At::start(8),
            out: At::start(OUT),
            width: self.width,
            rows,
        };
        (draw, buffers)
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
                wrong.push(format!("row {row} of {}: {why}", self.width));
            }
        }
        (wrong, left)
    }

    fn compare_one(&self, row: usize, found: &DrawnRow) -> Result<(), String> {
        let law = self.warpers[row].row(self.row(row), History::default());
        let law: Distribution<'_> = law.map_err(|error| error.to_string())?;
        let part = law.part(self.allowed(row));
        let (seed, sequence) = self.seeds[row];
        let token = part.draw(self.places[row], &mut Seeded::new(seed, sequence));
        let drawn = found.drawn(self.warpers[row].scale());
        let Some(drawn) = drawn else {
            // Nothing is allowed, or too little for sums relative to the peak of the row.
            let is_little = token.is_none() || part.log_mass() < -400.0;
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
