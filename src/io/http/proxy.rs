//! Proxies of the environment: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, as curl and Go read them.
//!
//! Sources: <https://curl.se/docs/manpage.html#ENVIRONMENT>, <https://pkg.go.dev/golang.org/x/net/http/httpproxy>.

use std::{net::IpAddr, sync::OnceLock};

use reqwest::Url;

use super::is_loopback;

/// The proxies of an environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    http: Option<Url>,
    https: Option<Url>,
    exceptions: Vec<Exception>,
}

/// An entry of `NO_PROXY`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exception {
    /// `*`
    All,
    /// `10.0.0.0/8`, `192.0.2.1`: an address and the length of its prefix; the port if one is named.
    Network(IpAddr, u32, Option<u16>),
    /// `example.com`, `.example.com`, `*.example.com`: the domain and what is below it; the port if one is named.
    Domain(String, Option<u16>),
}

impl Proxies {
    /// Those of this process.
    pub(crate) fn of_environment() -> &'static Self {
        static PROXIES: OnceLock<Proxies> = OnceLock::new();
        #[expect(clippy::disallowed_methods, reason = "variables of every HTTP client, which are no flags of larder")]
        PROXIES.get_or_init(|| Self::new(|name| std::env::var(name).ok()))
    }

    fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| names.iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
        // A CGI program gets the request's header `Proxy` as HTTP_PROXY: <https://httpoxy.org/>.
        let cgi = variable("REQUEST_METHOD").is_some();
        let http = if cgi { first(&["http_proxy"]) } else { first(&["http_proxy", "HTTP_PROXY"]) };
        let https = first(&["https_proxy", "HTTPS_PROXY"]);
        let all = first(&["all_proxy", "ALL_PROXY"]);
        let address = |text: Option<String>| address(&text.or_else(|| all.clone())?);
        let exceptions = first(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
        let exceptions = exceptions.split([',', ' ']).filter_map(Exception::new).collect();
        Self { http: address(http), https: address(https), exceptions }
    }

    /// The proxy through which an address is asked.
    pub(crate) fn of(&self, url: &Url) -> Option<Url> {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default();
        if is_loopback(host) || self.exceptions.iter().any(|exception| exception.covers(host, port)) {
            return None;
        }
        if url.scheme() == "http" { self.http.clone() } else { self.https.clone() }
    }
}

/// The address of a proxy; without a scheme it is `http://`.
fn address(text: &str) -> Option<Url> {
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    with_scheme.parse().ok().filter(Url::has_host)
}

/// A proxy as it may be shown: without its login.
pub(crate) fn named(proxy: &Url) -> String {
    let host = proxy.host_str().unwrap_or_default();
    proxy.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

impl Exception {
    fn new(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        if text == "*" {
            return Some(Self::All);
        }
        if let Some((address, length)) = text.split_once('/') {
            let (address, length) = (address.parse().ok()?, length.parse().ok()?);
            return (length <= bits(address)).then_some(Self::Network(address, length, None));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port.parse().ok()?)),
            _ => (text.as_str(), None),
        };
        if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Some(Self::Network(address, bits(address), port));
        }
        let domain = host.strip_prefix("*").unwrap_or(host).trim_matches('.');
        (!domain.is_empty()).then(|| Self::Domain(domain.to_owned(), port))
    }

    fn covers(&self, host: &str, port: Option<u16>) -> bool {
        let same_port = |named: &Option<u16>| named.is_none() || *named == port;
        match self {
            Self::All => true,
            Self::Network(network, length, named) => {
                let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
                same_port(named) && address.is_ok_and(|address| is_in(address, *network, *length))
            }
            Self::Domain(domain, named) => {
                let host = host.trim_end_matches('.').to_ascii_lowercase();
                let below =
                    host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                same_port(named) && below
            }
        }
    }
}

fn bits(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_in(address: IpAddr, network: IpAddr, length: u32) -> bool {
    match (address.to_canonical(), network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            address.to_bits().checked_shr(32 - length) == network.to_bits().checked_shr(32 - length)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            address.to_bits().checked_shr(128 - length) == network.to_bits().checked_shr(128 - length)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::Proxies;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::new(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    fn via(proxies: &Proxies, url: &str) -> Option<String> {
        proxies.of(&url.parse().unwrap()).map(|proxy| proxy.to_string())
    }

    #[test]
    fn each_scheme_has_its_proxy() {
        let both = proxies(&[("HTTP_PROXY", "plain.example.com:3128"), ("https_proxy", "https://tls.example.com")]);
        assert_eq!(via(&both, "http://a.example.org").unwrap(), "http://plain.example.com:3128/");
        assert_eq!(via(&both, "https://a.example.org").unwrap(), "https://tls.example.com/");
        assert_eq!(via(&both, "http://127.0.0.1:5000"), None, "this machine");
        let all = proxies(&[("ALL_PROXY", "http://all.example.com"), ("HTTP_PROXY", "")]);
        assert_eq!(via(&all, "http://a.example.org").unwrap(), "http://all.example.com/");
        assert_eq!(via(&proxies(&[]), "https://a.example.org"), None);
        let cgi = proxies(&[("HTTP_PROXY", "http://evil.example.com"), ("REQUEST_METHOD", "GET")]);
        assert_eq!(via(&cgi, "http://a.example.org"), None);
    }

    #[test]
    fn exceptions_are_those_of_curl_and_go() {
        let cases = [
            ("reg.corp.example:5000", "http://reg.corp.example:5000", true),
            ("reg.corp.example:5000", "http://reg.corp.example:5001", false),
            ("reg.corp.example:443", "https://reg.corp.example", true),
            ("corp.example", "https://corp.example", true),
            ("corp.example", "https://reg.corp.example:5000", true),
            ("corp.example", "https://notcorp.example", false),
            (".corp.example", "https://reg.corp.example", true),
            ("*.corp.example", "https://reg.corp.example", true),
            ("CORP.example", "https://Reg.Corp.EXAMPLE", true),
            ("10.0.0.0/8", "http://10.200.3.4:5000", true),
            ("10.0.0.0/8", "http://11.0.0.1", false),
            ("0.0.0.0/0", "http://192.0.2.1", true),
            ("10.0.0.0/33", "http://10.0.0.1", false),
            ("192.0.2.7", "http://192.0.2.7", true),
            ("192.0.2.7:80", "http://192.0.2.7:8080", false),
            ("fd00::/8", "http://[fd12::1]:5000", true),
            ("[2001:db8::1]:5000", "http://[2001:db8::1]:5000", true),
            ("2001:db8::1", "http://[2001:db8::1]:5000", true),
            ("*", "https://quay.io", true),
            ("a.example, b.example", "https://b.example", true),
            ("", "https://quay.io", false),
            (",,.", "https://quay.io", false),
        ];
        for (exceptions, url, direct) in cases {
            let proxies = proxies(&[
                ("HTTP_PROXY", "http://proxy.example.com"),
                ("HTTPS_PROXY", "http://proxy.example.com"),
                ("NO_PROXY", exceptions),
            ]);
            assert_eq!(via(&proxies, url).is_none(), direct, "{exceptions} {url}");
        }
    }

    #[test]
    fn a_login_is_not_shown() {
        let proxies = proxies(&[("HTTPS_PROXY", "http://user:canary@proxy.example.com:3128")]);
        let proxy = proxies.of(&"https://quay.io".parse().unwrap()).unwrap();
        assert_eq!(super::named(&proxy), "proxy.example.com:3128");
    }
}
