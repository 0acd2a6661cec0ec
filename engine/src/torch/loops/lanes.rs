//! Vectors of `f32` by the instructions of each kind of processor, for loops that compilers do not vectorise.
//!
//! A loop is written once for [`Lanes`], and called from a function that enables the instructions, after a
//! check that the processor has them.

use super::e4m3::{self, TWO_TO_120};
use crate::torch::gguf::blocks::half_to_single;

/// A number of a matrix.
pub(crate) trait Weight: Copy + Send + Sync {
    /// Returns the number in `f32`.
    fn wide(self) -> f32;

    /// # Safety
    /// There are as many numbers at the pointer as lanes, and the processor has their instructions.
    unsafe fn load<L: Lanes>(from: *const Self) -> L::Vector;
}

impl Weight for f32 {
    #[inline(always)]
    fn wide(self) -> f32 {
        self
    }

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const f32) -> L::Vector {
        // SAFETY: the caller keeps the contract.
        unsafe { L::load(from) }
    }
}

/// A number in bfloat16: the upper half of one in `f32`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Bf16(u16);

impl Weight for Bf16 {
    #[inline(always)]
    fn wide(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const Bf16) -> L::Vector {
        // SAFETY: the caller keeps the contract.
        unsafe { L::load_bf16(from) }
    }
}

/// An integer of a matrix whose rows have scales.
impl Weight for i8 {
    #[inline(always)]
    fn wide(self) -> f32 {
        f32::from(self)
    }

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const i8) -> L::Vector {
        // SAFETY: the caller keeps the contract.
        unsafe { L::load_i8(from) }
    }
}

/// The bits of a floating-point number of eight bits, in a matrix whose rows have scales.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct E4m3(u8);

#[cfg(test)]
impl E4m3 {
    pub(crate) fn of(bits: u8) -> Self {
        E4m3(bits)
    }
}

impl Weight for E4m3 {
    #[inline(always)]
    fn wide(self) -> f32 {
        e4m3::widen(self.0)
    }

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const E4m3) -> L::Vector {
        // SAFETY: the caller keeps the contract.
        unsafe { L::load_e4m3(from) }
    }
}

/// A number in half precision.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F16(u16);

impl Weight for F16 {
    #[inline(always)]
    fn wide(self) -> f32 {
        half_to_single(self.0)
    }

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const F16) -> L::Vector {
        // SAFETY: the caller keeps the contract.
        unsafe { L::load_f16(from) }
    }
}

/// Vectors of [`COUNT`](Lanes::COUNT) numbers.
///
/// # Safety
/// All functions need a processor that has the instructions; the loads read as many numbers from the pointer,
/// and [`store`](Lanes::store) writes as many.
pub(crate) trait Lanes {
    type Vector: Copy;
    /// The same number of integers of 32 bits.
    type Ints: Copy;
    const COUNT: usize;

