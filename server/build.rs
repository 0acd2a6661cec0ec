//! Three things that cargo cannot do by itself: writing libtorch's folder into the binary's run path, so that
//! `lexiform` starts without `LD_LIBRARY_PATH`, listing the files of the demo model, so that they become part
//! of the binary, and finding what `lexiform version` says of the build.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the demo model needs at run time; the model card and the like stay out of the binary.
const FILES: [&str; 6] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "model.safetensors",
];

fn main() {
    let lib = std::env::var("DEP_LEXIFORM_ENGINE_LIBTORCH_LIB").unwrap_or_default();
    if !lib.is_empty() {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    }
    let models =
        PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../models/demo");
    let source = listed("MODEL", &models) + &listed("DRAFT", &models.join("draft"));
    let target = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("demo_files.rs");
    if let Err(error) = std::fs::write(&target, source) {
        println!("cargo:error={}: {error}", target.display());
    }
    let known = |found: Option<String>| found.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=LEXIFORM_COMMIT={}", known(commit()));
    println!(
        "cargo:rustc-env=LEXIFORM_LIBTORCH={}",
        known(libtorch_version(Path::new(&lib)))
    );
    println!(
        "cargo:rustc-env=LEXIFORM_TARGET={}",
        known(std::env::var("TARGET").ok())
    );
}

/// The commit that is built, where this is a checkout and git is there.
fn commit() -> Option<String> {
    let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .arg("-C")
            .arg(&folder)
            .args(arguments)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // A copy of the sources may lie within the checkout of something else.
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != folder.join("..").canonicalize().ok()? {
        return None;
    }
    // Its log changes with every commit and every checkout; where there is none, HEAD changes with the latter
    // alone.
    for name in ["logs/HEAD", "HEAD"] {
        let path = folder.join(git(&["rev-parse", "--git-path", name])?);
        if path.is_file() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

/// What libtorch says of itself: `version.py` in the package for Python, `build-version` in the archive.
fn libtorch_version(lib: &Path) -> Option<String> {
    let folder = lib.parent()?;
    let python = std::fs::read_to_string(folder.join("version.py")).ok();
    let version = python.and_then(|text| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("__version__ = "))?;
        Some(line.trim_matches(['\'', '"']).to_owned())
    });
    version.or_else(|| {
        Some(
            std::fs::read_to_string(folder.join("build-version"))
                .ok()?
                .trim()
                .to_owned(),
        )
    })
}

/// A constant that lists the files of a folder, or nothing if the weights are not there.
fn listed(name: &str, folder: &Path) -> String {
    let mut source = format!("static {name}: &[File] = &[\n");
    // A path that is not there yet makes cargo look again at every build, which costs little and misses
    // nothing.
    println!("cargo:rerun-if-changed={}", folder.display());
    if folder.join("model.safetensors").is_file() {
        for file in FILES {
            let path = folder.join(file);
            if path.is_file() {
                let _ = writeln!(
                    source,
                    "    ({file:?}, include_bytes!({:?})),",
                    path.display().to_string()
                );
            }
        }
    }
    source + "];\n"
}
