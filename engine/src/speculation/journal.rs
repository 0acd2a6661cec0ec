//! Answers that are kept over a restart, so that what was learned from them can be learned again: a file for each owner.
//!
//! ```text
//!   LXDRAFT1 │ vocabulary │ owner │ answers, each its length and its tokens │ CRC-32 of all before
//! ```
//!
//! A file is written whole under another name and then takes the place of the one before, so that a crash leaves the one or the
//! other. All numbers are 32 bits, the lowest byte first; a length of `u32::MAX` is that of an owner without a name. The files hold what was
//! answered, so nobody but the user of the process may read them.
//!
//! A file that is damaged is taken away and named. One of another vocabulary is not touched: its tokens mean other texts, so the
//! engine does not start with it.

use crate::error::JournalError;
use crate::fairness::pool::Owner;
use lexiform::vocab::Vocabulary;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"LXDRAFT1";
/// How the files end.
const EXTENSION: &str = "drafts";
/// The length of no name.
const NAMELESS: u32 = u32::MAX;
/// A file that is larger was not written by this.
const MOST_BYTES: u64 = 1 << 30;

/// What a file holds.
#[derive(Debug, PartialEq)]
pub(crate) struct Kept {
    pub(crate) owner: Owner,
    /// The earliest first.
    pub(crate) answers: Vec<Vec<u32>>,
}

/// What was found in a folder.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Found {
    pub(crate) kept: Vec<Kept>,
    /// Of files that were damaged: which, and what was wrong with them.
    pub(crate) notices: Vec<String>,
}

/// A number that tells vocabularies apart.
pub(crate) fn fingerprint(vocabulary: &Vocabulary) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for token in 0..vocabulary.len() as u32 {
        let bytes = vocabulary.bytes(token);
        hasher.update(&(bytes.len() as u32).to_le_bytes());
        hasher.update(bytes);
    }
    hasher.finalize()
}

/// Reads all files of a folder, which is made if it is not there.
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
                let notice = format!("{} is damaged ({problem}); {removed}", path.display());
                found.notices.push(notice);
            }
        }
    }
    Ok(found)
}

/// Writes what is kept of an owner.
pub(crate) fn write<'a>(
    folder: &Path,
    vocabulary: u32,
    owner: &Owner,
    answers: impl IntoIterator<Item = &'a [u32]>,
) -> io::Result<()> {
    let mut bytes = MAGIC.to_vec();
    let number = |bytes: &mut Vec<u8>, number: u32| bytes.extend(number.to_le_bytes());
    number(&mut bytes, vocabulary);
    number(
        &mut bytes,
        owner.as_ref().map_or(NAMELESS, |name| name.len() as u32),
    );
    bytes.extend(owner.iter().flat_map(|name| name.bytes()));
    for answer in answers {
        number(&mut bytes, answer.len() as u32);
        answer.iter().for_each(|&token| number(&mut bytes, token));
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

/// The file of an owner. Names of owners may be anything, so it is called by a number.
fn path_of(folder: &Path, owner: &Owner) -> PathBuf {
    let name = match owner {
        None => "nameless".to_owned(),
        // Two numbers, so that names of one number are as good as impossible.
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

/// The vocabulary and the content of a file, or what is wrong with it.
fn read(path: &Path) -> Result<(u32, Kept), &'static str> {
    let size = fs::metadata(path).map_err(|_| "it cannot be read")?.len();
    if size > MOST_BYTES {
        return Err("it is too large");
    }
    let bytes = fs::read(path).map_err(|_| "it cannot be read")?;
    let content = bytes.strip_prefix(MAGIC).ok_or("it is no file of drafts")?;
    let (content, checksum) = content.split_last_chunk::<4>().ok_or("it is cut short")?;
    if crc32fast::hash(&bytes[..bytes.len() - 4]) != u32::from_le_bytes(*checksum) {
        return Err("its checksum is wrong");
    }
    let mut rest = content;
    let vocabulary = number(&mut rest)?;
    let owner = match number(&mut rest)? {
        NAMELESS => None,
        length => {
            let (name, after) = rest.split_at_checked(length as usize).ok_or("it is cut short")?;
            rest = after;
            Some(
                std::str::from_utf8(name)
                    .map_err(|_| "its owner is no text")?
                    .into(),
            )
        }
    };
    let mut answers = Vec::new();
    while !rest.is_empty() {
        let length = number(&mut rest)? as usize;
        if length > rest.len() / 4 {
            return Err("it is cut short");
        }
        answers.push((0..length).map(|_| number(&mut rest)).collect::<Result<_, _>>()?);
    }
    Ok((vocabulary, Kept { owner, answers }))
}

/// The next number.
fn number(rest: &mut &[u8]) -> Result<u32, &'static str> {
    let (number, after) = rest.split_first_chunk::<4>().ok_or("it is cut short")?;
    *rest = after;
    Ok(u32::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed at the end.
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
        for name in [owner("a/../b"), None, owner("")] {
            write(&folder.0, 7, &name, answers).unwrap();
        }
        write(&folder.0, 7, &None, [&[9u32][..]]).unwrap();
        let mut kept = open(&folder.0, 7).unwrap().kept;
        kept.sort_by(|one, other| one.owner.cmp(&other.owner));
        let answers: Vec<Vec<u32>> = answers.iter().map(|answer| answer.to_vec()).collect();
        let expected = [
            (None, vec![vec![9]]),
            (owner(""), answers.clone()),
            (owner("a/../b"), answers),
        ];
        let expected = expected.map(|(owner, answers)| Kept { owner, answers });
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
        write(&folder.0, 7, &owner("o"), [&[1u32, 2][..], &[3]]).unwrap();
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
