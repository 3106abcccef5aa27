use std::fmt;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};

/// Where a server is: scheme, host, port, and the path that it is below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) is_tls: bool,
    /// Without the brackets of an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The authority, as a `Host` header has it.
    pub(crate) host_header: HeaderValue,
    /// Empty, or begins with a slash and does not end with one.
    base: String,
}

impl Server {
    /// Reads a URL. One without a scheme is taken for HTTPS if there is something to speak TLS with.
    pub(crate) fn parse(url: &str, prefers_tls: bool) -> Result<Self, String> {
        // Before the host there may be a password.
        let shown = url.rsplit_once('@').map_or(url, |(_, host)| host);
        let wrong = |why: &str| format!("server {shown:?}: {why}");
        let with_scheme = match url.contains("://") {
            true => url.to_owned(),
            false if prefers_tls => format!("https://{url}"),
            false => format!("http://{url}"),
        };
        let uri: Uri = with_scheme.parse().map_err(|_| wrong("this is no URL"))?;
        Self::of(&uri).ok_or_else(|| wrong("expected http:// or https:// and a host"))
    }

    /// The server of an absolute URI.
    pub(crate) fn of(uri: &Uri) -> Option<Self> {
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return None,
        };
        let authority = uri.authority()?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return None;
        }
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let base = uri.path().trim_end_matches('/').to_owned();
        Some(Self { is_tls, host, port, host_header: host_header(authority)?, base })
    }

    /// Whether it is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        address.map_or(self.host == "localhost", |address| address.is_loopback())
    }

    /// The same server, with paths from its root.
    pub(crate) fn without_path(self) -> Self {
        Self { base: String::new(), ..self }
    }

    /// A path with its query, below the path of the server.
    pub(crate) fn below(&self, uri: &Uri) -> Result<Uri, http::Error> {
        if self.base.is_empty() && uri.authority().is_none() {
            return Ok(uri.clone());
        }
        let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        Uri::builder().path_and_query(format!("{}{path}", self.base)).build()
    }

    /// The host, and the port behind a colon.
    pub(crate) fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Without the user that a URL may name.
fn host_header(authority: &Authority) -> Option<HeaderValue> {
    let host = authority.as_str();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    HeaderValue::from_str(host).ok()
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.host_header.to_str().unwrap_or(&self.host), self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_host_port_and_path() {
        for (url, printed, address) in [
            ("https://10.0.0.1", "https://10.0.0.1", "10.0.0.1:443"),
            ("https://10.0.0.1:6443/", "https://10.0.0.1:6443", "10.0.0.1:6443"),
            ("http://[::1]:8080", "http://[::1]:8080", "[::1]:8080"),
            (
                "https://user:pass@rancher/k8s/clusters/c-1/",
                "https://rancher/k8s/clusters/c-1",
                "rancher:443",
            ),
            ("localhost:8080", "http://localhost:8080", "localhost:8080"),
        ] {
            let server = Server::parse(url, false).unwrap();
            assert_eq!((server.to_string().as_str(), server.address().as_str()), (printed, address));
        }
        assert!(Server::parse("localhost:6443", true).unwrap().is_tls);
        for wrong in ["", "ftp://a", "https://", "https://a b", "ftp://jane:secret@a", "https://jane:secret@"]
        {
            let error = Server::parse(wrong, false).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn paths_are_below_the_path_of_the_server() {
        let below = |server: &str, path: &'static str| {
            Server::parse(server, true).unwrap().below(&Uri::from_static(path)).unwrap().to_string()
        };
        assert_eq!(below("https://a", "/api/v1/pods?watch=1"), "/api/v1/pods?watch=1");
        assert_eq!(below("https://a/k8s/", "/api/v1/pods?watch=1"), "/k8s/api/v1/pods?watch=1");
        assert_eq!(below("https://a/k8s", "https://b/version"), "/k8s/version");
    }
}
