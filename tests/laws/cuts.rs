//! The filters of a row against their definitions, taken literally.

use std::collections::BTreeSet;

use lexiform_law::{
    Allowed, Fallback, History, Law, LawError, LawTag, Mirostat, MirostatVersion, Part, Row, Walk, Warper,
    Warping,
};
use proptest::prelude::*;

use crate::float::masked;

/// A decision of a definition that is closer than this may fall on either side by rounding.
const EDGE: f64 = 1e-8;

/// A token of a filtered law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) id: u32,
    pub(crate) logit: f32,
    /// Its logarithm, up to a constant of the law.
    log: f64,
}

/// A law that is filtered by the definitions, token by token, and the margin of the closest decision.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    pub(crate) tokens: Vec<Token>,
    pub(crate) edge: f64,
}

impl Slow {
    /// Returns the tokens of a mask, the most likely first.
    pub(crate) fn new(logits: &[f32], allowed: Allowed<'_>, temperature: f32) -> Self {
        let token = |(id, &logit): (u32, &f32)| Token {
            id,
            logit,
            log: f64::from(logit) / f64::from(temperature),
        };
        let mut tokens: Vec<Token> = (0..).zip(logits).map(token).collect();
        tokens.retain(|token| allowed.contains(token.id) && token.logit > f32::NEG_INFINITY);
        tokens.sort_by(|one, other| other.logit.total_cmp(&one.logit).then(one.id.cmp(&other.id)));
        Slow {
            tokens,
            edge: f64::INFINITY,
        }
    }

    /// Returns `ln p` of the tokens that are left.
    fn logs(&self) -> Vec<f64> {
        let peak = self
            .tokens
            .iter()
            .map(|token| token.log)
            .fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = self.tokens.iter().map(|token| (token.log - peak).exp()).sum();
        self.tokens
            .iter()
            .map(|token| token.log - peak - sum.ln())
            .collect()
    }

    fn entropy(&self) -> f64 {
        self.logs().iter().map(|log| -log * log.exp()).sum()
    }

    /// Compares two numbers, and records the margin.
    fn is_less(&mut self, one: f64, other: f64) -> bool {
        self.edge = self.edge.min((one - other).abs());
        one < other
    }

    /// Keeps the tokens whose logarithm is not below this, and always the most likely one.
    fn down_to(&mut self, least: f64) {
        let (logs, tokens) = (self.logs(), self.tokens.clone());
        self.tokens.clear();
        for (token, log) in tokens.iter().zip(logs) {
            if !self.is_less(log, least) {
                self.tokens.push(*token);
            }
        }
        if self.tokens.is_empty() {
            self.tokens.push(tokens[0]);
        }
    }

    /// Keeps the first tokens of an order that reach a share.
    fn reaching(&mut self, share: f64, order: Vec<usize>) {
        let (logs, tokens) = (self.logs(), std::mem::take(&mut self.tokens));
        let mut reached = 0.0;
        let mut kept = Vec::new();
        for index in order {
            if !self.is_less(reached, share) {
                break;
            }
            kept.push(index);
            reached += logs[index].exp();
        }
        kept.sort_unstable();
        self.tokens = kept.into_iter().map(|index| tokens[index]).collect();
    }

    fn top_n_sigma(&mut self, sigmas: f64) {
        let logits = || self.tokens.iter().map(|token| f64::from(token.logit));
        let count = self.tokens.len() as f64;
        let mean = logits().sum::<f64>() / count;
        let sigma = (logits().map(|logit| (logit - mean).powi(2)).sum::<f64>() / count).sqrt();
        let least = logits().fold(f64::NEG_INFINITY, f64::max) - sigmas * sigma;
        for token in std::mem::take(&mut self.tokens) {
            if !self.is_less(f64::from(token.logit), least) {
                self.tokens.push(token);
            }
        }
    }

    fn typical(&mut self, tau: f64) {
        let entropy = self.entropy();
        let distances: Vec<f64> = self.logs().iter().map(|log| (-log - entropy).abs()).collect();
        let mut order: Vec<usize> = (0..distances.len()).collect();
        // The tokens stand in the order of their rank already, which decides between equal distances.
        order.sort_by(|&a, &b| distances[a].total_cmp(&distances[b]));
        for pair in order.windows(2) {
            let [one, other] = [pair[0], pair[1]];
            if self.tokens[one].logit != self.tokens[other].logit {
                self.is_less(distances[one], distances[other]);
            }
        }
        self.reaching(tau, order);
    }

