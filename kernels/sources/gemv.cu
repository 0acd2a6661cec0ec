// y = W·x for one or two vectors x: the products of decoding one answer, which read every weight once.
//
// Computes, in f32 sums: PLAIN out = W·x; ADD out += W·x; GATE out = silu(W₀·x) · (W₁·x), where the first half of the rows
// of W are gates and the second half what they let through; WIDE out = W·x in f32, of those vectors that are wanted. Where
// there is a scale, x is normed first (rms, then the scale).
//
// W is in bf16; in gemv_int8.cu and gemv_fp8.cu it is in eight bits with a scale for each row, which its sum is multiplied with: half
// the bytes, and more instructions for each (`Int8`, `E4m3` in device.h).
//
//   grid     one block for each multiprocessor; block b owns the rows [b·N/G, (b+1)·N/G) of W, which lie together, or as many
//            gates with what they let through
//   block    9 warps: one copies, eight multiply; a ring of STAGES × 8/WARPS rows, 96 KB, on mbarriers
//   copying  whole rows by the copy engine, begun before the kernel ahead has ended, because W does not depend on it: so
//            the memory is busy while that kernel drains and while x is normed
//   warps    WARPS warps share a row; a lane holds its columns of x in registers from the first row to the last
//   shared   96 KB of ring, its barriers, and the sums of the block's rows (`Gemv::shared` in shapes.rs): two blocks fit
//            a multiprocessor, the next kernel's beside this one's
//
// Three vectors and more: skinny.cu; four in registers would spill.
// Source: the overlap of a kernel's weights with the end of the one before is programmatic dependent launch, CUDA
// Programming Guide, section 4.5.
#include "device.h"
#ifndef WEIGHTS
#define WEIGHTS Bf16
#define NAMED(kernel) kernel
#endif

enum { PLAIN, ADD, GATE, WIDE };

struct Gemv {
    const u8* weights;     // [rows, K]
    const bf16* x;         // [M, K]; WIDE: [tokens, K]
    const bf16* scale;     // [K]: of the norm before, or none
    const int* wanted;     // WIDE: [M], which rows of x are vectors; those below 0 are left out. Or none: all, in order
    bf16* normed;          // WIDE: [M, K], where the vectors are left as they are multiplied, or none
    void* out;             // [M, rows]; GATE: [M, rows / 2]; WIDE: f32
    const float* scales;   // [rows]: of weights in eight bits
    int rows;              // even
    float eps;
};

template <class W, int K, int WARPS> struct Ring {
    static const int ROWS = 8 / WARPS, ROW = K * W::BYTES, STAGES = 98304 / (ROWS * ROW), SLICE = K / WARPS, CHUNKS = SLICE / 256;
    u8* weights;     // [STAGES][ROWS][ROW]
    u64* full;       // [STAGES]
    u64* empty;      // [STAGES]
    int first, count, steps;
};

template <class W, int K, int WARPS> DEV Ring<W, K, WARPS> ring_of(const Gemv& a, u8* memory) {
    typedef Ring<W, K, WARPS> R;
    R ring;
    ring.weights = memory;
    ring.full = (u64*)(memory + R::STAGES * R::ROWS * R::ROW);
    ring.empty = ring.full + R::STAGES;
    const int pairs = a.rows / 2;
    ring.first = (int)((long long)pairs * blockIdx.x / gridDim.x) * 2;
    ring.count = (int)((long long)pairs * (blockIdx.x + 1) / gridDim.x) * 2 - ring.first;
    ring.steps = (ring.count + R::ROWS - 1) / R::ROWS;
    if (threadIdx.x == 0) {
        for (int s = 0; s < R::STAGES; s++) { barrier_new(ring.full + s, 1); barrier_new(ring.empty + s, 8); }
        barrier_fence();
    }
    sync_threads();
    return ring;
}

