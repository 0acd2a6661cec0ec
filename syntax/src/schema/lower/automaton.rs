//! Multiples: an automaton over the digits of a plain decimal number, written as rules.
//!
//! A state contains what matters of the digits so far: the residue of the number (scaled so that every step
//! is whole), the number of fractional digits that were read, and how the number compares with each bound.
//! The states that can still lead to a number of the set become rules, one digit each: `r5: [27] r0 | [38] r1
//! | …`. The last rule is a tail call, so the machine keeps no stack for them.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::schema::decimal::{Decimal, Plain};
use crate::schema::forms::NumberShape;
use crate::schema::options::Numbers;
use crate::schema::text::hir;
use lexiform_automata::grammar::{CfgBuilder, ExprId, RuleId};

/// The most states of an automaton for numbers.
const MOST_STATES: usize = 20_000;

/// The transitions of each state: a byte and the state that it leads to.
type Edges = Vec<Vec<(u8, usize)>>;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum ReadPhase {
    Start,
    Minus,
    /// A single zero before the point.
    Zero,
    Whole,
    Point,
    Fraction,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    phase: ReadPhase,
    negative: bool,
    residue: u64,
    /// The number of fractional digits read, up to the finest step.
    places: u32,
    /// `true` if a nonzero digit was read after the finest step.
    beyond: bool,
    /// `true` if any digit was not zero.
    nonzero: bool,
    /// The comparison with each value; mostly there are no more than two bounds.
    compared: SmallVec<[Compared; 2]>,
}

/// How the magnitude so far compares with the magnitude of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Compared {
    /// The number of digits read before the point, up to one more than the value has; then after it.
    read: u32,
    order: Ordering,
}

struct Table<'s> {
    shape: &'s NumberShape,
    numbers: Numbers,
    /// The finest step is 10^-places.
    places: u32,
    modulus: u64,
    step: Option<u64>,
    not_steps: Vec<u64>,
    /// Values that the number is compared with: the bounds, then the exceptions.
    values: Vec<Plain>,
}

/// Writes a set of numbers as rules, and adds the number of states to `found`.
pub(super) fn write(
    shape: &NumberShape,
    numbers: Numbers,
    builder: &mut CfgBuilder,
    found: &mut usize,
) -> Result<ExprId, &'static str> {
    let table = Table::new(shape, numbers)
        .ok_or("`multipleOf` keywords with this many digits are not supported together")?;
    let explored = table.explore();
    *found += explored.as_ref().map_or(MOST_STATES, |(states, _)| states.len());
    let (states, edges) = explored?;
    let live = live_states(&table, &states, &edges);
    if !live[0] {
        return Ok(builder.never());
    }
    let rules: Vec<Option<RuleId>> = live
        .iter()
        .map(|&live| live.then(|| builder.declare("a digit of a multiple")))
        .collect();
    // The same few sets of digits occur everywhere.
    let mut digits: FxHashMap<Vec<(u8, u8)>, ExprId> = FxHashMap::default();
    for (at, edges) in edges.iter().enumerate() {
        let Some(rule) = rules[at] else { continue };
        let mut by_next: Vec<(RuleId, Vec<(u8, u8)>)> = Vec::new();
        for &(byte, next) in edges {
            let Some(next) = rules[next] else { continue };
            match by_next.iter_mut().find(|(rule, _)| *rule == next) {
                Some((_, bytes)) => bytes.push((byte, byte)),
                None => by_next.push((next, vec![(byte, byte)])),
            }
        }
        let mut ways = Vec::new();
        for (next, bytes) in by_next {
            let byte = match digits.get(&bytes) {
                Some(&known) => known,
                None => builder.hir(hir::class(&bytes)),
            };
            digits.insert(bytes, byte);
            let next = builder.rule(next);
            ways.push(builder.seq([byte, next]));
        }
        if table.accepts(&states[at]) {
            ways.push(builder.empty());
        }
        let body = builder.choice(ways);
        builder.define(rule, body);
    }
    Ok(builder.rule(rules[0].expect("the first state is live")))
}

