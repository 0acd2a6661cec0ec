//! Heads against a plain reading of them in numpy (`fixtures/make_heads.py`), and the hidden states that they
//! read, however a text was fed.

use lexiform_engine::{
    Device, DrafterKind, Dtype, Feed, Head, HeadFeed, LoadOptions, LoadedModel, Model, ModelFiles, SlotMoves,
    WeightFormat, drafter_kind, load,
};
use std::path::PathBuf;

pub(crate) const WIDTH: usize = 96;
const TOLERANCE: f32 = 3e-4;
const BLOCK: usize = 4;

pub(crate) fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/heads")
        .join(name)
}

pub(crate) fn options(fused: bool, head: Option<&str>) -> LoadOptions {
    LoadOptions {
        dtype: Dtype::F32,
        device: Device::Cpu,
        threads: 1,
        fused,
        head: head.map(|head| ModelFiles::folder(folder(head))),
        ..LoadOptions::default()
    }
}

pub(crate) fn loaded(fused: bool, head: Option<&str>) -> LoadedModel {
    load(&ModelFiles::folder(folder("target")), &options(fused, head)).unwrap()
}

/// A text, drafts after it with the number of the draft before each, and the rows after all of these.
pub(crate) struct Expected {
    pub(crate) tokens: Vec<u32>,
    tree: Vec<(u32, u16)>,
    pub(crate) rows: Vec<Vec<f32>>,
}

