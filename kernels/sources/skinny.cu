// y = W·x for three to sixteen vectors x, by the tensor cores: small batches and drafts. W is read once.
//
// Computes, in f32 sums: PLAIN out = W·x; ADD out += W·x; WIDE out = W·x in f32. K is at most 4096: x lies whole in the
// shared memory of every block. K columns of wider rows are multiplied as well, for sums of several launches.
//
// W is in bf16; in skinny_int8.cu and skinny_fp8.cu it is in eight bits with a scale for each row, which its sum is multiplied with: half
// the bytes. A lane then reads eight weights of a row that lie together, and takes those for the columns of the mma that its fragments
// hold (columns may come in any order that both operands have), which is eight numbers of x that lie together.
//
//   grid     one block for each multiprocessor, which owns groups of 16 rows of W that lie together
//   block    9 warps: one copies, eight multiply; each of the eight has 128 of a stage's 1024 columns
//   mma      A: 16 rows of W × 16 columns, as they lie in memory; B: x as it lies, 8 vectors a tile (two tiles for 16)
//   stage    16 rows × 1024 columns: 16 bulk copies of 2 KB to rows of 1032, so that ldmatrix meets no bank twice; in eight bits of 1 KB to
//            rows of 1056
//   shared   2 or 3 stages, or twice as many of half the bytes; x in rows of K + 8 or K + 32, the eight warps' sums, barriers (`Skinny::shared` in shapes.rs)
#include "device.h"
#ifndef WEIGHTS
#define WEIGHTS Bf16
#define NAMED(kernel) kernel
#endif

enum { PLAIN, ADD, WIDE };

struct Skinny {
    const u8* weights;     // [rows, stride], from the first of K columns on
    const bf16* x;         // [M, stride], normed; from there on
    void* out;             // [M, rows]; WIDE: f32
    const float* scales;   // [rows]: of weights in eight bits
    int rows, m, end;      // rows is a multiple of 16
    int stride;            // columns of W and of x: K or more
};

template <class W, int K, int TILES> struct Room {
    static const int COLUMNS = 1024, SLICES = K / COLUMNS, WIDTH = 8 * TILES;
    static const int STAGES = (K * TILES > 4096 ? 2 : 3) * (2 / W::BYTES);
    static const int PITCH = COLUMNS * W::BYTES + (W::BYTES == 2 ? 16 : 32);   // bytes
    static const int X = K + (W::BYTES == 2 ? 8 : 32);                         // numbers
    u8* ring;      // [STAGES][16][PITCH]
    bf16* x;       // [8 * TILES][X]
    float* sums;   // [8 warps][16][8 * TILES]
    u64* full;     // [STAGES]
    u64* empty;    // [STAGES]
    int first, count;
};

template <class W, int K, int TILES> DEV Room<W, K, TILES> room_of(const Skinny& a, u8* memory) {
    typedef Room<W, K, TILES> R;
    R room;
    room.ring = memory;
    room.x = (bf16*)(room.ring + R::STAGES * 16 * R::PITCH);
    room.sums = (float*)(room.x + R::WIDTH * R::X);
    room.full = (u64*)(room.sums + 8 * 16 * R::WIDTH);
    room.empty = room.full + R::STAGES;
    const int groups = a.rows / 16;
    room.first = (int)((long long)groups * blockIdx.x / gridDim.x);
    room.count = (int)((long long)groups * (blockIdx.x + 1) / gridDim.x) - room.first;
    if (threadIdx.x == 0) {
        for (int s = 0; s < R::STAGES; s++) { barrier_new(room.full + s, 1); barrier_new(room.empty + s, 8); }
        barrier_fence();
    }
    sync_threads();
    return room;
}

// Copies all rows of the block, by one thread.
template <class W, int K, int TILES> DEV void stream(const Skinny& a, const Room<W, K, TILES>& room) {
    typedef Room<W, K, TILES> R;
    const int BYTES = W::BYTES;
    for (int i = 0; i < room.count * R::SLICES; i++) {
        const int s = i % R::STAGES;
        if (i >= R::STAGES) barrier_wait(room.empty + s, (i / R::STAGES - 1) & 1);
        barrier_expect(room.full + s, 16 * R::COLUMNS * BYTES);
        const u8* w = a.weights + ((u64)(room.first + i / R::SLICES) * 16 * a.stride + i % R::SLICES * R::COLUMNS) * BYTES;
        for (int row = 0; row < 16; row++)
            copy_bulk(room.ring + (s * 16 + row) * R::PITCH, w + (u64)row * a.stride * BYTES, R::COLUMNS * BYTES, room.full + s);
    }
}

// All vectors to shared memory; those that are not there are zeros.
template <class W, int K, int TILES> DEV void load_x(const Skinny& a, const Room<W, K, TILES>& room) {
    typedef Room<W, K, TILES> R;
    for (int i = threadIdx.x; i < R::WIDTH * K / 8; i += 256) {
        const int row = i / (K / 8), chunk = i % (K / 8);
        copy16(room.x + row * R::X + chunk * 8, a.x + (u64)min(row, a.m - 1) * a.stride + chunk * 8, row < a.m);
    }
    copy_commit();
    copy_wait<0>();
    sync_eight_warps();
}

