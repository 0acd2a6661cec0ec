// Attention of a few queries of each sequence over the paged cache: decoding, drafts, trees of drafts, pieces of prompts.
//
// Computes out = softmax(Q·Kᵀ / √D)·V for every fed token and query head. What a token sees: the cached text of its
// sequence, those fed tokens that `sees` names, and of both only positions within the window.
//
//   grid     (splits, key heads, sequences); lengths and tables are read from memory, so one graph serves all lengths
//   block    4 warps; each has its own ring of copies, and there is no barrier of the block inside the loop
//   rows     fed tokens × query heads of one key head, 64 at most, in tiles of 16
//            one tile: the four warps share the keys; two tiles: two warps each; more: a warp a tile, which reads all keys
//   step     16 keys, which are one block of the cache: S = Q·Kᵀ (D/16 × 2 mma), running softmax, O += P·V (D/8 mma)
//   merging  the warps of a tile merge in shared memory; splits are merged by the block that comes last, in their order
//   shared   4 × STAGES × 64·D bytes of ring, and 32, 64 or 128 × D bytes of queries (`Attend::shared` in shapes.rs)
//
// How a sequence is split depends on its own length and on `most_splits`, which is the same for all that decode, so that their results do
// not depend on which others are in the batch. Of prompts, many pieces fill a card without splits: there it depends on their number.
// Source: FlashAttention-2 (arXiv 2307.08691), split keys as in Flash-Decoding, paged keys as in vLLM (arXiv 2309.06180).
#include "device.h"

struct Attend {
    const bf16* queries;  // [tokens, heads * D], turned
    const bf16* keys;     // [slots, key heads * D]
    const bf16* values;   // [slots, key heads * D]
    bf16* out;            // [tokens, heads * D]
    float* parts;         // of each sequence [key heads, splits, rows, D + 2]
    int* arrived;         // [sequences, key heads]: zero, and left zero
    const int* tables;    // [sequences, table_width]: the blocks of each sequence
    const int* starts;    // [sequences]: the slots that are cached before the fed tokens
    const int* firsts;    // [sequences + 1]: the first fed token of each
    const int* positions; // [tokens]
    const u32* sees;      // [tokens]: bit i is set where the token sees fed token i of its sequence, itself included
    const int* parts_at;  // [sequences]: where the sums of its splits begin, in rows of all key heads
    int key_heads, group, table_width, most_splits, window;
    float scale;          // log2(e) / √D: softmax is computed in base 2
};

// Of a row that has seen nothing yet.
#define NOTHING -1e30f

// The part of the work that belongs to this block and warp.
struct Job {
    int sequence, head, split, lane, warp;
    int first, count, start, total;   // fed tokens; slots before them, and with them
    int from, to, used;               // the keys of this split; splits that have any
    int rows, sharing, tile, offset, stride;
    int width, query_width;
};

// A thread's two rows of a tile.
template <int D> struct Rows {
    u32 query[D / 16][4];
    u32 sees[2];
    int oldest[2];   // positions up to this one are outside of the window
    float out[D / 8][4], top[2], sum[2];
};

// Keys of a split: at least 128, doubled until there are `most` splits at most.
DEV int split_size(int total, int most) {
    int size = 128;
    while (size * most < total) size *= 2;
    return size;
}

// Rows of D numbers in chunks of 8, ordered so that the eight rows of a matrix load lie in different banks.
template <int D> DEV int swizzled(int row, int chunk) { return row * D + ((chunk ^ (row & 7)) * 8); }

