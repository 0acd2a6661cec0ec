// Draws from rows of logits, to the bit those of the library's law: IEEE sums and products of f64 in one stated order, an
// exponential that is made of them, and Philox. Of a row of 128,000 logits 48 bytes go home.
//
// The order is that of `law::sums` in the library: 32 tokens are summed to a block, 64 blocks to a group, and the groups to
// the total, each from the first to the last; a draw chooses a group, a block of it, a token of that. The longest chain is
// 63 + 64 + 32 additions. `law/exp.rs` has the exponential, `law/chooser.rs` the numbers of the purposes.
//
//   peaks   grid (rows), 512 threads, 64 bytes of shared memory: the largest logit
//   sums    grid (⌈blocks / 128⌉, rows), 128 threads, 16.5 KB: the sums of each block, of all and of what is allowed
//   draw    grid (rows), 128 threads, 2 KB: vocabularies of up to 262,144 tokens
//
// A row whose sums are not finite, or whose allowed sum is below 1e-200, is left to the host (`state` 1).
// Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
#include "device.h"

struct Drawn {
    double sum;      // of what is allowed, relative to the peak
    double total;    // of the row, relative to the peak
    double weight;   // of the token
    double others;   // of all allowed tokens but this one, summed anew
    u32 token;
    float logit;     // of the token
    float peak;
    u32 state;       // 0: drawn; 1: the row has to be looked at
};
struct Draw {
    const float* logits;    // [rows, width]; columns that are no tokens hold minus infinity
    float* peaks;           // [rows]
    double* whole;          // [rows, blocks]
    double* allowed;        // [rows, blocks]
    const u32* masks;       // [masks, blocks]
    const int* mask_of;     // [rows]; below 0: everything is allowed
    const double* scales;   // [rows]: one over the temperature
    const u64* seeds;       // [rows]
    const u32* places;      // [rows, 3]: position, attempt, number of the sequence
    Drawn* out;             // [rows]; pinned memory of the host
    int width, blocks;
};
// What a choice decides; the numbers of law::Purpose.
enum { PURPOSE_BLOCK = 0, PURPOSE_TOKEN = 1, PURPOSE_GROUP = 9 };
// Blocks of a group.
#define GROUP_BLOCKS 64

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

KERNEL(peaks, Draw, 512) {
    DYNAMIC_SHARED(memory);
    float* tops = (float*)memory;
    wait_for_grid();
    const float* row = a.logits + (u64)blockIdx.x * a.width;
    float top = bits_f(0xff800000u);
    for (int i = threadIdx.x; i < a.width; i += 512) top = fmaxf(top, row[i]);
#pragma unroll
    for (int s = 16; s; s >>= 1) top = fmaxf(top, shuffle_xor(top, s));
    if ((threadIdx.x & 31) == 0) tops[threadIdx.x >> 5] = top;
    release_next_grid();
    sync_threads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 16; w++) top = fmaxf(top, tops[w]);
        a.peaks[blockIdx.x] = top;
    }
}

// Each warp turns 32 × 32 logits in shared memory, and then each lane sums a block of 32.
KERNEL(sums, Draw, 128) {
    DYNAMIC_SHARED(memory);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row = blockIdx.y, base = (blockIdx.x * 4 + warp) * 32;
    float* turned = (float*)memory + warp * 32 * 33;
    wait_for_grid();
    for (int b = 0; b < 32; b++) {
        const int at = (base + b) * 32 + lane;
        turned[b * 33 + lane] = at < a.width ? a.logits[(u64)row * a.width + at] : bits_f(0xff800000u);
    }
    sync_warp();
    release_next_grid();
    const int block = base + lane, mask = a.mask_of[row];
    if (block >= a.blocks) return;
    const u32 word = mask < 0 ? ~0u : a.masks[(u64)mask * a.blocks + block];
    const float peak = a.peaks[row];
    const double scale = a.scales[row];
    double all = 0.0, some = 0.0;
    for (int t = 0; t < 32; t++) {
        const double w = weight_of(turned[lane * 33 + t], peak, scale);
        all = add(all, w);
        some = add(some, word >> t & 1 ? w : 0.0);
    }
    a.whole[(u64)row * a.blocks + block] = all;
    a.allowed[(u64)row * a.blocks + block] = some;
}

// The sums of a row, for the thread that walks them.
struct Walked { const double* blocks; const double* groups; int group_count, block_count; double sum, total; };

// The allowed sum without a block; its group is summed anew.
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

DEV Drawn walk(const Draw& a, int row, const Walked& w) {
    Drawn drawn = {w.sum, w.total, 0.0, 0.0, 0, 0.f, a.peaks[row], 1};
    // Infinity less itself is not a number either.
    if (!(w.sum >= 1e-200) || !(w.total - w.total == 0.0)) return drawn;
    const u64 seed = a.seeds[row];
    const u32* place = a.places + row * 3;
    const int group = choose(uniform(seed, place, PURPOSE_GROUP), w.sum, w.group_count, [&](int i) { return w.groups[i]; });
    const int first = group * GROUP_BLOCKS, count = min(GROUP_BLOCKS, w.block_count - first);
    const int block = first + choose(uniform(seed, place, PURPOSE_BLOCK), w.groups[group], count, [&](int i) { return w.blocks[first + i]; });
    const int mask = a.mask_of[row];
    const u32 word = mask < 0 ? ~0u : a.masks[(u64)mask * a.blocks + block];
    const float* logits = a.logits + (u64)row * a.width + block * 32;
    auto weight = [&](int t) {
        const bool is_allowed = (word >> t & 1) && block * 32 + t < a.width;
        return is_allowed ? weight_of(logits[t], drawn.peak, a.scales[row]) : 0.0;
    };
    const int token = choose(uniform(seed, place, PURPOSE_TOKEN), w.blocks[block], 32, weight);
    double inside = 0.0;
    for (int t = 0; t < 32; t++) if (t != token) inside = add(inside, weight(t));
    drawn.token = block * 32 + token;
    drawn.logit = logits[token];
    drawn.weight = weight(token);
    drawn.others = add(sum_without(w, block), inside);
    drawn.state = 0;
    return drawn;
}

KERNEL(draw, Draw, 128) {
    DYNAMIC_SHARED(memory);
    double* whole = (double*)memory;
    double* some = whole + 128;
    const int row = blockIdx.x, groups = (a.blocks + GROUP_BLOCKS - 1) / GROUP_BLOCKS, g = threadIdx.x;
    wait_for_grid();
    const double* all = a.whole + (u64)row * a.blocks;
    const double* allowed = a.allowed + (u64)row * a.blocks;
    if (g < groups) {
        double w = 0.0, s = 0.0;
        for (int b = g * GROUP_BLOCKS; b < min(g * GROUP_BLOCKS + GROUP_BLOCKS, a.blocks); b++) {
            w = add(w, all[b]);
            s = add(s, allowed[b]);
        }
        whole[g] = w;
        some[g] = s;
    }
    sync_threads();
    if (g) return;
    Walked walked = {allowed, some, groups, a.blocks, 0.0, 0.0};
    for (int i = 0; i < groups; i++) {
        walked.total = add(walked.total, whole[i]);
        walked.sum = add(walked.sum, some[i]);
    }
    a.out[row] = walk(a, row, walked);
}
