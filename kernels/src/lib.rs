//! The kernels of a decoding pass on an NVIDIA card, the pass as data, and the launcher that runs it.
//!
//! ```text
//!   *.cu ── NVRTC, for sm_90 ──► kernels of the card             node, step: a launch, or a product, as data
//!    └──── a C++ compiler ─────► the same on the processor        shapes, products, experts: the launches of each kernel
//!                                                                  plan: all steps of a pass, for a bucket of tokens
//!   feeds ─► inputs ─► one buffer of a fixed layout ─► plan ─► rows of logits ─► draw: 56 bytes a row
//!                                                        └─ launcher: a stream of a card, or the processor in tests
//! ```
//!
//! | source | what it computes | for |
//! |---|---|---|
//! | `attend.cu` | attention over the paged cache: split keys, block tables, trees, windows | head sizes 64 and 128, 64 query rows |
//! | `gemv.cu` | products for one or two vectors, with the norm before and the sum, gate or `f32` rows after | columns 1024, 2048, 3072, 4096, and of sums 6144, 8192, 12288, 14336 |
//! | `skinny.cu` | products for three to sixteen vectors by the tensor cores | columns 1024, 2048, 3072, 4096 |
//! | `experts.cu` | who goes to which expert, the products of every expert with its tokens, and their sums | 512 experts, of which a token uses 32, widths that are multiples of 16 |
//! | `gemv_int8.cu`, `gemv_fp8.cu`, `skinny_int8.cu`, `skinny_fp8.cu` | the same of weights in eight bits | the same |
//! | `small.cu` | embedding, norms, turning and storing, the gate; weights of eight bits in bf16; moves in the cache; tokens of a pass from the draws of the one before | widths to 8192 |
//! | `draw.cu` | penalties, filters by rank, sums and draws, with the bits of the library's law | vocabularies to 262,144 |
//!
//! This crate knows neither a model's files nor libtorch: weights and caches are addresses, which the engine
//! takes from its tensors.
//!
//! **What has been run.** No kernel has run on a card. On the processor, `kernels/tests/kernels` compares
//! every kernel with loops in `f64`, breaks the sources on purpose, and compares draws with the library's
//! law; `engine/tests/kernels` compares whole plans with the decoder, and `engine/tests/engine` runs models
//! and the decode loop by plan. `cargo xtask check kernels` compiles all of them for sm_90 and checks the
//! resources that they need. Times, the order of memory between blocks, and dependent launch are untested;
//! `cargo xtask card` creates the bundle that tests them where there is a card. `docs/src/gpu.md` has the
//! predictions.

pub mod asks;
pub mod card;
pub mod draw;
pub mod experts;
pub mod inputs;
pub mod launcher;
pub mod moves;
pub mod node;
pub mod plan;
pub mod products;
pub mod shapes;
pub mod step;

/// The header that all sources include.
pub const HEADER: (&str, &str) = ("device.h", include_str!("../sources/device.h"));

/// The sources, by the names of their files.
pub const SOURCES: [(&str, &str); 10] = [
    ("attend.cu", include_str!("../sources/attend.cu")),
    ("draw.cu", include_str!("../sources/draw.cu")),
    ("experts.cu", include_str!("../sources/experts.cu")),
    ("gemv.cu", include_str!("../sources/gemv.cu")),
    ("gemv_fp8.cu", include_str!("../sources/gemv_fp8.cu")),
    ("gemv_int8.cu", include_str!("../sources/gemv_int8.cu")),
    ("skinny.cu", include_str!("../sources/skinny.cu")),
    ("skinny_fp8.cu", include_str!("../sources/skinny_fp8.cu")),
    ("skinny_int8.cu", include_str!("../sources/skinny_int8.cu")),
    ("small.cu", include_str!("../sources/small.cu")),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The table and the sources list the same kernels.
    #[test]
    fn every_kernel_stands_in_its_source() {
        let uses = |text: &str, name: &str| text.matches(&format!("{name}(")).count();
        let included = |text: &str| {
            let included = SOURCES
                .iter()
                .find(|(name, _)| text.contains(&format!("#include \"{name}\"")));
            included.map(|(_, text)| *text)
        };
        for (name, text) in SOURCES {
            let of = shapes::KERNELS.iter().filter(|kernel| kernel.source == name);
            let text = included(text).unwrap_or(text);
            let alone = text.lines().filter(|line| line.starts_with("KERNEL(")).count();
            // The macros that define products are defined once.
            let products = ["GEMV", "SKINNY"].map(|name| uses(text, name).saturating_sub(1));
            assert_eq!(of.count(), alone + products.iter().sum::<usize>(), "{name}");
        }
    }
}
