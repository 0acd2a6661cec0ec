//! The machine on which the figures were measured.

use std::process::Command;

use lexiform_cli::report::processor;
use lexiform_engine::Device;
use serde_json::{Value, json};

use crate::cli::model::ModelArgs;
use crate::operate::process;

/// The size of a buffer on a card: larger than the card's cache of some 50 MiB.
const CARD_BUFFER: usize = 1 << 30;
/// The size of a buffer in memory, in multiples of the largest cache of the processor, and its minimum in
/// bytes.
const CACHES: usize = 4;
const LEAST_BUFFER: usize = 128 << 20;
/// The assumed cache size of a processor that does not report it.
const USUAL_CACHE: usize = 32 << 20;

/// The machine.
pub(super) struct Machine {
    pub(super) processor: String,
    pub(super) cores: usize,
    /// The number of threads of the model.
    pub(super) threads: usize,
    pub(super) device: Device,
    /// The card and its driver, if there is one.
    pub(super) card: Option<(String, String)>,
    /// The size of the largest cache of the processor, in bytes.
    pub(super) cache_bytes: usize,
    /// The size of the buffers with which the memory bandwidth is measured.
    pub(super) buffer_bytes: usize,
    /// The memory that is free for keys and values, if it is known in advance.
    pub(super) free_bytes: Option<usize>,
    /// The average number of runnable processes in the minute before the start.
    pub(super) load: Option<f64>,
}

impl Machine {
    /// Detects the machine that this process runs on.
    pub(super) fn found(model: &ModelArgs) -> Self {
        let options = model.run.load_options();
        let cache_bytes = cache_bytes().unwrap_or(USUAL_CACHE);
        let free_bytes = match options.device {
            Device::Cpu => process::free_memory(),
            Device::Cuda(_) => None,
        };
        Machine {
            processor: processor().unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            threads: options.threads,
            device: options.device,
            card: match options.device {
                Device::Cpu => None,
                Device::Cuda(index) => card(index),
            },
            cache_bytes,
            buffer_bytes: match options.device {
                // There are two buffers, and the model needs the rest.
                Device::Cpu => (CACHES * cache_bytes)
                    .max(LEAST_BUFFER)
                    .min(free_bytes.unwrap_or(usize::MAX) / 8),
                Device::Cuda(_) => CARD_BUFFER,
            },
            free_bytes,
            load: load(),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "processor": self.processor,
            "cores": self.cores,
            "threads": self.threads,
            "device": self.device.to_string(),
            "card": self.card.as_ref().map(|(name, _)| name),
            "driver": self.card.as_ref().map(|(_, driver)| driver),
            "cache_bytes": self.cache_bytes,
            "load_before": self.load,
        })
    }

    /// Describes the machine in a line.
    pub(super) fn in_words(&self) -> String {
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        let processor = format!(
            "{}, {} cores, {} {threads}",
            self.processor, self.cores, self.threads
        );
        let load = self
            .load
            .map_or_else(String::new, |load| format!(", load {load:.1} before"));
        match (&self.card, self.device) {
            (Some((card, driver)), _) => format!("{card} (driver {driver}), {processor}{load}"),
            (None, Device::Cuda(_)) => format!("{}, {processor}{load}", self.device),
            (None, Device::Cpu) => processor + &load,
        }
    }
}

/// Returns the load of the last minute, if the system reports it.
pub(super) fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Returns the size of the largest cache of the first core.
fn cache_bytes() -> Option<usize> {
    let size = |index: usize| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let kilobytes = std::fs::read_to_string(path).ok()?;
        let kilobytes: usize = kilobytes.trim().strip_suffix('K')?.parse().ok()?;
        kilobytes.checked_mul(1024)
    };
    (0..8).filter_map(size).max()
}

/// Returns the name and the driver of a card, as its driver reports them.
fn card(index: usize) -> Option<(String, String)> {
    let output = Command::new("nvidia-smi")
        .args(["--query-gpu=name,driver_version", "--format=csv,noheader", "-i"])
        .arg(index.to_string())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (name, driver) = text.lines().next()?.rsplit_once(',')?;
    Some((name.trim().to_owned(), driver.trim().to_owned()))
}
