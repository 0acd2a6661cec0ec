//! Sources that are broken on purpose: each must be noticed by the cases of its source.
//!
//! A mutant is a piece of text, which stands in its source once, and what takes its place. One that nothing
//! notices means that the cases do not hold what the piece is for. Barriers that only keep threads apart in
//! time are not among them: the fibers of the processor take turns in one order, which hides races.

mod experts;

use crate::processor::{self, Processor, text_of};
use crate::{cases, draws, faults, moves};

/// What is replaced in a source, and by what.
pub(crate) struct Mutant {
    pub(crate) what: &'static str,
    from: &'static str,
    to: &'static str,
}

pub(crate) const fn mutant(what: &'static str, from: &'static str, to: &'static str) -> Mutant {
    Mutant { what, from, to }
}

const ATTEND: &[Mutant] = &[
    mutant(
        "slots behind a text are copied",
        "const bool real = block * 16 + row < j.total;",
        "const bool real = true;",
    ),
    mutant(
        "sums do not shrink when a larger score comes",
        "r.out[n][2 * e] *= shrink;",
        "",
    ),
    mutant(
        "masses do not shrink when a larger score comes",
        "r.sum[e] *= shrink;",
        "",
    ),
    mutant(
        "a token sees all fed tokens",
        "(r.sees[e] >> (fed & 31) & 1)",
        "true",
    ),
    mutant(
        "the window is that of slots",
        "a.positions[j.first + fed] > r.oldest[e]",
        "slot > r.oldest[e]",
    ),
    mutant(
        "the window does not hold for the cached text",
        "if (fed < 0) return slot > r.oldest[e];",
        "if (fed < 0) return true;",
    ),
    mutant(
        "halves of a fragment are swapped",
        "multiply(s[0], r.query[i], b[0], b[1]);",
        "multiply(s[0], r.query[i], b[1], b[0]);",
    ),
    mutant(
        "values are not turned",
        "load_matrices_turned(b, values",
        "load_matrices(b, values",
    ),
    mutant(
        "rows of chunks are swapped differently for writing",
        "copy16(stage + swizzled<D>(row, chunk), a.keys + at, real);",
        "copy16(stage + row * D + chunk * 8, a.keys + at, real);",
    ),
    mutant(
        "warps that share rows are not merged",
        "merge<D>(own + row * PITCH, j.stride,",
        "merge<D>(own + row * PITCH, 1,",
    ),
    mutant(
        "the last split is lost",
        "merge<D>(parts + row * (D + 2), j.used,",
        "merge<D>(parts + row * (D + 2), j.used - 1,",
    ),
    mutant(
        "the block before the last merges the splits",
        "if (*ticket != j.used - 1) return;",
        "if (*ticket != j.used - 2) return;",
    ),
    mutant(
        "the count of arrivals is left",
        "if (threadIdx.x == 0) *arrived = 0;",
        "",
    ),
    mutant(
        "a stage is fetched too late",
        "fetch_block<D>(a, j, ring + (stage + STAGES - 1) % STAGES * 2 * TILE, next);",
        "fetch_block<D>(a, j, ring + stage * 2 * TILE, next);",
    ),
    mutant(
        "lengths are read while the kernel ahead writes them",
        "wait_for_grid();\n    const Job j = job_of<D>(a);",
        "const Job j = job_of<D>(a);\n    wait_for_grid();",
    ),
    mutant(
        "a block table is read for another sequence",
        "(u64)j.sequence * a.table_width + block",
        "(u64)block",
    ),
];

