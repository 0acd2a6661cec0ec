//! Trees of drafts in one pass: every node has the row that its path has as a separate text, the accepted
//! part of a tree continues like a text that was never drafted, and a text that forks does not disturb the
//! other.
//!
//! The slow, obvious way is the same model, which is fed each path from its first token on, alone.

use crate::planned::{self, Runner};
use crate::rig;
use crate::torch::{TOLERANCE, kinds, model};
use lexiform_engine::{Device, EngineError, Feed, Malformed, Model, ScriptedModel, SlotMoves};

const BLOCKS: usize = 800;
/// The tokens of all models begin with so many that are text.
const TOKENS: usize = 40;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % sides
    }

    fn tokens(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.below(TOKENS) as u32).collect()
    }
}

/// A text, of which some is cached already, and perhaps a tree below it.
struct Sequence {
    text: Vec<u32>,
    cached: usize,
    nodes: Vec<u32>,
    parents: Option<Vec<u16>>,
    table: Vec<u32>,
}

impl Sequence {
    fn fed(&self) -> Vec<u32> {
        [&self.text[self.cached..], &self.nodes].concat()
    }

    /// The nodes from the text down to this one, counted from 1.
    fn path(&self, node: usize) -> Vec<usize> {
        let parents = self.parents.as_deref().unwrap_or_default();
        let up = |&node: &usize| Some(usize::from(parents[node - 1])).filter(|&parent| parent > 0);
        let mut path: Vec<usize> = std::iter::successors(Some(node).filter(|&node| node > 0), up).collect();
        path.reverse();
        path
    }

    /// The text and what the path to this node adds to it.
    fn text_to(&self, node: usize) -> Vec<u32> {
        let path = self.path(node).into_iter().map(|node| self.nodes[node - 1]);
        self.text.iter().copied().chain(path).collect()
    }
}

/// A model, and the blocks of its cache that nobody has yet.
struct Bench {
    model: Box<dyn Model>,
    free: Vec<u32>,
    block_size: usize,
    what: String,
    /// How far two rows are from each other, and how far they may be.
    off: fn(&[f32], &[f32]) -> f32,
    tolerance: f32,
    /// Sequences that are fed in one pass.
    together: usize,
}

impl Bench {
    /// Hands out a table for so many slots, of blocks that lie anywhere.
    fn table(&mut self, slots: usize, dice: &mut Dice) -> Vec<u32> {
        let blocks = slots.div_ceil(self.block_size);
        (0..blocks)
            .map(|_| self.free.swap_remove(dice.below(self.free.len())))
            .collect()
    }