/// Returns, for each state, whether a number of the set can be reached from it.
fn live_states(table: &Table<'_>, states: &[State], edges: &[Vec<(u8, usize)>]) -> Vec<bool> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); states.len()];
    for (from, edges) in edges.iter().enumerate() {
        for &(_, to) in edges {
            before[to].push(from);
        }
    }
    let mut live = vec![false; states.len()];
    let mut open: Vec<usize> = (0..states.len())
        .filter(|&at| table.accepts(&states[at]))
        .collect();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut live[at], true) {
            open.extend(&before[at]);
        }
    }
    live
}

impl<'s> Table<'s> {
    fn new(shape: &'s NumberShape, numbers: Numbers) -> Option<Table<'s>> {
        let scaled: Vec<(u64, i64)> = shape
            .step
            .iter()
            .chain(&shape.not_steps)
            .map(Decimal::scaled)
            .collect::<Option<_>>()?;
        let places = scaled
            .iter()
            .map(|&(_, exponent)| -exponent)
            .max()
            .unwrap_or(0)
            .max(0);
        let whole = |(digits, exponent): (u64, i64)| {
            let zeros = u32::try_from(exponent + places).ok()?;
            digits.checked_mul(10u64.checked_pow(zeros)?)
        };
        let mut steps: Vec<u64> = scaled.into_iter().map(whole).collect::<Option<_>>()?;
        let mut modulus = 1u64;
        for &step in &steps {
            modulus = (modulus / common_divisor(modulus, step)).checked_mul(step)?;
        }
        let step = shape.step.as_ref().map(|_| steps.remove(0));
        let bounds = shape.lower.iter().chain(&shape.upper).map(|bound| &bound.value);
        let values = bounds.chain(&shape.except).map(Decimal::plain).collect();
        Some(Table {
            shape,
            numbers,
            places: places as u32,
            modulus,
            step,
            not_steps: steps,
            values,
        })
    }

    fn start(&self) -> State {
        State {
            phase: ReadPhase::Start,
            negative: false,
            residue: 0,
            places: 0,
            beyond: false,
            nonzero: false,
            compared: smallvec![
                Compared {
                    read: 0,
                    order: Ordering::Equal
                };
                self.values.len()
            ],
        }
    }

    fn explore(&self) -> Result<(Vec<State>, Edges), &'static str> {
        let mut states = vec![self.start()];
        let mut known = FxHashMap::from_iter([(self.start(), 0usize)]);
        let mut edges: Vec<Vec<(u8, usize)>> = Vec::new();
        while edges.len() < states.len() {
            let state = states[edges.len()].clone();
            let mut here = Vec::new();
            for &byte in b"-.0123456789" {
                let Some(next) = self.next(&state, byte) else {
                    continue;
                };
                let index = *known.entry(next).or_insert_with_key(|next| {
                    states.push(next.clone());
                    states.len() - 1
                });
                here.push((byte, index));
            }
            edges.push(here);
            if states.len() > MOST_STATES {
                return Err("a `multipleOf` with this many digits is not supported");
            }
        }
        Ok((states, edges))
    }

    /// Returns `true` if no digits are written after the last one that the steps need, and no sign before a
    /// zero that is whole.
    fn is_short(&self) -> bool {
        self.numbers == Numbers::Double && self.step.is_some() && self.shape.plain != Some(false)
    }

