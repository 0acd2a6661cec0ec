// The instructions of device.h on a processor: every thread of a block is a fiber, and barriers and operations of a warp hand
// over to the next fiber until all have come.
//
// A launch can be told that the kernel ahead has not ended (dependent launch): then what that one writes is zeros until a thread
// of the block has waited for it and all others have come as far as they can without. What was read too early is then
// wrong, and what was written too early is lost.
//
// What it can show: wrong arithmetic, wrong indices, barriers that not all threads reach, phases of `mbarrier` that are waited
// for twice, shared memory that was never written (it begins as NaN) or that lies past what the launch asked for, copies that
// are not aligned, blocks that never wait for the kernel ahead. What it cannot: races that need another order than that of the fibers, the memory order between blocks,
// and speed. Blocks run one after another.
//
// A fault ends the launch with a message (`simt_launch`), so that a broken kernel fails a test and not the test program.
#pragma once
#include <setjmp.h>
#include <ucontext.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>
#define DEV static inline
using std::max;
using std::min;

struct Dim { int x = 1, y = 1, z = 1; };
struct uint2 { uint32_t x, y; };
struct uint4 { uint32_t x, y, z, w; };

// Everything is internal: a process opens many such libraries, and each has threads and kernels of its own.
namespace simt {
// The shared memory of a block of an H100.
const unsigned SHARED = 232448;
// Bytes behind what a launch asked for that must stay as they were.
const unsigned GUARD = 4096;
// Rounds of all fibers that a thread lets pass before the kernel ahead has ended: enough to meet at some barriers.
const int AHEAD = 64;
// Rounds of all fibers after which a block counts as stuck.
const int ROUNDS = 50000;

// Memory that the kernel ahead writes.
struct Written { void* at; size_t bytes; std::vector<char> held; };

struct Fiber {
    ucontext_t context;
    jmp_buf at;
    std::vector<char> stack;
    // Whether it can be jumped to: it is in the middle of a block, or between two.
    bool lives = false;
    bool done;
    int waits_block, waits_warp, waits_some;
};
struct Block {
    std::vector<Fiber> fibers;
    jmp_buf at;
    int current, threads;
    // How often all have met: of the block, of those that multiply, of each warp.
    int met[2 + 32];
    Dim id, grid;
    std::vector<uint64_t> slot;
    std::function<void()> body;
    const char* fault;
    bool has_waited;
    std::vector<Written> written;
    alignas(128) unsigned char shared[SHARED + GUARD];
};
static Block* block = nullptr;

static int thread() { return block->current; }
// A context only begins a fiber, and a fiber lives through all launches, because a switch of contexts costs two system calls, and a
// jump none.
static void yield() {
    Fiber& f = block->fibers[block->current];
    if (!_setjmp(f.at)) _longjmp(block->at, 1);
}
// What a fiber does: block after block.
static void entry() {
    for (;;) {
        block->body();
        block->fibers[block->current].done = true;
        yield();
    }
}
static void go_on(Fiber& f) {
    if (_setjmp(block->at)) return;
    if (f.lives) _longjmp(f.at, 1);
    f.lives = true;
    f.stack.resize(1 << 16);
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data();
    f.context.uc_stack.ss_size = f.stack.size();
    f.context.uc_link = nullptr;
    makecontext(&f.context, entry, 0);
    setcontext(&f.context);
}
// Ends this fiber, and with it the launch.
[[noreturn]] static void fail(const char* why) {
    block->fault = why;
    _longjmp(block->at, 1);
}
// Waits until all live threads of the group have come as often. The last threads come last, so they are looked at first; whoever
// finds that all have come says so to the others.
static void meet(int Fiber::*counter, int first, int last) {
    const int mine = ++(block->fibers[block->current].*counter);
    int& met = block->met[counter == &Fiber::waits_block ? 0 : counter == &Fiber::waits_some ? 1 : 2 + first / 32];
    while (met < mine) {
        bool all = true;
        for (int i = last - 1; i >= first && all; i--) {
            Fiber& f = block->fibers[i];
            all = f.done || f.*counter >= mine;
        }
        if (all) met = mine; else yield();
    }
}
static void meet_warp() {
    const int w = block->current / 32 * 32;
    meet(&Fiber::waits_warp, w, min(w + 32, block->threads));
}
// The kernel ahead has ended, as far as this block can see.
static void wait_for_grid_ahead() {
    for (int round = 0; !block->written.empty() && !block->has_waited && round < AHEAD; round++) yield();
    if (block->has_waited) return;
    block->has_waited = true;
    for (Written& w : block->written) memcpy(w.at, w.held.data(), w.bytes);
}
static void begin(Block& b, unsigned shared) {
    b.has_waited = false;
    for (Written& w : b.written) {
        w.held.assign((char*)w.at, (char*)w.at + w.bytes);
        memset(w.at, 0, w.bytes);
    }
    memset(b.shared, 0xff, shared + GUARD);
    memset(b.met, 0, sizeof(b.met));
    for (auto& f : b.fibers) {
        f.done = false;
        f.waits_block = f.waits_warp = f.waits_some = 0;
    }
}
static const char* run(Block& b, unsigned shared) {
    begin(b, shared);
    for (int live = b.threads, rounds = 0; live;) {
        live = 0;
        for (int i = 0; i < b.threads && !b.fault; i++)
            if (!b.fibers[i].done) { live++; b.current = i; go_on(b.fibers[i]); }
        if (b.fault) return b.fault;
        if (++rounds > ROUNDS) return "the block is stuck at a barrier";
    }
    if (!b.has_waited) return "a block ended without having waited for the kernel ahead";
    static const std::vector<unsigned char> guard(GUARD, 0xff);
    if (memcmp(b.shared + shared, guard.data(), GUARD)) return "more shared memory was written than the launch asked for";
    return nullptr;
}
static const char* launch(Dim grid, int threads, unsigned shared, std::vector<Written> written, std::function<void()> body) {
    static Block b;
    b.written = written;
    block = &b;
    b.threads = threads; b.grid = grid; b.body = body; b.fault = nullptr;
    b.slot.assign(threads, 0);
    if (b.fibers.size() < (size_t)threads) b.fibers.resize(threads);
    const char* fault = nullptr;
    for (int z = 0; z < grid.z && !fault; z++)
        for (int y = 0; y < grid.y && !fault; y++)
            for (int x = 0; x < grid.x && !fault; x++) {
                b.id.x = x; b.id.y = y; b.id.z = z;
                fault = run(b, shared);
            }
    // After a fault they stand anywhere.
    if (fault) for (Fiber& f : b.fibers) f.lives = false;
    return fault;
}

struct ThreadIdx { struct X { operator int() const { return thread(); } } x; };
struct BlockIdx {
    struct X { operator int() const { return block->id.x; } } x;
    struct Y { operator int() const { return block->id.y; } } y;
    struct Z { operator int() const { return block->id.z; } } z;
};
struct GridDim { struct X { operator int() const { return block->grid.x; } } x; };

// The kernels of this library, by name.
struct Kernel { const char* name; size_t size; int threads; void (*run)(const void*); };
static std::vector<Kernel>& kernels() { static std::vector<Kernel> all; return all; }
struct Registered { Registered(const Kernel& k) { kernels().push_back(k); } };
}

