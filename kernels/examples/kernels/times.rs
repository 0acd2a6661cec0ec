//! Times of launches at the sizes of two models: one of 1.24 billion weights (1B) and one of 7.5 billion
//! (8B).

use crate::memory::Chance;
use lexiform_kernels::asks::Ask;
use lexiform_kernels::asks::Sent;
use lexiform_kernels::card::{Card, CardError, CardMemory};
use lexiform_kernels::draw::Draw;
use lexiform_kernels::experts::{Mixture, Room, Routed};
use lexiform_kernels::node::{Node, Place};
use lexiform_kernels::products::{Before, End, Gemv, Rounded, Skinny};
use lexiform_kernels::shapes::{Attend, DRAWN_BYTES, Format, Gate, MOST_QUERY_ROWS, Norm, SPLITS, Widen};
use lexiform_kernels::step::Output;
use lexiform_law::{Allowed, History, Law, Place as DrawPlace, Seeded, Warper, Warping};
use serde_json::{Value, json};

/// Launches between two looks at the clock, and looks.
const LAUNCHES: usize = 10;
const ROUNDS: usize = 21;
/// Copies of weights are to be larger than the L2 of an H100 (50 MB) together.
const BEYOND_L2: usize = 200 << 20;
const VOCAB: usize = 128_256;

/// Launches to time.
struct Timed {
    name: String,
    nodes: Vec<Node<usize>>,
    /// Bytes of each buffer; the first is what must come from memory, and is there several times.
    buffers: Vec<usize>,
    /// Contents of some of the buffers; the others are zeros.
    contents: Vec<(usize, Vec<u8>)>,
}

/// Prints a table, and returns it.
pub(crate) fn measure(card: &Card) -> Result<Vec<Value>, CardError> {
    let blocks = card.multiprocessors();
    let mut timed = products(blocks);
    timed.extend(few_vectors(blocks));
    for format in [Format::Int8, Format::Fp8] {
        timed.extend(eight_bits(format, blocks));
    }
    timed.extend([
        attention("attention 1B, 64 × 256", 64, 256, 64),
        attention("attention 8B, 64 × 256", 64, 256, 128),
        attention("attention 1B, 1 × 2048", 1, 2048, 64),
        attention("attention 8B, 1 × 2048", 1, 2048, 128),
        prompt("attention 1B, a prompt of 2048", 2048, 64),
        prompt("attention 8B, a prompt of 2048", 2048, 128),
    ]);
    timed.extend(small());
    timed.push(experts(blocks));
    timed.extend(all_draws());
    println!("{:44} {:>9} {:>9} {:>7}", "", "µs", "MB", "GB/s");
    timed.iter().map(|timed| timed.measure(card)).collect()
}

impl Timed {
    fn measure(&self, card: &Card) -> Result<Value, CardError> {
        let copies = BEYOND_L2.div_ceil(self.buffers[0].max(1 << 20)).clamp(1, 64);
        let zeros = |&bytes: &usize| card.upload(&vec![0; bytes]);
        let firsts: Vec<CardMemory> = (0..copies)
            .map(|_| zeros(&self.buffers[0]))
            .collect::<Result<_, _>>()?;
        let mut memory: Vec<CardMemory> = self.buffers.iter().map(zeros).collect::<Result<_, _>>()?;
        for (buffer, bytes) in &self.contents {
            card.write(memory[*buffer], bytes)?;
        }
        let mut next = 0;
        let mut round = || {
            for _ in 0..LAUNCHES {
                next = (next + 1) % copies;
                let first = firsts[next];
                for node in &self.nodes {
                    let address = |&buffer: &usize| match buffer {
                        0 => first.address,
                        _ => memory[buffer].address,
                    };
                    card.launch(node, address)?;
                }
            }
            Ok(())
        };
        card.time(&mut round)?;
        let times = (0..ROUNDS).map(|_| card.time(&mut round));
        let mut times: Vec<f32> = times.collect::<Result<_, _>>()?;
        times.sort_by(f32::total_cmp);
        let micros = f64::from(times[ROUNDS / 2]) * 1e3 / LAUNCHES as f64;
        memory.extend(firsts);
        memory.into_iter().try_for_each(|memory| card.free(memory))?;
        let bytes = self.buffers[0] as f64;
        let rate = bytes / micros / 1e3;
        println!("{:44} {micros:9.1} {:9.1} {rate:7.0}", self.name, bytes / 1e6);
        Ok(
            json!({"name": self.name, "micros": micros, "bytes": self.buffers[0], "gigabytes_per_second": rate}),
        )
    }
}

