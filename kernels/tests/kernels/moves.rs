//! Stretches moved by the kernel against a gathering of all of them before any is written.

use crate::memory::{Chance, Memory};
use crate::processor::{self, Processor};
use lexiform_kernels::moves::Sent;
use lexiform_kernels::node::Place;

const SLOTS: usize = 96;

/// Moves of a text's nodes: slots that ascend, none before the place of the first; some stay where they are.
fn run(first: usize, chance: &mut Chance) -> Vec<(usize, usize)> {
    let (mut moves, mut free) = (Vec::new(), first);
    for to in first..first + 1 + chance.below(9) {
        free += chance.below(3);
        moves.push((free, to));
        free += 1;
    }
    moves.retain(|(from, to)| from != to);
    moves
}

/// What a cache must hold afterwards.
fn moved(before: &[u8], runs: &[Vec<(usize, usize)>], stretch: usize) -> Vec<u8> {
    let mut after = before.to_vec();
    for &(from, to) in runs.iter().flatten() {
        let read = &before[from * stretch..][..stretch];
        after[to * stretch..][..stretch].copy_from_slice(read);
    }
    after
}

/// The faults of moves in two caches of each of three layers, in stretches of so many bytes.
fn fault(
    processor: &Processor,
    runs: &[Vec<(usize, usize)>],
    stretch: usize,
    chance: &mut Chance,
) -> Option<String> {
    let bytes = |chance: &mut Chance| (0..SLOTS * stretch).map(|_| chance.bits() as u8).collect();
    let before: Vec<Vec<u8>> = (0..6).map(|_| bytes(chance)).collect();
    let mut caches: Vec<Memory> = before.iter().map(|bytes| Memory::of_bytes(bytes)).collect();
    let addresses: Vec<u64> = caches.iter_mut().map(Memory::address).collect();
    if let Some(sent) = Sent::new(&addresses, runs) {
        let node = sent.node(&Place::start(0), stretch);
        let fault = processor.run(&[node], &mut [Memory::of_bytes(&sent.bytes)]);
        if let Err(fault) = fault {
            return Some(fault);
        }
    }
    let is_wrong = |(cache, before): (&Memory, &Vec<u8>)| cache.bytes() != moved(before, runs, stretch);
    let wrong = caches.iter().zip(&before).position(is_wrong);
    wrong.map(|cache| format!("cache {cache} after {runs:?} of {stretch} bytes"))
}

/// Nodes of three texts, each with slots of its own, and blocks that are copied.
pub(crate) fn faults(processor: &Processor) -> Vec<String> {
    let chance = &mut Chance::new(6);
    let mut faults = Vec::new();
    for stretch in [16, 128, 1024, 4096] {
        for _ in 0..6 {
            let runs: Vec<_> = [0, 32, 64].iter().map(|&first| run(first, chance)).collect();
            faults.extend(fault(processor, &runs, stretch, chance));
        }
        let copies: Vec<_> = [(3, 40), (3, 41), (90, 0), (17, 95)]
            .map(|pair| vec![pair])
            .to_vec();
        faults.extend(fault(processor, &copies, stretch, chance));
    }
    faults.extend(fault(processor, &[Vec::new()], 64, chance));
    faults
}

#[test]
fn what_moves_is_what_was_gathered() {
    if processor::is_there("what_moves_is_what_was_gathered") {
        let faults = faults(&Processor::of("small.cu"));
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
