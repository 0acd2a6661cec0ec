//! The folder that holds libtorch: checks its version and whether it loads, and links a checkout to it.

use super::release::{Files, TORCH_VERSION};
use crate::process::{Failure, quiet_output};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Refuses a folder that is not a libtorch of exactly the right version.
pub(super) fn check_version(torch: &Path) -> Result<(), Failure> {
    for needed in [
        "lib/libtorch_cpu.so",
        "lib/libc10.so",
        "include/torch/csrc/api/include/torch/torch.h",
    ] {
        if !torch.join(needed).exists() {
            let (torch, needed) = (torch.display(), torch.join(needed));
            return Err(Failure::new(format!(
                "{torch} is not a libtorch: {} is not there",
                needed.display()
            )));
        }
    }
    match version(torch) {
        Some(found) if found == TORCH_VERSION => Ok(()),
        Some(found) => Err(wrong_version(torch, &format!("is libtorch {found}"))),
        None => Err(wrong_version(torch, "does not say which version it is")),
    }
}

fn wrong_version(torch: &Path, what: &str) -> Failure {
    let torch = torch.display();
    Failure::new(format!(
        "{torch} {what}; this project needs exactly {TORCH_VERSION}. Point LIBTORCH at that version, or unset it \
         and let `cargo xtask setup` bring one"
    ))
}

/// Returns the version that a libtorch folder states: in `version.py` if it came in a wheel, in
/// `build-version` if in a zip file.
fn version(torch: &Path) -> Option<String> {
    let stated = match fs::read_to_string(torch.join("version.py")) {
        Ok(text) => text.lines().find_map(python_version_line)?,
        Err(_) => fs::read_to_string(torch.join("build-version")).ok()?,
    };
    // The suffix after the plus sign names the build (`cu130`, `cpu`), not the version.
    let release = stated.trim().split('+').next()?;
    Some(release.to_owned())
}

fn python_version_line(line: &str) -> Option<String> {
    let value = line.strip_prefix("__version__")?.split_once('=')?.1.trim();
    Some(value.trim_matches(['\'', '"']).to_owned())
}

/// Returns `true` if a libtorch has these files.
pub(super) fn serves(torch: &Path, files: Files) -> bool {
    files == Files::Cpu || torch.join("lib/libtorch_cuda.so").exists()
}

/// Returns the source of `.libtorch/` if it already has these files; a stale or broken one does not count.
pub(super) fn already_set_up(checkout: &Path, files: Files) -> Option<String> {
    let source = fs::read_to_string(checkout.join("source")).ok()?;
    check_version(&checkout.join("torch")).ok()?;
    serves(&checkout.join("torch"), files)
        .then(|| format!("already in {} ({})", checkout.display(), source.trim()))
}

/// Makes `.libtorch/` point at `from`, which holds `torch/` and possibly `nvidia/` side by side.
pub(super) fn link(checkout: &Path, from: &Path, source: &str) -> Result<(), Failure> {
    if checkout.symlink_metadata().is_ok() {
        let removed = if checkout.is_symlink() {
            fs::remove_file(checkout)
        } else {
            fs::remove_dir_all(checkout)
        };
        removed.map_err(|error| Failure::io("could not remove", checkout, &error))?;
    }
    fs::create_dir_all(checkout).map_err(|error| Failure::io("could not make", checkout, &error))?;
    for part in ["torch", "nvidia"] {
        let (target, link) = (from.join(part), checkout.join(part));
        if target.exists() {
            std::os::unix::fs::symlink(&target, &link)
                .map_err(|error| Failure::io("could not link", &link, &error))?;
        }
    }
    check_version(&checkout.join("torch"))?;
    check_loads(&checkout.join("torch"))?;
    let note = checkout.join("source");
    fs::write(&note, format!("{source} {TORCH_VERSION}\n"))
        .map_err(|error| Failure::io("could not write", &note, &error))
}

/// Asks the dynamic linker whether everything that libtorch needs is found; without `ldd` the build will fail
/// instead.
fn check_loads(torch: &Path) -> Result<(), Failure> {
    let library = torch.join("lib/libtorch_cpu.so");
    let listed = quiet_output(Command::new("ldd").arg(&library)).unwrap_or_default();
    let missing: Vec<&str> = listed
        .lines()
        .filter(|line| line.contains("not found"))
        .map(str::trim)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} does not load: {}",
        library.display(),
        missing.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates an empty folder of this test run that looks like a libtorch of the given version.
    fn libtorch(name: &str, version_file: &str, text: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("lexiform-xtask-{}-{name}", std::process::id()));
        for file in [
            "lib/libtorch_cpu.so",
            "lib/libc10.so",
            "include/torch/csrc/api/include/torch/torch.h",
        ] {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(folder.join(version_file), text).unwrap();
        folder
    }

    /// Guards against linking an installed torch without CUDA where CUDA was requested.
    #[test]
    fn a_libtorch_without_cuda_serves_no_card() {
        let folder = libtorch("card", "version.py", "__version__ = '2.11.0+cpu'\n");
        assert!(serves(&folder, Files::Cpu) && !serves(&folder, Files::Cuda));
        fs::write(folder.join("lib/libtorch_cuda.so"), "").unwrap();
        assert!(serves(&folder, Files::Cuda));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_wheel_of_the_right_version_is_taken() {
        let folder = libtorch(
            "wheel",
            "version.py",
            "from typing import Optional\n__version__ = '2.11.0+cu130'\n",
        );
        assert!(check_version(&folder).is_ok());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn another_version_is_refused_by_name() {
        let folder = libtorch("zip", "build-version", "2.10.0+cpu\n");
        let refusal = check_version(&folder).unwrap_err().to_string();
        assert!(
            refusal.contains("is libtorch 2.10.0; this project needs exactly 2.11.0"),
            "{refusal}"
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_without_headers_is_refused_by_the_missing_file() {
        let folder = libtorch("headless", "version.py", "__version__ = '2.11.0'\n");
        fs::remove_dir_all(folder.join("include")).unwrap();
        let refusal = check_version(&folder).unwrap_err().to_string();
        assert!(refusal.contains("torch.h is not there"), "{refusal}");
        fs::remove_dir_all(folder).unwrap();
    }
}
