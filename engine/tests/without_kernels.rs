//! The tests of the decode loop and of passes by plan, where they are not built: they need the feature `kernels`, and say so.

#![cfg(not(feature = "kernels"))]

#[test]
fn the_tests_of_the_decode_loop_are_built_with_kernels_alone() {
    eprintln!("skipped: run `cargo test -p lexiform-engine --features kernels`, or `cargo xtask test`");
}