    unsafe fn zero() -> Self::Vector;
    unsafe fn load(from: *const f32) -> Self::Vector;
    unsafe fn load_bf16(from: *const Bf16) -> Self::Vector;
    unsafe fn load_i8(from: *const i8) -> Self::Vector;
    unsafe fn load_e4m3(from: *const E4m3) -> Self::Vector;
    unsafe fn load_f16(from: *const F16) -> Self::Vector;
    /// Loads bytes as integers.
    unsafe fn load_u8(from: *const u8) -> Self::Ints;
    /// Adds a fifth bit to each integer: the bit at its place in a word, the lowest one first.
    unsafe fn with_fifth(of: Self::Ints, word: u32) -> Self::Ints;
    unsafe fn shifted_right(of: Self::Ints, by: u32) -> Self::Ints;
    unsafe fn shifted_left(of: Self::Ints, by: u32) -> Self::Ints;
    unsafe fn masked(of: Self::Ints, mask: i32) -> Self::Ints;
    unsafe fn either(one: Self::Ints, other: Self::Ints) -> Self::Ints;
    unsafe fn less(of: Self::Ints, by: i32) -> Self::Ints;
    /// Converts the integers to `f32`.
    unsafe fn floats(of: Self::Ints) -> Self::Vector;
    /// Returns the numbers of a table, indexed by the lowest four bits of each integer.
    unsafe fn at(of: Self::Ints, table: &[f32; 16]) -> Self::Vector;
    /// Returns the number with these bits in half precision.
    unsafe fn half(bits: u16) -> f32;
    unsafe fn product(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Computes `a · b + c`, rounded once if the processor supports that.
    unsafe fn add_product(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// Returns a vector with one number in all lanes.
    unsafe fn splat(number: f32) -> Self::Vector;
    unsafe fn store(of: Self::Vector, to: *mut f32);
    /// Returns the sum of the lanes.
    unsafe fn sum(of: Self::Vector) -> f32;
}

/// Returns the sum of the lanes of each vector.
///
/// The vectors go through memory: horizontal additions use only the first sixteen registers, and a compiler
/// that sees them at the end of a loop keeps its sums there, or on the stack, while it runs.
///
/// # Safety
/// The processor has the instructions of `L`.
#[inline(always)]
pub(super) unsafe fn added<L: Lanes, const R: usize, const C: usize>(
    of: [[L::Vector; C]; R],
) -> [[f32; C]; R] {
    const { assert!(L::COUNT <= MOST_LANES) }
    let mut lanes = [[[0.0; MOST_LANES]; C]; R];
    let mut added = [[0.0; C]; R];
    // SAFETY: there is room for the most lanes. No closures are used: they would not have the instructions.
    unsafe {
        for row in 0..R {
            for column in 0..C {
                L::store(of[row][column], lanes[row][column].as_mut_ptr());
            }
        }
        let lanes = std::hint::black_box(&lanes);
        for row in 0..R {
            for column in 0..C {
                added[row][column] = L::sum(L::load(lanes[row][column].as_ptr()));
            }
        }
    }
    added
}

/// The most lanes that a vector has.
const MOST_LANES: usize = 16;

/// The instructions that every processor has.
pub(crate) struct Plain;

impl Lanes for Plain {
    type Vector = [f32; 8];
    type Ints = [i32; 8];
    const COUNT: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> [f32; 8] {
        [0.0; 8]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> [f32; 8] {
        // SAFETY: the caller keeps the contract.
        unsafe { from.cast::<[f32; 8]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const Bf16) -> [f32; 8] {
        // SAFETY: the caller keeps the contract.
        unsafe { from.cast::<[Bf16; 8]>().read_unaligned() }.map(Bf16::wide)
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> [f32; 8] {
        // SAFETY: the caller keeps the contract.
        unsafe { from.cast::<[i8; 8]>().read_unaligned() }.map(f32::from)
    }

    #[inline(always)]
    unsafe fn load_e4m3(from: *const E4m3) -> [f32; 8] {
        // SAFETY: the caller keeps the contract.
        unsafe { from.cast::<[E4m3; 8]>().read_unaligned() }.map(E4m3::wide)
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const F16) -> [f32; 8] {
        // SAFETY: the caller keeps the contract.
        unsafe { from.cast::<[F16; 8]>().read_unaligned() }.map(F16::wide)
    }

    #[inline(always)]
    unsafe fn load_u8(from: *const u8) -> [i32; 8] {
        // SAFETY: the caller keeps the contract.
        unsafe { from.cast::<[u8; 8]>().read_unaligned() }.map(i32::from)
    }

    #[inline(always)]
    unsafe fn with_fifth(of: [i32; 8], word: u32) -> [i32; 8] {
        std::array::from_fn(|lane| of[lane] | ((word >> lane & 1) << 4) as i32)
    }

    #[inline(always)]
    unsafe fn shifted_right(of: [i32; 8], by: u32) -> [i32; 8] {
        of.map(|number| number >> by)
    }

    #[inline(always)]
    unsafe fn shifted_left(of: [i32; 8], by: u32) -> [i32; 8] {
        of.map(|number| number << by)
    }

    #[inline(always)]
    unsafe fn masked(of: [i32; 8], mask: i32) -> [i32; 8] {
        of.map(|number| number & mask)
    }

    #[inline(always)]
    unsafe fn either(one: [i32; 8], other: [i32; 8]) -> [i32; 8] {
        std::array::from_fn(|lane| one[lane] | other[lane])
    }

    #[inline(always)]
    unsafe fn less(of: [i32; 8], by: i32) -> [i32; 8] {
        of.map(|number| number - by)
    }

    #[inline(always)]
    unsafe fn floats(of: [i32; 8]) -> [f32; 8] {
        of.map(|number| number as f32)
    }

    #[inline(always)]
    unsafe fn at(of: [i32; 8], table: &[f32; 16]) -> [f32; 8] {
        of.map(|number| table[(number & 15) as usize])
    }

    #[inline(always)]
    unsafe fn half(bits: u16) -> f32 {
        half_to_single(bits)
    }

    #[inline(always)]
    unsafe fn product(a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|lane| a[lane] * b[lane])
    }

    #[inline(always)]
    unsafe fn add_product(a: [f32; 8], b: [f32; 8], mut c: [f32; 8]) -> [f32; 8] {
        for (sum, (a, b)) in c.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
        c
    }

    #[inline(always)]
    unsafe fn splat(number: f32) -> [f32; 8] {
        [number; 8]
    }

    #[inline(always)]
    unsafe fn store(of: [f32; 8], to: *mut f32) {
        // SAFETY: the caller keeps the contract.
        unsafe { to.cast::<[f32; 8]>().write_unaligned(of) }
    }

    #[inline(always)]
    unsafe fn sum(of: [f32; 8]) -> f32 {
        of.iter().sum()
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2 {
    use super::{Bf16, E4m3, F16, Lanes, TWO_TO_120};
    use std::arch::x86_64::*;

    pub(crate) struct Lanes8;

    // SAFETY of all: the caller has checked that the processor has AVX2 and FMA, and the pointers are the
    // caller's.
    impl Lanes for Lanes8 {
        type Vector = __m256;
        type Ints = __m256i;
        const COUNT: usize = 8;

        #[inline(always)]
        unsafe fn zero() -> __m256 {
            unsafe { _mm256_setzero_ps() }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> __m256 {
            unsafe { _mm256_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn load_bf16(from: *const Bf16) -> __m256 {
            unsafe {
                let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
                _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))
            }
        }

        #[inline(always)]
        unsafe fn load_i8(from: *const i8) -> __m256 {
            unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast()))) }
        }

        #[inline(always)]
        unsafe fn load_e4m3(from: *const E4m3) -> __m256 {
            unsafe {
                let bits = _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast()));
                let sign = _mm256_slli_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x80)), 24);
                let size = _mm256_slli_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x7f)), 20);
                let smaller = _mm256_castsi256_ps(_mm256_or_si256(sign, size));
                _mm256_mul_ps(smaller, _mm256_set1_ps(TWO_TO_120))
            }
        }

        #[inline(always)]
        unsafe fn load_f16(from: *const F16) -> __m256 {
            unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
        }

        #[inline(always)]
        unsafe fn load_u8(from: *const u8) -> __m256i {
            unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast())) }
        }

        #[inline(always)]
        unsafe fn with_fifth(of: __m256i, word: u32) -> __m256i {
            unsafe {
                let all = _mm256_set1_epi32((word << 4) as i32);
                let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
                let bits = _mm256_and_si256(_mm256_srlv_epi32(all, places), _mm256_set1_epi32(16));
                _mm256_or_si256(of, bits)
            }
        }

        #[inline(always)]
        unsafe fn shifted_right(of: __m256i, by: u32) -> __m256i {
            unsafe { _mm256_srl_epi32(of, _mm_cvtsi32_si128(by as i32)) }
        }

        #[inline(always)]
        unsafe fn shifted_left(of: __m256i, by: u32) -> __m256i {
            unsafe { _mm256_sll_epi32(of, _mm_cvtsi32_si128(by as i32)) }
        }

        #[inline(always)]
        unsafe fn masked(of: __m256i, mask: i32) -> __m256i {
            unsafe { _mm256_and_si256(of, _mm256_set1_epi32(mask)) }
        }

        #[inline(always)]
        unsafe fn either(one: __m256i, other: __m256i) -> __m256i {
            unsafe { _mm256_or_si256(one, other) }
        }

        #[inline(always)]
        unsafe fn less(of: __m256i, by: i32) -> __m256i {
            unsafe { _mm256_sub_epi32(of, _mm256_set1_epi32(by)) }
        }

        #[inline(always)]
        unsafe fn floats(of: __m256i) -> __m256 {
            unsafe { _mm256_cvtepi32_ps(of) }
        }

        #[inline(always)]
        unsafe fn at(of: __m256i, table: &[f32; 16]) -> __m256 {
            unsafe {
                let low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table.as_ptr()), of);
                let high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table.as_ptr().add(8)), of);
                // The fourth bit becomes the sign, which selects.
                _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(of, 28)))
            }
        }

        #[inline(always)]
        unsafe fn half(bits: u16) -> f32 {
            unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(bits)))) }
        }

        #[inline(always)]
        unsafe fn product(a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_mul_ps(a, b) }
        }

        #[inline(always)]
        unsafe fn add_product(a: __m256, b: __m256, c: __m256) -> __m256 {
            unsafe { _mm256_fmadd_ps(a, b, c) }
        }

        #[inline(always)]
        unsafe fn splat(number: f32) -> __m256 {
            unsafe { _mm256_set1_ps(number) }
        }

        #[inline(always)]
        unsafe fn store(of: __m256, to: *mut f32) {
            unsafe { _mm256_storeu_ps(to, of) }
        }

        #[inline(always)]
        unsafe fn sum(of: __m256) -> f32 {
            unsafe {
                let four = _mm_add_ps(_mm256_castps256_ps128(of), _mm256_extractf128_ps(of, 1));
                let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)))
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512 {
    use super::{Bf16, E4m3, F16, Lanes, TWO_TO_120};
    use std::arch::x86_64::*;

    pub(crate) struct Lanes16;

    // SAFETY of all: the caller has checked that the processor has AVX-512F, and the pointers are the
    // caller's.
    impl Lanes for Lanes16 {
        type Vector = __m512;
        type Ints = __m512i;
        const COUNT: usize = 16;

        #[inline(always)]
        unsafe fn zero() -> __m512 {
            unsafe { _mm512_setzero_ps() }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> __m512 {
            unsafe { _mm512_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn load_bf16(from: *const Bf16) -> __m512 {
            unsafe {
                let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
                _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))
            }
        }

        #[inline(always)]
        unsafe fn load_i8(from: *const i8) -> __m512 {
            unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()))) }
        }

        #[inline(always)]
        unsafe fn load_e4m3(from: *const E4m3) -> __m512 {
            unsafe {
                let bits = _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast()));
                let sign = _mm512_slli_epi32(_mm512_and_si512(bits, _mm512_set1_epi32(0x80)), 24);
                let size = _mm512_slli_epi32(_mm512_and_si512(bits, _mm512_set1_epi32(0x7f)), 20);
                let smaller = _mm512_castsi512_ps(_mm512_or_si512(sign, size));
                _mm512_mul_ps(smaller, _mm512_set1_ps(TWO_TO_120))
            }
        }

        #[inline(always)]
        unsafe fn load_f16(from: *const F16) -> __m512 {
            unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
        }

        #[inline(always)]
        unsafe fn load_u8(from: *const u8) -> __m512i {
            unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast())) }
        }

        #[inline(always)]
        unsafe fn with_fifth(of: __m512i, word: u32) -> __m512i {
            unsafe { _mm512_mask_or_epi32(of, word as u16, of, _mm512_set1_epi32(16)) }
        }

        #[inline(always)]
        unsafe fn shifted_right(of: __m512i, by: u32) -> __m512i {
            unsafe { _mm512_srl_epi32(of, _mm_cvtsi32_si128(by as i32)) }
        }

        #[inline(always)]
        unsafe fn shifted_left(of: __m512i, by: u32) -> __m512i {
            unsafe { _mm512_sll_epi32(of, _mm_cvtsi32_si128(by as i32)) }
        }

        #[inline(always)]
        unsafe fn masked(of: __m512i, mask: i32) -> __m512i {
            unsafe { _mm512_and_si512(of, _mm512_set1_epi32(mask)) }
        }

        #[inline(always)]
        unsafe fn either(one: __m512i, other: __m512i) -> __m512i {
            unsafe { _mm512_or_si512(one, other) }
        }

        #[inline(always)]
        unsafe fn less(of: __m512i, by: i32) -> __m512i {
            unsafe { _mm512_sub_epi32(of, _mm512_set1_epi32(by)) }
        }

        #[inline(always)]
        unsafe fn floats(of: __m512i) -> __m512 {
            unsafe { _mm512_cvtepi32_ps(of) }
        }

        #[inline(always)]
        unsafe fn at(of: __m512i, table: &[f32; 16]) -> __m512 {
            unsafe { _mm512_permutexvar_ps(of, _mm512_loadu_ps(table.as_ptr())) }
        }

        #[inline(always)]
        unsafe fn half(bits: u16) -> f32 {
            unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(bits)))) }
        }

        #[inline(always)]
        unsafe fn product(a: __m512, b: __m512) -> __m512 {
            unsafe { _mm512_mul_ps(a, b) }
        }

        #[inline(always)]
        unsafe fn add_product(a: __m512, b: __m512, c: __m512) -> __m512 {
            unsafe { _mm512_fmadd_ps(a, b, c) }
        }

        #[inline(always)]
        unsafe fn splat(number: f32) -> __m512 {
            unsafe { _mm512_set1_ps(number) }
        }

        #[inline(always)]
        unsafe fn store(of: __m512, to: *mut f32) {
            unsafe { _mm512_storeu_ps(to, of) }
        }

        #[inline(always)]
        unsafe fn sum(of: __m512) -> f32 {
            unsafe {
                let half = _mm512_extractf64x4_pd(_mm512_castps_pd(of), 1);
                let halves = _mm256_add_ps(_mm512_castps512_ps256(of), _mm256_castpd_ps(half));
                super::avx2::Lanes8::sum(halves)
            }
        }
    }
}
