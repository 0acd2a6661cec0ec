//! The resources of this process: the number of files that it may open, and the memory that it holds.

mod groups;

use std::fs::read_to_string;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of files besides connections: the log, the audit log, the listeners, the files of the runtime,
/// a model that is read again.
const RESERVED: usize = 64;
/// The minimum number of connections that are served, however few files may be open.
const LEAST_CONNECTIONS: usize = 16;

/// Raises the number of files that may be open to the maximum allowed for the process, and returns it. Every
/// connection is an open file, and the usual soft limit is 1,024, or 256.
pub fn open_files() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    let raised = setrlimit(Resource::Nofile, raised).is_ok();
    let files = if raised { maximum } else { current };
    files.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

/// Returns how many of the wanted connections can have a file each, given the number of files that may be
/// open.
pub fn connections(wanted: usize, files: usize) -> usize {
    wanted.min(files.saturating_sub(RESERVED)).max(LEAST_CONNECTIONS)
}

/// Returns the bytes of physical memory that the process holds, if the system reports them.
pub fn resident_bytes() -> Option<u64> {
    bytes_of(&read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Returns the bytes of memory that this process can still allocate without swapping, if the system reports
/// them: what the machine has free, and at most what the control groups of the process allow.
pub fn free_memory() -> Option<usize> {
    let machine = read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|told| bytes_of(&told, "MemAvailable:"));
    let membership = read_to_string(groups::MEMBERSHIP).unwrap_or_default();
    let allowed = groups::free_bytes(Path::new(groups::ROOT), &membership);
    let free = machine.into_iter().chain(allowed).min()?;
    usize::try_from(free).ok()
}

/// Returns the figure of this name in a file of kilobytes, in bytes.
fn bytes_of(told: &str, name: &str) -> Option<u64> {
    let line = told.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_mean_few_connections() {
        assert_eq!(connections(2048, 1 << 20), 2048);
        assert_eq!(connections(2048, 256), 192);
        assert_eq!(connections(2048, 10), LEAST_CONNECTIONS);
    }

    #[test]
    fn the_process_holds_some_memory() {
        assert!(resident_bytes().is_none_or(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn figures_are_read_where_they_are() {
        let told = "MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(bytes_of(told, "MemAvailable:"), Some(2 << 20));
        for told in [
            "",
            "MemAvailable: 2048",
            "MemAvailable: x kB",
            "MemAvailable: 18446744073709551615 kB",
        ] {
            assert_eq!(bytes_of(told, "MemAvailable:"), None, "{told}");
        }
    }
}
