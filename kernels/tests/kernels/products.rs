//! Products for few vectors against loops in `f64`.

use super::weights::Weights;
use super::{Buffers, Case, Expected, Type};
use crate::memory::{Chance, Memory, narrow, widen};
use lexiform_kernels::products::{End, Gemv, Skinny};
use lexiform_kernels::shapes::Format;
use lexiform_kernels::step::Output;

const EPS: f32 = 1e-5;

pub(super) fn gemv_cases(format: Option<Format>) -> Vec<Case> {
    let shapes = [
        (1024, 1, End::Plain, 70, 3, true),
        (1024, 2, End::Gate, 100, 3, true),
        (2048, 1, End::Plain, 150, 4, true),
        (2048, 2, End::Plain, 40, 3, true),
        (2048, 2, End::Add, 22, 3, false),
        (2048, 2, End::Gate, 166, 3, true),
        (3072, 1, End::Gate, 44, 3, true),
        (3072, 2, End::Add, 26, 4, false),
        (4096, 1, End::Add, 100, 3, false),
        (4096, 2, End::Gate, 36, 2, true),
        (6144, 1, End::Add, 30, 4, false),
        (8192, 1, End::Add, 64, 3, false),
        (8192, 2, End::Add, 22, 4, false),
        (12_288, 1, End::Add, 12, 3, false),
        (14_336, 1, End::Add, 14, 3, false),
        (14_336, 2, End::Add, 30, 3, false),
    ];
    let numbered = shapes.into_iter().zip(1..);
    let mut cases: Vec<Case> = numbered
        .map(|(shape, seed)| gemv(format, shape, &mut Chance::new(seed)))
        .collect();
    let heads: [(usize, usize, usize, Option<&[i32]>); 6] = [
        (1024, 34, 3, None),
        (2048, 34, 5, Some(&[2])),
        (2048, 34, 3, Some(&[1, -1])),
        (3072, 20, 3, Some(&[2, 0])),
        (4096, 200, 5, Some(&[0, 1])),
        (4096, 12, 3, Some(&[-1])),
    ];
    let numbered = heads.into_iter().zip(31..);
    cases.extend(numbered.map(|(shape, seed)| head(format, shape, &mut Chance::new(seed))));
    cases
}

fn gemv(
    format: Option<Format>,
    (columns, vectors, end, rows, blocks, is_normed): (usize, usize, End, usize, usize, bool),
    chance: &mut Chance,
) -> Case {
    let weights = Weights::random(format, (rows, columns), chance);
    let x = chance.numbers(vectors * columns, 1.0);
    let scale = chance.numbers(columns, 0.5);
    let before = chance.numbers(vectors * rows, 1.0);
    let mut vector: Vec<Vec<f64>> = x.chunks(columns).map(wide).collect();
    if is_normed {
        vector = vector.iter().map(|x| normed(x, &wide(&scale))).collect();
    }
    let products = product(&weights.numbers, &vector, columns);
    let expected: Vec<f64> = match end {
        End::Plain | End::Wide => products,
        End::Add => products.iter().zip(wide(&before)).map(|(a, b)| a + b).collect(),
        End::Gate => products.chunks(rows).flat_map(gated).collect(),
    };
    let mut buffers = Buffers::default();
    let out = buffers.add(match end {
        End::Gate => Memory::bf16(&before[..vectors * rows / 2]),
        _ => Memory::bf16(&before),
    });
    let (weights, rounded) = weights.add(&mut buffers);
    let node = Gemv {
        weights,
        rounded,
        x: buffers.add(Memory::bf16(&x)),
        scale: is_normed.then(|| buffers.add(Memory::bf16(&scale))),
        wanted: None,
        normed: None,
        out,
        rows,
        columns,
        vectors,
        end,
        eps: EPS,
        blocks,
    };
    Case {
        name: format!("{rows} × {columns} by {vectors}, {format:?}, {end:?}, on {blocks} blocks"),
        nodes: vec![node.node().unwrap()],
        rounds: 1,
        expected: vec![Expected {
            buffer: out.buffer,
            numbers: expected,
            type_: Type::Bf16,
        }],
        buffers: buffers.0,
    }
}

/// The second half of a vector's products, let through the gates of the first.
fn gated(products: &[f64]) -> Vec<f64> {
    let (gates, ups) = products.split_at(products.len() / 2);
    let through = |(gate, up): (&f64, &f64)| gate / (1.0 + (-gate).exp()) * up;
    gates.iter().zip(ups).map(through).collect()
}

