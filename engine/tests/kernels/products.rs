//! Products for few vectors against loops in `f64`.

use super::{Buffers, Case, Expected, Type};
use crate::memory::{Chance, Memory, narrow, widen};
use lexiform_engine::kernels::products::{End, Gemv, Skinny};
use lexiform_engine::kernels::step::Output;

const EPS: f32 = 1e-5;

pub(super) fn gemv_cases() -> Vec<Case> {
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
        .map(|(shape, seed)| gemv(shape, &mut Chance::new(seed)))
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
    cases.extend(numbered.map(|(shape, seed)| head(shape, &mut Chance::new(seed))));
    cases
}

fn gemv(
    (columns, vectors, end, rows, blocks, is_normed): (usize, usize, End, usize, usize, bool),
    chance: &mut Chance,
) -> Case {
    let weights = chance.numbers(rows * columns, 0.02);
    let x = chance.numbers(vectors * columns, 1.0);
    let scale = chance.numbers(columns, 0.5);
    let before = chance.numbers(vectors * rows, 1.0);
    let mut vector: Vec<Vec<f64>> = x.chunks(columns).map(wide).collect();
    if is_normed {
        vector = vector.iter().map(|x| normed(x, &wide(&scale))).collect();
    }
    let products = product(&weights, &vector, columns);
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
    let node = Gemv {
        weights: buffers.add(Memory::bf16(&weights)),
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
        name: format!("{rows} × {columns} by {vectors}, {end:?}, on {blocks} blocks"),
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
fn head((columns, rows, blocks, wanted): (usize, usize, usize, Option<&[i32]>), chance: &mut Chance) -> Case {
    let weights = chance.numbers(rows * columns, 0.02);
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
        Some(vector) => product(&weights, std::slice::from_ref(vector), columns),
        None => vec![f64::NAN; rows],
    });
    let products = products.collect();
    let mut buffers = Buffers::default();
    let out = buffers.add(Memory::f32(&vec![7.0; all.len() * rows]));
    let normed = buffers.add(Memory::bf16(&chance.numbers(all.len() * columns, 1.0)));
    let node = Gemv {
        weights: buffers.add(Memory::bf16(&weights)),
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
        name: format!("{rows} × {columns}, wanted {wanted:?}, on {blocks} blocks"),
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

pub(super) fn skinny_cases() -> Vec<Case> {
    let shapes = [
        (1024, 48, 9, Output::Plain, 2),
        (2048, 80, 5, Output::Sum, 2),
        (2048, 32, 16, Output::Wide, 3),
        (3072, 32, 6, Output::Wide, 3),
        (4096, 48, 13, Output::Sum, 2),
        (4096, 32, 3, Output::Plain, 2),
        (4096, 16, 8, Output::Sum, 1),
    ];
    let numbered = shapes.into_iter().zip(1..);
    numbered
        .map(|(shape, seed)| skinny(shape, &mut Chance::new(seed)))
        .collect()
}

fn skinny(
    (columns, rows, vectors, output, blocks): (usize, usize, usize, Output, usize),
    chance: &mut Chance,
) -> Case {
    let weights = chance.numbers(rows * columns, 0.02);
    let x = chance.numbers(vectors * columns, 1.0);
    let before = chance.numbers(vectors * rows, 1.0);
    let vector: Vec<Vec<f64>> = x.chunks(columns).map(wide).collect();
    let mut expected = product(&weights, &vector, columns);
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
    let node = Skinny {
        weights: buffers.add(Memory::bf16(&weights)),
        x: buffers.add(Memory::bf16(&x)),
        out,
        rows,
        columns,
        vectors,
        output,
        blocks,
    };
    Case {
        name: format!("{rows} × {columns} by {vectors}, {output:?}, on {blocks} blocks"),
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
fn product(weights: &[u16], vectors: &[Vec<f64>], columns: usize) -> Vec<f64> {
    let rows: Vec<Vec<f64>> = weights.chunks(columns).map(wide).collect();
    let dot = |x: &[f64], row: &[f64]| x.iter().zip(row).map(|(a, b)| a * b).sum::<f64>();
    vectors
        .iter()
        .flat_map(|x| rows.iter().map(|row| dot(x, row)))
        .collect()
}
