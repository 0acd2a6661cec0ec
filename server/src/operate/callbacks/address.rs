//! Addresses of callbacks.

use ureq::http::Uri;

/// The address of a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(super) url: String,
    /// The host with its port, for the log.
    pub(super) authority: String,
    pub(super) is_https: bool,
}

impl std::str::FromStr for Address {
    type Err = String;

    /// Parses `http://HOST[:PORT][/PATH]` or the same with https.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]".to_owned();
        let url: Uri = text.parse().map_err(|_| wrong())?;
        let (Some(scheme), Some(authority)) = (url.scheme_str(), url.authority()) else {
            return Err(wrong());
        };
        // A port that is no number of 16 bits is part of the authority, and neither of the host nor a port.
        let port = authority.port_u16();
        let whole = port.map_or_else(
            || authority.host().to_owned(),
            |port| format!("{}:{port}", authority.host()),
        );
        let is_plain = authority.as_str() == whole && !authority.host().is_empty();
        let is_http = matches!(scheme, "http" | "https");
        if !is_plain || !is_http || url.query().is_some() || text.contains(['#', '"', '\\']) {
            return Err(wrong());
        }
        Ok(Address {
            url: text.to_owned(),
            authority: whole,
            is_https: scheme == "https",
        })
    }
}
