//! Tests of the decode loop through its public surface.

mod adapters;
mod aprad;
mod bad_models;
mod beside_prompts;
mod branches;
mod broken_heads;
mod budgets;
mod cautious;
#[path = "../kernels/checkpoint.rs"]
#[allow(dead_code, reason = "the tests of kernels use the rest")]
mod checkpoint;
mod company;
mod contrast;
mod counted;
mod decoding;
mod device;
mod devices;
mod drafting;
mod eight_bits;
mod fairness;
mod families;
mod filtered_out;
mod filters;
mod flights;
mod found_texts;
mod gguf;
mod grammars;
mod head_rows;
mod heads;
mod healing;
mod hosts;
mod in_turn;
#[path = "../kernels/launcher.rs"]
mod launcher;
mod laws;
mod layer_skipping;
mod led_searches;
mod long_drafts;
mod lookahead;
mod lossy;
#[path = "../../../kernels/tests/kernels/memory.rs"]
#[allow(dead_code, reason = "the tests of the kernels by themselves use the rest")]
mod memory;
mod meters;
mod monitors;
mod options;
mod other_tokens;
mod overlap;
mod own_products;
mod owners;
mod penalties;
mod pieces;
mod planned;
mod planned_engine;
mod planned_overlap;
mod planned_skips;
mod policies;
mod populations;
mod preambles;
mod priorities;
#[path = "../../../kernels/tests/kernels/processor.rs"]
#[allow(dead_code, reason = "the tests of the kernels by themselves use the rest")]
mod processor;
mod residual;
mod restarts;
mod rig;
mod sampled;
mod searches;
mod seeds;
mod small_amateurs;
mod threads;
mod torch;
mod torch_flights;
mod torch_laws;
mod trees;