const GEMV: &[Mutant] = &[
    mutant(
        "the wrong phase of a barrier is waited for",
        "barrier_wait(ring.full + s, (i / R::STAGES) & 1);",
        "barrier_wait(ring.full + s, (i / R::STAGES + 1) & 1);",
    ),
    mutant(
        "a stage is overwritten before it was read",
        "if (i >= STAGES) barrier_wait(ring.empty + s, (i / STAGES - 1) & 1);",
        "",
    ),
    mutant(
        "the last rows of a block are lost",
        "ring.steps = (ring.count + R::ROWS - 1) / R::ROWS;",
        "ring.steps = ring.count / R::ROWS;",
    ),
    mutant(
        "halves of a word are swapped",
        "fma_(w[2 * e], low_half(x.at[m][c][e]), fma_(w[2 * e + 1], high_half",
        "fma_(w[2 * e + 1], low_half(x.at[m][c][e]), fma_(w[2 * e], high_half",
    ),
    mutant(
        "the norm is that of one warp's columns",
        "square += squares[m * 8 + warp / WARPS * WARPS + w];",
        "square += squares[m * 8 + warp];",
    ),
    mutant(
        "nothing is added to the mean of squares, nor the mean taken",
        "rsqrt_(square / K + a.eps)",
        "rsqrt_(square)",
    ),
    mutant(
        "the sum does not count what was there",
        "END == ADD ? widen(((bf16*)a.out)[place]) : 0.f",
        "0.f",
    ),
    mutant(
        "gates are let through gates",
        "sums, 2 * row + 1, width",
        "sums, 2 * row, width",
    ),
    mutant(
        "all gates let the first rows through",
        "(a.rows / 2 + gate) * ROW",
        "(u64)(a.rows / 2) * ROW",
    ),
    mutant(
        "a gate lies beside what it lets through",
        "place % HALF * 2 + place / HALF",
        "place",
    ),
    mutant(
        "the first rows are taken for those that are wanted",
        "END == WIDE && a.wanted ? a.wanted[m] : m",
        "m",
    ),
    mutant(
        "rows that are not wanted are written",
        "if (row_of<END>(a, m) < 0) continue;",
        "",
    ),
    mutant(
        "norms of rows that are not wanted are written",
        "if (row_of<WIDE>(a, m) < 0) continue;",
        "",
    ),
    mutant(
        "half of a norm is written",
        "a.normed && blockIdx.x == 0 && warp < WARPS",
        "a.normed && blockIdx.x == 0 && warp < 1",
    ),
    mutant(
        "vectors are read while the kernel ahead writes them",
        "const int column = warp % WARPS * (K / WARPS) + lane * 8;\n        wait_for_grid();",
        "const int column = warp % WARPS * (K / WARPS) + lane * 8;",
    ),
    mutant(
        "a warp does not say that it has read",
        "if (lane == 0) barrier_arrive(ring.empty + s);",
        "",
    ),
];

const SKINNY: &[Mutant] = &[
    mutant(
        "zeros take the place of vectors",
        ", row < a.m);",
        ", row >= a.m);",
    ),
    mutant(
        "the second half of a stage's columns is multiplied by the first",
        "multiply(sum[t], right, b[2], b[3]);",
        "multiply(sum[t], right, b[0], b[1]);",
    ),
    mutant(
        "one of eight warps is lost",
        "for (int q = 0; q < 8; q++) value",
        "for (int q = 0; q < 7; q++) value",
    ),
    mutant(
        "a slice of the columns is multiplied by the first of x",
        "slice * R::COLUMNS + column",
        "column",
    ),
    mutant(
        "wide rows are written as narrow ones",
        "if (a.end == WIDE) {",
        "if (a.end > WIDE) {",
    ),
    mutant(
        "every product is added to what was there",
        "a.end == ADD ?",
        "a.end != WIDE ?",
    ),
    mutant(
        "vectors are read while the kernel ahead writes them",
        "wait_for_grid();\n    load_x",
        "load_x",
    ),
];

