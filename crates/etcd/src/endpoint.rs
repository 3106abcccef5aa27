//! Where etcd listens.

use http::uri::Authority;

use crate::error::Error;

/// A member's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) tls: bool,
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// As it is sent.
    pub(crate) authority: Authority,
}

/// etcd's usual port for clients.
const PORT: u16 = 2379;

impl Endpoint {
    /// Reads `https://host:2379`, `http://host` or `host:port`.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let (tls, rest) = match text.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            None => (false, text),
            Some(_) => return Err(wrong(text, "expected http:// or https://")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains('@') {
            return Err(wrong(text, "credentials do not belong here: set user and password_file"));
        }
        let authority: Authority = rest.parse().map_err(|_| wrong(text, "expected host:port"))?;
        if authority.host().is_empty() {
            return Err(wrong(text, "there is no host"));
        }
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            None if authority.host().len() == rest.len() => PORT,
            None => return Err(wrong(text, "the port is no number")),
        };
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).to_owned();
        let authority = format!("{host}:{port}").parse().map_err(|_| wrong(text, "expected host:port"))?;
        Ok(Self { tls, host: bare, port, authority })
    }
}

/// An error that shows an endpoint without what may be a password in it.
fn wrong(text: &str, why: &str) -> Error {
    let shown = text.rsplit('@').next().unwrap_or_default();
    Error::Settings(format!("the endpoint {shown:?}: {why}"))
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.authority.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_as_etcdctl_reads_them() {
        for (text, tls, host, port, authority) in [
            ("http://a:1", false, "a", 1, "a:1"),
            ("https://a.example.com/", true, "a.example.com", 2379, "a.example.com:2379"),
            ("127.0.0.1:5", false, "127.0.0.1", 5, "127.0.0.1:5"),
            ("https://[::1]:7", true, "::1", 7, "[::1]:7"),
            ("http://[::1]", false, "::1", 2379, "[::1]:2379"),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            let Endpoint { tls: is_tls, host: named, port: at, .. } = &endpoint;
            assert_eq!((*is_tls, &**named, *at, &*endpoint.to_string()), (tls, host, port, authority));
        }
        for bad in ["ftp://a:1", "http://", "a:x", "a b", "", "http://a:70000", "unix:///x"] {
            assert!(Endpoint::parse(bad).is_err(), "{bad}");
        }
        let error = Endpoint::parse("http://root:secret@a:1").unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