template <int D> DEV Job job_of(const Attend& a) {
    Job j;
    j.sequence = blockIdx.z; j.head = blockIdx.y; j.split = blockIdx.x;
    j.lane = threadIdx.x & 31; j.warp = threadIdx.x >> 5;
    j.first = a.firsts[j.sequence];
    j.count = a.firsts[j.sequence + 1] - j.first;
    j.start = a.starts[j.sequence];
    j.total = j.start + j.count;
    const int size = split_size(j.total, a.most_splits);
    j.used = (j.total + size - 1) / size;
    j.from = j.split * size;
    j.to = min(j.from + size, j.total);
    j.rows = j.count * a.group;
    const int tiles = (j.rows + 15) / 16;
    j.sharing = tiles <= 1 ? 1 : tiles == 2 ? 2 : 4;
    j.tile = j.warp % j.sharing;
    j.offset = j.warp / j.sharing;
    j.stride = 4 / j.sharing;
    j.width = a.key_heads * D;
    j.query_width = j.width * a.group;
    return j;
}

// Begins to copy the queries of this key head to shared memory; rows of padding repeat the last row.
template <int D> DEV void fetch_queries(const Attend& a, const Job& j, bf16* to) {
    const int CHUNKS = D / 8;
    for (int i = threadIdx.x; i < j.sharing * 16 * CHUNKS; i += 128) {
        const int row = i / CHUNKS, chunk = i % CHUNKS, real = min(row, j.rows - 1);
        const u64 at = (u64)(j.first + real / a.group) * j.query_width + (j.head * a.group + real % a.group) * D;
        copy16(to + swizzled<D>(row, chunk), a.queries + at + chunk * 8);
    }
    copy_commit();
}

// Begins to copy a block of keys and values to a stage of the warp's ring; a group of copies, also where there is nothing.
template <int D> DEV void fetch_block(const Attend& a, const Job& j, bf16* stage, int block) {
    const int CHUNKS = D / 8;
    if (block < (j.to + 15) / 16) {
        const u64 slot = (u64)a.tables[(u64)j.sequence * a.table_width + block] * 16;
        for (int i = j.lane; i < 16 * CHUNKS; i += 32) {
            const int row = i / CHUNKS, chunk = i % CHUNKS;
            const u64 at = (slot + row) * j.width + j.head * D + chunk * 8;
            // Slots behind the text hold old numbers, or NaN, and 0 · NaN would reach the sum.
            const bool real = block * 16 + row < j.total;
            copy16(stage + swizzled<D>(row, chunk), a.keys + at, real);
            copy16(stage + 16 * D + swizzled<D>(row, chunk), a.values + at, real);
        }
    }
    copy_commit();
}

template <int D> DEV void begin_rows(const Attend& a, const Job& j, const bf16* queries, Rows<D>& r) {
#pragma unroll
    for (int k = 0; k < D / 16; k++)
        load_matrices(r.query[k], queries + swizzled<D>(j.tile * 16 + (j.lane & 15), 2 * k + (j.lane >> 4)));
#pragma unroll
    for (int e = 0; e < 2; e++) {
        const int token = min(j.tile * 16 + j.lane / 4 + 8 * e, j.rows - 1) / a.group;
        r.sees[e] = a.sees[j.first + token];
        r.oldest[e] = a.positions[j.first + token] - a.window;
        r.top[e] = NOTHING;
        r.sum[e] = 0.f;
    }
#pragma unroll
    for (int n = 0; n < D / 8; n++) r.out[n][0] = r.out[n][1] = r.out[n][2] = r.out[n][3] = 0.f;
}

// Whether row `e` of this thread sees the key of this slot. The position of a fed token is its own: in a tree it is not its slot.
template <int D> DEV bool is_seen(const Attend& a, const Job& j, const Rows<D>& r, int e, int slot) {
    const int fed = slot - j.start;
    if (fed < 0) return slot > r.oldest[e];
    return fed < j.count && (r.sees[e] >> (fed & 31) & 1) && a.positions[j.first + fed] > r.oldest[e];
}

