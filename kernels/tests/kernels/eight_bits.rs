//! Kernels of weights in eight bits that are broken on purpose, in one of the files that their sources are
//! made of.

use crate::mutants::{Mutant, is_noticed, mutant};
use crate::processor;

/// What is broken in a file that a source is made of: the source, the file, and what in it.
type Within = (&'static str, &'static str, Mutant);

/// What matters for weights in eight bits alone.
const MUTANTS: &[Within] = &[
    (
        "gemv_int8.cu",
        "gemv.cu",
        mutant(
            "a sum has no scale",
            "W::IS_SCALED ? value * a.scales[of] : value",
            "value",
        ),
    ),
    (
        "gemv_fp8.cu",
        "gemv.cu",
        mutant(
            "a sum is scaled twice",
            "value * a.scales[of]",
            "value * a.scales[of] * a.scales[of]",
        ),
    ),
    (
        "gemv_fp8.cu",
        "gemv.cu",
        mutant(
            "a block takes the scales of the first",
            "value * a.scales[of]",
            "value * a.scales[row]",
        ),
    ),
    (
        "gemv_int8.cu",
        "gemv.cu",
        mutant(
            "what gates let through has the scales of gates",
            "2 * row + 1, width + at + row, m",
            "2 * row + 1, at + row, m",
        ),
    ),
    (
        "gemv_int8.cu",
        "device.h",
        mutant(
            "the sign of whole numbers is lost",
            "word ^ 0x80808080u",
            "word | 0x80808080u",
        ),
    ),
    (
        "gemv_int8.cu",
        "device.h",
        mutant("whole numbers are off by one", "- 8388736.f", "- 8388735.f"),
    ),
    (
        "gemv_fp8.cu",
        "simt.h",
        mutant(
            "subnormal numbers are zeros",
            "ldexpf(exponent ? 8 + fraction : fraction,",
            "ldexpf(exponent ? 8 + fraction : 0,",
        ),
    ),
    (
        "gemv_fp8.cu",
        "simt.h",
        mutant(
            "subnormal numbers have the exponent of their bits",
            "max(exponent, 1) - 10",
            "exponent - 10",
        ),
    ),
    (
        "gemv_fp8.cu",
        "simt.h",
        mutant(
            "the negative zero is no number",
            "exponent == 15 && fraction == 7 ?",
            "bits == 0x80 ?",
        ),
    ),
    (
        "skinny_fp8.cu",
        "simt.h",
        mutant("the sign is lost", "bits & 0x80 ? -size : size", "size"),
    ),
    (
        "skinny_int8.cu",
        "skinny.cu",
        mutant(
            "a sum has no scale",
            "if (W::IS_SCALED) value *= a.scales[of];",
            "",
        ),
    ),
    (
        "skinny_fp8.cu",
        "skinny.cu",
        mutant(
            "all groups have the scales of the first",
            "value *= a.scales[of]",
            "value *= a.scales[row]",
        ),
    ),
    (
        "skinny_int8.cu",
        "skinny.cu",
        mutant(
            "weights and vectors are in another order",
            "column + (lane & 3) * 8);\n        b[0]",
            "column + (lane & 3 ^ 1) * 8);\n        b[0]",
        ),
    ),
    (
        "skinny_fp8.cu",
        "skinny.cu",
        mutant("the last eight rows are the first", "w + below * 8 * PITCH", "w"),
    ),
    (
        "skinny_int8.cu",
        "skinny.cu",
        mutant(
            "rows are as long as what is multiplied of them",
            "(u64)row * a.stride * BYTES",
            "(u64)row * K * BYTES",
        ),
    ),
    (
        "skinny_int8.cu",
        "device.h",
        mutant("halves are packed the other way", "0x7632", "0x3276"),
    ),
    (
        "small.cu",
        "small.cu",
        mutant(
            "numbers are widened with the scale of another row",
            "a.scales[chunk / (a.width / 8)]",
            "a.scales[chunk % a.rows]",
        ),
    ),
    (
        "small.cu",
        "small.cu",
        mutant(
            "what is widened is written while the kernel ahead reads",
            "    wait_for_grid();\n    release_next_grid();\n#pragma unroll\n    for (int i = 0; i < 4; i++) {\n        const u32 chunk",
            "    release_next_grid();\n#pragma unroll\n    for (int i = 0; i < 4; i++) {\n        const u32 chunk",
        ),
    ),
];

#[test]
fn broken_products_of_eight_bits_are_noticed() {
    if processor::is_there("mutants") {
        let unnoticed = MUTANTS
            .iter()
            .filter(|(source, file, mutant)| !is_noticed(source, file, mutant));
        let unnoticed: Vec<&str> = unnoticed.map(|(_, _, mutant)| mutant.what).collect();
        assert!(unnoticed.is_empty(), "nothing notices that {unnoticed:#?}");
    }
}
