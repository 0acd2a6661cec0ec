//! The addresses of clients, also of those whose requests come through proxies.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use actix_web::http::header::HeaderMap;
use lexiform_engine::Owner;

/// The number of bits of an IPv6 address that identify a client.
const CLIENT_BITS: u8 = 64;
/// The header in which a proxy appends the address of whoever asked it.
const FORWARDED: &str = "x-forwarded-for";

/// A proxy that is believed when it says for whom it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// The addresses whose first bits are those of this one.
    Network(IpAddr, u32),
    /// Whoever may open the socket file of the service.
    Socket,
}

/// The text is neither an address nor a network.
#[derive(Debug, thiserror::Error)]
#[error("'{0}' is neither an address, a network such as 10.0.0.0/8, nor 'unix' for a socket file")]
pub struct ProxyError(String);

impl FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        if text == "unix" {
            return Ok(Self::Socket);
        }
        let error = || ProxyError(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            None => (text, None),
            Some((address, bits)) => (address, Some(bits.parse::<u32>().map_err(|_| error())?)),
        };
        let address = address.parse::<IpAddr>().map_err(|_| error())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most {
            return Err(error());
        }
        Ok(Self::Network(address, bits))
    }
}

impl Proxy {
    /// Returns `true` if the peer of a connection is this proxy; a connection to a socket file has no
    /// address.
    fn is(self, peer: Option<IpAddr>) -> bool {
        match (self, peer) {
            (Self::Socket, None) => true,
            (Self::Network(IpAddr::V4(network), bits), Some(IpAddr::V4(peer))) => {
                (network.to_bits() ^ peer.to_bits()).leading_zeros() >= bits
            }
            (Self::Network(IpAddr::V6(network), bits), Some(IpAddr::V6(peer))) => {
                (network.to_bits() ^ peer.to_bits()).leading_zeros() >= bits
            }
            _ => false,
        }
    }
}

/// How the addresses of clients are found.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    proxies: Vec<Proxy>,
}

impl Clients {
    /// Creates a value that believes these proxies.
    pub fn behind(proxies: Vec<Proxy>) -> Self {
        Self { proxies }
    }

    /// Returns the address of the client of a request: the peer of its connection, or, as long as that is a
    /// proxy, the peer of the proxy. `None` is a peer on a socket file.
    pub fn address(&self, peer: Option<SocketAddr>, headers: &HeaderMap) -> Option<IpAddr> {
        let mut client = peer.map(|peer| peer.ip().to_canonical());
        // The last entry is that of the last proxy. What stands before the first entry of a stranger, that
        // stranger may have made up.
        let lines: Vec<&str> = headers
            .get_all(FORWARDED)
            .filter_map(|line| line.to_str().ok())
            .collect();
        let mut entries = lines.iter().rev().flat_map(|line| line.rsplit(','));
        while self.is_proxy(client) {
            match entries.next().and_then(|entry| parsed(entry.trim())) {
                None => break,
                Some(next) => client = Some(next),
            }
        }
        client
    }

    /// Returns the client of a request as an owner: its address or, of one of IPv6, its network, because a
    /// host may use all addresses of that.
    pub fn owner(&self, peer: Option<SocketAddr>, headers: &HeaderMap) -> Owner {
        let name = match self.address(peer, headers) {
            Some(IpAddr::V6(whole)) => {
                let network = u128::from(whole) >> (128 - CLIENT_BITS) << (128 - CLIENT_BITS);
                format!("{}/{CLIENT_BITS}", Ipv6Addr::from(network))
            }
            other => shown(other),
        };
        Some(name.into())
    }

    fn is_proxy(&self, peer: Option<IpAddr>) -> bool {
        self.proxies.iter().any(|proxy| proxy.is(peer))
    }
}

/// Returns the address of a client as the log has it.
pub fn shown(client: Option<IpAddr>) -> String {
    client.map_or_else(|| "unix".to_owned(), |address| address.to_string())
}