fn at(buffer: usize) -> Place<usize> {
    Place::start(buffer)
}

/// Products for one vector, at the sizes of all matrices.
fn products(blocks: usize) -> Vec<Timed> {
    let shapes = [
        ("1B qkv", 2048, 3072, End::Plain),
        ("1B out", 2048, 2048, End::Add),
        ("1B gate and up", 2048, 16_384, End::Gate),
        ("1B down", 8192, 2048, End::Add),
        ("1B head", 2048, VOCAB, End::Wide),
        ("8B qkv", 4096, 6144, End::Plain),
        ("8B out", 4096, 4096, End::Add),
        ("8B gate and up", 4096, 28_672, End::Gate),
        ("8B down", 14_336, 4096, End::Add),
        ("8B head", 4096, VOCAB, End::Wide),
    ];
    let timed = shapes.into_iter().filter_map(|(name, columns, rows, end)| {
        let gemv = Gemv {
            weights: at(0),
            rounded: None,
            x: at(1),
            scale: None,
            wanted: None,
            normed: None,
            out: at(2),
            rows,
            columns,
            vectors: 1,
            end,
            eps: 1e-5,
            blocks,
        };
        Some(Timed {
            name: format!("{name}, one vector"),
            nodes: vec![gemv.node()?],
            buffers: vec![rows * columns * 2, columns * 2, rows * 4],
            contents: Vec::new(),
        })
    });
    timed.collect()
}

/// Products for eight and sixteen vectors.
fn few_vectors(blocks: usize) -> Vec<Timed> {
    let shapes = [
        ("1B qkv", 2048, 3072),
        ("1B gate and up", 2048, 16_384),
        ("8B qkv", 4096, 6144),
        ("8B gate and up", 4096, 28_672),
    ];
    let each = shapes
        .into_iter()
        .flat_map(|shape| [8, 16].map(|vectors| (shape, vectors)));
    let timed = each.filter_map(|((name, columns, rows), vectors)| {
        let skinny = Skinny {
            weights: at(0),
            rounded: None,
            x: at(1),
            out: at(2),
            rows,
            columns,
            stride: columns,
            vectors,
            output: Output::Plain,
            blocks,
        };
        Some(Timed {
            name: format!("{name}, {vectors} vectors"),
            nodes: vec![skinny.node()?],
            buffers: vec![rows * columns * 2, vectors * columns * 2, vectors * rows * 2],
            contents: Vec::new(),
        })
    });
    timed.collect()
}

/// Products with matrices of eight bits, and the largest piece of one that is widened at once.
fn eight_bits(format: Format, blocks: usize) -> Vec<Timed> {
    let (columns, rows) = (4096, 28_672);
    let rounded = Rounded {
        format,
        scales: at(3),
        widened: at(2),
    };
    let gemv = |vectors| {
        let gemv = Gemv {
            weights: at(0),
            rounded: Some(rounded),
            x: at(1),
            scale: None,
            wanted: None,
            normed: None,
            out: at(2),
            rows,
            columns,
            vectors,
            end: End::Gate,
            eps: 1e-5,
            blocks,
        };
        (vectors, gemv.node())
    };
    let skinny = |vectors| {
        let skinny = Skinny {
            weights: at(0),
            rounded: Some(rounded),
            x: at(1),
            out: at(2),
            rows,
            columns,
            stride: columns,
            vectors,
            output: Output::Plain,
            blocks,
        };
        (vectors, skinny.node())
    };
    let nodes = [gemv(1), gemv(2), skinny(8), skinny(16)];
    let products = nodes.into_iter().filter_map(|(vectors, node)| {
        Some(Timed {
            name: format!("8B gate and up in {format:?}, {vectors} vectors"),
            nodes: vec![node?],
            buffers: vec![
                rows * columns,
                vectors * columns * 2,
                vectors * rows * 2,
                rows * 4,
            ],
            contents: Vec::new(),
        })
    });
    let piece = Widen::<usize>::room(rows, columns) / 2;
    let widen = Widen {
        format,
        weights: at(0),
        scales: at(3),
        out: at(2),
        rows: piece / columns,
        columns,
    };
    let widened = Timed {
        name: format!("{} rows of 4096 widened from {format:?}", piece / columns),
        nodes: vec![widen.node()],
        buffers: vec![piece, 16, 2 * piece, rows * 4],
        contents: Vec::new(),
    };
    products.chain([widened]).collect()
}

