//! Which listeners serve a route.

use watchkeeper_core::Key;

use super::gateway::{CompiledGateway, CompiledListener};
use crate::kinds::standard::{GROUP, ParentRef};
use crate::net::HostPattern;

/// Why something is not as it should be: a word for programs and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Refused {
    pub(super) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// The gateway that a reference names; `None` if it names something else.
pub(super) fn gateway_of(parent: &ParentRef, namespace: &str) -> Option<Key> {
    let group = parent.group.as_deref().unwrap_or(GROUP);
    let kind = parent.kind.as_deref().unwrap_or("Gateway");
    let namespace = parent.namespace.as_deref().unwrap_or(namespace);
    (group == GROUP && kind == "Gateway").then(|| Key::new(Some(namespace), &parent.name))
}

/// The listeners of a gateway that serve a route of this namespace with these hosts, or why there are none.
pub(super) fn attach(
    gateway: &CompiledGateway,
    parent: &ParentRef,
    namespace: &str,
    hosts: &[HostPattern],
) -> Result<Vec<Key>, Refused> {
    let named = |listener: &&CompiledListener| {
        parent.section_name.as_ref().is_none_or(|name| *name == listener.name)
            && parent.port.is_none_or(|port| port == i32::from(listener.port))
    };
    let named: Vec<&CompiledListener> = gateway.listeners.iter().filter(named).collect();
    if named.is_empty() {
        return Err(Refused::new("NoMatchingParent", "the gateway has no listener with this name and port"));
    }
    let allowed: Vec<&CompiledListener> =
        named.into_iter().filter(|listener| listener.takes_http && listener.allows(namespace)).collect();
    if allowed.is_empty() {
        return Err(Refused::new(
            "NotAllowedByListeners",
            "no listener takes routes of this kind from this namespace",
        ));
    }
    let meets = |listener: &&CompiledListener| {
        hosts.is_empty() || hosts.iter().any(|host| meet(host, &listener.hostname))
    };
    let attached: Vec<Key> = allowed.into_iter().filter(meets).map(|listener| listener.key.clone()).collect();
    match attached.is_empty() {
        true => Err(Refused::new(
            "NoMatchingListenerHostname",
            "the hostnames of the route are none that the listeners serve",
        )),
        false => Ok(attached),
    }
}

/// Whether there is a host that both patterns contain.
fn meet(one: &HostPattern, other: &HostPattern) -> bool {
    match (one, other) {
        (HostPattern::Any, _) | (_, HostPattern::Any) => true,
        (HostPattern::Exact(name), pattern) | (pattern, HostPattern::Exact(name)) => pattern.contains(name),
        (HostPattern::Below(one), HostPattern::Below(other)) => {
            one.ends_with(&**other) || other.ends_with(&**one)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_meet_if_a_host_is_in_both() {
        let meet = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|text| HostPattern::parse(text).unwrap());
            assert_eq!(meet(&one, &other), super::meet(&other, &one));
            super::meet(&one, &other)
        };
        for (one, other) in [
            ("*", "a.test"),
            ("a.test", "a.test"),
            ("*.test", "a.test"),
            ("*.test", "*.a.test"),
            ("*.test", "a.b.test"),
        ] {
            assert!(meet(one, other), "{one} {other}");
        }
        for (one, other) in
            [("a.test", "b.test"), ("*.test", "test"), ("*.a.test", "*.b.test"), ("*.a.test", "a.test")]
        {
            assert!(!meet(one, other), "{one} {other}");
        }
    }
}
