//! Addresses of callbacks.

/// The address of a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) path: String,
    pub(super) is_https: bool,
}

impl std::str::FromStr for Address {
    type Err = String;

    /// Parses `http://HOST[:PORT][/PATH]` or the same with https.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]".to_owned();
        let (is_https, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err(wrong()),
        };
        let (authority, path) = match rest.find('/') {
            Some(place) => rest.split_at(place),
            None => (rest, "/"),
        };
        let ends_at = authority.rfind(']').map_or(0, |place| place + 1);
        let (host, port) = match authority[ends_at..].rfind(':') {
            Some(place) => authority.split_at(ends_at + place),
            None => (authority, if is_https { ":443" } else { ":80" }),
        };
        let port = port[1..].parse::<u16>().map_err(|_| wrong())?;
        let is_harmless = text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || !is_harmless || text.contains(['@', '#', '?', '"', '\\']) {
            return Err(wrong());
        }
        Ok(Address {
            host: host.to_owned(),
            port,
            path: path.to_owned(),
            is_https,
        })
    }
}
