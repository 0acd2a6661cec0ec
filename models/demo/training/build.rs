//! Writes libtorch's folder into the binary's run path, so that `lexiform` starts without `LD_LIBRARY_PATH`.

fn main() {
    let lib = std::env::var("DEP_LEXIFORM_ENGINE_LIBTORCH_LIB").unwrap_or_default();
    if !lib.is_empty() {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    }
}
