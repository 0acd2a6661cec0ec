//! Draws of the kernels against the library's law, bit for bit.

use crate::logits::{OUT, Rows};
use crate::memory::Chance;
use crate::processor::{self, Processor};
use lexiform_kernels::draw::DrawnRow;
use lexiform_kernels::shapes::DRAWN_BYTES;

const SOURCE: &str = "draw.cu";

/// Draws on the processor, and compares.
fn compare(processor: &Processor, rows: &Rows) -> Result<usize, Vec<String>> {
    let (nodes, mut buffers) = rows.launches();
    let logits = buffers[0].clone();
    if let Err(fault) = processor.run(&nodes, &mut buffers) {
        return Err(vec![fault]);
    }
    if buffers[0] != logits {
        return Err(vec!["the rows were changed".to_owned()]);
    }
    let (wrong, left) = rows.compare(&buffers[OUT]);
    if wrong.is_empty() { Ok(left) } else { Err(wrong) }
}

/// Rows that every mutant is tried on.
pub(crate) fn faults(processor: &Processor) -> Vec<String> {
    let mut chance = Chance::new(3);
    let sizes = [(5000, 60), (70, 120), (31, 60), (4096, 14)];
    let mut faults = Vec::new();
    for (width, count) in sizes {
        let found = compare(processor, &Rows::random(width, count, &mut chance));
        faults.extend(found.err().unwrap_or_default());
    }
    faults
}

#[test]
fn draws_are_those_of_the_library_to_the_last_bit() {
    if !processor::is_there("draws_are_those_of_the_library_to_the_last_bit") {
        return;
    }
    let processor = Processor::of(SOURCE);
    let mut chance = Chance::new(1);
    let sizes = [
        (1, 100),
        (31, 3000),
        (33, 3000),
        (70, 1500),
        (2048, 1200),
        (2049, 1200),
        (5000, 400),
        (20_011, 60),
        (128_256, 14),
        (262_144, 2),
    ];
    let (mut rows, mut left) = (0, 0);
    for (width, count) in sizes {
        let random = Rows::random(width, count, &mut chance);
        match compare(&processor, &random) {
            Ok(count) => left += count,
            Err(wrong) => panic!("{} rows: {}", wrong.len(), wrong[0]),
        }
        rows += count;
    }
    assert!(
        rows > 10_000 && left > 0 && left < rows / 3,
        "{rows} rows, {left} left"
    );
}

#[test]
fn rows_that_are_no_law_are_left_to_the_host() {
    if !processor::is_there("rows_that_are_no_law_are_left_to_the_host") {
        return;
    }
    let mut rows = Rows::random(70, 4, &mut Chance::new(2));
    rows.logits[3] = f32::NAN;
    rows.logits[70 + 69] = f32::INFINITY;
    rows.logits[140..210].fill(f32::NEG_INFINITY);
    // What is not a number is masked, and yet the row is no law.
    rows.masks[1] = vec![1; 3];
    rows.mask_of = vec![None, Some(1), None, None];
    let (nodes, mut buffers) = rows.launches();
    Processor::of(SOURCE).run(&nodes, &mut buffers).unwrap();
    let bytes = buffers[OUT].bytes();
    let found = bytes.as_chunks::<DRAWN_BYTES>().0;
    let is_drawn: Vec<bool> = found.iter().map(|row| DrawnRow::read(row).is_drawn).collect();
    assert_eq!(is_drawn, [false, false, false, true]);
}

/// Wherever what is not a number stands, whatever is asked of the row, the other rows of the launch are drawn
/// from.
#[test]
fn rows_among_which_some_are_no_law_are_those_of_the_library() {
    if !processor::is_there("rows_among_which_some_are_no_law_are_those_of_the_library") {
        return;
    }
    let mut chance = Chance::new(4);
    for (width, count) in [(1, 60), (40, 600), (3000, 120)] {
        let mut rows = Rows::random(width, count, &mut chance);
        rows.break_some(&mut chance);
        let left = compare(&Processor::of(SOURCE), &rows).unwrap_or_else(|wrong| panic!("{}", wrong[0]));
        assert!(left >= count / 3 && left < count, "{left} of {count}");
    }
}
