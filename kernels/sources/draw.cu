// Draws from rows of logits, to the bit those of the library's law: IEEE sums and products of f64 in one stated order, an
// exponential that is made of them, and Philox. Of a row of 128,000 logits 56 bytes go home.
//
// The order is that of `law::sums` in the library: 32 tokens are summed to a block, 64 blocks to a group, and the groups to
// the total, each from the first to the last; a draw chooses a group, a block of it, a token of that. The longest chain is
// 63 + 64 + 32 additions. `law/exp.rs` has the exponential, `law/chooser.rs` the numbers of the purposes.
//
//   change  grid (⌈width / 2048⌉, asks), 256 threads, 16 KB: penalties and biases, on a copy (`law/warp.rs`)
//   peaks   grid (asks), 512 threads, 128 bytes: the largest logit, and the most likely token that is allowed
//   sums    grid (⌈blocks / 128⌉, asks), 128 threads, 22.5 KB: the sums of each block, of all and of what is allowed; of rows
//           that are cut, also how many tokens there are in each 16th of a nat below the most likely one, and their masses
//   cut     grid (asks), 512 threads, 7.4 KB: what top-k, top-p and min-p keep, and the sums of that (`law/cut`)
//   draw    grid (asks), 128 threads, 3 KB: vocabularies of up to 262,144 tokens
//
// A filter keeps the most likely tokens, so what it keeps is told by the rank of the last of them: the bin of 1/16 nat in which
// the count or the mass is reached, then a part of that which is 512 times smaller with each look at it, until one token is left.
// Masses are whole numbers, whose sums have no order.
//
// A row whose sums are not finite, or whose allowed sum is below 1e-200, is left to the host (`state` 1).
// Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
#include "device.h"

struct Drawn {
    double sum;      // of what is allowed, relative to the peak
    double total;    // of the row, relative to the peak
    double kept;     // of what filters keep of what is allowed
    double weight;   // of the token
    double others;   // of all kept tokens but this one, summed anew
    u32 token;
    float logit;     // of the token
    float peak;
    u32 state;       // 0: drawn; 1: the row has to be looked at
};
// What is asked of a row.
struct Asked {
    double scale;                     // one over the temperature
    double top_p, min_p;              // 1 and 0 keep all
    u64 seed;
    u32 place[3];                     // position, attempt, number of the sequence
    u32 row;
    int mask;                         // below 0: everything is allowed
    int changed;                      // where the row is once it is changed; below 0: it is not
    u32 top_k;                        // 0 keeps all
    u32 flags;
    float repetition, frequency, presence;
    u32 prompt, answer, answer_end;   // of `tokens`
    u32 draft, draft_end;             // of `tokens`
    u32 bias, bias_end;               // of `biases`
};
enum { GREEDY = 1, CUT = 2, PENALISED = 4 };
struct Bias { u32 token; float value; };
// What a filter keeps: the tokens of at least this rank and weight.
struct Bound { u64 rank; double weight; };
struct Draw {
    const float* logits;    // [rows, width]; columns that are no tokens hold minus infinity
    const Asked* asks;      // [asks]
    const u32* tokens;
    const Bias* biases;     // entries of one token follow each other
    const u32* masks;       // [masks, blocks]
    float* changed;         // [changed, width]
    float* peaks;           // [asks]
    u64* bests;             // [asks]: the rank of the most likely token that is allowed
    double* whole;          // [asks, blocks]
    double* allowed;        // [asks, blocks]
    double* kept;           // [asks, blocks]
    u32* tops;              // [asks, blocks]: the largest key that is allowed
    u64* masses;            // [asks, BINS]
    u32* counts;            // [asks, BINS]
    Bound* bounds;          // [asks]
    Drawn* out;             // [asks]
    int width, blocks;
};
// What a choice decides; the numbers of law::Purpose.
enum { PURPOSE_BLOCK = 0, PURPOSE_TOKEN = 1, PURPOSE_GROUP = 9 };
// Blocks of a group.
#define GROUP_BLOCKS 64
// A sum below this has lost digits.
#define LEAST_SUM 1e-200
// Parts that the tokens of a row are counted in, and how many of them there are to a nat.
#define BINS 512
#define BINS_OF_NAT 16.0
// Logits of a row that a block changes.
#define CHANGED 2048
// Of a token of the prompt; the bits below count the answer's.
#define OF_PROMPT 0x80000000u

