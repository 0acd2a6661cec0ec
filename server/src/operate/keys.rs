//! Authentication and rate limits: API keys, of which only hashes are stored, and the limits of each.
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

/// The maximum length of a key that is hashed.
const KEY_BYTES: usize = 512;

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

/// A key with its remaining limits.
#[derive(Debug)]
pub struct Key {
    /// The name of the key.
    pub name: String,
    hash: [u8; 32],
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    concurrent: Option<usize>,
    running: AtomicUsize,
}

impl Keys {
    /// Reads a key file.
    ///
    /// # Errors
    /// Fails if the file is missing or is not a key file.
    pub fn read(path: &Path) -> Result<Self, KeysError> {
        use figment::providers::{Format as _, Toml};
        let read = figment::Figment::from(Toml::file_exact(path)).extract::<KeyFile>();
        Ok(Self {
            file: Some(path.to_owned()),
            ..Self::of(read.map_err(Box::new)?)?
        })
    }

    /// Reads the file again, and returns `true` if there is a file. Keys that are unchanged keep their
    /// remaining limits, and running requests continue in any case.
    ///
    /// # Errors
    /// Fails like [`read`](Self::read); the previous keys are kept.
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

    /// Reads keys from a text.
    ///
    /// # Errors
    /// Fails if it is not the text of a key file.
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

    /// Returns the key in the headers, as `authorization: Bearer KEY`; `None` if the server requires no keys.
    ///
    /// # Errors
    /// Fails if there is no key, or if it is unknown.
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
        // All keys are compared, each in constant time: the time that this takes reveals nothing about any of
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

/// Returns the key in the value of an `authorization` header. The name of the scheme is not case-sensitive
/// (RFC 9110, 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key)
}

impl Key {
    /// Returns `true` if both have the same key with the same limits.
    fn is_as(&self, other: &Self) -> bool {
        let limits = |key: &Self| {
            let limit = |bucket: &Option<Bucket>| bucket.as_ref().map(|bucket| bucket.per_minute);
            (limit(&key.requests), limit(&key.tokens), key.concurrent)
        };
        self.name == other.name && self.hash == other.hash && limits(self) == limits(other)
    }

    /// Takes one request from the key's limits. The request counts as running until the permit is dropped.
    ///
    /// # Errors
    /// Fails if a limit is reached.
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

    /// Subtracts the tokens that a request used.
    pub fn spend(&self, tokens: usize) {
        if let Some(bucket) = &self.tokens {
            bucket.spend(tokens as f64);
        }
    }

    /// Returns the limit of requests per minute, and the number left.
    pub fn requests_left(&self) -> Option<(u32, u32)> {
        self.requests.as_ref().map(Bucket::told)
    }

    /// Returns the limit of tokens per minute, and the number left.
    pub fn tokens_left(&self) -> Option<(u32, u32)> {
        self.tokens.as_ref().map(Bucket::told)
    }
}

/// A running request of a key.
#[derive(Debug)]
pub struct Permit(Arc<Key>);

impl Permit {
    /// Returns the key of the request.
    pub fn key(&self) -> &Key {
        &self.0
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A token bucket that refills evenly, up to the amount per minute.
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

    /// Returns the amount per minute, and the amount left.
    fn told(&self) -> (u32, u32) {
        (self.per_minute, self.left().max(0.0) as u32)
    }

    /// Takes this amount, or returns the seconds until it is available.
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

    /// Takes this amount even if it is not available: it was already used and cannot be refused.
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

/// Returns the hash of a key, in the form of the key file.
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

    /// Guards against limits that a signal resets, and keys that remain valid after their line was removed.
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
