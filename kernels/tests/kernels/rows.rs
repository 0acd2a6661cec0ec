//! What lies between the products, against loops in `f64`.

use super::weights::Weights;
use super::{Buffers, Case, Expected, Type};
use crate::memory::{Chance, Memory, narrow, widen};
use lexiform_kernels::shapes::{DRAWN_BYTES, Embed, Format, Gate, Norm, Take, Turn, Widen};

const EPS: f32 = 1e-5;

pub(super) fn cases() -> Vec<Case> {
    let chance = &mut Chance::new(1);
    vec![
        embed(chance),
        take(),
        norm(4096, None, chance),
        norm(264, Some(&[2, -1, 0]), chance),
        norm(8192, Some(&[1]), chance),
        turn(64, false, chance),
        turn(128, true, chance),
        turn(64, true, chance),
        gate(2056, chance),
        widened(Format::Int8, chance),
        widened(Format::Fp8, chance),
    ]
}

fn wide(numbers: &[u16]) -> Vec<f64> {
    numbers.iter().map(|&bits| f64::from(widen(bits))).collect()
}

/// A case of one launch that writes one buffer.
fn case(
    name: String,
    node: lexiform_kernels::node::Node<usize>,
    buffers: Buffers,
    expected: Vec<Expected>,
) -> Case {
    Case {
        name,
        nodes: vec![node],
        rounds: 1,
        expected,
        buffers: buffers.0,
    }
}

fn is_bf16(buffer: usize, numbers: Vec<f64>) -> Expected {
    Expected {
        buffer,
        numbers,
        type_: Type::Bf16,
    }
}

fn embed(chance: &mut Chance) -> Case {
    let (width, vocab, tokens) = (264, 7, [3, 0, 6, 3]);
    let table = chance.numbers(vocab * width, 1.0);
    let rows = tokens
        .iter()
        .flat_map(|&token| wide(&table[token as usize * width..][..width]));
    let expected = rows.collect();
    let mut buffers = Buffers::default();
    let out = buffers.add(Memory::bf16(&vec![0; tokens.len() * width]));
    let node = Embed {
        table: buffers.add(Memory::bf16(&table)),
        tokens: buffers.add(Memory::i32(&tokens)),
        out,
        width,
        count: tokens.len(),
    };
    case(
        "embedding".to_owned(),
        node.node(),
        buffers,
        vec![is_bf16(out.buffer, expected)],
    )
}

/// Tokens below 0 are those of draws; what is behind the pass is nobody's.
fn take() -> Case {
    const WORDS: usize = DRAWN_BYTES / 4;
    let mut drawn = vec![u32::MAX; 6 * WORDS];
    for (row, token) in [90_000, 71, 12, 65_000, 3, 44].into_iter().enumerate() {
        drawn[row * WORDS + 10] = token;
    }
    let tokens = [7, -4, 0, -1, -5, -3];
    let expected = vec![7.0, 65_000.0, 0.0, 90_000.0, 3.0, f64::NAN];
    let mut buffers = Buffers::default();
    let node = Take {
        drawn: buffers.add(Memory::u32(&drawn)),
        tokens: buffers.add(Memory::i32(&tokens)),
        count: 5,
    };
    let buffer = node.tokens.buffer;
    let expected = Expected {
        buffer,
        numbers: expected,
        type_: Type::I32,
    };
    case("tokens of draws".to_owned(), node.node(), buffers, vec![expected])
}

fn norm(width: usize, rows: Option<&[i32]>, chance: &mut Chance) -> Case {
    let x = chance.numbers(3 * width, 2.0);
    let scale = chance.numbers(width, 1.0);
    let wanted: Vec<i32> = rows.map_or(vec![0, 1, 2], <[i32]>::to_vec);
    let expected = wanted.iter().flat_map(|&row| match usize::try_from(row) {
        Ok(row) => root_normed(&wide(&x[row * width..][..width]), &wide(&scale)),
        Err(_) => vec![f64::NAN; width],
    });
    let expected = expected.collect();
    let mut buffers = Buffers::default();
    let out = buffers.add(Memory::bf16(&chance.numbers(wanted.len() * width, 1.0)));
    let node = Norm {
        x: buffers.add(Memory::bf16(&x)),
        scale: buffers.add(Memory::bf16(&scale)),
        out,
        rows: rows.map(|rows| buffers.add(Memory::i32(rows))),
        width,
        count: wanted.len(),
        eps: EPS,
    };
    let name = format!("norm of {width}, rows {rows:?}");
    case(name, node.node(), buffers, vec![is_bf16(out.buffer, expected)])
}

fn root_normed(x: &[f64], scale: &[f64]) -> Vec<f64> {
    let square = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    let root = (square + f64::from(EPS)).sqrt();
    x.iter().zip(scale).map(|(x, scale)| x / root * scale).collect()
}