// e^x for x ≤ 0: 2^k · e^f with |f| ≤ ln 2 / 2, by a polynomial of degree 11.
DEV double exponential(double x) {
    const double least = -708.0, round = 6755399441055744.0;
    const double c = x < least ? least : x > 0.0 ? 0.0 : x;
    const double shifted = add(mul(c, 1.4426950408889634), round), k = add(shifted, -round);
    const double f = add(add(c, -mul(k, 6.931471803691238e-1)), -mul(k, 1.9082149292705877e-10));
    const double terms[12] = {1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0,
                              1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0};
    double sum = 0.0;
#pragma unroll
    for (int i = 0; i < 12; i++) sum = add(mul(sum, f), terms[i]);
    return x < least ? 0.0 : mul(sum, bits_d((d_bits(shifted) + 1023) << 52));
}
DEV double weight_of(float logit, float peak, double scale) {
    return exponential(mul(add((double)logit, -(double)peak), scale));
}

// Philox 4×32 with ten rounds, and 53 of its bits as a number in [0, 1).
DEV double uniform(u64 seed, const u32* place, u32 purpose) {
    u32 c[4] = {place[0], place[1], place[2], purpose << 24}, low = (u32)seed, up = (u32)(seed >> 32);
#pragma unroll
    for (int i = 0; i < 10; i++) {
        const u32 a = high(0xD2511F53u, c[0]), b = 0xD2511F53u * c[0], d = high(0xCD9E8D57u, c[2]), e = 0xCD9E8D57u * c[2];
        c[0] = d ^ c[1] ^ low;
        c[1] = e;
        c[2] = a ^ c[3] ^ up;
        c[3] = b;
        low += 0x9E3779B9u;
        up += 0xBB67AE85u;
    }
    return mul((double)((((u64)c[0] << 32) | c[1]) >> 11), 0.5 / 4503599627370496.0);
}

// The index in which u · total lies, as law::Seeded walks.
template <class W> DEV int choose(double u, double total, int count, W weight) {
    double left = mul(u, total);
    int last = 0;
    for (int i = 0; i < count; i++) {
        const double w = weight(i);
        if (w > 0.0) {
            if (left < w) return i;
            left = add(left, -w);
            last = i;
        }
    }
    return last;
}

// A row as it is drawn from.
struct Row { const float* logits; const u32* mask; int width, blocks; double scale; };
DEV Row row_of(const Draw& a, const Asked& k) {
    Row r;
    r.logits = k.changed < 0 ? a.logits + (u64)k.row * a.width : a.changed + (u64)k.changed * a.width;
    r.mask = k.mask < 0 ? nullptr : a.masks + (u64)k.mask * a.blocks;
    r.width = a.width;
    r.blocks = a.blocks;
    r.scale = k.scale;
    return r;
}
DEV u32 word_of(const Row& r, int block) { return r.mask ? r.mask[block] : ~0u; }

// Whether a logit is a number, and not that of a token which cannot come.
DEV bool is_number(float logit) { return logit > bits_f(0xff800000u) && logit < bits_f(0x7f800000u); }
// The order of f32: a larger logit has a larger key.
DEV u32 key_of(float logit) { const u32 b = f_bits(logit); return b >> 31 ? ~b : b | 0x80000000u; }
DEV float logit_of(u32 key) { return bits_f(key >> 31 ? key & 0x7fffffffu : ~key); }
// The order of tokens, from the least likely up; of equal logits the smaller token is above.
DEV u64 rank_of(float logit, int token) { return (u64)key_of(logit) << 32 | (u32)~token; }
DEV int token_of(u64 rank) { return (int)~(u32)rank; }

