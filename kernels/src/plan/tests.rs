//! Tests the number of launches of a pass, and the sizes that no kernel supports.

use super::*;

fn shape() -> Shape {
    Shape {
        hidden: 2048,
        inner: 8192,
        heads: 32,
        key_heads: 8,
        head_size: 64,
        vocab: 128_256,
        eps: 1e-5,
        norms_heads: false,
        windows: vec![None; 16],
        mixture: None,
        block_size: 16,
        rounded: None,
    }
}

const BUCKET: Bucket = Bucket {
    tokens: 64,
    sequences: 64,
    pieces: 0,
    rows: 64,
    table_width: 512,
    most_fed: 16,
};

fn bucket(tokens: usize) -> Bucket {
    Bucket {
        tokens,
        sequences: tokens,
        rows: tokens,
        ..BUCKET
    }
}

/// Returns the number of all launches, and of the products by the library.
fn counted(shape: &Shape, tokens: usize, multiprocessors: usize) -> (usize, usize) {
    let plan = Plan::new(shape, &bucket(tokens), multiprocessors).unwrap();
    let products = plan.steps.iter().filter(|step| matches!(step, Step::Product(_)));
    (plan.launches(), products.count())
}

#[test]
fn a_layer_is_so_many_launches() {
    let narrow = Shape {
        inner: 5632,
        ..shape()
    };
    for tokens in super::super::inputs::BUCKETS {
        let (one, narrow_one, none) = (
            counted(&shape(), tokens, 132),
            counted(&narrow, tokens, 132),
            counted(&shape(), tokens, 0),
        );
        let (expected, expected_narrow) = match tokens {
            // Norms, sums and gates are part of the launches of products.
            1 | 2 => ((1 + 16 * 6 + 1, 0), (1 + 16 * 6 + 1, 16)),
            // Of the products, the one over the inner width is computed by the library.
            3..=16 => ((1 + 16 * 9 + 2, 16), (1 + 16 * 9 + 2, 16)),
            _ => ((1 + 16 * 9 + 2, 16 * 4 + 1), (1 + 16 * 9 + 2, 16 * 4 + 1)),
        };
        assert_eq!((one, narrow_one), (expected, expected_narrow), "{tokens} tokens");
        assert_eq!(none, (1 + 16 * 9 + 2, 16 * 4 + 1), "{tokens} tokens");
    }
}

/// A model with a mixture in all layers but the first.
fn mixture() -> Shape {
    Shape {
        mixture: Some(Mixture {
            experts: 128,
            chosen: 8,
            inner: 768,
            is_normalised: true,
            layers: (0..16).map(|layer| layer > 0).collect(),
        }),
        ..shape()
    }
}

#[test]
fn a_layer_with_experts_is_so_many_launches() {
    for (tokens, expected) in [
        (1, (1 + 6 + 15 * (4 + 6) + 1, 0)),
        (2, (1 + 6 + 15 * (4 + 6) + 1, 0)),
        // Of the products, the second of the dense layer is computed by the library.
        (8, (1 + 9 + 15 * (5 + 6) + 2, 1)),
        // With the three launches of the router in each layer.
        (64, (1 + 9 + 15 * (5 + 6) + 2, 4 + 15 * 3 + 1)),
    ] {
        assert_eq!(counted(&mixture(), tokens, 132), expected, "{tokens} tokens");
    }
}

#[test]
fn what_experts_compute_on_the_way_has_room() {
    let bytes = |shape: &Shape, part: Scratch| {
        let plan = Plan::new(shape, &bucket(64), 132).unwrap();
        let found = plan.scratch.iter().find(|(scratch, _)| *scratch == part);
        found.map(|&(_, bytes)| bytes)
    };
    assert_eq!(
        bytes(&mixture(), Scratch::Experts(Room::Products)),
        Some(64 * 8 * 2048 * 2)
    );
    assert_eq!(
        bytes(&mixture(), Scratch::Experts(Room::Gated)),
        Some(64 * 8 * 768 * 2)
    );
    assert_eq!(bytes(&mixture(), Scratch::Gated), Some(64 * 8192 * 2));
    assert_eq!(bytes(&shape(), Scratch::Experts(Room::Products)), None);
    let mut all = mixture();
    all.mixture.as_mut().unwrap().layers = vec![true; 16];
    all.inner = 0;
    assert_eq!(bytes(&all, Scratch::Gated), Some(0));
}

#[test]
fn prompts_attend_by_a_launch_of_their_own() {
    let launches = |sequences, pieces, rows| {
        let bucket = Bucket {
            tokens: 2000,
            sequences,
            pieces,
            rows,
            ..BUCKET
        };
        Plan::new(&shape(), &bucket, 132).unwrap().launches()
    };
    assert_eq!(launches(3, 125, 4), 1 + 16 * 10 + 2);
    assert_eq!(
        launches(0, 125, 1),
        1 + 16 * 9 + 1,
        "one row by a product of our own"
    );
    assert_eq!(launches(0, 125, 0), 1 + 16 * 9, "nobody wants a row");
}

#[test]
fn what_the_kernels_do_not_take_is_named() {
    let odd = Shape {
        hidden: 2052,
        head_size: 80,
        heads: 30,
        block_size: 32,
        windows: vec![Some(0)],
        ..shape()
    };
    let problems = Plan::new(&odd, &BUCKET, 132).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "hidden is 2052; the kernels take a multiple of 8, up to 8192; head_size is 80; the kernels take 64 or 128; \
         heads is 30; the kernels take a multiple of key_heads; block_size is 32; the kernels take 16; \
         window is 0; the kernels take at least 1"
    );
}
