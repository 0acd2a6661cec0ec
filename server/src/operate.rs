//! Operation of the server: keys, certificates, origins and addresses of clients; the callbacks that requests
//! may name; accounts of requests, metrics, traces and logs.
//!
//! `random` and `digest` are here because all modules above create identities and hashes.

pub mod audit;
pub mod callbacks;
pub mod clients;
pub mod cors;
pub mod digest;
pub mod keys;
pub mod lines;
pub mod metrics;
pub mod otlp;
pub mod process;
pub mod random;
pub mod socket;
pub mod supervisor;
pub mod tls;
pub mod traces;
