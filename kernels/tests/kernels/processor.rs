//! The kernels on this processor: a source compiled by the system's C++ compiler, opened, and launched.

use crate::memory::Memory;
use lexiform_kernels::node::Node;
use lexiform_kernels::{HEADER, SOURCES};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

unsafe extern "C" {
    fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;

/// `simt_launch` of host.cpp.
type Launch = unsafe extern "C" fn(
    *const c_char,
    *const c_int,
    c_int,
    c_uint,
    *const c_void,
    usize,
    *const Ahead,
    usize,
) -> *const c_char;

/// Memory that the kernel ahead is still writing: `Ahead` of host.cpp.
#[repr(C)]
struct Ahead {
    at: u64,
    bytes: usize,
}

/// The kernels of one source.
pub(crate) struct Processor {
    /// Locked while it runs: the fibers of a library are those of one launch.
    launch: Mutex<Launch>,
}

/// Whether there is a compiler. Without one, says that the test is skipped.
pub(crate) fn is_there(test: &str) -> bool {
    static COMPILER: LazyLock<bool> = LazyLock::new(|| {
        let version = Command::new("c++").arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    if !*COMPILER {
        println!("skipped: {test}: c++ is not there");
    }
    *COMPILER
}

impl Processor {
    /// The kernels of a source as it stands, compiled once.
    pub(crate) fn of(source: &'static str) -> Arc<Self> {
        type Compiled = HashMap<&'static str, Arc<Processor>>;
        static COMPILED: LazyLock<Mutex<Compiled>> = LazyLock::new(Mutex::default);
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        let compile = || Arc::new(Self::compile(source, text_of(source)).unwrap());
        compiled.entry(source).or_insert_with(compile).clone()
    }

    /// The kernels of a source, with another text in it.
    ///
    /// # Errors
    /// What the compiler says.
    pub(crate) fn compile(source: &str, text: &str) -> Result<Self, String> {
        Self::compile_with(source, (source, text))
    }

    /// The kernels of a source, with another text in one of the files that it is made of.
    ///
    /// # Errors
    /// What the compiler says.
    pub(crate) fn compile_with(source: &str, changed: (&str, &str)) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lexiform-kernels-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let opened = build(&folder, source, changed).and_then(|library| open(&library));
        // What was opened stays mapped.
        let _ = std::fs::remove_dir_all(&folder);
        Ok(Processor {
            launch: Mutex::new(opened?),
        })
    }

    /// Launches a node whose buffers begin at these addresses.
    ///
    /// # Errors
    /// What is wrong with the launch, or what the kernel did that no kernel may do.
    pub(crate) fn launch<B>(&self, node: &Node<B>, address: impl FnMut(&B) -> u64) -> Result<(), String> {
        self.launch_behind(node, address, &[])
    }

    /// The same while the kernel ahead is still writing this memory.
    fn launch_behind<B>(
        &self,
        node: &Node<B>,
        address: impl FnMut(&B) -> u64,
        ahead: &[Ahead],
    ) -> Result<(), String> {
        let arguments = node.pack(address);
        let name = CString::new(node.kernel.name).map_err(|error| error.to_string())?;
        let grid = node.grid.map(|blocks| blocks as c_int);
        let launch = self.launch.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the library was compiled from host.cpp, whose function this is, and the lock keeps others
        // out; the name, the grid, the arguments and the memory that is written live through the call. That
        // the kernel stays within its buffers is what is tested.
        let fault = unsafe {
            launch(
                name.as_ptr(),
                grid.as_ptr(),
                node.kernel.threads as c_int,
                node.shared,
                arguments.as_ptr().cast(),
                arguments.len(),
                ahead.as_ptr(),
                ahead.len(),
            )
        };
        if fault.is_null() {
            return Ok(());
        }
        // SAFETY: a fault is a literal of host.cpp or simt.h.
        let fault = unsafe { CStr::from_ptr(fault) };
        Err(format!("{}: {}", node.kernel.name, fault.to_string_lossy()))
    }

    /// Launches nodes over a list of buffers.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    pub(crate) fn run(&self, nodes: &[Node<usize>], buffers: &mut [Memory]) -> Result<(), String> {
        let mut launch = |node: &Node<usize>| self.launch(node, |&buffer| buffers[buffer].address());
        nodes.iter().try_for_each(&mut launch)
    }

    /// The same, each while the kernel ahead is still writing all buffers that are not these: what a pass
    /// never writes.
    ///
    /// # Errors
    /// As [`launch`](Self::launch).
    #[allow(dead_code, reason = "some programs of tests need it")]
    pub(crate) fn run_behind(
        &self,
        nodes: &[Node<usize>],
        buffers: &mut [Memory],
        constant: &[usize],
    ) -> Result<(), String> {
        for node in nodes {
            let written = buffers.iter_mut().enumerate();
            let written = written.filter(|(number, _)| !constant.contains(number));
            let ahead: Vec<Ahead> = written
                .map(|(_, memory)| Ahead {
                    at: memory.address(),
                    bytes: memory.len(),
                })
                .collect();
            self.launch_behind(node, |&buffer| buffers[buffer].address(), &ahead)?;
        }
        Ok(())
    }
}

/// The header of the standard library's headers, as text and compiled, in a folder that all programs of tests
/// share.
struct Standard(PathBuf);

impl Standard {
    const NAME: &str = "standard.h";
    const TEXT: &str = include_str!("standard.h");

    /// Compiles it. A compiler that cannot use what another has compiled reads the text.
    fn compile() -> Result<Self, String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
        // Other programs may be reading what is there.
        let own = |ending: &str| format!("standard-{}.{ending}", std::process::id());
        let replace = |from: String, to: &str| {
            let renamed = std::fs::rename(folder.join(from), folder.join(to));
            renamed.map_err(|error| error.to_string())
        };
        write(&folder, [(own("h").as_str(), Self::TEXT)])?;
        replace(own("h"), Self::NAME)?;
        let arguments = ["-x", "c++-header", Self::NAME, "-o", &own("gch")].map(str::to_owned);
        compile(&folder, &arguments)?;
        replace(own("gch"), "standard.h.gch")?;
        Ok(Standard(folder))
    }
}

