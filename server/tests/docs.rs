//! The documentation against the program: its examples run, its tables are complete, and its links lead
//! somewhere.

#[path = "docs/blocks.rs"]
mod blocks;
#[path = "docs/combinations.rs"]
mod combinations;
#[path = "docs/examples.rs"]
mod examples;
#[path = "docs/links.rs"]
mod links;
#[path = "docs/pattern.rs"]
mod pattern;
#[path = "docs/service.rs"]
mod service;
#[path = "docs/tables.rs"]
mod tables;
