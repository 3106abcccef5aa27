//! The head of a request: what is refused because gateway and backend could understand it differently.

use std::borrow::Cow;

use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Method, Version};

use super::{hop, path};

/// Where a request wants to go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// The host with its port, as the client wrote it.
    pub(crate) authority: Cow<'a, str>,
    /// The host, in lower case and without port.
    pub(crate) host: Cow<'a, str>,
    /// The path, in the form in which it is matched.
    pub(crate) path: Cow<'a, str>,
}

/// Reads the head of a request, or says why it is refused.
pub(crate) fn read(parts: &Parts) -> Result<Target<'_>, &'static str> {
    if parts.method == Method::CONNECT {
        return Err("tunnels are not offered here");
    }
    if parts.uri.authority().is_some() && parts.uri.scheme().is_none() {
        return Err("the target is neither a path nor a URL");
    }
    let authority = authority(parts)?;
    framing(parts)?;
    if parts.headers.keys().any(hop::is_lookalike) {
        return Err("a header has an underscore where one that backends trust has a dash");
    }
    // OPTIONS may ask about the server as a whole.
    let path = match parts.uri.path() {
        "*" | "" => Cow::Borrowed("/"),
        path if !path.starts_with('/') => return Err("the path does not begin with a slash"),
        path => path::normalised(path).map_err(|bad| match bad {
            path::BadPath::DotSegment => "the path has segments of dots",
            path::BadPath::Character => "the path has a backslash or a NUL",
            path::BadPath::Escape => "the path has a percent sign without two digits",
        })?,
    };
    let host = match &authority {
        Cow::Borrowed(authority) => host(authority)?,
        Cow::Owned(authority) => Cow::Owned(host(authority)?.into_owned()),
    };
    Ok(Target { authority, host, path })
}

/// The one host that a request names: in its target, in its header, or in both alike.
fn authority(parts: &Parts) -> Result<Cow<'_, str>, &'static str> {
    let mut hosts = parts.headers.get_all(HOST).iter();
    let header = match (hosts.next(), hosts.next()) {
        (None, _) => None,
        (Some(host), None) => Some(host.to_str().map_err(|_| "the host is not a name")?),
        (Some(_), Some(_)) => return Err("there is more than one host"),
    };
    let target = parts.uri.authority().map(http::uri::Authority::as_str);
    match (target, header) {
        (Some(target), Some(header)) if !target.eq_ignore_ascii_case(header) => {
            Err("two different hosts are named")
        }
        (Some(target), _) => Ok(Cow::Borrowed(target)),
        (None, Some(header)) => Ok(Cow::Borrowed(header)),
        (None, None) if parts.version <= Version::HTTP_10 => Ok(Cow::Borrowed("")),
        (None, None) => Err("no host is named"),
    }
}

/// The name of a host without its port, in lower case and without the dot at its end.
fn host(authority: &str) -> Result<Cow<'_, str>, &'static str> {
    let wrong = "the host is not a name";
    let (name, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']').ok_or(wrong)?;
            let (name, port) = authority.split_at(end + 2);
            (name, port)
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_port = |port: &str| {
        port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok() || port.is_empty())
    };
    let is_name = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || b"-._".contains(&byte)
            || name.starts_with('[') && b"[:]".contains(&byte)
    };
    if !(port.is_empty() || is_port(port)) || !name.bytes().all(is_name) {
        return Err(wrong);
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    Ok(match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    })
}

/// Refuses bodies whose end is told in a way that hyper understands and a backend may not. What hyper does not show, `watchkeeper_front` refuses.
fn framing(parts: &Parts) -> Result<(), &'static str> {
    let mut encodings = parts.headers.get_all(TRANSFER_ENCODING).iter();
    match (encodings.next(), encodings.next()) {
        (None, _) => Ok(()),
        (Some(_), _) if parts.version != Version::HTTP_11 => Err("transfer-encoding is for HTTP/1.1"),
        (Some(_), _) if parts.headers.contains_key(CONTENT_LENGTH) => {
            Err("the length of the body is told in two ways")
        }
        (Some(only), None) if only.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err("the transfer-encoding is not chunked"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn host_and_path_are_read_in_one_form() {
        for (uri, host, expected) in [
            ("/a", "example.com", ("example.com", "/a")),
            ("/%61", "Example.COM:8080", ("example.com", "/a")),
            ("http://example.com/a", "example.com", ("example.com", "/a")),
            ("/a", "example.com.", ("example.com", "/a")),
            ("/a", "[::1]:80", ("[::1]", "/a")),
            ("/a", "127.0.0.1", ("127.0.0.1", "/a")),
        ] {
            let parts = parts(uri, &[("host", host)]);
            let target = read(&parts).unwrap();
            assert_eq!((&*target.host, &*target.path), expected, "{uri} {host}");
        }
    }

    #[test]
    fn what_could_be_misread_is_refused() {
        let cases: [(&str, &[(&str, &str)]); 18] = [
            ("/", &[]),
            ("a", &[("host", "a")]),
            ("/", &[("host", "a"), ("host", "b")]),
            ("/", &[("host", "a"), ("host", "a")]),
            ("http://a/", &[("host", "b")]),
            ("/", &[("host", "a b")]),
            ("/", &[("host", "a:b")]),
            ("/", &[("host", "user@a")]),
            ("/", &[("host", "a/b")]),
            ("/", &[("host", "[::1")]),
            ("/../x", &[("host", "a")]),
            ("/", &[("host", "a"), ("transfer-encoding", "chunked"), ("content-length", "3")]),
            ("/", &[("host", "a"), ("transfer-encoding", "gzip, chunked")]),
            ("/", &[("host", "a"), ("transfer-encoding", "chunked"), ("transfer-encoding", "identity")]),
            ("/", &[("host", "a"), ("transfer-encoding", "xchunked")]),
            ("/", &[("host", "a"), ("content_length", "3")]),
            ("/", &[("host", "a"), ("x_forwarded-for", "10.0.0.1")]),
            ("/", &[("host", "a"), ("x_consumer", "admin")]),
        ];
        for (uri, headers) in cases {
            assert!(read(&parts(uri, headers)).is_err(), "{uri} {headers:?}");
        }
        for fine in [("transfer-encoding", "Chunked"), ("api_key", "1"), ("x-consumer", "admin")] {
            assert!(read(&parts("/", &[("host", "a"), fine])).is_ok(), "{fine:?}");
        }
    }
}
