//! Headers that are about one connection, and those that tell where a request came from.

use std::fmt::Write as _;
use std::net::IpAddr;

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT, FORWARDED,
    HOST, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{HeaderMap, Version};

use crate::kinds::ForwardedHeaders;
use crate::policy::CONSUMER;
use crate::table::Listener;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// What a backend believes because the gateway says it, or reads a request by. Clients do not get to say it in other words.
const TRUSTED: [HeaderName; 9] = [
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    X_FORWARDED_FOR,
    X_FORWARDED_PROTO,
    X_FORWARDED_HOST,
    X_FORWARDED_PORT,
    X_REAL_IP,
    FORWARDED,
    CONSUMER,
];
/// Versions of HTTP, and what is around it: whoever switches to one of them sends requests that no route is looked up for.
const UNTUNNELLED: [&str; 4] = ["h2c", "h2", "http", "tls"];

/// The address of a client as a header tells it, made once for a connection.
#[derive(Clone)]
pub(crate) struct ClientAddress(pub(crate) HeaderValue);

impl ClientAddress {
    pub(crate) fn new(address: IpAddr) -> Self {
        let text = address.to_canonical().to_string();
        Self(HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("unknown")))
    }
}

/// Whether a header would be taken for one that is trusted by those who do not tell underscores from dashes, such as CGI and WSGI.
pub(crate) fn is_lookalike(name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    let is_like = |trusted: &HeaderName| {
        let trusted = trusted.as_str().as_bytes();
        trusted.len() == name.len()
            && trusted.iter().zip(name).all(|(one, other)| one == other || (*one, *other) == (b'-', b'_'))
    };
    name.contains(&b'_') && TRUSTED.iter().any(is_like)
}

/// Removes from the trailers of a request what only its head may say, before a backend makes one of both.
pub(crate) fn remove_from_trailers(trailers: &mut HeaderMap) {
    remove(trailers);
    let of_heads = [HOST, TE, AUTHORIZATION, COOKIE, CONTENT_TYPE, CONTENT_ENCODING];
    for name in TRUSTED.iter().chain(&of_heads) {
        trailers.remove(name);
    }
    let lookalikes: Vec<HeaderName> = trailers.keys().filter(|name| is_lookalike(name)).cloned().collect();
    for name in lookalikes {
        trailers.remove(name);
    }
}

/// The protocol that a request asks to switch to. That it asks for another version of HTTP is not listened to, as RFC 9110 allows.
pub(crate) fn upgrade(headers: &HeaderMap, version: Version) -> Option<HeaderValue> {
    if version != Version::HTTP_11 || !headers.contains_key(UPGRADE) {
        return None;
    }
    let is_tunnelled = |value: &HeaderValue| {
        value.to_str().is_ok_and(|protocols| {
            protocols.split(',').all(|protocol| {
                let name = protocol.split('/').next().unwrap_or_default().trim();
                !UNTUNNELLED.iter().any(|untunnelled| name.eq_ignore_ascii_case(untunnelled))
            })
        })
    };
    if !headers.get_all(UPGRADE).iter().all(is_tunnelled) {
        return None;
    }
    listed(headers).any(|name| name.eq_ignore_ascii_case("upgrade")).then(|| headers.get(UPGRADE).cloned())?
}

fn listed(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|name| !name.is_empty())
}

/// Removes the headers that are about one connection.
pub(crate) fn remove(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let names: Vec<HeaderName> = listed(headers).filter_map(|name| name.parse().ok()).collect();
        for name in names {
            headers.remove(name);
        }
        headers.remove(CONNECTION);
    }
    for name in [
        KEEP_ALIVE,
        PROXY_CONNECTION,
        TRANSFER_ENCODING,
        UPGRADE,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TRAILER,
        EXPECT,
        HTTP2_SETTINGS,
    ] {
        headers.remove(name);
    }
    // gRPC insists on it.
    if let Some(accepted) = headers.get(TE) {
        match accepted.to_str().is_ok_and(|text| text.split(',').any(|part| part.trim() == "trailers")) {
            true => drop(headers.insert(TE, HeaderValue::from_static("trailers"))),
            false => drop(headers.remove(TE)),
        }
    }
}

