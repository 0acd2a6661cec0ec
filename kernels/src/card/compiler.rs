//! The sources compiled for a card by NVRTC, at run time and straight to machine code.

use super::driver::{self, Code, Handle, Nvrtc};
use crate::{HEADER, SOURCES};
use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};

/// Why a source could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// NVRTC could not be opened.
    #[error("NVRTC could not be opened from {}: {reason}", folder.display())]
    NoCompiler {
        /// Where it was looked for; empty for the folders of the system.
        folder: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// There is no source of this name.
    #[error("there is no source {0:?}")]
    NoSource(String),
    /// The source does not compile.
    #[error("{source_name} does not compile for {architecture} (NVRTC says {code}):\n{log}")]
    Source {
        /// The name of the source.
        source_name: String,
        /// What it was compiled for.
        architecture: String,
        /// The code of NVRTC.
        code: i32,
        /// What the compiler says.
        log: String,
    },
}

/// NVRTC, opened.
pub struct Compiler(Nvrtc);

impl Compiler {
    /// Opens NVRTC of CUDA 13 from a folder, or by the system's search.
    ///
    /// # Errors
    /// [`CompileError::NoCompiler`].
    pub fn open(folder: Option<&Path>) -> Result<Self, CompileError> {
        let folder = folder.unwrap_or(Path::new(""));
        let refuse = |reason: String| CompileError::NoCompiler {
            folder: folder.to_owned(),
            reason,
        };
        // NVRTC looks for its builtins by their name, and finds what is open.
        let _ = driver::open(&folder.join("libnvrtc-builtins.so.13.0"));
        let library = driver::open(&folder.join("libnvrtc.so.13")).map_err(refuse)?;
        let functions = Nvrtc::of(library);
        functions
            .map(Compiler)
            .map_err(|name| refuse(format!("it has no {name}")))
    }

    /// The machine code of a source for an architecture such as `sm_90`.
    ///
    /// # Errors
    /// There is no such source, or it does not compile.
    pub fn compile(&self, source: &str, architecture: &str) -> Result<Vec<u8>, CompileError> {
        let found = SOURCES.iter().find(|(name, _)| *name == source);
        let (_, text) = found.ok_or_else(|| CompileError::NoSource(source.to_owned()))?;
        let mut program: Handle = std::ptr::null_mut();
        let outcome = self.build(&mut program, text, source, architecture);
        let outcome = outcome.map_err(|code| CompileError::Source {
            source_name: source.to_owned(),
            architecture: architecture.to_owned(),
            code,
            log: self.log(program),
        });
        // SAFETY: a program that was not created is null, which NVRTC refuses.
        unsafe { (self.0.destroy)(&raw mut program) };
        outcome
    }

    fn build(
        &self,
        program: &mut Handle,
        text: &str,
        source: &str,
        architecture: &str,
    ) -> Result<Vec<u8>, Code> {
        let strings = [text, source, "--std=c++17"].map(CString::new);
        let strings = strings.map(|text| text.unwrap_or_default());
        let [text, name, standard] = &strings;
        // Sources include the header and each other.
        let files = [HEADER].into_iter().chain(SOURCES);
        let files = files.map(|(name, text)| [name, text].map(|text| CString::new(text).unwrap_or_default()));
        let files: Vec<[CString; 2]> = files.collect();
        let [names, texts] =
            [0, 1].map(|part| files.iter().map(|file| file[part].as_ptr()).collect::<Vec<_>>());
        let target = CString::new(format!("--gpu-architecture={architecture}")).unwrap_or_default();
        let options = [target.as_ptr(), standard.as_ptr()];
        let (mut size, nvrtc) = (0, &self.0);
        // SAFETY: all strings live to the end of this function, and the counts are those of the lists.
        check(unsafe {
            (nvrtc.create)(
                program,
                text.as_ptr(),
                name.as_ptr(),
                files.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        })?;
        // SAFETY: the program was created; there are two options.
        check(unsafe { (nvrtc.compile)(*program, 2, options.as_ptr()) })?;
        // SAFETY: the program was compiled.
        check(unsafe { (nvrtc.code_size)(*program, &raw mut size) })?;
        let mut code = vec![0_u8; size];
        // SAFETY: there is room for as many bytes as NVRTC has.
        check(unsafe { (nvrtc.code)(*program, code.as_mut_ptr().cast::<c_char>()) })?;
        Ok(code)
    }

    fn log(&self, program: Handle) -> String {
        let mut size = 0;
        // SAFETY: NVRTC refuses a program that was not created.
        if program.is_null() || unsafe { (self.0.log_size)(program, &raw mut size) } != 0 {
            return String::new();
        }
        let mut log = vec![0_u8; size];
        // SAFETY: there is room for as many bytes as NVRTC has.
        unsafe { (self.0.log)(program, log.as_mut_ptr().cast::<c_char>()) };
        String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned()
    }
}

fn check(code: Code) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(code) }
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
