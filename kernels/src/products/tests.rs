//! Tests the launches of products, and the shared memory that they request.

use super::*;
use crate::shapes::KERNELS;
use crate::shapes::tests::most_shared;
use std::collections::BTreeSet;

fn gemv(columns: usize, rows: usize, vectors: usize, end: End) -> Gemv<()> {
    let at = Place::start(());
    Gemv {
        weights: at,
        rounded: None,
        x: at,
        scale: None,
        wanted: None,
        normed: None,
        out: at,
        rows,
        columns,
        vectors,
        end,
        eps: 0.0,
        blocks: 132,
    }
}

fn skinny(columns: usize, rows: usize, vectors: usize) -> Skinny<()> {
    let at = Place::start(());
    Skinny {
        weights: at,
        rounded: None,
        x: at,
        out: at,
        rows,
        columns,
        stride: columns,
        vectors,
        output: Output::Plain,
        blocks: 132,
    }
}

/// The hidden and inner width, the rows of queries, keys and values, their columns, and the vocabulary of the
/// models that the kernels support.
const MODELS: [[usize; 5]; 7] = [
    [1024, 3072, 4096, 2048, 151_936],
    [2048, 6144, 4096, 2048, 151_936],
    [2048, 8192, 3072, 2048, 128_256],
    [2048, 8192, 6144, 2048, 49_152],
    [3072, 8192, 5120, 3072, 128_256],
    [4096, 12_288, 6144, 4096, 151_936],
    [4096, 14_336, 6144, 4096, 128_256],
];

/// Returns the ways in which matrices are stored.
fn kept() -> [Option<Rounded<()>>; 3] {
    [None, Some(Format::Int8), Some(Format::Fp8)].map(|format| {
        let at = Place::start(());
        format.map(|format| Rounded {
            format,
            scales: at,
            widened: at,
        })
    })
}

/// Every product of these models has a kernel for one and two vectors, within the shared memory in needs.txt,
/// and every kernel is used by a model.
#[test]
fn launches_ask_for_no_more_shared_memory_than_the_table_says() {
    let most = most_shared();
    let mut seen = BTreeSet::new();
    let mut check = |node: Node<()>| {
        let (name, most) = (node.kernel.name, most[node.kernel.name]);
        assert!(node.shared <= most, "{name}: {} and {most}", node.shared);
        seen.insert(name);
    };
    for ([hidden, inner, qkv, heads, vocab], rounded) in MODELS
        .into_iter()
        .flat_map(|model| kept().map(|kept| (model, kept)))
    {
        for vectors in [1, 2] {
            for (columns, rows, end) in [
                (hidden, qkv, End::Plain),
                (heads, hidden, End::Add),
                (hidden, 2 * inner, End::Gate),
                (inner, hidden, End::Add),
                (hidden, vocab, End::Wide),
                // The sum over 1,024 columns occurs in smaller models, whose heads together are as wide as
                // their rows.
                (1024, 1024, End::Add),
            ] {
                let product = Gemv {
                    rounded,
                    ..gemv(columns, rows, vectors, end)
                };
                check(product.node().unwrap_or_else(|| panic!("{columns} {end:?}")));
            }
        }
        for vectors in [3, 8, 9, 16] {
            for (columns, rows) in [(hidden, qkv), (heads, hidden)] {
                let product = Skinny {
                    rounded,
                    ..skinny(columns, rows, vectors)
                };
                check(product.node().unwrap());
            }
        }
    }
    let is_product = |source: &str| ["gemv", "skinny"].iter().any(|name| source.starts_with(name));
    let all = KERNELS.iter().filter(|kernel| is_product(kernel.source));
    assert_eq!(seen.len(), all.count());
}

#[test]
fn shapes_without_a_kernel_have_no_launch() {
    for without in [
        gemv(1536, 64, 1, End::Plain),
        gemv(2048, 63, 1, End::Plain),
        gemv(2048, 64, 3, End::Plain),
        gemv(8192, 64, 1, End::Gate),
        Gemv {
            blocks: 0,
            ..gemv(2048, 64, 1, End::Plain)
        },
        // More sums than a block has room for.
        Gemv {
            blocks: 1,
            ..gemv(2048, 128_256, 1, End::Wide)
        },
    ] {
        assert!(without.node().is_none(), "{without:?}");
    }
    for without in [skinny(8192, 64, 8), skinny(2048, 40, 8), skinny(2048, 64, 17)] {
        assert!(without.node().is_none(), "{without:?}");
    }
}

/// Returns the names of the kernels and products of the steps.
fn names(linear: Linear<char>, multiprocessors: usize) -> Vec<&'static str> {
    let name = |step: &Step<char>| match step {
        Step::Launch(node) => node.kernel.name,
        Step::Product(_) => "library",
    };
    linear.steps(multiprocessors).iter().map(name).collect()
}