// Copies all rows of the block, by one thread. Of a stage with gates, these are the first half.
template <class W, int K, int WARPS, int END> DEV void stream(const Gemv& a, const Ring<W, K, WARPS>& ring) {
    typedef Ring<W, K, WARPS> R;
    const int ROWS = R::ROWS, STAGES = R::STAGES, ROW = R::ROW;
    for (int i = 0; i < ring.steps; i++) {
        const int s = i % STAGES, rows = min(ROWS, ring.count - i * ROWS);
        if (i >= STAGES) barrier_wait(ring.empty + s, (i / STAGES - 1) & 1);
        barrier_expect(ring.full + s, rows * ROW);
        u8* to = ring.weights + s * ROWS * ROW;
        if (END == GATE) {
            const u64 gate = (ring.first + i * ROWS) / 2;
            copy_bulk(to, a.weights + gate * ROW, rows / 2 * ROW, ring.full + s);
            copy_bulk(to + ROWS / 2 * ROW, a.weights + (a.rows / 2 + gate) * ROW, rows / 2 * ROW, ring.full + s);
        } else {
            copy_bulk(to, a.weights + (u64)(ring.first + i * ROWS) * ROW, rows * ROW, ring.full + s);
        }
    }
}

// The columns of x that a lane multiplies, two numbers a word.
template <int M, int CHUNKS> struct Columns { u32 at[M][CHUNKS][4]; };

// The row of x that vector `m` is; below 0 if it is left out.
template <int END> DEV int row_of(const Gemv& a, int m) { return END == WIDE && a.wanted ? a.wanted[m] : m; }

// What is left out is multiplied like the first row, and not written.
template <int K, int WARPS, int M, int END> DEV void load_x(const Gemv& a, int column, Columns<M, K / WARPS / 256>& x) {
#pragma unroll
    for (int m = 0; m < M; m++) {
        const bf16* row = a.x + (u64)max(row_of<END>(a, m), 0) * K + column;
#pragma unroll
        for (int c = 0; c < K / WARPS / 256; c++) {
            const uint4 v = *(const uint4*)(row + c * 256);
            x.at[m][c][0] = v.x; x.at[m][c][1] = v.y; x.at[m][c][2] = v.z; x.at[m][c][3] = v.w;
        }
    }
}

// Leaves the vectors as they are multiplied, by the warps of one row.
template <int K, int WARPS, int M> DEV void store_x(const Gemv& a, int column, const Columns<M, K / WARPS / 256>& x) {
#pragma unroll
    for (int m = 0; m < M; m++) {
        if (row_of<WIDE>(a, m) < 0) continue;
#pragma unroll
        for (int c = 0; c < K / WARPS / 256; c++) {
            uint4 v;
            v.x = x.at[m][c][0]; v.y = x.at[m][c][1]; v.z = x.at[m][c][2]; v.w = x.at[m][c][3];
            *(uint4*)(a.normed + (u64)m * K + column + c * 256) = v;
        }
    }
}

// x / rms(x) · scale, rounded as a norm that is a kernel of its own rounds it.
template <int K, int WARPS, int M> DEV void norm_x(const Gemv& a, int column, float* squares, Columns<M, K / WARPS / 256>& x) {
    const int CHUNKS = K / WARPS / 256, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int m = 0; m < M; m++) {
        float square = 0.f;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float l = low_half(x.at[m][c][e]), h = high_half(x.at[m][c][e]);
                square = fma_(l, l, fma_(h, h, square));
            }
#pragma unroll
        for (int s = 16; s; s >>= 1) square += shuffle_xor(square, s);
        if (lane == 0) squares[m * 8 + warp] = square;
    }
    sync_eight_warps();
