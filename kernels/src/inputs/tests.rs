//! Tests the layout of the inputs of a pass, and the detection of sizes that do not fit.

use super::*;

const BUCKET: Bucket = Bucket {
    tokens: 8,
    sequences: 3,
    pieces: 0,
    rows: 4,
    table_width: 2,
    most_fed: 5,
};

fn feed<'a>(tokens: &'a [u32], start: usize, table: &'a [u32], parents: Option<&'a [u16]>) -> Feed<'a> {
    Feed {
        tokens,
        start,
        table,
        rows: 1,
        parents,
    }
}

#[test]
fn a_pass_lies_where_the_kernels_look_and_the_rest_is_padding() {
    let feeds = [
        feed(&[7], 0, &[3], None),
        feed(&[1, 2, 3, 4, 5], 14, &[6, 2, 9], Some(&[0, 0, 1, 1])),
    ];
    let bytes = BUCKET.fill(&feeds, 4).unwrap();
    assert_eq!(bytes.len(), BUCKET.bytes());
    let numbers: Vec<i32> = bytes
        .chunks(4)
        .map(|number| i32::from_le_bytes(number.try_into().unwrap()))
        .collect();
    let part = |part, len: usize| {
        let first = BUCKET.offset(part) / 4;
        &numbers[first..first + len]
    };
    assert_eq!(part(Input::Tokens, 8), [7, 1, 2, 3, 4, 5, 0, 0]);
    assert_eq!(part(Input::Positions, 8), [0, 14, 15, 15, 16, 16, 0, 0]);
    assert_eq!(part(Input::Slots, 8), [48, 110, 111, 32, 33, 34, -1, -1]);
    assert_eq!(part(Input::Sees, 8), [1, 1, 0b11, 0b101, 0b1011, 0b10011, 0, 0]);
    assert_eq!(part(Input::Wanted, 4), [0, 5, -1, -1]);
    assert_eq!(part(Input::Starts, 3), [0, 14, 0]);
    assert_eq!(part(Input::Firsts, 4), [0, 1, 6, 6]);
    assert_eq!(part(Input::Parts, 3), [0, 0, 0]);
    assert_eq!(part(Input::Tables, 6), [3, 0, 6, 2, 0, 0]);
}

/// The text of the module's docs, with separate blocks and a tree at its end.
#[test]
fn prompts_are_cut_into_pieces_that_see_the_ones_before_them() {
    let (long, table): (Vec<u32>, Vec<u32>) = ((0..40).collect(), (20..29).collect());
    let feeds = [
        feed(&[7], 0, &[3], None),
        feed(&long, 100, &table, Some(&[0, 0, 1])),
        feed(&[8, 9], 14, &[5], None),
    ];
    let bucket = Bucket::of(&feeds, 4).unwrap();
    let sizes = (bucket.tokens, bucket.sequences, bucket.pieces, bucket.rows);
    assert_eq!(sizes, (43, 2, 3, 3));
    assert!(!bucket.is_padded());
    let bytes = bucket.fill(&feeds, 4).unwrap();
    assert_eq!(bytes.len(), bucket.bytes());
    let numbers: Vec<i32> = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|number| i32::from_le_bytes(*number))
        .collect();
    let part = |part, len: usize| &numbers[bucket.offset(part) / 4..][..len];
    assert_eq!(part(Input::Tokens, 6), [7, 8, 9, 0, 1, 2]);
    assert_eq!(part(Input::Starts, 5), [0, 14, 100, 108, 124]);
    assert_eq!(part(Input::Firsts, 6), [0, 1, 3, 11, 27, 43]);
    // Rows are wanted in the order of the feeds.
    assert_eq!(part(Input::Wanted, 3), [0, 42, 2]);
    assert_eq!(
        part(Input::Positions, 43)[38..],
        [135, 136, 137, 137, 138],
        "two nodes at one place, and one below the first"
    );
    let sees = part(Input::Sees, 43);
    assert_eq!(
        sees[3..6],
        [1, 0b11, 0b111],
        "from the first token of the piece on"
    );
    assert_eq!(sees[11], 1);
    let text = (1 << 13) - 1;
    assert_eq!(
        sees[40..],
        [text | 1 << 13, text | 1 << 14, text | 1 << 13 | 1 << 15]
    );
    let tables = part(Input::Tables, 5 * bucket.table_width);
    let of_piece = |piece: usize| &tables[(2 + piece) * bucket.table_width..][..bucket.table_width];
    assert_eq!(of_piece(0), [20, 21, 22, 23, 24, 25, 26, 0, 0]);
    assert_eq!(of_piece(2), [20, 21, 22, 23, 24, 25, 26, 27, 28]);
    assert_eq!(
        bucket.offset_of_pieces(Input::Tables) - bucket.offset(Input::Tables),
        4 * 2 * bucket.table_width
    );
}