const KEY_HEADS: usize = 8;
const GROUP: usize = 4;

fn numbers(values: impl IntoIterator<Item = i32>) -> Vec<u8> {
    values.into_iter().flat_map(i32::to_le_bytes).collect()
}

/// Who attends in a launch.
struct Attending {
    /// Blocks of the cache.
    blocks: usize,
    /// Of each sequence the blocks, the slots before what it feeds, and the tokens that it feeds.
    tables: Vec<i32>,
    starts: Vec<i32>,
    fed: usize,
    most_splits: usize,
}

/// Attention of one token of each sequence over as many cached ones.
fn attention(name: &str, sequences: usize, text: usize, size: usize) -> Timed {
    let blocks = sequences * text.div_ceil(16);
    let attending = Attending {
        blocks,
        tables: (0..blocks as i32).collect(),
        starts: vec![text as i32 - 1; sequences],
        fed: 1,
        most_splits: SPLITS,
    };
    attending.timed(name, size)
}

/// Attention of all tokens of a prompt, in pieces of as many as a launch takes.
fn prompt(name: &str, text: usize, size: usize) -> Timed {
    let (fed, blocks) = (MOST_QUERY_ROWS / GROUP, text.div_ceil(16));
    let pieces = text.div_ceil(fed);
    let attending = Attending {
        blocks,
        tables: (0..pieces).flat_map(|_| 0..blocks as i32).collect(),
        starts: (0..pieces).map(|piece| (piece * fed) as i32).collect(),
        fed,
        most_splits: 1,
    };
    attending.timed(name, size)
}

impl Attending {
    /// The launch. Keys and values lie in one buffer.
    fn timed(&self, name: &str, size: usize) -> Timed {
        let (sequences, width) = (self.starts.len(), KEY_HEADS * size);
        let half = self.blocks * 16 * width * 2;
        let table_width = self.tables.len() / sequences;
        let attend = Attend {
            queries: at(1),
            keys: at(0),
            values: Place {
                buffer: 0,
                offset: half,
            },
            out: at(2),
            parts: at(3),
            arrived: at(4),
            tables: at(5),
            starts: at(6),
            firsts: at(7),
            positions: at(8),
            sees: at(9),
            parts_at: at(10),
            size,
            key_heads: KEY_HEADS,
            group: GROUP,
            sequences,
            table_width,
            most_fed: self.fed,
            most_splits: self.most_splits,
            window: None,
        };
        let tokens = sequences * self.fed;
        let rows = tokens * width * GROUP * 2;
        let split_rows = |start: i32| {
            Attend::<usize>::split_rows(start as usize + self.fed, self.fed, GROUP, self.most_splits)
        };
        let split_rows: Vec<usize> = self.starts.iter().map(|&start| split_rows(start)).collect();
        let parts = Attend::<usize>::parts_bytes(split_rows.iter().sum(), KEY_HEADS, size);
        let parts_at = split_rows.iter().scan(0, |end, rows| {
            let at = *end;
            *end += *rows as i32;
            Some(at)
        });
        let positions = self
            .starts
            .iter()
            .flat_map(|&start| start..start + self.fed as i32);
        let lists = [
            numbers(self.tables.iter().copied()),
            numbers(self.starts.iter().copied()),
            numbers((0..=sequences).map(|sequence| (sequence * self.fed) as i32)),
            numbers(positions),
            numbers((0..tokens).map(|token| (2 << (token % self.fed)) - 1)),
            numbers(parts_at),
        ];
        let sizes = lists.iter().map(Vec::len);
        let buffers = [2 * half, rows, rows, parts, 4 * sequences * KEY_HEADS];
        Timed {
            name: name.to_owned(),
            nodes: vec![attend.node()],
            buffers: buffers.into_iter().chain(sizes).collect(),
            contents: (5..).zip(lists).collect(),
        }
    }
}