    fn rows(&mut self, feeds: &[Feed<'_>]) -> Vec<Vec<f32>> {
        let logits = self.model.forward(feeds).unwrap();
        (0..logits.len()).map(|row| logits.row(row).to_vec()).collect()
    }

    /// The last row of a text that is fed from its beginning, alone.
    fn alone(&mut self, text: &[u32]) -> Vec<f32> {
        let table = self.free[self.free.len() - text.len().div_ceil(self.block_size)..].to_vec();
        let feed = Feed {
            tokens: text,
            start: 0,
            table: &table,
            rows: 1,
            parents: None,
            scale: 1.0,
        };
        self.rows(&[feed]).remove(0)
    }

    /// The row of the token after a text, whose last tokens are fed and the others cached.
    fn goes_on_like(&mut self, table: &[u32], text: &[u32], fed: usize) {
        let start = text.len() - fed;
        let feed = Feed {
            tokens: &text[start..],
            start,
            table,
            rows: 1,
            parents: None,
            scale: 1.0,
        };
        let found = self.rows(&[feed]).remove(0);
        let expected = self.alone(text);
        self.same(&found, &expected, &format!("{fed} tokens after {start}"));
    }

    fn same(&self, found: &[f32], expected: &[f32], place: &str) {
        assert_eq!(found.len(), expected.len());
        let off = (self.off)(found, expected);
        assert!(off < self.tolerance, "{}, {place}: off by {off}", self.what);
    }

    /// A text of this length and a tree of so many nodes below it; `bushy` of 10 nodes hang somewhere, the
    /// others below the node before them.
    fn sequence(
        &mut self,
        (length, cached): (usize, usize),
        (nodes, bushy): (usize, usize),
        dice: &mut Dice,
    ) -> Sequence {
        let mut parent = |number: usize| match dice.below(10) < bushy {
            true => dice.below(number + 1) as u16,
            false => number as u16,
        };
        let parents: Vec<u16> = (0..nodes).map(&mut parent).collect();
        Sequence {
            text: dice.tokens(length),
            cached,
            nodes: dice.tokens(nodes),
            parents: (nodes > 0).then_some(parents),
            // Some room to go on.
            table: self.table(length + nodes + 8, dice),
        }
    }

    /// Company of all kinds: one token and drafts, a prompt and drafts, a plain token, a piece of a prompt,
    /// chains.
    fn company(&mut self, dice: &mut Dice) -> Vec<Sequence> {
        let (size, mut company) = (self.block_size, Vec::new());
        for nodes in [0, 1, 5, 9, 15, 16, 24] {
            let length = 1 + dice.below(34);
            let bushy = [2, 5, 10][dice.below(3)];
            company.push(self.sequence((length, length - 1), (nodes, bushy), dice));
        }
        // The tree begins at the beginning of a block, or the text does.
        company.push(self.sequence((2 * size, 2 * size - 1), (7, 6), dice));
        company.push(self.sequence((size + 3, size), (7, 6), dice));
        company.push(self.sequence((26, 0), (8, 6), dice));
        company.push(self.sequence((26, 5), (0, 0), dice));
        // So many siblings that slots are far from positions.
        let mut wide = self.sequence((20, 19), (14, 0), dice);
        wide.parents = Some([vec![0; 10], vec![10, 11, 12, 13]].concat());
        company.push(wide);
        company
    }

    /// Feeds the text that is cached of each.
    fn prepare(&mut self, company: &[Sequence]) {
        let cached = company.iter().filter(|sequence| sequence.cached > 0);
        let feeds: Vec<Feed<'_>> = cached
            .map(|sequence| Feed {
                tokens: &sequence.text[..sequence.cached],
                start: 0,
                table: &sequence.table,
                rows: 0,
                parents: None,
                scale: 1.0,
            })
            .collect();
        assert!(self.rows(&feeds).is_empty());
    }

    /// Feeds all trees, as many in one pass as go together; the rows of each sequence.
    fn pass(&mut self, company: &[Sequence]) -> Vec<Vec<Vec<f32>>> {
        let passes = company.chunks(self.together).map(|some| self.one_pass(some));
        passes.flatten().collect()
    }

    fn one_pass(&mut self, company: &[Sequence]) -> Vec<Vec<Vec<f32>>> {
        let fed: Vec<Vec<u32>> = company.iter().map(Sequence::fed).collect();
        let feeds: Vec<Feed<'_>> = company
            .iter()
            .zip(&fed)
            .map(|(sequence, tokens)| Feed {
                tokens,
                start: sequence.cached,
                table: &sequence.table,
                rows: sequence.nodes.len() + 1,
                parents: sequence.parents.as_deref(),
                scale: 1.0,
            })
            .collect();
        let mut rows = self.rows(&feeds).into_iter();
        let own = |sequence: &Sequence| rows.by_ref().take(sequence.nodes.len() + 1).collect();
        company.iter().map(own).collect()
    }
}

/// The largest difference of two numbers.
fn largest(found: &[f32], expected: &[f32]) -> f32 {
    let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    // NaN is no number's neighbour.
    off.fold(0.0, |most, off| if off <= most { most } else { off })
}

/// Benches with models whose passes are run by plan.
fn planned_benches(runner: Runner, test: fn(Bench, Dice)) {
    planned::each(runner, BLOCKS, |kind, model, asked| {
        let before = planned::counted(&asked, |it| &it.steps);
        let bench = Bench {
            model,
            free: (0..BLOCKS as u32).collect(),
            block_size: 16,
            what: format!("{kind:?}, by plan"),
            off: planned::relative,
            tolerance: planned::ERROR_OF_ROW,
            together: 3,
        };
        test(bench, Dice(7));
        let after = planned::counted(&asked, |it| &it.steps);
        assert!(after > before || asked.is_none(), "{asked:?}");
    });
}

/// Benches with a model that follows a script and with every libtorch family, each with blocks of several
/// sizes. Whatever moves, in whatever many layers, is one launch; what does not move is none.
fn moves_and_copies_are_one_launch_each(runner: Runner) {
    planned::each(runner, BLOCKS, |kind, mut model, asked| {
        let steps = || planned::counted(&asked, |it| &it.steps);
        // On a card nobody counts.
        let launches = |before: usize, expected: usize| {
            assert!(asked.is_none() || steps() - before == expected, "{kind:?}");
        };
        let tables = [[0, 1], [2, 3]];
        let moves = |slots: &'static [usize]| {
            tables.each_ref().map(|table| SlotMoves {
                table,
                start: 3,
                slots,
            })
        };
        let before = steps();
        model.move_slots(&moves(&[4, 6, 7])).unwrap();
        launches(before, 1);
        model.move_slots(&moves(&[3, 4])).unwrap();
        model.move_slots(&[]).unwrap();
        launches(before, 1);
        model.copy_blocks(&[(0, 4), (0, 5), (1, 6)]).unwrap();
        launches(before, 2);
        model.copy_blocks(&[]).unwrap();
        launches(before, 2);
    });
}