/// All files that kernels are made of, besides the headers of the standard library.
fn files<'a>() -> impl Iterator<Item = (&'a str, &'a str)> {
    let others = [
        HEADER,
        ("simt.h", include_str!("simt.h")),
        ("host.cpp", include_str!("host.cpp")),
    ];
    SOURCES.into_iter().chain(others)
}

/// The text of a source, or of another file that kernels are made of.
pub(crate) fn text_of(file: &str) -> &'static str {
    let found = files().find(|(name, _)| *name == file);
    found.map(|(_, text)| text).unwrap()
}

fn build(folder: &Path, source: &str, changed: (&str, &str)) -> Result<PathBuf, String> {
    static STANDARD: LazyLock<Result<Standard, String>> = LazyLock::new(Standard::compile);
    let standard = STANDARD.as_ref().map_err(String::clone)?;
    let library = folder.join("kernels.so");
    write(folder, files().chain([changed]))?;
    let mut arguments = vec!["-shared".to_owned(), "-DSIMT_HOST".to_owned()];
    arguments.push(format!("-DSOURCE=\"{source}\""));
    arguments.push(format!("-I{}", standard.0.display()));
    arguments.extend(["host.cpp", "-o", "kernels.so"].map(str::to_owned));
    compile(folder, &arguments)?;
    Ok(library)
}

/// Writes files into a folder, which is made if it is not there.
fn write<'a>(folder: &Path, files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    for (name, text) in files {
        std::fs::write(folder.join(name), text).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Runs the compiler in a folder.
fn compile(folder: &Path, arguments: &[String]) -> Result<(), String> {
    let mut compiler = Command::new("c++");
    compiler
        .args([
            "-O1",
            "-march=native",
            "-std=c++17",
            "-ffp-contract=off",
            "-fPIC",
            "-w",
        ])
        .args(arguments)
        .current_dir(folder);
    let output = compiler.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

fn open(library: &Path) -> Result<Launch, String> {
    let file = CString::new(library.to_string_lossy().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the names are C strings that live through the calls; the library registers its kernels and does
    // nothing else when it is opened; the function has the type that host.cpp gives it.
    unsafe {
        let library = dlopen(file.as_ptr(), RTLD_NOW);
        if library.is_null() {
            return Err(format!("{} could not be opened", file.to_string_lossy()));
        }
        let function = dlsym(library, c"simt_launch".as_ptr());
        if function.is_null() {
            return Err("there is no simt_launch".to_owned());
        }
        Ok(std::mem::transmute::<*mut c_void, Launch>(function))
    }
}
