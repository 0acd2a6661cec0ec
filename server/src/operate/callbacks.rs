//! Callbacks: programs of the operator that are asked about texts while they are written.
//!
//! A request names a callback, and the operator alone says what is behind the name: no request can make the
//! service contact another address. Redirects are not followed, and proxies not used.
//!
//! ```text
//!   sequences of a request ─► Desk: one question at a time, for all texts that wait ─► client, which keeps connections ─► host
//! ```
//!
//! A question is a POST. A connection that stays open for questions in both directions would save nothing:
//! the service asks, and the host answers.

mod address;
mod client;
mod desk;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;

pub use self::address::Address;
pub use self::desk::Desk;

/// The time after the deadline of a request within which a question ends. The request has ended by then.
const GRACE: Duration = Duration::from_secs(1);

/// A callback as the operator gives it: `NAME=URL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    name: String,
    address: Address,
}

impl std::str::FromStr for Allowed {
    type Err = String;

    /// Parses `NAME=URL`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, address) = text.split_once('=').ok_or("expected NAME=URL")?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
            return Err("expected a name of letters, digits, '_', '-' and '.' before =".to_owned());
        }
        Ok(Allowed {
            name: name.to_owned(),
            address: address.parse()?,
        })
    }
}

/// A host that can be asked.
#[derive(Debug)]
pub struct Host {
    address: Address,
    client: Agent,
    patience: Duration,
}

impl Host {
    /// Sends a body, and returns the body of the answer. Called on a thread that may wait.
    ///
    /// # Errors
    /// Fails with the reason, without the address, for clients.
    pub fn ask(&self, body: &str) -> Result<Vec<u8>, String> {
        client::post(&self.client, &self.address, body, self.patience + GRACE).map_err(
            |client::Failed(reason)| {
                tracing::warn!("the callback at {} failed: {reason}", self.address.authority);
                reason
            },
        )
    }
}

/// The callbacks that requests may name.
#[derive(Debug, Default)]
pub struct Callbacks {
    hosts: Vec<(String, Arc<Host>)>,
    patience: Duration,
}

impl Callbacks {
    /// Creates the callbacks, each of which may take this long for the tokens of a pass. `authorities` is a
    /// file of certificates in PEM, of those that certify hosts that are asked over HTTPS.
    ///
    /// # Errors
    /// Fails if two have the same name, if one is asked over HTTPS and there are no authorities, or if the
    /// file cannot be read.
    pub fn new(allowed: &[Allowed], patience: Duration, authorities: Option<&Path>) -> Result<Self, String> {
        let client = client::client(authorities).map_err(|error| error.to_string())?;
        let mut hosts: Vec<(String, Arc<Host>)> = Vec::with_capacity(allowed.len());
        for Allowed { name, address } in allowed {
            if hosts.iter().any(|(other, _)| other == name) {
                return Err(format!("two callbacks have the name {name}"));
            }
            if address.is_https && authorities.is_none() {
                let message = format!("the callback {name} is asked over HTTPS, which needs --callback-ca");
                return Err(message);
            }
            let host = Host {
                address: address.clone(),
                client: client.clone(),
                patience,
            };
            hosts.push((name.clone(), Arc::new(host)));
        }
        Ok(Callbacks { hosts, patience })
    }

    /// Returns the host behind a name.
    pub fn get(&self, name: &str) -> Option<&Arc<Host>> {
        let found = self.hosts.iter().find(|(other, _)| other == name);
        found.map(|(_, host)| host)
    }

    /// Returns the names of all callbacks.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|(name, _)| name.as_str())
    }

    /// Returns how long callbacks may take for the tokens of a pass.
    pub fn patience(&self) -> Duration {
        self.patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_has_a_name_and_an_address() {
        let read = |text: &str| text.parse::<Allowed>().ok();
        let address = |text: &str| {
            let Allowed { address, .. } = read(text)?;
            Some((address.url, address.authority, address.is_https))
        };
        let found = |url: &str, authority: &str, https| Some((url.to_owned(), authority.to_owned(), https));
        for (url, authority, is_https) in [
            ("http://127.0.0.1:9000/sql", "127.0.0.1:9000", false),
            ("https://db.internal", "db.internal", true),
            ("http://[::1]:8/x=y", "[::1]:8", false),
        ] {
            assert_eq!(
                address(&format!("a.b-c_1={url}")),
                found(url, authority, is_https)
            );
        }
        for wrong in [
            "",
            "a",
            "=http://h",
            "a b=http://h",
            "a=ftp://h",
            "a=http://",
            "a=http://:80",
            "a=http://h:port",
            "a=http://user@h",
            "a=http://h/\r\nx: y",
            "a=http://h/?q",
            "a=http://h:70000",
        ] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn names_are_unique_and_https_needs_authorities() {
        let new = |texts: &[&str]| {
            let allowed: Vec<Allowed> = texts
                .iter()
                .map(|text| text.parse().expect("a callback"))
                .collect();
            Callbacks::new(&allowed, Duration::from_secs(1), None)
        };
        assert!(new(&["a=http://h", "b=http://h"]).is_ok_and(|all| all.names().eq(["a", "b"])));
        assert!(new(&["a=http://h", "a=http://i"]).is_err());
        assert!(new(&["a=https://h"]).is_err_and(|error| error.contains("--callback-ca")));
    }
}