pub(crate) fn expected(name: &str) -> Expected {
    let text = std::fs::read_to_string(folder(name).join("expected.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let numbers = |value: &serde_json::Value| -> Vec<f32> {
        let number = |value: &serde_json::Value| value.as_f64().map_or(f32::NEG_INFINITY, |it| it as f32);
        value.as_array().unwrap().iter().map(number).collect()
    };
    Expected {
        tokens: numbers(&json["tokens"])
            .into_iter()
            .map(|token| token as u32)
            .collect(),
        tree: json["tree"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| (numbers(node)[0] as u32, numbers(node)[1] as u16))
            .collect(),
        rows: json["rows"].as_array().unwrap().iter().map(numbers).collect(),
    }
}

fn agree(found: &[f32], wanted: &[f32], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (found, wanted) in found.iter().zip(wanted) {
        let is_near = found == wanted || (found - wanted).abs() < TOLERANCE * (1.0 + wanted.abs());
        assert!(is_near, "{what}: {found} and {wanted}");
    }
}

fn table(tokens: usize) -> Vec<u32> {
    // Not in order, so that a slot is not its row.
    (0..tokens.div_ceil(BLOCK) as u32).rev().collect()
}

fn feed<'a>(tokens: &'a [u32], start: usize, table: &'a [u32], rows: usize) -> Feed<'a> {
    Feed {
        tokens,
        start,
        table,
        rows,
        parents: None,
        scale: 1.0,
    }
}

/// Feeds a text in pieces of this length, and returns the states of all of its tokens.
fn states(model: &mut dyn Model, tokens: &[u32], piece: usize) -> Vec<f32> {
    let table = table(tokens.len());
    model.create_cache(table.len(), BLOCK).unwrap();
    for (number, tokens) in tokens.chunks(piece).enumerate() {
        let rows = usize::from(number % 2 == 1);
        model
            .forward(&[feed(tokens, number * piece, &table, rows)])
            .unwrap();
    }
    model.states(&table, 0..tokens.len()).unwrap()
}

/// Lets a head read a text in pieces, and its drafts first one after another and then as a tree.
fn check_eagle(name: &str, fused: bool, piece: usize) {
    let what = format!("{name}, fused {fused}, in pieces of {piece}");
    let Expected { tokens, tree, rows } = expected(name);
    let LoadedModel { mut model, head, .. } = loaded(fused, Some(name));
    let mut head = head.unwrap();
    let last = tokens.len() - 1;
    let kept = states(&mut *model, &tokens[..last], piece);
    let width = head.states_width();
    assert_eq!((width, kept.len()), (model.states_width(), last * width));
    let table = table(tokens.len() + tree.len());
    head.create_cache(table.len(), BLOCK).unwrap();
    let mut own = Vec::new();
    for (number, pairs) in tokens[1..].chunks(piece).enumerate() {
        let start = number * piece;
        let found = head.run(&[HeadFeed {
            feed: feed(pairs, start, &table, 1),
            kept: &kept[start * width..(start + pairs.len()) * width],
            own: &[],
        }]);
        let found = found.unwrap();
        own = found.own;
        if start + pairs.len() == last {
            agree(found.logits.row(0), &rows[0], &what);
        }
    }
    // Down the path 2, 5 of the tree.
    let mut states = own.clone();
    for (place, node) in [2, 5].into_iter().enumerate() {
        let found = head.run(&[HeadFeed {
            feed: feed(&[tree[node - 1].0], last + place, &table, 1),
            kept: &[],
            own: &states,
        }]);
        let found = found.unwrap();
        agree(found.logits.row(0), &rows[node], &format!("{what}: draft {node}"));
        states = found.own;
    }
    // The tree, each layer with its ancestors, below the last token of the text.
    let mut of_nodes = vec![own];
    for nodes in [1..=2, 3..=5, 6..=6] {
        let tokens: Vec<u32> = std::iter::once(tokens[last])
            .chain(tree[..*nodes.end()].iter().map(|(token, _)| *token))
            .collect();
        let parents: Vec<u16> = tree[..*nodes.end()].iter().map(|(_, parent)| *parent).collect();
        let before = parents
            .iter()
            .flat_map(|&parent| of_nodes[usize::from(parent)].clone());
        let found = head.run(&[HeadFeed {
            feed: Feed {
                parents: Some(&parents),
                ..feed(&tokens, last - 1, &table, nodes.clone().count())
            },
            kept: &kept[(last - 1) * width..],
            own: &before.collect::<Vec<f32>>(),
        }]);
        let found = found.unwrap();
        for (row, node) in nodes.enumerate() {
            agree(
                found.logits.row(row),
                &rows[node],
                &format!("{what}: node {node}"),
            );
            let own_width = head.own_width();
            of_nodes.push(found.own[row * own_width..(row + 1) * own_width].to_vec());
        }
    }
}

#[test]
fn eagle_computes_the_rows_of_the_plain_reading() {
    for name in ["eagle", "eagle3"] {
        for fused in [true, false] {
            for piece in [1, 5, 100] {
                check_eagle(name, fused, piece);
            }
        }
    }
}

#[test]
fn medusa_computes_the_rows_of_the_plain_reading() {
    let Expected { tokens, rows, .. } = expected("medusa");
    for fused in [true, false] {
        let LoadedModel { mut model, head, .. } = loaded(fused, Some("medusa"));
        let mut head = head.unwrap();
        assert_eq!((head.ahead(), head.own_width()), (3, 0));
        let last = tokens.len() - 1;
        let kept = states(&mut *model, &tokens[..last], 7);
        let width = head.states_width();
        let text = |states| HeadFeed {
            feed: feed(&[], 0, &[], 0),
            kept: states,
            own: &[],
        };
        let found = head
            .run(&[text(&kept[..width]), text(&kept[(last - 1) * width..])])
            .unwrap();
        for (number, wanted) in rows.iter().enumerate() {
            agree(
                found.logits.row(3 + number),
                wanted,
                &format!("{fused}: token {number}"),
            );
        }
    }
}

#[test]
fn a_model_that_predicts_at_once_is_known_and_computes_the_rows_of_the_plain_reading() {
    let Expected { mut tokens, rows, .. } = expected("pard");
    let files = ModelFiles::folder(folder("pard"));
    let DrafterKind::Parallel { mask } = drafter_kind(&files).unwrap() else {
        panic!("it has a token for unknown ones");
    };
    tokens.extend(std::iter::repeat_n(mask, rows.len() - 1));
    let mut model = load(&files, &options(true, None)).unwrap().model;
    let table = table(tokens.len());
    model.create_cache(table.len(), BLOCK).unwrap();
    let found = model.forward(&[feed(&tokens, 0, &table, rows.len())]).unwrap();
    for (number, wanted) in rows.iter().enumerate() {
        agree(found.row(number), wanted, &format!("token {number}"));
    }
}

/// The states of a text do not depend on how it was fed: in pieces, beside other texts, as a path of a tree
/// whose slots were moved, or copied with a block.
#[test]
fn states_follow_the_keys_and_values() {
    for (head, fused) in [
        ("eagle", true),
        ("eagle3", true),
        ("eagle", false),
        ("eagle3", false),
    ] {
        let tokens = expected("eagle").tokens;
        let mut model = loaded(fused, Some(head)).model;
        let whole = states(&mut *model, &tokens, 100);
        agree(&states(&mut *model, &tokens, 3), &whole, "in pieces");
        // The tokens 10, 12 and 14 of the fed ones are the text, the others branches beside it.
        let table: Vec<u32> = (1..=8).collect();
        model.create_cache(10, BLOCK).unwrap();
        let other = [5, 6, 7];
        model
            .forward(&[feed(&other, 0, &[0], 0), feed(&tokens[..9], 0, &table, 0)])
            .unwrap();
        let (path, beside) = (&tokens[10..13], [3_u32, 4, 6]);
        let nodes = [beside[0], path[0], beside[1], path[1], beside[2], path[2]];
        let fed: Vec<u32> = std::iter::once(tokens[9]).chain(nodes).collect();
        let tree = Feed {
            parents: Some(&[0, 0, 1, 2, 2, 4]),
            ..feed(&fed, 9, &table, 7)
        };
        model.forward(&[tree]).unwrap();
        let moves = SlotMoves {
            table: &table,
            start: 10,
            slots: &[11, 13, 15],
        };
        model.move_slots(&[moves]).unwrap();
        let width = model.states_width();
        let found = model.states(&table, 0..13).unwrap();
        agree(&found, &whole[..13 * width], "after a tree");
        model.copy_blocks(&[(1, 9)]).unwrap();
        let found = model.states(&[9], 0..BLOCK).unwrap();
        agree(&found, &whole[..BLOCK * width], "copied");
    }
}

#[test]
fn a_model_without_a_head_keeps_no_states_and_a_rounded_one_keeps_them() {
    let mut plain = loaded(true, None).model;
    let bytes = plain.cache_bytes_per_token();
    assert_eq!(plain.states_width(), 0);
    assert!(states(&mut *plain, &[3, 4, 5], 2).is_empty());
    for format in [WeightFormat::Int8, WeightFormat::Fp8] {
        let options = LoadOptions {
            weights: format,
            ..options(true, Some("eagle3"))
        };
        let mut rounded = load(&ModelFiles::folder(folder("target")), &options).unwrap();
        let width = rounded.model.states_width();
        assert_eq!(width, 48);
        assert_eq!(rounded.model.cache_bytes_per_token(), bytes + 4 * width);
        let exact = states(&mut *loaded(true, Some("eagle3")).model, &[3, 4, 5], 2);
        let found = states(&mut *rounded.model, &[3, 4, 5], 2);
        let off = found.iter().zip(&exact).map(|(one, other)| (one - other).abs());
        let most = off.fold(0.0, f32::max);
        assert!(most > 0.0 && most < 2.0, "{format}: off by {most}");
        assert_eq!(
            rounded.head.take().map(|head: Box<dyn Head>| head.kind()),
            Some("EAGLE-3")
        );
    }
}
