//! `cargo xtask serve`: from an empty checkout to a running service.

use crate::process::{Failure, cargo, line, must_succeed};
use crate::setup;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The package of the service, and the name of its program.
const PACKAGE: &str = "lexiform-server";

pub(crate) fn run(args: &[String]) -> Result<ExitCode, Failure> {
    setup::ensure()?;
    if !names_a_model(args, |name| std::env::var_os(name))
        && let Err(why) = setup::bring_model()
    {
        eprintln!("xtask: the demo model is served, because {why}");
    }
    // The build of the tests is available at once, but slower.
    let (profile, args) = match args.split_first() {
        Some((first, rest)) if first == "--dev" => ("dev", rest),
        _ => ("serve", args),
    };
    // Both programs: the command line uses the same objects, and may be wanted later.
    let build = format!("build --package {PACKAGE} --bins --features kernels --profile {profile}");
    must_succeed(&mut cargo(build.split(' ')))?;
    let mut command = cargo(["run", "--quiet", "--package", PACKAGE, "--bin", PACKAGE]);
    command
        .args(["--features", "kernels", "--profile", profile, "--", "serve"])
        .args(args);
    eprintln!("$ {}", line(&command));
    // This process becomes cargo, and cargo becomes the service: a signal from a supervisor or a script
    // reaches the service, while a parent in between would not pass it on.
    let error = command.exec();
    Err(Failure::new(format!("could not run {}: {error}", line(&command))))
}

/// Returns `true` if the arguments name the model to serve, or request help: then none is fetched.
fn names_a_model(args: &[String], variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_told =
        |arg: &String| ["--model", "--help", "-h"].contains(&arg.as_str()) || arg.starts_with("--model=");
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    args.iter().any(is_told)
        || variable("LEXIFORM_MODEL").is_some()
        || config(args)
            .or_else(|| variable("LEXIFORM_CONFIG").map(PathBuf::from))
            .is_some_and(|file| is_in_file(&file))
}

/// Returns the file that `--config` names.
fn config(args: &[String]) -> Option<PathBuf> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.strip_prefix("--config") {
            Some("") => return args.next().map(PathBuf::from),
            Some(value) => return value.strip_prefix('=').map(PathBuf::from),
            None => {}
        }
    }
    None
}

/// Returns `true` if a file of flags, which the service reads itself, has a line for the model.
fn is_in_file(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let key = |line: &str| line.split_once('=').map(|(key, _)| key.trim().to_owned());
    text.lines().filter_map(key).any(|key| key == "model")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_fetched_for_a_service_that_is_told_its_model() {
        let told = |args: &[&str], name: &str, value: &str| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            names_a_model(&args, |asked| (asked == name).then(|| value.into()))
        };
        assert!(!told(&["--dev", "--port", "0"], "", ""));
        assert!(!told(&["--served-model-name", "x"], "LEXIFORM_MODEL", ""));
        assert!(told(&["--model", "demo"], "", ""));
        assert!(told(&["--port", "0", "--model=x.gguf"], "", ""));
        assert!(told(&[], "LEXIFORM_MODEL", "demo"));
        assert!(told(&["--help"], "", ""));
        let file = std::env::temp_dir().join(format!("lexiform-xtask-serve-{}.toml", std::process::id()));
        let path = file.to_string_lossy();
        std::fs::write(&file, "max-batch = 2\n model = \"x\"\n").unwrap();
        assert!(told(&["--config", &path], "", "") && told(&[], "LEXIFORM_CONFIG", &path));
        std::fs::write(&file, "served-model-name = \"x\"\n").unwrap();
        assert!(!told(&[&format!("--config={path}")], "", ""));
        std::fs::remove_file(&file).unwrap();
    }
}
