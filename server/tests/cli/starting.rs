//! Help, completions, manual pages, and how the service refuses to start.

use std::process::Command;

use crate::program::{lexiform, program, run};

#[test]
fn the_bare_name_prints_help() {
    let (bare, help) = (lexiform(&[]), lexiform(&["-h"]));
    assert_eq!((bare.code, bare.err.as_str()), (0, ""));
    assert_eq!(bare.out, help.out);
    for command in [
        "serve",
        "gateway",
        "generate",
        "models",
        "check",
        "mask",
        "repair",
        "convert",
        "tokens",
        "key",
        "eval",
        "bench",
        "completions",
        "man",
        "version",
    ] {
        assert!(
            bare.out.contains(&format!("  {command} ")),
            "{command}: {}",
            bare.out
        );
    }
}

#[test]
fn every_command_documents_its_exit_codes() {
    for command in [
        "serve", "gateway", "generate", "models", "check", "mask", "repair", "convert", "tokens", "key",
    ] {
        let help = lexiform(&[command, "--help"]).out;
        assert!(
            help.contains("  3  a schema, regex or grammar does not compile"),
            "{command}: {help}"
        );
    }
    let cases = lexiform(&["eval", "cases", "--help"]).out;
    assert!(cases.contains("Exit codes:"), "{cases}");
}

#[test]
fn shells_complete_commands_and_flags() {
    for shell in ["bash", "zsh", "fish"] {
        let script = lexiform(&["completions", shell]);
        assert_eq!(script.code, 0);
        for word in ["maskbench", "prefix-file", "key-order"] {
            assert!(script.out.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(lexiform(&["completions", "csh"]).code, 2);
}

#[test]
fn there_is_a_page_for_every_command() {
    let folder = std::env::temp_dir().join(format!("lexiform-cli-man-{}", std::process::id()));
    let written = run(program().arg("man").arg(&folder));
    let mut pages: Vec<String> = std::fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let check = std::fs::read_to_string(folder.join("lexiform-check.1")).expect("a page");
    std::fs::remove_dir_all(folder).expect("removed");
    pages.sort();
    assert_eq!((written.code, pages.len()), (0, 29), "{pages:?}");
    assert!(
        check.starts_with(".ie") && check.contains("\\-\\-exact"),
        "{check}"
    );
    assert!(lexiform(&["man"]).out.contains(".SH SUBCOMMANDS"));
}

#[test]
fn a_missing_file_of_flags_is_named_in_one_line() {
    let run = lexiform(&["serve", "--config", "/nope"]);
    assert_eq!(
        (run.code, run.err.as_str()),
        (2, "error: cannot read /nope: no such file or directory\n")
    );
}

#[test]
fn an_address_in_use_is_no_wrong_call() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let run = lexiform(&["serve", "--port", &port.to_string()]);
    let expected = format!("error: cannot listen on 127.0.0.1:{port}: address already in use\n");
    assert_eq!((run.code, run.err), (4, expected));
}

#[test]
fn both_programs_give_the_same_help() {
    let server = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_lexiform-server"))
            .args(args)
            .output()
            .expect("the program starts");
        String::from_utf8(output.stdout).expect("help is text")
    };
    for args in [
        &["--help"][..],
        &["help"],
        &["help", "check"],
        &["help", "serve"],
        &["serve", "-h"],
    ] {
        assert_eq!(lexiform(args).out, server(args), "{args:?}");
    }
    assert!(
        lexiform(&["--color", "never", "help", "serve"])
            .out
            .contains("--max-batch")
    );
}

#[test]
fn help_loads_no_libtorch() {
    let names_it = |program: &str| {
        let bytes = std::fs::read(program).expect("the program");
        bytes
            .windows(b"libtorch_cpu.so".len())
            .any(|part| part == b"libtorch_cpu.so")
    };
    assert!(!names_it(env!("CARGO_BIN_EXE_lexiform")));
    assert!(names_it(env!("CARGO_BIN_EXE_lexiform-server")));
}

#[test]
fn without_the_program_beside_it_a_command_says_what_is_missing() {
    let folder = std::env::temp_dir().join(format!("lexiform-cli-alone-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let alone = folder.join("lexiform");
    // By a process of its own: a program cannot be started as long as somebody writes it, and while this
    // process would, others that the tests beside this one start inherit the open file.
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_lexiform"))
        .arg(&alone)
        .status();
    assert!(copied.is_ok_and(|status| status.success()), "a copy");
    let ran = run(Command::new(&alone).args(["serve", "--port", "0"]));
    let light = run(Command::new(&alone).args(["check", "--regex", "[a-z]+", "--text", "abc"]));
    std::fs::remove_dir_all(&folder).expect("the folder");
    assert_eq!(ran.code, 4);
    assert!(
        ran.err.contains("lexiform-server") && ran.err.contains("cannot be started"),
        "{}",
        ran.err
    );
    assert_eq!(light.code, 0, "{}", light.err);
}

#[test]
fn an_unknown_flag_is_no_text() {
    let ran = lexiform(&["check", "--regex", "a", "--zzz"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("unexpected argument '--zzz'"), "{}", ran.err);
    assert!(!ran.err.contains("-- --zzz"), "{}", ran.err);
    let near = lexiform(&["check", "--regx", "a"]);
    assert!(near.err.contains("--regex"), "{}", near.err);
}