// The largest of the numbers of all threads of a block of 512.
DEV u64 largest(u64 own, u64* slots) {
#pragma unroll
    for (int s = 16; s; s >>= 1) {
        const u64 other = (u64)shuffle_xor((u32)(own >> 32), s) << 32 | shuffle_xor((u32)own, s);
        own = own < other ? other : own;
    }
    if ((threadIdx.x & 31) == 0) slots[threadIdx.x >> 5] = own;
    sync_threads();
    for (int w = 0; w < 16; w++) own = own < slots[w] ? slots[w] : own;
    sync_threads();
    return own;
}

// Counts the tokens of a history that lie in this block's part of the row.
DEV void count_tokens(const Draw& a, u32 from, u32 to, int first, u32* seen) {
    for (u32 i = from + threadIdx.x; i < to; i += 256) {
        const u32 at = a.tokens[i] - (u32)first;
        if (at < CHANGED) count_in(seen + at, 1);
    }
}
DEV float penalised(const Asked& k, float logit, u32 seen) {
    logit = logit > 0.f ? div_f(logit, k.repetition) : mul_f(logit, k.repetition);
    const u32 count = seen & ~OF_PROMPT;
    return count ? add_f(logit, -add_f(mul_f(k.frequency, (float)count), k.presence)) : logit;
}
DEV void penalise(const Draw& a, const Asked& k, int first, float* own, u32* seen) {
    for (u32 i = k.prompt + threadIdx.x; i < k.answer; i += 256) {
        const u32 at = a.tokens[i] - (u32)first;
        if (at < CHANGED) seen[at] = OF_PROMPT;
    }
    sync_threads();
    count_tokens(a, k.answer, k.answer_end, first, seen);
    count_tokens(a, k.draft, k.draft_end, first, seen);
    sync_threads();
    for (int i = threadIdx.x; i < CHANGED; i += 256) if (seen[i]) own[i] = penalised(k, own[i], seen[i]);
}

KERNEL(change, Draw, 256) {
    DYNAMIC_SHARED(memory);
    float* own = (float*)memory;
    u32* seen = (u32*)(own + CHANGED);
    const int first = blockIdx.x * CHANGED;
    wait_for_grid();
    const Asked& k = a.asks[blockIdx.y];
    release_next_grid();
    if (k.changed < 0) return;
    const float* from = a.logits + (u64)k.row * a.width;
    for (int i = threadIdx.x; i < CHANGED; i += 256) {
        own[i] = first + i < a.width ? from[first + i] : 0.f;
        seen[i] = 0;
    }
    sync_threads();
    if (k.flags & PENALISED) penalise(a, k, first, own, seen);
    sync_threads();
    for (u32 i = k.bias + threadIdx.x; i < k.bias_end; i += 256) {
        const u32 token = a.biases[i].token, at = token - (u32)first;
        if (at >= CHANGED || i > k.bias && a.biases[i - 1].token == token) continue;
        for (u32 b = i; b < k.bias_end && a.biases[b].token == token; b++) own[at] = add_f(own[at], a.biases[b].value);
    }
    sync_threads();
    float* to = a.changed + (u64)k.changed * a.width;
    for (int i = threadIdx.x; i < CHANGED && first + i < a.width; i += 256) to[first + i] = own[i];
}

KERNEL(peaks, Draw, 512) {
    DYNAMIC_SHARED(memory);
    u64* slots = (u64*)memory;
    wait_for_grid();
    const Asked& k = a.asks[blockIdx.x];
    const Row r = row_of(a, k);
    u64 top = 0, best = 0;
    for (int i = threadIdx.x; i < a.width; i += 512) {
        const float logit = r.logits[i];
        // What is not a number is told by the sums.
        if (logit != logit) continue;
        const u64 rank = rank_of(logit, i);
        top = top < rank ? rank : top;
        const bool is_allowed = word_of(r, i >> 5) >> (i & 31) & 1;
        if (is_allowed && is_number(logit)) best = best < rank ? rank : best;
    }
    release_next_grid();
    top = largest(top, slots);
    best = largest(best, slots);
    if (threadIdx.x == 0) {
        a.peaks[blockIdx.x] = top ? logit_of(top >> 32) : bits_f(0xff800000u);
        a.bests[blockIdx.x] = best;
    }
    if (k.flags & CUT) {
        a.masses[(u64)blockIdx.x * BINS + threadIdx.x] = 0;
        a.counts[(u64)blockIdx.x * BINS + threadIdx.x] = 0;
    }
}