const SMALL: &[Mutant] = &[
    mutant(
        "the first draw is taken for a token of the host",
        "if (token < 0) a.tokens[t]",
        "if (token < -1) a.tokens[t]",
    ),
    mutant(
        "the token of the draw before is taken",
        "a.drawn[(-1 - token) * 14 + 10]",
        "a.drawn[(-token) * 14 + 10]",
    ),
    mutant(
        "tokens behind the pass are taken too",
        "t < a.count ? a.tokens[t] : 0",
        "t <= a.count ? a.tokens[t] : 0",
    ),
    mutant(
        "queries of padding are stored",
        "if (slot < 0) return;",
        "if (slot < 0 && head >= a.heads) return;",
    ),
    mutant(
        "values are turned",
        "is_value ? 1.f : a.cosines[pair], s = is_value ? 0.f : a.sines[pair]",
        "a.cosines[pair], s = a.sines[pair]",
    ),
    mutant(
        "turns are those of the other way",
        "narrow(far[i] * c + near[i] * s)",
        "narrow(far[i] * c - near[i] * s)",
    ),
    mutant(
        "rows that are not wanted are normed",
        "if (row < 0) { release_next_grid(); return; }",
        "",
    ),
    mutant(
        "wanted rows are taken in order",
        "a.rows ? a.rows[blockIdx.x] : (int)blockIdx.x",
        "(int)blockIdx.x",
    ),
    mutant(
        "a norm misses the last of eight warps",
        "for (int w = 0; w < 8; w++) square",
        "for (int w = 0; w < 7; w++) square",
    ),
    mutant(
        "tokens are read while the kernel ahead writes them",
        "wait_for_grid();\n    const uint4* from = (const uint4*)(a.table + (u64)a.tokens[blockIdx.x] * a.width);",
        "const uint4* from = (const uint4*)(a.table + (u64)a.tokens[blockIdx.x] * a.width);\n    wait_for_grid();",
    ),
    mutant(
        "a block does not wait for the kernel ahead",
        "wait_for_grid();\n    release_next_grid();\n    if (at >= a.width) return;",
        "release_next_grid();\n    if (at >= a.width) return;",
    ),
    mutant("the gate is not closed", "x / (1.f + exp_(-x))", "x"),
    mutant(
        "what a run moves is written before the others of a batch are read",
        "if (first + i < end) held[i] = rows[(u64)a.moves[2 * (first + i)] * a.chunks];",
        "if (first + i < end) held[i] = rows[(u64)a.moves[2 * (end - 1 - i)] * a.chunks];",
    ),
    mutant(
        "the last move of a run is lost",
        "const int end = a.firsts[blockIdx.z + 1];",
        "const int end = a.firsts[blockIdx.z + 1] - 1;",
    ),
    mutant(
        "keys alone are moved",
        "(uint4*)a.caches[blockIdx.y] + chunk",
        "(uint4*)a.caches[blockIdx.y & ~1] + chunk",
    ),
    mutant(
        "heads are normed by one half",
        "fma_(near[i], near[i], fma_(far[i], far[i], square))",
        "fma_(near[i], near[i], square)",
    ),
];

