//! Lets this package's tests find libtorch without `LD_LIBRARY_PATH`, and hands its place on to dependents.

fn main() {
    // Otherwise a change of a test compiles the package again.
    println!("cargo:rerun-if-changed=build.rs");
    let lib = std::env::var("DEP_TCH_LIBTORCH_LIB").unwrap_or_default();
    if !lib.is_empty() {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{lib}");
    }
    println!("cargo:libtorch_lib={lib}");
}