/// What a launcher refuses is moved by torch.
fn moves_that_are_refused_are_made_by_torch(runner: Runner) {
    planned::each(runner, BLOCKS, |kind, mut model, asked| {
        let Some(asked) = asked else {
            return;
        };
        let feed = |tokens: &'static [u32], start, table: &'static [u32]| Feed {
            tokens,
            start,
            table,
            rows: 1,
            parents: None,
            scale: 1.0,
        };
        let row = |model: &mut dyn Model, feed: Feed<'_>| model.forward(&[feed]).unwrap().row(0).to_vec();
        row(&mut *model, feed(&[1, 2, 3, 4, 5], 0, &[0]));
        let begun = asked.steps.load(std::sync::atomic::Ordering::Relaxed);
        asked
            .refused
            .store(begun + 1, std::sync::atomic::Ordering::Relaxed);
        model.copy_blocks(&[(0, 7)]).unwrap();
        let [own, copied] = [&[0][..], &[7]].map(|table| row(&mut *model, feed(&[9], 5, table)));
        assert_eq!(own, copied, "{kind:?}");
    });
}

fn benches(device: Device, mut test: impl FnMut(Bench, Dice)) {
    for (number, block_size) in [(0, 4), (1, 1), (2, 16), (3, 4)] {
        let bench = |what: String, model| Bench {
            model,
            free: (0..BLOCKS as u32).collect(),
            block_size,
            what: format!("{what}, blocks of {block_size}"),
            off: largest,
            tolerance: TOLERANCE,
            together: usize::MAX,
        };
        let mut scripted: Box<dyn Model> = Box::new(ScriptedModel::new(rig::WIDTH, 100, rig::wordy_script));
        scripted.create_cache(BLOCKS, block_size).unwrap();
        test(bench("scripted".to_string(), scripted), Dice(number));
        for kind in kinds(device) {
            let model = model(kind, BLOCKS, block_size);
            test(bench(format!("{kind:?}"), model), Dice(number));
        }
    }
}

fn each_node_sees_its_path_alone(mut bench: Bench, mut dice: Dice) {
    let company = bench.company(&mut dice);
    bench.prepare(&company);
    let found = bench.pass(&company);
    for (number, (sequence, rows)) in company.iter().zip(&found).enumerate() {
        for (node, row) in rows.iter().enumerate() {
            let expected = bench.alone(&sequence.text_to(node));
            bench.same(row, &expected, &format!("sequence {number}, node {node}"));
        }
    }
}

fn an_accepted_path_goes_on_as_text(mut bench: Bench, mut dice: Dice) {
    let company = bench.company(&mut dice);
    bench.prepare(&company);
    bench.pass(&company);
    // The last nodes are the ones that are far from their positions.
    let accepted: Vec<usize> = company
        .iter()
        .map(|sequence| sequence.nodes.len() - dice.below(sequence.nodes.len().min(3) + 1))
        .collect();
    let slots: Vec<Vec<usize>> = company
        .iter()
        .zip(&accepted)
        .map(|(sequence, &node)| {
            let slot = |node| sequence.text.len() + node - 1;
            sequence.path(node).into_iter().map(slot).collect()
        })
        .collect();
    let moves: Vec<SlotMoves<'_>> = company
        .iter()
        .zip(&slots)
        .map(|(sequence, slots)| SlotMoves {
            table: &sequence.table,
            start: sequence.text.len(),
            slots,
        })
        .collect();
    bench.model.move_slots(&moves).unwrap();
    for (sequence, &node) in company.iter().zip(&accepted) {
        let fed = 1 + dice.below(6);
        let text = [sequence.text_to(node), dice.tokens(fed)].concat();
        bench.goes_on_like(&sequence.table, &text, fed);
    }
}

