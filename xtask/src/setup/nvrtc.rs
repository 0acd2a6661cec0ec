//! NVRTC, the run-time compiler of CUDA: from libtorch if it has CUDA, and otherwise from a separate wheel.

use super::wheels::{NVRTC, UNPACK, download};
use crate::process::Failure;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARIES: &str = "nvidia/cu13/lib";

/// Returns the folder of the libraries; fetches them into the cache (0.1 GB) if necessary.
pub(super) fn bring(checkout: &Path, cache: &Path) -> Result<PathBuf, Failure> {
    let version = NVRTC.rsplit("==").next().unwrap_or_default();
    let cached = cache.join(format!("nvrtc-{version}"));
    let folders = [checkout, &cached].map(|folder| folder.join(LIBRARIES));
    if let Some(there) = folders.iter().find(|folder| has_libraries(folder)) {
        return Ok(there.clone());
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Failure::new("NVRTC is fetched for Linux on x86-64 only"));
    }
    let work = cache.join(format!(".nvrtc.{}", std::process::id()));
    let fetched = fetch(&work, &cached);
    let _ = fs::remove_dir_all(&work);
    fetched.map(|()| cached.join(LIBRARIES))
}

fn has_libraries(folder: &Path) -> bool {
    ["libnvrtc.so.13", "libnvrtc-builtins.so.13.0"]
        .iter()
        .all(|library| folder.join(library).exists())
}

/// Fetches the libraries into `to`, which appears whole or not at all.
fn fetch(work: &Path, to: &Path) -> Result<(), Failure> {
    let (wheels, tree) = (work.join("wheels"), work.join("tree"));
    for folder in [&wheels, &tree] {
        fs::create_dir_all(folder).map_err(|error| Failure::io("could not make", folder, &error))?;
    }
    download(&wheels, &[NVRTC.to_owned()])?;
    let mut unpack = Command::new("python3");
    unpack.args(["-c", UNPACK]).args([&wheels, &tree]).arg("nvrtc");
    let unpacked = unpack.status().is_ok_and(|status| status.success());
    if !unpacked || !has_libraries(&tree.join(LIBRARIES)) {
        return Err(Failure::new("the wheel of NVRTC could not be unpacked"));
    }
    if to.exists() {
        fs::remove_dir_all(to).map_err(|error| Failure::io("could not remove", to, &error))?;
    }
    fs::rename(&tree, to).map_err(|error| Failure::io("could not put NVRTC at", to, &error))
}
