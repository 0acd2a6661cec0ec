// What lies between the products of a layer: embedding, norms, turning and storing, the gate; tokens that a draw brings; weights of
// eight bits in bf16; and moves in the cache.
//
// Each kernel reads and writes a few kilobytes a token; its time is that of its launch. Rows are tokens of the pass. The
// numbers of a row are read 16 bytes at a time, so widths are multiples of 8.
#include "device.h"

// embed_rows: out[t] = table[tokens[t]].
// grid (tokens), 256 threads; no shared memory.
struct Embed {
    const bf16* table;    // [vocabulary, width]
    const int* tokens;    // [tokens]
    bf16* out;            // [tokens, width]
    int width;
};
KERNEL(embed_rows, Embed, 256) {
    wait_for_grid();
    const uint4* from = (const uint4*)(a.table + (u64)a.tokens[blockIdx.x] * a.width);
    uint4* to = (uint4*)(a.out + (u64)blockIdx.x * a.width);
    release_next_grid();
    for (int i = threadIdx.x; i < a.width / 8; i += 256) to[i] = from[i];
}

// take_drawn: a token of the pass that is below 0 becomes the one that draw −1 − token brings: in the draw's out (draw.cu), 14 words a row
// of which word 10 is the token, 0 where the row has to be looked at.
// grid (1), 128 threads, a token each; no shared memory.
struct Take {
    const u32* drawn;     // [draws, 14]
    int* tokens;          // [count]
    int count;            // to 128
};
KERNEL(take_drawn, Take, 128) {
    wait_for_grid();
    const int t = threadIdx.x;
    const int token = t < a.count ? a.tokens[t] : 0;
    if (token < 0) a.tokens[t] = (int)a.drawn[(-1 - token) * 14 + 10];
    release_next_grid();
}

// norm_rows: out[i] = x[r] / rms(x[r]) · scale, where r is i, or rows[i] where there are such; nothing for a row below 0.
// RMSNorm (arXiv 1910.07467) in f32, rounded once. grid (rows), 256 threads, each up to 4 × 8 numbers: widths to 8192.
// shared 32 bytes: a sum for each warp.
struct Norm {
    const bf16* x;        // [tokens, width]
    const bf16* scale;    // [width]
    bf16* out;            // [rows, width]
    const int* rows;      // [rows], or none
    int width;
    float eps;
};
DEV float square_of(const u32* v, float sum) {
#pragma unroll
    for (int e = 0; e < 4; e++) {
        const float l = low_half(v[e]), h = high_half(v[e]);
        sum = fma_(l, l, fma_(h, h, sum));
    }
    return sum;
}
KERNEL(norm_rows, Norm, 256) {
    DYNAMIC_SHARED(memory);
    float* squares = (float*)memory;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    wait_for_grid();
    const int row = a.rows ? a.rows[blockIdx.x] : (int)blockIdx.x;
    if (row < 0) { release_next_grid(); return; }
    const bf16* x = a.x + (u64)row * a.width;
    u32 v[4][4];
    float square = 0.f;
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const int at = (c * 256 + threadIdx.x) * 8;
        if (at < a.width) {
            const uint4 q = *(const uint4*)(x + at);
            v[c][0] = q.x; v[c][1] = q.y; v[c][2] = q.z; v[c][3] = q.w;
            square = square_of(v[c], square);
        }
    }
#pragma unroll
    for (int s = 16; s; s >>= 1) square += shuffle_xor(square, s);
    if (lane == 0) squares[warp] = square;
    release_next_grid();
    sync_threads();
    square = 0.f;
#pragma unroll
    for (int w = 0; w < 8; w++) square += squares[w];
    const float factor = rsqrt_(square / a.width + a.eps);
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const int at = (c * 256 + threadIdx.x) * 8;
        if (at < a.width) {
            const uint4 q = *(const uint4*)(a.scale + at);
            const u32 scale[4] = {q.x, q.y, q.z, q.w};
            u32 r[4];
#pragma unroll
            for (int e = 0; e < 4; e++)
                r[e] = pack(low_half(v[c][e]) * factor * low_half(scale[e]), high_half(v[c][e]) * factor * high_half(scale[e]));
            uint4 y;
            y.x = r[0]; y.y = r[1]; y.z = r[2]; y.w = r[3];
            *(uint4*)(a.out + (u64)blockIdx.x * a.width + at) = y;
        }
    }
}