fn a_fork_leaves_the_other_alone(mut bench: Bench, mut dice: Dice) {
    for length in [5, 16, 21] {
        let text = dice.tokens(length);
        let table = bench.table(length + 8, &mut dice);
        let mut own = bench.table(length + 8, &mut dice);
        bench.goes_on_like(&table, &text, length);
        // Whole blocks are shared; those that either writes to are not.
        let whole = length / bench.block_size;
        own[..whole].copy_from_slice(&table[..whole]);
        let pairs: Vec<(u32, u32)> = match length % bench.block_size {
            0 => Vec::new(),
            _ => vec![(table[whole], own[whole])],
        };
        bench.model.copy_blocks(&pairs).unwrap();
        for _ in 0..2 {
            for table in [&own, &table] {
                let fed = 1 + dice.below(7);
                let other = [text.clone(), dice.tokens(fed)].concat();
                bench.goes_on_like(table, &other, fed);
            }
        }
    }
}

fn a_tree_of_one_branch_is_a_chain_to_the_bit(mut bench: Bench, mut dice: Dice) {
    for (cached, count) in [(0, 5), (3, 12), (17, 20)] {
        let (text, table) = (
            dice.tokens(cached + count),
            bench.table(cached + count, &mut dice),
        );
        let fed = |start: usize, end: usize, rows| Feed {
            tokens: &text[start..end],
            start,
            table: &table,
            rows,
            parents: None,
            scale: 1.0,
        };
        bench.rows(&[fed(0, cached + 1, 0)]);
        let feed = fed(cached, cached + count, count);
        let chain = bench.rows(&[feed]);
        let parents: Vec<u16> = (0..count as u16 - 1).collect();
        let parents = Some(parents.as_slice());
        assert_eq!(bench.rows(&[Feed { parents, ..feed }]), chain, "{}", bench.what);
    }
}

fn what_makes_no_sense_is_refused(mut bench: Bench, mut dice: Dice) {
    let table = bench.table(8, &mut dice);
    let good = Feed {
        tokens: &[1, 2, 3],
        start: 0,
        table: &table,
        rows: 3,
        parents: Some(&[0, 1]),
        scale: 1.0,
    };
    let bad = Feed {
        parents: Some(&[0, 2]),
        ..good
    };
    let is = |found: Result<(), EngineError>, part, number| match found {
        Err(EngineError::Malformed {
            part: found_part,
            number: found_number,
            ..
        }) => assert_eq!((found_part, found_number), (part, number)),
        other => panic!("{other:?}"),
    };
    is(bench.model.forward(&[good, bad]).map(|_| ()), "feed", 1);
    let long = Feed { start: 1000, ..good };
    is(bench.model.forward(&[long]).map(|_| ()), "feed", 0);
    let moves = SlotMoves {
        table: &table,
        start: 3,
        slots: &[2],
    };
    is(bench.model.move_slots(&[moves]), "move", 0);
    let missing = BLOCKS as u32;
    is(bench.model.copy_blocks(&[(0, 1), (0, missing)]), "copy", 1);
    let error = bench.model.forward(&[bad]).unwrap_err();
    let problem = Malformed::Parent { node: 2, parent: 2 };
    assert!(error.to_string().ends_with(&problem.to_string()), "{error}");
    assert_eq!(bench.rows(&[good]).len(), 3, "{}: nothing broke", bench.what);
}

/// Each of these on the processor and on a graphics card, by libtorch, and by the kernels on the processor.
mod on {
    use super::*;
    macro_rules! with_every_bench {
        ($($test:ident),* $(,)?) => {
            mod cpu {
                $(#[test] fn $test() { super::benches(super::Device::Cpu, super::super::$test); })*
            }

            mod gpu {
                $(#[test] fn $test() {
                    if let Some(device) = crate::devices::cuda(concat!(stringify!($test), " on a graphics card")) {
                        super::benches(device, super::super::$test);
                    }
                })*
            }

            $(fn $test(runner: crate::planned::Runner) { super::planned_benches(runner, super::$test); })*

            mod planned {
                crate::planned::by_every_kernel!($($test),*);
            }
        };
    }

    with_every_bench!(
        each_node_sees_its_path_alone,
        an_accepted_path_goes_on_as_text,
        a_fork_leaves_the_other_alone,
        a_tree_of_one_branch_is_a_chain_to_the_bit,
        what_makes_no_sense_is_refused,
    );
}

/// Each of these by the kernels on the processor, and on a card.
mod by {
    crate::planned::by_every_kernel!(
        moves_and_copies_are_one_launch_each,
        moves_that_are_refused_are_made_by_torch,
    );
}
