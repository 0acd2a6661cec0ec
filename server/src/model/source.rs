//! The location of a model's files: resolves a word of the command line to a model on the user's disk.
//!
//! ```text
//!   demo                      the model that is built into the program
//!   ollama:[USER/]NAME[:TAG]  a model of Ollama's store
//!   PATH                      a GGUF file, a folder in Hugging Face layout, a folder with one GGUF file
//!   NAME                      a model that was fetched for this user (cargo xtask setup --model)
//!   [OWNER/]NAME[:FILE]       a model in the Hugging Face cache
//!   nothing                   the fetched model, or demo where none was fetched
//! ```
//!
//! Nothing is downloaded. If a model is missing, the error says what to type. The stores may contain
//! anything: names become paths only if they are plain, sizes are bounded, and only files that a store
//! declares to be a model are read.

mod error;
mod folder;
mod hugging_face;
mod ollama;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use error::SourceError;
pub use folder::Wanted;

/// The word for the built-in model.
pub const DEMO: &str = "demo";
/// The model that `cargo xtask serve` fetches: the name of its folder among the fetched models.
pub const FETCHED: &str = "smollm2-135m-instruct";
const OLLAMA: &str = "ollama:";
/// The store of an Ollama that runs as a system service.
const OLLAMA_OF_SYSTEM: &str = "/usr/share/ollama/.ollama/models";
/// The maximum number of models of one store that are listed.
const LISTED_MODELS: usize = 1_000;

/// The folders in which models are kept.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    fetched: Option<PathBuf>,
    hugging_face: Option<PathBuf>,
    ollama: Vec<PathBuf>,
}

impl Stores {
    /// Returns the stores of the user who runs this program.
    pub fn of_user() -> Self {
        Self::named_by(|name| std::env::var_os(name))
    }

    /// Returns the stores that environment variables name, or the default locations.
    fn named_by(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let home = variable("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute());
        let folder = |name: &str| {
            let path = PathBuf::from(variable(name).filter(|value| !value.is_empty())?);
            match (path.strip_prefix("~"), &home) {
                (Ok(below), Some(home)) => Some(home.join(below)),
                _ => Some(path),
            }
        };
        let in_home = |below: &str| Some(home.as_ref()?.join(below));
        let cache = folder("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        let cache = cache.or_else(|| in_home(".cache"));
        let in_cache = |below: &str| Some(cache.as_ref()?.join(below));
        let hub = || Some(folder("HF_HOME").or_else(|| in_cache("huggingface"))?.join("hub"));
        let ollama = match folder("OLLAMA_MODELS") {
            Some(named) => vec![named],
            None => in_home(".ollama/models")
                .into_iter()
                .chain([OLLAMA_OF_SYSTEM.into()])
                .collect(),
        };
        Stores {
            fetched: in_cache("lexiform/models"),
            hugging_face: folder("HF_HUB_CACHE").or_else(hub),
            ollama,
        }
    }
}

/// A model that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The name of the model in requests.
    pub name: String,
    /// The location of the model.
    pub place: Place,
}

/// The location of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Built into the program.
    BuiltIn,
    /// A GGUF file or a folder.
    Disk(PathBuf),
}

impl Place {
    /// Returns the size of its weights on the disk in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Place::BuiltIn => 0,
            Place::Disk(path) => folder::bytes(path),
        }
    }
}

/// Returns the model to use if none is named: the model that was fetched for this user, or else the built-in
/// one. Random weights always use the tokens of the built-in one, so that figures of one shape can be
/// compared.
pub fn usual(wanted: Wanted, stores: &Stores) -> Located {
    let fetched = match wanted {
        Wanted::ForItsTokens => None,
        Wanted::ToAnswer | Wanted::ToDraft => fetched(stores, FETCHED),
    };
    fetched.and_then(Result::ok).unwrap_or_else(built_in)
}

fn built_in() -> Located {
    Located {
        name: DEMO.to_owned(),
        place: Place::BuiltIn,
    }
}

/// Finds the model that a word names.
///
/// # Errors
/// Fails if nothing of this name is on this disk, or if it is not a model.
pub fn locate(word: &Path, wanted: Wanted, stores: &Stores) -> Result<Located, SourceError> {
    let text = word.to_string_lossy();
    if text == DEMO {
        return Ok(built_in());
    }
    if let Some(name) = text.strip_prefix(OLLAMA) {
        let found = ollama::locate(&stores.ollama, &ollama::Name::read(name)?)?;
        return Ok(on_disk(name, found));
    }
    if word.symlink_metadata().is_ok() {
        return at_path(word, wanted);
    }
    if let Some(found) = fetched(stores, &text) {
        return found;
    }
    match hugging_face_name(&text) {
        None => Err(SourceError::NoSuchPath(word.to_path_buf())),
        Some((name, part)) => in_hugging_face(name, part, wanted, stores),
    }
}

fn on_disk(name: &str, path: PathBuf) -> Located {
    Located {
        name: name.to_owned(),
        place: Place::Disk(path),
    }
}

