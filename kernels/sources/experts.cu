// The second half of a layer with experts: which tokens go to which expert, and the products of every expert with its tokens.
//
//   scores ─► route_tokens ─► pairs of a token and an expert, by expert ─► experts_up ─► experts_down ─► sum_experts ─► x
//
// Nothing depends on what the host knows: the lists of pairs lie in the card's memory, each launch has the same grid whoever chose whom,
// and one graph serves all passes of a size. Rows of padding go to no expert, so that no weights are read for them.
//
// A pair's numbers have the same bits in any company: its dot products are added in an order that the columns alone decide, whichever
// of the 16 places of a tile it has, and a token adds its experts by falling score. Lists are in the order of tokens, not of arrival.
//
// Source: the layer is that of Shazeer et al. (arXiv 1701.06538); sorting pairs by expert is that of MegaBlocks (arXiv 2211.15841).
#include "device.h"

// route_tokens: the `chosen` experts of the largest scores for every token, of equal ones that of the smaller number, with their shares: the
// softmax over all scores, made to sum to one over those that are chosen if `normalised`. Then all pairs, sorted by expert.
// grid (⌈tokens / 8⌉), 256 threads, a token a warp; the block that comes last sorts, and leaves the count of arrivals as it was.
// shared: 1024 pairs, the count of each expert, the ticket.
struct Route {
    const bf16* scores;   // [tokens, experts]
    const int* slots;     // [tokens]; below 0 for rows of padding
    int* choices;         // [tokens, chosen]: experts by falling score; -1 for rows of padding
    float* shares;        // [tokens, chosen]
    int* places;          // [tokens, chosen]: where the pair is among all; -1 for rows of padding
    int* owners;          // [pairs]: the token of each pair, by expert
    int* firsts;          // [experts + 1]: the first pair of each expert, and the end of the last
    int* chunks;          // [experts + 1]: how many chunks of 16 pairs the experts before each have
    int* experts_of;      // [chunks]: the expert of each chunk
    int* arrived;         // [1], 0
    int tokens, experts, chosen, normalised;
};
const int LANE_EXPERTS = 16, MOST_EXPERTS = 32 * LANE_EXPERTS, TILE_PAIRS = 1024, CHUNK = 16;

// Larger for a larger score; the smallest for what is no number. Zeros are equal.
DEV u32 rank_of(float score) {
    const u32 bits = f_bits(score + 0.f);
    return score != score ? 0 : bits >> 31 ? ~bits : bits | 0x80000000u;
}
DEV float score_of(u32 rank) { return bits_f(rank >> 31 ? rank ^ 0x80000000u : ~rank); }

// The expert of the largest rank that is not taken, in every lane.
struct Best { u32 rank, expert; };
DEV Best best_of(const Route& a, const u32* ranks, u32 taken) {
    Best best = {0, ~0u};
#pragma unroll
    for (int j = 0; j < LANE_EXPERTS; j++) {
        const u32 expert = 32 * j + (threadIdx.x & 31);
        if (expert < (u32)a.experts && !(taken >> j & 1) && (best.expert == ~0u || ranks[j] > best.rank)) {
            best.rank = ranks[j];
            best.expert = expert;
        }
    }
#pragma unroll
    for (int s = 16; s; s >>= 1) {
        const u32 rank = shuffle_xor(best.rank, s), expert = shuffle_xor(best.expert, s);
        if (rank > best.rank || (rank == best.rank && expert < best.expert)) { best.rank = rank; best.expert = expert; }
    }
    return best;
}

// Chooses for one token, by one warp; lane r keeps what has rank r.
DEV void choose(const Route& a, int token) {
    const int lane = threadIdx.x & 31;
    const bf16* scores = a.scores + (u64)token * a.experts;
    u32 ranks[LANE_EXPERTS], taken = 0;
#pragma unroll
    for (int j = 0; j < LANE_EXPERTS; j++) {
        const int expert = 32 * j + lane;
        ranks[j] = expert < a.experts ? rank_of(widen(scores[expert])) : 0;
    }
    float peak = 0.f, whole = 0.f, weight = 0.f;
    int choice = -1;
    for (int r = 0; r < a.chosen; r++) {
        const Best best = best_of(a, ranks, taken);
        if (r == 0) peak = score_of(best.rank);
        const float mass = exp_(score_of(best.rank) - peak);
        whole += mass;
        if (lane == r) { choice = (int)best.expert; weight = mass; }
        if ((best.expert & 31) == (u32)lane) taken |= 1u << (best.expert >> 5);
    }
    if (!a.normalised) {
        whole = 0.f;
#pragma unroll
        for (int j = 0; j < LANE_EXPERTS; j++)
            if (32 * j + lane < a.experts) whole += exp_(score_of(ranks[j]) - peak);
#pragma unroll
        for (int s = 16; s; s >>= 1) whole += shuffle_xor(whole, s);
    }
    if (lane >= a.chosen) return;
    const bool is_padding = a.slots[token] < 0;
    a.choices[token * a.chosen + lane] = is_padding ? -1 : choice;
    a.shares[token * a.chosen + lane] = is_padding ? 0.f : weight / whole;
    if (is_padding) a.places[token * a.chosen + lane] = -1;
}

