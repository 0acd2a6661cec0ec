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
#include "standard.h"
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
// Threads of a block that multiply; those behind them bring what is multiplied.
const int MULTIPLIERS = 256;

// Memory that the kernel ahead writes.
struct Written { void* at; size_t bytes; std::vector<char> held; };

// A stack with what was at work on it. Where it is written down how, a switch saves the registers that a function has to keep: contexts of
// the system cost two system calls a switch, which would be most of what a kernel takes.
#ifdef __x86_64__
extern "C" __attribute__((visibility("hidden"))) void simt_switch(void** from, void* to);
asm(R"(
    .text
    .hidden simt_switch
    .type simt_switch, @function
simt_switch:
    push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp
    ret
    .size simt_switch, . - simt_switch
)");
struct Stack {
    void* top = nullptr;
    void begin(char* memory, size_t size, void (*entry)()) {
        // Six registers, where to return to, and the place that a call leaves.
        void** words = (void**)((uintptr_t)(memory + size) & ~(uintptr_t)15) - 8;
        memset(words, 0, 8 * sizeof(void*));
        words[6] = (void*)entry;
        top = words;
    }
    void switch_to(Stack& other) { simt_switch(&top, other.top); }
};
#else
struct Stack {
    ucontext_t context;
    void begin(char* memory, size_t size, void (*entry)()) {
        getcontext(&context);
        context.uc_stack.ss_sp = memory;
        context.uc_stack.ss_size = size;
        context.uc_link = nullptr;
        makecontext(&context, entry, 0);
    }
    void switch_to(Stack& other) { swapcontext(&context, &other.context); }
};
#endif

struct Fiber {
    Stack stack;
    std::vector<char> memory;
    // Whether it has begun: it is in the middle of a block, or between two.
    bool lives = false;
};
// Threads that wait for each other: how many have not ended, how many of them have come, and how often all had.
struct Group { int live, come, met; };
// What a thread is at: it has ended, or it waits until a group has met so often.
struct Turn {
    const Group* group;
    int met;
    bool done;
    bool can_go_on() const { return !done && (!group || group->met >= met); }
};
struct Block {
    std::vector<Fiber> fibers;
    // The one of who launches.
    Stack stack;
    int current, threads;
    std::vector<Turn> turns;
    // All threads, those that multiply, and each warp.
    Group groups[2 + 32];
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
static void yield() { block->fibers[block->current].stack.switch_to(block->stack); }
// Whether all of the group have come; then they begin to come again.
static bool have_all_come(Group& group) {
    if (group.come < group.live) return false;
    group.come = 0;
    group.met++;
    return true;
}
// Nobody waits for this thread any more.
static void end_thread() {
    const int t = block->current;
    block->turns[t].done = true;
    Group* groups = block->groups;
    for (Group* group : {groups, groups + 1, groups + 2 + t / 32}) {
        if (group == groups + 1 && t >= MULTIPLIERS) continue;
        group->live--;
        if (group->come) have_all_come(*group);
    }
}
// What a fiber does: block after block.
static void entry() {
    for (;;) {
        block->body();
        end_thread();
        yield();
    }
}
// A fiber lives through all launches.
static void go_on(Fiber& f) {
    if (!f.lives) {
        f.lives = true;
        f.memory.resize(1 << 16);
        f.stack.begin(f.memory.data(), f.memory.size(), entry);
    }
    block->stack.switch_to(f.stack);
}
// Ends this fiber, and with it the launch.
[[noreturn]] static void fail(const char* why) {
    block->fault = why;
    yield();
    abort();
}
// Waits until all threads of the group that have not ended have come.
static void meet(Group& group) {
    group.come++;
    if (have_all_come(group)) return;
    Turn& turn = block->turns[block->current];
    turn.group = &group;
    turn.met = group.met + 1;
    yield();
    turn.group = nullptr;
}
static void meet_warp() { meet(block->groups[2 + block->current / 32]); }
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
    b.turns.assign(b.threads, Turn());
    b.groups[0] = {b.threads, 0, 0};
    b.groups[1] = {min(b.threads, MULTIPLIERS), 0, 0};
    for (int w = 0; w < 32; w++) b.groups[2 + w] = {max(min(b.threads - 32 * w, 32), 0), 0, 0};
}
static const char* run(Block& b, unsigned shared) {
    begin(b, shared);
    for (int rounds = 0; b.groups[0].live; rounds++) {
        for (int i = 0; i < b.threads && !b.fault; i++)
            if (b.turns[i].can_go_on()) { b.current = i; go_on(b.fibers[i]); }
        if (b.fault) return b.fault;
        if (rounds > ROUNDS) return "the block is stuck at a barrier";
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
DEV void sync_threads() { simt::meet(simt::block->groups[0]); }
DEV void sync_eight_warps() { simt::meet(simt::block->groups[1]); }
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
    // The rows of one matrix and the columns of the other, for every warp.
    struct Matrices { double rows[16][16], columns[8][16]; };
    static std::vector<Matrices> of_warps;
    const int t = simt::thread(), lane = t % 32, x = lane / 4, y = lane % 4 * 2;
    of_warps.resize((simt::block->threads + 31) / 32);
    Matrices& m = of_warps[t / 32];
    const u32 b[2] = {b0, b1};
    for (int h = 0; h < 2; h++) {
        auto half = [&](u32 v) { return bits_f(h ? v & 0xffff0000u : v << 16); };
        for (int q = 0; q < 4; q++) m.rows[x + q % 2 * 8][y + q / 2 * 8 + h] = half(a[q]);
        for (int q = 0; q < 2; q++) m.columns[x][y + q * 8 + h] = half(b[q]);
    }
    sync_warp();
    for (int e = 0; e < 4; e++) {
        const double *row = m.rows[x + e / 2 * 8], *column = m.columns[y + e % 2];
        double sum = c[e];
        for (int k = 0; k < 16; k++) sum += row[k] * column[k];
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
