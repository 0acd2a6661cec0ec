//! The cost of sources and queries: memory, work, stacks and time, and inputs that are made to exceed them.

mod allocator;
mod ambiguous;
mod brief;
mod cancel;
mod compile_bytes;
mod depth;
mod found;
mod memory;
mod schema_bombs;
mod worst_cases;