/// What lies between the products, for 64 tokens of the 1B model.
fn small() -> [Timed; 2] {
    let (count, hidden, inner) = (64, 2048, 8192);
    let norm = Norm {
        x: at(0),
        scale: at(1),
        out: at(2),
        rows: None,
        width: hidden,
        count,
        eps: 1e-5,
    };
    let gate = Gate {
        rows: at(0),
        out: at(1),
        width: inner,
        count,
    };
    [
        Timed {
            name: "1B norm, 64 tokens".to_owned(),
            nodes: vec![norm.node()],
            buffers: vec![count * hidden * 2, hidden * 2, count * hidden * 2],
            contents: Vec::new(),
        },
        Timed {
            name: "1B gate, 64 tokens".to_owned(),
            nodes: vec![gate.node()],
            buffers: vec![count * 2 * inner * 2, count * inner * 2],
            contents: Vec::new(),
        },
    ]
}

/// A layer's 128 experts of 768 numbers, of which each of 64 tokens uses eight: nearly all of them are read.
fn experts(blocks: usize) -> Timed {
    let (tokens, hidden) = (64, 2048);
    let mixture = Mixture {
        experts: 128,
        chosen: 8,
        inner: 768,
        is_normalised: true,
        layers: vec![true],
    };
    let (ups, downs) = (
        mixture.experts * 2 * mixture.inner * hidden * 2,
        mixture.experts * hidden * mixture.inner * 2,
    );
    let routed = Routed {
        mixture: &mixture,
        norm: Before {
            scale: at(2),
            out: at(1),
            wanted: None,
            eps: 1e-6,
        },
        router: at(2),
        ups: at(0),
        downs: Place {
            buffer: 0,
            offset: ups,
        },
        slots: at(3),
        arrived: at(4),
        x: at(5),
        room: |room| at(6 + room as usize),
        hidden,
        tokens,
        multiprocessors: blocks,
    };
    let rows = tokens * hidden * 2;
    let rooms = mixture.rooms(tokens, hidden).map(|(_, bytes)| bytes);
    let mut chance = Chance::new(3);
    let scores = chance.numbers(tokens * mixture.experts, 1.0);
    Timed {
        name: "30B-A3B experts of a layer, 64 tokens".to_owned(),
        nodes: routed.nodes().to_vec(),
        buffers: [ups + downs, rows, rows, 4 * tokens, 4, rows]
            .into_iter()
            .chain(rooms)
            .collect(),
        contents: vec![(
            6 + Room::Scores as usize,
            scores.into_iter().flat_map(u16::to_le_bytes).collect(),
        )],
    }
}

/// Draws from rows under this law, with a mask, and a history of a thousand tokens where it is read.
fn draws(rows: usize, what: &str, warping: Warping) -> Timed {
    let warper = Warper::new(warping, Law::Local).unwrap_or_else(|error| unreachable!("{error}"));
    let (mask, tokens): (_, Vec<u32>) = (vec![!0; VOCAB.div_ceil(32)], (0..1000).collect());
    let ask = |row| Ask {
        row,
        allowed: Allowed::Words(&mask),
        warper: &warper,
        history: History {
            answer: &tokens,
            ..History::default()
        },
        seeded: Seeded::new(7, 0),
        place: DrawPlace::new(0, row as u32),
    };
    let asks: Vec<Ask<'_>> = (0..rows).map(ask).collect();
    let sent = Sent::new(&asks, VOCAB);
    let draw = Draw {
        logits: at(1),
        asked: at(2),
        sent: &sent,
        room: at(3),
        out: at(0),
        width: VOCAB,
    };
    let mut chance = Chance::new(9);
    let logits = (0..rows * VOCAB).flat_map(|_| (2.5 * chance.normal()).to_le_bytes());
    Timed {
        name: format!("draws from {rows} rows of {VOCAB}, {what}"),
        nodes: draw.nodes(),
        buffers: vec![
            rows * DRAWN_BYTES,
            rows * VOCAB * 4,
            sent.bytes.len(),
            Draw::<usize>::room(&sent, VOCAB),
        ],
        contents: vec![(1, logits.collect()), (2, sent.bytes.clone())],
    }
}

/// Draws at temperature 1, greedy, and as most services are asked for them.
fn all_draws() -> Vec<Timed> {
    let plain = Warping::default();
    let usual = Warping {
        temperature: 0.7,
        top_p: 0.9,
        frequency_penalty: 0.2,
        presence_penalty: 0.1,
        ..Warping::default()
    };
    let greedy = Warping {
        temperature: 0.0,
        ..Warping::default()
    };
    let laws = [
        ("plain", plain),
        ("greedy", greedy),
        ("top-p and penalties", usual),
    ];
    laws.into_iter()
        .flat_map(|(what, warping)| [1, 64].map(|rows| draws(rows, what, warping.clone())))
        .collect()
}
