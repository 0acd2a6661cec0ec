//! Operation of the server: keys, addresses of clients, certificates and origins; the callbacks that requests
//! may name; accounts of requests, metrics and traces.
//!
//! `random` and `digest` are here because all modules above create identities and hashes.

pub mod audit;
pub mod callbacks;
pub mod clients;
pub mod cors;
pub mod digest;
pub mod keys;
pub mod metrics;
pub mod process;
pub mod random;
pub mod tls;
pub mod traces;