    /// Keeps the `k` tokens of the least cost, found by trying all `k`.
    fn bregman(&mut self, lambda: f64) {
        let logs = self.logs();
        let cost = |k: usize| -logs[..k].iter().map(|log| log.exp()).sum::<f64>().ln() + lambda * k as f64;
        let costs: Vec<f64> = (1..=logs.len()).map(cost).collect();
        let best = (0..costs.len())
            .min_by(|&a, &b| costs[a].total_cmp(&costs[b]))
            .expect("a token");
        for (k, other) in costs.iter().enumerate() {
            if k != best {
                self.is_less(costs[best], *other);
            }
        }
        self.tokens.truncate(best + 1);
    }

    /// Keeps the `k` tokens of Mirostat 1 for a bound in bits.
    pub(crate) fn mirostat_1(&mut self, bits: f64) {
        let (logs, count) = (self.logs(), self.tokens.len());
        if count < 2 {
            return;
        }
        let pairs = 1..count.min(100);
        let t = |i: usize| ((i as f64 + 1.0) / i as f64).ln();
        let s = pairs.clone().map(|i| t(i) * (logs[i - 1] - logs[i])).sum::<f64>()
            / pairs.map(|i| t(i).powi(2)).sum::<f64>();
        let (epsilon, n) = (s - 1.0, count as f64);
        let k = ((epsilon * bits.exp2()) / (1.0 - n.powf(-epsilon))).powf(1.0 / s);
        self.edge = self.edge.min((k.fract() - 0.5).abs() / k.max(1.0));
        self.tokens.truncate(k.round().clamp(1.0, n) as usize);
    }

    pub(crate) fn mirostat_2(&mut self, bits: f64) {
        self.down_to(-bits * std::f64::consts::LN_2);
    }

    /// Applies all filters of a warping except Mirostat, in their order.
    fn warped(mut self, warping: &Warping) -> Self {
        if let Some(sigmas) = warping.top_n_sigma {
            self.top_n_sigma(f64::from(sigmas));
        }
        self.tokens
            .truncate(warping.top_k.map_or(usize::MAX, |k| k as usize));
        if warping.typical_p < 1.0 {
            self.typical(f64::from(warping.typical_p));
        }
        if warping.top_p < 1.0 {
            self.reaching(f64::from(warping.top_p), (0..self.tokens.len()).collect());
        }
        if warping.min_p > 0.0 {
            let best = self.logs().into_iter().fold(f64::NEG_INFINITY, f64::max);
            self.down_to(best + f64::from(warping.min_p).ln());
        }
        if warping.epsilon_cutoff > 0.0 {
            self.down_to(f64::from(warping.epsilon_cutoff).ln());
        }
        if warping.eta_cutoff > 0.0 {
            let epsilon = f64::from(warping.eta_cutoff);
            self.down_to(epsilon.ln().min(0.5 * epsilon.ln() - self.entropy()));
        }
        if warping.bregman_lambda > 0.0 {
            self.bregman(f64::from(warping.bregman_lambda));
        }
        self
    }

    pub(crate) fn ids(&self) -> BTreeSet<u32> {
        self.tokens.iter().map(|token| token.id).collect()
    }

    /// Returns the law of the tokens that are kept, if no decision was close.
    pub(crate) fn shares(&self, len: usize) -> Vec<f64> {
        let mut shares = vec![0.0; len];
        for (token, log) in self.tokens.iter().zip(self.logs()) {
            shares[token.id as usize] = log.exp();
        }
        shares
    }
}

/// A warping with any of the filters, alone and together.
fn filters() -> impl Strategy<Value = Warping> {
    let some = |share: std::ops::Range<f32>, none: f32| prop_oneof![2 => Just(none), 1 => share];
    let few = (
        prop::option::weighted(0.3, 0.05f32..4.0),
        prop::option::weighted(0.3, 1u32..60),
        some(0.05..1.0, 1.0),
        some(0.05..1.0, 1.0),
    );
    let more = (
        some(0.0..0.5, 0.0),
        some(0.0..0.5, 0.0),
        some(0.0..0.5, 0.0),
        some(0.0..0.4, 0.0),
    );
    (few, more).prop_map(
        |((top_n_sigma, top_k, typical_p, top_p), (min_p, epsilon_cutoff, eta_cutoff, bregman_lambda))| {
            Warping {
                top_n_sigma,
                top_k,
                typical_p,
                top_p,
                min_p,
                epsilon_cutoff,
                eta_cutoff,
                bregman_lambda,
                ..Warping::default()
            }
        },
    )
}

