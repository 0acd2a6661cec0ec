//! The environment of Python with the other engines: made once, from pinned versions.
//!
//! ```text
//!   DIR/bin/python            made by `python3 -m venv`
//!   DIR/made-from             the sum of the requirements; written when all of them are installed
//! ```
//!
//! The worker, a script for this Python, is written into the folder of each run: two versions of this program
//! may use one environment at the same time.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::failure::{Failure, reason};

/// The other engines, by the names of their packages.
pub(super) const PEERS: [&str; 4] = ["llguidance", "xgrammar", "outlines-core", "lm-format-enforcer"];

const REQUIREMENTS: &str = include_str!("python/requirements.txt");
const SOURCES: [(&str, &str); 2] = [
    ("worker.py", include_str!("python/worker.py")),
    ("engines.py", include_str!("python/engines.py")),
];
/// The last lines of pip's output that are shown when it fails.
const SHOWN_LINES: usize = 4;

/// The engines that the environment has.
#[derive(Debug)]
pub(super) struct Environment {
    pub(super) python: PathBuf,
    pub(super) worker: PathBuf,
    /// The engines that could not be installed, and why.
    pub(super) missing: BTreeMap<String, String>,
}

/// Why there is no environment.
#[derive(Debug, thiserror::Error)]
pub(super) enum EnvironmentError {
    #[error("{program} cannot be started: {}; the other engines need Python 3.10 or later: install it, or name the engines that need none with --engines lexiform", reason(.source))]
    Python { program: String, source: io::Error },
    #[error("{what} failed:\n{}\nremove {} to begin anew, or name another folder with --environment", .last_lines, folder.display())]
    Step {
        what: &'static str,
        last_lines: String,
        folder: PathBuf,
    },
    #[error("cannot write {}: {}", path.display(), reason(.source))]
    Write { path: PathBuf, source: io::Error },
}

impl From<EnvironmentError> for Failure {
    fn from(error: EnvironmentError) -> Self {
        Self::Unable(error.to_string())
    }
}

/// Returns the environment in a folder, after it was made if it is not there, with the worker's script in
/// `scratch`. `say` is told of what takes long.
///
/// # Errors
/// There is no Python, or what all engines import cannot be installed.
pub(super) fn prepare(
    python: &str,
    folder: &Path,
    scratch: &Path,
    engines: &[&str],
    say: impl Fn(&str),
) -> Result<Environment, EnvironmentError> {
    let mut environment = Environment {
        python: folder.join("bin/python"),
        worker: scratch.join("worker.py"),
        missing: BTreeMap::new(),
    };
    if !is_made(folder) {
        say("installing the other engines, once");
        make(python, folder, &mut environment)?;
        if environment.missing.is_empty() {
            write(&stamp(folder), &wanted())?;
        }
    }
    environment
        .missing
        .retain(|engine, _| engines.contains(&engine.as_str()));
    for (name, source) in SOURCES {
        write(&scratch.join(name), source)?;
    }
    Ok(environment)
}

/// Returns `true` if the folder has these engines in these versions.
pub(super) fn is_made(folder: &Path) -> bool {
    std::fs::read_to_string(stamp(folder)).is_ok_and(|made_from| made_from == wanted())
}

fn stamp(folder: &Path) -> PathBuf {
    folder.join("made-from")
}

/// Returns the sum of the requirements.
fn wanted() -> String {
    let sum = Sha256::digest(REQUIREMENTS);
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes the environment: what the engines import, then one engine after another.
fn make(python: &str, folder: &Path, environment: &mut Environment) -> Result<(), EnvironmentError> {
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output();
        output.map_err(|source| EnvironmentError::Python {
            program: program.to_owned(),
            source,
        })
    };
    let failed = |what, output: &std::process::Output| EnvironmentError::Step {
        what,
        last_lines: last_lines(output),
        folder: folder.to_owned(),
    };
    let path = folder.to_string_lossy();
    let made = run(python, &["-m", "venv", &path])?;
    if !made.status.success() {
        return Err(failed("making an environment with `python3 -m venv`", &made));
    }
    let inside = environment.python.to_string_lossy().into_owned();
    let install = |packages: &[&str]| {
        let pip = [
            "-m",
            "pip",
            "install",
            "--no-deps",
            "--disable-pip-version-check",
            "--quiet",
        ];
        run(&inside, &[&pip[..], packages].concat())
    };
    let (engines, imports) = requirements();
    let installed = install(&imports)?;
    if !installed.status.success() {
        return Err(failed(
            "installing what the engines import, with pip,",
            &installed,
        ));
    }
    for engine in engines {
        let installed = install(&[engine])?;
        if !installed.status.success() {
            let name = engine.split("==").next().unwrap_or(engine).to_owned();
            environment.missing.insert(name, last_lines(&installed));
        }
    }
    Ok(())
}