// How many pairs each expert has.
DEV void count_pairs(const Route& a, int* counts) {
    for (int e = threadIdx.x; e < MOST_EXPERTS; e += 256) counts[e] = 0;
    sync_threads();
    for (int i = threadIdx.x; i < a.tokens * a.chosen; i += 256) {
        const int expert = a.choices[i];
        if (expert >= 0) count_in((u32*)counts + expert, 1);
    }
    sync_threads();
}

DEV int chunks_of(int pairs) { return (pairs + CHUNK - 1) / CHUNK; }

// Where the pairs and chunks of an expert begin; what is there of the lists of all experts.
DEV int begin_expert(const Route& a, const int* counts, int expert) {
    int first = 0, chunk = 0;
    for (int e = 0; e < expert; e++) { first += counts[e]; chunk += chunks_of(counts[e]); }
    const int end = chunk + chunks_of(counts[expert]);
    a.firsts[expert] = first;
    a.chunks[expert] = chunk;
    for (int c = chunk; c < end; c++) a.experts_of[c] = expert;
    if (expert == a.experts - 1) { a.firsts[a.experts] = first + counts[expert]; a.chunks[a.experts] = end; }
    return first;
}

// Sorts all pairs by expert and, of one expert, by token, by one block. A thread places the pairs of expert threadIdx.x, and of the one that
// is 256 more if there are so many.
DEV void sort_pairs(const Route& a, int* pairs, int* counts) {
    const int all = a.tokens * a.chosen, low = threadIdx.x, high = low + 256;
    count_pairs(a, counts);
    int next_low = low < a.experts ? begin_expert(a, counts, low) : 0;
    int next_high = high < a.experts ? begin_expert(a, counts, high) : 0;
    for (int first = 0; first < all; first += TILE_PAIRS) {
        const int count = min(TILE_PAIRS, all - first);
        sync_threads();
        for (int i = threadIdx.x; i < count; i += 256) pairs[i] = a.choices[first + i];
        sync_threads();
        for (int i = 0; i < count; i++) {
            const int expert = pairs[i];
            if (expert != low && expert != high) continue;
            const int place = expert == low ? next_low++ : next_high++;
            a.places[first + i] = place;
            a.owners[place] = (first + i) / a.chosen;
        }
    }
}

KERNEL(route_tokens, Route, 256) {
    DYNAMIC_SHARED(memory);
    int* pairs = (int*)memory;             // [TILE_PAIRS]
    int* counts = pairs + TILE_PAIRS;      // [MOST_EXPERTS]
    int* ticket = counts + MOST_EXPERTS;
    const int token = blockIdx.x * 8 + (threadIdx.x >> 5);
    wait_for_grid();
    if (token < a.tokens) choose(a, token);
    release_next_grid();
    sync_threads();
    if (threadIdx.x == 0) *ticket = count_up(a.arrived);
    sync_threads();
    if (*ticket != gridDim.x - 1) return;
    sort_pairs(a, pairs, counts);
    if (threadIdx.x == 0) *a.arrived = 0;
}

// experts_up: out[p] = silu(W₀·x) · (W₁·x), where x is the token of pair p, and W the matrix of its expert: the first half of its rows are
// gates. experts_down: out[p] = W·x[p].
//
//   grid     one block for each multiprocessor, which owns items that lie together: an expert's 32 rows with one chunk of its pairs, those of
//            the same rows one after another, so that rows that are read again are in the cache of the card
//   block    9 warps: one copies, eight multiply, each every eighth 16 columns
//   mma      A: 16 rows of W × 16 columns; B: x as it lies, 16 pairs in two tiles of 8, of which the second is left out if it is empty
//   stage    32 rows × 512 columns of W and 16 × 512 of x, in rows of 520, so that ldmatrix meets no bank twice; the last may be narrower
//   shared   4 stages, the eight warps' sums, what each stage is, barriers (`shared_bytes` in experts.rs)
struct Experts {
    const bf16* weights;      // [experts, rows, columns]
    const bf16* x;            // up: [tokens, columns]; down: [pairs, columns]
    const int* owners;        // up: [pairs]
    const int* firsts;        // [experts + 1]
    const int* chunks;        // [experts + 1]
    const int* experts_of;    // [chunks]
    bf16* out;                // [pairs, rows]; up: [pairs, rows / 2]
    int experts, rows, columns;   // rows (up: half of them) and columns are multiples of 16
};
const int COLUMNS = 512, PITCH = COLUMNS + 8, STAGES = 4, SUMS = 20;

