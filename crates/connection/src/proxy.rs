use std::fmt;

use http::Uri;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use watchkeeper_core::text::{bounded, percent_decoded};
use watchkeeper_go::base64;

use crate::stream::{Io, Stream};

/// How many bytes the answer of a proxy may have.
const MAX_ANSWER: usize = 8 * 1024;

/// An HTTP proxy that is asked for tunnels (`CONNECT`). Prints as `host:port`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    host: String,
    port: u16,
    /// The value of a `Proxy-Authorization` header. A secret.
    authorization: Option<String>,
}

impl Proxy {
    /// Reads a `proxy-url`. The error does not repeat it, since it may hold a password.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|_| "proxy-url is no URL".to_owned())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some(scheme) => {
                return Err(format!("proxy-url: {scheme} proxies are not supported, only http:// ones are"));
            }
            None => return Err("proxy-url does not begin with http://".to_owned()),
        }
        let authority = uri.authority().ok_or("proxy-url names no host")?;
        let user = authority.as_str().rsplit_once('@').map(|(user, _)| user);
        let authorization =
            user.map(|user| format!("Basic {}", base64::encode(percent_decoded(user.as_bytes()))));
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port: authority.port_u16().unwrap_or(80), authorization })
    }

    pub(crate) fn address(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// Asks for a tunnel to `host:port`.
    pub(crate) async fn tunnel(&self, mut stream: impl Io + 'static, to: &str) -> Result<Stream, String> {
        let mut request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n");
        if let Some(authorization) = &self.authorization {
            request.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
        }
        request.push_str("\r\n");
        let failed = |error: std::io::Error| format!("the proxy {self} broke off: {error}");
        stream.write_all(request.as_bytes()).await.map_err(failed)?;
        let mut answer = Vec::new();
        // Byte by byte, since what comes behind the answer is the server's.
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() >= MAX_ANSWER {
                return Err(format!("the proxy {self} does not answer as an HTTP proxy would"));
            }
            answer.push(stream.read_u8().await.map_err(failed)?);
        }
        let answer = String::from_utf8_lossy(&answer);
        let line = answer.lines().next().unwrap_or_default();
        let mut words = line.splitn(3, ' ');
        match (words.next(), words.next()) {
            (Some(version), Some(code)) if version.starts_with("HTTP/1.") && code.starts_with('2') => {
                Ok(Box::new(stream))
            }
            _ => Err(format!("the proxy {self} refuses a tunnel: {}", bounded(line))),
        }
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_url_has_a_host_and_maybe_a_user() {
        let proxy = Proxy::parse("http://jane:p%40ss%3a%+@10.0.0.1:3128").unwrap();
        assert_eq!(proxy.address(), ("10.0.0.1", 3128));
        assert_eq!(proxy.authorization, Some(format!("Basic {}", base64::encode("jane:p@ss:%+"))));
        assert_eq!(format!("{proxy} {proxy:?}"), "10.0.0.1:3128 Proxy(10.0.0.1:3128)");
        assert_eq!(Proxy::parse("http://[::1]").unwrap().address(), ("::1", 80));
    }

    #[test]
    fn other_proxies_are_refused_without_their_passwords() {
        for url in ["socks5://jane:secret@a:1080", "https://jane:secret@a", "jane:secret@a b", "/secret"] {
            let error = Proxy::parse(url).unwrap_err();
            assert!(error.contains("proxy-url") && !error.contains("secret"), "{error}");
        }
    }
}