// Operand A of two multiplications: 16 rows of a stage by 32 columns from `column` on, in bf16.
template <class W, int PITCH> DEV void load_rows(const u8* stage, int column, u32* left, u32* right) {
    const int lane = threadIdx.x & 31;
    if constexpr (W::BYTES == 2) {
        const u8* w = stage + (lane & 15) * PITCH + (column + (lane >> 4) * 8) * 2;
        load_matrices(left, w);
        load_matrices(right, w + 32);
    } else {
        const u8* w = stage + (lane >> 2) * PITCH + column + (lane & 3) * 8;
#pragma unroll
        for (int below = 0; below < 2; below++) {
            float n[8];
            W::eight(w + below * 8 * PITCH, n);
            left[below] = pack_exact(n[0], n[1]);
            left[2 + below] = pack_exact(n[2], n[3]);
            right[below] = pack_exact(n[4], n[5]);
            right[2 + below] = pack_exact(n[6], n[7]);
        }
    }
}

// Operand B of both: 8 vectors by the same columns in the same order.
template <class W> DEV void load_vectors(const bf16* x, int pitch, int column, u32* b) {
    const int lane = threadIdx.x & 31;
    if constexpr (W::BYTES == 2) {
        load_matrices(b, x + (lane & 7) * pitch + column + (lane >> 3) * 8);
    } else {
        const uint4 v = load16(x + (lane >> 2) * pitch + column + (lane & 3) * 8);
        b[0] = v.x; b[1] = v.y; b[2] = v.z; b[3] = v.w;
    }
}

// A warp's 128 columns of one stage.
template <class W, int K, int TILES>
DEV void multiply_stage(const Room<W, K, TILES>& room, int i, int slice, float sum[TILES][4]) {
    typedef Room<W, K, TILES> R;
    const int lane = threadIdx.x & 31, column = (threadIdx.x >> 5) * 128, s = i % R::STAGES;
    barrier_wait(room.full + s, (i / R::STAGES) & 1);
    const u8* stage = room.ring + s * 16 * R::PITCH;
#pragma unroll
    for (int k = 0; k < 128; k += 32) {
        u32 left[4], right[4];
        load_rows<W, R::PITCH>(stage, column + k, left, right);
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            u32 b[4];
            load_vectors<W>(room.x + t * 8 * R::X, R::X, slice * R::COLUMNS + column + k, b);
            multiply(sum[t], left, b[0], b[1]);
            multiply(sum[t], right, b[2], b[3]);
        }
    }
    sync_warp();
    if (lane == 0) barrier_arrive(room.empty + s);
}

// The sums of the eight warps, for 16 rows.
template <class W, int K, int TILES>
DEV void finish(const Skinny& a, const Room<W, K, TILES>& room, int group, const float sum[TILES][4]) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, WIDTH = 8 * TILES;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int row = warp * 16 + lane / 4 + (e >> 1) * 8;
            room.sums[row * WIDTH + t * 8 + (lane & 3) * 2 + (e & 1)] = sum[t][e];
        }
    sync_eight_warps();
    for (int j = threadIdx.x; j < 16 * a.m; j += 256) {
        const int row = j % 16, m = j / 16;
        float value = 0.f;
#pragma unroll
        for (int q = 0; q < 8; q++) value += room.sums[(q * 16 + row) * WIDTH + m];
        const int of = (room.first + group) * 16 + row;
        if (W::IS_SCALED) value *= a.scales[of];
        const u64 place = (u64)m * a.rows + of;
        if (a.end == WIDE) {
            ((float*)a.out)[place] = value;
        } else {
            const float before = a.end == ADD ? widen(((bf16*)a.out)[place]) : 0.f;
            ((bf16*)a.out)[place] = narrow(value + before);
        }
    }
    sync_eight_warps();
}

template <class W, int K, int TILES> DEV void skinny(const Skinny& a) {
    DYNAMIC_SHARED(memory);
    typedef Room<W, K, TILES> R;
    const R room = room_of<W, K, TILES>(a, memory);
    if (threadIdx.x >> 5 == 8) {
        if ((threadIdx.x & 31) == 0) stream<W, K, TILES>(a, room);
        release_next_grid();
        wait_for_grid();
        return;
    }
    wait_for_grid();
    load_x<W, K, TILES>(a, room);
    for (int group = 0, i = 0; group < room.count; group++) {
        float sum[TILES][4];
#pragma unroll
        for (int t = 0; t < TILES; t++) sum[t][0] = sum[t][1] = sum[t][2] = sum[t][3] = 0.f;
        for (int slice = 0; slice < R::SLICES; slice++, i++) multiply_stage<W, K, TILES>(room, i, slice, sum);
        finish<W, K, TILES>(a, room, group, sum);
    }
}

// skinny_K_VECTORS.
#define SKINNY(K, VECTORS) SKINNY_AS(NAMED(skinny_##K##_##VECTORS), K, VECTORS)
#define SKINNY_AS(name, K, VECTORS) KERNEL_BESIDE(name, Skinny, 288, 1) { skinny<WEIGHTS, K, VECTORS / 8>(a); }
SKINNY(1024, 8) SKINNY(2048, 8) SKINNY(3072, 8) SKINNY(4096, 8)
SKINNY(1024, 16) SKINNY(2048, 16) SKINNY(3072, 16) SKINNY(4096, 16)
