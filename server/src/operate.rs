//! Operation of the server: keys, certificates and origins; accounts of requests, metrics and traces.
//!
//! `random` and `digest` are here because all modules above create identities and hashes.

pub mod audit;
pub mod cors;
pub mod digest;
pub mod keys;
pub mod metrics;
pub mod process;
pub mod random;
pub mod tls;
pub mod traces;
