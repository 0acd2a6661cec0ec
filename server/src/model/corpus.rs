//! Reads the texts to draft from that an operator has configured.
//!
//! ```text
//!   files, folders ─► all files, in order ─► UTF-8 ─► tokens of each ─► sorted for retrieval
//! ```
//!
//! All problems of all files are found before anything is refused. A corpus that is too large is refused and
//! never truncated: no operator chose what would be left of it.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lexiform::vocab::{Tokenizer, TokenizerError};
use lexiform_law::draft::{CorpusError as Unsorted, Retrieval};

/// The size of the parts in which texts are encoded, in bytes of whole lines: an encoder takes a hundred
/// times the size of its input.
const LINES: usize = 1 << 16;

/// The reasons why texts cannot be drafted from.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// Some files cannot be used.
    #[error("cannot draft from --draft-corpus: {}", sentence(.0))]
    Files(Vec<FileProblem>),
    /// The files are too large.
    #[error(
        "--draft-corpus has {files} files with {bytes} bytes together; --draft-corpus-memory allows {most} bytes"
    )]
    TooManyBytes {
        /// The number of files.
        files: usize,
        /// Their total size.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// There are too many tokens.
    #[error(
        "--draft-corpus takes at least {bytes} bytes, {each} for each token, and {file} is where it becomes too large; \
         --draft-corpus-memory allows {most} bytes"
    )]
    TooManyTokens {
        /// The file at which the limit was exceeded.
        file: String,
        /// The bytes of the tokens so far.
        bytes: u64,
        /// The bytes per token.
        each: usize,
        /// The limit.
        most: u64,
    },
    /// The corpus cannot be sorted.
    #[error("cannot draft from --draft-corpus: {0}")]
    Unsorted(#[from] Unsorted),
}

/// A problem with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// The file does not exist or cannot be read.
    #[error("cannot read {path}: {problem}")]
    Unreadable {
        /// The file.
        path: String,
        /// The error of the operating system.
        problem: String,
    },
    /// The path is neither a file nor a folder.
    #[error("{path} is neither a file nor a folder")]
    Special {
        /// The path.
        path: String,
    },
    /// The file is not text.
    #[error("{path} is not UTF-8: the first byte that is not stands at offset {offset}")]
    NotText {
        /// The file.
        path: String,
        /// The number of bytes before the first invalid one.
        offset: usize,
    },
    /// A folder, or all configured paths together, contain no text.
    #[error("{path} holds no text")]
    Empty {
        /// The path.
        path: String,
    },
    /// The tokenizer cannot encode the text.
    #[error("{path}: {problem}")]
    Tokenizer {
        /// The file.
        path: String,
        /// The error of the tokenizer.
        problem: TokenizerError,
    },
}

/// Joins several problems into one message.
fn sentence(problems: &[FileProblem]) -> String {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    problems.join("; ")
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Reads and sorts all configured texts, in at most this many MiB; returns `None` if there are none.
///
/// A folder means all files below it in the order of their names, without hidden ones (whose names begin with
/// a dot); links to files are followed, links to folders are not.
///
/// # Errors
/// Fails if a file is missing, is not UTF-8 or is not a regular file; if a path contains no text; or if all
/// of them together are too large.
pub fn read(
    paths: &[PathBuf],
    most_mib: usize,
    tokenizer: &Tokenizer,
) -> Result<Option<Retrieval>, CorpusError> {
    if paths.is_empty() {
        return Ok(None);
    }
    let most = (most_mib as u64).saturating_mul(1 << 20);
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for path in paths {
        match files_of(path) {
            Ok(found) if found.iter().all(|(_, size)| *size == 0) => {
                problems.push(FileProblem::Empty { path: shown(path) });
            }
            Ok(found) => files.extend(found),
            Err(problem) => problems.push(problem),
        }
    }
    let bytes = files.iter().map(|(_, size)| *size).sum();
    if bytes > most {
        let files = files.len();
        return Err(CorpusError::TooManyBytes { files, bytes, most });
    }
    let mut texts = EncodedTexts {
        tokenizer,
        most,
        tokens: Vec::new(),
        count: 0,
    };
    for (path, _) in &files {
        let text = text(path);
        match text.and_then(|text| {
            if problems.is_empty() {
                texts.cut(path, &text)
            } else {
                Ok(())
            }
        }) {
            Ok(()) => texts.check(path)?,
            Err(problem) => problems.push(problem),
        }
    }
    match problems.is_empty() {
        true => Ok(Some(Retrieval::of_texts(texts.tokens)?)),
        false => Err(CorpusError::Files(problems)),
    }
}

/// The texts that were encoded so far.
struct EncodedTexts<'t> {
    tokenizer: &'t Tokenizer,
    most: u64,
    tokens: Vec<Vec<u32>>,
    /// The number of tokens of all texts, with a separator after each.
    count: u64,
}