// What the tokens of a cut row weigh, in whole numbers of which the most likely token has 2^44 to 2^45 (`law/cut/masses.rs`).
struct Masses { float best, peak; double scale, unit; };
DEV Masses masses_of(const Draw& a, int ask, double scale) {
    Masses m;
    m.best = logit_of(a.bests[ask] >> 32);
    m.peak = a.peaks[ask];
    m.scale = scale;
    const u64 exponent = d_bits(weight_of(m.best, m.peak, scale)) >> 52;
    m.unit = bits_d((2 * 1023 + 44 - exponent) << 52);
    return m;
}
// The nearest whole number.
DEV u64 whole(double number) { return (u64)add(number, 0.5); }
DEV u64 mass_of(const Masses& m, double weight) { return whole(mul(weight, m.unit)); }
// How far below the most likely token a logit is, in bins; all that is far below is in the last.
DEV int bin_of(const Masses& m, float logit) {
    const double bins = mul(mul(add((double)m.best, -(double)logit), m.scale), BINS_OF_NAT);
    return bins < BINS - 1 ? (int)bins : BINS - 1;
}

// Masses and counts of parts in shared memory; a mass in two words, since there is no sum of 64 bits there.
struct Tally { u32* low; u32* high; u32* count; };
DEV Tally tally_at(u8* memory) {
    u32* words = (u32*)memory;
    return {words, words + BINS, words + 2 * BINS};
}
DEV void put_in(const Tally& t, int bin, u64 mass) {
    const u32 low = (u32)mass, before = count_in(t.low + bin, low);
    count_in(t.high + bin, (u32)(mass >> 32) + (before + low < before));
    count_in(t.count + bin, 1);
}
DEV void clear(const Tally& t, int threads) {
    for (int i = threadIdx.x; i < BINS; i += threads) t.low[i] = t.high[i] = t.count[i] = 0;
}

// Each warp turns 32 × 32 logits in shared memory, and then each lane sums a block of 32.
KERNEL(sums, Draw, 128) {
    DYNAMIC_SHARED(memory);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, ask = blockIdx.y, base = (blockIdx.x * 4 + warp) * 32;
    float* turned = (float*)memory + warp * 32 * 33;
    const Tally tally = tally_at(memory + 4 * 32 * 33 * 4);
    wait_for_grid();
    const Asked& k = a.asks[ask];
    const Row r = row_of(a, k);
    for (int b = 0; b < 32; b++) {
        const int at = (base + b) * 32 + lane;
        turned[b * 33 + lane] = at < a.width ? r.logits[at] : bits_f(0xff800000u);
    }
    const bool is_cut = k.flags & CUT;
    if (is_cut) { clear(tally, 128); sync_threads(); } else sync_warp();
    release_next_grid();
    const int block = base + lane;
    if (block < a.blocks) {
        const u32 word = word_of(r, block);
        const float peak = a.peaks[ask];
        double all = 0.0, some = 0.0;
        u32 top = 0;
        const Masses m = is_cut ? masses_of(a, ask, k.scale) : Masses{0.f, 0.f, 0.0, 0.0};
        for (int t = 0; t < 32; t++) {
            const float logit = turned[lane * 33 + t];
            const double w = weight_of(logit, peak, k.scale);
            const bool is_allowed = word >> t & 1;
            all = add(all, w);
            some = add(some, is_allowed ? w : 0.0);
            if (is_cut && is_allowed && is_number(logit)) {
                put_in(tally, bin_of(m, logit), mass_of(m, w));
                top = max(top, key_of(logit));
            }
        }
        a.whole[(u64)ask * a.blocks + block] = all;
        a.allowed[(u64)ask * a.blocks + block] = some;
        if (is_cut) a.tops[(u64)ask * a.blocks + block] = top;
    }
    if (!is_cut) return;
    sync_threads();
    for (int i = threadIdx.x; i < BINS; i += 128) {
        if (!tally.count[i]) continue;
        sum_up(a.masses + (u64)ask * BINS + i, (u64)tally.high[i] << 32 | tally.low[i]);
        count_in(a.counts + (u64)ask * BINS + i, tally.count[i]);
    }
}

