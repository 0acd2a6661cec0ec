//! What the operating system says of this process: how many files it may open, and how much memory it holds.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beside connections: the log, the audit, the listeners, the workings of the runtime, a model that is
/// read again.
const RESERVED: usize = 64;
/// The fewest connections that are served, however few files may be open.
const LEAST_CONNECTIONS: usize = 16;

/// Raises the number of files that may be open to what the process is allowed at most, and says how many
/// these are. Every connection is an open file, and the usual soft limit is 1,024, or 256.
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

/// How many connections of those wanted have a file each, where so many files may be open.
pub fn connections(wanted: usize, files: usize) -> usize {
    wanted.min(files.saturating_sub(RESERVED)).max(LEAST_CONNECTIONS)
}

/// The bytes of physical memory that the process holds, where the system tells.
pub fn resident_bytes() -> Option<u64> {
    bytes_of(&std::fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// The bytes of memory that programs may still take without making others swap, where the system tells.
pub fn free_memory() -> Option<usize> {
    let free = bytes_of(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    usize::try_from(free).ok()
}

/// The figure of this name in a file of kilobytes.
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