    fn next(&self, state: &State, byte: u8) -> Option<State> {
        if self.is_short() {
            let over =
                state.places == self.places && matches!(state.phase, ReadPhase::Point | ReadPhase::Fraction);
            let whole = self.shape.is_in_digits()
                && (byte == b'.' || state.phase == ReadPhase::Minus && byte == b'0');
            if over || whole {
                return None;
            }
        }
        let phase = match (state.phase, byte) {
            (ReadPhase::Start, b'-') => ReadPhase::Minus,
            (ReadPhase::Start | ReadPhase::Minus, b'0') => ReadPhase::Zero,
            (ReadPhase::Start | ReadPhase::Minus | ReadPhase::Whole, b'0'..=b'9') => ReadPhase::Whole,
            (ReadPhase::Zero | ReadPhase::Whole, b'.') if self.shape.plain != Some(true) => ReadPhase::Point,
            (ReadPhase::Point | ReadPhase::Fraction, b'0'..=b'9') => ReadPhase::Fraction,
            _ => return None,
        };
        let mut next = State {
            phase,
            negative: state.negative || byte == b'-',
            ..state.clone()
        };
        match (byte, phase) {
            (b'-', _) => {}
            (b'.', _) => self.reach_point(&mut next),
            (_, ReadPhase::Fraction) => self.fraction_digit(&mut next, byte),
            _ => self.whole_digit(&mut next, byte),
        }
        Some(next)
    }

    fn whole_digit(&self, state: &mut State, byte: u8) {
        state.nonzero |= byte != b'0';
        state.residue = self.shift(state.residue, byte);
        for (compared, value) in state.compared.iter_mut().zip(&self.values) {
            let length = value.whole.len() as u32;
            if compared.read < length && compared.order == Ordering::Equal {
                compared.order = byte.cmp(&value.whole[compared.read as usize]);
            }
            compared.read = (compared.read + 1).min(length + 1);
        }
    }

    /// The number of digits before the point takes precedence over the digits themselves.
    fn reach_point(&self, state: &mut State) {
        for (compared, value) in state.compared.iter_mut().zip(&self.values) {
            compared.order = whole_order(*compared, value);
            compared.read = 0;
        }
        if self.places == 0 {
            state.residue = self.alike(state.residue);
        }
    }

    /// Returns a residue that the same steps divide: once the digits of the finest step have been read,
    /// nothing else matters. It is the least common multiple of these steps, because a step that divides it
    /// divides everything that they all divide.
    fn alike(&self, residue: u64) -> u64 {
        let steps = self.step.iter().chain(&self.not_steps);
        let dividing = steps.filter(|&&step| residue.is_multiple_of(step));
        dividing.fold(1, |multiple, &step| {
            multiple / common_divisor(multiple, step) * step
        }) % self.modulus
    }

    fn fraction_digit(&self, state: &mut State, byte: u8) {
        state.nonzero |= byte != b'0';
        if state.places < self.places {
            state.residue = self.shift(state.residue, byte);
            state.places += 1;
            if state.places == self.places {
                state.residue = self.alike(state.residue);
            }
        } else if byte != b'0' {
            state.beyond = true;
            state.residue = 0;
        }
        for (compared, value) in state.compared.iter_mut().zip(&self.values) {
            let digit = value
                .fraction
                .get(compared.read as usize)
                .copied()
                .unwrap_or(b'0');
            compared.order = compared.order.then(byte.cmp(&digit));
            compared.read = (compared.read + 1).min(value.fraction.len() as u32);
        }
    }

    fn shift(&self, residue: u64, byte: u8) -> u64 {
        let next = (u128::from(residue) * 10 + u128::from(byte - b'0')) % u128::from(self.modulus);
        next as u64
    }

    fn accepts(&self, state: &State) -> bool {
        if !matches!(
            state.phase,
            ReadPhase::Zero | ReadPhase::Whole | ReadPhase::Fraction
        ) {
            return false;
        }
        if self.shape.plain == Some(false) && state.phase != ReadPhase::Fraction {
            return false;
        }
        let residue = (state.places..self.places).fold(state.residue, |residue, _| self.shift(residue, b'0'));
        let divides = |step: &u64| !state.beyond && residue % step == 0;
        self.step.as_ref().is_none_or(divides)
            && !self.not_steps.iter().any(divides)
            && self.compares_well(state)
    }