#pragma unroll
    for (int m = 0; m < M; m++) {
        float square = 0.f;
#pragma unroll
        for (int w = 0; w < WARPS; w++) square += squares[m * 8 + warp / WARPS * WARPS + w];
        const float factor = rsqrt_(square / K + a.eps);
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const uint4 v = *(const uint4*)(a.scale + column + c * 256);
            const u32 scale[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int e = 0; e < 4; e++)
                x.at[m][c][e] = pack(low_half(x.at[m][c][e]) * factor * low_half(scale[e]),
                                     high_half(x.at[m][c][e]) * factor * high_half(scale[e]));
        }
    }
}

// A lane's part of one row's products.
template <class W, int M, int CHUNKS> DEV void multiply_row(const u8* from, const Columns<M, CHUNKS>& x, float* sum) {
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        float w[8];
        W::eight(from + c * 256 * W::BYTES, w);
#pragma unroll
        for (int e = 0; e < 4; e++)
#pragma unroll
            for (int m = 0; m < M; m++)
                sum[m] = fma_(w[2 * e], low_half(x.at[m][c][e]), fma_(w[2 * e + 1], high_half(x.at[m][c][e]), sum[m]));
    }
}

// The sums of the block's rows; with gates, each has its gate before it, where in the ring there is half a stage between them.
template <class W, int K, int WARPS, int M, int END>
DEV void multiply_rows(const Ring<W, K, WARPS>& ring, const Columns<M, K / WARPS / 256>& x, int column, float* sums) {
    typedef Ring<W, K, WARPS> R;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, slice = warp % WARPS, place = warp / WARPS;
    const int HALF = R::ROWS > 1 ? R::ROWS / 2 : 1, turned = END == GATE ? place % HALF * 2 + place / HALF : place;
    for (int i = 0; i < ring.steps; i++) {
        const int s = i % R::STAGES, row = i * R::ROWS + turned;
        barrier_wait(ring.full + s, (i / R::STAGES) & 1);
        float sum[M];
#pragma unroll
        for (int m = 0; m < M; m++) sum[m] = 0.f;
        if (row < ring.count)
            multiply_row<W, M, R::CHUNKS>(ring.weights + (s * R::ROWS + place) * R::ROW + column * W::BYTES, x, sum);
        sync_warp();
        if (lane == 0) barrier_arrive(ring.empty + s);
#pragma unroll
        for (int m = 0; m < M; m++) {
#pragma unroll
            for (int d = 16; d; d >>= 1) sum[m] += shuffle_xor(sum[m], d);
            if (lane == 0 && row < ring.count) sums[(row * WARPS + slice) * M + m] = sum[m];
        }
    }
}

// The product of a row of the block, which is this row of the weights.
template <class W, int WARPS, int M> DEV float total(const Gemv& a, const float* sums, int row, int of, int m) {
    float value = 0.f;
#pragma unroll
    for (int w = 0; w < WARPS; w++) value += sums[(row * WARPS + w) * M + m];
    return W::IS_SCALED ? value * a.scales[of] : value;
}

template <class W, int WARPS, int M, int END> DEV void finish(const Gemv& a, int first, int count, const float* sums) {
    const int outs = END == GATE ? count / 2 : count, width = END == GATE ? a.rows / 2 : a.rows;
    const int at = END == GATE ? first / 2 : first;
    for (int i = threadIdx.x; i < outs * M; i += 288) {
        const int m = i / outs, row = i % outs;
        const u64 place = (u64)m * width + at + row;
        if (row_of<END>(a, m) < 0) continue;
        if (END == GATE) {
            // Each of the three steps rounds to bf16, as torch's do.
            const float gate = widen(narrow(total<W, WARPS, M>(a, sums, 2 * row, at + row, m)));
            const float up = widen(narrow(total<W, WARPS, M>(a, sums, 2 * row + 1, width + at + row, m)));
            ((bf16*)a.out)[place] = narrow(widen(narrow(gate / (1.f + exp_(-gate)))) * up);
        } else if (END == WIDE) {
            ((float*)a.out)[place] = total<W, WARPS, M>(a, sums, row, at + row, m);
        } else {
            const float before = END == ADD ? widen(((bf16*)a.out)[place]) : 0.f;
            ((bf16*)a.out)[place] = narrow(total<W, WARPS, M>(a, sums, row, at + row, m) + before);
        }
    }
}

