//! The key file: its entries, and what can be wrong with it.

use figment::Provider;
use figment::value::{Dict, Value};
use serde::Deserialize;

use super::expiry;
use super::rights::Rights;

/// The reasons why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// The file cannot be read or is not a key file.
    #[error("the file of API keys: {0}")]
    Unreadable(#[from] Box<figment::Error>),
    /// The file has no keys. Without keys every request is allowed, which an operator who configures a key
    /// file does not want.
    #[error("the file of API keys has no key")]
    Empty,
    /// A hash is not valid.
    #[error("the file of API keys: the key '{name}' has no sha256 of 64 hexadecimal digits")]
    NoHash {
        /// The name of the key.
        name: String,
    },
    /// An entry, or the defaults of all, has a field that is not understood.
    #[error("the file of API keys: {entry}: {problem}")]
    Entry {
        /// The entry.
        entry: String,
        /// What is wrong with it, and what is right.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    #[serde(default)]
    defaults: Dict,
    keys: Vec<Dict>,
}

/// The fields of an entry that the defaults do not have.
#[derive(Deserialize)]
struct Identity {
    name: String,
    sha256: String,
    expires: Option<Value>,
}

const IDENTITY: [&str; 3] = ["name", "sha256", "expires"];

/// The limits and rights of a key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Policy {
    pub(super) requests_per_minute: Option<u32>,
    pub(super) tokens_per_minute: Option<u32>,
    pub(super) concurrent: Option<usize>,
    pub(super) rights: Rights,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PolicyFields {
    requests_per_minute: Option<u32>,
    tokens_per_minute: Option<u32>,
    concurrent: Option<usize>,
    models: Option<Vec<String>>,
    constraints: Option<Vec<String>>,
    laws: Option<Vec<String>>,
    searches: Option<Vec<String>>,
    operator: bool,
}

/// A key as the file describes it.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) hash: [u8; 32],
    /// The seconds after 1970 from which the key is refused.
    pub(super) expires: Option<u64>,
    pub(super) policy: Policy,
}

/// Reads a key file.
pub(super) fn read(source: impl Provider) -> Result<Vec<Entry>, KeysError> {
    let file = figment::Figment::from(source)
        .extract::<KeyFile>()
        .map_err(Box::new)?;
    // They are read by themselves, so that what is wrong with them is not said of every key.
    policy(&file.defaults, "the defaults")?;
    let entries: Vec<Entry> = file
        .keys
        .into_iter()
        .map(|fields| entry(fields, &file.defaults))
        .collect::<Result<_, _>>()?;
    if entries.is_empty() {
        return Err(KeysError::Empty);
    }
    Ok(entries)
}

fn entry(mut fields: Dict, defaults: &Dict) -> Result<Entry, KeysError> {
    let name = fields
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or("without a name");
    let shown = format!("the key '{name}'");
    let own = IDENTITY.iter().filter_map(|name| fields.remove_entry(*name));
    let identity: Identity = extracted(own.collect(), &shown)?;
    let expires = identity.expires.as_ref().map(|value| {
        expiry::read(value).map_err(|problem| KeysError::Entry {
            entry: shown.clone(),
            problem: format!("expires: {problem}"),
        })
    });
    for (name, value) in defaults {
        fields.entry(name.clone()).or_insert_with(|| value.clone());
    }
    Ok(Entry {
        hash: unhex(&identity.sha256).ok_or_else(|| KeysError::NoHash {
            name: identity.name.clone(),
        })?,
        expires: expires.transpose()?,
        policy: policy(&fields, &shown)?,
        name: identity.name,
    })
}

fn policy(fields: &Dict, entry: &str) -> Result<Policy, KeysError> {
    let fields: PolicyFields = extracted(fields.clone(), entry)?;
    let rights = Rights::new(fields.models, fields.constraints, fields.laws, fields.searches);
    Ok(Policy {
        requests_per_minute: fields.requests_per_minute,
        tokens_per_minute: fields.tokens_per_minute,
        concurrent: fields.concurrent,
        rights: rights
            .map_err(|problem| KeysError::Entry {
                entry: entry.to_owned(),
                problem,
            })?
            .of_operator(fields.operator),
    })
}

fn extracted<'de, T: Deserialize<'de>>(fields: Dict, entry: &str) -> Result<T, KeysError> {
    Value::from(fields)
        .deserialize()
        .map_err(|error| KeysError::Entry {
            entry: entry.to_owned(),
            problem: error.to_string(),
        })
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}
