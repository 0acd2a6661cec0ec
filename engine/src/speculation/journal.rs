//! The files that keep draft stores across restarts: the last answers, so that predictors can learn from them
//! again, and what predictors learned from rows. There is one file for each owner.
//!
//! ```text
//!   LXDRAFT2 │ vocabulary │ owner │ number of answers │ answers │ parts │ CRC-32 of all before it
//!                                                       each its length and its tokens
//!                                                                 each its name and its bytes, with lengths
//! ```
//!
//! A part is what a predictor has saved ([`Predictor::save`](lexiform_law::draft::Predictor::save)), under
//! the name by which it is recognised. The name includes the number of its format, so data of another version
//! is not misread.
//!
//! A file is written completely under another name and then replaces the previous one, so that a crash leaves
//! either the old or the new file. All numbers have 32 bits, the lowest byte first; a length of `u32::MAX`
//! marks an owner without a name. The files contain answers, so only the user of the process may read them.
//!
//! A file that is damaged or has another format is removed and reported. A file of another vocabulary is left
//! untouched: its tokens mean other texts, so the engine refuses to start with it.

use crate::error::JournalError;
use crate::fairness::pool::Owner;
use lexiform::vocab::Vocabulary;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"LXDRAFT2";
/// The first bytes of the files of all formats.
const FAMILY: &[u8; 7] = b"LXDRAFT";
/// The extension of the files.
const EXTENSION: &str = "drafts";
/// The length that marks an owner without a name.
const NAMELESS: u32 = u32::MAX;
/// The size limit of a file. A larger file was not written by this module, which leaves out parts that do not
/// fit.
const MOST_BYTES: u64 = 1 << 30;
/// The size of a number in bytes.
const NUMBER: usize = size_of::<u32>();

/// The content of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kept {
    pub(crate) owner: Owner,
    /// The answers, the earliest first.
    pub(crate) answers: Vec<Vec<u32>>,
    /// The parts that predictors have saved, each with its name.
    pub(crate) parts: Vec<(String, Vec<u8>)>,
}

/// The content of a folder.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Found {
    pub(crate) kept: Vec<Kept>,
    /// The files that were removed, each with its problem.
    pub(crate) notices: Vec<String>,
}

/// Returns a number that distinguishes vocabularies.
pub(crate) fn fingerprint(vocabulary: &Vocabulary) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for token in 0..vocabulary.len() as u32 {
        let bytes = vocabulary.bytes(token);
        hasher.update(&(bytes.len() as u32).to_le_bytes());
        hasher.update(bytes);
    }
    hasher.finalize()
}

/// Reads all files of a folder, which is created if it does not exist.
pub(crate) fn open(folder: &Path, vocabulary: u32) -> Result<Found, JournalError> {
    let unusable = |error: io::Error| JournalError::Folder {
        path: folder.display().to_string(),
        problem: error.to_string(),
    };
    fs::create_dir_all(folder).map_err(unusable)?;
    let mut found = Found::default();
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unusable)? {
        let path = entry.map_err(unusable)?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            paths.push(path);
        }
    }
    paths.sort();
    for path in paths {
        match read(&path) {
            Ok((written_with, _)) if written_with != vocabulary => {
                let path = path.display().to_string();
                return Err(JournalError::OtherVocabulary { path });
            }
            Ok((_, kept)) => found.kept.push(kept),
            Err(problem) => {
                let removed = match fs::remove_file(&path) {
                    Ok(()) => String::from("it was removed"),
                    Err(error) => format!("it cannot be removed: {error}"),
                };
                let notice = format!("{} {problem}; {removed}", path.display());
                found.notices.push(notice);
            }
        }
    }
    Ok(found)
}

