// y = W·x for three to sixteen vectors x, by the tensor cores: small batches and drafts. W is read once.
//
// Computes, in f32 sums: PLAIN out = W·x; ADD out += W·x; WIDE out = W·x in f32. K is at most 4096: x lies whole in the
// shared memory of every block.
//
//   grid     one block for each multiprocessor, which owns groups of 16 rows of W that lie together
//   block    9 warps: one copies, eight multiply; each of the eight has 128 of a stage's 1024 columns
//   mma      A: 16 rows of W × 16 columns, as they lie in memory; B: x as it lies, 8 vectors a tile (two tiles for 16)
//   stage    16 rows × 1024 columns: 16 bulk copies of 2 KB to rows of 1032, so that ldmatrix meets no bank twice
//   shared   2 or 3 stages, x in rows of K + 8, the eight warps' sums, barriers (`Skinny::shared` in shapes.rs)
#include "device.h"

enum { PLAIN, ADD, WIDE };

struct Skinny {
    const bf16* weights;   // [rows, K]
    const bf16* x;         // [M, K], normed
    void* out;             // [M, rows]; WIDE: f32
    int rows, m, end;      // rows is a multiple of 16
};

template <int K, int TILES> struct Room {
    static const int COLUMNS = 1024, PITCH = COLUMNS + 8, STAGES = K * TILES > 4096 ? 2 : 3, X = K + 8;
    static const int SLICES = K / COLUMNS, WIDTH = 8 * TILES;
    bf16* ring;    // [STAGES][16][PITCH]
    bf16* x;       // [8 * TILES][X]
    float* sums;   // [8 warps][16][8 * TILES]
    u64* full;     // [STAGES]
    u64* empty;    // [STAGES]
    int first, count;
};

template <int K, int TILES> DEV Room<K, TILES> room_of(const Skinny& a, u8* memory) {
    typedef Room<K, TILES> R;
    Room<K, TILES> room;
    room.ring = (bf16*)memory;
    room.x = room.ring + R::STAGES * 16 * R::PITCH;
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
template <int K, int TILES> DEV void stream(const Skinny& a, const Room<K, TILES>& room) {
    typedef Room<K, TILES> R;
    for (int i = 0; i < room.count * R::SLICES; i++) {
        const int s = i % R::STAGES;
        if (i >= R::STAGES) barrier_wait(room.empty + s, (i / R::STAGES - 1) & 1);
        barrier_expect(room.full + s, 16 * R::COLUMNS * 2);
        const bf16* w = a.weights + (u64)(room.first + i / R::SLICES) * 16 * K + i % R::SLICES * R::COLUMNS;
        for (int row = 0; row < 16; row++)
            copy_bulk(room.ring + (s * 16 + row) * R::PITCH, w + row * K, R::COLUMNS * 2, room.full + s);
    }
}

// All vectors to shared memory; those that are not there are zeros.
template <int K, int TILES> DEV void load_x(const Skinny& a, const Room<K, TILES>& room) {
    typedef Room<K, TILES> R;
    for (int i = threadIdx.x; i < R::WIDTH * K / 8; i += 256) {
        const int row = i / (K / 8), chunk = i % (K / 8);
        copy16(room.x + row * R::X + chunk * 8, a.x + (u64)min(row, a.m - 1) * K + chunk * 8, row < a.m);
    }
    copy_commit();
    copy_wait<0>();
    sync_eight_warps();
}

// A warp's 128 columns of one stage.
template <int K, int TILES> DEV void multiply_stage(const Room<K, TILES>& room, int i, int slice, float sum[TILES][4]) {
    typedef Room<K, TILES> R;
    const int lane = threadIdx.x & 31, column = (threadIdx.x >> 5) * 128, s = i % R::STAGES;
    barrier_wait(room.full + s, (i / R::STAGES) & 1);
    const bf16* w = room.ring + s * 16 * R::PITCH + (lane & 15) * R::PITCH + column + (lane >> 4) * 8;
    const bf16* x = room.x + (lane & 7) * R::X + slice * R::COLUMNS + column + (lane >> 3) * 8;
#pragma unroll
    for (int k = 0; k < 128; k += 32) {
        u32 left[4], right[4];
        load_matrices(left, w + k);
        load_matrices(right, w + k + 16);
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            u32 b[4];   // 8 vectors × 32 columns
            load_matrices(b, x + t * 8 * R::X + k);
            multiply(sum[t], left, b[0], b[1]);
            multiply(sum[t], right, b[2], b[3]);
        }
    }
    sync_warp();
    if (lane == 0) barrier_arrive(room.empty + s);
}

// The sums of the eight warps, for 16 rows.
template <int K, int TILES>
DEV void finish(const Skinny& a, const Room<K, TILES>& room, int group, const float sum[TILES][4]) {
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
        const u64 place = (u64)m * a.rows + (room.first + group) * 16 + row;
        if (a.end == WIDE) {
            ((float*)a.out)[place] = value;
        } else {
            const float before = a.end == ADD ? widen(((bf16*)a.out)[place]) : 0.f;
            ((bf16*)a.out)[place] = narrow(value + before);
        }
    }
    sync_eight_warps();
}

template <int K, int TILES> DEV void skinny(const Skinny& a) {
    DYNAMIC_SHARED(memory);
    Room<K, TILES> room = room_of<K, TILES>(a, memory);
    if (threadIdx.x >> 5 == 8) {
        if ((threadIdx.x & 31) == 0) stream<K, TILES>(a, room);
        release_next_grid();
        wait_for_grid();
        return;
    }
    wait_for_grid();
    load_x<K, TILES>(a, room);
    for (int group = 0, i = 0; group < room.count; group++) {
        float sum[TILES][4];
#pragma unroll
        for (int t = 0; t < TILES; t++) sum[t][0] = sum[t][1] = sum[t][2] = sum[t][3] = 0.f;
        for (int slice = 0; slice < Room<K, TILES>::SLICES; slice++, i++) multiply_stage<K, TILES>(room, i, slice, sum);
        finish<K, TILES>(a, room, group, sum);
    }
}

// skinny_K_VECTORS.
KERNEL(skinny_1024_8, Skinny, 288) { skinny<1024, 1>(a); }
KERNEL(skinny_2048_8, Skinny, 288) { skinny<2048, 1>(a); }
KERNEL(skinny_3072_8, Skinny, 288) { skinny<3072, 1>(a); }
KERNEL(skinny_4096_8, Skinny, 288) { skinny<4096, 1>(a); }
KERNEL(skinny_1024_16, Skinny, 288) { skinny<1024, 2>(a); }
KERNEL(skinny_2048_16, Skinny, 288) { skinny<2048, 2>(a); }
KERNEL(skinny_3072_16, Skinny, 288) { skinny<3072, 2>(a); }
KERNEL(skinny_4096_16, Skinny, 288) { skinny<4096, 2>(a); }