/// Of the pieces of one prompt, only those that see more than one part of it are split.
#[test]
fn pieces_of_prompts_have_room_for_their_splits() {
    let (table, tokens) = ([0; 40], [1; 40]);
    let feeds = [feed(&[1], 130, &table, None), feed(&tokens, 100, &table, None)];
    let bucket = Bucket::of(&feeds, 4).unwrap();
    let bytes = bucket.fill(&feeds, 4).unwrap();
    let first = bucket.offset(Input::Parts);
    let parts = bytes[first..first + 16].as_chunks::<4>().0;
    let parts: Vec<i32> = parts.iter().map(|number| i32::from_le_bytes(*number)).collect();
    // Two parts of the text that continues; pieces that end at 108, 124 and 140.
    assert_eq!(parts, [0, 2 * 4, 2 * 4, 2 * 4]);
    assert_eq!(bucket.split_rows(&feeds, 4), 2 * 4 + 2 * 64);
}

#[test]
fn few_pieces_are_split_and_many_are_not() {
    let splits = |pieces| Bucket { pieces, ..BUCKET }.piece_splits();
    assert_eq!([1, 2, 3, 9, 64, 128, 500].map(splits), [64, 64, 32, 8, 2, 1, 1]);
}

#[test]
fn a_bucket_is_as_large_as_another_in_both_directions_or_not_at_all() {
    let bucket = |tokens, table_width| Bucket {
        tokens,
        table_width,
        ..BUCKET
    };
    for (tokens, table_width, is_large) in [
        (16, 64, true),
        (24, 64, true),
        (16, 256, true),
        (8, 256, false),
        (128, 16, false),
        (8, 16, false),
    ] {
        let found = bucket(tokens, table_width).is_as_large_as(&bucket(16, 64));
        assert_eq!(found, is_large, "{tokens} {table_width}");
    }
}

#[test]
fn splits_take_as_much_room_as_the_texts_of_a_pass_have() {
    let table = [0; 700];
    let texts = [(10_000, 2), (127, 1), (128, 1), (300, 3)];
    let feeds = texts.map(|(start, fed)| feed(&[1, 2, 3][..fed], start, &table, None));
    let bucket = Bucket::of(&feeds, 4).unwrap();
    let bytes = bucket.fill(&feeds, 4).unwrap();
    let first = bucket.offset(Input::Parts);
    let parts: Vec<i32> = bytes[first..first + 16]
        .chunks(4)
        .map(|number| i32::from_le_bytes(number.try_into().unwrap()))
        .collect();
    // 40 parts of 256 slots, one of 128, two, and three.
    assert_eq!(parts, [0, 40 * 8, 40 * 8, 40 * 8 + 2 * 4]);
    assert_eq!(bucket.split_rows(&feeds, 4), 40 * 8 + 2 * 4 + 3 * 12);
}

#[test]
fn all_that_does_not_fit_is_named() {
    let table = [0; 9];
    let feeds = [
        feed(&[1; 6], 0, &table, None),
        feed(&[1; 2], 31, &table, None),
        feed(&[1], 0, &table, None),
        feed(&[1], 0, &table, None),
    ];
    let misfits = BUCKET.fill(&feeds, 4).unwrap_err();
    assert_eq!(
        misfits.to_string(),
        "the pass has 10 tokens, more than 8; the pass has 2 pieces, more than 0; \
         feed 1 has 3 blocks, more than 2"
    );
    let bucket = Bucket::of(&feeds, 4).unwrap();
    assert_eq!((bucket.tokens, bucket.table_width, bucket.pieces), (16, 16, 0));
    assert!(bucket.is_padded());
    let tree = feed(&[1; 8], 0, &table, Some(&[0; 5]));
    assert_eq!(
        Bucket::of(&[tree], 16),
        None,
        "five nodes do not stand in one piece of four"
    );
    assert!(Bucket::of(&[tree], 8).is_some());
    let rows = Feed {
        rows: MOST_ROWS + 1,
        ..feed(&[1; MOST_ROWS + 1], 0, &[0; 17], None)
    };
    assert_eq!(Bucket::of(&[rows], 1), None, "too many rows of logits");
    let (tokens, blocks) = ([1; 4096], [0; 16384]);
    let far = |start| feed(&tokens, start, &blocks, None);
    assert!(Bucket::of(&[far(0)], 16).is_some());
    assert_eq!(
        Bucket::of(&[far(250_000)], 16),
        None,
        "1,024 tables of 15,881 blocks"
    );
    assert_eq!(Bucket::tokens_for(17), Some(24));
    assert_eq!(Bucket::tokens_for(129), None);
}
