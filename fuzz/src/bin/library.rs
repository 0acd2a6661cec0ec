//! The targets that link the library alone.

use std::process::ExitCode;

#[global_allocator]
static METER: lexiform_fuzz::meter::Meter = lexiform_fuzz::meter::Meter;

fn main() -> ExitCode {
    lexiform_fuzz::drive::main(&lexiform_fuzz::LIBRARY)
}