/// The address of the client, if a proxy that is trusted tells it; otherwise the other end of the connection.
pub(crate) fn client(headers: &HeaderMap, peer: IpAddr, listener: &Listener) -> IpAddr {
    if !listener.trusted.contain(peer) {
        return peer;
    }
    let values = headers.get_all(X_FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
    let mut addresses: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
    let mut client = peer;
    // From the nearest to the farthest, as far as all in between are trusted.
    while let Some(address) = addresses.pop().and_then(|text| text.parse::<IpAddr>().ok()) {
        client = address;
        if !listener.trusted.contain(address) {
            break;
        }
    }
    client
}

/// Tells the backend where a request came from.
pub(crate) fn tell_origin(
    headers: &mut HeaderMap,
    peer: IpAddr,
    told: Option<&ClientAddress>,
    host: &HeaderValue,
    listener: &Listener,
    is_tls: bool,
) {
    if !listener.trusted.contain(peer) {
        for name in
            [X_FORWARDED_FOR, X_FORWARDED_PROTO, X_FORWARDED_HOST, X_FORWARDED_PORT, X_REAL_IP, FORWARDED]
        {
            headers.remove(name);
        }
    }
    let scheme = if is_tls { "https" } else { "http" };
    let address = || told.map_or_else(|| ClientAddress::new(peer).0, |told| told.0.clone());
    if matches!(listener.forwarded, ForwardedHeaders::XForwarded | ForwardedHeaders::Both) {
        let before = headers.get(X_FORWARDED_FOR).is_some();
        match before {
            false => drop(headers.insert(X_FORWARDED_FOR, address())),
            true => {
                let values = headers.get_all(X_FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
                let mut all = values.collect::<Vec<_>>().join(", ");
                let _ = write!(all, ", {}", peer.to_canonical()); // writing to a text does not fail
                if let Ok(value) = HeaderValue::from_str(&all) {
                    headers.insert(X_FORWARDED_FOR, value);
                }
            }
        }
        headers.entry(X_FORWARDED_PROTO).or_insert(HeaderValue::from_static(scheme));
        if !headers.contains_key(X_FORWARDED_HOST) {
            headers.insert(X_FORWARDED_HOST, host.clone());
        }
    }
    if matches!(listener.forwarded, ForwardedHeaders::Forwarded | ForwardedHeaders::Both) {
        let node = match peer.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("\"[{address}]\""),
        };
        let host = host.to_str().unwrap_or_default();
        if let Ok(value) = HeaderValue::from_str(&format!("for={node};host=\"{host}\";proto={scheme}")) {
            headers.append(FORWARDED, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        all.iter().map(pair).collect()
    }

    #[test]
    fn to_another_version_of_http_nobody_switches() {
        let asked = |protocol| {
            upgrade(&headers(&[("connection", "upgrade"), ("upgrade", protocol)]), Version::HTTP_11)
        };
        for protocol in ["websocket", "SPDY/3.1", "spdy/3.1, websocket"] {
            assert_eq!(asked(protocol), Some(HeaderValue::from_static(protocol)));
        }
        for protocol in ["h2c", "H2C", "HTTP/2.0", "TLS/1.2", "websocket, h2c", "websocket,h2c"] {
            assert_eq!(asked(protocol), None, "{protocol}");
        }
        let mut two = headers(&[("connection", "upgrade"), ("upgrade", "websocket")]);
        two.append("upgrade", HeaderValue::from_static("h2c"));
        assert_eq!(upgrade(&two, Version::HTTP_11), None);
    }

    #[test]
    fn trailers_say_nothing_that_heads_are_believed_for() {
        let mut trailers = headers(&[
            ("x-checksum", "1"),
            ("content-length", "5"),
            ("transfer-encoding", "chunked"),
            ("host", "a"),
            ("authorization", "a"),
            ("x-consumer", "admin"),
            ("x_consumer", "admin"),
            ("x-forwarded-for", "10.0.0.1"),
            ("x_other", "1"),
        ]);
        remove_from_trailers(&mut trailers);
        assert_eq!(trailers, headers(&[("x-checksum", "1"), ("x_other", "1")]));
    }
}
