//! The cost of drawing a token: `cargo bench --bench draws`.
//!
//! The rows have 128,256 logits or the demo model's 2,048, distributed like a model's, under a mask that
//! allows a part of some blocks, at several settings. Each row is drawn from in three ways:
//!
//! * `own`: the row is exponentiated, and a second time for the model's own probability of the token, which
//!   used to be reported for every token and is now reported on request;
//! * `host`: the row is exponentiated once;
//! * `measured`: the maximum and the sums of the blocks are already known, as they are for rows that come
//!   from a graphics card.
//!
//! The fastest of several rounds counts: on a shared machine, the others measure the neighbours. `cargo
//! bench` builds with full optimization; a debug build says nothing about any of this.

use std::hint::black_box;
use std::time::Instant;

use lexiform_law::{
    Allowed, Distribution, History, Law, Measured, Part, Place, Row, Seeded, Warper, Warping,
};

const ROUNDS: usize = 7;
const DRAWS: u32 = 200;

/// The input of a draw.
struct Case {
    logits: Vec<f32>,
    mask: Vec<u32>,
    warper: Warper,
    peak: f32,
    sums: Vec<f64>,
}

/// Returns logits with the tail of a language model's, in no order of tokens, and a mask of most of the
/// tokens.
fn row(width: u32, warping: Warping) -> Case {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    // A sum of uniform numbers is close to normal; one token in a thousand stands out.
    let mut logit = || {
        let body: f32 = (0..6).map(|_| next()).sum::<f32>() * 3.0;
        body + if next() < 0.001 { 12.0 * next() } else { 0.0 }
    };
    let logits: Vec<f32> = (0..width).map(|_| logit()).collect();
    let mask = (0..width.div_ceil(32))
        .map(|word| if word % 10 == 0 { 0xFFF0_FF0F } else { !0 })
        .collect();
    let warper = Warper::new(warping, Law::Local).expect("the settings are in range");
    let peak = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |logit: &f32| (warper.scale() * (f64::from(*logit) - f64::from(peak))).exp();
    let sums = logits
        .chunks(32)
        .map(|block| block.iter().map(weight).sum())
        .collect();
    Case {
        logits,
        mask,
        warper,
        peak,
        sums,
    }
}

impl Case {
    fn measured(&self) -> Measured<'_> {
        Measured {
            peak: self.peak,
            scale: self.warper.scale(),
            sums: &self.sums,
        }
    }

    /// Draws a token as a walk does, and returns it with its log-probability.
    fn draw(&self, measured: Option<Measured<'_>>, position: u32) -> (u32, f64) {
        let history = History {
            answer: &[3, 17, 1000],
            ..History::default()
        };
        let row = self
            .warper
            .row_of(&self.logits, measured, history)
            .expect("the logits are finite");
        let part = row.part(Allowed::Words(&self.mask));
        let token = part
            .draw(Place::new(0, position), &mut Seeded::new(7, 0))
            .expect("a token is allowed");
        (
            token,
            row.log_probability(token) + part.log_mass() + part.log_kept(),
        )
    }

    /// Returns the draws per second in the fastest round.
    fn speed(&self, draw: impl Fn(u32) -> f64) -> f64 {
        let round = |_| {
            let begun = Instant::now();
            for position in 0..DRAWS {
                black_box(draw(black_box(position)));
            }
            begun.elapsed().as_secs_f64() / f64::from(DRAWS)
        };
        1.0 / (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
    }

    fn speeds(&self) -> [f64; 3] {
        let own = |position| {
            let (token, told) = self.draw(None, position);
            let row = Distribution::new(&self.logits).expect("the logits are finite");
            told + row.log_probability(token)
        };
        [
            self.speed(own),
            self.speed(|position| self.draw(None, position).1),
            self.speed(|position| self.draw(Some(self.measured()), position).1),
        ]
    }
}

/// The name of a setting, and a function that creates its warping.
type Setting = (&'static str, fn() -> Warping);

const SETTINGS: [Setting; 6] = [
    ("T 1", Warping::default),
    ("T 0.7", || Warping {
        temperature: 0.7,
        ..Warping::default()
    }),
    ("T 0.7, top-p 0.9", || Warping {
        temperature: 0.7,
        top_p: 0.9,
        ..Warping::default()
    }),
    ("T 0.7, top-k 40", || Warping {
        temperature: 0.7,
        top_k: Some(40),
        ..Warping::default()
    }),
    ("T 1, penalties", || Warping {
        frequency_penalty: 0.5,
        ..Warping::default()
    }),
    ("T 0", || Warping {
        temperature: 0.0,
        ..Warping::default()
    }),
];

fn main() {
    println!(
        "{:>8}  {:<18}{:>10}{:>10}{:>10}   draws a second",
        "tokens", "", "own", "host", "measured"
    );
    for width in [128_256, 2048] {
        for (name, warping) in SETTINGS {
            let [own, host, measured] = row(width, warping()).speeds();
            println!("{width:>8}  {name:<18}{own:>10.0}{host:>10.0}{measured:>10.0}");
        }
    }
}
