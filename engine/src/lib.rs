//! The decode loop.
