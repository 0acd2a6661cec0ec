//! Who may ask, and how much: API keys, of which only hashes are kept, and the limits of each.
//!
//! ```toml
//! [[keys]]
//! name = "shop"                      # what logs and the audit call it
//! sha256 = "9f86d081884c7d65…"       # of the key itself; `lexiform key` makes both
//! requests_per_minute = 60           # each limit may be left out
//! tokens_per_minute = 100000
//! concurrent = 8
//! ```

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::operate::digest::sha256;
use crate::wire::error::ApiError;

/// The longest key that is hashed.
const KEY_BYTES: usize = 512;

/// Why a file of keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// It cannot be read or is no such file.
    #[error("the file of API keys: {0}")]
    Unreadable(#[from] Box<figment::Error>),
    /// There is nothing in it. Without keys everybody may ask, and nobody means that who names a file of
    /// keys.
    #[error("the file of API keys has no key")]
    Empty,
    /// A hash is not one.
    #[error("the file of API keys: the key '{name}' has no sha256 of 64 hexadecimal digits")]
    NoHash {
        /// The key's name.
        name: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    keys: Vec<KeyEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    name: String,
    sha256: String,
    requests_per_minute: Option<u32>,
    tokens_per_minute: Option<u32>,
    concurrent: Option<usize>,
}

/// All keys.
#[derive(Debug, Default)]
pub struct Keys {
    file: Option<PathBuf>,
    current: RwLock<Vec<Arc<Key>>>,
}

/// A key and what its owner has left.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: String,
    hash: [u8; 32],
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    concurrent: Option<usize>,
    running: AtomicUsize,
}

impl Keys {
    /// Reads a file of keys.
    ///
    /// # Errors
    /// It is missing or not such a file.
    pub fn read(path: &Path) -> Result<Self, KeysError> {
        use figment::providers::{Format as _, Toml};
        let read = figment::Figment::from(Toml::file_exact(path)).extract::<KeyFile>();
        Ok(Self {
            file: Some(path.to_owned()),
            ..Self::of(read.map_err(Box::new)?)?
        })
    }

    /// Reads the file again; whether there is one. Keys that stand there as before go on with what they have
    /// left, and requests that run go on in any case.
    ///
    /// # Errors
    /// As of [`read`](Self::read); the keys from before stay.
    pub fn read_again(&self) -> Result<bool, KeysError> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        let mut fresh = Self::read(file)?.now();
        for key in &mut fresh {
            if let Some(known) = self.now().iter().find(|known| known.is_as(key)) {
                key.clone_from(known);
            }
        }
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(true)
    }

    fn now(&self) -> Vec<Arc<Key>> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The same from a text.
    ///
    /// # Errors
    /// It is not such a file.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        use figment::providers::{Format as _, Toml};
        let file = figment::Figment::from(Toml::string(text)).extract::<KeyFile>();
        Self::of(file.map_err(Box::new)?)
    }

    fn of(file: KeyFile) -> Result<Self, KeysError> {
        let key = |entry: KeyEntry| {
            let Some(hash) = unhex(&entry.sha256) else {
                return Err(KeysError::NoHash { name: entry.name });
            };
            Ok(Arc::new(Key {
                name: entry.name,
                hash,
                requests: entry.requests_per_minute.map(Bucket::new),
                tokens: entry.tokens_per_minute.map(Bucket::new),
                concurrent: entry.concurrent,
                running: AtomicUsize::new(0),
            }))
        };
        let keys: Vec<_> = file.keys.into_iter().map(key).collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(KeysError::Empty);
        }
        Ok(Self {
            file: None,
            current: RwLock::new(keys),
        })
    }

    /// Whose key the headers carry, as `authorization: Bearer KEY`; `None` where no keys are asked for.
    ///
    /// # Errors
    /// There is no key, or it is not one of ours.
    pub fn check(&self, headers: &HeaderMap) -> Result<Option<Arc<Key>>, ApiError> {
        let keys = self.current.read().unwrap_or_else(PoisonError::into_inner);
        if keys.is_empty() {
            return Ok(None);
        }
        let sent = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(bearer)
            .filter(|key| key.len() <= KEY_BYTES);
        let Some(sent) = sent else {
            return Err(ApiError::unauthorized(
                "Send your API key as 'authorization: Bearer KEY'.",
            ));
        };
        let hash: [u8; 32] = Sha256::digest(sent.trim().as_bytes()).into();
        // Every key is compared, and each in constant time: how long this takes tells nothing about any of
        // them.
        let mut found = None;
        for key in keys.iter() {
            if bool::from(key.hash.ct_eq(&hash)) {
                found = Some(key);
            }
        }
        found
            .cloned()
            .map(Some)
            .ok_or_else(|| ApiError::unauthorized("Unknown API key."))
    }
}

