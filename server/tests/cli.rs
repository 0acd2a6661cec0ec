//! The command line as people and scripts meet it: the real program, its output and its exit codes.

#[path = "cli/bench.rs"]
mod bench;
#[path = "cli/check.rs"]
mod check;
#[path = "cli/eval.rs"]
mod eval;
#[path = "cli/key.rs"]
mod key;
#[path = "cli/mask.rs"]
mod mask;
#[path = "cli/models.rs"]
mod models;
#[path = "cli/program.rs"]
mod program;
#[path = "cli/project.rs"]
mod project;
#[path = "cli/snapshots.rs"]
mod snapshots;
#[path = "cli/starting.rs"]
mod starting;
#[path = "cli/streams.rs"]
mod streams;
