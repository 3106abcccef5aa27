//! Which headers are handed on, and which say who asks.

use std::fmt::Write;

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue};

use crate::authentication::Identity;

/// The headers that other servers are told to believe: the user, the uid, the groups, and what else is known.
pub(crate) const USER: &str = "X-Remote-User";
pub(crate) const UID: &str = "X-Remote-Uid";
pub(crate) const GROUP: &str = "X-Remote-Group";
pub(crate) const EXTRA: &str = "X-Remote-Extra-";

/// Headers that are between two machines only.
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// The headers of a request as they are handed on, on behalf of somebody.
pub(super) fn of_request(sent: &HeaderMap, identity: &Identity) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(sent.len() + 4 + identity.groups.len());
    let named = connection_headers(sent);
    for (name, value) in sent {
        if !is_between(name, &named) && !says_who(name) {
            headers.append(name, value.clone());
        }
    }
    let mut add = |name: &str, value: &str| {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    };
    add(USER, &identity.user);
    if !identity.uid.is_empty() {
        add(UID, &identity.uid);
    }
    identity.groups.iter().for_each(|group| add(GROUP, group));
    for (key, values) in &identity.extra {
        let name = format!("{EXTRA}{}", escaped(key));
        values.iter().for_each(|value| add(&name, value));
    }
    headers
}

/// The headers of an answer as they are handed on.
pub(super) fn of_answer(sent: &HeaderMap) -> HeaderMap {
    let named = connection_headers(sent);
    let ours = |name: &HeaderName| name == "audit-id" || name.as_str().starts_with("x-kubernetes-pf-");
    let kept = sent.iter().filter(|(name, _)| !is_between(name, &named) && !ours(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The headers that a `Connection` header names.
fn connection_headers(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all(CONNECTION).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect()
}

fn is_between(name: &HeaderName, named: &[String]) -> bool {
    HOP_BY_HOP.contains(name)
        || matches!(*name, HOST | CONTENT_LENGTH)
        || named.iter().any(|listed| listed == name.as_str())
}

/// Whether a header could be taken for one that says who asks, or on whose behalf. Some programs take an underscore for a hyphen.
fn says_who(name: &HeaderName) -> bool {
    let name = name.as_str().replace('_', "-");
    name == AUTHORIZATION.as_str()
        || name.starts_with("x-remote-")
        || name.starts_with("impersonate-")
        || matches!(name.as_str(), "x-forwarded-for" | "x-forwarded-user" | "forwarded")
}

/// A key as part of the name of a header: what cannot be in one is escaped as in URLs.
fn escaped(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        let is_token = byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
        if is_token {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}"); // writing to a string does not fail
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let read = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        let mut headers = HeaderMap::new();
        lines.iter().map(read).for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    }

    #[test]
    fn nobody_can_say_who_they_are() {
        let sent = headers(&[
            ("X-Remote-User", "root"),
            ("x-remote-group", "system:masters"),
            ("X-REMOTE-EXTRA-scopes", "all"),
            ("X_Remote_User", "root"),
            ("X-Remote-Uid", "0"),
            ("Impersonate-User", "root"),
            ("Authorization", "Bearer secret"),
            ("X-Forwarded-For", "10.0.0.1"),
            ("Accept", "application/json"),
        ]);
        let mut jane = Identity::new("jane", ["writers"]);
        jane.uid = "7".to_owned();
        jane.extra.insert("example.com/scopes".into(), vec!["a".into(), "b".into()]);
        let told = of_request(&sent, &jane);
        let all = |name: &str| -> Vec<&str> {
            told.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
        };
        assert_eq!(all("x-remote-user"), ["jane"]);
        assert_eq!(all("x-remote-uid"), ["7"]);
        assert_eq!(all("x-remote-group"), ["writers", "system:authenticated"]);
        assert_eq!(all("x-remote-extra-example.com%2fscopes"), ["a", "b"]);
        assert_eq!(all("accept"), ["application/json"]);
        for gone in
            ["authorization", "impersonate-user", "x_remote_user", "x-forwarded-for", "x-remote-extra-scopes"]
        {
            assert!(all(gone).is_empty(), "{gone}");
        }
    }

    #[test]
    fn what_is_between_two_machines_stays_there() {
        let sent = headers(&[
            ("Connection", "close, X-Remote-Group, X-Mine"),
            ("X-Mine", "1"),
            ("Upgrade", "websocket"),
            ("Transfer-Encoding", "chunked"),
            ("Content-Type", "text/plain"),
            ("Audit-Id", "theirs"),
            ("X-Kubernetes-Pf-Flowschema-Uid", "theirs"),
        ]);
        let kept = of_answer(&sent);
        assert_eq!(kept.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["content-type"]);
        // Nor does a client get rid of what is said about it.
        let told = of_request(&sent, &Identity::anonymous());
        assert_eq!(told.get_all("x-remote-group").iter().count(), 1);
    }
}
