// The instructions that the kernels are written in: one function for each instruction that is not plain C++.
//
// Under NVRTC a function is one instruction of PTX, and no header of CUDA is needed. With `SIMT_HOST` defined, the same
// names come from `simt.h` (kernels/tests/kernels), which runs a block on the processor, a fiber a thread: so the
// arithmetic, the indices and the barriers of every kernel are tested without a card.
//
// Names: a *row* is a token's vector; a *slot* is a place of the cache of keys and values. Numbers are bf16 unless stated.
// PTX ISA 8.x, https://docs.nvidia.com/cuda/parallel-thread-execution/; sm_90 is needed for bulk copies (`copy_bulk`),
// for `mbarrier` with bytes, and for dependent launch (`wait_for_grid`, `release_next_grid`).
#pragma once
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u16 bf16;

#ifdef SIMT_HOST
#include "simt.h"
#else
#define DEV static __device__ __forceinline__
// A kernel: its name, the type of its one argument `a`, and the threads of a block.
#define KERNEL(name, Arguments, threads) extern "C" __global__ __launch_bounds__(threads) void name(const Arguments a)
// The same, and how many blocks must fit a multiprocessor by their registers.
#define KERNEL_BESIDE(name, Arguments, threads, blocks) extern "C" __global__ __launch_bounds__(threads, blocks) void name(const Arguments a)
DEV float bits_f(u32 x) { return __uint_as_float(x); }
DEV u32 f_bits(float x) { return __float_as_uint(x); }
DEV u64 d_bits(double x) { return (u64)__double_as_longlong(x); }
DEV double bits_d(u64 x) { return __longlong_as_double((long long)x); }
DEV float fma_(float a, float b, float c) { return __fmaf_rn(a, b, c); }
// Never contracted to a fused operation: the same bits as on the processor.
DEV double mul(double a, double b) { return __dmul_rn(a, b); }
DEV double add(double a, double b) { return __dadd_rn(a, b); }
DEV float mul_f(float a, float b) { return __fmul_rn(a, b); }
DEV float add_f(float a, float b) { return __fadd_rn(a, b); }
DEV float div_f(float a, float b) { return __fdiv_rn(a, b); }
DEV float exp2_(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
DEV float rsqrt_(float x) { return rsqrtf(x); }
DEV float exp_(float x) { return __expf(x); }
// Two floats to bf16, the first in the low half.
DEV u32 pack(float a, float b) { u32 y; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(b), "f"(a)); return y; }
DEV void sync_threads() { __syncthreads(); }
// The first 256 threads: those that multiply, while another warp copies.
DEV void sync_eight_warps() { asm volatile("bar.sync 1, 256;" ::: "memory"); }
DEV void sync_warp() { __syncwarp(); }
DEV float shuffle_xor(float v, int m) { return __shfl_xor_sync(~0u, v, m); }
DEV u32 shuffle_xor(u32 v, int m) { return __shfl_xor_sync(~0u, v, m); }
DEV u32 shared_at(const void* p) { return (u32)__cvta_generic_to_shared(p); }
// Bytes of two words, by four numbers: 0 to 3 are those of the first word.
DEV u32 permute(u32 a, u32 b, u32 which) { return __byte_perm(a, b, which); }
// Two numbers of e4m3 (OCP 8-bit floating point, revision 1.0), the first in the low byte. Exact: f16 holds them.
DEV void of_e4m3(u16 pair, float& low, float& high) { asm("{\n.reg .b32 both;\n.reg .b16 l, h;\ncvt.rn.f16x2.e4m3x2 both, %2;\nmov.b32 {l, h}, both;\ncvt.f32.f16 %0, l;\ncvt.f32.f16 %1, h;\n}" : "=f"(low), "=f"(high) : "h"(pair)); }
DEV uint2 load8(const void* p) { uint2 v; asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(shared_at(p))); return v; }
DEV uint4 load16(const void* p) { uint4 v; asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(shared_at(p))); return v; }
// Sixteen bytes, or zeros in their place.
DEV void copy16(void* to, const void* from, bool real = true) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(shared_at(to)), "l"(from), "r"(real ? 16 : 0)); }
DEV void copy_commit() { asm volatile("cp.async.commit_group;"); }
template <int N> DEV void copy_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }
DEV void load_matrices(u32* r, const void* p) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_at(p)) : "memory"); }
DEV void load_matrices_turned(u32* r, const void* p) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_at(p)) : "memory"); }
// c[16x8] += a[16x16] · b[16x8]
DEV void multiply(float* c, const u32* a, u32 b0, u32 b1) { asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)); }
DEV void barrier_new(u64* b, u32 n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_at(b)), "r"(n)); }
DEV void barrier_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEV void barrier_expect(u64* b, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(shared_at(b)), "r"(bytes) : "memory"); }
DEV void barrier_arrive(u64* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_at(b)) : "memory"); }
DEV void barrier_wait(u64* b, u32 phase) {
    asm volatile("{\n.reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra done;\nbra again;\ndone:\n}" :: "r"(shared_at(b)), "r"(phase) : "memory");
}
// A run of bytes, by the copy engine; read once, so it is the first to leave the L2.
DEV void copy_bulk(void* to, const void* from, u32 bytes, u64* b) {
    u64 policy; asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" :: "r"(shared_at(to)), "l"(from), "r"(bytes), "r"(shared_at(b)), "l"(policy) : "memory");
}
// The same of what is read again, and stays in the L2.
DEV void copy_bulk_kept(void* to, const void* from, u32 bytes, u64* b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(shared_at(to)), "l"(from), "r"(bytes), "r"(shared_at(b)) : "memory");
}
// Programmatic dependent launch: nothing that an earlier kernel of the pass writes may be read before `wait_for_grid`, and
// every block of every kernel calls it, also one that leaves early.
DEV void wait_for_grid() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
DEV void release_next_grid() { asm volatile("griddepcontrol.launch_dependents;"); }
DEV int count_up(int* p) { int old; asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], 1;" : "=r"(old) : "l"(p) : "memory"); return old; }
// Sums that many threads add to, in shared memory or in the card's; what was there before. Whole numbers have no order.
DEV u32 count_in(u32* p, u32 n) { u32 old; asm volatile("atom.relaxed.gpu.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(n) : "memory"); return old; }
DEV void sum_up(u64* p, u64 n) { asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" :: "l"(p), "l"(n) : "memory"); }
DEV u32 high(u32 a, u32 b) { return __umulhi(a, b); }
#define DYNAMIC_SHARED(name) extern __shared__ __align__(128) u8 name[]
#endif

DEV float low_half(u32 v) { return bits_f(v << 16); }
DEV float high_half(u32 v) { return bits_f(v & 0xffff0000u); }
DEV float widen(bf16 v) { return bits_f((u32)v << 16); }
DEV bf16 narrow(float v) { return (bf16)(pack(v, 0.f) & 0xffff); }

// How the weights of a matrix are kept: the bytes of one, whether its row has a scale in f32, and eight of them, which lie in shared
// memory one behind the other, as floats. That is exact, and so are the same numbers in bf16.
struct Bf16 {
    static const int BYTES = 2;
    static const bool IS_SCALED = false;
    DEV void eight(const u8* from, float* to) {
        const uint4 v = load16(from);
        const u32 pairs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int e = 0; e < 4; e++) { to[2 * e] = low_half(pairs[e]); to[2 * e + 1] = high_half(pairs[e]); }
    }
};
struct Int8 {
    static const int BYTES = 1;
    static const bool IS_SCALED = true;
    // By the bits of 2²³ + 128 + n.
    DEV void four(u32 word, float* to) {
        const u32 above = word ^ 0x80808080u;
#pragma unroll
        for (int i = 0; i < 4; i++) to[i] = bits_f(permute(above, 0x4b000000u, 0x7440 + i)) - 8388736.f;
    }
    DEV void eight(const u8* from, float* to) {
        const uint2 v = load8(from);
        four(v.x, to);
        four(v.y, to + 4);
    }
};
struct E4m3 {
    static const int BYTES = 1;
    static const bool IS_SCALED = true;
    DEV void four(u32 word, float* to) {
        of_e4m3((u16)word, to[0], to[1]);
        of_e4m3((u16)(word >> 16), to[2], to[3]);
    }
    DEV void eight(const u8* from, float* to) {
        const uint2 v = load8(from);
        four(v.x, to);
        four(v.y, to + 4);
    }
};
// Two floats that bf16 holds.
DEV u32 pack_exact(float low, float high) { return permute(f_bits(low), f_bits(high), 0x7632); }
