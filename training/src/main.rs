//! Trains the demo model.

fn main() {}