// S = Q·Kᵀ of 16 keys, scaled, and `NOTHING` where a key is not seen.
template <int D>
DEV void score(const Attend& a, const Job& j, const Rows<D>& r, const bf16* keys, int block, float s[2][4]) {
#pragma unroll
    for (int n = 0; n < 2; n++) s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0.f;
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
        u32 b[4];   // keys 0..7 and 8..15, two halves of 16 columns each
        load_matrices(b, keys + swizzled<D>((j.lane & 7) + ((j.lane >> 4) << 3), 2 * i + ((j.lane >> 3) & 1)));
        multiply(s[0], r.query[i], b[0], b[1]);
        multiply(s[1], r.query[i], b[2], b[3]);
    }
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int slot = block * 16 + n * 8 + (j.lane & 3) * 2 + (e & 1);
            s[n][e] = is_seen<D>(a, j, r, e >> 1, slot) ? s[n][e] * a.scale : NOTHING;
        }
}

// Scores to weights relative to the largest score so far; what was summed before shrinks accordingly.
template <int D> DEV void weigh(Rows<D>& r, float s[2][4]) {
#pragma unroll
    for (int e = 0; e < 2; e++) {
        float peak = fmaxf(r.top[e], fmaxf(fmaxf(s[0][2 * e], s[0][2 * e + 1]), fmaxf(s[1][2 * e], s[1][2 * e + 1])));
        peak = fmaxf(peak, shuffle_xor(peak, 1));
        peak = fmaxf(peak, shuffle_xor(peak, 2));
        const float shrink = exp2_(r.top[e] - peak);
        r.top[e] = peak;
        r.sum[e] *= shrink;
#pragma unroll
        for (int n = 0; n < D / 8; n++) { r.out[n][2 * e] *= shrink; r.out[n][2 * e + 1] *= shrink; }
    }
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            s[n][e] = s[n][e] <= NOTHING ? 0.f : exp2_(s[n][e] - r.top[e >> 1]);
            r.sum[e >> 1] += s[n][e];
        }
}

// O += P·V of 16 keys. A fragment of results, packed, is the fragment of operands that the next product takes.
template <int D> DEV void gather(const Job& j, Rows<D>& r, const bf16* values, const float s[2][4]) {
    const u32 p[4] = {pack(s[0][0], s[0][1]), pack(s[0][2], s[0][3]), pack(s[1][0], s[1][1]), pack(s[1][2], s[1][3])};
#pragma unroll
    for (int n = 0; n < D / 16; n++) {
        u32 b[4];
        load_matrices_turned(b, values + swizzled<D>(j.lane & 15, 2 * n + (j.lane >> 4)));
        multiply(r.out[2 * n], p, b[0], b[1]);
        multiply(r.out[2 * n + 1], p, b[2], b[3]);
    }
}