/// The key in the value of an `authorization` header. The name of the scheme may be written in any case (RFC
/// 9110, 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key)
}

impl Key {
    /// Whether the other says the same of the same key.
    fn is_as(&self, other: &Self) -> bool {
        let limits = |key: &Self| {
            let limit = |bucket: &Option<Bucket>| bucket.as_ref().map(|bucket| bucket.per_minute);
            (limit(&key.requests), limit(&key.tokens), key.concurrent)
        };
        self.name == other.name && self.hash == other.hash && limits(self) == limits(other)
    }

    /// Takes one request from what the owner has left. It runs until the permit is dropped.
    ///
    /// # Errors
    /// A limit is reached.
    pub fn admit(self: &Arc<Self>) -> Result<Permit, ApiError> {
        if let Some(wait) = self.tokens.as_ref().and_then(|bucket| bucket.empty_for()) {
            return Err(ApiError::rate_limit("tokens per minute", wait));
        }
        let limit = self.concurrent.unwrap_or(usize::MAX);
        let more = |running: usize| (running < limit).then_some(running + 1);
        self.running
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
            .map_err(|_| ApiError::rate_limit("concurrent requests", 1.0))?;
        let permit = Permit(self.clone());
        match self.requests.as_ref().map_or(Ok(()), |bucket| bucket.take(1.0)) {
            Ok(()) => Ok(permit),
            Err(wait) => Err(ApiError::rate_limit("requests per minute", wait)),
        }
    }

    /// Counts tokens that a request used.
    pub fn spend(&self, tokens: usize) {
        if let Some(bucket) = &self.tokens {
            bucket.spend(tokens as f64);
        }
    }

    /// The limit of requests per minute and how many are left.
    pub fn requests_left(&self) -> Option<(u32, u32)> {
        self.requests.as_ref().map(Bucket::told)
    }

    /// The limit of tokens per minute and how many are left.
    pub fn tokens_left(&self) -> Option<(u32, u32)> {
        self.tokens.as_ref().map(Bucket::told)
    }
}

/// A running request of a key.
#[derive(Debug)]
pub struct Permit(Arc<Key>);

