//! Launches with their buffers, and what loops in `f64` say must be in them afterwards. They run on the
//! processor in tests, and on a card by `kernels/examples/kernels`, which includes this file.

#[path = "attention.rs"]
mod attention;
#[path = "experts.rs"]
mod experts;
#[path = "products.rs"]
mod products;
#[path = "rows.rs"]
mod rows;
#[path = "weights.rs"]
mod weights;

use crate::memory::{Memory, widen};
use lexiform_kernels::node::{Argument, Node, Place};
use lexiform_kernels::shapes::Format;

/// The largest root of the mean of squares of errors, relative to that of the numbers: bf16 rounds to 2⁻⁹.
const MEAN_ERROR: f64 = 6e-3;
/// The largest error of one number, relative to the root of the mean of squares of all.
const LARGEST_ERROR: f64 = 6e-2;

/// What must be in a buffer.
pub(crate) struct Expected {
    pub(crate) buffer: usize,
    /// NaN where the buffer must hold the bits that it held.
    pub(crate) numbers: Vec<f64>,
    pub(crate) type_: Type,
}

/// The type of the numbers of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Bf16,
    F32,
    I32,
}

/// Launches, and what they must compute.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) buffers: Vec<Memory>,
    pub(crate) nodes: Vec<Node<usize>>,
    /// How often the launches are repeated; the results must be there after each.
    pub(crate) rounds: usize,
    pub(crate) expected: Vec<Expected>,
}

/// Buffers in the order in which they are added.
#[derive(Default)]
pub(crate) struct Buffers(Vec<Memory>);

impl Buffers {
    pub(crate) fn add(&mut self, memory: Memory) -> Place<usize> {
        self.0.push(memory);
        Place::start(self.0.len() - 1)
    }
}

impl Case {
    /// The buffers that no kernel of a pass writes: weights, and the tables that come with them.
    #[allow(dead_code, reason = "some programs of tests need it")]
    pub(crate) fn constant(&self) -> Vec<usize> {
        let constant = self.nodes.iter().flat_map(|node| {
            let places: &[usize] = match node.kernel.name.split('_').next() {
                Some("gemv") => &[0, 2, 6],
                Some("skinny") => &[0, 3],
                Some("widen") => &[0, 1],
                Some("embed" | "experts") => &[0],
                Some("norm") => &[1],
                Some("turn") => &[4, 5, 6],
                _ => &[],
            };
            places.iter().filter_map(|&place| match node.arguments[place] {
                Argument::At(place) => Some(place.buffer),
                _ => None,
            })
        });
        constant.collect()
    }

    /// What is wrong in these buffers after the launches.
    pub(crate) fn faults(&self, after: &[Memory]) -> Vec<String> {
        let faults = self.expected.iter().filter_map(|expected| {
            let (before, after) = (&self.buffers[expected.buffer], &after[expected.buffer]);
            expected.fault(before, after)
        });
        let strayed = after.iter().enumerate().filter(|(_, memory)| !memory.is_within());
        let strayed = strayed.map(|(buffer, _)| format!("something was written outside of buffer {buffer}"));
        let told = faults
            .chain(strayed)
            .map(|fault| format!("{}: {fault}", self.name));
        told.collect()
    }
}

impl Expected {
    fn fault(&self, before: &Memory, after: &Memory) -> Option<String> {
        let size = match self.type_ {
            Type::Bf16 => 2,
            Type::F32 | Type::I32 => 4,
        };
        let (before, after) = (before.bytes(), after.bytes());
        let found = after.chunks_exact(size).map(|bytes| match self.type_ {
            Type::Bf16 => f64::from(widen(u16::from_le_bytes([bytes[0], bytes[1]]))),
            Type::F32 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
            Type::I32 => f64::from(i32::from_le_bytes(bytes.try_into().unwrap())),
        });
        let is_kept = |number: &f64| number.is_nan();
        let untouched = self
            .numbers
            .iter()
            .zip(before.chunks(size))
            .zip(after.chunks(size));
        let overwritten = untouched
            .filter(|((number, before), after)| is_kept(number) && before != after)
            .count();
        if overwritten > 0 {
            return Some(format!("{overwritten} numbers were written that are not to be"));
        }
        let pairs: Vec<(f64, f64)> = found
            .zip(self.numbers.iter().copied())
            .filter(|(_, number)| !is_kept(number))
            .collect();
        if pairs.is_empty() {
            return None;
        }
        if self.type_ == Type::I32 {
            let off = pairs.iter().filter(|(found, number)| found != number).count();
            return (off > 0).then(|| format!("{off} of {} numbers are others", pairs.len()));
        }
        let count = pairs.len() as f64;
        let size = (pairs.iter().map(|(_, number)| number * number).sum::<f64>() / count).sqrt();
        let errors = pairs.iter().map(|(found, number)| (found - number).abs() / size);
        // A NaN is the largest error.
        let largest = errors
            .clone()
            .fold(0.0, |most: f64, error| if error <= most { most } else { error });
        let mean = (errors.map(|error| error * error).sum::<f64>() / count).sqrt();
        let is_near = mean < MEAN_ERROR && largest < LARGEST_ERROR;
        (!is_near).then(|| format!("errors of {mean:.1e} on average, and of {largest:.1e}"))
    }
}

/// Tokens with their experts, and the last of them alone, whose numbers are to be the same.
#[allow(dead_code, reason = "some programs of tests need it")]
pub(crate) fn in_company_and_alone() -> (Case, Case) {
    experts::company()
}

/// All cases of the kernels of a source, small enough for a processor.
pub(crate) fn of(source: &str) -> Vec<Case> {
    match source {
        "attend.cu" => attention::cases(),
        "experts.cu" => experts::cases(),
        "gemv.cu" => products::gemv_cases(None),
        "gemv_int8.cu" => products::gemv_cases(Some(Format::Int8)),
        "gemv_fp8.cu" => products::gemv_cases(Some(Format::Fp8)),
        "skinny.cu" => products::skinny_cases(None),
        "skinny_int8.cu" => products::skinny_cases(Some(Format::Int8)),
        "skinny_fp8.cu" => products::skinny_cases(Some(Format::Fp8)),
        "small.cu" => rows::cases(),
        _ => Vec::new(),
    }
}
