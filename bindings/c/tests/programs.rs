//! C programs that are compiled against the header, linked with the library both ways, and run.

#[path = "../../../tests/masks/digested.rs"]
mod schemas;

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the folder of the libraries, which cargo puts beside the tests.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    test.parent().expect("a folder").to_owned()
}

fn built(name: &str, shared: bool) -> Option<PathBuf> {
    compiled(&here(&format!("tests/programs/{name}.c")), name, shared)
}

/// Compiles a program and links it with the library, shared or static. Returns `None` if no compiler is
/// installed.
fn compiled(source: &Path, name: &str, shared: bool) -> Option<PathBuf> {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| OsString::from("cc"));
    if Command::new(&compiler).arg("--version").output().is_err() {
        println!("skipped: {name}: no C compiler is installed");
        return None;
    }
    let libraries = libraries();
    let program = libraries.join(format!("c_{name}_{}", if shared { "shared" } else { "static" }));
    let mut command = Command::new(compiler);
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"]);
    command.arg(here("include"));
    command.arg(source).arg("-o").arg(&program);
    if shared {
        command.arg(libraries.join("liblexiform_c.so"));
        command.arg(format!("-Wl,-rpath,{}", libraries.display()));
    } else {
        command
            .arg(libraries.join("liblexiform_c.a"))
            .args(["-lpthread", "-ldl", "-lm"]);
    }
    let output = command.output().expect("the compiler starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} does not compile: {told}");
    Some(program)
}

fn run(program: &Path, arguments: &[PathBuf], input: Option<&Path>) -> Output {
    let input = input.map_or_else(Stdio::null, |path| File::open(path).expect("the input").into());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(input)
        .output()
        .expect("the program starts")
}

fn is_well(name: &str) {
    for shared in [false, true] {
        let Some(program) = built(name, shared) else {
            return;
        };
        let output = run(&program, &[], None);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {told}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "all is well\n");
    }
}

#[test]
fn every_function_does_what_the_header_says() {
    is_well("calls");
}

#[cfg(feature = "llguidance")]
#[test]
fn a_program_that_calls_as_llama_cpp_does_is_served() {
    is_well("llguidance");
}

/// The program in the documentation compiles and prints what its comment says.
#[test]
fn the_program_of_the_documentation_runs() {
    let page = fs::read_to_string(here("../../docs/src/c.md")).expect("docs/src/c.md");
    let (_, rest) = page.split_once("```c\n").expect("a program in C");
    let (program, _) = rest.split_once("```").expect("its end");
    let source = libraries().join("c_documentation.c");
    fs::write(&source, program).expect("the program can be written");
    let Some(program) = compiled(&source, "documentation", false) else {
        return;
    };
    let output = run(&program, &[], None);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "4 5 0 \n");
}

#[test]
fn masks_are_those_of_the_library() {
    let Some(program) = built("digests", false) else {
        return;
    };
    let lines: Vec<String> = schemas::all()
        .into_iter()
        .map(|(_, schema)| one_line(&schema))
        .collect();
    let input = libraries().join("c_digests.txt");
    fs::write(&input, lines.join("\n") + "\n").expect("the schemas can be written");
    let output = run(
        &program,
        &[here("../../models/demo/tokenizer.json")],
        Some(&input),
    );
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let found = String::from_utf8(output.stdout).expect("digests are text");
    let record = fs::read_to_string(here("../../tests/data/mask_digests.txt")).expect("the record");
    assert_eq!(found.lines().count(), record.lines().count());
    for (found, recorded) in found.lines().zip(record.lines()) {
        assert!(recorded.starts_with(found), "{found} is not {recorded}");
    }
}

/// Replaces the line breaks of a JSON text, which occur only between its values, by spaces.
fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}
