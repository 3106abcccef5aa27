//! Headers that are about one connection, and those that tell where a request came from.

use std::fmt::Write as _;
use std::net::IpAddr;

use http::header::{
    CONNECTION, EXPECT, FORWARDED, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, Version};

use crate::kinds::ForwardedHeaders;
use crate::table::Listener;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// The address of a client as a header tells it, made once for a connection.
#[derive(Clone)]
pub(crate) struct ClientAddress(pub(crate) HeaderValue);

impl ClientAddress {
    pub(crate) fn new(address: IpAddr) -> Self {
        let text = address.to_canonical().to_string();
        Self(HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("unknown")))
    }
}

/// The protocol that a request asks to switch to.
pub(crate) fn upgrade(headers: &HeaderMap, version: Version) -> Option<HeaderValue> {
    if version != Version::HTTP_11 || !headers.contains_key(UPGRADE) {
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
