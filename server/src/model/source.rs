//! Where the files of a model lie: what a word on the command line names among the models that people have on
//! their disks.
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
//! Nothing is downloaded. What is not there is an error that says what to type. The stores may hold anything:
//! names become paths only if they are plain, sizes are bounded, and nothing is read but what a store says is
//! a model.

mod error;
mod folder;
mod hugging_face;
mod ollama;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use error::SourceError;
pub use folder::Wanted;

/// The word for the model that is built into the program.
pub const DEMO: &str = "demo";
/// The model that `cargo xtask serve` fetches, by its folder among those that were fetched.
pub const FETCHED: &str = "smollm2-135m-instruct";
const OLLAMA: &str = "ollama:";
/// Where an installed Ollama that runs as a service of the system keeps its store.
const OLLAMA_OF_SYSTEM: &str = "/usr/share/ollama/.ollama/models";
/// The most models of one store that are listed.
const LISTED_MODELS: usize = 1_000;

/// The folders in which models are kept.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    fetched: Option<PathBuf>,
    hugging_face: Option<PathBuf>,
    ollama: Vec<PathBuf>,
}

impl Stores {
    /// Those of the user who runs this program.
    pub fn of_user() -> Self {
        Self::named_by(|name| std::env::var_os(name))
    }

    /// Those that the variables of an environment name, or that programs use where nothing is named.
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
    /// What requests call it.
    pub name: String,
    /// Where it lies.
    pub place: Place,
}

/// Where a model lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the program.
    BuiltIn,
    /// A GGUF file or a folder.
    Disk(PathBuf),
}

impl Place {
    /// The bytes of its weights on the disk.
    pub fn bytes(&self) -> u64 {
        match self {
            Place::BuiltIn => 0,
            Place::Disk(path) => folder::bytes(path),
        }
    }
}

/// The model that is meant where none is named: the one that was fetched for this user, or else the one in
/// the program. Random weights always have the tokens of that one, so that figures of one shape can be
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

/// The model that a word names.
///
/// # Errors
/// Nothing of this name is on this disk, or what is there is no model.
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

/// A file, or the model of a folder. Requests call it by the name of the file without its ending, or by that
/// of the folder.
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

/// The model of this name among those that were fetched for this user; `None` if there is no such folder.
fn fetched(stores: &Stores, name: &str) -> Option<Result<Located, SourceError>> {
    let is_plain = hugging_face::is_name(name) && !name.contains('/');
    let folder = stores.fetched.as_ref().filter(|_| is_plain)?.join(name);
    let typed = |file: &str| folder.join(file).display().to_string();
    let found = || folder::model_in(&folder, Wanted::ToAnswer, typed);
    folder.is_dir().then(|| found().map(|path| on_disk(name, path)))
}

/// The name and the part of `owner/name:part`, if the text can be such a name and does not look like a path.
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

/// A model that a store has, or what a store has in the place of one.
#[derive(Debug)]
pub struct Listed {
    /// What to type for it.
    pub word: String,
    /// Which store has it.
    pub store: &'static str,
    /// Where it lies, or why it is none.
    pub found: Result<Place, SourceError>,
}

/// What all stores have.
#[derive(Debug, Default)]
pub struct Inventory {
    /// The models, those of a store together.
    pub models: Vec<Listed>,
    /// The stores with more models than are listed, each with how many are.
    pub cut: Vec<(&'static str, usize)>,
}

/// The models on this disk: the one in the program, those that were fetched, and those of the Hugging Face
/// cache and of Ollama.
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

/// The model of a word that is none of a path.
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
