//! The rules of the house: what a machine can hold of ARCHITECTURE.md and CONTRIBUTING.md, the public
//! interface of the library, and the wording of its messages.

mod architecture;
mod interface;
mod messages;