const DRAW: &[Mutant] = &[
    mutant(
        "a multiplication and an addition are fused in the exponential",
        "sum = add(mul(sum, f), terms[i]);",
        "sum = fma(sum, f, terms[i]);",
    ),
    mutant(
        "the polynomial of the exponential ends one term early",
        "{1.0 / 39916800.0,",
        "{0.0,",
    ),
    mutant(
        "blocks are summed in a chain, without groups",
        "#define GROUP_BLOCKS 64",
        "#define GROUP_BLOCKS 32",
    ),
    mutant(
        "a choice has another purpose",
        "PURPOSE_GROUP = 9",
        "PURPOSE_GROUP = 2",
    ),
    mutant(
        "all sequences of a seed draw alike",
        "{place[0], place[1], place[2], purpose << 24}",
        "{place[0], place[1], 0, purpose << 24}",
    ),
    mutant("masks are ignored in the sums", "is_allowed ? w : 0.0", "w"),
    mutant("one round of Philox is left out", "i < 10", "i < 9"),
    mutant(
        "the others are the sum less the token",
        "add(sum_without(w, block), inside)",
        "add(w.kept, -drawn.weight)",
    ),
    mutant(
        "a block is turned into a lane of its neighbour",
        "const double w = weight_of(logit, peak, k.scale);",
        "const double w = weight_of(turned[(lane ^ 1) * 33 + t], peak, k.scale);",
    ),
    mutant(
        "the most likely of all tokens is taken",
        "if (is_allowed && is_number(logit)) best",
        "if (is_number(logit)) best",
    ),
    mutant(
        "of equal logits the last is the first",
        "(u32)~token; }\nDEV int token_of(u64 rank) { return (int)~(u32)rank; }",
        "(u32)token; }\nDEV int token_of(u64 rank) { return (int)(u32)rank; }",
    ),
    mutant(
        "drafted tokens are not counted",
        "count_tokens(a, k.draft, k.draft_end, first, seen);",
        "",
    ),
    mutant(
        "the prompt counts as the answer",
        "seen[at] = OF_PROMPT;",
        "seen[at] = 1;",
    ),
    mutant(
        "negative logits are divided",
        "logit > 0.f ? div_f(logit, k.repetition) : mul_f(logit, k.repetition)",
        "div_f(logit, k.repetition)",
    ),
    mutant(
        "penalties are subtracted one after the other",
        "add_f(logit, -add_f(mul_f(k.frequency, (float)count), k.presence))",
        "add_f(add_f(logit, -mul_f(k.frequency, (float)count)), -k.presence)",
    ),
    mutant(
        "a token has one bias",
        "for (u32 b = i; b < k.bias_end &&",
        "for (u32 b = i; b < i + 1 &&",
    ),
    mutant(
        "a mass loses what does not fit a word",
        "(u32)(mass >> 32) + (before + low < before)",
        "(u32)(mass >> 32)",
    ),
    mutant("top-k counts masses", "k.top_k, true)", "k.top_k, false)"),
    mutant(
        "top-p is of the mask, not of what top-k left",
        "k.top_k ? (double)reached.mass : mul(sum, c.masses.unit)",
        "mul(sum, c.masses.unit)",
    ),
    mutant(
        "min-p is relative to the row",
        "mul(k.min_p, weight_of(c.masses.best, c.masses.peak, k.scale))",
        "k.min_p",
    ),
    mutant(
        "the last part is kept whole",
        "if (shift == 0 || inside == 1) return",
        "if (true) return",
    ),
    mutant(
        "blocks whose best token is the last that is kept are lost",
        "top >= (u32)(reached.rank >> 32)",
        "top > (u32)(reached.rank >> 32)",
    ),
    mutant(
        "a filter cuts blocks, and not their tokens",
        "|| rank_of(r.logits[at], at) < bound.rank",
        "",
    ),
    mutant(
        "tokens that are too light are drawn",
        "return own >= bound.weight ? own : 0.0;",
        "return own;",
    ),
];

fn check(source: &'static str, mutants: &[Mutant]) {
    if processor::is_there("mutants") {
        let unnoticed = mutants
            .iter()
            .filter(|mutant| !is_noticed(source, source, mutant));
        let unnoticed: Vec<&str> = unnoticed.map(|mutant| mutant.what).collect();
        assert!(
            unnoticed.is_empty(),
            "{source}: nothing notices that {unnoticed:#?}"
        );
    }
}

/// Whether the cases of a source notice what is broken in a file that it is made of.
pub(crate) fn is_noticed(source: &'static str, file: &str, Mutant { what, from, to }: &Mutant) -> bool {
    let text = text_of(file);
    assert_eq!(text.matches(from).count(), 1, "{file}, {what}: {from}");
    let broken = Processor::compile_with(source, (file, &text.replace(from, to)));
    let broken = broken.unwrap_or_else(|error| panic!("{what} does not compile: {error}"));
    match source {
        "draw.cu" => !draws::faults(&broken).is_empty(),
        "small.cu" if !moves::faults(&broken).is_empty() => true,
        _ => cases::of(source)
            .iter()
            .any(|case| !faults(case, &broken).is_empty()),
    }
}

#[test]
fn broken_attention_is_noticed() {
    check("attend.cu", ATTEND);
}

#[test]
fn broken_products_for_one_and_two_vectors_are_noticed() {
    check("gemv.cu", GEMV);
}

#[test]
fn broken_products_for_up_to_sixteen_vectors_are_noticed() {
    check("skinny.cu", SKINNY);
}

#[test]
fn broken_experts_are_noticed() {
    check("experts.cu", experts::EXPERTS);
}

#[test]
fn broken_steps_between_products_are_noticed() {
    check("small.cu", SMALL);
}

#[test]
fn broken_draws_are_noticed() {
    assert!(!processor::is_there("mutants") || draws::faults(&Processor::of("draw.cu")).is_empty());
    check("draw.cu", DRAW);
}
