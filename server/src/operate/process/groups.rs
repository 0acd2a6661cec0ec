//! The memory that the control groups of this process leave it. Containers and units of systemd are such
//! groups, in version 1 or 2 of the interface of Linux.
//!
//! A group is limited by all groups around it, so the least of them counts. Pages of files that nobody uses
//! any more are free: the kernel drops them before it refuses memory. Processors need no code here:
//! `std::thread::available_parallelism` reads the quotas of both versions.

use std::fs::read_to_string;
use std::path::{Component, Path, PathBuf};

/// The folder under which the system shows control groups.
pub(super) const ROOT: &str = "/sys/fs/cgroup";
/// The file that names the groups of this process.
pub(super) const MEMBERSHIP: &str = "/proc/self/cgroup";

/// The files of a group in one version of the interface.
struct Version {
    /// Its limits; a file may say `max`.
    limits: &'static [&'static str],
    used: &'static str,
    /// The line of `memory.stat` that counts what the kernel can take back at once.
    reclaimable: &'static str,
}

const FIRST: Version = Version {
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file ",
};
const SECOND: Version = Version {
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    reclaimable: "inactive_file ",
};

/// Returns the bytes that all groups still allow; `None` if no group has a limit. `root` shows the groups,
/// and `membership` names those of the process, as the files above do.
pub(super) fn free_bytes(root: &Path, membership: &str) -> Option<u64> {
    let groups = membership.lines().filter_map(|line| group(root, line));
    groups
        .flat_map(|(version, folders)| folders.into_iter().map(move |folder| left(&folder, version)))
        .flatten()
        .min()
}

/// Returns the folders of a group and of those around it, from a line of the form `number:controllers:path`;
/// `None` if the line is about another resource than memory.
fn group(root: &Path, line: &str) -> Option<(&'static Version, Vec<PathBuf>)> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    let (version, mount) = match controllers {
        "" if root.join("unified").is_dir() => (&SECOND, root.join("unified")),
        "" => (&SECOND, root.to_owned()),
        of if of.split(',').any(|name| name == "memory") => (&FIRST, root.join("memory")),
        _ => return None,
    };
    // A container may be shown its own group as the root, and be told its path outside of it: folders that
    // are not there have no limits to read.
    let mut folders = vec![mount.clone()];
    let mut folder = mount;
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => folder.push(name),
            Component::RootDir => continue,
            _ => break,
        }
        folders.push(folder.clone());
    }
    Some((version, folders))
}

/// Returns the bytes that a group itself still allows, if it has a limit.
fn left(folder: &Path, version: &Version) -> Option<u64> {
    let number = |name: &str| -> Option<u64> { read_to_string(folder.join(name)).ok()?.trim().parse().ok() };
    let limit: u64 = version.limits.iter().filter_map(|name| number(name)).min()?;
    let used = number(version.used).unwrap_or(0);
    let stat = read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let reclaimable = stat
        .lines()
        .find_map(|line| line.strip_prefix(version.reclaimable)?.trim().parse().ok())
        .unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(reclaimable)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A folder with these files, each with its content.
    fn root(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("lexiform-groups-{}-{name}", std::process::id()));
        for (file, content) in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, format!("{content}\n")).expect("a file");
        }
        root
    }

    fn free(name: &str, membership: &str, files: &[(&str, &str)]) -> Option<u64> {
        let root = root(name, files);
        let free = free_bytes(&root, membership);
        let _ = std::fs::remove_dir_all(root);
        free
    }

    #[test]
    fn a_container_is_free_by_its_limit_less_what_it_uses() {
        let own = [
            ("memory.max", "1073741824"),
            ("memory.high", "max"),
            ("memory.current", "314572800"),
            (
                "memory.stat",
                "anon 209715200\ninactive_file 104857600\nactive_file 0",
            ),
        ];
        // Its own group is the root.
        assert_eq!(free("own", "0::/\n", &own), Some(824 * MIB));
        // It is told a path that it cannot see.
        assert_eq!(
            free("told", "0::/system.slice/docker-7.scope\n", &own),
            Some(824 * MIB)
        );
        assert_eq!(free("outside", "0::/../other\n", &own), Some(824 * MIB));
    }

    #[test]
    fn the_least_of_nested_groups_counts() {
        let files = [
            ("memory.max", "max"),
            ("pod/memory.max", "1048576000"),
            ("pod/memory.current", "838860800"),
            ("pod/one/memory.max", "838860800"),
            ("pod/one/memory.high", "629145600"),
            ("pod/one/memory.current", "104857600"),
            ("pod/other/memory.max", "1"),
        ];
        assert_eq!(free("nested", "0::/pod/one", &files), Some(200 * MIB));
        assert_eq!(
            free("high", "0::/pod/one", &[files[3], files[4], files[5]]),
            Some(500 * MIB)
        );
        assert_eq!(free("pod", "0::/pod", &files), Some(200 * MIB));
    }

    #[test]
    fn the_first_version_is_read_where_it_is() {
        let files = [
            ("memory/memory.limit_in_bytes", "9223372036854771712"),
            ("memory/box/memory.limit_in_bytes", "524288000"),
            ("memory/box/memory.usage_in_bytes", "209715200"),
            (
                "memory/box/memory.stat",
                "inactive_file 1\ntotal_inactive_file 104857600",
            ),
            ("unified/box/cgroup.procs", "1"),
            ("cpu/box/memory.limit_in_bytes", "1"),
        ];
        let membership = "9:cpu,cpuacct:/box\n4:hugetlb,memory:/box\n0::/box\n";
        assert_eq!(free("first", membership, &files), Some(400 * MIB));
    }

    #[test]
    fn what_uses_more_than_its_limit_has_nothing_left_and_what_has_none_says_nothing() {
        let over = [("memory.max", "100"), ("memory.current", "200")];
        assert_eq!(free("over", "0::/", &over), Some(0));
        assert_eq!(
            free("none", "0::/", &[("memory.max", "max"), ("memory.current", "1")]),
            None
        );
        assert_eq!(free("broken", "0::/", &[("memory.max", "many")]), None);
        assert_eq!(free("absent", "nothing that is known\n:\n", &over), None);
    }
}
