//! From where an address can be reached, and what a server may redirect to.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Why an address that a server named is not asked.
pub(crate) const PRIVATE: &str = "it leads into a private network that the host is not part of itself";

/// From where an address can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reach {
    /// From anywhere.
    Public,
    /// From the same private network.
    Private,
    /// From the same link; cloud providers keep their metadata services there.
    LinkLocal,
    /// From this machine.
    Loopback,
}

impl Reach {
    /// That of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() || address.is_unspecified() => Self::Loopback,
            IpAddr::V4(address) if address.is_link_local() => Self::LinkLocal,
            IpAddr::V6(address) if address.is_unicast_link_local() => Self::LinkLocal,
            // RFC 6598 (carrier-grade NAT), which cloud providers use inside as well.
            IpAddr::V4(address) if address.is_private() || matches!(address.octets(), [100, 64..=127, ..]) => {
                Self::Private
            }
            IpAddr::V6(address) if address.is_unique_local() => Self::Private,
            _ => Self::Public,
        }
    }

    /// Whether a server that is here may redirect there.
    pub(crate) fn may_lead_to(self, target: Self) -> bool {
        target == Self::Public || target == self || (self == Self::Loopback && target == Self::Private)
    }
}

/// That of a host that is written as an address, or is `localhost` or below it; none for other names.
pub(crate) fn of_host(host: &str) -> Option<Reach> {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    let lower = host.to_ascii_lowercase();
    if lower == "localhost" || lower.ends_with(".localhost") {
        return Some(Reach::Loopback);
    }
    host.parse().ok().map(Reach::of)
}

/// Resolves names to addresses that a server which is here may redirect to, and to no others.
pub(crate) struct Public(pub(crate) Reach);

impl Resolve for Public {
    fn resolve(&self, name: Name) -> Resolving {
        let from = self.0;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let count = found.len();
            let allowed: Vec<SocketAddr> =
                found.into_iter().filter(|address| from.may_lead_to(Reach::of(address.ip()))).collect();
            if allowed.is_empty() && count > 0 {
                return Err(PRIVATE.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Reach, of_host};

    #[test]
    fn hosts_have_a_reach() {
        use Reach::{LinkLocal, Loopback, Private, Public};
        for (host, expected) in [
            ("127.0.0.1", Some(Loopback)),
            ("127.8.8.8", Some(Loopback)),
            ("[::1]", Some(Loopback)),
            ("[::ffff:127.0.0.1]", Some(Loopback)),
            ("0.0.0.0", Some(Loopback)),
            ("LOCALHOST", Some(Loopback)),
            ("app.localhost.", Some(Loopback)),
            ("169.254.169.254", Some(LinkLocal)),
            ("[fe80::1]", Some(LinkLocal)),
            ("10.1.2.3", Some(Private)),
            ("172.31.0.1", Some(Private)),
            ("192.168.1.1", Some(Private)),
            ("100.100.0.1", Some(Private)),
            ("[fd00::1]", Some(Private)),
            ("192.0.2.1", Some(Public)),
            ("[2001:db8::1]", Some(Public)),
            ("registry.example.com", None),
        ] {
            assert_eq!(of_host(host), expected, "{host}");
        }
    }

    #[test]
    fn a_server_leads_no_further_in_than_it_is_itself() {
        use Reach::{LinkLocal, Loopback, Private, Public};
        for (from, allowed) in [
            (Public, &[Public][..]),
            (Private, &[Public, Private]),
            (LinkLocal, &[Public, LinkLocal]),
            (Loopback, &[Public, Private, Loopback]),
        ] {
            for target in [Public, Private, LinkLocal, Loopback] {
                assert_eq!(from.may_lead_to(target), allowed.contains(&target), "{from:?} {target:?}");
            }
        }
    }
}