/// Returns the engines, and what they import.
fn requirements() -> (Vec<&'static str>, Vec<&'static str>) {
    let lines = REQUIREMENTS
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.partition(|line| PEERS.iter().any(|peer| line.split("==").next() == Some(*peer)))
}

fn last_lines(output: &std::process::Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

fn write(path: &Path, text: &str) -> Result<(), EnvironmentError> {
    let folder = path.parent().unwrap_or(path);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text));
    written.map_err(|source| EnvironmentError::Write {
        path: path.to_owned(),
        source,
    })
}

/// Returns the folder of the environment in the user's cache: `$XDG_CACHE_HOME` or `~/.cache`, and `engines`
/// beside the models.
pub(super) fn default_folder() -> Option<PathBuf> {
    let folder = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(cache.join("lexiform/engines"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A folder with a program in the place of `python3`: it makes environments whose `python` is a script
    /// that plays pip, and fails as the text says.
    fn pretended(name: &str, pip: &str) -> (String, PathBuf) {
        let root = std::env::temp_dir().join(format!("lexiform-environment-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        let python = root.join("python3");
        let inside = format!("#!/bin/sh\necho \"$@\" >> {}/asked\n{pip}\n", root.display());
        let text = format!(
            "#!/bin/sh\nmkdir -p \"$3/bin\"\ncat > \"$3/bin/python\" <<'END'\n{inside}END\nchmod +x \"$3/bin/python\"\n"
        );
        write(&python, &text).expect("a place for the program");
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).expect("a program");
        (python.to_string_lossy().into_owned(), root)
    }

    fn prepared(name: &str, pip: &str) -> (Result<Environment, EnvironmentError>, String) {
        let (python, root) = pretended(name, pip);
        let folder = root.join("made");
        prepare(&python, &folder, &root, &PEERS, |_| {}).ok();
        let result = prepare(&python, &folder, &root, &PEERS, |_| {});
        (
            result,
            std::fs::read_to_string(root.join("asked")).unwrap_or_default(),
        )
    }

    #[test]
    fn it_is_made_once() {
        let (environment, asked) = prepared("once", "exit 0");
        assert!(environment.expect("an environment").missing.is_empty());
        assert_eq!(asked.lines().count(), 1 + PEERS.len(), "{asked}");
        assert!(
            asked
                .lines()
                .all(|line| line.starts_with("-m pip install --no-deps")),
            "{asked}"
        );
    }

    #[test]
    fn an_engine_that_cannot_be_installed_is_left_out_by_name() {
        let pip = "case \"$*\" in *xgrammar*) echo; echo 'no wheel for this machine' >&2; exit 1;; esac";
        let (environment, asked) = prepared("missing", pip);
        let missing = environment.expect("an environment").missing;
        let missing: Vec<_> = missing
            .iter()
            .map(|(name, why)| format!("{name}: {why}"))
            .collect();
        assert_eq!(missing, ["xgrammar: no wheel for this machine"]);
        // The second run tries again.
        assert_eq!(asked.lines().filter(|line| line.contains("xgrammar")).count(), 2);
    }

    #[test]
    fn a_failure_of_pip_is_told_with_its_last_lines() {
        let (environment, _) = prepared("failed", "echo one; echo two; echo 'no network' >&2; exit 1");
        let told = environment.expect_err("a failure").to_string();
        let begins = "installing what the engines import, with pip, failed:\none\ntwo\nno network\nremove ";
        assert!(told.starts_with(begins), "{told}");
        let nothing = std::env::temp_dir().join("lexiform-environment-nothing");
        let none = prepare("/nowhere/python3", &nothing, &nothing, &[], |_| {})
            .expect_err("no python")
            .to_string();
        assert!(
            none.starts_with("/nowhere/python3 cannot be started: no such file or directory;"),
            "{none}"
        );
    }
}
