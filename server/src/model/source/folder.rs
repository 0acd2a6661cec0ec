//! The contents of a folder: the files of a Hugging Face model, or GGUF files.

use std::io;
use std::path::{Path, PathBuf};

use super::error::SourceError;

/// The maximum number of entries of one folder that are read.
const ENTRIES: usize = 4_096;
/// The maximum number of subfolders that are read.
const FOLDERS: usize = 64;
const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const WEIGHTS: [&str; 2] = ["model.safetensors", "model.safetensors.index.json"];
/// The weights of what drafts: a head may have its own file, and one that has to be converted is named by the
/// loader, which says how.
const DRAFT_WEIGHTS: [&str; 5] = [
    WEIGHTS[0],
    WEIGHTS[1],
    "medusa_lm_head.safetensors",
    "pytorch_model.bin",
    "medusa_lm_head.pt",
];
/// The prefix of the names of vision projector files, which are not separate models.
const PROJECTOR: &str = "mmproj";

/// The purpose of a model, which determines the files that a folder must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// To answer requests: configuration, tokenizer and weights.
    ToAnswer,
    /// To draft; it may share the tokenizer of the main model.
    ToDraft,
    /// To provide its tokenizer alone, for a model with random weights.
    ForItsTokens,
}

impl Wanted {
    fn has_all(self, folder: &Path) -> bool {
        self.missing(folder).is_none()
    }

    /// Returns the first required file that a Hugging Face folder lacks.
    fn missing(self, folder: &Path) -> Option<&'static str> {
        let needed: &[&[&'static str]] = match self {
            Wanted::ToAnswer => &[&[CONFIG], &[TOKENIZER], &WEIGHTS],
            Wanted::ToDraft => &[&[CONFIG], &DRAFT_WEIGHTS],
            Wanted::ForItsTokens => &[&[TOKENIZER]],
        };
        let is_missing = |names: &&&[&str]| !names.iter().any(|name| folder.join(name).is_file());
        needed.iter().find(is_missing).map(|names| names[0])
    }
}

/// Finds the model of a folder: the folder itself if it has the files of Hugging Face, or else its only GGUF
/// file. `typed` returns the word that a user would type for one of several.
pub(super) fn model_in(
    folder: &Path,
    wanted: Wanted,
    typed: impl Fn(&str) -> String,
) -> Result<PathBuf, SourceError> {
    if wanted.has_all(folder) {
        return Ok(folder.to_path_buf());
    }
    let there = names(folder).map_err(|source| SourceError::Unreadable {
        path: folder.to_path_buf(),
        source,
    })?;
    if there.is_empty() {
        return Err(SourceError::Empty(folder.to_path_buf()));
    }
    match (ggufs(folder).as_slice(), wanted.missing(folder)) {
        ([one], _) => Ok(folder.join(one)),
        ([], missing) => Err(SourceError::Missing {
            folder: folder.to_path_buf(),
            missing: missing.unwrap_or(CONFIG),
            there,
        }),
        (several, _) => Err(SourceError::Several {
            folder: folder.to_path_buf(),
            words: several.iter().map(|name| typed(name)).collect(),
        }),
    }
}

/// Returns the GGUF files of a folder and its subfolders, by their relative paths, in order; of a split set,
/// only the first.
pub(super) fn ggufs(folder: &Path) -> Vec<String> {
    let names_here = names(folder).unwrap_or_default();
    let (mut found, others): (Vec<String>, Vec<String>) =
        names_here.into_iter().partition(|name| is_model(name));
    // Large files are kept in a folder for each format.
    let folders = others
        .into_iter()
        .filter(|name| !name.starts_with('.') && folder.join(name).is_dir());
    for inner in folders.take(FOLDERS) {
        let files = names(&folder.join(&inner)).unwrap_or_default().into_iter();
        found.extend(
            files
                .filter(|file| is_model(file))
                .map(|file| format!("{inner}/{file}")),
        );
    }
    found.retain(|name| folder.join(name).is_file());
    found.sort_unstable();
    found
}

fn is_model(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".gguf") else {
        return false;
    };
    let is_later = split(stem).is_some_and(|part| part.number != 1);
    !is_later && !name.starts_with(PROJECTOR)
}

/// The suffix of the name of a file of a split set, as `-00001-of-00003`.
struct SplitPart<'a> {
    beginning: &'a str,
    number: u32,
    of: u32,
}

fn split(stem: &str) -> Option<SplitPart<'_>> {
    let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, of) = stem.rsplit_once("-of-")?;
    let (beginning, number) = rest.rsplit_once('-')?;
    (digits(of) && digits(number)).then_some(())?;
    Some(SplitPart {
        beginning,
        number: number.parse().ok()?,
        of: of.parse().ok()?,
    })
}

/// Returns `true` if a GGUF file has this format, according to its name: `Q4_K_M` of
/// `Qwen3-0.6B-Q4_K_M.gguf`.
pub(super) fn is_of_format(name: &str, format: &str) -> bool {
    let stem = name.strip_suffix(".gguf").unwrap_or(name);
    let stem = split(stem).map_or(stem, |part| part.beginning);
    let (stem, format) = (stem.to_lowercase(), format.to_lowercase());
    let before = stem.strip_suffix(&format);
    before.is_some_and(|before| before.ends_with(['-', '.']))
}

/// Returns the size of the weights at this place in bytes: of a file with the others of its split set, or of
/// all weights of a folder.
pub(super) fn bytes(place: &Path) -> u64 {
    let size = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
    if place.is_dir() {
        let weights = names(place).unwrap_or_default().into_iter();
        let weights = weights.filter(|name| name.ends_with(".safetensors"));
        return weights.map(|name| size(&place.join(name))).sum();
    }
    let stem = place.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    match stem.as_deref().and_then(split) {
        None => size(place),
        Some(SplitPart { beginning, of, .. }) => (1..=of)
            .map(|number| size(&place.with_file_name(format!("{beginning}-{number:05}-of-{of:05}.gguf"))))
            .sum(),
    }
}

/// Returns the names of the entries of a folder, in order, without names that would affect a terminal: no
/// file of a model has one.
pub(super) fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)?.take(ENTRIES);
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.filter(|name| !name.contains(char::is_control)).collect();
    names.sort_unstable();
    Ok(names)
}