#[test]
fn a_product_is_made_by_whom_its_sizes_suit() {
    let linear = |columns, rows, vectors, after| Linear {
        weights: Place::start('w'),
        rounded: None,
        x: Place::start('x'),
        before: Some(Before {
            scale: Place::start('s'),
            out: Place::start('n'),
            wanted: None,
            eps: 1e-5,
        }),
        out: Place::start('o'),
        rows,
        columns,
        vectors,
        after,
    };
    let gate = After::Gate(Place::start('g'));
    for (linear, expected) in [
        (linear(2048, 128, 1, gate), &["gemv_2048_1_GATE"][..]),
        (linear(2048, 128, 2, After::Wide), &["gemv_2048_2_WIDE"]),
        (
            linear(2048, 128, 4, gate),
            &["norm_rows", "skinny_2048_8", "gate_rows"],
        ),
        (
            linear(2048, 128, 16, After::Wide),
            &["norm_rows", "skinny_2048_16"],
        ),
        (
            linear(2048, 128, 24, gate),
            &["norm_rows", "library", "gate_rows"],
        ),
        (linear(2048, 120, 4, After::Plain), &["norm_rows", "library"]),
        (linear(2560, 128, 1, gate), &["norm_rows", "library", "gate_rows"]),
        (linear(8192, 128, 4, After::Add), &["norm_rows", "library"]),
    ] {
        assert_eq!(names(linear, 132), expected, "{linear:?}");
    }
    let alone = linear(2048, 128, 1, gate);
    assert_eq!(names(alone, 0), ["norm_rows", "library", "gate_rows"]);
    // A separate gate reads the output of the product, which reads the output of the norm.
    let steps = linear(2560, 128, 1, gate).steps(132);
    let Step::Product(product) = &steps[1] else {
        panic!("{steps:?}");
    };
    assert_eq!((product.x.buffer, product.out.buffer), ('n', 'g'));
}

/// A product of 2,048 columns and of some rows in eight bits, whose parts have distinct addresses.
fn rounded(columns: usize, rows: usize, vectors: usize, after: After<u64>) -> Linear<u64> {
    Linear {
        weights: Place::start(W),
        rounded: Some(Rounded {
            format: Format::Fp8,
            scales: Place::start(S),
            widened: Place::start(R),
        }),
        x: Place::start(X),
        before: None,
        out: Place::start(O),
        rows,
        columns,
        vectors,
        after,
    }
}

const W: u64 = 1 << 40;
const S: u64 = 2 << 40;
const R: u64 = 3 << 40;
const X: u64 = 4 << 40;
const O: u64 = 5 << 40;

#[test]
fn matrices_of_eight_bits_are_read_as_often_as_is_cheaper_than_to_widen_them() {
    let names = |columns, vectors, after| {
        let name = |step: &Step<u64>| match step {
            Step::Launch(node) => node.kernel.name,
            Step::Product(_) => "library",
        };
        let steps = rounded(columns, 4096, vectors, after).steps(132);
        steps.iter().map(name).collect::<Vec<_>>()
    };
    let (add, wide) = (After::Add, After::Wide);
    for (columns, vectors, after, expected) in [
        (2048, 1, wide, &["gemv_2048_1_WIDE_fp8"][..]),
        (14_336, 2, add, &["gemv_14336_2_ADD_fp8"]),
        (2048, 3, wide, &["skinny_2048_8_fp8"]),
        (2048, 16, add, &["skinny_2048_16_fp8"]),
        (2048, 24, wide, &["skinny_2048_16_fp8", "skinny_2048_8_fp8"]),
        (2048, 32, wide, &["skinny_2048_16_fp8", "skinny_2048_16_fp8"]),
        (6144, 4, add, &["skinny_4096_8_fp8", "skinny_2048_8_fp8"]),
        // No kernel has these columns for one vector; the parts have kernels.
        (5120, 1, add, &["skinny_4096_8_fp8", "skinny_1024_8_fp8"]),
        (2048, 33, wide, &["widen_fp8", "library"]),
        // A result that is not a sum cannot be computed in parts.
        (6144, 4, wide, &["widen_fp8", "library", "widen_fp8", "library"]),
        (2560, 4, add, &["widen_fp8", "library"]),
    ] {
        assert_eq!(names(columns, vectors, after), expected, "{columns} by {vectors}");
    }
    let without = rounded(2048, 4096, 1, wide).steps(0);
    assert_eq!(without.len(), 2, "{without:?}");
}

/// Returns the pointers among the arguments of a launch.
fn pointers(step: &Step<u64>) -> Vec<u64> {
    let Step::Launch(node) = step else {
        panic!("{step:?}");
    };
    let places = node.arguments.iter().filter_map(|argument| match argument {
        Argument::At(place) => Some(place.address()),
        _ => None,
    });
    places.collect()
}

#[test]
fn parts_of_a_product_are_read_and_written_where_they_are() {
    let steps = rounded(6144, 32, 24, After::Add).steps(132);
    let found: Vec<Vec<u64>> = steps.iter().map(pointers).collect();
    let second = [X + 16 * 6144 * 2, O + 16 * 32 * 2];
    assert_eq!(
        found,
        [
            vec![W, X, O, S],
            vec![W + 4096, X + 4096 * 2, O, S],
            vec![W, second[0], second[1], S],
            vec![W + 4096, second[0] + 4096 * 2, second[1], S],
        ]
    );
}

/// All rows are widened once, to the same place, and multiplied into their columns of the result.
#[test]
fn rows_are_widened_some_after_others() {
    for (after, number) in [(After::Plain, 2), (After::Wide, 4)] {
        let (columns, rows) = (4096, 10_000);
        let linear = rounded(columns, rows, 40, after);
        let steps = linear.steps(132);
        let mut done = 0;
        for pair in steps.chunks(2) {
            let at = done as u64;
            assert_eq!(
                pointers(&pair[0]),
                [W + at * columns as u64, S + at * 4, R],
                "{done}"
            );
            let Step::Product(product) = &pair[1] else {
                panic!("{pair:?}");
            };
            assert_eq!(product.weights.address(), R);
            assert_eq!(product.out.address(), O + at * number);
            assert_eq!((product.stride, product.count), (rows, 40));
            assert!(product.rows * columns * 2 <= Widen::<u64>::room(rows, columns));
            done += product.rows;
        }
        assert!(done == rows && steps.len() > 4, "{done}");
    }
    assert_eq!(Widen::<u64>::room(100, 4096), 100 * 4096 * 2);
}