// All keys of this warp, STAGES - 1 blocks ahead of the one that is read.
template <int D, int STAGES> DEV void walk(const Attend& a, const Job& j, bf16* ring, int next, Rows<D>& r) {
    const int TILE = 16 * D, last = (j.to + 15) / 16;
    int stage = 0;
    for (int block = j.from / 16 + j.offset; block < last; block += j.stride) {
        copy_wait<STAGES - 2>();
        sync_warp();
        fetch_block<D>(a, j, ring + (stage + STAGES - 1) % STAGES * 2 * TILE, next);
        next += j.stride;
        const bf16* keys = ring + stage * 2 * TILE;
        float s[2][4];
        score<D>(a, j, r, keys, block, s);
        weigh<D>(r, s);
        gather<D>(j, r, keys + TILE, s);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    copy_wait<0>();
#pragma unroll
    for (int e = 0; e < 2; e++) {
        r.sum[e] += shuffle_xor(r.sum[e], 1);
        r.sum[e] += shuffle_xor(r.sum[e], 2);
    }
}

// A row of sums: D numbers, what they are relative to, and their mass.
template <int D> DEV void put_rows(const Job& j, const Rows<D>& r, float* own) {
#pragma unroll
    for (int e = 0; e < 2; e++) {
        float* row = own + (j.warp * 16 + j.lane / 4 + 8 * e) * (D + 2);
        if ((j.lane & 3) == 0) { row[D] = r.top[e]; row[D + 1] = r.sum[e]; }
#pragma unroll
        for (int n = 0; n < D / 8; n++) {
            row[n * 8 + (j.lane & 3) * 2] = r.out[n][2 * e];
            row[n * 8 + (j.lane & 3) * 2 + 1] = r.out[n][2 * e + 1];
        }
    }
}

// What `count` rows of sums, `pitch` apart, come to in one column.
struct Merged { float peak, value, mass; };
template <int D> DEV Merged merge(const float* rows, int count, int pitch, int column) {
    Merged m = {NOTHING, 0.f, 0.f};
    for (int i = 0; i < count; i++) m.peak = fmaxf(m.peak, rows[(u64)i * pitch + D]);
    for (int i = 0; i < count; i++) {
        const float* row = rows + (u64)i * pitch;
        const float weight = exp2_(row[D] - m.peak);
        m.value += weight * row[column];
        m.mass += weight * row[D + 1];
    }
    return m;
}

template <int D> DEV void write_out(const Attend& a, const Job& j, int row, int column, const Merged& m) {
    const u64 token = j.first + row / a.group;
    a.out[token * j.query_width + (j.head * a.group + row % a.group) * D + column] = narrow(m.value / m.mass);
}

// The sums of all splits, by the block that comes last; it leaves the count as it was.
template <int D> DEV void merge_splits(const Attend& a, const Job& j, const float* parts, int* ticket) {
    int* arrived = a.arrived + j.sequence * a.key_heads + j.head;
    sync_threads();
    if (threadIdx.x == 0) *ticket = count_up(arrived);
    sync_threads();
    if (*ticket != j.used - 1) return;
    for (int i = threadIdx.x; i < j.rows * D; i += 128) {
        const int row = i / D, column = i % D;
        write_out<D>(a, j, row, column, merge<D>(parts + row * (D + 2), j.used, j.rows * (D + 2), column));
    }
    if (threadIdx.x == 0) *arrived = 0;
}

template <int D, int STAGES> DEV void attend(const Attend& a) {
    const int TILE = 16 * D, PITCH = D + 2;
    DYNAMIC_SHARED(memory);
    wait_for_grid();
    const Job j = job_of<D>(a);
    if (j.split >= j.used || j.count == 0) { release_next_grid(); return; }
    bf16* ring = (bf16*)memory + j.warp * STAGES * 2 * TILE;
    bf16* queries = (bf16*)memory + 4 * STAGES * 2 * TILE;
    fetch_queries<D>(a, j, queries);
    int next = j.from / 16 + j.offset;
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) { fetch_block<D>(a, j, ring + s * 2 * TILE, next); next += j.stride; }
    copy_wait<STAGES - 1>();
    sync_threads();
    Rows<D> r;
    begin_rows<D>(a, j, queries, r);
    walk<D, STAGES>(a, j, ring, next, r);
    release_next_grid();
    sync_threads();
    float* own = (float*)memory;   // the rings are free now
    put_rows<D>(j, r, own);
    sync_threads();
    float* parts = a.parts + ((u64)a.parts_at[j.sequence] * a.key_heads + (u64)j.head * j.used * j.rows) * PITCH;
    for (int i = threadIdx.x; i < j.rows * D; i += 128) {
        const int row = i / D, column = i % D;
        const Merged m = merge<D>(own + row * PITCH, j.stride, j.sharing * 16 * PITCH, column);
        if (j.used == 1) {
            write_out<D>(a, j, row, column, m);
        } else {
            float* part = parts + ((u64)j.split * j.rows + row) * PITCH;
            part[column] = m.value;
            if (column == 0) { part[D] = m.peak; part[D + 1] = m.mass; }
        }
    }
    if (j.used > 1) merge_splits<D>(a, j, parts, (int*)(memory + 4 * 16 * PITCH * 4));
}
KERNEL(attend_64, Attend, 128) { attend<64, 4>(a); }
KERNEL(attend_128, Attend, 128) { attend<128, 3>(a); }
