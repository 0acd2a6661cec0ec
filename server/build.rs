//! Two things that cargo cannot do by itself: writing libtorch's folder into the binary's run path, so that `lexiform`
//! starts without `LD_LIBRARY_PATH`, and listing the files of the demo model, so that they become part of the binary.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

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
}

/// A constant that lists the files of a folder, or nothing if the weights are not there.
fn listed(name: &str, folder: &Path) -> String {
    let mut source = format!("static {name}: &[File] = &[\n");
    // A path that is not there yet makes cargo look again at every build, which costs little and misses nothing.
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