// 32 rows of an expert, and up to 16 of its pairs.
struct Item { int expert, group, pair, count; };
DEV Item item_of(const Experts& a, int groups, int number) {
    Item item;
    item.expert = a.experts_of[number / groups];
    const int before = a.chunks[item.expert], count = a.chunks[item.expert + 1] - before;
    const int own = number - before * groups;
    item.group = own / count;
    item.pair = a.firsts[item.expert] + own % count * CHUNK;
    item.count = min(CHUNK, a.firsts[item.expert + 1] - item.pair);
    return item;
}

struct Room {
    bf16* weights;   // [STAGES][32][PITCH]
    bf16* x;         // [STAGES][16][PITCH]
    float* sums;     // [8 warps][32][SUMS]
    Item* items;     // [STAGES]
    u64* full;       // [STAGES]
    u64* empty;      // [STAGES]
    int groups, first, end, slices;
};
template <bool UP> DEV Room room_of(const Experts& a, u8* memory) {
    Room room;
    room.weights = (bf16*)memory;
    room.x = room.weights + STAGES * 32 * PITCH;
    room.sums = (float*)(room.x + STAGES * 16 * PITCH);
    room.items = (Item*)(room.sums + 8 * 32 * SUMS);
    room.full = (u64*)(room.items + STAGES);
    room.empty = room.full + STAGES;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) { barrier_new(room.full + s, 1); barrier_new(room.empty + s, 8); }
        barrier_fence();
    }
    sync_threads();
    wait_for_grid();
    room.groups = (a.rows + 31) / 32;
    room.slices = (a.columns + COLUMNS - 1) / COLUMNS;
    const int items = a.chunks[a.experts] * room.groups;
    room.first = (int)((long long)items * blockIdx.x / gridDim.x);
    room.end = (int)((long long)items * (blockIdx.x + 1) / gridDim.x);
    return room;
}

// The row of an expert's matrix that is row `row` of a group; with gates, the second half are what they let through.
template <bool UP> DEV int row_of(const Experts& a, int group, int row) {
    return UP ? (row < 16 ? 0 : a.rows / 2 - 16) + group * 16 + row : group * 32 + row;
}

// Copies all items of the block, by one warp: a lane a row of the matrix, and one of x.
template <bool UP> DEV void stream(const Experts& a, const Room& room) {
    const int lane = threadIdx.x & 31;
    for (int number = room.first, i = 0; number < room.end; number++) {
        const Item item = item_of(a, room.groups, number);
        const int rows = UP ? 32 : min(32, a.rows - item.group * 32);
        const bf16* w = a.weights + ((u64)item.expert * a.rows + row_of<UP>(a, item.group, lane)) * a.columns;
        const int pair = item.pair + min(lane, item.count - 1);
        const bf16* x = a.x + (u64)(UP ? a.owners[pair] : pair) * a.columns;
        // What other items read again stays in the cache of the card.
        const bool is_shared = a.chunks[item.expert + 1] - a.chunks[item.expert] > 1;
        for (int slice = 0; slice < room.slices; slice++, i++) {
            const int s = i % STAGES, from = slice * COLUMNS, bytes = min(COLUMNS, a.columns - from) * 2;
            if (i >= STAGES) barrier_wait(room.empty + s, (i / STAGES - 1) & 1);
            if (lane == 0) {
                room.items[s] = item;
                barrier_expect(room.full + s, (rows + item.count) * bytes);
            }
            sync_warp();
            bf16* to = room.weights + (s * 32 + lane) * PITCH;
            if (lane < rows && is_shared) copy_bulk_kept(to, w + from, bytes, room.full + s);
            if (lane < rows && !is_shared) copy_bulk(to, w + from, bytes, room.full + s);
            if (lane < item.count) copy_bulk_kept(room.x + (s * 16 + lane) * PITCH, x + from, bytes, room.full + s);
            sync_warp();
        }
    }
}

// A warp's columns of one stage. Places of x without a pair hold what was there before, and so do their sums, which nobody reads.
DEV void multiply_stage(const Room& room, int s, int columns, bool is_wide, float sum[2][2][4]) {
    const int lane = threadIdx.x & 31;
    const bf16* w = room.weights + (s * 32 + (lane & 15)) * PITCH + (lane >> 4) * 8;
    const bf16* x = room.x + (s * 16 + (lane & 7) + (lane >> 4) * 8) * PITCH + (lane >> 3 & 1) * 8;
    for (int k = threadIdx.x >> 5 << 4; k < columns; k += 128) {
        u32 b[4];   // 16 pairs × 16 columns
        load_matrices(b, x + k);
#pragma unroll
        for (int t = 0; t < 2; t++) {
            u32 rows[4];
            load_matrices(rows, w + t * 16 * PITCH + k);
            multiply(sum[t][0], rows, b[0], b[1]);
            if (is_wide) multiply(sum[t][1], rows, b[2], b[3]);
        }
    }
}