// The sum of a group of blocks.
DEV double group_sum(const double* blocks, int group, int count) {
    double sum = 0.0;
    const int end = min(group * GROUP_BLOCKS + GROUP_BLOCKS, count);
    for (int b = group * GROUP_BLOCKS; b < end; b++) sum = add(sum, blocks[b]);
    return sum;
}

// A row that is cut, in a block of 512 threads.
struct Cutting {
    Row row;
    Masses masses;
    const u32* tops;
    Tally tally;
    u64* sums;      // [BINS]: masses up to each part
    u64* slots;     // [16]
    int* found;
};
// What was looked for: the ranks from the first down to this one, and their mass.
struct Reached { u64 rank, mass; };

// All tokens that may be kept, in blocks whose largest key is at least this.
template <class F> DEV void visit(const Cutting& c, u32 least, F f) {
    for (int b = threadIdx.x; b < c.row.blocks; b += 512) {
        if (c.tops[b] == 0 || c.tops[b] < least) continue;
        const u32 word = word_of(c.row, b);
        for (int t = 0; t < 32; t++) {
            const int token = b * 32 + t;
            if (!(word >> t & 1) || token >= c.row.width) continue;
            const float logit = c.row.logits[token];
            if (is_number(logit)) f(logit, token);
        }
    }
}
DEV u64 mass_at(const Cutting& c, float logit) { return mass_of(c.masses, weight_of(logit, c.masses.peak, c.masses.scale)); }

// Sums of masses and counts up to each part.
DEV void add_up(const Cutting& c) {
    const int i = threadIdx.x;
    for (int step = 1; step < BINS; step *= 2) {
        sync_threads();
        const u64 mass = i >= step ? c.sums[i - step] : 0;
        const u32 count = i >= step ? c.tally.count[i - step] : 0;
        sync_threads();
        c.sums[i] += mass;
        c.tally.count[i] += count;
    }
    sync_threads();
}
DEV u64 up_to(const Cutting& c, int part, bool is_count) {
    return part < 0 ? 0 : is_count ? c.tally.count[part] : c.sums[part];
}
// The part in which so much is reached, or below 0.
DEV int part_of(const Cutting& c, u64 need, bool is_count) {
    const int i = threadIdx.x;
    if (i == 0) *c.found = -1;
    sync_threads();
    if (up_to(c, i - 1, is_count) < need && need <= up_to(c, i, is_count)) *c.found = i;
    sync_threads();
    const int part = *c.found;
    sync_threads();
    return part;
}