impl EncodedTexts<'_> {
    /// Encodes one more text, as far as there is room.
    fn cut(&mut self, path: &Path, text: &str) -> Result<(), FileProblem> {
        let mut tokens = Vec::new();
        for piece in lines(text).flat_map(|lines| self.tokenizer.pieces(lines)) {
            let more = self
                .tokenizer
                .encode(piece)
                .map_err(|problem| FileProblem::Tokenizer {
                    path: shown(path),
                    problem,
                })?;
            self.count += more.len() as u64;
            tokens.extend(more);
            if self.bytes() > self.most {
                break;
            }
        }
        self.count += 1;
        self.tokens.push(tokens);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.count.saturating_mul(Retrieval::TOKEN_BYTES as u64)
    }

    /// Checks whether there is still room after a file.
    fn check(&self, path: &Path) -> Result<(), CorpusError> {
        match self.bytes() > self.most {
            false => Ok(()),
            true => Err(CorpusError::TooManyTokens {
                file: shown(path),
                bytes: self.bytes(),
                each: Retrieval::TOKEN_BYTES,
                most: self.most,
            }),
        }
    }
}

/// Returns the text of a file.
fn text(path: &Path) -> Result<String, FileProblem> {
    let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
    String::from_utf8(bytes).map_err(|error| FileProblem::NotText {
        path: shown(path),
        offset: error.utf8_error().valid_up_to(),
    })
}

fn unreadable(path: &Path, problem: &dyn fmt::Display) -> FileProblem {
    FileProblem::Unreadable {
        path: shown(path),
        problem: problem.to_string(),
    }
}