/// Finds a file, or the model of a folder. Its name in requests is the name of the file without its
/// extension, or the name of the folder.
fn at_path(path: &Path, wanted: Wanted) -> Result<Located, SourceError> {
    let unreadable = |source| SourceError::Unreadable {
        path: path.to_path_buf(),
        source,
    };
    let kind = path.metadata().map_err(unreadable)?.file_type();
    if !kind.is_dir() && !kind.is_file() {
        return Err(SourceError::NotAFile(path.to_path_buf()));
    }
    let real = path.canonicalize().map_err(unreadable)?;
    let typed = |file: &str| path.join(file).display().to_string();
    let (name, found) = match kind.is_dir() {
        true => (real.file_name(), folder::model_in(path, wanted, typed)?),
        false => (path.file_stem(), path.to_path_buf()),
    };
    let name = name.map_or_else(|| "model".into(), |name| name.to_string_lossy());
    Ok(on_disk(&name, found))
}

/// Finds the model of this name among those that were fetched for this user; `None` if there is no such
/// folder.
fn fetched(stores: &Stores, name: &str) -> Option<Result<Located, SourceError>> {
    let is_plain = hugging_face::is_name(name) && !name.contains('/');
    let folder = stores.fetched.as_ref().filter(|_| is_plain)?.join(name);
    let typed = |file: &str| folder.join(file).display().to_string();
    let found = || folder::model_in(&folder, Wanted::ToAnswer, typed);
    folder.is_dir().then(|| found().map(|path| on_disk(name, path)))
}

/// Returns the name and the part of `owner/name:part`, if the text can be such a name and does not look like
/// a path.
fn hugging_face_name(text: &str) -> Option<(&str, Option<&str>)> {
    let (name, part) = match text.split_once(':') {
        Some((name, part)) => (name, Some(part)),
        None => (text, None),
    };
    let is_file = part.is_none() && name.ends_with(".gguf");
    (hugging_face::is_name(name) && !is_file).then_some((name, part))
}

fn in_hugging_face(
    name: &str,
    part: Option<&str>,
    wanted: Wanted,
    stores: &Stores,
) -> Result<Located, SourceError> {
    let word = match part {
        Some(part) => format!("{name}:{part}"),
        None => name.to_owned(),
    };
    let cache = stores.hugging_face.as_ref();
    let is_there = cache.is_some_and(|cache| hugging_face::has(cache, name));
    match cache {
        Some(cache) if is_there || name.contains('/') => {
            let found = hugging_face::locate(cache, name, part, wanted)?;
            Ok(on_disk(&word, found))
        }
        _ => {
            let in_ollama = ollama::Name::read(&word).is_ok_and(|name| ollama::has(&stores.ollama, &name));
            Err(SourceError::NotHere { word, in_ollama })
        }
    }
}

/// An entry of a store: a model, or the reason why it is not one.
#[derive(Debug)]
pub struct Listed {
    /// The word to type for it.
    pub word: String,
    /// The store that has it.
    pub store: &'static str,
    /// The location of the model, or why the entry is not a model.
    pub found: Result<Place, SourceError>,
}

/// The models of all stores.
#[derive(Debug, Default)]
pub struct Inventory {
    /// The models, grouped by store.
    pub models: Vec<Listed>,
    /// The stores with more models than are listed, each with the number listed.
    pub cut: Vec<(&'static str, usize)>,
}

/// Lists the models on this disk: the built-in one, the fetched ones, and those of the Hugging Face cache and
/// of Ollama.
pub fn inventory(stores: &Stores) -> Inventory {
    let fetched = stores.fetched.as_ref();
    let fetched = fetched
        .and_then(|folder| folder::names(folder).ok())
        .unwrap_or_default();
    let fetched = fetched
        .into_iter()
        .filter(|name| self::fetched(stores, name).is_some());
    let cache = stores.hugging_face.as_deref();
    let cached = cache.map(|cache| (cache, hugging_face::all(cache))).into_iter();
    let cached = cached.flat_map(|(cache, names)| names.into_iter().map(move |name| (cache, name)));
    let cached = cached.flat_map(|(cache, name)| hugging_face::words(cache, &name));
    let pulled = ollama::all(&stores.ollama, LISTED_MODELS + 1).into_iter();
    let pulled = pulled.map(|name| format!("{OLLAMA}{}", name.short()));
    let words: [(&str, Box<dyn Iterator<Item = String>>); 4] = [
        ("built in", Box::new(std::iter::once(DEMO.to_owned()))),
        ("fetched", Box::new(fetched)),
        ("Hugging Face", Box::new(cached)),
        ("Ollama", Box::new(pulled)),
    ];
    let mut all = Inventory::default();
    for (store, mut words) in words {
        let listed = words.by_ref().take(LISTED_MODELS).map(|word| Listed {
            found: in_store(&word, stores).map(|located| located.place),
            word,
            store,
        });
        all.models.extend(listed);
        if words.next().is_some() {
            all.cut.push((store, LISTED_MODELS));
        }
    }
    all
}

/// Finds the model of a word that is not a path.
fn in_store(word: &str, stores: &Stores) -> Result<Located, SourceError> {
    let is_stored = word == DEMO || word.starts_with(OLLAMA);
    match (is_stored, fetched(stores, word), hugging_face_name(word)) {
        (false, Some(found), _) => found,
        (false, None, Some((name, part))) => in_hugging_face(name, part, Wanted::ToAnswer, stores),
        _ => locate(Path::new(word), Wanted::ToAnswer, stores),
    }
}

#[cfg(test)]
mod tests;