// turn_D: turns queries and keys by their positions (after a norm of each head, where there are scales), and stores keys and
// values in their slots. Rotary positions (arXiv 2104.09864), halves as in Llama.
// grid (tokens, all heads), one warp; lane i holds the pairs (i, i + D/2). A slot below 0 is padding: nothing is written.
struct Turn {
    const bf16* rows;       // [tokens, (heads + 2 key heads) * D]: queries, keys, values
    bf16* queries;          // [tokens, heads * D]
    bf16* keys;             // [slots, key heads * D]
    bf16* values;           // [slots, key heads * D]
    const float* cosines;   // [positions, D / 2]
    const float* sines;     // [positions, D / 2]
    const bf16* scales;     // [heads + key heads, D], or none
    const int* positions;   // [tokens]
    const int* slots;       // [tokens]
    int heads, key_heads;
    float eps;
};
template <int D> DEV bf16* place_of(const Turn& a, int token, int head, int slot) {
    const int key = head - a.heads, value = key - a.key_heads;
    if (value >= 0) return a.values + ((u64)slot * a.key_heads + value) * D;
    if (key >= 0) return a.keys + ((u64)slot * a.key_heads + key) * D;
    return a.queries + ((u64)token * a.heads + head) * D;
}
template <int D> DEV void norm_head(const Turn& a, int head, float* near, float* far) {
    float square = 0.f;
#pragma unroll
    for (int i = 0; i < D / 64; i++) square = fma_(near[i], near[i], fma_(far[i], far[i], square));
#pragma unroll
    for (int s = 16; s; s >>= 1) square += shuffle_xor(square, s);
    const float factor = rsqrt_(square / D + a.eps);
    const bf16* scale = a.scales + head * D + threadIdx.x;
#pragma unroll
    for (int i = 0; i < D / 64; i++) {
        near[i] = widen(narrow(near[i] * factor)) * widen(scale[32 * i]);
        far[i] = widen(narrow(far[i] * factor)) * widen(scale[D / 2 + 32 * i]);
    }
}
template <int D> DEV void turn(const Turn& a) {
    const int token = blockIdx.x, head = blockIdx.y, lane = threadIdx.x, H = D / 64;
    wait_for_grid();
    const bf16* row = a.rows + ((u64)token * (a.heads + 2 * a.key_heads) + head) * D;
    const int slot = a.slots[token], position = a.positions[token];
    const bool is_value = head >= a.heads + a.key_heads;
    float near[H], far[H];
#pragma unroll
    for (int i = 0; i < H; i++) { near[i] = widen(row[lane + 32 * i]); far[i] = widen(row[D / 2 + lane + 32 * i]); }
    release_next_grid();
    if (a.scales && !is_value) norm_head<D>(a, head, near, far);
    if (slot < 0) return;
    bf16* to = place_of<D>(a, token, head, slot);
#pragma unroll
    for (int i = 0; i < H; i++) {
        const int pair = position * (D / 2) + lane + 32 * i;
        const float c = is_value ? 1.f : a.cosines[pair], s = is_value ? 0.f : a.sines[pair];
        to[lane + 32 * i] = narrow(near[i] * c - far[i] * s);
        to[D / 2 + lane + 32 * i] = narrow(far[i] * c + near[i] * s);
    }
}
KERNEL(turn_64, Turn, 32) { turn<64>(a); }
KERNEL(turn_128, Turn, 32) { turn<128>(a); }

