//! The compiler of kernels at run time, where NVRTC was fetched (`cargo xtask check kernels` fetches it). It
//! needs no card.

use lexiform_kernels::card::compiler::{CompileError, Compiler};
use std::path::PathBuf;

/// Where the project keeps NVRTC for this user.
fn folder() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let folder = cache
        .or_else(home)?
        .join("lexiform/nvrtc-13.0.88/nvidia/cu13/lib");
    folder.join("libnvrtc.so.13").exists().then_some(folder)
}

#[test]
fn sources_are_compiled_at_run_time() {
    let Some(folder) = folder() else {
        println!("skipped: sources_are_compiled_at_run_time: libnvrtc.so.13 is not there");
        return;
    };
    let compiler = Compiler::open(Some(&folder)).unwrap();
    let code = compiler.compile("small.cu", "sm_90").unwrap();
    assert!(code.starts_with(b"\x7fELF"));
    let has = |name: &[u8]| code.windows(name.len()).any(|window| window == name);
    assert!(has(b".text.turn_128") && has(b".text.norm_rows"));
    assert_eq!(
        compiler.compile("large.cu", "sm_90"),
        Err(CompileError::NoSource("large.cu".to_owned()))
    );
    // Bulk copies and dependent launch are not those of an older card.
    match compiler.compile("gemv.cu", "sm_80") {
        Err(CompileError::Source { source_name, log, .. }) => {
            assert!(source_name == "gemv.cu" && log.contains("sm_90"), "{log}");
        }
        other => panic!("{}", other.is_ok()),
    }
}
