//! Vectors of `f32` by the instructions of each kind of processor, for loops that compilers do not make vectors of.
//!
//! A loop is written once for [`Lanes`], and called from a function that enables the instructions, after
//! the processor was asked for them.

use super::e4m3::{self, TWO_TO_120};

/// A number of a matrix.
pub(crate) trait Weight: Copy + Send + Sync {
    /// The same number in `f32`.
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

/// A whole number of a matrix whose rows have scales.
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

/// Vectors of [`COUNT`](Lanes::COUNT) numbers.
///
/// # Safety
/// All functions need a processor that has the instructions; those that load read as many numbers from the pointer, and
/// [`store`](Lanes::store) writes as many.
pub(crate) trait Lanes {
    type Vector: Copy;
    const COUNT: usize;

    unsafe fn zero() -> Self::Vector;
    unsafe fn load(from: *const f32) -> Self::Vector;
    unsafe fn load_bf16(from: *const Bf16) -> Self::Vector;
    unsafe fn load_i8(from: *const i8) -> Self::Vector;
    unsafe fn load_e4m3(from: *const E4m3) -> Self::Vector;
    /// `a · b + c`, rounded once where the processor can.
    unsafe fn add_product(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// One number, as many times as there are lanes.
    unsafe fn splat(number: f32) -> Self::Vector;
    unsafe fn store(of: Self::Vector, to: *mut f32);
    /// The sum of the lanes.
    unsafe fn sum(of: Self::Vector) -> f32;
}

/// What every processor has.
pub(crate) struct Plain;

impl Lanes for Plain {
    type Vector = [f32; 8];
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
    use super::{Bf16, E4m3, Lanes, TWO_TO_120};
    use std::arch::x86_64::*;

    pub(crate) struct Lanes8;

    // SAFETY of all: the caller has seen that the processor has AVX2 and FMA, and the pointers are the caller's.
    impl Lanes for Lanes8 {
        type Vector = __m256;
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
    use super::{Bf16, E4m3, Lanes, TWO_TO_120};
    use std::arch::x86_64::*;

    pub(crate) struct Lanes16;

    // SAFETY of all: the caller has seen that the processor has AVX-512F, and the pointers are the caller's.
    impl Lanes for Lanes16 {
        type Vector = __m512;
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
            unsafe { _mm512_reduce_add_ps(of) }
        }
    }
}
