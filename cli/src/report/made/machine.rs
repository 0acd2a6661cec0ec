//! The machine that this process runs on.

use std::fs;

/// Returns the processor, its cores, the memory and the system, as names and values. What the system does
/// not say is left out.
pub(super) fn facts() -> Vec<(String, String)> {
    let gibibytes = |bytes: usize| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let facts = [
        ("processor", processor()),
        (
            "cores",
            std::thread::available_parallelism()
                .ok()
                .map(|cores| cores.to_string()),
        ),
        ("memory", memory().map(gibibytes)),
        ("system", system()),
    ];
    let known = facts
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    known.collect()
}

/// Returns the name of the processor, if the system reports it.
pub fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Returns the bytes of memory, if the system reports them.
pub fn memory() -> Option<usize> {
    field("MemTotal:")
}

/// Returns the name of the system, and the version of its kernel.
fn system() -> Option<String> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let name = name.unwrap_or(std::env::consts::OS).trim_matches('"');
    Some(format!("{name}, kernel {}", kernel.trim()))
}

/// Returns a size that `/proc/meminfo` has in kilobytes.
fn field(name: &str) -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: usize = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}
