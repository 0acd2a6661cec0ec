//! The reasons why a word of the command line names no model: each error is one sentence that says what to
//! type instead.

use std::io;
use std::path::PathBuf;

use lexiform_cli::failure::reason;

/// The maximum number of names that an error lists.
const SHOWN_NAMES: usize = 6;

/// The reasons why no model was found.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// Neither a path nor the name of a model in any store.
    #[error("there is no model '{word}' on this disk: it is no file or folder, and not in the Hugging Face cache{ollama}. {NOT_DOWNLOADED}", ollama = ollama_has(*.in_ollama, .word))]
    NotHere {
        /// The requested word.
        word: String,
        /// `true` if Ollama's store has a model of this name.
        in_ollama: bool,
    },
    /// A path that does not exist.
    #[error("there is no file or folder {}; `lexiform models` lists the models on this disk", .0.display())]
    NoSuchPath(PathBuf),
    /// A path that is something else, such as a socket.
    #[error("{} is neither a file nor a folder", .0.display())]
    NotAFile(PathBuf),
    /// The Hugging Face cache has no such model.
    #[error("{name} is not in the Hugging Face cache {}; `hf download {name}` brings it, and `lexiform models` lists what is here", cache.display())]
    NotInCache {
        /// The model, as owner/name.
        name: String,
        /// The folder of the cache.
        cache: PathBuf,
    },
    /// The Hugging Face cache has an entry for the model, but no files of it.
    #[error("the Hugging Face cache has no files of {name}: {} {problem}; `hf download {name}` brings them", path.display())]
    NoSnapshot {
        /// The model, as owner/name.
        name: String,
        /// The file or folder of the cache.
        path: PathBuf,
        /// The problem with it.
        problem: &'static str,
    },
    /// A folder without any file.
    #[error("{} is empty; expected a GGUF file, or the files of a Hugging Face model (config.json, tokenizer.json, *.safetensors)", .0.display())]
    Empty(PathBuf),
    /// A folder that lacks a file of a model.
    #[error("{} has no {missing}; there is {}", folder.display(), listed(.there))]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// The file.
        missing: &'static str,
        /// The names of the files that are there.
        there: Vec<String>,
    },
    /// A folder of several GGUF files, one of which has to be named.
    #[error("{} holds several GGUF files; name one of them: {}", folder.display(), listed(.words))]
    Several {
        /// The folder.
        folder: PathBuf,
        /// The word to type for each.
        words: Vec<String>,
    },
    /// None of the GGUF files is the named one.
    #[error("{} has no GGUF file '{part}'; there is {}", folder.display(), listed(.words))]
    NoSuchPart {
        /// The folder.
        folder: PathBuf,
        /// The text after the colon.
        part: String,
        /// The words to type for the files that are there.
        words: Vec<String>,
    },
    /// A name that a store cannot have.
    #[error("'{word}' is no name of a model{of}: expected {expected}")]
    BadName {
        /// The requested word.
        word: String,
        /// The store whose names are meant.
        of: &'static str,
        /// The form of valid names.
        expected: &'static str,
    },
    /// Ollama's store has no such model.
    #[error("{name} is not in Ollama's store{}; `ollama pull {name}` brings it", others(.there))]
    NotInOllama {
        /// The model, as Ollama names it.
        name: String,
        /// The other tags of the model.
        there: Vec<String>,
    },
    /// A manifest of Ollama's store that names no readable weights.
    #[error("{}: {problem}; `ollama pull {name}` writes it anew", manifest.display())]
    Manifest {
        /// The model, as Ollama names it.
        name: String,
        /// The file.
        manifest: PathBuf,
        /// The problem with it.
        problem: String,
    },
    /// A model of Ollama's store that has more parts than a GGUF file, or others.
    #[error("{}: {problem}", manifest.display())]
    NotGguf {
        /// The manifest file.
        manifest: PathBuf,
        /// Its content instead.
        problem: String,
    },
    /// The weights that a manifest names are not in the store.
    #[error("the weights of {name} are not in Ollama's store: {} {problem}; `ollama pull {name}` brings them", blob.display())]
    Blob {
        /// The model, as Ollama names it.
        name: String,
        /// The blob file.
        blob: PathBuf,
        /// The problem with it.
        problem: String,
    },
    /// A file or folder that cannot be read.
    #[error("cannot read {}: {}", path.display(), reason(source))]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

const NOT_DOWNLOADED: &str = "Models are not downloaded: `hf download OWNER/NAME` or `ollama pull NAME` brings one, and `lexiform models` lists those on this disk";

fn ollama_has(in_ollama: bool, word: &str) -> String {
    match in_ollama {
        true => format!(" (Ollama has it: type ollama:{word})"),
        false => String::new(),
    }
}

fn others(tags: &[String]) -> String {
    match tags {
        [] => String::new(),
        tags => format!(" (there is {})", listed(tags)),
    }
}

/// Lists the first few names, and the number of further ones.
fn listed(names: &[String]) -> String {
    let shown = names.get(..SHOWN_NAMES).unwrap_or(names).join(", ");
    match names.len().saturating_sub(SHOWN_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