// The least rank from which on the tokens above it, itself included, are so many or so heavy; 0 and the mass of all if they never are.
DEV Reached reach(const Draw& a, const Cutting& c, int ask, u64 need, bool is_count) {
    sync_threads();
    c.sums[threadIdx.x] = a.masses[(u64)ask * BINS + threadIdx.x];
    c.tally.count[threadIdx.x] = a.counts[(u64)ask * BINS + threadIdx.x];
    add_up(c);
    const int bin = part_of(c, need, is_count);
    if (bin < 0) return {0, c.sums[BINS - 1]};
    u64 mass = up_to(c, bin - 1, false), low = 0, top = 0;
    need -= up_to(c, bin - 1, is_count);
    visit(c, 0, [&](float logit, int token) {
        if (bin_of(c.masses, logit) != bin) return;
        const u64 rank = rank_of(logit, token);
        top = top < rank ? rank : top;
        low = low < ~rank ? ~rank : low;
    });
    top = largest(top, c.slots);
    low = ~largest(low, c.slots);
    for (;;) {
        int shift = 0;
        while ((top - low) >> shift >= BINS) shift++;
        clear(c.tally, 512);
        sync_threads();
        visit(c, (u32)(low >> 32), [&](float logit, int token) {
            const u64 rank = rank_of(logit, token);
            if (rank >= low && rank <= top) put_in(c.tally, (int)((top - rank) >> shift), mass_at(c, logit));
        });
        sync_threads();
        c.sums[threadIdx.x] = (u64)c.tally.high[threadIdx.x] << 32 | c.tally.low[threadIdx.x];
        add_up(c);
        const int part = part_of(c, need, is_count);
        if (part < 0) return {low, mass + c.sums[BINS - 1]};
        const u64 through = mass + c.sums[part];
        const u64 inside = up_to(c, part, true) - up_to(c, part - 1, true);
        mass += up_to(c, part - 1, false);
        need -= up_to(c, part - 1, is_count);
        top -= (u64)part << shift;
        const u64 end = top - ((1ull << shift) - 1);
        low = end > low && end <= top ? end : low;
        if (shift == 0 || inside == 1) return {low, through};
        sync_threads();
    }
}

// What is allowed in all, as the host sums it; told to all threads.
DEV double sum_of(const Draw& a, int ask, double* groups) {
    const int count = (a.blocks + GROUP_BLOCKS - 1) / GROUP_BLOCKS, g = threadIdx.x;
    if (g < count) groups[g] = group_sum(a.allowed + (u64)ask * a.blocks, g, a.blocks);
    sync_threads();
    double sum = 0.0;
    for (int i = 0; i < count; i++) sum = add(sum, groups[i]);
    sync_threads();
    return sum;
}

KERNEL(cut, Draw, 512) {
    DYNAMIC_SHARED(memory);
    const int ask = blockIdx.x;
    wait_for_grid();
    const Asked& k = a.asks[ask];
    release_next_grid();
    if (!(k.flags & CUT)) return;
    Cutting c = {row_of(a, k), masses_of(a, ask, k.scale), a.tops + (u64)ask * a.blocks, tally_at(memory)};
    c.sums = (u64*)(memory + 3 * 4 * BINS);
    c.slots = c.sums + BINS;
    c.found = (int*)(c.slots + 16);
    // Where it will be left to the host, nothing is kept.
    const double sum = sum_of(a, ask, (double*)c.sums);
    const bool is_law = sum >= LEAST_SUM && sum - sum == 0.0;
    Reached reached = {0, 0};
    if (is_law && k.top_k) reached = reach(a, c, ask, k.top_k, true);
    if (is_law && k.top_p < 1.0) {
        const double all = k.top_k ? (double)reached.mass : mul(sum, c.masses.unit);
        const Reached nucleus = reach(a, c, ask, max(whole(mul(k.top_p, all)), (u64)1), false);
        reached.rank = max(reached.rank, nucleus.rank);
    }
    const double least = mul(k.min_p, weight_of(c.masses.best, c.masses.peak, k.scale));
    for (int b = threadIdx.x; b < a.blocks; b += 512) {
        double kept = 0.0;
        const u32 top = c.tops[b];
        // The exponential may fall by some last digits where its argument rises.
        const bool is_heavy = top && weight_of(logit_of(top), c.masses.peak, k.scale) >= mul(least, 0.999999);
        if (is_law && top >= (u32)(reached.rank >> 32) && is_heavy) {
            const u32 word = word_of(c.row, b);
            for (int t = 0; t < 32 && b * 32 + t < a.width; t++) {
                const float logit = c.row.logits[b * 32 + t];
                if (!(word >> t & 1) || !is_number(logit) || rank_of(logit, b * 32 + t) < reached.rank) continue;
                const double w = weight_of(logit, c.masses.peak, k.scale);
                kept = add(kept, w >= least ? w : 0.0);
            }
        }
        a.kept[(u64)ask * a.blocks + b] = kept;
    }
    if (threadIdx.x == 0) a.bounds[ask] = {reached.rank, least};
}