/// Returns the files that a path means, in order, with their sizes.
fn files_of(path: &Path) -> Result<Vec<(PathBuf, u64)>, FileProblem> {
    let about = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if about.is_file() {
        return Ok(vec![(path.to_owned(), about.len())]);
    }
    if !about.is_dir() {
        return Err(FileProblem::Special { path: shown(path) });
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let broken = |error: io::Error| unreadable(&folder, &error);
        for entry in fs::read_dir(&folder).map_err(broken)? {
            let entry = entry.map_err(broken)?;
            let path = entry.path();
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let kind = entry.file_type().map_err(broken)?;
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            let about = fs::metadata(&path).map_err(|error| unreadable(&path, &error))?;
            match about.is_file() {
                true => files.push((path, about.len())),
                false if kind.is_symlink() && about.is_dir() => {}
                false => return Err(FileProblem::Special { path: shown(&path) }),
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Splits a text into parts of whole lines. A line that is longer than a part is a part.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let from = rest.len().min(LINES);
        let end = rest.as_bytes()[from..].iter().position(|&byte| byte == b'\n');
        let (part, behind) = rest.split_at(end.map_or(rest.len(), |end| from + end + 1));
        rest = behind;
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::demo;
    use lexiform_law::draft::{Context, Predictor as _, Text};

    /// A temporary folder that is removed when dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("lexiform-corpus-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(folder.join("deep/er")).expect("a folder");
            Folder(folder)
        }

        fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, content).expect("a file");
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn tokenizer() -> Tokenizer {
        let files = demo::model().expect("the demo model");
        Tokenizer::from_bytes(files.text("tokenizer.json").expect("its tokenizer").as_bytes())
            .expect("a tokenizer")
    }

    fn refused(paths: &[PathBuf], most_mib: usize) -> String {
        let error = read(paths, most_mib, &tokenizer()).expect_err("it is wrong");
        error.to_string()
    }

    #[test]
    fn what_follows_a_text_is_found_in_all_files_of_a_folder() {
        let (folder, tokenizer) = (Folder::new("folder"), tokenizer());
        folder.write("b.txt", "The quick brown fox jumps.");
        folder.write("deep/er/a.txt", "Ada was born in London in 1815.\n");
        folder.write(".hidden", [0xff]);
        let corpus = read(std::slice::from_ref(&folder.0), 1, &tokenizer)
            .expect("texts")
            .expect("some");
        for (text, next) in [("The quick brown", " fox"), ("Ada was born in", " London")] {
            let tokens = tokenizer.encode(text).expect("tokens");
            let at = Context {
                text: Text {
                    prompt: &tokens,
                    answer: &[],
                },
                path: &[],
                state: None,
            };
            let mut found = Vec::new();
            corpus.predict(&at, &mut found);
            let wanted = tokenizer.encode(&format!("{text}{next}")).expect("tokens")[tokens.len()];
            assert_eq!(found.first().map(|best| best.token), Some(wanted), "{text}");
        }
        assert!(read(&[], 1, &tokenizer).expect("nothing").is_none());
    }

    #[test]
    fn all_files_that_are_wrong_are_named() {
        let folder = Folder::new("wrong");
        let latin = folder.write("latin.txt", b"caf\xe9");
        let cut = folder.write("cut.txt", b"whole \xe2\x82");
        let good = folder.write("good.txt", "good");
        let empty = folder.write("empty.txt", "");
        let missing = folder.0.join("missing.txt");
        let message = refused(&[latin, good, missing, cut, empty, folder.0.join("deep")], 1);
        for part in [
            "latin.txt is not UTF-8: the first byte that is not stands at offset 3",
            "cut.txt is not UTF-8: the first byte that is not stands at offset 6",
            "missing.txt: No such file",
            "empty.txt holds no text",
            "deep holds no text",
        ] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert!(!message.contains("good.txt"), "{message}");
        assert!(
            refused(&[PathBuf::from("/dev/null")], 1).contains("/dev/null is neither a file nor a folder")
        );
    }

    #[test]
    fn what_is_too_large_is_refused_with_its_size() {
        let folder = Folder::new("large");
        let large = folder.write("large.txt", "x ".repeat(1 << 20));
        let message = refused(std::slice::from_ref(&large), 1);
        assert!(
            message.contains("2097152 bytes") && message.contains("allows 1048576 bytes"),
            "{message}"
        );
        // Half a MiB of text whose tokens take more than one.
        let dense = folder.write("dense.txt", "7 + 4 = 1, ".repeat(1 << 15));
        let message = refused(&[dense], 1);
        assert!(
            message.contains("8 for each token") && message.contains("dense.txt"),
            "{message}"
        );
        let corpus = read(&[large], 64, &tokenizer()).expect("room").expect("some");
        assert!(corpus.bytes() > 1 << 20);
    }

    #[test]
    fn parts_of_whole_lines_make_up_the_text() {
        let text = format!("{}\n{}\nend", "é".repeat(LINES), "a line\n".repeat(LINES));
        let parts: Vec<&str> = lines(&text).collect();
        assert!(parts.len() > 5 && parts.concat() == text);
        assert!(parts[..parts.len() - 1].iter().all(|part| part.ends_with('\n')));
        assert_eq!(lines("").count(), 0);
    }
}