template <class W, int K, int WARPS, int M, int END> DEV void gemv(const Gemv& a) {
    DYNAMIC_SHARED(memory);
    typedef Ring<W, K, WARPS> R;
    const R ring = ring_of<W, K, WARPS>(a, memory);
    float* squares = (float*)(ring.empty + R::STAGES);   // [M][8]
    float* sums = squares + M * 8;                       // [rows of the block][WARPS][M]
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (warp == 8) {
        if (lane == 0) stream<W, K, WARPS, END>(a, ring);
        // All that is left to fetch is on its way: the next kernel may fill what this one leaves free.
        release_next_grid();
        wait_for_grid();
    } else {
        const int column = warp % WARPS * (K / WARPS) + lane * 8;
        wait_for_grid();
        Columns<M, K / WARPS / 256> x;
        load_x<K, WARPS, M, END>(a, column, x);
        if (a.scale) norm_x<K, WARPS, M>(a, column, squares, x);
        if (END == WIDE && a.normed && blockIdx.x == 0 && warp < WARPS) store_x<K, WARPS, M>(a, column, x);
        multiply_rows<W, K, WARPS, M, END>(ring, x, column, sums);
    }
    sync_threads();
    finish<W, WARPS, M, END>(a, ring.first, ring.count, sums);
}

// gemv_K_M_END: for widths between layers all ends, for widths behind gates the sum.
#define GEMV(K, WARPS, M, END) GEMV_AS(NAMED(gemv_##K##_##M##_##END), K, WARPS, M, END)
#define GEMV_AS(name, K, WARPS, M, END) KERNEL_BESIDE(name, Gemv, 288, (M * K / WARPS <= 2048 ? 2 : 1)) { gemv<WEIGHTS, K, WARPS, M, END>(a); }
GEMV(1024, 1, 1, PLAIN) GEMV(1024, 1, 1, ADD) GEMV(1024, 1, 1, GATE) GEMV(1024, 1, 1, WIDE)
GEMV(2048, 1, 1, PLAIN) GEMV(2048, 1, 1, ADD) GEMV(2048, 1, 1, GATE) GEMV(2048, 1, 1, WIDE)
GEMV(3072, 2, 1, PLAIN) GEMV(3072, 2, 1, ADD) GEMV(3072, 2, 1, GATE) GEMV(3072, 2, 1, WIDE)
GEMV(4096, 2, 1, PLAIN) GEMV(4096, 2, 1, ADD) GEMV(4096, 2, 1, GATE) GEMV(4096, 2, 1, WIDE)
GEMV(6144, 4, 1, ADD) GEMV(8192, 4, 1, ADD) GEMV(12288, 8, 1, ADD) GEMV(14336, 8, 1, ADD)
GEMV(1024, 1, 2, PLAIN) GEMV(1024, 1, 2, ADD) GEMV(1024, 1, 2, GATE) GEMV(1024, 1, 2, WIDE)
GEMV(2048, 1, 2, PLAIN) GEMV(2048, 1, 2, ADD) GEMV(2048, 1, 2, GATE) GEMV(2048, 1, 2, WIDE)
GEMV(3072, 2, 2, PLAIN) GEMV(3072, 2, 2, ADD) GEMV(3072, 2, 2, GATE) GEMV(3072, 2, 2, WIDE)
GEMV(4096, 2, 2, PLAIN) GEMV(4096, 2, 2, ADD) GEMV(4096, 2, 2, GATE) GEMV(4096, 2, 2, WIDE)
GEMV(6144, 4, 2, ADD) GEMV(8192, 4, 2, ADD) GEMV(12288, 8, 2, ADD) GEMV(14336, 8, 2, ADD)