/// Rows in `f32` of those of three tokens that are wanted, and their norms.
fn head(
    format: Option<Format>,
    (columns, rows, blocks, wanted): (usize, usize, usize, Option<&[i32]>),
    chance: &mut Chance,
) -> Case {
    let weights = Weights::random(format, (rows, columns), chance);
    let x = chance.numbers(3 * columns, 1.0);
    let scale = chance.numbers(columns, 0.5);
    let all = wanted.map_or(vec![0, 1], <[i32]>::to_vec);
    let vector = |&row: &i32| {
        let row = usize::try_from(row).ok()?;
        Some(normed(&wide(&x[row * columns..][..columns]), &wide(&scale)))
    };
    // What is not wanted stays as it is.
    let vectors: Vec<Option<Vec<f64>>> = all.iter().map(vector).collect();
    let products = vectors.iter().flat_map(|vector| match vector {
        Some(vector) => product(&weights.numbers, std::slice::from_ref(vector), columns),
        None => vec![f64::NAN; rows],
    });
    let products = products.collect();
    let mut buffers = Buffers::default();
    let out = buffers.add(Memory::f32(&vec![7.0; all.len() * rows]));
    let normed = buffers.add(Memory::bf16(&chance.numbers(all.len() * columns, 1.0)));
    let (weights, rounded) = weights.add(&mut buffers);
    let node = Gemv {
        weights,
        rounded,
        x: buffers.add(Memory::bf16(&x)),
        scale: Some(buffers.add(Memory::bf16(&scale))),
        wanted: wanted.map(|wanted| buffers.add(Memory::i32(wanted))),
        normed: wanted.map(|_| normed),
        out,
        rows,
        columns,
        vectors: all.len(),
        end: End::Wide,
        eps: EPS,
        blocks,
    };
    let left = vectors.into_iter().flat_map(|vector| {
        vector
            .filter(|_| wanted.is_some())
            .unwrap_or(vec![f64::NAN; columns])
    });
    Case {
        name: format!("{rows} × {columns}, {format:?}, wanted {wanted:?}, on {blocks} blocks"),
        nodes: vec![node.node().unwrap()],
        rounds: 1,
        expected: vec![
            Expected {
                buffer: out.buffer,
                numbers: products,
                type_: Type::F32,
            },
            Expected {
                buffer: normed.buffer,
                numbers: left.collect(),
                type_: Type::Bf16,
            },
        ],
        buffers: buffers.0,
    }
}

pub(super) fn skinny_cases(format: Option<Format>) -> Vec<Case> {
    // The columns that are multiplied, and all that there are.
    let parts = [(2048, 6144, 16, 7, 2), (1024, 5120, 32, 16, 1)];
    let shapes = [
        (1024, 48, 9, Output::Plain, 2),
        (2048, 80, 5, Output::Sum, 2),
        (2048, 32, 16, Output::Wide, 3),
        (3072, 32, 6, Output::Wide, 3),
        (4096, 48, 13, Output::Sum, 2),
        (4096, 32, 3, Output::Plain, 2),
        (4096, 16, 8, Output::Sum, 1),
    ];
    let whole = shapes
        .map(|(columns, rows, vectors, output, blocks)| ((columns, columns), rows, vectors, output, blocks));
    let parts = parts.map(|(columns, stride, rows, vectors, blocks)| {
        ((columns, stride), rows, vectors, Output::Sum, blocks)
    });
    let numbered = whole.into_iter().chain(parts).zip(1..);
    numbered
        .map(|(shape, seed)| skinny(format, shape, &mut Chance::new(seed)))
        .collect()
}

/// A product, perhaps of the last columns of a matrix and of vectors that are wider.
fn skinny(
    format: Option<Format>,
    ((columns, stride), rows, vectors, output, blocks): ((usize, usize), usize, usize, Output, usize),
    chance: &mut Chance,
) -> Case {
    let weights = Weights::random(format, (rows, stride), chance);
    let x = chance.numbers(vectors * stride, 1.0);
    let before = chance.numbers(vectors * rows, 1.0);
    let first = stride - columns;
    let vector: Vec<Vec<f64>> = x.chunks(stride).map(|x| wide(&x[first..])).collect();
    let numbers = weights
        .numbers
        .chunks(stride)
        .flat_map(|row| &row[first..])
        .copied();
    let mut expected = product(&numbers.collect::<Vec<_>>(), &vector, columns);
    if output == Output::Sum {
        for (sum, before) in expected.iter_mut().zip(wide(&before)) {
            *sum += before;
        }
    }
    let mut buffers = Buffers::default();
    let out = buffers.add(match output {
        Output::Wide => Memory::f32(&vec![f32::NAN; vectors * rows]),
        _ => Memory::bf16(&before),
    });
    let (weights, rounded) = weights.add(&mut buffers);
    let node = Skinny {
        weights: weights.behind(first * if rounded.is_some() { 1 } else { 2 }),
        rounded,
        x: buffers.add(Memory::bf16(&x)).behind(first * 2),
        out,
        rows,
        columns,
        stride,
        vectors,
        output,
        blocks,
    };
    Case {
        name: format!(
            "{rows} × {columns} of {stride} by {vectors}, {format:?}, {output:?}, on {blocks} blocks"
        ),
        nodes: vec![node.node().unwrap()],
        rounds: 1,
        expected: vec![Expected {
            buffer: out.buffer,
            numbers: expected,
            type_: match output {
                Output::Wide => Type::F32,
                _ => Type::Bf16,
            },
        }],
        buffers: buffers.0,
    }
}

fn wide(numbers: &[u16]) -> Vec<f64> {
    numbers.iter().map(|&bits| f64::from(widen(bits))).collect()
}

/// x / rms(x) · scale, rounded to bf16.
fn normed(x: &[f64], scale: &[f64]) -> Vec<f64> {
    let square = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    let root = (square + f64::from(EPS)).sqrt();
    let rows = x.iter().zip(scale).map(|(x, scale)| x / root * scale);
    rows.map(|value| f64::from(widen(narrow(value as f32)))).collect()
}

/// The products of every vector with every row, vector by vector.
fn product(weights: &[f64], vectors: &[Vec<f64>], columns: usize) -> Vec<f64> {
    let rows: Vec<&[f64]> = weights.chunks(columns).collect();
    let dot = |x: &[f64], row: &[f64]| x.iter().zip(row).map(|(a, b)| a * b).sum::<f64>();
    vectors
        .iter()
        .flat_map(|x| rows.iter().map(|row| dot(x, row)))
        .collect()
}
