//! The program with all commands of `lexiform`, which links libtorch: see [`lexiform_server::cli`].

use std::process::ExitCode;

// Compiling a schema and making a mask are made of small allocations beside large ones, where the system's
// allocator is slow: with this one compiles take a quarter less time (benches/record).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    lexiform_server::cli::main()
}