/// Three tokens of which the second is padding.
fn turn(size: usize, norms_heads: bool, chance: &mut Chance) -> Case {
    let (heads, key_heads, slots) = (4, 2, [7, -1, 2]);
    let (all, positions) = (heads + 2 * key_heads, [5, 0, 9]);
    let rows = chance.numbers(slots.len() * all * size, 1.0);
    let scales = chance.numbers((heads + key_heads) * size, 1.0);
    let angles: Vec<f32> = (0..10 * size / 2).map(|at| at as f32 * 0.1).collect();
    let (cosines, sines) = (angles.iter().map(|it| it.cos()), angles.iter().map(|it| it.sin()));
    let (cosines, sines): (Vec<f32>, Vec<f32>) = (cosines.collect(), sines.collect());
    let mut queries = vec![f64::NAN; slots.len() * heads * size];
    let mut stored = [(); 2].map(|()| vec![f64::NAN; 8 * key_heads * size]);
    for (token, &slot) in slots.iter().enumerate().filter(|(_, slot)| **slot >= 0) {
        for head in 0..all {
            let mut x = wide(&rows[(token * all + head) * size..][..size]);
            let is_value = head >= heads + key_heads;
            if norms_heads && !is_value {
                x = root_normed(&x, &wide(&scales[head * size..][..size]));
            }
            let (to, at) = match head.checked_sub(heads) {
                None => (&mut queries, token * heads + head),
                Some(key) => (
                    &mut stored[key / key_heads],
                    slot as usize * key_heads + key % key_heads,
                ),
            };
            for pair in 0..size / 2 {
                let angle = positions[token] as usize * size / 2 + pair;
                let (c, s) = match is_value {
                    true => (1.0, 0.0),
                    false => (f64::from(cosines[angle]), f64::from(sines[angle])),
                };
                let (near, far) = (x[pair], x[pair + size / 2]);
                to[at * size + pair] = near * c - far * s;
                to[at * size + size / 2 + pair] = far * c + near * s;
            }
        }
    }
    let mut buffers = Buffers::default();
    let nothing = |count| Memory::bf16(&vec![narrow(f32::NAN); count]);
    let out = [
        buffers.add(nothing(queries.len())),
        buffers.add(nothing(stored[0].len())),
        buffers.add(nothing(stored[1].len())),
    ];
    let node = Turn {
        rows: buffers.add(Memory::bf16(&rows)),
        queries: out[0],
        keys: out[1],
        values: out[2],
        cosines: buffers.add(Memory::f32(&cosines)),
        sines: buffers.add(Memory::f32(&sines)),
        scales: norms_heads.then(|| buffers.add(Memory::bf16(&scales))),
        positions: buffers.add(Memory::i32(&positions)),
        slots: buffers.add(Memory::i32(&slots)),
        size,
        heads,
        key_heads,
        count: slots.len(),
        eps: EPS,
    };
    let [keys, values] = stored;
    let expected = [queries, keys, values].into_iter().zip(out);
    let expected = expected.map(|(numbers, place)| is_bf16(place.buffer, numbers));
    let expected = expected.collect();
    let name = format!("turning heads of {size}, norms of heads: {norms_heads}");
    case(name, node.node(), buffers, expected)
}

fn gate(width: usize, chance: &mut Chance) -> Case {
    let count = 2;
    let rows = chance.numbers(count * 2 * width, 1.0);
    let expected = rows.chunks(2 * width).flat_map(|row| {
        let (gates, ups) = row.split_at(width);
        let through = |(gate, up): (f64, f64)| gate / (1.0 + (-gate).exp()) * up;
        wide(gates)
            .into_iter()
            .zip(wide(ups))
            .map(through)
            .collect::<Vec<_>>()
    });
    let expected = expected.collect();
    let mut buffers = Buffers::default();
    let out = buffers.add(Memory::bf16(&vec![narrow(f32::NAN); count * width]));
    let node = Gate {
        rows: buffers.add(Memory::bf16(&rows)),
        out,
        width,
        count,
    };
    case(
        format!("gates of {width}"),
        node.node(),
        buffers,
        vec![is_bf16(out.buffer, expected)],
    )
}

/// A matrix whose last block is not full, in a row of which a thread's numbers begin.
fn widened(format: Format, chance: &mut Chance) -> Case {
    let (rows, columns) = (11, 1032);
    let weights = Weights::random(Some(format), (rows, columns), chance);
    let expected = weights.numbers.clone();
    let mut buffers = Buffers::default();
    let out = buffers.add(Memory::bf16(&vec![0; rows * columns]));
    let (weights, rounded) = weights.add(&mut buffers);
    let widen = Widen {
        format,
        weights,
        scales: rounded.unwrap().scales,
        out,
        rows,
        columns,
    };
    case(
        format!("{rows} × {columns} widened from {format:?}"),
        widen.node(),
        buffers,
        vec![is_bf16(out.buffer, expected)],
    )
}
