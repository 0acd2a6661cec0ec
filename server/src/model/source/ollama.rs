//! Ollama's store: manifests, which name the parts of a model, and blobs, which hold them.
//!
//! ```text
//!   manifests/registry.ollama.ai/library/NAME/TAG   { "layers": [{ "mediaType": …image.model, "digest": "sha256:…" }, …] }
//!   blobs/sha256-…                                  a GGUF file, a template, parameters
//! ```
//!
//! Only the GGUF file is read, which includes a template. Ollama's template, system prompt and parameters are
//! not read.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::SourceError;
use super::folder::names;

const HOST: &str = "registry.ollama.ai";
const NAMESPACE: &str = "library";
const TAG: &str = "latest";
/// The maximum size of a manifest in bytes; real ones have a few hundred.
const MANIFEST: u64 = 1 << 20;
/// The maximum number of folders at one depth that are read for a list.
const FOLDERS: usize = 4_096;
const MODEL: &str = "application/vnd.ollama.image.model";
const ADAPTER: &str = "application/vnd.ollama.image.adapter";

/// The name of a model in the store: host, namespace, model and tag, of which all but the model have
/// defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    host: String,
    namespace: String,
    model: String,
    tag: String,
}

impl Name {
    /// Parses a name in the form of `ollama run`: `[[host/]namespace/]model[:tag]`.
    pub(super) fn read(text: &str) -> Result<Self, SourceError> {
        let bad = || SourceError::BadName {
            word: text.to_owned(),
            of: " in Ollama's store",
            expected: "ollama:NAME, ollama:NAME:TAG or ollama:USER/NAME:TAG",
        };
        // A colon before the last slash belongs to a port.
        let (path, tag) = match text.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, tag),
            _ => (text, TAG),
        };
        let parts: Vec<&str> = path.split('/').collect();
        let (host, namespace, model) = match parts[..] {
            [model] => (HOST, NAMESPACE, model),
            [namespace, model] => (HOST, namespace, model),
            [host, namespace, model] => (host, namespace, model),
            _ => return Err(bad()),
        };
        match [host, namespace, model, tag].into_iter().all(is_part) {
            true => Ok(Name {
                host: host.to_owned(),
                namespace: namespace.to_owned(),
                model: model.to_owned(),
                tag: tag.to_owned(),
            }),
            false => Err(bad()),
        }
    }

    /// Returns the shortest form of the name, as users type it.
    pub(super) fn short(&self) -> String {
        let Name {
            host,
            namespace,
            model,
            tag,
        } = self;
        match (host.as_str(), namespace.as_str()) {
            (HOST, NAMESPACE) => format!("{model}:{tag}"),
            (HOST, _) => format!("{namespace}/{model}:{tag}"),
            _ => format!("{host}/{namespace}/{model}:{tag}"),
        }
    }

    fn folder(&self, store: &Path) -> PathBuf {
        store
            .join("manifests")
            .join(&self.host)
            .join(&self.namespace)
            .join(&self.model)
    }
}