DEV float total(const Room& room, int row, int m) {
    float value = 0.f;
#pragma unroll
    for (int q = 0; q < 8; q++) value += room.sums[(q * 32 + row) * SUMS + m];
    return value;
}

// The sums of the eight warps, for an item.
template <bool UP> DEV void finish(const Experts& a, const Room& room, const Item& item, const float sum[2][2][4]) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int row = warp * 32 + t * 16 + lane / 4 + (e >> 1) * 8;
                room.sums[row * SUMS + n * 8 + (lane & 3) * 2 + (e & 1)] = sum[t][n][e];
            }
    sync_eight_warps();
    const int width = UP ? a.rows / 2 : a.rows, ROWS = UP ? 16 : 32, first = item.group * ROWS;
    for (int i = threadIdx.x; i < ROWS * item.count; i += 256) {
        const int row = i % ROWS, m = i / ROWS;
        if (first + row >= width) continue;
        bf16* out = a.out + (u64)(item.pair + m) * width + first + row;
        if (UP) {
            // Each of the three steps rounds to bf16, as torch's do.
            const float gate = widen(narrow(total(room, row, m))), up = widen(narrow(total(room, row + 16, m)));
            *out = narrow(widen(narrow(gate / (1.f + exp_(-gate)))) * up);
        } else {
            *out = narrow(total(room, row, m));
        }
    }
    sync_eight_warps();
}

template <bool UP> DEV void experts(const Experts& a) {
    DYNAMIC_SHARED(memory);
    const Room room = room_of<UP>(a, memory);
    if (threadIdx.x >> 5 == 8) {
        stream<UP>(a, room);
        release_next_grid();
        return;
    }
    for (int number = room.first, i = 0; number < room.end; number++) {
        float sum[2][2][4] = {};
        Item item;
        for (int slice = 0; slice < room.slices; slice++, i++) {
            const int s = i % STAGES;
            barrier_wait(room.full + s, (i / STAGES) & 1);
            item = room.items[s];
            multiply_stage(room, s, min(COLUMNS, a.columns - slice * COLUMNS), item.count > 8, sum);
            sync_warp();
            if ((threadIdx.x & 31) == 0) barrier_arrive(room.empty + s);
        }
        finish<UP>(a, room, item, sum);
    }
}
KERNEL(experts_up, Experts, 288) { experts<true>(a); }
KERNEL(experts_down, Experts, 288) { experts<false>(a); }

// sum_experts: x[t] += Σ share · what the expert found for t, by falling score, in f32 and rounded once.
// grid (⌈width / 2048⌉, tokens), 256 threads, 8 numbers each; no shared memory.
struct Sum {
    const bf16* products;   // [pairs, width]
    const float* shares;    // [tokens, chosen]
    const int* places;      // [tokens, chosen]
    bf16* x;                // [tokens, width]
    int width, chosen;
};
KERNEL(sum_experts, Sum, 256) {
    const int at = (blockIdx.x * 256 + threadIdx.x) * 8;
    wait_for_grid();
    release_next_grid();
    const int* places = a.places + (u64)blockIdx.y * a.chosen;
    const float* shares = a.shares + (u64)blockIdx.y * a.chosen;
    if (at >= a.width || places[0] < 0) return;
    float sum[8] = {};
    for (int r = 0; r < a.chosen; r++) {
        const uint4 v = *(const uint4*)(a.products + (u64)places[r] * a.width + at);
        const u32 found[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int e = 0; e < 4; e++) {
            sum[2 * e] = fma_(shares[r], low_half(found[e]), sum[2 * e]);
            sum[2 * e + 1] = fma_(shares[r], high_half(found[e]), sum[2 * e + 1]);
        }
    }
    uint4* row = (uint4*)(a.x + (u64)blockIdx.y * a.width + at);
    const uint4 v = *row;
    uint4 y;
    y.x = pack(low_half(v.x) + sum[0], high_half(v.x) + sum[1]);
    y.y = pack(low_half(v.y) + sum[2], high_half(v.y) + sum[3]);
    y.z = pack(low_half(v.z) + sum[4], high_half(v.z) + sum[5]);
    y.w = pack(low_half(v.w) + sum[6], high_half(v.w) + sum[7]);
    *row = y;
}
