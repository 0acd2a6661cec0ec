//! Tokens drawn on the device, by torch's operations in `f64`.
//!
//! A draw follows the law ([`law`](lexiform_law)): among the sums of the groups of blocks, it takes the group
//! in which `u` of their total falls; in the same way a block of that group, and a token of that block. Only
//! six numbers per row are copied to host memory instead of the row.
//!
//! torch adds in a different order, and its exponentials may differ from the library's in the last digit. So
//! a token differs from the one drawn from the same row in host memory if `u` hits the border between two
//! tokens to some 15 digits; the law is the same to as many digits.

use crate::model::flight::Ask;
use lexiform_law::{Allowed, Drawn};
use tch::{Device, Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

/// The number of tokens of a block, and of bits of a word of a mask.
const BLOCK: i64 = 32;
/// The number of blocks of a group.
const GROUP: i64 = 64;
/// The number of rows drawn from at once, so that many of them do not take gigabytes in `f64`.
pub(crate) const ROWS: usize = 64;
/// A masked sum below this has lost digits, and the draw is left to the library.
const LEAST_SUM: f64 = 1e-200;
/// The numbers of a row that are copied to host memory.
const NUMBERS: usize = 6;

/// Draws once from each of these rows, `[rows, width]` in `f32`; `None` if a row is needed on the host. See
/// [`Flight::draw`](crate::Flight::draw).
pub(crate) fn draw(logits: &Tensor, asks: &[Ask<'_>]) -> Result<Vec<Option<Drawn>>> {
    if asks.is_empty() {
        return Ok(Vec::new());
    }
    let peaks = logits.f_amax([1], true)?.f_to_kind(Kind::Double)?;
    let rows = Weighed::new(logits, &peaks, asks)?;
    let token = rows.draw(asks)?;
    let found = [
        token.f_to_kind(Kind::Double)?,
        rows.logs.f_gather(1, &token, false)?,
        rows.kept.f_gather(1, &token, false)?,
        rows.kept.f_sum_dim_intlist(&[1_i64][..], true, None)?,
        rows.whole,
        peaks,
    ];
    let found = Tensor::f_cat(&found, 1)?.f_to_device(Device::Cpu)?;
    let found = Vec::<f64>::try_from(&found.f_contiguous()?.f_view([-1])?)?;
    let rows = found.chunks(NUMBERS).zip(asks);
    Ok(rows.map(|(row, ask)| told(row, ask)).collect())
}

/// Rows and their masks as weights.
struct Weighed {
    /// The logits less the peak of their row, `[rows, width]`.
    logs: Tensor,
    /// Ones for allowed tokens, zeros for others, `[rows, blocks · 32]`.
    allowed: Tensor,
    /// The weights of allowed tokens, zeros for others, `[rows, blocks · 32]`.
    kept: Tensor,
    /// The sum of the weights of all tokens of each row, `[rows, 1]`.
    whole: Tensor,
}

impl Weighed {
    fn new(logits: &Tensor, peaks: &Tensor, asks: &[Ask<'_>]) -> Result<Self> {
        let (rows, width) = (logits.size()[0], logits.size()[1]);
        let blocks = (width + BLOCK - 1) / BLOCK;
        let allowed = bits(&words(asks, blocks as usize), (rows, blocks), logits.device())?;
        let scales: Vec<f64> = asks.iter().map(|ask| ask.warper.scale()).collect();
        let scales = numbers(&scales, 1, logits.device())?;
        let logs = logits.f_to_kind(Kind::Double)?.f_sub(peaks)?;
        let weights = padded(&logs.f_mul(&scales)?.f_exp()?, blocks * BLOCK, 0.0)?;
        Ok(Weighed {
            logs,
            kept: weights.f_mul(&allowed)?,
            allowed,
            whole: weights.f_sum_dim_intlist(&[1_i64][..], true, None)?,
        })
    }

    /// Draws a token of each row, `[rows, 1]`; an arbitrary one if none is allowed.
    fn draw(&self, asks: &[Ask<'_>]) -> Result<Tensor> {
        let is_greedy: Vec<f64> = asks
            .iter()
            .map(|ask| f64::from(u8::from(ask.warper.is_greedy())))
            .collect();
        let token = match is_greedy.iter().filter(|&&greedy| greedy == 1.0).count() {
            0 => self.sample(asks)?,
            count if count == asks.len() => self.largest()?,
            _ => {
                let is_greedy = numbers(&is_greedy, 1, self.kept.device())?.f_ne(0.0)?;
                self.largest()?.f_where_self(&is_greedy, &self.sample(asks)?)?
            }
        };
        token.f_clamp_max(self.logs.size()[1] - 1)
    }

    /// Draws a token of each row in proportion to the weights: a group, a block of it, a token of that.
    fn sample(&self, asks: &[Ask<'_>]) -> Result<Tensor> {
        let (rows, width) = (self.kept.size()[0], self.kept.size()[1]);
        let (blocks, device) = (width / BLOCK, self.kept.device());
        let groups = (blocks + GROUP - 1) / GROUP;
        let uniforms: Vec<f64> = asks.iter().flat_map(Ask::uniforms).collect();
        let uniforms = numbers(&uniforms, 3, device)?;
        let uniform = |number: i64| uniforms.f_narrow(1, number, 1);
        let kept = self.kept.f_view([rows, blocks, BLOCK])?;
        let block_sums = kept.f_sum_dim_intlist(&[2_i64][..], false, None)?;
        let block_sums = padded(&block_sums, groups * GROUP, 0.0)?.f_view([rows, groups, GROUP])?;
        let group_sums = block_sums.f_sum_dim_intlist(&[2_i64][..], false, None)?;
        let group = choose(&group_sums, &uniform(0)?)?;
        let block = choose(&member(&block_sums, &group, GROUP)?, &uniform(1)?)?;
        let block = group
            .f_mul_scalar(GROUP)?
            .f_add(&block)?
            .f_clamp_max(blocks - 1)?;
        let token = choose(&member(&kept, &block, BLOCK)?, &uniform(2)?)?;
        block.f_mul_scalar(BLOCK)?.f_add(&token)
    }

    /// Returns the most likely token of each row, the first one of equal ones.
    fn largest(&self) -> Result<Tensor> {
        let width = self.allowed.size()[1];
        let logs = padded(&self.logs, width, f64::NEG_INFINITY)?;
        let is_allowed = self.allowed.f_ne(0.0)?;
        let least = logs.f_full_like(f64::NEG_INFINITY)?;
        let logs = logs.f_where_self(&is_allowed, &least)?;
        let is_largest = logs
            .f_eq_tensor(&logs.f_amax([1], true)?)?
            .f_logical_and(&is_allowed)?;
        let indices = Tensor::f_arange(width, (Kind::Int64, logs.device()))?.f_expand_as(&logs)?;
        let past = indices.f_full_like(width)?;
        indices.f_where_self(&is_largest, &past)?.f_amin([1_i64], true)
    }
}

/// Returns the draw that the numbers of a row give, if they are precise enough.
fn told(row: &[f64], ask: &Ask<'_>) -> Option<Drawn> {
    let &[token, log, weight, total, whole, peak] = row else {
        return None;
    };
    let is_law = peak.is_finite() && whole.is_finite() && total.is_finite();
    if !is_law || weight <= 0.0 || total < LEAST_SUM {
        return None;
    }
    let log_mass = total.ln() - whole.ln();
    let log_probability = log * ask.warper.scale() - whole.ln();
    Some(Drawn {
        token: token as u32,
        mass: log_mass.exp(),
        log_mass,
        log_probability,
        // Greedy decoding keeps one token.
        log_kept: if ask.warper.is_greedy() {
            log_probability
        } else {
            log_mass
        },
    })
}

/// Returns the words of all masks, as many for each as there are blocks.
fn words(asks: &[Ask<'_>], blocks: usize) -> Vec<i32> {
    let mut words = Vec::with_capacity(asks.len() * blocks);
    for ask in asks {
        let end = words.len() + blocks;
        match ask.allowed {
            Allowed::All => words.resize(end, -1),
            Allowed::Words(mask) => words.extend(mask.iter().take(blocks).map(|&word| word as i32)),
        }
        words.resize(end, 0);
    }
    words
}

/// Returns the bits of words `[rows, blocks]` one after another, as zeros and ones in `f64`.
fn bits(words: &[i32], (rows, blocks): (i64, i64), device: Device) -> Result<Tensor> {
    let words = Tensor::f_from_slice(words)?
        .f_to_device(device)?
        .f_view([rows, blocks, 1])?;
    let shifts = Tensor::f_arange(BLOCK, (Kind::Int, device))?;
    words
        .f_bitwise_right_shift(&shifts)?
        .f_bitwise_and(1)?
        .f_to_kind(Kind::Double)?
        .f_view([rows, blocks * BLOCK])
}

/// Returns a tensor with `each` numbers per row.
fn numbers(values: &[f64], each: i64, device: Device) -> Result<Tensor> {
    Tensor::f_from_slice(values)?
        .f_to_device(device)?
        .f_view([-1, each])
}

/// Pads rows to a width.
fn padded(rows: &Tensor, width: i64, with: f64) -> Result<Tensor> {
    match width - rows.size()[1] {
        0 => Ok(rows.shallow_clone()),
        rest => rows.f_pad([0, rest], "constant", with),
    }
}

/// Returns for each row of weights `[rows, n]` and each number `[rows, 1]` below 1 the index at which the
/// cumulative sum of the weights first exceeds this fraction of the total; `[rows, 1]`.
fn choose(weights: &Tensor, uniform: &Tensor) -> Result<Tensor> {
    let sums = weights.f_cumsum(1, Kind::Double)?;
    let total = sums.f_narrow(1, sums.size()[1] - 1, 1)?;
    let count = |below: Tensor| below.f_sum_dim_intlist(&[1_i64][..], true, Kind::Int64);
    let index = count(sums.f_le_tensor(&total.f_mul(uniform)?)?)?;
    // Rounding can carry the number past the end; then the last index that has a weight is the right one.
    index.f_minimum(&count(sums.f_lt_tensor(&total)?)?)
}

/// Returns the member of each row of `[rows, n, size]` that `index`, `[rows, 1]`, selects.
fn member(members: &Tensor, index: &Tensor, size: i64) -> Result<Tensor> {
    let rows = members.size()[0];
    let index = index.f_view([rows, 1, 1])?.f_expand([rows, 1, size], false)?;
    members.f_gather(1, &index, false)?.f_view([rows, size])
}

/// Returns the most likely tokens of rows `[rows, width]` in `f32`; see [`Flight::top`](crate::Flight::top).
pub(crate) fn top(logits: &Tensor, count: usize) -> Result<Vec<Vec<(u32, f64)>>> {
    let width = logits.size()[1];
    let count = (count as i64).min(width);
    if count == 0 || logits.size()[0] == 0 {
        return Ok(vec![Vec::new(); logits.size()[0] as usize]);
    }
    let logs = logits.f_to_kind(Kind::Double)?.f_log_softmax(1, Kind::Double)?;
    // The sort is stable, so of equal logits the first comes first.
    let (_, order) = logits.f_sort_stable(true, 1, true)?;
    let order = order.f_narrow(1, 0, count)?;
    let values = logs.f_gather(1, &order, false)?.f_to_device(Device::Cpu)?;
    let tokens = Vec::<i64>::try_from(&order.f_to_device(Device::Cpu)?.f_contiguous()?.f_view([-1])?)?;
    let values = Vec::<f64>::try_from(&values.f_contiguous()?.f_view([-1])?)?;
    let pairs: Vec<(u32, f64)> = tokens.into_iter().map(|token| token as u32).zip(values).collect();
    Ok(pairs.chunks(count as usize).map(<[_]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::flight::{Flight, Landed};
    use crate::model::logits::Logits;
    use lexiform_law::{History, Law, Place, Seeded, Warper, Warping};

    fn warper(temperature: f32) -> Warper {
        let warping = Warping {
            temperature,
            ..Warping::default()
        };
        Warper::new(warping, Law::Local).unwrap()
    }

    /// Returns numbers between 0 and 1 that look random.
    fn noise(seed: u64) -> impl Iterator<Item = f64> {
        let chance = Seeded::new(seed, 0);
        (0..).map(move |position| chance.uniform(Place::new(0, position)))
    }

    /// Compares rows of this width, some of which are hundreds of nats below their peak, with masks that
    /// leave all, many, few and no tokens.
    fn compare(width: usize, rows: usize) {
        let spread = |row: usize| [1.0, 8.0, 300.0][row % 3];
        let numbers = noise(width as u64).take(rows * width).enumerate();
        let logits: Vec<f32> = numbers
            .map(|(at, number)| (number * spread(at / width)) as f32)
            .collect();
        let warpers = [1.0, 0.7, 1.6, 0.0].map(warper);
        let words = width.div_ceil(32);
        let dense: Vec<u32> = noise(1).take(words).map(|number| (number * 4e9) as u32).collect();
        let sparse: Vec<u32> = (0..words)
            .map(|word| u32::from(word % 37 == 5) << (word % 32))
            .collect();
        let masks = [
            dense,
            sparse,
            vec![0; words],
            vec![!0; words + 3],
            vec![0xF0F0; words / 2],
        ];
        let ask = |row: usize| Ask {
            row,
            allowed: match row % 6 {
                5 => Allowed::All,
                mask => Allowed::Words(&masks[mask]),
            },
            warper: &warpers[row % 4],
            history: History::default(),
            seeded: Seeded::new(row as u64 / 2, 1),
            place: Place::new(2, row as u32),
        };
        let asks: Vec<Ask<'_>> = (0..rows).map(ask).collect();
        let tensor = Tensor::from_slice(&logits).view([rows as i64, width as i64]);
        let found = draw(&tensor, &asks).unwrap();
        let known = Landed::new(Logits::new(logits, width)).draw(&asks).unwrap();
        let near = |one: f64, other: f64| (one - other).abs() < 1e-9 * one.abs().max(1.0);
        for (row, (found, known)) in found.into_iter().zip(known).enumerate() {
            match (found, known) {
                (Some(found), Some(known)) => {
                    assert_eq!(found.token, known.token, "{width} {row}");
                    let is_near = near(found.log_mass, known.log_mass)
                        && near(found.log_kept, known.log_kept)
                        && near(found.log_probability, known.log_probability);
                    assert!(is_near, "{width} {row}: {found:?} {known:?}");
                }
                (None, None) => {
                    let allowed = |token: usize| asks[row].allowed.contains(token as u32);
                    assert!(!(0..width).any(allowed), "{width} {row}");
                }
                // Too little for sums relative to the peak of the row.
                (None, Some(known)) => assert!(known.log_mass < -400.0, "{width} {row}: {known:?}"),
                (Some(found), None) => panic!("{width} {row}: {found:?}"),
            }
        }
    }

    #[test]
    fn draws_are_those_of_the_law() {
        for (width, rows) in [
            (1, 12),
            (31, 600),
            (96, 3000),
            (2048, 600),
            (2049, 600),
            (20_011, 60),
        ] {
            compare(width, rows);
        }
    }

    #[test]
    fn a_row_that_is_no_law_is_not_drawn_from() {
        let (sampled, greedy) = (warper(1.0), warper(0.0));
        let rows = [
            [f32::NAN, 1.0, 2.0],
            [f32::INFINITY, 1.0, 2.0],
            [f32::NEG_INFINITY; 3],
            [f32::NEG_INFINITY, 2.0, 2.0],
        ];
        for warper in [&sampled, &greedy] {
            let ask = |row: usize| Ask {
                row,
                allowed: Allowed::All,
                warper,
                history: History::default(),
                seeded: Seeded::new(0, 0),
                place: Place::new(0, 0),
            };
            let asks: Vec<Ask<'_>> = (0..4).map(ask).collect();
            let drawn = draw(&Tensor::from_slice(&rows.concat()).view([4, 3]), &asks).unwrap();
            assert!(drawn[..3].iter().all(Option::is_none), "{drawn:?}");
            let token = drawn[3].as_ref().unwrap().token;
            assert!(token == 1 || token == 2 && !warper.is_greedy());
        }
    }
}
