//! The `lexiform` program.

fn main() {}
