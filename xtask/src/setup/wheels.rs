//! Fetches the wheels with pip (or uv) and keeps the files that a C++ program needs.

use super::folder::check_version;
use super::release::{Files, TORCH_VERSION};
use crate::process::{Failure, line, must_succeed, quiet_output};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Packages beside torch: the libraries that `libtorch_cpu.so` of the CUDA wheel loads even without a GPU,
/// and the headers that its own headers include.
const ALWAYS: [&str; 3] = [
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cupti==13.0.85",
    "nvidia-cuda-crt==13.0.88",
];

/// The run-time compiler of CUDA, in the version that `libtorch_cuda.so` loads.
pub(super) const NVRTC: &str = "nvidia-cuda-nvrtc==13.0.88";

/// The other packages that `libtorch_cuda.so` loads.
const FOR_CUDA: [&str; 12] = [
    "nvidia-cublas==13.1.0.3",
    "nvidia-cufft==12.0.0.61",
    "nvidia-cufile==1.15.1.6",
    "nvidia-curand==10.4.0.35",
    "nvidia-cusolver==12.0.4.66",
    "nvidia-cusparse==12.6.3.3",
    "nvidia-nvjitlink==13.0.88",
    NVRTC,
    "nvidia-cudnn-cu13==9.19.0.56",
    "nvidia-cusparselt-cu13==0.8.0",
    "nvidia-nccl-cu13==2.28.9",
    "nvidia-nvshmem-cu13==3.4.5",
];

/// The platforms whose wheels a current Linux accepts; pip matches these names one by one.
const PLATFORMS: [&str; 8] = [
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_25_x86_64",
    "manylinux_2_18_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
    "manylinux2010_x86_64",
    "manylinux1_x86_64",
];

/// The script that copies the needed files out of wheels; it lists them.
pub(super) const UNPACK: &str = include_str!("unpack.py");

/// Fetches into `to`, which appears whole or not at all: everything happens in a folder beside it.
pub(super) fn fetch(to: &Path, files: Files) -> Result<(), Failure> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Failure::new(format!(
            "libtorch is fetched for Linux on x86-64 only; here, set LIBTORCH to a libtorch {TORCH_VERSION} of your own"
        )));
    }
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let work = to.with_file_name(format!(".{name}.{}", std::process::id()));
    let fetched = fetch_in(&work, to, files);
    // Wheels take a gigabyte on disk: they are removed on success and on failure.
    let _ = fs::remove_dir_all(&work);
    fetched
}

fn fetch_in(work: &Path, to: &Path, files: Files) -> Result<(), Failure> {
    let (wheels, tree) = (work.join("wheels"), work.join("tree"));
    for folder in [&wheels, &tree] {
        fs::create_dir_all(folder).map_err(|error| Failure::io("could not make", folder, &error))?;
    }
    eprintln!(
        "xtask: fetching libtorch {TORCH_VERSION} ({} files), once for all checkouts of this user",
        files.name()
    );
    download(&wheels, &packages(files))?;
    let mut unpack = Command::new("python3");
    unpack
        .args(["-c", UNPACK])
        .args([&wheels, &tree])
        .arg(files.name());
    let unpacked = unpack.status().is_ok_and(|status| status.success());
    if !unpacked {
        return Err(Failure::new(format!(
            "could not unpack the wheels into {}; is the disk full?",
            tree.display()
        )));
    }
    check_version(&tree.join("torch"))?;
    put_in_place(&tree, to)
}

fn put_in_place(tree: &Path, to: &Path) -> Result<(), Failure> {
    // A broken older copy is replaced; a good one was installed meanwhile by another setup.
    if check_version(&to.join("torch")).is_ok() {
        return Ok(());
    }
    if to.exists() {
        fs::remove_dir_all(to).map_err(|error| Failure::io("could not remove", to, &error))?;
    }
    fs::rename(tree, to).map_err(|error| Failure::io("could not put libtorch at", to, &error))
}

/// Downloads the packages that libtorch consists of.
pub(super) fn download(to: &Path, packages: &[String]) -> Result<(), Failure> {
    must_download(&mut downloader(to, packages)?)
}

/// Returns the command that downloads packages: pip, or uv if there is no pip.
pub(super) fn downloader(to: &Path, packages: &[String]) -> Result<Command, Failure> {
    if quiet_output(Command::new("python3").args(["-m", "pip", "--version"])).is_some() {
        return Ok(pip(to, packages));
    }
    if quiet_output(Command::new("uv").arg("--version")).is_some() {
        return Ok(uv(to, packages));
    }
    Err(Failure::new(
        "pip or uv is needed to fetch packages: install the package python3-pip (or set LIBTORCH, to have a libtorch of your own)",
    ))
}

fn must_download(command: &mut Command) -> Result<(), Failure> {
    let line = line(command);
    must_succeed(command).map_err(|_| {
        Failure::new(format!(
            "the package index did not give what is needed (offline?); the command was\n  {line}"
        ))
    })
}

fn packages(files: Files) -> Vec<String> {
    let for_cuda: &[&str] = if files == Files::Cuda { &FOR_CUDA } else { &[] };
    let torch = format!("torch=={TORCH_VERSION}");
    std::iter::once(torch)
        .chain(ALWAYS.iter().chain(for_cuda).map(|it| (*it).to_owned()))
        .collect()
}

/// Returns the pip command. The Python version only selects a wheel; the C++ libraries in it do not depend on
/// it.
fn pip(to: &Path, packages: &[String]) -> Command {
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-cache-dir",
        "--no-deps",
    ]);
    pip.args([
        "--only-binary=:all:",
        "--python-version",
        "3.12",
        "--implementation",
        "cp",
    ]);
    pip.args(PLATFORMS.iter().flat_map(|it| ["--platform", it]));
    pip.arg("--dest").arg(to).args(packages);
    pip
}

fn uv(to: &Path, packages: &[String]) -> Command {
    let mut uv = Command::new("uv");
    uv.args([
        "pip",
        "install",
        "--quiet",
        "--no-cache",
        "--no-deps",
        "--no-build",
        "--python-version",
        "3.12",
    ]);
    uv.args(["--python-platform", "x86_64-manylinux_2_28", "--target"])
        .arg(to.join("installed"))
        .args(packages);
    uv
}
