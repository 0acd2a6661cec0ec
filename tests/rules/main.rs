//! The rules of the project that a machine can check: those of ARCHITECTURE.md and CONTRIBUTING.md, the
//! public interface of the library, and the wording of its messages.

mod architecture;
mod interface;
mod messages;