/// Writes the file of an owner.
pub(crate) fn write(folder: &Path, vocabulary: u32, kept: &Kept) -> io::Result<()> {
    let owner = &kept.owner;
    let mut bytes = MAGIC.to_vec();
    let number = |bytes: &mut Vec<u8>, number: u32| bytes.extend(number.to_le_bytes());
    number(&mut bytes, vocabulary);
    number(
        &mut bytes,
        owner.as_ref().map_or(NAMELESS, |name| name.len() as u32),
    );
    bytes.extend(owner.iter().flat_map(|name| name.bytes()));
    number(&mut bytes, kept.answers.len() as u32);
    for answer in &kept.answers {
        number(&mut bytes, answer.len() as u32);
        answer.iter().for_each(|&token| number(&mut bytes, token));
    }
    for (name, part) in &kept.parts {
        let length = bytes.len() + name.len() + part.len() + 3 * NUMBER;
        if length as u64 > MOST_BYTES {
            continue;
        }
        for text in [name.as_bytes(), part] {
            number(&mut bytes, text.len() as u32);
            bytes.extend(text);
        }
    }
    let checksum = crc32fast::hash(&bytes);
    number(&mut bytes, checksum);
    let path = path_of(folder, owner);
    let beside = path.with_extension("new");
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::rename(&beside, &path)
}

/// Removes the file of an owner, if there is one.
pub(crate) fn remove(folder: &Path, owner: &Owner) -> io::Result<()> {
    match fs::remove_file(path_of(folder, owner)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the path of an owner's file. The name of an owner may be any text, so the file has a number as its
/// name.
pub(crate) fn path_of(folder: &Path, owner: &Owner) -> PathBuf {
    let name = match owner {
        None => "nameless".to_owned(),
        // Two checksums, so that a collision of two names is next to impossible.
        Some(name) => {
            let turned: Vec<u8> = name.bytes().rev().collect();
            format!(
                "{:08x}{:08x}",
                crc32fast::hash(name.as_bytes()),
                crc32fast::hash(&turned)
            )
        }
    };
    folder.join(name).with_extension(EXTENSION)
}

/// Returns the vocabulary and the content of a file, or the problem with it.
fn read(path: &Path) -> Result<(u32, Kept), &'static str> {
    let size = fs::metadata(path).map_err(|_| UNREADABLE)?.len();
    if size > MOST_BYTES {
        return Err("is damaged (it is too large)");
    }
    let bytes = fs::read(path).map_err(|_| UNREADABLE)?;
    let Some(content) = bytes.strip_prefix(MAGIC) else {
        let format = bytes.strip_prefix(FAMILY).and_then(<[u8]>::first);
        return Err(match format.is_some_and(u8::is_ascii_digit) {
            true => "was written by a version with another format",
            false => "is damaged (it is no file of drafts)",
        });
    };
    let (content, checksum) = content.split_last_chunk::<NUMBER>().ok_or(CUT)?;
    if crc32fast::hash(&bytes[..bytes.len() - NUMBER]) != u32::from_le_bytes(*checksum) {
        return Err("is damaged (its checksum is wrong)");
    }
    let mut rest = content;
    let vocabulary = number(&mut rest)?;
    let owner = match number(&mut rest)? {
        NAMELESS => None,
        length => Some(text(&mut rest, length)?.into()),
    };
    let answers = number(&mut rest)?;
    let answers = (0..answers)
        .map(|_| answer(&mut rest))
        .collect::<Result<_, _>>()?;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let length = number(&mut rest)?;
        let name = text(&mut rest, length)?.to_owned();
        let length = number(&mut rest)?;
        parts.push((name, part(&mut rest, length)?.to_vec()));
    }
    let kept = Kept {
        owner,
        answers,
        parts,
    };
    Ok((vocabulary, kept))
}

const UNREADABLE: &str = "is damaged (it cannot be read)";
const CUT: &str = "is damaged (it is cut short)";

/// Reads the next number.
fn number(rest: &mut &[u8]) -> Result<u32, &'static str> {
    let (number, after) = rest.split_first_chunk::<NUMBER>().ok_or(CUT)?;
    *rest = after;
    Ok(u32::from_le_bytes(*number))
}

/// Reads the next `length` bytes.
fn part<'a>(rest: &mut &'a [u8], length: u32) -> Result<&'a [u8], &'static str> {
    let (part, after) = rest.split_at_checked(length as usize).ok_or(CUT)?;
    *rest = after;
    Ok(part)
}

/// Reads the next `length` bytes as a name.
fn text<'a>(rest: &mut &'a [u8], length: u32) -> Result<&'a str, &'static str> {
    std::str::from_utf8(part(rest, length)?).map_err(|_| "is damaged (a name in it is no text)")
}

