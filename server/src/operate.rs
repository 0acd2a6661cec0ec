//! What operators choose and see: keys, certificates, origins; accounts of requests, metrics, traces.
//!
//! `random` and `digest` stand here because everything above makes identities and hashes.

pub mod audit;
pub mod cors;
pub mod digest;
pub mod keys;
pub mod metrics;
pub mod process;
pub mod random;
pub mod tls;
pub mod traces;
