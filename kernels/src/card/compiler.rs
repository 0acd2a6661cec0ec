//! Compiles the sources for a card with NVRTC, at run time and directly to machine code.

use super::library::{self, NVRTC, NVRTC_BUILTINS};
use crate::{HEADER, SOURCES};
use cudarc::nvrtc::result::{self, NvrtcError};
use cudarc::nvrtc::sys;
use std::ffi::{CString, c_int};
use std::path::{Path, PathBuf};
use std::ptr;

/// The reason why a source could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// NVRTC could not be opened.
    #[error("NVRTC could not be opened from {}: {reason}", folder.display())]
    NoCompiler {
        /// The folder that was searched; empty for the folders of the system.
        folder: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// There is no source with this name.
    #[error("there is no source {0:?}")]
    NoSource(String),
    /// The source does not compile.
    #[error("{source_name} does not compile for {architecture} (NVRTC says {code}):\n{log}")]
    Source {
        /// The name of the source.
        source_name: String,
        /// The architecture that it was compiled for.
        architecture: String,
        /// The error code of NVRTC.
        code: i32,
        /// The output of the compiler.
        log: String,
    },
}

/// An opened NVRTC.
pub struct Compiler(());

impl Compiler {
    /// Opens NVRTC of CUDA 13 from a folder, or by the system's search. If the system has a `libnvrtc.so`,
    /// that one is used.
    ///
    /// # Errors
    /// NVRTC cannot be opened: [`CompileError::NoCompiler`].
    pub fn open(folder: Option<&Path>) -> Result<Self, CompileError> {
        let folder = folder.unwrap_or(Path::new(""));
        // NVRTC looks for its builtins by name, and finds a library that is already open.
        let _ = library::open(&folder.join(NVRTC_BUILTINS), &[]);
        let opened = library::open(&folder.join(NVRTC), &["nvrtcGetCUBIN", "nvrtcGetCUBINSize"]);
        opened.map_err(|reason| CompileError::NoCompiler {
            folder: folder.to_owned(),
            reason,
        })?;
        Ok(Compiler(()))
    }

    /// Compiles a source for an architecture such as `sm_90`, and returns the machine code.
    ///
    /// # Errors
    /// There is no such source, or it does not compile.
    pub fn compile(&self, source: &str, architecture: &str) -> Result<Vec<u8>, CompileError> {
        let found = SOURCES.iter().find(|(name, _)| *name == source);
        let (_, text) = found.ok_or_else(|| CompileError::NoSource(source.to_owned()))?;
        let refused = |error: NvrtcError, log: String| CompileError::Source {
            source_name: source.to_owned(),
            architecture: architecture.to_owned(),
            code: error.0 as i32,
            log,
        };
        let program = Program::new(text, source).map_err(|error| refused(error, String::new()))?;
        let code = program.compile(architecture);
        code.map_err(|error| refused(error, program.log()))
    }
}

/// An NVRTC program.
struct Program(sys::nvrtcProgram);

impl Program {
    /// Creates the program of a source, which may include the header and other sources.
    fn new(text: &str, name: &str) -> Result<Self, NvrtcError> {
        let string = |text: &str| CString::new(text).unwrap_or_default();
        let files = [HEADER].into_iter().chain(SOURCES);
        let files: Vec<[CString; 2]> = files.map(|(name, text)| [name, text].map(string)).collect();
        let [names, texts] =
            [0, 1].map(|part| files.iter().map(|file| file[part].as_ptr()).collect::<Vec<_>>());
        let ([text, name], mut program) = ([text, name].map(string), ptr::null_mut());
        // SAFETY: all strings live to the end of this function, and NVRTC copies them; the count is the
        // length of the lists.
        unsafe {
            sys::nvrtcCreateProgram(
                &raw mut program,
                text.as_ptr(),
                name.as_ptr(),
                files.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        }
        .result()?;
        Ok(Program(program))
    }

    fn compile(&self, architecture: &str) -> Result<Vec<u8>, NvrtcError> {
        let options = [
            format!("--gpu-architecture={architecture}"),
            "--std=c++17".to_owned(),
        ];
        let mut size = 0;
        // SAFETY: the program was created and not destroyed; there is room for as many bytes as NVRTC
        // reports.
        unsafe {
            result::compile_program(self.0, &options)?;
            sys::nvrtcGetCUBINSize(self.0, &raw mut size).result()?;
            let mut code = vec![0_u8; size];
            sys::nvrtcGetCUBIN(self.0, code.as_mut_ptr().cast()).result()?;
            Ok(code)
        }
    }

    fn log(&self) -> String {
        // SAFETY: the program was created and not destroyed.
        let log = unsafe { result::get_program_log(self.0) }.unwrap_or_default();
        let log: Vec<u8> = log.into_iter().map(|byte| byte as u8).collect();
        String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the program was created, and is not used afterwards.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_that_is_not_there_is_an_error_with_its_folder() {
        match Compiler::open(Some(Path::new("/nowhere"))).err() {
            Some(CompileError::NoCompiler { folder, reason }) => {
                assert_eq!(folder, Path::new("/nowhere"));
                assert!(reason.contains("libnvrtc.so.13"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}
