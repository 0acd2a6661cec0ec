//! The address of a client: that of its connection or, behind proxies that the operator trusts, the one that
//! the proxies report.
//!
//! ```text
//!   client ─► proxy ─► proxy ─► here     X-Forwarded-For: (what the client claims,) client, proxy
//!                                        read from its end, as far as the addresses are of trusted proxies
//! ```

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use actix_web::http::header::{HeaderMap, X_FORWARDED_FOR};
use lexiform_engine::Owner;
use thiserror::Error;

/// The number of bits of an IPv6 address that identify a client: a host has all addresses of such a network.
const CLIENT_BITS: u8 = 64;

/// The addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// A text that is no address and no network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is neither an address, as 10.0.0.7 or fd00::7, nor a network, as 10.0.0.0/8 or fd00::/8")]
pub struct NotANetwork(String);

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let problem = || NotANetwork(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| problem())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| problem())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        match bits <= most {
            true => Ok(Network { address, bits }),
            false => Err(problem()),
        }
    }
}

impl Network {
    /// Returns `true` if an address belongs to the network.
    fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differing = u32::from(own) ^ u32::from(other);
                differing.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differing = u128::from(own) ^ u128::from(other);
                differing.leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }
}

/// The proxies whose reports of addresses are believed.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    trusted: Vec<Network>,
}

impl Proxies {
    /// Creates the proxies of these networks.
    pub fn new(trusted: Vec<Network>) -> Self {
        Self { trusted }
    }

    /// Returns the client of a request from this peer, as an owner.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> Owner {
        Some(named(self.address(peer, headers)))
    }

    /// Returns the last address of the way that no trusted proxy has. What comes before it was written by a
    /// stranger. An entry that is no address ends the way: then the proxy that reported it is the client.
    fn address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut address = peer.to_canonical();
        let lines: Vec<&str> = headers
            .get_all(X_FORWARDED_FOR)
            .map(|line| line.to_str().unwrap_or_default())
            .collect();
        let mut reported = lines.iter().rev().flat_map(|line| line.rsplit(','));
        while self.trusts(address) {
            match reported.next().and_then(read) {
                Some(before) => address = before.to_canonical(),
                None => break,
            }
        }
        address
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(address))
    }
}

/// Reads an address, perhaps with a port, as `10.0.0.7`, `10.0.0.7:80`, `fd00::7` or `[fd00::7]:80`.
fn read(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim();
    let bare = entry.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    if let Some((address, _port)) = bare {
        return address.parse::<Ipv6Addr>().ok().map(IpAddr::from);
    }
    let with_port = || entry.parse::<std::net::SocketAddr>().ok();
    entry
        .parse()
        .ok()
        .or_else(|| with_port().map(|address| address.ip()))
}

/// Returns the name of the client at an address: the address or, of one of IPv6, its network.
fn named(address: IpAddr) -> Arc<str> {
    match address {
        IpAddr::V4(_) => address.to_string().into(),
        IpAddr::V6(whole) => {
            let network = u128::from(whole) >> (128 - CLIENT_BITS) << (128 - CLIENT_BITS);
            format!("{}/{CLIENT_BITS}", Ipv6Addr::from(network)).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

    fn client(trusted: &[&str], peer: &str, lines: &[&str]) -> String {
        let networks = trusted.iter().map(|text| text.parse().expect("a network"));
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_str(line).expect("a value"));
        }
        let peer = peer.parse().expect("an address");
        let owner = Proxies::new(networks.collect()).client(peer, &headers);
        owner.expect("a client").to_string()
    }

    /// Guards against clients that choose their own names, and so as many places as they like.
    #[test]
    fn a_report_counts_only_from_a_trusted_proxy() {
        let (near, far) = ("10.0.0.1", "10.9.0.1");
        let cases: [(&[&str], &str, &[&str], &str); 14] = [
            (&[], "7.7.7.7", &["1.2.3.4"], "7.7.7.7"),
            (&[near], "7.7.7.7", &["1.2.3.4"], "7.7.7.7"),
            (&[near], near, &["1.2.3.4"], "1.2.3.4"),
            (&[near], near, &[], near),
            // The client claims the first one.
            (&[near], near, &["9.9.9.9, 1.2.3.4"], "1.2.3.4"),
            (&[near], near, &["9.9.9.9", "1.2.3.4"], "1.2.3.4"),
            (&["10.0.0.0/8"], near, &["9.9.9.9, 1.2.3.4, 10.9.0.1"], "1.2.3.4"),
            (&[near], near, &["1.2.3.4, 10.9.0.1"], far),
            (&["10.0.0.0/8"], near, &["10.5.5.5"], "10.5.5.5"),
            (&[near], near, &["1.2.3.4:5678"], "1.2.3.4"),
            (&[near], near, &["unknown"], near),
            (&[near], near, &["1.2.3.4, unknown"], near),
            (&[near], near, &["1.2.3.4,"], near),
            (&["0.0.0.0/0"], near, &["1.2.3.4"], "1.2.3.4"),
        ];
        for (trusted, peer, lines, wanted) in cases {
            assert_eq!(
                client(trusted, peer, lines),
                wanted,
                "{trusted:?} {peer} {lines:?}"
            );
        }
    }

    #[test]
    fn a_client_of_ipv6_is_its_network() {
        let proxy = "fd00::1";
        let cases: [(&str, &[&str], &str); 6] = [
            ("2001:db8:1:2::3", &[], "2001:db8:1:2::/64"),
            ("2001:db8:1:2:ffff::9", &[], "2001:db8:1:2::/64"),
            ("::ffff:1.2.3.4", &[], "1.2.3.4"),
            (proxy, &["2001:db8:1:2::3"], "2001:db8:1:2::/64"),
            (proxy, &["[2001:db8:1:2::3]:80"], "2001:db8:1:2::/64"),
            (proxy, &["[2001:db8:1:2::3]"], "2001:db8:1:2::/64"),
        ];
        for (peer, lines, wanted) in cases {
            assert_eq!(client(&[proxy], peer, lines), wanted, "{peer} {lines:?}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "proxy",
            "10.0.0.0/33",
            "fd00::/129",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "10.0.0.1:80",
        ] {
            assert_eq!(
                text.parse::<Network>(),
                Err(NotANetwork(text.to_owned())),
                "{text}"
            );
        }
    }
}