impl Permit {
    /// Whose it is.
    pub fn key(&self) -> &Key {
        &self.0
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Fills evenly, up to what a minute brings.
#[derive(Debug)]
struct Bucket {
    per_minute: u32,
    state: Mutex<(f64, Instant)>,
}

impl Bucket {
    fn new(per_minute: u32) -> Self {
        Self {
            per_minute,
            state: Mutex::new((f64::from(per_minute), Instant::now())),
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut f64) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, since) = *state;
        let most = f64::from(self.per_minute);
        let mut now = (left + since.elapsed().as_secs_f64() * most / 60.0).min(most);
        let result = change(&mut now);
        *state = (now, Instant::now());
        result
    }

    fn left(&self) -> f64 {
        self.with(|left| *left)
    }

    /// What a minute brings, and what is left of it.
    fn told(&self) -> (u32, u32) {
        (self.per_minute, self.left().max(0.0) as u32)
    }

    /// Takes this much, or says after how many seconds it is there.
    fn take(&self, amount: f64) -> Result<(), f64> {
        self.with(|left| {
            if *left >= amount {
                *left -= amount;
                Ok(())
            } else {
                Err(self.seconds(amount - *left))
            }
        })
    }

    /// Takes this much even if it is not there: what was used cannot be refused any more.
    fn spend(&self, amount: f64) {
        self.with(|left| *left -= amount);
    }

    fn empty_for(&self) -> Option<f64> {
        let left = self.left();
        (left <= 0.0).then(|| self.seconds(1.0 - left))
    }

    fn seconds(&self, missing: f64) -> f64 {
        missing * 60.0 / f64::from(self.per_minute.max(1))
    }
}

/// The hash of a key, as the file of keys has it.
pub fn hashed(key: &str) -> String {
    sha256(key.as_bytes())
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

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

    fn keys(more: &str) -> Keys {
        let text = format!(
            "[[keys]]\nname = \"a\"\nsha256 = \"{}\"\n{more}",
            hashed("secret")
        );
        Keys::parse(&text).expect("a file of keys")
    }

    fn headers(value: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
        headers
    }

    #[test]
    fn only_the_whole_key_opens() {
        let keys = keys("");
        assert_eq!(
            keys.check(&headers("Bearer secret"))
                .ok()
                .flatten()
                .map(|key| key.name.clone()),
            Some("a".to_owned())
        );
        for right in ["bearer secret", "BEARER secret", "Bearer  secret"] {
            assert!(keys.check(&headers(right)).is_ok(), "{right}");
        }
        for wrong in [
            "Bearer secre",
            "Bearer secrets",
            "Bearer ",
            "Bearer",
            "Bearersecret",
            "secret",
            "Basic secret",
        ] {
            assert_eq!(
                keys.check(&headers(wrong)).expect_err(wrong).status().as_u16(),
                401
            );
        }
        assert_eq!(
            keys.check(&HeaderMap::new()).expect_err("none").status().as_u16(),
            401
        );
    }

    #[test]
    fn each_limit_holds_and_says_when_to_come_back() {
        let busy = keys("concurrent = 1");
        let first = busy.now()[0].admit().expect("the first");
        assert_eq!(
            busy.now()[0].admit().expect_err("the second").code(),
            "rate_limit_exceeded"
        );
        drop(first);
        assert!(busy.now()[0].admit().is_ok());
        let often = keys("requests_per_minute = 2");
        assert!(often.now()[0].admit().is_ok() && often.now()[0].admit().is_ok());
        let refused = often.now()[0].admit().expect_err("the third");
        assert_eq!(refused.status().as_u16(), 429);
        let wordy = keys("tokens_per_minute = 10");
        assert!(wordy.now()[0].admit().is_ok());
        wordy.now()[0].spend(1000);
        assert!(wordy.now()[0].admit().is_err());
    }

    /// Guards against limits that a signal gives back, and keys that outlive their line in the file.
    #[test]
    fn read_again_new_keys_open_old_ones_do_not_and_limits_go_on() {
        let path = std::env::temp_dir().join(format!("lexiform-keys-{}.toml", std::process::id()));
        let write = |entries: &[(&str, &str, u32)]| {
            let entry = |(name, key, limit): &(&str, &str, u32)| {
                let hash = hashed(key);
                format!("[[keys]]\nname = \"{name}\"\nsha256 = \"{hash}\"\nrequests_per_minute = {limit}\n")
            };
            std::fs::write(&path, entries.iter().map(entry).collect::<String>()).expect("a file");
        };
        write(&[("a", "secret", 1), ("b", "old", 1)]);
        let keys = Keys::read(&path).expect("keys");
        let opens = |value| keys.check(&headers(value)).ok().flatten();
        assert!(opens("Bearer secret").expect("a").admit().is_ok());
        let running = opens("Bearer old").expect("b").admit();
        write(&[("c", "new", 5), ("a", "secret", 1)]);
        assert!(keys.read_again().expect("keys"));
        assert!(opens("Bearer new").is_some() && opens("Bearer old").is_none());
        assert!(
            opens("Bearer secret").expect("a").admit().is_err(),
            "it had one a minute"
        );
        drop(running);
        std::fs::write(&path, "keys = []").expect("a file");
        assert!(matches!(keys.read_again(), Err(KeysError::Empty)));
        assert!(opens("Bearer new").is_some(), "what is broken changes nothing");
        std::fs::remove_file(&path).expect("the file is there");
        assert!(keys.read_again().is_err() && opens("Bearer nothing").is_none());
        assert!(!Keys::default().read_again().expect("no file"));
    }

    #[test]
    fn a_file_that_is_not_understood_opens_nothing() {
        for wrong in [
            "keys = 3",
            "keys = []",
            "",
            "[[keys]]\nname = \"a\"\nsha256 = \"zz\"",
            "[[keys]]\nname = \"a\"\nkey = \"secret\"",
        ] {
            assert!(Keys::parse(wrong).is_err(), "{wrong}");
        }
    }
}