// The sums of a row, for the thread that walks them.
struct Walked { const double* blocks; const double* groups; int group_count, block_count; double kept, sum, total; };

// The kept sum without a block; its group is summed anew.
DEV double sum_without(const Walked& w, int block) {
    double sum = 0.0;
    for (int g = 0; g < w.group_count; g++) {
        double s = w.groups[g];
        if (g == block / GROUP_BLOCKS) {
            s = 0.0;
            const int end = min(g * GROUP_BLOCKS + GROUP_BLOCKS, w.block_count);
            for (int b = g * GROUP_BLOCKS; b < end; b++) if (b != block) s = add(s, w.blocks[b]);
        }
        sum = add(sum, s);
    }
    return sum;
}

DEV Drawn walk(const Draw& a, int ask, const Walked& w) {
    const Asked& k = a.asks[ask];
    const Row r = row_of(a, k);
    Drawn drawn = {w.sum, w.total, w.kept, 0.0, 0.0, 0, 0.f, a.peaks[ask], 1};
    // Infinity less itself is not a number either.
    if (!(w.sum >= LEAST_SUM) || !(w.total - w.total == 0.0)) return drawn;
    int token = token_of(a.bests[ask]);
    if (k.flags & GREEDY) {
        drawn.kept = drawn.weight = weight_of(r.logits[token], drawn.peak, k.scale);
    } else {
        const int group = choose(uniform(k.seed, k.place, PURPOSE_GROUP), w.kept, w.group_count, [&](int i) { return w.groups[i]; });
        const int first = group * GROUP_BLOCKS, count = min(GROUP_BLOCKS, w.block_count - first);
        const int block = first + choose(uniform(k.seed, k.place, PURPOSE_BLOCK), w.groups[group], count, [&](int i) { return w.blocks[first + i]; });
        const u32 word = word_of(r, block);
        const Bound bound = k.flags & CUT ? a.bounds[ask] : Bound{0, 0.0};
        auto weight = [&](int t) {
            const int at = block * 32 + t;
            if (!(word >> t & 1) || at >= a.width || rank_of(r.logits[at], at) < bound.rank) return 0.0;
            const double own = weight_of(r.logits[at], drawn.peak, k.scale);
            return own >= bound.weight ? own : 0.0;
        };
        const int at = choose(uniform(k.seed, k.place, PURPOSE_TOKEN), w.blocks[block], 32, weight);
        double inside = 0.0;
        for (int t = 0; t < 32; t++) if (t != at) inside = add(inside, weight(t));
        token = block * 32 + at;
        drawn.weight = weight(at);
        drawn.others = add(sum_without(w, block), inside);
    }
    drawn.token = token;
    drawn.logit = r.logits[token];
    drawn.state = drawn.kept >= LEAST_SUM ? 0 : 1;
    return drawn;
}

KERNEL(draw, Draw, 128) {
    DYNAMIC_SHARED(memory);
    double* whole = (double*)memory;
    double* some = whole + 128;
    double* kept = some + 128;
    const int ask = blockIdx.x, groups = (a.blocks + GROUP_BLOCKS - 1) / GROUP_BLOCKS, g = threadIdx.x;
    wait_for_grid();
    const bool is_cut = a.asks[ask].flags & CUT;
    const double* allowed = a.allowed + (u64)ask * a.blocks;
    const double* blocks = is_cut ? a.kept + (u64)ask * a.blocks : allowed;
    if (g < groups) {
        whole[g] = group_sum(a.whole + (u64)ask * a.blocks, g, a.blocks);
        some[g] = group_sum(allowed, g, a.blocks);
        kept[g] = is_cut ? group_sum(blocks, g, a.blocks) : some[g];
    }
    sync_threads();
    if (g) return;
    Walked walked = {blocks, kept, groups, a.blocks, 0.0, 0.0, 0.0};
    for (int i = 0; i < groups; i++) {
        walked.total = add(walked.total, whole[i]);
        walked.sum = add(walked.sum, some[i]);
        walked.kept = add(walked.kept, kept[i]);
    }
    a.out[ask] = walk(a, ask, walked);
}