// A kernel that registers itself.
#define KERNEL(name, Arguments, threads) \
    static void name(const Arguments& a); \
    static simt::Registered registered_##name({#name, sizeof(Arguments), threads, [](const void* a) { name(*(const Arguments*)a); }}); \
    static void name(const Arguments& a)
#define KERNEL_BESIDE(name, Arguments, threads, blocks) KERNEL(name, Arguments, threads)
static simt::ThreadIdx threadIdx;
static simt::BlockIdx blockIdx;
static simt::GridDim gridDim;
#define DYNAMIC_SHARED(name) unsigned char* name = simt::block->shared

DEV float bits_f(uint32_t x) { float y; memcpy(&y, &x, 4); return y; }
DEV uint32_t f_bits(float x) { uint32_t y; memcpy(&y, &x, 4); return y; }
DEV u64 d_bits(double x) { u64 y; memcpy(&y, &x, 8); return y; }
DEV double bits_d(u64 x) { double y; memcpy(&y, &x, 8); return y; }
DEV float fma_(float a, float b, float c) { return fmaf(a, b, c); }
// Compiled with -ffp-contract=off, so that these stay two operations.
DEV double mul(double a, double b) { return a * b; }
DEV double add(double a, double b) { return a + b; }
DEV float mul_f(float a, float b) { return a * b; }
DEV float add_f(float a, float b) { return a + b; }
DEV float div_f(float a, float b) { return a / b; }
DEV float exp2_(float x) { return exp2f(x); }
DEV float exp_(float x) { return expf(x); }
DEV float rsqrt_(float x) { return 1.f / sqrtf(x); }
DEV uint32_t round_bf16(float x) {
    const uint32_t b = f_bits(x);
    return x != x ? 0x7fc0 : (b + 0x7fff + (b >> 16 & 1)) >> 16;
}
DEV u32 pack(float a, float b) { return round_bf16(a) | round_bf16(b) << 16; }
DEV void sync_threads() { simt::meet(&simt::Fiber::waits_block, 0, simt::block->threads); }
DEV void sync_eight_warps() { simt::meet(&simt::Fiber::waits_some, 0, 256); }
DEV void sync_warp() { simt::meet_warp(); }
DEV u32 shuffle_xor(u32 v, int m) {
    auto& s = simt::block->slot;
    const int t = simt::thread();
    s[t] = v;
    sync_warp();
    const u32 r = (u32)s[t ^ m];
    sync_warp();
    return r;
}
DEV float shuffle_xor(float v, int m) { return bits_f(shuffle_xor(f_bits(v), m)); }
DEV void aligned(uintptr_t all) { if (all & 15) simt::fail("a copy of 16 bytes is not aligned"); }
DEV u32 permute(u32 a, u32 b, u32 which) {
    const u64 bytes = a | (u64)b << 32;
    u32 found = 0;
    for (int i = 0; i < 4; i++) found |= (u32)(bytes >> (which >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return found;
}
DEV float of_e4m3(u8 bits) {
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const float size = exponent == 15 && fraction == 7 ? NAN : ldexpf(exponent ? 8 + fraction : fraction, max(exponent, 1) - 10);
    return bits & 0x80 ? -size : size;
}
DEV void of_e4m3(u16 pair, float& low, float& high) { low = of_e4m3((u8)pair); high = of_e4m3((u8)(pair >> 8)); }
DEV uint2 load8(const void* p) {
    if ((uintptr_t)p & 7) simt::fail("a load of 8 bytes is not aligned");
    uint2 v;
    memcpy(&v, p, 8);
    return v;
}
DEV uint4 load16(const void* p) {
    aligned((uintptr_t)p);
    uint4 v;
    memcpy(&v, p, 16);
    return v;
}
DEV void copy16(void* to, const void* from, bool real = true) {
    aligned((uintptr_t)to | (uintptr_t)from);
    if (real) memcpy(to, from, 16); else memset(to, 0, 16);
}
DEV void copy_commit() {}
template <int N> DEV void copy_wait() {}
DEV void matrices(u32* r, const void* p, bool turned) {
    auto& s = simt::block->slot;
    const int t = simt::thread(), w = t / 32 * 32, lane = t % 32;
    aligned((uintptr_t)p);
    s[t] = (u64)p;
    sync_warp();
    for (int m = 0; m < 4; m++) {
        u16 v[2];
        for (int e = 0; e < 2; e++) {
            int row = lane / 4, col = lane % 4 * 2 + e;
            if (turned) std::swap(row, col);
            memcpy(&v[e], (const u16*)s[w + m * 8 + row] + col, 2);
        }
        r[m] = v[0] | (u32)v[1] << 16;
    }
    sync_warp();
}
DEV void load_matrices(u32* r, const void* p) { matrices(r, p, false); }
DEV void load_matrices_turned(u32* r, const void* p) { matrices(r, p, true); }
// The sums are made in f64 and rounded once. How a tensor core rounds is not specified.
DEV void multiply(float* c, const u32* a, u32 b0, u32 b1) {
    struct Fragment { u32 a[4], b[2]; };
    static std::vector<Fragment> f;
    f.resize(simt::block->threads);
    const int t = simt::thread(), w = t / 32 * 32, lane = t % 32;
    f[t] = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
    sync_warp();
    auto half = [](u32 v, int h) { return bits_f(h ? v & 0xffff0000u : v << 16); };
    for (int e = 0; e < 4; e++) {
        const int row = lane / 4 + (e >> 1) * 8, col = lane % 4 * 2 + (e & 1);
        double sum = c[e];
        for (int k = 0; k < 16; k++) {
            const Fragment& fa = f[w + row % 8 * 4 + k % 8 / 2];
            const Fragment& fb = f[w + col * 4 + k % 8 / 2];
            sum += (double)half(fa.a[(row >> 3) + (k >> 3) * 2], k & 1) * half(fb.b[k >> 3], k & 1);
        }
        c[e] = (float)sum;
    }
    sync_warp();
}
// An mbarrier. Its bytes are awaited by no one here: a bulk copy is over when it returns.
struct Barrier { uint16_t left, of; uint32_t phase; };
static u64* expecting;
static u32 expected;
DEV void barrier_new(u64* b, u32 n) { *(Barrier*)b = {(uint16_t)n, (uint16_t)n, 0}; expected = 0; }
DEV void barrier_fence() {}
DEV void barrier_arrive(u64* p) {
    Barrier* b = (Barrier*)p;
    if (--b->left == 0) { b->left = b->of; b->phase++; }
}
DEV void barrier_wait(u64* p, u32 phase) { while ((((Barrier*)p)->phase & 1) == phase) simt::yield(); }
DEV void barrier_expect(u64* b, u32 bytes) {
    if (expected || !bytes) simt::fail("a barrier expects bytes while others are on their way, or none");
    expecting = b;
    expected = bytes;
}
DEV void copy_bulk(void* to, const void* from, u32 bytes, u64* b) {
    aligned((uintptr_t)to | (uintptr_t)from | bytes);
    if (b != expecting || bytes > expected) simt::fail("a bulk copy has more bytes than its barrier expects");
    memcpy(to, from, bytes);
    expected -= bytes;
    if (!expected) barrier_arrive(b);
}
DEV void copy_bulk_kept(void* to, const void* from, u32 bytes, u64* b) { copy_bulk(to, from, bytes, b); }
DEV void wait_for_grid() { simt::wait_for_grid_ahead(); }
DEV void release_next_grid() {}
DEV int count_up(int* p) { return (*p)++; }
DEV u32 count_in(u32* p, u32 n) { const u32 old = *p; *p += n; return old; }
DEV void sum_up(u64* p, u64 n) { *p += n; }
DEV u32 high(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
