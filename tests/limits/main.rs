//! What sources and questions may cost: memory, work, stacks and time, and inputs that were made to break
//! them.

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