/// Reads the next answer.
fn answer(rest: &mut &[u8]) -> Result<Vec<u32>, &'static str> {
    let length = number(rest)? as usize;
    if length > rest.len() / NUMBER {
        return Err(CUT);
    }
    (0..length).map(|_| number(rest)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed at the end of the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("lexiform-journal-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&folder);
            Folder(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn owner(name: &str) -> Owner {
        Some(name.into())
    }

    #[test]
    fn what_is_written_is_read_for_each_owner() {
        let folder = Folder::new("each");
        assert_eq!(open(&folder.0, 7).unwrap(), Found::default());
        let answers: [&[u32]; 3] = [&[1, 2, u32::MAX], &[], &[5]];
        let answers: Vec<Vec<u32>> = answers.iter().map(|answer| answer.to_vec()).collect();
        let parts = vec![
            (String::from("rows 1"), vec![1, 2, 255]),
            (String::new(), Vec::new()),
        ];
        let with = |owner: Owner, answers: &[Vec<u32>]| Kept {
            owner,
            answers: answers.to_vec(),
            parts: parts.clone(),
        };
        for name in [owner("a/../b"), None, owner("")] {
            write(&folder.0, 7, &with(name, &answers)).unwrap();
        }
        write(&folder.0, 7, &with(None, &[vec![9]])).unwrap();
        let mut kept = open(&folder.0, 7).unwrap().kept;
        kept.sort_by(|one, other| one.owner.cmp(&other.owner));
        let expected = [
            with(None, &[vec![9]]),
            with(owner(""), &answers),
            with(owner("a/../b"), &answers),
        ];
        assert_eq!(kept, expected);
    }

    #[test]
    fn a_file_that_any_byte_was_changed_or_cut_of_is_removed_and_named() {
        let folder = Folder::new("damaged");
        write_one(&folder);
        let path = path_of(&folder.0, &owner("o"));
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            for damaged in [&changed[..], &whole[..at]] {
                fs::write(&path, damaged).unwrap();
                let found = open(&folder.0, 7).unwrap();
                assert_eq!((found.kept.len(), found.notices.len()), (0, 1), "{at}");
                assert!(
                    found.notices[0].contains(".drafts is damaged"),
                    "{:?}",
                    found.notices
                );
                assert!(!path.exists());
            }
        }
    }

    fn write_one(folder: &Folder) {
        fs::create_dir_all(&folder.0).unwrap();
        let kept = Kept {
            owner: owner("o"),
            answers: vec![vec![1, 2], vec![3]],
            parts: vec![(String::from("rows 1"), vec![4, 5])],
        };
        write(&folder.0, 7, &kept).unwrap();
    }

    #[test]
    fn a_file_of_another_format_is_removed_and_said_to_be_one() {
        let folder = Folder::new("format");
        write_one(&folder);
        let path = path_of(&folder.0, &owner("o"));
        let mut bytes = fs::read(&path).unwrap();
        bytes[7] = b'1';
        fs::write(&path, bytes).unwrap();
        let found = open(&folder.0, 7).unwrap();
        assert_eq!((found.kept.len(), found.notices.len()), (0, 1));
        let says = "was written by a version with another format; it was removed";
        assert_eq!(found.notices, [format!("{} {says}", path.display())]);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_of_another_vocabulary_is_refused_by_name_and_left_alone() {
        let folder = Folder::new("other");
        write_one(&folder);
        let path = path_of(&folder.0, &owner("o"));
        let error = open(&folder.0, 8).unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert!(path.exists());
    }

    #[test]
    fn what_a_crash_left_half_written_is_not_looked_at() {
        let folder = Folder::new("crash");
        write_one(&folder);
        let path = path_of(&folder.0, &owner("o"));
        fs::write(path.with_extension("new"), b"LXDR").unwrap();
        let found = open(&folder.0, 7).unwrap();
        assert_eq!((found.kept.len(), found.notices.len()), (1, 0));
        assert_eq!(found.kept[0].answers, [vec![1, 2], vec![3]]);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let error = open(Path::new("/dev/null/x"), 7).unwrap_err();
        assert!(error.to_string().contains("/dev/null/x"), "{error}");
    }
}