/// Rows as flat as a model's: the filters keep more than one token of these.
fn flat() -> impl Strategy<Value = (Vec<f32>, Vec<u32>, f32)> {
    (masked(), 0.02f32..0.3).prop_map(|((logits, mask, temperature), slope)| {
        let logits = logits.into_iter().map(|logit| logit.clamp(-40.0, 40.0) * slope);
        (logits.collect(), mask, temperature)
    })
}

fn rows() -> impl Strategy<Value = (Vec<f32>, Vec<u32>, f32)> {
    prop_oneof![1 => masked(), 3 => flat()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Under the local law the filters are those of the masked row.
    #[test]
    fn filters_keep_what_their_definitions_keep((logits, mask, temperature) in rows(), warping in filters()) {
        let allowed = Allowed::Words(&mask);
        let slow = Slow::new(&logits, allowed, temperature).warped(&warping);
        prop_assume!(slow.edge > EDGE);
        let warper = Warper::new(Warping { temperature, ..warping.clone() }, Law::Local).expect("in range");
        let row = warper.row(&logits, History::default()).expect("the logits are finite");
        let (part, whole) = (row.part(allowed), row.clone().uncut());
        for (token, wanted) in (0..).zip(slow.shares(logits.len())) {
            prop_assert!((part.share(token) - wanted).abs() < 1e-9, "token {token} of {warping:?}");
            // Of what is hundreds of nats below the best token of the row, sums have no digits.
            let is_far = wanted < 1e-200 || whole.probability(token) < 1e-200;
            prop_assert!(wanted > 0.0 && is_far || (part.share(token) > 0.0) == (wanted > 0.0));
        }
        prop_assert_eq!(part.log_mass(), whole.part(allowed).log_mass());
        let kept: f64 = slow.ids().iter().map(|&token| whole.probability(token)).sum();
        prop_assume!(kept > 1e-200);
        prop_assert!((part.log_kept() - kept.ln()).abs() < 1e-9, "{} against {}", part.log_kept(), kept.ln());
    }

    /// Under the global law they are those of the row, and the mask leaves what it leaves of them.
    #[test]
    fn filters_before_the_mask_are_of_the_row((logits, mask, temperature) in rows(), warping in filters()) {
        let slow = Slow::new(&logits, Allowed::All, temperature).warped(&warping);
        prop_assume!(slow.edge > EDGE);
        let global = Law::Global { max_attempts: 1, fallback: Fallback::Fail, share_attempts: false };
        let warper = Warper::new(Warping { temperature, ..warping }, global).expect("in range");
        let row = warper.row(&logits, History::default()).expect("the logits are finite");
        let shares = slow.shares(logits.len());
        let mut mass = 0.0;
        for (token, &wanted) in (0..).zip(&shares) {
            prop_assert!((row.probability(token) - wanted).abs() < 1e-9);
            mass += if Allowed::Words(&mask).contains(token) { wanted } else { 0.0 };
        }
        prop_assert!((row.part(Allowed::Words(&mask)).mass() - mass).abs() < 1e-9);
    }

    /// Mirostat's cut is the last, at any bound.
    #[test]
    fn a_ceiling_is_that_of_what_the_filters_left(
        (logits, mask, temperature) in rows(), warping in filters(), second: bool, tau in 0.1f32..5.0,
    ) {
        let version = if second { MirostatVersion::Two } else { MirostatVersion::One };
        let mirostat = Some(Mirostat { version, tau, eta: 0.1 });
        let warper = Warper::new(Warping { temperature, mirostat, ..warping.clone() }, Law::Local).expect("in range");
        let ceiling = Walk::<f64>::local(&warper, true, &[]).ceiling_at(0).expect("there is a bound");
        prop_assert_eq!(ceiling.bits(), 2.0 * f64::from(tau));
        let allowed = Allowed::Words(&mask);
        let mut slow = Slow::new(&logits, allowed, temperature).warped(&warping);
        match version {
            MirostatVersion::One => slow.mirostat_1(ceiling.bits()),
            MirostatVersion::Two => slow.mirostat_2(ceiling.bits()),
        }
        prop_assume!(slow.edge > EDGE);
        let row = warper.row(&logits, History::default()).expect("the logits are finite");
        let part = row.part_under(allowed, Some(ceiling));
        for (token, wanted) in (0..).zip(slow.shares(logits.len())) {
            prop_assert!((part.share(token) - wanted).abs() < 1e-9, "token {token} of {warping:?}");
        }
    }
}

/// Where a filter is taken for another of its kind, the property above must fail.
#[test]
fn plausible_mistakes_keep_other_tokens() {
    type Mistake = fn(&mut Slow);
    let mistakes: [(Warping, Mistake); 4] = [
        (
            // The entropy of the surprises, but the most likely token always kept.
            Warping {
                typical_p: 0.3,
                ..Warping::default()
            },
            |slow| slow.reaching(0.3, (0..slow.tokens.len()).collect()),
        ),
        (
            // The standard deviation of a sample.
            Warping {
                top_n_sigma: Some(1.0),
                ..Warping::default()
            },
            |slow| {
                let count = slow.tokens.len() as f64;
                slow.top_n_sigma((count / (count - 1.0)).sqrt());
            },
        ),
        (
            // The bound relative to the best.
            Warping {
                epsilon_cutoff: 0.1,
                ..Warping::default()
            },
            |slow| slow.down_to(slow.logs()[0] + 0.1_f64.ln()),
        ),
        (
            // The cost of a token as a share of the best rather than of all before it.
            Warping {
                bregman_lambda: 0.2,
                ..Warping::default()
            },
            |slow| slow.down_to(slow.logs()[0] + 0.2_f64.exp_m1().ln()),
        ),
    ];
    for (warping, mistake) in mistakes {
        let warper = Warper::new(warping.clone(), Law::Local).expect("in range");
        let differs = |seed: u32| {
            let mut state = seed;
            let logits: Vec<f32> = (0..12)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 8) as f32 / (1 << 22) as f32
                })
                .collect();
            let mut slow = Slow::new(&logits, Allowed::All, 1.0);
            mistake(&mut slow);
            let row = warper.row(&logits, History::default()).expect("finite");
            let part = row.part(Allowed::All);
            let kept: BTreeSet<u32> = (0..12).filter(|&token| part.share(token) > 0.0).collect();
            kept != slow.ids()
        };
        let failures = (0..300).filter(|&seed| differs(seed)).count();
        assert!(
            failures > 10,
            "{warping:?}: the mutant fails only {failures} times"
        );
    }
}

