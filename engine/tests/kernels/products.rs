//! Products for few vectors against loops in `f64`.

use super::{Buffers, Case, Expected, Type};
use crate::memory::{Chance, Memory, narrow, widen};
use lexiform_engine::kernels::shapes::{End, Gemv, Skinny};

const EPS: f32 = 1e-5;

pub(super) fn gemv_cases() -> Vec<Case> {
    let shapes = [
        (2048, 1, End::Plain, 150, 4, true),
        (2048, 1, End::Wide, 34, 5, true),
        (2048, 2, End::Gate, 166, 3, true),
        (4096, 1, End::Add, 100, 3, false),
        (4096, 1, End::Wide, 200, 5, true),
        (4096, 2, End::Gate, 36, 2, true),
        (8192, 1, End::Add, 64, 3, false),
        (8192, 2, End::Add, 22, 4, false),
        (14336, 1, End::Add, 14, 3, false),
        (14336, 2, End::Add, 30, 3, false),
    ];
    let numbered = shapes.into_iter().zip(1..);
    numbered
        .map(|(shape, seed)| gemv(shape, &mut Chance::new(seed)))
        .collect()
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
        End::Gate => products
            .chunks(2)
            .map(|pair| pair[0] / (1.0 + (-pair[0]).exp()) * pair[1])
            .collect(),
    };
    let mut buffers = Buffers::default();
    let out = buffers.add(match end {
        End::Wide => Memory::f32(&vec![f32::NAN; vectors * rows]),
        End::Gate => Memory::bf16(&before[..vectors * rows / 2]),
        _ => Memory::bf16(&before),
    });
    let node = Gemv {
        weights: buffers.add(Memory::bf16(&weights)),
        x: buffers.add(Memory::bf16(&x)),
        scale: is_normed.then(|| buffers.add(Memory::bf16(&scale))),
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
            type_: if end == End::Wide { Type::F32 } else { Type::Bf16 },
        }],
        buffers: buffers.0,
    }
}

pub(super) fn skinny_cases() -> Vec<Case> {
    let shapes = [
        (2048, 80, 5, 2),
        (2048, 32, 16, 3),
        (4096, 48, 13, 2),
        (4096, 32, 3, 2),
        (4096, 16, 8, 1),
    ];
    let numbered = shapes.into_iter().zip(1..);
    numbered
        .map(|(shape, seed)| skinny(shape, &mut Chance::new(seed)))
        .collect()
}

fn skinny((columns, rows, vectors, blocks): (usize, usize, usize, usize), chance: &mut Chance) -> Case {
    let is_added = vectors != 3;
    let weights = chance.numbers(rows * columns, 0.02);
    let x = chance.numbers(vectors * columns, 1.0);
    let before = chance.numbers(vectors * rows, 1.0);
    let vector: Vec<Vec<f64>> = x.chunks(columns).map(wide).collect();
    let mut expected = product(&weights, &vector, columns);
    if is_added {
        for (sum, before) in expected.iter_mut().zip(wide(&before)) {
            *sum += before;
        }
    }
    let mut buffers = Buffers::default();
    let out = buffers.add(Memory::bf16(&before));
    let node = Skinny {
        weights: buffers.add(Memory::bf16(&weights)),
        x: buffers.add(Memory::bf16(&x)),
        out,
        rows,
        columns,
        vectors,
        is_added,
        blocks,
    };
    Case {
        name: format!("{rows} × {columns} by {vectors} on {blocks} blocks"),
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
