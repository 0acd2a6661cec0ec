//! Draws of the kernels against the library's law, bit for bit.

use crate::logits::{OUT, Rows};
use crate::memory::Chance;
use crate::processor::{self, Processor};
use lexiform_engine::kernels::draw::DrawnRow;
use lexiform_engine::kernels::shapes::DRAWN_BYTES;

const SOURCE: &str = "draw.cu";
/// Draws on the processor, and compares.
fn compare(processor: &Processor, rows: &Rows) -> Result<usize, Vec<String>> {
    let (draw, mut buffers) = rows.draw();
    if let Err(fault) = processor.run(&draw.nodes(), &mut buffers) {
        return Err(vec![fault]);
    }
    let (wrong, left) = rows.compare(&buffers[OUT]);
    if wrong.is_empty() { Ok(left) } else { Err(wrong) }
}

/// Rows that every mutant is tried on.
pub(crate) fn faults(processor: &Processor) -> Vec<String> {
    let mut chance = Chance::new(3);
    let sizes = [(5000, 30), (70, 60), (31, 30), (4096, 14)];
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
    let (draw, mut buffers) = rows.draw();
    Processor::of(SOURCE).run(&draw.nodes(), &mut buffers).unwrap();
    let bytes = buffers[OUT].bytes();
    let rows = bytes.as_chunks::<DRAWN_BYTES>().0;
    let is_drawn: Vec<bool> = rows.iter().map(|row| DrawnRow::read(row).is_drawn).collect();
    assert_eq!(is_drawn, [false, false, false, true]);
}
