//! The libraries of CUDA, opened at run time: no part of CUDA is needed to build, or on a machine without a
//! card.
//!
//! The crate `cudarc` looks for a function when it is first called, and panics if the function or its library
//! is missing. So each library is opened here before it is used, and checked for the functions that are
//! called: a missing one is an error with its name. Afterwards `cudarc` finds the open library by its file
//! name, unless the system has a library of that name without a version, which it prefers.

use libloading::Library;
use std::error::Error;
use std::path::Path;

/// The driver.
pub(super) const DRIVER: &str = "libcuda.so.1";
/// The compiler, which comes with libtorch for CUDA, and the library that it opens itself.
pub(super) const NVRTC: &str = "libnvrtc.so.13";
pub(super) const NVRTC_BUILTINS: &str = "libnvrtc-builtins.so.13.0";
/// The library of matrix products, which comes with libtorch for CUDA.
pub(super) const CUBLAS: &str = "libcublas.so.13";

/// Opens a library for the rest of the process, and checks that it has these functions.
///
/// # Errors
/// The error of the system, or the name of the missing function.
pub(super) fn open(file: &Path, functions: &[&str]) -> Result<(), String> {
    // SAFETY: libraries of CUDA are meant to be opened this way.
    let library = unsafe { Library::new(file) }.map_err(|error| {
        // The error of the system, if there is one.
        error.source().map_or(error.to_string(), ToString::to_string)
    })?;
    for name in functions {
        // SAFETY: whatever the type of the function is, this pointer to it is not used.
        let found = unsafe { library.get::<*const ()>(name.as_bytes()) };
        found.map_err(|_| format!("it has no {name}"))?;
    }
    // If it were closed, it would have to be found again.
    std::mem::forget(library);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let opened = |file: &str, functions: &[&str]| open(Path::new(file), functions);
        assert_eq!(opened("libc.so.6", &["malloc"]), Ok(()));
        let lacks = opened("libc.so.6", &["malloc", "cuInit"]);
        assert_eq!(lacks, Err("it has no cuInit".to_owned()));
        let reason = opened("libnothing.so.9", &[]).unwrap_err();
        assert!(reason.contains("libnothing.so.9"), "{reason}");
    }
}