#[test]
fn filters_are_told_by_the_tag() {
    let plain = Warping::default;
    let filters = [
        Warping {
            top_n_sigma: Some(1.5),
            ..plain()
        },
        Warping {
            typical_p: 0.9,
            ..plain()
        },
        Warping {
            epsilon_cutoff: 0.01,
            ..plain()
        },
        Warping {
            eta_cutoff: 0.01,
            ..plain()
        },
        Warping {
            bregman_lambda: 0.1,
            ..plain()
        },
        Warping {
            mirostat: Some(Mirostat {
                version: MirostatVersion::Two,
                tau: 3.0,
                eta: 0.1,
            }),
            ..plain()
        },
    ];
    for warping in filters {
        let warper = Warper::new(warping, Law::Local).expect("in range");
        assert!(warper.is_filtered() && !warper.is_plain() && warper.is_identity());
        assert_eq!(warper.by_rank(), None);
        assert_eq!(
            Walk::<f64>::local(&warper, true, &[]).tag(),
            LawTag::LocalFiltered
        );
        assert_eq!(Walk::<f64>::local(&warper, false, &[]).tag(), LawTag::RawFiltered);
    }
}

#[test]
fn filters_out_of_range_are_refused_by_name() {
    let plain = Warping::default;
    let mirostat = |tau, eta| {
        Some(Mirostat {
            version: MirostatVersion::One,
            tau,
            eta,
        })
    };
    let wrong = [
        (
            "top_n_sigma",
            Warping {
                top_n_sigma: Some(0.0),
                ..plain()
            },
        ),
        (
            "typical_p",
            Warping {
                typical_p: 0.0,
                ..plain()
            },
        ),
        (
            "epsilon_cutoff",
            Warping {
                epsilon_cutoff: 1.1,
                ..plain()
            },
        ),
        (
            "eta_cutoff",
            Warping {
                eta_cutoff: -0.1,
                ..plain()
            },
        ),
        (
            "bregman_lambda",
            Warping {
                bregman_lambda: f32::INFINITY,
                ..plain()
            },
        ),
        (
            "mirostat_tau",
            Warping {
                mirostat: mirostat(0.0, 0.1),
                ..plain()
            },
        ),
        (
            "mirostat_eta",
            Warping {
                mirostat: mirostat(3.0, f32::NAN),
                ..plain()
            },
        ),
    ];
    for (wanted, warping) in wrong {
        match Warper::new(warping, Law::Local) {
            Err(LawError::OutOfRange { name, .. }) => assert_eq!(name, wanted),
            other => panic!("not refused: {other:?}"),
        }
    }
}
