//! Commands that send HTTP requests to a running service: many clients at once, some of which request several
//! texts, heavy clients beside a light one, hostile ones, and those of a service that is killed and replaced.
//!
//! ```text
//!   options ─► load, crowd, fair, attack, soak ─► driver (clients, their turns and times) ─► http ─► service
//! ```

pub(crate) mod attack;
pub(crate) mod crowd;
mod driver;
pub(crate) mod fair;
pub(crate) mod http;
pub(crate) mod load;
mod promise;
mod service;
pub(crate) mod soak;

use crate::options::Options;
use crate::process::Failure;
use crate::traffic::http::ask;
use std::time::Duration;

/// The time after which an answer is given up.
const PATIENCE: Duration = Duration::from_secs(300);

/// Returns the address of the service.
fn address(options: &Options) -> &str {
    options.get("--address").unwrap_or("127.0.0.1:8000")
}

/// Returns the resident memory of the process of `--pid`, in KiB.
fn memory(options: &Options) -> Option<u64> {
    Some(resident(options.get("--pid")?.parse().ok()?)? >> 10)
}

/// Returns the resident memory of a process, in bytes.
fn resident(pid: u32) -> Option<u64> {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// Returns the page of a running service.
fn page(address: &str, path: &str) -> Result<String, Failure> {
    let answer = ask(address, "GET", path, Duration::from_secs(60));
    let why = match answer.broken {
        None if answer.status == 200 => return Ok(answer.body),
        None => format!("status {}", answer.status),
        Some(error) => error.to_string(),
    };
    Err(Failure::new(format!("no service answers at {address}: {why}")))
}

/// Returns the name of the model that a running service has.
fn model(address: &str) -> Result<String, Failure> {
    let list = page(address, "/v1/models")?;
    let list: serde_json::Value = serde_json::from_str(&list)
        .map_err(|error| Failure::new(format!("what answers at {address} lists no models: {error}")))?;
    Ok(list["data"][0]["id"].as_str().unwrap_or_default().to_owned())
}