/// Reads an entry: an address, which some proxies write with its port or in brackets.
fn parsed(entry: &str) -> Option<IpAddr> {
    let bare = || entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let with_port = || Some(entry.parse::<SocketAddr>().ok()?.ip());
    let address: IpAddr = entry.parse().ok().or_else(bare).or_else(with_port)?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    fn address(proxies: &[&str], peer: &str, forwarded: &[&'static str]) -> String {
        let proxies = proxies.iter().map(|proxy| proxy.parse().expect("a proxy"));
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(HeaderName::from_static(FORWARDED), HeaderValue::from_static(line));
        }
        shown(Clients::behind(proxies.collect()).address(peer.parse().ok(), &headers))
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let peer = "10.0.0.7:5000";
        assert_eq!(address(&[], peer, &["1.2.3.4"]), "10.0.0.7");
        assert_eq!(address(&["10.0.0.8"], peer, &["1.2.3.4"]), "10.0.0.7");
        assert_eq!(address(&["10.0.0.0/8"], peer, &["1.2.3.4"]), "1.2.3.4");
        assert_eq!(address(&["10.0.0.7"], peer, &[]), "10.0.0.7");
    }

    /// Guards against clients that write the header themselves to be somebody else in the log.
    #[test]
    fn what_a_stranger_wrote_before_the_proxies_does_not_count() {
        let proxies = ["10.0.0.0/8"];
        for (forwarded, client) in [
            (&["6.6.6.6, 1.2.3.4"][..], "1.2.3.4"),
            (&["6.6.6.6", "1.2.3.4, 10.1.1.1"], "1.2.3.4"),
            (&["6.6.6.6, nonsense, 10.1.1.1"], "10.1.1.1"),
            (&["10.2.2.2,10.1.1.1"], "10.2.2.2"),
            (&[""], "10.0.0.7"),
        ] {
            assert_eq!(
                address(&proxies, "10.0.0.7:1", forwarded),
                client,
                "{forwarded:?}"
            );
        }
    }

    #[test]
    fn addresses_have_several_forms() {
        assert_eq!(
            address(&["10.0.0.7"], "[::ffff:10.0.0.7]:1", &["[2001:db8::1]:443"]),
            "2001:db8::1"
        );
        assert_eq!(
            address(&["fd00::/8"], "[fd12::1]:1", &["[2001:db8::2]"]),
            "2001:db8::2"
        );
        assert_eq!(address(&["fd00::/8"], "[fe00::1]:1", &["1.1.1.1"]), "fe00::1");
        assert_eq!(
            address(&["0.0.0.0/0"], "9.9.9.9:1", &["1.1.1.1:80, 2.2.2.2"]),
            "1.1.1.1"
        );
        assert_eq!(address(&["unix"], "", &["1.1.1.1"]), "1.1.1.1");
        assert_eq!(address(&["0.0.0.0/0"], "", &["1.1.1.1"]), "unix");
        assert_eq!(address(&["unix"], "10.0.0.7:1", &["1.1.1.1"]), "10.0.0.7");
    }

    #[test]
    fn a_client_of_ipv6_is_its_network() {
        for (peer, owner) in [
            ("[2001:db8:1:2::3]:1", "2001:db8:1:2::/64"),
            ("[2001:db8:1:2:ffff::9]:2", "2001:db8:1:2::/64"),
            ("[::ffff:1.2.3.4]:1", "1.2.3.4"),
            ("10.0.0.7:5000", "10.0.0.7"),
            ("", "unix"),
        ] {
            let found = Clients::default().owner(peer.parse().ok(), &HeaderMap::new());
            assert_eq!(found.as_deref(), Some(owner), "{peer}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused_with_what_it_may_be() {
        for wrong in [
            "",
            "proxy",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "::/129",
            "/8",
        ] {
            let error = wrong.parse::<Proxy>().expect_err(wrong);
            assert!(error.to_string().contains("10.0.0.0/8"), "{error}");
        }
    }
}
