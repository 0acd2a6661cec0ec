//! Mixtures of experts that are broken on purpose.

use super::{Mutant, mutant};

pub(super) const EXPERTS: &[Mutant] = &[
    mutant(
        "of equal scores the larger number comes first in a warp",
        "(rank == best.rank && expert < best.expert)",
        "(rank == best.rank && expert > best.expert)",
    ),
    mutant(
        "of equal scores the larger number comes first in a lane",
        "ranks[j] > best.rank",
        "ranks[j] >= best.rank",
    ),
    mutant(
        "zeros of two signs differ",
        "f_bits(score + 0.f)",
        "f_bits(score)",
    ),
    mutant(
        "negative scores are ranked by their size",
        "bits >> 31 ? ~bits",
        "bits >> 31 ? bits & 0x7fffffff",
    ),
    mutant(
        "an expert is chosen twice",
        "taken |= 1u << (best.expert >> 5);",
        "taken |= 0u << (best.expert >> 5);",
    ),
    mutant(
        "shares sum to one whatever is asked",
        "if (!a.normalised) {",
        "if (false) {",
    ),
    mutant("shares never sum to one", "if (!a.normalised) {", "if (true) {"),
    mutant("rows of padding go to experts", "a.slots[token] < 0;", "false;"),
    mutant(
        "the order of experts is that of their arrival",
        "a.shares[token * a.chosen + lane] =",
        "a.shares[token * a.chosen + (a.chosen - 1 - lane)] =",
    ),
    mutant(
        "the last chunk of an expert is dropped",
        "return (pairs + CHUNK - 1) / CHUNK;",
        "return pairs / CHUNK;",
    ),
    mutant(
        "an expert without tokens has a chunk",
        "return (pairs + CHUNK - 1) / CHUNK;",
        "return max(pairs + CHUNK - 1, CHUNK) / CHUNK;",
    ),
    mutant(
        "the last chunk of all is dropped",
        "const int items = a.chunks[a.experts] * room.groups;",
        "const int items = (a.chunks[a.experts] - 1) * room.groups;",
    ),
    mutant(
        "experts behind the threads of a block are lost",
        "high < a.experts ? begin_expert(a, counts, high) : 0",
        "0",
    ),
    mutant(
        "pairs are those of the first tile",
        "pairs[i] = a.choices[first + i];",
        "pairs[i] = a.choices[i];",
    ),
    mutant(
        "a pair has the token of another",
        "a.owners[place] = (first + i) / a.chosen;",
        "a.owners[place] = (first + i) % a.tokens;",
    ),
    mutant(
        "the block before the last sorts",
        "if (*ticket != gridDim.x - 1) return;",
        "if (*ticket != (gridDim.x > 1 ? gridDim.x - 2 : 0)) return;",
    ),
    mutant(
        "the count of arrivals is left",
        "if (threadIdx.x == 0) *a.arrived = 0;",
        "",
    ),
    mutant(
        "weights are those of the next expert",
        "(u64)item.expert * a.rows",
        "(u64)((item.expert + 1) % a.experts) * a.rows",
    ),
    mutant(
        "all chunks of an expert are the first",
        "own % count * CHUNK",
        "own % count * 0",
    ),
    mutant(
        "gates let gates through",
        "(row < 16 ? 0 : a.rows / 2 - 16)",
        "(row < 16 ? 0 : -16)",
    ),
    mutant(
        "all pairs of a chunk have the token of the first",
        "UP ? a.owners[pair] : pair",
        "UP ? a.owners[item.pair] : pair",
    ),
    mutant(
        "pairs behind the eighth are left out",
        "item.count > 8, sum",
        "item.count > 16, sum",
    ),
    mutant(
        "the last columns are left out",
        "room.slices = (a.columns + COLUMNS - 1) / COLUMNS;",
        "room.slices = max(a.columns / COLUMNS, 1);",
    ),
    mutant(
        "slices have the columns of the first",
        "to, w + from, bytes, room.full + s);\n            if (lane < rows && !",
        "to, w, bytes, room.full + s);\n            if (lane < rows && !",
    ),
    mutant(
        "halves of a fragment are swapped",
        "multiply(sum[t][0], rows, b[0], b[1]);",
        "multiply(sum[t][0], rows, b[1], b[0]);",
    ),
    mutant(
        "a stage is overwritten before it was read",
        "if (i >= STAGES) barrier_wait(room.empty + s, (i / STAGES - 1) & 1);",
        "",
    ),
    mutant(
        "the wrong phase of a barrier is waited for",
        "barrier_wait(room.full + s, (i / STAGES) & 1);",
        "barrier_wait(room.full + s, (i / STAGES + 1) & 1);",
    ),
    mutant(
        "one of eight warps is lost",
        "for (int q = 0; q < 8; q++) value",
        "for (int q = 0; q < 7; q++) value",
    ),
    mutant(
        "rows behind the last are written",
        "if (first + row >= width) continue;",
        "",
    ),
    mutant(
        "the weight of a token is that of another",
        "a.shares + (u64)blockIdx.y * a.chosen",
        "a.shares + (u64)(blockIdx.y ^ 1) * a.chosen",
    ),
    mutant(
        "the sum does not count what was there",
        "pack(low_half(v.x) + sum[0], high_half(v.x) + sum[1])",
        "pack(sum[0], high_half(v.x) + sum[1])",
    ),
    mutant(
        "the last expert of a token is left out",
        "for (int r = 0; r < a.chosen; r++) {\n        const uint4 v",
        "for (int r = 0; r < a.chosen - 1; r++) {\n        const uint4 v",
    ),
    mutant(
        "rows of padding are summed",
        "|| places[0] < 0) return;",
        ") return;",
    ),
    mutant(
        "lists are read while the kernel ahead writes them",
        "sync_threads();\n    wait_for_grid();\n    room.groups = (a.rows + 31) / 32;\n    room.slices = (a.columns + COLUMNS - 1) / COLUMNS;\n    const int items = a.chunks[a.experts] * room.groups;",
        "sync_threads();\n    const int items = a.chunks[a.experts] * ((a.rows + 31) / 32);\n    wait_for_grid();\n    room.groups = (a.rows + 31) / 32;\n    room.slices = (a.columns + COLUMNS - 1) / COLUMNS;",
    ),
];
