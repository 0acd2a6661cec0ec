//! The program with all commands of `lexiform`; it links libtorch. See [`lexiform_server::cli`].

use std::process::ExitCode;

// Compiling a schema and computing a mask make many small allocations between large ones, for which the
// system allocator is slow: with this one, compilation takes a quarter less time (benches/record).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    lexiform_server::cli::main()
}
