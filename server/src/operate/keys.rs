//! Authentication and rate limits: API keys, of which only hashes are stored, and the limits of each.
//!
//! ```toml
//! [defaults]                         # for keys that do not say otherwise; everything may be left out
//! concurrent = 16
//!
//! [[keys]]
//! name = "shop"                      # what logs and the audit call it
//! sha256 = "9f86d081884c7d65…"       # of the key itself; `lexiform key` makes both
//! expires = 2027-01-31               # the key is refused from then on
//! requests_per_minute = 60
//! tokens_per_minute = 100000
//! concurrent = 8
//! models = ["qwen3-0.6b"]            # what it may ask for; without a list, everything
//! constraints = ["json_schema", "choice"]
//! laws = ["local"]
//! searches = []
//! operator = true                    # it may load and unload models
//! ```

mod bucket;
mod expiry;
mod file;
mod rights;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use figment::providers::{Format as _, Toml};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::operate::digest::sha256;
use crate::operate::random::now;
use crate::wire::error::ApiError;
use bucket::Bucket;
use file::Entry;
pub use file::KeysError;
pub use rights::Rights;

/// The maximum length of a key that is hashed.
const KEY_BYTES: usize = 512;

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
    /// What requests with the key may ask for.
    pub rights: Arc<Rights>,
    hash: [u8; 32],
    expires: Option<u64>,
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
        Ok(Self {
            file: Some(path.to_owned()),
            ..Self::of(file::read(Toml::file_exact(path))?)
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
        Ok(Self::of(file::read(Toml::string(text))?))
    }

    fn of(entries: Vec<Entry>) -> Self {
        let key = |entry: Entry| {
            Arc::new(Key {
                name: entry.name,
                hash: entry.hash,
                expires: entry.expires,
                requests: entry.policy.requests_per_minute.map(Bucket::new),
                tokens: entry.policy.tokens_per_minute.map(Bucket::new),
                concurrent: entry.policy.concurrent,
                rights: Arc::new(entry.policy.rights),
                running: AtomicUsize::new(0),
            })
        };
        Self {
            file: None,
            current: RwLock::new(entries.into_iter().map(key).collect()),
        }
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
        let mut sent = headers.get_all(AUTHORIZATION);
        let (first, second) = (sent.next(), sent.next());
        if second.is_some() {
            // A proxy and this server might otherwise believe different ones.
            return Err(ApiError::unauthorized(
                "Send your API key in one 'authorization' header, not in several.",
            ));
        }
        let sent = first
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
        match found {
            None => Err(ApiError::unauthorized("Unknown API key.")),
            Some(key) if key.is_expired(now()) => Err(ApiError::key_expired()),
            Some(key) => Ok(Some(key.clone())),
        }
    }
}

/// Returns the key in the value of an `authorization` header. The name of the scheme is not case-sensitive
/// (RFC 9110, 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key)
}

impl Key {
    /// Returns `true` if both have the same key with the same limits and rights.
    fn is_as(&self, other: &Self) -> bool {
        let of = |key: &Self| {
            let limit = |bucket: &Option<Bucket>| bucket.as_ref().map(|bucket| bucket.per_minute);
            let limits = (limit(&key.requests), limit(&key.tokens), key.concurrent);
            (
                key.name.clone(),
                key.hash,
                key.expires,
                limits,
                key.rights.clone(),
            )
        };
        of(self) == of(other)
    }

    /// Returns `true` if the key is not valid any more, this many seconds after 1970.
    fn is_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
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

/// Returns the hash of a key, in the form of the key file.
pub fn hashed(key: &str) -> String {
    sha256(key.as_bytes())
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
        let mut twice = headers("Bearer secret");
        twice.append(AUTHORIZATION, HeaderValue::from_static("Bearer secret"));
        let refused = keys.check(&twice).expect_err("two keys");
        assert!(
            refused.status() == 401 && refused.to_string().contains("one 'authorization' header"),
            "{refused}"
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
    fn a_key_is_valid_until_it_expires() {
        for (expires, is_valid) in [("2020-01-01", false), ("9999-01-01T00:00:00Z", true)] {
            let keys = keys(&format!("expires = {expires}"));
            let checked = keys.check(&headers("Bearer secret"));
            assert_eq!(checked.is_ok(), is_valid, "{expires}");
            if let Err(error) = checked {
                assert_eq!((error.status().as_u16(), error.code()), (401, "expired_api_key"));
            }
        }
        let key = keys("expires = 1970-01-02").now()[0].clone();
        assert!(!key.is_expired(86_399) && key.is_expired(86_400));
    }

    #[test]
    fn keys_without_limits_have_those_of_all() {
        let two = |name: &str, more: &str| {
            format!(
                "[[keys]]\nname = \"{name}\"\nsha256 = \"{}\"\n{more}",
                hashed(name)
            )
        };
        let text = format!(
            "[defaults]\nconcurrent = 1\nlaws = [\"local\"]\n{}{}",
            two("a", ""),
            two("b", "concurrent = 2\n")
        );
        let keys = Keys::parse(&text).expect("a file of keys").now();
        let taken = |key: &Arc<Key>| (0..3).map_while(|_| key.admit().ok()).collect::<Vec<_>>().len();
        assert_eq!((taken(&keys[0]), taken(&keys[1])), (1, 2));
        assert!(keys.iter().all(|key| key.rights.law("mcmc").is_err()));
    }

    #[test]
    fn a_file_that_is_not_understood_opens_nothing() {
        for wrong in [
            "keys = 3",
            "keys = []",
            "",
            "[[keys]]\nname = \"a\"\nsha256 = \"zz\"",
            "[[keys]]\nname = \"a\"\nkey = \"secret\"",
            "[defaults]\nconcurrent = 1",
        ] {
            assert!(Keys::parse(wrong).is_err(), "{wrong}");
        }
        let entry = |more: &str| format!("[[keys]]\nname = \"shop\"\nsha256 = \"{}\"\n{more}", hashed("x"));
        for (more, named) in [
            ("laws = [\"locl\"]", "shop|laws|locl|local, global"),
            ("searches = [\"all\"]", "shop|searches|all|beam"),
            ("constraints = [\"json\"]", "shop|constraints|json_schema"),
            ("models = \"one\"", "shop|sequence"),
            ("concurent = 3", "shop|concurent|concurrent"),
            ("expires = \"soon\"", "shop|expires|soon|2027-01-31"),
            ("expires = 3", "shop|expires|2027-01-31"),
        ] {
            let error = Keys::parse(&entry(more)).expect_err(more).to_string();
            assert!(named.split('|').all(|word| error.contains(word)), "{error}");
        }
        let defaults = format!("[defaults]\nname = \"a\"\n{}", entry(""));
        assert!(
            Keys::parse(&defaults)
                .expect_err("a name")
                .to_string()
                .contains("defaults")
        );
    }
}