/// Returns `true` if this can be a part of a name, and so the name of a file: no separators, and no parent
/// folder.
fn is_part(part: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    (1..=96).contains(&part.len())
        && part.chars().all(is_plain)
        && part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the GGUF file of a model, from the first of these stores that has it.
pub(super) fn locate(stores: &[PathBuf], name: &Name) -> Result<PathBuf, SourceError> {
    let manifests = stores
        .iter()
        .map(|store| (store, name.folder(store).join(&name.tag)));
    let found = manifests.into_iter().find(|(_, manifest)| manifest.is_file());
    match found {
        Some((store, manifest)) => weights(store, &manifest, &name.short()),
        None => Err(SourceError::NotInOllama {
            name: name.short(),
            there: other_tags(stores, name),
        }),
    }
}

/// Returns `true` if one of the stores has a manifest for this model.
pub(super) fn has(stores: &[PathBuf], name: &Name) -> bool {
    let mut folders = stores.iter().map(|store| name.folder(store));
    folders.any(|folder| folder.join(&name.tag).is_file())
}

/// Returns the names for which the stores have a manifest, up to `most` of them.
pub(super) fn all(stores: &[PathBuf], most: usize) -> Vec<Name> {
    let stores = stores.iter().map(|store| (Vec::new(), store.join("manifests")));
    // There is a folder for each host, namespace and model, and a file for each tag.
    let namespaces = stores
        .flat_map(inside)
        .take(FOLDERS)
        .flat_map(inside)
        .take(FOLDERS);
    let models = namespaces.flat_map(inside).take(FOLDERS);
    let manifests = models.flat_map(inside);
    let named = manifests.filter_map(|(parts, _)| {
        let [host, namespace, model, tag] = parts.try_into().ok()?;
        Some(Name {
            host,
            namespace,
            model,
            tag,
        })
    });
    named.take(most).collect()
}

/// Extends the parts of a name by each entry of their folder.
fn inside((before, folder): (Vec<String>, PathBuf)) -> impl Iterator<Item = (Vec<String>, PathBuf)> {
    let parts = below(&folder).into_iter();
    parts.map(move |(part, path)| ([before.as_slice(), &[part]].concat(), path))
}

/// Returns the entries of a folder whose names can be a part of a model's name.
fn below(folder: &Path) -> Vec<(String, PathBuf)> {
    let parts = names(folder)
        .unwrap_or_default()
        .into_iter()
        .filter(|name| is_part(name));
    parts.map(|name| (name.clone(), folder.join(name))).collect()
}

fn other_tags(stores: &[PathBuf], name: &Name) -> Vec<String> {
    let folders = stores.iter().map(|store| name.folder(store));
    let tags = folders.flat_map(|folder| below(&folder));
    let other = |(tag, _): (String, PathBuf)| Name { tag, ..name.clone() };
    tags.map(other)
        .map(|name| format!("ollama:{}", name.short()))
        .collect()
}

/// Returns the blob of the weights that a manifest names.
fn weights(store: &Path, manifest: &Path, name: &str) -> Result<PathBuf, SourceError> {
    let broken = |problem: String| SourceError::Manifest {
        name: name.to_owned(),
        manifest: manifest.to_path_buf(),
        problem,
    };
    let other = |problem: &str| SourceError::NotGguf {
        manifest: manifest.to_path_buf(),
        problem: problem.to_owned(),
    };
    let read = read(manifest)?.ok_or_else(|| broken(format!("it is longer than {MANIFEST} bytes")))?;
    let read: Value =
        serde_json::from_slice(&read).map_err(|error| broken(format!("it is not JSON: {error}")))?;
    let layers = read.get("layers").and_then(Value::as_array);
    let layers = layers.ok_or_else(|| broken("it has no list \"layers\"".to_owned()))?;
    let of_type = |kind: &'static str| layers.iter().filter(move |layer| layer["mediaType"] == kind);
    if of_type(ADAPTER).next().is_some() {
        return Err(other("it has an adapter beside its weights, which is not read"));
    }
    let mut models = of_type(MODEL);
    match (models.next(), models.next()) {
        (Some(layer), None) => {
            let hash = layer["digest"].as_str().and_then(hash);
            let hash = hash.ok_or_else(|| broken(format!("its digest is {}", excerpt(&layer["digest"]))))?;
            blob(store, hash, layer["size"].as_u64(), name)
        }
        (None, _) => Err(other("it names no GGUF file")),
        (Some(_), Some(_)) => Err(other(
            "it names several GGUF files, of which no single one is the model",
        )),
    }
}

fn read(manifest: &Path) -> Result<Option<Vec<u8>>, SourceError> {
    let mut bytes = Vec::new();
    let read = File::open(manifest).and_then(|file| file.take(MANIFEST + 1).read_to_end(&mut bytes));
    read.map_err(|source| SourceError::Unreadable {
        path: manifest.to_path_buf(),
        source,
    })?;
    Ok((bytes.len() as u64 <= MANIFEST).then_some(bytes))
}

/// Returns the 64 digits of a digest, which form the name of a blob.
fn hash(digest: &str) -> Option<&str> {
    let digits = digest.strip_prefix("sha256:")?;
    let is_hash = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some(digits)
}

fn blob(store: &Path, hash: &str, size: Option<u64>, name: &str) -> Result<PathBuf, SourceError> {
    let blob = store.join("blobs").join(format!("sha256-{hash}"));
    let problem = match blob.metadata() {
        Ok(found) if !found.is_file() => "is no file".to_owned(),
        Ok(found) => match size.filter(|size| *size != found.len()) {
            None => return Ok(blob),
            Some(size) => format!("has {} bytes of {size}", found.len()),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => "is not there".to_owned(),
        Err(source) => return Err(SourceError::Unreadable { path: blob, source }),
    };
    Err(SourceError::Blob {
        name: name.to_owned(),
        blob,
        problem,
    })
}

/// Returns the beginning of an invalid value.
fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{} …, and no SHA-256", &text[..end]),
        None => format!("{text}, and no SHA-256"),
    }
}