    fn compares_well(&self, state: &State) -> bool {
        let order = |at: usize| {
            let value = &self.values[at];
            let (zero, negative) = (!state.nonzero, state.negative && state.nonzero);
            let value_is_zero = value.whole == b"0" && value.fraction.is_empty();
            if zero && value_is_zero {
                return Ordering::Equal;
            }
            if negative != value.negative {
                return if negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                };
            }
            let magnitude = self.magnitude_order(state, at);
            if negative { magnitude.reverse() } else { magnitude }
        };
        let mut at = 0;
        let mut fits = true;
        for (bound, side) in [
            (&self.shape.lower, Ordering::Greater),
            (&self.shape.upper, Ordering::Less),
        ] {
            if let Some(bound) = bound {
                let found = order(at);
                fits &= found == side || (found == Ordering::Equal && !bound.exclusive);
                at += 1;
            }
        }
        fits && (at..self.values.len()).all(|at| order(at) != Ordering::Equal)
    }

    fn magnitude_order(&self, state: &State, at: usize) -> Ordering {
        let (compared, value) = (state.compared[at], &self.values[at]);
        if state.phase != ReadPhase::Fraction {
            let rest = if value.fraction.is_empty() {
                Ordering::Equal
            } else {
                Ordering::Less
            };
            return whole_order(compared, value).then(rest);
        }
        // The digits that were not written are zeros, and the fraction of the value does not end in a zero.
        let rest = if (compared.read as usize) < value.fraction.len() {
            Ordering::Less
        } else {
            Ordering::Equal
        };
        compared.order.then(rest)
    }
}

fn whole_order(compared: Compared, value: &Plain) -> Ordering {
    compared
        .read
        .cmp(&(value.whole.len() as u32))
        .then(compared.order)
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::forms::Bound;

    fn accepts(shape: &NumberShape, text: &str) -> bool {
        let table = Table::new(shape, Numbers::Any).expect("small steps");
        let end = text
            .bytes()
            .try_fold(table.start(), |state, byte| table.next(&state, byte));
        end.is_some_and(|state| table.accepts(&state))
    }

    fn dec(text: &str) -> Decimal {
        Decimal::parse(text).expect("a number")
    }

    #[test]
    fn multiples_within_bounds_agree_with_exact_arithmetic() {
        let shape = NumberShape {
            step: Some(dec("0.75")),
            not_steps: vec![dec("4")],
            lower: Some(Bound {
                value: dec("-2.25"),
                exclusive: false,
            }),
            upper: Some(Bound {
                value: dec("15"),
                exclusive: true,
            }),
            except: vec![dec("4.5")],
            ..NumberShape::default()
        };
        for hundredths in -400i64..1_700 {
            let sign = if hundredths < 0 { "-" } else { "" };
            let text = format!("{sign}{}.{:02}", hundredths.abs() / 100, hundredths.abs() % 100);
            let expected = hundredths % 75 == 0
                && hundredths % 400 != 0
                && (-225..1_500).contains(&hundredths)
                && hundredths != 450;
            assert_eq!(accepts(&shape, &text), expected, "{text}");
        }
    }

    #[test]
    fn only_plain_numbers_are_written() {
        let shape = NumberShape {
            step: Some(dec("7")),
            ..NumberShape::default()
        };
        for (text, expected) in [
            ("0", true),
            ("-0", true),
            ("7", true),
            ("07", false),
            ("14.00", true),
            ("14.001", false),
            ("70000000000000000007", true),
            ("70000000000000000008", false),
            ("7.", false),
            ("", false),
        ] {
            assert_eq!(accepts(&shape, text), expected, "{text}");
        }
    }

    #[test]
    fn states_stay_few() {
        let shape = NumberShape {
            step: Some(dec("77")),
            lower: Some(Bound {
                value: dec("0"),
                exclusive: false,
            }),
            ..NumberShape::default()
        };
        let (states, _) = Table::new(&shape, Numbers::Any)
            .expect("small steps")
            .explore()
            .expect("few states");
        assert!(states.len() < 200, "{} states", states.len());
    }
}