// gate_rows: out = silu(gate) · up (arXiv 2002.05202). The gates of a row lie before what they let through.
// grid (⌈width / 2048⌉, tokens), 256 threads, 8 numbers each; each of the steps rounds to bf16, as torch's do.
struct Gate {
    const bf16* rows;     // [tokens, 2 * width]
    bf16* out;            // [tokens, width]
    int width;
};
DEV float silu(float x) { return widen(narrow(x / (1.f + exp_(-x)))); }
KERNEL(gate_rows, Gate, 256) {
    const int at = (blockIdx.x * 256 + threadIdx.x) * 8;
    wait_for_grid();
    release_next_grid();
    if (at >= a.width) return;
    const bf16* row = a.rows + (u64)blockIdx.y * 2 * a.width + at;
    const uint4 g = *(const uint4*)row, u = *(const uint4*)(row + a.width);
    const u32 gates[4] = {g.x, g.y, g.z, g.w}, ups[4] = {u.x, u.y, u.z, u.w};
    u32 r[4];
#pragma unroll
    for (int e = 0; e < 4; e++)
        r[e] = pack(silu(low_half(gates[e])) * low_half(ups[e]), silu(high_half(gates[e])) * high_half(ups[e]));
    uint4 y;
    y.x = r[0]; y.y = r[1]; y.z = r[2]; y.w = r[3];
    *(uint4*)(a.out + (u64)blockIdx.y * a.width + at) = y;
}

// widen_int8, widen_fp8: rows of a matrix of eight bits in bf16, each number multiplied with the scale of its row and rounded. For
// products that the library makes. grid (⌈numbers / 8192⌉), 256 threads, each 8 numbers four times; no shared memory. The weights are read
// before the kernel ahead has ended, which may still read what is written.
struct Widen {
    const u8* weights;    // [rows, width]
    const float* scales;  // [rows]
    bf16* out;            // [rows, width]
    int rows, width;      // width is a multiple of 8
};
template <class W> DEV void widen_rows(const Widen& a) {
    const u32 chunks = (u32)a.rows * (a.width / 8), first = blockIdx.x * 1024 + threadIdx.x;
    uint2 read[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (first + i * 256 < chunks) read[i] = ((const uint2*)a.weights)[first + i * 256];
    wait_for_grid();
    release_next_grid();
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const u32 chunk = first + i * 256;
        if (chunk >= chunks) continue;
        const float scale = a.scales[chunk / (a.width / 8)];
        float n[8];
        W::four(read[i].x, n);
        W::four(read[i].y, n + 4);
        uint4 y;
        y.x = pack(n[0] * scale, n[1] * scale);
        y.y = pack(n[2] * scale, n[3] * scale);
        y.z = pack(n[4] * scale, n[5] * scale);
        y.w = pack(n[6] * scale, n[7] * scale);
        ((uint4*)a.out)[chunk] = y;
    }
}
KERNEL(widen_int8, Widen, 256) { widen_rows<Int8>(a); }
KERNEL(widen_fp8, Widen, 256) { widen_rows<E4m3>(a); }

// move_rows: copies stretches of keys and values in all layers. The moves of a run are made in their order, in batches that are
// read before they are written: no move of a run overwrites what a later one reads.
// grid (⌈chunks / 128⌉, caches, runs), 128 threads, each 16 bytes of every stretch.
struct Moves {
    const u64* caches;    // [caches]: addresses
    const int* moves;     // [moves, 2]: numbers of stretches, from and to
    const int* firsts;    // [runs + 1]: the first move of each run
    int chunks;           // of 16 bytes, in a stretch
};
KERNEL(move_rows, Moves, 128) {
    const int BATCH = 4, chunk = blockIdx.x * 128 + threadIdx.x;
    wait_for_grid();
    release_next_grid();
    if (chunk >= a.chunks) return;
    uint4* rows = (uint4*)a.caches[blockIdx.y] + chunk;
    const int end = a.firsts[blockIdx.z + 1];
    for (int first = a.firsts[blockIdx.z]; first < end; first += BATCH) {
        uint4 held[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            if (first + i < end) held[i] = rows[(u64)a.moves[2 * (first + i)] * a.chunks];
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            if (first + i < end) rows[(u64)a.moves[2 * (first + i) + 1] * a.chunks] = held[i];
    }
}
