//! The cache of Hugging Face: a folder for each model, with the downloaded revisions.
//!
//! ```text
//!   hub/models--OWNER--NAME/refs/main ─► REVISION
//!                           snapshots/REVISION/config.json ─► ../../blobs/… (links)
//! ```

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::error::SourceError;
use super::folder::{self, Wanted};

const FOLDER: &str = "models--";
/// The maximum length of the name of a revision in bytes.
const REVISION: u64 = 256;

/// Finds the model of this name, as `owner/name`; of its GGUF files, the one that `part` names by its path or
/// by its format.
pub(super) fn locate(
    cache: &Path,
    name: &str,
    part: Option<&str>,
    wanted: Wanted,
) -> Result<PathBuf, SourceError> {
    let snapshot = snapshot(cache, name)?;
    let typed = |file: &str| format!("{name}:{file}");
    let Some(part) = part else {
        return folder::model_in(&snapshot, wanted, typed);
    };
    let ggufs = folder::ggufs(&snapshot);
    let is_meant = |file: &&String| *file == part || folder::is_of_format(file, part);
    let words = |files: &mut dyn Iterator<Item = &String>| files.map(|file| typed(file)).collect();
    let mut meant = ggufs.iter().filter(is_meant);
    match (meant.next(), meant.next()) {
        (Some(file), None) => Ok(snapshot.join(file)),
        (None, _) => Err(SourceError::NoSuchPart {
            part: part.to_owned(),
            words: words(&mut ggufs.iter()),
            folder: snapshot,
        }),
        (Some(_), Some(_)) => Err(SourceError::Several {
            words: words(&mut ggufs.iter().filter(is_meant)),
            folder: snapshot,
        }),
    }
}

/// Returns `true` if the cache has a folder for the model of this name.
pub(super) fn has(cache: &Path, name: &str) -> bool {
    folder_of(cache, name).is_dir()
}

/// Returns the names of all models.
pub(super) fn all(cache: &Path) -> Vec<String> {
    let folders = folder::names(cache).unwrap_or_default();
    let name = |folder: &String| Some(folder.strip_prefix(FOLDER)?.replacen("--", "/", 1));
    folders
        .iter()
        .filter_map(name)
        .filter(|name| is_name(name))
        .collect()
}

/// Returns the words to type for the models of this name: its name alone, or with each of its GGUF files.
pub(super) fn words(cache: &Path, name: &str) -> Vec<String> {
    match locate(cache, name, None, Wanted::ToAnswer) {
        Err(SourceError::Several { words, .. }) => words,
        _ => vec![name.to_owned()],
    }
}

/// Returns `true` if this can be the name of a model: letters, digits, `-`, `_` and `.`, with at most one
/// slash.
pub(super) fn is_name(name: &str) -> bool {
    let mut parts = name.split('/');
    let is_part = |part: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        (1..=96).contains(&part.len())
            && part.chars().all(is_plain)
            && !part.starts_with('.')
            && !part.contains("..")
    };
    parts.by_ref().take(2).all(is_part) && parts.next().is_none()
}

fn folder_of(cache: &Path, name: &str) -> PathBuf {
    cache.join(format!("{FOLDER}{}", name.replacen('/', "--", 1)))
}

/// Returns the folder of the revision that `main` names, or of the only revision.
fn snapshot(cache: &Path, name: &str) -> Result<PathBuf, SourceError> {
    if !has(cache, name) {
        return Err(SourceError::NotInCache {
            name: name.to_owned(),
            cache: cache.to_path_buf(),
        });
    }
    let folder = folder_of(cache, name);
    let problem = |path: &Path, problem| SourceError::NoSnapshot {
        name: name.to_owned(),
        path: path.to_path_buf(),
        problem,
    };
    let snapshots = folder.join("snapshots");
    let named = folder.join("refs/main");
    let revision = match named.is_file() {
        true => revision(&named).ok_or_else(|| problem(&named, "names no revision"))?,
        false => {
            let mut revisions = folder::names(&snapshots).unwrap_or_default();
            match (revisions.pop(), revisions.is_empty()) {
                (None, _) => return Err(problem(&snapshots, "has no revision")),
                (Some(one), true) => one,
                (Some(_), false) => {
                    return Err(problem(
                        &snapshots,
                        "has several revisions, and none of them is main",
                    ));
                }
            }
        }
    };
    let snapshot = snapshots.join(revision);
    match snapshot.is_dir() {
        true => Ok(snapshot),
        false => Err(problem(&snapshot, "is not there")),
    }
}

/// Reads the revision that a file names: a hash, or the name of a folder.
fn revision(file: &Path) -> Option<String> {
    let mut text = String::new();
    let read = File::open(file).ok()?.take(REVISION).read_to_string(&mut text);
    let revision = read.ok().map(|_| text.trim())?;
    (is_name(revision) && !revision.contains('/')).then(|| revision.to_owned())
}
